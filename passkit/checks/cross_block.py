"""Races between threads of different blocks in kernels of loop IR.

An index is a sum of terms that depend on the block, and of a number for each thread. No element
belongs to two blocks if the numbers, and the terms with few values, are all different, and if their
range is smaller than the coefficient of the remaining term.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from attrs import frozen

from passkit.checks.accesses import ElementAccess
from passkit.checks.affine import Affine, Array, IndexAtom, count_of
from passkit.checks.mixed_radix import are_digits

MAX_VALUES = 1 << 22
"""The number of values of an index that are enumerated, at most."""
MAX_STEPS = 1 << 12
"""The number of values of a term that are enumerated, at most."""
UNLIMITED = 1 << 40
"""The number of values that is assumed for a term without a known limit."""


def race_of_blocks(accesses: Sequence[ElementAccess]) -> str | None:
    """Return an element that different blocks access, as text behind the buffer's name.

    Returns: None if every element belongs to one block.
    """
    kept = [(a.index, a.mask) for a in accesses if a.mask.any()]
    if not kept:
        return None
    terms = kept[0][0].terms
    if any(index.terms != terms or index.is_unbounded for index, _ in kept):
        return "[?] among blocks: indices that are not understood"
    low, high = (
        np.concatenate([_inside(getattr(index, side), mask) for index, mask in kept])
        for side in ("low", "high")
    )
    if not low.size:
        return None
    if not terms:
        return f"[{int(low.min())}], of all blocks"
    if not _gives_block(terms) or not _are_apart_from_quotients([i for i, _ in kept]):
        return "[?] among blocks: quotients that do not give the block"
    digits = [(c, count_of(atom)) for atom, c in terms]
    if are_digits(digits, int(high.max() - low.min())):
        return None
    if not all(index.is_exact for index, _ in kept):
        return "[?] among blocks: indices that are not understood"
    if any(_are_rows_apart(fact, accesses) for fact in accesses[0].facts):
        return None
    if _are_tiles_apart(terms, [a for a in accesses if a.mask.any()]):
        return None
    limited = [t for t in terms if _is_limited(t[0], accesses)]
    if len(limited) != 1:
        return _collision_of_values(terms, np.unique(low))
    parts = _values_by_step(*limited[0], accesses)
    ordered = np.sort(np.concatenate(parts))
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if twice.size:
        return f"[{int(twice[0])}], of different blocks"
    return _collision_of_values([t for t in terms if t is not limited[0]], ordered)


def _is_limited(atom: IndexAtom, accesses: Sequence[ElementAccess]) -> bool:
    """Return whether an atom has few values, and a guard depends on it alone."""
    count = count_of(atom)
    points = sum(np.broadcast(a.index.low, a.mask).size for a in accesses)
    is_small = count is not None and count <= MAX_STEPS and count * points <= MAX_VALUES
    return is_small and any(
        len(f.terms) == 1 and f.terms[0][0] == atom for a in accesses for f in a.facts
    )


def _values_by_step(atom: IndexAtom, step: int, accesses: Sequence[ElementAccess]) -> list[Array]:
    """Return the different values of the indices for each value of an atom.

    Points that a guard excludes for that value are left out. ``step`` is the atom's coefficient.
    """
    values: list[Array] = []
    for k in range(count_of(atom) or 0):
        own: list[Array] = []
        for a in accesses:
            mask = a.mask
            for fact in a.facts:
                if len(fact.terms) == 1 and fact.terms[0][0] == atom:
                    mask = mask & (fact.high + fact.terms[0][1] * k >= 0)
            own.append(_inside(a.index.low + step * k, mask))
        values.append(np.unique(np.concatenate(own)))
    return values


def _are_rows_apart(fact: Affine, accesses: Sequence[ElementAccess]) -> bool:
    """Return whether different rows have different elements, for rows that a guard limits.

    Args:
        fact: a guard: a sum that is not negative, such as ``n - 1 - (block * 4 + y)``, in which a
            row is ``block * 4 + y``.
        accesses: the accesses, all with exact indices.
    """
    if len(fact.terms) != 1 or not _gives_atom(fact) or fact.terms[0][1] >= 0:
        return False
    top = int(fact.low.max())
    axes = [k for k, n in enumerate(fact.low.shape) if n > 1]
    values: list[Array] = []
    for a in accesses:
        steps, rest = divmod(a.index.terms[0][1], -fact.terms[0][1])
        if fact not in a.facts or rest or len(a.index.terms) > 1:
            return False
        numbers = a.index.low - steps * (top - fact.low)
        first = numbers
        for axis in axes:
            first = first.take([0], axis)
        if steps <= 0 or not np.array_equal(numbers, np.broadcast_to(first, numbers.shape)):
            return False
        values.append(_inside(first, a.mask.any(axis=tuple(axes), keepdims=True)))
    unique = np.unique(np.concatenate(values))
    return _collision_in_steps(unique, steps, top + 1) is None


@frozen
class _TileAxis:
    """An axis of tiles that a guard ends: its points ``size * atom + local`` are 0 to ``last``.

    Attributes:
        atom: the number of the tile.
        size: the points of a tile.
        step: the elements from one point to the next.
        last: the last point.
    """

    atom: IndexAtom
    size: int
    step: int
    last: int


def _are_tiles_apart(
    terms: Sequence[tuple[IndexAtom, int]], accesses: Sequence[ElementAccess]
) -> bool:
    """Return whether different tiles have different elements, for axes that guards end.

    Along such an axis an index counts points of the axis. So it is a sum of points times steps, of
    other terms, and of numbers, and tiles are apart if such a sum determines all its parts.
    """
    axes = [axis for atom, c in terms if (axis := _tile_axis(atom, c, accesses)) is not None]
    if not axes:
        return False
    values: list[Array] = []
    for a in accesses:
        rest = a.index.low
        for axis in axes:
            local = _local_points(axis, a)
            if local is None:
                return False
            rest = rest - local * axis.step
        values.append(_inside(rest, a.mask))
    tiled = {axis.atom for axis in axes}
    points = [(IndexAtom("point", count=x.last + 1), x.step) for x in axes]
    parts = [*points, *(t for t in terms if t[0] not in tiled)]
    return _collision_of_values(parts, np.unique(np.concatenate(values))) is None


def _guards_of(atom: IndexAtom, access: ElementAccess) -> list[Affine]:
    """Return the guards of an access that end the values of an atom: ``number - size * atom``."""
    return [f for f in access.facts if [(t, c < 0) for t, c in f.terms] == [(atom, True)]]


def _tile_axis(
    atom: IndexAtom, coefficient: int, accesses: Sequence[ElementAccess]
) -> _TileAxis | None:
    """Return the axis of tiles that an atom counts, if a guard of each access ends it."""
    guards = [_guards_of(atom, a) for a in accesses]
    sizes = {-f.terms[0][1] for own in guards for f in own}
    if not all(guards) or len(sizes) != 1:
        return None
    (size,) = sizes
    ends = [f for own in guards for f in own if f.is_exact and f.low.size > 1]
    last = max((int(f.low.max()) for f in ends), default=-1)
    is_even = coefficient > 0 and coefficient % size == 0
    return _TileAxis(atom, size, coefficient // size, last) if is_even and last >= 0 else None


def _local_points(axis: _TileAxis, access: ElementAccess) -> Array | None:
    """Return the points within a tile that an access is at; None if they are not understood.

    Where a guard concerns the whole tile, they are a digit of the index.
    """
    for guard in _guards_of(axis.atom, access):
        local = axis.last - guard.low
        if guard.low.size == 1:
            local = access.index.low // axis.step % (axis.last + 1)
        is_inside = (local >= 0) & (local < axis.size) & (guard.high + local <= axis.last)
        if guard.is_exact and (is_inside | ~access.mask).all():
            return local
    return None


def _inside(numbers: Array, mask: Array) -> Array:
    """Return the numbers at the points of a mask."""
    numbers, mask = np.broadcast_arrays(numbers, mask)
    return numbers[mask]


def _gives_block(terms: Sequence[tuple[IndexAtom, int]]) -> bool:
    """Return whether the values of the terms' atoms determine the block.

    ``x // (q * d)`` and ``x // q % d`` determine ``x // q``; a sum of one atom, and of numbers
    below its coefficient, determines the atom.
    """
    determined = {atom for atom, _ in terms}
    while not any(a.inner is None for a in determined):
        bases = {base for base, q in _quotients_of(determined) if q == 1 and _gives_atom(base)}
        atoms = {base.terms[0][0] for base in bases}
        if atoms <= determined:
            return False
        determined |= atoms
    return True


def _quotients_of(determined: Iterable[IndexAtom]) -> set[tuple[Affine, int]]:
    """Return the quotients that atoms determine: a dividend, and a divisor that may be 1."""
    quotients: set[tuple[Affine, int]] = set()
    remainders: set[tuple[Affine, int, int]] = set()
    for atom in determined:
        assert atom.inner is not None
        base, q = _as_quotient(atom.inner)
        if atom.name == "//":
            quotients.add((base, q * atom.divisor))
        else:
            remainders.add((base, q, atom.divisor))
    while True:
        more = {(base, q) for base, q, d in remainders if (base, q * d) in quotients} - quotients
        if not more:
            return quotients
        quotients |= more


def _as_quotient(x: Affine) -> tuple[Affine, int]:
    """Return a sum as a quotient: its dividend, and its divisor, which is 1 for any other sum."""
    if len(x.terms) == 1 and x.is_exact and x.low.size == 1 and x.low.item() == 0:
        atom, c = x.terms[0]
        if c == 1 and atom.name == "//" and atom.inner is not None:
            base, q = _as_quotient(atom.inner)
            return base, q * atom.divisor
    return x, 1


def _gives_atom(inner: Affine) -> bool:
    """Return whether a sum determines its only atom, and the threads that it depends on."""
    if len(inner.terms) != 1 or not inner.is_exact:
        return False
    numbers = inner.low.ravel()
    is_injective = len(np.unique(numbers)) == numbers.size
    return is_injective and int(numbers.max() - numbers.min()) < abs(inner.terms[0][1])


def axes_of_quotients(index: Affine) -> set[int]:
    """Return the axes that the dividends of an index depend on."""
    inside: set[int] = set()
    todo = [atom for atom, _ in index.terms]
    while todo:
        inner = todo.pop().inner
        if inner is not None:
            inside |= {k for k, n in enumerate(inner.low.shape) if n > 1}
            todo += [atom for atom, _ in inner.terms]
    return inside


def _are_apart_from_quotients(indices: Sequence[Affine]) -> bool:
    """Return whether numbers depend on other threads and loops than the quotients."""
    inside = axes_of_quotients(indices[0])
    return all(index.low.shape[k] == index.high.shape[k] == 1 for index in indices for k in inside)


def _collision_of_values(terms: Sequence[tuple[IndexAtom, int]], values: Array) -> str | None:
    """Return an element of different blocks as text; None if there is none.

    ``values`` are the different numbers that an index has besides its ``terms``.

    One term after the other is added, those without a limit last. The values of a term are not
    enumerated unless a further one lies among them.
    """
    if not values.size:
        return None
    counted = [(abs(c), count_of(atom)) for atom, c in terms]
    pending: list[tuple[int, int | None]] = []
    for c, count in sorted(counted, key=lambda t: (t[1] is None, t[0])):
        reach = int(values.max() - values.min())
        reach += sum(k * ((n or UNLIMITED) - 1) for k, n in pending)
        if c <= reach:
            for k, n in pending:
                if n is None or values.size * n > MAX_VALUES:
                    return "[?] among blocks: indices of too many values"
                values = (values[:, None] + k * np.arange(n)).ravel()
            pending = []
            collision = _collision_in_steps(values, c, count)
            if collision is not None:
                return collision
        pending.append((c, count))
    return None


def _collision_in_steps(values: Array, step: int, count: int | None) -> str | None:
    """Return a value that is ``step`` times less than ``count`` from another one, as text."""
    by_remainder = values[np.lexsort((values, values % step))]
    gaps, rests = np.diff(by_remainder), np.diff(by_remainder % step)
    collisions = np.flatnonzero((rests == 0) & (gaps < step * (count or UNLIMITED)))
    if not collisions.size:
        return None
    more = f" + a multiple of {step}" if count is None else ""
    return f"[{int(by_remainder[collisions[0] + 1])}{more}], of different blocks"
