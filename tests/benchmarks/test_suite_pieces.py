"""The suite in pieces: time, outcome and lines of each are recorded, and read by a row."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the modules of benchmarks/ importable, as its scripts see them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def test_pieces_have_each_test_once() -> None:
    """Every file of tests is in one piece."""
    from suite_pieces import pieces

    files = {p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("test_*.py")}
    numbers = [sum(f"{file}/".startswith(f"{p}/") for p in pieces()) for file in files]

    assert len(files) > 300 and set(numbers) == {1}


def test_pieces_are_run_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A piece has its outcome and the seconds of its process; recorded ones are not run again."""
    import suite_pieces
    from shows import records

    good, bad = tmp_path / "test_good.py", tmp_path / "test_bad.py"
    good.write_text("def test_busy():\n    assert sum(range(3_000_000))\n")
    bad.write_text("def test_wrong():\n    assert 1 == 2\n")
    monkeypatch.setattr(suite_pieces, "ROOT", tmp_path)
    monkeypatch.setattr(suite_pieces, "pieces", lambda root: [good.name, bad.name])
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    file = tmp_path / "suite.json"

    assert suite_pieces.main(["--seconds", "60", "--only", good.name, "--json", str(file)]) == 0
    row = json.loads(file.read_text())["pieces"][good.name]
    assert row["outcome"].startswith("1 passed") and row["cpu_seconds"] > 0.1
    assert "1 of 2 pieces" in records.recorded_pieces([good.name, bad.name], 99).text
    assert records.recorded_pieces([good.name], 99).met
    assert not records.recorded_pieces([good.name], 0.01).met
    capsys.readouterr()

    assert suite_pieces.main(["--json", str(file)]) == 1
    printed = capsys.readouterr().out
    assert bad.name in printed and "1 failed" in printed and good.name not in printed
    assert not records.recorded_pieces([good.name, bad.name], 99).met


def test_lines_of_pieces_are_united(tmp_path: Path) -> None:
    """A line counts as executed if one piece executes it; other folders are left out."""
    from suite_pieces import executed_lines

    first = {
        "ops/a.py": {"executed_lines": [1, 2], "missing_lines": [3, 4]},
        "tests/t.py": {"executed_lines": [1], "missing_lines": []},
    }
    second = {"ops/a.py": {"executed_lines": [1, 3], "missing_lines": [2, 4]}}
    files = [tmp_path / "1.json", tmp_path / "2.json"]
    for file, content in zip(files, (first, second), strict=True):
        file.write_text(json.dumps({"files": content}))

    assert executed_lines(files) == {"passkit": [0, 0], "ops": [3, 4], "frontends": [0, 0]}


def test_lines_are_measured_by_slipcover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a folder for lines the command runs SlipCover; without, it does not."""
    import suite_pieces

    commands: list[list[str]] = []

    class Finished:
        """The end of a process that printed one line."""

        returncode, stdout, stderr = 0, "3 passed in 1.0s", ""

    def run(command: list[str], **options: object) -> Finished:
        commands.append(command)
        return Finished()

    monkeypatch.setattr(suite_pieces.subprocess, "run", run)
    monkeypatch.setattr(suite_pieces, "commit", lambda: "abc")
    for lines in (None, tmp_path / "lines"):
        row = suite_pieces.run_piece("tests/ast", tmp_path, lines)
        assert row["passed"] and row["commit"] == "abc"

    assert commands[0][:3] == [sys.executable, "-m", "pytest"]
    assert commands[1][:3] == [sys.executable, "-m", "slipcover"]
    assert str(tmp_path / "lines" / "tests+ast.json") in commands[1]


def test_lines_of_an_earlier_checkout_stand_beside_this_one_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--before`` runs the pieces of another checkout there; the row prints both shares."""
    import suite_pieces
    from shows import records

    earlier, lines, file = tmp_path / "earlier", tmp_path / "lines", tmp_path / "suite.json"
    (earlier / "tests" / "runtime").mkdir(parents=True)
    (earlier / "tests" / "frontends").mkdir()
    (earlier / "tests" / "test_one.py").write_text("")

    def run_piece(piece: str, cache: Path, folder: Path, root: Path | None) -> dict[str, object]:
        assert folder == lines
        executed = {"executed_lines": [1, 2, 3], "missing_lines": []}
        if root is not None:
            assert (piece, root) == ("tests/test_one.py", earlier)
            executed = {"executed_lines": [1], "missing_lines": [2]}
        lines.mkdir(exist_ok=True)
        suite_pieces.lines_file(lines, "a").write_text(json.dumps({"files": {"ops/a": executed}}))
        return {"cpu_seconds": 1.0, "outcome": "passed", "passed": True}

    monkeypatch.setattr(suite_pieces, "run_piece", run_piece)
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    options = ["--lines", str(lines), "--json", str(file)]
    assert suite_pieces.main([*options, "--before", str(earlier)]) == 0
    text = records.recorded_pieces([], 1).text
    assert "lines executed: ops 50.0 % before, unmeasured now" in text
    assert suite_pieces.main([*options, "--only", "tests/ast"]) == 0
    text = records.recorded_pieces([], 1).text
    assert "lines executed: ops 50.0 % before, ops 100.0 % now" in text

    with pytest.raises(SystemExit):
        suite_pieces.main(["--before", str(earlier)])
    assert "--before measures lines; name a folder for them with" in capsys.readouterr().err
