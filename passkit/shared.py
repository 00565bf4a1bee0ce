"""Scratch arrays of a tile: what they hold, how large they are, where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from attrs import frozen

from passkit.dtype import DType
from passkit.group import Group
from passkit.index import ravel
from passkit.node import Entry, Node, known_shape
from passkit.reads import reads_of
from passkit.schedule import Schedule, Stitching
from passkit.size import Extent, at_least, numel
from passkit.space import Role, Space, is_free, reduce_of, scan_of
from passkit.stage import Buffer, Place
from passkit.stitching.cutting import reads_of_part
from passkit.stitching.parts import LaidPart, lay_part
from passkit.tiling import Composition

ALIGN = 64


class Holds(Enum):
    """What a scratch array is for.

    VALUE: a node's value, kept for a later stage. TOTAL: the running total of a reduction or scan,
    a node too. RESULT: an output, by its position, gathered for a tile before it is streamed.
    """

    VALUE = "value"
    TOTAL = "total"
    RESULT = "result"


@frozen
class Scratch:
    """One scratch array: what it holds, of which node or output, and its elements."""

    holds: Holds
    number: int
    dtype: DType
    extent: Extent


@frozen
class SharedPlan:
    """The scratch of a kernel: arrays in order, byte offsets aligned to 64, and the total.

    Units: bytes. Sizes that are not known yet are expressions. A stitched kernel's are the values
    that its parts leave for each other; ``parts`` have what each part needs for itself. Those of
    packed parts lie one over the other: no two of them have scratch at a time.
    """

    arrays: tuple[Scratch, ...]
    offsets: tuple[Extent, ...]
    nbytes: Extent
    parts: tuple[SharedPlan, ...] = ()

    def array_of(self, holds: Holds, number: int) -> int | None:
        """The position of the array for something of a node or output."""
        wanted = holds, number
        return next((k for k, a in enumerate(self.arrays) if (a.holds, a.number) == wanted), None)

    def buffers(self, of_row: bool) -> tuple[Buffer, ...]:
        """The arrays as buffers of a kernel, of each row or of each tile."""
        return tuple(
            Buffer(f"s{k}", a.dtype, Place.SHARED, a.extent, True, of_row)
            for k, a in enumerate(self.arrays)
        )


def plan_shared(group: Group, schedule: Schedule) -> SharedPlan:
    """The scratch that a schedule needs.

    A value kept for a later stage takes one element for each point of a row (ROW) or of a tile
    (COLUMN, SHORT); there a row value that a later stage reads has one element for each lane, or
    row. Short rows begin at multiples of 16. Those of a result that is gathered lie close.
    """
    if schedule.parts:
        return _overlapping(group, schedule)
    nodes = group.graph.nodes
    if schedule.stitching is not None:
        return _stitched(group, schedule.stitching)
    space = schedule.space
    folded = numel(a.extent for a in space.reduced)
    width: Extent = 1
    if schedule.composition is Composition.COLUMN and schedule.width is not None:
        width = schedule.width
    elif schedule.composition is Composition.SHORT:
        width = schedule.split.chunk
        folded = padded(folded)
    arrays = [
        Scratch(Holds.VALUE, k.value, _dtype(nodes[k.value]), folded * width)
        for k in schedule.kept
        if k.place is Place.SHARED
    ]
    if schedule.composition in (Composition.COLUMN, Composition.SHORT):
        if schedule.composition is Composition.COLUMN:
            scans = [(k, scan) for k, n in enumerate(nodes) if (scan := scan_of(n)) is not None]
            arrays += [Scratch(Holds.TOTAL, k, s.identity.dtype, width) for k, s in scans]
        for stage in schedule.stages:
            arrays += [Scratch(Holds.TOTAL, f, _total_dtype(nodes[f]), width) for f in stage.folds]
            here = {nodes[r] for r in stage.rows}
            arrays += [
                Scratch(Holds.VALUE, r, _dtype(nodes[r]), width)
                for r in stage.rows
                if _finished(nodes[r], space) and _read_later(group, nodes[r], here, space)
            ]
    points = _row_points(schedule) * schedule.split.chunk
    arrays += [
        Scratch(Holds.RESULT, k, _dtype(group.graph.outputs[k].node), points)
        for stage in schedule.stages
        for k in stage.stores
        if gathers(schedule, k, _dtype(group.graph.outputs[k].node))
    ]
    return _laid_out(arrays)


def _laid_out(arrays: Sequence[Scratch], parts: tuple[SharedPlan, ...] = ()) -> SharedPlan:
    """Arrays one behind the other."""
    offsets: list[Extent] = []
    total: Extent = 0
    for array in arrays:
        offsets.append(total)
        nbytes = array.extent * array.dtype.nbytes
        total = total + (nbytes + (ALIGN - 1)) // ALIGN * ALIGN
    for part in parts:
        total = total + part.nbytes
    return SharedPlan(tuple(arrays), tuple(offsets), total, parts)


def _stitched(group: Group, stitching: Stitching) -> SharedPlan:
    """The values that parts leave for others, and what each part needs for itself."""
    nodes, arrays, parts = group.graph.nodes, [], []
    for plan in stitching.parts:
        body = [nodes[k] for k in plan.nodes]
        if plan.schedule is None:
            parts.append(SharedPlan((), (), 0))
            continue
        regions = {nodes[k]: r for k, r in stitching.regions}
        laid = lay_part(group, body, [nodes[k] for k in plan.results], regions)
        assert isinstance(laid, LaidPart)
        parts.append(plan_shared(laid.group, plan.schedule))
    read = {
        e
        for plan in stitching.parts
        for e in reads_of_part(group.graph, [nodes[k] for k in plan.nodes])
    }
    for k, region in stitching.regions:
        if nodes[k].entries[0] in read:
            arrays.append(Scratch(Holds.VALUE, k, _dtype(nodes[k]), region.size))
    return _laid_out(arrays, tuple(parts))


def _overlapping(group: Group, schedule: Schedule) -> SharedPlan:
    """The scratch of packed parts: as much as the largest takes, or all where none is known to."""
    graphs = [p.graph for p in group.parts]
    plans = [
        plan_shared(Group(g, group.kind), s) for g, s in zip(graphs, schedule.parts, strict=True)
    ]
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

    So it is with short rows that are no whole cache lines, as all rows of a tile together are; and
    with narrow ones, which are written in parts.
    """
    if k not in schedule.stream:
        return False
    if schedule.composition is Composition.NARROW:
        return True
    short = schedule.composition is Composition.SHORT
    return short and _row_points(schedule) * dtype.nbytes % ALIGN != 0


def _row_points(schedule: Schedule) -> Extent:
    """The points of a row where a tile has many that follow each other."""
    if schedule.composition is Composition.NARROW:
        return schedule.axes[-1].extent
    return numel(a.extent for a in schedule.space.reduced)


def padded(length: Extent) -> Extent:
    """The elements from one short row to the next in scratch."""
    return (length + 15) // 16 * 16


def _dtype(node: Node) -> DType:
    dtype = node.entries[0].dtype
    assert isinstance(dtype, DType)
    return dtype


def same_row_value(node: Node, space: Space) -> Entry | None:
    """The row value that ``node`` only gives another shape."""
    assert node.op is not None
    if not node.op.has_attr("FElement") or reduce_of(node) is not None:
        return None
    shape, extents = known_shape(node.entries[0]), space.extents
    found = reads_of(node, space.index(Role.ROW, shape), extents)
    if not found.plain or is_free(node.inputs[0].node):
        return None
    (_, index), source = found.at[0], node.inputs[0]
    if numel(known_shape(source)) != numel(shape):
        return None  # a part of something larger, which has no row values
    return source if ravel(index, known_shape(source), extents) == space.row else None


def _finished(node: Node, space: Space) -> bool:
    """Whether a row value is more than a running total or another row value."""
    found = reduce_of(node)
    if found is None:
        return same_row_value(node, space) is None
    return found.finish is not None or found.identity.dtype is not _dtype(node)


def _read_later(group: Group, node: Node, here: set[Node], space: Space) -> bool:
    """Whether an operator outside the stage's row values ``here`` reads a row value."""
    for user in (u for e in node.entries for u in group.graph.users.get(e, ())):
        if user not in here:
            return True
        if same_row_value(user, space) is not None and _read_later(group, user, here, space):
            return True
    return False


def _total_dtype(node: Node) -> DType:
    found = reduce_of(node)
    assert found is not None
    return found.identity.dtype
