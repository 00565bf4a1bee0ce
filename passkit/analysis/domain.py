"""Iteration spaces: the axes that a group's kernel goes through, and what is folded along them."""

from __future__ import annotations

from enum import Flag, auto
from functools import cached_property, lru_cache

from attrs import frozen

from passkit.analysis.accesses import Index
from passkit.ast import Chunks, Var
from passkit.ast.index import Extents, Known, Sum, ravel, unravel
from passkit.ast.walk import variables
from passkit.graph.attribute_calls import reduce_of, scan_of
from passkit.graph.node import Node
from passkit.values import dtype as dt
from passkit.values.size import Extent, Shape, numel


class ValueKind(Flag):
    """How a value of a group lies in its space."""

    POINT = auto()
    REDUCED = auto()
    INLINE = auto()


@frozen
class Axis:
    """One dimension of the space; a reduced one is what the group's reductions and scans fold.

    Of an axis with a ``chunk`` so many steps at a time are folded. Another axis, first of all,
    is ``counting`` the chunks: what is folded lies along it, no point does.
    """

    var: Var
    extent: Extent
    reduced: bool = False
    chunk: Extent | None = None
    is_chunk_axis: bool = False

    @property
    def length(self) -> Extent:
        """The steps along the axis that one row takes."""
        return self.extent if self.chunk is None else self.chunk


@lru_cache(maxsize=128)
def _extents(axes: tuple[tuple[str, Extent], ...]) -> Extents:
    """Extents by name: one mapping for all spaces that have them, so that all share its sums."""
    return Known(axes)


class Domain:
    """Axes in row-major order."""

    def __init__(self, axes: tuple[Axis, ...]) -> None:
        self.axes = axes
        self._indices: dict[tuple[ValueKind, Shape], Index] = {}  # a group asks for few, and often

    @cached_property
    def extents(self) -> Extents:
        """Extent of each axis variable."""
        return _extents(tuple((a.var.name, a.extent) for a in self.axes))

    @cached_property
    def kept(self) -> tuple[Axis, ...]:
        """The axes of a row value."""
        return tuple(a for a in self.axes if not a.reduced)

    @cached_property
    def reduced(self) -> tuple[Axis, ...]:
        """The axes that reductions fold."""
        return tuple(a for a in self.axes if a.reduced)

    @cached_property
    def points(self) -> tuple[Axis, ...]:
        """The axes of a FULL value."""
        return tuple(a for a in self.axes if not a.is_chunk_axis)

    @cached_property
    def full(self) -> Sum:
        """The linear index of a FULL value."""
        return self._linear(self.points)

    @cached_property
    def row(self) -> Sum:
        """The linear index of a ROW value."""
        return self._linear(self.kept)

    @cached_property
    def size(self) -> Extent:
        """The number of points."""
        return numel(a.extent for a in self.points)

    @cached_property
    def rows(self) -> Extent:
        """The number of points of the kept axes."""
        return numel(a.extent for a in self.kept)

    def _linear(self, axes: tuple[Axis, ...]) -> Sum:
        return ravel([a.var for a in axes], tuple(a.extent for a in axes), self.extents)

    def reduces_dims(self, index: Index, axes: tuple[int, ...]) -> bool:
        """Whether dimensions ``axes`` of ``index`` run over the reduced axes and no other does."""
        folded = {a.var for a in self.reduced}
        for k, i in enumerate(index):
            inside = set(variables(i))
            if not (inside <= folded if k in axes else inside.isdisjoint(folded)):
                return False
        return True

    def index(self, kind: ValueKind, shape: Shape) -> Index:
        """The index in ``shape`` of a FULL or ROW value at the current point."""
        key = kind, shape
        if key not in self._indices:
            linear = self.full if kind is ValueKind.POINT else self.row
            self._indices[key] = unravel(linear, shape, self.extents)
        return self._indices[key]


@frozen
class ReducedAxes:
    """The axes along which an operator folds its input, and in what chunks."""

    axes: tuple[int, ...]
    chunks: Chunks | None = None


def reduced_axes_of(node: Node) -> ReducedAxes | None:
    """How a reduction or a scan lies in its input; None for another operator."""
    found = reduce_of(node)
    if found is not None:
        return ReducedAxes(found.axes, found.chunks)
    scan = scan_of(node)
    return None if scan is None else ReducedAxes((scan.axis,))


def axes_of(
    shape: Shape, reduced: tuple[int, ...] | None, chunks: Chunks | None = None
) -> tuple[Axis, ...]:
    """An axis for each dimension of ``shape`` that is not 1, and one that counts ``chunks``.

    Where something is folded (``reduced`` is not None) there is a folded axis in any case.
    """
    cut = -1 if chunks is None else chunks.axis
    kept = [k for k, n in enumerate(shape) if n != 1 or k == cut]
    parts = [(shape[k], k in (reduced or ()), _chunk(chunks, k), False) for k in kept]
    if reduced is not None and not any(r for _, r, _, _ in parts):
        parts.append((1, True, None, False))
    if chunks is not None:
        parts.insert(0, (num_chunks(shape, chunks), False, None, True))
    parts = parts or [(1, False, None, False)]
    return tuple(Axis(Var(f"i{k}", dt.int64), *p) for k, p in enumerate(parts))


def _chunk(chunks: Chunks | None, axis: int) -> Extent | None:
    return chunks.length if chunks is not None and chunks.axis == axis else None


def num_chunks(shape: Shape, chunks: Chunks) -> Extent:
    """How many chunks there are; the last may be shorter."""
    return (shape[chunks.axis] + (chunks.length - 1)) // chunks.length
