"""Measure the gain of tuning: each kernel as the cost model plans it against the tuned one.

    python benchmarks/tuning.py [NAME …] [--budget 8] [--keep] [--json FILE]

The kernels are those of `best_template.py`, to which the model was fitted, and as many others. Each
is tuned in worker processes, then both are called in turn, on inputs that tuning did not use.
Prints a line for each kernel: the ratio, both times, the number of measured templates and the
seconds, and whether the bits are equal. The library of measurements is temporary; with --keep it is
the user's, whose entries are not measured again. With --backwards the tuner starts from the
template that the model ranks last: the line says which one it takes and what it gains.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp, log
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from attrs import asdict, evolve, frozen

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from best_template import (  # noqa: E402  (after the path)
    KERNELS,
    InputShape,
    attention,
    in_turns,
    layer_norm,
)

import passkit as pk  # noqa: E402  (after the path)
from passkit.graph.node import Entry  # noqa: E402
from passkit.library.evaluator import Evaluator, ranked  # noqa: E402
from passkit.program.planning import planned  # noqa: E402
from passkit.tuning.jobs import jobs  # noqa: E402
from passkit.tuning.measure import MeasureAnswer, measure  # noqa: E402

o = pk.ops


def normed(x: Entry, axes: tuple[int, ...]) -> Entry:
    """Normalise along axes."""
    d = x - o.reduce_mean(x, axis=axes, keepdims=True)
    return d / o.sqrt(o.reduce_mean(d * d, axis=axes, keepdims=True) + 1e-5)


OTHERS: Mapping[str, tuple[Callable[..., Entry], Sequence[InputShape]]] = {
    "row sums 8x200000": (lambda x: o.reduce_sum(x * x, axis=1), [(8, 200000)]),
    "row sums 100000x3": (lambda x: o.reduce_sum(o.exp(x), axis=1), [(100000, 3)]),
    "less maxima 3000x700": (
        lambda x: x - o.reduce_max(x, axis=1, keepdims=True),
        [(3000, 700)],
    ),
    "column sums 65536x8": (lambda x: o.reduce_sum(o.exp(x), axis=0), [(65536, 8)]),
    "middle sums 32x500x64": (lambda x: o.reduce_sum(x * x, axis=1), [(32, 500, 64)]),
    "middle softmax 16x300x200": (lambda x: o.softmax(x, axis=1), [(16, 300, 200)]),
    "batch norm 32x28x28x64": (lambda x: normed(x, (0, 1, 2)), [(32, 28, 28, 64)]),
    "group norm 64x49x96": (lambda x: normed(x, (1, 2)), [(64, 49, 96)]),
    "running sums 512x2000": (lambda x: o.cumsum(x, axis=1), [(512, 2000)]),
    "transpose 60x70x80": (lambda x: o.transpose(x, axes=(2, 1, 0)) * 2.0, [(60, 70, 80)]),
    "transpose 300x5000": (lambda x: o.exp(o.transpose(x)), [(300, 5000)]),
    "transpose 30000x20": (lambda x: o.transpose(x) + 1.0, [(30000, 20)]),
    "heads 32x128x8x64": (
        lambda x: o.transpose(x, axes=(0, 2, 1, 3)) * 0.5,
        [(32, 128, 8, 64)],
    ),
    "gate 50000": (lambda x: o.tanh(x) * o.sigmoid(x), [(50000,)]),
    "layer norm 20000x24": (layer_norm, [(20000, 24)]),
    "layer norm 2000x300": (layer_norm, [(2000, 300)]),
    "log softmax 256x10000": (
        lambda x: x - o.log(o.reduce_sum(o.exp(x), axis=1, keepdims=True)),
        [(256, 10000)],
    ),
    "attention 8x128x64": (attention, [(8, 128, 64)] * 3),
    "attention 200x24x16": (attention, [(200, 24, 16)] * 3),
    "attention 4x300x40": (attention, [(4, 300, 40)] * 3),
    "attention 16x512x64, 77 keys": (attention, [(16, 512, 64), (16, 77, 64), (16, 77, 64)]),
}
"""Kernels to which the model was not fitted."""


@frozen
class TuningRow:
    """A kernel before and after tuning.

    Attributes:
        name: its name.
        untuned: seconds of a call with the model's template.
        tuned: seconds of a call with the tuned template.
        changed: number of groups with another template.
        measured: number of measured templates.
        seconds: duration of tuning.
        same: whether results have equal bits.
        faults: number of templates with other bits.
    """

    name: str
    untuned: float
    tuned: float
    changed: int
    measured: int
    seconds: float
    same: bool
    faults: int

    @property
    def gain(self) -> float:
        """How many times longer the untuned kernel takes; 1 if it has the same templates."""
        return self.untuned / self.tuned if self.changed else 1.0

    def __str__(self) -> str:
        both = f"{self.untuned * 1e6:9.1f} µs {self.tuned * 1e6:9.1f} µs"
        cost = f"{self.measured} templates in {self.seconds:.1f} s"
        faults = f", {self.faults} of other bits" if self.faults else ""
        end = "" if self.same else "  OTHER BITS"
        change = "" if self.changed else ", as before"
        return f"{self.gain:5.2f} {both}  {self.name}: {cost}{faults}{change}{end}"


def row_of(name: str, budget: int) -> TuningRow:
    """Tune a kernel, and measure the gain."""
    function, shapes = {**KERNELS, **OTHERS}[name]
    inputs = [pk.var(f"x{k}", shape) for k, shape in enumerate(shapes)]
    graph = pk.Graph([function(*inputs)])
    operator_names = [[n for node, n in graph.names.items() if node.op is not None]]
    options: dict[str, Any] = {}
    if len(shapes) > 1 and "matmul" in str(operator_names):
        options["keep_together"] = operator_names
    begin = perf_counter()
    tuning = pk.tune(graph, budget=budget, **options)
    seconds = perf_counter() - begin
    rng = np.random.default_rng(99)
    feeds = {
        f"x{k}": rng.standard_normal(shape).astype(np.float32) for k, shape in enumerate(shapes)
    }
    runs = [pk.compile(graph, evaluator="model", **options), pk.compile(graph, **options)]
    before, after = ([out.tobytes() for out in run(feeds)] for run in runs)
    untuned, tuned = in_turns(runs, feeds)
    faults = sum(len(g.faults) for g in tuning.groups)
    counts = tuning.changed, tuning.measured
    return TuningRow(name, untuned, tuned, *counts, seconds, before == after, faults)


@frozen
class BackwardsTuning:
    """A kernel tuned from its last template.

    Attributes:
        name: its name.
        count: number of templates.
        rank: rank of the chosen template by the model, from 0.
        gain: seconds of the last template over those of the chosen one.
    """

    name: str
    count: int
    rank: int
    gain: float

    def __str__(self) -> str:
        return f"{self.gain:5.2f}  {self.name}: number {self.rank + 1} of {self.count} is taken"


def tune_backwards(name: str, budget: int) -> Iterator[BackwardsTuning]:
    """Measure a kernel's templates as if the last were the default, for groups with several."""
    function, shapes = {**KERNELS, **OTHERS}[name]
    graph = pk.Graph([function(*(pk.var(f"x{k}", s) for k, s in enumerate(shapes)))])
    plan = planned(graph, "SchedulePlan", evaluator="model")
    options = {"target": "cpu", "numerics": "strict"}
    for job in jobs(plan, Evaluator(), {}, budget, options):
        templates = job.request.templates
        if len(templates) > 1:
            reversed_request = evolve(job.request, templates=templates[::-1])
            answer = MeasureAnswer.read(measure(reversed_request.text()))
            records = {t: job.record(t, answer) for t in answer.samples}
            chosen = ranked(templates[-1], [records])[0]
            share = records[chosen].ratio or float("nan")  # the last template does not run
            yield BackwardsTuning(
                f"{name}: {job.name}", len(templates), templates.index(chosen), 1 / share
            )


def _print_backwards(names: Sequence[str], budget: int) -> int:
    """Tune kernels backwards and print the rows and their mean; return 0."""
    gains = []
    for name in names:
        for row in tune_backwards(name, budget):
            print(row, flush=True)
            gains += [row.gain] if row.gain > 0 else []
    print(f"geometric mean of the gains {exp(sum(map(log, gains)) / len(gains)):.2f}")
    return 0


def main() -> int:
    """Measure and print. Return 1 if a tuned kernel has other bits, or is slower by 1.1 times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("names", nargs="*", help="kernels whose names contain one of these")
    parser.add_argument("--budget", type=int, default=8, help="templates of a kernel (8)")
    parser.add_argument("--keep", action="store_true", help="use the user's library")
    parser.add_argument("--backwards", action="store_true", help="begin with the worst")
    parser.add_argument("--json", type=Path, help="write the rows to a file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not args.keep:
            os.environ["PASSKIT_CACHE_DIR"] = folder
        rows = []
        names = [
            name
            for name in (*KERNELS, *OTHERS)
            if not args.names or any(word in name for word in args.names)
        ]
        if args.backwards:
            return _print_backwards(names, args.budget)
        for name in names:
            rows.append(row_of(name, args.budget))
            print(rows[-1], flush=True)
    if args.json:
        data = [asdict(r) | {"gain": r.gain} for r in rows]
        args.json.write_text(json.dumps(data, indent=1) + "\n")
    mean = exp(sum(log(r.gain) for r in rows) / len(rows))
    changed = [r for r in rows if r.changed]
    best = max(rows, key=lambda r: r.gain)
    print(
        f"{len(changed)} of {len(rows)} kernels have other templates; geometric mean of the gains "
        f"{mean:.2f}, the most {best.gain:.2f}: {best.name}"
    )
    return int(any(not r.same or r.gain < 1 / 1.1 for r in rows))


if __name__ == "__main__":
    sys.exit(main())
