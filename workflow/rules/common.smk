configfile: "config/config.yaml"


try:
    SWEEP = with_times(load(config, Path("config")), Path("config"))
    LAYOUT = Layout(Path(SWEEP.settings.results))
    LAYOUT.require_writable()
    require_device(SWEEP.machine)
except TrisectError as mistake:
    raise SystemExit(f"trisect: {mistake}")

RUN = LAYOUT.run("{experiment}", "{gpus}")


def planned(plan, *arguments):
    """A run or probe of the plan; a count, experiment or algorithm that cannot be launched ends here."""
    try:
        return plan(*arguments)
    except TrisectError as mistake:
        raise SystemExit(f"trisect: {mistake}")


def planned_run(wildcards):
    """The run that a job of rule benchmark measures."""
    return planned(SWEEP.run, wildcards.experiment, int(wildcards.gpus))


def planned_probe(wildcards):
    """The probe that a job of rule all_reduce measures."""
    return planned(SWEEP.probe, int(wildcards.gpus), wildcards.algorithm)


def planned_request(wildcards):
    """What the launch of a run asks its machine for, in one line."""
    run = planned_run(wildcards)
    minutes = planned(SWEEP.limit_minutes, run.name, run.gpus)
    return request(Job.of(run, minutes), SWEEP.machine)


def print_preflight():
    """Say what the sweep holds and takes, and which of its counts an experiment does not fit on."""
    notes = forecast(SWEEP) + left_out(SWEEP)
    for line in all_in_words(notes, SWEEP.machine.unit):
        print(line, file=sys.stderr)


if workflow.output_settings.dryrun:
    print_preflight()  # a dry run has no onstart


def shown_run(experiment):
    """The run of an experiment that the report shows rank by rank: the largest with cores of its own."""
    counts = SWEEP.counts(experiment)
    fair = [gpus for gpus in counts if not SWEEP.machine.shares_cores(gpus)]
    return LAYOUT.run(experiment, max(fair or counts))


def files_of(experiment, name):
    """One file of every run of an experiment in the sweep, smallest count first."""
    return [
        getattr(LAYOUT.run(experiment, gpus), name) for gpus in SWEEP.counts(experiment)
    ]


# Of the experiments that anything gives a rate to predict with.
PREDICTIONS = {
    name: LAYOUT.prediction(name)
    for name in SWEEP.settings.experiments
    if predictable(SWEEP, LAYOUT, name)
}


def every_prediction(wildcards):
    """The prediction of every experiment; one that nothing gives a rate for ends here."""
    for name in SWEEP.settings.experiments:
        if name not in PREDICTIONS:
            raise SystemExit(
                f"trisect: gpus: {name} is measured on 1 alone, where nothing is transferred; "
                "add a count, run snakemake probe, or give the machine's file links"
            )
    return list(PREDICTIONS.values())


# The runs of an earlier sweep, where the settings name one to compare with.
AGAINST = SWEEP.settings.against
BASELINE = [run.iterations for run in Layout(Path(AGAINST)).runs()] if AGAINST else []


def both_sweeps(wildcards):
    """The runs of the baseline and of this sweep."""
    if not BASELINE:
        found = f"no run in {AGAINST!r}" if AGAINST else "not set"
        raise SystemExit(
            f"trisect: against: {found}; "
            "name an earlier sweep's results: snakemake compare --config against=FOLDER"
        )
    return BASELINE + [
        LAYOUT.run(run.name, run.gpus).iterations for run in SWEEP.runs()
    ]
