"""Checks of many graphs on the emulated device: compiled together, compared with `interpret`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from attrs import evolve

import passkit as pk
from passkit.graph.graph import Graph
from passkit.program.executable import Executable
from passkit.target import Target, target_of
from tests.emulator.device import EmulatedDevice
from tests.emulator.programs import emulated
from tests.fuzzing import Failure, UnequalError, runs, said
from tests.random_graphs import Case


def target_for(case: Case) -> Target:
    """Return the CUDA target with the tile of a case, which may be small."""
    return evolve(target_of("cuda"), tile=case.tile)


def compiled(
    graphs: Sequence[Graph], options: Sequence[Mapping[str, Any]], driver: EmulatedDevice
) -> Iterator[Executable | Exception]:
    """Yield each graph's executable on an emulated device, or the error of its compilation."""
    executables: list[Executable | Exception] = []
    with emulated(driver):
        for graph, own in zip(graphs, options, strict=True):
            try:
                executables.append(pk.compile(graph, **{"target": "cuda", **own}))
            except Exception as error:  # noqa: BLE001, RUF100
                executables.append(error)
        exes = [e for e in executables if isinstance(e, Executable)]
        with suppress(AssertionError):  # a kernel that does not compile fails at its launch
            driver.prepare(k for e in exes for k in e.kernels)
        yield from executables


def check_all(
    cases: Iterable[Case], driver: EmulatedDevice | None = None
) -> tuple[list[Failure], np.ndarray]:
    """Return the failures of cases, and how many elements compare exactly, nearly or not at all."""
    cases, compared = list(cases), np.zeros(3, np.int64)
    options = [{"target": target_for(c), "fusion": c.fusion} for c in cases]
    executables = compiled([c.graph for c in cases], options, driver or EmulatedDevice())
    failure_texts = (
        failure_of(exe, case, compared) for exe, case in zip(executables, cases, strict=True)
    )
    failures = [
        Failure(c, what) for c, what in zip(cases, failure_texts, strict=True) if what is not None
    ]
    return failures, compared


def check(case: Case) -> str | None:
    """Return how one case fails, or None."""
    failures, _ = check_all([case])
    return failures[0].what if failures else None


def failure_of(exe: Executable | Exception, case: Case, compared: Any = None) -> str | None:
    """Return how the runs of a case fail, or None."""
    if isinstance(exe, Exception):
        return said(exe)
    try:
        for _ in runs(exe, case, compared):
            pass
    except UnequalError as unequal:
        return str(unequal)
    except Exception as error:  # noqa: BLE001, RUF100
        return said(error)
    return None


def case_of(graph: Graph, *sizes: Mapping[str, int]) -> Case:
    """Return a graph as a case with normally distributed feeds for each of ``sizes``."""
    feeds = []
    for numbers in sizes or ({},):
        rng, own = np.random.default_rng(0), {}
        for node in graph.inputs:
            entry = node.entries[0]
            shape = [n if isinstance(n, int) else numbers[str(n)] for n in entry.shape]
            own[graph.names[node]] = rng.standard_normal(shape).astype(entry.dtype.numpy)
        feeds.append(own)
    return Case(0, graph, tuple(feeds))
