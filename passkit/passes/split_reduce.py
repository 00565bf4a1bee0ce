"""SplitReduce: split long reductions with few results in two, so that all cores share the first.

Whether a reduction is split depends on the reduced axes and on the users of its result, and the
chunks on the kind of target, never on the number of results nor on the machine: a row has the same
bits in any batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit.analysis.chunks import chunks_of, split_tiling
from passkit.analysis.partial import ReductionSplit, split_reduction
from passkit.ast import Contract
from passkit.graph.attribute_calls import contraction_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FReduce
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.values.size import Extent


@register_pass(
    "SplitReduce",
    depends="complete",
    preserves="functional",
    changes_graph=True,
    target_dependent=True,
)
def split_reduce(graph: Graph, context: PassContext) -> Graph:
    """Split reductions over many elements into partial reductions of chunks and their combination.

    Reductions in the option keep_together are left alone: another kernel would combine the chunks.
    Each split takes fuel of ``context``.

    y = reduce_sum(x[1000000])    becomes    p = partial(x) [31 sums]; y = join(p)

    Raises: RuleError if FReduce or FContract returns something else than it must.
    """
    if not any(n.op is not None and FReduce.get(n.op.name) is not None for n in graph.nodes):
        return graph
    kept_together = {n for names in context.keep_together for n in names}
    splits: dict[Node, ReductionSplit] = {}
    tiling = split_tiling(context.target)
    long_rows = set() if context.target.device else _rows_of_long_matrices(graph)
    for node in graph.nodes:
        split = chunks_of(graph, node, tiling, long_rows)
        if split is not None and graph.names[node] not in kept_together:
            splits[node] = split
    if not splits:
        return graph

    def replace(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        """Return the entries of the split reduction, None for a node that is not split.

        ``inputs`` are the node's inputs after rewriting.
        """
        if node not in splits or not context.spend(f"SplitReduce: {node.where}"):
            return None
        reduction = node if inputs == node.inputs else node.replaced(inputs)
        return split_reduction(reduction, splits[node]).entries

    return graph.rebuild(replace)


def _rows_of_long_matrices(graph: Graph) -> set[Extent]:
    """Return the numbers of rows of matrices that are multiplied by a vector on both sides.

    One product has an element for each row, another one sums over as many rows. The derivatives of
    linear models have both. Raises: RuleError if FContract returns something else than it must.
    """
    mapped: set[Extent] = set()
    summed: set[Extent] = set()
    for node in graph.nodes:
        product = contraction_of(node)
        if not isinstance(product, Contract):
            continue
        m, n = product.m, product.n
        if n == 1 and not product.transpose_a:
            mapped.add(m)
        elif m == 1 and product.transpose_b:
            mapped.add(n)
        elif (m == 1 and not product.transpose_b) or (n == 1 and product.transpose_a):
            summed.add(product.k)
    return mapped & summed
