UNIT = SWEEP.machine.unit
EXPERIMENTS = SWEEP.settings.experiments
SCALINGS = [LAYOUT.scaling(name) for name in EXPERIMENTS]
RATES = [LAYOUT.rates(name) for name in EXPERIMENTS]
# What each kind of figure is drawn from.
DRAWN_FROM = {
    "scaling": SCALINGS,
    "ranks": SCALINGS + [LAYOUT.run(run.name, run.gpus).ranks for run in SWEEP.runs()],
    "rates": RATES,
    "prediction": list(PREDICTIONS.values()),
}
SHOWN = "; ".join(
    f"{name} at {', '.join(map(str, SWEEP.counts(name)))}" for name in EXPERIMENTS
)
FIGURES = [name for name, entry in CATALOGUE.items() if DRAWN_FROM.get(entry.table)]


rule rates:
    """Compare each measured transfer of one experiment with the time that its bytes should take."""
    input:
        scaling=LAYOUT.scaling("{experiment}"),
        collectives=lambda wildcards: files_of(wildcards.experiment, "collectives"),
    output:
        LAYOUT.rates("{experiment}"),
    log:
        LAYOUT.rates("{experiment}").with_suffix(".log"),
    params:
        machine=SWEEP.machine.model_dump_json(
            include={"launcher", "backend", "gpus_per_node", "links"}
        ),
        # As a parameter and no input: a report takes what a probe left, and starts none.
        fits=LAYOUT.fits.read_text() if LAYOUT.fits.exists() else "",
        version=__version__,
    script:
        "../scripts/rates.py"


rule figure:
    """Draw one figure over all experiments."""
    input:
        lambda wildcards: DRAWN_FROM[CATALOGUE[wildcards.figure].table],
    output:
        report(
            LAYOUT.figure("{figure}"),
            caption="../report/caption.jinja",
            category=lambda wildcards: CATEGORIES[CATALOGUE[wildcards.figure].table],
            labels=lambda wildcards: {"figure": CATALOGUE[wildcards.figure].title},
        ),
    log:
        LAYOUT.figure("{figure}").with_suffix(".log"),
    wildcard_constraints:
        figure="|".join(FIGURES),
    params:
        unit=UNIT,
        caption=lambda wildcards: CATALOGUE[wildcards.figure].worded(UNIT).caption,
        shows=SHOWN,
        version=__version__,
    script:
        "../scripts/figure.py"


rule timeline:
    """Put one run's slowest and median iteration, all ranks, on one clock."""
    input:
        record=RUN.record,
        traces=RUN.traces,
    output:
        trace=RUN.timeline,
        drawing=report(
            RUN.timeline_drawing,
            caption="../report/caption.jinja",
            category="Timelines",
            labels={"experiment": "{experiment}", "GPUs": "{gpus}"},
        ),
    log:
        RUN.logs / "timeline.log",
    params:
        caption=TIMELINE.worded(UNIT).caption,
        shows="{experiment} at {gpus}",
        version=__version__,
    script:
        "../scripts/timeline.py"


rule compare:
    """Compare this sweep with an earlier one, the baseline."""
    input:
        both_sweeps,
    output:
        LAYOUT.comparison,
    log:
        LAYOUT.comparison.with_suffix(".log"),
    params:
        against=AGAINST,
        version=__version__,
    script:
        "../scripts/compare.py"


rule report:
    """Put findings, figures, tables and what each run ran on into one page."""
    input:
        baseline=BASELINE,
        scaling=SCALINGS,
        rates=RATES,
        predictions=list(PREDICTIONS.values()),
        figures=[LAYOUT.figure(name) for name in FIGURES],
        timelines=[shown_run(name).timeline for name in EXPERIMENTS],
        records=[LAYOUT.run(run.name, run.gpus).record for run in SWEEP.runs()],
    output:
        LAYOUT.report,
    log:
        LAYOUT.report.with_suffix(".log"),
    params:
        against=AGAINST,
        version=__version__,
    script:
        "../scripts/report.py"


onerror:
    from trisect.pipeline.sweep_report import write_report

    if LAYOUT.runs():  # a probe that fails before any sweep leaves nothing to show
        try:
            missing = write_report(SWEEP, LAYOUT).missing
            print(
                f"{LAYOUT.report} shows the finished runs; {len(missing)} of {len(SWEEP.runs())} are missing:"
            )
            for (experiment, gpus), reason in missing.items():
                print(f"  {experiment} gpus-{gpus}: {reason}")
        except TrisectError as mistake:
            print(f"trisect: {mistake}")
