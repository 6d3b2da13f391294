"""Which operation a collective is, by its name, and how many bytes it moves.

Names differ between NCCL versions, between kernels and annotations, and between torch versions. All of them contain
the operation, which is recognised by its letters alone, in upper or lower case.
"""

import math
import re
from typing import Any

import msgspec

from trisect.trace.events import Args

COALESCED = "coalesced"
"""Several operations launched as one kernel, with nothing in the trace to tell them apart."""

SEND_RECV = "send_recv"
"""An NCCL kernel of sends and receives (an all_to_all, a gather, a send); the trace does not say which."""

UNKNOWN_OP = "unknown"
"""A communication kernel that the trace does not name, such as ncclDevKernel_Generic without metadata."""

# Looked for in this order: a spelling that contains another comes first.
_OPS = {
    "barrier": "barrier",
    "allreduce": "all_reduce",
    "reducescatter": "reduce_scatter",
    "allgather": "all_gather",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "bcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "sendrecv": SEND_RECV,
    "send": "send",
    "recv": "recv",
    "coalesced": COALESCED,
}

_BACKEND = re.compile(r"^(gloo|nccl|mpi|ucc|xccl|hccl):")

_BYTES = {
    **dict.fromkeys(("bool", "byte", "char", "uint8", "int8", "unsignedchar", "signedchar"), 1),
    **dict.fromkeys(("half", "bfloat16", "short", "float16", "int16", "shortint", "unsignedshort", "uint16"), 2),
    **dict.fromkeys(("float", "int", "float32", "int32", "unsignedint", "uint32", "complexhalf"), 4),
    **dict.fromkeys(("double", "long", "longint", "float64", "int64", "unsignedlong", "uint64", "complexfloat"), 8),
    **dict.fromkeys(("complexdouble",), 16),
}


def is_communication_kernel(name: str) -> bool:
    """Whether a device kernel's name is NCCL's or RCCL's."""
    lowered = name[:200].lower()
    return "nccl" in lowered or lowered.startswith("rccl")


def is_enqueue(name: str) -> bool:
    """Whether a host annotation is the enqueueing of device communication, not the communication."""
    return name.startswith(("nccl:", "xccl:", "hccl:"))


def is_host_collective(name: str) -> bool:
    """Whether a host annotation is a collective as it ran on the host (gloo, MPI, UCC)."""
    return bool(_BACKEND.match(name)) and not is_enqueue(name)


def is_of_collective(name: str) -> bool:
    """Whether a host annotation is a collective or the enqueueing of one, and so no section."""
    return bool(_BACKEND.match(name))


def operation(name: str) -> str:
    """The operation that a name contains: a kernel's, an annotation's ("gloo:all_reduce") or an argument's.

    UNKNOWN_OP where it contains none.
    """
    letters = re.sub(r"[^a-z]", "", _BACKEND.sub("", name).split("(")[0].lower())
    return next((op for spelling, op in _OPS.items() if spelling in letters), UNKNOWN_OP)


def element_bytes(dtype: str) -> int:
    """Bytes of one element, from either of torch's spellings ("Float", "c10::Half", "long int"); -1 if unknown."""
    letters = re.sub(r"c10::|[^a-z0-9]", "", dtype.lower())
    return 1 if letters.startswith("float8") else _BYTES.get(letters, -1)


def device_bytes(op: str, args: Args) -> int:
    """Payload of an NCCL kernel from its own arguments, -1 if they do not say.

    The whole buffer: all that is gathered or scattered, of any other operation what a rank puts in. This
    is the size that nccl-tests states, of which bus bandwidth is a multiple.
    """
    if op == "barrier":
        return 0
    elements = args.out_elements if op in ("all_gather", "scatter") else args.in_elements
    # A gather or scatter has the whole buffer on its root only: what every rank states is its own share.
    shares = args.group_size if op in ("gather", "scatter") else 1
    size = element_bytes(args.dtype)
    return elements * shares * size if min(elements, shares, size) >= 0 else -1


def host_bytes(op: str, args: Args, group_size: int) -> int:
    """Payload of a collective from the shapes of its annotation, -1 if it has none.

    An annotation lists the tensors that this rank puts in, so that an all_gather or gather is
    `group_size` times as large. Of a scatter only the root lists any, so that its payload stays unknown.
    """
    if op == "barrier":
        return 0
    own = _input_bytes(args)
    if own < 0 or op == "scatter":
        return -1
    if op in ("all_gather", "gather"):
        return own * group_size if group_size > 0 else -1
    return own


def _input_bytes(args: Args) -> int:
    try:
        dims = msgspec.json.decode(args.dims, type=list[list[Any]])
        types = msgspec.json.decode(args.types, type=list[str])
    except msgspec.DecodeError:
        return -1
    sizes = [
        math.prod(shape) * element_bytes(dtype)
        for shape, dtype in zip(dims, types, strict=False)
        if element_bytes(dtype) > 0 and all(isinstance(length, int) for length in shape)
    ]
    return sum(sizes) if sizes else -1
