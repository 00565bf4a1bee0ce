"""Time limits of tests: work that takes longer fails, and the message has the factor."""

from __future__ import annotations

import time

import pytest

from tests import pace
from tests.pace import within


def test_work_beyond_the_limit_fails() -> None:
    """The limit is one of processor time: sleeping does not count."""
    with within(0.2):
        time.sleep(0.3)
    with pytest.raises(AssertionError, match=r"\d\.\d\d s, \d+\.\d\d times as slow"), within(0.001):
        pace.python_work()


def test_limits_are_relative_to_the_speed_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slower machine has proportionally more time."""
    monkeypatch.setattr(pace, "USUAL", 1e-6)

    with within(0.001):
        pace.python_work()
