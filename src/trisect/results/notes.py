"""What a reader must know about a result, as data: a kind and its numbers. report/text words each kind, once."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from trisect.errors import TrisectError


class Note(BaseModel):
    """One thing to know, such as a caveat. `report/text/notes.yaml` has a sentence for each kind."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")

    kind: str
    values: dict[str, JsonValue] = {}


_NOTES = TypeAdapter(list[Note])


def note(kind: str, /, **values: Any) -> Note:
    """A note of this kind; times in seconds, sizes in bytes, shares of 1. Values are what JSON can hold."""
    return Note(kind=kind, values=values)


def to_json(notes: Iterable[Note]) -> str:
    """Notes as the text of a file."""
    return "[\n" + ",\n".join(one.model_dump_json() for one in notes) + "\n]\n"


def read_notes(path: Path) -> list[Note]:
    """The notes of a file.

    Raises:
        TrisectError: the file is missing or holds something else.
    """
    try:
        return _NOTES.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        reason = " ".join(str(error).split())[:200]
        raise TrisectError(f"{path}: not readable as notes ({reason}); decompose that run again") from None
