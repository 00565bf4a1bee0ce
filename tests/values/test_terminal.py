"""Programs without a console: standard streams may be None, closed, or have `write` only."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

import passkit as pk
from passkit.values.progress import progress
from passkit.values.terminal import is_terminal
from passkit.values.units import table


class Logger:
    """A stream as windowed programs and loggers have it: it can be written to, and no more."""

    def write(self, text: str) -> int:
        """Take a text."""
        return len(text)


class Broken(Logger):
    """A stream whose terminal went away."""

    def isatty(self) -> bool:
        """Fail as a file descriptor that is gone does."""
        raise OSError(9, "Bad file descriptor")


def closed() -> io.StringIO:
    """Return a closed stream."""
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize(
    "factor, stream", [(1.25, None), (1.5, closed()), (1.75, Logger()), (2.25, Broken())]
)
def test_streams_that_are_no_terminals(
    factor: float, stream: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Compiling, progress bars and tables work whatever stands in place of the streams."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("PASSKIT_CACHE_DIR", str(tmp_path / "cache"))
    with progress("work", 1) as step:
        step()

    assert not is_terminal(stream)
    assert table(("a",), [(1,)]) == "a\n1"
    x = pk.var("x", (3,))
    run = pk.compile(pk.Graph([pk.ops.exp(x) * factor]))
    assert run.stats["compiled"] == 1
