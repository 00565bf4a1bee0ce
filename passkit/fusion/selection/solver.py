"""Integer programs of binary choices, and their solvers: HiGHS or CBC, through PuLP."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from ctypes import CDLL
from functools import cache
from importlib import import_module
from typing import Any

from attrs import frozen

SOLVERS = ("HiGHS", "COIN_CMD", "PULP_CBC_CMD")
"""In this order; HiGHS solves small programs in the process, without files."""
HALF = 0.5


@frozen
class Program:
    """A program: the choices that gain most together under constraints.

    Attributes:
        gains: the gain of each choice.
        rows: constraints: some choices, and how many of them can be made at most.
    """

    gains: Sequence[float]
    rows: Sequence[tuple[tuple[int, ...], int]]


@frozen
class Solution:
    """The choices of a program.

    Attributes:
        chosen: the numbers of the choices.
        solver: the name of the solver.
    """

    chosen: tuple[int, ...]
    solver: str


def solve(program: Program) -> Solution | None:
    """Return the best choices; None if there is no solver, or it did not finish."""
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
    status = model.solve(pulp.getSolver(name, msg=False, gapRel=0.0))
    if not _is_optimal(status):
        return None
    values = [x.value() for x in chosen]
    return Solution(tuple(k for k, v in enumerate(values) if v is not None and v > HALF), name)


def _is_optimal(status: Any) -> bool:
    """Return whether a status of PuLP is "optimal".

    It is a number up to version 3, a record in version 4, and a text from version 4.2 on.
    """
    value = getattr(status, "status_str", getattr(status, "status", status))
    return value == 1 or "optimal" in str(value).lower()


def searched(program: Program) -> Solution:
    """Return the best choices of a small program, by branch and bound."""
    order = sorted(range(len(program.gains)), key=lambda j: (-program.gains[j], j))
    left = [sum(max(0.0, program.gains[j]) for j in order[k:]) for k in range(len(order) + 1)]
    rows = [(frozenset(row), most) for row, most in program.rows]
    best_gain, best = 0.0, frozenset[int]()
    todo = [(0, 0.0, frozenset[int]())]
    while todo:
        k, gain, chosen = todo.pop()
        if gain > best_gain:
            best_gain, best = gain, chosen
        if k == len(order) or gain + left[k] <= best_gain:
            continue
        j = order[k]
        todo.append((k + 1, gain, chosen))
        more = chosen | {j}
        if all(len(more & row) <= most for row, most in rows if j in row):
            todo.append((k + 1, gain + program.gains[j], more))
    return Solution(tuple(sorted(best)), "search")


@cache
def solver_name() -> str | None:
    """Return the name of the first solver that is available; None if none is."""
    try:
        import pulp
    except ImportError:
        return None
    available = pulp.listSolvers(onlyAvailable=True)
    name = next((name for name in SOLVERS if name in available), None)
    if name == "HiGHS":
        _suppress_greeting()
    return name


def _suppress_greeting() -> None:
    """Discard the name and licence that HiGHS prints once, whatever its settings."""
    highs: Any = import_module("highspy").Highs
    try:
        kept = os.dup(1)
    except OSError:  # there is no output to keep clean
        return
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        highs()
        CDLL(None).fflush(None)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(null)
