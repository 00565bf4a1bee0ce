"""Loads in the arms of selects: each bound once, under a local that says where it is wanted.

A load in an arm carries the conditions of all arms around it. Where those are loaded themselves,
as indices that are data may be, texts within texts would grow with each level by a factor.
"""

from __future__ import annotations

from collections.abc import Callable

from passkit.ast import Binary, Expr, Load, Select, Unary, Var, const
from passkit.ast.tidy import replace_children
from passkit.ast.walk import children, walk
from passkit.values.dtype import bool_

MakeLocal = Callable[[Expr], Var]
"""Makes a local for an expression."""


def bind_guarded_loads(x: Expr, bind: MakeLocal) -> Expr:
    """``x``, where loads in arms are locals if conditions or indices in arms are loaded.

    select(i < n, select(p[i] < 0, 0, q[p[i]]), 0)    becomes
    a = i < n; p_i = select(a, p[i], 0); b = a & ~(p_i < 0); q_i = select(b, q[p_i], 0);
    select(i < n, select(p_i < 0, 0, q_i), 0)
    """
    return _Arms(bind).named(x, None) if _nests(x, False) else x


def _nests(x: Expr, guarded: bool) -> bool:
    """Whether a load in an arm is at an index, or under a condition, that is loaded in one."""
    if guarded and isinstance(x, Load) and _loads(x.index):
        return True
    if not isinstance(x, Select):
        return any(_nests(part, guarded) for part in children(x))
    if guarded and _loads(x.condition) and (_loads(x.a) or _loads(x.b)):
        return True
    return _nests(x.condition, guarded) or _nests(x.a, True) or _nests(x.b, True)


class _Arms:
    """Names for what arms load; ``path`` says where an expression is wanted, None everywhere."""

    def __init__(self, bind: MakeLocal) -> None:
        self.bind = bind
        self.known: dict[tuple[Expr, Expr | None], Expr] = {}
        self.paths: dict[Expr, Var] = {}
        self.around: dict[Var, Var | None] = {}
        """The path of the arm that another path's arm stands in."""

    def named(self, x: Expr, path: Var | None) -> Expr:
        """``x`` with its guarded loads bound; only those of its own arms where ``path`` is None."""
        if not _loads(x):
            return x
        around = path
        while (x, around) not in self.known:
            if around is None:
                self.known[x, path] = self._named(x, path)
                return self.known[x, path]
            around = self.around[around]
        return self.known[x, around]

    def _named(self, x: Expr, path: Var | None) -> Expr:
        if isinstance(x, Select):
            condition = self.named(x.condition, path)
            taken, other = self.path(path, condition), self.path(path, Unary("~", condition, bool_))
            a = self.named(x.a, taken()) if _loads(x.a) else x.a
            b = self.named(x.b, other()) if _loads(x.b) else x.b
            return Select(condition, a, b, x.dtype)
        found = replace_children(x, lambda part: self.named(part, path))
        if isinstance(x, Load) and path is not None:
            return self.bind(Select(path, found, const(0, x.dtype), x.dtype))
        return found

    def path(self, outer: Var | None, condition: Expr) -> Callable[[], Var]:
        """The local that is true where an arm is wanted, made when it is asked for."""

        def local() -> Var:
            inner = condition if outer is None else Binary("&", outer, condition, bool_)
            if inner not in self.paths:
                self.paths[inner] = self.bind(inner)
                self.around.setdefault(self.paths[inner], outer)
            return self.paths[inner]

        return local


def _loads(x: Expr) -> bool:
    return any(isinstance(part, Load) for part in walk(x))
