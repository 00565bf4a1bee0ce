"""Random campaigns that go on where the last run ended, and their records in `results/`.

    python benchmarks/random_campaigns.py graphs --seconds 600     # the next seeds, on each target
    python benchmarks/random_campaigns.py templates --seconds 600  # groups under all templates
    python benchmarks/random_campaigns.py graphs --jobs 2          # two batches at a time
    python benchmarks/random_campaigns.py graphs --again           # what failed, by this version
    python benchmarks/random_campaigns.py --report

Graphs are those of `fuzz.py` on the CPU, block by block, on OpenCL and as CUDA C on an emulated
machine; they are interpreted once for all targets. Groups are those of `fuzz_templates.py`. Kernels
are compiled without optimization. A batch of seeds has a process of its own, so that a crash costs
one batch. `results/random-NAME.json` has a row for each range of seeds: the commit that was run,
the counts and the failures. ``show.py middle`` reads it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from threading import Lock
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from campaign import reports  # noqa: E402  (after the path)

from tests.workers import SHARED  # noqa: E402

RESULTS = HERE / "results"
GRAPH_TARGETS = ("cpu", "blocks", "opencl", "cuda")
PARTS = {"graphs": GRAPH_TARGETS, "templates": ("templates",)}
"""The parts of each campaign: a range of seeds has a row in each part."""
BATCHES = {"graphs": 100, "templates": 25}
MINIMISE_SECONDS = 30.0

Row = dict[str, Any]
Record = dict[str, list[Row]]


def work(campaign: str, first: int, count: int) -> None:
    """Check some seeds in this process, and print a line of JSON for each part of the campaign."""
    from tests.libraries import quickly

    gc.set_threshold(1_000_000, 20, 20)  # saves a seventh of the time
    with quickly():
        for part, counts in (graph_parts if campaign == "graphs" else template_parts)(first, count):
            print(json.dumps({"part": part, **counts}), flush=True)


def graph_parts(first: int, count: int) -> Iterator[tuple[str, Row]]:
    """Yield the counts and failures of the random graphs of some seeds, for each target."""
    from fuzz import batch_report, random_case

    cases = [random_case(seed) for seed in range(first, first + count)]
    for target in GRAPH_TARGETS:
        print(json.dumps({"start": target}), flush=True)
        report = batch_report(cases, target, MINIMISE_SECONDS)
        names = ("equal", "within bounds", "open")
        numbers = dict(zip(names, report["compared"], strict=True))
        yield target, {"numbers": numbers, "failures": report["failures"]}


def template_parts(first: int, count: int) -> Iterator[tuple[str, Row]]:
    """Yield the counts and failures of groups under all their templates, natively and in blocks."""
    from tests.template_cases import check, native_plans, subject

    print(json.dumps({"start": "templates"}), flush=True)
    subjects = [subject(seed) for seed in range(first, first + count)]
    numbers, failures = {"groups": 0, "templates": 0}, []
    for case, plans in zip(subjects, native_plans(subjects), strict=True):
        groups, templates, wrong = check(case, ready=plans)
        numbers["groups"] += groups
        numbers["templates"] += templates
        failures += wrong
    yield "templates", {"numbers": numbers, "failures": failures}


def run_range(campaign: str, first: int, count: int) -> dict[str, Row]:
    """Check some seeds in a new process; return a row for each part of the campaign.

    A part that did not end has a failure that names the status of the process.
    """
    command = [sys.executable, "-X", "faulthandler", "-W", "ignore", __file__, campaign]
    command += ["--worker", str(first), str(count)]
    start = time.monotonic()
    rows: dict[str, Row] = {}
    version = commit()
    for report in reports([command], 1):
        if "crashed" in report:
            text = f"the process ended with {report['crashed']} in {report['start']}"
            rows |= {
                p: {"numbers": {}, "failures": [text]} for p in PARTS[campaign] if p not in rows
            }
        else:
            rows[report.pop("part")] = report
    seconds = round((time.monotonic() - start) / len(rows), 1)
    stamp = {"first": first, "count": count, "commit": version, "date": str(date.today())}
    return {part: {**stamp, "seconds": seconds, **row} for part, row in rows.items()}


def commit(folder: Path = HERE.parent) -> str:
    """Return the abbreviated commit of a checkout, with "+" if its sources are changed.

    A tree without git, such as an unpacked archive, is "unversioned".
    """
    sources = ("passkit", "ops", "frontends", "tests")
    commands = (["rev-parse", "--short=8", "HEAD"], ["status", "--porcelain", "--", *sources])
    try:
        name, changes = (
            subprocess.run(
                ["git", *command], cwd=folder, check=True, capture_output=True, text=True
            ).stdout.strip()
            for command in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return "unversioned"
    return f"{name}+" if changes else name


def read(campaign: str, folder: Path = RESULTS) -> Record:
    """Return the record of a campaign; parts without rows if it has not begun."""
    path = folder / f"random-{campaign}.json"
    empty: Record = {part: [] for part in PARTS[campaign]}
    return empty | json.loads(path.read_text()) if path.exists() else empty


def write(campaign: str, record: Record, folder: Path = RESULTS) -> None:
    """Write the record of a campaign, one line for each row."""
    parts = (
        f" {json.dumps(part)}: [\n" + ",\n".join(f"  {json.dumps(r)}" for r in rows) + "\n ]"
        for part, rows in record.items()
    )
    (folder / f"random-{campaign}.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")


def add(rows: Sequence[Row], row: Row) -> list[Row]:
    """Return rows with another one, in place of rows of the same seeds.

    Ranges that adjoin become one if they have one version and no failures.
    """
    own = range(row["first"], row["first"] + row["count"])
    others = [r for r in rows if r["first"] not in own]
    merged: list[Row] = []
    for new in sorted([*others, row], key=lambda r: int(r["first"])):
        last = merged[-1] if merged else None
        if last is not None and _is_continued(last, new):
            numbers = {k: last["numbers"][k] + n for k, n in new["numbers"].items()}
            sums = {k: round(last[k] + new[k], 1) for k in ("count", "seconds")}
            merged[-1] = {**last, **sums, "numbers": numbers}
        else:
            merged.append(new)
    return merged


def _is_continued(row: Row, following: Row) -> bool:
    """Return whether two rows can be one."""
    is_clean = not row["failures"] and not following["failures"]
    is_adjacent = row["first"] + row["count"] == following["first"]
    same_version = all(row[k] == following[k] for k in ("commit", "date"))
    return is_clean and is_adjacent and same_version


def totals(rows: Sequence[Row]) -> Mapping[str, int]:
    """Return the number of seeds, of failures and of versions, and sums of the other counts."""
    sums = {"seeds": 0, "failed": 0, "versions": len({r["commit"] for r in rows})}
    for row in rows:
        sums["seeds"] += row["count"]
        sums["failed"] += len(row["failures"])
        for name, number in row["numbers"].items():
            sums[name] = sums.get(name, 0) + number
    return sums


def pending(campaign: str, record: Record, again: bool) -> Iterator[tuple[int, int]]:
    """Yield the ranges to check, as first seed and count: new ones, or those that failed."""
    if again:
        failed = {
            (r["first"], r["count"]) for rows in record.values() for r in rows if r["failures"]
        }
        yield from sorted(failed)
        return
    ends = (r["first"] + r["count"] for rows in record.values() for r in rows)
    first = max(ends, default=0)
    while True:
        yield first, BATCHES[campaign]
        first += BATCHES[campaign]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return 1 if a row of the record has a failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("campaign", nargs="?", choices=[*PARTS])
    parser.add_argument("--seconds", type=float, default=600, help="begin no batch after (600)")
    parser.add_argument("--jobs", type=int, default=1, help="batches at a time (1)")
    parser.add_argument("--again", action="store_true", help="check the ranges that failed")
    parser.add_argument("--report", action="store_true", help="print the records")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the records")
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.report:
        records = {campaign: read(campaign, options.results) for campaign in PARTS}
        for record in records.values():
            for part, rows in record.items():
                print(part, json.dumps(totals(rows)))
        return int(any(totals(r)["failed"] for rs in records.values() for r in rs.values()))
    if options.campaign is None:
        parser.error("which campaign: graphs or templates?")
    if options.worker:
        work(options.campaign, *options.worker)
        return 0
    with tempfile.TemporaryDirectory(prefix="passkit-campaign-") as shared:
        os.environ.setdefault(SHARED, shared)
        return run(options)


def run(options: argparse.Namespace) -> int:
    """Check ranges of seeds until the time is up. Return 1 if a row of the record has a failure."""
    start = time.monotonic()
    record = read(options.campaign, options.results)
    ranges = pending(options.campaign, record, options.again)
    lock = Lock()

    def check() -> None:
        """Check one range after the other, and write the record behind each."""
        while time.monotonic() - start <= options.seconds:
            with lock:
                first, count = next(ranges, (0, 0))
            if count == 0:
                return
            rows = run_range(options.campaign, first, count)
            with lock:
                for part, row in rows.items():
                    record[part] = add(record[part], row)
                    texts = "\n\n".join(["", *row["failures"], ""]) if row["failures"] else ""
                    seeds = f"seeds {first} to {first + count - 1}"
                    print(f"{part}: {seeds}, {row['seconds']} s{texts}", flush=True)
                write(options.campaign, record, options.results)

    with ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(check) for _ in range(options.jobs)]:
            done.result()
    return int(any(totals(rows)["failed"] for rows in record.values()))


if __name__ == "__main__":
    sys.exit(main())
