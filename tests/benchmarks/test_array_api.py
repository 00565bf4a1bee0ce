"""The comparison of array API test results: expected failures and broken promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.array_api import EXPECTED_FAILURES, MODULES, compare, expected_failures


def test_at_most_33_failures_are_expected_and_each_has_a_reason() -> None:
    """The stored list names tests of the suite, with reasons."""
    reasons = expected_failures(EXPECTED_FAILURES)
    assert len(reasons) <= 33
    assert all(test.startswith("array_api_tests/test_") for test in reasons)


def test_a_line_without_a_reason_is_refused(tmp_path: Path) -> None:
    """A list with a bare test is an error that shows the line."""
    path = tmp_path / "xfails.txt"
    path.write_text("# tests\na.py::one # slow\na.py::two\n")
    with pytest.raises(ValueError, match=r"line 3 needs .*, got 'a\.py::two'"):
        expected_failures(path)


def test_broken_promises_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Unexpected failures, those that NumPy passes, and expected ones that pass are named."""
    outcomes = {
        "known": "failed",
        "new": "failed",
        "repaired": "passed",
        "skipped": "skipped",
    }
    numpy_outcomes = {**outcomes, "new": "passed"}
    results = dict(zip(MODULES, (outcomes, numpy_outcomes), strict=True))
    complaints = compare(results, {"known": "NumPy's", "repaired": "NumPy's"})
    assert complaints == [
        "fails unexpectedly: new",
        "fails, and passes with array_api_compat.numpy: new",
        "is expected to fail, and passes: repaired",
    ]
    assert "passed     1 failed    2 skipped    1" in capsys.readouterr().out
