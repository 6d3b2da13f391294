rule prediction:
    """Fit a model to some of an experiment's counts, and compare it with the others."""
    input:
        decompositions=lambda wildcards: files_of(wildcards.experiment, "decomposition"),
        collectives=lambda wildcards: files_of(wildcards.experiment, "collectives"),
        ranks=lambda wildcards: files_of(wildcards.experiment, "ranks"),
    output:
        table=LAYOUT.prediction("{experiment}"),
        record=LAYOUT.prediction_record("{experiment}"),
        words=LAYOUT.prediction_words("{experiment}"),
    log:
        LAYOUT.prediction("{experiment}").with_suffix(".log"),
    params:
        machine=SWEEP.machine.model_dump_json(exclude={"environment", "slurm", "probe"}),
        predict=SWEEP.settings.predict.model_dump_json(),
        # As a parameter and no input: a prediction takes what a probe left, and starts none.
        fits=LAYOUT.fits.read_text() if LAYOUT.fits.exists() else "",
        version=__version__,
    script:
        "../scripts/prediction.py"


rule predict:
    """Every experiment at every count up to 1,024, by a model fitted to the counts in `predict.fit`."""
    input:
        every_prediction,
