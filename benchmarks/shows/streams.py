"""Demands on operation streams and `passkit.xp`: behaviours by tests, costs by `streams.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import shows
from shows import ROOT, Demand, Figure, ended, tests
from shows.records import recorded_ocean_model, recorded_suite

STREAMS = "tests/streams"
XP = "tests/frontends/xp"


def passing(*paths: str, only: str = "") -> Callable[[], Figure]:
    """Return a measurement that runs tests; it is met when all of them pass."""
    return lambda: tests(*paths, only=only)


@cache
def report() -> dict[str, dict[str, float]]:
    """Run `streams.py` in the Python with the competitors; return seconds by row and competitor.

    Raises: RuntimeError if it fails.
    """
    command = [shows.peers_python, str(ROOT / "benchmarks" / "streams.py")]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if process.returncode:
        raise RuntimeError((process.stderr.strip().splitlines() or ["it failed"])[-1])
    path = ROOT / "benchmarks" / "results" / "streams.json"
    return json.loads(path.read_text())["rows"]  # type: ignore[no-any-return]


def recording() -> Figure:
    """Return the cost of queueing one operation."""
    each = report()["record"]["passkit, 100 operations"] / 100
    return Figure(f"{each * 1e6:.2f} us an operation", each <= 1.5e-6, each)


def flushing() -> Figure:
    """Return the cost of executing 46 queued operations on small arrays, by a known plan."""
    row = report()["flush46"]
    seconds = row["recorded and executed"] - row["recorded"]
    return Figure(f"{seconds * 1e6:.1f} us", seconds <= 60e-6, seconds)


def training_loops() -> Figure:
    """Compare training loops with gradients in `passkit.xp` with the same as compiled graphs."""
    command = [shows.peers_python, str(ROOT / "benchmarks" / "xp_training.py")]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if process.returncode:
        raise RuntimeError((process.stderr.strip().splitlines() or ["it failed"])[-1])
    path = ROOT / "benchmarks" / "results" / "xp_training.json"
    rows = json.loads(path.read_text())["rows"]
    ratios = {name: row["value_and_grad"] / row["graph"] for name, row in rows.items()}
    text = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    return Figure(text, max(ratios.values()) <= 1.2, max(ratios.values()))


def small_arrays() -> Figure:
    """Return the cost of one operation on small arrays, over NumPy's."""
    row = report()["small"]
    ratio = row["passkit"] / row["numpy"]
    return Figure(f"{ratio:.1f} times NumPy's", ratio <= 5, ratio)


def chain() -> Figure:
    """Compare a chain of 20 operations on 1,000 elements with every competitor."""
    row = report()["chain20"]
    ratios = {who: seconds / row["passkit"] for who, seconds in row.items() if who != "passkit"}
    text = ", ".join(f"{who} {ratio:.2f}" for who, ratio in ratios.items())
    return Figure(f"competitor / passkit: {text}", min(ratios.values()) >= 1, row)


def long_loop() -> Figure:
    """Run a loop of a million operations, which must not take more memory, plans or files."""
    environ = {**os.environ, "PASSKIT_LONG_LOOP": "1000000"}
    command = [sys.executable, "-m", "pytest", "-q", f"{STREAMS}/test_memory.py", "-k", "long_loop"]
    process = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environ, check=False
    )
    lines = process.stdout.strip().splitlines() or ["no output"]
    return Figure(lines[-1], process.returncode == 0)


def campaign() -> Figure:
    """Run 10,000 random programs, and compare them with NumPy."""
    command = [sys.executable, "benchmarks/fuzz_streams.py", "--count", "10000", "--compiled", "20"]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    lines = process.stdout.strip().splitlines() or [process.stderr.strip()[-200:]]
    return Figure(lines[-1], process.returncode == 0)


def custom_gelu() -> Figure:
    """Compare GELU with an erf of the user's own with NumPy, and with the reference form."""
    row = report()["gelu_custom"]
    gain = row["numpy"] / row["passkit"]
    over = row["passkit"] / row["passkit, reference form"]
    text = f"NumPy / passkit {gain:.1f}, custom / reference form {over:.2f}"
    return Figure(text, gain >= 10 and over <= 1.3, row)


def measured(script: str, *options: str) -> dict[str, Any]:
    """Run a benchmark in the Python with the competitors; return its report in results/.

    Raises: RuntimeError if it fails.
    """
    path = shows.RESULTS / Path(script).with_suffix(".json").name
    command = [shows.peers_python, str(ROOT / "benchmarks" / script), *options]
    command += ["--json", str(path)]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if process.returncode:
        raise RuntimeError((process.stderr.strip().splitlines() or ["it failed"])[-1])
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def single_kernels() -> Figure:
    """Compare kernels of one operation on OpenCL with basic ones, by the device's clock."""
    names = ("a + b", "chain of 1", "rowwise_sum(a)", "colwise_sum(a)", "sum_2d(a)")
    rows = [row for row in measured("stan.py")["rows"] if row["row"] in names]
    ratios = {row["row"]: row["fused"] / row["basic"] for row in rows}
    text = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    return Figure(text, max(ratios.values()) <= 1.1 and all(r["right"] for r in rows), ratios)


def single_operations(device: str) -> Figure:
    """Compare calls of one operation of xp with calls of basic kernels, of every size."""
    rows = measured("single_operations.py", "--device", device)[device]["rows"]
    worst: dict[int, tuple[float, str]] = {}
    for row in rows:
        pair = row["ratios"]["median"], row["operation"]
        worst[row["elements"]] = max(pair, worst.get(row["elements"], (0.0, "")))
    text = ", ".join(f"{n:,} {ratio:.2f} ({name})" for n, (ratio, name) in worst.items())
    return Figure(f"worst by size: {text}", max(worst.values())[0] <= 1.1, rows)


def linear_models(device: str, by: str) -> Figure:
    """Compare generalized linear models with kernels written by hand, the competitor ``by``."""
    rows = measured("densities.py", "--device", device)[device]["rows"]
    ratios = {
        name: row["xp"]["median"] / row[by]["median"]
        for name, row in rows.items()
        if "_glm_" in name
    }
    text = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    return Figure(text, max(ratios.values()) <= 1.2, rows)


DEMANDS = [
    Demand(
        "1. Burn's traces; the trie decides as lists of plans do, on 10,000 programs",
        passing(f"{STREAMS}/test_trie.py"),
    ),
    Demand(
        "2, 10, 12, 14. bytes of Burn's example, results in place, liveness, nothing is left",
        passing(f"{STREAMS}/test_liveness.py"),
    ),
    Demand(
        "3, 20. GELU's three forms are one kernel each; reductions fuse",
        passing(f"{STREAMS}/test_fusion.py"),
    ),
    Demand(
        "4-8. plans serve other sizes and numbers; loops explore once",
        passing(f"{STREAMS}/test_reuse.py"),
    ),
    Demand("11. no result over an array that is needed", passing(f"{STREAMS}/test_aliasing.py")),
    Demand(
        "13, 19. random programs equal NumPy in both modes",
        passing(f"{STREAMS}/test_random_programs.py"),
    ),
    Demand(
        "15. what executes, and why: evaluation, settings, inspection",
        passing(f"{XP}/test_control.py"),
    ),
    Demand(
        "16, 17. threads, forks, interruptions, failures", passing(f"{STREAMS}/test_threads.py")
    ),
    Demand("18. plans on disk", passing(f"{STREAMS}/test_plan_file.py")),
    Demand(
        "reading x[i, j] or a slice computes that slice only",
        passing(
            f"{STREAMS}/test_fusion.py",
            "tests/passes/test_push_slices.py",
            only="slices or element",
        ),
    ),
    Demand(
        "21, 22. triangular views, densities and checks in one kernel, statements share results",
        passing(
            f"{XP}/test_views.py",
            f"{XP}/test_checks.py",
            f"{XP}/test_densities.py",
            f"{XP}/test_custom_kernels.py",
            f"{XP}/test_statements.py",
        ),
    ),
    Demand("the recorders in C and Python agree", passing(f"{STREAMS}/test_recorder.py")),
    Demand("memory of programs that never repeat", passing(f"{STREAMS}/test_memory.py")),
    Demand("23, 24. the array API: tests of every family", passing(XP)),
    Demand(
        "24. array-api-tests 2024.12: nothing fails that passes with NumPy",
        lambda: ended(["benchmarks/array_api.py", "--suite", shows.suite], "--suite"),
        slow=True,
    ),
    Demand("SciPy's tests: as many pass as with PyTorch or JAX", lambda: recorded_suite("scipy")),
    Demand(
        "scikit-learn's tests: as many pass as with PyTorch or JAX",
        lambda: recorded_suite("sklearn"),
    ),
    Demand(
        "pyhpc-benchmarks: fastest in the geometric mean, never slower than NumPy",
        recorded_ocean_model,
    ),
    Demand("25. recording <= 1.5 us an operation", recording, slow=True),
    Demand("25. a warm flush of 46 operations <= 60 us", flushing, slow=True),
    Demand("25. small arrays <= 5 times NumPy", small_arrays, slow=True),
    Demand("a gradient-descent loop within 1.2 times a compiled graph", training_loops, slow=True),
    Demand("gradients: one plan for each iteration", passing(f"{XP}/test_gradients.py")),
    Demand("a chain of 20 operations on 1,000 elements: fastest of all", chain, slow=True),
    Demand("10,000 random programs equal NumPy in both modes", campaign, slow=True),
    Demand("a million operations: memory, plans and files stay flat", long_loop, slow=True),
    Demand(
        "3. custom erf >= 10 times NumPy and <= 1.3 of the reference form", custom_gelu, slow=True
    ),
    Demand(
        "Stan: kernels of one operation <= 1.1 times basic kernels, OpenCL",
        single_kernels,
        slow=True,
    ),
    Demand(
        "Stan: calls of one operation <= 1.1 times basic kernels, CPU",
        lambda: single_operations("cpu"),
        slow=True,
    ),
    Demand(
        "Stan: calls of one operation <= 1.1 times basic kernels, OpenCL",
        lambda: single_operations("opencl:0"),
        slow=True,
    ),
    Demand(
        "Stan: linear models <= 1.2 times kernels by hand in one pass, CPU",
        lambda: linear_models("cpu", "hand"),
        slow=True,
    ),
    Demand(
        "Stan: linear models <= 1.2 times Stan's kernels by hand, OpenCL",
        lambda: linear_models("opencl:0", "hand, as Stan"),
        slow=True,
    ),
]
"""Demands by the numbers of the behaviours that streams must show."""
