"""Densities of `xp.stats` beside kernels written by hand in C++, and NumPy.

    python benchmarks/densities.py [--size 200000] [--columns 20] [--rounds 15]

Each row computes a log density, its derivatives and the checks of its arguments. The kernels by
hand read each argument once and use all cores (OpenMP); of the linear model, they compute the
product with the matrix and the derivative by the weights in the same pass. Times are medians of
rounds that alternate. Results are verified first.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from passkit import xp  # noqa: E402  (after the path)

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <vector>
static const double HALF_LOG_TWO_PI = 0.91893853320467274178;

extern "C" int64_t normal(int64_t n, const double *y, const double *mu, const double *sigma,
                          double *by_y, double *by_mu, double *by_sigma, double *value) {
  double sum = 0;
  int64_t bad = INT64_MAX;
#pragma omp parallel for simd reduction(+ : sum) reduction(min : bad)
  for (int64_t i = 0; i < n; i++) {
    const double s = sigma[i], z = (y[i] - mu[i]) / s, d = z / s;
    sum += -0.5 * z * z - std::log(s) - HALF_LOG_TWO_PI;
    by_y[i] = -d;
    by_mu[i] = d;
    by_sigma[i] = (z * z - 1) / s;
    const bool valid = y[i] == y[i] && std::fabs(mu[i]) < INFINITY && s > 0;
    bad = valid || bad < i ? bad : i;
  }
  *value = sum;
  return bad;
}

extern "C" int64_t linear(int64_t n, int64_t k, const double *y, const double *x, double alpha,
                          const double *beta, double sigma, double *by_beta, double *by_alpha,
                          double *by_sigma, double *value) {
  double sum = 0, sum_alpha = 0, sum_sigma = 0;
  int64_t bad = INT64_MAX;
  for (int64_t j = 0; j < k; j++) by_beta[j] = 0;
#pragma omp parallel reduction(+ : sum, sum_alpha, sum_sigma) reduction(min : bad)
  {
    std::vector<double> part(k);
#pragma omp for
    for (int64_t i = 0; i < n; i++) {
      const double *row = x + i * k;
      double location = alpha;
#pragma omp simd reduction(+ : location)
      for (int64_t j = 0; j < k; j++) location += row[j] * beta[j];
      const double z = (y[i] - location) / sigma, d = z / sigma;
      sum -= 0.5 * z * z;
      sum_alpha += d;
      sum_sigma += (z * z - 1) / sigma;
#pragma omp simd
      for (int64_t j = 0; j < k; j++) part[j] += row[j] * d;
      if (!(std::fabs(z) < INFINITY) && i < bad) bad = i;
    }
#pragma omp critical
    for (int64_t j = 0; j < k; j++) by_beta[j] += part[j];
  }
  *value = sum - n * (std::log(sigma) + HALF_LOG_TWO_PI);
  *by_alpha = sum_alpha;
  *by_sigma = sum_sigma;
  return bad;
}
"""


def compiled(folder: str) -> Any:
    """Return the library of the kernels written by hand."""
    source, library = Path(folder) / "hand.cpp", Path(folder) / "hand.so"
    source.write_text(SOURCE)
    flags = ["-O3", "-march=native", "-ffast-math", "-fno-finite-math-only", "-fopenmp"]
    subprocess.run(["g++", *flags, "-shared", "-fPIC", source, "-o", library], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.normal.restype = loaded.linear.restype = ctypes.c_int64
    return loaded


def pointer(array: Any) -> Any:
    """Return the address of an array, for C."""
    return ctypes.c_void_p(array.ctypes.data)


DensityRow = dict[str, Callable[[], list[Any]]]
"""Functions by name that return the value, then derivatives."""


def normal_row(library: Any, n: int, rng: Any) -> DensityRow:
    """Return the row of the normal distribution with three vectors."""
    y, mu = rng.standard_normal((2, n))
    sigma = np.exp(rng.standard_normal(n))
    arrays = [xp.asarray(a) for a in (y, mu, sigma)]

    def fused() -> list[Any]:
        value, by = xp.stats.with_derivatives(xp.stats.normal_lpdf, *arrays)
        results = [value, by["y"], by["mu"], by["sigma"]]
        xp.eval(*results)
        return results

    def by_hand() -> list[Any]:
        results = [np.empty(n) for _ in range(3)]
        value = np.empty(())
        operands = [pointer(a) for a in (y, mu, sigma, *results, value)]
        assert library.normal(ctypes.c_int64(n), *operands) == np.iinfo(np.int64).max
        return [value, *results]

    def by_numpy() -> list[Any]:
        z = (y - mu) / sigma
        d = z / sigma
        value = np.sum(-0.5 * z * z - np.log(sigma)) - 0.5 * n * np.log(2 * np.pi)
        assert not np.isnan(y).any() and np.isfinite(mu).all() and (sigma > 0).all()
        return [value, -d, d, (z * z - 1) / sigma]

    return {"xp": fused, "hand": by_hand, "numpy": by_numpy}


def linear_row(library: Any, n: int, k: int, rng: Any) -> DensityRow:
    """Return the row of the linear regression."""
    y, x, beta = rng.standard_normal(n), rng.standard_normal((n, k)), rng.standard_normal(k)
    alpha, sigma = 0.3, 1.5
    arrays = [xp.asarray(y), xp.asarray(x), alpha, xp.asarray(beta), sigma]

    def fused() -> list[Any]:
        value, by = xp.stats.with_derivatives(xp.stats.normal_id_glm_lpdf, *arrays)
        results = [value, by["beta"], by["alpha"], by["sigma"]]
        xp.eval(*results)
        return results

    def by_hand() -> list[Any]:
        by_beta, by_alpha, by_sigma, value = np.empty(k), *np.empty((3, 1))
        code = library.linear(
            ctypes.c_int64(n),
            ctypes.c_int64(k),
            pointer(y),
            pointer(x),
            ctypes.c_double(alpha),
            pointer(beta),
            ctypes.c_double(sigma),
            *[pointer(a) for a in (by_beta, by_alpha, by_sigma, value)],
        )
        assert code == np.iinfo(np.int64).max
        return [value[0], by_beta, by_alpha[0], by_sigma[0]]

    def by_numpy() -> list[Any]:
        z = (y - (x @ beta + alpha)) / sigma
        d = z / sigma
        value = np.sum(-0.5 * z * z) - n * (np.log(sigma) + 0.5 * np.log(2 * np.pi))
        assert np.isfinite(value)
        return [value, d @ x, np.sum(d), np.sum((z * z - 1) / sigma)]

    return {"xp": fused, "hand": by_hand, "numpy": by_numpy}


def medians(row: DensityRow, rounds: int) -> dict[str, float]:
    """Return the median seconds of each function of a row, after verifying its results."""
    expected = row["numpy"]()
    for function in row.values():
        for result, array in zip(function(), expected, strict=True):
            np.testing.assert_allclose(np.asarray(result), array, rtol=1e-8, atol=1e-8)
        function()
    times: dict[str, list[float]] = {name: [] for name in row}
    for _ in range(rounds):
        for name, function in row.items():
            begin = perf_counter()
            function()
            times[name].append(perf_counter() - begin)
    return {name: median(seconds) for name, seconds in times.items()}


def main() -> None:
    """Measure both rows, and print the times and the ratio to the kernel written by hand."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(folder)
        rows = {
            "normal_lpdf": normal_row(library, options.size, rng),
            "normal_id_glm_lpdf": linear_row(library, options.size, options.columns, rng),
        }
        for name, row in rows.items():
            seconds = medians(row, options.rounds)
            figures = ", ".join(f"{who} {s * 1e3:.2f} ms" for who, s in seconds.items())
            print(f"{name:20} {figures}; xp / hand {seconds['xp'] / seconds['hand']:.2f}")


if __name__ == "__main__":
    main()
