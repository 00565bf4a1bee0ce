"""Bounds of time hold: what takes longer fails, and says how much."""

from __future__ import annotations

import time

import pytest

from tests import pace
from tests.pace import within


def test_what_takes_too_long_fails() -> None:
    """By the processor's time; what waits takes none."""
    with within(0.2):
        time.sleep(0.3)
    with pytest.raises(AssertionError, match=r"\d\.\d\d s, \d+\.\d\d times as slow"), within(0.001):
        pace.python_work()


def test_slower_machines_are_let_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """By as much as they are slower."""
    monkeypatch.setattr(pace, "USUAL", 1e-6)

    with within(0.001):
        pace.python_work()
