"""What a sweep will hold and take, before it is launched."""

from pathlib import Path

from trisect.config.footprint import required_bytes
from trisect.config.loading import load_study
from trisect.config.plan import Run, Sweep
from trisect.config.schedule import run_s, trace_bytes
from trisect.model.predict import of_machine, predict, problem
from trisect.results.notes import Note, note
from trisect.results.tables import TOTAL


def with_times(sweep: Sweep, folder: Path) -> Sweep:
    """The sweep with the model's time of an iteration, by experiment and count.

    There is one where the machine has `links`, and `folder`/study.yaml the experiment at this size.

    Raises:
        TrisectError: config/study.yaml is wrong, or a run does not fit into the machine's time limit.
    """
    machine, size = sweep.machine, sweep.settings.size
    if machine.links is None or not (folder / "study.yaml").exists():
        return sweep
    study, times = load_study(folder), {}
    for name in sweep.settings.experiments:
        if name in study.experiments and size == study.size:
            known = problem(name, sweep.experiments[name], study.experiments[name], size, machine.gpu_memory_gb)
            table = predict(of_machine(known, machine, machine.links), sweep.counts(name))
            total = table[table["section"] == TOTAL]
            times[name] = dict(zip(total["gpus"].astype(int).tolist(), total["span_s"].tolist(), strict=True))
    timed = sweep.model_copy(update={"iteration_s": times})
    timed.runs()  # refuses what does not fit into the time limit
    return timed


def forecast(sweep: Sweep) -> list[Note]:
    """What each run will hold and take, and all together: memory where the machine says what a GPU has, time where the
    model knows it."""
    asked = sweep.settings.iterations
    runs = [
        one for one in sweep.runs() if sweep.machine.gpu_memory_gb or _seconds(sweep, one) or one.iterations != asked
    ]
    found = [_of_run(sweep, run) for run in runs]
    timed = [(run.gpus, seconds) for run in runs if (seconds := _seconds(sweep, run))]
    if timed:
        gpu_s = sum(gpus * seconds for gpus, seconds in timed)
        found.append(note("sweep_takes", seconds=sum(seconds for _, seconds in timed), gpu_hours=gpu_s / 3600))
    return found


def _of_run(sweep: Sweep, run: Run) -> Note:
    size, memory_gb = sweep.settings.size, sweep.machine.gpu_memory_gb
    return note(
        "run_takes",
        experiment=run.name,
        gpus=run.gpus,
        seconds=_seconds(sweep, run),
        limit_minutes=sweep.limit_minutes(run.name, run.gpus) if sweep.machine.launcher == "slurm" else None,
        measured=run.iterations.measured,
        memory_bytes=None if memory_gb is None else required_bytes(run.experiment, size, run.gpus),
        memory_gb=memory_gb,
        trace_bytes=trace_bytes(run.experiment, size, run.gpus, run.iterations),
    )


def _seconds(sweep: Sweep, run: Run) -> float | None:
    iteration_s = sweep.modelled_s(run.name, run.gpus)
    return None if iteration_s is None else run_s(run.iterations, iteration_s)
