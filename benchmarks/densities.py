"""Densities of `xp.stats` beside kernels written by hand, and NumPy.

    python benchmarks/densities.py [--device opencl:0] [--size 200000] [--columns 20] [--only NAME]

Each row computes a log density, its derivatives and the checks of its arguments. The kernels by
hand are `hand/densities.cpp` for the CPU, which uses all cores (OpenMP), and `hand/densities.cl`
for OpenCL devices. ``hand`` reads each argument once: of a generalized linear model, it computes
the product by the matrix, the terms, and the derivative by the weights in one pass. On OpenCL,
``hand, as Stan`` has the kernels that Stan has by hand, which read the matrix twice: one of the
product and the terms, one of the derivative. The results of OpenCL stay on the device, but for the
index of the first invalid element.

Times are medians of rounds that alternate, and the least ones: on a machine that does other things,
those say more. Results are verified first. The report goes to `results/densities.json`, by device.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from hand.building import build_library  # noqa: E402  (after the path)
from rounds import BLAS_SPINNING, times_of  # noqa: E402

from passkit import xp  # noqa: E402

HAND = ROOT / "benchmarks" / "hand"
RESULTS = ROOT / "benchmarks" / "results" / "densities.json"
HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)
ITEM_ROWS = 2048
"""The rows of a work-item."""
OPENCL_FLAGS = ("-cl-std=CL1.2", "-w", "-cl-mad-enable", "-cl-no-signed-zeros")

DensityRow = dict[str, Callable[[], list[Any]]]
"""Functions by name that return the value, then derivatives."""


@frozen
class Family:
    """A generalized linear model.

    Attributes:
        density: the function of `xp.stats`.
        name: its name in the kernels written by hand.
        outcomes: returns random outcomes by their expected location.
        terms: returns the log density of each outcome, its derivative by the location, and by the
            scale, in NumPy.
        scale: the scale or precision; None for a family that has none.
    """

    density: str
    name: str
    outcomes: Callable[[Any, Any], Any]
    terms: Callable[[Any, Any, float], tuple[Any, Any, Any]]
    scale: float | None = None


def _special() -> Any:
    """Return `scipy.special`, or raise ImportError."""
    import scipy.special  # only rows of counts need it

    return scipy.special


def _normal(y: Any, location: Any, scale: float) -> tuple[Any, Any, Any]:
    z = (y - location) / scale
    return -0.5 * z * z - np.log(scale) - HALF_LOG_TWO_PI, z / scale, (z * z - 1) / scale


def _bernoulli(y: Any, location: Any, scale: float) -> tuple[Any, Any, Any]:
    x = (2 * y - 1) * location
    return -np.logaddexp(0, -x), (2 * y - 1) / (1 + np.exp(x)), 0 * x


def _poisson(y: Any, location: Any, scale: float) -> tuple[Any, Any, Any]:
    rate = np.exp(location)
    return y * location - rate - _special().gammaln(y + 1), y - rate, 0 * rate


def _neg_binomial(y: Any, location: Any, scale: float) -> tuple[Any, Any, Any]:
    special = _special()
    log_sum, total = np.logaddexp(location, np.log(scale)), y + scale
    value = scale * np.log(scale) - special.gammaln(scale) - total * log_sum + y * location
    value += special.gammaln(total) - special.gammaln(y + 1)
    by_scale = 1 - total * np.exp(-log_sum) + np.log(scale) - log_sum
    by_scale += special.psi(total) - special.psi(scale)
    return value, y - total * np.exp(location - log_sum), by_scale


FAMILIES = (
    Family(
        density="normal_id_glm_lpdf",
        name="normal",
        outcomes=lambda rng, location: location + rng.standard_normal(len(location)),
        terms=_normal,
        scale=1.5,
    ),
    Family(
        density="bernoulli_logit_glm_lpmf",
        name="bernoulli",
        outcomes=lambda rng, location: rng.random(len(location)) < 1 / (1 + np.exp(-location)),
        terms=_bernoulli,
    ),
    Family(
        density="poisson_log_glm_lpmf",
        name="poisson",
        outcomes=lambda rng, location: rng.poisson(np.exp(location)),
        terms=_poisson,
    ),
    Family(
        density="neg_binomial_2_log_glm_lpmf",
        name="neg_binomial",
        outcomes=lambda rng, location: rng.poisson(np.exp(location)),
        terms=_neg_binomial,
        scale=2.5,
    ),
)


@cache
def library() -> Any:
    """Compile and return the kernels of the CPU."""
    return build_library(HAND / "densities.cpp")


def native(name: str, *arguments: Any) -> None:
    """Call a kernel of the CPU; arrays are passed by their addresses. It finds nothing invalid."""
    function = getattr(library(), name)
    function.restype = ctypes.c_int64
    converted = [
        ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arguments
    ]
    assert function(*converted) == np.iinfo(np.int64).max


class OpenClKernels:
    """The kernels of an OpenCL device for one family and number of columns.

    Args:
        device: the name of the device.
        family: the name of the family in the kernels.
        columns: the columns of the matrix.
        n: the number of rows.
    """

    def __init__(self, device: str, family: str, columns: int, n: int) -> None:
        import pyopencl as cl  # only for this device

        self.cl = cl
        opened = xp.zeros(1, device=device).__opencl_array__.device
        self.context, self.queue = opened.context, opened.queue.handle
        outcome = "double" if family == "normal" else "int"
        flags = [f"-DFAMILY={family}_terms", f"-DCOLUMNS={columns}", f"-DY={outcome}"]
        text = (HAND / "densities.cl").read_text()
        text = text.replace('#include "density_terms.h"', (HAND / "density_terms.h").read_text())
        self.program = cl.Program(self.context, text).build([*OPENCL_FLAGS, *flags])
        self.n, self.items, self.sums = n, -(-n // ITEM_ROWS), columns + 4
        self.partial = self.buffer(8 * self.items * self.sums)
        self.result = self.buffer(8 * self.sums)
        self.invalid = np.empty(1)
        self.kernels = {k.function_name: k for k in self.program.all_kernels()}

    def buffer(self, nbytes: int) -> Any:
        """Return a new buffer."""
        return self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, nbytes)

    def start(self, name: str, *arguments: Any, items: int = 0) -> None:
        """Enqueue a kernel; ``items`` are its work-items, by default those of blocks of rows."""
        kernel = self.kernels[name]
        kernel.set_args(*arguments)
        self.cl.enqueue_nd_range_kernel(self.queue, kernel, (items or self.items,), (1,))

    def rows(self) -> tuple[Any, Any]:
        """Return the arguments that say which rows an item has."""
        return np.int64(self.n), np.int64(ITEM_ROWS)

    def finish(self) -> None:
        """Add up the sums of the items, wait, and check that no element was invalid."""
        self.start("finish", self.partial, self.result, np.int32(self.items), items=self.sums)
        self.cl.enqueue_copy(self.queue, self.invalid, self.result, src_offset=24)
        assert self.invalid[0] == np.inf

    def results(self) -> Any:
        """Return a copy of the sums."""
        sums = np.empty(self.sums)
        self.cl.enqueue_copy(self.queue, sums, self.result)
        return sums


def on_device(device: str, array: Any) -> Any:
    """Return an array of `xp` on a device, and its memory as kernels written by hand take it."""
    copy = xp.asarray(array, device=device)
    return copy, (array if device == "cpu" else copy.__opencl_array__.buffer)


def normal_row(device: str, n: int, rng: Any) -> DensityRow:
    """Return the row of the normal distribution with three vectors."""
    y, mu = rng.standard_normal((2, n))
    sigma = np.exp(rng.standard_normal(n))
    arrays, memory = zip(*[on_device(device, a) for a in (y, mu, sigma)], strict=True)

    def fused() -> list[Any]:
        value, by = xp.stats.with_derivatives(xp.stats.normal_lpdf, *arrays)
        results = [value, by["y"], by["mu"], by["sigma"]]
        xp.eval(*results)
        return results

    def by_numpy() -> list[Any]:
        z = (y - mu) / sigma
        d = z / sigma
        value = np.sum(-0.5 * z * z - np.log(sigma)) - n * HALF_LOG_TWO_PI
        assert not np.isnan(y).any() and np.isfinite(mu).all() and (sigma > 0).all()
        return [value, -d, d, (z * z - 1) / sigma]

    def on_cpu() -> list[Any]:
        results = [np.empty(n) for _ in range(3)]
        value = np.empty(())
        native("normal", ctypes.c_int64(n), *memory, *results, value)
        return [value, *results]

    if device == "cpu":
        return {"xp": fused, "hand": on_cpu, "numpy": by_numpy}
    kernels = OpenClKernels(device, "normal", 1, n)
    outputs = [kernels.buffer(8 * n) for _ in range(3)]

    def on_opencl() -> list[Any]:
        kernels.start("normal", *memory, *outputs, kernels.partial, *kernels.rows())
        kernels.finish()
        return [kernels, *outputs]

    return {"xp": fused, "hand": on_opencl, "numpy": by_numpy}


def linear_row(device: str, family: Family, n: int, k: int, rng: Any) -> DensityRow:
    """Return the row of a generalized linear model."""
    x, beta, alpha = rng.standard_normal((n, k)), rng.standard_normal(k) / np.sqrt(k), 0.3
    y = family.outcomes(rng, x @ beta + alpha)
    y = y if family.name == "normal" else y.astype(np.int32)
    scale = [] if family.scale is None else [family.scale]
    pairs = [on_device(device, a) for a in (y, x, beta)]
    (ours_y, memory_y), (ours_x, memory_x), (ours_beta, memory_beta) = pairs
    density = getattr(xp.stats, family.density)

    def fused() -> list[Any]:
        arguments = (ours_y, ours_x, alpha, ours_beta, *scale)
        value, by = xp.stats.with_derivatives(density, *arguments)
        results = [value, by["alpha"], by["beta"]]
        results += [by[name] for name in ("sigma", "phi") if name in by]
        xp.eval(*results)
        return results

    def by_numpy() -> list[Any]:
        location = x @ beta + alpha
        value, by_location, by_scale = family.terms(y, location, family.scale or 1.0)
        assert np.isfinite(location).all()
        results = [np.sum(value), np.sum(by_location), by_location @ x]
        return [*results, *([np.sum(by_scale)] if scale else [])]

    def in_order(sums: Any, weights: Any) -> list[Any]:
        return [sums[0], sums[1], weights, *([sums[2]] if scale else [])]

    def on_cpu() -> list[Any]:
        sums = np.empty(k + 3)
        sizes = ctypes.c_int64(n), ctypes.c_int64(k)
        numbers = ctypes.c_double(alpha), memory_beta, ctypes.c_double(family.scale or 1.0)
        native(f"{family.name}_linear", *sizes, memory_y, memory_x, *numbers, sums)
        return in_order(sums, sums[3:])

    if device == "cpu":
        return {"xp": fused, "hand": on_cpu, "numpy": by_numpy}
    kernels = OpenClKernels(device, family.name, k, n)
    by_location = kernels.buffer(8 * n)
    arguments = (
        memory_y,
        memory_x,
        np.float64(alpha),
        memory_beta,
        np.float64(family.scale or 1.0),
        kernels.partial,
        *kernels.rows(),
    )

    def in_one_pass() -> list[Any]:
        kernels.start("one_pass", *arguments)
        kernels.finish()
        return [kernels]

    def as_stan() -> list[Any]:
        kernels.start("terms", *arguments, by_location)
        kernels.start("weights", by_location, memory_x, kernels.partial, *kernels.rows())
        kernels.finish()
        return [kernels]

    return {"xp": fused, "hand": in_one_pass, "hand, as Stan": as_stan, "numpy": by_numpy}


def arrays_of(results: list[Any], expected: list[Any]) -> list[Any]:
    """Return results as NumPy arrays; those of an OpenCL kernel are copied from its buffers."""
    if not isinstance(results[0], OpenClKernels):
        return list(map(np.asarray, results))
    kernels, *buffers = results
    sums = kernels.results()
    if not buffers:
        return [sums[0], sums[1], sums[4:], sums[2]][: len(expected)]
    arrays = [np.empty(kernels.n) for _ in buffers]
    for array, buffer in zip(arrays, buffers, strict=True):
        kernels.cl.enqueue_copy(kernels.queue, array, buffer)
    return [sums[0], *arrays]


def measure(row: DensityRow, rounds: int) -> dict[str, dict[str, float]]:
    """Verify the results of a row; return the median and the least seconds of each function."""
    expected = row["numpy"]()
    for function in row.values():
        for result, array in zip(arrays_of(function(), expected), expected, strict=True):
            size = np.abs(array).max()
            np.testing.assert_allclose(result, array, rtol=1e-8, atol=1e-8 * size)
    return times_of(row, rounds, BLAS_SPINNING)


def main(arguments: list[str] | None = None) -> None:
    """Measure the rows, print times and ratios to the kernels written by hand, and report them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu", help='"cpu" or an OpenCL device: "opencl:0"')
    parser.add_argument("--size", type=int, default=200_000, help="rows, a multiple of 4")
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    device, size, rng = options.device, options.size, np.random.default_rng(0)
    rows = {"normal_lpdf": lambda: normal_row(device, size, rng)}
    for family in FAMILIES:
        rows[family.density] = lambda family=family: linear_row(
            device, family, size, options.columns, rng
        )
    report = {}
    for name, row in rows.items():
        if options.only in name:
            report[name] = times = measure(row(), options.rounds)
            figures = ", ".join(
                f"{who} {t['median'] * 1e3:.2f} (least {t['least'] * 1e3:.2f}) ms"
                for who, t in times.items()
            )
            ratios = ", ".join(
                f"xp / {who} {times['xp']['median'] / t['median']:.2f}"
                f" (least {times['xp']['least'] / t['least']:.2f})"
                for who, t in times.items()
                if who != "xp"
            )
            print(f"{name:28} {figures}; {ratios}", flush=True)
    if not options.only:
        reports = json.loads(options.json.read_text()) if options.json.exists() else {}
        reports[device] = {"size": size, "columns": options.columns, "rows": report}
        options.json.write_text(json.dumps(reports, indent=1) + "\n")


if __name__ == "__main__":
    main()
