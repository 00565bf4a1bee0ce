"""Fusion plans: which groups to make, why, how well and how soon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

import selections

from passkit.plan.target import cpu
from shows import ROOT, Demand, Figure, tests

SEEDS, RANDOM, OPERATORS, FEWER = 10, 200, 30_000, 3_000
SHAPES = ("chain", "wide", "mixed", "transformer")
DIGESTS = """
import hashlib, sys
sys.path[:0] = ["benchmarks", "."]
import scaling, selections
from passkit.program.planning import planned
found = hashlib.sha256()
graphs = [g for n, g in selections.workloads() if n.startswith(("attention", "figure1", "small"))]
for graph in [*graphs, *(scaling.SHAPES[s](300) for s in scaling.SHAPES)]:
    done = planned(graph, "CodeGen")
    for node in done.nodes:
        if node in done.attrs["subgraph"]:
            found.update(node.params["body"].key.encode())
            found.update(done.attrs["kernel"][node].source.encode())
print(found.hexdigest())
"""


@cache
def _rows(random: bool) -> tuple[selections.Row, ...]:
    if random:
        return tuple(selections.random_rows(RANDOM))
    return tuple(selections.selections(n, g, cpu()) for n, g in selections.workloads())


def table(random: bool) -> Figure:
    """Pools, rows, cuts, gains and kernels; exact selections gain no less than others."""
    rows = _rows(random)
    below = [
        r.name for r in rows
        if max(r.found["beam"].gain, r.found["greedy"].gain) > r.found["exact"].gain * (1 + 1e-9)
    ]  # fmt: skip
    pool, cuts = sum(r.pool for r in rows), sum(r.found["exact"].cuts for r in rows)
    kernels = {way: sum(r.kernels[way] for r in rows) for way in ("exact", "beam", "greedy")}
    gains = {
        way: sum(r.found[way].gain for r in rows) / (sum(r.found["exact"].gain for r in rows) or 1)
        for way in kernels
    }
    text = f"{len(below)} below; {len(rows)} graphs, {pool} patterns, {cuts} cuts; " + ", ".join(
        f"{way} {gains[way]:.3f} of the gain, {kernels[way]} kernels" for way in kernels
    )
    return Figure(text, not below, list(map(str, rows)))


def clock() -> Figure:
    """Both plans of each workload, in turn, by the clock."""
    times = [selections.timed(n, g) for n, g in selections.workloads()]
    changed = [t for t in times if t.joined]
    worst, best = (f(changed, key=lambda t: t.ratio) for f in (min, max))
    text = (
        f"{len(changed)} of {len(times)} plans differ; worst {worst.ratio:.2f} {worst.name}, best "
        f"{best.ratio:.2f} {best.name}"
    )
    return Figure(text, worst.ratio >= 0.95, list(map(str, times)))


def hash_seeds() -> Figure:
    """Digests of plans and sources, one process for each hash seed."""
    found = {
        subprocess.run(
            [sys.executable, "-c", DIGESTS], cwd=ROOT, capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(SEEDS)
    }  # fmt: skip
    return Figure(f"{len(found)} different of {SEEDS}", len(found) == 1, sorted(found))


@cache
def _scaled(shape: str, count: int) -> dict[str, Any]:
    command = [sys.executable, "benchmarks/scaling.py", "--once", f"{shape},{count}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def large() -> Figure:
    """The longest of the shapes up to CodeGen, in CPU seconds: the passes use one thread."""
    rows = [_scaled(s, OPERATORS) for s in SHAPES]
    worst = max(rows, key=lambda r: r["cpu_seconds"])
    return Figure(
        f"{worst['cpu_seconds']:.1f} s: {worst['shape']}, {worst['operators']} operators",
        worst["cpu_seconds"] <= 40, rows,
    )  # fmt: skip


def growth() -> Figure:
    """How much longer an operator takes in a graph that is ten times as large."""
    ratios = {}
    for shape in SHAPES:
        small, big = _scaled(shape, FEWER), _scaled(shape, OPERATORS)
        each = (r["cpu_seconds"] / r["operators"] for r in (big, small))
        ratios[shape] = next(each) / next(each)
    worst = max(ratios, key=lambda s: ratios[s])
    return Figure(f"{ratios[worst]:.2f}: {worst}", ratios[worst] <= 1.5, ratios)


SELECTION = "tests/selection/test_selection.py"
DEMANDS: tuple[Demand, ...] = (
    Demand("spans, sub-graph and intra-layer fusion without cycles: tests pass",
           lambda: tests("tests/passes/test_deep.py")),
    Demand("selections equal brute force up to 12 operators, one cut for two: tests pass",
           lambda: tests(SELECTION)),
    Demand("strictly better than greed on a constructed family: tests pass",
           lambda: tests(f"{SELECTION}::test_greed_is_strictly_worse_where_it_must_be")),
    Demand("substitution and exploration, budgets, memo: tests pass",
           lambda: tests("tests/selection/test_patterns.py")),
    Demand("never slower than the start by its evaluator, reasons, hints, fuel: tests pass",
           lambda: tests("tests/passes/test_select.py", "tests/passes/test_hints.py",
                         "tests/reporting/test_bisection.py")),
    Demand("workloads: exact never below beam or greedy", lambda: table(random=False)),
    Demand(f"{RANDOM} random graphs: exact never below beam or greedy",
           lambda: table(random=True)),
    Demand("selected plans >= 0.95 of greedy's start by the clock, on all", clock, slow=True),
    Demand(f"plans and sources equal under {SEEDS} hash seeds", hash_seeds, slow=True),
    Demand(f"{OPERATORS} operators through CodeGen <= 40 s", large, slow=True),
    Demand("growth of time per operator <= 1.5 a decade", growth, slow=True),
)  # fmt: skip
