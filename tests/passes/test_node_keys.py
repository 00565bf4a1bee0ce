"""Nodes are merged only where their parameters are equal in type, value and every bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk

HOLDER = pk.register_op("test_node_keys_holder", num_inputs=1, params={"value": pk.REQUIRED})
HOLDER.set_attr("FInferShape", lambda node, shape: shape)


def distinct_nodes(*values: Any) -> int:
    """Return how many nodes Simplify leaves of nodes with these values of a parameter."""
    x = pk.var("x", (3,))
    graph = pk.Graph([pk.Node(HOLDER, (x,), {"value": value}).entries[0] for value in values])
    return len(set(pk.ApplyPasses(graph, "Simplify").outputs))


def f(x: Any) -> Any:
    """A function to have as a parameter."""
    return x


@pytest.mark.parametrize(
    "values",
    [
        (0.0, -0.0),
        (1, 1.0, True, "1", b"1", np.float32(1), np.int64(1)),
        ((1, 2), (2, 1), (1, 2, 3)),
        (np.zeros(2), np.zeros(2, "float32"), np.zeros((2, 1)), -np.zeros(2)),
        (np.zeros(100), np.ones(100)),
        ({"a": 1}, {"b": 1}, {"a": 2}),
        (f, lambda x: x, lambda x: x),
        (None, "None", 0),
    ],
)
def test_different_values_stay_apart(values: tuple[Any, ...]) -> None:
    """Values that differ in sign, type, dtype, order or identity of a function stay apart."""
    assert distinct_nodes(*values) == len(values)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (float("nan"), float("nan")),
        ([1, 2], (1, 2)),
        (np.arange(100), np.arange(100)),
        (pk.Size.symbol("n") * 2, pk.Size.symbol("n") + pk.Size.symbol("n")),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (f, f),
    ],
)
def test_equal_values_are_merged(a: Any, b: Any) -> None:
    """Nodes whose parameters have equal bits of one type are merged."""
    assert distinct_nodes(a, b) == 1


def test_variables_and_writes_are_not_merged() -> None:
    """Variables of one name, and operators that write state, equal no other node."""
    a = pk.state("a", np.ones(3, "float32"))
    x, again = pk.var("x", (3,)), pk.var("x", (3,))
    graph = pk.Graph([pk.ops.assign(a, x), pk.ops.assign(a, x), again])

    assert len(set(pk.ApplyPasses(graph, "Simplify").outputs)) == 3
