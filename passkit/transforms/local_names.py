"""Names of the locals that kernels have for values."""

from __future__ import annotations

from collections.abc import Iterable

from passkit.graph.node import Node
from passkit.graph.node import is_leaf as is_free


def local_names(nodes: Iterable[Node]) -> dict[Node, str]:
    """Names of locals: the operator's name, numbered where it repeats; C identifiers."""
    count: dict[str, int] = {}
    names = {}
    for node in nodes:
        if is_free(node) or node.op is None:
            continue
        base = "".join(c if c.isalnum() and c.isascii() else "_" for c in node.op.name) or "op"
        base = f"v_{base}" if base[0].isdigit() else base
        k = count[base] = count.get(base, 0) + 1
        names[node] = f"{base}_{k}"
    return names
