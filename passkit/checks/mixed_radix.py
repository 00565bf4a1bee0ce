"""Sums of terms that determine all their terms, as a number in a mixed radix does its digits."""

from __future__ import annotations

from collections.abc import Iterable

from passkit.values.size import Extent, at_least

Digit = tuple[Extent, Extent | None]
"""The coefficient of a term, and how many values it has, from 0 on; None if that is not known."""


def are_digits(terms: Iterable[Digit], reach: Extent = 0) -> bool:
    """Return whether each coefficient certainly exceeds what all smaller terms together can add.

    ``reach`` is the most by which numbers differ that are added to the terms. The count of the term
    with the largest coefficient need not be known.

    >>> are_digits([(12, None), (1, 4), (4, 3)]), are_digits([(3, 2), (1, 4)])
    (True, False)
    """
    rest = [(c * -1 if at_least(0, c) else c, n) for c, n in terms if n != 1]
    while rest:
        least = next((s for s in rest if all(at_least(o[0], s[0]) for o in rest)), None)
        if least is None or not at_least(least[0], reach + 1):
            return False
        rest.remove(least)
        step, count = least
        if count is None:
            return not rest
        reach = reach + step * (count - 1)
    return True
