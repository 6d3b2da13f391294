"""Columns of integers that grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]  # of integers
Mask = NDArray[np.bool_]


class GrowingColumns:
    """Named columns of integers, all of one length, grown a batch at a time; a smaller type saves memory."""

    def __init__(self, **types: type[np.signedinteger]) -> None:
        self._types = types
        self._parts: dict[str, list[Column]] = {name: [np.empty(0, kind)] for name, kind in types.items()}

    def append(self, **parts: Column | Mask | list[int] | list[bool]) -> None:
        """Add one part per column."""
        for name, column in self._parts.items():
            column.append(np.asarray(parts[name], self._types[name]))

    def where(self, chosen: Mask) -> GrowingColumns:
        """The rows that are chosen, copied."""
        kept = GrowingColumns(**self._types)
        kept.append(**{name: self[name][chosen] for name in self._types})
        return kept

    def __getitem__(self, name: str) -> Column:
        parts = self._parts[name]
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0]

    def __len__(self) -> int:
        return sum(map(len, next(iter(self._parts.values()))))
