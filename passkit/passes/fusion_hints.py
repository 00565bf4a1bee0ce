"""Fusion hints: the options keep_together, keep_apart and no_fuse, which name nodes of a graph.

Passes create new nodes and number unnamed ones anew, so a name may come to mean another node. A
node in a hint is therefore given its present name for good before the first pass, and Fusion finds
it by this name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from passkit.errors import SettingError, nearest
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes.context import PassContext
from passkit.passes.options import NodeName

GROUP_OPTIONS = ("keep_together", "keep_apart")
"""The options that are lists of groups of nodes; `NO_FUSE` is a list of nodes."""
NO_FUSE = "no_fuse"
HINTED = "hinted"
"""The annotation with the names in hints that the graph had before its first pass."""


def with_hints_by_name(graph: Graph, context: PassContext) -> PassContext:
    """Return the context with names in its hints in place of nodes.

    A node of the graph has its unique name there, another node its own. It is the context itself if
    all are names.

    Raises: SettingError for a node that is not in the graph and has no name.
    """
    if all(isinstance(node, str) for _, node in _hints(context)):
        return context

    def name_of_hint(option: str, node: NodeName) -> str:
        """Return the name of ``node`` in a hint: itself if it is a text, else that of the node.

        An entry is no node here. Raises: SettingError, naming ``option``, if the node has no name.
        """
        if isinstance(node, str):
            return node
        name = graph.names.get(node) or node.name
        if not name:
            raise SettingError(
                f"{option} has {node.where}, which is not in the graph and has no name; give "
                f"nodes of the graph that is compiled, or their names"
            )
        return name

    options = _map_hints(context, lambda option, nodes: [name_of_hint(option, n) for n in nodes])
    return context.with_options(**options)


def pin_hinted_names(graph: Graph, context: PassContext) -> tuple[Graph, PassContext]:
    """Return the graph with permanent names for nodes in hints, and the context with these names.

    The names in hints that the graph, or a graph nested in it, has are added to its annotation
    `HINTED`. A graph with annotations has been through passes and keeps its names, which are
    permanent already. Without hints the graph is returned as it is.

    Raises: SettingError for a node that is not in the graph and has no name.
    """
    context = with_hints_by_name(graph, context)
    hinted = {str(name) for _, name in _hints(context)}
    if not hinted:
        return graph, context
    names = graph.names
    present = hinted & {*names.values(), *_nested_names(graph)}
    unnamed = {n for n in graph.nodes if n.op and names[n] in hinted and n.name != names[n]}
    if unnamed and not graph.attrs:

        def set_name(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
            """Return the entries of the node with its present name set, None if it is in no hint.

            ``inputs`` are its inputs after rewriting.
            """
            return node.replaced(inputs, name=names[node]).entries if node in unnamed else None

        graph = graph.rebuild(set_name)
    recorded = frozenset(present) | graph.attrs.get(HINTED, set())
    return graph.with_attrs(**{HINTED: recorded}), context


def check_hint_names(graph: Graph, context: PassContext) -> None:
    """Check that each name in a hint is that of a node, now or before the passes.

    Raises: SettingError naming the option, with the nearest name.
    """
    names = {*graph.names.values(), *graph.attrs.get(HINTED, ())}
    for option, name in _hints(context):
        if name not in names:
            raise SettingError(f"{option}: the graph has no node {name!r}; {nearest(name, names)}")


def nested_hint_options(graph: Graph, context: PassContext) -> dict[str, Any]:
    """Return the hints of ``context`` about nodes of ``graph``, as options by name.

    ``graph`` is a nested graph, one that an operator holds; hints about nodes that are neither in
    it nor in graphs nested in it are left out. All three options are there; groups may be empty.
    """
    names = {*graph.names.values(), *_nested_names(graph)}
    return _map_hints(context, lambda _, nodes: [str(n) for n in nodes if n in names])


def hint_options(context: PassContext) -> dict[str, Any]:
    """Return the hints that are not empty as options by name, after `with_hints_by_name`."""
    options = _map_hints(context, lambda _, nodes: [str(n) for n in nodes])
    return {option: names for option, names in options.items() if names}


def _hints(context: PassContext) -> Iterator[tuple[str, Any]]:
    """Yield (option, node) for each node in a hint."""
    for option in GROUP_OPTIONS:
        for nodes in getattr(context, option):
            yield from ((option, node) for node in nodes)
    yield from ((NO_FUSE, node) for node in getattr(context, NO_FUSE))


def _map_hints(
    context: PassContext, change: Callable[[str, Sequence[NodeName]], list[str]]
) -> dict[str, Any]:
    """Return all three hint options by name, each list of nodes after ``change(option, nodes)``.

    Errors of ``change`` propagate.
    """
    groups = {o: [change(o, nodes) for nodes in getattr(context, o)] for o in GROUP_OPTIONS}
    return {**groups, NO_FUSE: change(NO_FUSE, getattr(context, NO_FUSE))}


def _nested_names(graph: Graph) -> Iterator[str]:
    """Yield the names of the nodes of nested graphs, at any depth."""
    for nested in (v for n in graph.nodes for v in n.params.values() if isinstance(v, Graph)):
        yield from nested.names.values()
        yield from _nested_names(nested)
