"""Rows that are reduced and then moved: a group of one space, in the order of the results.

A layer norm whose result is rolled, or cut into windows, goes through its rows in one order and
through its results in another. As each row is reduced by itself, the order of the results can be
that of all: each point of the space then computes what is moved to its place, and rows are read
from where they lie, which takes no pass over memory.
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
"""The number of a row among those of the results."""


@frozen
class RowOrder:
    """An order in which rows are computed: that in which operators have moved them.

    Attributes:
        count: the number of rows.
        index: where each is, without the last axis, in the value that is moved, by its `ROW`. By
            that orders of values that are moved are compared, and those of moves have none.
        moves: the operators, the last one first.
    """

    count: Extent
    index: Index
    moves: tuple[Node, ...] = field(eq=False)

    @property
    def shape(self) -> Shape:
        """The shape of what is moved, in this order."""
        return known_shape(self.moves[0].entries[0])

    def rows_at(self, index: Index, shape: Shape, extents: Extents) -> Index:
        """Return which row is at the index of a result, in a value of a shape in this order.

        Both indices are without the last axis; the value is what is moved, or an operand of it.
        """
        at = (*index, size_of(0))
        for move in self.moves:
            at = accesses_of(move, at, extents).at[0][1]
        return broadcast_index(at[:-1], shape[:-1])


def row_orders(graph: Graph) -> Mapping[Node, RowOrder]:
    """Return the nodes of a group whose rows are moved behind a reduction, with their order.

    They are reductions along the last axis, elementwise operators before and behind them, and moves
    that others move on. There are none if one of them is read in two orders, or is something else.
    """
    behind = _behind_reductions(graph)
    moves = {n for n in behind if _is_move(n)}
    if not moves:
        return {}
    orders_read = _orders_read(graph, behind, moves)
    first_orders = {n: next(iter(read)) for n, read in orders_read.items() if read}
    orders = {n: order for n, order in first_orders.items() if order is not None}
    if all(reduce_of(n) is None for n in orders):
        return {}
    for order in list(orders.values()):
        for k, move in enumerate(order.moves[1:], 1):
            if not orders_read[move]:  # it is read by the move behind it only
                orders[move] = RowOrder(order.count, (), order.moves[:k])
    return orders


def _behind_reductions(graph: Graph) -> set[Node]:
    """Return reductions, and what comes from them."""
    behind: set[Node] = set()
    for node in graph.nodes:
        if reduce_of(node) is not None or any(e.node in behind for e in node.inputs):
            behind.add(node)
    return behind


def _is_move(node: Node) -> bool:
    """Return whether an operator only moves rows, no more of them than there were.

    The last axis stays as it is.
    """
    op = node.op
    if op is None or FElement.get(op.name) is None or len(node.inputs) != 1 != len(node.entries):
        return False
    shape, before = known_shape(node.entries[0]), known_shape(node.inputs[0])
    if not shape or not before or shape[-1] != before[-1] or shape[-1] == 1:
        return False
    index = tuple(Var(f"moved_{k}", dt.int64) for k in range(len(shape)))
    reads = accesses_of(node, index, Known((v.name, n) for v, n in zip(index, shape, strict=True)))
    if not reads.plain or len(reads.at) != 1:
        return False
    *rows, last = reads.at[0][1]
    keeps_rows = last == index[-1] and all(index[-1] not in variables(x) for x in rows)
    return keeps_rows and at_least(numel(before[:-1]), numel(shape[:-1]))


Orders = dict[RowOrder | None, None]
"""The orders in which a value is read, each once; None is that in which it lies."""


def _orders_read(graph: Graph, behind: set[Node], moves: set[Node]) -> dict[Node, Orders]:
    """Return the orders in which nodes are read, one for each; nothing if one has no such order."""
    orders_read: dict[Node, Orders] = {n: {} for n in graph.nodes}
    for e in graph.outputs:
        orders_read[e.node][None] = None
    for node in reversed(graph.nodes):
        orders = orders_read[node]
        if node in moves and None in orders:
            source, order = _chain(node, moves)
            orders_read[source][order] = None
        if len(orders) > 1:
            if node in behind:
                return {}
            orders = orders_read[node] = {None: None}  # it is computed where it is read
        for order in orders:
            if order is not None and not _has_any_order(node, node in behind, order):
                return {}
            if node not in moves and not is_leaf(node):
                of_inputs = None if _moves_elements(node) else order
                for e in node.inputs:
                    orders_read[e.node][of_inputs] = None
    return orders_read


def _moves_elements(node: Node) -> bool:
    """Return whether an operator reads its inputs at indices of its own."""
    return node.op is not None and node.op.has_attr("FElement")


def _chain(node: Node, moves: set[Node]) -> tuple[Node, RowOrder | None]:
    """Return what a move and those before it move, and in which order it is then.

    That is None where it is the order in which it lies.
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


def _has_any_order(node: Node, is_behind: bool, order: RowOrder) -> bool:
    """Return whether a node can compute its rows in another order.

    A reduction has no more rows then, as it would compute some repeatedly. ``is_behind`` says that
    the node comes from one: what does not may be any operator that has no order of its own.
    """
    reduction, shape = reduce_of(node), known_shape(node.entries[0])
    if reduction is not None:
        is_of_rows = (
            reduction.keepdims and reduction.axes == (len(shape) - 1,) and reduction.chunks is None
        )
        return is_of_rows and reduction.chunks is None and at_least(numel(shape[:-1]), order.count)
    if is_leaf(node):
        return True
    is_plain = len(node.entries) == 1 and scan_of(node) is None
    return is_plain and not (is_behind and _moves_elements(node))
