"""Fourier transforms: the values of NumPy, in the precision of the operand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import xp
from passkit.errors import ArgumentError, CapacityError, DTypeError, SettingError, ShapeError
from passkit.frontends.xp.runtime import OPERATIONS
from tests.frontends.xp.differences import assert_all_same


def signal(dtype: str, *shape: int) -> Any:
    """Return random numbers."""
    rng = np.random.default_rng(7)
    values = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.normal(size=shape)
    return values.astype(dtype)


def test_transforms_equal_numpy_in_the_precision_of_the_operand() -> None:
    """float32 gives complex64 and float64 gives complex128; sizes, axes and norms are NumPy's."""
    pairs = []
    for dtype in ("float32", "float64", "complex64", "complex128"):
        x = signal(dtype, 4, 6)
        a = xp.asarray(x)
        along_one = ["fft", "ifft", "irfft", "hfft"]
        along_several = ["fftn", "ifftn", "irfftn"]
        if np.dtype(dtype).kind == "f":
            along_one += ["rfft", "ihfft"]
            along_several += ["rfftn"]
        for name in along_one:
            for params in ({}, {"n": 5, "axis": 0, "norm": "ortho"}):
                result = getattr(xp.fft, name)(a, **params)
                pairs.append((f"{name} {dtype}", result, getattr(np.fft, name)(x, **params)))
        for name in along_several:
            for several in ({}, {"s": (3, 4), "axes": (1, 0), "norm": "forward"}):
                result = getattr(xp.fft, name)(a, **several)
                pairs.append((f"{name} {dtype}", result, getattr(np.fft, name)(x, **several)))
    for where, result, reference in pairs:
        bound = 1e-5 if reference.dtype in (np.complex64, np.float32) else 1e-12
        assert result.dtype == reference.dtype, where
        np.testing.assert_allclose(np.asarray(result), reference, bound, bound, err_msg=where)


@pytest.mark.parametrize("small", [0, 256])
def test_shifts_equal_numpy(small: int) -> None:
    """fftshift and ifftshift move all axes or some."""
    with xp.config(small=small, compile_at=0):
        x = np.arange(15.0).reshape(3, 5)
        a = xp.asarray(x)
        assert_all_same(
            [
                ("all", xp.fft.fftshift(a), np.fft.fftshift(x)),
                ("inverse", xp.fft.ifftshift(a), np.fft.ifftshift(x)),
                ("one", xp.fft.fftshift(a, axes=1), np.fft.fftshift(x, 1)),
                ("some", xp.fft.ifftshift(a, axes=(0, -1)), np.fft.ifftshift(x, (0, -1))),
            ]
        )


def test_frequencies_equal_numpy() -> None:
    """fftfreq and rfftfreq take a distance and a dtype."""
    assert_all_same(
        [
            ("fftfreq", xp.fft.fftfreq(5, d=0.5), np.fft.fftfreq(5, 0.5)),
            (
                "rfftfreq",
                xp.fft.rfftfreq(6, dtype=xp.float32),
                np.fft.rfftfreq(6).astype(np.float32),
            ),
        ]
    )


def test_wrong_arguments_are_refused() -> None:
    """Messages name the function and what was given."""
    x = xp.asarray(np.ones((2, 3)))
    with pytest.raises(ArgumentError, match=r"fft\.fft: norm must be .*, got 'unitary'"):
        xp.fft.fft(x, norm="unitary")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"rfft: .* needs from 1 to \d+ points, got 0"):
        xp.fft.rfft(x, n=0)
    with pytest.raises(ShapeError, match=r"ihfft: .* needs from 1 to .*, got 118059162071"):
        xp.fft.ihfft(x, n=2**70)
    with pytest.raises(CapacityError, match=r"irfftn has no memory .*\(3, 1099511627776\)"):
        np.asarray(xp.fft.irfftn(x, s=(3, 2**40)))
    with pytest.raises(ArgumentError, match=r"fft\.fft: a number of points must .*, got 2\.5"):
        xp.fft.fft(x, n=2.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"fft\.fftn: s must be a sequence, got 2"):
        xp.fft.fftn(x, s=2)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"there is no axis -3 in an array of 2 axes"):
        xp.fft.fftn(x, s=(2, 2, 2))
    with pytest.raises(ShapeError, match=r"fft\.rfftn needs an axis, got an array of shape \(\)"):
        xp.fft.rfftn(xp.asarray(1.0))
    with pytest.raises(ArgumentError, match=r"axes must be a sequence, got Array\(0, "):
        xp.fft.fftshift(xp.ones(3), axes=xp.asarray(0))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"fft\.fftshift: axes must be a sequence, got 1\.0"):
        xp.fft.fftshift(x, axes=1.0)  # type: ignore[arg-type]
    for transform in (xp.fft.rfft, xp.fft.ihfft, xp.fft.rfftn):
        with pytest.raises(DTypeError, match=r"needs real numbers, got complex128"):
            transform(xp.asarray([1j, 2.0]))
    with pytest.raises(ShapeError, match=r"irfft: a transform needs from 1 to \d+ points, got 0"):
        xp.fft.irfft(xp.asarray([1.0]))
    with pytest.raises(ShapeError, match=r"fft\.fft: there is no axis 2"):
        xp.fft.fft(x, axis=2)
    with pytest.raises(ArgumentError, match=r"fft\.fftn: 1 sizes do not fit 2 axes"):
        xp.fft.fftn(x, s=(2,), axes=(0, 1))
    with pytest.raises(ArgumentError, match=r"fftfreq: n must be a positive integer, got 0"):
        xp.fft.fftfreq(0)
    with pytest.raises(ArgumentError, match=r"fftfreq: d must be a number other than 0, got 0"):
        xp.fft.fftfreq(4, d=0)
    with pytest.raises(ArgumentError, match=r"fftfreq: d must be a number, got 1000"):
        xp.fft.fftfreq(4, d=10**400)
    with pytest.raises(ShapeError, match=r"rfftfreq: an array has at most .*, got shape \(1000"):
        xp.fft.rfftfreq(10**30)
    with pytest.raises(DTypeError, match=r"fft\.fftfreq returns floats, got dtype int32"):
        xp.fft.fftfreq(4, dtype=xp.int32)
    with pytest.raises(SettingError, match=r"rfftfreq: there is no device 'moon'"):
        xp.fft.rfftfreq(4, device="moon")


def test_shifts_of_a_single_number_return_it() -> None:
    """A 0-dimensional array has no axis along which it could be shifted."""
    assert float(xp.fft.fftshift(xp.asarray(2.0))) == 2.0
    assert float(xp.fft.ifftshift(xp.asarray(3.0))) == 3.0


def test_an_axis_may_be_an_integer_of_numpy() -> None:
    """Shifts take one axis, also one that NumPy computed."""
    axis: int = np.int64(0)  # type: ignore[assignment]
    assert np.asarray(xp.fft.fftshift(xp.asarray([1, 2, 3]), axes=axis)).tolist() == [3, 1, 2]


def test_shifts_by_half_an_unknown_extent_are_refused() -> None:
    """A plan of a shift serves one extent, since the shift is half of it."""
    shift = OPERATIONS.get("fftshift", axes=(0,))

    with pytest.raises(ShapeError, match="fftshift needs known extents"):
        shift.entries([pk.var("x", ("n",))])
