"""Measure the demands of `show.py` with two versions in turns, and find rows that got worse.

    python benchmarks/shows_against.py e29f45e6 --work DIR --subjects core,plans --seconds 280
    python benchmarks/shows_against.py --compare OLD.json NEW.json   # two reports of show.py
    python benchmarks/shows_against.py --report

A row is worse if it was met and is not any more, or if a number that it prints is worse by more
than 5 %. Which way is better is read from the demand: "<=" or ">=". A worse row is measured twice
more, in turns, and counts if it is worse each time. Rows that another record has, or that need what
few machines have, are left out and listed with the reason. A row without a limit that is met now is
not measured with the old version. `results/shows-against.json` has the rows of all runs, which go
on where the last one ended; ``show.py middle`` reads it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from kernels_against import checkout, in_folder  # noqa: E402  (after the path)
from random_campaigns import commit  # noqa: E402

RECORD = HERE / "results" / "shows-against.json"
SUBJECTS = ("core", "operators", "stitch", "plans", "training")
LIMIT = 1.05
RUNS = 3
"""The most runs of each version for a row."""
LEFT_OUT = {
    "fresh clone": "needs a network",
    "tests pass": "suite_pieces.py records all tests",
    "whole suite": "suite_pieces.py records all tests",
    "last run": "random_campaigns.py records random graphs",
    "fuzz: ": "random_campaigns.py records random graphs",
    "5,000 groups": "random_campaigns.py records random groups",
    "peer": "peers are as before: kernels_against.py times passkit's part",
    "PyTorch": "peers are as before: kernels_against.py times passkit's part",
    "ONNX": "peers are as before: kernels_against.py times passkit's part",
    "hand": "kernels by hand are as before: kernels_against.py times passkit's part",
    "TensorFlow-Examples": "needs TensorFlow",
    "TensorFlow trains": "needs TensorFlow",
    "LeNet's step": "needs TensorFlow; kernels_against.py times the step",
    "on a GPU": "needs a GPU",
    "30,000 operators": "as 30000 operators of plans",
    "time per operator grows": "as the growth of plans",
}
"""Parts of demands that are left out, with the reasons."""

PROGRAM = """
import importlib, json, sys
sys.path[:0] = ["benchmarks", "."]
import shows
subject, report, peers, *texts = sys.argv[1:]
shows.peers_python = shows.torch_python = shows.onnx_python = peers
table = importlib.import_module(f"shows.{subject}").DEMANDS
rows = shows.show([demand for demand in table if demand.text in texts])
with open(report, "w") as file:
    file.write(json.dumps(shows.as_json(rows), default=str))
"""
"""Demands of a checkout that one process measures, so that they share what takes long."""

Row = dict[str, Any]
"""``demand``, ``found`` and ``met``, as `show.py` reports them."""
Record = dict[str, Any]


def numbers(printed: str) -> list[float]:
    """Return the numbers that a row prints, without those in names and parentheses.

    >>> numbers("41.2 ms, least 3e-1 ms: gelu 4x512 (load 2.1: the least counts)")
    [41.2, 0.3]
    """
    text = re.sub(r"\([^)]*\)", "", printed)
    return [float(n) for n in re.findall(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)", text)]


def direction(demand: str) -> int:
    """Return -1 if less is better by a demand's limit, 1 if more is, and 0 without one limit."""
    limits = set(re.findall(r"[<>]=?", demand))
    less, more = limits & {"<", "<="}, limits & {">", ">="}
    return 0 if bool(less) == bool(more) else (-1 if less else 1)


def worse(demand: str, old: Row | None, new: Row | None) -> str:
    """Say what is worse in a new row, "" if nothing is.

    Args:
        demand: the demand.
        old: the older version's row, None if it has none.
        new: the row now, None if there is none any more.
    """
    if new is None:
        return "the row is gone" if old is not None else ""
    if new["met"] is False and (old is None or old["met"]):
        return f"not met: {new['found']}" if old is None else f"met before: {new['found']}"
    pair = (numbers(old["found"]), numbers(new["found"])) if old else ([], [])
    if direction(demand) and len(pair[0]) == len(pair[1]):
        for before, now in zip(*pair, strict=True):
            ratio = (now / before if before else math.inf) if now != before else 1.0
            ratio = ratio if direction(demand) < 0 else 1 / ratio if ratio else math.inf
            if ratio > LIMIT:
                return f"{before:g} before, now {now:g}"
    return ""


def compared(old: Sequence[Row], new: Sequence[Row]) -> list[str]:
    """Return a line for each demand of two reports whose row is worse in the new one."""
    rows = [{row["demand"]: row for row in report} for report in (old, new)]
    texts = {d: worse(d, rows[0].get(d), rows[1].get(d)) for d in {**rows[0], **rows[1]}}
    return [f"{demand}: {text}" for demand, text in texts.items() if text]


def reason_to_leave_out(demand: str) -> str:
    """Return why a demand is left out, "" if it is not."""
    return next((reason for part, reason in LEFT_OUT.items() if part in demand), "")


def demands(subjects: Sequence[str] = SUBJECTS) -> list[tuple[str, str]]:
    """Return the subject and text of each demand that is not left out; one of two equal texts."""
    subject_of: dict[str, str] = {}
    for subject in subjects:
        for demand in importlib.import_module(f"shows.{subject}").DEMANDS:
            if not reason_to_leave_out(demand.text):
                subject_of.setdefault(demand.text, subject)
    return [(subject, text) for text, subject in subject_of.items()]


def left_out(subjects: Sequence[str]) -> dict[str, str]:
    """Return the reason of each demand that is left out, by subject and text."""
    return {
        f"{subject}: {demand.text}": reason
        for subject in subjects
        for demand in importlib.import_module(f"shows.{subject}").DEMANDS
        if (reason := reason_to_leave_out(demand.text))
    }


def shown(
    tree: Path, subject: str, texts: Sequence[str], cache: Path, peers: str
) -> dict[str, Row]:
    """Measure demands of a subject in a process of a checkout; return the rows that it has.

    Raises: CalledProcessError if the process fails.
    """
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(tree), "PASSKIT_CACHE_DIR": str(cache)}
    with TemporaryDirectory(prefix="passkit-") as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-c", PROGRAM, subject, str(report), peers, *texts]
        subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)
        rows = json.loads(report.read_text())
    return {row["demand"]: {key: row[key] for key in ("demand", "found", "met")} for row in rows}


def measured(
    trees: dict[str, Path], subject: str, texts: Sequence[str], caches: Path, peers: str
) -> dict[str, list[dict[str, Row | None]]]:
    """Return the rows of both versions for each demand, of one run or, while worse, of `RUNS`."""
    runs: dict[str, list[dict[str, Row | None]]] = {text: [] for text in texts}
    for number in range(RUNS):
        again = [t for t, r in runs.items() if not r or worse(t, r[-1]["old"], r[-1]["new"])]
        rows: dict[str, dict[str, Row]] = {"new": {}, "old": {}}
        for version in ("new", "old") if number % 2 == 0 else ("old", "new"):
            due = [
                text
                for text in again
                if version == "new"
                or direction(text)
                or number
                or not rows["new"].get(text, {}).get("met")
            ]
            if due:
                cache = caches / f"{version}-cache"
                rows[version] = shown(trees[version], subject, due, cache, peers)
        for text in again:
            runs[text].append({version: rows[version].get(text) for version in ("old", "new")})
    return runs


def worse_rows(record: Record) -> list[str]:
    """Return a line for each row of a record that is worse in all of its runs."""
    lines = []
    for row in record["rows"]:
        texts = [worse(row["demand"], run["old"], run["new"]) for run in row["runs"]]
        if all(texts):
            lines.append(f"{row['subject']}: {row['demand']}: {'; '.join(texts)}")
    return lines


def summary(record: Record) -> tuple[str, bool]:
    """Return a line about a record, and whether no row is worse."""
    lines, rows = worse_rows(record), record["rows"]
    met = sum(bool((row["runs"][-1]["new"] or {}).get("met")) for row in rows)
    versions = list(dict.fromkeys(row["new"] for row in rows))
    text = (
        f"{len(rows)} rows, {met} met, {len(lines)} worse than by {record['old']}, "
        f"{len(record['left_out'])} left out; {', '.join(versions)}, {record['date']}"
    )
    return text, not lines


def read(path: Path, old: str) -> Record:
    """Return a record, an empty one if its old version is another."""
    empty: Record = {"old": old, "rows": [], "left_out": {}}
    record = json.loads(path.read_text()) if path.exists() else empty
    return record if record["old"] == old else empty


def report(path: Path) -> int:
    """Print the rows of a record that are worse, and its summary; return 1 if there are any."""
    record = json.loads(path.read_text())
    text, is_met = summary(record)
    print(*worse_rows(record), text, sep="\n")
    return 0 if is_met else 1


def work(options: argparse.Namespace, folder: Path) -> int:
    """Measure rows that the record lacks, until the seconds are over; return 1 if one is worse."""
    deadline = time.monotonic() + options.seconds
    with checkout(options.old, folder) as (old, tree):
        trees, new = {"old": tree, "new": HERE.parent}, commit()
        record = read(options.json, old)
        record["left_out"] = left_out(SUBJECTS)
        recorded = {(row["subject"], row["demand"]) for row in record["rows"]}
        for subject in options.subjects.split(","):
            texts = [t for s, t in demands() if s == subject and re.search(options.only, t)]
            texts = [t for t in texts if options.again or (subject, t) not in recorded]
            if texts and time.monotonic() < deadline:
                for text, runs in measured(trees, subject, texts, folder, options.peers).items():
                    stamp = {"new": new, "date": str(date.today())}
                    key = subject, text
                    others = [r for r in record["rows"] if (r["subject"], r["demand"]) != key]
                    row = {"subject": subject, "demand": text, **stamp, "runs": runs}
                    record["rows"] = [*others, row]
    record["date"] = str(date.today())
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(record, indent=1) + "\n")
    return report(options.json)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return 1 if a row is worse."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("old", nargs="?", help="the other version: a commit or a checkout")
    parser.add_argument("--subjects", default=",".join(SUBJECTS), help="tables of show.py")
    parser.add_argument("--only", default="", help="rows whose demand has this regular expression")
    parser.add_argument("--again", action="store_true", help="also rows that the record has")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no subject later")
    parser.add_argument("--peers", default=sys.executable, help="a Python with torch and jax")
    parser.add_argument("--work", type=Path, help="a folder for the checkout and caches")
    parser.add_argument("--json", type=Path, default=RECORD, help="the record")
    parser.add_argument("--compare", type=Path, nargs=2, help="reports of show.py, old and new")
    parser.add_argument("--report", action="store_true", help="print the record")
    options = parser.parse_args(arguments)
    if options.compare:
        lines = compared(*(json.loads(path.read_text())["rows"] for path in options.compare))
        print(*lines, f"{len(lines)} rows are worse", sep="\n")
        return 1 if lines else 0
    return report(options.json) if options.report else in_folder(parser, options, work)


if __name__ == "__main__":
    sys.exit(main())
