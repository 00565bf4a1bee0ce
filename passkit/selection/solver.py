"""Programs of choices, yes or no, and who solves them: HiGHS or CBC through PuLP, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from attrs import frozen

SOLVERS = ("HiGHS", "COIN_CMD", "PULP_CBC_CMD")
"""In this order; HiGHS solves small programs in the process, without files."""
HALF = 0.5


@frozen
class Program:
    """Choose what gains most, of each row's choices at most as many as stand beside it."""

    gains: Sequence[float]
    rows: Sequence[tuple[tuple[int, ...], int]]


@frozen
class Solution:
    """The choices, and who made them."""

    chosen: tuple[int, ...]
    solver: str


def solve(program: Program) -> Solution | None:
    """The best choices; None where there is no solver, or it did not finish."""
    name = solver_name()
    if name is None:
        return None
    import pulp  # takes a third of a second, and only plans need it

    model = pulp.LpProblem("selection", pulp.LpMaximize)
    add: Callable[..., Any] = getattr(model, "add_variable", None) or pulp.LpVariable
    chosen = [add(f"x{k}", cat="Binary") for k in range(len(program.gains))]
    model += pulp.lpSum(gain * x for gain, x in zip(program.gains, chosen, strict=True))
    for k, (row, most) in enumerate(program.rows):
        model += pulp.lpSum(chosen[j] for j in row) <= most, f"row{k}"
    found = model.solve(pulp.getSolver(name, msg=False, gapRel=0.0))
    status = getattr(found, "status", found)  # a number up to version 3, a record from 4 on
    if "optimal" not in str(pulp.LpStatus.get(status, status)).lower():
        return None
    values = [x.value() for x in chosen]
    return Solution(tuple(k for k, v in enumerate(values) if v is not None and v > HALF), name)


@cache
def solver_name() -> str | None:
    """The solver that is there."""
    try:
        import pulp
    except ImportError:
        return None
    there = pulp.listSolvers(onlyAvailable=True)
    return next((name for name in SOLVERS if name in there), None)
