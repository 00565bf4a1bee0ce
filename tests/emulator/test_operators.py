"""Every operator in CUDA C on the emulator, against NumPy.

Each operator takes one dtype and two trials by turns; ``--every-dtype`` takes all.
"""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from tests.emulator.device import EmulatedDevice, EmulatedError
from tests.emulator.graph_checks import compiled
from tests.ops.specimens import SPECIMENS, Specimen, Trial
from tests.ops.test_values import NAMES, NATIVE, compare, number_of

TOGETHER = 60
"""Operators that are compiled in one go."""
BATCHES = [NAMES[k : k + TOGETHER] for k in range(0, len(NAMES), TOGETHER)]


def chosen(specimen: Specimen, every: bool) -> list[Any]:
    """Return the dtypes that an operator runs in: all, or one chosen by its name."""
    candidates = [d for d in specimen.dtypes() if d.name in NATIVE]
    if every or not candidates:
        return candidates
    return [candidates[zlib.crc32(b"cuda" + specimen.op.encode()) % len(candidates)]]


def drawn(specimen: Specimen, dtype: Any, every: bool) -> list[Trial]:
    """Return the trials of an operator: all, or the first and one chosen by its name."""
    candidates = specimen.drawn(dtype)
    if every or len(candidates) < 3:
        return candidates
    return [candidates[0], candidates[1 + zlib.crc32(specimen.op.encode()) % (len(candidates) - 1)]]


def lenient(specimen: Specimen, dtype: Any) -> Specimen:
    """Return a specimen with the tolerance of float64 sums in a tree."""
    loose = dtype.name == "float64" and specimen.slack
    return evolve(specimen, slack=max(200, specimen.slack)) if loose else specimen


@pytest.mark.parametrize("names", BATCHES, ids=lambda names: f"{names[0]}-{names[-1]}")
def test_operators(names: list[str], request: pytest.FixtureRequest) -> None:
    """A kernel of every operator equals NumPy at every size of its specimens."""
    every = bool(request.config.getoption("--every-dtype"))
    trials = [
        (lenient(specimen, dtype), trial, dtype)
        for name in names
        for specimen in SPECIMENS.get(name, ())
        for dtype in chosen(specimen, every)
        for trial in drawn(specimen, dtype, every)
    ]
    graphs = [pk.Graph(specimen.build(trial, "x")) for specimen, trial, _ in trials]
    wrong: list[str] = []
    launched = 0
    driver = EmulatedDevice()
    for (specimen, trial, dtype), exe in zip(
        trials, compiled(graphs, [{}] * len(graphs), driver), strict=True
    ):
        assert isinstance(exe, pk.Executable), exe
        launched += len(exe.kernels)
        wrong += run(exe, specimen, trial, dtype)

    assert not wrong, "\n".join(wrong[:10])
    assert launched > len(graphs) / 2


def run(exe: pk.Executable, specimen: Specimen, trial: Trial, dtype: Any) -> list[str]:
    """Return how a trial fails."""
    wrong = list[str]()
    for arrays in trial.feeds:
        feeds = {i.name: arrays[number_of(i.name)] for i in exe.inputs}
        try:
            wrong += compare(specimen, trial, dtype, arrays, exe(feeds))
        except EmulatedError as error:
            wrong.append(f"{specimen.op} {dtype}: {error}")
    return wrong
