"""What is said of a run's messages, from a table whose regimes are known; and `trisect rates` says it too."""

import pandas as pd

from trisect import cli
from trisect.network.regimes import MESSAGES
from trisect.report.text.regime_sentences import sentences
from trisect.results.layout import Layout
from trisect.results.tables import FITS

ROWS = [
    ("gradient", 8, 2.0, "latency-bound"),
    ("gradient", 1200, 1.0, "latency-bound"),
    ("gradient", 800_000_000, 1.0, "bandwidth-bound"),
    ("denoiser", 800_000_000, 1.0, "bandwidth-bound"),
]


def test_a_sentence_a_section() -> None:
    table = pd.DataFrame(ROWS, columns=["section", "payload_bytes", "count", "regime"]).reindex(columns=list(MESSAGES))
    assert sentences(table, 8) == [
        "gradient at 8 GPUs, all_reduces of an iteration: 3 of 8.00 B to 1.20 kB latency-bound and 1 of 800 MB"
        " bandwidth-bound.",
        "denoiser at 8 GPUs, all_reduces of an iteration: 1 of 800 MB bandwidth-bound.",
    ]
    assert sentences(table.iloc[:0], 8) == []


def test_the_command_says_it_where_the_probe_ran(tmp_path, capsys) -> None:
    layout = Layout(tmp_path)
    run = layout.run("e", 2)
    run.folder.mkdir(parents=True)
    collectives = [(1, "denoiser", "all_reduce", 8_000_000)]
    pd.DataFrame(collectives, columns=["iteration", "section", "op", "bytes"]).to_csv(run.collectives)
    row = {"section": "denoiser", "gpus": 2, "payload_bytes": 8_000_000, "transfer_s": 0.1, "hidden_s": 0.0}
    scaling = pd.DataFrame([row | {"iterations": 9, "oversubscribed": False}])
    scaling.assign(transfer_s_lo=0.1, transfer_s_hi=0.1).to_csv(layout.scaling("e"))
    words = "denoiser at 2 GPUs, all_reduces of an iteration: 1 of 8.00 MB bandwidth-bound."
    command = ["rates", str(layout.scaling("e").parent), "--machine", "laptop"]
    assert cli.main(command) == 0
    assert words not in capsys.readouterr().out
    layout.fits.parent.mkdir()
    fit = {"gpus": 2, "algorithm": "chosen", "ran": "ring", "reading": "ring", "protocol": "gloo", "gb_per_s": 1.0}
    fit |= {"crossover_bytes": 1000.0, "smallest_bytes": 1024, "largest_bytes": 1 << 30}
    pd.DataFrame([fit]).reindex(columns=list(FITS)).to_csv(layout.fits, index=False)
    assert cli.main(command) == 0
    assert words in capsys.readouterr().out
