"""Overlap in a kernel AST: of scratch arrays in memory, and of parts in the tiles they compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from passkit.ast.stage import Buffer, Part
from passkit.values.size import at_least


def may_overlap(a: Buffer | None, b: Buffer | None) -> bool:
    """Return whether two scratch arrays may have bytes in common; only those with offsets do.

    None stands for a buffer that is not scratch.
    """
    if a is None or b is None or a.offset is None or b.offset is None or a.of_row != b.of_row:
        return False
    end_of_a = a.offset + a.extent * a.dtype.nbytes
    end_of_b = b.offset + b.extent * b.dtype.nbytes
    return not (at_least(b.offset, end_of_a) or at_least(a.offset, end_of_b))


def overlapping_groups(names: Iterable[str], scratch: Mapping[str, Buffer]) -> list[list[str]]:
    """Return the names of buffers in groups: those of scratch that may overlap are together."""
    groups: list[list[str]] = []
    for name in names:
        own = scratch.get(name)
        overlapping = [g for g in groups if any(may_overlap(own, scratch.get(n)) for n in g)]
        apart = [g for g in groups if g not in overlapping]
        groups = [*apart, [name, *(n for g in overlapping for n in g)]]
    return groups


def has_same_elements(a: str, b: str, scratch: Mapping[str, Buffer]) -> bool:
    """Return whether elements of equal index in two overlapping buffers are the same bytes."""
    if a == b:
        return True
    x, y = scratch[a], scratch[b]
    return (x.offset, x.dtype.nbytes, x.of_row) == (y.offset, y.dtype.nbytes, y.of_row)


def computes_tiles_of(a: Part, b: Part) -> bool:
    """Return whether each tile of part ``b`` is a tile of part ``a``, too."""
    return a.span in (None, b.span)


def have_common_tile(a: Part, b: Part) -> bool:
    """Return whether some tile belongs to both parts."""
    return computes_tiles_of(a, b) or computes_tiles_of(b, a)
