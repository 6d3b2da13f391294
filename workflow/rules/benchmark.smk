rule benchmark:
    """Run one experiment at one GPU count and keep a trace per rank."""
    input:
        files=lambda wildcards: SWEEP.inputs(wildcards.experiment),
    output:
        record=RUN.record,
        traces=directory(RUN.traces),
    log:
        RUN.logs / "benchmark.log",
    # On one machine, one run at a time and nothing beside it: they would disturb each other's times.
    # Waiting for a SLURM job takes no core, so that one which never starts does not hold back the others.
    threads: workflow.cores if SWEEP.machine.launcher == "local" else 0
    # A string, which no scheduler counts. As a parameter another time limit would measure again.
    resources:
        request=planned_request,
    params:
        run=lambda wildcards: planned_run(wildcards).payload(),
    message:
        "{wildcards.experiment} gpus-{wildcards.gpus}: {resources.request}"
    script:
        "../scripts/benchmark.py"
