"""Index algebra: canonical form and simplification of int64 expressions of loop variables.

An index is written as ``sum(coefficient * atom) + constant``. An atom is a loop variable, a
quotient, a remainder, or any other expression that is not simplified further. From the extents of
variables follows, for example, that ``(i*m + j) // m`` is ``i`` for j < m, as in reshapes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import frozen

from passkit.ast import Binary, Call, Const, Expr, SizeOf, Unary, Var, is_const, size_of
from passkit.ast.walk import walk
from passkit.values import dtype as dt
from passkit.values.size import Extent, Shape, Size, at_least, divide_exactly

Extents = Mapping[str, Extent]


class Known(dict[str, Extent]):
    """Immutable extents of variables, with a cache of canonical sums that hold for them."""

    __slots__ = ("sums",)
    MOST = 1024

    def __init__(self, extents: Iterable[tuple[str, Extent]]) -> None:
        super().__init__(extents)
        self.sums: dict[Expr, Sum] = {}


@frozen
class Sum:
    """A canonical index: ``sum(coefficient * atom) + constant``, with terms as pairs."""

    terms: tuple[tuple[Expr, Extent], ...]
    constant: Extent = 0

    def coefficient(self, var: Var) -> Extent:
        """Return the coefficient of a variable, 0 if it is no atom of the sum."""
        return next((c for a, c in self.terms if a == var), 0)


def _sum(terms: Mapping[Expr, Extent], constant: Extent) -> Sum:
    """Return a sum in canonical form: no zero terms, quotients recombined, terms sorted.

    ``terms`` has the coefficient of each atom, ``constant`` is added.
    """
    nonzero = {a: c for a, c in terms.items() if c != 0}
    if len(nonzero) < 2:
        return Sum(tuple(nonzero.items()), constant)
    merged, more = _recombine(nonzero)
    return Sum(tuple(sorted(merged.items(), key=_order)), constant + more)


def _order(term: tuple[Expr, Extent]) -> str:
    """Return the key that a term, a pair of atom and coefficient, is sorted by.

    It is the name of a variable, the repr of another atom.
    """
    atom = term[0]
    return atom.name if isinstance(atom, Var) else repr(atom)


def _recombine(terms: dict[Expr, Extent]) -> tuple[dict[Expr, Extent], Extent]:
    """Replace ``(x // d)*d*c + (x % d)*c`` by ``x*c``; return the terms and a constant to add.

    ``terms`` has the coefficient of each atom; it may be changed in place.
    """
    for atom, c in list(terms.items()):
        if isinstance(atom, Binary) and atom.op == "%" and isinstance(atom.b, (Const, SizeOf)):
            quotient = _quotient_of(atom, c, terms)
            if quotient is not None:
                del terms[quotient], terms[atom]
                inner = normal(quotient.a, Known(()))  # it remembers: quotients are nested
                for a, k in inner.terms:
                    terms[a] = terms.get(a, 0) + k * c
                rest, more = _recombine({a: k for a, k in terms.items() if k != 0})
                return rest, inner.constant * c + more
    return terms, 0


def _quotient_of(remainder: Binary, c: Extent, terms: Mapping[Expr, Extent]) -> Binary | None:
    """Return the quotient among ``terms`` that makes its dividend together with a remainder.

    ``c`` is the coefficient of the remainder, whose dividend may be another one that differs by a
    multiple of the divisor: ``x % 56 // 7 * 7 + (x + 7) % 7`` is ``x % 56``.
    """
    own = Binary("//", remainder.a, remainder.b, dt.int64)
    size = _extent(remainder.b)
    if terms.get(own) == c * size:
        return own
    for atom, k in terms.items():
        if isinstance(atom, Binary) and atom.op == "//" and atom.b == remainder.b:
            same = k == c * size and modulo(normal(atom.a, Known(())), size, Known(()))
            if same == Sum(((remainder, 1),)):
                return atom
    return None


def _extent(x: Expr) -> Extent:
    """Return the extent that a literal or a `SizeOf` is, an int or a Size."""
    return x.integer if isinstance(x, Const) else x.size  # type: ignore[attr-defined]


def add(a: Sum, b: Sum, scale: Extent = 1) -> Sum:
    """Return ``a + scale*b`` in canonical form."""
    if not b.terms:
        return Sum(a.terms, a.constant + b.constant * scale)
    if not a.terms and scale == 1:
        return Sum(b.terms, a.constant + b.constant)
    terms = dict(a.terms)
    for atom, c in b.terms:
        terms[atom] = terms.get(atom, 0) + c * scale
    return _sum(terms, a.constant + b.constant * scale)


def times(a: Sum, factor: Extent) -> Sum:
    """Return ``a * factor`` in canonical form."""
    if not a.terms or factor == 1:
        return Sum(a.terms, a.constant * factor)
    return _sum({atom: c * factor for atom, c in a.terms}, a.constant * factor)


def normal(x: Expr, extents: Extents) -> Sum:
    """Return the canonical sum of an int64 expression.

    ``extents`` are the exclusive upper bounds of variables, which begin at 0, by name. A part that
    is not linear becomes an atom. If they are `Known`, the sum is cached there.
    """
    if type(x) is Var:
        return Sum((), 0) if extents.get(x.name) == 1 else Sum(((x, 1),))
    if type(x) is Const:
        return Sum((), x.integer)
    if type(x) is SizeOf:
        return Sum((), x.size)
    if type(extents) is not Known:
        return _normalized(x, extents)
    cached = extents.sums.get(x)
    if cached is None:
        cached = _normalized(x, extents)
        if len(extents.sums) < Known.MOST:
            extents.sums[x] = cached
    return cached


def _normalized(x: Expr, extents: Extents) -> Sum:
    """Return the canonical sum of an operation; ``x`` as an atom if it is not linear.

    ``extents`` are the exclusive upper bounds of variables, which begin at 0.
    """
    total = None
    if type(x) is Binary and x.op in _OF_BINARY:
        total = operation(x.op, normal(x.a, extents), normal(x.b, extents), extents)
    elif type(x) is Unary and x.op == "-":
        total = times(normal(x.x, extents), -1)
    return Sum(((x, 1),)) if total is None else total


def operation(op: str, a: Sum, b: Sum, extents: Extents) -> Sum | None:
    """Return a binary operation of two sums as a sum; None if it is none.

    ``extents`` are the exclusive upper bounds of variables, which begin at 0, by name.
    """
    return _OF_BINARY[op](a, b, extents) if op in _OF_BINARY else None


def _product(a: Sum, b: Sum) -> Sum | None:
    """Return the product of two sums if one of them is constant, else None."""
    if not b.terms:
        return times(a, b.constant)
    return None if a.terms else times(b, a.constant)


_OF_BINARY: Mapping[str, Callable[[Sum, Sum, Extents], Sum | None]] = {
    "+": lambda a, b, extents: add(a, b),
    "-": lambda a, b, extents: add(a, b, -1),
    "*": lambda a, b, extents: _product(a, b),
    "//": lambda a, b, extents: None if b.terms else divide(a, b.constant, extents),
    "%": lambda a, b, extents: None if b.terms else modulo(a, b.constant, extents),
}
"""The sum that a binary operation of two sums is; None where it is an atom."""


def divide(a: Sum, d: Extent, extents: Extents) -> Sum:
    """Return ``a // d`` for a non-negative ``a``, see `divide_modulo`."""
    return divide_modulo(a, d, extents)[0]


def modulo(a: Sum, d: Extent, extents: Extents) -> Sum:
    """Return ``a % d`` for a non-negative ``a``, see `divide_modulo`.

    Remainders of a multiple of d are left out of ``a``: ``(i % d + 3) % d`` is ``(i + 3) % d``.
    """
    if d not in (0, 1) and not within(a, d, extents):
        a = _without_remainders(a, d, extents)
    return divide_modulo(a, d, extents)[1]


def _without_remainders(a: Sum, d: Extent, extents: Extents) -> Sum:
    """Return a sum that is ``a`` but for a multiple of d: dividends in the place of remainders.

    It is ``a`` itself if a coefficient may be negative then.
    """
    total = a
    for atom, c in a.terms:
        if isinstance(atom, Binary) and atom.op == "%" and isinstance(atom.b, (Const, SizeOf)):
            if divide_exactly(c * _extent(atom.b), d) is None:
                continue
            total = add(total, Sum(((atom, 1),)), -1 * c)
            total = add(total, normal(atom.a, extents), c)
    return a if _may_be_negative(total) else total


def divide_modulo(a: Sum, d: Extent, extents: Extents) -> tuple[Sum, Sum]:
    """Return ``a // d`` and ``a % d`` for a non-negative ``a``.

    Terms that d divides leave the quotient, and are not in the remainder. For d = 1 the quotient is
    ``a`` itself; for d = 0, an index into an empty array, both are 0. The sum stays one quotient,
    and one remainder, if what d does not divide has a coefficient that may be negative. ``extents``
    are the exclusive upper bounds of variables, by name.
    """
    if d == 1:
        return a, Sum(())
    if d == 0:
        return Sum(()), Sum(())
    whole, rest = _split(a, d)
    if _may_be_negative(rest):
        return _atoms(a, d)
    if within(rest, d, extents):
        return whole, rest
    for _, c in rest.terms:  # (i*4 + j) // 8 with j < 4 is i // 2
        smaller = divide_exactly(d, c)
        if smaller is not None and c != 1:
            high, low = _split(rest, c)
            if within(low, c, extents):
                quotient, remainder = divide_modulo(high, smaller, extents)
                return add(whole, quotient), add(times(remainder, c), low)
    quotient, remainder = _atoms(rest, d)
    return add(whole, quotient), remainder


def _atoms(a: Sum, d: Extent) -> tuple[Sum, Sum]:
    """Return ``a // d`` and ``a % d`` as an atom each."""
    dividend, divisor = expression(a), size_of(d)
    return (
        Sum(((Binary("//", dividend, divisor, dt.int64), 1),)),
        Sum(((Binary("%", dividend, divisor, dt.int64), 1),)),
    )


def _may_be_negative(a: Sum) -> bool:
    """Return whether a coefficient or the constant of a sum may be negative.

    Then it must not be split for a division, as C rounds toward 0: (8 - i) / 8 is not 1 + (-i) / 8.
    """
    return not all(at_least(c, 0) for c in (*(c for _, c in a.terms), a.constant))


def _split(a: Sum, d: Extent) -> tuple[Sum, Sum]:
    """Return ``(q, r)`` with ``a = q*d + r``, where q has every term that ``d`` divides, over d."""
    whole: dict[Expr, Extent] = {}
    rest: dict[Expr, Extent] = {}
    for atom, c in a.terms:
        exact = divide_exactly(c, d)
        if exact is None:
            rest[atom] = c
        else:
            whole[atom] = exact
    k = a.constant
    exact = divide_exactly(k, d)
    if exact is not None:
        return _sum(whole, exact), _sum(rest, 0)
    if isinstance(k, int) and isinstance(d, int):
        return _sum(whole, k // d), _sum(rest, k % d)
    return _sum(whole, 0), _sum(rest, k)


def within(a: Sum, limit: Extent, extents: Extents) -> bool:
    """Return whether 0 <= a < limit is certain for variables from 0 to below their ``extents``."""
    highest = _highest(a, extents)
    return highest is not None and at_least(a.constant, 0) and at_least(limit, highest + 1)


def is_exact(x: Expr, extents: Extents) -> bool:
    """Return whether no dividend of ``//`` and ``%`` in an index may be negative.

    The algebra rounds down, while C rounds toward 0.

    ``extents`` are the exclusive upper bounds of variables, by name.
    """
    return not any(
        isinstance(part, Binary)
        and part.op in ("//", "%")
        and _may_be_negative(normal(part.a, extents))
        for part in walk(x)
    )


def count_of(atom: Expr, extents: Extents) -> Extent | None:
    """Return an exclusive upper bound of an atom, a variable, quotient, remainder or clipped value.

    None if it is unknown, or the dividend may be negative. ``extents`` are the exclusive upper
    bounds of variables, by name.
    """
    if isinstance(atom, Binary) and _may_be_negative(normal(atom.a, extents)):
        return None
    top = _top(atom, extents)
    return None if top is None else top + 1


def _highest(a: Sum, extents: Extents) -> Extent | None:
    """Return the largest value of a sum for variables below their ``extents``.

    None if an atom has no known bound or a coefficient may be negative.
    """
    highest: Extent = a.constant
    for atom, c in a.terms:
        top = _top(atom, extents)
        if top is None or not at_least(c, 0):
            return None
        highest = highest + c * top
    return highest


def _top(atom: Expr, extents: Extents) -> Extent | None:
    """Return the largest value of an atom, or None if unknown.

    ``extents`` are the exclusive upper bounds of variables.
    """
    match atom:
        case Var(name) if name in extents:
            return extents[name] - 1
        case Binary("%", _, b) if isinstance(b, (Const, SizeOf)):
            return _extent(b) - 1
        case Binary("//", a, b) if isinstance(b, (Const, SizeOf)):
            above = _highest(normal(a, extents), extents)
            if above is None:
                return None
            d = _extent(b)
            if isinstance(above, int) and isinstance(d, int):
                return above // d
            exact = divide_exactly(above + 1, d)
            return None if exact is None else exact - 1
        case Call("minimum", (Call("maximum", (_, low)), high)) if is_const(low, 0) and isinstance(
            high, (Const, SizeOf)
        ):
            return _extent(high)
    return None


def expression(a: Sum) -> Expr:
    """Return a sum as an int64 expression, with the largest coefficients first.

    Symbolic coefficients are between the positive and the negative ones, the constant is last.
    """

    def weight(term: tuple[Expr, Extent]) -> tuple[int, str]:
        """Return the key that a term, a pair of atom and coefficient, is sorted by."""
        c = term[1]
        return (0, str(c)) if isinstance(c, Size) else (-c, "")

    out: Expr | None = None
    for atom, c in sorted(a.terms, key=weight):
        if c == -1 and out is not None:
            out = Binary("-", out, atom, dt.int64)
            continue
        term = atom if c == 1 else Binary("*", atom, size_of(c), dt.int64)
        out = term if out is None else Binary("+", out, term, dt.int64)
    if out is None:
        return size_of(a.constant)
    if a.constant == 0:
        return out
    if isinstance(a.constant, int) and a.constant < 0:
        return Binary("-", out, size_of(-a.constant), dt.int64)
    return Binary("+", out, size_of(a.constant), dt.int64)


def simplify(x: Expr, extents: Extents) -> Expr:
    """Return an equal index expression in canonical form, for variables from 0 below ``extents``.

    A size, and a variable that takes more than one value, is returned itself.
    """
    if isinstance(x, SizeOf) or (isinstance(x, Var) and extents.get(x.name) != 1):
        return x
    return expression(normal(x, extents))


def ravel(index: Sequence[Expr], shape: Shape, extents: Extents) -> Sum:
    """Return the row-major linear index of ``index`` in ``shape``, as a canonical sum.

    Indices along axes of extent 1 are ignored. ``extents`` are the exclusive upper bounds of
    variables, by name. Raises: ValueError where the numbers of indices and axes differ.
    """
    terms: dict[Expr, Extent] = {}
    constant: Extent = 0
    stride: Extent = 1
    for i, n in zip(reversed(index), reversed(shape), strict=True):
        if n != 1:
            part = normal(i, extents)
            for atom, c in part.terms:
                terms[atom] = terms.get(atom, 0) + c * stride
            constant = constant + part.constant * stride
        stride = n * stride
    return _sum(terms, constant)


def unravel(linear: Sum, shape: Shape, extents: Extents) -> tuple[Expr, ...]:
    """Return the index in ``shape`` whose row-major linear index is ``linear``.

    It has an expression for each axis, 0 along axes of extent 1. ``extents`` are the exclusive
    upper bounds of variables, by name, by which divisions are simplified.
    """
    out: list[Expr] = []
    rest = linear
    outermost = next((k for k, n in enumerate(shape) if n != 1), None)
    for k in range(len(shape) - 1, -1, -1):
        if shape[k] == 1:
            out.append(size_of(0))
        elif k == outermost:
            out.append(expression(rest))
        else:
            rest, own = divide_modulo(rest, shape[k], extents)
            out.append(expression(own))
    return tuple(reversed(out))


def common_refinement(shapes: Iterable[Shape]) -> Shape | None:
    """Return the coarsest shape from which each of ``shapes`` results by merging neighbours.

    All must have the same number of elements, not 0. Axes of extent 1 are left out. None if there
    is no such shape, as for (4, 6) and (6, 4).
    """
    cuts: list[Extent] = []
    total: Extent = 1
    for shape in shapes:
        total = 1
        for n in reversed(shape):
            total = n * total
            if total not in cuts:
                cuts.append(total)
    ordered: list[Extent] = [1]
    while cuts:
        last = ordered[-1]
        if last in cuts:
            cuts.remove(last)
            continue
        ready = [
            c
            for c in cuts
            if all(divide_exactly(o, c) is not None for o in cuts)
            and divide_exactly(c, last) is not None
        ]
        if not ready:
            return None
        ordered.append(ready[0])
        cuts.remove(ready[0])
    factors = [divide_exactly(high, low) for low, high in itertools.pairwise(ordered)]
    return tuple(f for f in reversed(factors) if f is not None)
