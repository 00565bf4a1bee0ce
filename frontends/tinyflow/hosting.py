"""Runs that are not worth a kernel: initial values are computed on the host.

Each is of another shape and runs once, so that compiling would take most of the time. Draws are
the same on the host as in a kernel, up to the last bits of logarithms and cosines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.frontends.tinyflow.running import Pure
from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.runtime.interpret import interpret
from passkit.runtime.state import State
from passkit.values.size import numel

MOST_HOSTED = 1 << 20
"""NumPy draws so many numbers about as fast as a kernel is compiled."""


def is_hosted(run: Pure, number: Node) -> bool:
    """Whether a run only writes what is made of constants and draws, and fetches nothing.

    ``number`` is the input that draws are made from.
    """
    fed = [n for n in run.graph.inputs if n is not number]
    if run.graph.outputs or run.reads or fed:
        return False
    sizes = [numel(v.entries[0].shape or ()) for v, _ in run.graph.updates]
    return all(isinstance(n, int) for n in sizes) and sum(map(int, sizes)) <= MOST_HOSTED


def on_host(graph: Graph, state: State) -> Callable[..., Any]:
    """A call that computes the updates of ``graph`` in NumPy and writes them into ``state``."""
    state.holding(graph)
    whole = Graph([e for _, e in graph.updates])
    names = [v.name for v, _ in graph.updates]
    inputs = [n.name for n in whole.inputs]

    def run(*arrays: Any) -> list[Any]:
        with state.lock:
            values = interpret(whole, dict(zip(inputs, arrays, strict=True)), dict(state.arrays))
            for name, value in zip(names, values, strict=True):
                state[name] = value
        return []

    return run
