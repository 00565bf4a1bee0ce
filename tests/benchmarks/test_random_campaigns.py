"""Random campaigns: ranges of seeds that are recorded, continued, and checked again."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the modules of benchmarks/ importable, as its scripts see them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def row(first: int, count: int, version: str = "a1", **other: Any) -> dict[str, Any]:
    """Return a row of a record."""
    stamp = {"first": first, "count": count, "commit": version, "date": "2026-01-02"}
    return {**stamp, "seconds": 1.5, "numbers": {"equal": count}, "failures": [], **other}


def test_adjoining_ranges_of_one_version_are_one_row() -> None:
    """Ranges are merged but for other versions, failures and gaps, and replaced when repeated."""
    from random_campaigns import add, totals

    rows: list[dict[str, Any]] = []
    for new in (row(0, 5), row(5, 5), row(10, 5, "b2"), row(20, 5, "b2", failures=["wrong"])):
        rows = add(rows, new)
    assert [(r["first"], r["count"], r["seconds"]) for r in rows] == [
        (0, 10, 3.0),
        (10, 5, 1.5),
        (20, 5, 1.5),
    ]
    assert rows[0]["numbers"] == {"equal": 10}
    assert totals(rows) == {"seeds": 20, "failed": 1, "versions": 2, "equal": 20}

    repaired = add(rows, row(20, 5, "c3"))
    assert totals(repaired) == {"seeds": 20, "failed": 0, "versions": 3, "equal": 20}


def test_the_version_is_the_commit_of_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed source is marked; a folder outside git, or a machine without git, has no commit."""
    from random_campaigns import commit

    assert commit(tmp_path) == "unversioned"
    if shutil.which("git") is not None:
        user = ["-c", "user.name=tester", "-c", "user.email=tester@example.org"]
        (tmp_path / "ops").mkdir()
        source = tmp_path / "ops" / "add.py"
        source.write_text("a = 1\n")
        commands = (["init", "-q"], ["add", "."], [*user, "commit", "-q", "-m", "Ops: add"])
        for command in commands:
            subprocess.run(["git", *command], cwd=tmp_path, check=True)
        clean = commit(tmp_path)
        source.write_text("a = 2\n")
        assert len(clean) == 8 and commit(tmp_path) == f"{clean}+"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit(tmp_path) == "unversioned"


def test_runs_go_on_behind_the_record_or_repeat_failures(tmp_path: Path) -> None:
    """A record is read as it was written; new ranges follow it, failures are checked again."""
    from random_campaigns import pending, read, write

    assert list(islice(pending("templates", read("templates", tmp_path), False), 2)) == [
        (0, 25),
        (25, 25),
    ]
    record = {**read("graphs", tmp_path), "cpu": [row(0, 100), row(100, 7, failures=["wrong"])]}
    write("graphs", record, tmp_path)

    assert read("graphs", tmp_path) == record
    assert list(islice(pending("graphs", record, False), 2)) == [(107, 100), (207, 100)]
    assert list(pending("graphs", record, True)) == [(100, 7)]


def test_a_process_that_crashes_is_a_failure_of_the_parts_it_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parts that were reported stay right; the others have the status of the process."""
    import random_campaigns

    def reports(commands: Any, jobs: int) -> Any:
        yield {"part": "cpu", "numbers": {"equal": 3}, "failures": []}
        yield {"crashed": -11, "start": "blocks"}

    monkeypatch.setattr(random_campaigns, "reports", reports)
    rows = random_campaigns.run_range("graphs", 40, 2)

    assert [*rows] == ["cpu", "blocks", "opencl", "cuda"]
    assert rows["cpu"]["failures"] == [] and rows["cpu"]["first"] == 40
    assert rows["cuda"]["failures"] == ["the process ended with -11 in blocks"]


def test_several_batches_run_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each range is checked once, by one of the jobs, and the record has all of them."""
    import random_campaigns

    checked: list[int] = []

    def run_range(campaign: str, first: int, count: int) -> dict[str, Any]:
        checked.append(first)
        time.sleep(0.01)
        return {part: row(first, count) for part in random_campaigns.PARTS[campaign]}

    monkeypatch.setattr(random_campaigns, "run_range", run_range)
    options = ["graphs", "--seconds", "0.05", "--jobs", "3", "--results", str(tmp_path)]
    assert random_campaigns.main(options) == 0
    assert sorted(checked) == [100 * k for k in range(len(checked))] and len(checked) >= 3
    record = random_campaigns.read("graphs", tmp_path)
    assert [(r["first"], r["count"]) for r in record["cuda"]] == [(0, 100 * len(checked))]


@pytest.mark.parametrize("campaign", ["graphs", "templates"])
def test_a_campaign_runs_and_is_read_by_its_row(
    campaign: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Two seeds are run on each target; the figure has their number, and what is missing."""
    import random_campaigns
    from shows import records

    monkeypatch.setitem(random_campaigns.BATCHES, campaign, 2)
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    part = random_campaigns.PARTS[campaign][0]
    assert "has no" in records.recorded_random(campaign, part, 2).text

    options = [campaign, "--seconds", "0.1", "--results", str(tmp_path)]
    assert random_campaigns.main(options) == 0
    assert f"{part}: seeds 0 to 1" in capsys.readouterr().out
    counted = "seeds" if campaign == "graphs" else "groups"
    for part in random_campaigns.PARTS[campaign]:
        figure = records.recorded_random(campaign, part, 2, counted)
        assert figure.met and ", 0 wrong; 1 versions" in figure.text
    missing = records.recorded_random(campaign, part, 99, counted)
    assert not missing.met and missing.text.endswith(f"random_campaigns.py {campaign}")

    file = tmp_path / f"random-{campaign}.json"
    record = json.loads(file.read_text())
    record[part][0]["failures"] = ["an output is wrong"]
    file.write_text(json.dumps(record))
    assert not records.recorded_random(campaign, part, 2, counted).met
    assert random_campaigns.main(["--report", "--results", str(tmp_path)]) == 1
