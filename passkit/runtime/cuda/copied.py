"""Copies as steps on a CUDA device, where both sides are there."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

from passkit.runtime.cuda.enqueued import Enqueued, Rooms
from passkit.runtime.device.memory import Memory, Place
from passkit.runtime.program import Copy

if TYPE_CHECKING:
    from passkit.runtime.cuda.run import Bound


class Copied(Enqueued):
    """A copy: called, it goes from wherever the value is to where it is wanted."""

    def __init__(self, bound: Bound, step: Copy) -> None:
        super().__init__(bound)
        self.step, self.reads, self.writes = step, step.reads, step.writes
        self.nbytes = bound.number(step.source.nbytes)

    def __call__(self, memory: Memory) -> None:
        """Copy, on the device or the host."""
        memory.move(self.step.source, self.step.target)

    def stays_there(self, known: Container[Place]) -> bool:
        """Whether both sides are on the device, where that has what is ``known``.

        Results may be wanted on the host, and what stands on it may go there at once.
        """
        target = self.step.target.place
        kept = target[0] == "arena" or target in self.bound.table.changing
        return self.step.source.place in known and kept

    def placed(self, memory: Memory) -> tuple[int, int]:
        """To where, and from where."""
        source = int(memory.read(self.step.source).address)
        return int(memory.written(self.step.target).address), source

    def enqueue(self, what: tuple[int, int], rooms: Rooms, stream: Any) -> None:
        """Let a stream copy. Raises: DriverError."""
        to, source = what
        if self.nbytes and to != source:
            self.device.driver.copy(to, source, self.nbytes, stream)
