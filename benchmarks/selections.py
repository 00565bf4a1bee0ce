"""Compare the selection of fusion plans with its greedy start, by the cost model and by the clock.

    python benchmarks/selections.py [--clock] [--only attention] [--random 200] [--papers]

For each graph: operators, patterns with a gain, rows and cuts of the integer programs, and the gain
and the kernels of three solvers: exact, beam search, greedy. With ``--clock`` each graph is
compiled with and without the selection, checked, and both are timed in turn.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest.mock import patch

import numpy as np
from attrs import evolve, frozen

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import planning  # noqa: E402  (after the path)
import scaling  # noqa: E402
from training.applications import APPLICATIONS  # noqa: E402
from training.micro import PROGRAMS  # noqa: E402
from training.passkit_steps import training_step  # noqa: E402

import passkit as pk  # noqa: E402
from passkit.analysis.group import Group  # noqa: E402
from passkit.frontends import tf_graphdef  # noqa: E402
from passkit.fusion.cluster_groups import ClusterGroups  # noqa: E402
from passkit.fusion.explore import Explorer  # noqa: E402
from passkit.fusion.score import Costs, Scorer, Seconds, modelled  # noqa: E402
from passkit.fusion.seed import seed_plan  # noqa: E402
from passkit.fusion.selection.exact import exact, greedy  # noqa: E402
from passkit.fusion.selection.problem import Selection  # noqa: E402
from passkit.graph.node import Entry  # noqa: E402
from passkit.passes.context import PassContext  # noqa: E402
from passkit.program.planning import DEFAULT_PIPELINE  # noqa: E402
from passkit.target import Target, cpu  # noqa: E402
from tests.frontends.tf_graphdef.reference.case import NETWORKS, stored  # noqa: E402
from tests.fusion.beam_search import beam  # noqa: E402
from tests.random_stitches import random_stitch  # noqa: E402

o = pk.ops
ANALYSES = ("Complete", "InferShape", "InferType")
BEFORE = [*DEFAULT_PIPELINE[: DEFAULT_PIPELINE.index("Fusion")], *ANALYSES]
BUDGET, STEPS, BATCH = 600, 16, 32
ATTENTION = ((64, 17, 32), (64, 94, 32), (64, 128, 64), (64, 512, 64))
FIGURE1 = ((512, 1, 8), (512, 32, 32), (2048, 1, 8))
SLOW = evolve(cpu(), launch=1e-4, bandwidth=1e6, meeting=0.0)
"""A machine with launches and memory so slow that small random graphs have much to gain."""
SELECTION_FUNCTION = "passkit.fusion.strategies.stitch.selected"


def attention(heads: int, rows: int, width: int) -> pk.Graph:
    """Return attention by primitives, with a mask."""
    q, k, v = (pk.var(n, (heads, rows, width)) for n in "qkv")
    s = o.matmul(q, k, transpose_b=True) * width**-0.5 + pk.var("mask", (rows, rows))
    e = o.exp(s - o.reduce_max(s, axis=-1, keepdims=True))
    return pk.Graph([o.matmul(e / o.reduce_sum(e, axis=-1, keepdims=True), v)])


def figure1(b: int, k: int, n: int) -> pk.Graph:
    """Return a stand-in for FusionStitching's figure 1: two products and two reductions."""
    q, keys, v = pk.var("q", (b, 94, k)), pk.var("k", (b, k, 94)), pk.var("v", (b, 94, n))
    x = o.matmul(q, keys) * 0.125 + pk.var("m", (94,))
    row_max = o.reduce_max(x, axis=-1, keepdims=True)
    e = o.exp(x - row_max)
    total = o.reduce_sum(e, axis=-1, keepdims=True)
    log, share = o.log(total), 1 / total
    y: Entry = o.matmul(e * share, v) * pk.var("g", (n,))
    return pk.Graph([share, log, y, row_max + log])


def workloads() -> Iterator[tuple[str, pk.Graph]]:
    """Yield graphs by name: kernels of papers, synthetic ones, and the tests' networks."""
    for sizes in ATTENTION:
        yield f"attention {'x'.join(map(str, sizes))}", attention(*sizes)
    for sizes in FIGURE1:
        yield f"figure1 {'x'.join(map(str, sizes))}", figure1(*sizes)
    for name, builder in planning.BUILDERS.items():
        yield f"small {name}", pk.Graph(builder(24))
    for name in ("transformer", "mixed", "wide"):
        yield name, scaling.SHAPES[name](150)
    for path in sorted(NETWORKS.glob("*.npz")):
        (case,) = stored(path)
        shapes = {k: (BATCH, *v.shape[1:]) if v.ndim else () for k, v in case.inputs.items()}
        yield path.stem, tf_graphdef.load(case.model, list(case.outputs), shapes)


def papers() -> Iterator[tuple[str, pk.Graph]]:
    """Yield the ten workloads of FusionStitching: six training steps, and four stand-ins."""
    for program in PROGRAMS:
        yield program.name, training_step(program, program.drawn()).graph
    for application in APPLICATIONS:
        yield application.name, application.graph()


@frozen
class SelectionRow:
    """The selections for a graph.

    Attributes:
        operators: number of operators.
        pool: number of candidate patterns with a gain.
        selections: the selection of each solver.
        kernels: number of kernels with each solver.
    """

    name: str
    operators: int
    pool: int
    selections: Mapping[str, Selection]
    kernels: Mapping[str, int]

    def __str__(self) -> str:
        best = self.selections["exact"]
        solvers = "  ".join(
            f"{solver} {s.gain * 1e6:9.1f} us {self.kernels[solver]:3}"
            for solver, s in self.selections.items()
        )
        return (
            f"{self.name:24} {self.operators:5} ops {self.pool:3} pay {best.rows:3} rows "
            f"{best.cuts:2} cuts  {solvers}  {best.solver}"
        )


def random_evaluator(seed: int) -> Seconds:
    """Return an evaluator that gives most kernels a short and some a long time, at random."""

    def seconds(group: Group, target: Target) -> float:
        return random.Random(f"{seed} {group.key}").choice((1e-6, 1e-6, 1e-5, 1e-4))

    return seconds


def selections(
    name: str, graph: pk.Graph, target: Target, seconds: Seconds = modelled, few: int = 0
) -> SelectionRow:
    """Choose patterns with the three solvers.

    Args:
        name: name of the row.
        graph: the graph, which is first prepared as in the pipeline.
        target: the machine.
        seconds: evaluator of kernels.
        few: passed to `exact`: so few patterns are enumerated instead of solved.
    """
    graph = pk.ApplyPasses(graph, BEFORE)
    with PassContext(target=target) as context:
        clusters = ClusterGroups(graph, seed_plan(graph, context), context)
        explorer = Explorer(clusters, Scorer(target, Costs(seconds), BUDGET))
        problem = explorer.run()
    by_solver = {"exact": exact(problem, few), "beam": beam(problem), "greedy": greedy(problem)}
    units = sum(clusters.is_open(k) and not clusters.takes_no_time[k] for k in range(len(clusters)))
    operators = len(clusters.quotient.cluster_of)
    kernels = {
        solver: units - sum(len(problem.patterns[k].members) - 1 for k in s.chosen)
        for solver, s in by_solver.items()
    }
    return SelectionRow(name, operators, len(problem.patterns), by_solver, kernels)


def random_rows(count: int) -> Iterator[SelectionRow]:
    """Yield rows of random graphs in which most fusions have a gain."""
    for seed in range(count):
        yield selections(
            f"random {seed}", random_stitch(seed, STEPS)[0], SLOW, random_evaluator(seed)
        )


@frozen
class PlanTimes:
    """Seconds of a graph without and with the selection; ``joined`` tells whether plans differ."""

    name: str
    start: float
    selected: float
    steps: tuple[int, int]
    joined: bool

    @property
    def ratio(self) -> float:
        """How many times longer the plan without selection takes."""
        return self.start / self.selected

    def __str__(self) -> str:
        if not self.joined:
            return f"{self.name:24} the same plan"
        return (
            f"{self.name:24} {self.start * 1e6:9.1f} -> {self.selected * 1e6:9.1f} us "
            f"x{self.ratio:.2f}, steps {self.steps[0]} -> {self.steps[1]}"
        )


def timed(name: str, graph: pk.Graph, seconds: float = 1.0) -> PlanTimes:
    """Compile both plans of a graph, compare results, and time them in turn (10th percentile)."""
    with patch(SELECTION_FUNCTION, lambda g, partition, *rest: (partition, None)):
        unselected = pk.compile(graph)
    selected = pk.compile(graph)
    steps = len(unselected.steps), len(selected.steps)
    if [k.key for k in unselected.kernels] == [k.key for k in selected.kernels]:
        return PlanTimes(name, 0.0, 0.0, steps, False)
    feeds = _feeds(selected)
    for a, b in zip(unselected(feeds), selected(feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    samples: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples[0]) < 10:
        for exe, times in zip((unselected, selected), samples, strict=True):
            start = time.perf_counter()
            exe(feeds)
            times.append(time.perf_counter() - start)
    best = [sorted(times)[len(times) // 10] for times in samples]
    return PlanTimes(name, best[0], best[1], steps, True)


def _feeds(exe: pk.Executable) -> dict[str, np.ndarray]:
    """Draw feeds for an executable."""
    draw = np.random.default_rng(0)
    feeds = {}
    for name, shape, dtype in exe.inputs:
        if "int" in str(dtype):
            feeds[name] = draw.integers(0, 4, shape).astype(str(dtype))
        elif str(dtype) == "bool":
            feeds[name] = draw.random(shape) < 0.5
        else:
            feeds[name] = (draw.standard_normal(shape) * 0.3).astype(str(dtype))
    return feeds


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--only", default="", help="graphs whose name contains this")
    parser.add_argument("--clock", action="store_true", help="compile and time both plans")
    parser.add_argument("--random", type=int, default=0, help="number of random graphs to add")
    parser.add_argument("--papers", action="store_true", help="FusionStitching's ten workloads")
    options = parser.parse_args()
    times = []
    for name, graph in papers() if options.papers else workloads():
        if options.only not in name:
            continue
        if options.clock:
            times.append(timed(name, graph))
            print(times[-1], flush=True)
        else:
            print(selections(name, graph, cpu()), flush=True)
    for row in random_rows(options.random):
        print(row, flush=True)
    ratios = [t.ratio for t in times if t.joined]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(
            f"{len(ratios)} of {len(times)} plans differ: geometric mean x{mean:.2f}, worst "
            f"x{min(ratios):.2f}, {os.cpu_count()} processors"
        )


if __name__ == "__main__":
    main()
