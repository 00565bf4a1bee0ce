"""Special functions of the prelude and of scalar dialects: accuracy, and equal bits everywhere."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

from passkit.dialects.scalar_special import GAMMA, INVERSE_ERF, SERIES
from passkit.runtime import incomplete_functions, special_functions
from tests.dialects.test_prelude import (
    C_NAME,
    CHECKER,
    FLOATS,
    X86,
    Checker,
    options,
    same_bits,
)
from tests.libraries import libraries

Array = Any
ONE = ("cbrt", "lgamma", "tgamma", "digamma", "trigamma", "erfinv", "erfcinv")
TWO = ("hypot", "nextafter", "ldexp")
OTHERS = ["x86-64"] if X86 else []
SPECIAL = np.array(
    [0, 1, 2, 3, 0.5, 1.5, math.inf, math.nan, 1e-45, 1e-300, 1e300, 171.5, 34, 0.75]
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]


@pytest.fixture(scope="module")
def checkers(request: pytest.FixtureRequest) -> dict[str, Checker]:
    """Return the loops over special functions, compiled for each machine in parallel."""
    names = ["native", *OTHERS]
    built = libraries(([*options(request, m), "-DPK_CHECK_SPECIAL"], CHECKER) for m in names)
    return {name: Checker([library]) for name, library in zip(names, built, strict=True)}


def samples(name: str, dtype: str) -> Array:
    """Return numbers about the poles of a function, far away, and in its tails."""
    rng = np.random.default_rng(0)
    if "inv" in name:
        tails = [1 - np.exp(-rng.uniform(0, 37, 2000)), np.exp(-rng.uniform(0, 700, 2000))]
        x = np.concatenate([rng.uniform(-1, 1, 3000), *tails])
        x = np.concatenate([x, 1 - x, 2 - x]) if name == "erfcinv" else x
    else:
        x = np.concatenate([rng.normal(0, 6, 4000), np.exp(rng.normal(0, 9, 2000))])
        x = np.concatenate([x, 1e-300 * x, 1e-308 * x]) if name == "cbrt" else x
    with np.errstate(over="ignore"):
        return np.concatenate([x, SPECIAL, -SPECIAL]).astype(dtype)


def true_lgamma(x: Array) -> Array:
    """Return SciPy's results, but those of C at -inf, and finite ones at denormal numbers."""
    tiny = (np.abs(x) < 1e-290) & (x != 0)
    return np.where(tiny, -np.log(np.abs(x)), np.where(x == -np.inf, np.inf, sp.gammaln(x)))


def by_reflection(name: str) -> Any:
    """Return SciPy's results for x > 0, and the interpreter's below: SciPy is wrong near poles."""
    above = {"digamma": sp.digamma, "trigamma": lambda x: sp.polygamma(1, x)}[name]
    return lambda x: np.where(x > 0, above(x), getattr(special_functions, name)(x))


TRUE: dict[str, Any] = {
    "cbrt": np.cbrt,
    "lgamma": true_lgamma,
    "tgamma": special_functions.tgamma,
    "digamma": by_reflection("digamma"),
    "trigamma": by_reflection("trigamma"),
    "erfinv": sp.erfinv,
    "erfcinv": sp.erfcinv,
}
TERMS = {"lgamma": 10.0, "digamma": 30.0}
"""The largest summand of a function near its zeros, to which the error is relative there."""


def errors(name: str, actual: Array, x: Array) -> Array:
    """Return the errors of results in units in the last place, or in that of the summand."""
    expected = TRUE[name](x.astype(np.float64))
    rounded = expected.astype(x.dtype)
    size = np.minimum(np.abs(rounded), np.finfo(x.dtype).max)
    unit = np.spacing(size).astype(np.float64)
    if name in TERMS:  # the part that is taken from the reflected value grows with x
        term = TERMS[name] + np.where(x < 0, np.abs(x) * 8, 0)
        unit = np.maximum(unit, np.spacing(term.astype(np.float64)))
    same = (actual == rounded) | (np.isnan(actual) & np.isnan(rounded))
    off = np.abs(actual.astype(np.float64) - expected) / unit
    return np.where(same, 0, np.where(np.isnan(off), np.inf, off))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ONE)
def test_special_functions_are_accurate(
    checkers: dict[str, Checker], name: str, dtype: str
) -> None:
    """Errors are at most 1 ulp in float32 and 16 in float64, SciPy's own one included."""
    x = samples(name, dtype)
    if name.startswith("erf") and dtype == "float64":
        x = x[(np.abs(x) > 1e-290) | (x == 0)]  # below, SciPy is off
    error = errors(name, checkers["native"](f"{name}_{C_NAME[dtype]}", x), x)

    worst = np.argmax(error)
    assert error[worst] <= (1 if dtype == "float32" else 16), f"{name}({x[worst]!r})"


@pytest.mark.parametrize("dtype", FLOATS)
def test_neighbours_and_powers_of_two_are_exact(checkers: dict[str, Checker], dtype: str) -> None:
    """nextafter and ldexp have NumPy's bits, hypot is the rounded root."""
    rng = np.random.default_rng(1)
    x = np.concatenate([np.repeat([*SPECIAL, *-SPECIAL, 0.0], 29), rng.normal(size=500) * 1e-30])
    y = np.concatenate([np.tile([*SPECIAL, *-SPECIAL, 0.0], 29), rng.normal(size=500) * 1e-30])
    with np.errstate(all="ignore"):
        x, y = x.astype(dtype), y.astype(dtype)
        steps = np.resize([0, 1, -1, 60, -126, -149, 300, -1022, -1074, 2100, -2200], x.size)
        scaled = np.ldexp(x, steps)
        wide = np.hypot(x.astype(np.longdouble), y.astype(np.longdouble)).astype(dtype)
    check, suffix = checkers["native"], C_NAME[dtype]

    assert same_bits(check(f"nextafter_{suffix}", x, y), np.nextafter(x, y))
    assert same_bits(check(f"ldexp_{suffix}", x, steps.astype(dtype)), scaled)
    actual = check(f"hypot_{suffix}", x, y)
    near = np.abs(actual - wide) <= np.spacing(np.minimum(wide, np.finfo(dtype).max))
    assert (near | (actual == wide) | (np.isnan(actual) & np.isnan(wide))).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_bits_agree(checkers: dict[str, Checker], dtype: str) -> None:
    """Every width of vectors gives the same bits, so do packs, masked ends and single numbers."""
    native, real = checkers["native"], np.ctypeslib.as_ctypes_type(np.dtype(dtype))
    for name in (*ONE, *TWO):
        full = f"{name}_{C_NAME[dtype]}"
        x = samples(name, dtype)[::5].copy()
        arrays = (x, np.rint(np.roll(x, 7)) if name == "ldexp" else np.roll(x, 7))[
            : 1 + (name in TWO)
        ]
        here = native(full, *arrays)
        for machine in OTHERS:
            assert same_bits(here, checkers[machine](full, *arrays)), (full, machine)
        if name in ONE:
            assert same_bits(native(f"{full}_packs", x[:999]), here[:999]), full
        parts = [a[3:40].copy() for a in arrays]
        assert same_bits(native(full, *parts), here[3:40]), full
        scalar = native.function(f"{full}_scalar")
        scalar.restype, scalar.argtypes = real, [real] * len(arrays)
        alone = [scalar(*v) for v in zip(*(a[-90:].tolist() for a in arrays), strict=True)]
        assert same_bits(np.array(alone, dtype), here[-90:]), full


def test_scalar_dialects_compute_the_same(tmp_path: Path) -> None:
    """The functions of OpenCL C and CUDA C are plain C, and agree with the interpreter."""
    source, library = tmp_path / "special.c", tmp_path / "special.so"
    text = (GAMMA + INVERSE_ERF).replace(
        "{fn} double digamma_above", "#include <math.h>\n{fn} double digamma_above", 1
    )
    source.write_text(text.format(fn=""))
    subprocess.run(
        ["gcc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True
    )
    loaded = ctypes.CDLL(str(library))
    for name in ("digamma", "trigamma", "erfinv", "erfcinv"):
        function = getattr(loaded, f"{name}_double")
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
        x = np.concatenate([np.linspace(-2.3, 2.3, 47), [0.0, -0.0, 1.0, 2.0, -1.0, 1e-9, 30.0]])
        actual = np.array([function(v) for v in x.tolist()])
        expected = getattr(special_functions, name)(x)
        np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-14, err_msg=name)
        single = getattr(loaded, f"{name}_float")
        single.restype, single.argtypes = ctypes.c_float, [ctypes.c_float]
        assert np.float32(single(0.3)) == pytest.approx(
            float(getattr(special_functions, name)(0.3)), rel=1e-6
        )


SERIES_HEAD = """#include <math.h>
#define PK_SCALAR
#define PK_TABLE static const
#define PK_INFINITY INFINITY
#define PK_NAN NAN
"""


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the series that all dialects share, as plain C."""
    folder = tmp_path_factory.mktemp("series")
    source, library = folder / "series.c", folder / "series.so"
    source.write_text(SERIES_HEAD + SERIES)
    subprocess.run(
        ["gcc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True
    )
    return ctypes.CDLL(str(library))


def of_series(library: ctypes.CDLL, name: str, *arrays: Array) -> Array:
    """Return a function of doubles, element by element."""
    function = getattr(library, f"{name}_double")
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * len(arrays)
    return np.array([function(*v) for v in zip(*(a.tolist() for a in arrays), strict=True)])


def pairs(seed: int, low: float, high: float, spread: float) -> tuple[Array, Array]:
    """Return a of many magnitudes, and x near it and far away."""
    rng = np.random.default_rng(seed)
    a = np.exp(rng.uniform(low, high, 3000))
    return a, a * np.exp(rng.normal(0, spread, 3000) * np.exp(rng.uniform(-6, 0, 3000)))


def relative(actual: Array, expected: Array) -> float:
    """Return the largest relative error of normal numbers."""
    some = expected > 1e-250
    return float(np.max(np.abs(actual - expected)[some] / expected[some]))


@pytest.mark.parametrize("low, high, most", [(-15, 1, 2e-13), (-1, 4, 2e-13), (4, 9, 3e-11)])
def test_incomplete_gamma_functions(
    series: ctypes.CDLL, low: float, high: float, most: float
) -> None:
    """Small values, values about 100 where the expansion changes, and large ones are accurate."""
    a, x = pairs(0, low, high, 3 if low < 0 else 1)
    for name, true in (("igamma", sp.gammainc), ("igammac", sp.gammaincc)):
        assert relative(of_series(series, name, a, x), true(a, x)) < most, name
        assert relative(getattr(incomplete_functions, name)(a, x), true(a, x)) < most, name


def test_incomplete_beta_functions_and_zeta(series: ctypes.CDLL) -> None:
    """Errors are small relative to 1, and those of small values relative to the value."""
    (a, b), rng = pairs(1, -3, 7, 3), np.random.default_rng(2)
    x = np.clip(rng.beta(a, b), 1e-12, 1 - 1e-12)
    true = sp.betainc(a, b, x)
    for actual in (of_series(series, "betainc", a, b, x), incomplete_functions.betainc(a, b, x)):
        assert np.abs(actual - true).max() < 1e-12
        small = (true < 0.01) & (x * (a + b + 2) < a + 1)
        assert small.sum() > 15 and relative(actual[small], true[small]) < 1e-11
    s, q = 1 + np.exp(rng.uniform(-6, 4, 3000)), np.exp(rng.uniform(-4, 8, 3000))
    for actual in (of_series(series, "zeta", s, q), incomplete_functions.zeta(s, q)):
        assert relative(actual, sp.zeta(s, q)) < 1e-14
    s, q = rng.integers(2, 9, 3000).astype(float), rng.uniform(-30, 0, 3000)
    for actual in (of_series(series, "zeta", s, q), incomplete_functions.zeta(s, q)):
        assert np.allclose(actual, sp.zeta(s, q), rtol=1e-13, atol=1e-13)


def test_series_end_and_agree_at_their_limits(series: ctypes.CDLL) -> None:
    """C and NumPy give equal values for huge, tiny, infinite and invalid arguments."""
    every = np.array(
        [math.nan, math.inf, -math.inf, 0, 1, -1, -1.5, 2, 2.5, 1e-300, 1e-30, 1e30, 1e300, 0.5]
    )
    for name, count in (("igamma", 2), ("igammac", 2), ("zeta", 2), ("betainc", 3)):
        arrays = [m.ravel() for m in np.meshgrid(*[every] * count)]
        actual = of_series(series, name, *arrays)
        other = getattr(incomplete_functions, name)(*arrays)
        np.testing.assert_allclose(actual, other, rtol=1e-12, atol=1e-300, err_msg=name)
        assert np.isfinite(actual).sum() > 10
    assert of_series(series, "zeta", np.array([2.0, 3.0]), np.array([-1.0, -1.0])).tolist()[0] == (
        math.inf
    )
