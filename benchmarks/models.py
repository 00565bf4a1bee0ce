"""Compares passkit with TensorFlow, XLA, ONNX Runtime and PyTorch on whole models, in one run.

    python benchmarks/models.py [--torch PYTHON] [--only unet,lstm] [--competitors passkit,graph]
    python benchmarks/models.py --fixtures lenet,unet   # or all: the tests' small networks

The models are the ten of `networks/`, at sizes of use. Competitors are checked against
TensorFlow's result and timed in turn. Prints a table and writes ``benchmarks/results/models.json``
(``fixtures.json`` with ``--fixtures``). Needs tensorflow; onnxruntime and tf2onnx where they are;
``--torch`` names a Python with torch, in which `torch.compile` runs the same networks.
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
from networks import TEN, Array, twin  # noqa: E402
from networks.competitors import BUILDERS, SETTINGS, Feeds  # noqa: E402
from pipe import Pipe, PipeError  # noqa: E402

from tests.frontends.tf_graphdef.reference.case import NETWORKS, Stored, stored  # noqa: E402

PEERS = ("graph", "xla", "onnx", "compile")
FIXTURE_BATCH = 32
TOLERANCE = {"passkit": 1e-4, "compile": 1e-4}
"""Of the largest value; `LOOSE` for the others, to tell one that runs another model."""
LOOSE = 1e-3

Entrant = compare.Entrant | twin.Twin


@frozen(eq=False)
class Subject:
    """A model, what it is called with, and the weights where a twin can have them."""

    name: str
    case: Stored
    feeds: Feeds
    weights: Mapping[str, Array] | None = None

    @property
    def batch(self) -> int:
        """How many examples are in a call."""
        return int(next(iter(self.feeds.values())).shape[0])


def written(names: list[str], batch: int) -> Iterator[Subject]:
    """The networks of `networks/`, frozen now."""
    import tensorflow as tf
    from networks import in_keras

    for name in names:
        case, weights = in_keras.build(tf, TEN[name], batch)
        yield Subject(name, case, case.inputs, weights)


def fixtures(names: list[str], batch: int) -> Iterator[Subject]:
    """The tests' networks, their inputs repeated along the first dimension to a batch."""
    for name in names:
        (case,) = stored(NETWORKS / f"{name}.npz")
        feeds = {
            name: np.resize(value, (batch, *value.shape[1:])) if value.ndim else value
            for name, value in case.inputs.items()
        }
        yield Subject(name, case, feeds)


def enter(name: str, subject: Subject, sets: list[dict[str, Array]], threads: int) -> Entrant:
    """A competitor, checked against TensorFlow's result on the rows of which it is known."""
    competitor = BUILDERS[name](subject.case, sets[0], threads)
    prepared = [tuple(competitor.prepare(a) for a in feeds.values()) for feeds in sets]
    call = eval(f"lambda f, {', '.join(sets[0])}: {competitor.call}")
    found = np.asarray(competitor.numpy(call(competitor.function, *prepared[0])))
    want = next(iter(subject.case.outputs.values()))
    part = found[: len(want)].astype(np.float64) - want
    error = float(np.abs(part).max() / (np.abs(want).max() or 1.0))
    return compare.Entrant(name, competitor, prepared, found.nbytes, error)


def enter_twin(torch: Pipe, subject: Subject) -> Entrant:
    """`torch.compile`, with the model's weights."""
    if subject.weights is None:
        raise PipeError("not written in PyTorch")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "given.npz")
        (x,), (result,) = subject.feeds.values(), subject.case.outputs.values()
        twin.keep(path, subject.weights, x, result)
        return twin.enter(torch, subject.name, path)


def entrants_of(
    subject: Subject, names: list[str], threads: int, torch: Pipe | None
) -> tuple[list[Entrant], dict[str, str]]:
    """The competitors that give the right result, and why others do not take part."""
    sets = [{k: v.copy() for k, v in subject.feeds.items()} for _ in range(3)]
    entrants, failed = [], {}
    for name in names:
        try:
            if name == "compile":
                assert torch is not None, "without --torch it is not among the names"
                entrant = enter_twin(torch, subject)
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
    subject: Subject, names: list[str], threads: int, torch: Pipe | None
) -> dict[str, Any]:
    """One row: competitors checked, then timed in turn; passkit's loading in processes."""
    gc.collect()
    gc.disable()
    entrants, failed = entrants_of(subject, names, threads, torch)
    row: dict[str, Any] = {"name": subject.name, "batch": subject.batch, "failed": failed}
    for turn in range(compare.FULL.rounds if entrants else 0):
        for entrant in entrants[turn % len(entrants) :] + entrants[: turn % len(entrants)]:
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
    """The best competitor over passkit."""
    found = row["competitors"]
    times = {n: found[n]["median"] for n in PEERS if n in found}
    if not times or "passkit" not in found:
        return {"best": None, "speedup": None}
    best = min(times, key=lambda n: times[n])
    return {"best": best, "speedup": times[best] / found["passkit"]["median"]}


def work_of(case: Stored, feeds: Feeds) -> dict[str, Any]:
    """Kernels and bytes before and after fusion, and the share of time in libraries."""
    import passkit as pk
    from passkit.frontends import tf_graphdef

    model = tf_graphdef.load(case.model, outputs=list(case.outputs))
    found: dict[str, Any] = {}
    for kind in ("none", "stitch"):
        executable = pk.compile(model, fusion=kind)
        executable(dict(feeds))
        stats = executable.stats
        moved = stats["bytes_read"] + stats["bytes_written"]
        found[kind] = {"kernels": stats["kernels"], "calls": stats["library_calls"], "bytes": moved}
    rows = executable.profile(dict(feeds)).rows
    total = sum(r.seconds for r in rows) or 1.0
    found["library_share"] = sum(r.seconds for r in rows if r.flops) / total
    return found


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


def start_up(case: Stored, feeds: Feeds) -> dict[str, float]:
    """Seconds from import to the first result in a new process: nothing cached, then cached."""
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
    """The printed table."""
    head = "".join(f"{n:>10}" for n in names)
    lines = [f"{'median of a call, us':24}{head}  best/passkit  kernels      MB moved  cold   warm"]
    for row in rows:
        found = row["competitors"]
        cells = "".join(
            f"{found[n]['median'] * 1e6:>10.1f}" if n in found else f"{'-':>10}" for n in names
        )
        before, after = row["none"], row["stitch"]
        speedup = f"{row['speedup']:.2f} {row['best']}" if row["speedup"] else "-"
        kernels = f"{before['kernels']}->{after['kernels']}"
        moved = f"{before['bytes'] / 1e6:.1f}->{after['bytes'] / 1e6:.1f}"
        lines.append(
            f"{row['name']:24}{cells}  {speedup:>12}  {kernels:>7}  {moved:>12}"
            f"  {row['cold']:.1f} s  {row['warm'] * 1e3:.0f} ms"
        )
        lines += [f"    {n}: {why.splitlines()[0]}" for n, why in row["failed"].items()]
    for kind, group in kinds(rows).items():
        values = [r["speedup"] for r in group if r["speedup"]]
        if values:
            mean = math.exp(statistics.fmean(map(math.log, values)))
            least = min(values)
            lines.append(f"{kind} ({len(values)}): geometric mean {mean:.2f}, least {least:.2f}")
    return "\n".join(lines)


def kinds(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows by what bounds them: products and convolutions in libraries, or memory."""
    bound: dict[str, list[dict[str, Any]]] = {"library-bound": [], "memory-bound": []}
    for row in rows:
        bound["library-bound" if row["library_share"] >= 0.5 else "memory-bound"].append(row)
    return bound


def chosen(options: argparse.Namespace) -> Iterator[Subject]:
    """The models that the command line asks for. Raises: ValueError for names of none."""
    known = sorted(path.stem for path in NETWORKS.glob("*.npz")) if options.fixtures else list(TEN)
    wanted = options.fixtures or options.only or "all"
    names = known if wanted == "all" else wanted.split(",")
    if unknown := set(names) - set(known):
        raise ValueError(f"unknown {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if options.fixtures:
        return fixtures(names, options.batch or FIXTURE_BATCH)
    return written(names, options.batch)


def main() -> int:
    """The command line."""
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
    settings = SETTINGS | ({"compile": twin.SETTINGS} if options.torch else {})
    names = [n for n in options.competitors.split(",") if n in settings]
    load, begin, rows = os.getloadavg(), time.time(), []
    versions = peers.versions(["passkit", "numpy", "tensorflow_cpu", "onnxruntime"])
    with contextlib.ExitStack() as stack:
        torch = twin.torch_in(options.torch, threads) if options.torch else None
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
    kept = "fixtures" if options.fixtures else "models"
    target = ROOT / "benchmarks" / "results" / f"{kept}.json"
    target.write_text(json.dumps(report, indent=1) + "\n")
    print(text(rows, names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
