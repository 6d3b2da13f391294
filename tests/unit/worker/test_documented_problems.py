"""The worked examples of docs/problems.md, executed: problems and experiments are read from the page and run."""

import ast
import inspect
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import torch
import yaml
from deepinv.physics import LinearPhysics

from trisect.config.experiment import Experiment, Size
from trisect.config.footprint import operators_of
from trisect.config.plan import Run
from trisect.config.settings import Iterations
from trisect.worker import problems
from trisect.worker.correctness import against_single_process, alone, require_same_inputs
from trisect.worker.problems import PROBLEMS, Acquisition, acquisition
from trisect.worker.process_group import join
from trisect.worker.solver import Inference, Training, build

CPU = torch.device("cpu")
PAGE = (Path(__file__).parents[3] / "docs" / "problems.md").read_text()
EXAMPLES = ["tomography", "coil_mri"]
SHIPPED = list(PROBLEMS)


def blocks(language: str) -> list[str]:
    """The page's fenced blocks in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def experiments() -> dict[str, Experiment]:
    """The page's experiments, by problem."""
    read = [Experiment.model_validate(yaml.safe_load(block)) for block in blocks("yaml")]
    return {one.problem: one for one in read}


@contextmanager
def registered() -> Iterator[None]:
    """The page's problems, as if they stood at the end of problems.py."""
    before = dict(PROBLEMS)
    try:
        for block in blocks("python"):
            exec(block, dict(vars(problems)))
        yield
    finally:
        PROBLEMS.clear()
        PROBLEMS.update(before)


def run_of(experiment: Experiment, gpus: int = 1) -> Run:
    return Run(
        name=experiment.problem,
        gpus=gpus,
        size="laptop",
        experiment=experiment,
        iterations=Iterations(),
        precision="fp32",
        seed=0,
        device="cpu",
        backend="gloo",
        environment={},
        collective_timeout_s=60,
    )


class Example:
    """One of the page's problems: its operators, each made once, and its solver."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment, self.image = experiment, experiment.sizes["laptop"].image
        made = acquisition(experiment, self.image, CPU)
        self.operators = [made.operator(k) for k in range(experiment.operators)]
        self.solver = build(run_of(experiment), alone(CPU))

    def normal(self, x: torch.Tensor) -> torch.Tensor:
        """Sum over operators of A^T A x."""
        return sum(a.A_adjoint(a.A(x)) for a in self.operators)

    def gradient(self) -> torch.Tensor:
        """Sum over operators of A^T (A x - y) where the solver is."""
        residuals = zip(self.operators, self.solver.scene.measurements, strict=True)
        return sum(a.A_adjoint(a.A(self.solver.image) - y) for a, y in residuals)

    def misfit(self) -> float:
        """Sum over operators of ||A x - y||^2 where the solver is."""
        residuals = zip(self.operators, self.solver.scene.measurements, strict=True)
        return sum(float((a.A(self.solver.image) - y).square().sum()) for a, y in residuals)

    def random(self, seed: int) -> torch.Tensor:
        return torch.randn(1, *self.image, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Images are so small that threads would mostly wait for each other, and for what else runs on this machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(name="example", scope="module", params=EXAMPLES)
def _example(request: pytest.FixtureRequest) -> Example:
    with registered():
        return Example(experiments()[request.param])


def largest_eigenvalue(normal: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, iterations: int = 40) -> float:
    """Of a symmetric positive operator, by power iteration: from below."""
    for _ in range(iterations):
        x = normal(x / x.norm())
    return float(x.norm())


def test_page_shows_a_function_and_an_experiment_of_each() -> None:
    assert list(experiments()) == EXAMPLES
    with registered():
        assert list(PROBLEMS) == [*SHIPPED, *EXAMPLES]
    assert list(PROBLEMS) == SHIPPED


@pytest.mark.parametrize("block", blocks("python"), ids=EXAMPLES)
def test_function_has_under_ten_lines(block: str) -> None:
    (function,) = (node for node in ast.parse(block).body if isinstance(node, ast.FunctionDef))
    lines = block.splitlines()[function.decorator_list[0].lineno - 1 : function.end_lineno]
    assert len([line for line in lines if line.strip()]) < 10
    assert max(map(len, lines)) <= 120


def test_adjoint(example: Example) -> None:
    for k, a in enumerate(example.operators):
        x = example.random(k)
        seen = a.A(x)
        y = torch.randn(seen.shape, generator=torch.Generator().manual_seed(100 + k))
        apart = (seen.double() * y.double()).sum() - (x.double() * a.A_adjoint(y).double()).sum()
        assert abs(float(apart)) < 1e-6 * float(seen.norm() * y.norm())


def test_operators_are_linear(example: Example) -> None:
    x, z = example.random(0), example.random(1)
    for a in example.operators:
        assert isinstance(a, LinearPhysics)
        torch.testing.assert_close(a.A(2 * x - 3 * z), 2 * a.A(x) - 3 * a.A(z), rtol=1e-4, atol=1e-4)


def test_operators_are_distinct(example: Example) -> None:
    seen = [a.A(example.random(0)) for a in example.operators]
    apart = [float((one - other).norm() / one.norm()) for i, one in enumerate(seen) for other in seen[i + 1 :]]
    assert min(apart) > 0.1


def test_norms_are_one_at_most(example: Example) -> None:
    for a in example.operators:
        assert largest_eigenvalue(lambda x, a=a: a.A_adjoint(a.A(x)), example.random(0)) <= 1 + 1e-3


def test_step_is_the_largest_safe_one(example: Example) -> None:
    """The step times the largest eigenvalue is 1 at most, and not far below."""
    largest = largest_eigenvalue(example.normal, example.random(0))
    assert example.solver.step == {"tomography": 0.25, "coil_mri": 1.0}[example.experiment.problem]
    assert 0.9 < example.solver.step * largest <= 1 + 1e-3
    if example.experiment.problem == "tomography":
        assert f"L is almost K ({largest:.3f} of 4)" in PAGE


def test_same_operator_each_time(example: Example) -> None:
    with registered():
        again = acquisition(example.experiment, example.image, CPU).operator(1)
    torch.testing.assert_close(
        again.A(example.random(0)), example.operators[1].A(example.random(0)), rtol=1e-5, atol=1e-6
    )


def test_iteration_is_the_formula_and_lowers_the_misfit(example: Example) -> None:
    solver = example.solver
    assert isinstance(solver, Inference)
    solver.restart()
    stepped = solver.image - solver.step * example.gradient()
    after: dict[str, torch.Tensor] = {}

    @contextmanager
    def section(name: str) -> Iterator[None]:
        yield
        after[name] = solver.image.clone()

    misfits = [example.misfit()]
    solver.iterate(section)
    assert list(after) == ["gradient", "denoiser"]
    torch.testing.assert_close(after["gradient"], stepped, rtol=1e-4, atol=1e-5)
    misfits.append(example.misfit())
    for _ in range(4):
        solver.iterate(lambda name: nullcontext())
        misfits.append(example.misfit())
    assert misfits == sorted(misfits, reverse=True)
    assert misfits[-1] < misfits[0] / 2


def test_training_step_has_finite_gradients(example: Example) -> None:
    training = {"mode": "training", "unrolled_iterations": 2}
    trained = Experiment.model_validate(example.experiment.model_dump() | training)
    with registered():
        solver = build(run_of(trained), alone(CPU))
    assert isinstance(solver, Training)
    solver.iterate(lambda name: nullcontext())
    assert [n for n, p in solver.model.named_parameters() if p.requires_grad and p.grad is None] == []
    results = solver.results()
    assert all(bool(value.isfinite().all()) for value in results.values())
    assert any(float(value.abs().max()) > 0 for name, value in results.items() if name.startswith("gradient"))


def test_measurements_are_as_large_as_the_page_says(example: Example) -> None:
    (values,) = {y.numel() for y in example.solver.scene.measurements}
    images = values / example.solver.scene.truth.numel()
    assert images == pytest.approx({"tomography": 0.18, "coil_mri": 4}[example.experiment.problem], abs=0.005)
    assert operators_of(example.experiment).measurement == 1  # "where 1 is counted"


def as_rank(rank: int, port: int) -> None:
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    runs = [run_of(one, gpus=2) for one in experiments().values()]
    with registered(), join(runs[0], seed=0) as ctx:
        for run in runs:
            solver = build(run, ctx)
            assert solver.operators_held == 2
            require_same_inputs(ctx, solver)
            against_single_process(run, ctx, solver)


def test_two_ranks_compute_what_one_does() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(as_rank, (port,), nprocs=2)


@pytest.mark.parametrize("name", SHIPPED)
def test_problem_is_on_the_page_with_its_parameters(name: str) -> None:
    (row,) = re.findall(rf"^\| `{name}` \|.*$", PAGE, re.MULTILINE)
    assert [p for p in list(inspect.signature(PROBLEMS[name]).parameters)[3:] if f"`{p}`" not in row] == []


def test_every_problem_and_key_is_on_the_page() -> None:
    keys = [*SHIPPED, *Experiment.model_fields, *Size.model_fields, *Acquisition.__dataclass_fields__]
    assert [key for key in keys if f"`{key}`" not in PAGE] == []
