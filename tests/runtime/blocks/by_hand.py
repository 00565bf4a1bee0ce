"""Hand-written kernels: constructors of the ASTs that the block interpreter runs, and runs of them.

No graph leads to a wrong kernel, so that tests of the interpreter's checks build ASTs themselves:
with the constructors below, or with the classes of `passkit.ast.stage`, which are offered here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from passkit import ast
from passkit.ast import Expr, Load, Operand, Var, const
from passkit.ast.stage import (
    Buffer,
    Dot,
    Fold,
    KernelAST,
    Let,
    Level,
    Loop,
    Matrix,
    Part,
    Phase,
    Place,
    Prefetch,
    Running,
    Stage,
    Statement,
    Store,
)
from passkit.errors import BlocksError
from passkit.graph.kernel import Kernel
from passkit.runtime.blocks import run_blocks
from passkit.runtime.blocks.entry import BlocksEntry
from passkit.values import dtype as dt

__all__ = [
    "F32",
    "LANE",
    "LARGEST",
    "ROW",
    "SUM",
    "TILE",
    "TURN",
    "Buffer",
    "Dot",
    "KernelAST",
    "Let",
    "Level",
    "Matrix",
    "Phase",
    "Place",
    "Prefetch",
    "Running",
    "Stage",
    "Store",
    "entry_of",
    "fault",
    "fold",
    "kernel",
    "load",
    "loop",
    "number",
    "part",
    "run",
    "run_blocks",
    "shared",
    "stage",
    "store",
]

TILE, ROW, LANE, TURN = (Var(name, dt.int64) for name in ("tile", "row", "i", "j"))
F32 = dt.float32
SUM = ast.left(F32) + ast.right(F32)
LARGEST = ast.maximum(ast.left(F32), ast.right(F32))


def number(x: Operand) -> Expr:
    """Return an index expression."""
    return x if isinstance(x, Expr) else const(x, dt.int64)


def loop(
    var: Var, stop: Operand, level: Level = Level.CTA, start: Operand = 0, **more: Any
) -> Loop:
    """Return a loop from ``start`` to ``stop``."""
    return Loop(var, number(start), number(stop), level, **more)


def load(buffer: str, index: Operand) -> Load:
    """Return a load of an element of a float32 buffer."""
    return Load(buffer, number(index), F32)


def store(buffer: str, index: Operand, value: Operand) -> Store:
    """Return a store to an element of a float32 buffer."""
    return Store(buffer, number(index), ast.lift(value, F32))


def fold(name: str, value: Expr, buffer: str | None = None, index: Expr | None = None) -> Fold:
    """Return a sum, to a variable or to an element of a buffer."""
    return Fold(Var(name, F32), value, const(0, F32), SUM, buffer, index)


def stage(name: str, loops: Loop | tuple[Loop, ...], *body: Statement, **more: Any) -> Stage:
    """Return a stage of one loop, or several."""
    return Stage(name, loops if isinstance(loops, tuple) else (loops,), body, **more)


def part(*stages: Stage | Dot, rows: Loop | None = None, **more: Any) -> Part:
    """Return a part with stages of a tile, or of each of its rows."""
    return Part((), rows, (), stages, **more)


def kernel(
    *parts: Part, tiles: int = 1, x: int = 8, y: int = 8, scratch: tuple[Buffer, ...] = ()
) -> KernelAST:
    """Return a kernel of one phase that reads ``x`` elements of x0 and writes ``y`` of y0."""
    params = Buffer("x0", F32, Place.GLOBAL, x), Buffer("y0", F32, Place.GLOBAL, y, written=True)
    phase = Phase(loop(TILE, tiles, Level.GRID), parts)
    return KernelAST(params, (), scratch, (phase,))


def shared(extent: int = 8, of_row: bool = False) -> Buffer:
    """Return the scratch buffer s0, of a tile or of each row."""
    return Buffer("s0", F32, Place.SHARED, extent, True, of_row)


def run(built: KernelAST, barriers: str = "loops", seed: int = 0) -> Any:
    """Run a kernel with x0 = 1, 2, 3, …; return y0."""
    x, y = (np.zeros(b.extent, np.float32) for b in built.params)
    x[:] = 1 + np.arange(x.size)
    run_blocks(built, [x, y], {}, name="by_hand", barriers=barriers, seed=seed)
    return y


def entry_of(built: Kernel) -> BlocksEntry:
    """Return a kernel, which a test has changed, as a function of sizes, inputs and outputs."""
    return BlocksEntry(built, "loops")


def fault(text: str) -> Any:
    """Return a context that expects a BlocksError with a text."""
    return pytest.raises(BlocksError, match=text)
