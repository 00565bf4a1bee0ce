"""Scratch arrays of a tile: what they hold, how large they are, where they lie."""

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
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.schedule.liveness import TilePart, arrays_of, exchanged_values
from passkit.schedule.nest_info import NestInfo, analyze_nest
from passkit.schedule.phases import groups_of_parts
from passkit.schedule.schedule import MultiNest, Schedule
from passkit.schedule.tile_buffers import BufferContent, TileBuffer
from passkit.schedule.tiling import Composition, row_packing
from passkit.values.dtype import DType
from passkit.values.size import Extent, at_least, numel

ALIGN = 64
ROOM = 128
"""Arrays of a stitched kernel begin at multiples of this: what is stored for up to sixteen short
rows at a time may reach behind an array's end, but not into the next one."""


@frozen
class SharedPlan:
    """The scratch of a kernel: arrays in order, aligned byte offsets, and the total.

    Units: bytes. Sizes that are not known yet are expressions. A stitched kernel's are the values
    that its parts leave for each other; ``parts`` have what each part needs for itself. They share
    bytes, so that ``nbytes`` of the whole may be less than that of the parts; those of a tile lie
    in front, those of a row have offsets of their own behind. Scratch of packed parts, or phases,
    lies one over the other: no two of them have it at a time.
    """

    arrays: tuple[TileBuffer, ...]
    offsets: tuple[Extent, ...]
    nbytes: Extent
    parts: tuple[SharedPlan, ...] = ()

    def array_of(self, holds: BufferContent, number: int) -> int | None:
        """The position of the array for something of a node or output."""
        wanted = holds, number
        return next((k for k, a in enumerate(self.arrays) if (a.holds, a.number) == wanted), None)

    def buffers(self, of_row: bool, first: int = 0, told: bool = False) -> tuple[Buffer, ...]:
        """The arrays as buffers of a kernel, of each row or of each tile, named from ``first`` on.

        They lie one behind the other, or where they are ``told`` to.
        """
        return tuple(
            Buffer(
                f"s{first + k}",
                a.dtype,
                Place.SHARED,
                a.extent,
                written=True,
                of_row=of_row and a.like is None,
                offset=offset if told else None,
            )
            for k, (a, offset) in enumerate(zip(self.arrays, self.offsets, strict=True))
        )


def plan_shared(group: Group, schedule: Schedule, mode: Mode = Mode.SMALLER) -> SharedPlan:
    """The scratch that a schedule needs; arrays of a stitched kernel share bytes as ``mode`` says.

    A value kept for a later stage takes one element for each point of a row (ROW) or of a tile
    (COLUMN, SHORT); there a row value that a later stage reads has one element for each lane, or
    row. Short rows begin at multiples of 16, but for pairs and those of a result that is gathered.
    """
    if schedule.nest is not None:
        return SharedPlan((), (), 0)  # values between stages are in registers
    if schedule.pack is not None:
        return SharedPlan((), (), 0, (SharedPlan((), (), 0),) * len(schedule.parts))
    if schedule.parts:
        return _overlapping(group, schedule)
    if schedule.multi_nest is not None:
        return _stitched(group, schedule.multi_nest, mode)
    return _laid_out(_arrays(group, schedule))


def _arrays(group: Group, schedule: Schedule) -> list[TileBuffer]:
    """The arrays of a kernel, or a part, of one space."""
    nodes, domain = group.graph.nodes, schedule.domain
    folded = numel(a.extent for a in domain.reduced)
    width: Extent = 1
    if schedule.composition is Composition.COLUMN and schedule.width is not None:
        width = schedule.width
    elif schedule.composition is Composition.SHORT:
        width = schedule.split.chunk
        folded = padded(folded)
    arrays = [
        TileBuffer(BufferContent.VALUE, k.value, _dtype(nodes[k.value]), folded * width)
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
            here = {nodes[r] for r in stage.row_values}
            arrays += [
                TileBuffer(BufferContent.VALUE, r, _dtype(nodes[r]), width)
                for r in stage.row_values
                if _finished(nodes[r], domain) and _read_later(group, nodes[r], here, domain)
            ]
    points = _row_points(schedule) * schedule.split.chunk
    arrays += [
        TileBuffer(BufferContent.RESULT, k, _dtype(group.graph.outputs[k].node), points)
        for stage in schedule.stages
        for k in stage.stores
        if gathers(schedule, k, _dtype(group.graph.outputs[k].node))
    ]
    return arrays


def _laid_out(arrays: Sequence[TileBuffer]) -> SharedPlan:
    """Arrays one behind the other."""
    offsets: list[Extent] = []
    total: Extent = 0
    for array in arrays:
        offsets.append(total)
        nbytes = array.extent * array.dtype.nbytes
        total = total + (nbytes + (ALIGN - 1)) // ALIGN * ALIGN
    return SharedPlan(tuple(arrays), tuple(offsets), total)


def tile_parts(
    group: Group, multi_nest: MultiNest, laid: Sequence[NestInfo | None]
) -> list[TilePart]:
    """The parts of a stitched kernel with the arrays that each has for itself.

    What a part keeps where a result of it will lie is an array like that one's own.
    """
    passed = {
        group.graph.nodes[k]: layout for k, layout in exchanged_values(group.graph, multi_nest)
    }
    found = []
    for plan, part in zip(multi_nest.nests, laid, strict=True):
        own: list[TileBuffer] = []
        if part is not None and plan.schedule is not None:
            own = _arrays(part.group, plan.schedule)
            for k in plan.schedule.staged:
                entry = part.group.graph.nodes[k.value].entries[0]
                if k.place is Place.GLOBAL and part.group.graph.outputs[k.output] is not entry:
                    layout = passed.get(group.graph.nodes[plan.results[k.output]])
                    if layout is not None:
                        dtype = _dtype(entry.node)
                        own.append(
                            TileBuffer(BufferContent.VALUE, k.value, dtype, layout.size, k.output)
                        )
        found.append(TilePart(plan, part, tuple(own)))
    return found


def _stitched(group: Group, multi_nest: MultiNest, mode: Mode) -> SharedPlan:
    """The values that parts leave for others, and what each part needs for itself."""
    nodes = group.graph.nodes
    layouts = {nodes[k]: layout for k, layout in multi_nest.layouts}
    laid: list[NestInfo | None] = []
    for plan in multi_nest.nests:
        part = None
        if plan.schedule is not None:
            results = [nodes[k] for k in plan.results]
            found = analyze_nest(group, [nodes[k] for k in plan.nodes], results, layouts)
            assert isinstance(found, NestInfo)
            part = found
        laid.append(part)
    parts = tile_parts(group, multi_nest, laid)
    arrays, keys = arrays_of(group, multi_nest, parts)
    sharing = assign_offsets(arrays, ROOM, mode)
    offsets = {keys[v]: offset for v, offset in sharing.offsets().items()}
    passed = tuple(
        TileBuffer(BufferContent.VALUE, k, _dtype(nodes[k]), layout.size)
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
    begins = tuple(offsets[None, k] for k in range(len(passed)))
    return SharedPlan(passed, begins, sharing.nbytes, own)


def _overlapping(group: Group, schedule: Schedule) -> SharedPlan:
    """The scratch of parts or phases: as much as the largest takes, or all if none is known to."""
    pairs = zip(groups_of_parts(group, schedule), schedule.parts, strict=True)
    plans = [plan_shared(part, plan) for part, plan in pairs]
    total: Extent = 0
    for plan in plans:
        total = largest(total, plan.nbytes)
    return SharedPlan((), (), total, tuple(plans))


def largest(a: Extent, b: Extent) -> Extent:
    """The larger of two sizes that are at least 0; their sum where that is not certain."""
    if at_least(a, b):
        return a
    return b if at_least(b, a) else a + b


def gathers(schedule: Schedule, k: int, dtype: DType) -> bool:
    """Whether a tile of output ``k`` is put together before it is streamed.

    So it is with short rows that are no whole cache lines, nor are two of them where they come in
    pairs, as all rows of a tile together are; and with narrow ones, which are written in parts.
    """
    if k not in schedule.stream:
        return False
    if schedule.composition is Composition.NARROW:
        return True
    points = _row_points(schedule)
    together = points * 2 if row_packing(points) == 2 else points
    return schedule.composition is Composition.SHORT and together * dtype.nbytes % ALIGN != 0


def _row_points(schedule: Schedule) -> Extent:
    """The points of a row where a tile has many that follow each other."""
    if schedule.composition is Composition.NARROW:
        return schedule.axes[-1].extent
    return numel(a.extent for a in schedule.domain.reduced)


def padded(length: Extent) -> Extent:
    """The elements from one short row to the next in scratch."""
    return length if row_packing(length) == 2 else (length + 15) // 16 * 16


def _dtype(node: Node) -> DType:
    dtype = node.entries[0].dtype
    assert isinstance(dtype, DType)
    return dtype


def same_row_value(node: Node, domain: Domain) -> Entry | None:
    """The row value that ``node`` only gives another shape."""
    assert node.op is not None
    if not node.op.has_attr("FElement") or reduce_of(node) is not None:
        return None
    shape, extents = known_shape(node.entries[0]), domain.extents
    found = accesses_of(node, domain.index(ValueKind.ROW, shape), extents)
    if not found.plain:
        return None
    number, index = found.at[0]
    source = node.inputs[number]
    if is_leaf(source.node):
        return None
    if numel(known_shape(source)) != numel(shape):
        return None  # a part of something larger, which has no row values
    return source if ravel(index, known_shape(source), extents) == domain.row else None


def _finished(node: Node, domain: Domain) -> bool:
    """Whether a row value is more than a running total or another row value."""
    found = reduce_of(node)
    if found is None:
        return same_row_value(node, domain) is None
    return found.finish is not None or found.identity.dtype is not _dtype(node)


def _read_later(group: Group, node: Node, here: set[Node], domain: Domain) -> bool:
    """Whether an operator outside the stage's row values ``here`` reads a row value."""
    for user in (u for e in node.entries for u in group.graph.users.get(e, ())):
        if user not in here:
            return True
        if same_row_value(user, domain) is not None and _read_later(group, user, here, domain):
            return True
    return False


def _total_dtype(node: Node) -> DType:
    found = reduce_of(node)
    assert found is not None
    return found.identity.dtype
