"""Statistics and searches: what specimens do not show, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import ShapeError
from tests.planned import plan

ops = pk.ops


def test_moments_are_one_kernel() -> None:
    """Mean and variance of rows come from one pass over memory."""
    x = pk.var("x", (64, 500))
    kernels = plan(pk.Graph(ops.moments(x, axis=1))).attrs["kernel"]

    assert len(kernels) == 1


def test_the_place_of_the_largest_is_one_kernel() -> None:
    """The first of equal ones, NaN before all: as NumPy, for unknown sizes too."""
    x = pk.var("x", ("n", "m"))
    exe = pk.compile(pk.Graph([ops.argmax(x, axis=1), ops.argmin(x)]))
    for shape in ((1, 1), (3, 70), (20, 9)):
        a = np.rint(np.random.default_rng(1).normal(size=shape)).astype("float32")
        a[-1, a.shape[1] // 2] = np.nan
        rows, whole = exe(x=a)
        assert (rows == np.argmax(a, 1)).all() and whole == np.argmin(a)
    rows_only = plan(pk.Graph([ops.argmax(pk.var("x", (64, 500)), axis=1)]))
    assert len(rows_only.attrs["kernel"]) == 1


def test_gradients_of_zero_norms_and_deviations_are_zero() -> None:
    """The norm of a zero vector and the deviation of equal numbers have the gradient 0."""
    v = pk.var("v", (2, 3), "float64")
    at = np.array([[0, 0, 0.0], [2, 2, 2]])
    norm, spread = ops.vector_norm(v, axis=1), ops.std(v, axis=1)
    both = [*pk.gradients([norm], [v]), *pk.gradients([spread], [v])]
    of_norm, of_std = pk.interpret(pk.Graph(both), {"v": at})

    assert (of_norm[0] == 0).all() and np.allclose(of_norm[1], 3**-0.5)
    assert (of_std == 0).all()


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("bincount", {"length": 0}, "needs an int of at least 1 as length, got 0"),
    ("histogram", {"range": (1.0, 0.0)}, r"low < high as range, got \(1.0, 0.0\)"),
    ("var", {"correction": True}, "needs a finite number as correction, got True"),
    ("std", {"correction": 10**400}, "needs a finite number as correction, got 1000"),
    ("vector_norm", {"ord": "fro"}, "needs a number, or inf, as ord, got 'fro'"),
    ("quantile", {"q": 1.5}, "needs a number from 0 to 1 as q, got 1.5"),
    ("diff", {"n": -1}, "needs an int of at least 0 as n, got -1"),
]


@pytest.mark.parametrize("name, params, message", REFUSED)
def test_wrong_parameters_are_refused(name: str, params: dict[str, Any], message: str) -> None:
    """A wrong parameter is refused with what is needed and its value."""
    x = pk.var("x", (3, 4), "int32" if name == "bincount" else "float32")
    with pytest.raises(ShapeError, match=message):
        getattr(ops, name)(x, **params)


def test_ranks_need_known_lengths() -> None:
    """A median along an axis of symbolic length is refused."""
    with pytest.raises(ShapeError, match=r"got n element\(s\) along \(0,\)"):
        ops.median(pk.var("x", ("n", 3)), axis=0)


UNTYPED: dict[str, Callable[[pk.Entry], Any]] = {
    "sum of segments": lambda x: ops.segment_sum(x, pk.var("ids", (2,), "int64"), num_segments=4),
    "scatter": lambda x: pk.ops.scatter_nd(pk.var("at", (2, 1), "int64"), x, shape=(5, 3)),
    "running sum": lambda x: pk.ops.cumulative_sum(x, axis=0, include_initial=True),
    "power of matrices": lambda x: pk.ops.matrix_power(x[:, :2], n=0),
    "gradient of a mean": lambda x: pk.gradients([pk.ops.mean(x)], [x]),
    "gradient of a maximum": lambda x: pk.gradients([pk.ops.reduce_max(x)], [x]),
    "gradient of a norm": lambda x: pk.gradients([pk.ops.reduce_linf(x)], [x]),
    "gradient of distinct elements": lambda x: pk.gradients([pk.ops.unique(x, size=3)[0]], [x]),
}


@pytest.mark.parametrize("name", UNTYPED)
def test_what_needs_a_dtype_refuses_an_unknown_one(name: str) -> None:
    """Operators and gradients that need the dtype of an operand name the one that has none."""
    x = pk.var("x", (2, 3), None)

    with pytest.raises(pk.DTypeError, match=r"dtype of (x|input \d|mean|ones_like) is not known"):
        UNTYPED[name](x)


def test_the_gradient_of_a_polygamma_of_unknown_order_is_refused() -> None:
    """An order that is no int is refused by the gradient, too, where the rank is unknown."""
    x = pk.var("x", None)

    with pytest.raises(pk.GraphError, match="needs a whole number from 0 to 20 as n, got 'two'"):
        pk.gradients([pk.ops.polygamma(x, n="two")], [x])
