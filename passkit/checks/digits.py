"""The digits of an index: values that follow from it, such as the row and column of an element."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from attrs import evolve, frozen

from passkit.ast.expr import Binary, Const, Expr, SizeOf, Var
from passkit.ast.index import Sum, divide
from passkit.checks.mixed_radix import are_digits
from passkit.checks.size_bounds import SizeBounds
from passkit.values.size import Extent, Size, at_least, divide_exactly, known_factor


@frozen
class Path:
    """How a digit follows from an index: ``source // divisor % limit``.

    Indices with equal paths have their digits in common.

    Attributes:
        source: () for the index itself; else a quotient and a remainder, whose dividend it is.
        divisor: the divisor.
        limit: what the remainder is of; None for the quotient itself.
        others: further divisors and limits, where they are no such quotient and remainder.
    """

    source: tuple[Hashable, ...]
    divisor: Extent = 1
    limit: Extent | None = None
    others: tuple[Hashable, ...] = ()

    def divided(self, by: Extent) -> Path:
        """Return the path of the quotient of the digit by a number."""
        if by == 1:
            return self
        limit = None if self.limit is None else divide_exactly(self.limit, by)
        if self.others or (self.limit is not None and limit is None):
            return evolve(self, others=(*self.others, "//", by))
        return Path(self.source, self.divisor * by, limit)

    def remainder(self, by: Extent) -> Path:
        """Return the path of the remainder of the digit."""
        if self.others or (self.limit is not None and divide_exactly(self.limit, by) is None):
            return evolve(self, others=(*self.others, "%", by))
        return Path(self.source, self.divisor, by)


Quotients = dict[tuple[Sum, Extent], Path]
"""The quotients that follow from an index, by dividend and divisor."""


def digits_of(index: Sum, bounds: SizeBounds) -> dict[str, Path]:
    """Return the variables that follow from the value of an index, each with how it does.

    Args:
        index: the index.
        bounds: what is known of its variables.
    """
    return _Digits(bounds).variables(index)


def _degree(size: Extent) -> tuple[int, int]:
    """Return the key by which the coefficients of an index are tried: smaller ones first.

    These divide others more often, so that the digits of equal indices have equal paths.
    """
    terms = size.terms if isinstance(size, Size) else ()
    return max((len(monomial) for monomial, _ in terms), default=0), sum(c for _, c in terms)


class _Digits:
    """The digits of one index, as they are found."""

    def __init__(self, bounds: SizeBounds) -> None:
        self.bounds = bounds
        self.found: dict[str, Path] = {}
        self.quotients: Quotients = {}
        self.remainders: dict[tuple[Sum, Extent, Extent], Path] = {}

    def variables(self, index: Sum) -> dict[str, Path]:
        """Return the variables that follow from an index."""
        todo: list[tuple[Sum, Path]] = [(index, Path(()))]
        done: set[Sum] = set()
        while todo:
            x, path = todo.pop()
            if x in done:
                continue
            done.add(x)
            for level, own in self._levels(x, path):
                self._add_digits(level, own)
            todo += self._dividends()
        return self.found

    def _levels(self, x: Sum, path: Path) -> Iterator[tuple[Sum, Path]]:
        """Yield sums with known coefficients that follow from a sum, each with how it does.

        A sum ``a * n + b`` with ``0 <= b < n`` gives ``a`` and ``b``. The sum itself follows by
        ``path``.
        """
        sizes: list[Extent] = [c for _, c in x.terms if isinstance(c, Size)]
        if not sizes and self._are_digits(x):
            yield x, path
            return
        sizes = sorted(sizes, key=_degree) or [c for _, c in x.terms if c != 1]
        for size in dict.fromkeys(sizes):
            whole: list[tuple[Expr, Extent]] = []
            rest: list[tuple[Expr, Extent]] = []
            for atom, c in x.terms:
                quotient = divide_exactly(c, size)
                if quotient is None:
                    rest.append((atom, c))
                else:
                    whole.append((atom, quotient))
            if not sizes and not rest:
                continue
            constant = divide_exactly(x.constant, size)
            low = Sum(tuple(rest), x.constant if constant is None else 0)
            if self.bounds.is_below(low, size):
                high = Sum(tuple(whole), 0 if constant is None else constant)
                yield from self._levels(high, path.divided(size))
                yield from self._levels(low, path.remainder(size))
                return
        yield x, path

    def _are_digits(self, x: Sum) -> bool:
        """Return whether each atom of a sum with known coefficients is a remainder of a quotient.

        All larger coefficients, and the constant, are multiples of what an atom counts to then.
        """
        counts = [(c, self.bounds.count_by_form(atom)) for atom, c in x.terms]
        periods = [c * n for c, n in counts if isinstance(n, int) and n > 1]
        pairs = [(c, k) for c, _ in counts for k in periods if at_least(c, k)]
        pairs += [(x.constant, k) for k in periods]
        return are_digits(counts) and all(divide_exactly(c, k) is not None for c, k in pairs)

    def _add_digits(self, x: Sum, path: Path) -> None:
        """Add the atoms of a sum with known coefficients that are digits of it in a mixed radix."""
        digits = [(c, a, self.bounds.count(a)) for a, c in x.terms if isinstance(c, int) and c > 0]
        if len(digits) < len(x.terms):
            return
        digits.sort(key=lambda digit: (digit[0], digit[2] != 1))
        reach = 0
        for k, (step, atom, count) in enumerate(digits):
            if reach >= step:
                return
            above = [c for c, _, _ in digits[k + 1 :]]
            if isinstance(count, int):
                for limit in (self.bounds.count_by_form(atom), count):  # equal paths are preferred
                    if isinstance(limit, int) and all(
                        c % (step * limit) == 0 for c in (*above, known_factor(x.constant))
                    ):
                        self._add(atom, path.divided(step).remainder(limit))
                        break
                reach += step * (count - 1)
            elif not above and x.constant == 0:
                self._add(atom, path.divided(step))
            else:
                return

    def _add(self, atom: Expr, path: Path) -> None:
        """Add an atom that follows from the index."""
        match atom:
            case Var(name):
                self.found[name] = path
            case Binary("//", _, Const() | SizeOf()):
                self.quotients[self._quotient(self.bounds.sum(atom))] = path
            case Binary("%", a, b) if isinstance(b, (Const, SizeOf)):
                base, divisor = self._quotient(self.bounds.sum(a))
                self.remainders[base, divisor, self.bounds.sum(b).constant] = path

    def _quotient(self, x: Sum) -> tuple[Sum, Extent]:
        """Return a sum as a quotient: its dividend, and its divisor, which is 1 for another sum."""
        if len(x.terms) == 1 and x.constant == 0 and x.terms[0][1] == 1:
            match x.terms[0][0]:
                case Binary("//", a, b) if isinstance(b, (Const, SizeOf)):
                    base, divisor = self._quotient(self.bounds.sum(a))
                    return base, self.bounds.sum(b).constant * divisor
        return x, 1

    def _dividends(self) -> list[tuple[Sum, Path]]:
        """Return the dividends that follow from quotients and remainders of them."""
        out: list[tuple[Sum, Path]] = []
        while True:
            more: Quotients = {}
            for (base, divisor, limit), low in self.remainders.items():
                high = self.quotients.get((base, limit * divisor))
                if high is not None and (base, divisor) not in self.quotients:
                    more[base, divisor] = Path((high, low, limit))
            out += self._quotients_of_parts()
            if not more:
                return out
            self.quotients |= more
            out += [(base, path) for (base, divisor), path in more.items() if divisor == 1]

    def _quotients_of_parts(self) -> Iterator[tuple[Sum, Path]]:
        """Yield sums ``x // s`` that follow from ``x // (s * d)`` and from ``x // s % d``."""
        for (part, divisor, limit), low in self.remainders.items():
            for (base, of_base), high in self.quotients.items():
                s = divide_exactly(of_base, limit) if divisor == 1 else None
                if s is not None and s != 1 and divide(base, s, self.bounds.extents) == part:
                    yield part, Path((high, low, limit))
