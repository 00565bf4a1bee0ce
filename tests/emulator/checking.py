"""Many graphs on the emulated machine: compiled together, each run as its operators mean it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from attrs import evolve

import passkit as pk
from passkit.graph.graph import Graph
from passkit.plan.target import Target, target_of
from passkit.program.executable import Executable
from tests.emulator.driver import Driver
from tests.emulator.programs import emulated
from tests.fuzzing import Failure, UnequalError, runs, said
from tests.random_graphs import Case


def target_for(case: Case) -> Target:
    """CUDA, with tiles so small that small arrays have several, where the case is of that kind."""
    return evolve(target_of("cuda"), tile=case.tile)


def compiled(
    graphs: Sequence[Graph], options: Sequence[Mapping[str, Any]], driver: Driver
) -> Iterator[Executable | Exception]:
    """For each graph what runs it on the driver's machine, or why it was not planned."""
    made: list[Executable | Exception] = []
    with emulated(driver):
        for graph, own in zip(graphs, options, strict=True):
            try:
                made.append(pk.compile(graph, **{"target": "cuda", **own}))
            except Exception as error:  # noqa: BLE001, RUF100
                made.append(error)
        exes = [e for e in made if isinstance(e, Executable)]
        with suppress(AssertionError):  # a bad text spoils its unit; each launch says so by itself
            driver.prepare(k for e in exes for k in e.kernels)
        yield from made


def check_all(
    cases: Iterable[Case], driver: Driver | None = None
) -> tuple[list[Failure], np.ndarray]:
    """The failures of cases, compiled together; and how many elements were compared how."""
    cases, compared = list(cases), np.zeros(3, np.int64)
    options = [{"target": target_for(c), "fusion": c.fusion} for c in cases]
    found = compiled([c.graph for c in cases], options, driver or Driver())
    whats = (what_of(exe, case, compared) for exe, case in zip(found, cases, strict=True))
    failures = [Failure(c, what) for c, what in zip(cases, whats, strict=True) if what is not None]
    return failures, compared


def check(case: Case) -> str | None:
    """What is wrong with one case, or None."""
    failures, _ = check_all([case])
    return failures[0].what if failures else None


def what_of(exe: Executable | Exception, case: Case, compared: Any = None) -> str | None:
    """What is wrong with the runs of a case, or None."""
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
    """A graph as a case, fed normal numbers, once for each of ``sizes``."""
    feeds = []
    for numbers in sizes or ({},):
        rng, own = np.random.default_rng(0), {}
        for node in graph.inputs:
            entry = node.entries[0]
            shape = [n if isinstance(n, int) else numbers[str(n)] for n in entry.shape]
            own[graph.names[node]] = rng.standard_normal(shape).astype(entry.dtype.numpy)
        feeds.append(own)
    return Case(0, graph, tuple(feeds))
