"""Repeated steps: the same units over and over, as unrolled recurrences and equal layers have them.

A tandem repeat in the sequence of units, each told by a key, is found by comparing the sequence
with itself, shifted by every period up to LONGEST.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from statistics import median

import numpy as np
from attrs import evolve, frozen

LEAST = 4
"""Iterations below which nothing is folded."""
SAVED = 8
"""Boxes that folding a repeat must save."""
LONGEST = 400
"""Units of an iteration beyond which no repeat is looked for."""
OUTLIER, NOTICED = 2.0, 0.03
"""An iteration stands for itself if it takes so many times the median of all, and if that makes a
difference of such a share of the whole time."""


@frozen
class Repeat:
    """From unit ``start`` on, ``count`` iterations of ``period`` units each."""

    start: int
    period: int
    count: int

    @property
    def saved(self) -> int:
        """The boxes that drawing one iteration saves."""
        return (self.count - 1) * self.period

    @property
    def iterations(self) -> list[range]:
        """The units of each iteration."""
        starts = range(self.start, self.start + self.count * self.period, self.period)
        return [range(k, k + self.period) for k in starts]


def repeats(keys: Sequence[Hashable], names: Sequence[str]) -> list[Repeat]:
    """Return repeats that do not overlap, in order; those that save most are taken first.

    Args:
        keys: A key for each unit; units of equal keys are alike.
        names: Names of the units. Where iterations can begin at several units, they begin where
            the names of an iteration are in a scope of their own.

    >>> repeats("abcbcbcbcbcbd", [""] * 13)
    [Repeat(start=1, period=2, count=5)]
    """
    numbers: dict[Hashable, int] = {}
    sequence = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    found, todo = [], [(0, len(sequence))]
    while todo:
        begin, end = todo.pop()
        best = _best(sequence[begin:end])
        if best is not None:
            best = _aligned(evolve(best, start=begin + best.start), names)
            found.append(best)
            todo += [(begin, best.start), (best.iterations[-1].stop, end)]
    return sorted(found, key=lambda r: r.start)


def _best(sequence: np.ndarray) -> Repeat | None:
    """The repeat that saves most boxes, of these that of the shortest period."""
    best = None
    for period in range(1, min(LONGEST, len(sequence) // LEAST) + 1):
        equal = np.concatenate(([False], sequence[:-period] == sequence[period:], [False]))
        starts, ends = np.flatnonzero(equal[1:] != equal[:-1]).reshape(-1, 2).T
        if not len(starts):
            continue
        longest = int(np.argmax(ends - starts))
        start, length = int(starts[longest]), int(ends[longest] - starts[longest]) + period
        repeat = Repeat(start, period, length // period)
        enough = repeat.count >= LEAST and repeat.saved >= SAVED
        if enough and (best is None or repeat.saved > best.saved):
            best = repeat
    return best


def _aligned(repeat: Repeat, names: Sequence[str]) -> Repeat:
    """The same repeat, begun where the names of an iteration share a scope of their own."""
    whole = range(repeat.start, repeat.start + repeat.count * repeat.period)
    for shift in range(repeat.period):
        count = repeat.count - (shift > 0)
        moved = Repeat(repeat.start + shift, repeat.period, count)
        own = scope_of([names[k] for k in moved.iterations[0]])
        if count < LEAST or moved.saved < SAVED:
            break
        if len(own) > len(scope_of([names[k] for k in whole])):
            return moved
    return repeat


def scope_of(names: Sequence[str]) -> list[str]:
    """The leading parts of names that all of them share, the last part of each left out.

    >>> scope_of(["net/layer_0/dot", "net/layer_0/act/tanh"]), scope_of(["a", "b"])
    (['net', 'layer_0'], [])
    """
    first, last = (n.split("/")[:-1] for n in (min(names), max(names)))
    shared = []
    for one, other in zip(first, last, strict=False):
        if one != other:
            break
        shared.append(one)
    return shared


def even(repeat: Repeat, seconds: Sequence[float], total: float) -> Iterator[Repeat]:
    """Yield the parts of a repeat between iterations that take much more or less time than others.

    Args:
        repeat: A repeat.
        seconds: The time of each unit.
        total: The time of all units.
    """
    times = [sum(seconds[k] for k in iteration) for iteration in repeat.iterations]
    usual = median(times)
    odd = [
        k
        for k, time in enumerate(times)
        if max(time, usual) > OUTLIER * min(time, usual) and abs(time - usual) > NOTICED * total
    ]
    for before, after in pairwise([-1, *odd, repeat.count]):
        start = repeat.start + (before + 1) * repeat.period
        part = Repeat(start, repeat.period, after - before - 1)
        if part.count > 1 and part.saved >= SAVED:
            yield part
