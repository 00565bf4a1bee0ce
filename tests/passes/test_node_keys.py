"""Keys of nodes and parameters: equal only when nodes compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.passes.node_keys import node_key, value_key


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
def test_different_values_have_different_keys(values: tuple[Any, ...]) -> None:
    """Sign, type, dtype, order and the identity of functions distinguish keys."""
    assert len({value_key(v) for v in values}) == len(values)


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
def test_equal_values_have_equal_keys(a: Any, b: Any) -> None:
    """Equal bits of one type have equal keys."""
    assert value_key(a) == value_key(b)


def test_variables_and_writes_have_no_key() -> None:
    """Variables and operators that write state equal no other node."""
    a = pk.state("a", np.ones(3, "float32"))

    assert node_key(a.node) is None
    assert node_key(pk.ops.assign(a, a).node) is None
