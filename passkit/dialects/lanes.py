"""Lane loops: how many lanes a turn takes, and expressions in them, where the language has vectors.

A value that differs from lane to lane is printed as a vector, every other one as a scalar. So is an
index: a vector begins at that of its first lane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, frozen

from passkit.ast import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Unary,
    Var,
    const,
)
from passkit.ast.stage import Loop, Stage
from passkit.ast.walk import variables, walk
from passkit.dialects.base import Dialect, Vectors
from passkit.dialects.expressions import (
    ATOM,
    TERNARY,
    UNARY,
    Scalars,
    converted,
    division,
    enclosed,
    literal,
    operator,
)
from passkit.ir.reciprocal import reciprocal
from passkit.ir.strides import Stride, stride_of
from passkit.ir.vector import VECTOR_WIDTH
from passkit.transforms.vector_shape import loads_from, loop_shape
from passkit.values import dtype as dt

if TYPE_CHECKING:
    from passkit.dialects.pairs import Pairs

MASK = "m"
"""The lanes in which a turn of the loop is active."""
NUMBERED = "m, k"
"""The same, and which vector of its row that is, where a row is printed without a loop."""


def turns(stage: Stage, lane: Loop, dialect: Dialect) -> tuple[str, int]:
    """Return the template that opens the inner loop of a stage, and the points of an iteration."""
    v = dialect.vectors
    if v is None:
        return dialect.lane, VECTOR_WIDTH
    shape = loop_shape(stage, lane, bool(v.fixed))
    if shape.is_reversed:
        return v.down_loop, shape.width
    if shape.is_unrolled:
        return v.fixed, shape.width
    if shape.is_aligned:
        return v.aligned_loop, shape.width
    return v.loop if shape.width == VECTOR_WIDTH else v.pack_loop, shape.width


@frozen
class Lanes:
    """The lanes that an expression is for: those of a turn of a loop, or fewer, under a mask.

    ``var`` is the loop's variable, ``varying`` are it and all that depend on it. A scalar becomes a
    vector of the lanes of ``like``. What divides all lanes gets a name in ``divisors`` when it is
    met, numbered from ``first_divisor``; without that table there is no place to prepare it, and
    none for what is ``inner``, made in a loop inside the lanes. The vectors of a ``fixed`` row are
    numbered; some lanes of the last one may hold zeros, which would be slow to divide. They are
    those of two rows at a time where there are ``pairs``.
    """

    scalars: Scalars
    vectors: Vectors
    var: Var
    varying: frozenset[Var]
    first_divisor: int = 0
    divisors: dict[Expr, str] | None = None
    mask: str = MASK
    like: str = MASK
    fixed: bool = False
    pairs: Pairs | None = None
    inner: frozenset[Var] = frozenset()

    def varies(self, x: Expr) -> bool:
        """Whether a value differs from lane to lane, so that it is printed as a vector."""
        return any(v in self.varying for v in variables(x))

    def expr(self, x: Expr, outer: int = 0) -> str:
        """The text of an expression inside one of precedence ``outer``."""
        return enclosed(*self._leveled(x), outer)

    def splat(self, x: Expr) -> str:
        """An expression as a vector, even where all lanes agree."""
        text = self.expr(x)
        if self.varies(x):
            return text
        kind = self.scalars.dialect.type_of(x.dtype)
        return self.vectors.splat.format(type=kind, value=text, like=self.like)

    def step(self, index: Expr) -> Stride | None:
        """How far an index moves from one lane to the next; None when unevenly."""
        return stride_of(index, self.var, self.varies)

    def stride(self, step: Stride) -> str:
        """The text of a step."""
        return self.scalars.expr(step, UNARY) if isinstance(step, Expr) else str(step)

    def apart(self, index: Expr) -> str | None:
        """How far from the first row of a pair the second one lies, if it does not follow it."""
        stride = None if self.pairs is None else self.pairs.stride(index)
        if self.pairs is None or stride is None or stride == self.pairs.length:
            return None
        return self.stride(stride)

    def _leveled(self, x: Expr) -> tuple[str, int]:
        if self.varies(x):
            match x:
                case Var() if x == self.var:
                    return self.vectors.lane_value.format(var=x.name), ATOM
                case Load():
                    return self._load(x), ATOM
                case Unary(op, a):
                    return op + self.expr(a, UNARY + 1), UNARY
                case Binary():
                    return self._binary(x)
                case Call():
                    return self._call(x), ATOM
                case Cast():
                    return converted(x, self.expr, self.scalars.dialect), UNARY
                case Select():
                    return self._select(x), ATOM
        return self._uniform(x)

    def _uniform(self, x: Expr) -> tuple[str, int]:
        """A value that all lanes share; in an arm of a select that no lane takes, it loads none."""
        if self.mask == MASK:
            return self.scalars.leveled(x)
        return evolve(self.scalars, guard=self.mask).leveled(x)

    def _load(self, x: Load) -> str:
        if x.buffer in self.scalars.registers:
            return self.scalars.element(x.buffer, x.index)
        step = self.step(x.index)
        if step is None and self._is_looked_up(x.index):
            at = self.expr(x.index)
            return self.vectors.gather_at.format(buffer=x.buffer, index=at, mask=self.mask)
        if step is None:
            return self.vectors.gather.format(
                type=self.scalars.dialect.type_of(x.dtype),
                var=self.var.name,
                buffer=x.buffer,
                index=self.scalars.expr(x.index),
                mask=self.mask,
            )
        at = self.scalars.address(x.buffer, x.index)
        v = self.vectors
        apart = self.apart(x.index)
        if apart is not None:
            return v.pairs.load.format(at=at, mask=self.mask, stride=apart)
        whole = {1: v.load, 2: v.load_second, -1: v.load_back}.get(step)  # type: ignore[arg-type]
        if whole is not None:
            return whole.format(at=at, mask=self.mask)
        return self.vectors.load_strided.format(at=at, stride=self.stride(step), mask=self.mask)

    def _is_looked_up(self, index: Expr) -> bool:
        """Whether an index is made of values that differ from lane to lane."""
        return any(isinstance(x, Load) and self.varies(x) for x in walk(index)) or any(
            v in self.varying and v != self.var for v in variables(index)
        )

    def _binary(self, x: Binary) -> tuple[str, int]:
        name = division(x, self.scalars.dialect)
        if name is not None:
            return f"{name}({self.splat(x.a)}, {self.splat(x.b)})", ATOM
        op, level, right = operator(x)
        shared = op == "/" and x.dtype.is_float and self._is_shared(x.b)
        if shared and not _is_power_of_two(x.b) and not (self.mask != MASK and loads_from(x.b)):
            return f"{self.expr(x.a, level)} / {self._divisor(x.b, right)}", level
        if x.a.dtype is dt.bool_:  # masks do not mix with scalars
            sides = (x.a, level), (x.b, right)
            a, b = (self.expr(s, n) if self.varies(s) else self.splat(s) for s, n in sides)
            return f"{a} {op} {b}", level
        return f"{self.expr(x.a, level)} {op} {self.expr(x.b, right)}", level

    def _is_shared(self, b: Expr) -> bool:
        """Whether all lanes, or all of a row, are divided by the same number."""
        return not self.varies(b) or (self.pairs is not None and b in self.pairs.divisors)

    def _call(self, x: Call) -> str:
        if x.name in ("maximum", "minimum"):
            texts = [self._operand(*x.args), self._operand(*x.args[::-1])]
        else:
            texts = list(map(self.splat, x.args))
        return f"{self.scalars.dialect.call_of(x.name, x.dtype)}({', '.join(texts)})"

    def _select(self, x: Select) -> str:
        """Both arms, each under the mask of its own lanes; one, where all lanes choose alike."""
        if not self.varies(x.condition):
            return self.vectors.branch.format(
                condition=self.expr(x.condition, TERNARY + 1), a=self.splat(x.a), b=self.splat(x.b)
            )
        condition = self.splat(x.condition)
        chosen, other = (
            evolve(self, mask=template.format(mask=self.mask, condition=condition))
            for template in (self.vectors.both, self.vectors.only)
        )
        a, b = chosen._operand(x.a, x.b), other._operand(x.b, x.a)
        return self.vectors.select.format(condition=condition, a=a, b=b)

    def _operand(self, x: Expr, other: Expr) -> str:
        """One of two operands of a function that takes a scalar beside a vector."""
        plain = x.dtype.is_float and self.varies(other)
        return self.expr(x) if plain else self.splat(x)

    def _divisor(self, b: Expr, outer: int) -> str:
        """What divides all lanes: in a loop the name of what `divisor_line` prepares."""
        if self.divisors is None or not self.inner.isdisjoint(variables(b)):
            return self.expr(b, outer)
        name = self.divisors.setdefault(b, f"by{self.first_divisor + len(self.divisors)}")
        return self.vectors.among.format(name=name, mask=NUMBERED) if self.fixed else name

    def divisor_line(self, b: Expr, name: str) -> str:
        """What stands in front of the loop: a divisor, its reciprocal taken once."""
        template, high, low = self.vectors.divisor, "", ""
        if isinstance(b, Const) and (pair := reciprocal(float(b.value), b.dtype.nbytes)):
            template = self.vectors.known_divisor
            high, low = (literal(const(x, b.dtype), self.scalars.dialect) for x in pair)
        kind, value = self.scalars.dialect.type_of(b.dtype), self.scalars.expr(b)
        return template.format(type=kind, name=name, value=value, high=high, low=low)


def _is_power_of_two(x: Expr) -> bool:
    """Whether dividing by a literal is exactly multiplying by its reciprocal."""
    return isinstance(x, Const) and bool(x.value) and abs(np.frexp(x.value)[0]) == 0.5
