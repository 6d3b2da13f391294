configfile: "config/config.yaml"


try:
    SWEEP = load(config, Path("config"))
    LAYOUT = Layout(Path(SWEEP.settings.results))
    LAYOUT.require_writable()
    require_device(SWEEP.machine)
except TrisectError as mistake:
    raise SystemExit(f"trisect: {mistake}")

RUN = LAYOUT.run("{experiment}", "{gpus}")


def payload_of(launch, *arguments):
    """What a measurement depends on; a count, experiment or algorithm that cannot be launched ends here."""
    try:
        return launch(*arguments).payload()
    except TrisectError as mistake:
        raise SystemExit(f"trisect: {mistake}")


def shown_run(experiment):
    """The run of an experiment that the report shows rank by rank: the largest with cores of its own."""
    counts = SWEEP.counts(experiment)
    fair = [gpus for gpus in counts if not shares_cores(gpus, SWEEP.machine)]
    return LAYOUT.run(experiment, max(fair or counts))


def files_of(experiment, name):
    """One file of every run of an experiment in the sweep, smallest count first."""
    return [
        getattr(LAYOUT.run(experiment, gpus), name) for gpus in SWEEP.counts(experiment)
    ]


# What an earlier sweep left, where the settings name one to compare with.
AGAINST = SWEEP.settings.against
EARLIER = [run.iterations for run in Layout(Path(AGAINST)).runs()] if AGAINST else []


def both_sweeps(wildcards):
    """The runs of this sweep and of the earlier one."""
    if not EARLIER:
        found = f"no run in {AGAINST!r}" if AGAINST else "not set"
        raise SystemExit(
            f"trisect: against: {found}; "
            "name an earlier sweep's results: snakemake compare --config against=FOLDER"
        )
    return EARLIER + [LAYOUT.run(run.name, run.gpus).iterations for run in SWEEP.runs()]
