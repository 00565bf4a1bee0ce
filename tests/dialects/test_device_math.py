"""Arithmetic of CUDA kernels: quotients without divisions have the division's bits, erf is near."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passkit.ir.reciprocal import reciprocal

HERE = Path(__file__).parent
PRELUDE = HERE.parents[1] / "passkit" / "dialects"
INFINITE = 0x7F800000
CONSTANTS = (2**0.5, 3.0, 7.0, 0.1, 255.0, 0.229, 1.702, 1000.0, 1e-9, 1e9, math.pi)
EVERY = 1009
"""The distance of tested floats: a prime, so that all last bits occur."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Compile the checker."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    path = tmp_path_factory.mktemp("math") / "checker.so"
    options = ["-O2", "-march=native", "-ffp-contract=off", "-std=c++17", "-shared", "-fPIC"]
    source = str(HERE / "device_math_checker.cpp")
    subprocess.run(["g++", *options, f"-I{PRELUDE}", "-o", str(path), source], check=True)
    loaded = ctypes.CDLL(str(path))
    real, word, count = ctypes.c_float, ctypes.c_uint32, ctypes.c_int64
    for name in ("wrong_known", "asked_known"):
        getattr(loaded, name).argtypes = (real, real, real, word, word, count)
    for name in ("wrong_divisor", "asked_divisor"):
        getattr(loaded, name).argtypes = (real, word, word, count)
    for name in ("wrong_known", "asked_known", "wrong_divisor", "asked_divisor"):
        getattr(loaded, name).restype = count
    loaded.wrong_pairs.argtypes = (ctypes.c_void_p, ctypes.c_void_p, count)
    loaded.wrong_reciprocals.argtypes = (word, count)
    loaded.wrong_pairs.restype = loaded.wrong_reciprocals.restype = count
    loaded.erf_error.argtypes, loaded.erf_error.restype = (word, word, count), ctypes.c_double
    loaded.sigmoid_error.argtypes = (word, word, count)
    loaded.sigmoid_error.restype = ctypes.c_double
    for name in ("erf_of", "sigmoid_of"):
        getattr(loaded, name).argtypes, getattr(loaded, name).restype = (real,), real
    yield loaded


def sides(c: float) -> tuple[float, float, float]:
    """Return a float32 constant and the parts of its reciprocal."""
    s = float(np.float32(c))
    pair = reciprocal(s, 4)
    assert pair is not None
    return s, *pair


@pytest.mark.parametrize("c", CONSTANTS)
def test_division_by_a_literal_has_the_bits_of_the_division(library: Any, c: float) -> None:
    """Of floats of all exponents and signs, denormal ones, infinities and NaN; no other divides."""
    s, high, low = sides(c)
    last = 2**32 // EVERY

    assert library.wrong_known(s, high, low, 0, EVERY, last) == 0
    assert library.wrong_known(-s, -high, -low, 0, EVERY, last) == 0
    assert library.wrong_known(s, high, low, INFINITE - 2000, 1, 4000) == 0
    assert library.wrong_known(s, high, low, 0, 1, 100000) == 0
    first = int(np.float32(max(s, 1.0) * 2.0**-60).view(np.uint32))
    assert library.asked_known(s, high, low, first, EVERY, (INFINITE - first) // EVERY) == 0


def test_all_mantissas_divide_alike(library: Any) -> None:
    """The criterion of `reciprocal`, which tries the hard cases only, holds for every mantissa."""
    for c in CONSTANTS:
        s, high, low = sides(c)
        for exponent in (-2, 9):
            first = int(np.float32(2.0**exponent).view(np.uint32))
            assert library.wrong_known(s, high, low, first, 1, 2**23) == 0
            assert library.asked_known(s, high, low, first, 1, 2**23) == 0


def test_a_wrong_reciprocal_is_found(library: Any) -> None:
    """The check reports a high part that is only rounded to nearest, and a wrong one."""
    s, high, low = sides(3.0)
    first = int(np.float32(1).view(np.uint32))

    assert library.wrong_known(s, high, low * 0.75, first, 1, 2**23) > 0
    high = float(np.nextafter(np.float32(high), np.float32(0)))
    assert library.wrong_known(s, high, low, first, 1, 2**20) > 0


@pytest.mark.parametrize(
    "s",
    [
        1.0,
        1.5,
        3.0,
        40.7,
        1024.0,
        1e-3,
        2 - 2**-23,
        1 - 2**-24,
        2.0**-32,
        2.0**32,
        2.0**33,
        1e-20,
        1e30,
        1e-42,
        -2.5,
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
    ],
)
def test_division_by_any_number_has_the_bits_of_the_division(library: Any, s: float) -> None:
    """Also where the divisor or the dividend is 0, denormal, infinite or NaN."""
    assert library.wrong_divisor(s, 0, EVERY, 2**32 // EVERY) == 0
    assert library.wrong_divisor(s, INFINITE - 2000, 1, 4000) == 0
    assert library.wrong_divisor(s, 0, 1, 100000) == 0
    if 1 <= s <= 2**32:
        first = int(np.float32(s * 2.0**-98).view(np.uint32))
        assert library.asked_divisor(s, first, EVERY, (INFINITE - first) // EVERY) == 0


def hard_pairs(rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Return dividends and divisors whose quotients lie next to the middle of two floats."""
    m = rng.integers(2**22, 2**23, count) * 2 + 1
    m[: count // 4] = 2**24 - 1 - 2 * np.arange(count // 4)
    xs, ms = [], []
    for s, divisor in zip(rng.integers(24, 26, count).tolist(), m.tolist(), strict=True):
        inverse = pow(2**s, -1, divisor)
        low, high = (divisor, 2**24) if s == 24 else (2**23, divisor)
        for rest in (*range(-12, 0), *range(1, 13)):
            x = rest * inverse % divisor
            x += -(-(low - x) // divisor) * divisor
            if x < high:
                xs.append(x)
                ms.append(divisor)
    return np.array(xs, np.float32), np.array(ms, np.float32)


def test_hard_quotients_need_no_division(library: Any) -> None:
    """One reciprocal and three operations round rightly where that is hardest.

    All 2^23 mantissas of divisors, each with all its hard dividends, have been tried once.
    """
    x, s = hard_pairs(np.random.default_rng(0), 20000)

    assert x.size > 100000
    assert library.wrong_pairs(x.ctypes.data, s.ctypes.data, x.size) == 0


def test_reciprocals_of_numbers_from_1_on(library: Any) -> None:
    """They have the bits of 1 / x, whichever neighbour the approximation gives.

    Of 2 - 2^-23 alone one neighbour would not do; compilers take the same steps for 1 / x.
    """
    one = int(np.float32(1).view(np.uint32))

    assert library.wrong_reciprocals(one, 2**23) == 1
    assert library.wrong_reciprocals(one + 2**23 - 1, 1) == 1
    for exponent in (1, 60, 125, 126, 127):
        first = int(np.float32(2.0**exponent).view(np.uint32))
        assert library.wrong_reciprocals(first, 2**16) == 0
    assert library.wrong_reciprocals(INFINITE, 1) == 0


def test_erf_is_within_two_and_a_half_units(library: Any) -> None:
    """It is accurate except for the error of the power of 2; it is odd, and 1 at infinity."""
    assert library.erf_error(0, 61, INFINITE // 61) <= 2.5
    assert library.erf_of(math.inf) == 1 and library.erf_of(-math.inf) == -1
    assert math.isnan(library.erf_of(math.nan))
    assert math.copysign(1, library.erf_of(-0.0)) == -1


def test_sigmoid_is_within_two_and_a_half_units(library: Any) -> None:
    """It is accurate except for the error of the exponential; 0 and 1 at the infinities."""
    for sign in (0, 2**31):
        assert library.sigmoid_error(sign, 1009, INFINITE // 1009) <= 2.5
    assert library.sigmoid_of(math.inf) == 1 and library.sigmoid_of(-math.inf) == 0
    assert math.isnan(library.sigmoid_of(math.nan))
