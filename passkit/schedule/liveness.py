"""Lives: when the arrays of a stitched kernel are written first and read last, part by part.

Parts follow each other, and so do the stages of a part for what all of a tile has. Rows of a part
run side by side: for what they share, all stages of the part are one moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from attrs import define, field, frozen

from passkit.analysis.domain import ValueKind
from passkit.analysis.group import Group
from passkit.analysis.slots import Need, TileArray, Work
from passkit.analysis.tile_layout import TileLayout
from passkit.graph.attribute_calls import reduce_of, scan_of
from passkit.graph.graph import Graph
from passkit.graph.node import Node, is_leaf
from passkit.graph.quotient import live_ins
from passkit.schedule.nest_info import NestInfo, has_rows
from passkit.schedule.schedule import MultiNest, Schedule, TileNest
from passkit.schedule.tile_buffers import BufferContent, TileBuffer
from passkit.schedule.tiling import Composition
from passkit.schedule.work_span import spans, work_of
from passkit.values.size import Extent

T = TypeVar("T")
Way = TileLayout | str
"""How places in an array are found: by a value's layout, or by the point or the row of a nest."""
POINT, ROW = "point", "row"
TILE_ROOM, ROW_ROOM = range(2)
"""What all of a tile has, and what each of its rows has."""


@frozen(eq=False)
class TilePart:
    """A part of a tile, if it has a space of its own, and the arrays that it has for itself."""

    plan: TileNest
    laid: NestInfo | None
    own: tuple[TileBuffer, ...]


def exchanged_values(graph: Graph, multi_nest: MultiNest) -> list[tuple[int, TileLayout]]:
    """The values that parts leave for others in scratch, and what a tile owns of each."""
    nodes = graph.nodes
    read = {e.node for p in multi_nest.nests for e in live_ins(graph, [nodes[k] for k in p.nodes])}
    return [(k, layout) for k, layout in multi_nest.layouts if nodes[k] in read]


@define(eq=False)
class _Life:
    """What is known of an array: which part writes it, in which of its stages, and who reads it.

    ``reads`` has for each part the last of its moments that does. Parts that read it elsewhere than
    at the point, or row, of what they compute are ``apart``. It is of a row or a tile (``room``).
    What is not ``pointwise`` is written for other points than those it is made of. ``kept`` ones
    can be computed again, if nothing speaks against it: ``fed`` ones are read by products.
    """

    node: Node
    nbytes: Extent
    itemsize: int
    way: Way = POINT
    part: int = 0
    written: int = 0
    room: int = TILE_ROOM
    pointwise: bool = True
    kept: bool = True
    fed: bool = False
    reads: dict[int, int] = field(factory=dict)
    apart: set[int] = field(factory=set)

    def read(self, part: int, moment: int, here: bool) -> None:
        """Note that a part reads it."""
        self.reads[part] = max(self.reads.get(part, 0), moment)
        if not here:
            self.apart.add(part)


def arrays_of(
    group: Group, multi_nest: MultiNest, parts: Sequence[TilePart]
) -> tuple[list[TileArray], list[tuple[int | None, int]]]:
    """The arrays of a tile as `passkit.analysis.slots` sees them, and which ones those are.

    Those that parts leave for others have no part, and their positions among them; others have the
    part whose own they are.
    """
    return _Tile(group, multi_nest, parts).arrays()


class _Course:
    """What a part with a space of its own does in its moments: passes, and row values behind."""

    def __init__(self, laid: NestInfo, schedule: Schedule) -> None:
        self.info, self.schedule = laid.info, schedule
        self.graph = laid.group.graph
        self.nodes = self.graph.nodes
        self.count = 2 * len(schedule.stages)
        self.side_by_side = has_rows(laid.info.domain, schedule, laid.domain_tile)
        lane = laid.info.domain.axes[-1]
        self.by_lane = lane.extent != 1 and lane not in laid.domain_tile.fixed

    def reads(self) -> Iterator[tuple[int, Node]]:
        """Inputs, kept values, folds and row values that the moments may read."""
        kept: set[Node] = set()
        for k, plan in enumerate(self.schedule.stages):
            roots = [self.nodes[j].inputs[0].node for j in plan.reduces]
            roots += [self.nodes[j] for j in plan.staged]
            roots += [self.graph.outputs[j].node for j in plan.stores]
            yield from ((2 * k, n) for n in self._met(roots, kept))
            kept |= {self.nodes[j] for j in plan.staged}
            rows = [self.nodes[j] for j in plan.row_values]
            yield from ((2 * k + 1, n) for n in self._met(rows, kept))

    def _met(self, roots: Iterable[Node], kept: set[Node]) -> list[Node]:
        """What is read to compute some values, through all that is computed on the way."""
        found: list[Node] = []
        seen: set[Node] = set()
        todo = list(roots)
        while todo:
            n = todo.pop()
            if n in seen or (is_leaf(n) and not n.is_variable):
                continue
            seen.add(n)
            role = self.info.roles.get(n, ValueKind.INLINE)
            if n.is_variable or reduce_of(n) is not None or n in kept or ValueKind.ROW in role:
                found.append(n)
            if reduce_of(n) is None and not (n in kept and role is ValueKind.FULL):
                todo += [e.node for e in n.inputs]
        return found

    def written(self, number: int, output: int | None = None) -> int:
        """The moment in which a value is stored first, as a result if it is one."""
        for k, plan in enumerate(self.schedule.stages):
            if number in plan.staged or (output is not None and output in plan.stores):
                return 2 * k
            if number in plan.row_values:
                return 2 * k + 1
        return 0

    def total(self, number: int) -> int:
        """The moment in which a fold is over; that of a scan is the first."""
        found = (2 * k for k, p in enumerate(self.schedule.stages) if number in p.reduces)
        return next(found, 0)

    def is_here(self, node: Node) -> bool:
        """Whether an input is read at the point that is computed, by its lane, and nowhere else."""
        full = self.info.domain.full
        return self.by_lane and all(at == full for at in self.info.input_accesses.get(node, ()))

    def is_full(self, node: Node) -> bool:
        """Whether a value has an element for each point."""
        return reduce_of(node) is None and ValueKind.FULL in self.info.roles[node]


class _Tile:
    def __init__(self, group: Group, multi_nest: MultiNest, parts: Sequence[TilePart]) -> None:
        self.graph = group.graph
        self.nodes = self.graph.nodes
        self.named = {name: n for n, name in self.graph.names.items()}
        self.passed: dict[Node, _Life] = {}
        self.keys: dict[_Life, tuple[int | None, int]] = {}
        for k, (number, layout) in enumerate(exchanged_values(self.graph, multi_nest)):
            node = self.nodes[number]
            itemsize = _itemsize(node)
            life = _Life(node, layout.size * itemsize, itemsize, layout)
            self.passed[node] = life
            self.keys[life] = None, k
        self.counts: list[tuple[int, bool]] = []
        for k, part in enumerate(parts):
            if part.laid is None:
                self._product(k, part.plan)
            else:
                self._part(k, part, part.laid)

    def _product(self, k: int, plan: TileNest) -> None:
        """A product of matrices: it reads any element for any other."""
        self.counts.append((1, False))
        (number,) = plan.nodes
        for e in self.nodes[number].inputs:
            for life in self._behind(e.node, self.passed):
                life.read(k, 0, False)
                life.fed = True
        for number in plan.results:
            if self.nodes[number] in self.passed:
                self.passed[self.nodes[number]].part = k

    def _part(self, k: int, part: TilePart, laid: NestInfo) -> None:
        assert part.plan.schedule is not None
        schedule, graph = part.plan.schedule, laid.group.graph
        course = _Course(laid, schedule)
        self.counts.append((course.count, course.side_by_side))
        origin = {n: self.named[name] for n, name in laid.group.origin.items()}
        sources = {n: e.node for n, e in zip(graph.inputs, laid.feeds, strict=True)}
        met: dict[Node, list[_Life]] = {
            n: [self.passed[s]] for n, s in sources.items() if s in self.passed
        }
        for j, entry in enumerate(graph.outputs):
            life = self.passed.get(origin[entry.node])
            if life is not None:
                life.part = k
                life.written = course.written(graph.positions[entry.node], j)
                life.pointwise = course.is_full(entry.node)
                met.setdefault(entry.node, []).append(life)
        for j, scratch in enumerate(part.own):
            node = graph.nodes[scratch.number]
            life = self._own(course, scratch, origin[node])
            life.part = k
            if scratch.like is not None:
                life.way = self.passed[origin[graph.outputs[scratch.like].node]].way
            elif course.side_by_side:
                life.room = ROW_ROOM
            self.keys[life] = k, j
            met.setdefault(node, []).append(life)
        for moment, node in course.reads():
            here = not node.is_variable or course.is_here(node)
            for life in met.get(node, ()):
                life.read(k, moment, here)

    def _own(self, course: _Course, scratch: TileBuffer, node: Node) -> _Life:
        """An array that a part has for itself."""
        columns = course.schedule.composition is Composition.COLUMN
        total = scratch.holds is BufferContent.TOTAL
        # What folds in memory holds what is computed, and that has 32 bits at least.
        itemsize = max(scratch.dtype.nbytes, 4) if total and columns else scratch.dtype.nbytes
        life = _Life(node, scratch.extent * itemsize, itemsize, kept=False)
        if total:
            life.written = course.total(scratch.number)
            # It begins with an identity, in front of what is read meanwhile.
            life.way, life.pointwise = ROW, not columns
            if scan_of(course.nodes[scratch.number]) is not None:
                life.read(len(self.counts) - 1, course.count - 1, False)
        else:
            life.written = course.written(scratch.number)
            kept = any(k.value == scratch.number for k in course.schedule.staged)
            life.way = POINT if kept else ROW
            life.kept = kept
        return life

    def arrays(self) -> tuple[list[TileArray], list[tuple[int | None, int]]]:
        """All of them, by when they are written."""
        begin, base = 0, list[int]()
        for count, _ in self.counts:
            base.append(begin)
            begin += count
        position, span = self.graph.positions, spans(self.graph)

        def born(life: _Life) -> int:
            return base[life.part] + (0 if self._at_once(life, life.part) else life.written)

        def dies(life: _Life) -> int:
            last = [
                base[k] + (self.counts[k][0] - 1 if self._at_once(life, k) else moment)
                for k, moment in life.reads.items()
            ]
            return max([born(life), *last])

        lives = sorted(self.keys, key=lambda x: (born(x), position[x.node]))
        number = {life: k for k, life in enumerate(lives)}
        above, roots = self._flow(lives)
        arrays = [
            TileArray(
                value=position[life.node],
                nbytes=life.nbytes,
                born=born(life),
                dies=dies(life),
                over=frozenset(number[p] for p in lives if _may_lie_over(life, p)),
                operands=tuple(number[p] for p in above[life] if number[p] < number[life]),
                root=life in roots,
                need=_need(life),
                span=span[life.node],
                room=life.room,
            )
            for life in lives
        ]
        return arrays, [self.keys[life] for life in lives]

    def _at_once(self, life: _Life, part: int) -> bool:
        """Whether all moments of a part are one for an array."""
        return self.counts[part][1] and life.room == TILE_ROOM

    def _flow(self, lives: Sequence[_Life]) -> tuple[dict[_Life, list[_Life]], set[_Life]]:
        """The arrays that the value of each is made of, and those that results are made of."""
        above: dict[_Life, list[_Life]] = {}
        roots: set[_Life] = set()
        for room in (TILE_ROOM, ROW_ROOM):
            of: dict[Node, list[_Life]] = {}
            for life in lives:
                if life.room == room:
                    of.setdefault(life.node, []).append(life)
            for life in lives:
                if life.room == room:
                    inputs = dict.fromkeys(e.node for e in life.node.inputs)
                    found = (p for n in inputs for ps in self._behind(n, of) for p in ps)
                    above[life] = list(dict.fromkeys(found))
            outputs = dict.fromkeys(e.node for e in self.graph.outputs)
            roots.update(p for n in outputs for ps in self._behind(n, of) for p in ps)
        return above, roots

    def _behind(self, node: Node, of: Mapping[Node, T]) -> list[T]:
        """What the nearest nodes that have something have, back from a node."""
        found: list[T] = []
        seen: set[Node] = set()
        todo = [node]
        while todo:
            n = todo.pop()
            if n in seen or is_leaf(n):
                continue
            seen.add(n)
            if n in of:
                found.append(of[n])
            else:
                todo += [e.node for e in n.inputs]
        return found


def _itemsize(node: Node) -> int:
    dtype = node.entries[0].dtype
    assert dtype is not None
    return dtype.nbytes


def _may_lie_over(v: _Life, p: _Life) -> bool:
    """Whether an array may be written where another one still is.

    Its part must be the last to read that, no later than it writes, and where it writes: the same
    bytes for the same point or row.
    """
    k = v.part
    if v is p or v.room != p.room or not v.pointwise:
        return False
    if k in p.apart or max(p.reads, default=-1) != k or p.reads[k] > v.written:
        return False
    if p.part == k and p.written >= v.written:
        return False
    if isinstance(v.way, TileLayout) and isinstance(p.way, TileLayout):
        return v.itemsize == p.itemsize and v.way.same_places(p.way)
    return v.itemsize == p.itemsize and v.way == p.way and v.part == p.part


def _need(life: _Life) -> Need:
    """Why a value has an array: folds must, and what a product reads lies where it reads it."""
    work = work_of(life.node)
    if work in (Work.REDUCE, Work.DOT) or not life.kept:
        return Need.MANDATORY
    if life.fed:
        return Need.DOT_OPERAND if work is Work.EXPENSIVE else Need.MANDATORY
    return Need.EXPENSIVE_SHARED if work is Work.EXPENSIVE else Need.LIGHT_SHARED
