"""Feeds of native programs: conversions, and messages for values that do not match."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from passkit.errors import FeedError
from passkit.runtime.native.feeds import FeedChecker, InputSpec, spec_array
from tests.runtime.native.sample import F32

X = InputSpec("x", F32, (None, 784))


def repaired(feeds: Any = None, **named: Any) -> tuple[Any, ...]:
    """Feeds of two inputs x and mask, repaired."""
    return FeedChecker((X, InputSpec("mask", np.dtype(bool), ()))).repair(feeds, named)


def test_types_are_printed_as_in_messages() -> None:
    """An unknown size is a question mark, a named one its name."""
    assert str(X) == "float32[?, 784]"
    assert str(InputSpec("s", F32, ("n", 3))) == "float32[n, 3]"


def test_wrong_arrays_raise_with_a_conversion() -> None:
    """The message has the needed and the actual type and rank, and how to convert."""
    with pytest.raises(
        FeedError,
        match=r"^input 'x' needs float32\[\?, 784\], got float64\[8, 784\]; "
        r"x\.astype\('float32'\)$",
    ):
        spec_array(X, np.zeros((8, 784)))
    with pytest.raises(FeedError, match=r"got float32\[784\]; reshape it to 2 dimensions"):
        spec_array(X, np.zeros(784, "f4"))
    with pytest.raises(FeedError, match=r"'a/b' .* got a str.*; pass an array of numbers"):
        spec_array(InputSpec("a/b", F32, ()), "text")
    with pytest.raises(FeedError, match=r"got float64\[\]"):
        spec_array(InputSpec("s", F32, ()), np.float64(1))


def test_feeds_that_do_not_match_the_names_raise() -> None:
    """Unknown, missing, repeated and unnamed feeds each have their own message."""
    x, mask = np.zeros((1, 784), "f4"), True
    with pytest.raises(FeedError, match="no input 'msk'; did you mean 'mask'"):
        repaired(x=x, msk=mask)
    with pytest.raises(FeedError, match=r"input 'mask' is missing; it needs bool\[\]"):
        repaired(x=x)
    with pytest.raises(FeedError, match="input 'x' is given twice"):
        repaired({"x": x, "mask": mask}, x=x)
    with pytest.raises(FeedError, match=r"needs 2 feeds \(x, mask\), got 1 in a list and 0"):
        repaired([x])
    with pytest.raises(FeedError, match=r"got float32\[1, 784\]; name it, as in x="):
        repaired(x)
    assert repaired([x, mask])[1].dtype == bool


def test_wrong_sizes_raise() -> None:
    """A size that differs from a number or from another input's is named."""
    feeds = FeedChecker((InputSpec("a", F32, ("n", 3)), InputSpec("b", F32, ("n",))))
    feeds.check_shapes(((7, 3), (7,)))
    with pytest.raises(FeedError, match=r"needs float32\[n, 3\], got float32\[7, 4\]; axis 1 must"):
        feeds.check_shapes(((7, 4), (7,)))
    with pytest.raises(FeedError, match=r"'b' needs float32\[n\], got float32\[8\]; n is 7 in 'a'"):
        feeds.check_shapes(((7, 3), (8,)))


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("float32", 3, 3.0),
        ("float32", 0.1, np.float32(0.1)),
        ("float32", True, 1.0),
        ("int32", 3, 3),
        ("int8", -128, -128),
        ("bool", False, False),
        ("complex64", 1j, 1j),
        ("float64", 2, 2.0),
        ("int64", 2**62, 2**62),
    ],
)
def test_python_numbers_become_the_inputs_type(dtype: str, value: Any, expected: Any) -> None:
    """Python numbers take the input's dtype, as in NumPy."""
    array = spec_array(InputSpec("s", np.dtype(dtype), ()), value)

    assert array.dtype == dtype and array.shape == () and array[()] == expected


def test_python_numbers_become_bfloat16() -> None:
    """Dtypes of other packages accept Python numbers, too."""
    spec = InputSpec("s", np.dtype(ml_dtypes.bfloat16), (2,))

    assert spec_array(spec, [1, 2.5]).tolist() == [1, 2.5]


def test_lossy_python_values_raise() -> None:
    """Floats for integers, integers out of range, ragged lists and other ranks are refused."""
    with pytest.raises(FeedError, match=r"needs int32\[\], got a float \(float64\[\]\)"):
        spec_array(InputSpec("k", np.dtype("int32"), ()), 1.5)
    with pytest.raises(FeedError, match=r"needs int8\[\], got a int that cannot be con.*300"):
        spec_array(InputSpec("k", np.dtype("int8"), ()), 300)
    with pytest.raises(FeedError, match=r"got a list that cannot be converted: .*inhomogeneous"):
        spec_array(X, [[1], [2, 3]])
    with pytest.raises(FeedError, match=r"needs bool\[\], got a int"):
        spec_array(InputSpec("k", np.dtype(bool), ()), 1)
    with pytest.raises(FeedError, match=r"got a list \(.*\[1\]\); reshape|got a list .*astype"):
        spec_array(X, [1.0])
