PROBE = LAYOUT.probe("{gpus}", "{algorithm}")
PROBES = [LAYOUT.probe(probe.gpus, probe.algorithm) for probe in SWEEP.probes()]


rule all_reduce:
    """Time all_reduces from small to large at one count, with one algorithm."""
    output:
        record=PROBE.record,
        table=PROBE.all_reduce,
    log:
        PROBE.logs / "all_reduce.log",
    wildcard_constraints:
        algorithm="chosen|ring|tree",
    # As for a run: on one machine nothing beside it, and waiting for SLURM takes no core.
    threads: workflow.cores if SWEEP.machine.launcher == "local" else 0
    resources:
        request=lambda wildcards: request(
            Job.of(planned_probe(wildcards)), SWEEP.machine
        ),
    params:
        probe=lambda wildcards: planned_probe(wildcards).payload(),
    message:
        "probe gpus-{wildcards.gpus} {wildcards.algorithm}: {resources.request}"
    script:
        "../scripts/all_reduce.py"


rule alpha_beta:
    """Fit latency and rate to every probe."""
    input:
        records=[probe.record for probe in PROBES],
        tables=[probe.all_reduce for probe in PROBES],
    output:
        LAYOUT.fits,
    log:
        LAYOUT.fits.with_suffix(".log"),
    params:
        version=__version__,
    script:
        "../scripts/alpha_beta.py"
