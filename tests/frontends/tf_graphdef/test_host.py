"""NumPy functions stand in for operators that passkit does not have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import ModelError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import model, node, placeholder

X = placeholder("x", None, 3)
FEED = np.array([[3, 1, 2], [6, 5, 4]], np.float32)


def result(function: Any, *nodes: Any, output: str = "y") -> Any:
    """The compiled result of a model with an operator called Odd."""
    graph = tf_graphdef.load(model(X, *nodes), output, allow_host_ops={"Odd": function})
    return pk.compile(graph)(x=FEED)[0]


def test_a_function_is_called_in_the_middle() -> None:
    """What stands around it is compiled."""
    nodes = [node("Neg", "n", "x"), node("Odd", "o", "n"), node("Neg", "y", "o")]

    np.testing.assert_array_equal(result(lambda x: np.sort(x, -1), *nodes), -np.sort(-FEED, -1))


def test_shapes_and_types_are_found_by_trying() -> None:
    """Unknown sizes stay unknown, others become what the function makes of them."""

    def function(x: Any, *, axis: int, **rest: Any) -> Any:
        return np.argmax(x, axis), np.concatenate([x, x], axis=-1)

    graph = tf_graphdef.load(
        model(X, node("Odd", "o", "x", axis=-1)), ["o", "o:1"], allow_host_ops={"Odd": function}
    )

    assert [(str(e.shape), e.dtype.name) for e in graph.outputs] == [
        ("(x.0,)", "int64"),
        ("(x.0, 6)", "float32"),
    ]
    found = pk.interpret(graph, {"x": FEED})
    np.testing.assert_array_equal(found[0], [0, 0])


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ([3, 4], [3, 4]),
        ((2, 5), (2, 5)),
        ("text", b"text"),
        (True, True),
    ],
)
def test_attributes_reach_the_function(value: Any, wanted: Any) -> None:
    """Keyword-only parameters take attributes of their names."""
    seen = []

    def function(x: Any, *, a: Any) -> Any:
        seen.append(a)
        return x

    result(function, node("Odd", "y", "x", a=value))
    assert seen[0] == wanted


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.ones((x.shape[0] + 1,)), r"dimension 0 of what .* Odd returns is 32 and 60"),
        (lambda x: np.ones((1,) * (x.shape[0] % 30)), r"returns \(1,\), then \(1, 1.* its rank"),
    ],
)
def test_shapes_that_cannot_be_found(function: Any, message: str) -> None:
    """A dimension is fixed, or that of an input."""
    with pytest.raises(ModelError, match=message):
        result(function, node("Odd", "y", "x"))


def test_other_errors_of_the_function_are_its_own() -> None:
    """They come through, with what was tried."""

    def function(x: Any) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError) as caught:
        result(function, node("Odd", "y", "x"))
    assert "Odd 'y': the function for Odd, tried on ones of (31, 3)" in caught.value.__notes__


def test_what_is_no_function() -> None:
    """A name is mapped to a function of arrays."""
    with pytest.raises(ModelError, match="allow_host_ops gives 3 for Odd; a function"):
        result(3, node("Odd", "y", "x"))


def test_many_unknown_sizes() -> None:
    """There are not numbers enough to try more."""
    wide = placeholder("x", *[None] * 7)
    with pytest.raises(ModelError, match="Odd 'y' reads 7 unknown sizes, and .* may read 6"):
        tf_graphdef.load(model(wide, node("Odd", "y", "x")), allow_host_ops={"Odd": np.sin})
