"""TensorFlow models whole: what is equal, what is refused, how fast they are, what one sees.

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

CASES = "tests/frontends/tf_graphdef/"


def cases() -> Figure:
    """How many cells the page has, of which tests check each."""
    counts = re.search(
        r"(\d+) operators, (\d+) cases: (\d+) equal, (\d+) refused",
        (ROOT / "docs" / "tf_ops.md").read_text(),
    )
    if counts is None:
        return Figure("docs/tf_ops.md has no counts", False)
    found = tests(CASES + "test_reference.py")
    return Figure(f"{counts[0]}; {found.found}", found.met and int(counts[2]) >= 300)


def networks() -> Figure:
    """The frozen networks, interpreted and compiled."""
    from tests.frontends.tf_graphdef.reference.case import NETWORKS

    count = len(list(NETWORKS.glob("*.npz")))
    found = tests(CASES + "test_networks.py")
    return Figure(f"{count} networks; {found.found}", found.met and count >= 25, count)


def basic_pitch() -> Figure:
    """Spotify's model, of which TensorFlow's output is kept."""
    command = [sys.executable, str(ROOT / "benchmarks" / "basic_pitch.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if not done.stdout.startswith("{"):
        return Figure((done.stderr.strip().splitlines() or ["no output"])[-1], False)
    found = json.loads(done.stdout)
    worst = max(found["errors"].values())
    ratio = max(e["compiled"] / e["interpreted"] for e in found["ulps_from_float64"].values())
    seconds = found["load_seconds"] + found["compile_seconds"]
    text = f"{worst:.1e} of the largest from TensorFlow, {ratio:.1f} of the interpreter's error"
    return Figure(f"{text}; {seconds:.1f} s", found["good"], found)


@cache
def models() -> list[dict[str, Any]]:
    """The rows of `models.py`, which runs in the peers' interpreter."""
    report = RESULTS / "models.json"
    report.unlink(missing_ok=True)
    command = [shows.peers_python, str(ROOT / "benchmarks" / "models.py")]
    command += ["--torch", shows.torch_python]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if not report.exists():
        raise RuntimeError((done.stderr.strip().splitlines() or ["no report"])[-1])
    found = json.loads(report.read_text())
    missing = {"tensorflow_cpu", "onnxruntime", "torch"} - set(found["versions"])
    if missing:
        raise RuntimeError(f"without {', '.join(missing)}; --peers and --torch name Pythons")
    rows: list[dict[str, Any]] = found["rows"]
    return rows


def faster(in_libraries: bool, wanted: float) -> Figure:
    """The geometric mean of the best competitor's time over passkit's, of four networks or more."""
    rows = [r for r in models() if (r["library_share"] >= 0.5) == in_libraries]
    values = {r["name"]: r["speedup"] for r in rows if r["speedup"]}
    if not values:
        return Figure("no such network", False)
    mean = math.exp(statistics.fmean(map(math.log, values.values())))
    least = min(values, key=lambda name: values[name])
    text = f"{mean:.2f} over {len(values)}, least {values[least]:.2f}: {least}"
    return Figure(text, len(values) >= 4 and mean >= wanted, values)


def start_up(which: str, wanted: float) -> Figure:
    """The slowest of the networks from import to its first result, in a new process."""
    times = {r["name"]: r[which] for r in models()}
    slowest = max(times, key=lambda name: times[name])
    return Figure(f"{times[slowest]:.2f} s: {slowest}", times[slowest] <= wanted, times)


def fewer() -> Figure:
    """Kernels and bytes before and after fusion."""
    rows = models()
    texts = [f"{r['none']['kernels']}->{r['stitch']['kernels']}" for r in rows]
    moved = [r["none"]["bytes"] / r["stitch"]["bytes"] for r in rows]
    mean = math.exp(statistics.fmean(map(math.log, moved)))
    text = f"kernels {', '.join(texts)}; bytes {mean:.1f} times fewer"
    return Figure(text, len(rows) >= 10 and min(moved) > 1, moved)


def mutated() -> Figure:
    """Thousands of damaged and hostile files, of five kinds."""
    command = [sys.executable, str(ROOT / "benchmarks" / "fuzz_models.py"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    found = json.loads(done.stdout)
    count, faults = sum(found["models"].values()), len(found["faults"])
    text = f"{count} files, {faults} faults, slowest {found['slowest_seconds']} s"
    return Figure(text, count >= 10_000 and not faults, found)


def written() -> Figure:
    """What TensorFlow gave for models that passkit wrote, as it is kept."""
    kept = json.loads((ROOT / CASES / "fixtures" / "saved.json").read_text())
    found = tests(CASES + "export")
    return Figure(f"{len(kept['operators'])} operators in TensorFlow; {found.found}", found.met)


DEMANDS: tuple[Demand, ...] = (
    Demand("docs/tf_ops.md: 300 cases or more, no cell wrong: tests pass", cases),
    Demand("25 networks or more, <= 1e-4, compiled too: tests pass", networks),
    Demand("SavedModels, functions, variables, loops, lists: tests pass",
           lambda: tests(CASES, only="saved or functions or loops or bundle or objects or host")),
    Demand("basic-pitch gives TensorFlow's output", basic_pitch, slow=True),
    Demand("ten networks: kernels and bytes before and after", fewer, slow=True),
    Demand("best of TensorFlow, XLA, ONNX Runtime, torch.compile / passkit >= 1.0: libraries",
           lambda: faster(True, 1.0), slow=True),
    Demand("best of TensorFlow, XLA, ONNX Runtime, torch.compile / passkit >= 1.4: memory",
           lambda: faster(False, 1.4), slow=True),
    Demand("load and compile, nothing cached <= 5 s each", lambda: start_up("cold", 5), slow=True),
    Demand("load and compile, cached <= 300 ms each", lambda: start_up("warm", 0.3), slow=True),
    Demand("2,000 mutants of each of five kinds: PasskitErrors only", mutated, slow=True),
    Demand("200 mutated models in the suite: tests pass",
           lambda: tests(CASES + "test_mutations.py")),
    Demand("TensorFlow runs what passkit wrote: results kept, tests pass", written),
    Demand("the page in a browser, plan pictures: tests pass",
           lambda: tests("tests/reporting", "tests/test_pictures.py", "tests/test_viz.py")),
    Demand("bisect finds planted miscompiles: tests pass",
           lambda: tests("tests/reporting/test_bisection.py")),
    Demand("guides: every block runs; the site's links resolve",
           lambda: tests("tests/test_guides.py", "tests/test_site.py")),
)  # fmt: skip
