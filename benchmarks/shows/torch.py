"""Demands on ``torch.compile(backend="passkit")``: records of campaigns, and tests.

The records in `benchmarks/results` are written by `torch_operators.py`, `torch_modules.py`,
`torch_fuzz.py`, `torch_models.py`, `torch_compile_times.py`, `torch_sore_points.py` and
`torch_calls.py`, which take minutes to hours. Tests run in the Python of ``--torch``.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from statistics import geometric_mean
from typing import Any

import shows
from shows import RESULTS, ROOT, Demand, Figure

TESTS = "tests/frontends/torch"
MAX_FAILED = 20
"""The most entries of an OpInfo group that may fail: Inductor's own list for CPUs has 20."""
LEAST_NATIVE = 0.85
"""The least share of entries that passkit runs without a call of PyTorch."""
PROGRAMS = 5000
MODELS = 60
COLD_SHARE, SECOND_SHARE = 0.5, 0.25
"""The most seconds of a first call over Inductor's with empty caches: cold, and second process."""


def record(file: str, command: str) -> Any:
    """Return the record in `benchmarks/results` that a command writes.

    Raises: FileNotFoundError if it is missing.
    """
    path = RESULTS / file
    if not path.exists():
        raise FileNotFoundError(f"benchmarks/results/{file} is missing: python {command}")
    return json.loads(path.read_text())


def passing(*files: str, only: str = "") -> Callable[[], Figure]:
    """Return a measurement that runs tests in the Python with PyTorch; met when all pass."""

    def measure() -> Figure:
        """Run the tests; the figure is the last line of pytest."""
        command = [shows.torch_python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [f"{TESTS}/{file}" for file in files]
        command += ["-k", only] if only else []
        process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        lines = process.stdout.strip().splitlines() or ["no output"]
        is_met = process.returncode == 0 and " passed" in lines[-1] and "skipped" not in lines[-1]
        return Figure(lines[-1], is_met)

    return measure


def operators() -> Figure:
    """Read the outcomes of OpInfos: at most `MAX_FAILED` fail in each group, each by a reason."""
    groups = record("torch_operators.json", "benchmarks/torch_operators.py")["groups"]
    failed = {name: group["failures"] for name, group in groups.items()}
    unknown = [
        reason
        for group in groups.values()
        for reason in group["failed"]
        if reason.startswith("not known")
    ]
    text = ", ".join(
        f"{name} {count} of {groups[name]['entries']}" for name, count in failed.items()
    )
    is_met = max(failed.values()) <= MAX_FAILED and not unknown and len(groups) >= 7
    return Figure(f"failed: {text}; {len(unknown)} without a reason", is_met, failed)


def native_operators() -> Figure:
    """Read how many OpInfos of float32 passkit ran alone: `LEAST_NATIVE` of those that ran."""
    groups = record("torch_operators.json", "benchmarks/torch_operators.py")["groups"]
    group = groups["float32 forward"]
    share = group["share_without_a_call_of_pytorch"]
    return Figure(f"{share:.1%} of {group['entries']}", share >= LEAST_NATIVE, share)


def modules() -> Figure:
    """Read the outcomes of ModuleInfos and OptimizerInfos: each failure has a reason."""
    groups = record("torch_modules.json", "benchmarks/torch_modules.py")["groups"]
    texts, unknown, failed = [], 0, 0
    for name, group in groups.items():
        failed += group["failures"]
        unknown += sum(reason.startswith("not known") for reason in group["failed"])
        texts.append(f"{name} {group['failures']} of {group['entries']}")
    is_met = failed <= MAX_FAILED and not unknown
    return Figure(f"failed: {', '.join(texts)}; {unknown} without a reason", is_met, groups)


def layouts() -> Figure:
    """Read the campaign of random programs with unusual layouts: `PROGRAMS`, none wrong."""
    counts = record("torch_fuzz.json", "benchmarks/torch_fuzz.py")
    text = f"{counts['programs']} programs of {counts['date']}, {counts['wrong']} wrong"
    return Figure(text, counts["programs"] >= PROGRAMS and counts["wrong"] == 0, counts["programs"])


def models() -> dict[str, Any]:
    """Return the rows of the models by name. Raises: FileNotFoundError if they are missing."""
    return dict(record("torch_models.json", "benchmarks/torch_models.py"))


def _is_equal(row: dict[str, Any], part: str, *keys: str) -> bool:
    """Return whether a part of a row was measured, and its comparisons with PyTorch hold."""
    measured = row.get(part, {})
    return bool(measured) and all(measured.get(key) is True for key in keys)


def equal_models() -> Figure:
    """Read whether forward passes and steps of SGD and Adam equal those of eager PyTorch."""
    rows = models()
    forward = [name for name, row in rows.items() if _is_equal(row, "inference", "is_equal")]
    steps = ("SGD_is_equal", "Adam_is_equal")
    trained = [name for name, row in rows.items() if _is_equal(row, "training", *steps)]
    dynamic = [name for name, row in rows.items() if _is_equal(row, "dynamic", "dynamic_is_equal")]
    others = sorted(set(rows) - (set(forward) & set(trained)))
    text = (
        f"{len(rows)} models: forward equal {len(forward)}, SGD and Adam {len(trained)}, eight "
        f"batch sizes {len(dynamic)}; not all: {', '.join(others) or 'none'}"
    )
    return Figure(text, len(forward) >= MODELS and len(trained) >= MODELS, others)


def one_compilation() -> Figure:
    """Read how many compilations eight batch sizes took beyond those that PyTorch asks of any."""
    parts = {name: row["dynamic"] for name, row in models().items() if "dynamic" in row}
    recompiled = {
        name: (part["recompiled_graphs"], part.get("recompiled_by_pytorch", 0))
        for name, part in parts.items()
        if part.get("recompiled_graphs", 0)
    }
    own = {name: count for name, (count, any_backend) in recompiled.items() if count > any_backend}
    others = [name for name in recompiled if name not in own]
    count = sum("error" not in part for part in parts.values())
    text = (
        f"{count} models, one compilation in {count - len(recompiled)}; as many as by a backend "
        f"that compiles nothing: {', '.join(others) or 'none'}; more: {own or 'none'}"
    )
    return Figure(text, count >= MODELS and not own, recompiled)


def step_times() -> Figure:
    """Read calls of memory-bound models beside the better of eager PyTorch and Inductor."""
    from torch_models import BALANCE  # its module is beside this package

    ratios = {}
    for name, row in models().items():
        times = row.get("speed", {}).get("milliseconds", {})
        if len(times) == 3 and row["inference"]["intensity"] < BALANCE:
            ratios[name] = min(times["eager"], times["inductor"]) / times["passkit"]
    if not ratios:
        return Figure("no model was timed", False)
    mean = geometric_mean(ratios.values())
    worst = min(ratios, key=lambda name: ratios[name])
    text = f"{mean:.2f} in {len(ratios)} models, least {ratios[worst]:.2f}: {worst}"
    return Figure(text, mean >= 1, ratios)


def _compile_shares(kind: str) -> dict[str, float]:
    """Return the seconds of first calls over Inductor's cold ones, by model.

    ``kind`` is "cold" for empty caches, or "second" for a process that finds them filled.
    """
    shares = {}
    for name, row in models().items():
        speed, inference = row.get("speed", {}), row.get("inference", {})
        inductor = speed.get("inductor_first_call_seconds")
        own = inference.get("first_call_seconds")
        own = own if kind == "cold" else speed.get("second_process_seconds")
        if inductor and own:
            shares[name] = own / inductor
    return shares


def compiling(kind: str, most: float) -> Callable[[], Figure]:
    """Return a measurement that compares first calls with Inductor's cold ones, in the mean."""

    def measure() -> Figure:
        """Read the models' first calls."""
        shares = _compile_shares(kind)
        if not shares:
            return Figure("no model was timed", False)
        mean = geometric_mean(shares.values())
        below = sum(share <= most for share in shares.values())
        text = f"{mean:.2f} in the mean, {below} of {len(shares)} models below {most}"
        return Figure(text, mean <= most, shares)

    return measure


def sore_points() -> Figure:
    """Read small functions that other compilers are slow on: calls are right and not slower."""
    rows = record("torch_sore_points.json", "benchmarks/torch_sore_points.py")
    texts, is_met = [], True
    for name, row in rows.items():
        own, other = row["passkit"], row["inductor"]
        first = other.get("first_call_seconds", float("inf")) / own["first_call_seconds"]
        call = other.get("milliseconds", {}).get("inductor", float("inf"))
        call /= own["milliseconds"]["passkit"]
        is_met = is_met and call >= 1 and own.get("difference", 1.0) < 1e-4
        texts.append(f"{name}: first call {first:.1f}, call {call:.1f}")
    return Figure(f"Inductor / passkit: {'; '.join(texts)}", is_met, rows)


def calls() -> Figure:
    """Read calls of small functions beside Inductor's."""
    rows = record("torch_calls.json", "benchmarks/torch_calls.py")["rows"]
    ratios = [row["microseconds"]["inductor"] / row["microseconds"]["passkit"] for row in rows]
    text = f"Inductor / passkit {geometric_mean(ratios):.2f} in the mean, least {min(ratios):.2f}"
    return Figure(text, min(ratios) >= 1, ratios)


DEMANDS = [
    Demand("OpInfo: at most 20 entries of a dtype fail, each named with its reason", operators),
    Demand("OpInfo: >= 85 % of float32 entries run without a call of PyTorch", native_operators),
    Demand("ModuleInfo and OptimizerInfo likewise", modules),
    Demand("150 OpInfos, modules and optimizers as tests", passing("test_opinfo_sample.py")),
    Demand("5,000 programs with strided, aliased and in-place inputs: none wrong", layouts),
    Demand("60 models: forward, SGD and Adam equal to eager PyTorch", equal_models),
    Demand("8 batch sizes with one compilation", one_compilation),
    Demand("memory-bound models: >= 1.0 times the better of eager and Inductor", step_times),
    Demand("cold compile <= 0.5 of Inductor's", compiling("cold", COLD_SHARE)),
    Demand("second process <= 0.25 of Inductor's cold compile", compiling("second", SECOND_SHARE)),
    Demand("sore points of others: each quicker here", sore_points),
    Demand("sore points of others: right results", passing("test_sore_points.py")),
    Demand("calls of small functions: not slower than Inductor's", calls),
    Demand(
        "two-process DDP equals one process; a killed worker gives an error",
        passing("", only="ddp or distributed or killed"),
    ),
    Demand(
        "caches of AOTAutograd, aot_compile, saved functions", passing("test_caches.py"), slow=True
    ),
    Demand("all tests of the frontend", passing(""), slow=True),
]
