"""Sizes that only a call knows, as people write them: ceil(n/128) for (127 + n)//(128).

Brackets that round are not in all fonts that pictures are drawn with.
"""

from __future__ import annotations

from math import gcd

from passkit.values.size import Atom, Extent, Monomial, Quotient, Size


def size_text(size: Extent) -> str:
    """A size in letters and numbers; divisions say whether they round up or down.

    >>> n, m = Size.symbol("n"), Size.symbol("m")
    >>> size_text(40), size_text(n * 2 * m + 1), size_text((n * 64 + 8191) // 8192)
    ('40', '1 + 2·m·n', 'ceil(n/128)')
    >>> size_text((n + 1) // 3), size_text((m + 8 + 4) // 5 * 2)
    ('floor((1 + n)/3)', '2·ceil((8 + m)/5)')
    """
    if isinstance(size, int):
        return str(size)
    return " + ".join(_term(*term) for term in size.terms).replace("+ -", "- ")


def atom_text(atom: Atom) -> str:
    """A factor of a size."""
    return _rounded(atom) if isinstance(atom, Quotient) else atom


def _term(atoms: Monomial, count: int) -> str:
    numbers = [str(count)] if count not in (1, -1) or not atoms else []
    return ("-" if count == -1 and atoms else "") + "·".join([*numbers, *map(atom_text, atoms)])


def _rounded(of: Quotient) -> str:
    """A quotient as what is rounded up, if what makes it so was added, else down."""
    above: Extent = of.numerator - (of.denominator - 1)
    up = isinstance(above, Size) and all(count > 0 for _, count in above.terms)
    top, below = above if up else of.numerator, of.denominator
    if up and isinstance(top, Size) and isinstance(below, int):
        common = gcd(below, *(count for _, count in top.terms))
        top, below = top // common, below // common
    return f"{'ceil' if up else 'floor'}({_factor(top)}/{_factor(below)})"


def _factor(size: Extent) -> str:
    text = size_text(size)
    return f"({text})" if isinstance(size, Size) and len(size.terms) > 1 else text
