"""What every configuration model is made of: closed models, counts, rates, and the word that was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a complaint: the known word that was probably meant, or all there are."""
    words = sorted(known)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(words)}"


def _whole(value: object) -> object:
    """`snakemake --config gpus=[1,2]` delivers digits as text; 1.5 and true stay what they are, and are refused."""
    return int(value) if isinstance(value, str) and value.removeprefix("-").isdigit() else value


Count = Annotated[int, Field(strict=True, ge=1), BeforeValidator(_whole)]
Natural = Annotated[int, Field(strict=True, ge=0), BeforeValidator(_whole)]


def distinct(values: list[object]) -> list[object]:
    """A validator: refuse a list that names something twice."""
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value!r} stands there twice; name each once")
    return values


class Closed(BaseModel):
    """A model that refuses keys it does not know and values that change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
