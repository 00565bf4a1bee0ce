"""What each part of the work promised, as tables of demands with their measures."""

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
"""The interpreter that has PyTorch, where it is not that one."""
tensorflow_python = ""
"""The interpreter that has TensorFlow, for what is measured beside the peers."""
scripts = ""
"""Where aymericdamien's TensorFlow-Examples are."""
steps: Path | None = None
"""A report of `train.py time` that is read instead of measuring."""
onnx_python = sys.executable
"""The interpreter that has ONNX Runtime, where it is not the peers'."""


@frozen
class Figure:
    """What was measured: as text, whether it is enough, and the numbers behind it.

    ``met`` is None where nothing here can tell, or another command measures it: the text says so.
    """

    found: str
    met: bool | None
    data: Any = None


@frozen
class Demand:
    """One promise, and the function that measures it.

    ``slow``: takes minutes or a network, so `--quick` leaves it out unless it is asked for by name.
    """

    text: str
    measure: Callable[[], Figure]
    slow: bool = False


@frozen
class Row:
    """A demand with its figure; ``met`` is None where it was not measured."""

    demand: str
    found: str
    met: bool | None
    seconds: float = 0.0
    data: Any = None

    def __str__(self) -> str:
        word = {True: "met", False: "NOT MET", None: "-"}[self.met]
        return f"{self.demand:<66} {word:<8} {self.found}"


def ended(command: Sequence[str], option: str = "") -> Figure:
    """The last line of a command, met where it ends well; not measured without the ``option``."""
    if not all(command):
        return Figure(f"{option} tells where that is", None)
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    lines = (done.stdout.strip() or done.stderr.strip() or "it says nothing").splitlines()
    return Figure(lines[-1], done.returncode == 0, lines)


def measured(demand: Demand) -> Row:
    """The row of a demand; what a measure raises is a figure too, and not met."""
    start = time.perf_counter()
    try:
        figure = demand.measure()
    except Exception as error:  # the other rows still count
        what = str(error).strip().splitlines() or [""]
        figure = Figure(f"{type(error).__name__}: {what[-1][:160]}", False)
    return Row(demand.text, figure.found, figure.met, time.perf_counter() - start, figure.data)


def show(demands: Iterable[Demand], only: str = "", quick: bool = False) -> list[Row]:
    """Measure and print the demands, each as soon as it is known, and how many are met."""
    rows = []
    for demand in demands:
        if only.lower() not in demand.text.lower():
            continue
        if quick and demand.slow and not only:
            row = Row(demand.text, "left out by --quick", None)
        else:
            row = measured(demand)
        rows.append(row)
        print(row, flush=True)
    done = [r for r in rows if r.met is not None]
    left = f", {len(rows) - len(done)} not measured" if len(done) < len(rows) else ""
    print(f"{sum(bool(r.met) for r in done)} of {len(done)} demands met{left}")
    return rows


def as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows for a file."""
    return [asdict(row) for row in rows]


def tests(
    *paths: str, only: str = "", mark: str = "", usual: bool = False, timeout: float = 1800.0
) -> Figure:
    """Run tests by path, and by `pytest -k` and `-m`; met when all are there and pass.

    With ``usual``, all kernels are compiled as users' are.
    """
    absent = [p for p in paths if not (ROOT / p.partition("::")[0]).exists()]
    if absent:
        return Figure(f"not there: {', '.join(absent)}", False)
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-n", "auto"]
    command += ["-p", "no:cacheprovider"]
    command += ["--every-dtype"] * usual
    command += [*paths, *(("-k", only) if only else ()), *(("-m", mark) if mark else ())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["no output"]
    return Figure(lines[-1].strip("= "), done.returncode == 0, lines[-30:])
