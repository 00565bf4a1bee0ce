"""Linear algebra: products in kernels, factors and inverses by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from passkit import xp
from passkit.errors import ArgumentError, DTypeError, FeedError, ShapeError
from tests.frontends.xp.differences import assert_all_same


def matrices(seed: int, *shape: int, dtype: str = "float64") -> Any:
    """Return random matrices."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape) * 3
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.normal(size=shape)
    return values.astype(dtype)


SHAPES = (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)))


@pytest.mark.parametrize("small", [0, 256])
def test_products_equal_numpy(small: int) -> None:
    """@, tensordot, vecdot, outer and cross take vectors, matrices and batches of each dtype."""
    with xp.config(small=small):
        pairs = []
        for dtype in ("float64", "int64", "uint8", "bool", "complex128"):
            for left, right in SHAPES:
                x, y = matrices(1, *left, dtype=dtype), matrices(2, *right, dtype=dtype)
                product = xp.asarray(x) @ xp.asarray(y)
                pairs.append((f"{dtype}{left} @ {right}", product, x @ y))
            x, y = matrices(3, 2, 3, dtype=dtype), matrices(4, 3, dtype=dtype)
            a, b = xp.asarray(x), xp.asarray(y)
            pairs.append((f"vecdot {dtype}", xp.vecdot(a, b), np.vecdot(x, y)))
            pairs.append((f"outer {dtype}", xp.linalg.outer(b, b), np.outer(y, y)))
            axes = xp.tensordot(a, a, axes=((0,), (0,)))
            pairs.append((f"tensordot {dtype}", axes, np.tensordot(x, x, ((0,), (0,)))))
            if dtype != "bool":
                pairs.append((f"cross {dtype}", xp.linalg.cross(a, b), np.linalg.cross(x, y)))
        assert_all_same(pairs)


@pytest.mark.usefixtures("xp_queue")
def test_products_in_kernels_equal_numpy() -> None:
    """Products of matrices and vectors that are compiled together have NumPy's values."""
    x, y, v = matrices(1, 20, 30), matrices(2, 30, 8), matrices(3, 30)
    a, b, w = xp.asarray(x), xp.asarray(y), xp.asarray(v)
    assert_all_same(
        [
            ("matrices", a @ b + 1.0, x @ y + 1.0),
            ("vector", xp.matmul(a, w), x @ v),
            ("dot", w @ w, np.asarray(v @ v)),
            ("vecdot", xp.vecdot(a, w), np.vecdot(x, v)),
            ("trace", xp.linalg.trace(b), np.trace(y)),
        ]
    )


@pytest.mark.parametrize("small", [0, 256])
def test_matrix_functions_equal_numpy(small: int) -> None:
    """Functions with one result have NumPy's values, shape and dtype."""
    with xp.config(small=small):
        pairs = []
        for dtype in ("float64", "complex128"):
            x = matrices(1, 2, 3, 3, dtype=dtype)
            definite = x @ np.conj(np.swapaxes(x, 1, 2)) + 5 * np.eye(3)
            rectangular = matrices(2, 2, 3, 4, dtype=dtype)
            a, p, r = xp.asarray(x), xp.asarray(definite), xp.asarray(rectangular)
            calls: list[tuple[str, tuple[Any, ...], tuple[Any, ...], dict[str, Any]]] = [
                ("cholesky", (p,), (definite,), {"upper": True}),
                ("det", (a,), (x,), {}),
                ("diagonal", (r,), (rectangular,), {"offset": -1}),
                ("eigvalsh", (p,), (definite,), {}),
                ("inv", (a,), (x,), {}),
                ("matrix_norm", (r,), (rectangular,), {"ord": "nuc", "keepdims": True}),
                ("matrix_norm", (r,), (rectangular,), {}),
                ("matrix_power", (a, 3), (x, 3), {}),
                ("matrix_power", (a, -2), (x, -2), {}),
                ("matrix_rank", (r,), (rectangular,), {}),
                ("matrix_transpose", (r,), (rectangular,), {}),
                ("pinv", (r,), (rectangular,), {"rtol": 0.1}),
                ("solve", (a, r), (x, rectangular), {}),
                ("svdvals", (r,), (rectangular,), {}),
                ("trace", (r,), (rectangular,), {"offset": 1}),
                ("vector_norm", (r,), (rectangular,), {"axis": (0, 2), "ord": 1}),
            ]
            for name, operands, arrays, params in calls:
                result = getattr(xp.linalg, name)(*operands, **params)
                reference = getattr(np.linalg, name)(*arrays, **params)
                pairs.append((f"{name} {dtype} {params}", result, reference))
        xp.eval(*[result for _, result, _ in pairs])
        for where, result, reference in pairs:
            assert result.dtype == np.asarray(reference).dtype, where
            np.testing.assert_allclose(np.asarray(result), reference, 1e-9, 1e-9, err_msg=where)


@pytest.mark.parametrize("small", [0, 256])
def test_factors_multiply_to_the_matrix(small: int) -> None:
    """The factors of qr, svd and eigh, by name, give the matrix when they are multiplied."""
    with xp.config(small=small):
        for dtype in ("float64", "complex128"):
            x = matrices(1, 2, 4, 3, dtype=dtype)
            symmetric = xp.asarray(np.conj(np.swapaxes(x, 1, 2)) @ x)
            a = xp.asarray(x)
            for mode in ("reduced", "complete"):
                q, r = xp.linalg.qr(a, mode=mode)  # type: ignore[arg-type]
                np.testing.assert_allclose(np.asarray(q @ r), x, atol=1e-12)
            parts = xp.linalg.svd(a, full_matrices=False)
            np.testing.assert_allclose(
                np.asarray((parts.U * parts.S[:, None, :]) @ parts.Vh), x, atol=1e-12
            )
            assert xp.linalg.svd(a).U.shape == (2, 4, 4)
            values, vectors = xp.linalg.eigh(symmetric)
            product = np.asarray(symmetric @ vectors)
            np.testing.assert_allclose(product, np.asarray(vectors * values[:, None, :]), atol=1e-9)
            sign, logarithm = xp.linalg.slogdet(symmetric)
            determinant = np.asarray(sign * xp.exp(logarithm))
            np.testing.assert_allclose(determinant, np.asarray(xp.linalg.det(symmetric)), 1e-9)


def test_small_singular_values_are_cut_off_by_an_array() -> None:
    """rtol may be an array, one number for each matrix."""
    x = np.array([np.diag([1.0, 0.5, 0.01])] * 2)
    ranks = xp.linalg.matrix_rank(xp.asarray(x), rtol=xp.asarray([0.1, 0.001]))
    assert np.asarray(ranks).tolist() == [2, 3]
    inverse = xp.linalg.pinv(xp.asarray(x), rtol=xp.asarray([0.1, 0.001]))
    assert np.asarray(inverse)[:, 2, 2].tolist() == [0.0, 100.0]


def test_integers_are_factored_in_float64_and_multiplied_as_integers() -> None:
    """The inverse of integers is float64; their powers stay integers."""
    x = xp.asarray([[2, 1], [1, 1]])
    assert np.asarray(xp.linalg.matrix_power(x, 5)).tolist() == [[89, 55], [55, 34]]
    assert np.asarray(xp.linalg.matrix_power(x, 0)).tolist() == [[1, 0], [0, 1]]
    np.testing.assert_allclose(np.asarray(xp.linalg.inv(x)), [[1, -1], [-1, 2]])


def test_diagonals_outside_of_a_matrix_are_empty() -> None:
    """An offset may be any integer."""
    x = xp.ones((2, 3))
    for offset in (3, -2, 10**400, -(10**400)):
        assert xp.linalg.diagonal(x, offset=offset).shape == (0,)
        assert float(xp.linalg.trace(x, offset=offset)) == 0


def test_numbers_of_numpy_are_taken() -> None:
    """Counts of axes and tolerances may be scalars of NumPy; 16-bit floats stay what they are."""
    x = xp.eye(2, dtype=xp.float16)
    assert xp.tensordot(x, x, axes=np.int64(1)).shape == (2, 2)  # type: ignore[arg-type]
    assert xp.linalg.pinv(x, rtol=np.float32(0.1)).dtype == xp.float16


def test_tensordot_of_more_axes_than_letters() -> None:
    """Together the operands may have more than 26 axes."""
    x, y = np.arange(6.0).reshape((2, 3)), np.arange(12.0).reshape((3, 4))
    left, right = x.reshape((2, *[1] * 13, 3)), y.reshape((3, *[1] * 13, 4))
    product = xp.tensordot(xp.asarray(left), xp.asarray(right), axes=1)
    assert product.ndim == 28
    assert product.numpy().reshape((2, 4)).tolist() == (x @ y).tolist()


def test_wrong_arguments_are_refused() -> None:
    """Messages name the function and the shape."""
    x = xp.asarray(np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"inv: matrices must be square, got shape \(2, 3\)"):
        xp.linalg.inv(x)
    with pytest.raises(ShapeError, match=r"svd: matrices need two axes, got shape \(2,\)"):
        xp.linalg.svd(xp.asarray([1.0, 2.0]))
    with pytest.raises(ShapeError, match=r"matmul: operands need an axis, got shapes \(2, 3\) and"):
        xp.matmul(x, xp.asarray(1.0))
    with pytest.raises(ShapeError, match=r"got 3 and 2"):
        x @ x
    with pytest.raises(ShapeError, match=r"outer: operands must be vectors, got shapes \(2, 3\)"):
        xp.linalg.outer(x, x)
    with pytest.raises(ShapeError, match=r"cross: axis 0 must have extent 3, got shape \(2, 3\)"):
        xp.linalg.cross(x, x, axis=0)
    with pytest.raises(ArgumentError, match=r"tensordot: axes must be .*, got 'ij'"):
        xp.tensordot(x, x, axes="ij")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"matrix_norm: ord must be .*, got 3"):
        xp.linalg.matrix_norm(x, ord=3)
    with pytest.raises(ArgumentError, match=r"vector_norm: ord must be a number, got 'fro'"):
        xp.linalg.vector_norm(x, ord="fro")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"vector_norm: ord must be a number, got True"):
        xp.linalg.vector_norm(x, ord=True)
    with pytest.raises(ArgumentError, match=r"vector_norm: ord must be a number, got 1000"):
        xp.linalg.vector_norm(x, ord=10**400)
    for y, axis in ((x, -7), (xp.asarray([1j, 2]), -7), (xp.asarray([1j, 2]), 2**70), (x, 0)):
        with pytest.raises(ShapeError, match=rf"vecdot needs an axis .* got {axis} for shapes \("):
            xp.vecdot(y, y, axis=axis)
    assert float(xp.linalg.vector_norm(xp.asarray([1.0, 2.0]), ord=-(2**70))) == 1
    with pytest.raises(ArgumentError, match=r"vecdot: axis must be an integer, got \[0\]"):
        xp.vecdot(x, x, axis=[0])  # type: ignore[arg-type]
    for name, rtol in (("pinv", -1), ("matrix_rank", float("nan"))):
        with pytest.raises(FeedError, match=f"{name} needs an rtol of 0 or more, got {rtol}"):
            getattr(xp.linalg, name)(x, rtol=rtol)
    with pytest.raises(DTypeError, match=r"pinv: rtol is too large for a float: 1000"):
        xp.linalg.pinv(x, rtol=10**400)
    with pytest.raises(ArgumentError, match=r"qr: mode must be .*, got an array int64\[1\]"):
        xp.linalg.qr(x, mode=np.array([0]))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"qr: mode must be .*, got 'full'"):
        xp.linalg.qr(x, mode="full")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"matrix_power: n must be an integer, got 0\.5"):
        xp.linalg.matrix_power(xp.asarray(np.eye(2)), 0.5)  # type: ignore[arg-type]
    with pytest.raises(FeedError, match=r"Singular matrix"):
        xp.linalg.inv(xp.asarray(np.zeros((2, 2))))
    with pytest.raises(ArgumentError, match=r"diagonal: offset must be an integer, got 'a'"):
        xp.linalg.diagonal(x, offset="a")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"matrix_norm: ord must be .*, got True"):
        xp.linalg.matrix_norm(x, ord=True)
    with pytest.raises(ArgumentError, match=r"tensordot: axes must be .*, got \(\[0\], \[0, 1\]\)"):
        xp.tensordot(x, x, axes=([0], [0, 1]))
    with pytest.raises(ShapeError, match=r"pinv: rtol of shape \(1,\) does not fit the batch \(\)"):
        xp.linalg.pinv(x, rtol=xp.asarray([0.1]))
    with pytest.raises(DTypeError, match=r"matrix_rank: rtol must be real, got complex128"):
        xp.linalg.matrix_rank(x, rtol=xp.asarray(1j))
    with pytest.raises(FeedError, match=r"pinv: the matrix does not allow it: SVD did not conv"):
        xp.linalg.pinv(xp.asarray([[np.nan, 1.0], [1.0, 2.0]]), rtol=xp.asarray(0.1))
    with pytest.raises(ArgumentError, match=r"an operand must be an Array.* got \[1\.0\]"):
        xp.diag([1.0])
