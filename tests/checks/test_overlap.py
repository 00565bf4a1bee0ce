"""Scratch arrays that may have bytes in common are found."""

from __future__ import annotations

from attrs import evolve

from passkit.ast.stage import Buffer, Place
from passkit.checks.overlap import ScratchMemory
from passkit.values import dtype as dt
from passkit.values.size import Size

N = Size.symbol("n")
PLACES = {"a": (0, 8), "b": (32, 8), "c": (48, N), "d": (N * 8 + 64, 4), "e": (None, 4)}
"""The first byte and the extent of arrays."""
ARRAYS = {
    name: Buffer(name, dt.float32, Place.SHARED, extent, offset=offset)
    for name, (offset, extent) in PLACES.items()
}


def groups_of(*arrays: Buffer) -> set[frozenset[str]]:
    """Return the names of arrays that may overlap."""
    memory = ScratchMemory(arrays)
    return {frozenset(g) for g in memory.groups(memory.arrays)}


def test_overlapping_scratch() -> None:
    """Arrays that may overlap are one group, also by way of a third one; others are alone."""
    alone = {frozenset(name) for name in "ade"}

    assert groups_of(*ARRAYS.values()) == alone | {frozenset("bc")}
    wide = evolve(ARRAYS["a"], extent=10, name="w")
    assert groups_of(wide, *(ARRAYS[n] for n in "cb")) == {frozenset("wbc")}


def test_arrays_of_rows_lie_apart() -> None:
    """Memory that each row has for itself is none of the tile's, wherever arrays lie in both."""
    of_row = evolve(ARRAYS["a"], of_row=True, name="r")

    assert groups_of(of_row, ARRAYS["a"]) == {frozenset("a"), frozenset("r")}
