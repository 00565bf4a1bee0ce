"""Training: whether steps are right, how few kernels they are, what stays in place, how fast."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import shows
from shows import ROOT, Demand, Figure, ended, tests

if TYPE_CHECKING:
    from training.timing import Result

PAPER = {"logistic": 4.6, "word2vec": 4.9, "bi-rnn": 6.8, "dyn-rnn": 7.8, "perceptron": 1.3,
         "var-encoder": 1.9}
"""FusionStitching, Table 3: kernels of TensorFlow over those of FusionStitching."""
SAVED = "tests.frontends.tf_graphdef.reference.saved_training"
OPERATORS = ROOT / "benchmarks" / "training" / "tensorflow_ops.json"
FUSED = {"lenet": 19, "resnet-1": 82, "resnet-2": 136, "resnet-3": 190, "resnet-5": 298}
"""NNVM-Fusion: fused operators of Adam, of four distinct kernels."""


def agreement() -> Figure:
    """Losses, gradients and updates of three steps beside the NumPy rebuild."""
    from training.agreement import errors
    from training.micro import PROGRAMS

    worst = {p.name: max(errors(p).values()) for p in PROGRAMS}
    name = max(worst, key=lambda n: worst[n])
    return Figure(f"worst {worst[name]:.1e}: {name}", worst[name] <= 1e-4, worst)


def networks() -> Figure:
    """The same of LeNet, a ResNet and the transformer beside NumPy, operator by operator."""
    from training.agreement import beside_numpy
    from training.networks import PROGRAMS

    chosen = [p for p in PROGRAMS if p.name in ("lenet", "resnet-1", "transformer")]
    worst = {f"{p.name} {k}": v for p in chosen for k, v in beside_numpy(p).items()}
    name = max(worst, key=lambda n: worst[n])
    text = f"{len(worst)} figures, worst {worst[name]:.1e}: {name}"
    return Figure(text, worst[name] <= 1e-3, worst)


def frontend() -> Figure:
    """Losses of three steps written with tinyflow beside those of the benchmark's own graph."""
    from training.in_tinyflow import errors
    from training.micro import PROGRAMS
    from training.networks import PROGRAMS as NETWORKS

    worst = {p.name: max(errors(p, small=True).values()) for p in (*PROGRAMS, *NETWORKS)}
    name = max(worst, key=lambda n: worst[n])
    return Figure(f"{len(worst)} programs, worst {worst[name]:.1e}: {name}",
                  worst[name] <= 1e-4, worst)


def endurance() -> Figure:
    """What 10,000 steps leave behind, in a process of its own."""
    command = [sys.executable, str(ROOT / "benchmarks" / "train.py"), "endure", "perceptron"]
    done = subprocess.run([*command, "--small"], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    text = " ".join((done.stdout or done.stderr).split())
    return Figure(text.removeprefix("perceptron "), done.returncode == 0)


def alike() -> Figure:
    """Training graphs and classic layers beside what TensorFlow gave: committed fixtures."""
    return tests("tests/frontends/tf_graphdef/test_training.py",
                 "tests/frontends/tinyflow/test_tensorflow_results.py")


def sessions() -> Figure:
    """Two threads with two sessions, and what is said of feeds, NaN and unset variables."""
    return tests("tests/frontends/tinyflow/test_session.py")


@cache
def kernels() -> dict[str, dict[str, int]]:
    """Launches of a step by program and strategy; "composite" are TensorFlow's operators."""
    from training.counts import FUSIONS, launches
    from training.micro import PROGRAMS
    from training.steps import training_step

    composite = json.loads(OPERATORS.read_text())["programs"]
    found = {}
    for program in PROGRAMS:
        graph = training_step(program, program.drawn()).graph
        found[program.name] = {"composite": composite[program.name]["total"]}
        found[program.name] |= {fusion: launches(graph, fusion).total for fusion in FUSIONS}
    return found


def ordered() -> Figure:
    """Launches by strategy."""
    rows = kernels()
    texts = [f"{name} {r['none']}/{r['nnvm']}/{r['xla']}/{r['deep']}/{r['stitch']}"
             for name, r in rows.items()]
    met = all(r["stitch"] < r["xla"] < r["none"] for r in rows.values())
    return Figure("none/nnvm/xla/deep/stitch: " + ", ".join(texts), met, rows)


def applications() -> Figure:
    """Launches of the four stand-ins by strategy."""
    from training.applications import APPLICATIONS
    from training.counts import launches

    rows = {}
    for application in APPLICATIONS:
        graph = application.graph()
        rows[application.name] = [launches(graph, f).total for f in ("none", "xla", "stitch")]
    text = ", ".join(f"{name} {a}/{b}/{c}" for name, (a, b, c) in rows.items())
    met = all(c < b < a for a, b, c in rows.values())
    return Figure(f"none/xla/stitch: {text}", met, rows)


def ratio(name: str) -> Figure:
    """Operators of TensorFlow, and of our own, over launches."""
    row = kernels()[name]
    found, primitive = row["composite"] / row["stitch"], row["none"] / row["stitch"]
    text = f"{row['composite']}/{row['stitch']} = {found:.1f}; by primitives {primitive:.1f}"
    return Figure(f"{text}; xla {row['composite'] / row['xla']:.1f}", found > PAPER[name], row)


def optimizers() -> Figure:
    """What "nnvm" makes of Adam, and the default of LeNet's."""
    from training.counts import optimizing
    from training.networks import PROGRAMS

    by_name = {p.name: p for p in PROGRAMS}
    found = {n: optimizing(by_name[n], by_name[n].drawn(small=True), fusion="nnvm") for n in FUSED}
    ours = optimizing(by_name["lenet"], by_name["lenet"].drawn(small=True)).launches
    met = all((o.fused, o.distinct) == (FUSED[n], 4) for n, o in found.items())
    text = ", ".join(f"{n} {o.fused} of {o.distinct} kinds" for n, o in found.items())
    return Figure(f"{text}; by default LeNet's in {ours} launches", met and ours <= 13)


def floats() -> Figure:
    """What kernels of Adam load and store."""
    from training.traffic import floats_per_parameter

    found = {f: floats_per_parameter("tinyflow_adam", [3000, 500, 77], fusion=f)
             for f in ("none", "nnvm", "stitch")}
    text = ", ".join(f"{f} {n:.2f}" for f, n in found.items())
    return Figure(text, found["stitch"] < 7.05, found)


START = """
import sys, time
sys.path[:0] = ["benchmarks", "."]
import passkit as pk
from training.micro import PROGRAMS
from training.steps import training_step
graph = training_step(PROGRAMS[2], PROGRAMS[2].drawn()).graph
begin = time.perf_counter()
pk.compile(graph)
print(time.perf_counter() - begin)
"""


def start_up() -> Figure:
    """A recurrent network compiled in a new process, with nothing cached and with everything."""
    import tempfile
    from os import environ

    with tempfile.TemporaryDirectory() as folder:
        times = []
        for _ in range(2):
            given = environ | {"PASSKIT_CACHE_DIR": folder}
            done = subprocess.run([sys.executable, "-c", START], cwd=ROOT, env=given, check=True,
                                  capture_output=True, text=True)
            times.append(float(done.stdout))
    cold, warm = times
    return Figure(f"cold {cold:.1f} s, warm {warm:.2f} s", cold <= 15 and warm <= 0.3, times)


@cache
def table() -> dict[str, Result]:
    """Times of steps by program, from `train.py time` in the peers' interpreter, or its report.

    Raises: RuntimeError where a rival is missing.
    """
    from training.timing import Result, Times

    report = shows.steps or _timed()
    found = json.loads(report.read_text())
    missing = {"torch": "--peers", "jax": "--peers", "tensorflow": "--tensorflow"}
    for name in missing.keys() & found["versions"].keys():
        del missing[name]
    if missing:
        told = ", ".join(f"{name} ({option} names a Python that has it)"
                         for name, option in missing.items())
        raise RuntimeError(f"without {told}")
    return {name: Result({n: Times(t["seconds"], t["cpu"]) for n, t in row["times"].items()},
                         row["failed"]) for name, row in found["rows"].items()}


def _timed() -> Path:
    """The report of `train.py time`, just made."""
    report = ROOT / "benchmarks" / "results" / "training.json"
    begin = time.time()
    command = [shows.peers_python, str(ROOT / "benchmarks" / "train.py"), "time"]
    command += ["--tensorflow", shows.tensorflow_python] if shows.tensorflow_python else []
    done = subprocess.run([*command, "--json", str(report)], capture_output=True, text=True,
                          cwd=ROOT, check=False)
    if done.returncode or not report.exists() or report.stat().st_mtime < begin:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no report"])[-1])
    return report


def speed(*names: str) -> Figure:
    """The geometric mean of the best rival's time over passkit's, and the least."""
    rows = table()
    found = {name: rows[name].speedup for name in names}
    mean = math.exp(statistics.fmean(map(math.log, found.values())))
    text = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
    return Figure(f"{mean:.2f}: {text}", mean >= 1.4 and min(found.values()) >= 1.0, found)


def micro(*others: str) -> Figure:
    """`speed` of the six, and of others with them."""
    from training.micro import PROGRAMS

    return speed(*(p.name for p in PROGRAMS), *others)


def by_batch(name: str, least: float = 1.0, rivals: Sequence[str] = ()) -> Figure:
    """The best time of these rivals, or of the peers, over passkit's at five batch sizes."""
    from training import programs

    rows = {p.sizes["batch"]: table()[programs.label(p)]
            for p in programs.rows([name], programs.BATCHES)}
    found = {b: row.over(rivals) if rivals else row.speedup for b, row in rows.items()}
    text = ", ".join(f"{batch}: {value:.2f}" for batch, value in found.items())
    return Figure(text, min(found.values()) >= least, found)


DEMANDS: tuple[Demand, ...] = (
    Demand("loss, gradients, updates of six programs, 3 steps: error <= 1e-4", agreement),
    Demand("the same of LeNet, ResNet, transformer beside NumPy: <= 1e-3", networks),
    Demand("tests of training steps pass", lambda: tests("tests/benchmarks/test_training.py")),
    Demand("losses through tinyflow are those of the benchmarks' graphs: <= 1e-4", frontend),
    Demand("dynamic_rnn, nce_loss, TensorFlow 1's training graphs: as TensorFlow's", alike),
    Demand("10,000 steps: memory, descriptors, caches flat, addresses the same", endurance),
    Demand("two threads with two sessions; NaN, feeds, unset variables are named", sessions),
    Demand("launches: stitch < xla < unfused on all six", ordered),
    Demand("launches: stitch < xla < unfused on four applications", applications, slow=True),
    *(Demand(f"TensorFlow's operators a launch, {name}: > {most}",
             lambda name=name: ratio(name))  # type: ignore[misc]
      for name, most in PAPER.items()),
    Demand("nnvm: 19, 82 … fused operators of Adam, 4 kinds; LeNet's by default <= 13", optimizers),
    Demand("Adam: floats a parameter, of emitted loads and stores: 7", floats),
    Demand("bi-rnn compiles in <= 15 s cold, <= 0.3 s warm", start_up),
    Demand("best of the peers / passkit >= 1.4, none < 1.0: micro, transformer",
           lambda: micro("transformer"), slow=True),
    *(Demand(f"best of the peers / passkit >= 1.0 at batch 1 … 64: {name}",
             lambda name=name: by_batch(name), slow=True)  # type: ignore[misc]
      for name in ("lenet", "resnet-1")),
    Demand("LeNet's step: unfused passkit / passkit >= 1.4 at each batch",
           lambda: by_batch("lenet", 1.4, ["unfused"]), slow=True),
    Demand("each variable stays where it is for 1,000 steps, and no step allocates",
           lambda: tests("tests/benchmarks/test_training.py", only="state_stays")),
    Demand("19 scripts of TensorFlow-Examples run 50 steps each",
           lambda: ended(["-m", "tests.tf1_scripts", shows.scripts], "--scripts"), slow=True),
    Demand("TensorFlow trains what tinyflow saved to the same losses",
           lambda: ended(["-m", SAVED, shows.tensorflow_python], "--tensorflow"), slow=True),
)  # fmt: skip
