"""Checks of many graphs by the CUDA run time, on the fake driver or on this machine's device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

import passkit as pk
from passkit.program.executable import Executable
from tests.emulator.fake_driver import fake_cuda
from tests.emulator.graph_checks import failure_of, target_for
from tests.fuzzing import Failure
from tests.random_graphs import Case

REAL_DEVICE = nullcontext
"""The context in which target "cuda" is this machine's device."""
CALLS = 3
"""The first call launches kernels one by one, the second builds graphs, the third replays them."""


def check_all(
    cases: Iterable[Case], machine: Callable[[], AbstractContextManager[Any]] = fake_cuda
) -> tuple[list[Failure], np.ndarray]:
    """Return the failures of cases, and how many elements compare exactly, nearly or not at all."""
    compared = np.zeros(3, np.int64)
    with machine():
        compiled = [(case, _compiled(case)) for case in cases]
        failures = [
            Failure(case, what) for case, exe in compiled for what in _wrong(exe, case, compared)
        ]
    return failures, compared


def check(case: Case, machine: Callable[[], AbstractContextManager[Any]] = fake_cuda) -> str | None:
    """Return how one case fails, or None."""
    failures, _ = check_all([case], machine)
    return failures[0].what if failures else None


def _compiled(case: Case) -> Executable | Exception:
    try:
        return pk.compile(case.graph, target=target_for(case), fusion=case.fusion)
    except Exception as error:  # noqa: BLE001, RUF100
        return error


def _wrong(exe: Executable | Exception, case: Case, compared: np.ndarray) -> Iterator[str]:
    """Yield how the first call that fails fails."""
    for _ in range(CALLS):
        what = failure_of(exe, case, compared)
        if what is not None:
            yield what
            return
