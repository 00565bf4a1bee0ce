"""Common subexpressions of one expression."""

from __future__ import annotations

from collections import Counter

from passkit.ast import Expr, Load, Select
from passkit.ast.walk import children, has_loads


def common_subexpressions(x: Expr) -> list[Expr]:
    """Return the operations that occur in ``x`` more than once, operands before their users.

    Indices of loads are not searched. An operation with a load is left out if all its occurrences
    are in branches of selects, since the load may be out of bounds elsewhere.
    """
    count: Counter[Expr] = Counter()
    unconditional: set[Expr] = set()
    order: list[Expr] = []

    def visit(part: Expr, is_guarded: bool) -> None:
        if isinstance(part, Load) or not children(part):
            return
        count[part] += 1
        is_repeated = count[part] > 1
        if is_repeated and (is_guarded or part in unconditional):
            return
        if not is_guarded:
            unconditional.add(part)
        for k, child in enumerate(children(part)):
            visit(child, is_guarded or (isinstance(part, Select) and k > 0))
        if not is_repeated:
            order.append(part)

    visit(x, False)
    return [p for p in order if count[p] > 1 and (p in unconditional or not has_loads(p))]
