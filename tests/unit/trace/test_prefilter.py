"""Events that are filtered out, against the plain way: split at every break, look at how each piece begins."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trisect.trace.prefilter import BREAK, prefilter, unneeded

SHORT = b"\n  },{"  # a break where something was filtered out
FLOWS = [f'"ph": "{phase}"' for phase in "fst"]
CALLS = [f'"ph": "X", "cat": "cuda_runtime", "name": "cuda{call}' for call in ("Stream", "Event", "Func", "Occupancy")]
PYTHON, HOST_OP = '"ph": "X", "cat": "python_function"', '"ph": "X", "cat": "cpu_op"'
OTHER = [
    '"ph": "X", "cat": "kernel", "name": "k"',
    '"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel"',
    '"ph"',
]
PIECES = [*FLOWS, *CALLS, PYTHON, HOST_OP, *OTHER, "{", "}", ",", "\n    ", ', "args": {}', "x" * 90]


def plainly(text, host_ops, between):
    without, with_args = FLOWS, [PYTHON, *CALLS, *([] if host_ops else [HOST_OP])]
    cut = {
        braces: tuple(f"\n    {one}".replace(", ", between).encode() for one in openings)
        for braces, openings in ((0, without), (1, with_args))
    }
    *parts, last = text.split(BREAK)
    kept = [part for part in parts if not part.startswith(cut.get(part.count(b"{"), ()))]
    return BREAK.join([*kept, last]), len(parts) - len(kept)


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=4)), st.booleans(), st.sampled_from([", ", ",\n    "]))
@settings(max_examples=200)
def test_as_by_splitting(events, host_ops, between):
    first = f'"ph": "X"{between}"cat": "kernel"'
    joined = BREAK.decode().join([first, *("\n    " + "".join(event) for event in events)])
    text = joined.replace(", ", between).encode()
    wanted, count = plainly(text, host_ops, between)
    found, dropped = prefilter(memoryview(text), unneeded(text, host_ops))
    # Near the end of a text less is filtered out, so that no event is looked at beyond it.
    if len(text) - text.rfind(BREAK) > 100:
        assert dropped == count
    assert dropped <= count and found.startswith(b"[") and found.endswith(b"]")
    if dropped == count:
        assert found.replace(BREAK, SHORT) == b"[" + wanted.replace(BREAK, SHORT) + b"]"


@pytest.mark.parametrize("text", [b"", b"{", b"\n  },\n  {", BREAK * 20])
def test_nothing_to_filter_out(text):
    assert prefilter(memoryview(text), unneeded(text, False)) == (b"[" + text + b"]", 0)
