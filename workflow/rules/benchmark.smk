def run_parameters(wildcards):
    """What the run's measurement depends on; a count or experiment that cannot be run ends here."""
    try:
        return SWEEP.run(wildcards.experiment, int(wildcards.gpus)).payload()
    except TrisectError as mistake:
        raise SystemExit(f"trisect: {mistake}")


rule benchmark:
    """Run one experiment at one GPU count and keep a trace per rank."""
    output:
        record=RUN.record,
        traces=directory(RUN.traces),
    input:
        weights=lambda wildcards: SWEEP.weights(wildcards.experiment),
    log:
        RUN.logs / "benchmark.log",
    params:
        run=run_parameters,
    # On one machine, one run at a time and nothing beside it: they would disturb each other's times.
    threads: workflow.cores if SWEEP.machine.launcher == "local" else 1
    script:
        "../scripts/benchmark.py"
