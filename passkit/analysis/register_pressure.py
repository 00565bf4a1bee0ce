"""Register pressure: an estimate of the registers of a kernel, before anything is compiled.

It counts the values that are live at once, and indices. Source: FusionStitching (2020).
"""

from __future__ import annotations

from passkit.graph.graph import Graph
from passkit.graph.node import Entry, is_leaf

BASE_REGISTERS = 12
"""The registers of indices and addresses."""
REGISTER_NBYTES = 4
"""The bytes of a register."""
MAX_REGISTERS = 255
"""The most registers of a thread."""


def register_pressure(graph: Graph) -> int:
    """Return about how many registers a thread needs, with one element of each live value."""
    nodes = graph.nodes
    first: dict[Entry, int] = {}
    last: dict[Entry, int] = {}
    for k, node in enumerate(nodes):
        for e in node.inputs:
            first.setdefault(e, k)  # inputs are loaded when they are read first
            last[e] = k
        if node.op is not None and not is_leaf(node):
            first.update(dict.fromkeys(node.entries, k))
    last.update(dict.fromkeys(graph.outputs, len(nodes)))
    changes = [0] * (len(nodes) + 2)
    for e, k in first.items():
        if e in last and not (is_leaf(e.node) and e.node.op is not None):
            nbytes = REGISTER_NBYTES if e.dtype is None else e.dtype.nbytes
            registers = max(1, nbytes // REGISTER_NBYTES)
            changes[k] += registers
            changes[last[e] + 1] -= registers
    live = max_live = 0
    for change in changes:
        live += change
        max_live = max(max_live, live)
    return min(MAX_REGISTERS, BASE_REGISTERS + max_live)
