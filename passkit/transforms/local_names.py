"""Names of the local variables of kernels."""

from __future__ import annotations

from collections.abc import Iterable

from passkit.graph.node import Node, is_leaf


def local_names(nodes: Iterable[Node]) -> dict[Node, str]:
    """Return C identifiers for the values of operators: the operator's name and a number."""
    count: dict[str, int] = {}
    names = {}
    for node in nodes:
        if is_leaf(node) or node.op is None:
            continue
        base = "".join(c if c.isalnum() and c.isascii() else "_" for c in node.op.name) or "op"
        base = f"v_{base}" if base[0].isdigit() else base
        k = count[base] = count.get(base, 0) + 1
        names[node] = f"{base}_{k}"
    return names
