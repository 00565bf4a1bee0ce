"""How the points of a tile are distributed over the threads of a block, and their banks.

A tile is moved along one axis at a time. Neighbouring threads have neighbouring vectors along that
axis, then rows of vectors along the other axes, the last one first. What a block's threads do not
reach at once, they do one after the other.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

BANKS = 32
"""The banks of shared memory, each of which gives a word at a time."""
WORD_NBYTES = 4
NARROW_LANES = 32
"""The threads that have neighbouring elements, at most, where each is an access."""


@frozen
class TileDigit:
    """A part of the index along an axis of a tile: ``source // divisor % count * scale``.

    Attributes:
        axis: the number of the axis in the tile.
        is_thread: whether the source is the thread's index; else it is the number of its vector.
        divisor: what the source is divided by.
        count: the number of values.
        scale: the points from one value to the next.
    """

    axis: int
    is_thread: bool
    divisor: int
    count: int
    scale: int


@frozen
class TileThreads:
    """How the threads of a block move a tile.

    Attributes:
        sizes: the points of the tile along each axis, powers of two.
        vector: the elements of a vector.
        lanes: the threads that have neighbouring vectors, at most.
        threads: the threads of the block.
    """

    sizes: tuple[int, ...]
    vector: int
    lanes: int
    threads: int

    def digits(self, axis: int) -> tuple[TileDigit, ...]:
        """Return the parts of the indices of a thread's vectors, which lie along an axis."""
        vectors = self.sizes[axis] // self.vector
        along = min(self.lanes, vectors)
        last = len(self.sizes) - 1
        steps = [
            (axis, along, self.vector),
            *((k, self.sizes[k], 1) for k in range(last, -1, -1) if k != axis),
            (axis, vectors // along, self.vector * along),
        ]
        digits = []
        divisors = {True: 1, False: 1}
        for k, count, scale in steps:
            of_threads = min(count, self.threads // divisors[True])
            for is_thread, own in ((True, of_threads), (False, count // of_threads)):
                if own > 1:
                    digits.append(TileDigit(k, is_thread, divisors[is_thread], own, scale))
                    divisors[is_thread] *= own
                    scale *= own
        return tuple(digits)

    def turns(self, axis: int, pitch: int, nbytes: int) -> int:
        """Return how often a warp goes to shared memory for an element of each thread, at most.

        It is 1 without conflicts of banks: all words of a bank are one word. Elements of 8 bytes
        need as many for each half of a warp.

        Args:
            axis: the axis along which vectors lie.
            pitch: the elements from one row of the tile in shared memory to the next one.
            nbytes: the bytes of an element.
        """
        thread = np.arange(self.threads)
        indices = [np.zeros(self.threads, int) for _ in self.sizes]
        for d in self.digits(axis):
            if d.is_thread:
                indices[d.axis] = indices[d.axis] + thread // d.divisor % d.count * d.scale
        group = min(BANKS, BANKS * WORD_NBYTES // nbytes)
        most = 1
        for position in range(self.vector):
            row = np.zeros(self.threads, int)
            for k, (size, index) in enumerate(zip(self.sizes, indices, strict=True)):
                at = index + position * (k == axis)
                row = row * pitch + at if k == len(self.sizes) - 1 else row * size + at
            words = row * nbytes // WORD_NBYTES
            for first in range(0, self.threads, group):
                own = np.unique(words[first : first + group])
                most = max(most, int(np.bincount(own % BANKS).max()))
        return most
