"""NumPy's and Python's operators work on expressions; their functions are refused."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk

X = pk.ast.Var("x", pk.ast.dt.float32)
N = pk.ast.Var("n", pk.ast.dt.int64)
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
def test_numpy_numbers_take_the_dtype_of_the_expression(
    op: Callable[..., Any], number: Any
) -> None:
    """A NumPy scalar or array of rank 0 on either side of an operator acts as a Python number."""
    assert op(number, X) == op(2.0, X)
    if not isinstance(number, np.ndarray):
        assert op(X, number) == op(X, 2.0)


def test_numpy_integers_and_ufuncs_of_operators_build_expressions() -> None:
    """Bit operations with NumPy integers, and ufuncs that have an operator, build expressions."""
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
        "sum": (lambda: np.sum(X), "one element; FReduce and FScan describe"),  # type: ignore[call-overload]
        "add.reduce": (lambda: np.add.reduce(X), "one element; FReduce and FScan"),
        "add with out": (lambda: np.add(X, 1.0, out=np.zeros(1)), "one element; FReduce"),
        "multiply of an expression and an array float64": (
            lambda: np.ones(2) * X,
            "give the operator the array as another input",
        ),
        "subtract of an expression and an array float64": (
            lambda: np.subtract(X, np.ones(2)),
            "give the operator the array as another input",
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
    }


@pytest.mark.parametrize("name", functions())
def test_functions_of_values_are_refused_with_their_pk_ast_equivalent(name: str) -> None:
    """The message names the function that was called and what to write instead."""
    call, way_out = functions()[name]
    with pytest.raises(pk.DTypeError, match=f"{name}.*{way_out}"):
        call()


def test_indexing_and_iterating_an_expression_are_refused() -> None:
    """The message points to FElement, which reads elements at indices."""
    with pytest.raises(pk.DTypeError, match=r"\(Var of float32\) is one element .* FElement gets"):
        X[0]
    with pytest.raises(pk.DTypeError, match=r"\(Var of float32\) is one element"):
        list(X)


def test_where_refuses_the_bool_of_a_structural_comparison() -> None:
    """``==`` compares trees; the message of `where` names `pk.ast.equal` for values."""
    with pytest.raises(pk.ArgumentError, match=r"pk\.ast\.equal\(a, b\) for ==.*got False"):
        pk.ast.where(X == 0, X, X)  # type: ignore[arg-type]


def test_fcodegen_may_use_numpy_numbers_and_no_numpy_functions() -> None:
    """FCodeGen with np.exp fails when a node is created; with NumPy numbers it computes."""
    bad = pk.register_op("test_foreign_exp").set_attr("FCodeGen", lambda node, x: np.exp(x))
    good = pk.register_op("test_foreign_scaled").set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    good.set_attr("FCodeGen", lambda node, x: np.float64(2) * x + np.float32(1))
    x = pk.var("x", (2,))

    with pytest.raises(pk.DTypeError, match=r"np\.exp cannot take an expression.*pk\.ast\.exp"):
        bad.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)(x)
    (result,) = pk.interpret(pk.Graph([good(x)]), {"x": np.array([3, 4], np.float32)})
    np.testing.assert_array_equal(result, [7, 9])
