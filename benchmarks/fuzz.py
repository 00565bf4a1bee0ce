"""Compare compiled random graphs with interpreted ones; print the coverage and every failure.

    python benchmarks/fuzz.py --count 10000
    python benchmarks/fuzz.py --count 20000 --quick     # kernels compiled at -O0
    python benchmarks/fuzz.py --count 500 --blocks      # the kernels' ASTs too, block by block
    python benchmarks/fuzz.py --count 2000 --target opencl
    python benchmarks/fuzz.py --count 500 --target cuda # as CUDA C, on an emulated machine
    python benchmarks/fuzz.py --count 500 --target cuda-driver   # there, through the runtime
    python benchmarks/fuzz.py --count 500 --target cuda-device   # through it on an NVIDIA GPU
    python benchmarks/fuzz.py --count 300 --sanitize    # under ASan and UBSan, with g++

Batches of graphs share their compiled units. Each worker process takes some hundred graphs, so that
a crash costs one of them and names its batch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from campaign import reports  # noqa: E402  (after the path)

from tests.emulator import graph_checks, runtime_checks  # noqa: E402
from tests.fuzzing import Failure, check, check_all, check_blocks, check_opencl  # noqa: E402
from tests.fuzzing import opencl_of as opencl  # noqa: E402
from tests.libraries import quickly  # noqa: E402
from tests.minimising import minimised  # noqa: E402
from tests.random_graphs import Case, coverage, expected, random_case, table  # noqa: E402

BATCH, PROCESS = 100, 500
TARGETS = ("cpu", "blocks", "opencl", "cuda", "cuda-driver", "cuda-device")


def work(args: argparse.Namespace) -> None:
    """Check the graphs of some seeds; print JSON for each batch, with failures as text."""
    first, count = args.first, args.count
    for start in range(first, first + count, BATCH):
        print(json.dumps({"start": start}), flush=True)
        cases = [random_case(s) for s in range(start, min(start + BATCH, first + count))]
        report = batch_report(cases, args.target, args.seconds)
        if args.blocks:
            failures = batch_report(cases, "blocks", args.seconds)["failures"]
            report["failures"] += [f"blocks: {text}" for text in failures]
        print(json.dumps({**report, "coverage": dict(coverage(cases))}), flush=True)


def batch_report(cases: Sequence[Case], target: str, seconds: float) -> dict[str, Any]:
    """Check cases on a target.

    Args:
        cases: the cases; they share compiled units.
        target: one of `TARGETS`.
        seconds: the most time to make a failing case small.

    Returns:
        The number of cases, of elements that were equal in every bit, within a bound, or open, and
        the failures as texts.
    """
    check_batch, check_case = checkers(target)
    failures, compared = check_batch(cases)
    texts = [str(minimised(f, seconds, check_case)) for f in failures]
    return {"cases": len(cases), "compared": compared.tolist(), "failures": texts}


def check_all_blocks(cases: Sequence[Case]) -> tuple[list[Failure], Any]:
    """Run cases block by block; return the failures, and the elements compared by kind."""
    compared = np.zeros(3, np.int64)
    differences = [(c, check_blocks(c, compared)) for c in cases]
    return [Failure(c, text) for c, text in differences if text is not None], compared


def checkers(target: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return two functions for a target: check many cases at once, and check a single one."""
    table: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "cpu": (check_all, check),
        "blocks": (check_all_blocks, check_blocks),
        "opencl": (partial(check_all, target=opencl), check_opencl),
        "cuda": (graph_checks.check_all, graph_checks.check),
        "cuda-driver": (runtime_checks.check_all, runtime_checks.check),
        "cuda-device": (
            partial(runtime_checks.check_all, machine=runtime_checks.REAL_DEVICE),
            partial(runtime_checks.check, machine=runtime_checks.REAL_DEVICE),
        ),
    }
    return table[target]


SANITIZED = 20
"""How many graphs one process checks with sanitizers."""
SANITIZERS = "-fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all"


def sanitizing(folder: str) -> dict[str, str]:
    """Return the environment in which g++ compiles kernels and launcher with ASan and UBSan.

    Args:
        folder: An empty kernel cache, so that all machine code is compiled anew.
    """
    names = ("libasan.so", "libubsan.so")
    libraries = [
        subprocess.run(
            ["g++", f"-print-file-name={name}"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name in names
    ]
    return {
        "PASSKIT_CXX": f"g++ {SANITIZERS}",
        "PASSKIT_CACHE_DIR": folder,
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python frees much only at exit
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def main() -> int:
    """Run the worker processes and sum up. Return 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--count", type=int, default=10000, help="graphs (10000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (1)")
    parser.add_argument("--seconds", type=float, default=30.0, help="to make a failure small (30)")
    parser.add_argument("--blocks", action="store_true", help="run kernels block by block as well")
    parser.add_argument("--quick", action="store_true", help="compile kernels at -O0")
    parser.add_argument("--target", choices=TARGETS, default="cpu", help="what runs them (cpu)")
    parser.add_argument("--sanitize", action="store_true", help="compile with ASan and UBSan")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        with quickly() if args.quick else nullcontext():
            work(args)
        return 0
    with tempfile.TemporaryDirectory(prefix="passkit-") as folder:
        if args.sanitize:
            os.environ.update(sanitizing(folder))
        return GraphCampaign(args).run()


class GraphCampaign:
    """Worker processes over ranges of seeds, and the sum of their reports."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.coverage: Counter[str] = Counter()
        self.compared = [0, 0, 0]
        self.done = self.failed = 0
        self.start = time.monotonic()

    def run(self) -> int:
        """Check all seeds. Return 1 if a check failed or a kind of graph did not occur."""
        for report in reports(self.commands(), self.args.jobs):
            if "crashed" in report:
                self.failed += 1
                code, first = report["crashed"], report["start"]
                print(f"seeds from {first}: the process ended with {code}", flush=True)
                continue
            self.coverage.update(report["coverage"])
            self.compared = [a + b for a, b in zip(self.compared, report["compared"], strict=True)]
            self.done += report["cases"]
            self.failed += len(report["failures"])
            for text in report["failures"]:
                print(f"\n{text}\n", flush=True)
            spent = time.monotonic() - self.start
            print(f"{self.done} graphs, {self.failed} failed, {spent:.0f} s", flush=True)
        return self.summary()

    def commands(self) -> Iterator[list[str]]:
        """Yield the command lines of the workers, each for a range of seeds."""
        last = self.args.first + self.args.count
        # A worker has a limited time, and sanitized kernels take ten times as long to compile.
        most = SANITIZED if self.args.sanitize else PROCESS
        batch = max(1, min(most, -(-self.args.count // self.args.jobs)))
        for first in range(self.args.first, last, batch):
            command = [sys.executable, "-X", "faulthandler", __file__, "--worker"]
            command += ["--first", str(first), "--count", str(min(batch, last - first))]
            command += ["--seconds", str(self.args.seconds), "--target", self.args.target]
            yield command + ["--blocks"] * self.args.blocks + ["--quick"] * self.args.quick

    def summary(self) -> int:
        """Print coverage and counts. Return 1 if a check failed or a kind is missing."""
        print(table(self.coverage))
        exact, near, anything = self.compared
        print(f"elements: {exact} equal in every bit, {near} within a bound, {anything} open")
        missing = [kind for kind in expected() if not self.coverage[kind]]
        if missing and self.args.count >= 300:
            print(f"never drawn: {', '.join(missing)}")
        print(f"{self.done} graphs, {self.failed} failed, {time.monotonic() - self.start:.0f} s")
        is_incomplete = self.done < self.args.count or (missing and self.args.count >= 300)
        return 1 if self.failed or is_incomplete else 0


if __name__ == "__main__":
    sys.exit(main())
