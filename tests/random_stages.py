"""Random kernel ASTs at tiny sizes: parts with and without rows that share scratch and a result."""

from __future__ import annotations

import random
from collections.abc import Iterator

from attrs import evolve

from passkit.ast import Binary, Expr, Load, Var, const, left, right, where
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
    Stage,
    Store,
)
from passkit.values import dtype as dt

F32 = dt.float32
TILE, ROW, COL, STEP = (Var(n, dt.int64) for n in ("tile", "row", "col", "step"))
LOW, HIGH, AT = (Var(n, dt.int64) for n in ("low", "high", "at"))
WIDTH, ROWS, TILES = 4, 3, 2
"""Lanes of a row, rows of a tile, tiles of a block."""


def number(n: int) -> Expr:
    """A literal index."""
    return const(n, dt.int64)


class RandomKernel:
    """A random kernel AST, built from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def ast(self) -> KernelAST:
        """A kernel of one to three parts of one to three stages."""
        of_row = {"r0": True, "r1": True}
        parts = tuple(self._part() for _ in range(self.rng.randint(1, 3)))
        scratch = tuple(
            Buffer(n, F32, Place.SHARED, WIDTH * ROWS, True, of_row.get(n, False), at)
            for n, at in (
                ("s0", 0),
                ("s1", 64),
                ("s2", self.rng.choice([0, 128, 256])),
                ("r0", None),
                ("r1", None),
            )
        )
        params = (Buffer("x0", F32, Place.GLOBAL, 99), Buffer("y0", F32, Place.GLOBAL, 99, True))
        phase = Phase(Loop(TILE, number(0), number(TILES), Level.GRID), parts)
        return KernelAST(params, (), scratch, (phase,))

    def _part(self) -> Part:
        """A part over rows, or one whose lanes are all of the tile's."""
        self.rows = self.rng.random() < 0.5
        self.scratch = ["s0", "s1", "s2"] + ["r0", "r1"] * 2 * self.rows
        start = TILE * ROWS
        lets: tuple[Let, ...] = (Let(LOW, start), Let(HIGH, self._end()))
        rows = Loop(ROW, LOW, HIGH, Level.WARP) if self.rows else None
        stages = tuple(self._stage(k) for k in range(self.rng.randint(1, 3)))
        return Part(lets, rows, (), stages)

    def _end(self) -> Expr:
        end, last = TILE * ROWS + ROWS, number(ROWS * TILES)
        return where(end < last, end, last)

    def _stage(self, k: int) -> Stage | Dot:
        """Loops and statements: what is written is not read by the same stage but in its place."""
        kind = self.rng.random()
        target = self.rng.choice([*self.scratch, "y0"])
        if kind < 0.1 and target != "y0" and not self.rows:
            return self._dot(k, target)
        self.over_rows = not self.rows and self.rng.random() < 0.3
        in_rows = self.rows or self.over_rows
        loops = (Loop(ROW, LOW, HIGH, Level.WARP),) if self.over_rows else ()
        if kind < 0.25 and target[0] == "s":  # one number for a row, or for the tile
            return self._single(k, loops, target, ROW - LOW if in_rows else number(0))
        at = self._own(target, in_rows)
        value = self._value(target, True)
        if self.rng.random() < 0.3:
            value = value + Load(target, at, F32)
        store = Store(target, at, value)
        if self.rng.random() < 0.2 and target != "y0":
            fold = Fold(
                Var("f", F32),
                self._value(target, True),
                const(0, F32),
                left(F32) + right(F32),
                target,
                at,
            )
            serial = Loop(STEP, number(0), number(2), Level.THREAD)
            return Stage(f"stage{k}", (*loops, serial, self._lanes()), (fold,))
        if self.rng.random() < 0.2:
            body = (Let(AT, at), evolve(store, index=AT))
            return Stage(f"stage{k}", (*loops, self._lanes()), body)
        return Stage(f"stage{k}", (*loops, self._lanes()), (store,))

    def _single(self, k: int, loops: tuple[Loop, ...], target: str, at: Expr) -> Stage:
        """A stage that writes one element, as all its lanes together."""
        if not self.over_rows:
            return Stage(f"stage{k}", (), (Store(target, at, self._value(target, False)),))
        body = (Let(Var("v", F32), self._value(target, True)),)
        after = (Store(target, at, const(1, F32)),)
        return Stage(f"stage{k}", (*loops, self._lanes()), body, after=after)

    def _lanes(self) -> Loop:
        wide = WIDTH if self.rows or self.over_rows else WIDTH * ROWS
        down = self.rng.random() < 0.15
        return Loop(COL, number(0), number(wide), Level.CTA, down=down)

    def _own(self, buffer: str, in_rows: bool) -> Expr:
        """An index that each thread has for itself."""
        row = ROW - LOW
        if buffer == "y0":
            return ROW * WIDTH + COL if in_rows else TILE * (ROWS * WIDTH) + COL
        if buffer[0] == "r" or not in_rows:
            return self.rng.choice([COL, COL, number((WIDTH if in_rows else 12) - 1) - COL])
        return self.rng.choice([row * WIDTH + COL, row * WIDTH + COL, row + COL * ROWS])

    def _value(self, target: str, lanes: bool) -> Expr:
        """Return a sum of loads from buffers other than the target."""
        value: Expr = Load("x0", number(0), F32)
        for _ in range(self.rng.randint(0, 2)):
            buffer = self.rng.choice([*self.scratch, "y0"])
            if buffer != target:
                value = value + Load(buffer, self._any(buffer, lanes), F32)
        return value

    def _any(self, buffer: str, lanes: bool) -> Expr:
        """An index of something that is there."""
        in_rows, col = self.rows or self.over_rows, COL if lanes else number(1)
        row = ROW - LOW
        if buffer == "y0":
            if self.rng.random() < 0.7 and lanes:
                return self._own(buffer, in_rows)
            return TILE * (ROWS * WIDTH) + (number(3) - col if in_rows else col)
        if buffer[0] == "r":
            return self.rng.choice([col, col, number(WIDTH - 1) - col, number(1)])
        if not in_rows:
            return self.rng.choice(
                [
                    col,
                    col,
                    number(11) - col,
                    number(2),
                    Binary("%", col, number(3), dt.int64),
                ]
            )
        return self.rng.choice(
            [
                row * WIDTH + col,
                row * WIDTH + col,
                row * WIDTH + (number(WIDTH - 1) - col),
                row + col * ROWS,
                col,
                row,
                row * WIDTH,
            ]
        )

    def _dot(self, k: int, target: str) -> Dot:
        """A product of 3 x 4 by 4 x 1, from scratch into scratch."""
        self.over_rows = False
        others = [s for s in self.scratch if s != target]
        a, b = (self.rng.choice(others) for _ in range(2))
        one = number(1)
        return Dot(
            f"stage{k}",
            (),
            Matrix(a, number(0), number(4), one),
            Matrix(b, number(0), one, one),
            Matrix(target, number(0), one, one),
            number(3),
            number(1),
            number(4),
            F32,
        )


def barrier_places(ast: KernelAST) -> Iterator[tuple[int, int]]:
    """Yield where barriers may stand: before a part (its number and -1) or a stage of it."""
    for p, part in enumerate(ast.phases[0].parts):
        yield p, -1
        for k in range(len(part.stages)):
            yield p, k


def has_barrier(ast: KernelAST, place: tuple[int, int]) -> bool:
    """Return whether there is a barrier at a place."""
    part, k = ast.phases[0].parts[place[0]], place[1]
    return part.barrier_before if k < 0 else part.stages[k].barrier_before


def with_barrier(ast: KernelAST, place: tuple[int, int], is_there: bool) -> KernelAST:
    """Return the AST with or without a barrier at a place of its first phase."""
    (phase, *rest), (p, k) = ast.phases, place
    part, stages = phase.parts[p], list(phase.parts[p].stages)
    if k < 0:
        part = evolve(part, barrier_before=is_there)
    else:
        stages[k] = evolve(stages[k], barrier_before=is_there)
        part = evolve(part, stages=tuple(stages))
    parts = (*phase.parts[:p], part, *phase.parts[p + 1 :])
    return evolve(ast, phases=(evolve(phase, parts=parts), *rest))
