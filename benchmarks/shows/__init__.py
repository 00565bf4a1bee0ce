"""The promises of each subject, as tables of demands with functions that measure them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
peers_python = sys.executable
"""The interpreter that has the systems we compare with."""
torch_python = sys.executable
"""The interpreter that has PyTorch, where the peers' has none."""
tensorflow_python = ""
"""The interpreter that has TensorFlow, for measurements beside the peers."""
scripts = ""
"""The folder of aymericdamien's TensorFlow-Examples."""
suite = ""
"""A checkout of array-api-tests."""
steps: Path | None = None
"""A report of `train.py time` that is read instead of measuring."""
onnx_python = sys.executable
"""The interpreter that has ONNX Runtime, where the peers' has none."""


@frozen
class Figure:
    """A measured result: as text, whether it meets the demand, and the numbers behind it.

    ``met`` is None where it cannot be measured here, or another command measures it; the text says
    so.
    """

    text: str
    met: bool | None
    data: Any = None


@frozen
class Demand:
    """One promise, and the function that measures it.

    A ``slow`` one takes minutes or a network, so `--quick` skips it unless it is named.
    """

    text: str
    measure: Callable[[], Figure]
    slow: bool = False


@frozen
class DemandResult:
    """A demand with its figure; ``met`` is None where it was not measured."""

    demand: str
    text: str
    met: bool | None
    seconds: float = 0.0
    data: Any = None

    def __str__(self) -> str:
        word = {True: "met", False: "NOT MET", None: "-"}[self.met]
        return f"{self.demand:<66} {word:<8} {self.text}"


def ended(command: Sequence[str], option: str = "") -> Figure:
    """Run a Python command; the figure is its last line, met if it exits 0.

    Without a part of the command it is not measured; ``option`` is the option that supplies this
    part.
    """
    if not all(command):
        return Figure(f"{option} names its place", None)
    process = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    lines = (process.stdout.strip() or process.stderr.strip() or "no output").splitlines()
    return Figure(lines[-1], process.returncode == 0, lines)


def measured(demand: Demand) -> DemandResult:
    """Measure a demand; an exception becomes a figure that is not met."""
    start = time.perf_counter()
    try:
        figure = demand.measure()
    except Exception as error:  # the other rows still count
        lines = str(error).strip().splitlines() or [""]
        figure = Figure(f"{type(error).__name__}: {lines[-1][:160]}", False)
    return DemandResult(
        demand.text, figure.text, figure.met, time.perf_counter() - start, figure.data
    )


def show(demands: Iterable[Demand], only: str = "", quick: bool = False) -> list[DemandResult]:
    """Measure and print the demands one by one, and how many are met.

    Args:
        demands: the demands.
        only: measure those that contain this text.
        quick: skip slow demands.

    Returns:
        The results.
    """
    rows = []
    for demand in demands:
        if only.lower() not in demand.text.lower():
            continue
        if quick and demand.slow and not only:
            row = DemandResult(demand.text, "left out by --quick", None)
        else:
            row = measured(demand)
        rows.append(row)
        print(row, flush=True)
    measured_rows = [r for r in rows if r.met is not None]
    unmeasured = (
        f", {len(rows) - len(measured_rows)} not measured" if len(measured_rows) < len(rows) else ""
    )
    print(
        f"{sum(bool(r.met) for r in measured_rows)} of {len(measured_rows)} demands met{unmeasured}"
    )
    return rows


def as_json(rows: Iterable[DemandResult]) -> list[dict[str, Any]]:
    """Return the results as dictionaries with the keys of the JSON report."""
    return [
        {
            "demand": row.demand,
            "found": row.text,
            "met": row.met,
            "seconds": row.seconds,
            "data": asdict(row)["data"],
        }
        for row in rows
    ]


def tests(
    *paths: str, only: str = "", mark: str = "", usual: bool = False, timeout: float = 1800.0
) -> Figure:
    """Run tests by path, and by `pytest -k` and `-m`; met when all exist and pass.

    Args:
        paths: files or folders under the root, or test ids.
        only: `pytest -k` expression.
        mark: `pytest -m` expression.
        usual: compile all kernels with the optimisation that users get.
        timeout: seconds.
    """
    absent = [p for p in paths if not (ROOT / p.partition("::")[0]).exists()]
    if absent:
        return Figure(f"not there: {', '.join(absent)}", False)
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-n", "auto"]
    command += ["-p", "no:cacheprovider"]
    command += ["--every-dtype"] * usual
    command += [*paths, *(("-k", only) if only else ()), *(("-m", mark) if mark else ())]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    lines = (
        process.stdout.strip().splitlines() or process.stderr.strip().splitlines() or ["no output"]
    )
    return Figure(lines[-1].strip("= "), process.returncode == 0, lines[-30:])
