"""Compare passkit with ONNX Runtime on five published networks at batch 1, in one process.

    python benchmarks/inference.py [--only resnet50,bert_base] [--threads 2]

The networks are those of `networks/published.py`. Both results are compared with TensorFlow's
before any timing, and both are timed in turn. Prints a table and writes
``benchmarks/results/inference.json``. Needs tensorflow, onnxruntime and tf2onnx.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import compare  # noqa: E402  (after the path)
import models  # noqa: E402
import peers  # noqa: E402
from networks import published  # noqa: E402
from networks.competitors import SETTINGS  # noqa: E402
from networks.published import MODELS  # noqa: E402

COMPETITORS = ("passkit", "onnx")
EFFORT = compare.MeasuringEffort(9, 0.4, 4)
"""Nine rounds of 0.4 seconds each: the slowest of the networks takes that long for one call."""


def measure(name: str, threads: int) -> dict[str, Any]:
    """Time a network in both.

    Returns:
        A row of the report, in seconds of a call.

    Raises:
        RuntimeError: a result differs from TensorFlow's.
    """
    import tensorflow as tf

    case, _ = published.build(tf, name, 1)
    tf.keras.backend.clear_session()
    subject = models.BenchmarkModel(name, case, case.inputs)
    entrants, failed = models.entrants_of(subject, list(COMPETITORS), threads, None)
    if failed:
        raise RuntimeError(f"{name}: {failed}")
    gc.collect()
    gc.disable()
    for iteration in range(EFFORT.rounds):
        for entrant in entrants[:: 1 if iteration % 2 else -1]:
            entrant.measure("dropped", tuple(subject.feeds), EFFORT)
    gc.enable()
    medians = {e.name: e.medians["dropped"] for e in entrants}
    pairs = zip(medians["onnx"], medians["passkit"], strict=True)
    return {
        "name": name,
        "medians": medians,
        "errors": {e.name: e.error for e in entrants},
        "speedup": statistics.median(onnx / passkit for onnx, passkit in pairs),
    }


def text(row: dict[str, Any]) -> str:
    """Return a line of the printed table."""
    passkit, onnx = (1e3 * statistics.median(row["medians"][n]) for n in COMPETITORS)
    return f"{row['name']:26}{passkit:>10.2f}{onnx:>10.2f}{row['speedup']:>17.2f}"


def main() -> int:
    """Run the command line and return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="names of networks, with commas between")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    threads = peers.confine(options.threads)
    names = options.only.split(",") if options.only else list(MODELS)
    if unknown := sorted(set(names) - set(MODELS)):
        parser.error(f"unknown {', '.join(unknown)}; there are {', '.join(MODELS)}")
    load, rows = os.getloadavg(), []
    print(f"{'median of a call, ms':26}{'passkit':>10}{'onnx':>10}{'onnx / passkit':>17}")
    for name in names:
        rows.append(measure(name, threads))
        print(text(rows[-1]), flush=True)
    report = {
        **compare.circumstances(threads, load),
        "versions": peers.versions(["passkit", "numpy", "tensorflow_cpu", "onnxruntime"]),
        "settings": {n: SETTINGS[n] for n in COMPETITORS},
        "rows": rows,
    }
    target = ROOT / "benchmarks" / "results" / "inference.json"
    target.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
