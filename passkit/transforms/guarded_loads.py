"""Local variables for loads in branches of selects, each under the condition of its branch.

A load in a branch carries the conditions of all selects around it. Where those contain loads
themselves, as indices that are loaded do, the text would otherwise grow by a factor with each level
of nesting.
"""

from __future__ import annotations

from collections.abc import Callable

from passkit.ast import Binary, Expr, Load, Select, Unary, Var, const
from passkit.ast.tidy import replace_children
from passkit.ast.walk import children, has_loads
from passkit.values.dtype import bool_

BindLocal = Callable[[Expr], Var]
"""Defines a local variable for an expression and returns it."""


def bind_guarded_loads(x: Expr, bind: BindLocal) -> Expr:
    """Return ``x`` with local variables for its guarded loads, if their guards contain loads.

    select(i < n, select(p[i] < 0, 0, q[p[i]]), 0)    becomes
    a = i < n; p_i = select(a, p[i], 0); b = a & ~(p_i < 0); q_i = select(b, q[p_i], 0);
    select(i < n, select(p_i < 0, 0, q_i), 0)

    Args:
        x: the expression.
        bind: defines a local variable.
    """
    return _GuardedLoads(bind).bound(x, None) if _has_nested_guards(x, False) else x


def _has_nested_guards(x: Expr, is_guarded: bool) -> bool:
    """Return whether a guarded load has an index with a load, or a condition with one."""
    if is_guarded and isinstance(x, Load) and has_loads(x.index):
        return True
    if not isinstance(x, Select):
        return any(_has_nested_guards(part, is_guarded) for part in children(x))
    if is_guarded and has_loads(x.condition) and (has_loads(x.a) or has_loads(x.b)):
        return True
    operands = ((x.condition, is_guarded), (x.a, True), (x.b, True))
    return any(_has_nested_guards(part, guarded) for part, guarded in operands)


class _GuardedLoads:
    """The local variables of one expression.

    Attributes:
        bind: defines a local variable.
        results: the expressions with local variables, by original and guard.
        guards: the local variables of guards, by condition.
        outer: the guard around each guard; None for an outermost one.
    """

    def __init__(self, bind: BindLocal) -> None:
        self.bind = bind
        self.results: dict[tuple[Expr, Expr | None], Expr] = {}
        self.guards: dict[Expr, Var] = {}
        self.outer: dict[Var, Var | None] = {}

    def bound(self, x: Expr, guard: Var | None) -> Expr:
        """Return ``x`` with local variables for guarded loads.

        Args:
            x: the expression.
            guard: the condition under which ``x`` is computed; None for always. Only loads with a
                guard get a local variable.
        """
        if not has_loads(x):
            return x
        outer = guard
        while (x, outer) not in self.results:
            if outer is None:
                self.results[x, guard] = self._bound(x, guard)
                return self.results[x, guard]
            outer = self.outer[outer]
        return self.results[x, outer]

    def _bound(self, x: Expr, guard: Var | None) -> Expr:
        """Return `bound` of an expression that is not in ``results``."""
        if isinstance(x, Select):
            condition = self.bound(x.condition, guard)
            taken, other = self.guard(guard, condition), self.guard(guard, _negated(condition))
            a = self.bound(x.a, taken()) if has_loads(x.a) else x.a
            b = self.bound(x.b, other()) if has_loads(x.b) else x.b
            return Select(condition, a, b, x.dtype)
        new = replace_children(x, lambda part: self.bound(part, guard))
        if isinstance(x, Load) and guard is not None:
            return self.bind(Select(guard, new, const(0, x.dtype), x.dtype))
        return new

    def guard(self, outer: Var | None, condition: Expr) -> Callable[[], Var]:
        """Return a function that defines the guard of a branch when it is first called."""

        def define() -> Var:
            inner = condition if outer is None else Binary("&", outer, condition, bool_)
            if inner not in self.guards:
                self.guards[inner] = self.bind(inner)
                self.outer.setdefault(self.guards[inner], outer)
            return self.guards[inner]

        return define


def _negated(condition: Expr) -> Expr:
    """Return the negation of a condition."""
    return Unary("~", condition, bool_)
