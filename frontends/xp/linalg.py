"""Linear algebra: the functions of the array API and its linalg extension.

Matrices lie in the last two axes; axes before them are batches. Products are kernels that fuse;
factors, inverses and determinants are steps of NumPy in a plan, in float64 for integers and in
float32 for floats of 16 bits.
"""

from __future__ import annotations

from math import inf, isinf
from typing import Any, Literal, NamedTuple

from passkit.errors import ArgumentError, DTypeError, FeedError, ShapeError
from passkit.frontends.xp import reductions
from passkit.frontends.xp.array import Array, array_of, call, wrap
from passkit.frontends.xp.conversion import astype
from passkit.frontends.xp.elementwise import abs, log, sign
from passkit.frontends.xp.manipulation import matrix_transpose
from passkit.frontends.xp.products import (
    cross,
    matmul,
    matrices,
    outer,
    tensordot,
    vecdot,
)
from passkit.frontends.xp.runtime import apply, apply_several, operation
from passkit.frontends.xp.statistical import prod, sum
from passkit.frontends.xp.views import declare, is_triangular
from passkit.values.arguments import shown

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

# Elements moved.


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Return the diagonals of matrices.

    Args:
        x: an array (…, m, n).
        offset: the number of the diagonal: above the main one if positive, else below. One outside
            of the matrices is empty.

    Returns: A new array (…, k), with the number k of elements of the diagonal.

    Raises:
        ArgumentError: x is no array or number, or the offset no integer.
        ShapeError: x has fewer than two axes.
    """
    array = matrices("diagonal", x)
    return call("diagonal", array, offset=_offset("diagonal", array, offset))


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Return the sums of the diagonals of matrices.

    Args:
        x: an array (…, m, n).
        offset: the number of the diagonal: above the main one if positive, else below. The sum of
            one outside of the matrices is 0.
        dtype: the dtype to convert to before summing, and of the result; None: int64 for signed
            integers and booleans, uint64 for unsigned ones, that of x for others.

    Raises:
        ArgumentError: x is no array or number, or the offset no integer.
        ShapeError: x has fewer than two axes.
        DTypeError: there is no such dtype, it is bool, or complex numbers would become real.
    """
    array = matrices("trace", x)
    number = _offset("trace", array, offset)
    value, dtype_name = reductions.converted_to("trace", array._value, dtype)
    return wrap(apply(operation("trace", offset=number, dtype=dtype_name), value))


def _offset(where: str, x: Array, offset: Any) -> int:
    """Return the number of a diagonal of matrices ``x`` as an int.

    One outside of the matrices becomes the next one on that side, which is empty, too. ``where`` is
    the function, for messages.

    Raises: ArgumentError if it is no integer.
    """
    rows, columns = x.shape[-2:]
    return max(-rows, min(reductions.integer(f"{where}: offset", offset), columns))


# Norms.


def matrix_norm(
    x: Any,
    /,
    *,
    keepdims: bool = False,
    ord: float | Literal["fro", "nuc"] | None = "fro",
) -> Array:
    """Return the norms of matrices.

    Args:
        x: an array (…, m, n).
        keepdims: keep the axes of the matrices with extent 1.
        ord: "fro" for the root of the sum of squares, also None; "nuc" for the sum of singular
            values; 1 or inf for the largest sum of magnitudes of a column or row, 2 for the
            largest singular value; negative ones for the smallest.

    Returns: An array (…) of real floats, float64 for integers.

    Raises:
        ArgumentError: x is no array or number, or there is no such order.
        ShapeError: the array has fewer than two axes, or no element where the largest or smallest
            is needed.
        FeedError: when the result is computed, the iteration for singular values does not converge,
            as for NaN; so for "nuc", 2 and -2.
    """
    ord = "fro" if ord is None else ord
    orders = ("fro", "nuc", 1, -1, 2, -2, float("inf"), float("-inf"))
    if not isinstance(ord, (str, int, float)) or ord not in orders or isinstance(ord, bool):
        raise ArgumentError(
            f"matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {shown(ord)}"
        )
    keepdims = reductions.truth("matrix_norm: keepdims", keepdims)
    return call("matrix_norm", matrices("matrix_norm", x), ord=ord, keepdims=keepdims)


def vector_norm(
    x: Any, /, *, axis: reductions.Axes = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """Return the length of vectors.

    Args:
        x: an array of numbers, or a number; also complex ones.
        axis: the axis of the vectors, or a tuple or list of several; None for all. With (), the
            result is the magnitude of each element, or of order 0 whether it is not 0.
        keepdims: keep the reduced axes with extent 1.
        ord: the order p, sum(abs(x)**p)**(1 / p): 2 for the Euclidean length, 1 for the sum of
            magnitudes; inf and -inf for the largest and smallest magnitude, 0 for the number of
            elements that are not 0.

    Returns: An array of real floats, float64 for integers.

    Raises:
        ArgumentError: x is no array or number, the order no number (a bool, NaN and an int beyond
            float64 are none), or an axis no integer.
        ShapeError: there is no such axis, it is named twice, or there is no element for inf or
            -inf.
    """
    if isinstance(ord, bool):
        raise ArgumentError(f"vector_norm: ord must be a number, got {ord}")
    if not (isinstance(ord, float) and isinf(ord)):
        ord = reductions.finite_number("vector_norm: ord", ord)
    return wrap(reductions.reduced("vector_norm", array_of(x)._value, axis, keepdims, ord=ord))


# Factors.


class EighResult(NamedTuple):
    """The result of `eigh`.

    Attributes:
        eigenvalues: rising, an array (…, n).
        eigenvectors: as columns, an array (…, n, n).
    """

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The result of `qr`: ``Q`` with orthonormal columns, and an upper triangle ``R``."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The result of `slogdet`: the signs of determinants, and logarithms of their magnitudes."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """The result of `svd`: ``U``, the singular values ``S``, falling, and ``Vh``."""

    U: Array
    S: Array
    Vh: Array


def cholesky(x: Any, /, *, upper: bool = False) -> Array:
    """Return the lower triangles L of positive definite matrices, with L @ conj(L.T) = x.

    Of matrices with NaN, they may be NaN.

    Args:
        x: an array (…, n, n) of symmetric or Hermitian matrices; only the lower triangle is read.
            Integers are computed in float64.
        upper: return the conjugate transpose of L.

    Raises:
        ArgumentError: x is neither an array nor a number.
        ShapeError: the matrices are not square.
        FeedError: when the result is computed, a matrix is not positive definite.
    """
    upper = reductions.truth("cholesky: upper", upper)
    factor = call("cholesky", _squares("cholesky", x), upper=upper)
    return declare(factor, 0, inf) if upper else declare(factor, -inf, 0)


def eigh(x: Any, /) -> EighResult:
    """Return the eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Args:
        x: an array (…, n, n), of which only the lower triangle is read. Integers are computed in
            float64.

    Returns: The arrays ``eigenvalues`` (…, n), real and rising, and ``eigenvectors`` (…, n, n), as
        columns.

    Raises:
        ArgumentError: x is neither an array nor a number.
        ShapeError: the matrices are not square.
        FeedError: when the result is computed, the iteration does not converge.
    """
    return EighResult(*_several("eigh", _squares("eigh", x)))


def eigvalsh(x: Any, /) -> Array:
    """Return the eigenvalues of symmetric or Hermitian matrices, real and rising: (…, n).

    Args:
        x: an array (…, n, n), of which only the lower triangle is read. Integers are computed in
            float64.

    Raises:
        ArgumentError: x is neither an array nor a number.
        ShapeError: the matrices are not square.
        FeedError: when the result is computed, the iteration does not converge.
    """
    return call("eigvalsh", _squares("eigvalsh", x))


def qr(x: Any, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Return factors of matrices: Q with orthonormal columns and an upper triangle R.

    Args:
        x: an array (…, m, n).
        mode: "reduced" for Q of shape (…, m, k) and R of (…, k, n) with k = min(m, n); "complete"
            for (…, m, m) and (…, m, n).

    Returns: The arrays ``Q`` and ``R``, with Q @ R = x; float64 for integers.

    Raises:
        ArgumentError: x is neither an array nor a number, or there is no such mode.
        ShapeError: the array has fewer than two axes.
    """
    if not isinstance(mode, str) or mode not in ("reduced", "complete"):
        raise ArgumentError(f"qr: mode must be 'reduced' or 'complete', got {shown(mode)}")
    q, r = _several("qr", matrices("qr", x), mode=mode)
    return QRResult(q, declare(r, 0, inf))


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular value decomposition of matrices.

    Args:
        x: an array (…, m, n).
        full_matrices: return U (…, m, m) and Vh (…, n, n); else of k = min(m, n) columns and rows.

    Returns: The arrays ``U``, ``S`` (…, k), real and falling, and ``Vh``, with
        U @ diag(S) @ Vh = x; float64 for integers.

    Raises:
        ArgumentError: x is neither an array nor a number.
        ShapeError: the array has fewer than two axes.
        FeedError: when the result is computed, the iteration does not converge, as for NaN.
    """
    full_matrices = reductions.truth("svd: full_matrices", full_matrices)
    return SVDResult(*_several("svd", matrices("svd", x), full_matrices=full_matrices))


def svdvals(x: Any, /) -> Array:
    """Return the singular values of matrices, real and falling: (…, min(m, n)).

    Args:
        x: an array (…, m, n); integers are computed in float64.

    Raises:
        ArgumentError: x is neither an array nor a number.
        ShapeError: the array has fewer than two axes.
        FeedError: when the result is computed, the iteration does not converge, as for NaN.
    """
    return call("svdvals", matrices("svdvals", x))


# Inverses, equations, determinants.


def det(x: Any, /) -> Array:
    """Return the determinants of matrices (…); float64 for integers.

    Those of arrays with a triangular view, such as results of `tril`, are products of the
    diagonals.

    Args:
        x: an array (…, n, n).

    Raises:
        ArgumentError: x is neither an array nor a number.
        ShapeError: the matrices are not square.
    """
    array = _squares("det", x)
    if is_triangular(array):
        return prod(_floats(diagonal(array)), axis=-1)
    return call("det", array)


def slogdet(x: Any, /) -> SlogdetResult:
    """Return the signs of determinants and the logarithms of their magnitudes.

    Args:
        x: an array (…, n, n).

    Returns: The arrays ``sign`` and ``logabsdet``, 0 and -inf for a singular matrix; float64 for
        integers.

    Raises:
        ArgumentError: x is neither an array nor a number.
        ShapeError: the matrices are not square.
    """
    array = _squares("slogdet", x)
    if is_triangular(array) and array.dtype.kind != "c":
        elements = _floats(diagonal(array))
        signs, logarithms = sign(elements), log(abs(elements))
        return SlogdetResult(prod(signs, axis=-1), sum(logarithms, axis=-1))
    return SlogdetResult(*_several("slogdet", array))


def _floats(x: Array) -> Array:
    """Return an array of integers or booleans as float64, any other one itself."""
    return astype(x, "float64") if x.dtype.kind in "biu" else x


def inv(x: Any, /) -> Array:
    """Return the inverses of matrices; float64 for integers.

    Args:
        x: an array (…, n, n).

    Raises:
        ArgumentError: x is neither an array nor a number.
        ShapeError: the matrices are not square.
        FeedError: when the result is computed, a matrix is singular.
    """
    return call("inv", _squares("inv", x))


def pinv(x: Any, /, *, rtol: Any = None) -> Array:
    """Return the pseudo-inverses of matrices (…, n, m); float64 for integers.

    Args:
        x: an array (…, m, n).
        rtol: singular values below rtol times the largest count as 0: a number, or an array that
            broadcasts to the batch; None for max(m, n) times the precision of the dtype. With an
            array, NumPy computes the result at once.

    Raises:
        ArgumentError: x or rtol is neither an array nor a number.
        DTypeError: rtol is complex, or an int too large for a float.
        ShapeError: the array has fewer than two axes, or rtol does not broadcast to the batch.
        FeedError: rtol is a number below 0 or NaN; or when the result is computed, the iteration
            does not converge, as for NaN.
        DeviceError: the arrays are on several devices.
        ConcretizationError: rtol is an array, and x or it depends on arguments of a function that
            is traced.
    """
    return _above("pinv", matrices("pinv", x), rtol)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Array:
    """Return the ranks of matrices, as int64.

    Args:
        x: an array (…, m, n).
        rtol: singular values below rtol times the largest count as 0: a number, or an array that
            broadcasts to the batch; None for max(m, n) times the precision of the dtype. With an
            array, NumPy computes the result at once.

    Raises:
        ArgumentError: x or rtol is neither an array nor a number.
        DTypeError: rtol is complex, or an int too large for a float.
        ShapeError: the array has fewer than two axes, or rtol does not broadcast to the batch.
        FeedError: rtol is a number below 0 or NaN; or when the result is computed, the iteration
            does not converge, as for NaN.
        DeviceError: the arrays are on several devices.
        ConcretizationError: rtol is an array, and x or it depends on arguments of a function that
            is traced.
    """
    return _above("matrix_rank", matrices("matrix_rank", x), rtol)


def matrix_power(x: Any, n: int, /) -> Array:
    """Return the products of n equal matrices; of inverses where n is negative.

    Args:
        x: an array (…, k, k), whose dtype the result has, in which integers wrap; but integers and
            booleans become float64 for a negative n.
        n: how many; 0 gives identity matrices.

    Raises:
        ArgumentError: x is neither an array nor a number, or n no integer.
        ShapeError: the matrices are not square.
        FeedError: when the result is computed, n is negative and a matrix is singular.
    """
    count = reductions.integer("matrix_power: n", n)
    return call("matrix_power", _squares("matrix_power", x), n=count)


def solve(x1: Any, x2: Any, /) -> Array:
    """Return the solutions x of x1 @ x = x2, in the shape of x2 with the batch.

    They have the promoted dtype, float64 for integers.

    Args:
        x1: an array (…, n, n) of matrices.
        x2: a vector (n,), one for the entire batch; or an array (…, n, k) of matrices, whose batch
            broadcasts.

    Raises:
        ArgumentError: an operand is neither an array nor a number.
        ShapeError: the matrices are not square, or x2 does not fit.
        FeedError: when the result is computed, a matrix is singular.
        DeviceError: the arrays are on several devices.
    """
    return call("solve", _squares("solve", x1), array_of(x2))


def _squares(where: str, x: Any) -> Array:
    """Return ``x`` as an array of square matrices, itself if it is an `Array`.

    ``where`` is the function, for messages.

    Raises:
        ArgumentError: It is neither an array nor a number.
        ShapeError: It has fewer than two axes, or the last two differ.
    """
    array = matrices(where, x)
    if array.shape[-1] != array.shape[-2]:
        raise ShapeError(f"{where}: matrices must be square, got shape {array.shape}")
    return array


def _several(name: str, x: Array, **params: Any) -> tuple[Array, ...]:
    """Apply the operation ``name`` with several results to ``x``; return an array for each.

    ``params`` are its parameters. Raises: PasskitError, such as ShapeError, if ``x`` does not fit;
    FeedError if it is computed at once and its elements do not allow it.
    """
    return tuple(map(wrap, apply_several(operation(name, **params), x._value)))


def _above(name: str, x: Array, rtol: Any) -> Array:
    """Apply ``name``, an operation that cuts small singular values off, to matrices ``x``.

    ``rtol`` is the relative size below which they count as 0: None for a default, a number, or an
    array, for which there is an operation of its own.

    Raises:
        ArgumentError: ``rtol`` is something else.
        DTypeError: It is complex, or an int too large for a float.
        ShapeError: It does not broadcast to the batch.
        FeedError: It is a number below 0 or NaN; or the result is computed at once, and the
            iteration does not converge.
        ConcretizationError: It is an array, and ``x`` or it depends on arguments of a function that
            is traced.
        DeviceError: It is an array on another device.
    """
    if rtol is None or isinstance(rtol, (int, float)):
        if rtol is not None and not rtol >= 0:
            raise FeedError(f"{name} needs an rtol of 0 or more, got {shown(rtol)}")
        try:
            return call(name, x, rtol=None if rtol is None else float(rtol))
        except OverflowError:
            raise DTypeError(f"{name}: rtol is too large for a float: {shown(rtol)}") from None
    tolerance, batch = array_of(rtol), x.shape[:-2]
    if tolerance.dtype.kind == "c":
        raise DTypeError(f"{name}: rtol must be real, got {tolerance.dtype}")
    aligned = zip(reversed(tolerance.shape), reversed(batch), strict=False)
    if tolerance.ndim > len(batch) or any(n not in (1, m) for n, m in aligned):
        raise ShapeError(f"{name}: rtol of shape {tolerance.shape} does not fit the batch {batch}")
    return call(f"{name}_above", x, tolerance)
