"""Progress bars are shown on a terminal if tqdm is installed, and nowhere else."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import passkit as pk
from tests.command import json_of


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


@pk.register_pass("TestProgressFault", changes_graph=True)
def replace_exp(graph: pk.Graph) -> pk.Graph:
    """Make results wrong, so that there is something to bisect."""
    return graph.rewrite(pk.ops.exp, pk.ops.tanh)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a model that `replace_exp` changes."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "m.txt"
    path.write_text("x: f32[4, 5]; return reduce_sum(exp(neg(x)), axis=1)")
    return path


def bisect(model: Path) -> Any:
    """Bisect the model with wrong results; return the JSON."""
    return json_of("bisect", model, "--passes=after Simplify=TestProgressFault", code=1)


def test_a_terminal_gets_a_bar(
    bars: list[Bar], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bar counts the steps and is closed at the end."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    data = bisect(model)

    assert data["found"] and data["decisions"] > 0
    titles = [bar.options["desc"] for bar in bars]
    assert [t for t in titles if t != "compiling kernels"] == ["bisect", "try each step by itself"]
    assert all(bar.closed and 0 < bar.count <= bar.options["total"] for bar in bars)


def test_a_bar_is_closed_if_the_work_raises(
    bars: list[Bar], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error inside the work leaves no bar open."""

    def fail(bar: Bar) -> None:
        raise KeyError("x")

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(Bar, "update", fail)
    with pytest.raises(KeyError, match="x"):
        bisect(model)

    assert [(bar.count, bar.closed) for bar in bars] == [(0, True)]


def test_a_file_gets_no_bar(
    bars: list[Bar], model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written to a stream that is no terminal."""
    assert bisect(model)["found"]

    assert bars == [] and capsys.readouterr() == ("", "")


def test_work_runs_without_tqdm(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tqdm is not installed, the work runs without a bar."""
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    assert bisect(model)["found"]
