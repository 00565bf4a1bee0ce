"""Random graphs by the CUDA run time on the fake driver."""

from __future__ import annotations

import pytest

from tests.emulator.fake_driver import FakeDriver, fake_cuda
from tests.emulator.runtime_checks import check, check_all
from tests.minimising import minimised
from tests.random_graphs import random_case


def test_random_graphs() -> None:
    """Three calls each: kernels one by one, a graph built, the graph replayed."""
    failures, (exact, near, anything) = check_all(map(random_case, range(5000, 5004)))

    assert not failures, "\n\n".join(str(minimised(f, 20, check)) for f in failures[:3])
    assert exact + near > 20 * anything


def test_a_missing_wait_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run time that reads outputs too early is detected within a few graphs."""
    monkeypatch.setattr(FakeDriver, "finish", lambda self, stream: None)
    with fake_cuda():
        failures, _ = check_all(map(random_case, range(5000, 5002)))

    assert failures
