"""Run SciPy's or scikit-learn's own tests for array libraries on passkit.xp, PyTorch and JAX.

    pip install scipy scikit-learn pytest hypothesis array-api-strict torch jax
    python benchmarks/suites.py scipy [--only special stats] [--json benchmarks/results/scipy.json]
    python benchmarks/suites.py sklearn [--only metrics]

Their wheels ship their tests. Those for array libraries run for each library and subpackage, in a
process of their own; the plugin `suite_plugin.py` adds passkit.xp to the libraries. The command
prints how many tests passed, failed and were skipped by subpackage, and exits with 1 if passkit.xp
passes fewer than PyTorch or JAX in the subpackages that both ran. The tests take hours: ``--keep
FOLDER --resume`` goes on after an interruption, ``--again`` runs those that failed again, and
``--report`` reports what was kept so far.

"By marks" are the skipped tests whose marks in the suite exclude the library: those for NumPy
only, and those that name the library. The library cannot pass them.
"""

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
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from attrs import frozen

HERE = Path(__file__).resolve().parent
OURS = "passkit.xp"
BACKENDS = (OURS, "torch", "jax.numpy")


@frozen
class Suite:
    """The tests of a project for array libraries.

    Attributes:
        name: the project's package.
        pattern: the files of the package that may have tests.
        marker: a regular expression that the text of files with tests for array libraries matches.
        options: further options of pytest, in which ``{backend}`` stands for the array library.
        environment: environment variables.
        packages: distributions whose versions stand in the report.
    """

    name: str
    pattern: str
    marker: str
    options: Sequence[str]
    environment: Mapping[str, str]
    packages: Sequence[str]

    def files(self, only: Sequence[str]) -> list[Path]:
        """Return the files with tests for array libraries.

        ``only`` are parts of their paths, such as names of subpackages; none selects all.
        """
        root = package_folder(self.name)
        paths = [
            path
            for path in sorted(root.glob(self.pattern))
            if not only or any(part in str(path.relative_to(root)) for part in only)
        ]
        return [path for path in paths if re.search(self.marker, path.read_text())]

    def subject_of(self, test: str) -> str:
        """Return the subpackage of a test by its name or file: its row of the table."""
        matched = re.search(rf"{self.name}/(\w+)/", test)
        return matched.group(1) if matched else "other"


SUITES = (
    Suite(
        name="scipy",
        pattern="*/**/tests/test_*.py",
        marker=r"\bdef test\w*\([^)]*\bxp\b",
        options=("-m", "array_api_backends"),
        environment={"SCIPY_ARRAY_API": "1"},
        packages=("scipy", "numpy", "torch", "jax", "array-api-strict"),
    ),
    Suite(
        name="sklearn",
        pattern="**/tests/test_*.py",
        marker="yield_namespace_device_dtype_combinations",
        # The others are for PyTorch alone: they name it in their text.
        options=(
            "-k",
            (
                "{backend} and not negative_strides_to_torch and not convert_to_numpy_gpu "
                "and not supported_float_types and not convert_estimator_to_ndarray"
            ),
        ),
        environment={"SCIPY_ARRAY_API": "1"},
        packages=("scikit-learn", "scipy", "numpy", "torch", "jax"),
    ),
)


def parser() -> ArgumentParser:
    """Return the parser of the command line."""
    result = ArgumentParser(description=str(__doc__).partition("\n")[0])
    result.add_argument("suite", choices=[suite.name for suite in SUITES])
    result.add_argument("--only", nargs="*", default=[], help="subpackages, or parts of paths")
    result.add_argument("--backends", nargs="*", default=list(BACKENDS), choices=BACKENDS)
    result.add_argument("--seconds", type=int, default=300, help="the limit of one test")
    result.add_argument(
        "--explorations", default="", help="the most plans that passkit.xp makes, 0 to be quick"
    )
    result.add_argument("--json", type=Path, help="write the table, with the failures, to a file")
    result.add_argument("--keep", type=Path, help="a folder for the outcomes of each library")
    result.add_argument("--resume", action="store_true", help="use outcomes that were kept")
    result.add_argument("--again", action="store_true", help="run failures that were kept again")
    result.add_argument("--report", action="store_true", help="use these alone, and run nothing")
    return result


def package_folder(name: str) -> Path:
    """Return the folder of an installed package."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None, f"{name} is not installed"
    return Path(spec.origin).parent


def outcomes(suite: Suite, backend: str, options: Namespace) -> dict[str, Any]:
    """Run a suite on an array library; return what `suite_plugin` reports of all subpackages.

    Raises: RuntimeError if the tests of a subpackage do not run.
    """
    subjects: dict[str, list[Path]] = {}
    for path in suite.files(options.only):
        subjects.setdefault(suite.subject_of(str(path)), []).append(path)
    tests: dict[str, Any] = {}
    stats: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        keep = (options.keep or Path(folder)).resolve()
        for subject, paths in subjects.items():
            report = keep / f"{suite.name}-{backend}-{subject}.json"
            is_kept = report.exists() and (options.resume or options.again or options.report)
            if options.again and is_kept:
                run_failures(suite, backend, report, options)
            elif options.report and not is_kept:
                continue
            elif not is_kept:
                run_tests(suite, backend, paths, report, options)
            results = json.loads(report.read_text())
            tests |= results["outcomes"]
            stats.update(results["stats"])
    return {"outcomes": tests, "stats": stats}


def run_failures(suite: Suite, backend: str, report: Path, options: Namespace) -> None:
    """Run the tests that failed by a report again, and write their new outcomes to the report.

    Raises: RuntimeError if they do not run.
    """
    results = json.loads(report.read_text())
    outcomes_by_test = results["outcomes"]
    failures = [test for test, entry in outcomes_by_test.items() if entry["outcome"] == "failed"]
    if not failures:
        return
    again = report.with_name(f"{report.stem}-again.json")
    root = package_folder(suite.name).parent
    run_tests(suite, backend, [root / test for test in failures], again, options)
    outcomes_by_test.update(json.loads(again.read_text())["outcomes"])
    report.write_text(json.dumps(results))


def run_tests(
    suite: Suite, backend: str, paths: Sequence[Path], report: Path, options: Namespace
) -> None:
    """Run files of tests, or tests by name, on an array library in a process that writes a report.

    Raises: RuntimeError if it writes none.
    """
    root = package_folder(suite.name).parent
    for suffix in (".json", ".jsonl", ".txt"):
        report.with_suffix(suffix).unlink(missing_ok=True)
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
        *map(str, paths),
    ]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    report.with_suffix(".txt").write_text(done.stdout + done.stderr)
    if not report.exists():
        raise RuntimeError(f"the suite did not run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def without_backend(test: str, backend: str) -> str:
    """Return the name of a test without the id of the array library, so that names compare."""
    return re.sub(rf"(?<![\w.]){re.escape(backend)}(?![\w.])", "xp", test)


def counts_by_subject(suite: Suite, results: dict[str, Any]) -> dict[str, Counter[str]]:
    """Return how many tests had each outcome, by subject and in all.

    "by marks" are those of the skipped tests that marks of the suite exclude.
    """
    table: dict[str, Counter[str]] = {}
    for test, entry in results["outcomes"].items():
        outcome = "skipped" if entry["outcome"] == "xfailed" else entry["outcome"]
        for subject in (suite.subject_of(test), "all"):
            counts = table.setdefault(subject, Counter())
            counts[outcome] += 1
            if entry.get("by_mark"):
                counts["by marks"] += 1
    return dict(sorted(table.items(), key=lambda item: (item[0] == "all", item[0])))


def libraries_ahead(tables: Mapping[str, Mapping[str, Mapping[str, int]]]) -> list[str]:
    """Return the libraries that pass more tests than passkit.xp, in subpackages that both ran.

    ``tables`` has the counts of outcomes by library and subpackage.
    """
    ours = tables.get(OURS, {})
    result = []
    for library, table in tables.items():
        subjects = table.keys() & ours.keys() - {"all"}
        passed, passed_by_us = (
            sum(each[subject].get("passed", 0) for subject in subjects) for each in (table, ours)
        )
        if passed > passed_by_us:
            result.append(library)
    return result


def run(suite: Suite, options: Namespace) -> int:
    """Run a suite on all libraries, print and write the table; return 1 if passkit.xp is behind."""
    results = {b: outcomes(suite, b, options) for b in options.backends}
    tables = {b: counts_by_subject(suite, each) for b, each in results.items() if each["outcomes"]}
    for backend, table in tables.items():
        for subject, counts in table.items():
            print(
                f"{backend:12} {subject:14} passed {counts['passed']:5} "
                f"failed {counts['failed']:4} skipped {counts['skipped']:5} "
                f"(by marks {counts['by marks']})"
            )
    ahead = libraries_ahead(tables)
    for library in ahead:
        print(f"{library} passes more tests than {OURS}")
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
            "ahead": ahead,
            "failures": failures,
            "stats": results.get(OURS, {}).get("stats", {}),
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return int(bool(ahead))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a competitor passes more tests."""
    options = parser().parse_args(arguments)
    (suite,) = (suite for suite in SUITES if suite.name == options.suite)
    return run(suite, options)


if __name__ == "__main__":
    sys.exit(main())
