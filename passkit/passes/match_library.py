"""MatchLibrary: replace an operator and its producers by one library call.

An example is the gradient of a convolution's filter, written as a matrix product in which one
operand is a view of windows (im2col). A library of convolutions does not need that view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from passkit.fusion.strategy import find_fusion
from passkit.graph import attribute_calls
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FLibraryPattern
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext


@register_pass(
    "MatchLibrary",
    depends="complete",
    preserves="functional",
    changes_graph=True,
    target_dependent=True,
)
def match_library(graph: Graph, context: PassContext) -> Graph:
    """Replace operators by one library call each, as their FLibraryPattern specifies.

    Nothing changes under a fusion strategy without ``library_patterns``, or on an OpenCL device;
    ``context`` has both, and the fuel that each call takes. Operators with control dependencies,
    and patterns with a node in a fusion hint, are kept.

    y = matmul(reshape(windows(x)), reshape(g), transpose_a)  becomes  y = window_products(x, g)

    Raises: RuleError if an FLibraryPattern returns something else than an entry or None.
    """
    has_library = context.target.device in ("", "cuda")
    if not find_fusion(context.fusion).library_patterns or not has_library:
        return graph
    hints = (*context.keep_together, *context.keep_apart, context.no_fuse)
    hinted = {name for names in hints for name in names}

    def replace(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        """Return the entries of the library call for a node that matches, None for other nodes.

        ``inputs`` are the node's inputs after rewriting. Raises: RuleError if FLibraryPattern
        returns something else than an entry or None.
        """
        if node.op is None or FLibraryPattern.get(node.op.name) is None or node.control:
            return None
        if any(graph.names.get(n) in hinted for n in _nodes_of_pattern(node)):
            return None
        view = node.replaced(inputs)
        call = attribute_calls.check_entry(
            FLibraryPattern, view, attribute_calls.call_attribute(FLibraryPattern, view, view)
        )
        if call is None or not context.spend(f"MatchLibrary: {node.where}"):
            return None
        return call.node.replaced(name=node.name).entries

    return graph.rebuild(replace)


def _nodes_of_pattern(node: Node) -> Iterator[Node]:
    """Yield a node, its producers and theirs, some perhaps repeatedly.

    Patterns have a view of a reshaped array.
    """
    yield node
    for e in node.inputs:
        yield e.node
        yield from (inner.node for inner in e.node.inputs)
