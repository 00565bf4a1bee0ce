"""Schedules: the tiles, stages and storage of the values of one kernel."""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from passkit.analysis.domain import Axis, Domain
from passkit.analysis.tile_layout import TileLayout
from passkit.analysis.tilemap import Split
from passkit.ast.stage import Place
from passkit.diagnostics import Diagnostic
from passkit.ir.loop import LaunchShape
from passkit.schedule.block import BlockSchedule
from passkit.schedule.nest import NestSchedule
from passkit.schedule.pack import PackSchedule
from passkit.schedule.tiling import Composition
from passkit.values.size import Extent, numel


class Source(Enum):
    """The origin of the seconds of a schedule."""

    MODEL = "model"
    MEASURED = "measured"
    USER = "user"


@frozen
class StagePlan:
    """A stage: one traversal of the points of a tile, between reductions.

    Attributes:
        reduces: the reductions that accumulate in this stage. These and the other values are given
            by their positions in the post-order of the group's graph.
        staged: the values that are stored for later stages.
        stores: the positions of the outputs that are stored.
        row_values: the values that are computed once per row, after the traversal.
    """

    reduces: tuple[int, ...] = ()
    staged: tuple[int, ...] = ()
    stores: tuple[int, ...] = ()
    row_values: tuple[int, ...] = ()


@frozen
class StagedValue:
    """The storage of a value between stages.

    Attributes:
        value: the position of the value in the post-order of the group's graph.
        place: GLOBAL for the buffer of an output, SHARED for scratch memory, LANES for registers,
            which only short rows have.
        output: the position of the output with ``place`` GLOBAL, else -1.
    """

    value: int
    place: Place
    output: int = -1


@frozen
class TileNest:
    """One loop nest of a multi-nest kernel.

    Attributes:
        nodes: the operators, by their positions in the post-order of the group's graph.
        results: the nodes that other nests or the caller read.
        schedule: the schedule of the nest; None for a matrix product.
    """

    nodes: tuple[int, ...]
    results: tuple[int, ...]
    schedule: Schedule | None


@frozen
class MultiNest:
    """The loop nests of a kernel that run one after another in each tile.

    Attributes:
        nests: the nests, in the order of execution.
        layouts: a tile's part of each value that other nests or the caller read, by
            the position of the value. Outputs that follow from a moved value have none.
        tiles: the number of tiles.
        scratch: the bytes of scratch memory of one tile.
    """

    nests: tuple[TileNest, ...]
    layouts: tuple[tuple[int, TileLayout], ...]
    tiles: Extent
    scratch: Extent = field(default=0, eq=False)

    def layout(self, value: int) -> TileLayout | None:
        """Return a tile's part of a value; None if it follows from another value."""
        return dict(self.layouts).get(value)


@frozen
class Schedule:
    """The schedule of one group.

    Attributes:
        composition: how the points of a tile are mapped to vectors and loops.
        axes: the iteration domain; empty if the schedule has parts or several nests.
        split: the tile map of the domain.
        width: the points of a tile along the vector axis; None for the whole axis.
        stages: the stages of a tile, in order.
        staged: the storage of the values that one stage stores for another.
        stream: the positions of the outputs that are stored past the caches.
        seconds: the work of the kernel on one thread by the cost model, 0 if sizes are unknown.
        source: the origin of the decision.
        multi_nest: the loop nests of a MULTI_NEST schedule.
        parts: the schedules of the parts of a PACKED or PHASED schedule.
        shared_tiles: the numbers of the parts of a PACKED schedule, in groups that share a tile.
        phase_outputs: for each phase of a PHASED schedule the positions of its outputs.
        measured: the measured seconds if ``source`` is MEASURED, 0 if sizes are unknown.
        nest: the schedule of the loop nest on a GPU, if the rows fit in registers.
        pack: the schedule of the loop nests of the parts in one launch on a GPU.
        block: the schedule of the nests of a MULTI_NEST schedule on a GPU.
        is_joined: whether the last block of a PHASED schedule on a GPU runs the last phase, see
            `passkit.planner.joins`.
        phase_launch: the threads of a block of any other PHASED schedule on a GPU.
        rule: the name of the schedule rule that was applied; empty without one.
        no_nest: the reason why a GPU has no loop nest for the group.
        refusal: the reason why the schedule of a user's rule is not legal.
    """

    composition: Composition
    axes: tuple[Axis, ...]
    split: Split
    width: Extent | None
    stages: tuple[StagePlan, ...]
    staged: tuple[StagedValue, ...]
    stream: tuple[int, ...] = ()
    seconds: float = 0.0
    source: Source = Source.MODEL
    multi_nest: MultiNest | None = None
    parts: tuple[Schedule, ...] = ()
    shared_tiles: tuple[tuple[int, ...], ...] = ()
    phase_outputs: tuple[tuple[int, ...], ...] = ()
    measured: float = field(default=0.0, eq=False)
    nest: NestSchedule | None = None
    pack: PackSchedule | None = None
    block: BlockSchedule | None = None
    is_joined: bool = False
    phase_launch: LaunchShape | None = None
    rule: str = field(default="", eq=False)
    no_nest: Diagnostic | None = field(default=None, eq=False)
    refusal: Diagnostic | None = field(default=None, eq=False)

    @property
    def launch(self) -> LaunchShape | None:
        """The threads of a block of a GPU; None if they have no points of the nests yet."""
        own = self.nest or self.pack or self.block
        if own is not None:
            return own.launch
        return self.parts[0].launch if self.is_joined else self.phase_launch

    @property
    def is_mapped(self) -> bool:
        """Whether threads of a GPU have the points of all its nests: it is lowered to loop IR."""
        return self.launch is not None

    @property
    def domain(self) -> Domain:
        """The iteration domain."""
        return Domain(self.axes)

    def __str__(self) -> str:
        if self.parts:
            return f"{self.composition.value}[{'; '.join(map(str, self.parts))}]"
        if self.multi_nest is not None:
            count = len(self.multi_nest.nests)
            return f"{self.composition.value} of {count} parts, split {self.split}"
        axes = ", ".join(
            f"{a.var.name}<{a.extent}{' reduced' if a.reduced else ''}" for a in self.axes
        )
        return f"{self.composition.value}[{axes}] split {self.split}, {len(self.stages)} stage(s)"


def has_one_tile(schedule: Schedule) -> bool:
    """Return whether a single-nest kernel has one tile, for any length of its rows."""
    rows = numel(a.extent for a in schedule.axes if not a.reduced)
    chunk = schedule.split.chunk
    if not isinstance(rows, int):
        return False
    return rows <= (chunk if isinstance(chunk, int) else 1)  # a tile has a row at least
