"""Random graphs in CUDA C on the emulator, against `interpret`."""

from __future__ import annotations

import re

import pytest

from tests.emulator.device import EmulatedDevice
from tests.emulator.graph_checks import check, check_all
from tests.fuzzing import Failure
from tests.minimising import minimised
from tests.random_graphs import random_case

COUNT, BATCH = 20, 10


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_random_graphs(first: int) -> None:
    """Graphs of every kind, with random launch options and thread orders."""
    failures, (exact, near, anything) = check_all(
        random_case(seed) for seed in range(first, first + BATCH)
    )

    assert exact + near > 10 * anything
    assert not failures, "\n\n".join(str(minimised(f, 20, check)) for f in failures[:3])


def failures_with_fault(find: str, by: str) -> list[Failure]:
    """Return the failures of some graphs with a fault planted in their kernels."""

    class Planting(EmulatedDevice):
        def texts(self, kernels):  # type: ignore[no-untyped-def]
            return {n: re.sub(find, by, t) for n, t in super().texts(kernels).items()}

    failures, _ = check_all((random_case(seed) for seed in range(1000, 1008)), Planting())
    return failures


@pytest.mark.parametrize(
    "find, by",
    [
        (r"(for \(int(?:64_t)? \w+ = [^;]*; (?:i\d|point) <) ", r"\1= "),
        (r"(for \(int(?:64_t)? \w+ = [^;]*) \+ (threadIdx.x|tx);", r"\1 + \2 + 1;"),
    ],
)
def test_a_planted_fault_is_detected(find: str, by: str) -> None:
    """An extra iteration, and threads that begin one later, are detected within a few graphs."""
    failures = failures_with_fault(find, by)

    assert len(failures) > 2
    assert any("EmulatedError" in f.what for f in failures)
