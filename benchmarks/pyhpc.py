"""Time the programs of pyhpc-benchmarks with `passkit.xp`, beside NumPy, Numba, JAX and PyTorch.

    git clone https://github.com/dionhaefner/pyhpc-benchmarks
    pip install scipy numba jax torch
    python benchmarks/pyhpc.py --suite pyhpc-benchmarks [--json benchmarks/results/pyhpc.json]

The programs are the equation of state, isoneutral mixing and turbulent kinetic energy of an ocean
model. `passkit.xp` runs the text of the NumPy version, in which only the import is changed; each
competitor runs its version of the suite. As in the suite, all use one thread unless ``--threads``
says otherwise, inputs are prepared anew for every call, since programs write to them, and neither
this nor compiling is timed. All competitors run once in each round; a figure is the median of the
rounds. Results of passkit must equal those of NumPy. The report ends with the geometric means of
the ratios to NumPy over all programs and the sizes of at least 2^16.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from importlib.metadata import version
from math import exp, log
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = {
    "equation_of_state": "eos",
    "isoneutral_mixing": "isoneutral",
    "turbulent_kinetic_energy": "tke",
}
"""The programs, with the prefix of the names of their files."""
COMPETITORS = ("passkit", "numpy", "numba", "jax", "pytorch")
LARGE = 1 << 16
"""The geometric means are over sizes of at least this many elements."""
TOLERANCE = 1e-6
"""How far results may be from NumPy's, in terms of their root mean square; Numba reorders sums."""

Times = dict[str, dict[int, dict[str, float]]]
"""Seconds by program, size and competitor."""


def limit_threads(count: int) -> None:
    """Set the number of threads of all competitors; they must not have been imported yet."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "PASSKIT_THREADS"):
        os.environ[name] = str(count)
    if count == 1:
        os.environ["XLA_FLAGS"] = (
            "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        )
    os.environ["JAX_PLATFORMS"] = "cpu"


def program_on_xp(suite: Path, program: str) -> ModuleType:
    """Return the NumPy version of a program as a module in which ``np`` is `passkit.xp`.

    Raises: ValueError if it does not import NumPy by the line that is replaced.
    """
    path = suite / "benchmarks" / program / f"{PROGRAMS[program]}_numpy.py"
    text = path.read_text()
    line = "import numpy as np\n"
    if text.count(line) != 1:
        raise ValueError(f"{path} needs one line {line.strip()!r}, it has {text.count(line)}")
    module = ModuleType(f"{program}_on_xp")
    text = text.replace(line, "from passkit import xp as np\n")
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def prepared(
    suite: Path, program: str, competitor: str
) -> tuple[Callable[..., Any], Callable[..., Sequence[Any]]]:
    """Return a program of a competitor, and the function that prepares its arrays from NumPy's.

    The program returns when its results are computed.
    """
    if competitor == "passkit":
        from passkit import xp

        module = program_on_xp(suite, program)

        def run(*inputs: Any) -> Any:
            results = module.run(*inputs)
            xp.eval(results)
            return results

        return run, lambda *arrays: [xp.asarray(a) for a in arrays]
    name = f"benchmarks.{program}.{PROGRAMS[program]}_{competitor}"
    peer = importlib.import_module(name)
    if hasattr(peer, "prepare_inputs"):
        return peer.run, partial(peer.prepare_inputs, device="cpu")
    return peer.run, lambda *arrays: [a.copy() for a in arrays]


def timed(run: Callable[..., Any], inputs: Sequence[Any]) -> tuple[float, Any]:
    """Return the seconds of a call and its results."""
    start = time.perf_counter()
    results = run(*inputs)
    return time.perf_counter() - start, results


def arrays_of(results: Any) -> list[Any]:
    """Return results of any competitor as a list of NumPy arrays."""
    import numpy as np

    several = results if isinstance(results, (list, tuple)) else [results]
    return [np.asarray(r) for r in several]


def differs(results: Any, reference: Sequence[Any]) -> str:
    """Return how results differ from NumPy's, or an empty text."""
    import numpy as np

    arrays = arrays_of(results)
    if len(arrays) != len(reference):
        return f"{len(arrays)} results, NumPy has {len(reference)}"
    for number, (array, expected) in enumerate(zip(arrays, reference, strict=True)):
        if array.shape != expected.shape or array.dtype != expected.dtype:
            return f"result {number} is {array.dtype}{array.shape}, NumPy's {expected.dtype}"
        finite = np.isfinite(expected)
        if not np.array_equal(finite, np.isfinite(array)):
            return f"result {number} is finite elsewhere"
        scale = float(np.sqrt(np.mean(np.square(expected[finite])))) if finite.any() else 0.0
        bound = TOLERANCE * (np.abs(expected[finite]) + scale)
        worst = np.max(np.abs(array[finite] - expected[finite]) - bound, initial=0.0)
        if worst > 0:
            return f"result {number} is off by {worst:.2e} more than allowed"
    return ""


def measure(
    suite: Path, program: str, size: int, competitors: Sequence[str], options: argparse.Namespace
) -> dict[str, float]:
    """Return the median seconds of each competitor for a program and size.

    Args:
        suite: the checkout.
        program: one of `PROGRAMS`.
        size: the number of elements, approximately.
        competitors: names of `COMPETITORS`.
        options: with ``rounds``, the least number of rounds, and ``seconds``, how long to measure.

    Raises: RuntimeError if results of passkit differ from NumPy's; those of others are reported.
    """
    generate = importlib.import_module(f"benchmarks.{program}").generate_inputs
    arrays = generate(size)
    runs = {c: prepared(suite, program, c) for c in competitors}
    run, prepare = prepared(suite, program, "numpy")
    reference = arrays_of(run(*prepare(*arrays)))
    for competitor, (run, prepare) in runs.items():
        for _ in range(3):  # compile; explore
            results = run(*prepare(*arrays))
        message = differs(results, reference)
        if message and competitor == "passkit":
            raise RuntimeError(f"passkit on {program}, {size:,} elements: {message}")
        if message:
            print(f"{competitor} differs from NumPy on {program}, {size:,} elements: {message}")
    times: dict[str, list[float]] = {c: [] for c in competitors}
    begin, rounds = time.perf_counter(), 0
    order = list(runs)
    while rounds < options.rounds or time.perf_counter() - begin < options.seconds:
        for competitor in order:
            run, prepare = runs[competitor]
            elapsed, results = timed(run, prepare(*arrays))
            times[competitor].append(elapsed)
            del results
        order = [*order[1:], order[0]]
        rounds += 1
        if rounds >= 1000:
            break
    return {c: statistics.median(each) for c, each in times.items()}


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return exp(sum(map(log, values)) / len(values))


def means(times: Times, competitors: Sequence[str]) -> dict[str, float]:
    """Return the geometric mean of seconds relative to NumPy's at large sizes, by competitor."""
    ratios: dict[str, list[float]] = {c: [] for c in competitors}
    for by_size in times.values():
        for size, row in by_size.items():
            if size >= LARGE:
                for competitor in competitors:
                    ratios[competitor].append(row[competitor] / row["numpy"])
    return {c: geometric_mean(each) for c, each in ratios.items() if each}


def print_row(program: str, size: int, row: dict[str, float]) -> None:
    """Print the milliseconds of a program, and how much faster each competitor is than NumPy."""
    cells = [f"{c} {t * 1e3:9.3f} ms x{row['numpy'] / t:5.2f}" for c, t in row.items()]
    print(f"{program:26} 2^{size.bit_length() - 1:<2}  " + "  ".join(cells), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if passkit is not the fastest, or somewhere slower than NumPy."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--suite", type=Path, required=True, help="checkout of pyhpc-benchmarks")
    parser.add_argument("--only", nargs="*", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument(
        "--exponents", nargs="*", type=int, default=[12, 14, 16, 18, 20, 22], help="sizes, 2^k"
    )
    parser.add_argument("--competitors", nargs="*", default=list(COMPETITORS), choices=COMPETITORS)
    parser.add_argument("--rounds", type=int, default=7, help="the least number of rounds")
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds for each size")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where to write the report")
    options = parser.parse_args(arguments)
    limit_threads(options.threads)
    sys.path[:0] = [str(ROOT), str(options.suite.resolve())]
    competitors = list(dict.fromkeys(["passkit", "numpy", *options.competitors]))
    if "jax" in competitors:
        importlib.import_module("jax").config.update("jax_enable_x64", True)
    times: Times = {}
    for program in options.only:
        for exponent in options.exponents:
            row = measure(options.suite, program, 1 << exponent, competitors, options)
            times.setdefault(program, {})[1 << exponent] = row
            print_row(program, 1 << exponent, row)
    by_competitor = means(times, competitors)
    for competitor, mean in sorted(by_competitor.items(), key=lambda item: item[1]):
        print(f"{competitor:8} {mean:.3f} of NumPy's time, geometric mean at >= {LARGE:,}")
    if options.json:
        write_report(options.json, times, by_competitor, options)
    is_slower = any(r["passkit"] > r["numpy"] for each in times.values() for r in each.values())
    is_best = not by_competitor or min(by_competitor, key=by_competitor.__getitem__) == "passkit"
    return int(is_slower or not is_best)


def cpu_name() -> str:
    """Return the name of the CPU."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def write_report(
    path: Path, times: Times, by_competitor: dict[str, float], options: argparse.Namespace
) -> None:
    """Write the figures to a JSON file, with the date, the CPU and versions."""
    packages = ("numpy", "numba", "jax", "torch", "scipy")
    report = {
        "date": date.today().isoformat(),
        "cpu": cpu_name(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "threads": options.threads,
        "seconds": times,
        "geometric_mean_of_ratios_to_numpy": by_competitor,
    }
    path.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
