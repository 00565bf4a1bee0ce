"""Operations of the user's own: formulas, fusion, views, oracles and printed kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import xp

RNG = np.random.default_rng(5)
softcap = xp.kernel(
    "xp_softcap", "cap * tanh(x / cap)", numpy=lambda cap, x: cap * np.tanh(x / cap)
)
gated = xp.kernel(
    "xp_gated",
    "gate = 1 / (1 + exp(-y)); x * gate * y",
    view="intersection",
    numpy=lambda y, x: x * y / (1 + np.exp(-y)),
)
shrink = xp.kernel(
    "xp_shrink",
    lambda x: pk.ast.where(pk.ast.abs(x) < 1, 0 * x, x),
    view="union",
    dtype="common",
    numpy=lambda x: np.where(np.abs(x) < 1, 0, x).astype(x.dtype),
)
polar = xp.kernel("xp_polar", "hypot(x, y), atan2(y, x)")


def test_kernels_equal_their_functions_of_numpy() -> None:
    """Compiled kernels equal the oracles, and keep their rules of views."""
    for kernel in (softcap, gated, shrink):
        kernel.verify()
    softcap.verify([2.0, 3.0], [1.0, -8.0])
    assert softcap.operands == ("cap", "x")
    assert repr(gated) == "xp.kernel('xp_gated': y, x)"


@pytest.mark.parametrize("is_queued", [False, True])
def test_kernels_broadcast_and_convert(is_queued: bool) -> None:
    """Operands are arrays and numbers of any dtypes; several results are a tuple."""
    a, b = RNG.normal(size=(4, 5)), RNG.normal(size=5)
    x, y = xp.asarray(a), xp.asarray(b)
    with xp.config(small=0 if is_queued else 256):
        results: list[tuple[Any, Any]] = [
            (softcap(3.0, x), 3 * np.tanh(a / 3)),
            (softcap(3, xp.asarray([1, 2])), 3 * np.tanh(np.array([1, 2]) / 3)),
            (gated(x, y), a * b / (1 + np.exp(-a))),
            (shrink(xp.asarray([-3, 0, 2])), np.array([-3, 0, 2])),
            (polar(x, y)[0], np.hypot(a, b)),
            (polar(x, y)[1], np.arctan2(b, a)),
            (softcap(np.float32(2), xp.asarray([1], dtype=xp.float32)), 2 * np.tanh([0.5])),
        ]
        for result, expected in results:
            np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)
        assert [r.dtype.name for r, _ in results] == [
            "float64",
            "float64",
            "float64",
            "int64",
            "float64",
            "float64",
            "float32",
        ]


@pytest.mark.usefixtures("xp_queue")
def test_kernels_fuse_with_their_neighbours() -> None:
    """A custom kernel is part of the kernel of what precedes and follows it."""
    x = xp.asarray(RNG.normal(size=(8, 16)))
    with xp.inspect() as runs:
        y = xp.sum(gated(x + 1, x) * 2, axis=1)
        xp.eval(y)
    (kernel,) = runs[0].kernels
    assert {"add", "xp_gated", "mul", "reduce_sum"} <= set(kernel.ops)
    assert str(kernel).count("exp(") == 1


@pytest.mark.usefixtures("xp_queue")
def test_kernels_propagate_views() -> None:
    """The rule says which diagonals of the result are 0, whatever the operands hold elsewhere."""
    x = RNG.normal(size=(6, 6)) * 3
    infinite = np.where(np.triu(np.ones((6, 6)), 1) > 0, np.inf, 2.0)
    lower, upper = xp.tril(xp.asarray(x)), xp.triu(xp.asarray(x))
    assert xp.view_of(gated(lower, upper)).kind == "diagonal"
    assert xp.view_of(shrink(upper)).kind == "upper"
    assert xp.view_of(softcap(2.0, lower)).kind == "entire"
    result = gated(xp.asarray(infinite), lower)
    assert xp.view_of(result).kind == "lower"
    expected = np.tril(np.tril(x) * 2 / (1 + np.exp(-2.0)))
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12)


def test_kernels_have_a_text_for_each_target() -> None:
    """The formula is printed in the language of the target, whose device need not be there."""
    texts = {target: softcap.source(target) for target in ("cpu", "opencl", "cuda")}
    assert all("tanh" in text for text in texts.values())
    assert "__kernel void" in texts["opencl"]
    assert "__global__" in texts["cuda"]
    assert "double" in softcap.source(dtype="float64")


def test_kernels_are_operators_of_graphs() -> None:
    """The operator has a gradient, which follows from the formula."""
    x, cap = pk.var("x", (3,), "float64"), pk.var("cap", (3,), "float64")
    (dx,) = pk.gradients(pk.ops.xp_softcap(cap, x), [x])
    feeds = {"x": np.array([1.0, 2.0, 3.0]), "cap": np.full(3, 2.0)}
    expected = 1 - np.tanh(feeds["x"] / 2) ** 2
    np.testing.assert_allclose(pk.interpret(pk.Graph([dx]), feeds)[0], expected)


def test_formulas() -> None:
    """Formulas have arithmetic, comparisons, conditions, assignments and functions."""
    x = np.linspace(-2, 2, 7)
    cases = {
        "x if x > 0 else 0.1 * x": np.where(x > 0, x, 0.1 * x),
        "where(-1 < x <= 1 and not (x == 0), x, 0 * x)": np.where((x > -1) & (x <= 1), x, 0),
        "t = x * x\ns = t - x\nmaximum(s, t)": np.maximum(x * x - x, x * x),
        "abs(x) ** 1.5 + -x // 1 + +x": np.abs(x) ** 1.5 + np.floor(-x) + x,
    }
    for k, (text, expected) in enumerate(cases.items()):
        kernel = xp.kernel(f"xp_case{k}", text)
        np.testing.assert_allclose(np.asarray(kernel(xp.asarray(x))), expected, rtol=1e-12)
        assert xp.kernel(f"xp_case{k}", text) is kernel


def test_kernels_refuse_what_they_do_not_understand() -> None:
    """Errors name the kernel and the part of its formula."""
    cases: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        ("tanhh(x)", {}, pk.ParseError, "xp_bad: a formula has no function tanhh; did you mean"),
        ("x +", {}, pk.ParseError, "kernel xp_bad: invalid syntax"),
        ("y = x", {}, pk.ParseError, "a formula ends with its result, got 'y = x'"),
        ("import x\nx", {}, pk.ParseError, "has the form 'name = expression', got 'import x'"),
        ("y = z = 1; x", {}, pk.ParseError, "has the form 'name = expression', got 'y = z = 1'"),
        ("x + 1 / 0", {}, pk.ParseError, "xp_bad: '1 / 0' has no value: division by zero"),
        ("where(x, 1)", {}, pk.ParseError, r"'where\(x, 1\)' has no value: where\(\) missing 1"),
        ("x[0]", {}, pk.ParseError, r"a formula cannot contain 'x\[0\]'"),
        ("pow(x, y=2)", {}, pk.ParseError, r"a formula cannot contain 'pow\(x, y=2\)'"),
        ("1 + 1", {}, pk.ArgumentError, "xp_bad: the formula reads no operand"),
        ("x", {"view": "lower"}, pk.ArgumentError, "no view rule 'lower'; known: entire"),
        ("x", {"dtype": "float33"}, pk.DTypeError, "float33"),
        (3, {}, pk.ArgumentError, "text or a function of expressions, got 3"),
        (lambda x: 3, {}, pk.ArgumentError, "must return an expression of passkit.ast, .* got 3"),
        (lambda x: (), {}, pk.ArgumentError, r"must return an expression .* got \(\)"),
        ("x", {"numpy": 3}, pk.ArgumentError, "xp_bad: numpy must be a function, got 3"),
        ("x", {"dtype": "complex64"}, pk.DTypeError, "xp_bad: dtype must be real, got complex64"),
        (lambda *x: x, {}, pk.ArgumentError, "xp_bad: a formula has one positional parameter"),
    ]
    for formula, options, kind, text in cases:
        with pytest.raises(kind, match=text):
            xp.kernel("xp_bad", formula, **options)
    with pytest.raises(pk.ArgumentError, match=r"name must be a name, such as 'swish', got \[\]"):
        xp.kernel([], "x + 1")  # type: ignore[arg-type]
    with pytest.raises(pk.RegistryError, match="kernel tanh: there is an operator of this name"):
        xp.kernel("tanh", "2 * x")
    with pytest.raises(pk.RegistryError, match="kernel xp_softcap: there is an operator"):
        xp.kernel("xp_softcap", "cap * x")
    with pytest.raises(pk.ArgumentError, match="xp_softcap takes cap, x, got 3 operands"):
        softcap.verify(1.0, 2.0, 3.0)
    with pytest.raises(pk.ArgumentError, match=r"there is no view rule \['union'\]"):
        xp.kernel("xp_unknown_rule", "x + 1", view=["union"])  # type: ignore[arg-type]
    with pytest.raises(pk.ArgumentError, match="xp_softcap takes cap, x, got 1 operands"):
        softcap(xp.ones(2))
    wrong = xp.kernel("xp_wrong", "x + 1", view="union", numpy=lambda x: x + 2)
    with pytest.raises(pk.RuleError, match=r"result 0 at \(0,\) is 2.0, and 3.0 by NumPy"):
        wrong.verify([1.0])
    with pytest.raises(pk.ArgumentError, match="xp_wrong.verify: rtol must be a number, got '1'"):
        wrong.verify([1.0], rtol="1")  # type: ignore[arg-type]
    with pytest.raises(pk.ShapeError, match=r"got \(2,\) and \(3,\)"):
        xp.kernel("xp_times", "x * y", numpy=np.multiply).verify(np.ones(2), np.ones(3))
    single = xp.kernel("xp_single", "x + 1", numpy=lambda x: (x, x))
    with pytest.raises(pk.RuleError, match="formula has 1 results, and the function of NumPy 2"):
        single.verify([1.0])
    shifted = xp.kernel("xp_shifted", "x * y + y", view="intersection")
    with pytest.raises(pk.RuleError, match="must be 0 where x is 0, got 1.5"):
        shifted.verify([2.0], [1.5])


def test_a_dtype_of_numpy_is_the_one_to_compute_in() -> None:
    """``dtype=xp.float64`` converts operands of float32, as its name does."""
    double = xp.kernel("xp_double", "2 * x", dtype=xp.float64)
    assert double(xp.ones(3, dtype=xp.float32)).dtype == np.float64
    assert double is xp.kernel("xp_double", "2 * x", dtype="float64")


def test_formulas_of_one_number_are_verified() -> None:
    """The function of NumPy may return a number for each element."""
    xp.kernel("xp_constant", "x * 0 + 1", numpy=lambda x: np.float64(1)).verify()


def test_truth_values_of_constants_are_those_of_python() -> None:
    """``not`` of a number is True or False, not the inverse of its bits."""
    shifted = xp.kernel("xp_not_constant", "x + (not True) + (not 0)")
    assert shifted(xp.asarray([1.0, 2.0])).numpy().tolist() == [2.0, 3.0]
