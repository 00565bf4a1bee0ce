"""Demands on GPUs, by OpenCL and CUDA; figures that need a missing device are called unproven."""

from __future__ import annotations

import json
import re
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
from shows import RESULTS, ROOT, Demand, Figure, core, tests
from shows.records import recorded

REPORT = RESULTS / "gpu.json"
LIVE = 40
"""Graphs of a short run beside the recorded campaign, with other seeds."""
CAMPAIGNS = {"opencl": "fuzz-opencl.txt", "cuda": "fuzz-cuda.txt"}
GRAPHS = 2000
"""The random graphs of a campaign."""
CORPUS_GRAPHS = {"opencl": 250, "cuda": 250}
"""The graphs of the corpus that are small enough to be run."""
COPY_ROWS = ("gelu", "softmax", "layer_norm", "rms_norm", "bias_gelu", "colsum", "fullsum", "adam ")
"""The beginnings of rows that are to reach the bandwidth of a copy."""
HOST_MICROSECONDS = {"one kernel": 5, "Adam of 30 tensors": 10}
WAITS = ("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize")
"""The functions of the driver by which the host waits."""


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
    record = recorded(CAMPAIGNS[target], GRAPHS)
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
    """Report the least share of a copy's bandwidth of the rows that memory binds."""
    shares = {n: r["passkit"]["of copy"] for n, r in rows.items() if n.startswith(COPY_ROWS)}
    worst = min(shares, key=lambda n: shares[n])
    missing = [n.strip() for n in COPY_ROWS if not any(row.startswith(n) for row in shares)]
    text = f"{shares[worst]:.0%}: {worst}" + "".join(f"; {n} has no row" for n in missing)
    return Figure(text, shares[worst] >= 0.95 and not missing, shares)


def speedup(row: dict[str, Any], *peers: str) -> float:
    """Return the time of the best of these peers, or of all libraries, over passkit's."""
    named = peers or [k for k in row if k not in ("row", "passkit", "hand")]
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
    """Report the best of torch.compile and jax.jit over passkit on each row but figure1."""
    best = {n: speedup(r, "compile", "jax") for n, r in rows.items() if n.startswith(COPY_ROWS)}
    worst = min(best, key=lambda n: best[n])
    mean = prod(best.values()) ** (1 / len(best))
    text = f"worst {best[worst]:.2f}: {worst}; geometric mean {mean:.2f}"
    return Figure(text, best[worst] >= 1.0, best)


def many_tensors(rows: dict[str, Any]) -> Figure:
    """Report the seconds of a public call of Adam of thirty tensors."""
    if "call" not in rows.get("adam30", {}).get("passkit", {}):
        return Figure("adam30 has no row", False)
    seconds = rows["adam30"]["passkit"]["call"]
    return Figure(f"{seconds * 1e6:.0f} us", seconds <= 40e-6, seconds)


def beside_hand(rows: dict[str, Any]) -> Figure:
    """Report the device time of passkit's kernels over those by hand."""
    ratios = {
        n: r["passkit"]["device"] / r["hand"]["device"]
        for n, r in rows.items()
        if "device" in r.get("hand", {}) and "device" in r["passkit"]
    }
    if not ratios:
        return Figure("no row has a kernel by hand", None)
    worst = max(ratios, key=lambda n: ratios[n])
    return Figure(f"worst {ratios[worst]:.2f}: {worst}, of {len(ratios)}", True, ratios)


def corpus_results(target: str) -> Figure:
    """Report the recorded run of the corpus on a target."""
    return recorded(f"corpus-{target}.txt", CORPUS_GRAPHS[target])


def host_calls() -> Figure:
    """Measure calls on a driver that does nothing."""
    process = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "host_path.py"), "--json", "/dev/stdout"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    begin = process.stdout.find("\n{")
    if process.returncode or begin < 0:
        return Figure(f"not measured: {process.stderr.strip().splitlines()[-1:]}", None)
    report = json.loads(process.stdout[begin:])
    texts = [f"{name} {report[name]['median']:.2f} us" for name in HOST_MICROSECONDS]
    chain = report["100 calls in a chain"]["driver"]
    waits = sum(chain.get(name, 0) for name in WAITS)
    texts.append(f"a chain of 100 calls: {chain['cuLaunchKernel']:g} launches, {waits:g} waits")
    is_quick = all(report[n]["median"] <= limit for n, limit in HOST_MICROSECONDS.items())
    return Figure(", ".join(texts), is_quick and not waits, report)


def comparison_with_base() -> Figure:
    """Report the recorded comparison of texts and planning with the version before.

    The file has a line with both versions, and what ``corpus.py compare --same-code`` prints.
    """
    path = RESULTS / "corpus-base.txt"
    if not path.exists():
        command = "python benchmarks/corpus.py compare DIR --same-code"
        return Figure(f"{path.relative_to(ROOT)} is missing: {command}", False)
    versions, *lines = path.read_text().splitlines()
    heads = {x.partition(":")[0]: x for x in lines if not x.startswith(" ")}
    ratios = {t: float(re.findall(r"([\d.]+) x$", head)[0]) for t, head in heads.items()}
    levels = heads["cpu"].partition(": ")[2].partition(";")[0]
    is_equal = not re.search(r"other", levels)
    shown = ", ".join(f"{t} {ratio:.2f}" for t, ratio in ratios.items())
    text = f"CPU: {levels}; planning {shown} x; {versions}"
    return Figure(text, is_equal and max(ratios.values()) <= 1.10, lines)


DEMANDS: tuple[Demand, ...] = (
    *study_demands(),
    Demand(
        "the table of the study is generated and tested: tests pass",
        lambda: tests("tests/benchmarks/test_gpu_study.py"),
    ),
    Demand("SASS of golden kernels: 16-byte loads, no local memory, registers", instructions),
    Demand("cubins of golden kernels, four architectures: registers, no spills", golden_cubins),
    Demand("the corpus on the emulator: every graph right", lambda: corpus_results("cuda")),
    Demand("the corpus on PoCL: every graph right", lambda: corpus_results("opencl")),
    Demand(
        f"one plan in CUDA C: {GRAPHS:,} random graphs on the emulator, none fails",
        lambda: campaign("cuda"),
    ),
    Demand(
        f"one plan in OpenCL C: {GRAPHS:,} random graphs on PoCL, none fails",
        lambda: campaign("opencl"),
    ),
    Demand(
        "planted barriers, shuffle masks, tails, register arrays are found: tests pass",
        lambda: tests(
            "tests/ir/test_planted_faults.py",
            "tests/emulator/test_machine.py",
            "tests/emulator/test_kernels.py",
            "tests/runtime/opencl/test_work_group_sizes.py",
            "tests/dialects/test_thread_accesses.py",
        ),
    ),
    Demand(
        "bits of a row in 1, 7, 65,536 rows; of aligned and unaligned callers: tests pass",
        lambda: tests("tests/dialects/test_nests.py"),
    ),
    Demand("no-op driver: <= 5 us a call, Adam of 30 <= 10 us, no wait in 100 calls", host_calls),
    Demand("CPU texts equal, planning <= 1.10 x, to before", comparison_with_base),
    Demand("30,000 operators in <= 40 s", core.large_graphs, slow=True),
    Demand(
        "all operators, their dtypes, work-groups of 1, 64, 256 on PoCL: tests pass",
        lambda: tests("tests/runtime/opencl"),
    ),
    Demand(
        "all operators and their dtypes as CUDA C on the emulator: tests pass",
        lambda: tests("tests/emulator/test_operators.py"),
    ),
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
        lambda: tests("tests/target/test_gpus.py", "tests/tuning/test_gpu_calibration.py"),
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
        "retired words and deferred imports of new layers: tests pass",
        lambda: tests("tests/test_vocabulary.py", "tests/test_layers.py"),
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
        "gelu, softmax, norms, sums, Adam >= 95 % of a copy's bandwidth",
        of_report("benchmarks/gpu.py", of_copy),
    ),
    Demand(
        "best of torch.compile and jax.jit / passkit >= 1.0 on each of these, by the call",
        of_report("benchmarks/gpu.py", best_peers),
    ),
    Demand("Adam of 30 tensors <= 40 us a call", of_report("benchmarks/gpu.py", many_tensors)),
    Demand(
        "figure1 (15,616; both) >= 2x the best peer",
        of_report("benchmarks/gpu.py --rows figure1", figure1),
    ),
    Demand(
        "kernels by hand measured beside passkit's", of_report("benchmarks/gpu.py", beside_hand)
    ),
    Demand(
        "micro-benchmarks: >= 1.4x jax.jit; dyn-rnn >= 5x eager",
        of_report("the micro-benchmarks' steps (benchmarks/gpu.py)", training, "training"),
    ),
)
