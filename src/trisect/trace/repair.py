"""Repairs the text of events that do not decode: only what has one possible reading, and every repair is counted.

Kineto writes kernel names, paths and numbers without escaping them, so that its files hold bare nan and inf, stray
backslashes and quotes, control characters and bytes that are not UTF-8. Text that is cut or overwritten is not
repaired.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any, get_type_hints

import msgspec

from trisect.trace.events import Args, Event

BETWEEN_EVENTS = re.compile(rb"\}\s*,(?=\s*\{\s*\")")
"""Where one event ends and the next begins; rarely also inside an event."""

_JOINED = 3
"""An event may hold this many such places inside it."""

_BARE = re.compile(r"(?<![\w.])-?(nan|inf(inity)?)(?![\w.])", re.IGNORECASE)
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_CONTROL = re.compile(r"[\x00-\x1f]")
_STRAY_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_QUOTE = re.compile(r'"')
_AFTER_STRING = re.compile(r'\s*(?:[:}\]]|,\s*["{\[\d\-+a-zA-Z]|$)')

_SWALLOWED = re.compile(r'[,{\[]\s*"|"\s*[:\-\d]')
"""In what was taken for one string: the remains of two, with a quote or colon between them lost."""

_event = msgspec.json.Decoder(Event)


class UnrepairableError(Exception):
    """No reading of the text at `offset` is an event."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


def repair_events(text: bytes, repairs: Counter[str]) -> bytes:
    """Events separated by commas, as text that decodes to Event structs; repairs are added to `repairs`.

    Raises:
        UnrepairableError: an event has no reading; its offset is that of the event within `text`.
    """
    starts = [0, *(match.end() for match in BETWEEN_EVENTS.finditer(text))]
    ends = [*(start - 1 for start in starts[1:]), len(text)]
    repaired: list[bytes] = []
    index = 0
    while index < len(starts):
        for last in range(index, min(index + _JOINED, len(starts))):
            event = _repair_event(text[starts[index] : ends[last]], repairs)
            if event is not None:
                break
        else:
            raise UnrepairableError(starts[index] + _blanks(text[starts[index] :]))
        repaired.append(event)
        index = last + 1
    return b",".join(repaired)


def repair_text(text: bytes, repairs: Counter[str]) -> Iterator[bytes]:
    """Readings of damaged JSON text, the likelier first, to be tried until one decodes.

    `repairs` holds the repairs of the reading that came last.
    """
    for backslash_escapes_quote in (True, False):
        repairs.clear()
        yield _rewrite(text, backslash_escapes_quote, repairs).encode()


def _repair_event(text: bytes, repairs: Counter[str]) -> bytes | None:
    if _decodes(text):
        return text
    made: Counter[str] = Counter()
    for reading in chain([text], repair_text(text, made)):
        whole = reading if _decodes(reading) else _without_bad_values(reading, made)
        if whole is not None and _decodes(whole):
            repairs.update(made)
            return whole
    return None


def _decodes(text: bytes) -> bool:
    try:
        _event.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def _rewrite(text: bytes, backslash_escapes_quote: bool, repairs: Counter[str]) -> str:
    try:
        source = text.decode()
    except UnicodeDecodeError:
        source = text.decode(errors="replace")
        repairs["invalid_utf8"] += 1
    written: list[str] = []
    position = 0
    while (opening := source.find('"', position)) >= 0:
        written.append(_repair_outside(source[position:opening], repairs))
        closing = _end_of_string(source, opening + 1, backslash_escapes_quote)
        written.append(f'"{_repair_string(source[opening + 1 : closing], repairs)}"')
        position = closing + 1
    written.append(_repair_outside(source[position:], repairs))
    return "".join(written)


def _end_of_string(source: str, start: int, backslash_escapes_quote: bool) -> int:
    """Index of the first quote that JSON's grammar lets a string end at."""
    for quote in _QUOTE.finditer(source, start):
        index = quote.start()
        backslashes = index - len(source[start:index].rstrip("\\")) - start
        if backslash_escapes_quote and backslashes % 2:
            continue
        if _AFTER_STRING.match(source, index + 1):
            return index
    return len(source)


def _repair_outside(text: str, repairs: Counter[str]) -> str:
    text, bare = _BARE.subn("null", text)
    text, control = _STRAY_CONTROL.subn(" ", text)
    _count(repairs, bare_nan_or_inf=bare, control_character=control)
    return text


def _repair_string(text: str, repairs: Counter[str]) -> str:
    stray = sum(match[1] is None for match in _ESCAPE.finditer(text))
    text = _ESCAPE.sub(lambda match: match[0] if match[1] else "\\\\", text)
    quotes = len(re.findall(r'(?<!\\)(?:\\\\)*"', text))
    if quotes and _SWALLOWED.search(text):
        return text  # with its quotes bare, so that nothing decodes it
    text = re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', text)
    text, control = _CONTROL.subn(" ", text)
    _count(repairs, stray_backslash=stray, stray_quote=quotes, control_character=control)
    return text


def _without_bad_values(text: bytes, repairs: Counter[str]) -> bytes | None:
    """The event without those of its values that have the wrong type, such as an integer over 64 bits."""
    try:
        event = msgspec.json.decode(text)
        json.loads(text, object_pairs_hook=_refuse_two_in_one)
    except (msgspec.DecodeError, ValueError):
        return None
    if not isinstance(event, dict):
        return None
    args = event.get("args")
    if isinstance(args, dict):
        event["args"] = _keep_typed(args, Args, repairs)
    return msgspec.json.encode(_keep_typed(event, Event, repairs))


def _refuse_two_in_one(pairs: list[tuple[str, Any]]) -> None:
    """Raises ValueError for what is left of two events where the text between them is gone: keys come twice."""
    keys = [key for key, _ in pairs if key in Event.__struct_encode_fields__]
    if len(set(keys)) < len(keys):
        raise ValueError


def _keep_typed(values: dict[str, Any], struct: type[msgspec.Struct], repairs: Counter[str]) -> dict[str, Any]:
    types = get_type_hints(struct, include_extras=True)
    kept = {}
    for field in msgspec.structs.fields(struct):
        name = field.encode_name
        if name not in values:
            continue
        if types[field.name] is msgspec.Raw:
            kept[name] = values[name]
            continue
        try:
            converted = msgspec.convert(values[name], types[field.name], strict=False)
        except msgspec.ValidationError:
            repairs["bad_value"] += 1
        else:
            kept[name] = values[name] if isinstance(values[name], dict) else converted
    return kept


def _count(repairs: Counter[str], **counts: int) -> None:
    repairs.update({name: count for name, count in counts.items() if count})


def _blanks(text: bytes) -> int:
    return len(text) - len(text.lstrip())
