"""Kinds of parameters that hold a graph, such as the groups of fused nodes.

JSON and text write and read them without knowing them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from passkit.graph.graph import Graph
from passkit.graph.op import register_later

DEEPEST = 32
"""Values and graphs may be nested so deep."""


@frozen
class Nested:
    """A kind of parameter that holds a graph: how to take it apart and how to make it again."""

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
    """Let JSON and text write values of ``kind``, which hold a graph and some plain values."""
    NESTED[tag] = Nested(tag, kind, take, make)


def nested_of(value: Any) -> Nested | None:
    """The registered kind that ``value`` is of."""
    return next((n for n in NESTED.values() if isinstance(value, n.kind)), None)


register_nested("graph", Graph, lambda graph: (graph, {}), lambda graph, rest: graph)
