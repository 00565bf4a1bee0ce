"""Overlap in a kernel AST: of scratch arrays in memory, and of parts in the tiles they compute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from passkit.ast.stage import Buffer, Part
from passkit.checks.stage_accesses import StageAccess
from passkit.values.size import at_least


class ScratchMemory:
    """Scratch arrays, some of which may have bytes in common.

    Attributes:
        arrays: the arrays by name.
    """

    def __init__(self, arrays: Iterable[Buffer]) -> None:
        self.arrays = {b.name: b for b in arrays}

    def has(self, a: StageAccess) -> bool:
        """Return whether an access is to one of the arrays."""
        return a.buffer in self.arrays

    def is_of_row(self, a: StageAccess) -> bool:
        """Return whether each row has the array of an access for itself."""
        return a.buffer in self.arrays and self.arrays[a.buffer].of_row

    def overlap(self, a: str, b: str) -> bool:
        """Return whether two buffers may have bytes in common; only arrays with offsets do."""
        x, y = self.arrays.get(a), self.arrays.get(b)
        if x is None or y is None or x.offset is None or y.offset is None or x.of_row != y.of_row:
            return False
        end_of_x = x.offset + x.extent * x.dtype.nbytes
        end_of_y = y.offset + y.extent * y.dtype.nbytes
        return not (at_least(y.offset, end_of_x) or at_least(x.offset, end_of_y))

    def have_same_elements(self, a: StageAccess, b: StageAccess) -> bool:
        """Return whether elements of equal index in overlapping buffers are the same bytes."""
        if a.buffer == b.buffer:
            return True
        x, y = self.arrays[a.buffer], self.arrays[b.buffer]
        return (x.offset, x.dtype.nbytes, x.of_row) == (y.offset, y.dtype.nbytes, y.of_row)

    def groups(self, names: Iterable[str]) -> list[list[str]]:
        """Return the names of buffers in groups: those that may overlap are together."""
        groups: list[list[str]] = []
        for name in names:
            overlapping = [g for g in groups if any(self.overlap(name, n) for n in g)]
            apart = [g for g in groups if g not in overlapping]
            groups = [*apart, [name, *(n for g in overlapping for n in g)]]
        return groups

    def by_memory(self, accesses: Sequence[StageAccess]) -> list[list[StageAccess]]:
        """Return accesses in groups, each in order: those of buffers that may overlap."""
        groups = self.groups(dict.fromkeys(a.buffer for a in accesses))
        number = {name: k for k, names in enumerate(groups) for name in names}
        by_group: list[list[StageAccess]] = [[] for _ in groups]
        for a in accesses:
            by_group[number[a.buffer]].append(a)
        return by_group


def computes_tiles_of(a: Part, b: Part) -> bool:
    """Return whether each tile of part ``b`` is a tile of part ``a``, too."""
    return a.span in (None, b.span)


def have_common_tile(a: Part, b: Part) -> bool:
    """Return whether some tile belongs to both parts."""
    return computes_tiles_of(a, b) or computes_tiles_of(b, a)
