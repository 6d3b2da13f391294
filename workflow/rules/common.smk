configfile: "config/config.yaml"


try:
    SWEEP = load(config, Path("config"))
    LAYOUT = Layout(Path(SWEEP.settings.results))
    LAYOUT.require_writable()
    require_device(SWEEP.machine)
except TrisectError as mistake:
    raise SystemExit(f"trisect: {mistake}")

RUN = LAYOUT.run("{experiment}", "{gpus}")


def run_parameters(wildcards):
    """What a run's measurement depends on; a count or experiment that cannot be run ends here."""
    try:
        return SWEEP.run(wildcards.experiment, int(wildcards.gpus)).payload()
    except TrisectError as mistake:
        raise SystemExit(f"trisect: {mistake}")


def files_of(experiment, name):
    """One file of every run of an experiment in the sweep, smallest count first."""
    return [
        getattr(LAYOUT.run(experiment, gpus), name) for gpus in SWEEP.counts(experiment)
    ]
