"""Hints: the nodes that keep_together, keep_apart and no_fuse speak of, found again by Fusion.

Passes make new nodes, and number those without a name anew. So a node that a hint speaks of gets
its name for good before the first pass, and hints go by names from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from passkit.errors import SettingError, nearest
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes.context import PassContext
from passkit.passes.options import NodeName

GROUPS, ALONE = ("keep_together", "keep_apart"), "no_fuse"
HINTED = "hinted"
"""The annotation with the names in hints that the graph had before its first pass."""


def by_name(graph: Graph, context: PassContext) -> PassContext:
    """The context with names of the graph's nodes for the nodes in its hints.

    Raises: SettingError for a node without a name that the graph does not have.
    """
    if all(isinstance(what, str) for _, what in _hints(context)):
        return context

    def name(option: str, what: NodeName) -> str:
        if isinstance(what, str):
            return what
        found = graph.names.get(what) or what.name
        if not found:
            raise SettingError(
                f"{option} has {what.where}, which is not in the graph and has no name; give "
                f"nodes of the graph that is compiled, or their names"
            )
        return found

    given = _mapped(context, lambda option, names: [name(option, n) for n in names])
    return context.with_options(**given)


def pinned(graph: Graph, context: PassContext) -> tuple[Graph, PassContext]:
    """The graph in which nodes that hints speak of have names for good; hints by these names."""
    context = by_name(graph, context)
    wanted = {str(what) for _, what in _hints(context)}
    if not wanted:
        return graph, context
    names = graph.names
    found = wanted & {*names.values(), *_inner(graph)}
    bare = {n for n in graph.nodes if n.op and names[n] in wanted and n.name != names[n]}
    if bare and not graph.attrs:  # what has annotations has been through passes: names are settled

        def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
            return node.replaced(inputs, name=names[node]).entries if node in bare else None

        graph = graph.rebuild(change)
    return graph.with_attrs(**{HINTED: frozenset(found) | graph.attrs.get(HINTED, set())}), context


def together(context: PassContext) -> Iterator[list[str]]:
    """The lists of names that are to be in one group each, after `pinned`."""
    yield from ([str(n) for n in names] for names in context.keep_together)


def check(graph: Graph, context: PassContext) -> None:
    """Raises: SettingError for a name in a hint that no node has, or had before the passes."""
    known = {*graph.names.values(), *graph.attrs.get(HINTED, ())}
    for option, what in _hints(context):
        if what not in known:
            raise SettingError(f"{option}: the graph has no node {what!r}; {nearest(what, known)}")


def within(graph: Graph, context: PassContext) -> dict[str, Any]:
    """The hints that speak of nodes of a graph inside, as options."""
    known = {*graph.names.values(), *_inner(graph)}
    return _mapped(context, lambda _, names: [str(n) for n in names if n in known])


def named(context: PassContext) -> dict[str, Any]:
    """The hints that speak of anything, as options that a file can hold, after `by_name`."""
    found = _mapped(context, lambda _, names: [str(n) for n in names])
    return {option: given for option, given in found.items() if given}


def _hints(context: PassContext) -> Iterator[tuple[str, Any]]:
    """Each hint's option, with what it speaks of."""
    for option in GROUPS:
        for names in getattr(context, option):
            yield from ((option, what) for what in names)
    yield from ((ALONE, what) for what in getattr(context, ALONE))


def _mapped(
    context: PassContext, change: Callable[[str, Sequence[NodeName]], list[str]]
) -> dict[str, Any]:
    """All hints with their nodes changed, as options."""
    groups = {o: [change(o, names) for names in getattr(context, o)] for o in GROUPS}
    return {**groups, ALONE: change(ALONE, getattr(context, ALONE))}


def _inner(graph: Graph) -> Iterator[str]:
    """The names of the nodes of the graphs that operators hold, at any depth."""
    for held in (v for n in graph.nodes for v in n.params.values() if isinstance(v, Graph)):
        yield from held.names.values()
        yield from _inner(held)
