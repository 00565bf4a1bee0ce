"""The library of measured kernels on disk, which plans and `pk.tune` read."""

from __future__ import annotations

from typing import Any

import passkit as pk
from passkit.library import store
from passkit.library.evaluator import Record
from passkit.schedule.schedule import Source


def record(group: str, template: str, *seconds: float, **fields: Any) -> None:
    """Record that a template of a group, named by its key, took these seconds."""
    store.add([Record(group, template, (), Source.MEASURED, seconds, **fields)])


def record_for(graph: pk.Graph, template: str, seconds: float) -> pk.Group:
    """Record that a template of the only group of a graph took these seconds; return the group."""
    (group,) = pk.ApplyPasses(graph, ["Expand", "Fusion"]).attrs["subgraph"].values()
    record(group.key, template, seconds)
    return group  # type: ignore[no-any-return]


def records() -> list[Any]:
    """Return the records that hold for this device and compiler, the oldest first."""
    return list(store.snapshot().records())


def merged_records() -> list[Any]:
    """Return the records, with all measurements of one template of a group merged."""
    return list(store.snapshot().evaluator.records)


def evaluator() -> Any:
    """Return the evaluator of the records, which plans ask for the costs of groups."""
    return store.snapshot().evaluator


def forget() -> None:
    """Delete all records."""
    store.clear()
