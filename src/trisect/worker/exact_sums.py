"""Buffers whose sum over ranks is known exactly, so that every all_reduce of a probe can be checked."""

import torch

_PATTERN = torch.arange(1.0, 8.0)
"""Position in a buffer: 7 values, so that a shift by any power of two is seen."""
_SHIFTS = 4
"""Repetitions after which the values come back: a result left from the one before is seen."""

BUFFERS = 2
"""Copies of the payload that a Sum holds."""


class Sum:
    """One rank's float32 buffer: the pattern times (rank + 1 + shift), all integers."""

    def __init__(self, payload_bytes: int, rank: int, gpus: int, device: torch.device) -> None:
        values = payload_bytes // 4
        self.payload_bytes, self.rank, self.gpus = payload_bytes, rank, gpus
        self.pattern = _PATTERN.to(device).repeat(-(-values // len(_PATTERN)))[:values]
        self.buffer = torch.empty_like(self.pattern)

    def fill(self, repetition: int) -> None:
        """Put this rank's values in."""
        torch.mul(self.pattern, self.rank + 1 + repetition % _SHIFTS, out=self.buffer)

    def wrong_values(self, repetition: int, links: int = 1) -> int:
        """How many values are not what `links` all_reduces in a row make of the last `fill`; empties the buffer."""
        first = self.gpus * (self.gpus + 1) // 2 + self.gpus * (repetition % _SHIFTS)  # rank + 1 + shift of all ranks
        # A float, exact as far as `longest_chain` goes: torch takes no whole number above 2^64.
        self.buffer.sub_(self.pattern, alpha=float(first * self.gpus ** (links - 1)))
        return int(torch.count_nonzero(self.buffer))


def longest_chain(gpus: int, most: int = 16) -> int:
    """How many all_reduces in a row, each of what the one before left, keep every value and partial sum exact.

    Each multiplies by `gpus`. Powers of two only move float32's exponent, up to 2^127; odd factors fill its 24 bits
    of mantissa. 0 where not even the first is exact.
    """
    odd = gpus // (gpus & -gpus)
    largest = 7 * (gpus + 1 + 2 * (_SHIFTS - 1))  # an odd part of a first sum at most, times a power of two
    exact = [
        k for k in range(1, most + 1) if largest * gpus * odd ** (k - 1) < 2**24 and largest * gpus ** (k + 1) < 2**127
    ]
    return max(exact, default=0)
