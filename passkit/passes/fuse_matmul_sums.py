"""FuseMatmulSums: products of matrices that are only added up become one sum of products.

Such are the gradients of a weight that every step of a loop uses. One product after the other is
added where the result lies, which takes neither memory for each nor kernels that add them.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from passkit.graph import rules
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FContractSum, TOperator
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.passes.fusion.board import STEPS
from passkit.passes.fusion.scores import is_small
from passkit.plan.strategy import find_fusion
from passkit.values.size import numel

MOST, HELD = 64, 64 << 20
"""Products of one sum at most, and bytes of their operands: all of them wait for the last one."""

Place = tuple[Node, int]
"""An operand of a node."""


@register_pass(
    "FuseMatmulSums",
    depends="complete",
    preserves="functional",
    changes_graph=True,
    target_dependent=True,
)
def fuse_matmul_sums(graph: Graph, context: PassContext) -> Graph:
    """Join products that are added up, where libraries compute them and the strategy wants that.

    y = a @ b + c @ d    becomes    y = matmul_sum(a, b, c, d)

    The sum is rounded as one product is whose steps are those of all.
    """
    if not find_fusion(context.fusion).library_patterns or context.target.device:
        return graph
    found = {s.node: s for s in _sums(graph, context)}
    if not found:
        return graph
    read: dict[Node, tuple[Entry, ...]] = {}

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        read[node] = inputs
        own = found.get(node)
        if own is None or not context.spend(f"FuseMatmulSums: {node.where}"):
            return None
        made = _joined([read[n][k].node for n, k in own.products])
        assert made is not None
        if own.other is None:
            return made.node.replaced(name=node.name).entries
        n, k = own.other
        return node.replaced((read[n][k], made)).entries

    return graph.rebuild(change)


@frozen(eq=False)
class _Sum:
    """A node that adds products up, and at most one ``other`` value; both where they are read."""

    node: Node
    products: tuple[Place, ...]
    other: Place | None


def _sums(graph: Graph, context: PassContext) -> list[_Sum]:
    """The sums of products of a graph, of which none is part of another."""
    hints = (*context.keep_together, *context.keep_apart, context.no_fuse)
    named = {name for names in hints for name in names}
    open_ = {n for n in graph.nodes if not n.control and graph.names[n] not in named}
    inside: set[Node] = set()
    found: list[_Sum] = []
    for node in reversed(graph.nodes):
        if node in inside or node not in open_ or not _adds(node):
            continue
        leaves, todo = list[Place](), [(node, 1), (node, 0)]
        while todo:
            place = todo.pop()
            entry = place[0].inputs[place[1]]
            own = entry.node
            if own in open_ and _adds(own) and _is_passed_on(graph, entry, node):
                inside.add(own)
                todo += [(own, 1), (own, 0)]
            else:
                leaves.append(place)
        made = _sum(graph, node, leaves, open_)
        if made is not None:
            found.append(made)
    return found


def _adds(node: Node) -> bool:
    return node.op is not None and TOperator.get(node.op.name) == "+"


def _is_passed_on(graph: Graph, entry: Entry, node: Node) -> bool:
    """Whether a value is read once, and nowhere but in the sum ``node``, which has its shape."""
    same = graph.shape(entry) == graph.shape(node.entries[0])
    return same and len(graph.users.get(entry, ())) == 1 and entry not in graph.heads


def _sum(graph: Graph, node: Node, leaves: Sequence[Place], open_: set[Node]) -> _Sum | None:
    """What a node sums up; None where these are no products, or had better stay apart."""
    products, others = list[Place](), list[Place]()
    for n, k in leaves:
        entry = n.inputs[k]
        own = entry.node
        rule = own.op is not None and own in open_ and FContractSum.get(own.op.name)
        (products if rule and _is_passed_on(graph, entry, node) else others).append((n, k))
    nodes = [n.inputs[k].node for n, k in products]
    if not 2 <= len(nodes) <= MOST or len(others) > 1 or _joined(nodes) is None:
        return None
    held = (_nbytes(graph, e) for e in dict.fromkeys(e for n in nodes for e in n.inputs))
    if sum(held) > HELD or all(is_small(n, STEPS) for n in nodes):
        return None
    return _Sum(node, tuple(products), others[0] if others else None)


def _joined(nodes: Sequence[Node]) -> Entry | None:
    """The sum of the results of nodes of one operator as one node, if there is one."""
    if len({n.op for n in nodes}) != 1 or nodes[0].op is None:
        return None
    return rules.entry(FContractSum, nodes[0], rules.call(FContractSum, nodes[0], nodes))


def _nbytes(graph: Graph, entry: Entry) -> int:
    size = numel(graph.shape(entry))
    return size * graph.dtype(entry).nbytes if isinstance(size, int) else 0
