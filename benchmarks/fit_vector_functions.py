"""Fit the coefficients of prelude/math_f32.h and math_f64.h, and print them.

A float32 polynomial is the Lawson fit (iteratively reweighted least squares) that minimises the
greatest error in units of the result's last place. Its coefficients are rounded one by one, lowest
first, and the others are fitted again after each. A float64 polynomial interpolates at Chebyshev
points.

Needs mpmath.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np

FloatArray = np.ndarray[Any, Any]
RealFunction = Callable[[Any], Any]
mp.mp.prec = 200


def last_place(y: FloatArray) -> FloatArray:
    """Return the value of the last bit of float32 numbers of the magnitude of ``y``."""
    return np.exp2(np.floor(np.log2(np.abs(y))) - 23)


def lawson(columns: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the coefficients ``c`` that minimise the greatest weight * |columns @ c - y|."""
    density, best, least = np.full(len(y), 1 / len(y)), np.zeros(columns.shape[1]), np.inf
    for _ in range(60):
        scale = np.sqrt(density) * weight
        c = np.linalg.lstsq(columns * scale[:, None], y * scale, rcond=None)[0]
        error = weight * np.abs(columns @ c - y)
        if error.max() < least:
            best, least = c, error.max()
        density *= error + 1e-30
        density /= density.sum()
    return best


def fit32(x: FloatArray, y: FloatArray, weight: FloatArray, degree: int) -> list[float]:
    """Fit float32 coefficients of a polynomial in ``x`` to ``y``, lowest first."""
    columns = np.vander(x, degree + 1, increasing=True)
    remainder, coefficients = y.copy(), []
    for k in range(degree + 1):
        coefficients.append(float(np.float32(lawson(columns[:, k:], remainder, weight)[0])))
        remainder -= coefficients[-1] * columns[:, k]
    return coefficients


def points(low: float, high: float, count: int = 1000) -> FloatArray:
    """Return the Chebyshev points of an interval, without those next to 0."""
    x = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    x = low + (high - low) * (x + 1) / 2
    return x[np.abs(x) > 1e-5]


def values(f: RealFunction, x: FloatArray) -> FloatArray:
    """Evaluate ``f`` at each element with mpmath and round to float64."""
    return np.array([float(f(mp.mpf(float(v)))) for v in x])


def tail(
    f: RealFunction, first: int, low: float, high: float, degree: int, odd: bool
) -> list[float]:
    """Fit the polynomial q of f(t) = t + t^(first) q(t), or q(t^2) if f is odd."""
    t = points(low, high)
    q = values(lambda v: (f(v) - v) / v**first, t)
    weight = np.abs(t) ** first / last_place(values(f, t))
    return fit32(t * t if odd else t, q, weight, degree)


def about(f: RealFunction, origin: float, low: float, high: float, degree: int) -> list[float]:
    """Fit f(origin + u), minimising the greatest error in units of the last place.

    At a zero of f the first coefficient is 0, and the others minimise the greatest relative error.
    """
    u = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(97) + 0.5) / 97)
    true = values(lambda v: f(origin + v), u)
    if f(mp.mpf(origin)) == 0:
        return [0.0, *fit32(u, true / u, u / true, degree - 1)]
    return fit32(u, true, 1 / last_place(true), degree)


def evenly(f: RealFunction, step: float, degree: int) -> FloatArray:
    """Return a table of 8 columns of coefficients: of f about k steps, k = 0..7."""
    columns = [about(f, k * step, -step / 2 if k else 0, step / 2, degree) for k in range(8)]
    return np.array(columns).T


def further(f: RealFunction, unit: float, degree: int) -> FloatArray:
    """Return a table of 8 columns of coefficients of f from (b - 1) units on.

    Column numbers are the last three bits of a float32's exponent and leading fraction bit, whose
    value is b.
    """
    columns = []
    for k in range(8):
        e, half = divmod((k + 2) % 8, 2)
        b, width = 2**e * (1 + half / 2), 2**e / 2
        columns.append(about(f, (b - 1) * unit, 0, width * unit, degree))
    return np.array(columns).T


def show(name: str, coefficients: list[float]) -> None:
    """Print coefficients as hexadecimal constants."""
    print(f"{name}: " + ", ".join(float(c).hex() for c in coefficients))


def ratio(f: RealFunction, limit: Any) -> RealFunction:
    """Return f, with its limit next to 0, where f divides 0 by 0."""
    return lambda v: f(v) if abs(v) > mp.mpf(2) ** -50 else limit


def show_float32() -> None:
    """Print the float32 polynomials of Horner's rule, highest power first."""
    half = float(mp.log(2)) / 16 * 1.01
    u = half * np.cos(np.pi * (np.arange(97) + 0.5) / 97)
    powers = np.stack([u, u**2, u**3], 1)
    show("exp f32", lawson(powers, np.expm1(u), np.exp(-u)).tolist()[::-1])
    show("2^(j/8)", [float(np.float32(2 ** (j / 8))) for j in range(8)])
    half = float(mp.log(2)) / 2 + 2e-4
    show("expm1 f32", tail(mp.expm1, 2, -half, half, 5, odd=False)[::-1])
    x = points(-0.5, 0.5)
    exp2 = values(lambda v: mp.mpf(2) ** v, x)
    show("exp2 f32", fit32(x, exp2, 1 / last_place(exp2), 6)[::-1])
    show("log f32", tail(mp.log1p, 2, -0.25, 0.5, 8, odd=False)[::-1])
    f = points(-0.25, 0.5)
    for base in (2, 10):
        q = values(lambda v, b=base: (mp.log1p(v) - v) / v**2 / mp.log(b), f)
        weight = f**2 / last_place(values(lambda v, b=base: mp.log1p(v) / mp.log(b), f))
        show(f"log{base} f32", fit32(f, q, weight, 8)[::-1])
    show("sin f32", tail(mp.sin, 3, 0, 1.61, 4, odd=True)[::-1])
    show("tan f32", tail(mp.tan, 3, 0, 0.8, 6, odd=True)[::-1])
    show("atan f32", tail(mp.atan, 3, 0, 1, 8, odd=True)[::-1])
    show("asin f32", tail(mp.asin, 3, 0, 0.5, 4, odd=True)[::-1])
    show("sinh f32", tail(mp.sinh, 3, 0, 1, 3, odd=True)[::-1])


def show_float32_tables() -> None:
    """Print the float32 tables of eight intervals, row by row."""
    erfcx: RealFunction = lambda v: mp.erfc(v) * mp.exp(v * v)  # noqa: E731
    for name, rows in (
        ("erf f32", evenly(mp.erf, 17 / 32, 6)),
        ("tanh f32", further(mp.tanh, 0.625, 6)),
        ("erfcx f32", further(erfcx, 0.6875, 7)),
    ):
        for k, row in enumerate(rows):
            show(f"{name} [{k}]", row)


def show_float64() -> None:
    """Print the float64 polynomials, highest power first."""
    half = float(mp.log(2)) / 2 + 2e-4
    cheb: Any = mp.chebyfit
    expm1 = ratio(lambda r: (mp.expm1(r) - r) / r**2, mp.mpf(0.5))
    log = ratio(lambda r: (mp.log1p(r) - r) / r**2, mp.mpf(-0.5))
    sin = ratio(lambda z: (mp.sin(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3, -mp.mpf(1) / 6)
    show("expm1 f64", cheb(expm1, [-half, half], 10))
    show("log f64", cheb(log, [mp.mpf(-0.25), mp.mpf(0.5)], 21))
    show("sin f64", cheb(sin, [0, mp.mpf(1.6) ** 2], 8))
    log2 = ratio(lambda v: mp.log1p(v) / v / mp.log(2), 1 / mp.log(2))
    show("log2 of pow", cheb(log2, [mp.mpf(-0.25), mp.mpf(0.5)], 14))
    show("exp2 of pow", cheb(lambda v: mp.mpf(2) ** v, [mp.mpf(-0.5), mp.mpf(0.5)], 7))
    erf = ratio(lambda t: mp.erf(t) / t, 2 / mp.sqrt(mp.pi))
    for k in range(16):
        step = mp.mpf(3) / 8
        about = cheb(lambda u, c=k * step: erf(u + c), [-step / 2, step / 2], 13)
        show(f"erf f64, column {k}", about[::-1])


def main() -> None:
    """Print every polynomial."""
    show_float32()
    show_float32_tables()
    show_float64()


if __name__ == "__main__":
    main()
