"""Memory plans under test: an independent check, planted mistakes, and NNVM's numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from passkit.graph.storage import Home, Storage
from passkit.passes.check_storage import check_storage
from passkit.passes.plan_memory import MemoryPlanner, storage_plan


def check_plan(graph: pk.Graph, plan: Any, sizes: Mapping[str, int] | None = None) -> int:
    """Simulate a memory plan of a graph, and return the bytes of its arena.

    The simulation shares no code with the planner. It raises PassError for a value that is
    overwritten before its last use, or not where the caller reads it. ``sizes`` are the values of
    unknown sizes.
    """
    return check_storage(graph, plan, sizes)


def checked_plan(graph: pk.Graph) -> Any:
    """Return the memory plan of PlanMemory, checked with n = 3."""
    planned = pk.ApplyPasses(graph, "PlanMemory")
    check_plan(planned, planned.attrs["storage"], {"n": 3})
    return planned.attrs["storage"]


def moved(plan: Any, entry: pk.Entry, home: str, index: int) -> Any:
    """Return a plan with one entry in another buffer, such as slot 0 of the "arena"."""
    places = pk.Annotation("storage", plan.places)
    places[entry] = Storage(Home(home), index)
    return evolve(plan, places=places)


def nnvm_plan(*outputs: pk.Entry) -> tuple[list[int], list[int], int]:
    """Return a plan in NNVM's terms, where outputs are in the arena, too.

    Returns: The storage ids of all entries (-1 outside the arena), the indices of the inputs that
        they are written over (-1 if none), and the bytes of the arena.
    """
    graph = pk.ApplyPasses(pk.Graph(outputs), "Complete")
    plan = storage_plan(graph, share_outputs=True)
    ids, overwritten = [], []
    for node in graph.nodes:
        for entry in node.entries:
            storage = plan[entry]
            ids.append(storage.index if storage.home is Home.ARENA else -1)
            source = plan.inplace.get(entry)
            overwritten.append(-1 if source is None else node.inputs.index(source))
    return ids, overwritten, plan.bind({})[1]


@contextmanager
def values_freed_too_early() -> Iterator[None]:
    """Plan memory as if each value were last read one node before its last reader."""
    find_values = MemoryPlanner.find_values

    def too_early(self: MemoryPlanner) -> None:
        find_values(self)
        for value in set(self.values.values()):
            if value.last < self.end:
                value.last = max(value.start, value.last - 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryPlanner, "find_values", too_early)
        yield


@contextmanager
def any_input_overwritten() -> Iterator[None]:
    """Plan memory as if an output could be written over an input of any layout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryPlanner, "have_equal_layout", lambda self, a, b: True)
        yield
