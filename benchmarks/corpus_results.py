"""Run the graphs of the corpus on the emulated GPU or on PoCL, and compare with NumPy's results.

    python benchmarks/corpus_results.py --target cuda [--only softmax] [--elements 40000]
    python benchmarks/corpus_results.py --target opencl

Unknown sizes are small primes. Graphs whose values have more elements than ``--elements`` are
counted as too large and are not run; random graphs belong to `fuzz.py`. It prints every failure,
and exits 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import corpus_graphs  # noqa: E402  (after the path)
from campaign import reports  # noqa: E402
from corpus_feeds import elements_of, feeds_of, sizes_of  # noqa: E402

import passkit as pk  # noqa: E402
from tests.emulator import EmulatedDevice  # noqa: E402
from tests.emulator.graph_checks import failure_of  # noqa: E402
from tests.emulator.programs import emulated  # noqa: E402
from tests.random_graphs import Case  # noqa: E402

ELEMENTS = {"cuda": 1 << 16, "opencl": 1 << 22}
"""The most elements of all values of a graph, by target: the emulator takes microseconds each."""
BATCH = 40


def cases() -> list[corpus_graphs.CorpusCase]:
    """Return the graphs of the corpus but random ones over all operators."""
    every = corpus_graphs.cases(pk)
    return [c for c in every if not c.name.removeprefix("random_").isdigit()]


def check(case: corpus_graphs.CorpusCase, target: str, most: int) -> tuple[str, str]:
    """Return "right", "wrong" or "too large" for a graph, and the failure as text."""
    sizes = sizes_of(case.graph)
    if elements_of(case.graph, sizes) > most:
        return "too large", ""
    checked = Case(0, case.graph, (feeds_of(case.graph, sizes),))
    own = {"keep_together": case.together} if case.together else {}
    try:
        exe: Any = pk.compile(case.graph, target=target, **own)
    except pk.PasskitError as error:
        exe = error
    failure = failure_of(exe, checked)
    return ("right", "") if failure is None else ("wrong", failure)


def work(first: int, count: int, target: str, only: str, most: int) -> None:
    """Check some graphs and print a report of each as JSON."""
    warnings.simplefilter("ignore", pk.InterpretedWarning)
    for case in cases()[first : first + count]:
        if only not in case.name:
            continue
        print(json.dumps({"start": case.name}), flush=True)
        if target == "cuda":
            with emulated(EmulatedDevice()):
                result, text = check(case, target, most)
        else:
            result, text = check(case, target, most)
        print(json.dumps({"name": case.name, "result": result, "text": text}), flush=True)


def commands(options: argparse.Namespace, most: int) -> Iterator[list[str]]:
    """Yield the command lines of the workers."""
    for first in range(0, len(cases()), BATCH):
        command = [sys.executable, "-X", "faulthandler", __file__, "--worker", str(first)]
        command += ["--target", options.target, "--only", options.only]
        yield [*command, "--elements", str(most)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--target", choices=tuple(ELEMENTS), required=True)
    parser.add_argument("--only", default="", help="graphs whose name contains this")
    parser.add_argument("--elements", type=int, help="most elements of all values of a graph")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    most = ELEMENTS[options.target] if options.elements is None else options.elements
    if options.worker is not None:
        work(options.worker, BATCH, options.target, options.only, most)
        return 0
    counts = {"right": 0, "wrong": 0, "too large": 0}
    for report in reports(commands(options, most), options.jobs):
        if "crashed" in report:
            report = {"name": report["start"], "result": "wrong", "text": str(report["crashed"])}
        counts[report["result"]] += 1
        if report["result"] == "wrong":
            print(f"{report['name']}: {report['text']}", flush=True)
    num_run = counts["right"] + counts["wrong"]
    print(f"{counts['too large']} graphs are too large")
    print(f"{num_run} graphs, {counts['wrong']} failed")
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
