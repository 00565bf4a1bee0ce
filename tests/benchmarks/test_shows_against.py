"""Demands beside another version's: which rows are worse, and what a record holds."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHOWS = """
from pathlib import Path

def show(demands):
    calls = Path("calls")
    number = len(calls.read_text()) if calls.exists() else 0
    calls.write_text("x" * (number + 1))
    found, met = FOUND[min(number, len(FOUND) - 1)]
    return [{"demand": d.text, "found": found, "met": met, "data": 1} for d in demands]

def as_json(rows):
    return rows
"""
"""A package in the place of `shows`, which finds something else in each run."""
TABLE = """
from types import SimpleNamespace
DEMANDS = [SimpleNamespace(text=text) for text in ("a <= 3 s", "b", "c <= 2 s")]
"""


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the modules of benchmarks/ importable, as its scripts see them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def row(demand: str, found: str, met: bool | None = True) -> dict[str, Any]:
    """Return a row as `show.py` reports it."""
    return {"demand": demand, "found": found, "met": met}


def test_numbers_have_a_direction_by_the_limit() -> None:
    """Less is better below a limit, more above one; two limits or none have no direction."""
    from shows_against import direction, numbers

    assert [direction(d) for d in ("a <= 1.5 us", "speedup > 4.6", "a <= 2, none < 1.0")] == [
        -1,
        1,
        -1,
    ]
    assert [direction(d) for d in ("170 operators", "a < b, c >= 1.4")] == [0, 0]
    assert numbers("41.2 ms, least 3e-1 ms: gelu 4x512 (load 2.1: counts), -2") == [41.2, 0.3, -2]


@pytest.mark.parametrize(
    ("demand", "old", "new", "text"),
    [
        ("t <= 3 s", ("1.00 s", True), ("1.04 s", True), ""),
        ("t <= 3 s", ("1.00 s", True), ("1.20 s", True), "1 before, now 1.2"),
        ("t <= 3 s", ("0", True), ("1.20 s", True), "0 before, now 1.2"),
        ("t <= 3 s", ("1.20 s", True), ("0 s", True), ""),
        ("t >= 3", ("5.0", True), ("4.0", True), "5 before, now 4"),
        ("t >= 3", ("4.0", True), ("5.0", True), ""),
        ("t >= 3", ("4.0 of a", True), ("4.0 of 3", True), ""),  # other numbers
        ("tests pass", ("3 passed", True), ("2 passed", True), ""),
        ("tests pass", ("3 passed", True), ("1 failed", False), "met before: 1 failed"),
        ("tests pass", ("3 passed", True), ("not there", None), ""),
        ("tests pass", ("1 failed", False), ("2 failed", False), ""),
        ("tests pass", None, ("2 failed", False), "not met: 2 failed"),
        ("tests pass", None, ("2 passed", True), ""),
        ("tests pass", ("2 passed", True), None, "the row is gone"),
        ("tests pass", None, None, ""),
    ],
)
def test_what_is_worse(demand: str, old: Any, new: Any, text: str) -> None:
    """Rows that are met no more, and numbers that are worse by more than 5 %."""
    from shows_against import worse

    assert worse(demand, old and row(demand, *old), new and row(demand, *new)) == text


def test_two_reports_are_compared(tmp_path: Path, capsys: Any) -> None:
    """The command prints the worse rows of two reports of `show.py`."""
    from shows_against import main

    paths = [tmp_path / name for name in ("old.json", "new.json")]
    for path, seconds in zip(paths, ("1.0 s", "2.0 s"), strict=True):
        path.write_text(json.dumps({"rows": [row("a <= 3 s", seconds), row("b", "1")]}))
    assert main(["--compare", *map(str, paths)]) == 1
    assert capsys.readouterr().out == "a <= 3 s: 1 before, now 2\n1 rows are worse\n"
    assert main(["--compare", *map(str, paths[::-1])]) == 0


def test_rows_are_measured_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A worse row is measured up to three times; the record goes on and is read by the table."""
    import shows_against
    from shows import core, middle

    finds = {
        "old": [("1.0 s", True)],
        "new": [("2.0 s", True), ("1.01 s", True)],
    }
    trees = {version: tmp_path / version for version in finds}
    for version, tree in trees.items():
        package = tree / "benchmarks" / "shows"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(SHOWS.replace("FOUND", repr(finds[version])))
        (package / "core.py").write_text(TABLE)
    path = tmp_path / "record.json"
    texts = ("a <= 3 s", "b", "best peer >= 2", "c <= 2 s")
    table = tuple(SimpleNamespace(text=text) for text in texts)
    monkeypatch.setattr(core, "DEMANDS", table)
    monkeypatch.setattr(shows_against, "HERE", trees["new"] / "benchmarks")
    monkeypatch.setattr(shows_against, "SUBJECTS", ("core",))
    monkeypatch.setattr(shows_against.demands, "__defaults__", (("core",),))
    options = [str(trees["old"]), "--work", str(tmp_path), "--json", str(path)]
    options += ["--subjects", "core"]
    assert not middle.recorded_shows(path).met

    assert shows_against.main([*options, "--only", "a"]) == 0
    record = json.loads(path.read_text())
    (measured,) = record["rows"]
    assert [run["new"]["found"] for run in measured["runs"]] == ["2.0 s", "1.01 s"]
    assert (trees["old"] / "calls").read_text() == "xx"
    partial = middle.recorded_shows(path)
    assert not partial.met and "; 2 rows are missing: python benchmarks/sh" in partial.text

    assert shows_against.main(options) == 0
    record = json.loads(path.read_text())
    assert [(r["demand"], len(r["runs"])) for r in record["rows"]] == [
        ("a <= 3 s", 2),
        ("b", 1),
        ("c <= 2 s", 1),
    ]
    assert record["rows"][1]["runs"][0]["old"] is None  # met, and without a limit
    assert list(record["left_out"]) == ["core: best peer >= 2"]
    assert middle.recorded_shows(path).met

    (trees["new"] / "calls").unlink()
    package = trees["new"] / "benchmarks" / "shows" / "__init__.py"
    package.write_text(SHOWS.replace("FOUND", "[('4 s', False)]"))
    assert shows_against.main([*options, "--again", "--only", "a <"]) == 1
    out = capsys.readouterr().out
    assert "core: a <= 3 s: met before: 4 s; met before: 4 s; met before: 4 s" in out
    assert "3 rows, 2 met, 1 worse than by unversioned, 1 left out" in out
    figure = middle.recorded_shows(path)
    assert not figure.met and len(figure.data) == 1
    assert shows_against.main(["--report", "--json", str(path)]) == 1
    with pytest.raises(SystemExit):
        shows_against.main([])
    assert (
        "name the other version: a commit, or the folder of a checkout" in capsys.readouterr().err
    )
