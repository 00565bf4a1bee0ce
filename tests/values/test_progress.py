"""Progress bars are shown on a terminal if tqdm is installed, and nowhere else."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from passkit.values.progress import progress


class Bar:
    """A stand-in for tqdm's bars.

    Attributes:
        created: all bars.
    """

    created: list[Bar] = []  # noqa: RUF012

    def __init__(self, **options: Any) -> None:
        self.options, self.count, self.closed = options, 0, False
        Bar.created.append(self)

    def update(self) -> None:
        """Count a step."""
        self.count += 1

    def close(self) -> None:
        """Note that the bar was closed."""
        self.closed = True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Bar]:
    """Replace tqdm, and return the list of the bars that are created."""
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=Bar))
    monkeypatch.setattr(Bar, "created", [])
    return Bar.created


def test_a_terminal_gets_a_bar(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar counts the steps and is closed, also when the work raises."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress("work", 3) as step:
        step()
        step()
    with pytest.raises(KeyError, match="x"), progress("work", 1):
        raise KeyError("x")

    assert [(b.count, b.closed) for b in bars] == [(2, True), (0, True)]
    assert bars[0].options["desc"] == "work" and bars[0].options["total"] == 3


def test_a_file_gets_no_bar(bars: list[Bar], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is written to a stream that is no terminal."""
    with progress("work", 1) as step:
        step()

    assert bars == [] and capsys.readouterr() == ("", "")


def test_work_runs_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tqdm is not installed, the work runs without a bar."""
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress("work", 1) as step:
        step()
