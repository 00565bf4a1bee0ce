"""16-bit floats in the prelude: all of them, and floats that round to them, at every width."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from tests.dialects.test_prelude import OTHERS, Array, options, same_bits
from tests.libraries import libraries

CHECKER = Path(__file__).with_name("half_checker.cpp")
DTYPES = {"half": np.dtype(np.float16), "bfloat": np.dtype(bfloat16)}
EVERY = np.arange(65536, dtype=np.uint16)

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]


@pytest.fixture(scope="module", params=["native", *OTHERS])
def checker(request: pytest.FixtureRequest, checkers: dict[str, ctypes.CDLL]) -> ctypes.CDLL:
    """Return the loops of half_checker.cpp for one machine."""
    return checkers[request.param]


@pytest.fixture(scope="module")
def checkers(request: pytest.FixtureRequest) -> dict[str, ctypes.CDLL]:
    """Return the loops for all machines, compiled in parallel."""
    names = ["native", *OTHERS]
    built = libraries((options(request, m), CHECKER) for m in names)
    return dict(zip(names, built, strict=True))


def run(checker: ctypes.CDLL, name: str, x: Array, out: Any) -> Array:
    """Return the result of a loop for an array."""
    x, y = np.ascontiguousarray(x), np.zeros(x.shape, out)
    getattr(checker, name)(
        ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_int64(x.size)
    )
    return y


def to_round(dtype: Any) -> Array:
    """Return all 16-bit floats, the midpoints, the neighbours of both, and random bits."""
    step = 1 << 13 if dtype == np.float16 else 1 << 16
    every = EVERY.view(dtype).astype(np.float32).view(np.uint32)
    near = [every + np.uint32(d) for d in (0, 1, step // 2 - 1, step // 2, step // 2 + 1, step - 1)]
    tiny = (np.arange(1 << 12) * 2.0**-26).astype(np.float32).view(np.uint32)
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 1 << 32, 1 << 16, np.uint32)
    return np.concatenate([*near, tiny, tiny + np.uint32(1), anything]).view(np.float32)


@pytest.mark.parametrize("name", DTYPES)
def test_every_number_widens(checker: ctypes.CDLL, name: str) -> None:
    """All 65,536 numbers are widened, as vectors and as scalars, denormals and NaN included."""
    want = EVERY.view(DTYPES[name]).astype(np.float32)

    assert same_bits(run(checker, f"widen_{name}", EVERY, np.float32), want)
    assert same_bits(run(checker, f"widen_{name}_one", EVERY, np.float32), want)


@pytest.mark.parametrize("name", DTYPES)
def test_floats_round_to_the_nearest(checker: ctypes.CDLL, name: str) -> None:
    """Vectors and scalars are rounded to nearest, ties to even; NaN stays NaN."""
    dtype = DTYPES[name]
    x = to_round(dtype)
    want = x.astype(dtype)

    assert same_bits(run(checker, f"narrow_{name}_float", x, np.uint16).view(dtype), want)
    assert same_bits(run(checker, f"narrow_{name}_float_one", x, np.uint16).view(dtype), want)
    assert same_bits(run(checker, f"rounded_{name}", x, np.float32), want.astype(np.float32))


def test_doubles_round_once(checker: ctypes.CDLL) -> None:
    """A double just above a midpoint is rounded up, although its float is the midpoint."""
    middle = (EVERY[:0x7C00] + np.float64(0)).astype(np.uint16).view(np.float16).astype(np.float64)
    middle = np.concatenate([middle[:-1] / 2 + middle[1:] / 2, [65520.0]])
    near = [middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf), middle * (1 + 2.0**-30)]
    wild = np.random.default_rng(0).integers(0, 1 << 64, 1 << 14, np.uint64).view(np.float64)
    x = np.concatenate([*near, *(-v for v in near), wild])

    for way in ("", "_one"):
        got = run(checker, f"narrow_half_double{way}", x, np.uint16).view(np.float16)
        assert same_bits(got, x.astype(np.float16))
        got = run(checker, f"narrow_bfloat_double{way}", x, np.uint16).view(bfloat16)
        assert same_bits(got, x.astype(bfloat16))


@pytest.mark.parametrize("name", DTYPES)
def test_strides_and_gathers_move_bits(checker: ctypes.CDLL, name: str) -> None:
    """Neighbours are exchanged by strided loads and stores and by a gather, to an odd end."""
    x = EVERY[:1022]

    got = run(checker, f"moved_{name}", x, np.uint16)

    assert np.array_equal(got, x.reshape(-1, 2)[:, ::-1].reshape(-1))
