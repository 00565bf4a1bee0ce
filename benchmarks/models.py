"""Compare passkit with TensorFlow, XLA, ONNX Runtime and PyTorch on entire models, in one run.

    python benchmarks/models.py [--torch PYTHON] [--only unet,lstm] [--competitors passkit,graph]
    python benchmarks/models.py --fixtures lenet,unet   # or all: the tests' small networks

The models are the ten of `networks/`. Competitors are compared with TensorFlow's result and timed
in turn. Prints a table and writes ``benchmarks/results/models.json`` (``fixtures.json`` with
``--fixtures``). Needs tensorflow; onnxruntime and tf2onnx where they are installed; ``--torch``
names a Python with torch, in which `torch.compile` runs the same networks.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import compare  # noqa: E402  (after the path)
import peers  # noqa: E402
from networks import TEN, NetworkArray, in_keras, torch_process  # noqa: E402
from networks.competitors import BUILDERS, SETTINGS, ModelFeeds  # noqa: E402
from pipe import Pipe, PipeError  # noqa: E402

import passkit as pk  # noqa: E402
from passkit.frontends import tf_graphdef  # noqa: E402
from tests.frontends.tf_graphdef.reference.case import NETWORKS, Stored, stored  # noqa: E402

PEERS = ("graph", "xla", "onnx", "compile")
FIXTURE_BATCH = 32
TOLERANCE = {"passkit": 1e-4, "compile": 1e-4}
"""Largest allowed error, relative to the largest value, of passkit and torch.compile."""
LOOSE = 1e-3
"""Largest allowed error of the other competitors: more means that they run another model."""

ModelEntrant = compare.WorkloadEntrant | torch_process.TorchProcessEntrant


@frozen(eq=False)
class BenchmarkModel:
    """A model with its feeds, and with its weights if PyTorch can run it."""

    name: str
    case: Stored
    feeds: ModelFeeds
    weights: Mapping[str, NetworkArray] | None = None

    @property
    def batch(self) -> int:
        """Number of examples in a call."""
        return int(next(iter(self.feeds.values())).shape[0])


def written(names: list[str], batch: int) -> Iterator[BenchmarkModel]:
    """Freeze the networks of `networks/` in TensorFlow; batch 0 is each one's own."""
    import tensorflow as tf

    for name in names:
        case, weights = in_keras.build(tf, TEN[name], batch)
        yield BenchmarkModel(name, case, case.inputs, weights)


def fixtures(names: list[str], batch: int) -> Iterator[BenchmarkModel]:
    """Load the tests' networks; their inputs are repeated along the first axis to a batch."""
    for name in names:
        (case,) = stored(NETWORKS / f"{name}.npz")
        feeds = {
            name: np.resize(value, (batch, *value.shape[1:])) if value.ndim else value
            for name, value in case.inputs.items()
        }
        yield BenchmarkModel(name, case, feeds)


def enter(
    name: str, subject: BenchmarkModel, sets: list[dict[str, NetworkArray]], threads: int
) -> ModelEntrant:
    """Build a competitor and compare it with TensorFlow's result, on the rows that are stored."""
    competitor = BUILDERS[name](subject.case, sets[0], threads)
    prepared = [tuple(competitor.prepare(a) for a in feeds.values()) for feeds in sets]
    call = eval(f"lambda f, {', '.join(sets[0])}: {competitor.call}")
    result = np.asarray(competitor.numpy(call(competitor.function, *prepared[0])))
    expected = next(iter(subject.case.outputs.values()))
    difference = result[: len(expected)].astype(np.float64) - expected
    error = float(np.abs(difference).max() / (np.abs(expected).max() or 1.0))
    return compare.WorkloadEntrant(name, competitor, prepared, result.nbytes, error)


def enter_torch(torch: Pipe, subject: BenchmarkModel) -> ModelEntrant:
    """Build the network in the process with `torch.compile`, with the model's weights.

    Raises:
        PipeError: the model is not written in PyTorch, or the other process failed.
    """
    if subject.weights is None:
        raise PipeError("not written in PyTorch")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "network.npz")
        (x,), (result,) = subject.feeds.values(), subject.case.outputs.values()
        torch_process.keep(path, subject.weights, x, result)
        return torch_process.enter(torch, subject.name, path)


def entrants_of(
    subject: BenchmarkModel, names: list[str], threads: int, torch: Pipe | None
) -> tuple[list[ModelEntrant], dict[str, str]]:
    """Build the competitors.

    Returns:
        Those whose result is right, and the reasons of the others by name.
    """
    sets = [{k: v.copy() for k, v in subject.feeds.items()} for _ in range(3)]
    entrants, failed = [], {}
    for name in names:
        try:
            if name == "compile":
                assert torch is not None, "without --torch it is not among the names"
                entrant = enter_torch(torch, subject)
            else:
                entrant = enter(name, subject, sets, threads)
        except Exception as error:  # the other competitors still count
            failed[name] = f"{type(error).__name__}: {error}"[:300]
            continue
        if entrant.error > TOLERANCE.get(name, LOOSE):
            failed[name] = f"error {entrant.error:.1e}"
            continue
        entrants.append(entrant)
    return entrants, failed


def measure(
    subject: BenchmarkModel, names: list[str], threads: int, torch: Pipe | None
) -> dict[str, Any]:
    """Check competitors on one model, then time them in turn; measure passkit's start-up.

    Returns:
        A row of the report.
    """
    gc.collect()
    gc.disable()
    entrants, failed = entrants_of(subject, names, threads, torch)
    row: dict[str, Any] = {"name": subject.name, "batch": subject.batch, "failed": failed}
    for iteration in range(compare.FULL.rounds if entrants else 0):
        for entrant in (
            entrants[iteration % len(entrants) :] + entrants[: iteration % len(entrants)]
        ):
            entrant.measure("dropped", tuple(subject.feeds), compare.FULL)
    row["competitors"] = {
        entrant.name: {
            "error": entrant.error,
            "median": entrant.median("dropped"),
            "medians": entrant.medians["dropped"],
        }
        for entrant in entrants
    }
    case, feeds = subject.case, subject.feeds
    return row | work_of(case, feeds) | start_up(case, feeds) | ratio(row)


def ratio(row: dict[str, Any]) -> dict[str, Any]:
    """Return the name of the best competitor and its time over passkit's.

    Both are None where passkit or all of its competitors have failed.
    """
    entries = row["competitors"]
    times = {n: entries[n]["median"] for n in PEERS if n in entries}
    if not times or "passkit" not in entries:
        return {"best": None, "speedup": None}
    best = min(times, key=lambda n: times[n])
    return {"best": best, "speedup": times[best] / entries["passkit"]["median"]}


def work_of(case: Stored, feeds: ModelFeeds) -> dict[str, Any]:
    """Count kernels and bytes with and without fusion, and passkit's share of time in libraries."""
    model = tf_graphdef.load(case.model, outputs=list(case.outputs))
    work: dict[str, Any] = {}
    for kind in ("none", "stitch"):
        executable = pk.compile(model, fusion=kind)
        executable(dict(feeds))
        stats = executable.stats
        moved = stats["bytes_read"] + stats["bytes_written"]
        work[kind] = {"kernels": stats["kernels"], "calls": stats["library_calls"], "bytes": moved}
    rows = executable.profile(dict(feeds)).rows
    total = sum(r.seconds for r in rows) or 1.0
    work["library_share"] = sum(r.seconds for r in rows if r.flops) / total
    return work


PROBE = """
import sys, time
import numpy
start = time.perf_counter()
import passkit as pk
from passkit.frontends import tf_graphdef
feeds = dict(numpy.load(sys.argv[2]))
graph = tf_graphdef.load(sys.argv[1], outputs=sys.argv[3:])
pk.compile(graph)(feeds)
print(time.perf_counter() - start)
"""


def start_up(case: Stored, feeds: ModelFeeds) -> dict[str, float]:
    """Measure seconds from import to the first result in new processes: cold, then cached."""
    with tempfile.TemporaryDirectory() as folder:
        model, inputs = Path(folder, "model.pb"), Path(folder, "feeds.npz")
        model.write_bytes(case.model)
        np.savez(inputs, **dict(feeds))
        command = [sys.executable, "-c", PROBE, str(model), str(inputs), *case.outputs]
        env = {**os.environ, "PASSKIT_CACHE_DIR": f"{folder}/cache", "PYTHONPATH": str(ROOT)}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are not compiled anew at each start
        times = [
            float(subprocess.run(command, env=env, check=True, capture_output=True).stdout)
            for _ in range(4)
        ]
    return {"cold": times[0], "warm": statistics.median(times[1:])}


def text(rows: list[dict[str, Any]], names: list[str]) -> str:
    """Return the table of all models, with a column for each of ``names``, and the means by kind.

    Each line of means compares the best competitor with passkit.
    """
    head = "".join(f"{n:>10}" for n in names)
    lines = [f"{'median of a call, us':24}{head}  best/passkit  kernels      MB moved  cold   warm"]
    for row in rows:
        lines += row_text(row, names)
    for kind, group in kinds(rows).items():
        values = [r["speedup"] for r in group if r["speedup"]]
        if values:
            mean = math.exp(statistics.fmean(map(math.log, values)))
            least = min(values)
            lines.append(f"{kind} ({len(values)}): geometric mean {mean:.2f}, least {least:.2f}")
    return "\n".join(lines)


def row_text(row: dict[str, Any], names: list[str]) -> list[str]:
    """Return the line of one model, and a line for each competitor that failed."""
    entries = row["competitors"]
    cells = "".join(
        f"{entries[n]['median'] * 1e6:>10.1f}" if n in entries else f"{'-':>10}" for n in names
    )
    before, after = row["none"], row["stitch"]
    speedup = f"{row['speedup']:.2f} {row['best']}" if row["speedup"] else "-"
    kernels = f"{before['kernels']}->{after['kernels']}"
    moved = f"{before['bytes'] / 1e6:.1f}->{after['bytes'] / 1e6:.1f}"
    line = (
        f"{row['name']:24}{cells}  {speedup:>12}  {kernels:>7}  {moved:>12}"
        f"  {row['cold']:.1f} s  {row['warm'] * 1e3:.0f} ms"
    )
    reasons = [f"    {n}: {reason.splitlines()[0]}" for n, reason in row["failed"].items()]
    return [line, *reasons]


def kinds(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Group rows by what bounds them: products and convolutions in libraries, or memory."""
    bound: dict[str, list[dict[str, Any]]] = {"library-bound": [], "memory-bound": []}
    for row in rows:
        bound["library-bound" if row["library_share"] >= 0.5 else "memory-bound"].append(row)
    return bound


def chosen(options: argparse.Namespace) -> Iterator[BenchmarkModel]:
    """Return the models that the command line names.

    Raises:
        ValueError: the command line names a model that does not exist.
    """
    available = (
        sorted(path.stem for path in NETWORKS.glob("*.npz")) if options.fixtures else list(TEN)
    )
    requested = options.fixtures or options.only or "all"
    names = available if requested == "all" else requested.split(",")
    if unknown := set(names) - set(available):
        raise ValueError(
            f"there is no model {', '.join(sorted(unknown))}; there are {', '.join(available)}"
        )
    if options.fixtures:
        return fixtures(names, options.batch or FIXTURE_BATCH)
    return written(names, options.batch)


def main() -> int:
    """Run the command line and return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--batch", type=int, default=0, help="examples in a call, 0: each its own")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="names of models, with commas between")
    parser.add_argument("--fixtures", default="", help="the tests' networks instead, or all")
    parser.add_argument("--competitors", default=",".join(("passkit", *PEERS)))
    parser.add_argument("--torch", default="", help="a Python with torch, for torch.compile")
    options = parser.parse_args()
    try:
        subjects = chosen(options)
    except ValueError as error:
        parser.error(str(error))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    threads = peers.confine(options.threads)
    settings = SETTINGS | ({"compile": torch_process.SETTINGS} if options.torch else {})
    names = [n for n in options.competitors.split(",") if n in settings]
    load, begin, rows = os.getloadavg(), time.time(), []
    versions = peers.versions(["passkit", "numpy", "tensorflow_cpu", "onnxruntime"])
    with contextlib.ExitStack() as stack:
        torch = torch_process.torch_in(options.torch, threads) if options.torch else None
        if torch:
            stack.enter_context(torch)
        versions |= {"torch": torch.version} if torch else {}
        for subject in subjects:
            rows.append(measure(subject, names, threads, torch))
            print(f"{subject.name}: {time.time() - begin:.0f} s", file=sys.stderr, flush=True)
    report = {
        **compare.circumstances(threads, load),
        "versions": versions,
        "settings": {n: settings[n] for n in names},
        "rows": rows,
    }
    report_name = "fixtures" if options.fixtures else "models"
    target = ROOT / "benchmarks" / "results" / f"{report_name}.json"
    target.write_text(json.dumps(report, indent=1) + "\n")
    print(text(rows, names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
