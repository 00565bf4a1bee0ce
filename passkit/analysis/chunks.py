"""Chunks in which long reductions are split, chosen by the reduced axes and the users."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from math import prod

from passkit.analysis.partial import COMBINE_PARTIALS, PARTIAL_REDUCE
from passkit.ast import Chunks, Reduce
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.target.heuristics import TilingHeuristics
from passkit.values.size import Extent, Shape, Size, numel, substitute

TYPICAL = 64
"""The value of unknown extents in comparisons with lengths of chunks."""
MAX_NEARBY = 64
"""The most operators before and after a reduction that are looked at."""


def chunks_of(
    graph: Graph,
    node: Node,
    tiling: TilingHeuristics,
    long_rows: Collection[Extent] = frozenset(),
) -> Chunks | None:
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
    row_chunk = tiling.row_chunk
    min_length = tiling.min_row if is_row else tiling.min_column
    if is_row and numel(shape) in long_rows:
        row_chunk, min_length = tiling.long_matrix_chunk, tiling.min_long_matrix
    if length < min_length and not _has_unknown_extent(shape, reduction):
        return None
    if len(reduction.axes) < len(shape) or length < min_length:
        min_fused_length = tiling.min_fused_row if is_row else tiling.min_fused_column
        if length < min_fused_length and _elements_are_read_again(graph, node, shape):
            return None
    return _outermost_chunks(shape, reduction, row_chunk if is_row else tiling.column_chunk)


def _has_unknown_extent(shape: Shape, reduction: Reduce) -> bool:
    """Return whether the extent of any axis of ``shape`` that ``reduction`` reduces is symbolic."""
    return any(isinstance(shape[k], Size) for k in reduction.axes)


def _typical(extent: Extent) -> int:
    """Return an extent as an integer, with `TYPICAL` in place of symbolic sizes."""
    if isinstance(extent, int):
        return extent
    return int(substitute(extent, dict.fromkeys(extent.symbols, TYPICAL)))


def _outermost_chunks(shape: Shape, reduction: Reduce, elements: int) -> Chunks | None:
    """Return chunks of about ``elements`` elements of a reduction's input.

    Args:
        shape: the input's shape, without zeros.
        reduction: its reduced axes.
        elements: the elements to reduce in a chunk.

    Returns: The outermost reduced axis of at least two chunks, with the length of a chunk along it.
    An axis of symbolic extent counts as long enough, but no axis if another reduced axis is
    symbolic. None if there is no such axis.
    """
    for k in reduction.axes:
        inner = [shape[j] for j in reduction.axes if j != k]
        if any(isinstance(n, Size) for n in inner):
            continue
        length = max(1, elements // prod(n for n in inner if isinstance(n, int)))
        extent = shape[k]
        if isinstance(extent, Size) or extent >= 2 * length:
            return Chunks(k, length)
    return None


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
