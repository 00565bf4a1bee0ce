"""The digits of an index: values that follow from it, such as the row and column of an element."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from passkit.ast.expr import Binary, Const, Expr, SizeOf, Var
from passkit.ast.index import Sum
from passkit.checks.mixed_radix import are_digits
from passkit.checks.size_bounds import SizeBounds
from passkit.values.size import Extent, Size, at_least, divide_exactly, known_factor

Path = Hashable
"""How a digit is computed from an index, the same for all indices with equal paths."""
Quotients = dict[tuple[Sum, Extent], Path]
"""The quotients that follow from an index, by dividend and divisor."""


def digits_of(index: Sum, bounds: SizeBounds) -> dict[str, Path]:
    """Return the variables that follow from the value of an index, each with how it does.

    Args:
        index: the index.
        bounds: what is known of its variables.
    """
    return _Digits(bounds).variables(index)


def _degree(size: Extent) -> tuple[int, str]:
    """Return the key by which the coefficients of an index are tried, the last one first."""
    terms = size.terms if isinstance(size, Size) else ()
    return max((len(monomial) for monomial, _ in terms), default=0), str(size)


class _Digits:
    """The digits of one index, as they are found."""

    def __init__(self, bounds: SizeBounds) -> None:
        self.bounds = bounds
        self.found: dict[str, Path] = {}
        self.quotients: Quotients = {}
        self.remainders: dict[tuple[Sum, Extent, Extent], Path] = {}

    def variables(self, index: Sum) -> dict[str, Path]:
        """Return the variables that follow from an index."""
        todo: list[tuple[Sum, Path]] = [(index, ())]
        done: set[Sum] = set()
        while todo:
            x, path = todo.pop()
            if x in done:
                continue
            done.add(x)
            for level, own in self._levels(x):
                self._add_digits(level, (path, own))
            todo += self._dividends()
        return self.found

    def _levels(self, x: Sum) -> Iterator[tuple[Sum, Path]]:
        """Yield sums with known coefficients that follow from a sum, each with how it does.

        A sum ``a * n + b`` with ``0 <= b < n`` gives ``a`` and ``b``.
        """
        sizes: list[Extent] = [c for _, c in x.terms if isinstance(c, Size)]
        if not sizes and self._are_digits(x):
            yield x, ()
            return
        sizes = sorted(sizes, key=_degree, reverse=True) or [c for _, c in x.terms if c != 1]
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
                for level, path in self._levels(high):
                    yield level, ("//", size, path)
                for level, path in self._levels(low):
                    yield level, ("%", size, path)
                return
        yield x, ()

    def _are_digits(self, x: Sum) -> bool:
        """Return whether each atom of a sum with known coefficients is a remainder of a quotient.

        All larger coefficients, and the constant, are multiples of what an atom counts to then.
        """
        counts = [(c, self.bounds.count(atom)) for atom, c in x.terms]
        periods = [c * n for c, n in counts if isinstance(n, int) and n > 1]
        pairs = [(c, k) for c, _ in counts for k in periods if at_least(c, k)]
        pairs += [(x.constant, k) for k in periods]
        return are_digits(counts) and all(divide_exactly(c, k) is not None for c, k in pairs)

    def _add_digits(self, x: Sum, path: Path) -> None:
        """Add the atoms of a sum with known coefficients that are digits of it in a mixed radix."""
        counted = sorted((c, str(a), a) for a, c in x.terms if isinstance(c, int) and c > 0)
        if len(counted) < len(x.terms):
            return
        reach = 0
        for k, (step, _, atom) in enumerate(counted):
            if reach >= step:
                return
            count = self.bounds.count(atom)
            above = [c for c, _, _ in counted[k + 1 :]]
            if isinstance(count, int):
                period = step * count
                if all(c % period == 0 for c in (*above, known_factor(x.constant))):
                    self._add(atom, (path, step, count))
                reach += step * (count - 1)
            elif not above and x.constant == 0:
                self._add(atom, (path, step, None))
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
                    more[base, divisor] = (high, low, limit)
            if not more:
                return out
            self.quotients |= more
            out += [(base, path) for (base, divisor), path in more.items() if divisor == 1]
