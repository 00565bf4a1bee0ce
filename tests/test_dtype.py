"""Element types: one object each, NumPy's promotion, weak Python scalars."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from passkit.dtype import dtype_of, float32, int8, int32, promote, weak_scalar
from passkit.errors import DTypeError


@pytest.mark.parametrize(
    "name",
    ["bool", "int8", "uint64", "float16", "bfloat16", "float64", "complex64"],
)
def test_one_object_for_each_type(name: str) -> None:
    """Names, short names, NumPy's types and a pickled copy all lead to the same object."""
    found = dtype_of(name)

    assert dtype_of(found.short) is found
    assert dtype_of(found.numpy) is found
    assert pickle.loads(pickle.dumps(found)) is found
    assert found.numpy.itemsize == found.nbytes


def test_python_types_and_scalar_types() -> None:
    """`float` is float64 and `np.float32` is float32, as in NumPy."""
    assert dtype_of(float).name == "float64"
    assert dtype_of(np.float32) is float32
    assert (float32.is_float, int8.is_integer, dtype_of("bool").is_integer) == (True, True, False)


@pytest.mark.parametrize("a", ["bool", "int8", "int32", "uint8", "uint32", "int64", "float32"])
@pytest.mark.parametrize("b", ["bool", "int16", "uint64", "float16", "float32", "float64"])
def test_promotion_is_numpys(a: str, b: str) -> None:
    """Two arrays meet in the type that NumPy gives their sum."""
    assert promote(dtype_of(a), dtype_of(b)).numpy == np.promote_types(a, b)


@pytest.mark.parametrize(
    ("value", "like", "wanted"),
    [
        (1, "float32", "float32"),
        (0.5, "int32", "float64"),
        (2, "int8", "int8"),
        (True, "float32", "float32"),
        (np.float64(1), "float32", "float64"),
    ],
)
def test_python_scalars_are_weak(value: object, like: str, wanted: str) -> None:
    """A Python number takes the array's type unless it is of a higher kind; NumPy's do not."""
    assert weak_scalar(value, dtype_of(like)).name == wanted


def test_what_has_no_element_type() -> None:
    """Unknown types offer the nearest name; numbers that do not fit and strings are refused."""
    with pytest.raises(DTypeError, match="'flota32' is not an element type.*'float32'"):
        dtype_of("flota32")
    with pytest.raises(DTypeError, match="'object' is not an element type"):
        dtype_of(object)
    with pytest.raises(DTypeError, match="300 does not fit int8"):
        weak_scalar(300, int8)
    with pytest.raises(DTypeError, match="a number or an array, got str"):
        weak_scalar("1", int32)
