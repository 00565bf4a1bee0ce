"""Run the tests folder by folder, and record their time, outcome and the lines that they execute.

    python benchmarks/suite_pieces.py --seconds 600       # the next pieces; those recorded stay
    python benchmarks/suite_pieces.py --only tests/ops    # one piece anew
    python benchmarks/suite_pieces.py --lines FOLDER      # with SlipCover, `pip install slipcover`
    python benchmarks/suite_pieces.py --lines OTHER --before TREE  # lines of an earlier checkout

A machine that others use has no time for the whole suite in one run. A piece is a folder of tests
or a file directly in `tests/`; all pieces of a run share a cache of kernels, as the workers of a
whole run do. The processor's seconds count, of tests and of what they start: two workers share
them. `results/suite.json` has a row for each piece, and the executed lines of `passkit/`, `ops/`
and `frontends/`. ``show.py middle`` reads it. Runs with ``--lines``, whose folder keeps the lines
of each piece, record neither times nor outcomes: SlipCover costs time, and a test that sends
signals fails with it. ``--before`` records the lines that the tests of an earlier checkout execute.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT)]

from random_campaigns import commit  # noqa: E402  (after the path)

from tests.workers import SHARED  # noqa: E402

RESULTS = HERE / "results" / "suite.json"
SOURCES = ("passkit", "ops", "frontends")
SPLIT = ("frontends", "runtime")
"""Folders whose folders are pieces of their own."""


def pieces(root: Path | None = None) -> list[str]:
    """Return the paths of all pieces, relative to the root of a checkout; None is this one."""
    root = root or ROOT
    folders = [p for p in sorted((root / "tests").iterdir()) if p.name not in SPLIT]
    folders += [p for name in SPLIT for p in sorted((root / "tests" / name).iterdir())]
    return [p.relative_to(root).as_posix() for p in folders if _has_tests(p)]


def _has_tests(path: Path) -> bool:
    """Return whether a path is a file of tests, or a folder with one."""
    if path.is_dir():
        return next(path.rglob("test_*.py"), None) is not None
    return path.name.startswith("test_") and path.suffix == ".py"


def run_piece(
    piece: str, cache: Path, lines: Path | None, root: Path | None = None
) -> dict[str, Any]:
    """Run a piece in one process, and return its row.

    Args:
        piece: a path of `pieces`.
        cache: a folder that all pieces of a run share.
        lines: the folder for the executed lines of each piece; None measures none.
        root: the checkout whose tests run; None is this one.
    """
    root = root or ROOT
    command = [sys.executable, "-m"]
    if lines is not None:
        lines.mkdir(exist_ok=True)
        command += [
            "slipcover",
            "--source",
            ",".join(SOURCES),
            "--json",
            "--out",
            str(lines_file(lines, piece)),
        ]
        command += ["-m"]
    command += ["pytest", "-q", "-p", "no:cacheprovider", piece]
    # SlipCover is imported before pytest could rewrite its assertions, and pytest warns of it.
    command += ["-W", "ignore:Module already imported"] if lines is not None else []
    environment = {
        **os.environ,
        "PASSKIT_CACHE_DIR": str(cache / "cache"),
        SHARED: str(cache / "shared"),
        "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
    }
    (cache / "cache").mkdir(mode=0o700, exist_ok=True)
    before, start = _cpu_seconds(), time.monotonic()
    process = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    printed = process.stdout.strip().splitlines() or process.stderr.strip().splitlines() or [""]
    failed = [line for line in printed if line.startswith(("FAILED ", "ERROR "))]
    return {
        "commit": commit(),
        "date": str(date.today()),
        "passed": process.returncode in (0, 5),  # 5: all of its tests need a GPU
        "outcome": printed[-1].strip("= "),
        **({"failures": failed} if failed else {}),
        "seconds": round(time.monotonic() - start, 1),
        "cpu_seconds": round(_cpu_seconds() - before, 1),
    }


def lines_file(folder: Path, piece: str) -> Path:
    """Return the file with the lines that a piece executes."""
    return folder / f"{piece.replace('/', '+')}.json"


def _cpu_seconds() -> float:
    """Return the processor's seconds of all processes that this one started and that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def executed_lines(files: Iterable[Path]) -> dict[str, list[int]]:
    """Return for each source folder how many lines were executed, and how many there are.

    Args:
        files: the JSON files of SlipCover, whose lines are united.
    """
    executed: dict[str, set[int]] = {}
    missing: dict[str, set[int]] = {}
    for file in files:
        for name, rows in json.loads(file.read_text())["files"].items():
            executed.setdefault(name, set()).update(rows["executed_lines"])
            missing.setdefault(name, set()).update(rows["missing_lines"])
    counts = {source: [0, 0] for source in SOURCES}
    for name, done in executed.items():
        source = name.partition("/")[0]
        if source in counts:
            counts[source][0] += len(done)
            counts[source][1] += len(done | missing[name])
    return counts


def read(path: Path = RESULTS) -> dict[str, Any]:
    """Return the record; one without rows if there is none."""
    if path.exists():
        record: dict[str, Any] = json.loads(path.read_text())
        return record
    return {"pieces": {}, "lines": {}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return 1 if a piece of the record failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--only", nargs="*", default=(), help="pieces to run, recorded or not")
    parser.add_argument("--seconds", type=float, default=600, help="begin no piece after (600)")
    parser.add_argument("--lines", type=Path, help="a folder for the executed lines of each piece")
    parser.add_argument("--before", type=Path, help="measure the lines of an earlier checkout")
    parser.add_argument("--json", type=Path, default=RESULTS, help="the record")
    options = parser.parse_args(arguments)
    if options.before and not options.lines:
        parser.error("--before measures lines; name a folder for them with --lines")
    root: Path | None = options.before and options.before.resolve()
    start = time.monotonic()
    record = read(options.json)
    rows: dict[str, Any] = {p: r for p, r in record["pieces"].items() if (ROOT / p).exists()}
    lines: Path | None = options.lines and options.lines.resolve()
    done = rows if lines is None else {p for p in pieces(root) if lines_file(lines, p).exists()}
    chosen = options.only or [piece for piece in pieces(root) if piece not in done]
    with tempfile.TemporaryDirectory(prefix="passkit-suite-") as cache:
        for piece in chosen:
            if time.monotonic() - start > options.seconds:
                break
            row = run_piece(piece, Path(cache), lines, root)
            print(f"{piece:40} {row['cpu_seconds']:7.1f} s  {row['outcome']}", flush=True)
            for failure in row.get("failures", ()):
                print(f"    {failure}", flush=True)
            if lines is None:
                rows[piece] = row
            else:
                key = "lines_before" if root else "lines"
                record[key] = executed_lines(sorted(lines.glob("*.json")))
            record["pieces"] = dict(sorted(rows.items()))
            options.json.write_text(json.dumps(record, indent=1) + "\n")
    return int(not all(row["passed"] for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
