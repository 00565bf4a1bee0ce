"""Compare the cost model's seconds with those that kernels take on this CPU, on one thread.

    python benchmarks/cost_model.py DIR [--only NAME] [--seconds 0.03]

DIR has graphs of `corpus.py record`. Each is compiled, and each kernel of known sizes that takes at
least a microsecond is timed inside of calls, whose other kernels leave the caches as they do in
programs. Prints for each kind of kernel how many there are, the median of modelled / measured
seconds, the decades in which nine of ten ratios lie, and the rank correlation; then the kernels
that are modelled worst. `results/cost-model.json` keeps the rows.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date
from math import log10
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from compare import cpu_model  # noqa: E402  (after the path)
from random_campaigns import commit  # noqa: E402

RESULTS = HERE / "results" / "cost-model.json"
MIN_SECONDS = 1e-6
WORST = 12

Row = dict[str, Any]


def rows(folder: Path, only: str, seconds: float) -> Iterator[Row]:
    """Yield a row for each kernel of the graphs of a folder: its kind, and both times."""
    from kernel_times import TimedGraph

    with suppress(ImportError):  # operators that graphs may have
        importlib.import_module("tests.passes.storage_graphs")
    together = json.loads((folder / "together.json").read_text())
    for path in sorted((folder / "graphs").glob("*.json")):
        if only not in path.stem:
            continue
        timed = TimedGraph(str(path), together.get(path.stem))
        planned = timed.executable.graph
        by_name = {kernel.name: node for node, kernel in planned.attrs["kernel"].items()}
        if not by_name or timed.estimate < MIN_SECONDS:
            continue
        names, times = timed.of_kernels(max(5, int(seconds / timed.estimate)))
        for name, measured in dict(zip(names, times, strict=True)).items():
            row = _row(planned, by_name.get(name), measured)
            if row is not None:
                yield {"graph": path.stem, "kernel": name, **row}


def _row(planned: Any, node: Any, measured: float) -> Row | None:
    """Return kind and times of a kernel; None if it has no modelled seconds, or is too quick."""
    from passkit.schedule.cost import kernel_cost

    schedule = planned.attrs["schedule"].get(node)
    if schedule is None or measured < MIN_SECONDS:
        return None
    group, target = planned.attrs["subgraph"][node], planned.attrs["options"]["target"]
    modelled = kernel_cost(group, schedule, target)
    if not modelled:
        return None
    nests = () if schedule.multi_nest is None else schedule.multi_nest.nests
    has_products = any(nest.schedule is None for nest in nests)
    kind = schedule.composition.value + " with products" * has_products
    return {"kind": kind, "modelled": modelled, "measured": measured}


def summary(measured_rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each kind of kernel, one for all, and one for each that is far off."""
    kinds = sorted({r["kind"] for r in measured_rows})
    for kind in (*kinds, "all"):
        own = [r for r in measured_rows if kind in (r["kind"], "all")]
        ratios = sorted(r["modelled"] / r["measured"] for r in own)
        low, high = (ratios[int(share * (len(ratios) - 1))] for share in (0.05, 0.95))
        yield (
            f"{kind:<24} {len(own):5} kernels, modelled / measured {median(ratios):5.2f}, nine of "
            f"ten in {low:.2f} to {high:.2f} ({log10(high / low):.1f} decades), ranks "
            f"{rank_correlation(own):.2f}"
        )
    worst = sorted(measured_rows, key=lambda r: abs(log10(r["modelled"] / r["measured"])))
    for r in worst[: -WORST - 1 : -1]:
        yield (
            f"  {r['modelled'] / r['measured']:7.3f} {r['kind']:<10} {r['measured'] * 1e6:9.1f} us "
            f"{r['graph']} {r['kernel']}"
        )


def rank_correlation(measured_rows: Sequence[Row]) -> float:
    """Return Spearman's rank correlation of modelled and measured seconds; 1 for less than 3."""
    if len(measured_rows) < 3:
        return 1.0
    count = len(measured_rows)
    ranks = []
    for name in ("modelled", "measured"):
        order = sorted(range(count), key=lambda k: measured_rows[k][name])
        places = [0] * count
        for place, k in enumerate(order):
            places[k] = place
        ranks.append(places)
    distance = sum((a - b) ** 2 for a, b in zip(*ranks, strict=True))
    return 1 - 6 * distance / (count * (count * count - 1))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="graphs whose name contains this")
    parser.add_argument("--seconds", type=float, default=0.03, help="seconds of calls of a graph")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the rows are kept")
    options = parser.parse_args(arguments)
    measured_rows = list(rows(options.folder, options.only, options.seconds))
    if not measured_rows:
        parser.error(f"{options.folder} has no graphs with kernels of known sizes")
    record = {
        "date": str(date.today()),
        "commit": commit(),
        "cpu": cpu_model(),
        "rows": measured_rows,
    }
    options.json.write_text(json.dumps(record, indent=0) + "\n")
    print(*summary(measured_rows), sep="\n")
    return 0


if __name__ == "__main__":
    os.environ["PASSKIT_THREADS"] = "1"  # before passkit reads it: the model is of one thread
    sys.exit(main())
