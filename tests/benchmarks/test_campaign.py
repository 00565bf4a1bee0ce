"""Campaigns: reports of processes, of those too that crash or never end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAYS = "import json, sys, os; say = lambda **r: print(json.dumps(r), flush=True); say(start=%d); "


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules of benchmarks/ as its scripts see them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def command(start: int, text: str) -> list[str]:
    """A process that begins something and goes on as the text says."""
    return [sys.executable, "-c", SAYS % start + text]


def test_all_that_processes_say() -> None:
    """Two at a time, whichever is slow; what is no JSON is nobody's report."""
    from campaign import reports

    slow = command(0, "import time; time.sleep(1.5); print('noise'); say(cases=1)")
    found = list(reports([slow, *(command(k, f"say(cases={k})") for k in (2, 3, 4))], 2))

    assert sorted(r["cases"] for r in found) == [1, 2, 3, 4]
    assert found[0] != {"cases": 1}


def test_a_crash_is_told() -> None:
    """With what the process was at."""
    from campaign import reports

    found = list(reports([command(7, "say(cases=7); say(start=8); os._exit(3)")], 1))

    assert found == [{"cases": 7}, {"crashed": 3, "start": 8}]


def test_what_never_ends_is_aborted() -> None:
    """And the next one is begun."""
    from campaign import reports

    endless = command(5, "import time; time.sleep(600)")
    found = list(reports([endless, command(6, "say(cases=6)")], 1, patience=5))

    assert found == [{"crashed": -6, "start": 5}, {"cases": 6}]


def test_commands_that_are_none() -> None:
    """Raises: FileNotFoundError where the reports are waited for."""
    from campaign import reports

    with pytest.raises(FileNotFoundError, match="nowhere"):
        list(reports([["/nowhere/python"]], 2))
