"""What runs an executable without native code: operator by operator, in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passkit.graph.graph import Graph
from passkit.runtime.interpret import interpret
from passkit.runtime.native.feeds import by_name, refuse_out, takes
from passkit.runtime.state import State


class Interpreted:
    """The runner of an executable without native code.

    ``inputs`` are the names that a call feeds, by default those of the graph; it may lack some.
    """

    def __init__(self, graph: Graph, state: State, inputs: Sequence[str] | None = None) -> None:
        self.graph, self.state = graph, state
        self.names = [graph.names[n] for n in graph.inputs]
        self.inputs = self.names if inputs is None else list(inputs)
        self.native_calls = self.copies = 0

    def __call__(
        self,
        feeds: Mapping[str, Any] | Sequence[Any] | None = None,
        /,
        *,
        out: Any = None,
        **named: Any,
    ) -> list[Any]:
        """Run on arrays. Variables stay where they are, since native code may know the place."""
        given = by_name(self.inputs, feeds, named)
        dropped = set(self.inputs) - set(self.names)
        given = {name: array for name, array in given.items() if name not in dropped}
        with self.state.lock:
            values = dict(self.state.arrays)
            found = interpret(self.graph, given, values)
            results = [np.array(r) for r in found]  # some are variables, which change
            if out is not None:
                results = _into(out, results, given)
            for name, array in self.state.arrays.items():
                if values[name] is not array:
                    array[...] = values[name]
        return results


def _into(out: Any, results: list[Any], given: Mapping[str, Any]) -> list[Any]:
    """The arrays of ``out`` with the results, which stay where it has None.

    Raises: FeedError before any is written.
    """
    table = [(r.dtype, r.shape) for r in results]
    inputs = [a for a in given.values() if isinstance(a, np.ndarray)]
    if not isinstance(out, (list, tuple)) or len(out) != len(results):
        refuse_out(out, -1, table, inputs)
    for k, (array, (dtype, shape)) in enumerate(zip(out, table, strict=True)):
        others = (*inputs, *(a for a in out[:k] if a is not None))
        if array is not None and not takes(array, dtype, shape, others):
            refuse_out(out, k, table, inputs)
    made = []
    for array, result in zip(out, results, strict=True):
        if array is not None:
            array[...] = result
        made.append(result if array is None else array)
    return made
