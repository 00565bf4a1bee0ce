"""Campaigns collect the reports of worker processes, also of those that crash or never end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
START = "import json, sys, os; say = lambda **r: print(json.dumps(r), flush=True); say(start=%d); "


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the modules of benchmarks/ importable, as its scripts see them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def command(start: int, text: str) -> list[str]:
    """Return the command of a process that starts a case and then runs ``text``."""
    return [sys.executable, "-c", START % start + text]


def test_reports_of_parallel_processes_are_yielded() -> None:
    """Reports of parallel processes are yielded as they come; other output is ignored."""
    from campaign import reports

    slow = command(0, "import time; time.sleep(1.5); print('noise'); say(cases=1)")
    collected = list(reports([slow, *(command(k, f"say(cases={k})") for k in (2, 3, 4))], 2))

    assert sorted(r["cases"] for r in collected) == [1, 2, 3, 4]
    assert collected[0] != {"cases": 1}


def test_a_crash_is_reported_with_its_case() -> None:
    """A process that crashes gives a report with its status and its last case."""
    from campaign import reports

    collected = list(reports([command(7, "say(cases=7); say(start=8); os._exit(3)")], 1))

    assert collected == [{"cases": 7}, {"crashed": 3, "start": 8}]


def test_a_silent_process_is_aborted() -> None:
    """A process that stays silent is aborted, and the next one starts."""
    from campaign import reports

    endless = command(5, "import time; time.sleep(600)")
    collected = list(reports([endless, command(6, "say(cases=6)")], 1, patience=5))

    assert collected == [{"crashed": "5 s of silence", "start": 5}, {"cases": 6}]


def test_a_missing_program_raises() -> None:
    """A command that does not exist raises FileNotFoundError in the caller."""
    from campaign import reports

    with pytest.raises(FileNotFoundError, match="nowhere"):
        list(reports([["/nowhere/python"]], 2))
