"""Matrix products against NumPy: transposes, batches, broadcasting, empty extents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.ops.harness import TARGETS, Case, case, check

ops = pk.ops


def filled(*shape: int, dtype: Any = np.float32) -> Any:
    """Return random values of both signs."""
    return (np.random.default_rng(len(shape)).normal(size=shape) * 4).astype(dtype)


def reference(a: Any, b: Any) -> Any:
    """Return the product, computed in float64 and rounded once; integers wrap."""
    if a.dtype.kind == "i":
        return a @ b
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(a.dtype)


SHAPES = [
    ((2, 3), (3, 4)),
    ((1, 1), (1, 1)),
    ((17, 33), (33, 9)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((2, 1, 2, 3), (3, 3, 1)),
]


def cases() -> Iterator[Case]:
    """Yield products of all shapes and transposes in two dtypes, and fully connected layers."""
    for (s, t), dtype in product(SHAPES, [np.float32, np.float64]):
        a, b = filled(*s, dtype=dtype), filled(*t, dtype=dtype)
        for flip_a, flip_b in product([False, True], repeat=2):
            x = np.swapaxes(a, -1, -2).copy() if flip_a else a
            y = np.swapaxes(b, -1, -2).copy() if flip_b else b
            yield case(
                f"matmul {flip_a} {flip_b}",
                lambda p, q, f=flip_a, g=flip_b: ops.matmul(p, q, transpose_a=f, transpose_b=g),
                lambda p, q, a=a, b=b: reference(a, b),
                x,
                y,
                rtol=1e-5,
            )
    for s, t in [((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (3,))]:
        yield case("x @ y", lambda p, q: p @ q, reference, filled(*s), filled(*t), rtol=1e-5)
    for s in [(4, 3), (3,), (2, 4, 3), (0, 3)]:
        yield case(
            "linear",
            lambda x, w, b: ops.linear(x, w, b),
            lambda x, w, b: (x.astype(np.float64) @ w.T + b).astype(np.float32),
            filled(*s),
            filled(5, 3),
            filled(5),
            rtol=1e-5,
        )
    yield case(
        "no bias",
        lambda x, w: ops.linear(x, w, no_bias=True),
        lambda x, w: reference(x, w.T),
        filled(4, 3),
        filled(5, 3),
        rtol=1e-5,
    )


def test_products_match_numpy() -> None:
    """The interpreter computes the products that NumPy computes."""
    check("interpret", list(cases()))


def test_products_of_integers_wrap() -> None:
    """A product of int32 overflows as NumPy's does."""
    a = np.full((2, 3), 2**30, np.int32)

    check("interpret", [case("int", lambda x, y: x @ y, reference, a, a.T.copy())])


def test_large_float32_products_are_accurate() -> None:
    """The interpreter multiplies large float32 matrices in float32, with a small error."""
    a = filled(600, 600)

    check("interpret", [case("large", lambda x, y: x @ y, reference, a, a, rtol=1e-4)])


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "interpret"])
def test_compiled_products_match_numpy(target: str) -> None:
    """One compiled graph of all cases gives the results of NumPy."""
    check(target, list(cases()))


def inferred_shapes(*outputs: pk.Entry) -> dict[str, Any]:
    """Return the shapes that InferShape finds for the inputs of a graph."""
    graph = pk.ApplyPasses(pk.Graph(outputs), ["InferShape"])
    return {node.name: graph.attrs["shape"][node.entries[0]] for node in graph.inputs}


def test_missing_inputs_become_variables() -> None:
    """Weight and bias that are not given become variables named after the node (NNVM)."""
    out = ops.linear(pk.var("x", (8, 3)), num_hidden=5, name="fc")
    names = [e.node.name for e in out.node.inputs]

    assert names == ["x", "fc_weight", "fc_bias"]
    assert out.shape == (8, 5)
    assert inferred_shapes(out) == {"x": (8, 3), "fc_weight": (5, 3), "fc_bias": (5,)}


def test_shape_of_data_follows_from_weight_and_result() -> None:
    """A result that is added to a known array has its shape, from which those of inputs follow."""
    out = ops.linear(pk.var("x", None), pk.var("w", (5, 3)), pk.var("b", None))
    total = out + pk.var("y", (8, 5))

    assert inferred_shapes(total) == {"x": (8, 3), "w": (5, 3), "b": (5,), "y": (8, 5)}


def test_inputs_may_be_given_by_name() -> None:
    """Inputs may be given by name, each once."""
    x, w, b = pk.var("x", (2, 3)), pk.var("w", (5, 3)), pk.var("b", (5,))
    out = ops.linear(bias=b, weight=w, data=x)

    assert out.node.inputs == (x, w, b)
    with pytest.raises(pk.GraphError, match="linear 'l': input 'data' is given twice"):
        ops.linear(x, data=x, weight=w, bias=b, name="l")


def x(*shape: int) -> Any:
    """Return a float32 variable of a shape."""
    return pk.var("x", shape)


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: x(2, 3) @ x(4, 5), r"inner dimensions that agree, got 3 and 4 in \(2, 3\) and \(4, 5"),
    (lambda: ops.matmul(x(3), x(3, 2)), r"rank 2 or more, got \(3,\) and \(3, 2\); insert expand"),
    (lambda: x(2, 3, 4) @ x(3, 4, 5), r"broadcast together, got \(2,\) and \(3,\)"),
    (lambda: ops.linear(x(2, 3), x(5, 4), x(5)), "last dimension of data and weight must agree, g"),
    (lambda: ops.linear(x(2, 3), x(5), x(5)), r"a weight of rank 2, got \(5,\)"),
    (lambda: ops.linear(x(2, 3), x(5, 3), x(1, 5)), r"a bias of rank 1, got \(1, 5\)"),
    (lambda: ops.linear(x(2, 3), x(5, 3), x(4)), "num_hidden and the length of bias must agree, g"),
    (lambda: ops.linear(x(2, 3), x(5, 3), x(5), num_hidden=4), "num_hidden must agree, got 4 and"),
    (lambda: ops.linear(x(2, 3), num_hidden=-1), "an int >= 0 as num_hidden, got -1"),
    (lambda: ops.linear(x(), num_hidden=1), r"linear needs data of rank 1 or more, got \(\)"),
]


@pytest.mark.parametrize("build, message", BAD)
def test_shapes_that_do_not_fit_raise(build: Callable[[], Any], message: str) -> None:
    """The call that builds a node raises an error with the shapes it got."""
    with pytest.raises(pk.ShapeError, match=message):
        build()


def test_a_wrong_number_of_inputs_raises() -> None:
    """An operator with named inputs takes as many as it names."""
    with pytest.raises(pk.GraphError, match="linear takes the inputs data, weight, bias, got 4"):
        ops.linear(x(2), x(2), x(2), x(2))
    with pytest.raises(pk.ShapeError, match="linear takes 2 inputs, got 3"):
        pk.Node(pk.get_op("linear"), [x(2)] * 3, {"num_hidden": 1, "no_bias": True})


def test_matrix_functions_of_unknown_dtype_keep_that_of_the_array() -> None:
    """An inverse whose dtype the graph does not know has the dtype of the matrix that is fed."""
    x = pk.var("x", (2, 2), None)
    (inverse,) = pk.interpret(pk.Graph([ops.inv(x)]), {"x": np.eye(2) * 4})

    assert inverse.dtype == np.float64
    np.testing.assert_array_equal(inverse, np.eye(2) / 4)
