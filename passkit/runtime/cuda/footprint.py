"""What steps that follow each other have in a call's memory, found once for all calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from passkit.runtime.cuda.enqueued import Enqueued, Part
from passkit.runtime.cuda.scratch import rounded
from passkit.runtime.device.memory import Memory, Place
from passkit.runtime.device.run import BoundProgram


class Footprint:
    """The places of some steps, in the order in which they meet them. Units: bytes.

    What is written here and seen by nobody else is ``inner``: it lies in one block of ``nbytes``,
    at a distance from its begin. ``outer`` is the rest, with whether it is read before it is
    written; what is ``written`` of that is so many bytes long.
    """

    def __init__(
        self, steps: Sequence[Enqueued], bound: BoundProgram, alone: Callable[[Place], bool]
    ) -> None:
        self.inner: dict[Place, int] = {}
        self.outer: dict[Place, bool] = {}
        self.written: dict[Place, int] = {}
        self.nbytes = 0
        for step in steps:
            for ref in step.reads:
                if ref.place not in self.inner:
                    self.outer.setdefault(ref.place, True)
            for ref in step.writes:
                place = ref.place
                if place not in self.outer and place[0] == "arena" and alone(place):
                    if place not in self.inner:
                        self.inner[place] = self.nbytes
                        self.nbytes += rounded(max(1, bound.slots[place[1]]))
                else:
                    self.outer.setdefault(place, False)
                    self.written[place] = bound.nbytes(ref)

    def addresses(self, memory: Memory) -> tuple[int, ...]:
        """Where a call has all of it, with what is read: the block, and each of the others.

        Those of two calls are the same if and only if each step meets the same ones.
        """
        found: list[int] = []
        if self.nbytes:
            block = memory.pool.take(self.nbytes)
            memory.held.append(block)
            found.append(block.address)
        for place, is_read in self.outer.items():
            cell = memory.cell(place)
            if is_read:
                memory.sent(cell)
            else:
                memory.room(cell)
            found.append(cell.buffer.address)
        return tuple(found)

    def spread(self, memory: Memory, addresses: tuple[int, ...]) -> None:
        """Let each place in the block have a cell: steps that are told one by one look for it."""
        for place, at in self.inner.items():
            memory.cell(place).buffer = Part(addresses[0] + at)

    def done(self, memory: Memory) -> None:
        """From now on the device alone knows what has been written."""
        for place, nbytes in self.written.items():
            cell = memory.cells[place]
            cell.nbytes, cell.on_host, cell.on_device = nbytes, False, True
