"""The fit against runs whose constants were chosen: recovered; predicted where held out; and what it refuses."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from modelled import ALL_REDUCE_COST, LINE, WORK, every_host_one, measured, without_work

from trisect.config.study_settings import Work
from trisect.errors import TrisectError
from trisect.model.allreduce_cost import of_lines, of_links
from trisect.model.fit import counts_to_fit, fit
from trisect.model.predict import Model, Problem, predict
from trisect.model.validate import beside
from trisect.results.notes import note
from trisect.results.tables import MODELLED_TIMES, PREDICTED_QUANTITIES, PREDICTION

KNOWN = Problem(
    "known", tiles=36, operators=8, unrolled=1, image_bytes=8_000_000, least_gpus=1, tile_work=1, sections=WORK
)
UNKNOWN = without_work(KNOWN)


def model(problem=KNOWN, jitter=0.0, all_reduce=ALL_REDUCE_COST):
    return Model(problem, all_reduce, dict.fromkeys(problem.sections, jitter))


def test_constants_come_back_from_two_counts():
    fitted = fit(UNKNOWN, [measured(model(), n) for n in (2, 16)], every_host_one)
    for section, work in KNOWN.sections.items():
        found = fitted.model.problem.sections[section]
        assert found.model_dump() == pytest.approx(work.model_dump(), rel=1e-5)
    assert fitted.model.problem.image_bytes == KNOWN.image_bytes
    two = fitted.lines[0]
    assert two.gb_per_s == pytest.approx(LINE.gb_per_s, rel=1e-4)
    assert two.alpha_s == pytest.approx(LINE.alpha_s, rel=1e-3)


def test_constants_come_back_through_jitter_within_a_percent():
    runs = [measured(model(jitter=0.03), n, iterations=40) for n in (1, 2, 4)]
    found = fit(UNKNOWN, runs, every_host_one).model.problem.sections
    assert found["denoiser"].tiles_s == pytest.approx(3.6, rel=0.01)
    assert found["gradient"].operators_s == pytest.approx(0.4, rel=0.01)


def test_without_jitter_held_out_counts_are_predicted_exactly():
    counts = [1, 2, 4, 8, 16]
    runs = {n: measured(model(), n) for n in counts}
    fitted = fit(UNKNOWN, [runs[2], runs[4]], every_host_one)
    table = beside("known", predict(fitted.model, counts), {n: run.table for n, run in runs.items()}, [2, 4])
    assert tuple(table.columns) == tuple(PREDICTION)
    assert len(table) == len(counts) * 3
    for name in PREDICTED_QUANTITIES:
        several = table[table["gpus"] > 1]
        assert several[name].to_numpy() == pytest.approx(several[f"measured_{name}"].to_numpy(), rel=1e-3, abs=1e-5)
    assert (table["measured_wait_s_lo"] <= table["measured_wait_s"]).all()
    assert (table["measured_wait_s"] <= table["measured_wait_s_hi"]).all()
    roles = table.drop_duplicates("gpus").set_index("gpus")["role"]
    assert roles.to_dict() == {1: "held out", 2: "fitted", 4: "fitted", 8: "held out", 16: "held out"}


def test_what_even_shares_at_one_count_cannot_tell_is_divided_and_said():
    fitted = fit(UNKNOWN, [measured(model(), 4)], every_host_one)
    work = fitted.model.problem.sections["denoiser"]
    assert work.tiles_s == pytest.approx(3.6 + 4 * 0.02, rel=1e-5)
    assert work.repeated_s == 0
    assert note("fit_cannot_tell", section="denoiser", kind="repeated", taken="tiles") in fitted.notes


def test_uneven_shares_at_one_count_tell_them_apart():
    fitted = fit(UNKNOWN, [measured(model(), 16)], every_host_one)
    assert fitted.model.problem.sections["gradient"].repeated_s == pytest.approx(0.01, rel=1e-5)
    assert fitted.model.problem.sections["denoiser"].tiles_s == pytest.approx(3.6, rel=1e-5)


def test_two_ranks_of_one_count_tell_nothing_apart():
    uneven = replace(KNOWN, tiles=9, operators=5)
    work = fit(without_work(uneven), [measured(model(uneven), 2)], every_host_one).model.problem.sections
    assert work["denoiser"].repeated_s == work["gradient"].repeated_s == 0


def test_ranks_that_differ_by_chance_do_not_look_like_repeated_work():
    """Of 7 tiles one of 4 hosts has less; each host is 10 % faster or slower, which hides what that says."""
    uneven = replace(KNOWN, tiles=7)
    run = measured(model(uneven), 4)
    speed = run.ranks["rank"].map({0: 0.9, 1: 1.1, 2: 0.9, 3: 1.4})
    run = replace(run, ranks=run.ranks.assign(compute_s=run.ranks["compute_s"] * speed))
    fitted = fit(without_work(uneven), [run], every_host_one)
    assert fitted.model.problem.sections["denoiser"].repeated_s == 0
    assert note("fit_cannot_tell", section="denoiser", kind="repeated", taken="tiles") in fitted.notes


TRAINING = replace(
    KNOWN,
    tiles=16,
    operators=4,
    unrolled=2,
    sections={
        "forward": Work(tiles_s=8, operators_s=1, image_all_reduces=4),
        "backward": Work(tiles_s=16, operators_s=2, image_all_reduces=4, other_all_reduces=5, other_bytes=4000),
    },
)


def test_training_has_both_kinds_and_pieces_dealt_alike_count_as_tiles():
    outline = without_work(TRAINING)
    alike = fit(outline, [measured(model(TRAINING), n) for n in (2, 4)], every_host_one)
    assert alike.model.problem.sections["forward"].tiles_s == pytest.approx(9, rel=1e-5)
    assert note("fit_cannot_tell", section="forward", kind="operators", taken="tiles") in alike.notes
    apart = fit(outline, [measured(model(TRAINING), n) for n in (4, 8)], every_host_one)
    forward = apart.model.problem.sections["forward"]
    assert (forward.tiles_s, forward.operators_s) == pytest.approx((8, 1), rel=1e-5)
    assert forward.image_all_reduces == 4


@settings(max_examples=10, deadline=None)
@given(
    operators_s=st.floats(0.01, 10),
    tiles_s=st.floats(0.01, 100),
    repeated_s=st.floats(0, 1),
    gb_per_s=st.floats(0.01, 100),
    alpha_s=st.floats(0, 1e-3),
)
def test_any_constants_come_back_and_predict(operators_s, tiles_s, repeated_s, gb_per_s, alpha_s):
    sections = {
        "gradient": Work(operators_s=operators_s, repeated_s=repeated_s, other_all_reduces=1, other_bytes=8),
        "denoiser": Work(tiles_s=tiles_s),
    }
    made = model(
        replace(KNOWN, sections=sections),
        all_reduce=of_lines([replace(LINE, gb_per_s=gb_per_s, alpha_s=alpha_s)], every_host_one),
    )
    found = fit(UNKNOWN, [measured(made, n, iterations=1) for n in (1, 2)], every_host_one).model
    told, truth = (predict(one, [8, 64], iterations=1)[list(MODELLED_TIMES)].to_numpy() for one in (found, made))
    assert told == pytest.approx(truth, rel=0.01, abs=1e-6)


def test_jitter_is_drawn_as_it_was_measured_and_grows_with_the_count():
    noisy = model(jitter=0.1)
    fitted = fit(UNKNOWN, [measured(noisy, n, iterations=60) for n in (4, 8)], every_host_one)
    told = predict(fitted.model, [8, 32], iterations=400).set_index(["section", "gpus"])["wait_s"]
    truth = predict(noisy, [8, 32], iterations=400).set_index(["section", "gpus"])["wait_s"]
    assert told["gradient", 8] == pytest.approx(truth["gradient", 8], rel=0.1)
    assert told["gradient", 32] == pytest.approx(truth["gradient", 32], rel=0.1)
    given_one = fit(UNKNOWN, [measured(noisy, 4)], every_host_one, jitter=0.25)
    assert set(given_one.model.jitter.values()) == {0.25}


def test_what_all_ranks_share_in_an_iteration_is_no_jitter():
    run = measured(model(), 4, iterations=8)
    slower = 1 + 0.3 * (run.ranks["iteration"] % 2)
    fitted = fit(
        UNKNOWN, [replace(run, ranks=run.ranks.assign(compute_s=run.ranks["compute_s"] * slower))], every_host_one
    )
    assert max(np.abs(values).max() for values in fitted.model.jitter.values()) < 1e-5


def test_one_iteration_has_no_jitter_and_says_so():
    fitted = fit(UNKNOWN, [measured(model(jitter=0.1), 4, iterations=1)], every_host_one)
    assert fitted.model.jitter == {"gradient": 0.0, "denoiser": 0.0}
    assert note("no_jitter") in fitted.notes


def test_a_given_cost_of_all_reduces_is_kept():
    fitted = fit(UNKNOWN, [measured(model(), 1)], every_host_one, all_reduce=ALL_REDUCE_COST)
    assert fitted.lines == ()
    assert fitted.model.all_reduce is ALL_REDUCE_COST


def test_messages_that_no_run_shows_are_said():
    run = measured(model(), 1)
    fitted = fit(
        UNKNOWN, [replace(run, collectives=run.collectives.iloc[:0])], every_host_one, all_reduce=ALL_REDUCE_COST
    )
    assert fitted.model.problem.sections["gradient"].image_all_reduces == 1
    assert note("no_messages") in fitted.notes


def test_the_algorithm_of_the_log_is_read_and_kept():
    all_reduce = of_lines([replace(LINE, gpus=8, per_node=4, algorithm="tree", alpha_s=0)], lambda n: min(n, 4))
    run = measured(model(all_reduce=all_reduce), 8, algorithm="tree")
    (line,) = fit(UNKNOWN, [run], lambda n: min(n, 4)).lines
    assert (line.algorithm, line.gb_per_s) == ("tree", pytest.approx(0.5, rel=1e-4))


def test_nothing_transferred_and_no_cost_given_is_refused():
    with pytest.raises(TrisectError, match="nothing of known size is transferred at 1 GPU,"):
        fit(UNKNOWN, [measured(model(), 1)], every_host_one)


def test_ranks_that_are_missing_are_refused():
    run = measured(model(), 4)
    with pytest.raises(TrisectError, match="gradient: 3 ranks at 4 GPUs"):
        fit(UNKNOWN, [replace(run, ranks=run.ranks[run.ranks["rank"] < 3])], every_host_one)


@pytest.mark.parametrize(
    ("shared", "asked", "chosen"),
    [
        ({1: False, 2: False, 4: True}, None, [1, 2]),
        ({4: False, 8: False, 16: False}, None, [4, 8]),
        ({1: False, 2: True, 4: True}, None, [1, 2]),
        ({2: True, 4: True}, None, [2]),
        ({1: False}, None, [1]),
        ({1: False, 2: False, 4: True}, [4], [4]),
        ({4: False, 8: False, 16: False}, [1, 8], [8]),
        ({4: False, 8: False, 16: False}, [1, 2], [4, 8]),
    ],
)
def test_counts_that_are_fitted(shared, asked, chosen):
    assert counts_to_fit(shared, asked) == chosen


def test_a_count_that_was_not_measured():
    with pytest.raises(TrisectError, match=re.escape("predict.fit: 8 is not measured; fit 1 and 2, or add it to")):
        counts_to_fit({1: False, 2: False}, [2, 8])


def test_study_fitted_at_4_and_8_predicts_64(problems, v100):
    """With the machine's links, jitter is the only error. Without: 8 GPUs take a tree, 64 a ring of another rate."""
    jitter = v100.compute_jitter
    known = Model(problems["inference_2d"], of_links(v100.links, 4), {"gradient": jitter, "denoiser": jitter})
    logs = {4: "ring", 8: "tree", 16: "ring", 64: "ring"}
    runs = {n: measured(known, n, iterations=10, algorithm=how) for n, how in logs.items()}
    outline = without_work(known.problem)

    def errors(counts, all_reduce=None):
        fitted = fit(outline, [runs[n] for n in counts], lambda n: min(n, 4), all_reduce=all_reduce)
        table = beside("inference_2d", predict(fitted.model, runs), {n: run.table for n, run in runs.items()}, counts)
        return table[(table["gpus"] == 64) & (table["section"] == "total")].iloc[0].filter(like="error_")

    assert errors([4, 8], known.all_reduce).abs().max() < jitter
    tree_at_16_nodes, ring = 2 * 15 / 16 / 17, 2 * 63 / 64 / 10.5
    implied = errors([4, 8])
    assert implied["error_transfer_s"] == pytest.approx(tree_at_16_nodes / ring - 1, abs=0.01)  # 42 % short
    assert implied["error_wait_s"] == pytest.approx(0, abs=jitter)
    assert implied["error_load_balance"] == pytest.approx(0, abs=0.005)
    assert errors([4, 16])["error_transfer_s"] == pytest.approx(0, abs=0.01)  # a ring at both


def test_held_out_sections_must_agree():
    run = measured(model(), 2)
    with pytest.raises(TrisectError, match="known: section denoiser is not both measured and modelled"):
        beside("known", predict(model(), [2]), {2: run.table[run.table["section"] != "denoiser"]}, [2])


def test_oversubscribed_counts_are_flagged_and_unmeasured_ones_have_no_error():
    tables = {n: measured(model(), n).table.assign(oversubscribed=n == 4) for n in (2, 4)}
    table = beside("known", predict(model(), [2, 4, 8]), tables, [2])
    flagged = table.drop_duplicates("gpus").set_index("gpus")
    assert flagged["oversubscribed"].to_dict() == {2: False, 4: True, 8: False}
    assert flagged["role"].to_dict() == {2: "fitted", 4: "held out", 8: "predicted"}
    assert pd.isna(flagged.loc[8, "error_span_s"])
