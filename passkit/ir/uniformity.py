"""Among which threads a value may differ."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from passkit.ast.expr import Binary, Const, Expr, Load, Var
from passkit.ast.walk import children
from passkit.ir.loop import WARP, Bind, LaunchShape, LoopBuffer, StorageScope, ThreadIndex


class Varies(IntEnum):
    """Among which threads a value may differ: blocks, warps of a block, threads of a warp."""

    BLOCKS = 0
    WARPS = 1
    THREADS = 2


def varies_among(
    x: Expr,
    launch: LaunchShape,
    buffers: Mapping[str, LoopBuffer],
    variables: Mapping[str, Varies],
    values: Mapping[str, Expr],
) -> Varies:
    """Return among which threads the value of an expression may differ.

    Args:
        x: the expression.
        launch: the threads of a block.
        buffers: the buffers by name.
        variables: among which threads variables differ.
        values: the values of `LetStmt` variables.
    """
    if isinstance(x, Const):
        return Varies.BLOCKS
    if isinstance(x, Var):
        return variables.get(x.name, Varies.THREADS)
    are_warps = launch.x % WARP == 0
    match x:
        case ThreadIndex(Bind.THREAD_X):
            return Varies.THREADS if launch.x > 1 else Varies.BLOCKS
        case ThreadIndex(Bind.THREAD_Y):
            of_y = Varies.WARPS if are_warps else Varies.THREADS
            return of_y if launch.y > 1 else Varies.BLOCKS
        case Binary("//", a, Const() as b) if are_warps and b.integer % WARP == 0:
            if isinstance(_resolved(a, values), ThreadIndex):
                return min(Varies.WARPS, varies_among(a, launch, buffers, variables, values))
        case Load(buffer, _) if buffer in buffers:
            if buffers[buffer].scope is StorageScope.REGISTER or buffers[buffer].written:
                return Varies.THREADS
    widest = Varies.BLOCKS
    for y in children(x):
        widest = max(widest, varies_among(y, launch, buffers, variables, values))
    return widest


def _resolved(x: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return the value of a variable of `LetStmt`, or ``x`` itself."""
    while isinstance(x, Var) and x.name in values:
        x = values[x.name]
    return x
