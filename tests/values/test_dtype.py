"""Element types: one object for each, NumPy's promotion, and weak Python numbers."""

from __future__ import annotations

import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from passkit.ast import dt
from passkit.errors import DTypeError

dtype_of, promote, weak_scalar = dt.dtype_of, dt.promote, dt.weak_scalar
is_lossless, largest_finite = dt.is_lossless, dt.largest_finite


@pytest.mark.parametrize(
    "notation",
    [
        "float32",
        "f32",
        np.float32,
        np.dtype("float32"),
        dt.float32,
        np.dtype(">f4"),
    ],
)
def test_every_notation_gives_the_same_object(notation: Any) -> None:
    """Names, short names, NumPy's types and dtypes give the one DType."""
    assert dtype_of(notation) is dt.float32


def test_python_types_and_bfloat16() -> None:
    """bool, int, float and complex are NumPy's; bfloat16 is defined at its first use."""
    assert [dtype_of(t).name for t in (bool, int, float, complex)] == [
        "bool",
        "int64",
        "float64",
        "complex128",
    ]
    b = dtype_of("bf16")
    assert (b.nbytes, b.kind, b.is_float) == (2, "f", True)
    assert all(dtype_of(n) is b for n in ("bfloat16", "bf16", b.numpy, b.numpy.type))


@pytest.mark.parametrize("value", ["float31", "f4,f4", "int64()", object, np.dtype("U3"), {}])
def test_other_types_are_refused(value: Any) -> None:
    """The message has the nearest name; strings are not evaluated."""
    with pytest.raises(DTypeError, match=r"is not an element type of passkit; (did|known)"):
        dtype_of(value)


def test_promotion_is_numpys() -> None:
    """Two dtypes are promoted as in NumPy."""
    assert promote(dt.int32, dt.float32) is dt.float64
    assert promote(dt.bool_, dt.int8) is dt.int8
    assert promote(dt.uint8, dt.int8) is dt.int16


def test_bfloat16_promotes_as_float16_does() -> None:
    """With integers of more bits it widens as float16; the two together are float32."""
    b, floats = dtype_of("bfloat16"), (dt.float32, dt.float64)
    assert promote(b, dt.float16) is promote(dt.float16, b) is dt.float32
    assert [promote(f, b) for f in floats] == list(floats)
    for other in (dt.bool_, dt.int8, dt.uint8):
        assert promote(b, other) is promote(other, b) is b
    for other in (dt.int16, dt.uint16, dt.int32, dt.uint32, dt.int64, dt.uint64, dt.complex64):
        assert promote(b, other) is promote(other, b) is promote(dt.float16, other)
    assert [weak_scalar(v, b) for v in (True, 2, 0.5)] == [b, b, b]
    assert weak_scalar(1j, b) is dt.complex64
    assert weak_scalar(np.float32(1), b) is dt.float32


def exact_values(name: str) -> set[int | float]:
    """Return values of a type that other types may lack, as exact Python numbers."""
    kind = dtype_of(name).numpy
    if name == "bool":
        return {0, 1}
    if kind.kind in "iu":
        low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        near = {sign * 2**k + step for k in range(65) for step in (-1, 0, 1) for sign in (1, -1)}
        return {v for v in near if low <= v <= high}
    numbers = ml_dtypes.finfo(kind)
    odd = [1 + numbers.eps, 0.5, numbers.max, numbers.tiny, numbers.smallest_subnormal, np.inf]
    return {float(v) for v in odd}


REAL = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]


@pytest.mark.parametrize("source", REAL)
def test_lossless_conversions_keep_every_value(source: str) -> None:
    """A conversion is lossless exactly where no value of the type changes, compared as numbers."""
    values = sorted(exact_values(source))
    array = np.array(values, dtype_of(source).numpy)
    for target in REAL:
        with np.errstate(all="ignore"):
            there = array.astype(dtype_of(target).numpy)
        wide = there.astype(np.float64) if dtype_of(target).is_float else there
        kept = [int(v) if isinstance(v, bool) else v for v in wide.tolist()] == values
        assert is_lossless(dtype_of(source), dtype_of(target)) is kept, target


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_largest_finite_numbers(name: str) -> None:
    """The largest finite number of a float type is the one that its library names."""
    assert largest_finite(dtype_of(name)) == float(ml_dtypes.finfo(dtype_of(name).numpy).max)


def test_complex_types_hold_only_themselves() -> None:
    """No conversion from or to a complex type counts as lossless but that to the same type."""
    assert is_lossless(dt.complex64, dt.complex64)
    assert not is_lossless(dt.float32, dt.complex64)
    assert not is_lossless(dt.complex64, dt.complex128)


@pytest.mark.parametrize(
    "value, like, expected",
    [
        (1, dt.float16, dt.float16),
        (1.5, dt.float32, dt.float32),
        (0.5, dt.int32, dt.float64),
        (True, dt.int8, dt.int8),
        (2, dt.bool_, dt.int64),
        (np.float64(1), dt.float32, dt.float64),
        (np.int32(1), dt.float32, dt.float64),
        (1j, dt.float32, dt.complex64),
    ],
)
def test_python_numbers_are_weak(value: Any, like: dt.DType, expected: dt.DType) -> None:
    """A Python number keeps the array's dtype unless it is of a higher kind."""
    assert weak_scalar(value, like) is expected


def test_numbers_that_do_not_fit_are_refused() -> None:
    """An int beyond the range of the dtype, and other objects, are refused."""
    with pytest.raises(DTypeError, match="300 does not fit uint8; cast the array to a wider type"):
        weak_scalar(300, dt.uint8)
    with pytest.raises(DTypeError, match="an Entry, a number or an array, got str"):
        weak_scalar("1", dt.uint8)


def test_dtypes_are_pickled_by_name() -> None:
    """A dtype unpickles to the same object."""
    assert pickle.loads(pickle.dumps(dt.int8)) is dt.int8
    assert str(dt.int8) == "int8" and dt.int8.is_integer
