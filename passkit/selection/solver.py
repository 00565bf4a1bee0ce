"""Programs of choices, yes or no, and who solves them: HiGHS or CBC through PuLP, by name."""

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
    if not _is_optimal(found):
        return None
    values = [x.value() for x in chosen]
    return Solution(tuple(k for k, v in enumerate(values) if v is not None and v > HALF), name)


def _is_optimal(found: Any) -> bool:
    """Whether PuLP says so: by a number up to version 3, from 4 on by a record, 4.2 by its name."""
    said = getattr(found, "status_str", getattr(found, "status", found))
    return said == 1 or "optimal" in str(said).lower()


def searched(program: Program) -> Solution:
    """The best choices of a small program, by trying all that could be better than the best."""
    order = sorted(range(len(program.gains)), key=lambda j: (-program.gains[j], j))
    left = [sum(max(0.0, program.gains[j]) for j in order[k:]) for k in range(len(order) + 1)]
    rows = [(frozenset(row), most) for row, most in program.rows]
    best, kept = 0.0, frozenset[int]()
    todo = [(0, 0.0, frozenset[int]())]
    while todo:
        k, gain, chosen = todo.pop()
        if gain > best:
            best, kept = gain, chosen
        if k == len(order) or gain + left[k] <= best:
            continue
        j = order[k]
        todo.append((k + 1, gain, chosen))
        more = chosen | {j}
        if all(len(more & row) <= most for row, most in rows if j in row):
            todo.append((k + 1, gain + program.gains[j], more))
    return Solution(tuple(sorted(kept)), "search")


@cache
def solver_name() -> str | None:
    """The solver that is there."""
    try:
        import pulp
    except ImportError:
        return None
    there = pulp.listSolvers(onlyAvailable=True)
    name = next((name for name in SOLVERS if name in there), None)
    if name == "HiGHS":
        _greeted()
    return name


def _greeted() -> None:
    """Let HiGHS print its name and licence, which it does once whatever its settings, to nobody."""
    make: Any = import_module("highspy").Highs
    try:
        kept = os.dup(1)
    except OSError:  # there is no output to keep clean
        return
    nobody = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nobody, 1)
        make()
        CDLL(None).fflush(None)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nobody)
