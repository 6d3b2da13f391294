"""What is said of a run's messages, from a table whose regimes are known."""

import pandas as pd

from trisect.network.regimes import MESSAGES, regime_notes
from trisect.results.notes import note

ROWS = [
    ("gradient", 8, 2.0, "latency-bound"),
    ("gradient", 1200, 1.0, "latency-bound"),
    ("gradient", 800_000_000, 1.0, "bandwidth-bound"),
    ("denoiser", 800_000_000, 1.0, "bandwidth-bound"),
]


def kind(regime, count, smallest, largest):
    return {"regime": regime, "count": count, "smallest_bytes": smallest, "largest_bytes": largest}


def test_a_note_a_section() -> None:
    table = pd.DataFrame(ROWS, columns=["section", "payload_bytes", "count", "regime"]).reindex(columns=list(MESSAGES))
    large = kind("bandwidth-bound", 1.0, 800_000_000, 800_000_000)
    assert regime_notes(table, 8) == [
        note("message_regimes", section="gradient", gpus=8, kinds=[kind("latency-bound", 3.0, 8, 1200), large]),
        note("message_regimes", section="denoiser", gpus=8, kinds=[large]),
    ]
    assert regime_notes(table.iloc[:0], 8) == []
