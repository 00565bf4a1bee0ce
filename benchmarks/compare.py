"""Compare passkit with PyTorch, JAX and hand-written kernels, alternating in one process.

    python benchmarks/compare.py [--set core] [--quick] [--only passkit,torch,jax,onnx,hand]
                                 [--rows softmax]

Prints a table and writes ``benchmarks/results/NAME.json``. What is measured and why: README.md.
"""

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from attrs import Factory, define, frozen

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # a checkout that is not installed

import hand  # noqa: E402  (after the path)
import peers  # noqa: E402
from comparison_report import MODES, SMALL_SECONDS, ratios, summary, text  # noqa: E402
from operator_workloads import SETS as OPERATOR_SETS  # noqa: E402
from workloads import WORKLOADS, Workload  # noqa: E402

KEPT_NBYTES = 640 << 20  # results of a series that are held at once
PAUSE_SECONDS = 0.02  # longer than the thread pools of the competitors spin
GROUPS = {"torch": ("eager", "compile")}
SETS = {"core": WORKLOADS, **OPERATOR_SETS}

LOOPS = {
    "dropped": """
def series(f, chunks, clock, deadline):
    times = []
    for chunk in chunks:
        start = clock()
        if start > deadline and len(times) > 3:
            break
        for ({names},) in chunk:
            {call}
        times.append(clock() - start)
    return times
""",
    "kept": """
def series(f, chunks, clock, deadline):
    times, results = [], []
    hold = results.append
    for chunk in chunks:
        start = clock()
        if start > deadline and len(times) > 3:
            break
        for ({names},) in chunk:
            hold({call})
        times.append(clock() - start)
    return times
""",
}


@frozen
class MeasuringEffort:
    """How long a run measures.

    Attributes:
        rounds: series of each competitor and mode.
        seconds: of one series.
        samples: least number of samples in a series.
    """

    rounds: int
    seconds: float
    samples: int


FULL, QUICK = MeasuringEffort(5, 0.04, 5), MeasuringEffort(3, 0.02, 4)


@define
class WorkloadEntrant:
    """A competitor on one workload, ready to be timed.

    Attributes:
        sets: native inputs, one tuple for each set.
        result_nbytes: bytes of one result.
        error: largest relative error against the float64 reference.
        medians: median seconds of a call, for each mode one per series.
        minima: least seconds of a call, likewise.
    """

    name: str
    competitor: peers.Competitor
    sets: list[tuple[Any, ...]]
    result_nbytes: int
    error: float
    medians: dict[str, list[float]] = Factory(lambda: {mode: [] for mode in MODES})
    minima: dict[str, list[float]] = Factory(lambda: {mode: [] for mode in MODES})

    def median(self, mode: str) -> float:
        """Return the least of the series' medians, in seconds."""
        return min(self.medians[mode])

    def loop(self, mode: str, names: tuple[str, ...]) -> Callable[..., list[int]]:
        """Compile the timing loop around this competitor's call."""
        space: dict[str, Any] = {}
        exec(LOOPS[mode].format(names=", ".join(names), call=self.competitor.call), space)
        return space["series"]

    def measure(self, mode: str, names: tuple[str, ...], effort: MeasuringEffort) -> None:
        """Time one series: a pause, calls to warm up, then the samples."""
        loop, f, clock = self.loop(mode, names), self.competitor.function, time.perf_counter_ns
        time.sleep(PAUSE_SECONDS)
        spent, begin = [], time.perf_counter()
        while len(spent) < 3 or time.perf_counter() - begin < effort.seconds / 3:
            spent += self.warm(f, clock, names)
            if time.perf_counter() - begin > 1.0:
                break
        samples, inner = self._sampling(mode, statistics.median(spent) / 1e9, effort)
        cycle = [self.sets[i % len(self.sets)] for i in range(samples * inner)]
        chunks = [cycle[i * inner : (i + 1) * inner] for i in range(samples)]
        deadline = clock() + int(effort.seconds * 5e9)  # other work on the CPUs may stall calls
        times = loop(f, chunks, clock, deadline)
        self.medians[mode].append(statistics.median(times) / inner / 1e9)
        self.minima[mode].append(min(times) / inner / 1e9)

    def _sampling(self, mode: str, median: float, effort: MeasuringEffort) -> tuple[int, int]:
        """Choose the number of samples, and of calls in each.

        Short calls are timed many at a time; kept results are bounded in bytes.

        Args:
            mode: "dropped" or "kept".
            median: the seconds of a call, as measured while warming up.
            effort: how long to measure.
        """
        estimate = max(median, 1e-7)
        inner = 1 if estimate > SMALL_SECONDS else max(1, int(2e-4 / estimate))
        samples = max(effort.samples, min(400, int(effort.seconds / (estimate * inner))))
        if mode == "kept":
            samples = min(samples, max(2, KEPT_NBYTES // (self.result_nbytes * inner)))
        return samples, inner

    def warm(self, f: Any, clock: Any, names: tuple[str, ...]) -> list[int]:
        """Call once on each set of inputs, drop the results, and return the nanoseconds."""
        return self.loop("dropped", names)(f, [[inputs] for inputs in self.sets], clock, clock())


def enter(
    name: str,
    work: Workload,
    threads: int,
    arrays: list[tuple[np.ndarray, ...]],
    references: list[np.ndarray],
) -> WorkloadEntrant | None:
    """Build a competitor and compute its error on every set of inputs.

    Returns:
        The competitor, or None if it has no implementation of this workload.
    """
    competitor = peers.BUILDERS[name](work, threads)
    if competitor is None:
        return None
    sets = [tuple(competitor.prepare(a) for a in inputs) for inputs in arrays]
    call = eval(f"lambda f, {', '.join(work.names)}: {competitor.call}")
    worst, nbytes = 0.0, 4
    for inputs, reference in zip(sets, references, strict=True):
        result = competitor.numpy(call(competitor.function, *inputs))
        worst, nbytes = max(worst, work.error(result, reference)), max(nbytes, result.nbytes)
    return WorkloadEntrant(name, competitor, sets, nbytes, worst)


def compare(
    work: Workload, names: list[str], threads: int, effort: MeasuringEffort
) -> dict[str, Any]:
    """Check every competitor on one workload, then time them in turn.

    Returns:
        A row of the report; a competitor that fails has its reason under ``"failed"``.
    """
    hand.POOL.clear()
    gc.collect()
    gc.disable()  # a collection costs 0.1 s with PyTorch and JAX loaded
    count = 2 if work.nbytes > (64 << 20) else 3
    arrays = [work.arrays(seed) for seed in range(count)]
    references = [work.reference(inputs) for inputs in arrays[:2]]
    row: dict[str, Any] = {
        "name": work.label,
        "core": work.core,
        "nbytes": work.nbytes,
        "failed": {},
        "competitors": {},
    }
    entrants = []
    for name in names:
        try:
            entrant = enter(name, work, threads, arrays[:2], references)
        except Exception as error:  # the other rows and competitors still count
            row["failed"][name] = f"{type(error).__name__}: {error}"
            continue
        if entrant is None:
            continue
        if entrant.error > work.tolerance:
            row["failed"][name] = f"error {entrant.error:.1e} > {work.tolerance:.0e}"
        entrant.sets += [
            tuple(entrant.competitor.prepare(a) for a in inputs) for inputs in arrays[2:]
        ]
        entrants.append(entrant)
    del references
    kernel_seconds = []
    for iteration in range(effort.rounds if entrants else 0):
        for mode in MODES:
            for entrant in (
                entrants[iteration % len(entrants) :] + entrants[: iteration % len(entrants)]
            ):
                entrant.measure(mode, work.names, effort)
                if mode == "dropped" and entrant.name == "hand":
                    kernel_seconds.append(time_kernel(work, arrays, effort))
    for entrant in entrants:
        row["competitors"][entrant.name] = {"error": entrant.error} | {
            mode: {
                "median": entrant.median(mode),
                "minimum": min(entrant.minima[mode]),
                "medians": entrant.medians[mode],
            }
            for mode in MODES
        }
    if kernel_seconds:
        row["hand_kernel"] = min(kernel_seconds)
    return row | ratios(row)


def time_kernel(
    work: Workload, arrays: list[tuple[np.ndarray, ...]], effort: MeasuringEffort
) -> float:
    """Return the seconds of the hand-written kernel in isolation: the best of three C loops."""
    kernel = hand.kernel(work.hand or "")
    calls = max(3, int(effort.seconds / 4 / max(kernel.seconds(arrays, 3), 1e-7)))
    return min(kernel.seconds(arrays, calls) for _ in range(3))


def cpu_model() -> str:
    """Return the CPU's name; Linux has it in /proc/cpuinfo."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in lines)}
    return names.get("model name") or platform.processor() or platform.machine()


def circumstances(threads: int, load: tuple[float, float, float]) -> dict[str, Any]:
    """Return when and where a report was measured; ``load`` is from before it began."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "threads": threads,
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_before": load,
    }


def available(requested: list[str]) -> list[str]:
    """Return the requested competitors that can be imported; print why the others cannot."""
    packages = {
        "passkit": "passkit",
        "unfused": "passkit",
        "eager": "torch",
        "compile": "torch",
        "jax": "jax",
        "onnx": "onnxruntime",
    }
    importable = []
    for name in requested:
        try:
            if name == "hand":
                hand.library()
            else:
                __import__(packages[name])
        except (ImportError, hand.UnavailableError) as error:
            print(f"without {name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        importable.append(name)
    return importable


def run(
    requested: list[str], rows: list[Workload], threads: int, effort: MeasuringEffort, name: str
) -> dict[str, Any]:
    """Measure the rows, write the report and return it."""
    threads = peers.confine(threads)
    names = available(requested)
    begin, measured, load = time.time(), [], os.getloadavg()
    if load[0] > 0.5:
        print(
            f"the machine is busy (load {load[0]:.1f}): figures of thread teams will not hold",
            file=sys.stderr,
        )
    for work in rows:
        started = time.time()
        measured.append(compare(work, names, threads, effort))
        print(f"{work.label}: {time.time() - started:.1f} s", file=sys.stderr, flush=True)
    totals = summary(measured)
    report = {
        **circumstances(threads, load),
        "seconds": time.time() - begin,
        "versions": peers.versions(["passkit", "numpy", "torch", "jax", "jaxlib", "onnxruntime"]),
        "settings": {n: peers.SETTINGS[n] for n in names},
        "effort": {"rounds": effort.rounds, "seconds": effort.seconds},
        "summary": totals,
        "rows": measured,
    }
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
    print(
        f"{report['cpu']}, {threads} threads, {report['date']}, "
        + ", ".join(f"{k} {v}" for k, v in report["versions"].items())
    )
    print(text(measured, names, totals))
    return report


def main() -> int:
    """Run the command line. Return 1 if passkit or a hand-written kernel failed on a row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="core", choices=SETS, help="which workloads")
    parser.add_argument("--quick", action="store_true", help="ten rows, shorter series")
    parser.add_argument(
        "--only",
        default="passkit,unfused,torch,jax,hand",
        help="competitors, by comma; onnx is one more",
    )
    parser.add_argument("--rows", default="", help="only rows whose label contains this")
    parser.add_argument("--rounds", type=int, help="series of each competitor and row")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--name", help="name of the report in benchmarks/results/")
    options = parser.parse_args()
    requested = [n for part in options.only.split(",") for n in GROUPS.get(part, (part,))]
    if unknown := set(requested) - set(peers.NAMES):
        parser.error(
            f"unknown competitor {', '.join(sorted(unknown))}; "
            f"there are {', '.join([*peers.NAMES, *GROUPS])}"
        )
    workloads = SETS[options.set]
    rows = [w for w in workloads if options.rows in w.label and (w.quick or not options.quick)]
    if not rows:
        parser.error(
            f"no row contains {options.rows!r}; there are " + ", ".join(w.label for w in workloads)
        )
    effort = QUICK if options.quick else FULL
    if options.rounds:
        effort = MeasuringEffort(options.rounds, effort.seconds, effort.samples)
    title = "compare" if options.set == "core" else f"compare-{options.set}"
    name = options.name or title + "-quick" * options.quick
    report = run(requested, rows, options.threads, effort, name)
    broken = any(n in row["failed"] for row in report["rows"] for n in ("passkit", "hand"))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
