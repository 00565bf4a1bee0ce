"""Schedules: the stages a group's kernel runs in, obeyed by CodeGen."""

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
    """Where the seconds of a schedule come from."""

    MODEL = "model"
    MEASURED = "measured"
    USER = "user"


@frozen
class StagePlan:
    """One pass over the points of a tile: what it folds, keeps for later stages, and stores.

    Numbers are positions in the group graph's post-order; ``stores`` are output positions;
    ``rows`` are row values computed when the pass is over.
    """

    folds: tuple[int, ...] = ()
    staged: tuple[int, ...] = ()
    stores: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()


@frozen
class StagedValue:
    """Where a value stays between stages.

    An output's buffer (GLOBAL), scratch (SHARED), or, of a short row, registers (LANES).
    """

    value: int
    place: Place
    output: int = -1


@frozen
class TileNest:
    """A part of a stitched kernel: what it computes, what of that leaves it, and how it runs.

    Numbers are positions in the group graph's post-order. A product of matrices has no schedule.
    """

    nodes: tuple[int, ...]
    results: tuple[int, ...]
    schedule: Schedule | None


@frozen
class MultiNest:
    """The parts of a stitched kernel, in order, and how its ``tiles`` share out their values.

    ``regions`` are of all values that a part leaves for others or for the caller, but for results
    that lie where what they move falls. A tile has so many bytes of ``scratch``.
    """

    parts: tuple[TileNest, ...]
    regions: tuple[tuple[int, Region], ...]
    tiles: Extent
    scratch: Extent = field(default=0, eq=False)

    def region(self, value: int) -> Region | None:
        """What a tile owns of a value; None where that follows from another one."""
        return dict(self.regions).get(value)


@frozen
class Schedule:
    """How one group runs: axes, the split over tiles, and the stages.

    ``width`` is the number of lanes-axis points of a tile, None for the whole axis. ``seconds``
    is one thread's time for the whole group at its known sizes, 0 when they are unknown. Outputs in
    ``stream`` are too large to be worth a place in the caches. A stitched kernel has its stages in
    the parts of its ``stitching``. A PACKED one has a schedule for each of its ``parts``, and the
    numbers of those that have tiles of their own, or ``share`` one. A PHASED one has one for each
    phase, and the numbers of the outputs that each ``makes``. ``measured`` is what a run took where
    that is the ``source``, 0 for unknown sizes. ``nest`` is how a GPU runs it, if it is one loop
    nest whose rows fit in registers, ``pack`` how it runs the nests of the parts, ``block`` how it
    runs the parts of a stitched one: all are lowered through loop IR. ``rule`` is the name of the
    rule that made it, ``no_nest`` the reason if a GPU has none, ``refusal`` the reason if a rule of
    the user made a schedule that is not legal.
    """

    composition: Composition
    axes: tuple[Axis, ...]
    split: Split
    width: Extent | None
    stages: tuple[StagePlan, ...]
    kept: tuple[StagedValue, ...]
    stream: tuple[int, ...] = ()
    seconds: float = 0.0
    source: Source = Source.MODEL
    multi_nest: MultiNest | None = None
    label: str = field(default="", eq=False)
    parts: tuple[Schedule, ...] = ()
    share: tuple[tuple[int, ...], ...] = ()
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
        """Whether its phases are loop nests of one launch, the last of which the last block runs.

        See `passkit.planner.joins`.
        """
        return bool(self.phase_outputs) and all(p.nest is not None for p in self.parts)

    @property
    def domain(self) -> Domain:
        """The iteration space."""
        return Domain(self.axes)

    def __str__(self) -> str:
        if self.parts:
            return f"{self.composition.value}[{'; '.join(map(str, self.parts))}]"
        if self.multi_nest is not None:
            parts = len(self.multi_nest.parts)
            return f"{self.composition.value} of {parts} parts, split {self.split}"
        axes = ", ".join(
            f"{a.var.name}<{a.extent}{' reduced' if a.reduced else ''}" for a in self.axes
        )
        return f"{self.composition.value}[{axes}] split {self.split}, {len(self.stages)} stage(s)"


def reduction_depths(info: DomainInfo) -> dict[Node, int]:
    """For each node the number of passes that must be over before its value can be computed."""
    level: dict[Node, int] = {}
    for node in info.graph.nodes:
        if is_leaf(node):
            level[node] = 0
        else:
            before = max((level[e.node] for e in node.inputs), default=0)
            level[node] = before + (reduce_of(node) is not None)
    return level


def split_stages(
    info: DomainInfo, level: dict[Node, int], short: Place | None, without: Collection[Node] = ()
) -> tuple[tuple[StagePlan, ...], tuple[StagedValue, ...]]:
    """The passes over the points of a layout, and what is kept between them.

    Nothing of ``without`` is: it is computed again where it is read.
    """
    graph, nodes = info.graph, info.graph.nodes
    number = {n: k for k, n in enumerate(nodes)}
    full = [n for n, r in info.roles.items() if ValueKind.FULL in r and reduce_of(n) is None]
    reductions = [n for n in nodes if reduce_of(n) is not None]
    outputs = list(enumerate(graph.outputs))
    last = max(
        [level[n.inputs[0].node] for n in reductions]
        + [level[e.node] for _, e in outputs if ValueKind.FULL in info.roles[e.node]]
        + [0]
    )
    keep: dict[Node, int] = {}  # value -> the last stage that reads it back
    repeated = 0 if short is Place.LANES else RECOMPUTE  # a value in registers is read at no cost
    for s in range(last + 1):
        roots = [n.inputs[0].node for n in reductions if level[n.inputs[0].node] == s]
        roots += [e.node for _, e in outputs if e.node in full and level[e.node] == s]
        last_readers = {**keep, **dict.fromkeys(without, -1)}
        for value in _crossing(info, level, roots, s, last_readers, repeated):
            keep[value] = s
    plans = []
    for s in range(last + 1):
        rows = [
            number[n]
            for n in nodes
            if ValueKind.ROW in info.roles.get(n, ValueKind.INLINE)
            and n not in full
            and level[n] == s + 1
        ]
        plans.append(
            StagePlan(
                folds=tuple(number[n] for n in reductions if level[n.inputs[0].node] == s),
                staged=tuple(sorted(number[n] for n in keep if level[n] == s)),
                stores=tuple(k for k, e in outputs if e.node in full and level[e.node] == s),
                rows=tuple(rows),
            )
        )
    early = tuple(
        number[n]
        for n in nodes
        if ValueKind.ROW in info.roles.get(n, ValueKind.INLINE) and n not in full and level[n] == 0
    )
    stages = (StagePlan(rows=early), *plans) if early else tuple(plans)
    if short is not None:
        return stages, tuple(StagedValue(number[n], short) for n in keep)
    return stages, _places(info, level, keep, number)


def _crossing(
    info: DomainInfo,
    level: dict[Node, int],
    roots: list[Node],
    stage: int,
    keep: dict[Node, int],
    repeated: int,
) -> list[Node]:
    """The values of earlier stages that ``stage`` reads back instead of computing them again.

    ``keep`` has the last stage that reads those kept so far; one of -1 is not to be kept. Others
    are if they take more than ``repeated`` light operations.
    """
    found: list[Node] = []
    seen: set[Node] = set()
    todo = list(roots)
    while todo:
        node = todo.pop()
        if is_leaf(node) or node in seen or reduce_of(node) is not None:
            continue
        seen.add(node)
        if ValueKind.FULL not in info.roles.get(node, ValueKind.INLINE):
            continue
        known = keep.get(node)
        dear = recompute_cost(node, repeated) > repeated if known is None else known >= 0
        if repeated == 0 and not _reads_inputs(node):
            dear = False  # a number for all points, or their indices
        elif repeated and dear and _is_read_in_place(info, node):
            dear = False
        if level[node] < stage and dear:
            found.append(node)
            continue
        todo += [e.node for e in node.inputs]
    return found


def _is_read_in_place(info: DomainInfo, node: Node) -> bool:
    """Return whether a value is an input's element at the point, whatever has moved it there."""
    entry = node.entries[0]
    index = info.index(entry, ValueKind.FULL)
    while not is_leaf(entry.node):
        reads = accesses_of(entry.node, index, info.domain.extents)
        if not reads.plain or len(reads.at) != 1:
            return False
        number, index = reads.at[0]
        entry = entry.node.inputs[number]
    return info.linear(index, known_shape(entry)) == info.domain.full


def _reads_inputs(node: Node) -> bool:
    """Return whether a value is computed from elements of inputs, after the last reduction."""
    todo, seen = [node], set[Node]()
    while todo:
        n = todo.pop()
        if n.is_variable:
            return True
        if n not in seen and reduce_of(n) is None:
            seen.add(n)
            todo += [e.node for e in n.inputs]
    return False


def recompute_cost(node: Node, limit: int) -> int:
    """Light operations it takes to compute a value again; stops counting above ``limit``."""
    total, todo, seen = 0, [node], set[Node]()
    while todo and total <= limit:
        n = todo.pop()
        if is_leaf(n) or n in seen or reduce_of(n) is not None:
            continue
        seen.add(n)
        total += limit + 1 if is_expensive(n) else 1
        todo += [e.node for e in n.inputs]
    return total


def _places(
    info: DomainInfo, level: dict[Node, int], keep: dict[Node, int], number: dict[Node, int]
) -> tuple[StagedValue, ...]:
    """A kept value lies in an output that is stored after its last reader, else in scratch."""
    taken: set[int] = set()
    out = []
    for node, last in keep.items():
        entry = node.entries[0]
        place = StagedValue(number[node], Place.SHARED)
        for k, o in enumerate(info.graph.outputs):
            same = o.node is node
            fits = (
                o.dtype is entry.dtype
                and ValueKind.FULL in info.roles[o.node]
                and level[o.node] >= last
                and numel(known_shape(o)) == info.domain.size
            )
            if k not in taken and (same or fits):
                taken.add(k)
                place = StagedValue(number[node], Place.GLOBAL, k)
                break
        out.append(place)
    return tuple(out)


def with_stream(plan: Schedule, outputs: tuple[int, ...], target: Target) -> Schedule:
    """The schedule with ``outputs`` streamed. What it kept in them for later moves to scratch.

    A line that is written and soon streamed over would cross the memory bus three times. Where
    scratch has no room for a row, such an output is not streamed.
    """
    row = numel(a.extent for a in plan.domain.reduced) * (plan.width or 1) * 8
    roomy = isinstance(row, int) and row <= target.scratch
    held = {k.output for k in plan.kept if k.place is Place.GLOBAL}
    outputs = outputs if roomy else tuple(k for k in outputs if k not in held)
    kept = tuple(
        StagedValue(k.value, Place.SHARED) if k.place is Place.GLOBAL and k.output in outputs else k
        for k in plan.kept
    )
    return evolve(plan, kept=kept, stream=outputs)


def kept_near(plan: Schedule, graph: Graph, target: Target) -> Schedule:
    """The schedule of a GPU's rows: what they keep in results that it is not moves to scratch.

    What is written to a result goes to the second cache each time, scratch stays in the
    multiprocessor. It has room for all rows of a block, or nothing moves.
    """
    far = [
        k for k in plan.kept
        if k.place is Place.GLOBAL and graph.outputs[k.output].node is not graph.nodes[k.value]
    ]  # fmt: skip
    values = sum(k in far or k.place is Place.SHARED for k in plan.kept)
    row = numel(a.extent for a in plan.domain.reduced) * 8 * values
    rows = max(1, target.block // target.warp)
    if plan.composition is not Composition.ROW or not isinstance(row, int):
        return plan
    if not far or row * rows > target.tiling.near_bytes or row > target.scratch:
        return plan
    return evolve(
        plan, kept=tuple(StagedValue(k.value, Place.SHARED) if k in far else k for k in plan.kept)
    )


def estimate(info: DomainInfo, target: Target, points: int | None = None) -> float:
    """Seconds of one thread by the model: bytes over bandwidth, or operations, the larger.

    They are 0 where sizes are unknown, unless it is said how many ``points`` there may be.
    """
    size = info.domain.size if points is None else points
    if not isinstance(size, int):
        return 0.0
    per_point = 0.0
    for node, role in info.roles.items():
        if role is not ValueKind.ROW:
            each = target.expensive if is_expensive(node) else target.light
            per_point += each * max(1, len(info.uses[node]))
    return max(per_point * size, target.moving(least_bytes(info.graph)))


def least_bytes(graph: Graph) -> int:
    """Bytes that a group must read and write at least, where sizes are known.

    Of an input that is only gathered from, or sliced, that is no more than what is made of it.
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
    """The bytes of a value, 0 where its size is unknown."""
    size = numel(known_shape(entry))
    assert entry.dtype is not None
    return size * entry.dtype.nbytes if isinstance(size, int) else 0


def is_one_tile(plan: Schedule) -> bool:
    """Return whether a kernel of one loop nest has one tile, whatever the length of its rows."""
    rows, chunk = numel(a.extent for a in plan.axes if not a.reduced), plan.split.chunk
    if not isinstance(rows, int):
        return False
    return rows <= (chunk if isinstance(chunk, int) else 1)  # a tile has a row at least
