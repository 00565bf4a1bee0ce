"""The strategies "none" (every operator alone) and "nnvm" (nnvm-fusion's pairwise rule).

Source: nnvm-fusion, src/fusion.cc, without its defects: graph outputs count as uses, control
dependences are kept, and an `FCodeGen` is what makes an operator fusible.
"""

from __future__ import annotations

from collections.abc import Container

from passkit.diagnostics import Diagnostic
from passkit.fusion.fusible import why_opaque
from passkit.fusion.fusion_plan import FusionPlan
from passkit.fusion.options import FusionOptions
from passkit.fusion.strategy import register_fusion
from passkit.graph.graph import Graph
from passkit.graph.node import Node, is_leaf
from passkit.graph.op import FCodeGen, OpPattern
from passkit.values.size import numel


@register_fusion("none")
def singles(graph: Graph, context: FusionOptions) -> FusionPlan:
    """Every operator in a group of its own."""
    fusion_plan = FusionPlan()
    for node in graph.nodes:
        if why_opaque(graph, node, context.target) is None:
            fusion_plan.groups.append([node])
    fusion_plan.note_all(graph, lambda *_: Diagnostic("fusion.off"))
    return fusion_plan


@register_fusion("nnvm", expands=False)
def pairwise(graph: Graph, context: FusionOptions) -> FusionPlan:
    """A consumer absorbs an elementwise producer that nobody else reads, users first.

    Both need one shape, or one element (nnvm-fusion's only broadcast).
    """
    fusion_plan, root = FusionPlan(), dict[Node, Node]()
    uses = {e: len(ns) for e, ns in graph.users.items()}
    awaited = {c for n in graph.nodes for c in n.control}
    for entry in graph.heads:
        uses[entry] = uses.get(entry, 0) + 1
    for user in reversed(graph.nodes):
        if why_opaque(graph, user, context.target) is None:
            root.setdefault(user, user)
        for entry in dict.fromkeys(user.inputs):
            node = entry.node
            if is_leaf(node):
                continue
            reason = _check_edge(graph, context, node, user, uses[entry], awaited)
            if reason is None and not context.spend(f"fuse {graph.names[node]}"):
                reason = Diagnostic("fuel")
            if reason is None:
                root[node] = root[user]
                reason = Diagnostic("fused.elementwise")
            fusion_plan.note(graph.names, node, user, reason)
    members: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if node in root:
            members.setdefault(root[node], []).append(node)
    fusion_plan.groups = list(members.values())
    return fusion_plan


def _check_edge(
    graph: Graph,
    context: FusionOptions,
    node: Node,
    user: Node,
    uses: int,
    awaited: Container[Node],
) -> Diagnostic | None:
    """Return why a user does not absorb a node; None if it does.

    Args:
        graph: the graph.
        context: the target.
        node: the node.
        user: an operator that reads it.
        uses: how many operators read it, and results of the graph it is.
        awaited: the nodes that others must run after.
    """
    for n in (node, user):
        opaque = why_opaque(graph, n, context.target)
        if opaque is not None:
            return opaque
        assert n.op is not None
        if n.op.pattern > OpPattern.BROADCAST or FCodeGen.get(n.op.name) is None:
            return Diagnostic("op.pattern", {"op": n.op.name})
    if uses != 1:
        return Diagnostic("graph.multiple_uses", {"count": uses})
    if node in awaited or user.control:
        ordered = node if node in awaited else user
        return Diagnostic("graph.control_node", {"node": graph.names[ordered]})
    shape, user_shape = graph.shape(node.entries[0]), graph.shape(user.entries[0])
    if shape != user_shape and numel(shape) != 1:
        return Diagnostic("domain.shapes", {"shape": shape, "wanted": user_shape})
    return None
