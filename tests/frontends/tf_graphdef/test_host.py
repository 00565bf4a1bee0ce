"""NumPy functions replace operators that passkit does not have."""

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
    """Return the compiled result of a model with an operator called Odd."""
    graph = tf_graphdef.load(model(X, *nodes), output, allow_host_ops={"Odd": function})
    return pk.compile(graph)(x=FEED)[0]


def test_operators_around_a_host_function_are_compiled() -> None:
    """The operators before and after a host function are compiled."""
    nodes = [node("Neg", "n", "x"), node("Odd", "o", "n"), node("Neg", "y", "o")]

    np.testing.assert_array_equal(result(lambda x: np.sort(x, -1), *nodes), -np.sort(-FEED, -1))


def test_shapes_and_dtypes_are_inferred_by_probing() -> None:
    """Symbolic sizes stay symbolic; other dimensions are those that the function returns."""

    def function(x: Any, *, axis: int, **rest: Any) -> Any:
        return np.argmax(x, axis), np.concatenate([x, x], axis=-1)

    graph = tf_graphdef.load(
        model(X, node("Odd", "o", "x", axis=-1)), ["o", "o:1"], allow_host_ops={"Odd": function}
    )

    assert [(str(e.shape), e.dtype.name) for e in graph.outputs] == [
        ("(x.0,)", "int64"),
        ("(x.0, 6)", "float32"),
    ]
    results = pk.interpret(graph, {"x": FEED})
    np.testing.assert_array_equal(results[0], [0, 0])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([3, 4], [3, 4]),
        ((2, 5), (2, 5)),
        ("text", b"text"),
        (True, True),
    ],
)
def test_attributes_reach_the_function(value: Any, expected: Any) -> None:
    """Keyword-only parameters receive the node's attributes of these names."""
    visited = []

    def function(x: Any, *, a: Any) -> Any:
        visited.append(a)
        return x

    result(function, node("Odd", "y", "x", a=value))
    assert visited[0] == expected


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda x: np.ones((x.shape[0] + 1,)),
            "Odd 'y': result dimension 0 .* Odd needs .*, got 32 and 60",
        ),
        (
            lambda x: np.ones((1,) * (x.shape[0] % 30)),
            r"whose rank does not .* shapes \(1,\) and \(1, 1",
        ),
    ],
)
def test_shapes_that_depend_otherwise_on_sizes_are_refused(function: Any, message: str) -> None:
    """An output dimension must be constant or equal to an input dimension."""
    with pytest.raises(ModelError, match=message):
        result(function, node("Odd", "y", "x"))


def test_another_number_of_results_for_other_sizes_is_refused() -> None:
    """A function must return as many results for one size as for another."""
    with pytest.raises(ModelError, match="Odd needs to return one number .*, got 1 and 2"):
        result(lambda x: (x,) * (1 + (len(x) > 50)), node("Odd", "y", "x"))


def test_another_number_of_results_in_a_call_is_refused() -> None:
    """A call needs as many results as the function returned when the model was loaded."""
    with pytest.raises(ModelError, match="needs 1 results of its function, .*, got 3"):
        result(lambda x: (x,) * (3 if len(x) == 2 else 1), node("Odd", "y", "x"))


def test_a_function_without_a_signature_gets_arrays_only() -> None:
    """A function of C, of which Python knows no parameters, is called with the inputs."""
    np.testing.assert_array_equal(result(np.dtype("float64").type, node("Odd", "y", "x")), FEED)


def test_errors_of_the_function_are_passed_on() -> None:
    """Exceptions of the function are raised with a note on the probe."""

    def function(x: Any) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError) as caught:
        result(function, node("Odd", "y", "x"))
    assert "Odd 'y': the function for Odd, tried on ones of (31, 3)" in caught.value.__notes__


def test_values_that_are_no_functions_are_refused() -> None:
    """A value that is not callable is refused."""
    with pytest.raises(ModelError, match="arrays for Odd, got 3"):
        result(3, node("Odd", "y", "x"))


def test_more_unknown_sizes_than_probes_are_refused() -> None:
    """More unknown sizes than there are probe numbers are refused."""
    wide = placeholder("x", *[None] * 7)
    with pytest.raises(ModelError, match="Odd 'y' has inputs with 7.*supports at most 6"):
        tf_graphdef.load(model(wide, node("Odd", "y", "x")), allow_host_ops={"Odd": np.sin})
