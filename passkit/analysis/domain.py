"""Iteration domains: the axes over which the operators of a loop nest are computed together."""

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
    """The points of a domain at which a value is computed.

    POINT: an element for each point. REDUCED: an element for each row, as a reduction leaves them.
    INLINE: elements are computed where they are read, at any index.
    """

    POINT = auto()
    REDUCED = auto()
    INLINE = auto()


@frozen
class Axis:
    """One axis of a domain.

    Attributes:
        var: the index variable.
        extent: the number of steps of the whole axis.
        reduced: whether reductions or scans run along the axis.
        chunk: for a reduced axis, the steps that a row has of it, if not all; else None.
        is_chunk_axis: whether the axis counts these chunks. Reduced values have an element for each
            of its steps, but points have no coordinate along it.
    """

    var: Var
    extent: Extent
    reduced: bool = False
    chunk: Extent | None = None
    is_chunk_axis: bool = False

    @property
    def length(self) -> Extent:
        """Return the steps that a row has of the axis."""
        return self.extent if self.chunk is None else self.chunk


@lru_cache(maxsize=128)
def _extents(axes: tuple[tuple[str, Extent], ...]) -> Extents:
    """Return extents by name, as one mapping for all domains with equal axes, which caches sums."""
    return Known(axes)


class Domain:
    """The axes of a loop nest in row-major order. A row has all points of the reduced axes."""

    def __init__(self, axes: tuple[Axis, ...]) -> None:
        self.axes = axes
        self._indices: dict[tuple[ValueKind, Shape], Index] = {}  # few, often looked up

    @cached_property
    def extents(self) -> Extents:
        """Return the extent of each index variable by its name."""
        return _extents(tuple((a.var.name, a.extent) for a in self.axes))

    @cached_property
    def kept(self) -> tuple[Axis, ...]:
        """Return the axes that are not reduced, along which reduced values lie."""
        return tuple(a for a in self.axes if not a.reduced)

    @cached_property
    def reduced(self) -> tuple[Axis, ...]:
        """Return the reduced axes."""
        return tuple(a for a in self.axes if a.reduced)

    @cached_property
    def points(self) -> tuple[Axis, ...]:
        """Return the axes of values of kind POINT."""
        return tuple(a for a in self.axes if not a.is_chunk_axis)

    @cached_property
    def point_index(self) -> Sum:
        """Return the linear index of a value of kind POINT."""
        return self._linear(self.points)

    @cached_property
    def row_index(self) -> Sum:
        """Return the linear index of a value of kind REDUCED."""
        return self._linear(self.kept)

    @cached_property
    def size(self) -> Extent:
        """Return the number of points."""
        return numel(a.extent for a in self.points)

    @cached_property
    def rows(self) -> Extent:
        """Return the number of rows."""
        return numel(a.extent for a in self.kept)

    def _linear(self, axes: tuple[Axis, ...]) -> Sum:
        """Return the row-major linear index over some axes."""
        return ravel([a.var for a in axes], tuple(a.extent for a in axes), self.extents)

    def reduces_dims(self, index: Index, dims: tuple[int, ...]) -> bool:
        """Return whether the reduced axes of the domain are dimensions ``dims`` of a value.

        Then all variables in those dimensions of its index are of reduced axes, and none in others.
        """
        reduced = {a.var for a in self.reduced}
        for k, expr in enumerate(index):
            used = set(variables(expr))
            if not (used <= reduced if k in dims else used.isdisjoint(reduced)):
                return False
        return True

    def index(self, kind: ValueKind, shape: Shape) -> Index:
        """Return the index at the current point of a value of a kind, which is not INLINE."""
        key = kind, shape
        if key not in self._indices:
            linear = self.point_index if kind is ValueKind.POINT else self.row_index
            self._indices[key] = unravel(linear, shape, self.extents)
        return self._indices[key]


@frozen
class ReducedAxes:
    """The dimensions of its input that a reduction or scan runs along, and the chunks of one."""

    axes: tuple[int, ...]
    chunks: Chunks | None = None


def reduced_axes_of(node: Node) -> ReducedAxes | None:
    """Return the reduced axes of a reduction or a scan; None for another operator."""
    reduction = reduce_of(node)
    if reduction is not None:
        return ReducedAxes(reduction.axes, reduction.chunks)
    scan = scan_of(node)
    return None if scan is None else ReducedAxes((scan.axis,))


def axes_of(
    shape: Shape, reduced: tuple[int, ...] | None, chunks: Chunks | None = None
) -> tuple[Axis, ...]:
    """Return an axis for each dimension of a shape that is not 1, after an axis of chunks if any.

    Args:
        shape: the shape of a value with an element for each point.
        reduced: the reduced dimensions; None without a reduction. Where there is one, the result
            has a reduced axis, of extent 1 if need be.
        chunks: the chunks in which a dimension is reduced, if it is.
    """
    chunked = -1 if chunks is None else chunks.axis
    dims = [k for k, n in enumerate(shape) if n != 1 or k == chunked]
    facts = [(shape[k], k in (reduced or ()), _chunk(chunks, k), False) for k in dims]
    if reduced is not None and not any(is_reduced for _, is_reduced, _, _ in facts):
        facts.append((1, True, None, False))
    if chunks is not None:
        facts.insert(0, (num_chunks(shape, chunks), False, None, True))
    facts = facts or [(1, False, None, False)]
    return tuple(Axis(Var(f"i{k}", dt.int64), *fact) for k, fact in enumerate(facts))


def _chunk(chunks: Chunks | None, dim: int) -> Extent | None:
    """Return the length of chunks along a dimension; None if it is not the chunked one."""
    return chunks.length if chunks is not None and chunks.axis == dim else None


def num_chunks(shape: Shape, chunks: Chunks) -> Extent:
    """Return the number of chunks of a value, of which the last may be shorter."""
    return (shape[chunks.axis] + (chunks.length - 1)) // chunks.length
