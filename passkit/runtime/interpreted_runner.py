"""The runner of executables without native code: the interpreter with the interface of programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passkit.graph.graph import Graph
from passkit.runtime.interpret import interpret
from passkit.runtime.native.feeds import by_name, refuse_out, takes
from passkit.runtime.state import State


class InterpretedRunner:
    """Runs an executable by interpreting its graph.

    Args:
        graph: the graph.
        state: the values of its state variables, which runs update in place.
        inputs: the names that a call feeds, by default those of the graph; names that the graph
            lacks are ignored.
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
        """Run the graph.

        State variables are updated in place, since native code may hold their addresses. Where a
        call fails, none is. A variable that has no value yet is read as 0.

        Args:
            feeds: a dict of arrays by input name, a list or tuple of all of them, or None.
            out: a list of an array to fill, or None for a new one, for each result; None for new
                arrays.
            named: arrays by input name.

        Returns:
            The results, with the arrays of ``out`` themselves.

        Raises:
            FeedError: A feed or an array of ``out`` does not match, or a feed is missing, unknown
                or passed twice.
            ArgumentError: A feed is a masked array.
            PasskitError: A node cannot be evaluated; see `interpret`.
        """
        arrays = by_name(self.inputs, feeds, named)
        ignored = set(self.inputs) - set(self.names)
        arrays = {name: array for name, array in arrays.items() if name not in ignored}
        with self.state.lock:
            values = dict(self.state.arrays)
            outputs = interpret(self.graph, arrays, values)
            results = [np.array(r) for r in outputs]  # some are state variables, which change
            if out is not None:
                results = _into(out, results, arrays)
            for name, array in self.state.arrays.items():
                if values[name] is not array:
                    array[...] = values[name]
        return results


def _into(out: Any, results: list[Any], feeds: Mapping[str, Any]) -> list[Any]:
    """Copy results to the arrays of ``out``, and return these arrays.

    A result with None in ``out`` is returned as it is. ``feeds`` are the arrays of the inputs,
    which those of ``out`` must not overlap; nor may they overlap each other.

    Raises:
        FeedError: ``out`` is no list or tuple of as many elements as ``results``, or an array of it
            does not match; none is written then.
    """
    table = [(r.dtype, r.shape) for r in results]
    inputs = [a for a in feeds.values() if isinstance(a, np.ndarray)]
    if not isinstance(out, (list, tuple)) or len(out) != len(results):
        refuse_out(out, -1, table, inputs)
    for k, (array, (dtype, shape)) in enumerate(zip(out, table, strict=True)):
        others = (*inputs, *(a for a in out[:k] if a is not None))
        if array is not None and not takes(array, dtype, shape, others):
            refuse_out(out, k, table, inputs)
    arrays = []
    for array, result in zip(out, results, strict=True):
        if array is not None:
            array[...] = result
        arrays.append(result if array is None else array)
    return arrays
