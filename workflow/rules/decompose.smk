from trisect import __version__


rule decompose:
    """Cut each section of one run into compute, transfer and wait."""
    output:
        decomposition=RUN.decomposition,
        collectives=RUN.collectives,
        iterations=RUN.iterations,
        findings=RUN.findings,
    input:
        record=RUN.record,
        traces=RUN.traces,
    log:
        RUN.logs / "decompose.log",
    params:
        version=__version__,
    script:
        "../scripts/decompose.py"


rule scaling:
    """Put all counts of one experiment beside the smallest."""
    output:
        LAYOUT.scaling("{experiment}"),
    input:
        records=lambda w: [LAYOUT.run(w.experiment, n).record for n in SWEEP.counts(w.experiment)],
        decompositions=lambda w: [LAYOUT.run(w.experiment, n).decomposition for n in SWEEP.counts(w.experiment)],
        iterations=lambda w: [LAYOUT.run(w.experiment, n).iterations for n in SWEEP.counts(w.experiment)],
    log:
        LAYOUT.scaling("{experiment}").with_suffix(".log"),
    params:
        version=__version__,
    script:
        "../scripts/scaling.py"
