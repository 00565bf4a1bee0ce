"""Symbolic sizes: polynomials over named extents that only a call determines, such as ``4*n + 1``.

A known extent is a plain ``int``; a `Size` always has a symbol in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import gcd, prod
from operator import index
from typing import Any, NamedTuple, TypeAlias, Union

from passkit.errors import ShapeError
from passkit.values.arguments import refuse, text

Extent: TypeAlias = Union[int, "Size"]
Shape: TypeAlias = tuple[Extent, ...]


class Quotient(NamedTuple):
    """``numerator // denominator``, part of a size, where the division may have a remainder."""

    numerator: Extent
    denominator: Extent

    def __str__(self) -> str:
        """Return the quotient as text, ``(numerator)//(denominator)``."""
        return f"({self.numerator})//({self.denominator})"


Atom: TypeAlias = Union[str, Quotient]
Monomial: TypeAlias = tuple[Atom, ...]


class Size:
    """A symbolic extent: an integer polynomial in canonical form.

    ``==`` and ``hash`` compare the canonical forms. Arithmetic with integers and sizes returns an
    int where no symbol remains, and raises a TypeError for other numbers. ``bool`` and ``int``
    raise a ShapeError.

    Args:
        terms: coefficients by monomial; `Size.symbol` creates a single symbol. Anything but a
            mapping is an ArgumentError.

    >>> n, m = Size.symbol("n"), Size.symbol("m")
    >>> (n + 1) * 4 - 4, n * m // m, (n * 6) // 4
    (4*n, n, (6*n)//(4))
    """

    __slots__ = ("_hash", "terms")

    terms: tuple[tuple[Monomial, int], ...]

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        if not isinstance(terms, Mapping):
            refuse("Size: terms", terms, "a mapping of monomials to numbers; Size.symbol(name)")
        nonzero = [(m, c) for m, c in terms.items() if c]
        if len(nonzero) > 1:
            nonzero.sort(key=_sort_key)
        self.terms = tuple(nonzero)
        self._hash = hash(self.terms)

    @staticmethod
    def symbol(name: str) -> Size:
        """Return the symbolic extent called ``name``. Raises: ArgumentError if it is no string."""
        return Size({(text("Size.symbol: name", name),): 1})

    @staticmethod
    def _make(terms: Mapping[Monomial, int]) -> Extent:
        """Return a polynomial as an int if it is constant, else as a Size."""
        nonzero = {m: c for m, c in terms.items() if c}
        if not nonzero:
            return 0
        if len(nonzero) == 1 and () in nonzero:
            return nonzero[()]
        return Size(nonzero)

    def _scaled(self, factor: int) -> Size:
        """Return this size times a number other than 0, for which the terms need no sorting."""
        scaled = Size.__new__(Size)
        scaled.terms = tuple([(m, c * factor) for m, c in self.terms])
        scaled._hash = hash(scaled.terms)
        return scaled

    def __add__(self, other: Extent) -> Extent:
        """Return the sum, an int if no symbol is left.

        Raises: TypeError where ``other`` is neither an integer nor a Size.
        """
        if isinstance(other, int) and other == 0:
            return self
        total = dict(self.terms)
        for m, c in _terms(other):
            total[m] = total.get(m, 0) + c
        return Size._make(total)

    def __mul__(self, other: Extent) -> Extent:
        """Return the product, an int if no symbol is left.

        Raises: TypeError where ``other`` is neither an integer nor a Size.
        """
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
        """Return this size times -1."""
        return self * -1

    def __sub__(self, other: Extent) -> Extent:
        """Return ``self - other``, an int if no symbol is left. Raises: TypeError as ``+``."""
        return self + other * -1

    def __rsub__(self, other: Extent) -> Extent:
        """Return ``other - self``, an int if no symbol is left. Raises: TypeError as ``+``."""
        return self * -1 + other

    def __floordiv__(self, other: Extent) -> Extent:
        """Return the exact quotient, else a quotient rounded down when its symbols have values.

        A division by 0 is such a quotient, too; `substitute` raises a ShapeError for it. Raises:
        TypeError where ``other`` is neither an integer nor a Size.
        """
        exact = divide_exactly(self, other)
        return Size({(Quotient(self, other),): 1}) if exact is None else exact

    def __rfloordiv__(self, other: Extent) -> Extent:
        """Return the quotient of an integer by this size, rounded down when it is evaluated.

        It is a Size, also for 0. Raises: TypeError for other numbers.
        """
        return Size({(Quotient(index(other), self),): 1})

    def __mod__(self, other: Extent) -> Extent:
        """Return the remainder, with the sign of ``other``; 0 where the division is exact.

        For ``other`` 0 it is this size itself. Raises: TypeError where ``other`` is neither an
        integer nor a Size.
        """
        return self - (self // other) * other

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is a Size with the same canonical form; False for numbers."""
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self) -> int:
        """Return the hash of the canonical form."""
        return self._hash

    def __str__(self) -> str:
        """Return the polynomial as text, such as ``4*n + 1``."""
        return " + ".join(_show(m, c) for m, c in self.terms).replace("+ -", "- ")

    __repr__ = __str__

    def __bool__(self) -> bool:
        """Raise ShapeError, since it is not known whether the size is 0."""
        raise ShapeError(f"the size {self} is not known before a call; compare it with == instead")

    def __index__(self) -> int:
        """Raise ShapeError, since the number is not known; ``int`` calls this, too."""
        raise ShapeError(f"the size {self} is not known before a call; give the variable a shape")

    @property
    def symbols(self) -> frozenset[str]:
        """Return the names of the symbols that this size depends on."""
        names: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    names.add(atom)
                else:
                    names |= symbols_of((atom.numerator, atom.denominator))
        return frozenset(names)


def _sort_key(term: tuple[Monomial, int]) -> tuple[str, ...]:
    """Return the key that terms are sorted by: the texts of their atoms."""
    return _names(term[0])


@lru_cache(maxsize=1 << 14)
def _names(monomial: Monomial) -> tuple[str, ...]:
    """Return the text of each atom of a monomial."""
    return tuple([str(a) for a in monomial])


@lru_cache(maxsize=1 << 14)
def _product(a: Monomial, b: Monomial) -> Monomial:
    """Return the product of the monomials ``a`` and ``b``: their atoms, sorted by their texts."""
    return tuple(sorted((*a, *b), key=str)) if a and b else a or b


def _terms(size: Extent) -> Iterable[tuple[Monomial, int]]:
    """Return the terms of an extent, also of a number. Raises: TypeError for other numbers."""
    return size.terms if isinstance(size, Size) else (((), index(size)),)


def _show(monomial: Monomial, coefficient: int) -> str:
    """Return the term ``coefficient * monomial`` as text, such as ``-2*n*m``."""
    factors = [str(a) for a in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    if factors[:2] and factors[0] == "-1" and len(factors) > 1:
        factors[:2] = ["-" + factors[1]]
    return "*".join(factors)


def symbols_of(values: Iterable[Any]) -> frozenset[str]:
    """Return the names of the symbols of all sizes in ``values``, also in tuples among them.

    Other values are ignored, lists and dicts too.
    """
    return frozenset().union(
        *(
            symbols_of(v) if isinstance(v, tuple) else v.symbols
            for v in values
            if isinstance(v, (Size, tuple))
        )
    )


def has_size(shape: Shape | None) -> bool:
    """Return whether a shape has symbolic extents or an unknown rank."""
    return shape is None or any(isinstance(n, Size) for n in shape)


def has_symbols(params: Mapping[str, Any]) -> bool:
    """Return whether a value of ``params`` is a symbolic size, or a tuple with one, also nested."""
    return bool(symbols_of(params.values()))


def divide_exactly(a: Extent, b: Extent) -> Extent | None:
    """Return ``a / b`` if the division is seen to be exact for all values of symbols, else None.

    Both are ints or Sizes. None also where ``b`` is 0.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    if isinstance(a, int):
        return 0 if a == 0 else None
    if a == b:
        return 1
    divisor = list(_terms(b))
    if len(divisor) > 1:
        return _divide_by_sum(a, b)
    bm, bc = divisor[0]
    total: Extent = 0
    for m, c in a.terms:
        factor = _over(m, c, bm, bc)
        if factor is None:
            return None
        total = factor + total
    return total


def known_factor(size: Extent) -> int:
    """Return the largest number that divides a size, whatever its symbols are; of 0 it is 0.

    >>> known_factor(12), known_factor(Size.symbol("n") * 8 + 4)
    (12, 4)
    """
    return gcd(*(c for _, c in _terms(size)))


def quotient_above(size: Extent, divisor: int) -> Extent:
    """Return the least size that times a positive number is not below another size.

    >>> quotient_above(13, 4), quotient_above(Size.symbol("n") * 8, 4)
    (4, 2*n)
    """
    exact = divide_exactly(size, divisor)
    return (size + (divisor - 1)) // divisor if exact is None else exact


def _divide_by_sum(a: Size, b: Extent) -> Extent | None:
    """Return the polynomial ``a / b`` for a sum ``b``, or None if ``b`` does not divide ``a``.

    This is long division: in an order of terms that products keep, the first term of ``b`` divides
    the first term of each of its multiples.
    """
    atoms = sorted({atom for size in (a, b) for m, _ in _terms(size) for atom in m}, key=str)

    def rank(term: tuple[Monomial, int]) -> tuple[int, ...]:
        """Return the degree of a term, and the power of each atom in it."""
        return (len(term[0]), *map(term[0].count, atoms))

    lead_m, lead_c = max(_terms(b), key=rank)
    total: Extent = 0
    rest: Extent = a
    while rest != 0:
        m, c = max(_terms(rest), key=rank)
        factor = _over(m, c, lead_m, lead_c)
        if factor is None:
            return None
        total = total + factor
        rest = rest - b * factor
    return total


def _over(m: Monomial, c: int, bm: Monomial, bc: int) -> Extent | None:
    """Return the term ``c*m`` divided by ``bc*bm``, or None if that is not exact or ``bc`` is 0."""
    rest = list(m)
    for atom in bm:
        if atom not in rest:
            return None
        rest.remove(atom)
    return Size._make({tuple(rest): c // bc}) if bc and c % bc == 0 else None


def substitute(size: Extent, values: Mapping[str, Extent]) -> Extent:
    """Return ``size`` with the symbols in ``values`` replaced by their extents; others stay.

    Raises: ShapeError where it then divides by zero.
    """
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
    """Return the number that ``size`` is for these values of its symbols.

    Raises: ShapeError where a symbol has no value, or the size divides by zero.
    """
    out = substitute(size, values)
    if isinstance(out, Size):
        missing = min(out.symbols)
        raise ShapeError(f"the size {size} needs a value for '{missing}', got {dict(values)}")
    return out


def known_or_zero(size: Extent, values: Mapping[str, int]) -> int:
    """Return the value of a size, but 0 where it divides by zero, as an array of it is then empty.

    Args:
        size: the size.
        values: the values of its symbols.

    Raises: ShapeError where a symbol has no value.
    """
    try:
        return evaluate(size, values)
    except ShapeError:
        if symbols_of([size]) <= values.keys():
            return 0
        raise


def solve(size: Size, number: int, values: Mapping[str, int]) -> tuple[str, int] | None:
    """Solve ``size == number`` for the only symbol of the size that is not in ``values``.

    Args:
        size: a size with at least one symbol that has no value.
        number: the value of the size.
        values: the values of symbols that are known.

    Returns:
        The symbol and its value, rounded down and at least 0; None where several symbols have no
        value, or the size does not depend on the one that has none, or not linearly.

    Raises: ShapeError where the size divides by zero; ValueError where all symbols have values.
    """
    symbol, *others = size.symbols - values.keys()
    if others or any(symbol in _inside(a) for m, _ in size.terms for a in m):
        return None
    if any(m.count(symbol) > 1 for m, _ in size.terms):
        return None
    low, high = (evaluate(size, {**values, symbol: k}) for k in (0, 1))
    return (symbol, max(0, (number - low) // (high - low))) if high != low else None


def _inside(atom: Atom) -> frozenset[str]:
    """Return the symbols in a quotient; none for a symbol itself."""
    return symbols_of(atom) if isinstance(atom, Quotient) else frozenset()


def numel(shape: Iterable[Extent]) -> Extent:
    """Return the number of elements of ``shape``; 1 for rank 0."""
    return prod(shape)


ALIGN = 64
"""The alignment of buffers in an arena, in bytes: a cache line, and the widest vector."""


PAGE = 4096
"""Buffers of at least this many bytes are followed by `PADDING`."""
PADDING = 320
"""Bytes that stay free behind a large buffer."""


def arena_layout(
    slots: Iterable[Iterable[Extent]], values: Mapping[str, int]
) -> tuple[tuple[int, ...], int]:
    """Lay out the buffers of an arena one behind the other.

    Large buffers are followed by some free cache lines. Otherwise arrays that one loop reads side
    by side would often lie a power of two apart, and evict each other from a set-associative cache.

    Args:
        slots: for each buffer the sizes in bytes of the arrays that it holds at different times.
        values: the values of all symbols.

    Returns:
        The offset of each buffer, and the size of the arena, in bytes.

    Raises: ShapeError where a symbol has no value or a size divides by zero; ValueError for a
    buffer without arrays.
    """
    offsets: list[int] = []
    end = 0
    for slot in slots:
        offsets.append(end)
        most = max(evaluate(nbytes, values) for nbytes in slot)
        end += -(-most // ALIGN) * ALIGN + (PADDING if most >= PAGE else 0)
    return tuple(offsets), end


def at_least(a: Extent, b: Extent) -> bool:
    """Return whether a >= b is certain when every symbol is at least 1; False if not known.

    It is certain if all coefficients of a - b are non-negative after substituting 1 + t for each
    symbol; or those of a lower bound of a - b, in which quotients by numbers are bounded by
    fractions.

    Raises: ShapeError where a size divides by the number 0.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a >= b
    return _is_natural(a - b)


@lru_cache(maxsize=1 << 14)
def _is_natural(size: Extent) -> bool:
    """Return whether a size is certainly not negative where every symbol is at least 1.

    False where the tests described in `at_least` do not show it.
    """
    return _is_positive(size) or _is_positive(_lower_bound(size))


def _lower_bound(size: Extent) -> Extent:
    """Return a lower bound of a size, in which terms ``c * (a // b)`` have no quotient.

    They become ``(c // b) * a``, less ``(c // b) * (b - 1)`` if c is positive. That is done where b
    is a positive number that divides c; other terms stay.
    """
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
    """Return whether no coefficient is negative after substituting 1 + t for each symbol.

    For a number, return whether it is at least 0.
    """
    if isinstance(difference, int):
        return difference >= 0
    shifted = {s: Size.symbol(s) + 1 for s in difference.symbols}
    moved = substitute(difference, shifted)
    return all(
        c >= 0 for m, c in _terms(moved) if not any(isinstance(a, Quotient) for a in m)
    ) and not any(isinstance(a, Quotient) and c < 0 for m, c in _terms(moved) for a in m)
