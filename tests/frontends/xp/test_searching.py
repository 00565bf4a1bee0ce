"""Searching, sorting and sets: the values and dtypes of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from passkit import xp
from passkit.errors import ArgumentError, DTypeError, ShapeError, SubscriptError
from tests.frontends.xp.differences import assert_all_same, assert_same, numbers


@pytest.mark.parametrize("small", [0, 256])
def test_positions_of_extrema_equal_numpy(small: int) -> None:
    """argmax and argmin return the first of equal ones, or the first NaN."""
    with xp.config(small=small):
        pairs = []
        for dtype in ("bool", "int8", "uint64", "float32"):
            x = numbers(1, dtype, 4, 6)
            for name in ("argmax", "argmin"):
                for axis in (None, 0, -1):
                    result = getattr(xp, name)(xp.asarray(x), axis=axis, keepdims=True)
                    reference = getattr(np, name)(x, axis=axis, keepdims=True)
                    pairs.append((f"{name} {dtype} {axis}", result, reference))
        assert_all_same(pairs)


@pytest.mark.parametrize("small", [0, 256])
def test_where_takes_arrays_and_numbers(small: int) -> None:
    """where promotes its operands as NumPy; numbers are weak, and conditions may be numbers."""
    with xp.config(small=small):
        x, y = numbers(1, "float32", 3, 4), numbers(2, "int8", 4)
        a, b = xp.asarray(x), xp.asarray(y)
        assert_all_same(
            [
                ("arrays", xp.where(a > 0, a, b), np.where(x > 0, x, y)),
                ("number", xp.where(a > 0, a, 0), np.where(x > 0, x, np.float32(0))),
                ("numbers", xp.where(b, 1, 0), np.where(y, 1, 0)),
                ("mixed", xp.where(b > 0, 0.5, b), np.where(y > 0, 0.5, y)),
            ]
        )


@pytest.mark.parametrize("small", [0, 256])
def test_sorting_equals_numpy(small: int) -> None:
    """sort and argsort are stable in both directions; descending, NaN is first."""
    with xp.config(small=small):
        pairs = []
        for dtype in ("bool", "int8", "float64"):
            x = numbers(1, dtype, 3, 12)
            a = xp.asarray(x)
            order = np.argsort(x, axis=1, kind="stable")
            pairs.append((f"sort {dtype}", xp.sort(a, axis=0), np.sort(x, axis=0)))
            pairs.append((f"argsort {dtype}", xp.argsort(a), order))
            down = xp.sort(a, descending=True)
            pairs.append((f"descending {dtype}", down, np.flip(np.sort(x, axis=1), 1)))
            back = 11 - np.flip(np.argsort(np.flip(x, 1), axis=1, kind="stable"), 1)
            pairs.append((f"positions {dtype}", xp.argsort(a, descending=True), back))
        assert_all_same(pairs)


@pytest.mark.parametrize("small", [0, 256])
def test_searchsorted_equals_numpy(small: int) -> None:
    """searchsorted takes both sides, a sorter, other dtypes and Python numbers."""
    with xp.config(small=small):
        x, y = np.array([3, 1, 2, 1]), np.array([[0.5, 1.0], [2.0, 9.0]])
        order = np.argsort(x, kind="stable")
        a, b, ordered = xp.asarray(x), xp.asarray(y), xp.asarray(np.sort(x))
        assert_all_same(
            [
                ("left", xp.searchsorted(ordered, b), np.searchsorted(np.sort(x), y)),
                (
                    "right",
                    xp.searchsorted(a, b, side="right", sorter=xp.asarray(order)),
                    np.searchsorted(x, y, "right", order),
                ),
                ("number", xp.searchsorted(ordered, 2), np.searchsorted(np.sort(x), 2)),
                ("list", np.searchsorted(ordered, [1, 3]), np.searchsorted(np.sort(x), [1, 3])),
            ]
        )


def test_coordinates_of_elements_that_are_not_zero() -> None:
    """nonzero returns an array for each axis, also of a pending array."""
    x = numbers(1, "int8", 4, 5)
    with xp.config(small=0):
        for result, reference in zip(xp.nonzero(xp.asarray(x) > 0), np.nonzero(x > 0), strict=True):
            assert_same(result, reference, "nonzero")


def test_sets_return_named_arrays() -> None:
    """The unique functions return what NumPy returns, by name; every NaN is different."""
    x = np.array([[2.0, np.nan, 1.0], [np.nan, 2.0, 2.0]])
    a, reference = xp.asarray(x), np.unique_all(x)
    result = xp.unique_all(a)
    assert result._fields == ("values", "indices", "inverse_indices", "counts")
    for name in result._fields:
        assert_same(getattr(result, name), getattr(reference, name), name)
    assert_same(xp.unique_values(a), reference.values, "values")
    assert_same(xp.unique_counts(a).counts, reference.counts, "counts")
    assert_same(xp.unique_inverse(a).inverse_indices, reference.inverse_indices, "inverse")


def test_wrong_arguments_are_refused() -> None:
    """Messages name the function and what was given."""
    x = xp.asarray([1, 2, 3])
    with pytest.raises(ArgumentError, match=r"side must be 'left' or 'right', got 'middle'"):
        xp.searchsorted(x, x, side="middle")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"x1 must have one axis, got shape \(1, 3\)"):
        xp.searchsorted(x.reshape(1, 3), x)
    with pytest.raises(ShapeError, match=r"nonzero: a 0-dimensional array"):
        xp.nonzero(xp.asarray(1))
    with pytest.raises(ShapeError, match=r"sort: there is no axis 1 in an array of 1 axes"):
        xp.sort(x, axis=1)
    with pytest.raises(DTypeError, match=r"sorter must have integers, got float64"):
        xp.searchsorted(x, 2, sorter=x * 1.0)
    with pytest.raises(ShapeError, match=r"sorter must have shape \(3,\), got \(2,\)"):
        xp.searchsorted(x, 2, sorter=xp.asarray([1, 0]))
    with pytest.raises(SubscriptError, match=r"searchsorted: Sorter index out of range"):
        xp.searchsorted(x, 2, sorter=xp.asarray([9, 1, 0]))
    with pytest.raises(ShapeError, match=r"argmax: there is no element.* \(0,\)"):
        xp.argmax(xp.asarray(np.ones(0)))


def test_choices_without_axes() -> None:
    """Functions that return 0-dimensional arrays in NumPy, not its scalars, may be repeated."""
    total = 0.0
    for value in np.linspace(-2, 2, 50):
        x = xp.asarray(value)
        inner = xp.where(x <= 1.0, x + 1.0, xp.exp(-x))
        total += float(xp.where(x <= -1.0, xp.log1p(xp.exp(x)), inner))
    x = np.linspace(-2, 2, 50)
    inner = np.where(x <= 1.0, x + 1.0, np.exp(-x))
    reference = np.where(x <= -1.0, np.log1p(np.exp(x)), inner).sum()
    assert abs(total - reference) < 1e-12
