"""FuseMatmulSums: replace matrix products that are only added up by one sum of products.

The gradients of a weight that every step of a loop uses are such. Each product is accumulated where
the result lies, which takes neither memory for each product nor kernels that add them.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from passkit.fusion.score import is_small
from passkit.fusion.strategy import find_fusion
from passkit.graph.attribute_calls import call_attribute, check_entry
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FContractSum, TOperator
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.values.size import numel

MAX_PRODUCTS = 64
"""The most products of one sum."""
MAX_OPERAND_BYTES = 64 << 20
"""The most bytes of the operands of one sum: all of them stay alive until the last product."""

OperandPosition = tuple[Node, int]
"""A node and the index of one of its inputs."""


@register_pass(
    "FuseMatmulSums",
    depends="complete",
    preserves="functional",
    changes_graph=True,
    target_dependent=True,
)
def fuse_matmul_sums(graph: Graph, context: PassContext) -> Graph:
    """Replace sums of matrix products by one operator, where a library of the host computes it.

    Nothing changes under a fusion strategy without ``library_patterns``, or on a device;
    ``context`` has both, and the fuel that each sum takes.

    y = a @ b + c @ d    becomes    y = matmul_sum(a, b, c, d)

    The sum is rounded like one product whose reduction runs over the steps of all products.

    Raises: RuleError if an FContractSum returns something else than an entry or None.
    """
    if not find_fusion(context.fusion).library_patterns or context.target.device:
        return graph
    sums = {s.node: s for s in _product_sums(graph, context)}
    if not sums:
        return graph
    rebuilt_inputs: dict[Node, tuple[Entry, ...]] = {}

    def replace(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        """Return the entries of the fused sum for a node that is one, None for other nodes.

        ``inputs`` are the node's inputs after rewriting; they are recorded for sums above it.
        Raises: RuleError if an FContractSum returns something else than an entry or None.
        """
        rebuilt_inputs[node] = inputs
        product_sum = sums.get(node)
        if product_sum is None or not context.spend(f"FuseMatmulSums: {node.where}"):
            return None
        fused = _fused([rebuilt_inputs[n][k].node for n, k in product_sum.products])
        if fused is None:  # checked on the nodes before they were rebuilt
            return None
        if product_sum.addend is None:
            return fused.node.replaced(name=node.name).entries
        n, k = product_sum.addend
        return node.replaced((rebuilt_inputs[n][k], fused)).entries

    return graph.rebuild(replace)


@frozen(eq=False)
class _ProductSum:
    """A node that adds up products and at most one other value, the ``addend``."""

    node: Node
    products: tuple[OperandPosition, ...]
    addend: OperandPosition | None


def _product_sums(graph: Graph, context: PassContext) -> list[_ProductSum]:
    """Return the sums of products of a graph; none is part of another.

    Nodes with control dependencies and nodes in fusion hints of ``context`` are left alone.

    Raises: RuleError if an FContractSum returns something else than an entry or None.
    """
    hints = (*context.keep_together, *context.keep_apart, context.no_fuse)
    hinted = {name for names in hints for name in names}
    candidates = {n for n in graph.nodes if not n.control and graph.names[n] not in hinted}
    kernel_steps = context.target.fusion.product_steps
    absorbed: set[Node] = set()
    sums: list[_ProductSum] = []
    for node in reversed(graph.nodes):
        if node in absorbed or node not in candidates or not _is_addition(node):
            continue
        leaves: list[OperandPosition] = []
        stack: list[OperandPosition] = [(node, 1), (node, 0)]
        while stack:
            position = stack.pop()
            user, index = position
            entry = user.inputs[index]
            producer = entry.node
            is_inner_sum = producer in candidates and _is_addition(producer)
            if is_inner_sum and _is_read_once(graph, entry, node):
                absorbed.add(producer)
                stack += [(producer, 1), (producer, 0)]
            else:
                leaves.append(position)
        product_sum = _product_sum(graph, node, leaves, candidates, kernel_steps)
        if product_sum is not None:
            sums.append(product_sum)
    return sums


def _is_addition(node: Node) -> bool:
    """Return whether a node adds two values: its operator is that of ``+``; not for a variable."""
    return node.op is not None and TOperator.get(node.op.name) == "+"


def _is_read_once(graph: Graph, entry: Entry, root: Node) -> bool:
    """Return whether ``entry`` is read once, as one input, and has the shape of ``root``, the sum.

    False for an output of the graph and a new value of state.
    """
    has_same_shape = graph.shape(entry) == graph.shape(root.entries[0])
    return has_same_shape and len(graph.users.get(entry, ())) == 1 and entry not in graph.heads


def _product_sum(
    graph: Graph,
    node: Node,
    leaves: Sequence[OperandPosition],
    candidates: set[Node],
    kernel_steps: int,
) -> _ProductSum | None:
    """Return the sum of products that a node computes from the ``leaves`` of its additions.

    Args:
        graph: The graph.
        node: The last addition.
        leaves: The operands that are no inner additions.
        candidates: The nodes that may be replaced.
        kernel_steps: The steps of a product that a kernel computes at most.

    Returns:
        None if there are fewer than two products or several other addends, if the products cannot
        be fused, exceed a limit, or are so small that kernels are faster.

    Raises: RuleError if FContractSum returns something else than an entry or None.
    """
    products: list[OperandPosition] = []
    addends: list[OperandPosition] = []
    for n, k in leaves:
        entry = n.inputs[k]
        op = entry.node.op
        is_product = op is not None and entry.node in candidates and FContractSum.get(op.name)
        target = products if is_product and _is_read_once(graph, entry, node) else addends
        target.append((n, k))
    nodes = [n.inputs[k].node for n, k in products]
    if not 2 <= len(nodes) <= MAX_PRODUCTS or len(addends) > 1 or _fused(nodes) is None:
        return None
    operands = dict.fromkeys(e for n in nodes for e in n.inputs)
    if sum(_nbytes(graph, e) for e in operands) > MAX_OPERAND_BYTES:
        return None
    if all(is_small(n, kernel_steps) for n in nodes):
        return None
    return _ProductSum(node, tuple(products), addends[0] if addends else None)


def _fused(nodes: Sequence[Node]) -> Entry | None:
    """Return the sum of the outputs of product nodes as one operator.

    None if there are no nodes or they have different operators, or their FContractSum returns None.

    Raises: RuleError if that returns something else than an entry or None.
    """
    if len({n.op for n in nodes}) != 1 or nodes[0].op is None:
        return None
    return check_entry(FContractSum, nodes[0], call_attribute(FContractSum, nodes[0], nodes))


def _nbytes(graph: Graph, entry: Entry) -> int:
    """Return the size of an entry in bytes, 0 if it is symbolic. Its rank and dtype are known."""
    size = numel(graph.shape(entry))
    return size * graph.dtype(entry).nbytes if isinstance(size, int) else 0
