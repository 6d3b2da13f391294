"""Throws damaged variants of known traces at the reader.

    python tests/fuzz/fuzz_reader.py --count 10000 --seed 0

Each variant has to end in the right tables, in a difference that the tables or the decomposition's caveats
say (a counted repair, a skipped iteration, unattributed time, iterations dropped), or in a TrisectError. Any other
exception, a hang, or a difference that nothing says is a failure, and printed with what made it.

A digit in another digit's place, or a letter of a name in another's, makes another trace, not a damaged one,
so that no variant is made so. Half of the variants are read in blocks and chunks of a few events.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from kineto import kineto_layout

from trisect.analysis.decomposition import decompose
from trisect.errors import TrisectError
from trisect.results.notes import Note
from trisect.results.tables import Trace
from trisect.synthetic.ground_truth import SyntheticExchange, SyntheticJob, SyntheticSection
from trisect.synthetic.kineto_writer import write_job
from trisect.trace import chunks, source
from trisect.trace.read_job import read_job

US = 1_000
SECTIONS = ["gradient", "denoiser"]
LONGEST_S = 10
LIMITS = ((source.BLOCK, chunks.ROWS), (1500, 12))
"""Bytes of a block and events held before the end of a chunk is looked for."""

_NUMBER = re.compile(rb"-?\d+\.\d+")
_STRING = re.compile(rb'"[^"]{3,}"')
_ARGUMENT = re.compile(rb'": \d+(?=[,}])')
_NOT_CUT = re.compile(rb"[\d.\-]")
_KEPT = re.compile(rb"\d|c10d::\w+")

Mutation = Callable[[bytes, random.Random], bytes]


def _one_of(pattern: re.Pattern[bytes], text: bytes, rng: random.Random) -> re.Match[bytes]:
    """One of the pattern's matches."""
    return rng.choice(list(pattern.finditer(text)))


def bare_number(text: bytes, rng: random.Random) -> bytes:
    """An argument or a time that is nan or inf."""
    found = _one_of(rng.choice([_NUMBER, _ARGUMENT]), text, rng)
    bare = rng.choice([b"nan", b"-inf", b"inf", b"Infinity", b"NaN"])
    start = found.start() + (3 if found[0].startswith(b'"') else 0)
    return text[:start] + bare + text[found.end() :]


def dirty_string(text: bytes, rng: random.Random) -> bytes:
    """A byte that JSON does not allow, within a string."""
    found = _one_of(_STRING, text, rng)
    at = rng.randrange(found.start() + 1, found.end())
    return text[:at] + rng.choice([b"\\", b'"', b"\x01", b"\n", b"\xff", b"\xe9", b"\\q"]) + text[at:]


def cut(text: bytes, rng: random.Random) -> bytes:
    """A file that ends early."""
    return text[: rng.randrange(len(text.rstrip()))]


def damaged_gzip(text: bytes, rng: random.Random) -> bytes:
    """A gzip stream that ends early, or with one bit turned."""
    packed = bytearray(gzip.compress(text, 1, mtime=0))
    if rng.random() < 0.5:
        return bytes(packed[: rng.randrange(len(packed))])
    packed[rng.randrange(10, len(packed))] ^= 1 << rng.randrange(8)
    return bytes(packed)


def overwritten_byte(text: bytes, rng: random.Random) -> bytes:
    """One byte turned into another; digits and host operations of collectives stay."""
    kept = {at for found in _KEPT.finditer(text) for at in range(found.start(), found.end())}
    at = rng.choice([at for at in (rng.randrange(len(text)) for _ in range(50)) if at not in kept])
    new = rng.choice([byte for byte in range(256) if not chr(byte).isdigit() and byte != text[at]])
    return text[:at] + bytes([new]) + text[at + 1 :]


def _span(text: bytes, rng: random.Random) -> tuple[int, int]:
    """A short stretch that begins and ends within no number."""
    while True:
        start = rng.randrange(1, len(text) - 1)
        end = min(start + rng.randrange(1, 200), len(text) - 1)
        edges = (text[at : at + 1] for at in (start - 1, start, end - 1, end))
        if not any(_NOT_CUT.match(edge) for edge in edges) and b"c10d" not in text[start - 20 : end + 20]:
            return start, end


def deleted_span(text: bytes, rng: random.Random) -> bytes:
    """A stretch that is gone."""
    start, end = _span(text, rng)
    return text[:start] + text[end:]


def repeated_span(text: bytes, rng: random.Random) -> bytes:
    """A stretch that is there twice."""
    start, end = _span(text, rng)
    return text[:end] + text[start:end] + text[end:]


def of_events(change: Callable[[list[dict], dict, random.Random], object]) -> Mutation:
    """A mutation of the decoded events; `change` gets all of them, one of them, and the source of chance."""

    def mutate(text: bytes, rng: random.Random) -> bytes:
        trace = json.loads(text)
        events = trace["traceEvents"]
        change(events, rng.choice([event for event in events if event["ph"] == "X"]), rng)
        changed = json.dumps(trace).encode()
        return kineto_layout(changed) if b"\n  },\n  {" in text else changed

    mutate.__name__ = change.__name__
    return mutate


def shuffled(events: list[dict], _: dict, rng: random.Random) -> object:
    return rng.shuffle(events)


def doubled(events: list[dict], event: dict, rng: random.Random) -> object:
    return events.insert(rng.randrange(len(events)), dict(event))


def untimed(_: list[dict], event: dict, rng: random.Random) -> object:
    return event.update(ts=0)


def without_a_time(_: list[dict], event: dict, rng: random.Random) -> object:
    return event.pop(rng.choice(["ts", "dur"]))


def impossible_duration(_: list[dict], event: dict, rng: random.Random) -> object:
    return event.update(dur=rng.choice([-1.5, -1e9, 2**64, 2**63 / 1000, 1e300]))


def wrong_type(_: list[dict], event: dict, rng: random.Random) -> object:
    holder = rng.choice([event, event["args"]])
    return holder.update({rng.choice(list(holder)): rng.choice([None, [], {}, "x", 2**70, -(2**70), True])})


def missing_key(_: list[dict], event: dict, rng: random.Random) -> object:
    return event.pop(rng.choice(["ph", "cat", "pid", "args"]))


MUTATIONS: list[Mutation] = [
    bare_number,
    dirty_string,
    cut,
    damaged_gzip,
    overwritten_byte,
    deleted_span,
    repeated_span,
    *map(of_events, (shuffled, doubled, untimed, without_a_time, impossible_duration, wrong_type, missing_key)),
]


@dataclass(frozen=True)
class Seed:
    """A job of two ranks that is whole, and what it says."""

    name: str
    texts: tuple[bytes, bytes]
    trace: Trace
    caveats: list[Note]


def seeds(folder: Path) -> list[Seed]:
    """Both flavours in both layouts; the NCCL one also with a device in its header."""
    made = []
    both = SyntheticExchange((300 * US, 500 * US), 100 * US, payload_bytes=400, hidden_ns=20 * US)
    sections = (SyntheticSection("gradient", (both, both)), SyntheticSection("denoiser", (both,), tail_ns=50 * US))
    for flavour in ("gloo", "nccl"):
        job = SyntheticJob(2, (sections,) * 3, flavour=flavour, barrier_ns=10 * US)
        texts = [path.read_bytes() for path in write_job(job, folder / flavour, compress=False)]
        listed = [text.replace(b'"deviceProperties": []', b'"deviceProperties": [{"id": 0}]') for text in texts]
        for name, some in (("", texts), (" in Kineto's layout", [kineto_layout(t) for t in texts])):
            made.append(_seed(folder, flavour + name, some))
        made.append(_seed(folder, f"{flavour} with a device", [kineto_layout(t) for t in listed]))
    return made


def _seed(folder: Path, name: str, texts: list[bytes]) -> Seed:
    trace = _read(folder, texts)
    return Seed(name, (texts[0], texts[1]), trace, decompose(trace).caveats)


def _read(folder: Path, texts: list[bytes]) -> Trace:
    paths = [folder / f"rank-{rank}.json" for rank in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text)
    return read_job(paths, sections=SECTIONS, workers=1)


def outcome(seed: Seed, texts: list[bytes], folder: Path) -> str:
    """How a variant ended: right, refused, said, or why it is a failure."""
    try:
        trace = _read(folder, texts)
        if _same(trace, seed.trace):
            return "right"
        readings = trace.readings
        if trace.notes or readings["repairs"].any() or readings["unattributed_ns"].any():
            return "said"
        return "said" if decompose(trace).caveats != seed.caveats else "FAILURE: a difference that nothing says"
    except TrisectError as error:
        return "refused" if "\n" not in str(error) else f"FAILURE: more than one line: {error}"
    except TimeoutError:
        return f"FAILURE: still running after {LONGEST_S} s"
    except Exception as error:
        return f"FAILURE: {type(error).__name__}: {error}"


def _same(found: Trace, wanted: Trace) -> bool:
    """Equal times; a payload that a damaged argument no longer tells is unknown (-1), not wrong."""
    unknown = found.collectives["bytes"] == -1
    collectives = found.collectives.assign(
        bytes=found.collectives["bytes"].where(~unknown, wanted.collectives["bytes"])
    )
    return found.sections.equals(wanted.sections) and collectives.equals(wanted.collectives)


def run(count: int, seed: int) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Outcomes by (mutation, outcome), and a line for each failure."""
    outcomes: Counter[tuple[str, str]] = Counter()
    failures = []
    signal.signal(signal.SIGALRM, _out_of_time)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = seeds(folder)
        for number in range(count):
            rng = random.Random(f"{seed}-{number}")
            one, mutation, rank = rng.choice(whole), MUTATIONS[number % len(MUTATIONS)], rng.randrange(2)
            texts = list(one.texts)
            texts[rank] = mutation(texts[rank], rng)
            source.BLOCK, chunks.ROWS = rng.choice(LIMITS)
            signal.alarm(LONGEST_S)
            ended = outcome(one, texts, folder)
            signal.alarm(0)
            outcomes[mutation.__name__, ended.split(":")[0]] += 1
            if ended.startswith("FAILURE"):
                failures.append(
                    f"variant {number} of seed {seed}: {mutation.__name__}, {one.name}, rank {rank}: {ended}"
                )
    source.BLOCK, chunks.ROWS = LIMITS[0]
    return outcomes, failures


def _out_of_time(*_: object) -> None:
    raise TimeoutError


def main() -> int:
    """Run, print a table of outcomes and all failures; 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="variants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the source of chance (default: %(default)s)")
    options = parser.parse_args()
    outcomes, failures = run(options.count, options.seed)
    kinds = ("right", "said", "refused", "FAILURE")
    print(f"{'mutation':22}" + "".join(f"{kind:>9}" for kind in kinds))
    for mutation in MUTATIONS:
        print(f"{mutation.__name__:22}" + "".join(f"{outcomes[mutation.__name__, kind]:9}" for kind in kinds))
    print(*failures[:50], sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
