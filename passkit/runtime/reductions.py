"""Reductions and scans in NumPy, in the order that defines their results."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit import ast
from passkit.ast import Binary, Call, Const, Expr, Reduce, Var
from passkit.graph import attribute_calls
from passkit.graph.node import Node
from passkit.graph.op import FReduce, FScan
from passkit.runtime.evaluate import evaluate
from passkit.values.dtype import dtype_of, int64

Array = Any

UFUNCS: dict[tuple[type, str], tuple[np.ufunc, bool]] = {
    (Binary, "+"): (np.add, True),
    (Binary, "*"): (np.multiply, False),
    (Binary, "&"): (np.bitwise_and, False),
    (Binary, "|"): (np.bitwise_or, False),
    (Binary, "^"): (np.bitwise_xor, False),
    (Call, "maximum"): (np.maximum, False),
    (Call, "minimum"): (np.minimum, False),
}
"""For a combining expression the ufunc that reduces by it, and whether to sum in float64."""


def evaluate_reduce(node: Node, x: Array) -> list[Array]:
    """Return the result of ``node``, whose operator has FReduce, for its input ``x``, in a list.

    Elements are converted by the reduction's ``prepare`` first; ``finish`` is applied to the total
    and the number of elements, unless the reduction is by chunks, which has none. Raises:
    CodeGenError where an expression cannot be evaluated in NumPy; RuleError where FReduce returns
    something else than a Reduce, or one over axes that ``x`` does not have; ShapeError where an
    expression has a symbolic size.
    """
    reduction = attribute_calls.reduce_of(node)
    assert reduction is not None
    chunked = () if reduction.chunks is None else (reduction.chunks.axis,)
    axes = (*reduction.axes, *chunked)
    if any(axis >= x.ndim for axis in axes):
        need = f"axes below {x.ndim}, the rank of its input"
        attribute_calls.refuse_result(FReduce, node, need, axes)
    acc = reduction.identity.dtype
    dtype = dtype_of(x.dtype)
    if reduction.prepare is not None:
        x = np.asarray(evaluate(reduction.prepare(Var("x", dtype)), {"x": x}))
    if reduction.chunks is not None:
        return [_reduce_chunks(reduction, x)]
    count = int(np.prod([x.shape[k] for k in reduction.axes], dtype=np.int64))
    total = _reduce_prepared(reduction, x)
    if reduction.finish is None:
        return [total]
    result = reduction.finish(Var("total", acc), Var("count", int64))
    return [np.asarray(evaluate(result, {"total": total, "count": np.int64(count)}))]


def _reduce_chunks(reduction: Reduce, x: Array) -> Array:
    """Reduce each chunk of an axis of ``x`` by itself; the last one may be shorter.

    The results of the chunks are stacked along a new first axis, of extent 0 where the chunked axis
    is empty. Raises: CodeGenError where ``combine`` is no ufunc and cannot be evaluated in NumPy.
    """
    assert reduction.chunks is not None
    axis, length = reduction.chunks.axis, reduction.chunks.length
    starts = range(0, x.shape[axis], length)
    chunks = [np.take(x, range(k, min(k + length, x.shape[axis])), axis) for k in starts]
    if not chunks:
        return _reduce_prepared(reduction, np.take(x, [], axis))[None][:0]
    return np.stack([_reduce_prepared(reduction, chunk) for chunk in chunks])


def _reduce_prepared(reduction: Reduce, x: Array) -> Array:
    """Reduce ``x`` over the reduction's axes, without ``prepare`` and ``finish``; return an array.

    Raises: CodeGenError where ``combine`` is no ufunc and cannot be evaluated in NumPy.
    """
    return reduce_array(
        reduction.combine, reduction.identity, x, reduction.axes, reduction.keepdims
    )


def reduce_array(
    combine: Expr, identity: Const, x: Array, axes: tuple[int, ...], keepdims: bool
) -> Array:
    """Reduce an array over some axes.

    Args:
        combine: the expression that combines the variables ``a`` and ``b``.
        identity: the identity element; its dtype is that of the result.
        x: the array; it has that dtype where ``combine`` is no ufunc.
        axes: the axes that are reduced.
        keepdims: whether they stay with length 1.

    Returns:
        The reduction by a ufunc, with sums of floats accumulated in float64; for expressions
            without ufunc, a pairwise reduction in order. The identity where ``axes`` have no
            element. Without axes, each element combined with the identity.

    Raises:
        CodeGenError: An expression without ufunc cannot be evaluated in NumPy.
    """
    acc = identity.dtype
    entry = _ufunc_of(combine)
    if entry is None:
        return _reduce_pairwise(combine, identity, x, axes, keepdims)
    ufunc, in_double = entry
    wide = np.dtype(np.float64) if in_double and acc.is_float else acc.numpy
    total = ufunc.reduce(x, axis=axes, dtype=wide, keepdims=keepdims, initial=identity.value)
    return np.asarray(total).astype(acc.numpy)


def evaluate_scan(node: Node, x: Array) -> list[Array]:
    """Return the result of ``node``, whose operator has FScan, for its input ``x``, in a list.

    Elements are converted by the scan's ``prepare`` before, results by its ``finish`` after.
    Raises: CodeGenError where an expression cannot be evaluated in NumPy; RuleError where FScan
    returns something else than a Scan, or one along an axis that ``x`` does not have; ShapeError
    where an expression has a symbolic size.
    """
    scan = attribute_calls.scan_of(node)
    assert scan is not None
    if scan.axis >= x.ndim:
        need = f"an axis below {x.ndim}, the rank of its input"
        attribute_calls.refuse_result(FScan, node, need, scan.axis)
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
    """Scan an array along its first axis.

    Args:
        combine: the expression that combines the variables ``a`` and ``b``.
        identity: the identity element; its dtype is that of the result.
        x: the array; it has that dtype where ``combine`` is no ufunc.
        exclusive: whether an element of the result excludes the element of ``x`` at its position;
            the first is then the identity.

    Returns:
        The scan by a ufunc, in order and in the dtype of the identity; for expressions without
            ufunc, by doubling strides. It has the shape of ``x``.

    Raises:
        CodeGenError: An expression without ufunc cannot be evaluated in NumPy.
    """
    acc = identity.dtype
    entry = _ufunc_of(combine)
    if entry is None and len(x):  # as in kernels: combining -0.0 with the identity may give 0.0
        first = evaluate(combine, {"a": np.asarray(identity.value, acc.numpy), "b": x[:1]})
        x = np.concatenate([first, x[1:]])
    total = x if entry is None else entry[0].accumulate(x, axis=0, dtype=acc.numpy)
    stride = 1
    while entry is None and stride < len(x):
        later = evaluate(combine, {"a": total[:-stride], "b": total[stride:]})
        total = np.concatenate([total[:stride], later])
        stride *= 2
    if exclusive:
        start = np.full((1, *x.shape[1:]), identity.value, acc.numpy)
        total = np.concatenate([start, total])[:-1] if len(total) else total
    return total


def _ufunc_of(combine: Expr) -> tuple[np.ufunc, bool] | None:
    """Return the entry of `UFUNCS` for an expression, None where no ufunc reduces by it.

    The expression must have the variables ``a`` and ``b`` as its operands; those of minimum and
    maximum in this order, as they return the second of 0.0 and -0.0.
    """
    a, b = ast.left(combine.dtype), ast.right(combine.dtype)
    if isinstance(combine, Binary) and {combine.a, combine.b} == {a, b}:
        return UFUNCS.get((Binary, combine.op))
    if isinstance(combine, Call) and combine.args == (a, b):
        return UFUNCS.get((Call, combine.name))
    return None


def _reduce_pairwise(
    combine: Expr, identity: Const, x: Array, axes: tuple[int, ...], keepdims: bool
) -> Array:
    """Reduce by combining neighbours until one element is left.

    This is a binary tree that keeps the order.

    Args:
        combine: the expression that combines two elements.
        identity: its identity element, the result where ``axes`` have no element.
        x: the array.
        axes: the axes to reduce.
        keepdims: whether they stay, with extent 1.

    Raises: CodeGenError where the expression cannot be evaluated in NumPy.
    """
    other_axes = [k for k in range(x.ndim) if k not in axes]
    other_shape = tuple(x.shape[k] for k in other_axes)
    length = int(np.prod([x.shape[k] for k in axes], dtype=np.int64))
    x = np.transpose(x, (*axes, *other_axes)).reshape(length, *other_shape)
    start = np.broadcast_to(identity.value, (1, *other_shape))
    x = x if len(x) else start
    while len(x) > 1:
        odd = x[-1:] if len(x) % 2 else x[:0]
        pairs = evaluate(combine, {"a": x[: len(x) - 1 : 2], "b": x[1::2]})
        x = np.concatenate([pairs, odd])
    total = evaluate(combine, {"a": start, "b": x})[0]
    return np.asarray(np.expand_dims(total, axes) if keepdims else total)
