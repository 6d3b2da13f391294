"""Notes in words: the sentence that notes.yaml has for their kind."""

from collections.abc import Callable, Iterable
from functools import cache

import jinja2

from trisect import wording
from trisect.config.machine import AUTO
from trisect.host import shipped_yaml
from trisect.results.notes import Note


def algorithm_name(algorithm: str) -> str:
    """An algorithm in words: files say "chosen" where the backend took one by itself."""
    return "auto" if algorithm == AUTO else algorithm


FILTERS: dict[str, Callable[..., str]] = {"algorithm": algorithm_name} | {
    name: getattr(wording, name)
    for name in (
        *("digits", "seconds", "percent", "signed_percent", "size", "gb_per_s", "times", "factor", "duration", "gib"),
        *("listed", "counted", "counts", "ranks", "iterations", "metric", "upper_first", "unbroken"),
    )
}
"""What templates may word numbers with: functions of trisect.wording, by their names."""


@cache
def templates() -> dict[str, str | dict[str, str]]:
    """The content of notes.yaml: by kind a sentence, or a `short` and a `long` one."""
    return dict(shipped_yaml("trisect.report.text", "notes.yaml"))


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.filters |= FILTERS | {"note": lambda values: in_words(Note(**values))}
    return environment


def in_words(note: Note, unit: str = "GPU", form: str = "long") -> str:
    """A note as one sentence.

    Args:
        unit: what is counted, in the singular: "GPU", or "rank" where the ranks ran on CPUs.
        form: "short" or "long", of a kind that has both.
    """
    found = templates()[note.kind]
    template = found if isinstance(found, str) else found[form]
    return " ".join(_environment().from_string(template).render(note.values, unit=unit).split())


def all_in_words(notes: Iterable[Note], unit: str = "GPU") -> list[str]:
    """Each of several notes as a sentence, those that read alike once."""
    return list(dict.fromkeys(in_words(one, unit) for one in notes))


def as_markdown(notes: Iterable[Note]) -> str:
    """The content of findings.md."""
    lines = [f"- {sentence}" for sentence in all_in_words(notes)] or ["Nothing to remark."]
    return "\n".join(["# Findings", "", *lines, ""])
