"""Errors of reductions and products: of sums in any order."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.ast import Binary, Call, Contract, Var
from passkit.graph.node import Node
from passkit.graph.op import FContract, FReduce
from passkit.values.dtype import DType, dtype_of, int64
from tests.error_bounds.expressions import expression
from tests.error_bounds.values import SIGN, Value, largest, least, unit_of


def is_known_fold(node: Node) -> bool:
    """Whether a reduction combines by one of the operations that have a rule here."""
    fold = FReduce.get(node.op.name)(node)  # type: ignore[union-attr]
    match getattr(fold, "combine", None):
        case Binary(op):
            return op in "+*&|^"
        case Call(name):
            return name in ("maximum", "minimum")
    return False


def reduced(node: Node, x: Value) -> Value:
    """A reduction, by what it combines with."""
    assert node.op is not None
    fold = FReduce.get(node.op.name)(node)
    acc = fold.identity.dtype
    if fold.prepare is not None:
        x = expression(fold.prepare(Var("x", dtype_of(x.array.dtype))), {"x": x})
    axes, keep = fold.axes, fold.keepdims
    count = int(np.prod([x.array.shape[k] for k in axes], dtype=np.int64))
    error: Any = None
    kind = fold.combine.op if isinstance(fold.combine, Binary) else fold.combine.name  # type: ignore[attr-defined]
    open_ = x.error is not None and np.sum(x.error, axis=axes, keepdims=keep)
    if not acc.is_float:
        error = np.where(open_ > 0, np.inf, 0.0) if x.error is not None else None
        if kind in "&|" and x.error is not None:
            error = _certain(kind, x, axes, keep)
        total = None
    elif kind == "+":
        total, error = _summed(x, axes, keep, acc, count)
    elif kind == "*":
        total, error = _multiplied(x, axes, keep, acc, count)
    else:
        initial = fold.identity.value
        ufunc = np.maximum if kind == "maximum" else np.minimum
        total = ufunc.reduce(x.array, axis=axes, keepdims=keep, initial=initial)
        error = np.max(x.bound, axis=axes, keepdims=keep, initial=0.0)
        negative = np.signbit(x.array)
        zero = x.array == 0
        both = np.any(zero & negative, axis=axes, keepdims=keep) & np.any(
            zero & ~negative, axis=axes, keepdims=keep
        )
        error = np.where((total == 0) & both, np.maximum(error, SIGN), error)
    if fold.finish is None or total is None:
        return Value(None, error)
    ending = fold.finish(Var("total", acc), Var("count", int64))
    with_count = {"total": Value(np.asarray(total).astype(acc.numpy), error)}
    return expression(ending, {**with_count, "count": Value(np.asarray(count, np.int64))})


def _certain(kind: str, x: Value, axes: tuple[int, ...], keep: bool) -> Any:
    """Infinite where what is open decides whether any, or all, hold."""
    ufunc = np.logical_and if kind == "&" else np.logical_or
    sums = [
        ufunc.reduce(np.where(x.bound > 0, value, x.array), axis=axes, keepdims=keep)
        for value in (False, True)
    ]
    return np.where(sums[0] != sums[1], np.inf, 0.0)


def _is_grid(x: Any, quantum: float) -> bool:
    return bool(np.all(x / quantum == np.rint(x / quantum)))


def _summed(x: Value, axes: tuple[int, ...], keep: bool, acc: DType, count: int) -> tuple[Any, Any]:
    """Error n*u*sum|x|, and none where every partial sum is exact."""
    wide = x.array.astype(np.float64)
    total = np.sum(wide, axis=axes, keepdims=keep)
    finite = np.where(np.isfinite(wide), np.abs(wide), 0.0)
    size = np.sum(finite, axis=axes, keepdims=keep)
    e = np.sum(x.bound, axis=axes, keepdims=keep)
    limit = 1 / unit_of(acc)
    for quantum in (1.0, 2.0**-8):
        if _is_grid(finite, quantum):
            error = np.where(size / quantum < limit, 0.0, count * unit_of(acc) * size * 1.1)
            break
    else:
        error = count * unit_of(acc) * size * 1.1
    error = np.where(e > 0, e + count * unit_of(acc) * 1.1 * (size + e), error)
    return total, np.where(size + e > largest(acc) / 2, np.inf, error)


def _multiplied(
    x: Value, axes: tuple[int, ...], keep: bool, acc: DType, count: int
) -> tuple[Any, Any]:
    """Error n*u*prod|x|, and none for small integers; open where a partial product may overflow."""
    wide = x.array.astype(np.float64)
    total = np.prod(wide, axis=axes, keepdims=keep)
    size = np.where(np.isfinite(wide), np.abs(wide), 1.0)
    most = np.prod(np.maximum(size + x.bound, 1.0), axis=axes, keepdims=keep)
    smallest = np.prod(np.where(size > 0, np.minimum(size, 1.0), 1.0), axis=axes, keepdims=keep)
    whole = np.prod(size + x.bound, axis=axes, keepdims=keep)
    error = np.abs(whole - np.prod(size, axis=axes, keepdims=keep))
    error = error + count * unit_of(acc) * 1.1 * whole
    if _is_grid(size, 1.0):
        exact = (most < 1 / unit_of(acc)) & ~np.any(x.bound > 0, axis=axes, keepdims=keep)
        error = np.where(exact, 0.0, error)
    far = (most > largest(acc) / 2) | (smallest < least(acc) * 2)
    return total, np.where(far, np.inf, error)


def is_matrix_product(node: Node) -> bool:
    """Whether a contraction is of two matrices, or batches of them."""
    return isinstance(FContract.get(node.op.name)(node), Contract)  # type: ignore[union-attr]


def contracted(node: Node, a: Value, b: Value) -> Value:
    """A product of matrices, summed in any order."""
    assert node.op is not None
    contraction = FContract.get(node.op.name)(node)

    def side(v: Value, flip: bool) -> tuple[Any, Any]:
        parts = np.abs(v.array.astype(np.float64)), v.bound
        return (np.swapaxes(p, -1, -2) for p in parts) if flip else parts  # type: ignore[return-value]

    (left, e_left), (right, e_right) = (
        side(a, contraction.transpose_a),
        side(b, contraction.transpose_b),
    )
    spread = e_left @ right + left @ e_right + e_left @ e_right
    dtype = dtype_of(a.array.dtype)
    if not dtype.is_float:
        return Value(None, np.where(spread > 0, np.inf, 0.0))
    size = left @ right
    k = left.shape[-1]
    rounding = (k + 1) * unit_of(dtype) * 1.1 * (size + spread)
    if _is_grid(left, 1.0) and _is_grid(right, 1.0):
        rounding = np.where((size < 1 / unit_of(dtype)) & (spread == 0), 0.0, rounding)
    error = spread + rounding
    far = ~np.isfinite(size + spread) | (size > largest(dtype) / 2)
    return Value(None, np.where(far, np.inf, error))
