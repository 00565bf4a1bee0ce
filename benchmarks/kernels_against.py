"""Time the CPU kernels of the corpus beside those of another version, alternating in one run.

    python benchmarks/kernels_against.py e29f45e6                      # a commit, or a checkout
    python benchmarks/kernels_against.py e29f45e6 --work DIR --compile # fill the caches of kernels
    python benchmarks/kernels_against.py e29f45e6 --work DIR --seconds 280    # then go on in parts
    python benchmarks/kernels_against.py --report

Each version has a process that compiles the graphs (`kernel_times`), and a cache of kernels. They
time a graph in turns, the calls and each kernel in them: a repetition is the medians of several
samples. A kernel or a program is slower if its ratio is above 1.05 in three repetitions, and in
three longer ones, each by new processes. `results/kernels-against.json` has a row for each
graph: the commits, and the seconds of each repetition. ``show.py middle`` reads it.

Random graphs over all operators have kernels of a microsecond; ``--random`` adds them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from compare import cpu_model  # noqa: E402  (after the path)
from corpus_feeds import elements_of, sizes_of  # noqa: E402
from kernel_times import EXTENTS  # noqa: E402
from pipe import Pipe, PipeError  # noqa: E402
from random_campaigns import commit  # noqa: E402

RECORD = HERE / "results" / "kernels-against.json"
LIMIT = 1.05
REPETITIONS = 3
SAMPLES = 5
"""Samples of each version in a repetition; they alternate."""
SAMPLE_SECONDS = 0.004
LONGER = 4
"""How many times as long samples of suspects are."""
ELEMENTS = 1 << 27
"""The most elements of all values of a graph."""
TOO_LARGE = "too large"
PAUSE = 0.004
"""The seconds after which the threads of the other process sleep."""
VERSIONS = ("old", "new")

Row = dict[str, Any]
Record = dict[str, Any]


@contextmanager
def checkout(version: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the folder of a version: a checkout, or a commit that is unpacked.

    Args:
        version: a commit of this repository, or the folder of a checkout.
        folder: where a commit is unpacked.

    Raises:
        CalledProcessError: there is no such commit.
    """
    if Path(version).is_dir():
        yield commit(Path(version)), Path(version).resolve()
        return
    git = ["git", "-C", str(HERE.parent)]
    name = subprocess.run(
        [*git, "rev-parse", "--short=8", f"{version}^{{commit}}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    tree = folder / name
    if not tree.exists():
        part = folder / f"{name}.part"
        part.mkdir(parents=True)
        archive = subprocess.run([*git, "archive", name], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(part)], input=archive, check=True)
        part.rename(tree)
    yield name, tree


def write_graphs(folder: Path, only: str, random: bool) -> dict[str, Any]:
    """Write the graphs of the corpus as JSON; return operators kept together by graph.

    Graphs that are too large have no file, and `TOO_LARGE` instead.
    """
    import corpus_graphs

    import passkit as pk

    folder.mkdir(parents=True, exist_ok=True)
    together: dict[str, Any] = {}
    for case in corpus_graphs.cases(pk):
        is_random = case.name.removeprefix("random_").isdigit()
        if only not in case.name or (is_random and not random):
            continue
        if elements_of(case.graph, sizes_of(case.graph, EXTENTS)) > ELEMENTS:
            together[case.name] = TOO_LARGE
            continue
        (folder / f"{case.name}.json").write_text(pk.to_json(case.graph))
        together[case.name] = case.together
    return together


class Pair:
    """The processes of both versions; leave the context to end them."""

    def __init__(self, trees: dict[str, Path], caches: Path, threads: int) -> None:
        self._stack = ExitStack()
        self.pipes: dict[str, Pipe] = {}
        for version, tree in trees.items():
            cache = caches / f"{version}-cache"
            cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            environment = {
                "PYTHONPATH": str(tree),
                "PASSKIT_CACHE_DIR": str(cache),
                "PASSKIT_THREADS": str(threads),
            }
            pipe = Pipe(sys.executable, "kernel_times", threads, environment)
            self.pipes[version] = self._stack.enter_context(pipe)

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def compiled(self, path: Path, together: Any) -> dict[str, list[str]]:
        """Compile a graph with both versions; return the names of their kernels.

        Raises: PipeError if a version cannot compile it.
        """
        return {
            version: pipe.ask(graph=str(path), together=together)["kernels"]
            for version, pipe in self.pipes.items()
        }

    def repetition(self, seconds: float) -> dict[str, dict[str, Any]]:
        """Return the medians of alternating samples of the compiled graph, by version."""
        samples: dict[str, list[dict[str, Any]]] = {version: [] for version in self.pipes}
        for number in range(SAMPLES):
            for version in VERSIONS if number % 2 else VERSIONS[::-1]:
                time.sleep(PAUSE)
                samples[version].append(self.pipes[version].ask(seconds=seconds))
        return {
            version: {
                "call": median(s["call"] for s in of_version),
                "kernels": [
                    median(k) for k in zip(*(s["kernels"] for s in of_version), strict=True)
                ],
            }
            for version, of_version in samples.items()
        }


def medians(samples: Sequence[Sequence[float]]) -> list[float]:
    """Return the median of each kernel's seconds over all samples."""
    return [median(of_kernel) for of_kernel in zip(*samples, strict=True)]


def joined(repetitions: Sequence[dict[str, dict[str, Any]]], names: dict[str, list[str]]) -> Row:
    """Return the seconds of several repetitions as lists, by version, with the kernels' names."""
    times: Row = {}
    for version in VERSIONS:
        of_version = [r[version] for r in repetitions]
        times[version] = {
            "names": names[version],
            "call": [r["call"] for r in of_version],
            "kernels": [list(k) for k in zip(*(r["kernels"] for r in of_version), strict=True)],
        }
    return times


def ratios(times: Row) -> dict[str, list[float]]:
    """Return the ratios new / old of all repetitions, of the call and of each kernel by its name.

    Kernels have a ratio where both versions have as many, and are compared in their order.
    """
    old, new = times["old"], times["new"]
    pairs = {"call": (old["call"], new["call"])}
    if len(old["kernels"]) == len(new["kernels"]):
        for k, name in enumerate(new["names"]):
            pairs[f"{k} {name}"] = (old["kernels"][k], new["kernels"][k])
    return {
        name: [b / max(a, 1e-9) for a, b in zip(*both, strict=True)] for name, both in pairs.items()
    }


def slower(row: Row) -> dict[str, list[float]]:
    """Return the ratios of what is slower in all repetitions, also in those measured again."""
    suspects = {n: r for n, r in ratios(row["times"]).items() if min(r) > LIMIT}
    if suspects and "again" in row:
        again = ratios(row["again"])
        return {n: again[n] for n in suspects if min(again[n]) > LIMIT}
    return suspects


def summary(record: Record) -> tuple[str, bool]:
    """Return a line about a record, and whether nothing is slower."""
    rows = record["rows"]
    of_rows = [ratios(row.get("again") or row["times"]) for row in rows]
    calls = [median(r["call"]) for r in of_rows]
    kernels = [median(r[name]) for r in of_rows for name in r if name != "call"]
    slow = [(row["graph"], name, r) for row in rows for name, r in slower(row).items()]
    mean = {
        what: math.exp(sum(map(math.log, values)) / max(1, len(values)))
        for what, values in (("kernels", kernels), ("calls", calls))
    }
    versions = sorted({row["new"] for row in rows}, key=[row["new"] for row in rows].index)
    text = (
        f"{len(kernels)} kernels of {len(rows)} graphs, mean ratio {mean['kernels']:.3f}, of calls "
        f"{mean['calls']:.3f}; {len(slow)} above {LIMIT}"
    )
    if slow:
        graph, name, worst = max(slow, key=lambda s: min(s[2]))
        text += f", at most {min(worst):.2f}: {graph}, {name}"
    return f"{text}; {record['old']} and {', '.join(versions)}, {record['date']}", not slow


def read(path: Path, old: str) -> Record:
    """Return a record, an empty one if its old version is another."""
    empty: Record = {"old": old, "rows": [], "left_out": {}}
    record = json.loads(path.read_text()) if path.exists() else empty
    return record if record["old"] == old else empty


def write(path: Path, record: Record, threads: int) -> None:
    """Write a record with date and machine; each graph has the row that was measured last."""
    by_graph = {row["graph"]: row for row in record["rows"]}
    rows = [by_graph[name] for name in sorted(by_graph)]
    stamp = {"date": str(date.today()), "cpu": cpu_model(), "threads": threads}
    text = json.dumps({"old": record["old"], **stamp, "left_out": record["left_out"], "rows": rows})
    rounded = json.loads(text, parse_float=lambda number: float(f"{float(number):.4g}"))
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(rounded)
    path.write_text(text.replace('{"graph"', '\n{"graph"') + "\n")  # a line for each graph


def measure_again(
    rows: Sequence[Row],
    trees: dict[str, Path],
    folder: Path,
    together: dict[str, Any],
    options: argparse.Namespace,
) -> None:
    """Measure suspects in longer samples, each repetition by new processes; write it to the rows.

    Args:
        rows: the suspects.
        trees: the checkouts of both versions.
        folder: where graphs and caches are.
        together: operators kept together by graph.
        options: the command line's.
    """
    repetitions: list[list[dict[str, dict[str, Any]]]] = [[] for _ in rows]
    names: list[dict[str, list[str]]] = [{} for _ in rows]
    for _ in range(REPETITIONS if rows else 0):
        with Pair(trees, folder, options.threads) as pair:
            for k, row in enumerate(rows):
                graph = row["graph"]
                names[k] = pair.compiled(folder / "graphs" / f"{graph}.json", together[graph])
                repetitions[k].append(pair.repetition(LONGER * options.sample))
    for k, row in enumerate(rows):
        row["again"] = joined(repetitions[k], names[k])


def work(options: argparse.Namespace, folder: Path) -> int:
    """Compile or measure graphs until the seconds are over; return 1 if something is slower."""
    deadline = time.monotonic() + options.seconds
    with checkout(options.old, folder) as (old, tree):
        trees, new = {"old": tree, "new": HERE.parent}, commit()
        record = read(options.json, old)
        graphs = folder / "graphs"
        together = write_graphs(graphs, options.only, options.random)
        recorded = {row["graph"] for row in record["rows"]} | record["left_out"].keys()
        pending = [n for n in together if options.again or options.compile or n not in recorded]
        with Pair(trees if pending else {}, folder, options.threads) as pair:
            for name in pending:
                if time.monotonic() > deadline:
                    break
                path = graphs / f"{name}.json"
                stamp = {"graph": name, "old": old, "new": new, "date": str(date.today())}
                try:
                    if together[name] == TOO_LARGE:
                        record["left_out"][name] = TOO_LARGE
                    elif options.compile:
                        pair.compiled(path, together[name])
                    else:
                        names = pair.compiled(path, together[name])
                        times = joined(
                            [pair.repetition(options.sample) for _ in range(REPETITIONS)], names
                        )
                        record["left_out"].pop(name, None)
                        record["rows"].append({**stamp, "times": times})
                except PipeError as error:
                    record["left_out"][name] = str(error)
        if not options.compile:
            suspects = [r for r in record["rows"] if r["graph"] in together and slower(r)]
            measure_again(suspects, trees, folder, together, options)
    if options.compile:
        print(f"{len(pending)} graphs, {len(record['left_out'])} left out")
        return 0
    write(options.json, record, options.threads)
    return report(options.json)


def report(path: Path) -> int:
    """Print what a record has of each graph that is slower, and its summary; return 1 if any is."""
    record = json.loads(path.read_text())
    for row in record["rows"]:
        for name, of_repetitions in slower(row).items():
            shown = " ".join(f"{r:.2f}" for r in of_repetitions)
            print(f"{row['graph']}: {name}: {shown}")
    for name, reason in record["left_out"].items():
        print(f"{name}: {reason}")
    text, is_met = summary(record)
    print(text)
    return 0 if is_met else 1


def in_folder(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    compare: Callable[[argparse.Namespace, Path], int],
) -> int:
    """Compare with another version in the folder of ``--work``, or else in one that is deleted.

    Args:
        parser: the parser, which refuses a command line without another version.
        options: the options.
        compare: the function of the options and the folder; its result is returned.
    """
    if options.old is None:
        parser.error("name the other version: a commit, or the folder of a checkout")
    if options.work:
        return compare(options, options.work)
    with TemporaryDirectory(prefix="passkit-") as folder:
        return compare(options, Path(folder))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return 1 if a kernel or program is slower."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("old", nargs="?", help="the other version: a commit or a checkout")
    parser.add_argument("--only", default="", help="graphs whose name contains this")
    parser.add_argument("--random", action="store_true", help="also random graphs")
    parser.add_argument("--again", action="store_true", help="also graphs that the record has")
    parser.add_argument("--compile", action="store_true", help="compile and do not measure")
    parser.add_argument("--seconds", type=float, default=math.inf, help="measure no longer")
    parser.add_argument("--sample", type=float, default=SAMPLE_SECONDS, help="seconds of a sample")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--work", type=Path, help="a folder for checkout, graphs and caches")
    parser.add_argument("--json", type=Path, default=RECORD, help="the record")
    parser.add_argument("--report", action="store_true", help="print the record")
    options = parser.parse_args(arguments)
    return report(options.json) if options.report else in_folder(parser, options, work)


if __name__ == "__main__":
    sys.exit(main())
