"""Graphs, nodes and entries pickled, as JSON, and copied deeply, node by node.

What is unpickled is read by `from_json`, which executes nothing. Operators are found by their
names, so that one of the user's own must be registered in the process that unpickles it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passkit.graph.graph import Graph, before, post_order
from passkit.graph.node import Entry, Node
from passkit.values.lazy import Lazy

_json: Any = Lazy("passkit.serial.json")
_root: Any = Lazy("passkit")
"""The package's root, which has the standard operators imported with what it gives."""


def text_of(graph: Graph) -> str:
    """A graph as JSON. Raises: GraphError naming a parameter that has no form in it."""
    return _json.to_json(graph)  # type: ignore[no-any-return]


def graph_of(text: str) -> Graph:
    """The graph of JSON text. Raises: ParseError naming what is wrong in it."""
    return _root.from_json(text)  # type: ignore[no-any-return]


def written(entries: Sequence[Entry]) -> str:
    """Entries, with all that they are computed from, as the JSON of a graph."""
    return text_of(Graph(entries))


def entry_of(text: str, number: int) -> Entry:
    """An output of the graph of JSON text."""
    return graph_of(text).outputs[number]


def node_of(text: str) -> Node:
    """The node of the first output of the graph of JSON text."""
    return graph_of(text).outputs[0].node


def deep(node: Node, memo: dict[int, Any]) -> Node:
    """A copy of a node and of all that it depends on, which ``memo`` shares with other copies.

    Arrays in parameters, which are frozen, are shared with the original.
    """
    for each in post_order([node], lambda n: () if id(n) in memo else before(n)):
        if id(each) not in memo:
            inputs = [memo[id(e.node)].entries[e.index] for e in each.inputs]
            made = each.replaced(inputs, [memo[id(c)] for c in each.control])
            memo[id(each)] = made
            memo.setdefault(id(memo), []).append(each)  # as `copy` keeps originals alive
    return memo[id(node)]  # type: ignore[no-any-return]


def deep_graph(graph: Graph, memo: dict[int, Any]) -> Graph:
    """An equal graph of new nodes, with the annotations that JSON would keep."""
    for node in graph.nodes:
        deep(node, memo)
    attrs = {k: v for k, v in graph.attrs.items() if _json.kind_of_attr(v) is not None}
    outputs = [memo[id(e.node)].entries[e.index] for e in graph.outputs]
    updates = [(memo[id(v)], memo[id(e.node)].entries[e.index]) for v, e in graph.updates]
    copied = Graph(outputs, updates, attrs)
    return copied.with_inputs([memo[id(n)] for n in graph.inputs])
