"""The schedule of several loop nests in one kernel of a GPU, whose blocks they share out."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from passkit.ir.loop import LaunchShape
from passkit.schedule.nest import NestSchedule
from passkit.values.size import Extent


@frozen
class PackSchedule:
    """How loop nests without data flow between them run in one kernel.

    The blocks of the nests follow each other. A block has one block of a nest, or several side by
    side if that has fewer threads.

    Attributes:
        parts: the schedule of each nest.
        launch: the threads of a block.
    """

    parts: tuple[NestSchedule, ...]
    launch: LaunchShape

    def side_by_side(self, part: int) -> int:
        """Return how many blocks of the nest of a part a block of the kernel has."""
        return self.launch.threads // self.parts[part].launch.threads

    def blocks(self, extents: Sequence[Sequence[Extent]]) -> Extent:
        """Return the number of blocks of the grid, given the extents of the axes of each nest."""
        total: Extent = 0
        for part, (schedule, own) in enumerate(zip(self.parts, extents, strict=True)):
            together = self.side_by_side(part)
            total = total + (schedule.blocks(own) + (together - 1)) // together
        return total
