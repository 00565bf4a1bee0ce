"""The schedule of several loop nests in one kernel of a GPU, whose blocks they share out."""

from __future__ import annotations

from attrs import frozen

from passkit.ir.loop import LaunchShape
from passkit.schedule.nest import NestSchedule


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
