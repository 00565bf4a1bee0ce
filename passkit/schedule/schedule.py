"""Schedules: the tiles, stages and storage of the values of one kernel."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from attrs import evolve, field, frozen

from passkit.analysis.accesses import accesses_of
from passkit.analysis.domain import Axis, Domain, ValueKind
from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.recompute import RECOMPUTE, is_expensive
from passkit.analysis.regions import Region
from passkit.analysis.tilemap import Split
from passkit.ast.stage import Place
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.graph.op import FElement
from passkit.schedule.block import BlockSchedule
from passkit.schedule.nest import NestSchedule
from passkit.schedule.pack import PackSchedule
from passkit.schedule.tiling import Composition
from passkit.target import Target
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
        regions: the region that a tile has of each value that other nests or the caller read, by
            the position of the value. Outputs that follow from a moved value have none.
        tiles: the number of tiles.
        scratch: the bytes of scratch memory of one tile.
    """

    nests: tuple[TileNest, ...]
    regions: tuple[tuple[int, Region], ...]
    tiles: Extent
    scratch: Extent = field(default=0, eq=False)

    def region(self, value: int) -> Region | None:
        """Return the region that a tile has of ``value``; None if it follows from another value."""
        return dict(self.regions).get(value)


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
        label: a name for messages.
        parts: the schedules of the parts of a PACKED or PHASED schedule.
        shared_tiles: the numbers of the parts of a PACKED schedule, in groups that share a tile.
        phase_outputs: for each phase of a PHASED schedule the positions of its outputs.
        measured: the measured seconds if ``source`` is MEASURED, 0 if sizes are unknown.
        nest: the schedule of the loop nest on a GPU, if the rows fit in registers.
        pack: the schedule of the loop nests of the parts in one launch on a GPU.
        block: the schedule of the nests of a MULTI_NEST schedule on a GPU. This, ``nest`` and
            ``pack`` are lowered through loop IR.
        rule: the name of the schedule rule that was applied.
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
    label: str = field(default="", eq=False)
    parts: tuple[Schedule, ...] = ()
    shared_tiles: tuple[tuple[int, ...], ...] = ()
    phase_outputs: tuple[tuple[int, ...], ...] = ()
    measured: float = field(default=0.0, eq=False)
    nest: NestSchedule | None = None
    pack: PackSchedule | None = None
    block: BlockSchedule | None = None
    rule: str = field(default="", eq=False)
    no_nest: Diagnostic | None = field(default=None, eq=False)
    refusal: Diagnostic | None = field(default=None, eq=False)

    @property
    def is_joined(self) -> bool:
        """Whether the phases run in one launch, in which the last block runs the last phase.

        See `passkit.planner.joins`.
        """
        return bool(self.phase_outputs) and all(p.nest is not None for p in self.parts)

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


def reduction_depths(info: DomainInfo) -> dict[Node, int]:
    """Return for each node the number of reductions on the longest path that ends in it."""
    depths: dict[Node, int] = {}
    for node in info.graph.nodes:
        if is_leaf(node):
            depths[node] = 0
        else:
            before = max((depths[e.node] for e in node.inputs), default=0)
            depths[node] = before + (reduce_of(node) is not None)
    return depths


def split_stages(
    info: DomainInfo,
    depths: dict[Node, int],
    place: Place | None,
    recomputed: Collection[Node] = (),
) -> tuple[tuple[StagePlan, ...], tuple[StagedValue, ...]]:
    """Return the stages of a single-nest kernel, and the storage of values between stages.

    Stage k computes the values behind k reductions. A value of an earlier stage is stored if it is
    expensive to compute again.

    Args:
        info: the iteration domain of the group.
        depths: the result of `reduction_depths` for ``info``.
        place: the storage of all staged values; None chooses outputs where they fit, else SHARED.
        recomputed: values that are computed again where they are read, in any case.
    """
    graph, nodes = info.graph, info.graph.nodes
    number = {n: k for k, n in enumerate(nodes)}
    reductions = [n for n in nodes if reduce_of(n) is not None]
    full = {n for n, r in info.roles.items() if ValueKind.FULL in r} - {*reductions}
    outputs = list(enumerate(graph.outputs))
    last_stage = max(
        [depths[n.inputs[0].node] for n in reductions]
        + [depths[e.node] for _, e in outputs if ValueKind.FULL in info.roles[e.node]]
        + [0]
    )
    last_reader: dict[Node, int] = {}
    cheap = 0 if place is Place.LANES else RECOMPUTE  # registers are read at no cost
    for s in range(last_stage + 1):
        roots = [n.inputs[0].node for n in reductions if depths[n.inputs[0].node] == s]
        roots += [e.node for _, e in outputs if e.node in full and depths[e.node] == s]
        decided = {**last_reader, **dict.fromkeys(recomputed, -1)}
        for value in _values_to_stage(info, depths, roots, s, decided, cheap):
            last_reader[value] = s

    def row_values(depth: int) -> tuple[int, ...]:
        """Return the values per row behind so many reductions."""
        return tuple(
            number[n]
            for n in nodes
            if ValueKind.ROW in info.roles.get(n, ValueKind.INLINE)
            and n not in full
            and depths[n] == depth
        )

    stages = [
        StagePlan(
            reduces=tuple(number[n] for n in reductions if depths[n.inputs[0].node] == s),
            staged=tuple(sorted(number[n] for n in last_reader if depths[n] == s)),
            stores=tuple(k for k, e in outputs if e.node in full and depths[e.node] == s),
            row_values=row_values(s + 1),
        )
        for s in range(last_stage + 1)
    ]
    before = row_values(0)
    if before:
        stages.insert(0, StagePlan(row_values=before))
    if place is not None:
        return tuple(stages), tuple(StagedValue(number[n], place) for n in last_reader)
    return tuple(stages), _storage_of(info, depths, last_reader, number)


def _values_to_stage(
    info: DomainInfo,
    depths: dict[Node, int],
    roots: list[Node],
    stage: int,
    last_reader: dict[Node, int],
    cheap: int,
) -> list[Node]:
    """Return the values of earlier stages that ``stage`` loads instead of computing them again.

    Args:
        info: the iteration domain of the group.
        depths: the stage of each value.
        roots: the values that ``stage`` reduces or stores.
        stage: the number of the stage.
        last_reader: the last stage that loads a value that is staged already; -1 for a value that
            must not be staged.
        cheap: the number of light operations up to which a value is computed again.
    """
    loaded: list[Node] = []
    seen: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if is_leaf(node) or node in seen or reduce_of(node) is not None:
            continue
        seen.add(node)
        if ValueKind.FULL not in info.roles.get(node, ValueKind.INLINE):
            continue
        reader = last_reader.get(node)
        is_staged = recompute_cost(node, cheap) > cheap if reader is None else reader >= 0
        if cheap == 0 and not _reads_inputs(node):
            is_staged = False  # a constant, or a function of the indices
        elif cheap and is_staged and _is_input_at_point(info, node):
            is_staged = False
        if depths[node] < stage and is_staged:
            loaded.append(node)
            continue
        stack += [e.node for e in node.inputs]
    return loaded


def _is_input_at_point(info: DomainInfo, node: Node) -> bool:
    """Return whether a value is an element of an input at the point, after any index changes."""
    entry = node.entries[0]
    index = info.index(entry, ValueKind.FULL)
    while not is_leaf(entry.node):
        accesses = accesses_of(entry.node, index, info.domain.extents)
        if not accesses.plain or len(accesses.at) != 1:
            return False
        number, index = accesses.at[0]
        entry = entry.node.inputs[number]
    return info.linear(index, known_shape(entry)) == info.domain.full


def _reads_inputs(node: Node) -> bool:
    """Return whether a value is computed from elements of inputs, after the last reduction."""
    stack, seen = [node], set[Node]()
    while stack:
        n = stack.pop()
        if n.is_variable:
            return True
        if n not in seen and reduce_of(n) is None:
            seen.add(n)
            stack += [e.node for e in n.inputs]
    return False


def recompute_cost(node: Node, limit: int) -> int:
    """Return the number of light operations that compute a value again after the last reduction.

    An expensive operation counts ``limit`` + 1. Counting stops above ``limit``.
    """
    total, stack, seen = 0, [node], set[Node]()
    while stack and total <= limit:
        n = stack.pop()
        if is_leaf(n) or n in seen or reduce_of(n) is not None:
            continue
        seen.add(n)
        total += limit + 1 if is_expensive(n) else 1
        stack += [e.node for e in n.inputs]
    return total


def _storage_of(
    info: DomainInfo,
    depths: dict[Node, int],
    last_reader: dict[Node, int],
    number: dict[Node, int],
) -> tuple[StagedValue, ...]:
    """Return the storage of staged values.

    A value is stored in the buffer of an output that no stage before the last reader of the value
    stores, else in scratch memory. Each output is used once.

    Args:
        info: the iteration domain of the group.
        depths: the stage of each value.
        last_reader: the staged values, and for each the last stage that loads it.
        number: the position of each node.
    """
    used: set[int] = set()
    storage = []
    for node, last in last_reader.items():
        entry = node.entries[0]
        staged = StagedValue(number[node], Place.SHARED)
        for k, output in enumerate(info.graph.outputs):
            fits = output.node is node or (
                output.dtype is entry.dtype
                and ValueKind.FULL in info.roles[output.node]
                and depths[output.node] >= last
                and numel(known_shape(output)) == info.domain.size
            )
            if k not in used and fits:
                used.add(k)
                staged = StagedValue(number[node], Place.GLOBAL, k)
                break
        storage.append(staged)
    return tuple(storage)


def stream_outputs(schedule: Schedule, outputs: tuple[int, ...], target: Target) -> Schedule:
    """Return a schedule that stores ``outputs`` past the caches.

    Values that were staged in these outputs move to scratch memory: a cache line that is written,
    loaded and then streamed would cross the memory bus three times. If scratch memory has no room
    for a row, outputs with staged values are not streamed.
    """
    row_nbytes = numel(a.extent for a in schedule.domain.reduced) * (schedule.width or 1) * 8
    fits = isinstance(row_nbytes, int) and row_nbytes <= target.scratch
    with_values = {k.output for k in schedule.staged if k.place is Place.GLOBAL}
    streamed = outputs if fits else tuple(k for k in outputs if k not in with_values)
    staged = tuple(
        StagedValue(k.value, Place.SHARED)
        if k.place is Place.GLOBAL and k.output in streamed
        else k
        for k in schedule.staged
    )
    return evolve(schedule, staged=staged, stream=streamed)


def stage_rows_in_shared(schedule: Schedule, graph: Graph, target: Target) -> Schedule:
    """Return a row schedule of a GPU that stages values in SHARED instead of other outputs.

    A value in an output's buffer goes to the second-level cache, SHARED stays in the
    multiprocessor. The schedule stays as it is if the rows of a block have no room there.
    """

    def is_in_other_output(k: StagedValue) -> bool:
        """Return whether a value lies in the buffer of an output that it is not."""
        is_global = k.place is Place.GLOBAL
        return is_global and graph.outputs[k.output].node is not graph.nodes[k.value]

    moved = [k for k in schedule.staged if is_in_other_output(k)]
    count = sum(k in moved or k.place is Place.SHARED for k in schedule.staged)
    row_nbytes = numel(a.extent for a in schedule.domain.reduced) * 8 * count
    rows = max(1, target.block // target.warp)
    if schedule.composition is not Composition.ROW or not isinstance(row_nbytes, int) or not moved:
        return schedule
    if row_nbytes * rows > target.tiling.near_bytes or row_nbytes > target.scratch:
        return schedule
    return evolve(
        schedule,
        staged=tuple(
            StagedValue(k.value, Place.SHARED) if k in moved else k for k in schedule.staged
        ),
    )


def roofline_seconds(info: DomainInfo, target: Target, points: int | None = None) -> float:
    """Return the seconds of one thread by the roofline model.

    This is the maximum of the time of all operations and of the time to move the least bytes.

    Args:
        info: the iteration domain of the group.
        target: the machine.
        points: the points of the domain; None for the size of ``info``.

    Returns: the seconds; 0 if the number of points is unknown.
    """
    size = info.domain.size if points is None else points
    if not isinstance(size, int):
        return 0.0
    per_point = 0.0
    for node, role in info.roles.items():
        if role is not ValueKind.ROW:
            operation = target.expensive if is_expensive(node) else target.light
            per_point += operation * max(1, len(info.uses[node]))
    return max(per_point * size, target.moving(least_bytes(info.graph)))


def least_bytes(graph: Graph) -> int:
    """Return the bytes that a group must read and write; unknown sizes count 0.

    An input that is only sliced or gathered from counts as many bytes as the results of that.
    """
    total = sum(_nbytes(e) for e in graph.outputs)
    for node in graph.inputs:
        entry = node.entries[0]
        users = graph.users.get(entry, ())
        moved = [e for n in users if n.op and FElement.get(n.op.name) for e in n.entries]
        whole = _nbytes(entry)
        total += min(whole, sum(map(_nbytes, moved))) if len(moved) == len(users) > 0 else whole
    return total


def _nbytes(entry: Entry) -> int:
    """Return the bytes of a value, 0 if its size is unknown."""
    size = numel(known_shape(entry))
    assert entry.dtype is not None
    return size * entry.dtype.nbytes if isinstance(size, int) else 0


def has_one_tile(schedule: Schedule) -> bool:
    """Return whether a single-nest kernel has one tile, for any length of its rows."""
    rows = numel(a.extent for a in schedule.axes if not a.reduced)
    chunk = schedule.split.chunk
    if not isinstance(rows, int):
        return False
    return rows <= (chunk if isinstance(chunk, int) else 1)  # a tile has a row at least
