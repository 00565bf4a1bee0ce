"""Specimens of contractions and of linear algebra, against NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from tests.ops.specimens import call, calls, cast

Array = Any


def matmul(a: Array, b: Array, transpose_a: bool = False, transpose_b: bool = False) -> Array:
    """Return the product of matrices, transposed as the parameters say."""
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    return a @ (np.swapaxes(b, -1, -2) if transpose_b else b)


calls(
    "matmul",
    matmul,
    [
        call((5, 7), (7, 3)),
        call((2, 1, 7, 5), (3, 7, 3), transpose_a=True),
        call((2, 3, 5, 7), (3, 7), transpose_b=True),
        call((2, 0, 3), (2, 3, 4)),
        call((70, 300), (300, 40)),
    ],
    kinds="iuf",
    slack=8,
)
calls(
    "matmul_sum",
    lambda *x, transpose_a=False, transpose_b=False: sum(
        matmul(a, b, transpose_a, transpose_b) for a, b in zip(x[::2], x[1::2], strict=True)
    ),
    [
        call((5, 7), (7, 3), (5, 2), (2, 3)),
        call((7, 5), (7, 3), (0, 5), (0, 3), (1, 5), (1, 3), transpose_a=True),
        call((70, 30), (140, 30), transpose_b=True),
    ],
    slack=8,
)
calls(
    "linear",
    lambda x, w, b, num_hidden=None: x @ w.T + b,
    [call((4, 3), (5, 3), (5,)), call((2, 4, 3), (5, 3), (5,))],
    slack=8,
)


def einsum(*operands: Array, equation: str) -> Array:
    """Return numpy.einsum with the equation as a parameter."""
    return np.einsum(equation, *operands)


calls(
    "einsum",
    einsum,
    [
        call((3, 4), (4, 5), equation="ij,jk"),
        call((2, 4, 3, 5), (2, 6, 3, 5), equation="bqhd,bkhd->bhqk"),
        call((3, 3), equation="ii->i"),
        call((3, 3, 4), (4,), equation="iij,j->i"),
        call((2, 1, 3, 4), (3, 4, 5), equation="...ij,...jk->...ik"),
        call((3, 4), (4, 5), (5, 2), (2,), equation="ab, bc, cd, d -> a"),
        call((3,), (4,), equation="i,j->ji"),
        call((3, 4), (3, 4), equation="ij,ij->"),
        call((2, 3, 4), equation="a...->..."),
    ],
    kinds="if",
    slack=8,
)
calls(
    "tensordot",
    np.tensordot,
    [
        call((2, 3, 4), (3, 4, 5)),
        call((2, 3), (4, 2), axes=0),
        call((2, 3, 4), (4, 2, 5), axes=((0, 2), (1, 0))),
    ],
    kinds="if",
    slack=8,
)
calls(
    "vecdot",
    lambda a, b, axis=-1: (np.moveaxis(a, axis, -1) * np.moveaxis(b, axis, -1)).sum(
        -1, dtype=a.dtype
    ),
    [call((4, 3), (4, 3)), call((2, 3, 4), (2, 3, 4), axis=-2)],
    kinds="if",
    slack=8,
)
VECTORS = [call((3,), (3,)), call((2, 3), (3,)), call((), (2, 3))]
calls("dot", np.dot, [*VECTORS, call((2, 3), (5, 3, 4))], kinds="if", slack=8)
calls("inner", np.inner, [*VECTORS, call((2, 3), (5, 4, 3))], kinds="if", slack=8)
calls("matvec", np.matvec, [call((2, 3, 4), (4,))], kinds="if", slack=8)
calls("vecmat", np.vecmat, [call((2, 3), (2, 3, 4))], kinds="if", slack=8)
calls(
    "bilinear",
    lambda a, b, w: np.einsum("ni,kij,nj->nk", a, w, b),
    [call((4, 3), (4, 2), (5, 3, 2))],
    slack=20,
)
calls("cross", np.cross, [call((4, 3), (4, 3)), call((3, 4), (3, 4), axis=0)], kinds="if", slack=4)
calls(
    "multi_dot",
    lambda *a: np.linalg.multi_dot(a),
    [call((3, 4), (4, 5), (5, 2), (2, 6)), call((4,), (4, 5), (5,))],
    kinds="if",
    slack=20,
)


def square(*shape: int) -> Any:
    """Return a function that draws matrices with distinct singular values from 1 to 4."""

    def draw(rng: np.random.Generator, dtype: Any) -> Array:
        *batch, rows, columns = shape
        k = min(rows, columns)
        out = np.empty(shape)
        for at in np.ndindex(*batch):
            u, _ = np.linalg.qr(rng.normal(size=(rows, k)))
            v, _ = np.linalg.qr(rng.normal(size=(columns, k)))
            out[at] = u * np.linspace(4, 1, k) @ v.T
        return cast(out, dtype)

    return draw


def definite(*shape: int) -> Any:
    """Return a function that draws symmetric matrices with distinct eigenvalues from 1 to 4."""

    def draw(rng: np.random.Generator, dtype: Any) -> Array:
        out = np.empty(shape)
        for at in np.ndindex(*shape[:-2]):
            q, _ = np.linalg.qr(rng.normal(size=shape[-2:]))
            out[at] = q * np.linspace(1, 4, shape[-1]) @ q.T
        return cast((out + np.swapaxes(out, -1, -2)) / 2, dtype)

    return draw


def symmetric(x: Array) -> Array:
    """Return the mean of a matrix and its transpose."""
    return (x + np.swapaxes(x, -1, -2)) / 2


def cholesky(x: Array, upper: bool = False) -> Array:
    """Return the lower Cholesky factor, or its transpose."""
    low = np.linalg.cholesky(symmetric(x))
    return np.swapaxes(low, -1, -2) if upper else low


FACTOR_SLACK = 200
"""The error in units of eps that factors and inverses may have: condition numbers are near 4."""

calls(
    "cholesky",
    cholesky,
    [call(definite(2, 4, 4)), call(definite(3, 3), upper=True)],
    slack=FACTOR_SLACK,
)
calls("det", np.linalg.det, [call(square(2, 4, 4)), call((0, 0))], slack=FACTOR_SLACK)
calls("inv", np.linalg.inv, [call(square(2, 4, 4))], slack=FACTOR_SLACK)
calls("slogdet", lambda x: tuple(np.linalg.slogdet(x)), [call(square(2, 4, 4))], slack=FACTOR_SLACK)
calls(
    "eigh",
    lambda x: tuple(np.linalg.eigh(symmetric(x))),
    [call(definite(2, 4, 4))],
    slack=FACTOR_SLACK,
)
calls(
    "eigvalsh",
    lambda x: np.linalg.eigvalsh(symmetric(x)),
    [call(definite(2, 4, 4))],
    slack=FACTOR_SLACK,
)
calls("qr", lambda x: tuple(np.linalg.qr(x)), [call(square(2, 5, 3))], slack=FACTOR_SLACK)
calls(
    "svd",
    lambda x: tuple(np.linalg.svd(x, full_matrices=False)),
    [call(square(5, 3)), call(square(2, 3, 4))],
    slack=FACTOR_SLACK,
)
calls("svdvals", np.linalg.svdvals, [call(square(2, 5, 3))], slack=FACTOR_SLACK)
calls("pinv", np.linalg.pinv, [call(square(2, 5, 3)), call(square(3, 4))], slack=FACTOR_SLACK)
calls(
    "matrix_rank",
    np.linalg.matrix_rank,
    [call(square(2, 5, 3)), call(lambda rng, dtype: np.ones((3, 3), dtype.numpy))],
)


def solve(a: Array, b: Array, adjoint: bool = False) -> Array:
    """Return the solution of a linear system; a vector is a column."""
    a = np.swapaxes(a, -1, -2) if adjoint else a
    return np.linalg.solve(a, b)


def triangular_solve(a: Array, b: Array, lower: bool = True, adjoint: bool = False) -> Array:
    """Return the solutions of triangular systems, matrix by matrix."""
    if a.ndim == 2:
        return linalg.solve_triangular(a, b, trans=int(adjoint), lower=lower)
    return np.stack([triangular_solve(x, y, lower, adjoint) for x, y in zip(a, b, strict=True)])


def dominant(*shape: int) -> Any:
    """Return a function that draws matrices with large diagonals."""
    return lambda rng, dtype: cast(rng.normal(size=shape) / 2 + 3 * np.eye(shape[-1]), dtype)


calls(
    "solve",
    solve,
    [
        call(square(4, 4), (4,)),
        call(square(2, 3, 3), (1, 3, 2)),
        call(square(3, 3), (3, 2), adjoint=True),
    ],
    slack=FACTOR_SLACK,
)
calls(
    "matrix_solve",
    solve,
    [call(square(2, 4, 4), (2, 4, 3)), call(square(3, 3), (3, 2), adjoint=True)],
    slack=FACTOR_SLACK,
)
calls(
    "triangular_solve",
    triangular_solve,
    [call(dominant(4, 4), (4,)), call(dominant(3, 3), (3, 2), lower=False, adjoint=True)],
    slack=FACTOR_SLACK,
)
calls(
    "matrix_triangular_solve",
    triangular_solve,
    [
        call(dominant(2, 4, 4), (2, 4, 3)),
        call(dominant(3, 3), (3, 2), adjoint=True),
        call(dominant(3, 3), (3, 2), lower=False),
    ],
    slack=FACTOR_SLACK,
)
calls(
    "lstsq",
    lambda a, b: np.linalg.lstsq(a, b)[0],
    [call(square(5, 3), (5, 2)), call(square(5, 3), (5,))],
    slack=FACTOR_SLACK,
)
calls(
    "matrix_norm",
    lambda x, ord=None, keepdims=False: np.linalg.matrix_norm(
        x, ord="fro" if ord is None else ord, keepdims=keepdims
    ),
    [call(square(2, 4, 3), ord=k, keepdims=k in (2, 1)) for k in (None, "nuc", 2, -2, 1, -np.inf)],
    slack=FACTOR_SLACK,
)
calls(
    "matrix_power",
    lambda x, n: np.linalg.matrix_power(x, n),
    [call(square(2, 3, 3), n=n) for n in (0, 1, 5, -2)],
    slack=FACTOR_SLACK,
)


def expm(x: Array) -> Array:
    """Return the matrix exponential: the series of an eighth of the matrix, in long double."""
    eighth = x.astype(np.longdouble) / 8
    term = out = np.broadcast_to(np.eye(x.shape[-1], dtype=np.longdouble), x.shape)
    for k in range(1, 40):
        term = term @ eighth / k
        out = out + term
    for _ in range(3):
        out = out @ out
    return out.astype(np.float64)


calls(
    "expm",
    expm,
    [call(square(2, 3, 3)), call(lambda rng, dtype: 2 * definite(3, 3)(rng, dtype))],
    slack=FACTOR_SLACK,
)
