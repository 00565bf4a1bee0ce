"""Rows that are reduced and then moved: groups with one domain, in the order of the results.

An example is a layer norm whose result is rolled, or divided into windows: it is computed in one
order of rows, and its result is stored in another. As each row is reduced by itself, all values can
have the order of the results: a point computes the element that is moved to it, and reads its row
from where that is. So the move needs no pass over memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from passkit.analysis.accesses import Index, accesses_of, broadcast_index
from passkit.ast import Var, size_of
from passkit.ast.index import Extents, Known, Sum, ravel, unravel
from passkit.ast.walk import variables
from passkit.graph.attribute_calls import reduce_of, scan_of
from passkit.graph.graph import Graph
from passkit.graph.node import Node, is_leaf, known_shape
from passkit.graph.op import FElement
from passkit.values import dtype as dt
from passkit.values.size import Extent, Shape, at_least, numel

ROW = Var("moved_row", dt.int64)
"""The number of a row in the order of the results."""


@frozen
class RowOrder:
    """An order of rows: that into which operators move them.

    Attributes:
        count: the number of rows.
        index: the index of row `ROW` in the value that is moved, without the last axis. Orders of
            moved values are compared by it; those of the moves themselves have no index.
        moves: the operators that move rows, the last one first.
    """

    count: Extent
    index: Index
    moves: tuple[Node, ...] = field(eq=False)

    @property
    def shape(self) -> Shape:
        """Return the shape of the moved value, in this order."""
        return known_shape(self.moves[0].entries[0])

    def rows_at(self, index: Index, shape: Shape, extents: Extents) -> Index:
        """Return the index of a row before it is moved, without the last axis.

        Args:
            index: the index of the row in the result, without the last axis.
            shape: the shape of the moved value, or of an operand that broadcasts to it.
            extents: the extents of index variables.
        """
        at = (*index, size_of(0))
        for move in self.moves:
            at = accesses_of(move, at, extents).at[0][1]
        return broadcast_index(at[:-1], shape[:-1])


def row_orders(graph: Graph) -> Mapping[Node, RowOrder]:
    """Return the order of rows of the nodes of a group whose rows are moved after a reduction.

    Such nodes are reductions along the last axis, elementwise operators before and after them, and
    moves whose results are moved again. There are none if one of them is read in two orders, or if
    another operator is among them.
    """
    dependent = _dependent_on_reductions(graph)
    moves = {n for n in dependent if _is_move(n)}
    if not moves:
        return {}
    orders_read = _orders_read(graph, dependent, moves)
    first_orders = {n: next(iter(read)) for n, read in orders_read.items() if read}
    orders = {n: order for n, order in first_orders.items() if order is not None}
    if all(reduce_of(n) is None for n in orders):
        return {}
    for order in list(orders.values()):
        for k, move in enumerate(order.moves[1:], 1):
            if not orders_read[move]:  # only the next move reads it
                orders[move] = RowOrder(order.count, (), order.moves[:k])
    return orders


def _dependent_on_reductions(graph: Graph) -> set[Node]:
    """Return the reductions of a graph and all nodes that depend on one."""
    dependent: set[Node] = set()
    for node in graph.nodes:
        if reduce_of(node) is not None or any(e.node in dependent for e in node.inputs):
            dependent.add(node)
    return dependent


def _is_move(node: Node) -> bool:
    """Return whether an operator only moves rows, along other axes than the last one.

    Its result has no more rows than its input.
    """
    op = node.op
    if op is None or FElement.get(op.name) is None or len(node.inputs) != 1 != len(node.entries):
        return False
    shape, before = known_shape(node.entries[0]), known_shape(node.inputs[0])
    if not shape or not before or shape[-1] != before[-1] or shape[-1] == 1:
        return False
    index = tuple(Var(f"moved_{k}", dt.int64) for k in range(len(shape)))
    extents = Known((v.name, n) for v, n in zip(index, shape, strict=True))
    accesses = accesses_of(node, index, extents)
    if not accesses.plain or len(accesses.at) != 1:
        return False
    *rows, last = accesses.at[0][1]
    keeps_rows = last == index[-1] and all(index[-1] not in variables(x) for x in rows)
    return keeps_rows and at_least(numel(before[:-1]), numel(shape[:-1]))


Orders = dict[RowOrder | None, None]
"""The orders in which the rows of a value are read, each once; None is its own order."""


def _orders_read(graph: Graph, dependent: set[Node], moves: set[Node]) -> dict[Node, Orders]:
    """Return the orders in which each node is read, one at most for nodes of several.

    Args:
        graph: the group's graph.
        dependent: the reductions, and all nodes that depend on one. Each is read in one order.
        moves: those that move rows.

    Returns: nothing if a node is read in two orders, or cannot compute its rows in the order in
    which it is read. A node that depends on no reduction is computed where it is read instead.
    """
    orders_read: dict[Node, Orders] = {n: {} for n in graph.nodes}
    for e in graph.outputs:
        orders_read[e.node][None] = None
    for node in reversed(graph.nodes):
        orders = orders_read[node]
        if node in moves and None in orders:
            source, order = _moved_value(node, moves)
            orders_read[source][order] = None
        if len(orders) > 1:
            if node in dependent:
                return {}
            orders = orders_read[node] = {None: None}
        for order in orders:
            if order is not None and not _has_any_order(node, node in dependent, order):
                return {}
            if node not in moves and not is_leaf(node):
                operand_order = None if _moves_elements(node) else order
                for e in node.inputs:
                    orders_read[e.node][operand_order] = None
    return orders_read


def _moves_elements(node: Node) -> bool:
    """Return whether an operator reads its inputs at other indices than that of its element."""
    return node.op is not None and node.op.has_attr("FElement")


def _moved_value(node: Node, moves: set[Node]) -> tuple[Node, RowOrder | None]:
    """Return the node whose rows a sequence of moves moves, and their order after these moves.

    Args:
        node: the last move.
        moves: all moves of the graph.

    Returns: the node, and None for an order that is the node's own.
    """
    rows = known_shape(node.entries[0])[:-1]
    extents = Known([(ROW.name, numel(rows))])
    at = (*unravel(Sum(((ROW, 1),)), rows, extents), size_of(0))
    chain: list[Node] = []
    while node in moves:
        at = accesses_of(node, at, extents).at[0][1]
        chain.append(node)
        node = node.inputs[0].node
    before = known_shape(node.entries[0])[:-1]
    is_same = numel(rows) == numel(before) and ravel(at[:-1], before, extents).terms == ((ROW, 1),)
    return node, None if is_same else RowOrder(numel(rows), at[:-1], tuple(chain))


def _has_any_order(node: Node, is_dependent: bool, order: RowOrder) -> bool:
    """Return whether a node can compute its rows in another order.

    Args:
        node: the node.
        is_dependent: whether it depends on a reduction. If not, it is computed where it is read,
            and may read its inputs at any index.
        order: the order. A reduction must have as many rows or more, as it would otherwise compute
            some repeatedly.
    """
    reduction, shape = reduce_of(node), known_shape(node.entries[0])
    if reduction is not None:
        is_of_rows = (
            reduction.keepdims and reduction.axes == (len(shape) - 1,) and reduction.chunks is None
        )
        return is_of_rows and at_least(numel(shape[:-1]), order.count)
    if is_leaf(node):
        return True
    has_one_result = len(node.entries) == 1 and scan_of(node) is None
    return has_one_result and not (is_dependent and _moves_elements(node))
