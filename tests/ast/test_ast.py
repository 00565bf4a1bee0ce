"""Kernel expressions: typed trees that Python's operators build."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import ast
from passkit.ast import Binary, Call, Cast, Const, Select, SizeOf, Unary, Var, dt
from passkit.errors import ArgumentError, DTypeError

x, i = Var("x", dt.float32), Var("i", dt.int64)


def test_operators_build_trees() -> None:
    """Each operator is one node; numbers become literals of the other operand's dtype."""
    one = ast.const(1, dt.float32)

    assert x + 1 == Binary("+", x, one, dt.float32)
    assert 1 - x == Binary("-", one, x, dt.float32)
    assert (x < 1).dtype is dt.bool_
    assert -x == Unary("-", x, dt.float32)
    assert abs(x) == Call("abs", (x,), dt.float32)
    assert x**2 == Call("pow", (x, ast.const(2, dt.float32)), dt.float32)
    assert 2**x == Call("pow", (ast.const(2, dt.float32), x), dt.float32)
    assert ~(x >= 1) == Unary("~", Binary(">=", x, one, dt.bool_), dt.bool_)


def test_pythons_operators_build_binaries_of_their_symbol() -> None:
    """Arithmetic, comparisons and, of integers, bit operations give Binary nodes."""
    on_floats = [x * 2, 2 * x, x / 2, 2 / x, 2 + x, x - 2, x <= 2, x > 2]
    on_integers = [i // 2, i % 2, i & 1, i | 1, i ^ 1]

    symbols = [e.op for e in on_floats if isinstance(e, Binary)]
    assert symbols == ["*", "*", "/", "/", "+", "-", "<=", ">"]
    assert [e.op for e in on_integers if isinstance(e, Binary)] == ["//", "%", "&", "|", "^"]


@pytest.mark.parametrize("value", [1e-8, 1e-7, 1e20, 0.1, -0.0, np.inf, np.nan])
def test_literals_keep_their_bits(value: float) -> None:
    """A literal is its bytes: -0.0 is not 0.0, and NaN equals itself."""
    literal = ast.const(value, dt.float32)

    assert literal.value.tobytes() == np.float32(value).tobytes()
    assert ast.is_const(literal, value)
    assert ast.const(value, dt.float32) == literal
    assert ast.const(0.0, dt.float32) != ast.const(-0.0, dt.float32)


def test_every_dialect_function_has_a_builder() -> None:
    """The function of its name in `pk.ast` builds a call."""
    for name, count in ast.FUNCTIONS.items():
        build: Callable[..., Any] = getattr(ast, name)
        assert build(*[x] * count) == Call(name, (x,) * count, dt.float32)


def test_casts_selections_and_sizes_build_expressions() -> None:
    """A cast to the same dtype returns its operand; extents and numbers become expressions."""
    n = pk.Size.symbol("n")

    assert ast.cast(x, "float32") is x
    assert ast.cast(x, int) == Cast(x, dt.int64)
    assert ast.where(x > 0, x, 0) == Select(x > 0, x, ast.const(0, dt.float32), dt.float32)
    assert ast.size_of(n) == SizeOf(n)
    assert isinstance(ast.lift(2, dt.int8), Const)


def truth(e: Any) -> bool:
    """Return the truth value of an expression."""
    return bool(e)


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: truth(x > 0), r"an expression \(Binary of bool\) has no truth value before the kerne"),
    (lambda: x + i, r"'\+' needs two operands of one dtype, got float32 and int64; write ast.cast"),
    (lambda: i + 0.5, r"'\+' of int64 and 0.5 would be float64; write ast.cast\(x, 'float64'\)"),
    (lambda: i / 2, "'/' needs floats, got int64; cast first"),
    (lambda: ast.where(x, x, x), "the condition of where must be bool, got float32"),
    (lambda: ast.exp(2.0), "'exp' needs an expression, got 2.0"),
    (lambda: ast.maximum(1, 2), "'maximum' needs an expression, got 1 and 2"),
    (lambda: x | x, r"'\|' needs integers or bools, got float32; cast first"),
    (lambda: ~x, "'~' needs integers or bools, got float32; cast first"),
]


@pytest.mark.parametrize("build, message", BAD)
def test_operands_of_wrong_dtypes_are_refused(build: Callable[[], Any], message: str) -> None:
    """Operands of different or unsuitable dtypes are refused with the cast that is needed."""
    with pytest.raises(DTypeError, match=message):
        build()


def test_literals_that_are_no_numbers_are_refused() -> None:
    """NumPy's texts, bytes, dates and objects are no numbers; int64 does not hold every integer."""
    text = np.array("1.5", np.dtypes.StringDType())
    for value in (np.str_("1"), text, np.void(b"abcd"), np.datetime64("2020"), np.array(None)):
        with pytest.raises(ArgumentError, match="ast.const: value must be a number, got "):
            ast.const(value, dt.float32)
    assert float(ast.const(2**70, dt.dtype_of("bfloat16")).value) == 2.0**70
    with pytest.raises(ArgumentError, match="must be an integer of 64 bits for int64, got 11805"):
        ast.const(2**70, dt.int64)
    assert ast.const(2**70, dt.float64).value == 2.0**70


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda zero: ast.Reduce((1, 0), False, zero, x), r"Reduce: axes must be .* got \(1, 0\)"),
        (lambda zero: ast.Reduce((-1,), False, zero, x), r"Reduce: axes must be .* got \(-1,\)"),
        (lambda zero: ast.Reduce(0, False, zero, x), "Reduce: axes must be a tuple .* got 0"),
        (lambda zero: ast.Reduce((), False, 0.0, x), "Reduce: identity must be a .* got 0.0"),
        (lambda zero: ast.Reduce((), False, zero, None), "combine must be an expres.* got None"),
        (lambda zero: ast.Scan(-1, zero, x), r"Scan: \(axis,\) must be .* got \(-1,\)"),
        (lambda zero: ast.Scan(0, zero, x, prepare=3), "prepare must be a function, got 3"),
        (lambda zero: ast.Chunks(0, 0), "Chunks: length must be a whole .* at least 1, got 0"),
    ],
)
def test_malformed_reductions_are_refused(build: Callable[[Any], Any], message: str) -> None:
    """A wrong field of a reduction, a scan or chunks is named where it is created."""
    with pytest.raises(ArgumentError, match=message):
        build(ast.const(0, dt.float32))


def test_wrong_numbers_of_arguments_are_refused() -> None:
    """A function with too few or too many arguments is named, with the number that it needs."""
    with pytest.raises(ArgumentError, match=r"ast.exp must get 1 argument\(s\), got 2"):
        ast.exp(x, x)
    with pytest.raises(ArgumentError, match=r"ast.fma must get 3 argument\(s\), got 1"):
        ast.fma(x)


def test_operators_do_not_import_expressions_until_one_is_built() -> None:
    """Importing the operators leaves `pk.ast` unloaded; using one of its names loads it."""
    code = (
        "import sys, passkit as pk, passkit.ops.elementwise\n"
        "before = 'passkit.ast.expr' in sys.modules\n"
        "pk.ast.exp\n"
        "print(before, 'passkit.ast.expr' in sys.modules, 'exp' in dir(pk.ast))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "True", "True"]


def test_an_unknown_name_is_an_attribute_error() -> None:
    """`pk.ast` names itself and the name that it does not have."""
    with pytest.raises(AttributeError, match=r"module 'passkit\.ast' has no attribute 'exq'"):
        pk.ast.exq  # type: ignore[attr-defined]  # noqa: B018
