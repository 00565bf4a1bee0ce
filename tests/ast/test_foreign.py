"""Expressions among NumPy's and Python's functions: operators work, all else names pk.ast."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.values.dtype import float32, int64

X = pk.ast.Var("x", float32)
N = pk.ast.Var("n", int64)
MASK = X > 0.0


@pytest.mark.parametrize(
    "op",
    [
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.floordiv,
        operator.mod,
        operator.pow,
        operator.lt,
        operator.le,
        operator.gt,
        operator.ge,
    ],
)
@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.asarray(2.0)])
def test_numpy_numbers_are_weak(op: Callable[..., Any], number: Any) -> None:
    """A number of NumPy's on either side of an operator is as Python's number is."""
    assert op(number, X) == op(2.0, X)
    if not isinstance(number, np.ndarray):
        assert op(X, number) == op(X, 2.0)


def test_numpy_integers() -> None:
    """Bit operations and integers of NumPy's are operators, too."""
    assert np.int64(6) & N == 6 & N
    assert np.int32(6) | N == 6 | N
    assert N ^ np.int64(6) == N ^ 6
    assert np.int64(6) ^ N == 6 ^ N
    assert np.invert(MASK) == ~MASK
    assert (+X, np.negative(X), np.abs(X)) == (X, -X, abs(X))
    assert np.add(X, 1.0) == X + 1.0


def functions() -> dict[str, tuple[Callable[[], Any], str]]:
    """Calls that need a value, and how the message says to write them."""
    return {
        "exp": (lambda: np.exp(X), r"write pk\.ast\.exp\(…\)"),
        "arctan2": (lambda: np.arctan2(X, X), r"pk\.ast\.atan2\("),
        "maximum": (lambda: np.maximum(X, 0), r"pk\.ast\.maximum\("),
        "where": (lambda: np.where(MASK, X, 0), r"pk\.ast\.where\("),
        "clip": (lambda: np.clip(X, 0, 1), r"pk\.ast\.minimum\(pk\.ast\.maximum\("),
        "square": (lambda: np.square(X), r"write x \* x"),
        "isnan": (lambda: np.isnan(X), r"pk\.ast\.not_equal\(x, x\)"),
        "spacing": (lambda: np.spacing(X), "pk.ast has no spacing: "),
        "sum": (lambda: np.sum(X), "one element; FReduce and FScan fold many"),  # type: ignore[call-overload]
        "add.reduce": (lambda: np.add.reduce(X), "one element; FReduce and FScan"),
        "add with out": (lambda: np.add(X, 1.0, out=np.zeros(1)), "one element; FReduce"),
        "multiply of an expression and an array float64": (
            lambda: np.ones(2) * X, "give the operator the array as another input"
        ),
        "asarray": (lambda: np.asarray(X), "pk.ast's functions and operators"),
        "math module": (lambda: math.exp(X), r"for math\.exp\(x\) write pk\.ast\.exp"),  # type: ignore[arg-type]
        "float": (lambda: float(X), r"pk\.ast\.cast\(x, 'float32'\)"),  # type: ignore[arg-type]
        "int": (lambda: int(X), r"pk\.ast\.cast\(x, 'int64'\)"),  # type: ignore[call-overload]
        "round": (lambda: round(X), r"pk\.ast\.rint\(x\)"),  # type: ignore[call-overload]
        "math.floor": (lambda: math.floor(X), r"pk\.ast\.floor\(x\)"),  # type: ignore[arg-type]
        "math.ceil": (lambda: math.ceil(X), r"pk\.ast\.ceil\(x\)"),  # type: ignore[arg-type]
        "math.trunc": (lambda: math.trunc(X), r"pk\.ast\.trunc\(x\)"),  # type: ignore[arg-type]
        "index": (lambda: [1, 2][N], "FElement reads inputs at expressions"),  # type: ignore[call-overload]
    }  # fmt: skip


@pytest.mark.parametrize("name", functions())
def test_functions_that_need_a_value(name: str) -> None:
    """NumPy's and Python's functions are refused by what pk.ast has in their place."""
    call, way_out = functions()[name]
    with pytest.raises(pk.DTypeError, match=f"{name}.*{way_out}"):
        call()


def test_expressions_have_no_parts() -> None:
    """An index or a loop over an expression points to FElement's readers."""
    with pytest.raises(pk.DTypeError, match=r"\(Var of float32\) is one element .* FElement gets"):
        X[0]
    with pytest.raises(pk.DTypeError, match=r"\(Var of float32\) is one element"):
        list(X)


def test_comparing_trees() -> None:
    """``==`` compares trees, and `where` gets a bool: the message says how to compare values."""
    with pytest.raises(pk.ArgumentError, match=r"pk\.ast\.equal\(a, b\) for ==.*got False"):
        pk.ast.where(X == 0, X, X)  # type: ignore[arg-type]


def test_numpy_in_an_operator() -> None:
    """FCodeGen with np.exp fails when a node is made; with NumPy's numbers it computes."""
    bad = pk.register_op("test_foreign_exp").set_attr("FCodeGen", lambda node, x: np.exp(x))
    good = pk.register_op("test_foreign_scaled").set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    good.set_attr("FCodeGen", lambda node, x: np.float64(2) * x + np.float32(1))
    x = pk.var("x", (2,))

    with pytest.raises(pk.DTypeError, match=r"np\.exp cannot take an expression.*pk\.ast\.exp"):
        bad.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)(x)
    (found,) = pk.interpret(pk.Graph([good(x)]), {"x": np.array([3, 4], np.float32)})
    np.testing.assert_array_equal(found, [7, 9])
