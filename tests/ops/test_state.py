"""Operators that write state variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk


def w() -> Any:
    """Return a state variable."""
    return pk.state("w", np.zeros((2, 3), np.float32))


def test_assign_returns_the_new_value() -> None:
    """The result of assign is what it wrote; the shape and dtype are the variable's."""
    out = pk.ops.assign(w(), pk.var("x", (2, 3)))
    value = np.ones((2, 3), np.float32)
    state: dict[str, Any] = {}

    np.testing.assert_array_equal(pk.interpret(pk.Graph([out]), {"x": value}, state)[0], value)
    np.testing.assert_array_equal(state["w"], value)


def test_value_of_unknown_rank_gets_the_shape_of_the_variable() -> None:
    """A value whose rank is not known has the variable's shape."""
    out = pk.ops.assign(w(), pk.var("x", None))

    assert out.shape == (2, 3)
    assert pk.get_op("assign").get_attr("FInferShapeBack")(out.node, [(2, 3), None], [(2, 3)]) == [
        (2, 3),
        (2, 3),
    ]


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: pk.ops.assign(pk.var("x", ()), 1.0),
        pk.GraphError,
        "assign writes state variables only, got variable 'x'; make it with pk.state",
    ),
    (
        lambda: pk.ops.assign(w(), 1.0, name="a"),
        pk.ShapeError,
        r"assign 'a' needs a value of shape \(2, 3\) for 'w', got \(\)",
    ),
    (
        lambda: pk.ops.assign(w(), np.zeros((2, 4), np.float32)),
        pk.ShapeError,
        "dimension 1 must agree, got 3 and 4",
    ),
    (lambda: pk.ops.assign(w(), np.zeros((2, 3))), pk.DTypeError, "got float32 and float64"),
]


@pytest.mark.parametrize("build, error, message", BAD)
def test_wrong_targets_and_values_are_refused(
    build: Callable[[], Any], error: type[Exception], message: str
) -> None:
    """Only state variables are written, and only with values that fit."""
    with pytest.raises(error, match=message):
        build()
