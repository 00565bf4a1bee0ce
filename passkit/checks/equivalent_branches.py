"""Equivalence classes of the branches of packed kernels: those that access memory alike.

Two branches of a class race with each other, and need barriers, exactly as any other two of their
classes do. So few representatives are compared, however many small kernels are packed into one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby

from passkit.ast.stage import Buffer, Part

Fact = tuple[int, str, Hashable]
"""A part, a buffer that it accesses, and everything else that matters of the access."""
Branches = list[range]
"""Branches as the numbers of their parts."""


def equivalent_branches(
    parts: Sequence[Part], scratch: Mapping[str, Buffer], facts: Iterable[Fact]
) -> list[Branches]:
    """Return the branches of a pack in equivalence classes.

    Args:
        parts: the parts of a phase; those of one branch have the same span.
        scratch: the scratch arrays by name.
        facts: the accesses of all parts. Branches are equivalent if theirs are equal, up to the
            names of buffers that only one branch accesses.

    Returns: the classes. All parts are one branch if some belong to every tile, or if several
    branches access a buffer without an offset.
    """
    single = [[range(len(parts))]]
    if any(p.span is None for p in parts):
        return single
    runs = [[k for k, _ in run] for _, run in groupby(enumerate(parts), lambda x: x[1].span)]
    branches = [range(run[0], run[-1] + 1) for run in runs]
    if len({parts[b[0]].span for b in branches}) < len(branches):
        return single
    branch_of = [k for k, branch in enumerate(branches) for _ in branch]
    facts_of: list[list[Hashable]] = [[len(b)] for b in branches]
    owner: dict[str, int] = {}
    number: list[dict[str, int]] = [{} for _ in branches]
    for part, buffer, fact in facts:
        k = branch_of[part]
        memory: Hashable = None
        array = scratch.get(buffer)
        if array is not None and array.offset is not None:
            memory = array.offset, array.extent, array.dtype, array.of_row
        elif buffer:
            if owner.setdefault(buffer, k) != k:
                return single
            of_row = array is not None and array.of_row
            memory = number[k].setdefault(buffer, len(number[k])), array is None, of_row
        facts_of[k].append((part - branches[k][0], memory, fact))
    classes: dict[Hashable, Branches] = {}
    for branch, own in zip(branches, facts_of, strict=True):
        classes.setdefault(tuple(own), []).append(branch)
    return list(classes.values())


def representatives(classes: Iterable[Branches]) -> frozenset[int]:
    """Return the numbers of the parts of the first two branches of each class."""
    return frozenset(part for branches in classes for branch in branches[:2] for part in branch)
