"""Demands on the core: a graph in, fused native kernels out, on the CPU."""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import subprocess
import tempfile
import time
import timeit
from functools import cache
from typing import Any

import numpy as np
import peers
import scaling
import startup
from workloads import WORKLOADS, small20

import passkit as pk
import shows
from passkit.runtime.native.launcher import num_threads, set_num_threads
from shows import RESULTS, ROOT, Demand, Figure, tests
from shows.records import recorded
from tests.planned import feeds_of, prebuild
from tests.test_one_kernel import GRAPHS

LARGE_NBYTES = 1 << 20


def milliseconds(seconds: float) -> str:
    """Format seconds as milliseconds."""
    return f"{seconds * 1e3:.1f} ms"


# Fresh clone


@cache
def cloned() -> tuple[dict[str, float], str]:
    """Run both commands of the README in a fresh clone.

    Returns:
        Seconds of each command, and the last line of the tests.

    Raises:
        RuntimeError: a command fails; the message has its last line.
    """
    blocks = re.findall(r"^```sh$\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="passkit-clone-") as folder:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), folder], check=True)
        environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        environ["PASSKIT_CACHE_DIR"] = f"{folder}/.cache"
        for name, block in zip(("install and run", "test"), blocks, strict=False):
            start = time.perf_counter()
            process = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block],
                cwd=folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=3600,
            )
            seconds[name] = time.perf_counter() - start
            last_line = (process.stdout.strip().splitlines() or ["no output"])[-1]
            if process.returncode:
                raise RuntimeError(f"'{name}' fails after {seconds[name]:.0f} s: {last_line}")
    return seconds, last_line


def fresh_clone() -> Figure:
    """Time the first command."""
    seconds = cloned()[0]["install and run"]
    return Figure(f"{seconds:.0f} s, with a new environment", seconds < 120, seconds)


def fresh_clone_tests() -> Figure:
    """Report the second command."""
    seconds, last = cloned()
    return Figure(f"{last.strip('= ')}", True, seconds)


# Fusion


def one_kernel(*prefixes: str) -> Figure:
    """Count the graphs with these prefixes that become one kernel, one launch, one native call."""
    graphs = {n: g for n, g in GRAPHS.items() if n.startswith(prefixes)}
    prebuild(graphs.values())
    stream, wrong = np.random.default_rng(0), []
    for name, graph in graphs.items():
        exe, feeds = pk.compile(graph), feeds_of(graph, stream)
        counts = []
        for _ in range(3):
            before = exe.stats["native_calls"]
            outs = exe(feeds)
            counts.append(exe.stats["native_calls"] - before)
        tolerance = 1e-4 if "squares" in name else 2e-6  # E[x²] - mean² cancels
        is_right = all(
            np.allclose(a, b, tolerance, 8 * tolerance)
            for a, b in zip(outs, pk.interpret(graph, feeds), strict=True)
        )
        if len(exe.kernels) != 1 or counts != [1, 1, 1] or not is_right:
            wrong.append(f"{name}: {len(exe.kernels)} kernels, {counts} calls, right: {is_right}")
    text = f"{len(graphs) - len(wrong)} of {len(graphs)} graphs"
    return Figure(text + (f"; {wrong[0]}" if wrong else ""), bool(graphs) and not wrong, wrong)


# Speed


@cache
def comparison() -> dict[str, Any]:
    """Run `compare.py` with every competitor in the peers' interpreter and return its report."""
    name = "show-core"
    subprocess.run(
        [shows.peers_python, str(ROOT / "benchmarks" / "compare.py"), "--name", name],
        cwd=ROOT,
        check=False,
        stdout=subprocess.DEVNULL,
    )
    report: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return report


def speedups(mode: str, large: bool = False) -> dict[str, float]:
    """Return the best peer over passkit on the core rows, by name.

    Raises:
        RuntimeError: a peer is not installed.
    """
    report = comparison()
    missing = {"eager", "compile", "jax"} - set(report["settings"])
    if missing:
        lacking = ", ".join(sorted(missing))
        raise RuntimeError(f"without {lacking}; --peers names a Python with them")
    return {
        row["name"]: row["speedup"].get(mode, 0.0)
        for row in report["rows"]
        if row["core"] and (row["nbytes"] >= LARGE_NBYTES or not large)
    }


def geometric(mode: str, least: float, large: bool = False) -> Figure:
    """Compare the geometric mean of the speedups with its least allowed value."""
    values = speedups(mode, large)
    mean = math.exp(statistics.fmean(math.log(max(v, 1e-9)) for v in values.values()))
    return Figure(f"{mean:.2f} over {len(values)} rows", mean >= least, values)


def least_speedup(mode: str) -> Figure:
    """Compare the least of the speedups with 0.9."""
    values = speedups(mode)
    worst = min(values, key=lambda n: values[n])
    return Figure(f"{values[worst]:.2f}: {worst}", values[worst] >= 0.9, values)


def over_hand(label: str) -> Figure:
    """Compare passkit's time with the hand-written kernel's, in both modes.

    Below 50 us the hand-written call, through ctypes, would flatter passkit. There passkit's call
    is compared with the isolated kernel plus 0.22 us, the least cost of a call and a small result.
    """
    row = next(r for r in comparison()["rows"] if r["name"] == label)
    ratios = dict(row["over_hand"])
    if not ratios:
        seconds = row["competitors"]["passkit"]["dropped"]["median"]
        ratios = {"call over kernel + 0.22 us": seconds / (row["hand_kernel"] + 0.22e-6)}
    worst = max(ratios.values())
    return Figure(", ".join(f"{k} {v:.2f}" for k, v in ratios.items()), worst <= 1.25, row)


def hand_rows() -> list[str]:
    """Return the labels of the core rows that have a hand-written kernel."""
    return [w.label for w in WORKLOADS if w.core and w.hand]


# Small calls


def per_call(statement: str, names: dict[str, Any]) -> float:
    """Return the seconds of a statement: the best of 60 series of 2,000."""
    timer = timeit.Timer(statement, globals=names)
    return min(timer.repeat(60, 2000)) / 2000


@cache
def small_calls() -> dict[str, float]:
    """Time small20 as an executable and as a jitted function.

    Raises:
        RuntimeError: their results differ.
    """
    work = next(w for w in WORKLOADS if w.name == "small20")
    exe = peers.passkit(work, 1).function
    x, y = work.arrays(0)
    ops = pk.ops

    class Functions:
        abs, exp, maximum, minimum = ops.abs, ops.exp, ops.maximum, ops.minimum

    jitted = pk.jit(lambda x, y: small20(Functions, x, y))
    names = {"exe": exe, "jitted": jitted, "x": x, "y": y}
    if not np.array_equal(jitted(x, y), exe(x=x, y=y)[0]):
        raise RuntimeError("jit and compile differ")
    seconds = dict.fromkeys(("exe(x=x, y=y)[0]", "jitted(x, y)"), math.inf)
    for _ in range(3):  # in turn, so that drift of the machine hits both
        for statement in seconds:
            seconds[statement] = min(seconds[statement], per_call(statement, names))
    return seconds


def small20_call() -> Figure:
    """Report the executable's call."""
    seconds = small_calls()["exe(x=x, y=y)[0]"]
    return Figure(f"{seconds * 1e6:.2f} us", seconds <= 1.5e-6, seconds)


def jit_adds() -> Figure:
    """Report the additional cost of the jitted call."""
    seconds = small_calls()
    extra = seconds["jitted(x, y)"] - seconds["exe(x=x, y=y)[0]"]
    return Figure(f"{extra * 1e6:+.2f} us", extra <= 1e-6, seconds)


# Start


@cache
def starts() -> dict[str, Any]:
    """Return samples of new processes."""
    return startup.measure(9)


def start(samples: str, key: str, limit: float) -> Figure:
    """Report a figure of new processes: the median, or on a busy machine the least."""
    rows, load = starts()[samples], os.getloadavg()[0]
    median, smallest = startup.median(rows, key), startup.least(rows, key)
    busy = load > len(os.sched_getaffinity(0))
    text = f"{milliseconds(median)}, least {milliseconds(smallest)}, of {len(rows)} processes"
    if busy:
        text += f" (load {load:.1f}: the least counts)"
    return Figure(text, (smallest if busy else median) <= limit, rows)


def without_compiler() -> Figure:
    """Report whether a second process gives equal bits without a compiler."""
    sample, reference_sample = starts()["no_compiler"], starts()["first"][0]
    is_same = sample["bits"] == reference_sample["bits"] and sample["target"] == "cpu"
    text = f"{'equal' if is_same else 'other'} bits, {sample['compiled']} compiled"
    return Figure(text, is_same and not sample["compiled"], sample)


# Scale


@cache
def scaled(shape: str) -> tuple[dict[str, Any], ...]:
    """Return the rows of the small and the large case of one shape."""
    return tuple(scaling.measure(shape, count) for count in scaling.COUNTS)


def large_graphs() -> Figure:
    """Report the seconds of each shape at the larger count; the slowest counts."""
    rows = [scaled(shape)[-1] for shape in scaling.SHAPES]
    text = ", ".join(f"{r['shape']} {r['seconds']:.1f} s" for r in rows)
    return Figure(text, max(r["seconds"] for r in rows) <= 40, rows)


def growth() -> Figure:
    """Report the growth of the time per operator; the worst shape counts."""
    by_shape = {shape: scaling.growth(list(scaled(shape))) for shape in scaling.SHAPES}
    text = ", ".join(f"{k} {v:.2f}" for k, v in by_shape.items())
    return Figure(text, max(by_shape.values()) <= 1.5, by_shape)


# Numerics

DENORMALS = """
import ctypes, json, numpy as np
import passkit as pk
x = pk.var("x", (4096,), "float32")
exe = pk.compile(pk.Graph([x * 1.0 + 0.0, pk.ops.exp(x)]))
tiny = np.full(4096, 1e-40, np.float32)
same = bool((exe(x=tiny)[0] == tiny).all())
after = bool((tiny * np.float32(1) == tiny).all()) and bool((tiny + np.float32(0)).all())
state = (ctypes.c_uint32 * 16)()
ctypes.CDLL("libm.so.6").fegetenv(ctypes.byref(state))
print(json.dumps({"kernel": same, "numpy": after, "mxcsr": state[7]}))
"""


def denormals() -> Figure:
    """Report whether a process that ran a kernel still computes with denormals."""
    with startup.FreshProcesses() as processes:
        answers = processes.run(DENORMALS)
    x86 = os.uname().machine == "x86_64"
    flushes = bool(answers["mxcsr"] & 0x8040) if x86 else False  # FZ and DAZ
    text = f"kept by kernel: {answers['kernel']}, by NumPy after it: {answers['numpy']}"
    text += f", MXCSR {answers['mxcsr']:#06x}" if x86 else ""
    return Figure(text, answers["kernel"] and answers["numpy"] and not flushes, answers)


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1e-45, -1e-45])


@cache
def functions() -> Any:
    """Compile the six functions for any length."""
    x = pk.var("x", ("n",), "float32")
    return pk.compile(pk.Graph([getattr(pk.ops, name)(x) for name in FUNCTIONS]))


FUNCTIONS = ("exp", "log", "tanh", "erf", "sin", "cos")


def reference(name: str, x: Any) -> Any:
    """Evaluate a function in float64, far more precisely than an ulp of float32."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        if name != "erf":
            return getattr(np, name)(wide)
    return np.vectorize(math.erf, otypes=[np.float64])(wide)


def sample(name: str) -> Any:
    """Return float32 values of all magnitudes and both signs at equal distances of their bits."""
    step = 8191 if name == "erf" else 997
    bits = np.arange(0, 1 << 32, step, dtype=np.int64).astype(np.uint32)
    x = bits.view(np.float32)
    return x[np.isfinite(x)]


def ulps(name: str) -> Figure:
    """Report the largest error of a function in ulps over the sample, and wrong special values."""
    x = sample(name)
    exe, position = functions(), FUNCTIONS.index(name)
    results, expected = exe(x=x)[position], reference(name, x)
    with np.errstate(all="ignore"):
        rounded = expected.astype(np.float32)
        finite = np.isfinite(rounded) & np.isfinite(results)
        unit = np.spacing(np.abs(rounded[finite])).astype(np.float64)
        errors = np.abs(results[finite].astype(np.float64) - expected[finite]) / unit
    # If only one of them overflows, the other must be the largest finite number.
    is_wrong = ~finite & ~(
        (np.isnan(results) & np.isnan(rounded))
        | (results == rounded)
        | (np.isinf(rounded) & (np.abs(results) >= np.float32(3.4028232e38)))
    )
    special = SPECIAL.astype(np.float32)
    wrong = special_mismatches(name, exe(x=special)[position])
    worst, at = float(errors.max()), float(x[finite][errors.argmax()])
    text = f"{worst:.2f} ulp at {at:.6g} of {x.size:,} values"
    if is_wrong.any() or wrong.any():
        text += f"; wrong: {[*x[is_wrong][:3], *special[wrong]]}"
    return Figure(text, worst <= 4 and not is_wrong.any() and not wrong.any(), worst)


def special_mismatches(name: str, results: Any) -> Any:
    """Return a mask of the special values for which results are wrong."""
    expected = reference(name, SPECIAL.astype(np.float32)).astype(np.float32)
    is_nan = np.isnan(expected)
    is_right = is_nan == np.isnan(results)
    is_right &= is_nan | np.isclose(results, expected, rtol=5e-7, atol=1e-45)
    is_right &= is_nan | (np.signbit(results) == np.signbit(expected))
    return ~is_right


def same_bits() -> Figure:
    """Report whether bits depend on the position in a vector, the length, or 1, 2, 4 threads."""
    exe, stream = functions(), np.random.default_rng(0)
    x = (stream.standard_normal(1 << 20) * 8).astype(np.float32)
    x[: SPECIAL.size] = SPECIAL
    before, wrong = num_threads(), []
    expected = [r.copy() for r in exe(x=x)]
    try:
        for threads in (1, 2, 4):
            set_num_threads(threads)
            for start, end in ((0, x.size), *((k, k + 333 + 97 * k) for k in range(40)), (5, 6)):
                for name, a, b in zip(FUNCTIONS, exe(x=x[start:end].copy()), expected, strict=True):
                    if a.tobytes() != b[start:end].tobytes():
                        wrong.append(f"{name} on {threads} threads, [{start}:{end}]")
    finally:
        set_num_threads(before)
    text = f"{len(wrong)} differ of {6 * 3 * 42}" + (f"; {wrong[0]}" if wrong else "")
    return Figure(text, not wrong, wrong)


BEHAVIOUR_TESTS = (
    "tests/program/test_compiler.py",
    "tests/test_caches.py",
    "tests/runtime/native/test_cache.py",
    "tests/runtime/test_feeds.py",
    "tests/runtime/native/test_launcher.py",
)

DEMANDS: tuple[Demand, ...] = (
    Demand("fresh clone: first README command < 120 s", fresh_clone, slow=True),
    Demand("fresh clone: second README command passes the tests", fresh_clone_tests, slow=True),
    Demand(
        "nnvm-fusion D1-D10, behaviours, running example: tests pass",
        lambda: tests("tests/test_nnvm_fusion.py", "tests/test_nnvm_behaviours.py"),
    ),
    Demand("one kernel: softmax, 4 spellings, 3 axes", lambda: one_kernel("softmax")),
    Demand("one kernel: log_softmax, 4 spellings, 3 axes", lambda: one_kernel("log_softmax")),
    Demand("one kernel: layer_norm, 8 spellings, 3 axes", lambda: one_kernel("layer_norm")),
    Demand("one kernel: GELU's three forms, 3 spellings", lambda: one_kernel("gelu")),
    Demand("one kernel: bias + GELU, 3 forms, 6 spellings, 3 axes", lambda: one_kernel("bias")),
    *(
        Demand(
            f"best peer / passkit >= 2, geometric mean, results {mode}",
            lambda mode=mode: geometric(mode, 2.0),
            slow=True,
        )
        for mode in ("dropped", "kept")
    ),
    *(
        Demand(
            f"best peer / passkit >= 0.9 on each row, results {mode}",
            lambda mode=mode: least_speedup(mode),
            slow=True,
        )
        for mode in ("dropped", "kept")
    ),
    *(
        Demand(
            f"best peer / passkit >= 1.5 over rows of 1 MB and more, {mode}",
            lambda mode=mode: geometric(mode, 1.5, large=True),
            slow=True,
        )
        for mode in ("dropped", "kept")
    ),
    *(
        Demand(
            f"passkit / hand-written <= 1.25: {label}",
            lambda label=label: over_hand(label),
            slow=True,
        )
        for label in hand_rows()
    ),
    Demand("small20 <= 1.5 us a call from Python", small20_call),
    Demand("jit adds <= 1 us", jit_adds),
    Demand("first compile of GELU <= 0.6 s", lambda: start("first", "compile", 0.6)),
    Demand(
        "warm start <= 30 ms from import to result, over NumPy", lambda: start("warm", "wall", 0.03)
    ),
    Demand("import passkit <= 100 ms over NumPy", lambda: start("import", "wall", 0.1)),
    Demand("second process, PASSKIT_CXX=/nonexistent: equal bits, none compiled", without_compiler),
    Demand("30,000 operators through CodeGen <= 40 s", large_graphs),
    Demand("time per operator grows <= 1.5 times from 3,000 to 30,000", growth),
    Demand("a kernel's load leaves denormals alone", denormals),
    *(
        Demand(f"{name} <= 4 ulp, special values right", lambda name=name: ulps(name))
        for name in FUNCTIONS
    ),
    Demand("bits independent of position, length and 1, 2, 4 threads", same_bits),
    Demand(
        "fuzz: 300 graphs equal, planted bugs found within 500", lambda: tests("tests/test_fuzz.py")
    ),
    Demand("fuzz: 10,000 graphs, last run", lambda: recorded("fuzz.txt", 10_000)),
    Demand(
        "threads, sizes, strides, dtypes, zero sizes, processes, torn files",
        lambda: tests(*BEHAVIOUR_TESTS),
    ),
)
