"""Quotients of float32 that have a shorter form, for languages in which divisions are slow.

`prelude/device_math.h` has the functions. All of them give the division's bits; those that do so
only for quotients that are not next to 0 are used where the statements give the same results for
any other number next to 0, such as in erf(x / 1.5) + 1.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence

from attrs import field, frozen

from passkit.ast import Binary, Call, Const, Expr, Select, Unary, Var
from passkit.ast.stage import Fold, Let, Prefetch, Running, Statement, Store
from passkit.ast.tidy import map_statement, replace_children
from passkit.ast.walk import children, walk
from passkit.ir.reciprocal import is_quotient, reciprocal
from passkit.ir.signs import Signs
from passkit.values import dtype as dt

NEAR_0 = {"known": 2.0**-70, "reciprocal": 2.0**-126}
"""Below these, the quotients by a known divisor, and reciprocals, may have other bits."""
TINY = 2.0**-40
"""A value that other bits change is followed as long as its size is below this."""
ABSORBED = 2.0**-26
"""A float plus or minus less than this part of it, is the float."""
SLOPE_OF_AT_MOST_2 = frozenset(
    ["erf", "tanh", "sin", "tan", "atan", "asin", "sinh", "asinh", "atanh", "expm1", "log1p"]
)
"""Odd functions, and others, that are below twice the argument next to 0, and 0 at 0."""
ONE_AT_0 = frozenset(["exp", "exp2", "exp_nonpositive", "cos", "cosh"])
NEAR_QUOTIENT = "near_quotient"
"""The function of a dividend and a literal, where the bits of results next to 0 do not matter."""
RECIPROCALS = ("reciprocal", "near_reciprocal")
"""The functions of a divisor from 1 to infinity; the second may be wrong next to 0."""
MOST_WITH_SIGN = 1.9
"""Quotients by less than this are 0 only if their dividend is."""


@frozen
class Proof:
    """Properties of a quotient that allow a shorter form.

    Attributes:
        near_0: other bits change nothing where it is next to 0.
        at_least_1: it is the reciprocal of a number from 1 to infinity, or of NaN.
    """

    near_0: bool = False
    at_least_1: bool = False


def proofs_of(statements: Iterable[Statement], varying: Container[Var]) -> dict[Expr, Proof]:
    """Return what is known of the quotients in statements, which all follow each other.

    Nothing else reads locals that are ``varying``.
    """
    kept = tuple(statements)
    quotients: dict[Expr, None] = {}
    for s in kept:
        for value in _values(s):
            quotients.update(dict.fromkeys(x for x in walk(value) if is_quotient(x)))
    if not quotients:
        return {}
    signs = Signs(lambda a, b: False)
    lets: dict[Var, Expr] = {}
    for s in kept:
        if isinstance(s, Let):
            signs.bind(s.var, s.value)
            lets[s.var] = s.value
    proofs: dict[Expr, Proof] = {}
    for x in quotients:
        at_least_1 = _is_reciprocal_from_1(x, signs, lets)
        proofs[x] = Proof(_changes_nothing(x, at_least_1, kept, varying), at_least_1)
    return proofs


def _values(s: Statement) -> list[Expr]:
    if isinstance(s, Prefetch):
        return []
    return [s.value, s.combine] if isinstance(s, (Fold, Running)) else [s.value]


def _is_reciprocal_from_1(x: Expr, signs: Signs, lets: dict[Var, Expr]) -> bool:
    """Whether a quotient is 1 over the sum of a number from 1 on and one that is not negative."""
    if not isinstance(x, Binary) or not isinstance(x.a, Const) or float(x.a.value) != 1:
        return False
    b = lets.get(x.b, x.b) if isinstance(x.b, Var) else x.b
    if not isinstance(b, Binary) or b.op != "+":
        return False
    pairs = ((b.a, b.b), (b.b, b.a))
    return any(isinstance(p, Const) and float(p.value) >= 1 and signs.of(q).above for p, q in pairs)


def _changes_nothing(
    x: Expr, is_reciprocal: bool, statements: Iterable[Statement], varying: Container[Var]
) -> bool:
    """Whether no result depends on the bits of a quotient that is next to 0."""
    assert isinstance(x, Binary)
    if is_reciprocal:
        near = _Near(x, NEAR_0["reciprocal"], False)
    elif isinstance(x.b, Const) and reciprocal(abs(float(x.b.value)), 4) is not None:
        near = _Near(x, NEAR_0["known"], abs(float(x.b.value)) < MOST_WITH_SIGN)
    else:
        return False
    for s in statements:
        states = [near.of(v) for v in _values(s)]
        if isinstance(s, Let) and s.var in varying:
            near.locals[s.var] = states[0]
        elif any(state is None or not state.same for state in states):
            return False
        if isinstance(s, Store) and near.of(s.index) != SAME:
            return False
    return True


@frozen
class _State:
    """A value while a quotient is next to 0: whether all bits are the ``same``, and its size.

    It is at most ``most``, if that is not None. If it is not the same, it has the sign that it has
    to have; where ``zeros``, it is 0 only if it should be.
    """

    same: bool
    most: float | None = None
    zeros: bool = False


SAME = _State(True)


@frozen
class _Near:
    """Which values depend on the bits of ``quotient`` where that is below ``bound``."""

    quotient: Expr
    bound: float
    zeros: bool
    locals: dict[Var, _State | None] = field(factory=dict, eq=False)

    def of(self, x: Expr) -> _State | None:
        """Return the state of a value; None where nothing is operand_states."""
        if x == self.quotient:
            return _State(False, self.bound, self.zeros)
        match x:
            case Const():
                value = abs(float(x.value)) if x.dtype.is_float else math.inf
                return _State(True, value if math.isfinite(value) else None)
            case Var():
                return self.locals.get(x, SAME)
        states = [self.of(child) for child in children(x)]
        if any(s is None for s in states):
            return None
        operand_tile_maps = [s for s in states if s is not None]
        if all(s.same for s in operand_tile_maps):
            return self._of_same(x, operand_tile_maps)
        if x.dtype not in (dt.float32, dt.bool_):
            return None
        return self._of(x, operand_tile_maps)

    def _of_same(self, x: Expr, states: list[_State]) -> _State:
        most = None
        sizes = [s.most for s in states]
        match x:
            case Call("exp_nonpositive" | "sigmoid" | "tanh" | "erf" | "sin" | "cos"):
                most = 1.0
            case Unary("-") | Call("abs"):
                most = sizes[0]
            case Binary("+" | "-" | "*" as op) if x.dtype is dt.float32:
                one, other = sizes
                if one is not None and other is not None:
                    most = one * other if op == "*" else one + other
            case Select():
                if sizes[1] is not None and sizes[2] is not None:
                    most = max(sizes[1], sizes[2])
        return _State(True, most if most is not None and most < 2.0**40 else None)

    def _of(self, x: Expr, states: list[_State]) -> _State | None:
        """That of a value with an operand that is next to 0."""
        match x:
            case Unary("-") | Call("abs"):
                return states[0]
            case Call(name) if name in ONE_AT_0:
                return _State(True, 1.0)
            case Call(name) if name in SLOPE_OF_AT_MOST_2:
                return self._small(2 * (states[0].most or 0))
            case Call("maximum" | "minimum"):
                return self._small(max(s.most or 0 for s in states)) if _small(states) else None
            case Select():
                a, b = states[1:]
                return (
                    self._small(max(a.most or 0, b.most or 0))
                    if states[0].same and _small([a, b])
                    else None
                )
            case Binary("*"):
                a, b = states
                return None if a.most is None or b.most is None else self._small(a.most * b.most)
            case Binary("/", _, Const() as c) if float(c.value):
                return self._small((states[0].most or 0) / abs(float(c.value)))
            case Binary("+" | "-", a, b):
                return self._sum(x, (a, b), states)
            case Binary("<" | "<=" | ">" | ">=" | "==" | "!=", a, b):
                one, other = (a, states[0]) if states[1].same else (b, states[1])
                limit = b if states[1].same else a
                if isinstance(limit, Const) and not other.same and one.dtype is dt.float32:
                    value = abs(float(limit.value))
                    if value > (other.most or math.inf) or (value == 0 and other.zeros):
                        return SAME
        return None

    def _sum(self, x: Expr, terms: tuple[Expr, Expr], states: list[_State]) -> _State | None:
        """A sum: that of a number that is known and one next to 0 is the number."""
        for term, other in ((terms[0], states[1]), (terms[1], states[0])):
            if isinstance(term, Const) and not other.same:
                value = abs(float(term.value))
                if (other.most or math.inf) < value * ABSORBED and math.isfinite(value):
                    return _State(True, value)
        return self._small(sum(s.most or 0 for s in states)) if _small(states) else None

    def _small(self, most: float) -> _State | None:
        return _State(False, most) if most < TINY else None


def _small(states: Iterable[_State]) -> bool:
    return all(s.most is not None and s.most < TINY for s in states)


def with_short_quotients(
    statements: Sequence[Statement], varying: Container[Var], owners: Sequence[Statement] = ()
) -> list[Statement]:
    """Return statements with calls in place of the quotients that have a shorter form.

    Args:
        statements: the statements, which all follow each other.
        varying: the locals that nothing else reads.
        owners: statements in front of them, whose quotients stay.
    """
    proofs = proofs_of((*owners, *statements), varying)
    if not any(p.near_0 or p.at_least_1 for p in proofs.values()):
        return [*statements]

    def change(x: Expr) -> Expr:
        proof = proofs.get(x, Proof())
        inner = replace_children(x, change)
        if not isinstance(inner, Binary) or not is_quotient(inner):
            return inner
        if proof.at_least_1:
            return Call(RECIPROCALS[proof.near_0], (inner.b,), inner.dtype)
        if proof.near_0 and isinstance(inner.b, Const):
            return Call(NEAR_QUOTIENT, (inner.a, inner.b), inner.dtype)
        return inner

    return [map_statement(s, change) for s in statements]
