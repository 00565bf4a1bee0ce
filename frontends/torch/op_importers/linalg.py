"""Importers of linear algebra: factors, inverses, equations and distances.

NumPy computes them. Those with an error code for each matrix have functions of their own, as
passkit's operators raise an error instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import product
from typing import Any, Literal

import numpy as np
import torch

import passkit.ops as ops
from passkit.frontends.torch.dtypes import TORCH_DTYPES, passkit_dtype
from passkit.frontends.torch.errors import unsupported
from passkit.frontends.torch.op_importers.host_calls import Array, host_call, host_function
from passkit.frontends.torch.op_importers.reductions import vector_norm
from passkit.frontends.torch.op_importers.registry import (
    INT64,
    AtenCall,
    Importer,
    accumulated,
    aten,
    axis_of,
    cast,
    constant,
    dtype_name,
    imports,
    plain_extents,
)
from passkit.graph.node import Entry, known_shape


def _matrix_transpose(x: Entry) -> Entry:
    """Return matrices with their last two axes exchanged."""
    return ops.swapaxes(x, axis1=-2, axis2=-1)


def _symmetric(x: Entry, upper: bool) -> Entry:
    """Return the symmetric matrices that agree with ``x`` in one triangle."""
    triangle, rest = (ops.triu(x), ops.triu(x, k=1)) if upper else (ops.tril(x), ops.tril(x, k=-1))
    return triangle + _matrix_transpose(rest)


def _of_real_matrices(importer: Importer) -> Importer:
    """Return an importer of a function of real matrices, as a decorator.

    Results for matrices without elements are zeros: they have no elements, or are error codes.
    """

    @wraps(importer)
    def checked(call: AtenCall, *args: Any, **kwargs: Any) -> Any:
        matrices = [x for x in args if isinstance(x, Entry)]
        if any(x.dtype is not None and x.dtype.kind == "c" for x in matrices):
            unsupported("linear algebra of complex matrices")
        if not any(0 in known_shape(x) for x in matrices):
            return importer(call, *args, **kwargs)
        if any(x.numel() and x.dtype.is_floating_point for x in call.results):
            unsupported("linear algebra of matrices without elements")
        zeros = [ops.full(tuple(x.shape), 0, passkit_dtype(x.dtype).name) for x in call.results]
        return zeros[0] if isinstance(call.result, torch.Tensor) else zeros

    return checked


def _needs_used(call: AtenCall, *positions: int) -> None:
    """Raise UnsupportedNodeError if the program reads another result than these."""
    if not call.reads_only(positions):
        unsupported("LU factors, which passkit does not compute")


# Matrices with error codes.


def _per_matrix(
    function: Callable[..., Array], x: Array, shape: Sequence[int], *others: Array
) -> tuple[Array, Array]:
    """Return a function of each matrix with error codes: 1 and NaN where it raises an error."""
    batch = x.shape[:-2]
    result = np.empty(shape, x.dtype)
    info = np.zeros(batch, np.int32)
    for k in product(*map(range, batch)):
        try:
            result[k] = function(x[k], *(y[k] for y in others))
        except np.linalg.LinAlgError:
            result[k], info[k] = np.nan, 1
    return result, info


@host_function
def cholesky_with_info(x: Array, upper: bool) -> tuple[Array, Array]:
    """Return the Cholesky factors of matrices with error codes."""
    full = np.swapaxes(np.triu(x), -1, -2) if upper else np.tril(x)
    full = full + np.swapaxes(np.tril(full, -1), -1, -2)
    factor, info = _per_matrix(np.linalg.cholesky, full, full.shape)
    return (np.swapaxes(factor, -1, -2) if upper else factor), info


@host_function
def inverse_with_info(x: Array) -> tuple[Array, Array]:
    """Return the inverses of matrices with error codes."""
    return _per_matrix(np.linalg.inv, x, x.shape)


@host_function
def solution_with_info(a: Array, b: Array, is_vector: bool, is_left: bool) -> tuple[Array, Array]:
    """Return X of A @ X = B, or of X @ A = B, with error codes."""
    rows = b[..., None] if is_vector else b
    if not is_left:
        a, rows = np.swapaxes(a, -1, -2), np.swapaxes(rows, -1, -2)
    batch = np.broadcast_shapes(a.shape[:-2], rows.shape[:-2])
    info = _per_matrix(np.linalg.inv, a, a.shape)[1]
    a = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    rows = np.broadcast_to(rows, (*batch, *rows.shape[-2:]))
    result, _ = _per_matrix(np.linalg.solve, a, rows.shape, rows)
    if not is_left:
        result = np.swapaxes(result, -1, -2)
    return (result[..., 0] if is_vector else result), info


@imports(aten.linalg_cholesky_ex.default)
@_of_real_matrices
def _cholesky_ex(
    call: AtenCall, x: Entry, *, upper: bool = False, check_errors: bool = False
) -> list[Entry]:
    """Import Cholesky factors."""
    return host_call(call, "cholesky_with_info", [x], {"upper": upper})


@imports(aten.linalg_inv_ex.default)
@_of_real_matrices
def _inv_ex(call: AtenCall, x: Entry, *, check_errors: bool = False) -> list[Entry]:
    """Import inverses."""
    return host_call(call, "inverse_with_info", [x], {})


@imports(aten._linalg_solve_ex.default)
@_of_real_matrices
def _solve_ex(
    call: AtenCall, a: Entry, b: Entry, *, left: bool = True, check_errors: bool = False
) -> list[Entry | None]:
    """Import solutions of linear equations, without LU factors."""
    _needs_used(call, 0, 3)
    rank, other = len(known_shape(a)), len(known_shape(b))
    is_vector = other == 1 or (other == rank - 1 and known_shape(b) == known_shape(a)[:-1])
    options = {"is_vector": is_vector, "is_left": left}
    kept = AtenCall(call.function, call.args, call.kwargs, [call.result[0], call.result[3]])
    result, info = host_call(kept, "solution_with_info", [a, b], options)
    return [result, None, None, info]


# Determinants, eigenvalues and singular values.


@imports(aten._linalg_det.default)
def _det(call: AtenCall, x: Entry) -> list[Entry | None]:
    """Import determinants, without LU factors."""
    _needs_used(call, 0)
    if 0 in known_shape(x):
        return [ops.full(call.shape, 1, call.dtype.name), None, None]
    return [ops.det(x), None, None]


@imports(aten._linalg_slogdet.default)
def _slogdet(call: AtenCall, x: Entry) -> list[Entry | None]:
    """Import signs and logarithms of determinants, without LU factors."""
    _needs_used(call, 0, 1)
    if 0 in known_shape(x):
        one = ops.full(call.shape, 1, call.dtype.name)
        return [one, ops.zeros_like(one), None, None]
    sign, logarithm = ops.slogdet(x)
    return [sign, logarithm, None, None]


@imports(aten._linalg_eigh.default)
@_of_real_matrices
def _eigh(call: AtenCall, x: Entry, *args: Any, **kwargs: Any) -> list[Entry]:
    """Import eigenvalues and eigenvectors of symmetric matrices, of which one triangle counts."""
    named = {**dict(zip(("UPLO", "compute_v"), args, strict=False)), **kwargs}
    values, vectors = ops.eigh(_symmetric(x, named.get("UPLO", "L") == "U"))
    return [values, vectors if named.get("compute_v", True) else ops.full((0,), 0, dtype_name(x))]


@imports(aten._linalg_svd.default)
@_of_real_matrices
def _svd(
    call: AtenCall,
    x: Entry,
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
) -> list[Entry]:
    """Import singular values and vectors."""
    if compute_uv:
        return list(ops.svd(x, full_matrices=full_matrices))
    empty = [ops.full(tuple(r.shape), 0, dtype_name(x)) for r in (call.result[0], call.result[2])]
    return [empty[0], ops.svdvals(x), empty[1]]


@imports(aten.linalg_qr.default)
@_of_real_matrices
def _qr(
    call: AtenCall, x: Entry, mode: Literal["reduced", "complete", "r"] = "reduced"
) -> list[Entry]:
    """Import orthogonal and triangular factors."""
    if mode == "r":
        return [ops.full((0,), 0, dtype_name(x)), ops.qr(x, mode="reduced")[1]]
    return list(ops.qr(x, mode=mode))


@imports(aten.linalg_matrix_exp.default)
@_of_real_matrices
def _matrix_exp(call: AtenCall, x: Entry) -> Entry:
    """Import exponentials of matrices."""
    return ops.expm(x)


@imports(aten.linalg_pinv.atol_rtol_tensor)
@_of_real_matrices
def _pinv(
    call: AtenCall,
    x: Entry,
    *,
    atol: Entry | None = None,
    rtol: Entry | None = None,
    hermitian: bool = False,
) -> Entry:
    """Import pseudo-inverses by singular values; those below a tolerance count as 0."""
    if hermitian:
        x = _symmetric(x, False)
    u, s, vh = ops.svd(x)
    largest = ops.reduce_max(s, axis=-1, keepdims=True)
    limit: Any = None
    for tolerance, scale in ((atol, None), (rtol, largest)):
        if tolerance is None:
            continue
        own = ops.expand_dims(cast(tolerance, x.dtype or INT64), axis=-1)
        own = own if scale is None else own * scale
        limit = own if limit is None else ops.maximum(limit, own)
    if rtol is None:
        rows, columns = plain_extents(known_shape(x)[-2:])
        epsilon = max(rows, columns) * np.finfo(x.dtype.numpy).eps  # type: ignore[union-attr]
        if atol is None:
            limit = largest * float(epsilon)
        else:
            given = ops.expand_dims(cast(atol, x.dtype or INT64), axis=-1)
            limit = ops.where(ops.greater(given, 0), given, largest * float(epsilon))
    inverse = ops.where(ops.greater(s, limit), 1 / s, 0)
    return ops.matmul(
        _matrix_transpose(vh) * ops.expand_dims(inverse, axis=-2), _matrix_transpose(u)
    )


# Equations with triangular matrices.


def _triangular(a: Entry, b: Entry, upper: bool, transposed: bool, unit: bool) -> Entry:
    """Return X of A @ X = B for triangular matrices A."""
    if unit:
        (n,) = plain_extents(known_shape(a)[-1:])
        strict = ops.triu(a, k=1) if upper else ops.tril(a, k=-1)
        a = strict + ops.eye(n, dtype=dtype_name(a))
    rank = max(len(known_shape(a)), len(known_shape(b)))
    batch = np.broadcast_shapes(
        plain_extents(known_shape(a)[:-2]), plain_extents(known_shape(b)[:-2])
    )
    assert len(batch) == rank - 2
    a = ops.broadcast_to(a, (*batch, *known_shape(a)[-2:]))
    b = ops.broadcast_to(b, (*batch, *known_shape(b)[-2:]))
    return ops.matrix_triangular_solve(a, b, lower=not upper, adjoint=transposed)


@imports(aten.linalg_solve_triangular.default)
@_of_real_matrices
def _solve_triangular(
    call: AtenCall,
    a: Entry,
    b: Entry,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Entry:
    """Import solutions of equations with triangular matrices on the left or right."""
    if left:
        return _triangular(a, b, upper, False, unitriangular)
    turned = _triangular(a, _matrix_transpose(b), upper, True, unitriangular)
    return _matrix_transpose(turned)


@imports(aten.triangular_solve.default)
@_of_real_matrices
def _triangular_solve(
    call: AtenCall,
    b: Entry,
    a: Entry,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> list[Entry]:
    """Import solutions of equations with triangular matrices, and a copy of these."""
    copy = ops.broadcast_to(a, tuple(call.result[1].shape))
    return [_triangular(a, b, upper, transpose, unitriangular), copy]


@imports(aten.cholesky_solve.default)
@_of_real_matrices
def _cholesky_solve(call: AtenCall, b: Entry, factor: Entry, upper: bool = False) -> Entry:
    """Import solutions of equations whose matrix has a known Cholesky factor."""
    first = _triangular(factor, b, upper, upper, False)
    return _triangular(factor, first, upper, not upper, False)


@imports(aten.cholesky_inverse.default)
@_of_real_matrices
def _cholesky_inverse(call: AtenCall, factor: Entry, upper: bool = False) -> Entry:
    """Import inverses of matrices with a known Cholesky factor."""
    (n,) = plain_extents(known_shape(factor)[-1:])
    first = _triangular(factor, ops.eye(n, dtype=dtype_name(factor)), upper, upper, False)
    return _triangular(factor, first, upper, not upper, False)


@imports(aten.linalg_polar.default)
@_of_real_matrices
def _polar(call: AtenCall, x: Entry) -> list[Entry]:
    """Import matrices as products of orthogonal and symmetric ones, by singular values."""
    u, s, vh = ops.svd(x)
    symmetric = ops.matmul(_matrix_transpose(vh) * ops.expand_dims(s, axis=-2), vh)
    return [ops.matmul(u, vh), symmetric]


# Error codes.


@host_function
def linalg_check(token: Array, info: Array, name: str, is_matrix: bool) -> Array:
    """Return a token if all error codes are 0.

    Raises: torch.linalg.LinAlgError, from PyTorch's own check.
    """
    if info.any():
        aten._linalg_check_errors(torch.from_numpy(info), name, is_matrix=is_matrix)
    return token


def check_errors(token: Entry, info: Entry, name: str, *, is_matrix: bool) -> Entry:
    """Return a token that depends on a check of error codes."""
    options = {"name": name, "is_matrix": is_matrix}
    fake = torch.empty(plain_extents(known_shape(token)), dtype=TORCH_DTYPES[dtype_name(token)])
    call = AtenCall(aten._linalg_check_errors.default, (), {}, fake)
    return host_call(call, "linalg_check", [token, info], options)[0]


# Distances.


@imports(aten._cdist_forward.default)
def _cdist(call: AtenCall, a: Entry, b: Entry, p: float, compute_mode: int | None) -> Entry:
    """Import the distances of all pairs of vectors."""
    if 0 in known_shape(a) or 0 in known_shape(b):
        return ops.full(call.shape, 0, call.dtype.name)
    difference = ops.expand_dims(a, axis=-2) - ops.expand_dims(b, axis=-3)
    return cast(vector_norm(difference, p, (-1,), False), call.dtype)


@imports(aten._pdist_forward.default)
def _pdist(call: AtenCall, x: Entry, p: float = 2.0) -> Entry:
    """Import the distances of the pairs of rows of a matrix."""
    rows, columns = plain_extents(known_shape(x))
    if rows < 2 or not columns:
        return ops.full(call.shape, 0, call.dtype.name)
    first, second = (constant(k, INT64) for k in np.triu_indices(rows, 1))
    difference = ops.gather(x, first, axis=0) - ops.gather(x, second, axis=0)
    return cast(vector_norm(difference, p, (-1,), False), call.dtype)


def _distance_slopes(difference: Entry, distance: Entry, p: float) -> Entry:
    """Return the derivatives of distances by the differences along the last axis."""
    norm = ops.expand_dims(distance, axis=-1)
    sign, magnitude = ops.sign(difference), ops.abs(difference)
    if p == 0:
        return ops.zeros_like(difference)
    if p == 1:
        return sign
    if p == float("inf"):
        return ops.where(ops.equal(magnitude, norm), sign, 0)
    is_zero = ops.logical_or(ops.equal(norm, 0), ops.equal(difference, 0))
    ratio = ops.where(is_zero, 0, magnitude / ops.where(is_zero, 1, norm))
    if p == 2:
        return sign * ratio
    return ops.where(is_zero, 0, sign * ops.pow(ops.where(is_zero, 1, ratio), p - 1))


@imports(aten._cdist_backward.default)
def _cdist_backward(
    call: AtenCall, dy: Entry, a: Entry, b: Entry, p: float, distance: Entry
) -> Entry:
    """Import the gradient of the distances of all pairs by the first vectors."""
    if 0 in known_shape(a) or 0 in known_shape(b):
        return ops.full(call.shape, 0, call.dtype.name)
    difference = ops.expand_dims(a, axis=-2) - ops.expand_dims(b, axis=-3)
    slopes = _distance_slopes(difference, distance, p)
    return ops.reduce_sum(ops.expand_dims(dy, axis=-1) * slopes, axis=-2)


@imports(aten._pdist_backward.default)
def _pdist_backward(call: AtenCall, dy: Entry, x: Entry, p: float, distance: Entry) -> Entry:
    """Import the gradient of the distances of pairs of rows."""
    rows, columns = plain_extents(known_shape(x))
    if rows < 2 or not columns:
        return ops.full(call.shape, 0, call.dtype.name)
    first, second = (constant(k, INT64) for k in np.triu_indices(rows, 1))
    difference = ops.gather(x, first, axis=0) - ops.gather(x, second, axis=0)
    parts = ops.expand_dims(dy, axis=-1) * _distance_slopes(difference, distance, p)
    total = ops.index_add(ops.zeros_like(x), first, parts, axis=0)
    return ops.index_sub(total, second, parts, axis=0)


@imports(aten._trilinear.default)
def _trilinear(
    call: AtenCall,
    a: Entry,
    b: Entry,
    c: Entry,
    of_a: Sequence[int],
    of_b: Sequence[int],
    of_c: Sequence[int],
    summed: Sequence[int],
    unroll_dim: int = 1,
) -> Entry:
    """Import the sum of products of three tensors, each of which gets new axes."""
    wide = accumulated(call.dtype)
    factors = [
        cast(ops.expand_dims(x, axis=tuple(axes)) if axes else x, wide)
        for x, axes in ((a, of_a), (b, of_b), (c, of_c))
    ]
    result = factors[0] * factors[1] * factors[2]
    axes = tuple(axis_of(k, result) for k in summed)
    return cast(ops.reduce_sum(result, axis=axes) if axes else result, call.dtype)
