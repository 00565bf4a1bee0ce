"""Attributes and known inputs are checked where an operator reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from passkit.errors import ModelError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import const, model, node, placeholder

X = placeholder("x", None, 3)
N = placeholder("n", 2, dtype="int32")


def with_axes(op: str, axes: Any, **attrs: Any) -> list[Any]:
    """Return nodes that give an operator a constant as its second input."""
    return [const("k", axes), node(op, "y", "x", "k", **attrs)]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("Cast", "y", "x")], "Cast 'y' needs the attribute 'DstT', and has no"),
        ([node("Cast", "y", "x", DstT=3)], "needs an attribute 'DstT' of kind 'type', got 'i'"),
        ([node("Cast", "y", "x", DstT={"type": 7})], "Cast 'y' has the element type DT_STRING"),
        ([node("Cast", "y", "x", DstT={})], "needs an attribute 'DstT' of kind 'type', got None"),
        ([node("Const", "k"), node("Neg", "y", "k")], "Const 'k' needs the attribute 'value'"),
        (
            with_axes("Sum", [0], keep_dims="yes"),
            "needs an attribute 'keep_dims' of kind 'b', got 's'",
        ),
        ([node("Squeeze", "y", "x", squeeze_dims=1)], "'squeeze_dims' of kind 'list', got 'i'"),
        (with_axes("Sum", [0.5]), r"a list of integers as its axes, got float32 of shape \(1,\)"),
        (with_axes("Sum", [[0]]), r"a list of integers as its axes, got int32 of shape \(1, 1\)"),
        (with_axes("Sum", [0] * 65), "at most 64 integers as its axes, got 65"),
        (with_axes("ExpandDims", [0, 1]), r"one integer as its axis, got \[0, 1\]"),
        ([node("Reshape", "y", "x", "n")], "needs a shape that is known when .*, and 'n' depends"),
        ([node("Shape", "s", "x"), node("Sum", "y", "x", "s")], r"got the unknown size x\.0"),
        ([node("Shape", "y", "x", out_type=np.dtype("uint8"))], "'out_type', got uint8"),
    ],
)
def test_attributes_and_known_inputs_are_checked(nodes: list[Any], message: str) -> None:
    """An attribute or list that an operator cannot use is refused with its value."""
    with pytest.raises(ModelError, match=message):
        tf_graphdef.load(model(X, N, *nodes))


def test_unknown_ranks_are_refused_where_needed() -> None:
    """A placeholder of unknown rank takes its shape from ``shapes=``."""
    free = node("Placeholder", "x", dtype=np.dtype("float32"))
    flat = [node("Shape", "s", "x"), const("k", 6), node("Fill", "y", "s", "k")]

    with pytest.raises(ModelError, match="Shape 's' needs 'x' of known rank; give"):
        tf_graphdef.load(model(free, *flat))
    graph = tf_graphdef.load(model(free, *flat), shapes={"x": (2, 3)})
    assert graph.outputs[0].shape == (2, 3)


def test_shape_arithmetic_has_a_budget() -> None:
    """Values folded during import are taken from the memory budget."""
    many = [const("a", np.ones((128, 1), np.int32)), const("b", np.ones((1, 128), np.int32))]
    nodes = [node("Add", f"y{k}", "a", "b") for k in range(100)]

    with pytest.raises(ModelError, match=r"Add 'y\d+' needs 1,048,576 bytes, .* 67,"):
        tf_graphdef.load(model(*many, *nodes))
