"""Demands on every operator and its gradient: its values in every dtype, and its speed."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import shows
from shows import RESULTS, ROOT, Demand, Figure, tests
from shows.records import recorded
from tests.ops.test_gradients import NO_GRADIENT
from tests.random_graphs.registry import standard_ops

PEERS = {"eager", "compile", "jax"}
ROUNDS = 9
"""Series of each competitor and row: medians of five vary by a fifth on a busy machine."""


# Speed


@cache
def comparison(name: str, rows: str = "", only: str = "", python: str = "") -> dict[str, Any]:
    """Run `compare.py` on a set and return its report.

    Args:
        name: the set.
        rows: a part of the labels of its rows; all if empty.
        only: competitors, separated by commas; the default ones if empty.
        python: the interpreter; the peers' if empty.

    Raises:
        RuntimeError: there is no report.
    """
    report = RESULTS / f"show-{'-'.join([name, *rows.split()[:1]])}.json"
    report.unlink(missing_ok=True)
    command = [python or shows.peers_python, str(ROOT / "benchmarks" / "compare.py")]
    command += ["--set", name, "--name", report.stem, "--rounds", str(ROUNDS)]
    command += [*(("--rows", rows) if rows else ()), *(("--only", only) if only else ())]
    process = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if not report.exists():
        lines = process.stderr.strip().splitlines() or ["no report"]
        raise RuntimeError(f"compare.py --set {name}: {lines[-1]}")
    report_json: dict[str, Any] = json.loads(report.read_text())
    return report_json


def rows_of(
    kind: str, names: Iterable[str], needs: set[str], part: Mapping[str, str] = MappingProxyType({})
) -> list[dict[str, Any]]:
    """Return the rows of a set whose labels contain one of ``names``.

    Args:
        kind: the set.
        names: parts of labels.
        needs: competitors that must have run.
        part: keyword arguments of `comparison`, to measure less.

    Raises:
        RuntimeError: a competitor is not installed, there is no such row, or passkit failed.
    """
    report = comparison(kind, **part)
    missing = needs - set(report["settings"])
    if missing:
        option = "--onnx" if "onnx" in missing else "--peers"
        raise RuntimeError(f"without {', '.join(sorted(missing))}; {option} names a Python with it")
    named = [(r["name"].split()[0], r) for r in report["rows"]]
    rows = [r for label, r in named if any(name in label for name in names)]
    absent = {name for name in names if not any(name in label for label, _ in named)}
    if absent:
        raise RuntimeError(f"compare.py --set {kind} has no row {', '.join(sorted(absent))}")
    failed = [f"{r['name']}: {r['failed']['passkit']}" for r in rows if "passkit" in r["failed"]]
    if failed:
        raise RuntimeError(failed[0])
    return rows


def faster(
    kind: str, names: str, least: float, needs: set[str] | None = None, only: str = ""
) -> Figure:
    """Compare the best peer over passkit on some rows of a set; the worst row counts.

    Args:
        kind: the set.
        names: parts of labels, separated by spaces.
        least: the least allowed ratio.
        needs: competitors that must have run; all peers by default.
        only: competitors to run, separated by commas.

    Raises:
        RuntimeError: no competitor ran these rows, or as `rows_of`.
    """
    part = {"only": only} if only else {}
    rows = rows_of(kind, names.split(), PEERS if needs is None else needs, part)
    speedups = {r["name"]: min(r["speedup"].values()) for r in rows if r["speedup"]}
    if not speedups:
        raise RuntimeError(f"no peer ran {names}")
    worst = min(speedups, key=lambda n: speedups[n])
    text = f"{speedups[worst]:.2f}: {worst}, the worst of {len(speedups)} rows"
    return Figure(text, speedups[worst] >= least, speedups)


def fullsum() -> Figure:
    """Compare a sum of 64 MB with scaling them, which moves twice the bytes."""
    rows = rows_of("reductions", ["fullsum", "scale"], set())
    largest = {
        name: max((r for r in rows if r["name"].split()[0] == name), key=lambda r: r["nbytes"])
        for name in ("fullsum", "scale")
    }
    seconds = {
        name: min(row["competitors"]["passkit"][mode]["median"] for mode in ("dropped", "kept"))
        for name, row in largest.items()
    }
    ratio = seconds["fullsum"] / (seconds["scale"] / 2)
    text = f"{ratio:.2f} of copying's time a byte, {largest['fullsum']['name']}"
    if "hand_kernel" in largest["fullsum"]:
        seconds["hand"] = largest["fullsum"]["hand_kernel"]
        text += f"; a loop in C++ that only reads {seconds['hand'] / (seconds['scale'] / 2):.2f}"
    return Figure(text, ratio <= 1.15, seconds)


# Proof


def without_gradient() -> Figure:
    """Report the operators that have no derivative, each of which needs a reason."""
    unexplained = [name for name, reason in NO_GRADIENT.items() if len(reason) < 10]
    return Figure(
        f"{len(NO_GRADIENT)} names", len(NO_GRADIENT) <= 25 and not unexplained, NO_GRADIENT
    )


def how_many() -> Figure:
    """Count the operators of the library, without aliases."""
    return Figure(f"{len(standard_ops())} operators", len(standard_ops()) >= 170, standard_ops())


def page() -> Figure:
    """Report whether the generated table of operators is up to date."""
    path = ROOT / "docs" / "operators.md"
    if not path.exists():
        return Figure("not there: docs/operators.md", False)
    rows = sum(line.startswith("| `") for line in path.read_text().splitlines())
    fresh = tests("tests/reporting/test_operator_summary.py")
    return Figure(f"{rows} rows; {fresh.text}", fresh.met, rows)


def entire_suite() -> Figure:
    """Time every test, on the CPUs of this machine."""
    start = time.perf_counter()
    figure = tests("tests", timeout=3600)
    seconds = time.perf_counter() - start
    return Figure(f"{seconds:.0f} s: {figure.text}", figure.met and seconds < 480, seconds)


NONE_SLOWER = {
    "cumsum": ("reductions", "cumsum"),
    "softmax over a middle axis": ("reductions", "softmax_middle"),
    "transpose and add": ("moves", "transpose_add to_nhwc_add to_nchw_add"),
    "concat and scale": ("moves", "concat"),
    "gather and scale": ("moves", "gather"),
    "a chain of strided slices": ("moves", "slices thinned"),
}
"""Demands that no peer is faster: the set and the names of rows."""

FASTER = {
    "column sums": "colsum",
    "batch statistics": "batch_nhwc batch_nchw",
}
"""Rows of the set `reductions` on which every peer must take 1.5 times as long."""

LIKE_PYTORCH = {
    "conv 3x3": "conv3x3",
    "depthwise": "depthwise",
    "pool": "pool",
    "batch norm + relu": "norm_relu",
}
"""Rows of the set `convolutions`."""

DEMANDS: tuple[Demand, ...] = (
    Demand("170 operators or more", how_many),
    Demand("a generated table of op, dtype and how it runs on cpu", page),
    Demand(
        "every operator and dtype equals NumPy: tests pass",
        lambda: tests("tests/ops/test_values.py"),
    ),
    Demand(
        "every float input against central differences: tests pass",
        lambda: tests("tests/ops/test_gradients.py"),
    ),
    Demand("operators without a derivative: <= 25 names, with reasons", without_gradient),
    Demand(
        "reductions bit-equal at 1, 2, 4 threads: tests pass",
        lambda: tests("tests/passes/test_split_reduce.py", "tests/ops/test_scans.py", usual=True),
    ),
    Demand("fullsum <= 1.15 of copy bandwidth, beyond cache", fullsum, slow=True),
    *(
        Demand(
            f"best peer / passkit >= 1.5: {label}",
            lambda names=names: faster("reductions", names, 1.5),
            slow=True,
        )
        for label, names in FASTER.items()
    ),
    *(
        Demand(
            f"best peer / passkit >= 1: {label}",
            lambda kind=kind, names=names: faster(kind, names, 1.0),
            slow=True,
        )
        for label, (kind, names) in NONE_SLOWER.items()
    ),
    *(
        Demand(
            f"PyTorch / passkit >= 0.9: {label}",
            lambda names=names: faster("convolutions", names, 0.9, {"eager"}),
            slow=True,
        )
        for label, names in LIKE_PYTORCH.items()
    ),
    Demand(
        "convolutions without oneDNN: tests pass",
        lambda: tests("tests/runtime/native/test_convolution.py"),
    ),
    Demand(
        "fuzz: 300 graphs over all operators, forward and backward",
        lambda: tests("tests/test_fuzz.py"),
    ),
    Demand("fuzz: 20,000 graphs, last run", lambda: recorded("fuzz.txt", 20_000)),
    Demand("the whole suite < 8 minutes", entire_suite, slow=True),
)
