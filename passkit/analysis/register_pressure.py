"""Registers that a kernel of a group will need, before anything is compiled.

Those of the values that are alive at once, and of indices. Source: FusionStitching (2020).
"""

from __future__ import annotations

from passkit.graph.graph import Graph
from passkit.graph.node import Entry, is_leaf

BASE_REGISTERS, WIDE, MOST = 12, 4, 255
"""Registers of indices and addresses; the bytes of one; and how many a thread has at most."""


def register_pressure(graph: Graph) -> int:
    """The registers that a thread needs about, for one point of each value that is alive."""
    nodes = graph.nodes
    first: dict[Entry, int] = {}
    last: dict[Entry, int] = {}
    for k, node in enumerate(nodes):
        for e in node.inputs:
            first.setdefault(e, k)  # what is read from memory comes when it is wanted
            last[e] = k
        if node.op is not None and not is_leaf(node):
            first.update(dict.fromkeys(node.entries, k))
    last.update(dict.fromkeys(graph.outputs, len(nodes)))
    changes = [0] * (len(nodes) + 2)
    for e, k in first.items():
        if e in last and not (is_leaf(e.node) and e.node.op is not None):
            words = max(1, (e.dtype.nbytes if e.dtype is not None else WIDE) // WIDE)
            changes[k] += words
            changes[last[e] + 1] -= words
    alive = most = 0
    for change in changes:
        alive += change
        most = max(most, alive)
    return min(MOST, BASE_REGISTERS + most)
