rule decompose:
    """Cut each section of one run into compute, transfer and wait."""
    input:
        record=RUN.record,
        traces=RUN.traces,
    output:
        decomposition=RUN.decomposition,
        collectives=RUN.collectives,
        iterations=RUN.iterations,
        ranks=RUN.ranks,
        notes=RUN.notes,
        findings=RUN.findings,
    log:
        RUN.logs / "decompose.log",
    params:
        version=__version__,
    script:
        "../scripts/decompose.py"


rule scaling:
    """Put all counts of one experiment beside the smallest."""
    input:
        decompositions=lambda wildcards: files_of(wildcards.experiment, "decomposition"),
        iterations=lambda wildcards: files_of(wildcards.experiment, "iterations"),
    output:
        LAYOUT.scaling("{experiment}"),
    log:
        LAYOUT.scaling("{experiment}").with_suffix(".log"),
    params:
        version=__version__,
    script:
        "../scripts/scaling.py"
