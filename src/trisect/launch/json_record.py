"""The launcher's own small files: records that several processes read while one of them writes."""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from trisect.host import write_whole


class JsonRecord(BaseModel):
    """A closed model that is a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def write(self, path: Path) -> None:
        """Write whole or not at all."""
        write_whole(path, self.model_dump_json() + "\n")

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The record in a file, or None where nothing readable is there (yet)."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None
