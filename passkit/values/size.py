"""Sizes: polynomials over named unknown extents, such as ``4*n + 1``.

A known extent is a plain ``int``; `Size` stands only for what is not known before a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeAlias, Union

from passkit.errors import ShapeError
from passkit.values.arguments import refuse, text

Extent: TypeAlias = Union[int, "Size"]
Shape: TypeAlias = tuple[Extent, ...]


class Quotient(NamedTuple):
    """``numerator // denominator`` where the division is not known to be exact."""

    numerator: Extent
    denominator: Extent

    def __str__(self) -> str:
        return f"({self.numerator})//({self.denominator})"


Atom: TypeAlias = Union[str, Quotient]
Monomial: TypeAlias = tuple[Atom, ...]


class Size:
    """An integer polynomial; equal values written alike are equal and hash alike.

    >>> n, m = Size.symbol("n"), Size.symbol("m")
    >>> (n + 1) * 4 - 4, n * m // m, (n * 6) // 4
    (4*n, n, (6*n)//(4))
    """

    __slots__ = ("_hash", "terms")

    terms: tuple[tuple[Monomial, int], ...]

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        if not isinstance(terms, Mapping):
            refuse("Size: terms", terms, "a mapping of monomials to numbers; Size.symbol(name)")
        kept = [(m, c) for m, c in terms.items() if c]
        if len(kept) > 1:
            kept.sort(key=_written)
        self.terms = tuple(kept)
        self._hash = hash(self.terms)

    @staticmethod
    def symbol(name: str) -> Size:
        """The unknown extent called ``name``."""
        return Size({(text("Size.symbol: name", name),): 1})

    @staticmethod
    def _make(terms: Mapping[Monomial, int]) -> Extent:
        kept = {m: c for m, c in terms.items() if c}
        if not kept:
            return 0
        if len(kept) == 1 and () in kept:
            return kept[()]
        return Size(kept)

    def _scaled(self, factor: int) -> Size:
        """Times a number other than 0: the terms keep their order."""
        made = Size.__new__(Size)
        made.terms = tuple([(m, c * factor) for m, c in self.terms])
        made._hash = hash(made.terms)
        return made

    def __add__(self, other: Extent) -> Extent:
        if isinstance(other, int) and other == 0:
            return self
        total = dict(self.terms)
        for m, c in _terms(other):
            total[m] = total.get(m, 0) + c
        return Size._make(total)

    def __mul__(self, other: Extent) -> Extent:
        if isinstance(other, int):
            return self if other == 1 else self._scaled(other) if other else 0
        total: dict[Monomial, int] = {}
        for m, c in self.terms:
            for k, d in _terms(other):
                key = _product(m, k)
                total[key] = total.get(key, 0) + c * d
        return Size._make(total)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Extent:
        return self * -1

    def __sub__(self, other: Extent) -> Extent:
        return self + other * -1

    def __rsub__(self, other: Extent) -> Extent:
        return self * -1 + other

    def __floordiv__(self, other: Extent) -> Extent:
        exact = divide_exactly(self, other)
        return Size({(Quotient(self, other),): 1}) if exact is None else exact

    def __rfloordiv__(self, other: Extent) -> Extent:
        return Size({(Quotient(other, self),): 1})

    def __mod__(self, other: Extent) -> Extent:
        return self - (self // other) * other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return " + ".join(_show(m, c) for m, c in self.terms).replace("+ -", "- ")

    __repr__ = __str__

    def __bool__(self) -> bool:
        raise ShapeError(f"the size {self} is not known before a call; compare it with == instead")

    def __index__(self) -> int:
        raise ShapeError(f"the size {self} is not known before a call; give the variable a shape")

    @property
    def symbols(self) -> frozenset[str]:
        """The unknown extents that this size depends on."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    found |= symbols_of((atom.numerator, atom.denominator))
        return frozenset(found)


def _written(term: tuple[Monomial, int]) -> tuple[str, ...]:
    """What terms are sorted by."""
    return _names(term[0])


@lru_cache(maxsize=1 << 14)
def _names(monomial: Monomial) -> tuple[str, ...]:
    return tuple([str(a) for a in monomial])


@lru_cache(maxsize=1 << 14)
def _product(a: Monomial, b: Monomial) -> Monomial:
    return tuple(sorted((*a, *b), key=str)) if a and b else a or b


def _terms(size: Extent) -> Iterable[tuple[Monomial, int]]:
    return size.terms if isinstance(size, Size) else (((), int(size)),)


def _show(monomial: Monomial, coefficient: int) -> str:
    factors = [str(a) for a in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    if factors[:2] and factors[0] == "-1" and len(factors) > 1:
        factors[:2] = ["-" + factors[1]]
    return "*".join(factors)


def symbols_of(values: Iterable[Any]) -> frozenset[str]:
    """All unknown extents in ``values``: sizes, tuples of such, and others that have none."""
    return frozenset().union(
        *(
            symbols_of(v) if isinstance(v, tuple) else v.symbols
            for v in values
            if isinstance(v, (Size, tuple))
        )
    )


def has_size(shape: Shape | None) -> bool:
    """Whether a shape, its rank included, is known only when a call gives the sizes."""
    return shape is None or any(isinstance(n, Size) for n in shape)


def awaits(params: Mapping[str, Any]) -> bool:
    """Whether a parameter is, or holds, a size that a call gives."""
    return bool(symbols_of(params.values()))


def divide_exactly(a: Extent, b: Extent) -> Extent | None:
    """``a / b`` when it is known to be whole, else None."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    if isinstance(a, int):
        return 0 if a == 0 else None
    if a == b:
        return 1
    divisor = list(_terms(b))
    if len(divisor) > 1:
        # A sum divides exactly only what is a multiple of it by one monomial.
        lead_m, lead_c = divisor[0]
        for m, c in a.terms:
            factor = _over(m, c, lead_m, lead_c)
            if factor is not None and b * factor == a:
                return factor
        return None
    bm, bc = divisor[0]
    total: Extent = 0
    for m, c in a.terms:
        factor = _over(m, c, bm, bc)
        if factor is None:
            return None
        total = factor + total
    return total


def _over(m: Monomial, c: int, bm: Monomial, bc: int) -> Extent | None:
    rest = list(m)
    for atom in bm:
        if atom not in rest:
            return None
        rest.remove(atom)
    return Size._make({tuple(rest): c // bc}) if bc and c % bc == 0 else None


def substitute(size: Extent, values: Mapping[str, Extent]) -> Extent:
    """``size`` with some of its symbols replaced."""
    if isinstance(size, int):
        return size
    total: Extent = 0
    for monomial, coefficient in size.terms:
        product: Extent = coefficient
        for atom in monomial:
            if isinstance(atom, str):
                product = product * values.get(atom, Size.symbol(atom))
            else:
                below = substitute(atom.denominator, values)
                if below == 0:
                    raise ShapeError(f"the size {size} divides by zero at {dict(values)}")
                product = product * (substitute(atom.numerator, values) // below)
        total = total + product
    return total


def evaluate(size: Extent, values: Mapping[str, int]) -> int:
    """The number that ``size`` is at these values.

    Raises: ShapeError naming the first symbol without a value.
    """
    out = substitute(size, values)
    if isinstance(out, Size):
        missing = min(out.symbols)
        raise ShapeError(f"the size {size} needs a value for '{missing}', got {dict(values)}")
    return out


def known_or_zero(size: Extent, values: Mapping[str, int]) -> int:
    """As `evaluate`, but 0 where it divides by zero: what has such a size then has no work."""
    try:
        return evaluate(size, values)
    except ShapeError:
        if symbols_of([size]) <= values.keys():
            return 0
        raise


def solved(size: Size, number: int, values: Mapping[str, int]) -> tuple[str, int] | None:
    """The one symbol of a size that has no value, and what makes the size ``number``, rounded down.

    None where that is not told: two symbols have none, or the size is not linear in the one.
    """
    symbol, *others = size.symbols - values.keys()
    if others or any(symbol in _inside(a) for m, _ in size.terms for a in m):
        return None
    if any(m.count(symbol) > 1 for m, _ in size.terms):
        return None
    low, high = (evaluate(size, {**values, symbol: k}) for k in (0, 1))
    return (symbol, max(0, (number - low) // (high - low))) if high != low else None


def _inside(atom: Atom) -> frozenset[str]:
    """The symbols of a quotient."""
    return symbols_of(atom) if isinstance(atom, Quotient) else frozenset()


def numel(shape: Iterable[Extent]) -> Extent:
    """The number of elements of ``shape``; 1 for rank 0."""
    return prod(shape)


ALIGN = 64
"""Every slot of an arena starts at a multiple of this: a cache line, a vector."""


PAGE, APART = 4096, 320
"""From how many bytes on slots keep a distance from the next one, and how many bytes."""


def laid_out(
    slots: Iterable[Iterable[Extent]], values: Mapping[str, int]
) -> tuple[tuple[int, ...], int]:
    """The offset of each slot and the bytes of all; a slot is as large as what it must hold.

    Behind a large one some lines stay free: arrays that a loop walks through side by side would
    else often lie a power of two apart, and drive each other out of a cache's few ways.
    """
    offsets: list[int] = []
    end = 0
    for slot in slots:
        offsets.append(end)
        most = max(evaluate(nbytes, values) for nbytes in slot)
        end += -(-most // ALIGN) * ALIGN + (APART if most >= PAGE else 0)
    return tuple(offsets), end


def at_least(a: Extent, b: Extent) -> bool:
    """Whether a >= b is certain when every symbol is at least 1.

    With each symbol written as 1 + t, all coefficients of a - b must be non-negative; or those of
    what it is at least, as a division by a number loses less than 1.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a >= b
    return _is_natural(a - b)


@lru_cache(maxsize=1 << 14)
def _is_natural(size: Extent) -> bool:
    return _is_positive(size) or _is_positive(_divided(size))


def _divided(size: Extent) -> Extent:
    """What a size is at least, without rounding where multiples of a number's quotients are."""
    total: Extent = 0
    for monomial, c in _terms(size):
        q = monomial[0] if len(monomial) == 1 else None
        by = q.denominator if isinstance(q, Quotient) else None
        if isinstance(q, Quotient) and isinstance(by, int) and by > 0 and c % by == 0:
            total = total + (q.numerator - (by - 1 if c > 0 else 0)) * (c // by)
        else:
            total = total + Size._make({monomial: c})
    return total


def _is_positive(difference: Extent) -> bool:
    if isinstance(difference, int):
        return difference >= 0
    shifted = {s: Size.symbol(s) + 1 for s in difference.symbols}
    moved = substitute(difference, shifted)
    return all(
        c >= 0 for m, c in _terms(moved) if not any(isinstance(a, Quotient) for a in m)
    ) and not any(isinstance(a, Quotient) and c < 0 for m, c in _terms(moved) for a in m)
