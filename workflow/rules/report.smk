# A figure is there when its caption is; src/trisect/report/figures.py draws it.
CAPTIONS = {
    path.stem: path.read_text()
    for path in sorted(Path(workflow.basedir, "workflow/report").glob("*.rst"))
}


rule figure:
    input:
        scaling=[LAYOUT.scaling(name) for name in SWEEP.settings.experiments],
        ranks=[LAYOUT.run(run.name, run.gpus).ranks for run in SWEEP.runs()],
    """Draw one figure over all experiments."""
    output:
        report(
            LAYOUT.figure("{figure}"),
            caption="../report/caption.jinja",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
    log:
        LAYOUT.figure("{figure}").with_suffix(".log"),
    wildcard_constraints:
        figure="|".join(CAPTIONS),
    params:
        caption=lambda wildcards: CAPTIONS[wildcards.figure],
        version=__version__,
    script:
        "../scripts/figure.py"


rule report:
    input:
        scaling=rules.figure.input.scaling,
        figures=[LAYOUT.figure(name) for name in CAPTIONS],
        records=[LAYOUT.run(run.name, run.gpus).record for run in SWEEP.runs()],
    """Put findings, figures, tables and what each run ran on into one page."""
    output:
        LAYOUT.report,
    log:
        LAYOUT.report.with_suffix(".log"),
    params:
        captions=CAPTIONS,
        version=__version__,
    script:
        "../scripts/report.py"


onerror:
    from trisect.report_files import write_report

    try:
        missing = write_report(SWEEP, LAYOUT, CAPTIONS).missing
        print(f"{LAYOUT.report} shows the runs that stand; {len(missing)} of {len(SWEEP.runs())} are missing:")
        for (experiment, gpus), reason in missing.items():
            print(f"  {experiment} gpus-{gpus}: {reason}")
    except TrisectError as mistake:
        print(f"trisect: {mistake}")
