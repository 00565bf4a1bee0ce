"""Repeated sequences of units, as unrolled recurrences and stacks of equal layers have them.

A tandem repeat in the sequence of units, each represented by a key, is found by comparing the
sequence with itself, shifted by every period up to MAX_PERIOD.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from statistics import median

import numpy as np
from attrs import evolve, frozen

MIN_ITERATIONS = 4
"""The fewest iterations that are drawn as one."""
MIN_SAVED = 8
"""The fewest boxes that drawing a repeat as one iteration must save."""
MAX_PERIOD = 400
"""The most units of an iteration."""
OUTLIER_RATIO = 2.0
"""An iteration is drawn by itself if its time differs from the median by more than this factor."""
OUTLIER_SHARE = 0.03
"""The share of the total time that this difference must have."""


@frozen
class Repeat:
    """A sequence of units that is repeated: ``count`` iterations of ``period`` units each.

    Attributes:
        start: The position of the first unit.
        period: The number of units of an iteration.
        count: The number of iterations.
    """

    start: int
    period: int
    count: int

    @property
    def saved(self) -> int:
        """The number of boxes that drawing one iteration saves."""
        return (self.count - 1) * self.period

    @property
    def iterations(self) -> list[range]:
        """For each of ``count`` repetitions of a sequence of units, the range of positions."""
        starts = range(self.start, self.start + self.count * self.period, self.period)
        return [range(k, k + self.period) for k in starts]


def find_repeats(keys: Sequence[Hashable], names: Sequence[str]) -> list[Repeat]:
    """Return repeats that do not overlap, in order; those that save most are chosen first.

    Args:
        keys: A key for each unit; units with equal keys are equivalent.
        names: The names of the units. Where iterations could begin at several units, they begin
            so that the names of an iteration share a scope.

    >>> find_repeats("abcbcbcbcbcbd", [""] * 13)
    [Repeat(start=1, period=2, count=5)]
    """
    numbers: dict[Hashable, int] = {}
    sequence = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    repeats, pending = [], [(0, len(sequence))]
    while pending:
        begin, end = pending.pop()
        best = _best(sequence[begin:end])
        if best is not None:
            best = _aligned(evolve(best, start=begin + best.start), names)
            repeats.append(best)
            pending += [(begin, best.start), (best.iterations[-1].stop, end)]
    return sorted(repeats, key=lambda r: r.start)


def _best(sequence: np.ndarray) -> Repeat | None:
    """Return the repeat that saves most boxes, with the shortest period among equals.

    ``sequence`` has a number for each unit, equal for equivalent units.

    Returns: None if no repeat has MIN_ITERATIONS and saves MIN_SAVED boxes.
    """
    best = None
    for period in range(1, min(MAX_PERIOD, len(sequence) // MIN_ITERATIONS) + 1):
        equal = np.concatenate(([False], sequence[:-period] == sequence[period:], [False]))
        starts, ends = np.flatnonzero(equal[1:] != equal[:-1]).reshape(-1, 2).T
        if not len(starts):
            continue
        longest = int(np.argmax(ends - starts))
        start, length = int(starts[longest]), int(ends[longest] - starts[longest]) + period
        repeat = Repeat(start, period, length // period)
        enough = repeat.count >= MIN_ITERATIONS and repeat.saved >= MIN_SAVED
        if enough and (best is None or repeat.saved > best.saved):
            best = repeat
    return best


def _aligned(repeat: Repeat, names: Sequence[str]) -> Repeat:
    """Return the repeat shifted so that the names of an iteration share an inner scope.

    ``names`` are those of all units. A shift costs an iteration; the repeat itself is returned
    where no shift helps, or too few iterations would be left.
    """
    units = range(repeat.start, repeat.start + repeat.count * repeat.period)
    common_scope = shared_scope([names[k] for k in units])
    for shift in range(repeat.period):
        count = repeat.count - (shift > 0)
        shifted = Repeat(repeat.start + shift, repeat.period, count)
        iteration_scope = shared_scope([names[k] for k in shifted.iterations[0]])
        if count < MIN_ITERATIONS or shifted.saved < MIN_SAVED:
            break
        if len(iteration_scope) > len(common_scope):
            return shifted
    return repeat


def shared_scope(names: Sequence[str]) -> list[str]:
    """Return the leading parts that all names share, without the last part of each.

    Raises: ValueError without names.

    >>> shared_scope(["net/layer_0/dot", "net/layer_0/act/tanh"]), shared_scope(["a", "b"])
    (['net', 'layer_0'], [])
    """
    first, last = (n.split("/")[:-1] for n in (min(names), max(names)))
    shared = []
    for a, b in zip(first, last, strict=False):
        if a != b:
            break
        shared.append(a)
    return shared


def split_at_outliers(repeat: Repeat, seconds: Sequence[float], total: float) -> Iterator[Repeat]:
    """Yield the parts of a repeat between iterations that take much more or less time than others.

    Parts of one iteration, or that save fewer than MIN_SAVED boxes, are left out.

    Args:
        repeat: A repeat.
        seconds: The seconds of each unit.
        total: The seconds of all units.
    """
    times = [sum(seconds[k] for k in iteration) for iteration in repeat.iterations]
    usual = median(times)
    outliers = [
        k
        for k, time in enumerate(times)
        if max(time, usual) > OUTLIER_RATIO * min(time, usual)
        and abs(time - usual) > OUTLIER_SHARE * total
    ]
    for before, after in pairwise([-1, *outliers, repeat.count]):
        start = repeat.start + (before + 1) * repeat.period
        part = Repeat(start, repeat.period, after - before - 1)
        if part.count > 1 and part.saved >= MIN_SAVED:
            yield part
