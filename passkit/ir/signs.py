"""Signs: which values are 0 or less, or NaN, whatever is fed; functions of them may do less.

So it is with a value minus the greatest of its row, as softmax takes the exponential of. Only
floats are looked at: integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from passkit.ast import VARIANTS, Binary, Call, Cast, Const, Expr, Select, Unary, Var
from passkit.ast.tidy import replace_children

AT_LEAST_0 = frozenset(["abs", "sqrt", "exp", "exp2", "sigmoid", *VARIANTS])
"""Functions that are never below 0."""


@frozen
class Sign:
    """Whether a value is never above 0, and whether it is never below; NaN is neither."""

    below: bool = False
    above: bool = False

    def __neg__(self) -> Sign:
        return Sign(self.above, self.below)

    def __and__(self, other: Sign) -> Sign:
        return Sign(self.below and other.below, self.above and other.above)


class Signs:
    """The signs of the locals of a stage; ``at_most`` tells which values never exceed which."""

    def __init__(self, at_most: Callable[[Expr, Expr], bool]) -> None:
        self.at_most = at_most
        self.known: dict[Var, Sign] = {}
        self.negated: dict[Expr, Expr] = {}

    def bind(self, var: Var, value: Expr) -> None:
        """Let ``var`` be ``value``."""
        self.known[var] = self.of(value)
        match value:
            case Unary("-", a):
                self.negated[var] = a

    def with_variants(self, x: Expr) -> Expr:
        """An expression whose functions are those for the arguments that they are known to get."""
        match replace_children(x, self.with_variants):
            case Call("exp", (a,), dtype) if self.of(a).below:
                return Call("exp_nonpositive", (a,), dtype)
            case made:
                return made

    def of(self, x: Expr) -> Sign:
        """The sign of a value. A zero may have either sign, so that quotients are rarely known."""
        match x:
            case _ if not x.dtype.is_float:
                return Sign()
            case Var():
                return self.known.get(x, Sign())
            case Const():
                value = float(x.value)
                return Sign(value <= 0, value >= 0)
            case Unary("-", a):
                return -self.of(a)
            case Cast(a):
                return self.of(a)
            case Select(_, a, b):
                return self.of(a) & self.of(b)
            case Binary(op, a, b):
                return self._of_two(op, a, b)
            case Call("minimum" | "maximum" as name, (a, b)):
                one, other = self.of(a), self.of(b)
                if name == "minimum":
                    return Sign(one.below or other.below, one.above and other.above)
                return Sign(one.below and other.below, one.above or other.above)
            case Call(name) if name in AT_LEAST_0:
                return Sign(above=True)
        return Sign()

    def _of_two(self, op: str, a: Expr, b: Expr) -> Sign:
        one, other = self.of(a), self.of(b)
        match op:
            case "+":
                return one & other
            case "-":
                apart = one & -other
                return Sign(apart.below or self.at_most(a, b), apart.above or self.at_most(b, a))
            case "*" if a == b:
                return Sign(above=True)
            case "*" if self._negated(a) == b or self._negated(b) == a:
                return Sign(below=True)
            case "*":
                same = (one.above and other.above) or (one.below and other.below)
                unlike = (one.above and other.below) or (one.below and other.above)
                return Sign(unlike, same)
            case "/" if isinstance(b, Const) and b.value != 0:
                return one if float(b.value) > 0 else -one
        return Sign()

    def _negated(self, x: Expr) -> Expr | None:
        """The operand where a value is written as a negation; else None."""
        match x:
            case Unary("-", a):
                return a
        return self.negated.get(x)
