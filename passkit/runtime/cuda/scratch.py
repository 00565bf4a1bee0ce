"""Memory that steps need besides their arrays, as part of what a call holds."""

from __future__ import annotations

from typing import Any

from passkit.runtime.cuda.enqueued import Part
from passkit.runtime.cuda.pool import SMALLEST
from passkit.runtime.device.pool import Pool


class Scratch:
    """A block that one step after the other has for itself, as they run in order.

    ``most`` is how many bytes a step has wanted. What finds no room in the block, or has none, is
    taken from the pool.
    """

    def __init__(self, pool: Pool, address: int = 0, nbytes: int = 0) -> None:
        self.pool, self.address, self.nbytes = pool, address, nbytes
        self.used = self.most = 0

    def begin(self) -> None:
        """The next step may write where the last one did."""
        self.used = 0

    def take(self, nbytes: int) -> Any:
        """Memory of at least so many bytes, which the step does not share."""
        at, self.used = self.used, self.used + rounded(nbytes)
        self.most = max(self.most, self.used)
        return self.pool.take(nbytes) if self.used > self.nbytes else Part(self.address + at)


def rounded(nbytes: int) -> int:
    """Bytes up to where the next array may begin.

    >>> rounded(0), rounded(1), rounded(512)
    (0, 512, 512)
    """
    return -(-nbytes // SMALLEST) * SMALLEST
