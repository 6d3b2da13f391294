"""Every kind of note that the code makes has one template, whose variables the code gives and which reads well."""

import ast
import re
from pathlib import Path

import pytest
from jinja2 import Environment, meta

import trisect
from trisect.report.text.note_words import FILTERS, all_in_words, in_words, templates
from trisect.results.notes import Note, note

TREES = {path: ast.parse(path.read_text()) for path in Path(trisect.__file__).parent.rglob("*.py")}
ADDED = {"unit", "gpus", "ranks"}
"""Variables that are added to a note on its way: by in_words, findings._of_run and caveats._together."""


def makes_notes(tree):
    """Whether a module has results.notes.note, or hands kinds to one that has."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return any(node.module == "trisect.results.notes" for node in imports)


def strings(node):
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def kinds_of(node):
    """The kinds that an expression names; none where it is a variable."""
    if isinstance(node, ast.IfExp):
        return kinds_of(node.body) | kinds_of(node.orelse)
    if isinstance(node, ast.JoinedStr):
        begin = node.values[0].value
        return {kind for kind in templates() if kind.startswith(begin)} or {begin}
    return {node.value} if isinstance(node, ast.Constant) else set()


def calls():
    """Of every call of note: its kinds, the names of its values, and the module's tree."""
    for tree in filter(makes_notes, TREES.values()):
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "note"):
                continue
            given = {word.arg for word in node.keywords}
            # What is spread from a dict is built in the same module.
            yield kinds_of(node.args[0]), given - {None} | (strings(tree) if None in given else set()), tree


def made():
    """By kind, the names of values that some call gives it. A kind in a variable is one of the module's strings."""
    found = {}
    for kinds, given, tree in calls():
        for kind in kinds or strings(tree) & set(templates()):
            found.setdefault(kind, set()).update(given | ADDED)
    return found


MADE = made()


def test_calls_are_found():
    assert {"unattributed", "remedy_links", "change_half_payload", "takes_over", "largest_loss", "repaired_at"} <= set(
        MADE
    )


def test_every_kind_has_a_template_and_every_template_a_kind():
    assert set(MADE) == set(templates())


def texts(kind):
    found = templates()[kind]
    return [found] if isinstance(found, str) else list(found.values())


@pytest.mark.parametrize("kind", templates())
def test_every_variable_is_given(kind):
    environment = Environment()
    environment.filters |= FILTERS | {"note": str}
    used = {name for text in texts(kind) for name in meta.find_undeclared_variables(environment.parse(text))}
    assert used - MADE.get(kind, set()) == set()


SOME = {
    **{
        "base": 1,
        "off": ["precision amp"],
        "seconds": 840.0,
        "limit_minutes": 17,
        "memory_bytes": 3e10,
        "memory_gb": 32.0,
    },
    **{"trace_bytes": 3e8, "gpu_hours": 43.1, "measured": 8},
    **{"gpus": 8, "counts": [4, 8], "count": 3, "section": "denoiser", "sections": ["gradient", "denoiser"]},
    **{"share": 0.27, "ranks": [0, 1], "rank": 1, "kinds": "bare_inf x1", "extra": [3], "kept": [4, 5]},
    **{"skipped": [{"iteration": 2, "lost": 3, "launched": 40}], "needed": 5, "ops": ["broadcast"], "residual_s": 2e-6},
    **{"collectives": 5, "by_clock_s": 3e-4, "by_duration_s": 2.7e-3, "last": 64, "first": 1, "efficiency": 0.6},
    **{"cost": 1.5, "speedup": 40.0, "ideal": 64.0, "threshold": 0.8, "half_level": 0.5, "half": 32, "pays": 16},
    **{"pays_efficiency": 0.83, "part": "wait", "wait_cause": "jitter", "load_balance": 0.27, "combined": 0.89},
    **{"bound": 0.5, "lo": 0.75, "hi": 0.85, "others": ["compute", "transfer"], "limit": 1.2, "pieces": 8},
    **{"kind": "operators", "cores": 2, "experiment": "training_3d", "least": 4, "size": "published"},
    **{"request": "2 nodes", "first_bytes": 4096, "memory_bytes": 3000, "limit_s": 20.0, "text": "from 8 bytes on"},
    **{"algorithm": "chosen", "what": note("probe_time", first_bytes=8, limit_s=2.0).model_dump(), "lines": 2},
    **{"ran": "ring", "protocol": "ll", "why": note("no_line").model_dump(), "sizes": 2, "gb_per_s": 10.5},
    **{"fitted_at": 8, "assumed": "ring", "worst": 0.06, "machine_gb_per_s": 10.0, "hidden_share": 0.1},
    **{
        "other": "tree",
        "other_gb_per_s": 5.0,
        "taken": "tiles",
        "machine": "v100",
        "source": "a study",
        "jitter": 0.03,
    },
    **{"oversubscribed": True, "alpha_s": 1.2e-4, "has": 64, "tiles": 36, "level": 0.8, "role": "held out"},
    **{"errors": [{"metric": "span_s", "error": 0.012}], "before": "results/a", "after": "results/b", "name": "torch"},
    **{"verdicts": [{"verdict": "worse", "count": 2}], "side": "before", "runs": ["inference_2d at 4"]},
    **{"values": [{"value": "2.10", "counts": [1, 2]}], "reached": 8, "caveats": 2, "remake": "snakemake", "seed": 0},
}
"""A value for every variable, where it has one type in all kinds."""

OTHER = {
    "clocks_aligned": {"ranks": 8},
    "shared_cores": {"ranks": 8},
    "message_regimes": {
        "kinds": [{"regime": "latency-bound", "count": 2.0, "smallest_bytes": 8, "largest_bytes": 1200}]
    },
    "whole_pieces": {"kind": "tiles"},
    "runs_differ": {"what": "torch"},
    "reconstructed": {"tiling": -0.0007},
    "no_denoiser": {"experiments": ["inference_3d", "training_3d"]},
}


@pytest.mark.parametrize("unit", ["GPU", "rank"])
@pytest.mark.parametrize("kind", templates())
def test_every_template_reads_as_a_line(kind, unit):
    for form in ("short", "long"):
        words = in_words(Note(kind=kind, values=SOME | OTHER.get(kind, {})), unit, form)
        assert words
        assert not re.search(r"\n|  | [,.:;]|[{}\[\]]|None|nan|_s\b", words), words
        assert unit == "GPU" or "GPU" not in words, words


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (
            note("repaired", ranks=[0], count=1, kinds="bare_nan x1"),
            "Rank 0: 1 value repaired while reading (bare_nan x1): every number here rests on that.",
        ),
        (
            note("repaired", ranks=[0, 1], count=2, kinds="bare_nan x2"),
            "Ranks 0, 1: 4 values repaired while reading (bare_nan x2 each): every number here rests on that.",
        ),
        (
            note("clocks_aligned", ranks=2, collectives=5, residual_s=0.0),
            "Clocks of 2 ranks aligned by 5 collectives: 95 % of their ends agree within 0 s.",
        ),
        (
            note("iterations_dropped", rank=1, extra=[3], kept=[4, 5]),
            "rank 1 also has iteration 3, which not all ranks have: dropped to iterations 4, 5.",
        ),
        (
            note("late_start_uncertain", section="s", by_clock_s=3.19e-4, by_duration_s=2.73e-3, gpus=2),
            "At 2 ranks, section s: two ways of measuring the wait disagree (319 µs by aligned clocks, 2.73 ms by"
            " durations): do not trust its late start.",
        ),
        (
            note("rate_holds", section="s", gb_per_s=10.0, assumed="ring", fitted_at=8, counts=[16, 32], worst=0.061),
            "s: 10.0 GB/s between nodes (a ring's bytes), fitted at 8 alone, predicts the transfer at 16 and 32 within"
            " 6.1 %.",
        ),
        (
            note("algorithm_unknown", counts=[8]),
            "No NCCL log says which algorithm ran at 8 ranks: the rate is that of one of the two assumed algorithms.",
        ),
        (note("log_cut", gpus=8, lines=3), "3 lines of the NCCL logs at 8 ranks were cut, and left out."),
        (
            note(
                "message_regimes",
                section="gradient",
                gpus=8,
                kinds=[
                    {"regime": "latency-bound", "count": 3.0, "smallest_bytes": 8, "largest_bytes": 1200},
                    {"regime": "bandwidth-bound", "count": 1.0, "smallest_bytes": 8e8, "largest_bytes": 8e8},
                ],
            ),
            "gradient at 8 ranks, all_reduces of an iteration: 3 of 8.00 B to 1.20 kB latency-bound and 1 of 800 MB"
            " bandwidth-bound.",
        ),
        (
            note("fit_cannot_tell", section="denoiser", kind="repeated", taken="tiles"),
            "denoiser: these counts cannot separate work that every rank repeats from tiles; tiles are assumed.",
        ),
        (
            note("fitted_rate", gpus=2, alpha_s=125e-6, gb_per_s=0.301, algorithm="ring"),
            "Fit at 2 ranks: 125 µs latency, 301 MB/s (ring).",
        ),
        (
            note("rates_of_links", machine="mine", source="", jitter=0.0),
            "Rates are those of config/machines/mine.yaml, which does not say where they were measured.",
        ),
        (
            note("relative_errors", role="held out", gpus=4, oversubscribed=False, errors=SOME["errors"]),
            "Held out at 4: span +1.2 %.",
        ),
    ],
)
def test_sentences(one, words):
    assert in_words(one, "rank") == words


ABOVE = {"section": "s", "gpus": 8, "assumed": "ring", "gb_per_s": 20.0, "machine_gb_per_s": 10.5}


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ({"hidden_share": 0.048}, "Up to 4.8 % of the communication runs under compute, and transfer is only what is"),
        ({"other": "tree", "other_gb_per_s": 5.0}, "If it was a tree, fewer bytes moved, and the rate is 5.00 GB/s."),
        ({}, "Fewer bytes moved over that route than the byte rule has, or the file's rate is too low: probe it."),
    ],
)
def test_why_a_rate_is_above_the_machine_s(why, words):
    unknown = {"hidden_share": None, "other": None, "other_gb_per_s": None}
    said = in_words(note("rate_above", **ABOVE | unknown | why))
    assert said.startswith("s at 8: 20.0 GB/s (a ring's bytes) is above the 10.5 GB/s of the machine's file. " + words)


def test_what_reads_alike_is_said_once():
    twice = [note("nothing_moves"), note("no_jitter"), note("nothing_moves")]
    assert all_in_words(twice, "rank") == [in_words(one, "rank") for one in twice[:2]]
