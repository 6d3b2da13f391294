"""The study that the model regenerates, through trace files and back, against every number that was published."""

import warnings
from pathlib import Path

import pandas as pd
import pytest
import yaml
from modelled import CONFIG

from trisect.model.allreduce_cost import of_links
from trisect.model.predict import of_machine, predict
from trisect.network.byte_rules import bytes_sent
from trisect.pipeline.rates import rates_in_words
from trisect.pipeline.study import write_study
from trisect.results.tables import RATES, SCALING, read_table

PUBLISHED = yaml.safe_load(Path(__file__).with_name("published_v100.yaml").read_text())
TOLERANCES = PUBLISHED.pop("tolerances")
NUMBERS = [
    (experiment, number | {"gpus": gpus})
    for experiment, numbers in PUBLISHED.items()
    for number in numbers
    for gpus in (number["gpus"] if isinstance(number["gpus"], list) else [number["gpus"]])
]
COUNTS = [1, 2, 4, 8, 16, 32, 64]


@pytest.fixture(scope="module", name="out")
def _out(tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    write_study(CONFIG, out)
    return out


@pytest.fixture(scope="module", name="scaling")
def _scaling(out):
    return pd.concat([read_table(out / name / "scaling.csv", SCALING) for name in PUBLISHED], ignore_index=True)


def row(scaling, experiment, section, gpus):
    chosen = (scaling["experiment"] == experiment) & (scaling["section"] == section) & (scaling["gpus"] == gpus)
    assert chosen.sum() == 1
    return scaling[chosen].iloc[0]


def derived(scaling, v100, experiment, number):
    """The number's quantity in the study that was made: a column of scaling.csv, or what follows from some."""
    section, gpus, what = number.get("section", "total"), number["gpus"], number["what"]
    here, total = row(scaling, experiment, section, gpus), row(scaling, experiment, "total", gpus)
    rows = scaling[scaling["experiment"] == experiment]
    base = row(scaling, experiment, section, rows["gpus"].min())
    if what == "rate_gb_per_s":
        how = of_links(v100.links, v100.gpus_per_node)(gpus).algorithm
        sent = bytes_sent("all_reduce", how, here["payload_bytes"], gpus, v100.gpus_per_node)
        return (sent.between or sent.inside) / here["transfer_s"] / 1e9
    return {
        "share_of_span": lambda: here["span_s"] / total["span_s"],
        "share_of_compute_max": lambda: here["compute_max_s"] / total["compute_max_s"],
        "wait_over_compute": lambda: here["wait_s"] / here["compute_s"],
        "communication_s": lambda: here["wait_s"] + here["transfer_s"],
        "transfer_share_of_loss": lambda: here["transfer_s"] / (here["transfer_s"] + here["wait_s"]),
        "compute_cost": lambda: gpus * here["compute_s"] / (base["gpus"] * base["span_s"]),
    }.get(what, lambda: here[what])()


def meets(found, value, tolerance):
    """Within the tolerance, or the same at the digits that were printed."""
    if value.startswith("<"):
        return found < float(value[1:])
    if value.startswith(">="):
        return found >= float(value[2:])
    low, high = (float(end) for end in value.split("..")) if ".." in value else (float(value), float(value))
    decimals = len(value.split("..")[-1].partition(".")[2])
    return low * (1 - tolerance) <= found <= high * (1 + tolerance) or low <= round(found, decimals) <= high


def named(pair):
    experiment, number = pair
    return f"{experiment}-{number.get('section', 'total')}-{number['gpus']}-{number['what']}"


@pytest.mark.parametrize("pair", NUMBERS, ids=named)
def test_every_published_number(pair, scaling, v100):
    experiment, number = pair
    found = derived(scaling, v100, experiment, number)
    tolerance = TOLERANCES.get(number["what"], TOLERANCES["others"])
    met, said = meets(found, number["value"], tolerance), f"published {number['value']}, modelled {found:.4g}"
    assert met or "missed" in number, said
    if met and "missed" in number:
        warnings.warn(f"{named(pair)} is met now: {said}; remove its `missed`", stacklevel=1)


def constants(study, v100):
    """Numbers of config/ that were chosen to meet published ones; what is counted or read off is not among them."""
    links = v100.links
    free = {"pair_gb_per_s": links.pair_gb_per_s, "step_us": links.step_us, "compute_jitter": v100.compute_jitter}
    free |= {f"network_gb_per_s.{name}": rate for name, rate in links.network_gb_per_s.items()}
    free |= {f"tree at {nodes} nodes": nodes for nodes in links.tree_nodes}
    for name, one in study.experiments.items():
        for section, work in one.sections.items():
            times = {key: getattr(work, key) for key in ("tiles_s", "operators_s", "repeated_s")}
            free |= {f"{name}.{section}.{key}": value for key, value in times.items() if value}
    return free


def test_fewer_free_constants_than_numbers(study, v100):
    free, held = constants(study, v100), [number for _, number in NUMBERS if "source" not in number]
    missed = sum("missed" in number for number in held)
    print(f"\n{len(free)} free constants: {', '.join(free)}")
    print(f"{len(NUMBERS)} published numbers, of which {len(held)} gave no constant; of those {missed} are missed")
    assert len(free) == 18
    assert len(held) > 2 * len(free)
    assert missed <= 5


def test_wait_of_two_gpus_over_many_draws(problems, v100):
    """Two of the numbers that ten iterations miss."""
    table = predict(of_machine(problems["inference_3d"], v100, v100.links), [2], iterations=2000).set_index("section")
    wait, transfer = table.loc["denoiser", "wait_s"], table.loc["denoiser", "transfer_s"]
    assert wait == pytest.approx(0.82, rel=TOLERANCES["others"])
    assert wait + transfer == pytest.approx(0.87, rel=TOLERANCES["others"])


def test_2d_inference_is_nearest_to_crossing(scaling):
    lead = {}
    for name in PUBLISHED:
        total = row(scaling, name, "total", 64)
        lead[name] = total["compute_max_s"] / total["transfer_s"]
    assert min(lead, key=lead.get) == "inference_2d"
    assert 1 < lead["inference_2d"] < 1.15  # published: 4 % above
    assert lead["training_2d"] == pytest.approx(1.64, rel=0.1)
    assert lead["inference_3d"] == pytest.approx(13, rel=0.1)
    assert lead["training_3d"] == pytest.approx(15, rel=0.1)


@pytest.mark.parametrize(("experiment", "operators"), [("inference_2d", 8), ("inference_3d", 2)])
def test_the_gradient_s_balance_collapses_past_its_operators(scaling, experiment, operators):
    balance = {gpus: row(scaling, experiment, "gradient", gpus)["load_balance"] for gpus in COUNTS}
    assert all(balance[gpus] > 0.96 for gpus in COUNTS if gpus <= operators)
    assert all(balance[gpus] < 0.7 for gpus in COUNTS if gpus > operators)


@pytest.mark.parametrize("experiment", ["inference_2d", "inference_3d"])
def test_4_gpus_transfer_faster_than_2(scaling, experiment):
    two, four = (row(scaling, experiment, "denoiser", gpus) for gpus in (2, 4))
    assert four["transfer_s"] / two["transfer_s"] == pytest.approx(1.5 / 3, rel=0.01)
    rates = [row["payload_bytes"] * part / row["transfer_s"] for row, part in ((two, 1), (four, 1.5))]
    assert 2.97 <= rates[1] / rates[0] <= 3.07  # published, over four series


@pytest.mark.parametrize("experiment", ["inference_2d", "inference_3d"])
def test_transfer_is_flat_from_16_gpus(scaling, experiment):
    seconds = [row(scaling, experiment, "denoiser", gpus)["transfer_s"] for gpus in (16, 32, 64)]
    assert max(seconds) / min(seconds) < 1.08  # of bytes alone 1.05, while compute falls to a quarter
    before = row(scaling, experiment, "denoiser", 8)["transfer_s"]
    assert before < 0.36 * seconds[0] * (7 / 8) / (15 / 16)  # "a little over a third" of a ring's time there


def test_implied_rates_of_the_study_are_those_it_was_made_with(out, v100):
    """Through traces, NCCL logs and back; and one rate, fitted at 16 GPUs, predicts the ring at 32 and 64."""
    table = read_table(out / "inference_2d" / "rates.csv", RATES).set_index(["section", "gpus"]).loc["denoiser"]
    for gpus, how, gb_per_s in [(8, "tree", 17), (16, "ring", 10.5), (64, "ring", 10.5)]:
        assert table["algorithm"][gpus] == how
        assert table["gb_per_s"][gpus] == pytest.approx(gb_per_s, rel=0.02)  # latency of the steps is in it
    assert table["off"][64] == pytest.approx(0.006, abs=0.002)
    assert any(
        line.startswith("denoiser: 10.5 GB/s between nodes") for line in rates_in_words(out / "inference_2d", v100)
    )


def test_published_rates_come_back_in_the_study_s_own_table_and_report(out):
    """40 GB/s in a pair, 119 between 4, 17 by a tree and 10.5 by a ring between nodes."""
    table = read_table(out / "inference_2d" / "rates.csv", RATES).set_index(["section", "gpus"]).loc["denoiser"]
    assert table["gb_per_s"][[2, 4, 8, 16]].to_numpy() == pytest.approx([40, 119, 17, 10.5], rel=0.005)
    assert table["machine_gb_per_s"][[2, 8, 16]].tolist() == [40, 17, 10.5]
    html = (out / "report.html").read_text()
    assert "Data movement, modelled" in html
    assert (out / "figures" / "implied_rate.svg").exists()
    assert "No run recorded its memory." in html
    assert not (out / "figures" / "peak_memory.svg").exists()
    assert "inference_2d/rates.csv" in html


def test_what_is_written_says_that_it_is_modelled(out, scaling):
    assert scaling["modelled"].all()
    assert "Modelled, not measured" in (out / "MODELLED.md").read_text()
    html = (out / "report.html").read_text()
    assert "<title>Modelled scaling report</title>" in html
    assert "No GPU ran for this page" in html
    assert "measured at" not in html
    assert 'id="runs"' not in html
    assert "snakemake" not in html  # no command that measures
    assert len(list((out / "inference_2d" / "gpus-64" / "traces").iterdir())) == 64
    assert not list(out.rglob("*.partial"))
