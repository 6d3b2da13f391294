"""The published study from the model: traces of every run written, and read back like any measurement."""

import shutil
from functools import partial
from pathlib import Path

import pandas as pd

from trisect.analysis.baseline import scaling
from trisect.config.loading import load_experiments, load_machine, load_study
from trisect.config.machine import Machine
from trisect.config.plan import load_balance_bound
from trisect.config.study_settings import Study
from trisect.host import write_whole
from trisect.model.allreduce_cost import links_of
from trisect.model.predict import Model, Problem, of_machine, problem
from trisect.model.simulate import job, nccl_log
from trisect.pipeline.decompose import annotated, write_decomposition
from trisect.pipeline.files import write_all
from trisect.pipeline.finished_runs import movement_of, ranks_of
from trisect.pipeline.rates import write_rates
from trisect.pipeline.sweep_report import drawings_of
from trisect.report import page
from trisect.report.figures import svg
from trisect.report.material import Material
from trisect.report.text.note_words import in_words
from trisect.results.layout import Layout
from trisect.results.notes import note
from trisect.results.tables import SCALING
from trisect.synthetic.kineto_writer import write_job


def write_study(config: Path, out: Path) -> pd.DataFrame:
    """Simulate every experiment of config/study.yaml at its counts, and write what a sweep writes.

    Args:
        config: the config folder.
        out: gets EXPERIMENT/scaling.csv, EXPERIMENT/gpus-N/, figures/, report.html, and MODELLED.md, which says so.

    Returns:
        tables.SCALING of all experiments, and a column `modelled`.

    Raises:
        TrisectError: a configuration file is wrong, a count cannot be taken, or `out` cannot be written to.
    """
    study = load_study(config)
    machine, experiments = load_machine(study.machine, config), load_experiments(config)
    links = links_of(machine, study.machine)
    problems = [
        problem(name, experiments[name], one, study.size, machine.gpu_memory_gb)
        for name, one in study.experiments.items()
    ]
    models = [of_machine(one, machine, links) for one in problems]
    for gpus in study.gpus:
        machine.check_count(gpus)
    layout = Layout(out)
    layout.require_writable()
    table = pd.concat([_simulate(one, study, layout) for one in models], ignore_index=True)
    notice = note("modelled", machine=study.machine, jitter=machine.compute_jitter, seed=study.seed)
    _write_pages(table, layout, machine, in_words(notice, machine.unit))
    return table


def _simulate(model: Model, study: Study, layout: Layout) -> pd.DataFrame:
    """All counts of one experiment: through trace files and back, to scaling.csv."""
    runs, one = {}, model.problem
    for gpus in sorted(n for n in study.gpus if n >= one.least_gpus):
        files = layout.run(one.name, gpus)
        shutil.rmtree(files.folder, ignore_errors=True)
        made_up = job(model, gpus, iterations=study.iterations, seed=study.seed)
        write_job(made_up, files.traces)
        files.nccl.mkdir(parents=True)
        write_whole(files.nccl / "nccl-modelled.log", nccl_log(model, gpus) if gpus > 1 else "")
        result = write_decomposition(
            files.traces, files, sections=list(one.sections), annotate=partial(_annotated, one, gpus)
        )
        runs[gpus] = _annotated(one, gpus, result.table), result.iterations
    table = scaling(runs)[list(SCALING)].assign(modelled=True)
    write_whole(layout.scaling(one.name), table.to_csv(index=False))
    return table


def _annotated(one: Problem, gpus: int, table: pd.DataFrame) -> pd.DataFrame:
    """What a run's record would add."""
    bounds = {"tiles": load_balance_bound(one.tiles, gpus), "operators": load_balance_bound(one.operators, gpus)}
    return annotated(table, one.name, bounds, tile_work=one.tile_work)


def _write_pages(table: pd.DataFrame, layout: Layout, machine: Machine, notice: str) -> None:
    for experiment in table["experiment"].unique():
        write_rates(layout, experiment, machine)
    scaling = table.drop(columns="modelled")
    material = Material(scaling, ranks_of(layout, table), **movement_of(layout, scaling, machine))
    drawn = drawings_of(material)
    html = page.render(material, drawn, results=layout.root, notice=notice)
    texts = {layout.figure(name): drawing for name, drawing in drawn.items() if not svg.reason(drawing)}
    texts |= {layout.root / "MODELLED.md": f"# Modelled\n\n{notice}\n", layout.report: html}
    write_all({path: partial(Path.write_text, data=text, encoding="utf-8") for path, text in texts.items()})
