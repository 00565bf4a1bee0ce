"""Many graphs through the CUDA run time, on a fake driver or on this machine's device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

import passkit as pk
from passkit.program.executable import Executable
from tests.emulator.checking import target_for, what_of
from tests.emulator.fake import faked
from tests.fuzzing import Failure
from tests.random_graphs import Case

THERE = nullcontext
"""The machine on which target "cuda" is this machine's device."""
CALLS = 3
"""The first launches one by one, the second makes graphs, the third replays them."""


def check_all(
    cases: Iterable[Case], machine: Callable[[], AbstractContextManager[Any]] = faked
) -> tuple[list[Failure], np.ndarray]:
    """The failures of cases on a machine; and how many elements were compared how."""
    compared = np.zeros(3, np.int64)
    with machine():
        made = [(case, _compiled(case)) for case in cases]
        failures = [
            Failure(case, what) for case, exe in made for what in _wrong(exe, case, compared)
        ]
    return failures, compared


def check(case: Case, machine: Callable[[], AbstractContextManager[Any]] = faked) -> str | None:
    """What is wrong with one case, or None."""
    failures, _ = check_all([case], machine)
    return failures[0].what if failures else None


def _compiled(case: Case) -> Executable | Exception:
    try:
        return pk.compile(case.graph, target=target_for(case), fusion=case.fusion)
    except Exception as error:  # noqa: BLE001, RUF100
        return error


def _wrong(exe: Executable | Exception, case: Case, compared: np.ndarray) -> Iterator[str]:
    """What is wrong with the first call that goes wrong."""
    for _ in range(CALLS):
        what = what_of(exe, case, compared)
        if what is not None:
            yield what
            return
