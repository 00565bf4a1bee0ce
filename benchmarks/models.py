"""Compares passkit with TensorFlow, XLA and ONNX Runtime on whole models, alternating in one run.

    python benchmarks/models.py [--batch 32] [--only lenet,unet] [--competitors passkit,graph]

The models are those of `tests/frontends/tf_graphdef/fixtures/networks`: ten of them, those of
``--only``, or with ``--only all`` all. Prints a table and writes
``benchmarks/results/models.json``. Needs tensorflow; onnxruntime and tf2onnx where they are.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import compare  # noqa: E402  (after the path)
import peers  # noqa: E402

from tests.frontends.tf_graphdef.reference.case import NETWORKS, Stored, stored  # noqa: E402

TEN = (
    *("autoencoder", "cross_network", "encoder", "lenet", "lstm"),
    *("mixer", "mobilenet_v2", "resnet_v2", "unet", "wavenet"),
)

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Array]

SETTINGS = {
    "passkit": "tf_graphdef.load, pk.compile: target cpu, fusion stitch, numerics strict",
    "graph": "TensorFlow: the GraphDef imported and pruned, run as a concrete function",
    "xla": "TensorFlow: the same in tf.function(jit_compile=True)",
    "onnx": "ONNX Runtime: the GraphDef by tf2onnx, CPU provider, intra_op threads = threads",
}
PEERS = tuple(name for name in SETTINGS if name != "passkit")
TOLERANCE = 1e-3
"""Of the largest value: what tells a competitor that runs another model."""


def passkit(case: Stored, feeds: Feeds, threads: int) -> peers.Competitor:
    """The executable, called with arrays by name."""
    import passkit as pk
    from passkit.frontends import tf_graphdef

    executable = pk.compile(tf_graphdef.load(case.model, outputs=list(case.outputs)))
    arguments = ", ".join(f"{name}={name}" for name in feeds)
    return peers.Competitor(executable, f"f({arguments})", lambda a: a, lambda r: r[0])


def _imported(case: Stored) -> tuple[Any, Any]:
    import tensorflow as tf

    graph = tf.compat.v1.GraphDef.FromString(case.model)
    whole = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(graph, name=""), [])
    inputs = [whole.graph.get_tensor_by_name(f"{name}:0") for name in case.inputs]
    outputs = [whole.graph.get_tensor_by_name(name) for name in case.outputs]
    return tf, whole.prune(inputs, outputs)


def graph(case: Stored, feeds: Feeds, threads: int) -> peers.Competitor:
    """TensorFlow's own executor, after grappler."""
    tf, function = _imported(case)
    call = f"f({', '.join(feeds)})"
    return peers.Competitor(function, call, tf.constant, lambda r: r[0].numpy())


def xla(case: Stored, feeds: Feeds, threads: int) -> peers.Competitor:
    """XLA, for the shapes of these feeds."""
    tf, function = _imported(case)
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in feeds.values()]
    compiled = tf.function(lambda *xs: function(*xs), input_signature=specs, jit_compile=True)
    call = f"f({', '.join(feeds)})"
    return peers.Competitor(
        compiled.get_concrete_function(), call, tf.constant, lambda r: r[0].numpy()
    )


def onnx(case: Stored, feeds: Feeds, threads: int) -> peers.Competitor:
    """ONNX Runtime, called with its names."""
    import onnxruntime
    import tensorflow as tf
    import tf2onnx

    with tf.Graph().as_default():
        model, _ = tf2onnx.convert.from_graph_def(
            tf.compat.v1.GraphDef.FromString(case.model),
            input_names=[f"{name}:0" for name in case.inputs],
            output_names=list(case.outputs),
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    pairs = ", ".join(f"{name + ':0'!r}: {name}" for name in feeds)
    return peers.Competitor(session.run, f"f(None, {{{pairs}}})", lambda a: a, lambda r: r[0])


BUILDERS: dict[str, Callable[[Stored, Feeds, int], peers.Competitor]] = {
    "passkit": passkit,
    "graph": graph,
    "xla": xla,
    "onnx": onnx,
}


def enlarged(case: Stored, batch: int) -> dict[str, Array]:
    """The inputs, repeated along the first dimension to a batch."""
    return {
        name: np.resize(value, (batch, *value.shape[1:])) if value.ndim else value
        for name, value in case.inputs.items()
    }


def enter(
    name: str, case: Stored, sets: list[dict[str, Array]], threads: int
) -> compare.Entrant:
    """A competitor, checked against TensorFlow's stored result on the rows that are stored."""
    competitor = BUILDERS[name](case, sets[0], threads)
    prepared = [tuple(competitor.prepare(a) for a in feeds.values()) for feeds in sets]
    call = eval(f"lambda f, {', '.join(sets[0])}: {competitor.call}")
    found = np.asarray(competitor.numpy(call(competitor.function, *prepared[0])))
    want = next(iter(case.outputs.values()))
    part = found[: len(want)].astype(np.float64) - want
    error = float(np.abs(part).max() / (np.abs(want).max() or 1.0))
    return compare.Entrant(name, competitor, prepared, found.nbytes, error)


def measure(case: Stored, name: str, names: list[str], batch: int, threads: int) -> dict[str, Any]:
    """One row: competitors checked, then timed in turn; passkit's loading in processes."""
    gc.collect()
    gc.disable()
    sets = [enlarged(case, batch)]
    sets += [{k: v.copy() for k, v in sets[0].items()} for _ in range(2)]
    row: dict[str, Any] = {"name": name, "batch": batch, "failed": {}, "competitors": {}}
    entrants = []
    for one in names:
        try:
            entrant = enter(one, case, sets, threads)
        except Exception as error:  # the other competitors still count
            row["failed"][one] = f"{type(error).__name__}: {error}"[:300]
            continue
        if entrant.error > TOLERANCE:
            row["failed"][one] = f"error {entrant.error:.1e}"
            continue
        entrants.append(entrant)
    inputs = tuple(sets[0])
    for turn in range(compare.FULL.rounds if entrants else 0):
        for entrant in entrants[turn % len(entrants) :] + entrants[: turn % len(entrants)]:
            entrant.measure("dropped", inputs, compare.FULL)
    for entrant in entrants:
        row["competitors"][entrant.name] = {
            "error": entrant.error,
            "median": entrant.median("dropped"),
            "medians": entrant.medians["dropped"],
        }
    return row | work_of(case, sets[0]) | start_up(case, sets[0]) | ratio(row)


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


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="names of models, with commas between")
    parser.add_argument("--competitors", default=",".join(SETTINGS))
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    threads = peers.confine(options.threads)
    names = [n for n in options.competitors.split(",") if n in SETTINGS]
    wanted = options.only.split(",") if options.only else list(TEN)
    load, begin, rows = os.getloadavg(), time.time(), []
    for path in sorted(NETWORKS.glob("*.npz")):
        if path.stem in wanted or wanted == ["all"]:
            (case,) = stored(path)
            rows.append(measure(case, path.stem, names, options.batch, threads))
            print(f"{path.stem}: {time.time() - begin:.0f} s", file=sys.stderr, flush=True)
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": compare.cpu_model(),
        "threads": threads,
        "system": platform.platform(),
        "load_before": load,
        "versions": peers.versions(["passkit", "numpy", "tensorflow_cpu", "onnxruntime"]),
        "settings": {n: SETTINGS[n] for n in names},
        "rows": rows,
    }
    target = ROOT / "benchmarks" / "results" / "models.json"
    target.write_text(json.dumps(report, indent=1) + "\n")
    print(text(rows, names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
