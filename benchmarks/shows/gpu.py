"""GPUs: OpenCL and CUDA; what needs a device that is not here is named as unproven."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from math import inf, nan, prod
from typing import Any

from shows import RESULTS, ROOT, Demand, Figure, tests
from shows.records import recorded

REPORT = RESULTS / "gpu.json"
LIVE = 40
"""Graphs of a short run, beside the long one that is on record; their seeds are others."""
NAMES = {
    "opencl": ("PoCL", "fuzz-opencl.txt", 2000),
    "cuda": ("emulator", "fuzz-cuda.txt", 500),
}


@cache
def device() -> str:
    """The CUDA device of this machine; "" where there is none."""
    from passkit.errors import PasskitError
    from passkit.runtime.cuda.device import device as found

    try:
        return str(found())
    except PasskitError:
        return ""


def unproven(what: str) -> Figure:
    """What is said of a figure that only a GPU has."""
    return Figure(f"unproven: no NVIDIA GPU has run {what}", None)


def campaign(target: str) -> Figure:
    """The recorded campaign of a target, and a short one now."""
    _, file, least = NAMES[target]
    found = recorded(file, least)
    if not found.met:
        return found
    now = fuzz("--target", target, "--count", str(LIVE), "--first", "1000000")
    return Figure(f"{found.found}; now {now}", f"{LIVE} graphs, 0 failed" in now, [found.data, now])


def fuzz(*options: str) -> str:
    """The last line of a campaign."""
    command = [sys.executable, str(ROOT / "benchmarks" / "fuzz.py"), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["no output"]
    return lines[-1]


def instructions() -> Figure:
    """The instructions of golden kernels against their table."""
    import sass

    try:
        sass.nvdisasm()
    except sass.NoDisassemblerError as error:
        return Figure(f"not measured: {error}", None)
    found = sass.table_lines(sass.ARCHITECTURES, sass.cubins.golden_kernels())
    wrong = sass.differing_lines(found)
    figures = [sass.numbers(x) for x in found]
    wide = sum(bool(f["LDG.E.128"]) for f in figures)
    local = sum(f["LDL"] + f["STL"] for f in figures)
    most = max(f["registers"] for f in figures)
    text = (f"{wide} of {len(found)} with 16-byte loads, {local} accesses of local memory, at most "
            f"{most} registers, {len(wrong)} off the table")  # fmt: skip
    return Figure(text, wide == len(found) and not local and not wrong, found)


def cubins() -> Figure:
    """Registers, shared bytes and spills by NVRTC against their table."""
    import cubins as command

    found = command.table_lines(command.ARCHITECTURES, command.golden_kernels())
    wrong = command.differing_lines(found)
    text = f"{len(found)} cubins by {command.nvrtc()}, {len(wrong)} off the table or spilled"
    return Figure(text, not wrong, found)


def real_libraries() -> Figure:
    """Descriptors as cuBLASLt and cuDNN read them, where they are installed."""
    found = tests("tests/runtime/cuda/test_library_descriptors.py")
    if "passed" in found.found or not found.met:
        return found
    text = "pip install nvidia-cublas nvidia-cudnn-cu13"
    return Figure(f"not measured: {found.found}; {text}", None)


@cache
def stan() -> list[dict[str, Any]]:
    """Stan's rows, of matrices beyond a core's cache."""
    import stan as command

    return [command.measure(case, 1024, "float32") for case in command.cases()]


def against_basic() -> Figure:
    """The sequence of basic kernels over the fused kernel, where there is a sequence."""
    rows = {r["row"]: r["basic"] / r["fused"] for r in stan() if r["basic kernels"] > r["kernels"]}
    worst = min(rows, key=lambda n: rows[n])
    mean = prod(rows.values()) ** (1 / len(rows))
    right = all(r["right"] for r in stan())
    text = f"{rows[worst]:.2f}: {worst}, the worst of {len(rows)}; geometric mean {mean:.2f}"
    return Figure(text if right else f"wrong results; {text}", right and rows[worst] > 1, stan())


def against_hand() -> Figure:
    """The fused kernel over the one by hand."""
    rows = {r["row"]: r["fused"] / r["hand"] for r in stan()}
    worst = max(rows, key=lambda n: rows[n])
    mean = prod(rows.values()) ** (1 / len(rows))
    text = f"geometric mean {mean:.2f}, worst {rows[worst]:.2f}: {worst}"
    return Figure(text, mean <= 1.25 and rows[worst] <= 1.6, stan())


def on_a_device(what: str, *paths: str) -> Callable[[], Figure]:
    """Tests that need a device."""
    return lambda: tests(*paths, mark="cuda") if device() else unproven(what)


def of_report(
    what: str, figure: Callable[[dict[str, Any]], Figure], part: str = "rows"
) -> Callable[[], Figure]:
    """A figure of a part of the report that `gpu.py` has written on a device."""

    def measure() -> Figure:
        if not REPORT.exists():
            return unproven(f"{what}: no {REPORT.relative_to(ROOT)}")
        found = {r["row"]: r for r in json.loads(REPORT.read_text()).get(part, ())}
        return figure(found) if found else unproven(f"{what}: none of {part} in the report")

    return measure


def of_copy(rows: dict[str, Any]) -> Figure:
    """How much of a copy's bandwidth gelu, softmax, layer_norm and adam reach."""
    names = ("gelu", "softmax", "layer_norm", "adam")
    shares = {n: r["passkit"]["of copy"] for n, r in rows.items() if n.startswith(names)}
    worst = min(shares, key=lambda n: shares[n])
    adam = any(n.startswith("adam") for n in shares)
    text = f"{shares[worst]:.0%}: {worst}" + ("" if adam else "; adam has no row")
    return Figure(text, shares[worst] >= 0.9 and adam, shares)


def speedup(row: dict[str, Any], *peers: str) -> float:
    """The best of these peers, or of all, over passkit."""
    named = peers or [k for k in row if k not in ("row", "passkit")]
    calls = [row[k]["call"] for k in named if "call" in row.get(k, ())]
    return min(calls, default=nan) / float(row["passkit"].get("call", inf))


def figure1(rows: dict[str, Any]) -> Figure:
    """The best peer over passkit, on both sizes of figure1."""
    best = {n: speedup(r) for n, r in rows.items() if n.startswith("figure1")}
    text = ", ".join(f"{x:.2f}: {n}" for n, x in best.items())
    return Figure(text or "figure1 has no row", len(best) == 2 and min(best.values()) >= 2, best)


def training(rows: dict[str, Any]) -> Figure:
    """jax.jit over passkit in the mean of the training steps, and PyTorch on dyn-rnn."""
    found = {n: speedup(r, "jax") for n, r in rows.items()}
    mean = prod(found.values()) ** (1 / len(found))
    eager = speedup(rows["dyn-rnn"], "eager") if "dyn-rnn" in rows else nan
    text = f"jax.jit / passkit {mean:.2f} in the mean, eager / passkit {eager:.2f} on dyn-rnn"
    return Figure(text, mean >= 1.4 and eager >= 5, {**found, "dyn-rnn by eager": eager})


def peers(rows: dict[str, Any]) -> Figure:
    """The best peer over passkit, on each row."""
    best = {n: speedup(r) for n, r in rows.items()}
    worst = min(best, key=lambda n: best[n])
    mean = prod(best.values()) ** (1 / len(best))
    text = f"worst {best[worst]:.2f}: {worst}; geometric mean {mean:.2f}"
    return Figure(text, best[worst] >= 1.0 and mean >= 1.2, best)


DEMANDS: tuple[Demand, ...] = (
    Demand("one plan in OpenCL C: 2,000 random graphs on PoCL, none fails",
           lambda: campaign("opencl")),
    Demand("one plan in CUDA C: 500 random graphs on the emulator, none fails",
           lambda: campaign("cuda")),
    Demand("all operators, their dtypes, work-groups of 1, 64, 256 on PoCL: tests pass",
           lambda: tests("tests/runtime/opencl")),
    Demand("all operators and their dtypes as CUDA C on the emulator: tests pass",
           lambda: tests("tests/emulator/test_operators.py")),
    Demand("planted barriers, shuffles, overruns are found: tests pass",
           lambda: tests("tests/emulator/test_machine.py", "tests/emulator/test_kernels.py",
                         "tests/runtime/opencl/test_work_group_sizes.py",
                         "tests/dialects/test_bundles.py")),
    Demand("SASS of golden kernels: 16-byte loads, no local memory, registers", instructions),
    Demand("cubins of golden kernels, four architectures: registers, no spills", cubins),
    Demand("Stan's rows on OpenCL: basic kernels / fused > 1", against_basic),
    Demand("Stan's rows on OpenCL: fused / by hand <= 1.25 in the mean", against_hand),
    Demand("products by cuBLASLt, convolutions by cuDNN, from their descriptors: tests pass",
           lambda: tests("tests/runtime/cuda/test_library_steps.py")),
    Demand("cuBLASLt and cuDNN themselves read the descriptors as they were meant", real_libraries),
    Demand("DLPack and the CUDA array interface, both ways, in place: tests pass",
           lambda: tests("tests/runtime/cuda/test_arrays.py")),
    Demand("profiles, occupancy, calibration by an injected clock: tests pass",
           lambda: tests("tests/plan/test_gpus.py", "tests/tuning/test_gpu_calibration.py")),
    Demand("no driver, wrong architecture, no memory, refused, lost: tests pass",
           lambda: tests("tests/runtime/cuda/test_errors.py", "tests/runtime/cuda/test_compiler.py",
                         "tests/runtime/cuda/test_programs.py")),
    Demand("pytest -m cuda is green on a device",
           on_a_device("pytest -m cuda", "tests/runtime/cuda")),
    Demand("cuBLASLt, cuDNN, DLPack with PyTorch, JAX and CuPy, calibration on a device",
           on_a_device("those libraries' own code here", "tests/runtime/cuda/test_library_steps.py",
                       "tests/runtime/cuda/test_foreign_arrays.py")),
    Demand("compute-sanitizer is clean", lambda: unproven("compute-sanitizer here")),
    Demand("gelu x3, softmax, layer_norm, adam >= 90 % of a copy's bandwidth",
           of_report("benchmarks/gpu.py", of_copy)),
    Demand("best peer / passkit >= 1.0 on each row, >= 1.2 in the mean",
           of_report("benchmarks/gpu.py", peers)),
    Demand("figure1 (15,616; both) >= 2x the best peer",
           of_report("benchmarks/gpu.py --rows figure1", figure1)),
    Demand("micro-benchmarks: >= 1.4x jax.jit; dyn-rnn >= 5x eager",
           of_report("the micro-benchmarks' steps (benchmarks/gpu.py)", training, "training")),
)  # fmt: skip
