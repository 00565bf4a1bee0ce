"""Parts of the interpreter: kernel expressions in NumPy, fused nodes, attributes of operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import ast
from passkit.analysis.group import Kind, fused_node
from passkit.ast import Expr, Load, Var
from passkit.errors import CodeGenError
from passkit.runtime.evaluate import cast_array, evaluate
from passkit.runtime.interpret import derive
from passkit.values import dtype as dt

x, i = Var("x", dt.float32), Var("i", dt.int64)


def test_transcendental_functions_are_rounded_once() -> None:
    """float32 functions are computed in float64: at most half an ulp and a bit away."""
    values = np.linspace(-5, 5, 1001, dtype=np.float32)
    for name in ("exp", "tanh", "erf", "sin", "cos", "expm1", "erfc", "atan"):
        exact = np.array([getattr(math, name)(float(v)) for v in values])
        actual = evaluate(ast.call(name, x), {"x": values})

        assert actual.dtype == np.float32
        ulp = np.spacing(np.abs(exact.astype(np.float32)))
        assert (np.abs(actual - exact) <= 0.5001 * ulp).all()


@pytest.mark.parametrize("name", sorted(ast.FUNCTIONS))
def test_every_function_can_be_evaluated(name: str) -> None:
    """Every function of the kernel language is implemented here; results keep the dtype."""
    args = [x] * ast.FUNCTIONS[name]

    assert evaluate(ast.call(name, *args), {"x": np.full(3, 0.5, np.float32)}).dtype == np.float32


def test_integer_division_rounds_toward_zero() -> None:
    """As in C, but by zero it is 0, and the lowest by -1 wraps."""
    low = np.iinfo(np.int64).min
    a, b = np.array([7, -7, 7, -7, 5, low]), np.array([2, 2, -2, -2, 0, -1])
    values = {"i": a, "j": b}

    assert evaluate(i // Var("j", dt.int64), values).tolist() == [3, -3, -3, 3, 0, low]
    assert evaluate(i % Var("j", dt.int64), values).tolist() == [1, -1, 1, -1, 0, 0]


@pytest.mark.parametrize("target", [dt.int8, dt.uint8, dt.int32, dt.int64, dt.uint64])
def test_casts_saturate(target: dt.DType) -> None:
    """Floats out of range become the nearest limit, NaN becomes 0, fractions are truncated."""
    limits = np.iinfo(target.numpy)
    values = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.9, 0.0])

    assert cast_array(values, target).tolist() == [
        0,
        limits.max,
        limits.min,
        limits.max,
        limits.min,
        2,
        0,
    ]


def test_casts_between_integers_wrap() -> None:
    """An integer keeps its low bits; bool is ``!= 0``."""
    assert cast_array(np.array([300, -1]), dt.uint8).tolist() == [44, 255]
    assert cast_array(np.array([0.0, np.nan, -0.5]), dt.bool_).tolist() == [False, True, True]


def test_bfloat16_is_computed_in_float64_and_rounded() -> None:
    """bfloat16 is computed in float64 and rounded once."""
    b = dt.dtype_of("bfloat16")
    actual = evaluate(ast.exp(Var("x", b)) + 1, {"x": np.ones(2, b.numpy)})

    assert actual.dtype == b.numpy
    assert float(actual[0]) == pytest.approx(3.71875)


def test_select_loads_only_where_an_operand_is_selected() -> None:
    """Only the selected operand loads; elsewhere its index may be out of bounds."""
    inner = ast.where(i < 2, Load("b", i, dt.float32), ast.const(9, dt.float32))
    outer = ast.where(i >= 0, inner, Load("b", i + 3, dt.float32))
    actual = evaluate(outer, {"i": np.arange(-3, 4)}, {"b": np.array([1, 2, 5], np.float32)})

    assert actual.tolist() == [1, 2, 5, 1, 2, 9, 9]
    assert evaluate(outer, {"i": np.array([5])}, {"b": np.zeros(0, np.float32)}).tolist() == [9]


def test_symbolic_sizes_are_looked_up() -> None:
    """Symbolic extents have the values in ``sizes``."""
    n = pk.Size.symbol("n")

    assert evaluate(ast.size_of(n * 2 + 1), sizes={"n": 5}) == 11


def test_deep_expressions_need_no_recursion() -> None:
    """An expression of 20,000 operations is evaluated without recursion."""
    deep: Expr = x
    for _ in range(20_000):
        deep = deep + 1.0

    assert evaluate(deep, {"x": np.float32(0)}) == 20_000


UNKNOWN: list[tuple[Expr, str]] = [
    (Var("y", dt.float32), "variable 'y' has no value; known: x"),
    (Load("c", i, dt.float32), "buffer 'c' does not exist; known: b"),
    (ast.call("expp", x), "there is no function 'expp'; did you mean 'exp'"),
    (Load("b", i + 5, dt.float32), "a load reads element 5 of buffer 'b', which has 2"),
    (Load("b", i - 1, dt.float32), "a load reads element -1 of buffer 'b', which has 2"),
    (Expr(), "an expression of type Expr cannot be evaluated"),
]


@pytest.mark.parametrize("k", range(len(UNKNOWN)))
def test_unknown_names_and_loads_out_of_bounds_raise(k: int) -> None:
    """Unknown names and loads outside a buffer raise an error that names them."""
    expr, message = UNKNOWN[k]
    values: dict[str, Any] = {"x": np.float32(0)}
    if "y" not in message:
        values["i"] = np.int64(0)
    with pytest.raises(CodeGenError, match=message):
        evaluate(expr, values, {"b": np.zeros(2, np.float32)})


def test_fused_nodes_are_interpreted_by_their_bodies() -> None:
    """A fused node is interpreted as its group, with the sizes of the graph around it."""
    inner = pk.var("v", ("n",))
    body = pk.Graph([pk.ops.reshape(inner, (1, inner.shape[0])), pk.ops.exp(inner) + 1])
    x = pk.var("x", ("n",))
    fused = fused_node(pk.Group(body, Kind.ELEMWISE), (x * 2,), "f")
    actual = pk.interpret(pk.Graph(fused.entries), {"x": np.zeros(3, np.float32)})

    np.testing.assert_array_equal(actual[0], np.zeros((1, 3)))
    np.testing.assert_array_equal(actual[1], np.full(3, 2))


def test_derive_ignores_fcompute() -> None:
    """`derive` evaluates the other attributes, so that they can be compared with FCompute."""
    node = pk.ops.transpose(pk.var("x", (2, 3))).node
    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    np.testing.assert_array_equal(derive(node, x)[0], x.T)
