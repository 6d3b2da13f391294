"""What every configuration model is made of: closed models, counts and rates; and the nearest known word."""

import difflib
from collections.abc import Callable, Iterable
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a complaint: the known word that was probably meant, or all there are."""
    words = sorted(known)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there {'are' if words[1:] else 'is'} {', '.join(words) or 'none'}"


def _whole(value: object) -> object:
    """`snakemake --config gpus=[1,2]` delivers digits as text; 1.5 and true stay what they are, and are refused."""
    return int(value) if isinstance(value, str) and value.removeprefix("-").isdigit() else value


Count = Annotated[int, Field(strict=True, ge=1), BeforeValidator(_whole)]
Natural = Annotated[int, Field(strict=True, ge=0), BeforeValidator(_whole)]


def per_axis(least: int, *words: str) -> Callable[[object], object]:
    """A validator: one number for every axis, or a list of one per axis, from `least` on; or one of the words."""
    said = f"give a whole number from {least} on, a list with one per axis{''.join(f', or {word}' for word in words)}"

    def check(value: object) -> object:
        known = [_whole(one) for one in value] if isinstance(value, list) else _whole(value)
        numbers = known if isinstance(known, list) else [known]
        right = all(isinstance(one, int) and not isinstance(one, bool) and one >= least for one in numbers)
        if known not in words and not (right and numbers):
            raise ValueError(said)
        return known

    return check


def distinct(values: list[object]) -> list[object]:
    """A validator: refuse a list that names something twice."""
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value!r} is there twice; name each once")
    return values


class Closed(BaseModel):
    """A model that refuses keys it does not know and values that change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
