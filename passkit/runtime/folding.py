"""Folds and scans in NumPy, in the order that is their meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit import ast
from passkit.ast import Binary, Call, Const, Expr, Reduce, Var
from passkit.graph import rules
from passkit.graph.node import Node
from passkit.runtime.evaluate import evaluate
from passkit.values.dtype import dtype_of, int64

Array = Any

# combine: the ufunc that folds it, and whether float64 makes it more accurate
KNOWN_FOLDS: dict[tuple[type, str], tuple[np.ufunc, bool]] = {
    (Binary, "+"): (np.add, True),
    (Binary, "*"): (np.multiply, False),
    (Binary, "&"): (np.bitwise_and, False),
    (Binary, "|"): (np.bitwise_or, False),
    (Binary, "^"): (np.bitwise_xor, False),
    (Call, "maximum"): (np.maximum, False),
    (Call, "minimum"): (np.minimum, False),
}


def by_reduce(node: Node, x: Array) -> list[Array]:
    """FReduce: the known folds by NumPy, others pairwise in order."""
    fold = rules.reduce_of(node)
    assert fold is not None
    acc = fold.identity.dtype
    dtype = dtype_of(x.dtype)
    if fold.prepare is not None:
        x = np.asarray(evaluate(fold.prepare(Var("x", dtype)), {"x": x}))
    if fold.chunks is not None:
        return [_by_chunks(fold, x)]
    count = int(np.prod([x.shape[k] for k in fold.axes], dtype=np.int64))
    total = _folded(fold, x)
    if fold.finish is None:
        return [total]
    ending = fold.finish(Var("total", acc), Var("count", int64))
    return [np.asarray(evaluate(ending, {"total": total, "count": np.int64(count)}))]


def _by_chunks(fold: Reduce, x: Array) -> Array:
    """Each chunk by itself, along a new first axis."""
    assert fold.chunks is not None
    axis, length = fold.chunks.axis, fold.chunks.length
    starts = range(0, x.shape[axis], length)
    parts = [np.take(x, range(k, min(k + length, x.shape[axis])), axis) for k in starts]
    none = _folded(fold, np.take(x, [], axis))
    return np.stack([_folded(fold, part) for part in parts]) if parts else none[None][:0]


def _folded(fold: Reduce, x: Array) -> Array:
    """The fold without its finish."""
    return fold_array(fold.combine, fold.identity, x, fold.axes, fold.keepdims)


def fold_array(
    combine: Expr, identity: Const, x: Array, axes: tuple[int, ...], keepdims: bool
) -> Array:
    """The fold of ``x`` over axes: the known ones by NumPy, others pairwise in order."""
    acc = identity.dtype
    known = _known_fold(combine)
    if known is None:
        return _fold_pairs(combine, identity, x, axes, keepdims)
    ufunc, widen = known
    wide = np.dtype(np.float64) if widen and acc.is_float else acc.numpy
    total = ufunc.reduce(x, axis=axes, dtype=wide, keepdims=keepdims, initial=identity.value)
    return np.asarray(total).astype(acc.numpy)


def by_scan(node: Node, x: Array) -> list[Array]:
    """FScan: the known folds by NumPy in order, others by doubling steps."""
    scan = rules.scan_of(node)
    assert scan is not None
    acc, axis = scan.identity.dtype, scan.axis
    if scan.prepare is not None:
        x = np.asarray(evaluate(scan.prepare(Var("x", dtype_of(x.dtype))), {"x": x}))
    x = np.moveaxis(x, axis, 0)
    x = x[::-1] if scan.reverse else x
    total = scan_array(scan.combine, scan.identity, x, scan.exclusive)
    total = np.moveaxis(total[::-1] if scan.reverse else total, 0, axis)
    if scan.finish is None:
        return [total]
    return [np.asarray(evaluate(scan.finish(Var("total", acc)), {"total": total}))]


def scan_array(combine: Expr, identity: Const, x: Array, exclusive: bool) -> Array:
    """The scan of ``x`` along its first axis: known folds in order, others by doubling steps."""
    acc = identity.dtype
    known = _known_fold(combine)
    if known is None and len(x):  # as kernels begin: -0.0 behind the identity may be 0.0
        first = evaluate(combine, {"a": np.asarray(identity.value, acc.numpy), "b": x[:1]})
        x = np.concatenate([first, x[1:]])
    total = x if known is None else known[0].accumulate(x, axis=0, dtype=acc.numpy)
    step = 1
    while known is None and step < len(x):
        later = evaluate(combine, {"a": total[:-step], "b": total[step:]})
        total = np.concatenate([total[:step], later])
        step *= 2
    if exclusive:
        start = np.full((1, *x.shape[1:]), identity.value, acc.numpy)
        total = np.concatenate([start, total])[:-1] if len(total) else total
    return total


def _known_fold(combine: Expr) -> tuple[np.ufunc, bool] | None:
    """The ufunc that folds as ``combine`` does, and whether float64 makes it more accurate.

    The order of operands matters for extremes: of 0.0 and -0.0 they give the second.
    """
    a, b = ast.left(combine.dtype), ast.right(combine.dtype)
    if isinstance(combine, Binary) and {combine.a, combine.b} == {a, b}:
        return KNOWN_FOLDS.get((Binary, combine.op))
    if isinstance(combine, Call) and combine.args == (a, b):
        return KNOWN_FOLDS.get((Call, combine.name))
    return None


def _fold_pairs(
    combine: Expr, identity: Const, x: Array, axes: tuple[int, ...], keepdims: bool
) -> Array:
    """Neighbours are combined until one is left: a tree, in order."""
    kept = [k for k in range(x.ndim) if k not in axes]
    rest = tuple(x.shape[k] for k in kept)
    length = int(np.prod([x.shape[k] for k in axes], dtype=np.int64))
    x = np.transpose(x, (*axes, *kept)).reshape(length, *rest)
    start = np.broadcast_to(identity.value, (1, *rest))
    x = x if len(x) else start
    while len(x) > 1:
        odd = x[-1:] if len(x) % 2 else x[:0]
        pairs = evaluate(combine, {"a": x[: len(x) - 1 : 2], "b": x[1::2]})
        x = np.concatenate([pairs, odd])
    total = evaluate(combine, {"a": start, "b": x})[0]
    return np.asarray(np.expand_dims(total, axes) if keepdims else total)
