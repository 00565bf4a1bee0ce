"""Progress bars: where somebody watches and tqdm is there; else nothing at all."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from passkit.values.progress import progress


class Bar:
    """What tqdm makes, as far as it is used."""

    made: list[Bar] = []  # noqa: RUF012, a list of all that were made

    def __init__(self, **options: Any) -> None:
        self.options, self.count, self.closed = options, 0, False
        Bar.made.append(self)

    def update(self) -> None:
        """One step more."""
        self.count += 1

    def close(self) -> None:
        """No more steps."""
        self.closed = True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Bar]:
    """A tqdm that notes its bars."""
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=Bar))
    monkeypatch.setattr(Bar, "made", [])
    return Bar.made


def test_a_terminal_gets_a_bar(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts the steps and goes away, also when the work fails."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress("work", 3) as step:
        step()
        step()
    with pytest.raises(KeyError, match="x"), progress("work", 1):
        raise KeyError("x")

    assert [(b.count, b.closed) for b in bars] == [(2, True), (0, True)]
    assert bars[0].options["desc"] == "work" and bars[0].options["total"] == 3


def test_a_file_gets_nothing(bars: list[Bar], capsys: pytest.CaptureFixture[str]) -> None:
    """What is not watched is not written to."""
    with progress("work", 1) as step:
        step()

    assert bars == [] and capsys.readouterr() == ("", "")


def test_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work goes on without a bar."""
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress("work", 1) as step:
        step()
