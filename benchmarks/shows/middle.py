"""Demands on the middle, from fusion to the text of kernels: its size, its layers, its speed.

Texts of kernels are compared with another version's by `corpus.py`. Random graphs are those of
`fuzz.py`, random groups those of `fuzz_templates.py`; `random_campaigns.py` records both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import fault_injection
import kernels_against
import shows_against
import suite_pieces

import shows
from shows import ROOT, Demand, Figure, plans, tests
from shows.records import recorded_pieces, recorded_random
from tests import language, test_layers

OLD_FOLDERS = (
    "plan",
    "space",
    "splits",
    "sharing",
    "stitching",
    "templating",
    "lowering",
)
"""Folders that the design does not have."""
FOLDERS = (
    *OLD_FOLDERS,
    "ast",
    "ir",
    "target",
    "analysis",
    "schedule",
    "planner",
    "transforms",
    "dialects",
    "checks",
    "fusion",
)
"""The folders of `passkit/` that are the middle."""
MAX_LINES = 20_000
GRAPHS, GROUPS = 10_000, 5_000
KERNELS = 120
BEFORE = "e29f45e6"
"""The commit before the middle was rebuilt."""
AGAINST = f"python benchmarks/kernels_against.py {BEFORE}"
TARGETS = {
    "cpu": "CPU",
    "blocks": "block by block",
    "opencl": "OpenCL",
    "cuda": "CUDA C emulated",
}
"""The parts of the campaign of random graphs."""
ATTENTION = """
import sys, time
sys.path[:0] = ["benchmarks", "."]
import selections
from passkit.program.planning import planned
planned(selections.attention(48, 70, 24), "SharedMemPlan")  # imports what planning needs
graph = selections.attention(64, 94, 32)
start = time.process_time()
planned(graph, "SharedMemPlan")
print(time.process_time() - start)
"""
"""A new process plans other sizes first: no plan of these is known then."""
LAYER_NORM = """
import sys, time
import numpy as np
import passkit as pk
x = pk.var("x", (4096, 768))
y = pk.ops.layer_norm(x, pk.var("scale", (768,)), pk.var("shift", (768,)))
inputs = [n.entries[0] for n in pk.Graph([y]).inputs]
graph = pk.Graph([*pk.gradients(pk.ops.sum(y * y), inputs)])
warm = pk.compile(pk.Graph([pk.ops.exp(pk.var("w", (64,)))]))
warm(w=np.ones(64, np.float32))
start = time.perf_counter()
executable = pk.compile(graph)
executable({n.name: np.ones(n.entries[0].shape, np.float32) for n in graph.inputs})
print(time.perf_counter() - start)
"""
CONCAT = """
import sys, time
import numpy as np
import passkit as pk
count = int(sys.argv[1])
inputs = [pk.var(f"x{k}", (3, 5)) for k in range(count)]
graph = pk.Graph([pk.ops.concat(*inputs, axis=1) * 2.0])
warm = pk.compile(pk.Graph([pk.ops.exp(pk.var("w", (64,)))]))
warm(w=np.ones(64, np.float32))
start = time.perf_counter()
executable = pk.compile(graph)
executable({n.name: np.ones((3, 5), np.float32) for n in graph.inputs})
print(time.perf_counter() - start)
"""
FIFTY = """
import sys, time
import numpy as np
which = sys.argv[1]
def network(o, x, weights):
    for scale, shift, matrix in weights:
        mean = o.mean(x, axis=-1, keepdims=True)
        d = x - mean
        x = d / o.sqrt(o.mean(d * d, axis=-1, keepdims=True) + 1e-5) * scale + shift
        x = o.tanh(o.matmul(x, matrix)) + x
    return x
rng = np.random.default_rng(0)
x = rng.random((64, 128), np.float32)
weights = [
    (
        rng.random((128,), np.float32),
        rng.random((128,), np.float32),
        rng.random((128, 128), np.float32) * 0.1,
    )
    for _ in range(4)
]
if which == "jax":
    import jax
    import jax.numpy as jnp
    jax.jit(lambda v: jnp.exp(v))(x).block_until_ready()
    start = time.perf_counter()
    jax.jit(lambda v, w: network(jnp, v, w))(x, weights).block_until_ready()
else:
    import passkit as pk
    pk.compile(pk.Graph([pk.ops.exp(pk.var("w", (64,)))]))(w=np.ones(64, np.float32))
    start = time.perf_counter()
    entry = pk.var("x", (64, 128))
    shapes = [
        tuple(pk.var(f"w{k}{j}", a.shape) for j, a in enumerate(w)) for k, w in enumerate(weights)
    ]
    graph = pk.Graph([network(pk.ops, entry, shapes)])
    feeds = {f"w{k}{j}": a for k, w in enumerate(weights) for j, a in enumerate(w)}
    pk.compile(graph)({"x": x, **feeds})
print(time.perf_counter() - start)
"""


NEWCOMER = (
    "tests/schedule/test_rules.py",
    "tests/schedule/test_tiles.py",
    "tests/fusion/test_new_strategy.py",
)
"""Changes as a newcomer would make them."""


PLANTED = (
    "tests/ir/test_planted_faults.py",
    "tests/ir/test_packs.py",
    "tests/dialects/test_packs.py",
    "tests/emulator/test_kernels.py",
    "tests/emulator/test_random_graphs.py",
    "tests/graph/test_quotient.py",
    "tests/planner/test_template.py",
    "tests/test_fuzz.py",
)
"""Tests that plant faults in plans, loop IR and text, which checks and comparisons have to find."""


def seconds(text: str, *arguments: str, python: str = sys.executable) -> float:
    """Return the number that a program prints last, with an empty cache of kernels.

    Raises: CalledProcessError if it fails.
    """
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PASSKIT_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)}
        process = subprocess.run(
            [python, "-c", text, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
    return float(process.stdout.split()[-1])


def lines() -> Figure:
    """Count the lines of the middle's folders."""
    counts = {
        folder: sum(
            len(path.read_text().splitlines()) for path in (ROOT / "passkit" / folder).rglob("*.py")
        )
        for folder in FOLDERS
    }
    total = sum(counts.values())
    largest = ", ".join(
        f"{folder} {n}" for folder, n in sorted(counts.items(), key=lambda x: -x[1])[:5]
    )
    return Figure(f"{total} lines; {largest}", total <= MAX_LINES, counts)


def folders() -> Figure:
    """Name folders that the design does not have, and modules with imports that it forbids."""
    old = [folder for folder in OLD_FOLDERS if (ROOT / "passkit" / folder).exists()]
    unfinished = len(test_layers.UNFINISHED)
    text = f"{len(old)} old folders: {', '.join(old)}; {unfinished} modules import these"
    return Figure(text, not old and not unfinished, old)


def retired_words() -> Figure:
    """Count words of the glossary's old column in all files of Python."""
    words = [f for f in language.all_findings() if f.kind == "retired"]
    return Figure(f"{len(words)} occurrences", not words, [str(f) for f in words])


def deciding_dialects() -> Figure:
    """Name imports of `dialects/` by which a printer would decide something, not spell it."""
    problems = test_layers.deciding_imports()
    return Figure(f"{len(problems)}: {', '.join(problems)}", not problems, problems)


def attention() -> Figure:
    """Time the planning of attention up to SharedMemPlan, in CPU seconds."""
    took = min(seconds(ATTENTION) for _ in range(3))
    return Figure(f"{took * 1e3:.0f} ms", took <= 0.06, took)


def layer_norm() -> Figure:
    """Time the first call of the gradient of layer norm, with an empty cache."""
    took = median(seconds(LAYER_NORM) for _ in range(3))
    return Figure(f"{took:.2f} s", took <= 1.5, took)


def concat() -> Figure:
    """Time the first call of concatenations of 100, 200 and 400 inputs."""
    took = {n: median(seconds(CONCAT, str(n)) for _ in range(3)) for n in (100, 200, 400)}
    text = ", ".join(f"{n}: {s:.2f} s" for n, s in took.items())
    is_linear = took[400] <= 2.2 * took[200] <= 2.2**2 * took[100]
    return Figure(text, took[400] <= 5 and is_linear, took)


def fifty() -> Figure:
    """Time the first call of a network of about fifty operators beside `jax.jit`, alternating."""
    own, other = [], []
    for _ in range(3):
        own.append(seconds(FIFTY, "passkit"))
        other.append(seconds(FIFTY, "jax", python=shows.peers_python))
    ratio = median(own) / median(other)
    text = f"{ratio:.2f}: {median(own):.2f} s, jax.jit {median(other):.2f} s"
    return Figure(text, ratio <= 2, [own, other])


def recorded_kernels(path: Path = kernels_against.RECORD) -> Figure:
    """Read the record of `kernels_against.py`: kernels and calls beside an older version's."""
    if not path.exists():
        return Figure(f"{path.name} is missing: {AGAINST}", False)
    record = json.loads(path.read_text())
    text, is_met = kernels_against.summary(record)
    number = sum(len(row["times"]["new"]["names"]) for row in record["rows"])
    text += "" if number >= KERNELS else f"; {KERNELS} are required: {AGAINST}"
    return Figure(text, is_met and number >= KERNELS, record["left_out"])


def recorded_shows(path: Path = shows_against.RECORD) -> Figure:
    """Read the record of `shows_against.py`: other demands beside those of an older version."""
    command = f"python benchmarks/shows_against.py {BEFORE}"
    if not path.exists():
        return Figure(f"{path.name} is missing: {command}", False)
    record = json.loads(path.read_text())
    text, is_met = shows_against.summary(record)
    recorded = {(row["subject"], row["demand"]) for row in record["rows"]}
    missing = [key for key in shows_against.demands() if key not in recorded]
    text += f"; {len(missing)} rows are missing: {command}" if missing else ""
    return Figure(text, is_met and not missing, shows_against.worse_rows(record))


def recorded_faults(path: Path = fault_injection.RECORD) -> Figure:
    """Read the record of `fault_injection.py`, which has to be one of its usual size."""
    if not path.exists():
        return Figure(f"{path.name} is missing: python benchmarks/fault_injection.py", False)
    record = json.loads(path.read_text())
    usual = (fault_injection.KILLS, fault_injection.PROCESSES)
    is_usual = all(
        n >= m for n, m in zip((record["kills"], record["processes"]), usual, strict=True)
    )
    text = f"{record['lines'][-1]}; {record['commit']} of {record['date']}"
    text += "" if is_usual else "; the usual size is required: python benchmarks/fault_injection.py"
    return Figure(text, is_usual and record["faults"] == 0, record["lines"])


def of_plans(
    measure: Callable[[], Figure], most: float, number: Callable[[Figure], float]
) -> Callable[[], Figure]:
    """Return a measurement of `shows.plans` with another limit."""

    def measured() -> Figure:
        figure = measure()
        return Figure(figure.text, number(figure) <= most, figure.data)

    return measured


DEMANDS: tuple[Demand, ...] = (
    Demand("folders and layers of the design, no import of old ones", folders),
    Demand(
        "no import cycle, layers keep their order: tests pass",
        lambda: tests("tests/test_layers.py", "tests/test_floors.py"),
    ),
    Demand(f"the middle has <= {MAX_LINES} lines", lines),
    Demand("no module of dialects/ decides anything", deciding_dialects),
    Demand("words of the glossary's old column: 0", retired_words),
    Demand("attention 64x94x32 is planned in <= 60 ms", attention),
    Demand(
        "30,000 operators through CodeGen <= 30 s",
        of_plans(plans.large, 30, lambda f: max(row["cpu_seconds"] for row in f.data)),
        slow=True,
    ),
    Demand(
        "growth of time per operator <= 1.3 a decade",
        of_plans(plans.growth, 1.3, lambda f: max(f.data.values())),
        slow=True,
    ),
    Demand("gradient of layer norm 4096x768: first call <= 1.5 s", layer_norm),
    Demand("concat of 400 inputs: first call <= 5 s, linear", concat),
    Demand("first call of 50 operators <= 2x jax.jit's", fifty, slow=True),
    *(
        Demand(
            f"random graphs, {label}: {GRAPHS}, 0 wrong",
            lambda part=part: recorded_random("graphs", part, GRAPHS),
        )  # type: ignore[misc]
        for part, label in TARGETS.items()
    ),
    Demand(
        f"random groups under all their templates: {GROUPS}, 0 wrong",
        lambda: recorded_random("templates", "templates", GROUPS, "groups"),
    ),
    Demand(
        "all tests by two workers <= 8 minutes, as recorded, with executed lines",
        lambda: recorded_pieces(suite_pieces.pieces(), 480),
    ),
    Demand(
        "planted faults of plans, loop IR and text are found: tests pass",
        lambda: tests(*PLANTED, only="planted"),
        slow=True,
    ),
    Demand(
        "processes killed, many at once, full disks: right, or errors of passkit",
        recorded_faults,
    ),
    Demand(
        f"{KERNELS} kernels of the CPU beside {BEFORE}: none above 1.05 times in 3 repetitions",
        recorded_kernels,
    ),
    Demand(
        f"demands on {', '.join(shows_against.SUBJECTS)} as well met as by {BEFORE}",
        recorded_shows,
    ),
    Demand(
        "a newcomer's schedule rule and fusion strategy: tests pass",
        lambda: tests(*NEWCOMER),
    ),
    Demand(
        "a newcomer's target with wider vectors, by table entries alone",
        lambda: tests("tests/dialects/test_wider_vectors.py"),
    ),
)
