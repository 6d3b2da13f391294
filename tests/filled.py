"""Tables whose rows state only what a test is about."""

import pandas as pd

from trisect.results.tables import as_table

_EMPTY = {"int64": 0, "float64": 0.0, "bool": False, "str": ""}


def filled(rows, table):
    """Rows as a table with all of its columns; what a row lacks is 0, no or empty text."""
    given = rows.to_dict("records") if isinstance(rows, pd.DataFrame) else rows
    return as_table([{name: _EMPTY[kind] for name, kind in table.items()} | row for row in given], table)
