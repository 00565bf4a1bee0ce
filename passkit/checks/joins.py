"""Whether blocks that join what others stored see all of it, and meet nowhere else.

Behind a `LastBlock` only the last of the blocks that share a counter goes on. It may read what
these blocks stored in front of a barrier and a fence, if it is the last of all that share the
counter, and must not touch what blocks of other counters touch. Blocks are looked at one by one, so
their number has to be known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from passkit.checks.affine import Affine, Array, IndexAtom

MOST_ELEMENTS = 1 << 26
"""The elements that all blocks access, at most."""
NOBODY = -1
"""The counter of an element that no block has accessed."""


@frozen(eq=False)
class BlockCount:
    """A place where all blocks but the last one of a counter end.

    Attributes:
        counter: the number of the counter.
        count: the blocks that are counted.
        is_fenced: whether a barrier of the block and a fence stand behind all stores in front.
    """

    counter: Affine
    count: int
    is_fenced: bool


@frozen(eq=False)
class JoinAccess:
    """An access to elements, as far as blocks are compared.

    Attributes:
        index: the elements.
        mask: the points where it is made.
        facts: sums that are not negative there.
        is_store: whether it writes.
    """

    index: Affine
    mask: Array
    facts: tuple[Affine, ...]
    is_store: bool


def counts_of(place: BlockCount, blocks: int | None, counters: int) -> Array | str:
    """Return the counter of each block, or what is wrong with the count.

    Args:
        place: where blocks are counted.
        blocks: the number of blocks; None if it is not known.
        counters: the counters that the kernel has.
    """
    if not place.is_fenced:
        return "no barrier and fence stand between stores and the count of blocks"
    if blocks is None:
        return "the number of blocks that are counted is not known"
    numbers = _values(place.counter, np.arange(blocks))
    if numbers is None:
        return "the counter of a block is not understood"
    if numbers.min() < 0 or numbers.max() >= counters:
        return f"counter {int(numbers.max())} of {counters}"
    each = np.bincount(numbers)
    wrong = np.flatnonzero((each != place.count) & (each != 0))
    if wrong.size:
        return f"counter {int(wrong[0])} counts {int(each[wrong[0]])} blocks, not {place.count}"
    return numbers


def meeting_of_joins(
    before: Sequence[JoinAccess], behind: Sequence[JoinAccess], counters: Array
) -> str | None:
    """Return at which element blocks of different counters meet, as text behind a buffer's name.

    Args:
        before: the accesses of an array in front of the count of blocks.
        behind: the accesses behind it.
        counters: the counter of each block.

    Returns: None for nowhere.
    """
    if not behind:
        return None
    elements: list[tuple[Array, Array, bool, bool]] = []
    total = 0
    first = np.unique(counters, return_index=True)[1]
    for a, is_behind in (*((x, False) for x in before), *((x, True) for x in behind)):
        if not any(x.is_store for x in behind) and not is_behind and not a.is_store:
            continue
        blocks = first if is_behind else np.arange(len(counters))
        if is_behind and not _is_equal_in_counter(a, counters):
            return "[?] behind a count: what a block does there depends on which one it is"
        own = _elements(a, blocks)
        if own is None:
            return "[?] behind a count: indices that are not understood"
        for block, numbers in zip(blocks, own, strict=True):
            total += numbers.size
            if total > MOST_ELEMENTS:
                return "[?] behind a count: indices of too many values"
            of_block = np.full(numbers.size, counters[block])
            elements.append((numbers, of_block, a.is_store, is_behind))
    return _meeting(elements)


def _meeting(elements: Sequence[tuple[Array, Array, bool, bool]]) -> str | None:
    """Return at which element counters meet: for each access elements, counters, and its kind."""
    least = min((int(x.min()) for x, *_ in elements if x.size), default=0)
    size = max((int(x.max()) for x, *_ in elements if x.size), default=0) - least + 1
    low, high = np.full(size, 1 << 60), np.full(size, NOBODY)
    is_stored = np.zeros(size, bool)
    for numbers, counters, is_store, is_behind in elements:
        if not is_behind:
            np.minimum.at(low, numbers - least, counters)
            np.maximum.at(high, numbers - least, counters)
            if is_store:
                is_stored[numbers - least] = True
    by_join = np.full(size, NOBODY)
    for numbers, counters, is_store, is_behind in elements:
        if not is_behind:
            continue
        at = numbers - least
        touched = high[at] != NOBODY
        apart = touched & ((low[at] != counters) | (high[at] != counters))
        meets = apart & (is_stored[at] | is_store)
        if meets.any():
            return f"[{int(numbers[meets][0])}], of blocks with other counters"
        if is_store:
            taken = (by_join[at] != NOBODY) & (by_join[at] != counters)
            if taken.any():
                return f"[{int(numbers[taken][0])}], of the last blocks of two counters"
            by_join[at] = counters
    for numbers, counters, is_store, is_behind in elements:
        if is_behind and not is_store:
            at = numbers - least
            taken = (by_join[at] != NOBODY) & (by_join[at] != counters)
            if taken.any():
                return f"[{int(numbers[taken][0])}], of the last blocks of two counters"
    return None


def _is_equal_in_counter(a: JoinAccess, counters: Array) -> bool:
    """Return whether the blocks of a counter do the same."""
    blocks = np.arange(len(counters))
    sums = [_terms(x.terms, blocks) for x in (a.index, *a.facts)]
    if any(s is None for s in sums):
        return False
    first = np.unique(counters, return_index=True)[1][np.unique(counters, return_inverse=True)[1]]
    return all(np.array_equal(s, s[first]) for s in sums if s is not None)


def _elements(a: JoinAccess, blocks: Array) -> list[Array] | None:
    """Return the elements that each block accesses; None if they are not understood."""
    bases = _terms(a.index.terms, blocks)
    guards = [(_terms(f.terms, blocks), f) for f in a.facts]
    if bases is None or not a.index.is_exact or any(g is None for g, _ in guards):
        return None
    numbers, mask = np.broadcast_arrays(a.index.low, a.mask)
    out = []
    varying = [(g, f) for g, f in guards if f.terms or f.low.size > 1]
    for k, base in enumerate(bases):
        inside = mask
        for terms, fact in varying:
            assert terms is not None
            inside = inside & (fact.high + terms[k] >= 0)
        points, chosen = np.broadcast_arrays(numbers, inside)
        out.append(np.unique(points[chosen] + base))
    return out


def _values(x: Affine, blocks: Array) -> Array | None:
    """Return a sum that is the same in all threads, for each block; None if it is not known."""
    terms = _terms(x.terms, blocks)
    return None if terms is None or x.low.size > 1 or not x.is_exact else terms + x.low.item()


def _terms(terms: Sequence[tuple[IndexAtom, int]], blocks: Array) -> Array | None:
    """Return the sum of terms for each block; None if one is not understood."""
    total = np.zeros(len(blocks), np.int64)
    for atom, c in terms:
        value = _atom(atom, blocks)
        if value is None:
            return None
        total = total + c * value
    return total


def _atom(atom: IndexAtom, blocks: Array) -> Array | None:
    """Return the value of an atom for each block; None if it depends on something else."""
    if atom.inner is None:
        return blocks if atom.name == "block" else None
    inner = _values(atom.inner, blocks)
    if inner is None:
        return None
    return inner // atom.divisor if atom.name == "//" else inner % atom.divisor
