"""Run a test suite of another project once for each array library, and compare what passes."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from attrs import frozen

HERE = Path(__file__).resolve().parent
OURS = "passkit.xp"


@frozen
class Suite:
    """The tests of a project for array libraries.

    Attributes:
        name: the project, and its package.
        files: the files or tests to run.
        options: further options of pytest, in which ``{backend}`` stands for the array library.
        environment: environment variables.
        subject_of: the row of the table that a test belongs to, by its name.
        packages: distributions whose versions stand in the report.
    """

    name: str
    files: Sequence[Path | str]
    options: Sequence[str]
    environment: Mapping[str, str]
    subject_of: Callable[[str], str]
    packages: Sequence[str]


def parser(documentation: str | None, backends: Sequence[str]) -> ArgumentParser:
    """Return the parser of the command line of a suite."""
    result = ArgumentParser(description=(documentation or "").partition("\n")[0])
    result.add_argument("--only", nargs="*", default=[], help="subpackages, or parts of paths")
    result.add_argument("--backends", nargs="*", default=list(backends), choices=backends)
    result.add_argument("--seconds", type=int, default=300, help="the limit of one test")
    result.add_argument(
        "--explorations", default="", help="the most plans that passkit.xp makes, 0 to be quick"
    )
    result.add_argument("--json", type=Path, help="write the table, with the failures, to a file")
    result.add_argument("--keep", type=Path, help="a folder for the outcomes of each library")
    return result


def package_folder(name: str) -> Path:
    """Return the folder of an installed package."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None, f"{name} is not installed"
    return Path(spec.origin).parent


def outcomes(suite: Suite, backend: str, options: Namespace) -> dict[str, Any]:
    """Run a suite on an array library in a new process; return what `suite_plugin` reports.

    Raises: RuntimeError if the suite does not run.
    """
    root = package_folder(suite.name).parent
    with tempfile.TemporaryDirectory() as folder:
        report = (options.keep or Path(folder)) / f"{suite.name}-{backend}.json"
        report = report.resolve()
        environment = {
            **os.environ,
            **suite.environment,
            "SUITE_NAME": suite.name,
            "SUITE_BACKEND": backend,
            "SUITE_REPORT": str(report),
            "SUITE_SECONDS": str(options.seconds),
            "SUITE_EXPLORATIONS": options.explorations,
            "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent), *filter(None, sys.path)]),
            "PYTHONWARNINGS": "ignore",
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "suite_plugin",
            "-p",
            "no:cacheprovider",
            "--quiet",
            "--no-header",
            "--no-summary",
            "--tb=line",
            "-W",
            "ignore",
            "-o",
            "xfail_strict=false",
            f"--rootdir={root}",
            f"--confcutdir={root}",
            *(option.format(backend=backend) for option in suite.options),
            *map(str, suite.files),
        ]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if not report.exists():
            raise RuntimeError(
                f"the suite did not run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
            )
        results: dict[str, Any] = json.loads(report.read_text())
    if options.keep:
        (options.keep / f"{suite.name}-{backend}.txt").write_text(done.stdout + done.stderr)
    return results


def without_backend(test: str, backend: str) -> str:
    """Return the name of a test without the id of the array library, so that names compare."""
    return re.sub(rf"(?<![\w.]){re.escape(backend)}(?![\w.])", "xp", test)


def counts_by_subject(suite: Suite, results: dict[str, Any]) -> dict[str, Counter[str]]:
    """Return how many tests had each outcome, by subject and in all."""
    table: dict[str, Counter[str]] = {}
    for test, entry in results["outcomes"].items():
        outcome = "skipped" if entry["outcome"] == "xfailed" else entry["outcome"]
        for subject in (suite.subject_of(test), "all"):
            table.setdefault(subject, Counter())[outcome] += 1
    return dict(sorted(table.items(), key=lambda item: (item[0] == "all", item[0])))


def run(suite: Suite, options: Namespace) -> int:
    """Run a suite on all libraries, print and write the table; return 1 if passkit.xp is behind."""
    results = {b: outcomes(suite, b, options) for b in options.backends}
    tables = {b: counts_by_subject(suite, each) for b, each in results.items()}
    for backend, table in tables.items():
        for subject, counts in table.items():
            print(
                f"{backend:12} {subject:14} passed {counts['passed']:5} "
                f"failed {counts['failed']:4} skipped {counts['skipped']:5}"
            )
    failures = {
        without_backend(test, OURS): entry["message"]
        for test, entry in results.get(OURS, {"outcomes": {}})["outcomes"].items()
        if entry["outcome"] == "failed"
    }
    for test, message in failures.items():
        print(f"{OURS} fails {test}: {message.partition(chr(10))[0][:150]}")
    if options.json:
        report = {
            "suite": suite.name,
            "date": date.today().isoformat(),
            "python": platform.python_version(),
            "versions": {name: version(name) for name in suite.packages},
            "tables": tables,
            "failures": failures,
            "stats": results.get(OURS, {}).get("stats", {}),
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    passed = {b: table["all"]["passed"] for b, table in tables.items()}
    return int(passed.get(OURS, 0) < max(passed.values(), default=0))


if __name__ == "__main__":
    sys.exit(f"{Path(__file__).name} is used by scipy_suite.py and sklearn_suite.py")
