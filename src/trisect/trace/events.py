"""The parts of a Kineto file that matter here, as typed structs; the decoder skips everything else."""

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

EXACT_US = float(2**43)
"""Below this a double of microseconds, rounded to the nearest nanosecond, is the nanosecond that was written."""

LONGEST_US = 3e15
"""About a century: no event lasts as long, and no clock has counted as much since 1970."""

LONGEST = Decimal(LONGEST_US)
LONGEST_NS = int(LONGEST * 1000)
MISSING_NS = -(2**63)

Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""What an int64 column can hold; anything else is repaired as a bad value."""

NO_RAW = msgspec.Raw(b"")


class Args(msgspec.Struct, frozen=True, gc=False):
    """Of an event's `args`: what ties device work to its launch, and what a collective says of itself."""

    correlation: Integer = -1
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=NO_RAW)
    types: msgspec.Raw = msgspec.field(name="Input type", default=NO_RAW)
    collective: str = msgspec.field(name="Collective name", default="")
    in_elements: Integer = msgspec.field(name="In msg nelems", default=-1)
    out_elements: Integer = msgspec.field(name="Out msg nelems", default=-1)
    dtype: str = ""
    group: str = msgspec.field(name="Process Group Name", default="")
    group_size: Integer = msgspec.field(name="Group size", default=-1)
    seq: Integer = msgspec.field(name="Seq", default=-1)


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """One element of `traceEvents`. `ts` and `dur` are microseconds, nan where the event has none."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: float = math.nan
    dur: float = math.nan
    pid: Integer | str = ""
    tid: Integer | str = ""
    args: Args = NO_ARGS


class ExactTimes(msgspec.Struct, gc=False):
    """An event's times as text, for timestamps whose nanoseconds a double cannot hold."""

    ts: msgspec.Raw = msgspec.Raw(b"NaN")
    dur: msgspec.Raw = msgspec.Raw(b"NaN")


class ProcessGroup(msgspec.Struct):
    """One entry of `distributedInfo.pg_config`."""

    pg_name: str = ""
    pg_size: int = -1


class DistributedInfo(msgspec.Struct):
    """What torch.distributed said of the job."""

    rank: int | None = None
    world_size: int | None = None
    pg_config: msgspec.Raw = NO_RAW

    def group_sizes(self) -> dict[str, int]:
        """Ranks in each process group by its name; empty where the trace lists them in no known way."""
        try:
            groups = msgspec.json.decode(self.pg_config, type=list[ProcessGroup])
        except msgspec.DecodeError:
            return {}
        return {group.pg_name: group.pg_size for group in groups if group.pg_size > 0}


class Header(msgspec.Struct):
    """The keys beside `traceEvents`, from before and after it."""

    base_ns: Integer = msgspec.field(name="baseTimeNanoseconds", default=0)
    distributed: DistributedInfo = msgspec.field(name="distributedInfo", default_factory=DistributedInfo)
    devices: msgspec.Raw = msgspec.field(name="deviceProperties", default=NO_RAW)


def nanoseconds(us: NDArray[np.float64]) -> NDArray[np.int64]:
    """Microseconds below EXACT_US as nanoseconds, exactly; MISSING for nan, LONGEST_NS for what is longer."""
    bounded = np.clip(np.nan_to_num(us), -LONGEST_US, LONGEST_US)
    whole = np.floor(bounded)
    # The fraction is taken off before it is scaled, so that both steps are exact in double precision.
    exact = whole.astype(np.int64) * 1000 + np.rint((bounded - whole) * 1000).astype(np.int64)
    return np.where(np.isnan(us), MISSING_NS, exact)


def exact_nanoseconds(texts: Iterable[msgspec.Raw]) -> NDArray[np.int64]:
    """The same from the numbers as text, exact at any scale."""
    return np.array([_exact(bytes(text).decode()) for text in texts], np.int64)


def _exact(text: str) -> int:
    us = Decimal(text)
    if us.is_nan():
        return MISSING_NS
    return int((min(max(us, -LONGEST), LONGEST) * 1000).to_integral_value())
