"""Liveness of the arrays in a tile: which program points write each first and read it last.

The nests of a tile run one after another, and so do the stages of a nest. Each stage has two
program points: the traversal of its points, and the row values behind it. Rows of a nest may run in
parallel; for arrays of the whole tile all program points of such a nest are one.
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
from passkit.graph.node import Node, is_leaf, known_dtype
from passkit.graph.quotient import live_ins
from passkit.schedule.nest_info import NestInfo, has_rows
from passkit.schedule.schedule import MultiNest, Schedule, TileNest
from passkit.schedule.tile_buffers import BufferContent, TileBuffer
from passkit.schedule.tiling import Composition
from passkit.schedule.work_span import spans, work_of
from passkit.values.size import Extent

T = TypeVar("T")
Addressing = TileLayout | str
"""How elements are found in an array: by a value's layout, or by the point or row of a nest."""
POINT, ROW = "point", "row"
TILE_ROOM, ROW_ROOM = range(2)
"""The memory of a tile, and that of each of its rows."""


@frozen(eq=False)
class TilePart:
    """A nest of a tile with the arrays that no other nest reads.

    Attributes:
        nest: the nest.
        info: its iteration domain; None for a matrix product.
        own: the arrays.
    """

    nest: TileNest
    info: NestInfo | None
    own: tuple[TileBuffer, ...]


def exchanged_values(graph: Graph, multi_nest: MultiNest) -> list[tuple[int, TileLayout]]:
    """Return the values that nests read from scratch memory, with their layouts."""
    nodes = graph.nodes
    read = {e.node for p in multi_nest.nests for e in live_ins(graph, [nodes[k] for k in p.nodes])}
    return [(k, layout) for k, layout in multi_nest.layouts if nodes[k] in read]


@define(eq=False)
class _LiveRange:
    """The accesses to an array.

    Attributes:
        node: the node whose value it has.
        nbytes: its size.
        itemsize: the bytes of an element.
        addressing: how elements are found.
        nest: the number of the nest that writes it.
        written: the point of that nest that first writes it.
        room: the memory that it lies in.
        is_pointwise: whether an element is computed from elements of the same point or row.
        is_value: whether it has a value, which can be recomputed, not the state of a reduction.
        is_operand: whether a matrix product reads it.
        reads: for each nest that reads it, the last of its points that does.
        elsewhere: the nests that read it at other points or rows than those they compute.
    """

    node: Node
    nbytes: Extent
    itemsize: int
    addressing: Addressing = POINT
    nest: int = 0
    written: int = 0
    room: int = TILE_ROOM
    is_pointwise: bool = True
    is_value: bool = True
    is_operand: bool = False
    reads: dict[int, int] = field(factory=dict)
    elsewhere: set[int] = field(factory=set)

    def read(self, nest: int, point: int, in_place: bool) -> None:
        """Note that a nest reads it, at the point or row that it computes or elsewhere."""
        self.reads[nest] = max(self.reads.get(nest, 0), point)
        if not in_place:
            self.elsewhere.add(nest)

    def may_overlay(self, other: _LiveRange) -> bool:
        """Return whether it may be written over another array that is still live.

        Its nest must be the last that reads the other array, no later than it writes this one, and
        at the element that it writes: both have the same bytes for the same point or row.
        """
        nest = self.nest
        if self is other or self.room != other.room or not self.is_pointwise:
            return False
        if nest in other.elsewhere or max(other.reads, default=-1) != nest:
            return False
        if other.reads[nest] > self.written:
            return False
        if other.nest == nest and other.written >= self.written:
            return False
        if self.itemsize != other.itemsize:
            return False
        if isinstance(self.addressing, TileLayout) and isinstance(other.addressing, TileLayout):
            return self.addressing.same_places(other.addressing)
        return self.addressing == other.addressing and other.nest == nest

    @property
    def need(self) -> Need:
        """Why the value has an array: reductions must, and operands lie where products read."""
        work = work_of(self.node)
        if work in (Work.REDUCE, Work.DOT) or not self.is_value:
            return Need.MANDATORY
        if self.is_operand:
            return Need.DOT_OPERAND if work is Work.EXPENSIVE else Need.MANDATORY
        return Need.EXPENSIVE_SHARED if work is Work.EXPENSIVE else Need.LIGHT_SHARED


ArrayKey = tuple[int | None, int]
"""A value that nests exchange: None and its position among these. Otherwise the number of the nest
that has the array and the position among its own."""


def arrays_of(
    group: Group, multi_nest: MultiNest, parts: Sequence[TilePart]
) -> tuple[list[TileArray], list[ArrayKey]]:
    """Return the live ranges of the arrays of a tile, and which arrays these are.

    Args:
        group: the group.
        multi_nest: its nests.
        parts: the nests with their own arrays.
    """
    return _TileLiveness(group, multi_nest, parts).arrays()


class _NestAccesses:
    """The accesses at the program points of a nest with an iteration domain."""

    def __init__(self, nest: NestInfo, schedule: Schedule) -> None:
        self.info, self.schedule = nest.info, schedule
        self.graph = nest.group.graph
        self.nodes = self.graph.nodes
        self.num_points = 2 * len(schedule.stages)
        self.has_parallel_rows = has_rows(nest.info.domain, schedule, nest.domain_tile)
        last = nest.info.domain.axes[-1]
        self.has_vector_axis = last.extent != 1 and last not in nest.domain_tile.fixed

    def reads(self) -> Iterator[tuple[int, Node]]:
        """Yield program points with the inputs, staged values and reductions that they may read."""
        staged: set[Node] = set()
        for k, stage in enumerate(self.schedule.stages):
            roots = [self.nodes[j].inputs[0].node for j in stage.reduces]
            roots += [self.nodes[j] for j in stage.staged]
            roots += [self.graph.outputs[j].node for j in stage.stores]
            yield from ((2 * k, n) for n in self._read_for(roots, staged))
            staged |= {self.nodes[j] for j in stage.staged}
            row_values = [self.nodes[j] for j in stage.row_values]
            yield from ((2 * k + 1, n) for n in self._read_for(row_values, staged))

    def _read_for(self, roots: Iterable[Node], staged: set[Node]) -> list[Node]:
        """Return what is read to compute some values, through all that is recomputed."""
        read: list[Node] = []
        visited: set[Node] = set()
        stack = list(roots)
        while stack:
            n = stack.pop()
            if n in visited or (is_leaf(n) and not n.is_variable):
                continue
            visited.add(n)
            kind = self.info.kinds.get(n, ValueKind.INLINE)
            if (
                n.is_variable
                or reduce_of(n) is not None
                or n in staged
                or ValueKind.REDUCED in kind
            ):
                read.append(n)
            if reduce_of(n) is None and not (n in staged and kind is ValueKind.POINT):
                stack += [e.node for e in n.inputs]
        return read

    def first_write(self, number: int, output: int | None = None) -> int:
        """Return the point that first stores a value, or an output if the value is one."""
        for k, stage in enumerate(self.schedule.stages):
            if number in stage.staged or (output is not None and output in stage.stores):
                return 2 * k
            if number in stage.row_values:
                return 2 * k + 1
        return 0

    def end_of_reduction(self, number: int) -> int:
        """Return the point at which a reduction ends; that of a scan is the first."""
        stages = enumerate(self.schedule.stages)
        return next((2 * k for k, stage in stages if number in stage.reduces), 0)

    def is_in_place(self, node: Node) -> bool:
        """Return whether an input is read along vectors at the computed point, and nowhere else."""
        full, accesses = self.info.domain.point_index, self.info.input_accesses.get(node, ())
        return self.has_vector_axis and all(at == full for at in accesses)

    def is_pointwise(self, node: Node) -> bool:
        """Return whether a value has an element for each point."""
        return reduce_of(node) is None and ValueKind.POINT in self.info.kinds[node]


class _TileLiveness:
    """The live ranges of all arrays of a tile."""

    def __init__(self, group: Group, multi_nest: MultiNest, parts: Sequence[TilePart]) -> None:
        self.graph = group.graph
        self.nodes = self.graph.nodes
        self.node_of_name = {name: n for n, name in self.graph.names.items()}
        self.exchanged: dict[Node, _LiveRange] = {}
        self.keys: dict[_LiveRange, ArrayKey] = {}
        for k, (number, layout) in enumerate(exchanged_values(self.graph, multi_nest)):
            node = self.nodes[number]
            itemsize = known_dtype(node.entries[0]).nbytes
            live_range = _LiveRange(node, layout.size * itemsize, itemsize, layout)
            self.exchanged[node] = live_range
            self.keys[live_range] = None, k
        self.num_points: list[int] = []
        self.has_parallel_rows: list[bool] = []
        for k, part in enumerate(parts):
            if part.info is None:
                self._add_product(k, part.nest)
            else:
                self._add_nest(k, part, part.info)

    def _add_product(self, k: int, nest: TileNest) -> None:
        """Note the accesses of a matrix product, which reads any element for any other."""
        self.num_points.append(1)
        self.has_parallel_rows.append(False)
        (number,) = nest.nodes
        for e in self.nodes[number].inputs:
            for live_range in self._nearest(e.node, self.exchanged):
                live_range.read(k, 0, False)
                live_range.is_operand = True
        for number in nest.results:
            if self.nodes[number] in self.exchanged:
                self.exchanged[self.nodes[number]].nest = k

    def _add_nest(self, k: int, part: TilePart, info: NestInfo) -> None:
        """Note the accesses of a nest with an iteration domain."""
        assert part.nest.schedule is not None
        graph, accesses = info.group.graph, _NestAccesses(info, part.nest.schedule)
        self.num_points.append(accesses.num_points)
        self.has_parallel_rows.append(accesses.has_parallel_rows)
        origin = {n: self.node_of_name[name] for n, name in info.group.origin.items()}
        sources = {n: e.node for n, e in zip(graph.inputs, info.feeds, strict=True)}
        ranges: dict[Node, list[_LiveRange]] = {
            n: [self.exchanged[s]] for n, s in sources.items() if s in self.exchanged
        }
        for j, entry in enumerate(graph.outputs):
            live_range = self.exchanged.get(origin[entry.node])
            if live_range is not None:
                live_range.nest = k
                live_range.written = accesses.first_write(graph.positions[entry.node], j)
                live_range.is_pointwise = accesses.is_pointwise(entry.node)
                ranges.setdefault(entry.node, []).append(live_range)
        for j, buffer in enumerate(part.own):
            node = graph.nodes[buffer.number]
            live_range = self._own_range(accesses, buffer, origin[node])
            live_range.nest = k
            if buffer.like is not None:
                like = self.exchanged[origin[graph.outputs[buffer.like].node]]
                live_range.addressing = like.addressing
            elif accesses.has_parallel_rows:
                live_range.room = ROW_ROOM
            self.keys[live_range] = k, j
            ranges.setdefault(node, []).append(live_range)
        for point, node in accesses.reads():
            in_place = not node.is_variable or accesses.is_in_place(node)
            for live_range in ranges.get(node, ()):
                live_range.read(k, point, in_place)

    def _own_range(self, accesses: _NestAccesses, buffer: TileBuffer, node: Node) -> _LiveRange:
        """Return the live range of an array of one nest."""
        is_column = accesses.schedule.composition is Composition.COLUMN
        is_total = buffer.holds is BufferContent.TOTAL
        # Reductions in memory have the computed type, which has 32 bits at least.
        itemsize = buffer.dtype.nbytes
        if is_total and is_column:
            itemsize = max(itemsize, 4)
        live_range = _LiveRange(node, buffer.extent * itemsize, itemsize, is_value=False)
        if is_total:
            live_range.written = accesses.end_of_reduction(buffer.number)
            # It begins with the identity, before the values that it reduces are read.
            live_range.addressing, live_range.is_pointwise = ROW, not is_column
            if scan_of(accesses.nodes[buffer.number]) is not None:
                live_range.read(len(self.num_points) - 1, accesses.num_points - 1, False)
        else:
            live_range.written = accesses.first_write(buffer.number)
            is_staged = any(v.value == buffer.number for v in accesses.schedule.staged)
            live_range.addressing = POINT if is_staged else ROW
            live_range.is_value = is_staged
        return live_range

    def arrays(self) -> tuple[list[TileArray], list[ArrayKey]]:
        """Return all arrays in the order of their first writes."""
        first_points: list[int] = []
        total = 0
        for count in self.num_points:
            first_points.append(total)
            total += count
        position, span = self.graph.positions, spans(self.graph)

        def start(live_range: _LiveRange) -> int:
            nest = live_range.nest
            is_one = self._is_one_point(live_range, nest)
            return first_points[nest] + (0 if is_one else live_range.written)

        def end(live_range: _LiveRange) -> int:
            points = [start(live_range)]
            for nest, point in live_range.reads.items():
                is_one = self._is_one_point(live_range, nest)
                points.append(first_points[nest] + (self.num_points[nest] - 1 if is_one else point))
            return max(points)

        ranges = sorted(self.keys, key=lambda x: (start(x), position[x.node]))
        number = {live_range: k for k, live_range in enumerate(ranges)}
        operands, roots = self._data_flow(ranges)
        arrays = [
            TileArray(
                value=position[x.node],
                nbytes=x.nbytes,
                start=start(x),
                end=end(x),
                may_overlay=frozenset(number[other] for other in ranges if x.may_overlay(other)),
                operands=tuple(number[p] for p in operands[x] if number[p] < number[x]),
                is_root=x in roots,
                need=x.need,
                span=span[x.node],
                room=x.room,
            )
            for x in ranges
        ]
        return arrays, [self.keys[x] for x in ranges]

    def _is_one_point(self, live_range: _LiveRange, nest: int) -> bool:
        """Return whether all points of a nest are one for an array."""
        return self.has_parallel_rows[nest] and live_range.room == TILE_ROOM

    def _data_flow(
        self, ranges: Sequence[_LiveRange]
    ) -> tuple[dict[_LiveRange, list[_LiveRange]], set[_LiveRange]]:
        """Return the arrays from which the value of each is computed, and those of the outputs."""
        operands: dict[_LiveRange, list[_LiveRange]] = {}
        roots: set[_LiveRange] = set()
        outputs = dict.fromkeys(e.node for e in self.graph.outputs)
        for room in (TILE_ROOM, ROW_ROOM):
            ranges_of: dict[Node, list[_LiveRange]] = {}
            for live_range in ranges:
                if live_range.room == room:
                    ranges_of.setdefault(live_range.node, []).append(live_range)
            for live_range in ranges:
                if live_range.room == room:
                    inputs = dict.fromkeys(e.node for e in live_range.node.inputs)
                    nearest = (x for n in inputs for xs in self._nearest(n, ranges_of) for x in xs)
                    operands[live_range] = list(dict.fromkeys(nearest))
            roots.update(x for n in outputs for xs in self._nearest(n, ranges_of) for x in xs)
        return operands, roots

    def _nearest(self, node: Node, of_node: Mapping[Node, T]) -> list[T]:
        """Return the entries of a mapping for the nearest nodes that have one, back from a node."""
        entries: list[T] = []
        visited: set[Node] = set()
        stack = [node]
        while stack:
            n = stack.pop()
            if n in visited or is_leaf(n):
                continue
            visited.add(n)
            if n in of_node:
                entries.append(of_node[n])
            else:
                stack += [e.node for e in n.inputs]
        return entries
