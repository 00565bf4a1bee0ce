"""What runs an executable without native code: operator by operator, in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passkit.graph.graph import Graph
from passkit.runtime.interpret import interpret
from passkit.runtime.native.feeds import by_name
from passkit.runtime.state import State


class Interpreted:
    """What runs an executable without native code."""

    def __init__(self, graph: Graph, state: State) -> None:
        self.graph, self.state = graph, state
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
        names = [self.graph.names[n] for n in self.graph.inputs]
        given = by_name(names, feeds, named)
        with self.state.lock:
            values = dict(self.state.arrays)
            found = interpret(self.graph, given, values)
            results = [np.array(r) for r in found]  # some are variables, which change
            for name, array in self.state.arrays.items():
                if values[name] is not array:
                    array[...] = values[name]
        if out is not None:
            for target, result in zip(out, results, strict=True):
                target[...] = result
            return list(out)
        return results
