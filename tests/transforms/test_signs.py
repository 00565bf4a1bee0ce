"""Signs of values, and exponentials of values that are never above 0, which have equal bits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import ast
from passkit.ast import Call, Expr, Var
from passkit.ir.signs import Signs
from passkit.values import dtype as dt
from tests.planned import plan

pytestmark = pytest.mark.usefixtures("quick_kernels")

X, Y, Z, N = *(Var(name, dt.float32) for name in "xyz"), Var("n", dt.int32)


def sign(x: Expr) -> str:
    """Return the sign of a value, where x <= y: "-", "+", both for zero, or nothing."""
    signs = Signs(lambda a, b: (a, b) == (X, Y)).of(x)
    return "-" * signs.below + "+" * signs.above


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (X, ""),
        (X - Y, "-"),
        (Y - X, "+"),
        (X + Y, ""),
        (-abs(X), "-"),
        (-(X * X), "-"),
        (X * Y, ""),
        (X * X + Y * Y, "+"),
        (X * X - Y * Y, ""),
        (-abs(X) * abs(Y), "-"),
        (-abs(X) * -abs(Y), "+"),
        (ast.minimum(X, 0.0), "-"),
        (ast.maximum(X, 0.0), "+"),
        (ast.maximum(X, -1.0), ""),
        (ast.minimum(abs(X), ast.exp(Y)), "+"),
        (ast.maximum(abs(X), Y), "+"),
        (ast.where(X < Y, X - Y, -abs(Y)), "-"),
        (ast.where(X < Y, X - Y, abs(Y)), ""),
        (abs(X) / 3.0, "+"),
        (abs(X) / -3.0, "-"),
        (abs(X) / 0.0, ""),
        (-1.0 / ast.sqrt(X), ""),  # of -0 it is infinity
        (ast.cast(-abs(X), dt.float64), "-"),
        (-X * X, "-"),
        (X * -X, "-"),
        (-X * (X + 1.0), ""),
        (ast.const(0.0, dt.float32), "-+"),
        (ast.const(-2.0, dt.float32), "-"),
        (ast.const(np.nan, dt.float32), ""),
        (N * N, ""),  # may wrap
        (ast.cast(N * N, dt.float32), ""),
        (ast.sin(X) - 2.0, ""),  # negative, which is not derived
    ],
)
def test_signs(value: Expr, expected: str) -> None:
    """The sign of a value follows from those of its operands."""
    assert sign(value) == expected


def test_exponentials_of_nonpositive_values() -> None:
    """They become variants, also inside of other functions; other exponentials stay."""
    signs = Signs(lambda a, b: False)
    signs.bind(Y, -(X * X))
    signs.bind(Z, -X)
    one = Call("exp_nonpositive", (Y,), dt.float32)

    assert signs.with_variants(ast.exp(Y)) == one
    assert signs.with_variants(ast.exp(Z * X)) == Call("exp_nonpositive", (Z * X,), dt.float32)
    assert signs.with_variants(ast.exp(Z * Y)) == ast.exp(Z * Y)
    assert signs.with_variants(ast.tanh(ast.exp(Y) + 1.0)) == ast.tanh(one + 1.0)
    assert signs.with_variants(ast.exp(X) + ast.log(Y)) == ast.exp(X) + ast.log(Y)
    assert signs.with_variants(ast.exp(-one)) == Call("exp_nonpositive", (-one,), dt.float32)


SOFTMAX = "{type}[{shape}]; m = reduce_max(x, axis={axis}, keepdims=true); e = exp(sub(x, m)); "
SOFTMAX += "return e, reduce_sum(e, axis={axis})"


@pytest.mark.parametrize("shape", ["n, 20", "n, 40", "n, 64", "n, 700", "700, n", "n, 5, 90"])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_minus_their_maximum(shape: str, axis: int, rng: Any) -> None:
    """The variant is used with any reduced axis and shape, also for NaN and infinities."""
    graph = pk.parse("x: " + SOFTMAX.format(type="f32", shape=shape, axis=axis))
    exe = pk.compile(graph)
    sizes = [29 if d == "n" else int(d) for d in shape.split(", ")]
    x = (rng.standard_normal(sizes) * 60).astype(np.float32)
    x.reshape(-1)[[3, 60, 100, 150]] = np.nan, np.inf, -np.inf, -0.0

    assert "exp_nonpositive(" in exe.source
    with np.errstate(all="ignore"):
        for actual, expected in zip(exe(x=x), pk.interpret(graph, {"x": x}), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-40)


@pytest.mark.parametrize(
    "text",
    [
        "x: f32[n, 40]; y: f32[n, 40]; return exp(sub(y, reduce_max(x, axis=1, keepdims=true)))",
        "x: f32[n, 40]; return exp(sub(x, reduce_min(x, axis=1, keepdims=true)))",
        "x: f32[n, 40]; return exp(sub(reduce_max(x, axis=1, keepdims=true), x))",
        "x: f32[n, 40]; m = reduce_max(mul(x, 2), axis=1, keepdims=true); return exp(sub(x, m))",
        "x: f32[n, 40]; m = reduce_max(x, axis=1, keepdims=true); return exp(mul(x, m))",
        "x: f32[40, 40]; return exp(sub(x, reduce_max(x, axis=1)))",
    ],
    ids=["of others", "the least", "reversed", "of twice", "times", "of another row"],
)
def test_other_differences(text: str, rng: Any) -> None:
    """A difference that may be above 0 gets the function for all numbers."""
    graph = pk.parse(text)
    exe = pk.compile(graph)
    feeds = {i.name: (rng.random((40, 40)) * 90).astype(np.float32) for i in exe.inputs}

    assert "exp_nonpositive(" not in exe.source and "exp(" in exe.source
    with np.errstate(over="ignore"):
        for actual, expected in zip(exe(feeds), pk.interpret(graph, feeds), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-40)


def test_other_languages_call_exp() -> None:
    """Only C++ has a function for the variant."""
    graph = pk.parse("x: " + SOFTMAX.format(type="f32", shape="n, 700", axis=1))
    double = pk.parse("x: " + SOFTMAX.format(type="f64", shape="n, 700", axis=1))

    for target in ("opencl", "cuda"):
        (kernel,) = plan(graph, target=target).attrs["kernel"].values()
        assert re.search(r"\bexpf?\(", kernel.source) and "nonpositive" not in kernel.source
    assert "nonpositive" not in pk.compile(double).source


def test_the_interpreter_evaluates_the_variant() -> None:
    """The interpreter of kernels computes the function that it is a variant of."""
    from passkit.runtime.evaluate import evaluate

    x = np.float32([-3, -0.0, np.nan, -np.inf])
    one = evaluate(Call("exp_nonpositive", (X,), dt.float32), {"x": x})
    assert one.tobytes() == evaluate(ast.exp(X), {"x": x}).tobytes()
