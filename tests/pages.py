"""What tests of the page share: a missing run, and a page taken apart."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

MISSING = {("inference_3d", 2): "rank 1 was killed by signal 9"}


class Elements(HTMLParser):
    """Every start tag with its attributes, and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def values(self, name: str) -> Iterator[str]:
        return (attributes[name] or "" for _, attributes in self.tags if name in attributes)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())
