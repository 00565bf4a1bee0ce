"""Gradients of tables: a few rows of many, which an update adds to and leaves the others alone."""

from __future__ import annotations

from typing import Any

from passkit.graph.node import Entry, Node
from passkit.ops.helpers import make


def rows_of(gradient: Entry) -> list[Node] | None:
    """The additions of rows to zeros that a gradient is the sum of; None if it is no such sum."""
    found: list[Node] = []
    waiting = [gradient.node]
    while waiting:
        node = waiting.pop()
        name = node.op.name if node.op is not None else ""
        if name == "add":
            waiting += [e.node for e in node.inputs]
        elif name == "index_add" and _is_zeros(node.inputs[0].node):
            found.append(node)
        else:
            return None
    return found


def _is_zeros(node: Node) -> bool:
    return node.op is not None and node.op.name == "zeros_like"


def added(table: Entry, rows: list[Node], factor: Any) -> Entry:
    """A table with ``factor`` times these rows added; equal indices add up."""
    for node in rows:
        _, index, value = node.inputs
        table = make("index_add", table, index, value * factor, **node.params)
    return table
