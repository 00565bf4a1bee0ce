"""Integer programs of binary choices, and their solvers: HiGHS, and a search for small ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from ctypes import CDLL
from functools import cache
from importlib import import_module
from typing import Any

from attrs import frozen

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
    """Return the best choices by HiGHS; None if it is not installed, or did not finish."""
    if not has_solver():
        return None
    highspy: Any = import_module("highspy")  # takes a seventh of a second, and only plans need it
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    for gain in program.gains:
        highs.addBinary(-gain)  # the least sum is found
    for row, most in program.rows:
        highs.addRow(-highspy.kHighsInf, most, len(row), list(row), [1.0] * len(row))
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    values = highs.getSolution().col_value
    return Solution(tuple(k for k, v in enumerate(values) if v > HALF), "HiGHS")


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
def has_solver() -> bool:
    """Return whether HiGHS is installed; discard its name and licence, which it prints once."""
    try:
        highspy: Any = import_module("highspy")
    except ImportError:
        return False
    try:
        kept = os.dup(1)
    except OSError:  # there is no output to keep clean
        return True
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        highspy.Highs()
        CDLL(None).fflush(None)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(null)
    return True
