"""Graphs in float64: what a program of float32 should compute, to more digits than it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import passkit as pk
from passkit.graph.node import Entry, Node
from passkit.values.dtype import DType, dtype_of, float32, float64

Array = np.ndarray[Any, Any]

RATIO = 2.0
"""How many times the error of the interpreter a compiled program may have."""
FLOOR = 8.0
"""Errors of up to so many ulp of the largest value come of rounding alone, in any order of sums."""


def widened(graph: pk.Graph) -> pk.Graph:
    """The graph with inputs, constants and operators of float32 in float64.

    Operators on the bits of floats keep float32: their inputs are rounded for them.
    """

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry]:
        if node.op is not None and node.op.name == "bitcast":
            return [_cast(e, float64, float32) for e in _bits(node, inputs).entries]
        params = {name: _wide(name, value) for name, value in node.params.items()}
        return Node(node.op, inputs, params, node.name).entries

    return graph.rebuild(change)


def in_float64(graph: pk.Graph, feeds: Mapping[str, Any]) -> list[Array]:
    """The outputs of the graph by the interpreter in float64."""
    return pk.interpret(widened(graph), {k: _wide(k, np.asarray(v)) for k, v in feeds.items()})


def ulps(values: Array, exact: Array) -> float:
    """The largest error of float32 values, in ulp of the largest exact value."""
    scale = np.spacing(np.float32(np.abs(exact).max(initial=0)))
    return float(np.abs(values - exact).max(initial=0) / scale)


def allowed(interpreted: float) -> float:
    """The largest error of a compiled program, for that of the interpreter; both in `ulps`."""
    return max(FLOOR, RATIO * interpreted)


def _wide(name: str, value: Any) -> Any:
    """A parameter of a node, or an array, with float64 in the place of float32."""
    if name == "dtype" and value is not None and dtype_of(value) == float32:
        return float64
    if isinstance(value, np.ndarray) and value.dtype == np.float32:
        return value.astype(np.float64)
    return value


def _bits(node: Node, inputs: tuple[Entry, ...]) -> Node:
    narrow = [_cast(e, float32, float64) for e in inputs]
    return Node(node.op, narrow, node.params, node.name)


def _cast(entry: Entry, to: DType, of: DType) -> Entry:
    """The entry, converted where it has the dtype ``of``."""
    return pk.ops.cast(entry, dtype=to.name) if entry.dtype == of else entry
