"""Scatters: reproducibility, work in place, NaN, gradients, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.teams import team_of

pytestmark = pytest.mark.usefixtures("quick_kernels")

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("shape", [(3000, 37), (900, 2000), (200_000,)])
def test_bits_do_not_depend_on_the_number_of_threads(shape: tuple[int, ...]) -> None:
    """Short rows, long rows and single elements take their updates in order with any team size."""
    count = 5000
    x, updates = RNG.normal(size=shape), RNG.normal(size=(count, *shape[1:]))
    at = RNG.integers(-2, 40, count)  # so that many meet
    feeds = {"x": x.astype("f4"), "at": at, "u": updates.astype("f4")}
    entries = [pk.var(k, tuple(None for _ in v.shape), str(v.dtype)) for k, v in feeds.items()]
    run = pk.compile(pk.Graph([pk.ops.index_add(*entries), pk.ops.index_mul(*entries)]))
    results = []
    for threads in (1, 2, 4):
        with team_of(threads):
            results.append([a.tobytes() for a in run(feeds)])
    expected = pk.interpret(pk.Graph(pk.ops.index_add(*entries)), feeds)[0]

    assert results[0] == results[1] == results[2]
    assert results[0][0] == expected.tobytes()
    assert run.stats["python_calls"] == 0


def test_a_scatter_into_a_temporary_works_in_place() -> None:
    """Updates are written into a temporary without other users, but not into a graph's input."""
    x, at, u = pk.var("x", (50, 8)), pk.var("at", (7,), "int64"), pk.var("u", (7, 8))
    run = pk.compile(pk.Graph([pk.ops.index_add(x * 2.0, at, u) + 1.0]))
    feeds = {"x": np.ones((50, 8), "f4"), "at": np.arange(7), "u": np.ones((7, 8), "f4")}
    (out,) = run(feeds)
    scatter = next(s for s in run.steps if "scatter_rows" in str(s))

    assert scatter.writes[0].key == scatter.reads[0].key
    assert out[:7].tolist() == [[4.0] * 8] * 7 and out[7:].tolist() == [[3.0] * 8] * 43
    assert feeds["x"].sum() == 400


def test_extremes_propagate_nan() -> None:
    """The maximum and minimum of an element and an update are NaN if one of them is."""
    x, at, u = pk.var("x", (40,)), pk.var("at", (40,), "int64"), pk.var("u", (40,))
    a, b = np.full(40, 1.0, "f4"), np.full(40, 2.0, "f4")
    a[::3], b[::4] = np.nan, np.nan
    graph = pk.Graph([pk.ops.index_max(x, at, u), pk.ops.index_min(x, at, u)])
    results = pk.compile(graph)(x=a, at=np.arange(40), u=b)

    np.testing.assert_array_equal(results[0], np.maximum(a, b))
    np.testing.assert_array_equal(results[1], np.minimum(a, b))


def test_gradients_of_products_with_zeros() -> None:
    """The gradient of a single zero is the product of the other factors; of two zeros, it is 0."""
    x, at, u = pk.var("x", (3,)), pk.var("at", (4,), "int64"), pk.var("u", (4,))
    y = pk.ops.index_mul(x, at, u)
    graph = pk.Graph(pk.gradients(pk.ops.reduce_sum(y), [x, u]))
    feeds = {
        "x": np.array([2, 3, 0], "f4"),
        "u": np.array([5, 0, 7, 0], "f4"),
        "at": np.array([0, 1, 1, 2]),
    }

    for gradients in (pk.compile(graph)(feeds), pk.interpret(graph, feeds)):
        assert [a.tolist() for a in gradients] == [[5, 0, 0], [2, 21, 0, 0]]


@pytest.mark.parametrize("kind, expected", [("add", 1), ("mul", 0), ("min", 0), ("max", 1)])
def test_sums_and_products_of_bools_are_bools(kind: str, expected: int) -> None:
    """A kernel stores 0 or 1 for updates of bools that meet, of which two are true."""
    x, rows = pk.var("x", (1, 1, 2, 1), "bool"), pk.var("rows", (1, 3), "int64")
    updates = pk.var("u", (1, 1, 3, 1), "bool")
    program = pk.compile(pk.Graph([pk.ops.scatter_rows(x, rows, updates, kind=kind)]))
    bits = np.array([True, False, True]).reshape(1, 1, 3, 1)
    (result,) = program(x=np.ones((1, 1, 2, 1), bool), rows=np.zeros((1, 3), np.int64), u=bits)

    assert result.view(np.uint8).ravel().tolist() == [expected, 1]


def test_differences_of_bools_raise() -> None:
    """A sum of bools is their disjunction, but bools have no difference."""
    x, at = pk.var("x", (4,), "bool"), pk.var("at", (2,), "int64")
    u = pk.var("u", (2,), "bool")
    with pytest.raises(pk.DTypeError, match="index_sub needs .*got bool"):
        pk.ops.index_sub(x, at, u)


ROWS: dict[str, tuple[Any, ...]] = {
    "x": ((2, 3, 5, 4), "float32"),
    "rows": ((2, 7), "int64"),
    "updates": ((2, 3, 7, 4), "float32"),
}


@pytest.mark.parametrize(
    ("changed", "params", "error", "message"),
    [
        ({}, {"kind": "ad"}, pk.GraphError, "no kind 'ad'.*'add'"),
        ({"x": ((5, 4), "float32")}, {}, pk.ShapeError, r"\(a, m\).*got .5, 4"),
        ({"rows": ((2, 8), "int64")}, {}, pk.ShapeError, "dimension 2 of the updates.*8"),
        ({"rows": ((2, 7), "int32")}, {}, pk.DTypeError, "rows of int64, got int32"),
        ({"x": ((2, 3, 5, 4), "float16")}, {}, pk.DTypeError, "32 bits or more, got float16"),
    ],
)
def test_invalid_rows_raise(
    changed: dict[str, Any], params: dict[str, Any], error: type[Exception], message: str
) -> None:
    """The error for an invalid kind, shape or dtype shows it."""
    entries = [pk.var(k, *v) for k, v in {**ROWS, **changed}.items()]
    with pytest.raises(error, match=message):
        pk.ops.scatter_rows(*entries, **params)


def test_points_with_another_number_of_coordinates_raise() -> None:
    """A point has a coordinate for each axis of the shape."""
    with pytest.raises(pk.ShapeError, match=r"needs 3 coordinates.*got .4, 2"):
        pk.ops.rows_of_points(pk.var("i", (4, 2), "int64"), shape=(2, 3, 4))


def test_searches_of_unknown_length_run_in_numpy() -> None:
    """A binary search is unrolled, so that its length must be known; otherwise NumPy searches."""
    a, v = pk.var("a", ("n",)), pk.var("v", (5,))
    run = pk.compile(pk.Graph([pk.ops.searchsorted(a, v), pk.ops.isin(v, a)]))
    results = run(a=np.arange(4, dtype="f4"), v=np.array([-1, 0, 1.5, 3, 9], "f4"))

    assert [x.tolist() for x in results] == [[0, 0, 2, 3, 4], [False, True, False, True, False]]
    assert run.stats["python_calls"] == 2


@pytest.mark.parametrize("kind", ["add", "sub", "mul", "min", "max", "update"])
def test_gradients_of_scatters_into_an_empty_array_are_zero(kind: str) -> None:
    """All updates of an empty array are dropped, so their gradients are 0."""
    x, at, u = pk.var("x", (0, 3)), pk.var("at", (4, 1), "int64"), pk.var("u", (4, 3))
    points = getattr(pk.ops, f"tensor_scatter_nd_{kind}")(x, at, u)
    segments = pk.ops.unsorted_segment_max(u, pk.ops.reshape(at, shape=(-1,)), num_segments=0)
    graph = pk.Graph([*pk.gradients([points], [x, u]), *pk.gradients([segments], [u])])
    feeds = {"x": np.ones((0, 3), "f4"), "at": np.zeros((4, 1), "i8"), "u": np.ones((4, 3), "f4")}

    for run in (lambda f: pk.interpret(graph, f), pk.compile(graph)):
        gradients = run({n.name: feeds[n.name] for n in graph.inputs})
        assert [f.tolist() for f in gradients] == [[], [[0] * 3] * 4, [[0] * 3] * 4]
