"""The comparison of array libraries by test suites and programs of other projects."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import pyhpc, suites


def test_outcomes_are_counted_by_subject() -> None:
    """Expected failures count as skipped, and a last row has the sums."""
    tests = ("scipy/a/t1", "scipy/a/t2", "scipy/b/t1", "t2")
    outcomes = ("passed", "failed", "xfailed", "skipped")
    entries: dict[str, dict[str, str | bool]] = {
        test: {"outcome": outcome} for test, outcome in zip(tests, outcomes, strict=True)
    }
    entries["scipy/b/t1"]["by_mark"] = True
    table = suites.counts_by_subject(suites.SUITES[0], {"outcomes": entries})
    assert list(table) == ["a", "b", "other", "all"]
    assert table["all"] == {"passed": 1, "failed": 1, "skipped": 2, "by marks": 1}


def test_failures_run_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests that failed by a kept report run by their names; their new outcomes replace the old."""
    report = tmp_path / "suite-library-a.json"
    old = {"attrs/a.py::t1": {"outcome": "failed"}, "attrs/a.py::t2": {"outcome": "passed"}}
    report.write_text(json.dumps({"outcomes": old, "stats": {}}))
    selected = []

    def run_tests(
        suite: suites.Suite, backend: str, paths: list[Path], report: Path, options: Namespace
    ) -> None:
        selected.extend(paths)
        outcomes = {"attrs/a.py::t1": {"outcome": "passed"}}
        report.write_text(json.dumps({"outcomes": outcomes}))

    monkeypatch.setattr(suites, "run_tests", run_tests)
    suite = suites.Suite(
        name="attrs", pattern="", marker="", options=(), environment={}, packages=()
    )
    for _ in range(2):  # the second time, nothing has failed
        suites.run_failures(suite, "library", report, Namespace())
    assert [path.name for path in selected] == ["a.py::t1"]
    outcomes = json.loads(report.read_text())["outcomes"]
    assert {entry["outcome"] for entry in outcomes.values()} == {"passed"}


def test_libraries_are_compared_where_both_ran() -> None:
    """A library that ran fewer subpackages is compared with passkit.xp in these."""
    ours = {"a": {"passed": 5}, "b": {"passed": 9}, "all": {"passed": 14}}
    tables = {
        suites.OURS: ours,
        "torch": {"a": {"passed": 6}, "all": {"passed": 6}},
        "jax.numpy": {"b": {"passed": 9}, "all": {"passed": 9}},
    }
    assert suites.libraries_ahead(tables) == ["torch"]


def test_names_of_tests_compare_between_libraries() -> None:
    """The id of the library is replaced, but not a part of another word."""
    name = suites.without_backend("test_a.py::test_torch[torch-1]", "torch")
    assert name == "test_a.py::test_torch[xp-1]"


def test_means_are_over_large_sizes() -> None:
    """The geometric mean of ratios to NumPy leaves out sizes below 2^16."""
    rows = {1 << 12: {"numpy": 1.0, "jax": 9.0}, 1 << 16: {"numpy": 2.0, "jax": 1.0}}
    rows[1 << 18] = {"numpy": 8.0, "jax": 1.0}
    assert pyhpc.means({"program": rows}, ["jax"]) == {"jax": pytest.approx(0.25)}


def test_different_results_are_described() -> None:
    """Numbers, types and places without a finite number must be those of NumPy."""
    expected = [np.array([1.0, np.inf, 3.0])]
    assert pyhpc.differs([np.array([1.0, np.inf, 3.0 + 1e-8])], expected) == ""
    assert "off by 1.00e+00" in pyhpc.differs([np.array([1.0, np.inf, 4.0])], expected)
    assert "finite elsewhere" in pyhpc.differs([np.array([1.0, 2.0, 3.0])], expected)
    assert "float32" in pyhpc.differs([np.ones(3, np.float32)], expected)
    assert "2 results, NumPy has 1" in pyhpc.differs(expected * 2, expected)


def test_only_the_import_of_a_program_is_changed(tmp_path: Path) -> None:
    """The program runs with `passkit.xp` as ``np``; without the line it is refused."""
    folder = tmp_path / "benchmarks" / "equation_of_state"
    folder.mkdir(parents=True)
    path = folder / "eos_numpy.py"
    path.write_text("import numpy as np\n\ndef run(x):\n    return np.sum(x)\n")
    module = pyhpc.program_on_xp(tmp_path, "equation_of_state")
    assert float(module.run(module.np.asarray([1.0, 2.0]))) == 3.0
    path.write_text("import math\n")
    with pytest.raises(ValueError, match="eos_numpy.py needs one line .*, it has 0"):
        pyhpc.program_on_xp(tmp_path, "equation_of_state")
