"""Demands on GPUs, by OpenCL and CUDA; figures that need a missing device are called unproven."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from math import inf, nan, prod
from typing import Any

import cubins
import gpu_study
import sass
import stan

from passkit.errors import PasskitError
from passkit.runtime.cuda.device import device as cuda_device
from shows import RESULTS, ROOT, Demand, Figure, tests
from shows.records import recorded

REPORT = RESULTS / "gpu.json"
LIVE = 40
"""Graphs of a short run beside the recorded campaign, with other seeds."""
NAMES = {
    "opencl": ("PoCL", "fuzz-opencl.txt", 2000),
    "cuda": ("emulator", "fuzz-cuda.txt", 500),
}


@cache
def device() -> str:
    """Return the name of this machine's CUDA device; "" if there is none."""
    try:
        return str(cuda_device())
    except PasskitError:
        return ""


def unproven(measurement: str) -> Figure:
    """Return the figure of a measurement that no GPU has run."""
    return Figure(f"unproven: no NVIDIA GPU has run {measurement}", None)


def campaign(target: str) -> Figure:
    """Report the recorded campaign of a target, and a short run now."""
    _, file, least = NAMES[target]
    record = recorded(file, least)
    if not record.met:
        return record
    now = fuzz("--target", target, "--count", str(LIVE), "--first", "1000000")
    return Figure(
        f"{record.text}; now {now}", f"{LIVE} graphs, 0 failed" in now, [record.data, now]
    )


def fuzz(*options: str) -> str:
    """Run `fuzz.py` and return its last line."""
    command = [sys.executable, str(ROOT / "benchmarks" / "fuzz.py"), *options]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    lines = (
        process.stdout.strip().splitlines() or process.stderr.strip().splitlines() or ["no output"]
    )
    return lines[-1]


def instructions() -> Figure:
    """Compare the instructions of golden kernels with their table."""
    try:
        sass.nvdisasm()
    except sass.NoDisassemblerError as error:
        return Figure(f"not measured: {error}", None)
    lines = sass.table_lines(sass.ARCHITECTURES, sass.cubins.golden_kernels())
    wrong = sass.differing_lines(lines)
    figures = [sass.numbers(x) for x in lines]
    num_wide = sum(bool(f["LDG.E.128"]) for f in figures)
    num_local = sum(f["LDL"] + f["STL"] for f in figures)
    most_registers = max(f["registers"] for f in figures)
    text = (
        f"{num_wide} of {len(lines)} with 16-byte loads, {num_local} accesses of local memory, "
        f"at most {most_registers} registers, {len(wrong)} off the table"
    )
    return Figure(text, num_wide == len(lines) and not num_local and not wrong, lines)


def study_row(name: str) -> Figure:
    """Compare a row's machine code with the kernel by hand, for all architectures of the study."""
    try:
        sass.nvdisasm()
    except sass.NoDisassemblerError as error:
        return Figure(f"not measured: {error}", None)
    lines = gpu_study.table_lines([name], gpu_study.ARCHITECTURES)
    lacks = {a: gpu_study.misses(name, a) for a in gpu_study.ARCHITECTURES}
    own, hand = gpu_study.sides(name, 90)
    text = (
        f"sm_90: {own.instructions:.1f} instructions, by hand {hand.instructions:.1f}; "
        f"{own.main.registers} registers, {own.main.per_unit / 1024:.0f} KB in flight"
    )
    missing = [f"sm_{a}: {', '.join(x)}" for a, x in lacks.items() if x]
    return Figure("; ".join([text, *missing]), not missing, lines)


def study_demands() -> tuple[Demand, ...]:
    """Return a demand for each row of the study."""
    bytes_of = {
        gpu_study.COPY_KB: "loads first, >= 40 KB in flight an SM, ",
        gpu_study.READ_KB: "loads first, >= 64 KB in flight an SM, ",
        0: "",
    }
    return tuple(
        Demand(
            f"SASS of {r.name}: no spills, no slow calls, {bytes_of[r.least_kb]}"
            f"<= {gpu_study.RATIO} x the instructions by hand",
            partial(study_row, r.name),
        )
        for r in gpu_study.rows().values()
    )


def golden_cubins() -> Figure:
    """Compare registers, shared bytes and spills by NVRTC with their table."""
    lines = cubins.table_lines(cubins.ARCHITECTURES, cubins.golden_kernels())
    wrong = cubins.differing_lines(lines)
    text = f"{len(lines)} cubins by {cubins.nvrtc()}, {len(wrong)} off the table or spilled"
    return Figure(text, not wrong, lines)


def real_libraries() -> Figure:
    """Report whether cuBLASLt and cuDNN read the descriptors, where they are installed."""
    figure = tests("tests/runtime/cuda/test_library_descriptors.py")
    if "passed" in figure.text or not figure.met:
        return figure
    text = "pip install nvidia-cublas nvidia-cudnn-cu13"
    return Figure(f"not measured: {figure.text}; {text}", None)


@cache
def stan_rows() -> list[dict[str, Any]]:
    """Measure Stan's expressions on matrices larger than a core's cache."""
    return [stan.measure(case, 1024, "float32") for case in stan.cases()]


def against_basic() -> Figure:
    """Compare the sequence of basic kernels with the fused kernel, where it has several."""
    rows = {
        r["row"]: r["basic"] / r["fused"] for r in stan_rows() if r["basic kernels"] > r["kernels"]
    }
    worst = min(rows, key=lambda n: rows[n])
    mean = prod(rows.values()) ** (1 / len(rows))
    all_right = all(r["right"] for r in stan_rows())
    text = f"{rows[worst]:.2f}: {worst}, the worst of {len(rows)}; geometric mean {mean:.2f}"
    return Figure(
        text if all_right else f"wrong results; {text}", all_right and rows[worst] > 1, stan_rows()
    )


def against_hand() -> Figure:
    """Compare the fused kernel with the hand-written one."""
    rows = {r["row"]: r["fused"] / r["hand"] for r in stan_rows()}
    worst = max(rows, key=lambda n: rows[n])
    mean = prod(rows.values()) ** (1 / len(rows))
    text = f"geometric mean {mean:.2f}, worst {rows[worst]:.2f}: {worst}"
    return Figure(text, mean <= 1.25 and rows[worst] <= 1.6, stan_rows())


def on_a_device(measurement: str, *paths: str) -> Callable[[], Figure]:
    """Return a measurement that runs tests on a CUDA device, or is unproven."""
    return lambda: tests(*paths, mark="cuda") if device() else unproven(measurement)


def of_report(
    measurement: str, figure: Callable[[dict[str, Any]], Figure], part: str = "rows"
) -> Callable[[], Figure]:
    """Return a measurement of a part of the report that `gpu.py` wrote on a device.

    Args:
        measurement: its description, for an unproven figure.
        figure: evaluates the rows, which are keyed by name.
        part: key of the rows in the report.
    """

    def measure() -> Figure:
        if not REPORT.exists():
            return unproven(f"{measurement}: no {REPORT.relative_to(ROOT)}")
        rows = {r["row"]: r for r in json.loads(REPORT.read_text()).get(part, ())}
        return figure(rows) if rows else unproven(f"{measurement}: none of {part} in the report")

    return measure


def of_copy(rows: dict[str, Any]) -> Figure:
    """Report the least share of a copy's bandwidth of gelu, softmax, layer_norm and adam."""
    names = ("gelu", "softmax", "layer_norm", "adam")
    shares = {n: r["passkit"]["of copy"] for n, r in rows.items() if n.startswith(names)}
    worst = min(shares, key=lambda n: shares[n])
    adam = any(n.startswith("adam") for n in shares)
    text = f"{shares[worst]:.0%}: {worst}" + ("" if adam else "; adam has no row")
    return Figure(text, shares[worst] >= 0.9 and adam, shares)


def speedup(row: dict[str, Any], *peers: str) -> float:
    """Return the time of the best of these peers, or of all, over passkit's."""
    named = peers or [k for k in row if k not in ("row", "passkit")]
    calls = [row[k]["call"] for k in named if "call" in row.get(k, ())]
    return min(calls, default=nan) / float(row["passkit"].get("call", inf))


def figure1(rows: dict[str, Any]) -> Figure:
    """Report the best peer over passkit on both sizes of figure1."""
    best = {n: speedup(r) for n, r in rows.items() if n.startswith("figure1")}
    text = ", ".join(f"{x:.2f}: {n}" for n, x in best.items())
    return Figure(text or "figure1 has no row", len(best) == 2 and min(best.values()) >= 2, best)


def training(rows: dict[str, Any]) -> Figure:
    """Report jax.jit over passkit, geometric mean of training steps, and PyTorch on dyn-rnn."""
    speedups = {n: speedup(r, "jax") for n, r in rows.items()}
    mean = prod(speedups.values()) ** (1 / len(speedups))
    eager = speedup(rows["dyn-rnn"], "eager") if "dyn-rnn" in rows else nan
    text = f"jax.jit / passkit {mean:.2f} in the mean, eager / passkit {eager:.2f} on dyn-rnn"
    return Figure(text, mean >= 1.4 and eager >= 5, {**speedups, "dyn-rnn by eager": eager})


def best_peers(rows: dict[str, Any]) -> Figure:
    """Report the best peer over passkit on each row."""
    best = {n: speedup(r) for n, r in rows.items()}
    worst = min(best, key=lambda n: best[n])
    mean = prod(best.values()) ** (1 / len(best))
    text = f"worst {best[worst]:.2f}: {worst}; geometric mean {mean:.2f}"
    return Figure(text, best[worst] >= 1.0 and mean >= 1.2, best)


DEMANDS: tuple[Demand, ...] = (
    Demand(
        "one plan in OpenCL C: 2,000 random graphs on PoCL, none fails", lambda: campaign("opencl")
    ),
    Demand(
        "one plan in CUDA C: 500 random graphs on the emulator, none fails",
        lambda: campaign("cuda"),
    ),
    Demand(
        "all operators, their dtypes, work-groups of 1, 64, 256 on PoCL: tests pass",
        lambda: tests("tests/runtime/opencl"),
    ),
    Demand(
        "all operators and their dtypes as CUDA C on the emulator: tests pass",
        lambda: tests("tests/emulator/test_operators.py"),
    ),
    Demand(
        "planted barriers, shuffles, overruns are found: tests pass",
        lambda: tests(
            "tests/emulator/test_machine.py",
            "tests/emulator/test_kernels.py",
            "tests/runtime/opencl/test_work_group_sizes.py",
            "tests/dialects/test_bundles.py",
        ),
    ),
    Demand("SASS of golden kernels: 16-byte loads, no local memory, registers", instructions),
    Demand("cubins of golden kernels, four architectures: registers, no spills", golden_cubins),
    *study_demands(),
    Demand("Stan's rows on OpenCL: basic kernels / fused > 1", against_basic),
    Demand("Stan's rows on OpenCL: fused / by hand <= 1.25 in the mean", against_hand),
    Demand(
        "products by cuBLASLt, convolutions by cuDNN, from their descriptors: tests pass",
        lambda: tests("tests/runtime/cuda/test_library_steps.py"),
    ),
    Demand("cuBLASLt and cuDNN themselves read the descriptors as they were meant", real_libraries),
    Demand(
        "DLPack and the CUDA array interface, both ways, in place: tests pass",
        lambda: tests("tests/runtime/cuda/test_arrays.py"),
    ),
    Demand(
        "profiles, occupancy, calibration by an injected clock: tests pass",
        lambda: tests("tests/plan/test_gpus.py", "tests/tuning/test_gpu_calibration.py"),
    ),
    Demand(
        "no driver, wrong architecture, no memory, refused, lost: tests pass",
        lambda: tests(
            "tests/runtime/cuda/test_errors.py",
            "tests/runtime/cuda/test_compiler.py",
            "tests/runtime/cuda/test_programs.py",
        ),
    ),
    Demand(
        "pytest -m cuda is green on a device", on_a_device("pytest -m cuda", "tests/runtime/cuda")
    ),
    Demand(
        "cuBLASLt, cuDNN, DLPack with PyTorch, JAX and CuPy, calibration on a device",
        on_a_device(
            "those libraries' own code here",
            "tests/runtime/cuda/test_library_steps.py",
            "tests/runtime/cuda/test_arrays.py",
        ),
    ),
    Demand("compute-sanitizer is clean", lambda: unproven("compute-sanitizer here")),
    Demand(
        "gelu x3, softmax, layer_norm, adam >= 90 % of a copy's bandwidth",
        of_report("benchmarks/gpu.py", of_copy),
    ),
    Demand(
        "best peer / passkit >= 1.0 on each row, >= 1.2 in the mean",
        of_report("benchmarks/gpu.py", best_peers),
    ),
    Demand(
        "figure1 (15,616; both) >= 2x the best peer",
        of_report("benchmarks/gpu.py --rows figure1", figure1),
    ),
    Demand(
        "micro-benchmarks: >= 1.4x jax.jit; dyn-rnn >= 5x eager",
        of_report("the micro-benchmarks' steps (benchmarks/gpu.py)", training, "training"),
    ),
)
