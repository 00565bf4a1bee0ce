"""Parts that an expression has more than once, to be computed once."""

from __future__ import annotations

from collections import Counter

from passkit.ast import Expr, Load, Select
from passkit.ast.walk import children, walk


def common_subexpressions(x: Expr) -> list[Expr]:
    """The operations that occur in ``x`` more than once, inner ones first.

    What loads in an arm of a select is only among them if it is computed in any case.
    """
    count: Counter[Expr] = Counter()
    always: set[Expr] = set()
    order: list[Expr] = []

    def visit(part: Expr, guarded: bool) -> None:
        if isinstance(part, Load) or not children(part):
            return  # an index is no value
        count[part] += 1
        known = count[part] > 1
        if known and (guarded or part in always):
            return
        if not guarded:
            always.add(part)
        for k, child in enumerate(children(part)):
            visit(child, guarded or (isinstance(part, Select) and k > 0))
        if not known:
            order.append(part)

    visit(x, False)
    return [p for p in order if count[p] > 1 and (p in always or not _loads(p))]


def _loads(x: Expr) -> bool:
    return any(isinstance(part, Load) for part in walk(x))
