"""A prediction as text: `trisect predict` and prediction.txt."""

import pandas as pd

from trisect.analysis.findings import HALF, PAYS
from trisect.report.text.note_words import in_words
from trisect.report.text.tables_text import aligned
from trisect.results.notes import note
from trisect.results.record import Change, PredictionRecord
from trisect.results.tables import TOTAL
from trisect.wording import listed, percent


def prediction_text(record: PredictionRecord, table: pd.DataFrame, *, sections: bool = False) -> list[str]:
    """The table, the answers, what would move them, the errors, and what to know, a blank line before each.

    Args:
        record: of the prediction.
        table: `gpus`, `section` and what is to be shown, a row a section and TOTAL.
        sections: show each section too, not only TOTAL.
    """
    whence = (
        f"modelled from what was measured at {listed(record.fitted)}" if record.fitted else "modelled, not measured"
    )
    shown = table if sections else table[table["section"] == TOTAL].drop(columns="section")
    blocks = [
        [
            f"{record.experiment} ({record.size} size) on {record.machine}: {whence} (docs/model.md).",
            f"Seconds per iteration; cost is relative to {int(table['gpus'].min())}.",
        ],
        _table(shown, record),
        [in_words(one, record.unit) for one in record.answers],
        what_if_text(record),
        ["Relative error, (modelled - measured) / measured, all sections together:"] * bool(record.errors)
        + [in_words(one, record.unit) for one in record.errors],
        [f"Note: {in_words(one, record.unit)}" for one in record.notes],
    ]
    return [line for block in blocks if block for line in ("", *block)][1:]


def _table(shown: pd.DataFrame, record: PredictionRecord) -> list[str]:
    """The rows of a prediction, with the algorithm at each count."""
    how = [record.algorithms.get(int(n), "-") for n in shown["gpus"]]
    columns = ["gpus", "algorithm", *(name for name in shown.columns if name != "gpus")]
    return aligned(shown.assign(algorithm=how)[columns])


def what_if_columns(record: PredictionRecord) -> dict[str, str]:
    """Headings of what each change does, by field of record.Change."""
    return {
        "change": "what would move it",
        "pays": f"{percent(PAYS)} up to about",
        "half": f"{percent(HALF)} up to about",
        "crossing": "transfer below compute up to about",
        "efficiency": f"efficiency at {record.shown_at}",
    }


def what_if_cells(change: Change, record: PredictionRecord) -> list[str]:
    """One change under these headings; counts in between are interpolated, and so rounded."""
    largest = max(record.algorithms, default=1)

    def reached(count: float) -> str:
        return "none" if not count else f"{largest} or more" if count == largest else f"{count:.0f}"

    words = in_words(note(f"change_{change.change}"), record.unit)
    return [words, *map(reached, (change.pays, change.half, change.crossing)), percent(change.efficiency)]


def what_if_text(record: PredictionRecord) -> list[str]:
    """What each change does to the answers, as an aligned table."""
    rows = [what_if_cells(change, record) for change in record.what_if]
    return aligned(pd.DataFrame(rows, columns=list(what_if_columns(record).values())))
