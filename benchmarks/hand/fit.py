"""Fit the piecewise polynomials of exp, erf and tanh and write ``tables.h``.

Each function is a polynomial per interval, and the interval's coefficients are selected from
registers by a permutation, so a table has 32 entries. A fit minimises the largest relative error by
weighted least squares whose weights grow where the error is large (Lawson's iteration).
Coefficients are rounded to float32 from the constant term upwards, and the others are refitted
after each.

Run ``python benchmarks/hand/fit.py`` to write the header again. Needs mpmath (comes with PyTorch).
"""

from collections.abc import Callable
from pathlib import Path

import mpmath
import numpy as np

NODES = 97  # points per interval
SWEEPS = 60  # Lawson iterations per fit


def lawson(u: np.ndarray, target: np.ndarray, scale: np.ndarray, powers: list[int]) -> np.ndarray:
    """Return the coefficients of these powers of u that minimise max |p(u) - target| / scale."""
    basis = np.stack([u**k for k in powers], axis=1) / scale[:, None]
    goal, weight = target / scale, np.full(u.size, 1.0 / u.size)
    best, least = np.zeros(len(powers)), np.inf
    for _ in range(SWEEPS):
        root = np.sqrt(weight)[:, None]
        coefficients = np.linalg.lstsq(basis * root, goal * root[:, 0], rcond=None)[0]
        error = np.abs(basis @ coefficients - goal)
        if error.max() < least:
            best, least = coefficients, error.max()
        weight = weight * (error + 1e-30)
        weight /= weight.sum()
    return best


def fit(
    function: Callable[[float], mpmath.mpf], centre: float, half: float, degree: int, low: float
) -> tuple[np.ndarray, float]:
    """Fit float32 coefficients in u = t - centre; return them and the largest relative error.

    Args:
        function: the function of t.
        centre: the centre of the interval.
        half: half of the interval's length.
        degree: the degree of the polynomial.
        low: the lower end of the function's domain, at which the interval is cut.
    """
    left = max(-half, low - centre)
    middle, radius = (left + half) / 2, (half - left) / 2
    u = middle + radius * np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
    exact = np.array([float(function(mpmath.mpf(centre) + mpmath.mpf(d))) for d in u])
    remainder, rounded = exact.copy(), []
    for k in range(degree + 1):
        coefficients = lawson(u, remainder, np.abs(exact), list(range(k, degree + 1)))
        rounded.append(np.float32(coefficients[0]))
        remainder = remainder - float(rounded[-1]) * u**k
    return np.array(rounded, dtype=np.float32), float(np.max(np.abs(remainder / exact)))


def table(
    name: str, function: Callable[[float], mpmath.mpf], step: float, count: int, degree: int
) -> str:
    """Return the C++ text of one table: a row of ``count`` coefficients for each power of u."""
    pieces = [fit(function, k * step, step / 2, degree, 0.0) for k in range(count)]
    worst = max(error for _, error in pieces)
    rows = [f"// {name}: step {step!r}, degree {degree}, relative error of the fit {worst:.1e}"]
    for power in range(degree + 1):
        numbers = ", ".join(float(c[power]).hex() + "f" for c, _ in pieces)
        rows.append(f"alignas(64) static const float {name}{power}[{count}] = {{{numbers}}};")
    return "\n".join(rows)


def over_argument(
    function: Callable[[mpmath.mpf], mpmath.mpf], at_zero: mpmath.mpf
) -> Callable[[mpmath.mpf], mpmath.mpf]:
    """Return t -> function(t) / t, which is even, with its limit at 0."""
    return lambda t: at_zero if t == 0 else function(t) / t


def exp_tables() -> str:
    """Return the C++ text of 2^(j/32) for j = 0..31 and of e^r on |r| <= ln(2)/64."""
    two = ", ".join(float(np.float32(2.0 ** (j / 32))).hex() + "f" for j in range(32))
    half = float(mpmath.log(2)) / 64 * 1.01
    u = half * np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
    c = lawson(u, np.expm1(u), np.exp(u), [1, 2])
    rows = [
        "// exp: 2^(j/32), and e^r - 1 = r*(EXP1 + r*EXP2)",
        f"alignas(64) static const float EXP2_TABLE[32] = {{{two}}};",
    ]
    rows += [
        f"static const float EXP{k} = {float(np.float32(v)).hex()}f;"
        for k, v in enumerate(c, start=1)
    ]
    return "\n".join(rows)


def main() -> None:
    """Write tables.h beside this file."""
    mpmath.mp.dps = 40
    erf = over_argument(mpmath.erf, 2 / mpmath.sqrt(mpmath.pi))
    tanh = over_argument(mpmath.tanh, mpmath.mpf(1))
    parts = [
        "// Written by fit.py; do not edit.",
        "#pragma once",
        exp_tables(),
        table("ERF", erf, 0.125, 32, 4),
        table("TANH", tanh, 0.296875, 32, 5),
    ]
    Path(__file__).with_name("tables.h").write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
