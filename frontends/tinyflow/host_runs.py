"""Host runs: initial values are computed in NumPy, as no kernel is worth compiling for them.

Each variable has another shape and is initialized once, so that compiling would dominate the time.
Random draws on the host equal those of kernels but for the last bits of logarithms and cosines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.frontends.tinyflow.functionalize import FunctionalRun
from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.runtime.interpret import interpret
from passkit.runtime.state import State
from passkit.values.size import numel

MAX_HOST_ELEMENTS = 1 << 20
"""The most elements that a host run computes: drawing them takes about as long as compiling."""


def runs_on_host(run: FunctionalRun, run_number: Node) -> bool:
    """Return whether a run only initializes variables, from constants and draws.

    Args:
        run: The functional form of the run.
        run_number: The input that draws depend on. Any other input makes the result False, and so
            do outputs, reads of variables, and more than `MAX_HOST_ELEMENTS` elements.
    """
    feeds = [n for n in run.graph.inputs if n is not run_number]
    if run.graph.outputs or run.reads or feeds:
        return False
    sizes = [numel(v.entries[0].shape or ()) for v, _ in run.graph.updates]
    return all(isinstance(n, int) for n in sizes) and sum(map(int, sizes)) <= MAX_HOST_ELEMENTS


def create_host_run(graph: Graph, state: State) -> Callable[..., Any]:
    """Return a function that computes the updates of ``graph`` and stores them in ``state``.

    The variables are declared in ``state`` at once. The function takes the arrays of the graph's
    inputs and returns an empty list.
    """
    state.holding(graph)
    updates = Graph([e for _, e in graph.updates])
    names = [v.name for v, _ in graph.updates]
    inputs = [n.name for n in updates.inputs]

    def run(*arrays: Any) -> list[Any]:
        with state.lock:
            feeds = dict(zip(inputs, arrays, strict=True))
            values = interpret(updates, feeds, dict(state.arrays))
            for name, value in zip(names, values, strict=True):
                state[name] = value
        return []

    return run
