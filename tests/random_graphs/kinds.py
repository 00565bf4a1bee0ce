"""Kinds of operators that a random graph grows by: each makes entries of what the pool has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from passkit.graph.node import Entry
from passkit.values.size import Shape

if TYPE_CHECKING:
    from tests.random_graphs.growth import Growth

Kind = Callable[["Growth"], "Entry | Sequence[Entry] | None"]
KINDS: dict[str, tuple[float, Kind]] = {}
"""All kinds by name, each with how often it is drawn."""


def kind(weight: float) -> Callable[[Kind], Kind]:
    """Register what makes a kind of entries."""

    def register(make: Kind) -> Kind:
        KINDS[make.__name__.strip("_")] = weight, make
        return make

    return register


def joins(a: Shape, b: Shape) -> bool:
    """Whether two shapes broadcast together without asking a call."""
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(m == n or m == 1 or n == 1 for m, n in pairs)


def is_real(entry: Entry) -> bool:
    """Whether an entry is of floats."""
    return entry.dtype is not None and entry.dtype.is_float
