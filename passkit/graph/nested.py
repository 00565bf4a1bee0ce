"""Types of parameters that contain a graph, such as groups of fused nodes.

JSON and text serialize them by the functions registered here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from passkit.graph.graph import Graph
from passkit.graph.op import register_later

DEEPEST = 32
"""The deepest nesting of values and graphs that can be read."""


@frozen
class Nested:
    """A type of parameters that contain a graph, with its serialization.

    Attributes:
        tag: the name that serialized values carry.
        kind: the type.
        take: returns the graph in a value, and its other fields as plain values.
        make: creates a value from a graph and such fields.
    """

    tag: str
    kind: type
    take: Callable[[Any], tuple[Graph, dict[str, Any]]]
    make: Callable[[Graph, dict[str, Any]], Any]


NESTED: dict[str, Nested] = {}
register_later("passkit.runtime.loop")  # an operator that holds graphs


def register_nested(
    tag: str,
    kind: type,
    take: Callable[[Any], tuple[Graph, dict[str, Any]]],
    make: Callable[[Graph, dict[str, Any]], Any],
) -> None:
    """Let JSON and text serialize values of type ``kind``, which contain a graph.

    It replaces an earlier registration of ``tag``.

    Args:
        tag: the name that marks such values in files.
        kind: their class.
        take: returns the graph of a value and its other fields, which JSON can represent.
        make: creates a value from these two.
    """
    NESTED[tag] = Nested(tag, kind, take, make)


def nested_of(value: Any) -> Nested | None:
    """Return the first registration whose type ``value`` is an instance of, or None."""
    return next((n for n in NESTED.values() if isinstance(value, n.kind)), None)


register_nested("graph", Graph, lambda graph: (graph, {}), lambda graph, rest: graph)
