"""The scratch memory of a kernel: the arrays of a tile, their sizes and their offsets."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from passkit.analysis.accesses import accesses_of
from passkit.analysis.domain import Domain, ValueKind
from passkit.analysis.group import Group
from passkit.analysis.slots import Mode, assign_offsets
from passkit.ast.index import ravel
from passkit.ast.stage import Buffer, Place
from passkit.graph.attribute_calls import reduce_of, scan_of
from passkit.graph.node import Entry, Node, is_leaf, known_dtype, known_shape
from passkit.schedule.liveness import TilePart, arrays_of, exchanged_values
from passkit.schedule.nest_info import NestInfo, analyze_nest
from passkit.schedule.phases import groups_of_parts
from passkit.schedule.schedule import MultiNest, Schedule
from passkit.schedule.tile_buffers import BufferContent, TileBuffer
from passkit.schedule.tiling import Composition, row_packing
from passkit.values.dtype import DType
from passkit.values.size import Extent, at_least, numel

ALIGN = 64
"""The alignment in bytes of arrays that lie one behind another."""
ROOM = 128
"""The alignment in bytes of arrays that share scratch memory. Stores of up to sixteen short rows at
a time may reach behind the end of an array, but not into the next one."""


@frozen
class SharedPlan:
    """The scratch memory of a kernel. Sizes that only a call knows are expressions.

    Attributes:
        arrays: the arrays. Those of a kernel of several nests are the values that nests exchange.
        offsets: the byte offset of each array. Those of rows count from the end of those of tiles.
        nbytes: the bytes in all, which may be less than those of the arrays, as these share bytes.
        parts: for each nest the arrays that no other nest reads. For each packed part, or phase,
            its scratch memory; these have the same bytes, one after another.
    """

    arrays: tuple[TileBuffer, ...]
    offsets: tuple[Extent, ...]
    nbytes: Extent
    parts: tuple[SharedPlan, ...] = ()

    def array_of(self, holds: BufferContent, number: int) -> int | None:
        """Return the position of the array with some content of a node or output; None without."""
        return next(
            (k for k, a in enumerate(self.arrays) if a.holds is holds and a.number == number), None
        )

    def buffers(
        self, of_row: bool, first: int = 0, has_offsets: bool = False
    ) -> tuple[Buffer, ...]:
        """Return the arrays as buffers of a kernel.

        Args:
            of_row: whether each row has its own, instead of each tile.
            first: the number in the name of the first buffer.
            has_offsets: whether buffers have the planned offsets. Otherwise they lie one behind
                another.
        """
        return tuple(
            Buffer(
                f"s{first + k}",
                a.dtype,
                Place.SHARED,
                a.extent,
                written=True,
                of_row=of_row and a.like is None,
                offset=offset if has_offsets else None,
            )
            for k, (a, offset) in enumerate(zip(self.arrays, self.offsets, strict=True))
        )


def plan_shared(group: Group, schedule: Schedule, mode: Mode = Mode.SMALLER) -> SharedPlan:
    """Return the scratch memory that a schedule needs.

    A value that is staged has one element for each point of a row (ROW) or of a tile (COLUMN,
    SHORT). A row value that a later stage reads has one element for each column, or row. Short rows
    begin at multiples of 16, but for pairs of rows and those of an output that is collected.

    Args:
        group: the group.
        schedule: its schedule.
        mode: when arrays of several nests share bytes.
    """
    if schedule.nest is not None:
        return SharedPlan((), (), 0)  # values between stages are in registers
    if schedule.pack is not None:
        return SharedPlan((), (), 0, (SharedPlan((), (), 0),) * len(schedule.parts))
    if schedule.parts:
        return _overlapping(group, schedule)
    if schedule.multi_nest is not None:
        return _of_nests(group, schedule.multi_nest, mode)
    return _in_order(_arrays(group, schedule))


def _arrays(group: Group, schedule: Schedule) -> list[TileBuffer]:
    """Return the arrays of a group of one nest."""
    nodes, domain = group.graph.nodes, schedule.domain
    length = numel(a.extent for a in domain.reduced)
    width: Extent = 1
    if schedule.composition is Composition.COLUMN and schedule.width is not None:
        width = schedule.width
    elif schedule.composition is Composition.SHORT:
        width = schedule.split.chunk
        length = padded(length)
    arrays = [
        TileBuffer(
            BufferContent.VALUE, k.value, known_dtype(nodes[k.value].entries[0]), length * width
        )
        for k in schedule.staged
        if k.place is Place.SHARED
    ]
    if schedule.composition in (Composition.COLUMN, Composition.SHORT):
        if schedule.composition is Composition.COLUMN:
            scans = [(k, scan) for k, n in enumerate(nodes) if (scan := scan_of(n)) is not None]
            arrays += [
                TileBuffer(BufferContent.TOTAL, k, s.identity.dtype, width) for k, s in scans
            ]
        for stage in schedule.stages:
            arrays += [
                TileBuffer(BufferContent.TOTAL, f, _total_dtype(nodes[f]), width)
                for f in stage.reduces
            ]
            row_values = {nodes[r] for r in stage.row_values}
            arrays += [
                TileBuffer(BufferContent.VALUE, r, known_dtype(nodes[r].entries[0]), width)
                for r in stage.row_values
                if _is_finished(nodes[r], domain)
                and _is_read_later(group, nodes[r], row_values, domain)
            ]
    points = _row_points(schedule) * schedule.split.chunk
    arrays += [
        TileBuffer(
            BufferContent.RESULT, k, known_dtype(group.graph.outputs[k].node.entries[0]), points
        )
        for stage in schedule.stages
        for k in stage.stores
        if is_collected(schedule, k, known_dtype(group.graph.outputs[k].node.entries[0]))
    ]
    return arrays


def _in_order(arrays: Sequence[TileBuffer]) -> SharedPlan:
    """Return the plan in which arrays lie one behind another."""
    offsets: list[Extent] = []
    total: Extent = 0
    for array in arrays:
        offsets.append(total)
        nbytes = array.extent * array.dtype.nbytes
        total = total + (nbytes + (ALIGN - 1)) // ALIGN * ALIGN
    return SharedPlan(tuple(arrays), tuple(offsets), total)


def tile_parts(
    group: Group, multi_nest: MultiNest, infos: Sequence[NestInfo | None]
) -> list[TilePart]:
    """Return the nests of a kernel with the arrays that no other nest reads.

    A value that is staged in the place of an output has an array with the layout of the output.

    Args:
        group: the group.
        multi_nest: the nests.
        infos: their iteration domains; None for a matrix product.
    """
    exchanged = {
        group.graph.nodes[k]: layout for k, layout in exchanged_values(group.graph, multi_nest)
    }
    parts = []
    for nest, info in zip(multi_nest.nests, infos, strict=True):
        own: list[TileBuffer] = []
        if info is not None and nest.schedule is not None:
            own = _arrays(info.group, nest.schedule)
            for k in nest.schedule.staged:
                entry = info.group.graph.nodes[k.value].entries[0]
                if k.place is Place.GLOBAL and info.group.graph.outputs[k.output] is not entry:
                    layout = exchanged.get(group.graph.nodes[nest.results[k.output]])
                    if layout is not None:
                        dtype = known_dtype(entry.node.entries[0])
                        own.append(
                            TileBuffer(BufferContent.VALUE, k.value, dtype, layout.size, k.output)
                        )
        parts.append(TilePart(nest, info, tuple(own)))
    return parts


def _of_nests(group: Group, multi_nest: MultiNest, mode: Mode) -> SharedPlan:
    """Return the plan of the values that nests exchange, and of the arrays of each nest."""
    nodes = group.graph.nodes
    layouts = {nodes[k]: layout for k, layout in multi_nest.layouts}
    infos: list[NestInfo | None] = []
    for nest in multi_nest.nests:
        if nest.schedule is None:
            infos.append(None)
            continue
        results = [nodes[k] for k in nest.results]
        info = analyze_nest(group, [nodes[k] for k in nest.nodes], results, layouts)
        assert isinstance(info, NestInfo)
        infos.append(info)
    parts = tile_parts(group, multi_nest, infos)
    arrays, keys = arrays_of(group, multi_nest, parts)
    assignment = assign_offsets(arrays, ROOM, mode)
    offsets = {keys[v]: offset for v, offset in assignment.offsets().items()}
    exchanged = tuple(
        TileBuffer(BufferContent.VALUE, k, known_dtype(nodes[k].entries[0]), layout.size)
        for k, layout in exchanged_values(group.graph, multi_nest)
    )
    own = tuple(
        SharedPlan(
            part.own,
            tuple(offsets[k, j] for j in range(len(part.own))),
            sum((a.extent * a.dtype.nbytes for a in part.own), 0),
        )
        for k, part in enumerate(parts)
    )
    starts = tuple(offsets[None, k] for k in range(len(exchanged)))
    return SharedPlan(exchanged, starts, assignment.nbytes, own)


def _overlapping(group: Group, schedule: Schedule) -> SharedPlan:
    """Return the plan of parts or phases, which have the same bytes one after another."""
    pairs = zip(groups_of_parts(group, schedule), schedule.parts, strict=True)
    plans = [plan_shared(part, plan) for part, plan in pairs]
    total: Extent = 0
    for plan in plans:
        total = largest(total, plan.nbytes)
    return SharedPlan((), (), total, tuple(plans))


def largest(a: Extent, b: Extent) -> Extent:
    """Return the larger of two sizes of at least 0; their sum if that cannot be decided."""
    if at_least(a, b):
        return a
    return b if at_least(b, a) else a + b


def is_collected(schedule: Schedule, k: int, dtype: DType) -> bool:
    """Return whether a tile of an output is collected in scratch before it is streamed to memory.

    That is so for narrow rows, which are written in pieces, and for short rows that are no whole
    cache lines, while all rows of a tile are.

    Args:
        schedule: the schedule.
        k: the number of the output.
        dtype: its type.
    """
    if k not in schedule.stream:
        return False
    if schedule.composition is Composition.NARROW:
        return True
    points = _row_points(schedule)
    packed = points * 2 if row_packing(points) == 2 else points
    return schedule.composition is Composition.SHORT and packed * dtype.nbytes % ALIGN != 0


def _row_points(schedule: Schedule) -> Extent:
    """Return the points of a row, of which a tile has consecutive ones."""
    if schedule.composition is Composition.NARROW:
        return schedule.axes[-1].extent
    return numel(a.extent for a in schedule.domain.reduced)


def padded(length: Extent) -> Extent:
    """Return the pitch of short rows in scratch, in elements."""
    return length if row_packing(length) == 2 else (length + 15) // 16 * 16


def same_row_value(node: Node, domain: Domain) -> Entry | None:
    """Return the row value that an operator only reshapes; None for any other operator."""
    assert node.op is not None
    if not node.op.has_attr("FElement") or reduce_of(node) is not None:
        return None
    shape, extents = known_shape(node.entries[0]), domain.extents
    accesses = accesses_of(node, domain.index(ValueKind.REDUCED, shape), extents)
    if not accesses.plain:
        return None
    number, index = accesses.at[0]
    source = node.inputs[number]
    if is_leaf(source.node):
        return None
    if numel(known_shape(source)) != numel(shape):
        return None  # a part of something larger, which has no row values
    return source if ravel(index, known_shape(source), extents) == domain.row_index else None


def _is_finished(node: Node, domain: Domain) -> bool:
    """Return whether a row value differs from the state of its reduction and from its operand."""
    reduction = reduce_of(node)
    if reduction is None:
        return same_row_value(node, domain) is None
    return reduction.finish is not None or reduction.identity.dtype is not known_dtype(
        node.entries[0]
    )


def _is_read_later(group: Group, node: Node, row_values: set[Node], domain: Domain) -> bool:
    """Return whether an operator that is none of the stage's row values reads a row value."""
    for user in (u for e in node.entries for u in group.graph.users.get(e, ())):
        if user not in row_values:
            return True
        is_same = same_row_value(user, domain) is not None
        if is_same and _is_read_later(group, user, row_values, domain):
            return True
    return False


def _total_dtype(node: Node) -> DType:
    """Return the type of the state of a reduction."""
    reduction = reduce_of(node)
    assert reduction is not None
    return reduction.identity.dtype
