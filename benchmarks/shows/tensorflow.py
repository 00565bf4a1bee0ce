"""Demands on entire TensorFlow models: equal results, refusals, speed, reports.

``--peers`` names a Python with tensorflow, onnxruntime and tf2onnx; ``--torch`` one with torch.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import subprocess
import sys
from functools import cache
from typing import Any

import shows
from shows import RESULTS, ROOT, Demand, Figure, tests
from tests.frontends.tf_graphdef.reference.case import NETWORKS

CASES = "tests/frontends/tf_graphdef/"


def cases() -> Figure:
    """Report the number of cases on the reference page, each of which has a test."""
    counts = re.search(
        r"(\d+) operators, (\d+) cases: (\d+) equal, (\d+) refused",
        (ROOT / "docs" / "tf_ops.md").read_text(),
    )
    if counts is None:
        return Figure("docs/tf_ops.md has no counts", False)
    figure = tests(CASES + "test_reference.py")
    return Figure(f"{counts[0]}; {figure.text}", figure.met and int(counts[2]) >= 300)


def networks() -> Figure:
    """Report the tests of the frozen networks, interpreted and compiled."""
    count = len(list(NETWORKS.glob("*.npz")))
    figure = tests(CASES + "test_networks.py")
    return Figure(f"{count} networks; {figure.text}", figure.met and count >= 25, count)


def basic_pitch() -> Figure:
    """Compare Spotify's model with TensorFlow's stored output."""
    command = [sys.executable, str(ROOT / "benchmarks" / "basic_pitch.py")]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if not process.stdout.startswith("{"):
        return Figure((process.stderr.strip().splitlines() or ["no output"])[-1], False)
    report = json.loads(process.stdout)
    worst = max(report["errors"].values())
    ratio = max(e["compiled"] / e["interpreted"] for e in report["ulps_from_float64"].values())
    seconds = report["load_seconds"] + report["compile_seconds"]
    text = f"{worst:.1e} of the largest from TensorFlow, {ratio:.1f} of the interpreter's error"
    return Figure(f"{text}; {seconds:.1f} s", report["good"], report)


@cache
def models() -> list[dict[str, Any]]:
    """Run `models.py` in the peers' interpreter and return its rows.

    Raises:
        RuntimeError: there is no report, or a system is not installed.
    """
    report = RESULTS / "models.json"
    report.unlink(missing_ok=True)
    command = [shows.peers_python, str(ROOT / "benchmarks" / "models.py")]
    command += ["--torch", shows.torch_python]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if not report.exists():
        raise RuntimeError((process.stderr.strip().splitlines() or ["no report"])[-1])
    report_json = json.loads(report.read_text())
    missing = {"tensorflow_cpu", "onnxruntime", "torch"} - set(report_json["versions"])
    if missing:
        raise RuntimeError(f"without {', '.join(missing)}; --peers and --torch name Pythons")
    rows: list[dict[str, Any]] = report_json["rows"]
    return rows


def faster(in_libraries: bool, least: float) -> Figure:
    """Report the geometric mean of the best competitor over passkit, of four networks or more.

    Args:
        in_libraries: choose networks that spend half their time or more in libraries, or the
            others.
        least: the least allowed mean.
    """
    rows = [r for r in models() if (r["library_share"] >= 0.5) == in_libraries]
    values = {r["name"]: r["speedup"] for r in rows if r["speedup"]}
    if not values:
        return Figure("no such network", False)
    mean = math.exp(statistics.fmean(map(math.log, values.values())))
    slowest = min(values, key=lambda name: values[name])
    text = f"{mean:.2f} over {len(values)}, least {values[slowest]:.2f}: {slowest}"
    return Figure(text, len(values) >= 4 and mean >= least, values)


def start_up(which: str, most: float) -> Figure:
    """Report the slowest network from import to its first result, in a new process.

    Args:
        which: "cold" or "warm".
        most: the most allowed seconds.
    """
    times = {r["name"]: r[which] for r in models()}
    slowest = max(times, key=lambda name: times[name])
    return Figure(f"{times[slowest]:.2f} s: {slowest}", times[slowest] <= most, times)


def fewer() -> Figure:
    """Report kernels and bytes before and after fusion."""
    rows = models()
    texts = [f"{r['none']['kernels']}->{r['stitch']['kernels']}" for r in rows]
    moved = [r["none"]["bytes"] / r["stitch"]["bytes"] for r in rows]
    mean = math.exp(statistics.fmean(map(math.log, moved)))
    text = f"kernels {', '.join(texts)}; bytes {mean:.1f} times fewer"
    return Figure(text, len(rows) >= 10 and min(moved) > 1, moved)


def mutated() -> Figure:
    """Load thousands of damaged and hostile files of five kinds."""
    command = [sys.executable, str(ROOT / "benchmarks" / "fuzz_models.py"), "--json"]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    report = json.loads(process.stdout)
    count, faults = sum(report["models"].values()), len(report["faults"])
    text = f"{count} files, {faults} faults, slowest {report['slowest_seconds']} s"
    return Figure(text, count >= 10_000 and not faults, report)


def written() -> Figure:
    """Report the models that passkit wrote and whose results TensorFlow confirmed."""
    stored = json.loads((ROOT / CASES / "fixtures" / "saved.json").read_text())
    figure = tests(CASES + "export")
    return Figure(f"{len(stored['operators'])} operators in TensorFlow; {figure.text}", figure.met)


DEMANDS: tuple[Demand, ...] = (
    Demand("docs/tf_ops.md: 300 cases or more, no cell wrong: tests pass", cases),
    Demand("25 networks or more, <= 1e-4, compiled too: tests pass", networks),
    Demand(
        "SavedModels, functions, variables, loops, lists: tests pass",
        lambda: tests(CASES, only="saved or functions or loops or bundle or objects or host"),
    ),
    Demand("basic-pitch gives TensorFlow's output", basic_pitch, slow=True),
    Demand("ten networks: kernels and bytes before and after", fewer, slow=True),
    Demand(
        "best of TensorFlow, XLA, ONNX Runtime, torch.compile / passkit >= 1.0: libraries",
        lambda: faster(True, 1.0),
        slow=True,
    ),
    Demand(
        "best of TensorFlow, XLA, ONNX Runtime, torch.compile / passkit >= 1.4: memory",
        lambda: faster(False, 1.4),
        slow=True,
    ),
    Demand("load and compile, nothing cached <= 5 s each", lambda: start_up("cold", 5), slow=True),
    Demand("load and compile, cached <= 300 ms each", lambda: start_up("warm", 0.3), slow=True),
    Demand("2,000 mutants of each of five kinds: PasskitErrors only", mutated, slow=True),
    Demand(
        "200 mutated models in the suite: tests pass", lambda: tests(CASES + "test_mutations.py")
    ),
    Demand("TensorFlow runs what passkit wrote: results kept, tests pass", written),
    Demand(
        "the page in a browser, plan pictures: tests pass",
        lambda: tests("tests/reporting", "tests/test_pictures.py", "tests/test_viz.py"),
    ),
    Demand(
        "bisect finds planted miscompiles: tests pass",
        lambda: tests("tests/reporting/test_bisection.py"),
    ),
    Demand(
        "guides: every block runs; the site's links resolve",
        lambda: tests("tests/test_guides.py", "tests/test_site.py"),
    ),
)
