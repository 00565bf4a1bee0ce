"""Time operation streams: what recording and running cost, beside NumPy and its competitors.

    python benchmarks/streams.py [--only NAME] [--rounds 15]

Rows:

- ``record``: one operation that is queued, of a chain of 100
- ``flush46``: executing 46 queued operations whose plan is known, on arrays of 64 elements
- ``small``: one operation on arrays of 4 x 4
- ``chain20``: 20 operations on 1,000 elements, from NumPy's array to NumPy's result
- ``gelu_reference``, ``gelu_mixed``, ``gelu_custom``: the three forms of GELU of Burn's article, on
  2 x 512 x 2048 elements

Every competitor that is installed runs in the same process, in turn with the others; a figure is
the median of the rounds. The report is written to `results/streams.json`.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from passkit import xp  # noqa: E402
from passkit.frontends.xp import runtime  # noqa: E402

Runs = Mapping[str, Callable[[], Any]]
"""By competitor: the function that is timed."""
SQRT2 = 2**0.5


def seconds(run: Callable[[], Any], repeats: int) -> float:
    """Return the time of one call of ``run``, as the mean of a number of calls."""
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def medians(runs: Runs, rounds: int) -> dict[str, float]:
    """Return the median seconds of each competitor, all of which run once in each round.

    The order changes with each round. A call that is not timed goes before those that are: the
    threads of the last competitor may still wait busily for more work.
    """
    repeats = {}
    for name, run in runs.items():
        for _ in range(3):
            run()
        once = max(seconds(run, 1), 1e-7)
        repeats[name] = max(1, min(2000, int(2e-3 / once)))
    times: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    rng = random.Random(0)
    for _ in range(rounds):
        rng.shuffle(order)
        for name in order:
            runs[name]()
            times[name].append(seconds(runs[name], repeats[name]))
    return {name: statistics.median(each) for name, each in times.items()}


def optional(name: str) -> Any:
    """Return an optional competitor's module, or None."""
    try:
        return import_module(name)
    except ImportError:
        return None


def record() -> Runs:
    """Queue operations without executing them, and add small NumPy arrays for comparison."""
    x = xp.asarray(np.ones((40, 40), np.float32))
    small = np.ones((4, 4), np.float32)
    stream = runtime.current_stream()

    def chain() -> None:
        y = x
        for _ in range(100):
            y = y + x
        stream.clear()

    return {"passkit, 100 operations": chain, "numpy, one small add": lambda: small + small}


def erf_positive(x: Any, exp: Callable[[Any], Any]) -> Any:
    """Return erf of non-negative numbers by a polynomial (Abramowitz and Stegun 7.1.26)."""
    t = 1 / (abs(x) * 0.3275911 + 1)
    series = (((t * 1.061405429 + -1.453152027) * t) + 1.421413741) * t + -0.284496736
    return -((series * t + 0.254829592) * t * exp(-x * x)) + 1


def custom_gelu(x: Any, exp: Callable[[Any], Any], where: Callable[..., Any]) -> Any:
    """Return GELU with an erf of the user's own: 46 operations."""
    z = x / SQRT2
    erf = where(z > 0, erf_positive(z, exp), -erf_positive(-z, exp))
    return x * (erf + 1) / 2


def flush46() -> Runs:
    """Execute a queue of 46 operations whose plan is known; recording is not timed apart."""
    x = xp.asarray(np.linspace(-3, 3, 320, dtype=np.float32))
    stream = runtime.current_stream()

    def only_record() -> None:
        y = custom_gelu(x, xp.exp, xp.where)
        del y
        stream.clear()

    def record_and_run() -> None:
        xp.eval(custom_gelu(x, xp.exp, xp.where))

    return {"recorded and executed": record_and_run, "recorded": only_record}


def small() -> Runs:
    """Add arrays of 16 elements."""
    ours, numpy = xp.asarray(np.ones((4, 4), np.float32)), np.ones((4, 4), np.float32)
    return {"passkit": lambda: ours + ours, "numpy": lambda: numpy + numpy}


def _chain(x: Any, y: Any) -> Any:
    """Compute 20 operations."""
    for _ in range(5):
        x = (x * y + 0.5) * 0.5 - y
    return x


def chain20() -> Runs:
    """Run 20 operations on 1,000 elements."""
    a = np.random.default_rng(0).random(1000, dtype=np.float32)
    b = a[::-1].copy()
    ours = xp.asarray(a), xp.asarray(b)
    runs: dict[str, Callable[[], Any]] = {
        "passkit": lambda: xp.eval(_chain(*ours)),
        "numpy": lambda: _chain(a, b),
    }
    torch, jax, mlx = optional("torch"), optional("jax"), optional("mlx.core")
    if torch is not None:
        tensors = torch.from_numpy(a), torch.from_numpy(b)
        runs["torch"] = lambda: _chain(*tensors)
    if jax is not None:
        arrays = jax.numpy.asarray(a), jax.numpy.asarray(b)
        compiled = jax.jit(_chain)
        runs["jax.jit"] = lambda: compiled(*arrays).block_until_ready()
    if mlx is not None:
        lazy = mlx.array(a), mlx.array(b)
        runs["mlx"] = lambda: mlx.eval(_chain(*lazy))
    return runs


def gelu(form: str) -> Callable[[], Runs]:
    """Return a row of one form of GELU: "reference", "mixed" or "custom"."""

    def row() -> Runs:
        a = np.random.default_rng(0).standard_normal((2, 512, 2048), dtype=np.float32)
        x = xp.asarray(a)

        def ours() -> None:
            if form == "custom":
                xp.eval(custom_gelu(x, xp.exp, xp.where))
            elif form == "mixed":
                xp.eval(x * (xp.special.erf(x / SQRT2) + 1) / 2)
            else:
                xp.eval(0.5 * x * (1 + xp.special.erf(x / SQRT2)))

        runs: dict[str, Callable[[], Any]] = {"passkit": ours}
        torch, scipy = optional("torch"), optional("scipy.special")
        if form == "custom":
            runs["numpy"] = lambda: custom_gelu(a, np.exp, np.where)
            runs["passkit, reference form"] = lambda: xp.eval(
                0.5 * x * (1 + xp.special.erf(x / SQRT2))
            )
        elif scipy is not None:
            runs["numpy and scipy"] = lambda: 0.5 * a * (1 + scipy.erf(a / np.float32(SQRT2)))
        if torch is not None:
            tensor = torch.from_numpy(a)
            if form == "custom":
                runs["torch"] = lambda: custom_gelu(tensor, torch.exp, torch.where)
            else:
                runs["torch"] = lambda: 0.5 * tensor * (1 + torch.erf(tensor / SQRT2))
        return runs

    return row


ROWS: dict[str, Callable[[], Runs]] = {
    "record": record,
    "flush46": flush46,
    "small": small,
    "chain20": chain20,
    "gelu_reference": gelu("reference"),
    "gelu_mixed": gelu("mixed"),
    "gelu_custom": gelu("custom"),
}


def cpu_name() -> str:
    """Return the model of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((n.partition(":")[2].strip() for n in lines if n.startswith("model name")), "")


def main() -> None:
    """Measure the rows, print them, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    report: dict[str, dict[str, float]] = {}
    for name, row in ROWS.items():
        if options.only not in name:
            continue
        report[name] = medians(row(), options.rounds)
        figures = ", ".join(f"{who} {s * 1e6:,.2f} us" for who, s in report[name].items())
        print(f"{name:16} {figures}", flush=True)
    if not options.only:
        body = {"date": str(date.today()), "cpu": cpu_name(), "rows": report}
        path = ROOT / "benchmarks" / "results" / "streams.json"
        path.write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    main()
