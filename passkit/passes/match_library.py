"""MatchLibrary: an operator and what it reads become one that a library computes as a whole.

Such is the gradient of a filter: a product of matrices of which one is a view of windows, which a
library of convolutions does not need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from passkit.graph import rules
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FLibraryPattern
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.plan.strategy import find_fusion


@register_pass(
    "MatchLibrary",
    depends="complete",
    preserves="functional",
    changes_graph=True,
    target_dependent=True,
)
def match_library(graph: Graph, context: PassContext) -> Graph:
    """Replace operators by one library call each, as their FLibraryPattern says.

    Nothing changes for a fusion strategy without ``library_patterns``, or on an OpenCL device.

    y = matmul(reshape(windows(x)), reshape(g), transpose_a)  becomes  y = window_products(x, g)
    """
    wanted = find_fusion(context.fusion).library_patterns
    if not wanted or context.target.device not in ("", "cuda"):
        return graph
    hints = (*context.keep_together, *context.keep_apart, context.no_fuse)
    named = {name for names in hints for name in names}

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        if node.op is None or FLibraryPattern.get(node.op.name) is None or node.control:
            return None
        if any(graph.names.get(n) in named for n in _behind(node)):
            return None
        now = node.replaced(inputs)
        made = rules.entry(FLibraryPattern, now, rules.call(FLibraryPattern, now, now))
        if made is None or not context.spend(f"MatchLibrary: {node.where}"):
            return None
        return made.node.replaced(name=node.name).entries

    return graph.rebuild(change)


def _behind(node: Node) -> Iterator[Node]:
    """A node, what it reads, and what that reads: a view, and its array in another shape."""
    yield node
    for e in node.inputs:
        yield e.node
        yield from (inner.node for inner in e.node.inputs)
