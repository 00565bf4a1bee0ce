"""Races behind a count of blocks, after which only the last block of each counter continues.

The last block may load what the other blocks of its counter stored, provided that a barrier and a
fence stand behind the stores and that the count includes all blocks of the counter. It must not
access elements of blocks with other counters. The elements of each block are enumerated, so that
the number of blocks has to be known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from passkit.checks.accesses import BlockCount, ElementAccess
from passkit.checks.affine import Affine, Array, IndexAtom

MAX_ELEMENTS = 1 << 26
"""The number of elements that are enumerated for all blocks together, at most."""
NO_COUNTER = -1
"""The counter of an element that no block has accessed."""


def counters_of(count: BlockCount, blocks: int | None, counters: int) -> Array | str:
    """Return the counter of each block, or the error in a count as text.

    Args:
        count: the count of blocks.
        blocks: the number of blocks; None if it is unknown.
        counters: the number of counters of the kernel.
    """
    if not count.is_fenced:
        return "no barrier and fence stand between stores and the count of blocks"
    if blocks is None:
        return "the number of blocks that are counted is not known"
    numbers = _values(count.counter, np.arange(blocks))
    if numbers is None:
        return "the counter of a block is not understood"
    if numbers.min() < 0 or numbers.max() >= counters:
        return f"counter {int(numbers.max())} of {counters}"
    blocks_of = np.bincount(numbers)
    wrong = np.flatnonzero((blocks_of != count.count) & (blocks_of != 0))
    if wrong.size:
        number = int(wrong[0])
        return f"counter {number} counts {int(blocks_of[number])} blocks, not {count.count}"
    return numbers


@frozen(eq=False)
class _BlockElements:
    """The elements that one block accesses, or that the last block of a counter does.

    Attributes:
        numbers: the elements, each once.
        counter: the counter of the block.
        is_store: whether it stores them.
    """

    numbers: Array
    counter: int
    is_store: bool


def race_of_last_blocks(
    before: Sequence[ElementAccess], behind: Sequence[ElementAccess], counters: Array
) -> str | None:
    """Return the race of a last block with blocks of other counters as text.

    Args:
        before: the accesses to an array in front of the count of blocks.
        behind: the accesses behind it.
        counters: the counter of each block.

    Returns: the element in brackets and whose blocks race for it; None if there is no race.
    """
    if not any(a.is_store for a in behind):
        before = [a for a in before if a.is_store]
    last = np.unique(counters, return_index=True)[1]
    if not all(_is_equal_in_counter(a, counters) for a in behind):
        return "[?] behind a count: what a block does there depends on which one it is"
    elements: list[list[_BlockElements]] = []
    for accesses, blocks in ((before, np.arange(len(counters))), (behind, last)):
        elements.append([])
        for a in accesses:
            numbers = _elements(a, blocks)
            if numbers is None:
                return "[?] behind a count: indices that are not understood"
            own = zip(numbers, counters[blocks].tolist(), strict=True)
            elements[-1] += [_BlockElements(n, counter, a.is_store) for n, counter in own]
            if sum(e.numbers.size for group in elements for e in group) > MAX_ELEMENTS:
                return "[?] behind a count: indices of too many values"
    return _first_race(*elements)


def _first_race(before: list[_BlockElements], behind: list[_BlockElements]) -> str | None:
    """Return a race between elements in front of a count and behind it, as text."""
    everything = [e.numbers for e in (*before, *behind) if e.numbers.size]
    if not everything:
        return None
    base = min(int(n.min()) for n in everything)
    size = max(int(n.max()) for n in everything) - base + 1
    low, high = np.full(size, 1 << 60), np.full(size, NO_COUNTER)
    is_stored = np.zeros(size, bool)
    for e in before:
        at = e.numbers - base
        low[at] = np.minimum(low[at], e.counter)
        high[at] = np.maximum(high[at], e.counter)
        is_stored[at] |= e.is_store
    owner = np.full(size, NO_COUNTER)  # the counter whose last block stores an element
    for e in sorted(behind, key=lambda e: not e.is_store):
        at = e.numbers - base
        is_foreign = (high[at] != NO_COUNTER) & ((low[at] != e.counter) | (high[at] != e.counter))
        is_race = is_foreign & (is_stored[at] | e.is_store)
        if is_race.any():
            return f"[{int(e.numbers[is_race][0])}], of blocks with other counters"
        is_race = (owner[at] != NO_COUNTER) & (owner[at] != e.counter)
        if is_race.any():
            return f"[{int(e.numbers[is_race][0])}], of the last blocks of two counters"
        if e.is_store:
            owner[at] = e.counter
    return None


def _is_equal_in_counter(a: ElementAccess, counters: Array) -> bool:
    """Return whether all blocks of a counter access the same elements."""
    blocks = np.arange(len(counters))
    sums = [_terms(x.terms, blocks) for x in (a.index, *a.facts)]
    if any(s is None for s in sums):
        return False
    first = np.unique(counters, return_index=True)[1][np.unique(counters, return_inverse=True)[1]]
    return all(np.array_equal(s, s[first]) for s in sums if s is not None)


def _elements(a: ElementAccess, blocks: Array) -> list[Array] | None:
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
    """Return a sum that is the same in all threads, for each block; None if it is unknown."""
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
