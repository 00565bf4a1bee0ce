"""Demands on training: correct steps, few kernels, state in place, speed."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from os import environ
from pathlib import Path

from training import agreement as reference
from training import programs
from training.applications import APPLICATIONS
from training.counts import FUSIONS, launches, optimizing
from training.micro import PROGRAMS as MICRO_PROGRAMS
from training.networks import PROGRAMS as NETWORK_PROGRAMS
from training.passkit_steps import training_step
from training.timing import ProgramTimes, RoundTimes
from training.tinyflow_training import errors as tinyflow_errors
from training.traffic import floats_per_parameter

import shows
from shows import ROOT, Demand, Figure, ended, tests

PAPER = {
    "logistic": 4.6,
    "word2vec": 4.9,
    "bi-rnn": 6.8,
    "dyn-rnn": 7.8,
    "perceptron": 1.3,
    "var-encoder": 1.9,
}
"""FusionStitching, Table 3: kernels of TensorFlow over those of FusionStitching."""
SAVED = "tests.frontends.tf_graphdef.reference.saved_training"
OPERATORS = ROOT / "benchmarks" / "training" / "tensorflow_ops.json"
FUSED = {"lenet": 19, "resnet-1": 82, "resnet-2": 136, "resnet-3": 190, "resnet-5": 298}
"""NNVM-Fusion: fused operators of Adam, of four distinct kernels."""


def agreement() -> Figure:
    """Compare losses, gradients and updates of three steps with the NumPy reference."""
    worst = {p.name: max(reference.errors(p).values()) for p in MICRO_PROGRAMS}
    name = max(worst, key=lambda n: worst[n])
    return Figure(f"worst {worst[name]:.1e}: {name}", worst[name] <= 1e-4, worst)


def networks() -> Figure:
    """Compare LeNet, a ResNet and the transformer with NumPy, operator by operator."""
    chosen = [p for p in NETWORK_PROGRAMS if p.name in ("lenet", "resnet-1", "transformer")]
    worst = {f"{p.name} {k}": v for p in chosen for k, v in reference.beside_numpy(p).items()}
    name = max(worst, key=lambda n: worst[n])
    text = f"{len(worst)} figures, worst {worst[name]:.1e}: {name}"
    return Figure(text, worst[name] <= 1e-3, worst)


def frontend() -> Figure:
    """Compare losses of three steps written with tinyflow with those of the benchmark's graph."""
    programs_of_both = (*MICRO_PROGRAMS, *NETWORK_PROGRAMS)
    worst = {p.name: max(tinyflow_errors(p, small=True).values()) for p in programs_of_both}
    name = max(worst, key=lambda n: worst[n])
    return Figure(
        f"{len(worst)} programs, worst {worst[name]:.1e}: {name}", worst[name] <= 1e-4, worst
    )


def endurance() -> Figure:
    """Report what 10,000 steps leave behind, in a process of its own."""
    command = [sys.executable, str(ROOT / "benchmarks" / "train.py"), "endure", "perceptron"]
    process = subprocess.run(
        [*command, "--small"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    text = " ".join((process.stdout or process.stderr).split())
    return Figure(text.removeprefix("perceptron "), process.returncode == 0)


def tensorflow_results() -> Figure:
    """Compare training graphs and layers with TensorFlow's stored results."""
    return tests(
        "tests/frontends/tf_graphdef/test_training.py",
        "tests/frontends/tinyflow/test_tensorflow_results.py",
    )


def sessions() -> Figure:
    """Run the tests of sessions: two threads, feeds, NaN, unset variables."""
    return tests("tests/frontends/tinyflow/test_session.py")


@cache
def kernels() -> dict[str, dict[str, int]]:
    """Count the launches of a step, by program and strategy.

    "composite" counts TensorFlow's operators.
    """
    composite = json.loads(OPERATORS.read_text())["programs"]
    counts = {}
    for program in MICRO_PROGRAMS:
        graph = training_step(program, program.drawn()).graph
        counts[program.name] = {"composite": composite[program.name]["total"]}
        counts[program.name] |= {fusion: launches(graph, fusion).total for fusion in FUSIONS}
    return counts


def ordered() -> Figure:
    """Report launches by strategy."""
    rows = kernels()
    texts = [
        f"{name} {r['none']}/{r['nnvm']}/{r['xla']}/{r['deep']}/{r['stitch']}"
        for name, r in rows.items()
    ]
    met = all(r["stitch"] < r["xla"] < r["none"] for r in rows.values())
    return Figure("none/nnvm/xla/deep/stitch: " + ", ".join(texts), met, rows)


def applications() -> Figure:
    """Report launches of the four stand-ins by strategy."""
    rows = {}
    for application in APPLICATIONS:
        graph = application.graph()
        rows[application.name] = [launches(graph, f).total for f in ("none", "xla", "stitch")]
    text = ", ".join(f"{name} {a}/{b}/{c}" for name, (a, b, c) in rows.items())
    met = all(c < b < a for a, b, c in rows.values())
    return Figure(f"none/xla/stitch: {text}", met, rows)


def ratio(name: str) -> Figure:
    """Compare TensorFlow's operators per launch with FusionStitching's figure."""
    row = kernels()[name]
    composite_ratio, primitive_ratio = row["composite"] / row["stitch"], row["none"] / row["stitch"]
    text = f"{row['composite']}/{row['stitch']} = {composite_ratio:.1f}"
    text += f"; by primitives {primitive_ratio:.1f}"
    return Figure(
        f"{text}; xla {row['composite'] / row['xla']:.1f}", composite_ratio > PAPER[name], row
    )


def optimizers() -> Figure:
    """Count the kernels of Adam by strategy "nnvm", and by default for LeNet."""
    by_name = {p.name: p for p in NETWORK_PROGRAMS}
    kernels_by_name = {
        n: optimizing(by_name[n], by_name[n].drawn(small=True), fusion="nnvm") for n in FUSED
    }
    default_launches = optimizing(by_name["lenet"], by_name["lenet"].drawn(small=True)).launches
    met = all((o.fused, o.distinct) == (FUSED[n], 4) for n, o in kernels_by_name.items())
    text = ", ".join(f"{n} {o.fused} of {o.distinct} kinds" for n, o in kernels_by_name.items())
    return Figure(
        f"{text}; by default LeNet's in {default_launches} launches", met and default_launches <= 13
    )


def floats() -> Figure:
    """Count the floats that kernels of Adam load and store per parameter."""
    floats_by_strategy = {
        f: floats_per_parameter("tinyflow_adam", [3000, 500, 77], fusion=f)
        for f in ("none", "nnvm", "stitch")
    }
    text = ", ".join(f"{f} {n:.2f}" for f, n in floats_by_strategy.items())
    return Figure(text, floats_by_strategy["stitch"] < 7.05, floats_by_strategy)


START = """
import sys, time
sys.path[:0] = ["benchmarks", "."]
import passkit as pk
from training.micro import PROGRAMS
from training.passkit_steps import training_step
graph = training_step(PROGRAMS[2], PROGRAMS[2].drawn()).graph
begin = time.perf_counter()
pk.compile(graph)
print(time.perf_counter() - begin)
"""


def start_up() -> Figure:
    """Compile a recurrent network in new processes: with an empty cache, then with a full one."""
    with tempfile.TemporaryDirectory() as folder:
        times = []
        for _ in range(2):
            environment = environ | {"PASSKIT_CACHE_DIR": folder}
            process = subprocess.run(
                [sys.executable, "-c", START],
                cwd=ROOT,
                env=environment,
                check=True,
                capture_output=True,
                text=True,
            )
            times.append(float(process.stdout))
    cold, warm = times
    return Figure(f"cold {cold:.1f} s, warm {warm:.2f} s", cold <= 15 and warm <= 0.3, times)


@cache
def table() -> dict[str, ProgramTimes]:
    """Return the times of steps by program: from `train.py time`, or from its report.

    Raises:
        RuntimeError: a competitor is missing.
    """
    report = shows.steps or _timed()
    report_json = json.loads(report.read_text())
    missing = {"torch": "--peers", "jax": "--peers", "tensorflow": "--tensorflow"}
    for name in missing.keys() & report_json["versions"].keys():
        del missing[name]
    if missing:
        texts = ", ".join(
            f"{name} ({option} names a Python that has it)" for name, option in missing.items()
        )
        raise RuntimeError(f"without {texts}")
    return {
        name: ProgramTimes(
            {n: RoundTimes(t["seconds"], t["cpu"]) for n, t in row["times"].items()}, row["failed"]
        )
        for name, row in report_json["rows"].items()
    }


def _timed() -> Path:
    """Run `train.py time` in the peers' interpreter and return the path of its report.

    Raises:
        RuntimeError: it wrote no report.
    """
    report = ROOT / "benchmarks" / "results" / "training.json"
    begin = time.time()
    command = [shows.peers_python, str(ROOT / "benchmarks" / "train.py"), "time"]
    command += ["--tensorflow", shows.tensorflow_python] if shows.tensorflow_python else []
    process = subprocess.run(
        [*command, "--json", str(report)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    if process.returncode or not report.exists() or report.stat().st_mtime < begin:
        raise RuntimeError((process.stderr.strip().splitlines() or ["no report"])[-1])
    return report


def speed(*names: str) -> Figure:
    """Report the geometric mean of the best competitor over passkit, and the least."""
    rows = table()
    speedups = {name: rows[name].speedup for name in names}
    mean = math.exp(statistics.fmean(map(math.log, speedups.values())))
    text = ", ".join(f"{name} {value:.2f}" for name, value in speedups.items())
    return Figure(f"{mean:.2f}: {text}", mean >= 1.4 and min(speedups.values()) >= 1.0, speedups)


def micro(*others: str) -> Figure:
    """Report the speed of the six micro-benchmarks, and of further programs."""
    return speed(*(p.name for p in MICRO_PROGRAMS), *others)


def by_batch(name: str, least: float = 1.0, rivals: Sequence[str] = ()) -> Figure:
    """Report the best competitor over passkit at five batch sizes.

    Args:
        name: the program.
        least: the least allowed ratio.
        rivals: competitors; all of the peers by default.
    """
    rows = {
        p.sizes["batch"]: table()[programs.label(p)]
        for p in programs.rows([name], programs.BATCHES)
    }
    ratios = {b: row.over(rivals) if rivals else row.speedup for b, row in rows.items()}
    text = ", ".join(f"{batch}: {value:.2f}" for batch, value in ratios.items())
    return Figure(text, min(ratios.values()) >= least, ratios)


DEMANDS: tuple[Demand, ...] = (
    Demand("loss, gradients, updates of six programs, 3 steps: error <= 1e-4", agreement),
    Demand("the same of LeNet, ResNet, transformer beside NumPy: <= 1e-3", networks),
    Demand("tests of training steps pass", lambda: tests("tests/benchmarks/test_training.py")),
    Demand("losses through tinyflow are those of the benchmarks' graphs: <= 1e-4", frontend),
    Demand(
        "dynamic_rnn, nce_loss, TensorFlow 1's training graphs: as TensorFlow's", tensorflow_results
    ),
    Demand("10,000 steps: memory, descriptors, caches flat, addresses the same", endurance),
    Demand("two threads with two sessions; NaN, feeds, unset variables are named", sessions),
    Demand("launches: stitch < xla < unfused on all six", ordered),
    Demand("launches: stitch < xla < unfused on four applications", applications, slow=True),
    *(
        Demand(f"TensorFlow's operators a launch, {name}: > {most}", lambda name=name: ratio(name))  # type: ignore[misc]
        for name, most in PAPER.items()
    ),
    Demand("nnvm: 19, 82 … fused operators of Adam, 4 kinds; LeNet's by default <= 13", optimizers),
    Demand("Adam: floats a parameter, of emitted loads and stores: 7", floats),
    Demand("bi-rnn compiles in <= 15 s cold, <= 0.3 s warm", start_up),
    Demand(
        "best of the peers / passkit >= 1.4, none < 1.0: micro, transformer",
        lambda: micro("transformer"),
        slow=True,
    ),
    *(
        Demand(
            f"best of the peers / passkit >= 1.0 at batch 1 … 64: {name}",
            lambda name=name: by_batch(name),
            slow=True,
        )  # type: ignore[misc]
        for name in ("lenet", "resnet-1")
    ),
    Demand(
        "LeNet's step: unfused passkit / passkit >= 1.4 at each batch",
        lambda: by_batch("lenet", 1.4, ["unfused"]),
        slow=True,
    ),
    Demand(
        "each variable stays where it is for 1,000 steps, and no step allocates",
        lambda: tests("tests/benchmarks/test_training.py", only="state_stays"),
    ),
    Demand(
        "19 scripts of TensorFlow-Examples run 50 steps each",
        lambda: ended(["-m", "tests.tf1_scripts", shows.scripts], "--scripts"),
        slow=True,
    ),
    Demand(
        "TensorFlow trains what tinyflow saved to the same losses",
        lambda: ended(["-m", SAVED, shows.tensorflow_python], "--tensorflow"),
        slow=True,
    ),
)
