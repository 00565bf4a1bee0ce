"""Pickling and deep copies of graphs, nodes and entries.

A pickle holds the JSON of a graph, which `from_json` reads without executing anything. Operators
are looked up by name, so custom ones must be registered in the process that unpickles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passkit.graph.graph import Graph, before, post_order
from passkit.graph.node import Entry, Node
from passkit.serial.json import kind_of_attr, to_json
from passkit.values.lazy import Lazy

_root: Any = Lazy("passkit")
"""The package root, whose functions import the standard operators first."""


def text_of(graph: Graph) -> str:
    """Return a graph as JSON.

    Raises: GraphError for a parameter that JSON cannot represent, DTypeError for an array of a
    dtype that passkit does not have.
    """
    return to_json(graph)


def graph_of(text: str) -> Graph:
    """Return the graph in JSON text; unpickling calls it.

    Raises: ParseError where the text is malformed or names an unknown operator; DTypeError for an
    unknown dtype; the error of an operator that refuses its inputs or parameters, such as
    ShapeError.
    """
    return _root.from_json(text)  # type: ignore[no-any-return]


def text_of_entries(entries: Sequence[Entry]) -> str:
    """Return the JSON of a graph whose outputs are ``entries``.

    Raises: GraphError for a parameter that JSON cannot represent, DTypeError for an array of a
    dtype that passkit does not have.
    """
    return text_of(Graph(entries))


def entry_of(text: str, number: int) -> Entry:
    """Return output ``number`` of the graph that ``text`` holds as JSON; unpickling calls it.

    Raises: ParseError where the text is malformed or names an unknown operator; DTypeError for an
    unknown dtype; the error of an operator that refuses its inputs or parameters, such as
    ShapeError.
    """
    return graph_of(text).outputs[number]


def node_of(text: str) -> Node:
    """Return the node of the first output of the graph in JSON text; unpickling calls it.

    Raises: ParseError where the text is malformed or names an unknown operator; DTypeError for an
    unknown dtype; the error of an operator that refuses its inputs or parameters, such as
    ShapeError.
    """
    return graph_of(text).outputs[0].node


def deep_copy(node: Node, memo: dict[int, Any]) -> Node:
    """Return a copy of a node and of all that it depends on, or its copy in ``memo``.

    ``memo`` is that of `copy.deepcopy`, which maps ids of objects to their copies; it is extended.
    Values of parameters, such as arrays, are shared with the original.
    """
    for each in post_order([node], lambda n: () if id(n) in memo else before(n)):
        if id(each) not in memo:
            inputs = [memo[id(e.node)].entries[e.index] for e in each.inputs]
            memo[id(each)] = each.replaced(inputs, [memo[id(c)] for c in each.control])
            memo.setdefault(id(memo), []).append(each)  # keeps the original alive, as copy does
    return memo[id(node)]  # type: ignore[no-any-return]


def deep_copy_graph(graph: Graph, memo: dict[int, Any]) -> Graph:
    """Return a copy of a graph and its nodes, its inputs in the same order.

    Of the annotations it has those that are strings, numbers (of Python, finite), bools, or lists
    or tuples of strings or of ints. ``memo`` is the one of `copy.deepcopy`: it maps ids of objects
    to their copies and is extended.
    """
    for node in graph.nodes:
        deep_copy(node, memo)
    attrs = {k: v for k, v in graph.attrs.items() if kind_of_attr(v) is not None}
    outputs = [memo[id(e.node)].entries[e.index] for e in graph.outputs]
    updates = [(memo[id(v)], memo[id(e.node)].entries[e.index]) for v, e in graph.updates]
    copied = Graph(outputs, updates, attrs)
    return copied.with_inputs([memo[id(n)] for n in graph.inputs])
