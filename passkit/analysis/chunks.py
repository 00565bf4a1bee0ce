"""Chunks in which long reductions are split, chosen by the reduced axes and the users."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from math import inf

from attrs import evolve

from passkit.analysis.partial import COMBINE_PARTIALS, PARTIAL_REDUCE, ReductionSplit
from passkit.ast import Chunks, Reduce
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.target.heuristics import TilingHeuristics
from passkit.target.target import Target
from passkit.values.size import Extent, Shape, Size, numel, substitute

TYPICAL = 64
"""The value of unknown extents in comparisons with lengths of chunks."""
MANY = 4
"""How many times more chunks an axis must have than one further out to be divided instead."""
MAX_NEARBY = 64
"""The most operators before and after a reduction that are looked at."""


def split_tiling(target: Target) -> TilingHeuristics:
    """Return the numbers of elements for `chunks_of`, which depend on the kind of device."""
    tiling = target.tiling
    if target.device:
        tiling = evolve(tiling, min_row_chunk=tiling.device_row_chunk, even_chunks=True)
    if target.device == "opencl":
        tiling = evolve(tiling, row_chunk=tiling.device_row_chunk)
    return tiling


def chunks_of(
    graph: Graph,
    node: Node,
    tiling: TilingHeuristics,
    long_rows: Collection[Extent] = frozenset(),
) -> ReductionSplit | None:
    """Return the chunks in which a reduction is split, None if it is better left alone.

    That is one of few elements, of an empty array, or whose elements are read again. None also for
    a node that is no reduction, and for parts of a split one. ``graph`` has the shapes and users of
    entries, ``tiling`` the elements of chunks and those from which on reductions are split.
    Reductions of a vector with an element for each row of a long matrix, whose numbers of rows are
    ``long_rows``, have chunks of ``long_matrix_chunk`` elements.

    Raises: PassError if the rank of the input is unknown; RuleError if FReduce returns something
    else than a reduction.
    """
    reduction = reduce_of(node)
    if reduction is None or node.op in (PARTIAL_REDUCE, COMBINE_PARTIALS):
        return None
    shape = graph.shape(node.inputs[0])
    if 0 in shape or not reduction.axes:
        return None
    innermost = max((k for k, n in enumerate(shape) if n != 1), default=-1)
    is_row = innermost in reduction.axes
    length = _typical(numel(shape[k] for k in reduction.axes))
    row_chunk = _row_chunk(length, tiling)
    min_length = tiling.min_row if is_row else tiling.min_column
    if is_row and numel(shape) in long_rows:
        row_chunk, min_length = tiling.long_matrix_chunk, tiling.min_long_matrix
    if length < min_length and not _has_unknown_extent(shape, reduction):
        return None
    if len(reduction.axes) < len(shape) or length < min_length:
        min_fused_length = tiling.min_fused_row if is_row else tiling.min_fused_column
        if length < min_fused_length and _elements_are_read_again(graph, node, shape):
            return None
    elements = row_chunk if is_row else tiling.column_chunk
    return _split(shape, reduction, elements, tiling.even_chunks)


def _has_unknown_extent(shape: Shape, reduction: Reduce) -> bool:
    """Return whether the extent of any axis of ``shape`` that ``reduction`` reduces is symbolic."""
    return any(isinstance(shape[k], Size) for k in reduction.axes)


def _typical(extent: Extent) -> int:
    """Return an extent as an integer, with `TYPICAL` in place of symbolic sizes."""
    if isinstance(extent, int):
        return extent
    return int(substitute(extent, dict.fromkeys(extent.symbols, TYPICAL)))


def _row_chunk(length: int, tiling: TilingHeuristics) -> int:
    """Return the elements of a chunk along the innermost axis of a reduction of ``length``.

    It depends on the length alone, so that a row has the same bits beside any other rows. Chunks
    double from ``tiling.min_row_chunk`` on until there are at most ``tiling.row_chunks``.
    """
    elements = tiling.min_row_chunk
    while elements < tiling.row_chunk and elements * tiling.row_chunks < length:
        elements *= 2
    return min(elements, tiling.row_chunk)


def _split(shape: Shape, reduction: Reduce, elements: int, is_even: bool) -> ReductionSplit | None:
    """Return a split into chunks of about ``elements`` elements of a reduction's operand.

    Args:
        shape: the operand's shape, without zeros.
        reduction: its reduced axes.
        elements: the elements to reduce in a chunk.
        is_even: whether no chunk has many more.

    Returns: Chunks of the outermost reduced axis of at least two chunks. Where these would have too
    many elements, adjacent axes are one axis, or another axis is divided that has `MANY` times as
    many chunks. An axis of symbolic extent counts as long enough, but no axis if another reduced
    axis is symbolic. None if there is no such axis.
    """
    chunks = _axis_chunks(shape, reduction, elements)
    if is_even and (chunks is None or _is_long(shape, reduction, chunks.axis, elements)):
        shape = _merged(shape, reduction)
        chunks = _axis_chunks(shape, reduction, elements, MANY)
    return None if chunks is None else ReductionSplit(shape, chunks)


def _is_long(shape: Shape, reduction: Reduce, axis: int, elements: int) -> bool:
    """Return whether one coordinate of an axis has more elements than a chunk should have."""
    other = _other_elements(shape, reduction, axis)
    return isinstance(other, Size) or other > elements


def _axis_chunks(
    shape: Shape, reduction: Reduce, elements: int, many: float = inf
) -> Chunks | None:
    """Return chunks of the outermost reduced axis that has two, see `_split`.

    An axis further in is divided instead if it has ``many`` times as many chunks.
    """
    best: tuple[int, Chunks] | None = None
    for k in reduction.axes:
        other = _other_elements(shape, reduction, k)
        if isinstance(other, Size):
            continue
        length = max(1, elements // other)
        extent = shape[k]
        if isinstance(extent, Size):
            return best[1] if best else Chunks(k, length)
        number = -(-extent // length)
        if extent >= 2 * length and (best is None or number >= many * best[0]):
            best = number, Chunks(k, length)
    return best[1] if best else None


def _other_elements(shape: Shape, reduction: Reduce, axis: int) -> Extent:
    """Return how many elements are reduced for each coordinate of a reduced axis."""
    return numel(shape[k] for k in reduction.axes if k != axis)


def _merged(shape: Shape, reduction: Reduce) -> Shape:
    """Return a shape in which adjacent reduced axes are the last of them, and the others 1.

    The innermost axis stays by itself: operands that have no other axes are read by vectors.
    """
    innermost = max((k for k, n in enumerate(shape) if n != 1), default=-1)
    extents = list(shape)
    for k in reduction.axes:
        if k + 1 in reduction.axes and k + 1 < innermost:
            extents[k + 1] = extents[k] * extents[k + 1]
            extents[k] = 1
    return tuple(extents)


def _elements_are_read_again(graph: Graph, node: Node, shape: Shape) -> bool:
    """Return whether the reduced elements are used around a reduction, as in softmax and variance.

    ``shape`` is that of the operand of ``node``. A value nearby that depends on the result then has
    as many elements as are reduced, or the operand depends on another reduction of as many. Raises:
    RuleError if FReduce of an operator returns something else than a reduction.
    """
    total = numel(shape)

    def users(n: Node) -> Iterator[Node]:
        """Yield the nodes that read an output of a node."""
        for entry in n.entries:
            yield from graph.users.get(entry, ())

    def producers(n: Node) -> Iterator[Node]:
        """Return the nodes that compute the inputs of a node."""
        return (e.node for e in n.inputs)

    for user in _nearby(node, users):
        if any(numel(graph.shape(e)) == total for e in user.entries):
            return True
    return any(
        reduce_of(n) is not None and numel(graph.shape(n.inputs[0])) == total
        for n in _nearby(node, producers)
    )


def _nearby(node: Node, neighbours: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """Return nodes near ``node``, breadth first, until there are `MAX_NEARBY` of them or more.

    ``neighbours`` returns those next to a node, such as its users. ``node`` itself is left out
    unless it is a neighbour's neighbour.
    """
    nearby: set[Node] = set()
    queue = [node]
    while queue and len(nearby) < MAX_NEARBY:
        for other in neighbours(queue.pop(0)):
            if other not in nearby:
                nearby.add(other)
                queue.append(other)
    return nearby
