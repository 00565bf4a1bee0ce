"""Parameters: the buffers that are the arguments of a kernel."""

from __future__ import annotations

from passkit.ast.stage import Buffer, Place
from passkit.graph.graph import Graph
from passkit.graph.node import known_shape
from passkit.values.size import numel


def params_of(graph: Graph) -> tuple[Buffer, ...]:
    """Return the inputs and results of a group as parameters of its kernel."""
    params: list[Buffer] = []
    for side, entries in (("x", [n.entries[0] for n in graph.inputs]), ("y", graph.outputs)):
        for k, e in enumerate(entries):
            assert e.dtype is not None
            size = numel(known_shape(e))
            params.append(Buffer(f"{side}{k}", e.dtype, Place.GLOBAL, size, side == "y"))
    return tuple(params)
