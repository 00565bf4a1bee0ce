"""The values of vector loops: expressions at all points of an iteration.

An expression that differs from point to point of the inner loop becomes a vector, every other one
stays a number. Indices stay numbers, those of a vector's first point.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import evolve, field, frozen

from passkit.ast import (
    Binary,
    Call,
    Const,
    Expr,
    Load,
    Select,
    Var,
)
from passkit.ast.tidy import replace_children
from passkit.ast.walk import variables, walk
from passkit.ir.strides import Stride, stride_of
from passkit.ir.vector import (
    MASK,
    Column,
    Gather,
    GuardedLoad,
    Lane,
    Masked,
    Prepared,
    RowRegister,
    Splat,
    WideLoad,
)
from passkit.transforms.pack_rows import (
    RowGroups,
)
from passkit.transforms.vector_shape import (
    loads_from,
)
from passkit.values import dtype as dt


@frozen
class Divisors:
    """The divisors of a loop, each with the name of its prepared form.

    Attributes:
        first: the number of the first of them in the kernel.
        names: the names.
    """

    first: int
    names: dict[Expr, str] = field(factory=dict)

    def name(self, value: Expr) -> str:
        """Return the name of a divisor, which is new if it was not asked for before."""
        return self.names.setdefault(value, f"by{self.first + len(self.names)}")


@frozen
class VectorValues:
    """Expressions at all points of an iteration of a vector loop.

    Attributes:
        var: the loop's variable.
        vectors: the variables that differ from point to point.
        divisors: what all points are divided by; None where there is no place to prepare it.
        mask: the points for which expressions are computed.
        like: a vector of the length of the loop's vectors.
        is_unrolled: whether the loop is unrolled, so that its vectors have numbers.
        columns: loads of rows of a few elements, which are loaded together.
        inner: the variables of a loop inside the vector loop: no divisor with these is prepared.
        registers: the arrays of vectors that hold a row.
        groups: the groups of rows that an iteration has, if it has several rows.
        is_brief: whether the loop has so few vectors that a divisor is not worth a preparation.
    """

    var: Var
    vectors: frozenset[Var]
    divisors: Divisors | None
    mask: Expr = MASK
    like: Expr = MASK
    is_unrolled: bool = False
    columns: Mapping[Load, Column] = field(factory=dict)
    inner: frozenset[Var] = frozenset()
    registers: frozenset[str] = frozenset()
    groups: RowGroups | None = None
    is_brief: bool = False

    def is_vector(self, x: Expr) -> bool:
        """Return whether an expression differs from point to point."""
        return any(v in self.vectors for v in variables(x))

    def splat(self, x: Expr) -> Expr:
        """Return an expression as a vector, even where all points have the same number."""
        value = self.value(x)
        return value if self.is_vector(x) else Splat(value, self.like, x.dtype)

    def stride(self, index: Expr) -> Stride | None:
        """Return how far an index moves from point to point; None if it moves unevenly."""
        return stride_of(index, self.var, self.is_vector)

    def row_distance(self, index: Expr) -> Stride | None:
        """Return how far apart two rows of a group begin, if one does not follow the other."""
        return None if self.groups is None else self.groups.distance(index)

    def value(self, x: Expr) -> Expr:
        """Return an expression at all points, a number where they have the same."""
        if not self.is_vector(x):
            return x if self.mask == MASK else self._guarded(x)
        match x:
            case Var():
                return Lane(x) if x == self.var else x
            case Load():
                return self._load(x)
            case Binary():
                return self._binary(x)
            case Call("maximum" | "minimum", (a, b)):
                return Call(x.name, (self._operand(a, b), self._operand(b, a)), x.dtype)
            case Call():
                return Call(x.name, tuple(map(self.splat, x.args)), x.dtype)
            case Select():
                return self._select(x)
        return replace_children(x, self.value)

    def _guarded(self, x: Expr) -> Expr:
        """Return an expression of one number that loads nothing if no point needs it."""
        if isinstance(x, Load):
            return GuardedLoad(x.buffer, self._guarded(x.index), self.mask, x.dtype)
        return replace_children(x, self._guarded)

    def _load(self, x: Load) -> Expr:
        """Return the elements that the points load."""
        if x in self.columns:
            return self.columns[x]
        if x.buffer in self.registers:
            return RowRegister(x.buffer, x.dtype)
        stride = self.stride(x.index)
        if stride is not None:
            distance = self.row_distance(x.index)
            return WideLoad(x.buffer, x.index, stride, self.mask, x.dtype, distance)
        if self._is_computed(x.index):
            return Gather(x.buffer, self.value(x.index), self.mask, None, x.dtype)
        return Gather(x.buffer, x.index, self.mask, self.var, x.dtype)

    def _is_computed(self, index: Expr) -> bool:
        """Return whether an index is made of vectors other than the loop's variable."""
        return any(isinstance(x, Load) and self.is_vector(x) for x in walk(index)) or any(
            v in self.vectors and v != self.var for v in variables(index)
        )

    def _binary(self, x: Binary) -> Expr:
        """Return an operator at all points."""
        if x.op in ("/", "//", "%") and x.a.dtype.is_integer:
            name = "fmod" if x.op == "%" else "cut_divide"
            return Call(name, (self.splat(x.a), self.splat(x.b)), x.dtype)
        if self.divisors is not None and self._is_shared_quotient(x):
            divisor = Prepared(self.divisors.name(x.b), self.is_unrolled, x.dtype)
            return Binary("/", self.value(x.a), divisor, x.dtype)
        if x.a.dtype is dt.bool_:  # masks do not mix with numbers
            return Binary(x.op, self.splat(x.a), self.splat(x.b), x.dtype)
        return Binary(x.op, self.value(x.a), self.value(x.b), x.dtype)

    def _is_shared_quotient(self, x: Binary) -> bool:
        """Return whether all points are divided by a number that can be prepared.

        Under a condition of its own a division may not load its divisor in front of the loop.
        """
        if x.op != "/" or not x.dtype.is_float or _is_power_of_two(x.b):
            return False
        if self.is_brief and not isinstance(x.b, Const):
            return False
        is_of_row = self.groups is not None and x.b in self.groups.divisors
        if self.is_vector(x.b) and not is_of_row:
            return False
        if not self.inner.isdisjoint(variables(x.b)):
            return False
        return self.mask == MASK or not loads_from(x.b)

    def _select(self, x: Select) -> Expr:
        """Return a choice: both values, each for the points that choose it, where these differ."""
        if not self.is_vector(x.condition):
            condition = self.value(x.condition)
            return Select(condition, self.splat(x.a), self.splat(x.b), x.dtype)
        condition = self.splat(x.condition)
        chosen, other = (
            evolve(self, mask=Masked(self.mask, condition, is_negated))
            for is_negated in (False, True)
        )
        a, b = chosen._operand(x.a, x.b), other._operand(x.b, x.a)
        return Select(condition, a, b, x.dtype)

    def _operand(self, x: Expr, other: Expr) -> Expr:
        """Return an operand of a function that takes a number beside another vector of floats."""
        is_plain = x.dtype.is_float and self.is_vector(other)
        return self.value(x) if is_plain else self.splat(x)


def _is_power_of_two(x: Expr) -> bool:
    """Return whether dividing by a literal is exactly multiplying by its reciprocal."""
    return isinstance(x, Const) and bool(x.value) and abs(np.frexp(x.value)[0]) == 0.5
