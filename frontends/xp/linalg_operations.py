"""The operations of linear algebra: how each is built, and computed by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

import passkit.ops as ops
from passkit.errors import FeedError
from passkit.frontends.xp.elementwise_operations import cast, converted
from passkit.frontends.xp.reductions import accumulated, in_float32
from passkit.frontends.xp.runtime import OPERATIONS
from passkit.graph.node import Entry
from passkit.values.dtype import DType, bool_, dtype_of, float64, int64, is_narrow, promote

MATMUL = "matmul"
"""The name of the operation of the operator ``@``."""


def define(
    name: str, build: Callable[..., Any], function: Callable[..., Any], domain: str = "special"
) -> None:
    """Define an operation on matrices.

    On arrays, it raises a FeedError where NumPy raises a LinAlgError, as for a singular matrix.

    Args:
        name: its name.
        build: the function of entries of one dtype that builds it.
        function: NumPy's function; it gets 16-bit floats as float32.
        domain: what operands are converted to, as in `common_dtype`.

    Raises: PasskitError if there is an operation of this name.
    """

    def build_converted(*operands: Entry, **params: Any) -> Any:
        return build(*converted(operands, domain), **params)

    def on_arrays(*arrays: Any, **params: Any) -> Any:
        dtypes = [dtype_of(a.dtype) for a in arrays]
        operands = [_computable(a, d, domain) for a, d in zip(arrays, dtypes, strict=True)]
        try:
            result = function(*operands, **params)
        except np.linalg.LinAlgError as error:
            raise FeedError(f"{name}: the matrix does not allow it: {error}") from None
        results = result if isinstance(result, tuple) else (result,)
        dtype = reduce(promote, dtypes)
        # Copies, since later results may be stored over what nobody refers to.
        copies = tuple(_stored(r, dtype.numpy if is_narrow(dtype) else None) for r in results)
        return copies if isinstance(result, tuple) else copies[0]

    OPERATIONS.define(name, build_converted, on_arrays)


def _computable(array: Any, dtype: DType, domain: str) -> Any:
    """Return an array of ``dtype`` in a dtype that NumPy's functions compute with.

    Floats of 16 bits become float32; integers and booleans float64 if ``domain`` is "special".
    Others are returned as they are.
    """
    if is_narrow(dtype):
        return array.astype(np.float32)
    return array.astype(np.float64) if domain == "special" and dtype.kind in "biu" else array


def _stored(result: Any, narrow: Any) -> Any:
    """Return a result as a C-contiguous array that is no view, real floats in the dtype ``narrow``.

    ``narrow`` None keeps the dtype. An array that is as it must be is returned itself.
    """
    array = np.asarray(result)
    if narrow is not None and array.dtype.kind == "f":
        return array.astype(narrow)
    return array if array.base is None and array.flags.c_contiguous else array.copy()


# Products.


def _matmul(a: Entry, b: Entry) -> Entry:
    """Build a product of matrices or vectors; of booleans, whether any pair of elements is true.

    Both have one dtype and an axis at least; the axes of vectors do not occur in the result.
    Raises: ShapeError if the shapes do not fit.
    """
    if a.dtype is bool_:
        product = _matmul(ops.cast(a, dtype=int64), ops.cast(b, dtype=int64))
        return ops.not_equal(product, 0)
    is_row, is_column = len(a.shape or ()) == 1, len(b.shape or ()) == 1
    a = ops.expand_dims(a, axis=0) if is_row else a
    b = ops.expand_dims(b, axis=1) if is_column else b
    product = ops.matmul(a, b)
    product = ops.squeeze(product, axis=-1) if is_column else product
    return ops.squeeze(product, axis=-1 if is_column else -2) if is_row else product


def _of_numbers(build: Callable[..., Entry]) -> Callable[..., Entry]:
    """Return ``build``, a product of two entries of one dtype, such that it also takes booleans.

    These are computed as int64, and the result is whether that is not 0.
    """

    def build_product(a: Entry, b: Entry, **params: Any) -> Entry:
        if a.dtype is not bool_:
            return build(a, b, **params)
        numbers = build(ops.cast(a, dtype=int64), ops.cast(b, dtype=int64), **params)
        return ops.not_equal(numbers, 0)

    return build_product


def _vecdot(a: Entry, b: Entry, axis: int) -> Entry:
    """Build the sum of products along an axis that counts from the end.

    Raises: ShapeError for another axis, or extents that differ.
    """
    return ops.vecdot(a, b, axis=axis)


def _cross(a: Entry, b: Entry, axis: int) -> Entry:
    """Build the vector products along ``axis``, of extent 3; unsigned integers wrap.

    Raises: DTypeError for booleans.
    """
    if a.dtype is None or a.dtype.kind != "u":
        return ops.cross(a, b, axis=axis)
    product = ops.cross(ops.cast(a, dtype=int64), ops.cast(b, dtype=int64), axis=axis)
    return ops.cast(product, dtype=a.dtype)


define(MATMUL, _matmul, np.matmul, "")
define("tensordot", _of_numbers(ops.tensordot), np.tensordot, "")
define("vecdot", _of_numbers(_vecdot), np.vecdot, "")
define("outer", _of_numbers(ops.outer), np.outer, "")
define("cross", _cross, np.linalg.cross, "")


# Elements moved.


def _trace(x: Entry, offset: int, dtype: str | None) -> Entry:
    """Build the sums of diagonals, in ``dtype``; None for the default of `accumulated`.

    ``offset`` is the number of the diagonal, positive above the main one. Raises: ShapeError if an
    extent is unknown, so that it is not known how many elements the diagonal has.
    """
    assert x.dtype is not None
    x = cast(x, accumulated(x.dtype) if dtype is None else dtype_of(dtype))
    return ops.reduce_sum(ops.diagonal(x, offset=offset), axis=-1)


def _trace_of_array(x: Any, offset: int, dtype: str | None) -> Any:
    """Compute the sums of diagonals in NumPy, in ``dtype``; None for the default of `accumulated`.

    ``offset`` is the number of the diagonal, positive above the main one.
    """
    target = accumulated(dtype_of(x.dtype)) if dtype is None else dtype_of(dtype)
    return in_float32(np.linalg.trace, x, target.numpy, offset=offset)


define("diagonal", ops.diagonal, np.linalg.diagonal, "")
OPERATIONS.define("trace", _trace, _trace_of_array)


# Norms.


def _vector_norm(x: Entry, axis: Any, keepdims: bool, ord: float) -> Entry:
    """Build the norm of order ``ord`` of floats along axes; with ``keepdims`` they get extent 1.

    ``axis`` is None for all. Along no axes, (), the norm is the magnitude, or of order 0 whether an
    element is not 0.
    """
    assert x.dtype is not None
    if axis == ():
        return ops.abs(x) if ord else ops.cast(ops.not_equal(x, 0), dtype=x.dtype)
    return ops.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


define("matrix_norm", ops.matrix_norm, np.linalg.matrix_norm)
define("vector_norm", _vector_norm, np.linalg.vector_norm)


# Factors, inverses, determinants: steps of NumPy in a plan.


def _matrix_rank(x: Entry, rtol: float | None) -> Entry:
    """Build the rank of matrices of floats, as int64.

    ``rtol`` is the relative size below which singular values count as 0; None for a default.
    """
    return ops.cast(ops.matrix_rank(x, rtol=rtol), dtype=int64)


def _matrix_power(x: Entry, n: int) -> Entry:
    """Build the product of n matrices ``x``; that of integers is one of integers for n >= 0.

    A negative n is for inverses, as float64 for integers.
    """
    assert x.dtype is not None
    if x.dtype.is_float:
        return ops.matrix_power(x, n=n)
    if n <= 0:
        floats = ops.matrix_power(ops.cast(x, dtype=float64), n=n)
        return ops.cast(floats, dtype=x.dtype) if n == 0 else floats
    product: Entry | None = None
    factor = x
    for bit in reversed(bin(n)[2:]):
        if bit == "1":
            product = factor if product is None else _matmul(product, factor)
        factor = _matmul(factor, factor)
    assert product is not None
    return product


define("cholesky", ops.cholesky, np.linalg.cholesky)
define("det", ops.det, np.linalg.det)
define("eigh", ops.eigh, np.linalg.eigh)
define("eigvalsh", ops.eigvalsh, np.linalg.eigvalsh)
define("inv", ops.inv, np.linalg.inv)
define("matrix_power", _matrix_power, np.linalg.matrix_power, "")
define("matrix_rank", _matrix_rank, np.linalg.matrix_rank)
define("pinv", ops.pinv, np.linalg.pinv)
define("qr", ops.qr, np.linalg.qr)
define("slogdet", ops.slogdet, np.linalg.slogdet)
define("solve", ops.solve, np.linalg.solve)
define("svd", ops.svd, np.linalg.svd)
define("svdvals", ops.svdvals, np.linalg.svdvals)


def _above(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of matrices and the relative sizes of singular values that count as 0.

    ``function`` is NumPy's; 16-bit floats are computed in float32 and rounded. Raises: FeedError,
    when it is called, if it does not converge.
    """

    def compute(x: Any, rtol: Any) -> Any:
        dtype = dtype_of(x.dtype)
        try:
            result = function(_computable(x, dtype, "special"), rtol=rtol)
            return _stored(result, dtype.numpy if is_narrow(dtype) else None)
        except np.linalg.LinAlgError as error:
            raise FeedError(f"{function.__name__}: the matrix does not allow it: {error}") from None

    return compute


OPERATIONS.define("matrix_rank_above", None, _above(np.linalg.matrix_rank))
OPERATIONS.define("pinv_above", None, _above(np.linalg.pinv))
