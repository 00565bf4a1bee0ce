"""Scratch arrays of a tile: what they hold, how large they are, where they lie."""

from __future__ import annotations

from attrs import frozen

from passkit.ast import Buffer, Place
from passkit.dtype import DType
from passkit.group import Group
from passkit.node import Node
from passkit.schedule import Composition, Schedule
from passkit.size import Extent, numel
from passkit.space import reduce_of

ALIGN = 64


@frozen
class Scratch:
    """One scratch array: the node it holds a value of, and its elements."""

    value: int
    dtype: DType
    extent: Extent


@frozen
class SharedPlan:
    """The scratch of a kernel: arrays in order, byte offsets aligned to 64, and the total.

    Units: bytes. Sizes that are not known yet are expressions.
    """

    arrays: tuple[Scratch, ...]
    offsets: tuple[Extent, ...]
    nbytes: Extent

    def array_of(self, value: int) -> int | None:
        """The position of the array that holds node ``value``."""
        return next((k for k, a in enumerate(self.arrays) if a.value == value), None)

    def buffers(self) -> tuple[Buffer, ...]:
        """The arrays as buffers of a kernel."""
        return tuple(
            Buffer(f"s{k}", a.dtype, Place.SHARED, a.extent, written=True)
            for k, a in enumerate(self.arrays)
        )


def plan_shared(group: Group, schedule: Schedule) -> SharedPlan:
    """The scratch that a schedule needs.

    A value kept for a later stage takes one element for each point of a row (ROW) or of a tile
    (COLUMN, SHORT); there every row value has one element for each lane, or row. Short rows begin
    at multiples of 16.
    """
    nodes = group.graph.nodes
    space = schedule.space
    folded = numel(a.extent for a in space.reduced)
    width: Extent = 1
    if schedule.composition is Composition.COLUMN and schedule.width is not None:
        width = schedule.width
    elif schedule.composition is Composition.SHORT:
        width = schedule.split.chunk
        folded = padded(folded)
    arrays = [
        Scratch(k.value, _dtype(nodes[k.value]), folded * width)
        for k in schedule.kept
        if k.place is Place.SHARED
    ]
    if schedule.composition in (Composition.COLUMN, Composition.SHORT):
        for stage in schedule.stages:
            arrays += [Scratch(-1 - f, _total_dtype(nodes[f]), width) for f in stage.folds]
            arrays += [
                Scratch(r, _dtype(nodes[r]), width) for r in stage.rows if _finished(nodes[r])
            ]
    offsets: list[Extent] = []
    total: Extent = 0
    for array in arrays:
        offsets.append(total)
        nbytes = array.extent * array.dtype.nbytes
        total = total + (nbytes + (ALIGN - 1)) // ALIGN * ALIGN
    return SharedPlan(tuple(arrays), tuple(offsets), total)


def padded(length: Extent) -> Extent:
    """The elements from one short row to the next in scratch."""
    return (length + 15) // 16 * 16


def _dtype(node: Node) -> DType:
    dtype = node.entries[0].dtype
    assert isinstance(dtype, DType)
    return dtype


def _finished(node: Node) -> bool:
    """Whether a row value is more than a reduction's running total."""
    found = reduce_of(node)
    return found is None or found.finish is not None or found.identity.dtype is not _dtype(node)


def _total_dtype(node: Node) -> DType:
    found = reduce_of(node)
    assert found is not None
    return found.identity.dtype
