"""The core: a graph in, fused native kernels out, on the CPU."""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import subprocess
import tempfile
import time
from functools import cache
from typing import Any

import numpy as np
import scaling
import startup

import shows
from shows import RESULTS, ROOT, Demand, Figure, tests
from shows.records import recorded

LARGE_NBYTES = 1 << 20


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds."""
    return f"{seconds * 1e3:.1f} ms"


# Fresh clone


@cache
def cloned() -> tuple[dict[str, float], str]:
    """Both commands of the README in a fresh clone: seconds of each, and the tests' last line.

    Raises: RuntimeError with the last line of a command that fails.
    """
    blocks = re.findall(r"^```sh$\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="passkit-clone-") as folder:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), folder], check=True)
        environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        environ["PASSKIT_CACHE_DIR"] = f"{folder}/.cache"
        for name, block in zip(("install and run", "test"), blocks, strict=False):
            start = time.perf_counter()
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block], cwd=folder, env=environ,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, timeout=3600,
            )  # fmt: skip
            seconds[name] = time.perf_counter() - start
            last = (done.stdout.strip().splitlines() or ["no output"])[-1]
            if done.returncode:
                raise RuntimeError(f"'{name}' fails after {seconds[name]:.0f} s: {last}")
    return seconds, last


def fresh_clone() -> Figure:
    """The first command."""
    seconds = cloned()[0]["install and run"]
    return Figure(f"{seconds:.0f} s, with a new environment", seconds < 120, seconds)


def fresh_clone_tests() -> Figure:
    """The second command."""
    seconds, last = cloned()
    return Figure(f"{last.strip('= ')}", True, seconds)


# Fusion


def one_kernel(*words: str) -> Figure:
    """Graphs whose names begin so: how many become one kernel, one launch, one native call."""
    import passkit as pk
    from tests.planned import feeds_of, prebuild
    from tests.test_one_kernel import GRAPHS

    chosen = {n: g for n, g in GRAPHS.items() if n.startswith(words)}
    prebuild(chosen.values())
    stream, wrong = np.random.default_rng(0), []
    for name, graph in chosen.items():
        exe, feeds = pk.compile(graph), feeds_of(graph, stream)
        counts = []
        for _ in range(3):
            before = exe.stats["native_calls"]
            outs = exe(feeds)
            counts.append(exe.stats["native_calls"] - before)
        tolerance = 1e-4 if "squares" in name else 2e-6  # E[x²] - mean² cancels
        right = all(
            np.allclose(a, b, tolerance, 8 * tolerance)
            for a, b in zip(outs, pk.interpret(graph, feeds), strict=True)
        )
        if len(exe.kernels) != 1 or counts != [1, 1, 1] or not right:
            wrong.append(f"{name}: {len(exe.kernels)} kernels, {counts} calls, right: {right}")
    found = f"{len(chosen) - len(wrong)} of {len(chosen)} graphs"
    return Figure(found + (f"; {wrong[0]}" if wrong else ""), bool(chosen) and not wrong, wrong)


# Speed


@cache
def comparison() -> dict[str, Any]:
    """The report of `compare.py` with every competitor; it runs in the peers' interpreter."""
    name = "show-core"
    subprocess.run(
        [shows.peers_python, str(ROOT / "benchmarks" / "compare.py"), "--name", name],
        cwd=ROOT, check=False, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def speedups(mode: str, large: bool = False) -> dict[str, float]:
    """Best peer over passkit on the core rows."""
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


def geometric(mode: str, wanted: float, large: bool = False) -> Figure:
    """The geometric mean of the speedups."""
    found = speedups(mode, large)
    mean = math.exp(statistics.fmean(math.log(max(v, 1e-9)) for v in found.values()))
    return Figure(f"{mean:.2f} over {len(found)} rows", mean >= wanted, found)


def least_speedup(mode: str) -> Figure:
    """The worst of the rows."""
    found = speedups(mode)
    worst = min(found, key=lambda n: found[n])
    return Figure(f"{found[worst]:.2f}: {worst}", found[worst] >= 0.9, found)


def over_hand(label: str) -> Figure:
    """passkit over the hand-written kernel, in both modes, call against call.

    Below 50 us the hand-written call, through ctypes, would flatter passkit: there its call stands
    against the kernel alone and the 0.22 us that a call and a small result cost at least.
    """
    row = next(r for r in comparison()["rows"] if r["name"] == label)
    ratios = dict(row["over_hand"])
    if not ratios:
        seconds = row["competitors"]["passkit"]["dropped"]["median"]
        ratios = {"call over kernel + 0.22 us": seconds / (row["hand_kernel"] + 0.22e-6)}
    worst = max(ratios.values())
    return Figure(", ".join(f"{k} {v:.2f}" for k, v in ratios.items()), worst <= 1.25, row)


def hand_rows() -> list[str]:
    """The core rows that have a hand-written kernel."""
    from workloads import WORKLOADS

    return [w.label for w in WORKLOADS if w.core and w.hand]


# Small calls


def per_call(statement: str, names: dict[str, Any]) -> float:
    """Seconds of a statement: the best of many medians, on one CPU."""
    import timeit

    timer = timeit.Timer(statement, globals=names)
    return min(timer.repeat(60, 2000)) / 2000


@cache
def small_calls() -> dict[str, float]:
    """Seconds of small20 as an executable and as a jitted function."""
    from peers import passkit as competitor
    from workloads import WORKLOADS, small20

    import passkit as pk

    work = next(w for w in WORKLOADS if w.name == "small20")
    exe = competitor(work, 1).function
    x, y = work.arrays(0)
    ops = pk.ops

    class Functions:
        abs, exp, maximum, minimum = ops.abs, ops.exp, ops.maximum, ops.minimum

    jitted = pk.jit(lambda x, y: small20(Functions, x, y))
    names = {"exe": exe, "jitted": jitted, "x": x, "y": y}
    if not np.array_equal(jitted(x, y), exe(x=x, y=y)[0]):
        raise RuntimeError("jit and compile differ")
    found = dict.fromkeys(("exe(x=x, y=y)[0]", "jitted(x, y)"), math.inf)
    for _ in range(3):  # in turn, so that drift of the machine hits both
        for statement in found:
            found[statement] = min(found[statement], per_call(statement, names))
    return found


def small20_call() -> Figure:
    """The executable's call."""
    seconds = small_calls()["exe(x=x, y=y)[0]"]
    return Figure(f"{seconds * 1e6:.2f} us", seconds <= 1.5e-6, seconds)


def jit_adds() -> Figure:
    """What the jitted call costs more."""
    found = small_calls()
    extra = found["jitted(x, y)"] - found["exe(x=x, y=y)[0]"]
    return Figure(f"{extra * 1e6:+.2f} us", extra <= 1e-6, found)


# Start


@cache
def starts() -> dict[str, Any]:
    """Samples of new processes."""
    return startup.measure(9)


def start(samples: str, what: str, limit: float) -> Figure:
    """The median of new processes; on a busy machine, where processes wait for a CPU, the least."""
    rows, load = starts()[samples], os.getloadavg()[0]
    median, least = startup.median(rows, what), startup.least(rows, what)
    busy = load > len(os.sched_getaffinity(0))
    found = f"{milliseconds(median)}, least {milliseconds(least)}, of {len(rows)} processes"
    if busy:
        found += f" (load {load:.1f}: the least counts)"
    return Figure(found, (least if busy else median) <= limit, rows)


def without_compiler() -> Figure:
    """A second process that could not compile if it wanted to."""
    found, first = starts()["no_compiler"], starts()["first"][0]
    same = found["bits"] == first["bits"] and found["target"] == "cpu"
    text = f"{'equal' if same else 'other'} bits, {found['compiled']} compiled"
    return Figure(text, same and not found["compiled"], found)


# Scale


@cache
def scaled(shape: str) -> tuple[dict[str, Any], ...]:
    """The small and the large case of one shape."""
    return tuple(scaling.measure(shape, count) for count in scaling.COUNTS)


def large_graphs() -> Figure:
    """Seconds of the slowest shape at the larger count."""
    rows = [scaled(shape)[-1] for shape in scaling.SHAPES]
    text = ", ".join(f"{r['shape']} {r['seconds']:.1f} s" for r in rows)
    return Figure(text, max(r["seconds"] for r in rows) <= 40, rows)


def growth() -> Figure:
    """Growth of the time per operator, the worst of the shapes."""
    found = {shape: scaling.growth(list(scaled(shape))) for shape in scaling.SHAPES}
    text = ", ".join(f"{k} {v:.2f}" for k, v in found.items())
    return Figure(text, max(found.values()) <= 1.5, found)


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
    """The CPU's mode in a process that loaded and ran a kernel, and what NumPy does in it."""
    with startup.Processes() as processes:
        found = processes.run(DENORMALS)
    x86 = os.uname().machine == "x86_64"
    flushes = bool(found["mxcsr"] & 0x8040) if x86 else False  # FZ and DAZ
    text = f"kept by kernel: {found['kernel']}, by NumPy after it: {found['numpy']}"
    text += f", MXCSR {found['mxcsr']:#06x}" if x86 else ""
    return Figure(text, found["kernel"] and found["numpy"] and not flushes, found)


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1e-45, -1e-45])


@cache
def functions() -> Any:
    """An executable of the six functions, of any length."""
    import passkit as pk

    x = pk.var("x", ("n",), "float32")
    return pk.compile(pk.Graph([getattr(pk.ops, name)(x) for name in FUNCTIONS]))


FUNCTIONS = ("exp", "log", "tanh", "erf", "sin", "cos")


def reference(name: str, x: Any) -> Any:
    """The function in float64, good to far less than an ulp of float32."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        if name != "erf":
            return getattr(np, name)(wide)
    return np.vectorize(math.erf, otypes=[np.float64])(wide)


def sample(name: str) -> Any:
    """Every so-manyeth float32 of either sign, so all magnitudes; erf, by `math`, has fewer."""
    step = 8191 if name == "erf" else 997
    bits = np.arange(0, 1 << 32, step, dtype=np.int64).astype(np.uint32)
    x = bits.view(np.float32)
    return x[np.isfinite(x)]


def ulps(name: str) -> Figure:
    """The largest error in units of the last place, over the sample; special values beside it."""
    x = sample(name)
    exe, which = functions(), FUNCTIONS.index(name)
    found, wanted = exe(x=x)[which], reference(name, x)
    with np.errstate(all="ignore"):
        rounded = wanted.astype(np.float32)
        finite = np.isfinite(rounded) & np.isfinite(found)
        unit = np.spacing(np.abs(rounded[finite])).astype(np.float64)
        errors = np.abs(found[finite].astype(np.float64) - wanted[finite]) / unit
    # Where one of them overflows, the other may be the largest number, and nothing else.
    edge = ~finite & ~(
        (np.isnan(found) & np.isnan(rounded)) | (found == rounded)
        | (np.isinf(rounded) & (np.abs(found) >= np.float32(3.4028232e38)))
    )  # fmt: skip
    special = SPECIAL.astype(np.float32)
    got, right = exe(x=special)[which], reference(name, special).astype(np.float32)
    alike = np.isnan(right) == np.isnan(got)
    alike &= np.isnan(right) | np.isclose(got, right, rtol=5e-7, atol=1e-45)
    alike &= np.isnan(right) | (np.signbit(got) == np.signbit(right))
    worst, at = float(errors.max()), float(x[finite][errors.argmax()])
    text = f"{worst:.2f} ulp at {at:.6g} of {x.size:,} values"
    if edge.any() or not alike.all():
        text += f"; wrong: {[*x[edge][:3], *special[~alike]]}"
    return Figure(text, worst <= 4 and not edge.any() and bool(alike.all()), worst)


def same_bits() -> Figure:
    """The six functions at every position of a vector, in many lengths, on 1, 2, 4 threads."""
    from passkit.runtime.native.launcher import num_threads, set_num_threads

    exe, stream = functions(), np.random.default_rng(0)
    x = (stream.standard_normal(1 << 20) * 8).astype(np.float32)
    x[: SPECIAL.size] = SPECIAL
    before, wrong = num_threads(), []
    wanted = [r.copy() for r in exe(x=x)]
    try:
        for threads in (1, 2, 4):
            set_num_threads(threads)
            for begin, end in ((0, x.size), *((k, k + 333 + 97 * k) for k in range(40)), (5, 6)):
                for name, a, b in zip(FUNCTIONS, exe(x=x[begin:end].copy()), wanted, strict=True):
                    if a.tobytes() != b[begin:end].tobytes():
                        wrong.append(f"{name} on {threads} threads, [{begin}:{end}]")
    finally:
        set_num_threads(before)
    text = f"{len(wrong)} differ of {6 * 3 * 42}" + (f"; {wrong[0]}" if wrong else "")
    return Figure(text, not wrong, wrong)


BEHAVES = ("tests/program/test_compiler.py", "tests/test_caches.py",
           "tests/runtime/native/test_cache.py",
           "tests/runtime/native/test_feeds.py",
           "tests/runtime/native/test_launcher.py")  # fmt: skip

DEMANDS: tuple[Demand, ...] = (
    Demand("fresh clone: first README command < 120 s", fresh_clone, slow=True),
    Demand("fresh clone: second README command passes the tests", fresh_clone_tests, slow=True),
    Demand("nnvm-fusion D1-D10, behaviours, running example: tests pass",
           lambda: tests("tests/test_nnvm_fusion.py", "tests/test_nnvm_behaviours.py")),
    Demand("one kernel: softmax, 4 spellings, 3 axes", lambda: one_kernel("softmax")),
    Demand("one kernel: log_softmax, 4 spellings, 3 axes", lambda: one_kernel("log_softmax")),
    Demand("one kernel: layer_norm, 8 spellings, 3 axes", lambda: one_kernel("layer_norm")),
    Demand("one kernel: GELU's three forms, 3 spellings", lambda: one_kernel("gelu")),
    Demand("one kernel: bias + GELU, 3 forms, 6 spellings, 3 axes", lambda: one_kernel("bias")),
    *(Demand(f"best peer / passkit >= 2, geometric mean, results {mode}",
             lambda mode=mode: geometric(mode, 2.0), slow=True)
      for mode in ("dropped", "kept")),
    *(Demand(f"best peer / passkit >= 0.9 on each row, results {mode}",
             lambda mode=mode: least_speedup(mode), slow=True)
      for mode in ("dropped", "kept")),
    *(Demand(f"best peer / passkit >= 1.5 over rows of 1 MB and more, {mode}",
             lambda mode=mode: geometric(mode, 1.5, large=True), slow=True)
      for mode in ("dropped", "kept")),
    *(Demand(f"passkit / hand-written <= 1.25: {label}",
             lambda label=label: over_hand(label), slow=True)
      for label in hand_rows()),
    Demand("small20 <= 1.5 us a call from Python", small20_call),
    Demand("jit adds <= 1 us", jit_adds),
    Demand("first compile of GELU <= 0.6 s", lambda: start("first", "compile", 0.6)),
    Demand("warm start <= 30 ms from import to result, over NumPy",
           lambda: start("warm", "wall", 0.03)),
    Demand("import passkit <= 100 ms over NumPy", lambda: start("import", "wall", 0.1)),
    Demand("second process, PASSKIT_CXX=/nonexistent: equal bits, none compiled",
           without_compiler),
    Demand("30,000 operators through CodeGen <= 40 s", large_graphs),
    Demand("time per operator grows <= 1.5 times from 3,000 to 30,000", growth),
    Demand("a kernel's load leaves denormals alone", denormals),
    *(Demand(f"{name} <= 4 ulp, special values right", lambda name=name: ulps(name))
      for name in FUNCTIONS),
    Demand("bits independent of position, length and 1, 2, 4 threads", same_bits),
    Demand("fuzz: 300 graphs equal, planted bugs found within 500",
           lambda: tests("tests/test_fuzz.py")),
    Demand("fuzz: 10,000 graphs, last run", lambda: recorded("fuzz.txt", 10_000)),
    Demand("threads, sizes, strides, dtypes, zero sizes, processes, torn files",
           lambda: tests(*BEHAVES)),
)  # fmt: skip
