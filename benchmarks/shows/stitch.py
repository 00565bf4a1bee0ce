"""Demands on stitched kernels: any requested group becomes one correct, fast kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

import best_template
from attrs import asdict

import shows
from shows import ROOT, Demand, Figure, tests
from shows.operators import PEERS, rows_of


@cache
def measured(name: str) -> dict[str, dict[str, float]]:
    """Measure rows of the set "stitched".

    Returns:
        By row: the best peer over passkit, passkit over the hand-written kernel, unfused over
        fused.
    """
    ratios_by_row = {}
    for row in rows_of("stitched", [name], PEERS):
        times = times_of(row)
        ratios = {"peer": min(row["speedup"].values())}
        if "hand" in times:
            ratios["hand"] = times["passkit"] / times["hand"]
        if "unfused" in times:
            ratios["unfused"] = times["unfused"] / times["passkit"]
        ratios_by_row[row["name"]] = ratios
    return ratios_by_row


def times_of(row: dict[str, Any]) -> dict[str, float]:
    """Return the best seconds of each competitor of a row, over both modes."""
    return {
        name: min(modes[m]["median"] for m in ("dropped", "kept"))
        for name, modes in row["competitors"].items()
        if name not in row["failed"]
    }


def against_peers(longest: int, least: float) -> Figure:
    """Report the worst row of sequences up to 128, or of length ``longest`` if that is more."""
    rows = {
        name: r["peer"]
        for name, r in measured("attention").items()
        if (_length(name) <= 128 if longest <= 128 else _length(name) == longest)
    }
    worst = min(rows, key=lambda n: rows[n])
    text = f"{rows[worst]:.2f}: {worst}, the worst of {len(rows)} rows"
    return Figure(text, rows[worst] >= least, rows)


def by_hand() -> Figure:
    """Compare passkit with the hand-written kernel on its row."""
    rows = measured("attention")
    (ratio,) = (r["hand"] for n, r in rows.items() if n.endswith("64x94x32"))
    return Figure(f"{ratio:.2f}", ratio <= 1.25, rows)


def figure1(against: str, least: float) -> Figure:
    """Report the worst size against the best peer, or against passkit unfused."""
    rows = {name: r[against] for name, r in measured("figure1").items()}
    worst = min(rows, key=lambda n: rows[n])
    text = f"{rows[worst]:.2f}: {worst}, the worst of {len(rows)} rows"
    return Figure(text, rows[worst] >= least, rows)


def core_row(label: str, other: str, most: float, python: str = "") -> Figure:
    """Compare passkit's time with another competitor's on one row of the core set.

    Args:
        label: the label of the row.
        other: the competitor.
        most: the most allowed ratio of passkit's time to the other's.
        python: the interpreter; the peers' if empty.

    Raises:
        RuntimeError: the competitor did not run the row.
    """
    part = {"rows": label, "only": f"passkit,{other}", "python": python}
    (row,) = rows_of("core", label.split()[:1], {"passkit", other}, part)
    times = times_of(row)
    if other not in times:
        raise RuntimeError(f"{label}: {row['failed'].get(other, f'{other} has no such row')}")
    ratio = times["passkit"] / times[other]
    text = f"{ratio:.2f}: {times['passkit'] * 1e6:.0f} us, {other} {times[other] * 1e6:.0f} us"
    return Figure(text, ratio <= most, times)


def _length(label: str) -> int:
    """Return the sequence length in a label."""
    return int(label.split("x")[1])


def adam(row: str, least: float) -> Figure:
    """Report the best peer over passkit from the report of `adam.py`."""
    path = ROOT / "benchmarks" / "results" / "adam.json"
    if not path.exists():
        return Figure("not there: run benchmarks/adam.py in an interpreter with the peers", False)
    seconds: dict[str, Any] = json.loads(path.read_text())["seconds"][row]
    peers = {n: s / seconds["passkit"] for n, s in seconds.items() if n != "passkit"}
    best = min(peers, key=lambda n: peers[n])
    return Figure(f"{peers[best]:.2f}: {best}", peers[best] >= least, peers)


def campaign(*options: str) -> Figure:
    """Run the campaign over random groups and report its last line."""
    command = [sys.executable, str(ROOT / "benchmarks" / "fuzz_templates.py"), "--count", "5000"]
    command += ["--jobs", str(os.cpu_count() or 1), *options]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = (
        process.stdout.strip().splitlines() or process.stderr.strip().splitlines() or ["no output"]
    )
    return Figure(lines[-1], process.returncode == 0, lines[-30:])


def worst_default() -> Figure:
    """Report the kernel whose default is farthest from its best template."""
    rows = [row for name in best_template.KERNELS for row in best_template.rows_of(name)]
    worst = max(rows, key=lambda r: r.ratio)
    text = f"{worst.ratio:.2f}: {worst.name}, the worst of {len(rows)}"
    return Figure(text, worst.ratio <= 1.2, [asdict(r) for r in rows])


DEMANDS: tuple[Demand, ...] = (
    Demand(
        "propagation is sound over all classes, literal <= is not: tests pass",
        lambda: tests("tests/analysis"),
    ),
    Demand(
        "sharing, shrinking, dominance, 306 of 612 in every language: tests pass",
        lambda: tests("tests/analysis/test_slots.py", "tests/schedule/test_shared_plan.py"),
    ),
    Demand(
        "templates: round trips, positions, checks, enumeration: tests pass",
        lambda: tests(
            "tests/schedule/test_template.py",
            "tests/planner/test_template.py",
            "tests/schedule/test_template_loops.py",
            "tests/library/test_candidates.py",
        ),
    ),
    Demand(
        "an override changes text or owners, never results: tests pass",
        lambda: tests("tests/planner/test_template.py"),
    ),
    Demand("5,000 groups under all templates: C++ = blocks = interpreted", campaign, slow=True),
    Demand(
        "5,000 groups under all templates: CUDA and OpenCL texts compile",
        lambda: campaign("--texts"),
        slow=True,
    ),
    Demand("default / best template <= 1.2 on every kernel", worst_default, slow=True),
    Demand(
        "removing any wait is reported, races are found: tests pass",
        lambda: tests("tests/checks/test_stage_races.py", "tests/runtime/blocks"),
    ),
    Demand(
        "one kernel each at seven extents: tests pass",
        lambda: tests(
            "tests/planner/test_packs.py",
            *(f"tests/test_{n}.py" for n in ("stitched", "agreed", "unknown_tiles")),
        ),
    ),
    Demand(
        "attention, T <= 128: best peer / passkit >= 1.5",
        lambda: against_peers(128, 1.5),
        slow=True,
    ),
    Demand(
        "attention, T = 512: best peer / passkit >= 1.0", lambda: against_peers(512, 1.0), slow=True
    ),
    Demand("attention 64x94x32 <= 1.25 of the kernel by hand", by_hand, slow=True),
    Demand("figure1: best peer / passkit >= 2", lambda: figure1("peer", 2.0), slow=True),
    Demand("figure1: passkit unfused / passkit >= 3", lambda: figure1("unfused", 3.0), slow=True),
    Demand(
        "colsum 4096x1024 <= 1.25 of the kernel by hand",
        lambda: core_row("colsum 4096x1024", "hand", 1.25),
        slow=True,
    ),
    Demand(
        "softmax 4096x1024 <= ONNX Runtime's",
        lambda: core_row("softmax 4096x1024", "onnx", 1.0, shows.onnx_python),
        slow=True,
    ),
    Demand("adam: best peer / passkit >= 2", lambda: adam("adam 2^21", 2.0)),
    Demand("adam of 30 tensors: best peer / passkit >= 4", lambda: adam("adam30", 4.0)),
)
