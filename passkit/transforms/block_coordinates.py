"""Coordinates of a stitched kernel's tile, and the windows of rows that they begin and end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from passkit.ast import Binary, Expr, Select, Var
from passkit.ast.index import Known, Sum, normal
from passkit.ast.stage import Buffer, Let, Loop
from passkit.diagnostics import Diagnostic
from passkit.ir.index import literal, times, with_literals
from passkit.ir.rewrite import substitute
from passkit.values import dtype as dt

ZERO = literal(0)


def resolved(x: Expr, names: Mapping[str, Expr]) -> Expr:
    """Return an index with literals in place of known sizes, and of variables what they stand for.

    ``names`` has that for the variables of a part.
    """
    return substitute(with_literals(x), names)


def ends_of(loop: Loop, names: Mapping[str, Expr]) -> tuple[Expr, Expr]:
    """Return where a loop starts and stops; ``names`` is as in `resolved`."""
    return resolved(loop.start, names), resolved(loop.stop, names)


@frozen(eq=False)
class Window:
    """The rows of a tile: the first one, how many there are at most, and how many are left.

    ``bound`` is None if all tiles have as many.
    """

    first: Expr
    rows: int
    bound: Expr | None


class BlockCoordinates:
    """The coordinates of a tile, collected from the parts of a kernel, and the algebra of indices.

    Args:
        shared: the arrays in shared memory.
        lengths: the elements of a row of each of them; 0 for a value of each row.

    Attributes:
        lets: the definitions of coordinates; those that several parts have are one.
        length_of: the elements of a row of each array, by its name.
        place: the first byte of each array, and its end.
    """

    def __init__(self, shared: Sequence[Buffer], lengths: Sequence[int]) -> None:
        self.lets: list[Let] = []
        self.length_of = dict(zip((b.name for b in shared), lengths, strict=True))
        self.place = {b.name: _bytes_of(b) for b in shared}
        self.sums = Known(())  # no extent is known; it caches sums

    def define(self, lets: Sequence[Let]) -> dict[str, Expr]:
        """Add definitions, and return what stands for the variables of a part.

        Two of one value are one; a multiple of a quotient or remainder is written as one, so that
        sums of several cancel.
        """
        names: dict[str, Expr] = {}
        for let in lets:
            value = with_literals(substitute(let.value, names))
            atom, factor = self._scaled(value)
            if isinstance(atom, Var):
                names[let.var.name] = times(atom, factor)
                continue
            name = let.var.name if factor == 1 else f"{let.var.name}_tile"
            names[let.var.name] = times(self._variable(name, atom), factor)
        return names

    def _variable(self, name: str, value: Expr) -> Var:
        """Return the variable of a value; a new one has the name, or a similar one."""
        for let in self.lets:
            if let.value == value:
                return let.var
        while any(x.var.name == name for x in self.lets):
            name += "_"
        self.lets.append(Let(Var(name, dt.int64), value))
        return Var(name, dt.int64)

    def window(self, first: Expr, last: Expr) -> Window | Diagnostic:
        """Return the rows from ``first`` up to ``last``, or that their number is not known."""
        count = self.sum(Binary("-", last, first, dt.int64))
        if not count.terms and isinstance(count.constant, int):
            return Window(first, count.constant, None)
        end, scale = self._scaled(last)
        end = next((x.value for x in self.lets if x.var == end), end)
        if isinstance(end, Select):
            step = self.sum(Binary("-", times(end.a, scale), first, dt.int64))
            if not step.terms and isinstance(step.constant, int):
                left = Binary("-", times(end.b, scale), first, dt.int64)
                is_whole = self._divides(step.constant, times(end.b, scale))
                return Window(first, step.constant, None if is_whole else left)
        return Diagnostic("block.rows")

    def sum(self, index: Expr) -> Sum:
        """Return an index in canonical form."""
        return normal(index, self.sums)

    def is_zero(self, x: Expr) -> bool:
        """Return whether an expression is the literal 0."""
        total = self.sum(x)
        return not total.terms and total.constant == 0

    def _scaled(self, x: Expr) -> tuple[Expr, int]:
        """Return an index as a variable, or another expression, times a literal."""
        total = self.sum(x)
        if len(total.terms) == 1 and total.constant == 0:
            atom, factor = total.terms[0]
            if isinstance(factor, int) and factor > 0:
                return atom, factor
        return x, 1

    def _divides(self, step: int, extent: Expr) -> bool:
        """Return whether windows of ``step`` rows divide an extent, as far as it is known."""
        total = self.sum(extent)
        return not total.terms and isinstance(total.constant, int) and total.constant % step == 0


def _bytes_of(b: Buffer) -> tuple[int, int]:
    """Return the first byte of an array in shared memory, and its end."""
    if not isinstance(b.offset, int) or not isinstance(b.extent, int):
        return 0, 1 << 62  # not known: it may lie anywhere
    return b.offset, b.offset + b.extent * b.dtype.nbytes
