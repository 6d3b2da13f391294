"""Two real gloo ranks: a right run passes its gate and leaves what it should, and mutations of it fail."""

import json
import os
import socket
from pathlib import Path

import numpy as np
import pytest
import torch
from problems_at import small

from trisect.config.settings import Iterations
from trisect.errors import TrisectError
from trisect.results.layout import RunLayout
from trisect.results.record import RunRecord
from trisect.worker import gradient_sync

SIZE = {"batch": 2, "overlap": 16}
FEW = Iterations(warmup=1, measured=1, unprofiled=1)


def drop_gradient(solver, rank):
    """One unrolled iteration's denoiser passes no gradient on."""
    plain, calls = solver.tiling.forward, []

    def cut(x, *args, **kwargs):
        calls.append(x)
        return plain(x.detach() if len(calls) % 3 == 1 else x, *args, **kwargs)

    solver.tiling.forward = cut


def swap_tiles(solver, rank):
    """Rank 0 takes the content of two of its tiles for each other's."""
    solver.tiling._init_shape_and_strategy(solver.image.shape)
    solver.tiling.current_shape = solver.image.shape
    strategy = solver.tiling._strategy
    plain = strategy.get_local_patches

    def swapped(x, indices):
        (first, one), (second, two), *others = plain(x, indices)
        return [(first, two), (second, one), *others] if rank == 0 else [(first, one), (second, two), *others]

    strategy.get_local_patches = swapped


def lose_operator(solver, rank):
    """Rank 1 computes one operator less."""
    if rank == 1:
        solver.physics.local_physics.pop()
        solver.physics.local_indexes.pop()


def sum_in_place(solver, rank):
    """As deepinv 0.5 does without `repair_gradient_sync`. Once this passes, the repair can go."""
    gradient_sync.DistributedGradientSync.backward = staticmethod(gradient_sync._in_place)


def no_mutation(solver, rank):
    pass


CASES = {
    "inference": (small(gpus=2, operators=4, size=SIZE), no_mutation),
    "training": (small("training", gpus=2, operators=2, unrolled_iterations=3, size=SIZE), no_mutation),
    "inference_amp": (small(gpus=2, precision="amp", size=SIZE), no_mutation),
    "training_amp": (small("training", gpus=2, precision="amp", unrolled_iterations=2, size=SIZE), no_mutation),
    "dropped_gradient": (small("training", gpus=2, unrolled_iterations=3, size=SIZE), drop_gradient),
    "sum_in_place": (small("training", gpus=2, operators=2, unrolled_iterations=3, size=SIZE), sum_in_place),
    "swapped_tile": (small(gpus=2, size=SIZE), swap_tiles),
    "missing_operator": (small(gpus=2, operators=4, size=SIZE), lose_operator),
    "another_seed": (small(gpus=2, size=SIZE), no_mutation),
    "other_weights": (small(gpus=2, size=SIZE), no_mutation),
}
"""By name: the run, and what is done to its distributed solver."""

FAILURES = {
    "dropped_gradient": r"the distributed gradient of \S+ differs from the single-process one",
    "sum_in_place": r"the distributed gradient of \S+ differs from the single-process one",
    "swapped_tile": "the distributed image differs from the single-process one",
    "missing_operator": "the distributed image differs from the single-process one",
    "another_seed": "differ between rank 0 and rank 1; nothing was measured",
    "other_weights": "denoiser weights differ between rank 0 and rank 1; nothing was measured",
}


def one_rank(rank, folder, ports):
    torch.set_num_threads(1)
    from trisect.worker import run_worker

    plain = run_worker.build
    for name, port in ports.items():
        run, mutate = CASES[name]
        run = run.model_copy(update={"iterations": FEW})
        sizes = dict(run.experiment.sizes)
        if name == "inference":
            sizes["small"] = sizes["small"].model_copy(
                update={"weights": f"{folder}/weights.pt", "truth": "photograph"}
            )
            run = run.model_copy(update={"experiment": run.experiment.model_copy(update={"sizes": sizes})})
        environment = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2, "MASTER_PORT": port}
        os.environ.update({"MASTER_ADDR": "127.0.0.1"} | {key: str(value) for key, value in environment.items()})

        def built(run, ctx, name=name, mutate=mutate):
            if name == "another_seed" and rank == 1:
                run = run.model_copy(update={"seed": 1})
            solver = plain(run, ctx)
            mutate(solver, rank)
            if name == "other_weights" and rank == 1:
                next(solver.tiling.processor.parameters()).data.mul_(1.01)
            return solver

        run_worker.build = built
        RunLayout(Path(folder) / name).logs.mkdir(parents=True, exist_ok=True)  # the launcher's part
        try:
            run_worker.work(run.payload(), Path(folder) / name)
            said = ""
        except TrisectError as error:
            said = str(error)
        (Path(folder) / f"{name}-{rank}.json").write_text(json.dumps(said))


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture(name="ran", scope="module")
def _ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate")
    from trisect.worker.drunet import denoiser

    torch.save(denoiser(small()).state_dict(), folder / "weights.pt")
    ports = dict(zip(CASES, free_ports(len(CASES)), strict=True))
    torch.multiprocessing.spawn(one_rank, (str(folder), ports), nprocs=2)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_right_runs_pass_and_mutations_fail_on_every_rank(ran, name):
    said = [json.loads((ran / f"{name}-{rank}.json").read_text()) for rank in (0, 1)]
    assert said[0] == said[1]
    if name in FAILURES:
        with pytest.raises(TrisectError, match=FAILURES[name]):
            raise TrisectError(said[0])
    else:
        assert said[0] == ""
    assert RunLayout(ran / name).record.exists() == (name not in FAILURES)


def test_a_run_records_its_memory_arithmetic_and_tiles(ran):
    record = RunRecord.read(RunLayout(ran / "inference").record)
    assert (record.precision, record.tile_work, record.patch_effective) == ("fp32", 4, [32, 32])
    assert (
        record.arithmetic["cudnn_tf32"] is record.arithmetic["channels_last"] is record.arithmetic["compile"] is False
    )
    for rank in record.ranks:
        assert rank.peak_reserved_bytes == {}  # of torch's allocator on CUDA
        assert rank.least_free_bytes is not None
        assert 0 < rank.least_free_bytes < 1e13
    assert RunRecord.read(RunLayout(ran / "inference_amp").record).precision == "amp"


def test_psnr_by_iteration_is_recorded_where_there_are_weights(ran):
    quality = RunRecord.read(RunLayout(ran / "inference").record).quality
    assert len(quality.psnr_db) == len(quality.single_psnr_db) == len(quality.untiled_psnr_db) == 11
    assert quality.largest_difference_db < 0.002
    assert quality.psnr_db == sorted(quality.psnr_db)
    assert 0 < abs(quality.tiling_db) < 1
    assert RunRecord.read(RunLayout(ran / "training").record).quality is None


def test_pictures_are_left_where_there_are_weights(ran):
    with np.load(RunLayout(ran / "inference").reconstruction) as pictures:
        assert set(pictures) == {"truth", "measurement", "result"}
        assert {(picture.shape, picture.dtype) for picture in pictures.values()} == {((64, 64), np.dtype(np.uint8))}
        error = np.mean((pictures["result"] / 255 - pictures["truth"] / 255) ** 2)
    quality = RunRecord.read(RunLayout(ran / "inference").record).quality
    assert -10 * np.log10(error) == pytest.approx(quality.psnr_db[-1], abs=0.2)
    assert not RunLayout(ran / "training").reconstruction.exists()


def test_gradients_of_every_kind_are_compared(ran):
    differences = RunRecord.read(RunLayout(ran / "training").record).correctness.relative_difference
    assert set(differences) == {"image", "loss", "gradient"}
    assert 0 <= differences["gradient"] < 1e-4
