"""Run the array API test suite on passkit.xp and on NumPy, and compare what fails.

    git clone --recursive https://github.com/data-apis/array-api-tests
    pip install hypothesis pytest-json-report ndindex array-api-compat
    python benchmarks/array_api.py --suite array-api-tests

The suite is a checkout of data-apis/array-api-tests with its submodule. `array_api_xfails.txt`
lists the tests that passkit.xp is expected to fail, each with its reason. The command exits with 1
if passkit.xp fails a test that is not listed, or one that `array_api_compat.numpy` passes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

VERSION = "2024.12"
"""The version of the standard."""
MODULES = ("passkit.xp", "array_api_compat.numpy")
"""The array libraries: the one that is tested, and the one that it is compared with."""
EXPECTED_FAILURES = Path(__file__).with_name("array_api_xfails.txt")


def expected_failures(path: Path) -> dict[str, str]:
    """Return the reasons of expected failures by the name of the test.

    Args:
        path: a file with a line ``test # reason`` for each; other lines that begin with # are
            comments.

    Raises: ValueError for a line without a reason.
    """
    reasons: dict[str, str] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        test, mark, reason = line.partition(" # ")
        if not mark or not reason.strip():
            raise ValueError(f"{path.name}, line {number} needs 'test # reason', got {line!r}")
        reasons[test.strip()] = reason.strip()
    return reasons


def outcomes(suite: Path, module: str, examples: int, selection: Sequence[str]) -> dict[str, str]:
    """Run the suite on a module in a new process; return the outcome of each test by its name.

    Args:
        suite: the checkout.
        module: the name of the array library's module.
        examples: the number of random examples for each test.
        selection: files or tests of the suite, relative to it.

    Raises: RuntimeError if the suite does not run.
    """
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": module,
        "ARRAY_API_TESTS_VERSION": VERSION,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            sys.executable,
            "-m",
            "pytest",
            *selection,
            "--quiet",
            "--no-header",
            "--tb=no",
            "-p",
            "no:cacheprovider",
            "-W",
            "ignore",
            f"--max-examples={examples}",
            "--disable-deadline",
            "--derandomize",
            "--json-report",
            f"--json-report-file={report}",
        ]
        done = subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True)
        if not report.exists():
            raise RuntimeError(
                f"the suite did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        tests = json.loads(report.read_text())["tests"]
    return {test["nodeid"]: test["outcome"] for test in tests}


def compare(results: dict[str, dict[str, str]], reasons: dict[str, str]) -> list[str]:
    """Print the counts of each library; return what contradicts the promise, as sentences.

    Args:
        results: the outcomes by library and test.
        reasons: the reasons of expected failures of passkit.xp by test.
    """
    for module, tests in results.items():
        counts = Counter(tests.values())
        print(
            f"{module:25} passed {counts['passed']:5} failed {counts['failed']:4} "
            f"skipped {counts['skipped']:4}"
        )
    ours, theirs = (results[module] for module in MODULES)
    failures = {test for test, outcome in ours.items() if outcome not in ("passed", "skipped")}
    complaints = [f"fails unexpectedly: {test}" for test in sorted(failures - set(reasons))]
    complaints += [
        f"fails, and passes with {MODULES[1]}: {test}"
        for test in sorted(failures)
        if theirs.get(test) == "passed"
    ]
    complaints += [
        f"is expected to fail, and passes: {test}"
        for test in sorted(reasons)
        if ours.get(test) == "passed"
    ]
    return complaints


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a promise is broken."""
    parser = ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--suite", type=Path, required=True, help="checkout of array-api-tests")
    parser.add_argument("--examples", type=int, default=20, help="random examples for each test")
    parser.add_argument("tests", nargs="*", default=["array_api_tests"], help="files or tests")
    options = parser.parse_args(arguments)
    if not (options.suite / "array-api" / "src").exists():
        parser.error(f"{options.suite} lacks its submodule; git submodule update --init")
    reasons = expected_failures(EXPECTED_FAILURES)
    results = {m: outcomes(options.suite, m, options.examples, options.tests) for m in MODULES}
    complaints = compare(results, reasons)
    for complaint in complaints:
        print(complaint)
    print(f"{len(reasons)} expected failures of {MODULES[0]}, see {EXPECTED_FAILURES.name}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
