"""Demands on fusion plans: which groups are chosen, why, and how quickly.

Rows of training steps are those of `shows.training`; rows of a GPU are `show.py gpu`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import selections

from passkit.target import cpu
from shows import ROOT, Demand, Figure, tests, training

SEEDS, RANDOM, OPERATORS, FEWER = 10, 200, 30_000, 3_000
DOUBLED = (2_000, 4_000, 8_000)
SHAPES = ("chain", "wide", "mixed", "transformer")
DIGESTS = """
import hashlib, sys
sys.path[:0] = ["benchmarks", "."]
import scaling, selections
from passkit.program.planning import planned
digest = hashlib.sha256()
graphs = [g for n, g in selections.workloads() if n.startswith(("attention", "figure1", "small"))]
for graph in [*graphs, *(scaling.SHAPES[s](300) for s in scaling.SHAPES)]:
    done = planned(graph, "CodeGen")
    for node in done.nodes:
        if node in done.attrs["subgraph"]:
            digest.update(node.params["body"].key.encode())
            digest.update(done.attrs["kernel"][node].source.encode())
print(digest.hexdigest())
"""


PLANNING = """
import json, sys, time
sys.path[:0] = ["benchmarks", "."]
import passkit as pk
from passkit.program.planning import DEFAULT_PIPELINE
from training.micro import PROGRAMS
from training.passkit_steps import training_step
graph = training_step(PROGRAMS[2], PROGRAMS[2].drawn()).graph
first = DEFAULT_PIPELINE.index("Fusion")
before, rest = DEFAULT_PIPELINE[:first], DEFAULT_PIPELINE[first:]
graph = pk.ApplyPasses(graph, before)
begin = time.process_time()
done = pk.ApplyPasses(graph, rest[:rest.index("SharedMemPlan") + 1])
seconds = time.process_time() - begin
groups = [g.key for g in done.attrs["subgraph"].values()]
print(json.dumps([seconds, len(groups), len(set(groups))]))
"""


def table(rows_of_graphs: Iterable[selections.SelectionRow]) -> Figure:
    """Sum up selections; met if no exact selection gains less than another solver's."""
    rows = list(rows_of_graphs)
    worse = [
        r.name
        for r in rows
        if max(r.selections["beam"].gain, r.selections["greedy"].gain)
        > r.selections["exact"].gain * (1 + 1e-9)
    ]
    pool, cuts = sum(r.pool for r in rows), sum(r.selections["exact"].cuts for r in rows)
    kernels = {
        solver: sum(r.kernels[solver] for r in rows) for solver in ("exact", "beam", "greedy")
    }
    gains = {
        solver: sum(r.selections[solver].gain for r in rows)
        / (sum(r.selections["exact"].gain for r in rows) or 1)
        for solver in kernels
    }
    text = f"{len(worse)} below; {len(rows)} graphs, {pool} patterns, {cuts} cuts; " + ", ".join(
        f"{solver} {gains[solver]:.3f} of the gain, {kernels[solver]} kernels" for solver in kernels
    )
    return Figure(text, not worse, list(map(str, rows)))


def planned(graphs: Iterable[tuple[str, Any]]) -> Iterator[selections.SelectionRow]:
    """Yield the selections for graphs given by name."""
    return (selections.selections(n, g, cpu()) for n, g in graphs)


def ordered() -> Figure:
    """Report the launches of the ten workloads by strategy."""
    steps, others = training.ordered(), training.applications()
    text = "; ".join(f.text.partition(": ")[2] for f in (steps, others))
    return Figure(text, bool(steps.met and others.met), [steps.data, others.data])


def clock() -> Figure:
    """Time both plans of each workload in turn; the worst counts."""
    times = [selections.timed(n, g) for n, g in selections.workloads()]
    changed = [t for t in times if t.joined]
    worst, best = (f(changed, key=lambda t: t.ratio) for f in (min, max))
    text = (
        f"{len(changed)} of {len(times)} plans differ; worst {worst.ratio:.2f} {worst.name}, best "
        f"{best.ratio:.2f} {best.name}"
    )
    return Figure(text, worst.ratio >= 0.95, list(map(str, times)))


def hash_seeds() -> Figure:
    """Compare digests of plans and sources of processes with different hash seeds."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGESTS],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(SEEDS)
    }
    return Figure(f"{len(digests)} different of {SEEDS}", len(digests) == 1, sorted(digests))


@cache
def _scaled(shape: str, count: int) -> dict[str, Any]:
    """Run `scaling.py` on one shape and count, and return its row."""
    command = [sys.executable, "benchmarks/scaling.py", "--once", f"{shape},{count}"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    row: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return row


def large() -> Figure:
    """Report the slowest shape up to CodeGen in CPU seconds, since the passes use one thread."""
    rows = [_scaled(s, OPERATORS) for s in SHAPES]
    worst = max(rows, key=lambda r: r["cpu_seconds"])
    return Figure(
        f"{worst['cpu_seconds']:.1f} s: {worst['shape']}, {worst['operators']} operators",
        worst["cpu_seconds"] <= 40,
        rows,
    )


def growth() -> Figure:
    """Report how the time per operator grows in a graph that is ten times as large."""
    ratios = {}
    for shape in SHAPES:
        small, big = _scaled(shape, FEWER), _scaled(shape, OPERATORS)
        each = (r["cpu_seconds"] / r["operators"] for r in (big, small))
        ratios[shape] = next(each) / next(each)
    worst = max(ratios, key=lambda s: ratios[s])
    return Figure(f"{ratios[worst]:.2f}: {worst}", ratios[worst] <= 1.5, ratios)


def doubling() -> Figure:
    """Report the ratio of CPU seconds for twice as many operators, up to CodeGen."""
    ratios = {}
    for shape in SHAPES:
        seconds = [_scaled(shape, n)["cpu_seconds"] for n in DOUBLED]
        ratios[shape] = max(b / a for a, b in pairwise(seconds))
    worst = max(ratios, key=lambda s: ratios[s])
    return Figure(f"{ratios[worst]:.2f}: {worst}", ratios[worst] <= 2.5, ratios)


def recurrent() -> Figure:
    """Time Fusion, SchedulePlan and SharedMemPlan on the training step of bi-rnn."""
    process = subprocess.run(
        [sys.executable, "-c", PLANNING], cwd=ROOT, capture_output=True, text=True, check=True
    )
    seconds, groups, kinds = json.loads(process.stdout)
    return Figure(
        f"{seconds:.1f} s; {groups} kernels, {kinds} of them different",
        seconds <= 60 and kinds < groups,
        [seconds, groups, kinds],
    )


SELECTION = "tests/fusion/test_selection.py"
TRAINING = "tests/benchmarks/test_training.py"
DEMANDS: tuple[Demand, ...] = (
    Demand(
        "spans, sub-graph and intra-layer fusion without cycles: tests pass",
        lambda: tests("tests/fusion/test_deep.py"),
    ),
    Demand(
        "results that agree on splits, as trying all of them finds: tests pass",
        lambda: tests("tests/analysis/test_tiling_search.py"),
    ),
    Demand(
        "selections equal brute force up to 12 operators, one cut for two: tests pass",
        lambda: tests(SELECTION),
    ),
    Demand(
        "strictly better than greed on a constructed family: tests pass",
        lambda: tests(f"{SELECTION}::test_greed_is_strictly_worse_where_it_must_be"),
    ),
    Demand(
        "substitution and exploration, budgets, memo: tests pass",
        lambda: tests("tests/fusion/test_substitution.py", "tests/fusion/test_explore.py"),
    ),
    Demand(
        "never slower than the start by its evaluator, reasons, hints, fuel: tests pass",
        lambda: tests(
            "tests/fusion/test_select.py",
            "tests/passes/test_fusion_hints.py",
            "tests/reporting/test_bisection.py",
        ),
    ),
    Demand(
        "each edge of a graph has a reason with data: tests pass",
        lambda: tests("tests/fusion/test_fusion.py", TRAINING, only="edge or reference"),
    ),
    Demand(
        "the clock picks every template and every rival; none is measured twice: tests pass",
        lambda: tests("tests/tuning/test_tuner.py", "tests/tuning/test_rivals.py"),
    ),
    Demand(
        "`kill -9` of a worker, of the tuner; two writers; versions: tests pass",
        lambda: tests("tests/tuning", "tests/library", only="kill or writers or record"),
    ),
    Demand(
        "twenty runs by threads have the same bits: tests pass",
        lambda: tests("tests/runtime/native/test_team.py"),
    ),
    Demand(
        "ten workloads: exact never below beam or greedy",
        lambda: table(planned(selections.papers())),
        slow=True,
    ),
    Demand(
        "kernels and networks: exact never below beam or greedy",
        lambda: table(planned(selections.workloads())),
    ),
    Demand(
        f"{RANDOM} random graphs: exact never below beam or greedy",
        lambda: table(selections.random_rows(RANDOM)),
    ),
    Demand(
        "first losses of six programs: tests pass", lambda: tests(TRAINING, only="first_losses")
    ),
    Demand(
        "loss, gradients, updates of six programs, 3 steps: error <= 1e-4",
        training.agreement,
        slow=True,
    ),
    Demand("launches: stitch < xla < unfused on all ten", ordered, slow=True),
    *(
        Demand(
            f"TensorFlow's operators a launch, {name}: > {most}",
            lambda name=name: training.ratio(name),
            slow=True,
        )  # type: ignore[misc]
        for name, most in training.PAPER.items()
    ),
    Demand("selected plans >= 0.95 of greedy's start by the clock, on all", clock, slow=True),
    Demand(
        "best of PyTorch and JAX / passkit >= 1.4, none < 1.0: six programs",
        training.micro,
        slow=True,
    ),
    Demand("the same on a GPU", lambda: Figure("python benchmarks/show.py gpu", None)),
    Demand(f"plans and sources equal under {SEEDS} hash seeds", hash_seeds, slow=True),
    Demand(
        "bi-rnn: Fusion, SchedulePlan, SharedMemPlan <= 60 s, equal groups once",
        recurrent,
        slow=True,
    ),
    Demand("twice the operators take <= 2.5 times as long", doubling, slow=True),
    Demand(f"{OPERATORS} operators through CodeGen <= 40 s", large, slow=True),
    Demand("growth of time per operator <= 1.5 a decade", growth, slow=True),
    Demand("bi-rnn compiles in <= 15 s cold, <= 0.3 s warm", training.start_up, slow=True),
)
