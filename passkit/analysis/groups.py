"""The groups of a fused graph, with errors for those that users annotate themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from passkit.analysis.group import FUSED, Group
from passkit.errors import PassError
from passkit.graph.graph import Graph
from passkit.graph.infer import show_shape
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.op import FCodeGen, FContract, FElement, FExpand, FReduce, FScan, TStateful
from passkit.values.arguments import shown
from passkit.values.size import Shape

CODE = (FCodeGen, FElement, FReduce, FScan, FContract)
"""Attributes of which an operator in a kernel has one."""


def groups_of(graph: Graph) -> Mapping[Node, Group]:
    """Return the group of each fused node, from the annotation "subgraph".

    Raises: PassError if a fused node has no group, or one that is not closed or does not match it.
    """
    groups: Mapping[Node, Group] = graph.attrs["subgraph"]
    for node in graph.nodes:
        if node.op is FUSED and node not in groups:
            raise PassError(
                f"{node.where} has no group in annotation 'subgraph'; the pass that made the node "
                "must put it there by pk.Annotation"
            )
    for node, group in groups.items():
        _check(graph, node, group)
    return groups


def _check(graph: Graph, node: Node, group: Group) -> None:
    """Check a group of a fused node.

    Raises: PassError if it is no group, is not closed, or does not match the node.
    """
    if not isinstance(group, Group):
        raise PassError(
            f"annotation 'subgraph' must have a Group for {node.where}, got {shown(group)}; "
            f"pk.Group(graph, kind) makes one"
        )
    for inner in group.graph.nodes:
        problem = _problem(inner)
        if problem:
            op = "variable" if inner.op is None else inner.op.name
            raise _refusal(node, f"has {op} '{group.called(inner)}', {problem}")
    for entry in group.graph.outputs:
        if entry.node.is_variable or entry.node.op is CONSTANT:
            raise _refusal(
                node,
                f"has {entry.node.where} as an output, which it does not compute; let those who "
                f"read it read the input or constant itself",
            )
    _check_sides(graph, node, "input", node.inputs, [n.entries[0] for n in group.inputs])
    _check_sides(graph, node, "output", node.entries, group.graph.outputs)


def _problem(inner: Node) -> str:
    """Return why no kernel can have a node of a group, and the way out; "" if it can."""
    if inner.op is None:
        is_state = inner.params.get("state")
        return "a state variable; make it an input of the group" if is_state else ""
    if inner.op is CONSTANT and inner.params["value"].size != 1:
        return (
            f"a constant of {inner.params['value'].size} elements, and only constants of one "
            f"element stand in a kernel; put a pk.var in its place, and the constant among the "
            f"inputs of the fused node"
        )
    if TStateful.get(inner.op.name):
        return "which reads or writes state; leave it out of the group"
    if inner.op is FUSED:
        return "a group within a group; put the operators of both into one"
    if inner.op is CONSTANT or any(table.get(inner.op.name) is not None for table in CODE):
        return ""
    if FExpand.get(inner.op.name) is not None:
        return "a composite; run Expand first, so that the group has what it is made of"
    return "which no kernel computes; leave it out of the group"


def _check_sides(
    graph: Graph, node: Node, side: str, outer: Sequence[Entry], inner: Sequence[Entry]
) -> None:
    """Compare the entries of a fused node with the variables or outputs of its group.

    Args:
        graph: the graph of the node, which has the shapes.
        node: the fused node.
        side: "input" or "output".
        outer: the entries that the node reads, or its results.
        inner: the entries of the group's graph.

    Raises: PassError if their number, a dtype or a shape differs.
    """
    if len(outer) != len(inner):
        raise _refusal(
            node,
            f"has {len(inner)} {side}(s) and the fused node {len(outer)}; they go together in the "
            f"order of {'group.inputs' if side == 'input' else 'group.graph.outputs'}",
        )
    for k, (a, b) in enumerate(zip(outer, inner, strict=True)):
        shape, dtype = graph.shape(a), graph.dtype(a)
        if dtype is not b.dtype or not _agree(shape, b.shape):
            raise _refusal(
                node,
                f"has {b.dtype}{show_shape(b.shape)} as {side} {k}, and the fused node "
                f"{dtype}{show_shape(shape)}",
            )


def _agree(a: Shape | None, b: Shape | None) -> bool:
    """Return whether two shapes may be equal; symbolic extents may be equal to any."""
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(
        m == n or not (isinstance(m, int) and isinstance(n, int)) for m, n in zip(a, b, strict=True)
    )


def _refusal(node: Node, problem: str) -> PassError:
    """Return the error for a group with a problem."""
    return PassError(f"the group of {node.where} {problem}")
