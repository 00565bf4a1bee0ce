"""What tuning gains: each kernel as the model has it against the same one tuned on this machine.

    python benchmarks/tuning.py [NAME …] [--budget 8] [--keep] [--json FILE]

The kernels are those of `best_template.py`. Each is tuned in worker processes, then both are called
in turns, on inputs that tuning has not seen. One line a kernel: the ratio, both times, how many
templates were measured in how many seconds, and whether the bits are the same. The library is one
of its own and is thrown away; with --keep it is the user's, and what it has is not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from math import exp, log
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from attrs import asdict, frozen

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from best_template import KERNELS, in_turns  # noqa: E402  (after the path)

import passkit as pk  # noqa: E402  (after the path)


@frozen
class Row:
    """A kernel: seconds of a call as planned by the model and as tuned, and what tuning took."""

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
        """How many times longer the untuned one takes; 1 where it has the same templates."""
        return self.untuned / self.tuned if self.changed else 1.0

    def __str__(self) -> str:
        both = f"{self.untuned * 1e6:9.1f} µs {self.tuned * 1e6:9.1f} µs"
        cost = f"{self.measured} templates in {self.seconds:.1f} s"
        faults = f", {self.faults} of other bits" if self.faults else ""
        end = "" if self.same else "  OTHER BITS"
        change = "" if self.changed else ", as before"
        return f"{self.gain:5.2f} {both}  {self.name}: {cost}{faults}{change}{end}"


def row_of(name: str, budget: int) -> Row:
    """Tune a kernel, and measure what that gained."""
    function, shapes = KERNELS[name]
    inputs = [pk.var(f"x{k}", shape) for k, shape in enumerate(shapes)]
    graph = pk.Graph([function(*inputs)])
    together = [[n for node, n in graph.names.items() if node.op is not None]]
    options: dict[str, Any] = {}
    if len(shapes) > 1 and "matmul" in str(together):
        options["keep_together"] = together
    begin = perf_counter()
    found = pk.tune(graph, budget=budget, **options)
    seconds = perf_counter() - begin
    rng = np.random.default_rng(99)
    feeds = {
        f"x{k}": rng.standard_normal(shape).astype(np.float32) for k, shape in enumerate(shapes)
    }
    runs = [pk.compile(graph, evaluator="model", **options), pk.compile(graph, **options)]
    before, after = ([out.tobytes() for out in run(feeds)] for run in runs)
    untuned, tuned = in_turns(runs, feeds)
    faults = sum(len(g.faults) for g in found.groups)
    counts = found.changed, found.measured
    return Row(name, untuned, tuned, *counts, seconds, before == after, faults)


def main() -> int:
    """Measure and print; 1 where a tuned kernel has other bits, or is slower than 1.1 times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("names", nargs="*", help="kernels whose names contain one of these")
    parser.add_argument("--budget", type=int, default=8, help="templates of a kernel (8)")
    parser.add_argument("--keep", action="store_true", help="use the user's library")
    parser.add_argument("--json", type=Path, help="write the rows to a file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not args.keep:
            os.environ["PASSKIT_CACHE_DIR"] = folder
        rows = []
        for name in KERNELS:
            if not args.names or any(word in name for word in args.names):
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
