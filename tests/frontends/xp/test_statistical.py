"""Reductions, scans, truth values and differences: the values and dtypes of NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from passkit import xp
from passkit.errors import ArgumentError, DTypeError, ShapeError
from tests.frontends.xp.differences import assert_all_same, numbers

REDUCTIONS = ("all", "any", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var")
DTYPES = ("bool", "int8", "int64", "uint8", "uint64", "float16", "float32", "float64")


def finite(seed: int, dtype: str, *shape: int) -> Any:
    """Return random numbers without infinities and NaN."""
    values = numbers(seed, dtype, *shape)
    return np.where(np.isfinite(values), values, 1).astype(dtype)


def exact(name: str, x: Any, **params: Any) -> Any:
    """Return NumPy's result; sums and products of 16-bit floats are computed in float32."""
    function = getattr(np, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _computed(function, name, x, params)


def _computed(function: Any, name: str, x: Any, params: dict[str, Any]) -> Any:
    """Return the result of a function of NumPy."""
    if x.dtype == np.float16 and name in ("sum", "prod", "mean", "var", "std"):
        return np.asarray(function(x.astype(np.float32), **params)).astype(np.float16)
    return np.asarray(function(x, **params))


def reduction_pairs(dtype: str, *shape: int) -> list[tuple[str, Any, Any]]:
    """Return results and references of all reductions, along several axes."""
    x = finite(1, dtype, *shape)
    array = xp.asarray(x)
    pairs = []
    for axis in (None, 0, -1, (0, -1), ()):
        for keepdims in (False, True):
            params: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
            for name in REDUCTIONS:
                where = f"{name} of {dtype}, {params}"
                pairs.append((where, getattr(xp, name)(array, **params), exact(name, x, **params)))
            result = xp.var(array, correction=1, **params)
            pairs.append((f"sample variance {params}", result, exact("var", x, ddof=1, **params)))
    return pairs


@pytest.mark.parametrize("small", [0, 256])
def test_reductions_of_every_dtype_equal_numpy(small: int) -> None:
    """Each reduction along each kind of axis has NumPy's values, shape and dtype."""
    with xp.config(small=small), np.errstate(all="ignore"):
        for dtype in DTYPES:
            assert_all_same(reduction_pairs(dtype, 3, 2, 4))


@pytest.mark.usefixtures("xp_queue")
def test_reductions_in_kernels_equal_numpy() -> None:
    """Reductions of a larger array, compiled together, have NumPy's values."""
    x, whole = numbers(1, "float32", 40, 30)[1:], numbers(2, "int8", 40, 30)
    a, b = xp.asarray(x), xp.asarray(whole)
    deviation = np.std(x.astype(float), ddof=1)
    assert_all_same(
        [
            ("sum", xp.sum(a, axis=0), np.sum(x.astype(float), axis=0).astype(np.float32)),
            ("whole sum", xp.sum(b, axis=1), np.sum(whole, axis=1)),
            (
                "std",
                xp.std(a, axis=(0, 1), correction=1),
                deviation.astype(np.float32),
            ),
            ("max", xp.max(b, axis=0, keepdims=True), np.max(whole, axis=0, keepdims=True)),
            ("any", xp.any(b > 7, axis=1), np.any(whole > 7, axis=1)),
            ("argmax", xp.argmax(a, axis=1), np.argmax(x, axis=1)),
            ("scan", xp.cumulative_sum(b, axis=1), np.cumulative_sum(whole, axis=1)),
            ("count", xp.count_nonzero(b), np.asarray(np.count_nonzero(whole))),
        ]
    )


def test_a_reduction_of_a_pending_array_stays_pending() -> None:
    """x.sum() of a pending array queues: one execution runs all operations."""
    with xp.config(small=0):
        x = xp.asarray(np.ones(1000, np.float32))
        xp.eval()
        with xp.inspect() as runs:
            total = (x * 2).sum() + (x + 1).max()
            assert not runs
            assert float(total) == 2002.0
        assert [run.operations for run in runs] == [("multiply", "sum", "add", "max", "add")]


def test_float16_is_summed_in_float32() -> None:
    """A sum of float16 that passes 2048 does not stop there."""
    ones = np.ones((2, 3000), np.float16)
    for small in (0, 10_000):
        with xp.config(small=small):
            assert np.asarray(xp.sum(xp.asarray(ones), axis=1)).tolist() == [3000.0, 3000.0]


@pytest.mark.parametrize("small", [0, 256])
def test_a_dtype_is_converted_to_before_the_sum(small: int) -> None:
    """dtype= sets what sums, products, means and scans compute in."""
    with xp.config(small=small):
        x = finite(1, "int8", 3, 4)
        a = xp.asarray(x)
        assert_all_same(
            [
                ("sum", xp.sum(a, dtype=xp.float32), np.sum(x, dtype=np.float32)),
                ("prod", a.prod(dtype=xp.int16), np.prod(x, dtype=np.int16)),
                ("mean", xp.mean(a, dtype=xp.float32), np.mean(x, dtype=np.float32)),
                ("complex", xp.sum(a, dtype=xp.complex64), np.sum(x, dtype=np.complex64)),
                (
                    "scan",
                    xp.cumulative_sum(a, axis=1, dtype=xp.float64),
                    np.cumulative_sum(x, axis=1, dtype=np.float64),
                ),
            ]
        )


@pytest.mark.parametrize("small", [0, 256])
def test_scans_equal_numpy(small: int) -> None:
    """Cumulative sums and products have NumPy's values, with and without the initial element."""
    with xp.config(small=small):
        pairs = []
        for dtype in ("bool", "int8", "uint8", "float64"):
            x = finite(1, dtype, 3, 4)
            for name in ("cumulative_sum", "cumulative_prod"):
                for initial in (False, True):
                    params = {"axis": -1, "include_initial": initial}
                    result = getattr(xp, name)(xp.asarray(x), **params)
                    pairs.append((f"{name} {dtype}", result, getattr(np, name)(x, **params)))
            array = xp.asarray(x)
            pairs.append(
                (f"cumsum {dtype}", array.cumsum(), np.cumsum(x, dtype=array.cumsum().dtype))
            )
            pairs.append((f"cumprod {dtype}", array.cumprod(0), np.cumprod(x, 0)))
        assert_all_same(pairs)


def test_complex_reductions_run_in_numpy() -> None:
    """Sums, means, variances and truth values of complex numbers have NumPy's values."""
    x = numbers(1, "complex64", 4, 5)
    names = ("sum", "prod", "mean", "var", "std", "all", "any", "count_nonzero")
    a = xp.asarray(x)
    assert_all_same(
        [(n, getattr(xp, n)(a, axis=0), np.asarray(getattr(np, n)(x, axis=0))) for n in names]
    )


def test_methods_equal_functions() -> None:
    """Methods take NumPy's arguments by position, and ddof."""
    x = finite(3, "float64", 4, 5)
    a = xp.asarray(x)
    assert_all_same(
        [
            ("sum", a.sum(0), x.sum(0)),
            ("mean", a.mean(1, keepdims=True), x.mean(1, keepdims=True)),
            ("max", a.max(), x.max()),
            ("min", a.min((0, 1)), x.min((0, 1))),
            ("any", a.any(0), x.any(0)),
            ("all", a.all(1), x.all(1)),
            ("std", a.std(0, ddof=1), x.std(0, ddof=1)),
            ("var", a.var(), x.var()),
            ("argmin", a.argmin(1), x.argmin(1)),
            ("argmax", a.argmax(), x.argmax()),
        ]
    )


@pytest.mark.parametrize("small", [0, 256])
def test_differences_equal_numpy(small: int) -> None:
    """diff takes an axis, repetitions and arrays on both sides, also of booleans."""
    with xp.config(small=small):
        x, truth = finite(1, "int32", 3, 5), finite(2, "bool", 7)
        a, b = xp.asarray(x), xp.asarray(truth)
        edge = x[:, :1]
        assert_all_same(
            [
                ("one", xp.diff(a), np.diff(x)),
                ("two", xp.diff(a, n=2, axis=0), np.diff(x, 2, 0)),
                (
                    "edges",
                    xp.diff(a, prepend=edge, append=edge),
                    np.diff(x, 1, -1, x[:, :1], x[:, :1]),
                ),
                ("none", xp.diff(a, n=0), x),
                ("bools", xp.diff(b, n=2), np.diff(truth, 2)),
            ]
        )


def test_wrong_axes_and_arguments_are_refused() -> None:
    """Messages name the function, what was given and what there is."""
    x = xp.asarray(np.ones((2, 3)))
    for edge in (xp.asarray([1.0, 2.0]), xp.asarray([1j, 2.0])):
        with pytest.raises(ShapeError, match=r"diff along axis 1 .* got \(2,\) and \(2, 3\)"):
            xp.diff(x, prepend=edge)
    assert xp.diff(x[0], n=2**70).shape == xp.diff(x[0] > 0, n=2**70).shape == (0,)
    with pytest.raises(ShapeError, match=r"sum: there is no axis 2 in an array of 2 axes"):
        xp.sum(x, axis=2)
    with pytest.raises(ShapeError, match=r"max: there is no axis 0 in a 0-dimensional array"):
        xp.max(xp.asarray(1.0), axis=0)
    with pytest.raises(ShapeError, match=r"mean: an axis is named twice in \(0, -2\)"):
        xp.mean(x, axis=(0, -2))
    with pytest.raises(ArgumentError, match=r"sum: axis must be an integer, got 0\.5"):
        xp.sum(x, axis=0.5)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"min: there is no element.* \(0, 3\)"):
        xp.min(xp.asarray(np.ones((0, 3))), axis=0)
    with pytest.raises(ArgumentError, match=r"var: correction must be a number, got inf"):
        xp.var(x, correction=float("inf"))
    with pytest.raises(ArgumentError, match=r"std: correction must be a number, got 1000"):
        xp.std(x, correction=10**400)
    with pytest.raises(ShapeError, match=r"cumulative_sum: an array of 2 axes needs an axis"):
        xp.cumulative_sum(x)
    with pytest.raises(ArgumentError, match=r"diff: n must be a natural number, got -1"):
        xp.diff(x, n=-1)
    with pytest.raises(DTypeError, match=r"sum: complex128 cannot be converted to float32"):
        xp.sum(xp.asarray([1j]), dtype=xp.float32)


def test_flags_without_a_truth_value_are_refused() -> None:
    """An array of several elements as a flag raises an error that names function and parameter."""
    x, several = xp.asarray([[2.0, 1.0], [1.0, 2.0]]), np.ones(2)
    calls: list[tuple[str, Any]] = [
        ("sum: keepdims", lambda: xp.sum(x, keepdims=several)),
        ("max: keepdims", lambda: x.max(keepdims=several)),
        ("argmax: keepdims", lambda: xp.argmax(x, keepdims=several)),
        (
            "cumulative_sum: include_initial",
            lambda: xp.cumulative_sum(x, axis=0, include_initial=several),
        ),
        ("sort: descending", lambda: xp.sort(x, descending=xp.asarray(several))),
        ("cholesky: upper", lambda: xp.linalg.cholesky(x, upper=several)),
        ("svd: full_matrices", lambda: xp.linalg.svd(x, full_matrices=several)),
        ("matrix_norm: keepdims", lambda: xp.linalg.matrix_norm(x, keepdims=several)),
        ("linspace: endpoint", lambda: xp.linspace(0, 1, 3, endpoint=several)),
        ("kl_div: log_target", lambda: xp.nn.kl_div(x, x, log_target=several)),
        ("asarray: copy", lambda: xp.asarray(x, copy=several)),
        ("from_dlpack: copy", lambda: xp.from_dlpack(several, copy=several)),
        ("astype: copy", lambda: xp.astype(x, xp.float64, copy=several)),
        ("integers: endpoint", lambda: xp.random.default_rng(1).integers(3, endpoint=several)),
    ]
    for where, call in calls:
        with pytest.raises(ArgumentError, match=rf"{where} must be True or False, got "):
            call()
    assert xp.sum(x, keepdims=1).shape == (1, 1)  # type: ignore[arg-type]


def test_operands_without_a_dtype_are_errors_of_arguments_and_dtypes() -> None:
    """Texts and integers that do not fit are refused by an error of both kinds."""
    for operand, shown in ((np.asarray(["a"]), "'str32'"), (2**70, "1180591620717411303424")):
        for kind in (ArgumentError, DTypeError):
            with pytest.raises(kind, match=shown):
                xp.sum(operand)
            with pytest.raises(kind, match=shown):
                xp.asarray([1]) + operand
