"""Fixtures for tests of streams: a clean store of plans, and every operation queued."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from passkit import xp


@pytest.fixture(autouse=True)
def _clean_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Queue every operation, compile every sequence at once, and begin without plans."""
    monkeypatch.setattr("passkit.streams.plan_file.FOLDER", f"streams/{tmp_path.name}")
    xp.eval()
    xp.forget_plans()
    xp.reset_stats()
    with xp.config(small=0, compile_at=0):
        yield
        xp.eval()
    xp.forget_plans()
