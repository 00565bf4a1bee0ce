"""Programs without a console work: standard streams may be None, closed or have `write` only."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import passkit as pk


class Logger:
    """A stream that only has `write`, as in windowed programs and loggers."""

    def write(self, text: str) -> int:
        """Accept a text."""
        return len(text)


class Broken(Logger):
    """A stream whose terminal was closed."""

    def isatty(self) -> bool:
        """Raise as a closed file descriptor does."""
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
    """Compiling shows no progress bar, and tables are formatted as for a file."""
    created: list[Any] = []
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=lambda **kw: created.append(kw)))

    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("PASSKIT_CACHE_DIR", str(tmp_path / "cache"))
    x = pk.var("x", (3,))
    run = pk.compile(pk.Graph([pk.ops.exp(x) * factor]))

    assert run.stats["compiled"] == 1
    assert created == []
    assert "fused" in str(pk.explain(pk.parse("x: f32[3]; return exp(exp(x))")))
