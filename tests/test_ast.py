"""Kernel expressions: typed when they are built, with the mistakes named there."""

from __future__ import annotations

import pytest

from passkit import ast
from passkit import dtype as dt
from passkit.errors import DTypeError

X, Y, K = ast.Var("x", dt.float32), ast.Var("y", dt.float64), ast.Var("k", dt.int32)


def test_operators_build_typed_trees() -> None:
    """Scalars take the expression's type; comparisons are bool."""
    assert (X * 2 + 1).dtype is dt.float32
    assert (1 / (1 + ast.exp(-X))).dtype is dt.float32
    assert (X < 0.5).dtype is dt.bool_
    assert (K // 2 % 3).dtype is dt.int32
    assert ast.cast(K, "float64").dtype is dt.float64
    assert ast.where(X > 0, X, 0.0).dtype is dt.float32


def test_equal_trees_are_equal() -> None:
    """Expressions are values: they compare and hash by structure."""
    a, b = ast.exp(X) * 2 + X, ast.exp(X) * 2 + X

    assert a == b
    assert hash(a) == hash(b)
    assert a != ast.exp(X) * 3 + X


def test_an_expression_has_no_truth_value() -> None:
    """`if x > 0` in an FCodeGen is a mistake that names its way out."""
    with pytest.raises(DTypeError, match=r"\(\w+ of bool\) has no truth value .* ast.where"):
        bool(X > 0)


def test_dtypes_must_agree() -> None:
    """Two types, a scalar that would change the type, and the division of integers."""
    with pytest.raises(DTypeError, match=r"'\+' needs two .* got float32 and float64; .*float64"):
        X + Y
    with pytest.raises(DTypeError, match=r"'\*' of int32 and 0.5 would be float64"):
        K * 0.5
    with pytest.raises(DTypeError, match="'/' needs floats, got int32"):
        K / K
    with pytest.raises(DTypeError, match="condition of where must be bool, got float32"):
        ast.where(X, X, X)


def test_functions_need_an_expression() -> None:
    """A call or an operation on plain numbers alone has no type."""
    with pytest.raises(DTypeError, match="'exp' needs an expression, got 1.0"):
        ast.exp(1.0)
    with pytest.raises(DTypeError, match="'where' needs an expression, got 1 and 2"):
        ast.where(X > 0, 1, 2)
