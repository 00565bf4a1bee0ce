"""The threads of a kernel AST, one by one, at tiny sizes: who touches what, and who has waited.

Two touches of an element by different threads, one of them a write, are a race unless a wait of
both stands between them: whatever the order in which threads run, only their waits count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from passkit.ast import Binary, Const, Expr, Load, Select, SizeOf, Unary, Var
from passkit.ast.stage import (
    Dot,
    Fold,
    KernelAST,
    Let,
    Level,
    Loop,
    Matrix,
    Part,
    Place,
    Prefetch,
    Running,
    Stage,
    Store,
)
from passkit.ast.walk import walk

SHAPES = ((1, 4), (2, 2), (3, 4))
"""Blocks of so many warps, of so many lanes: one warp is how work-groups take their rows."""

Names = dict[str, int]


def _text(x: Expr) -> str:
    match x:
        case Const():
            return str(int(x.value))
        case SizeOf():
            return str(int(x.size))  # type: ignore[arg-type]
        case Var(name):
            return f"e[{name!r}]"
        case Unary("-", a):
            return f"-({_text(a)})"
        case Binary(op, a, b):
            return f"(({_text(a)}) {op} ({_text(b)}))"
        case Select(c, a, b):
            return f"(({_text(a)}) if ({_text(c)}) else ({_text(b)}))"
    raise TypeError(f"no index: {x}")


@cache
def value(x: Expr) -> Callable[[Names], int]:
    """An index as a function of the variables."""
    return eval(f"lambda e: {_text(x)}")  # type: ignore[no-any-return]


@cache
def loads(x: Expr) -> tuple[Load, ...]:
    """Return all loads of an expression."""
    return tuple(part for part in walk(x) if isinstance(part, Load))


class Thread:
    """A thread: it runs the whole kernel by itself and notes what it touches."""

    def __init__(
        self, ast: KernelAST, shape: tuple[int, int], place: tuple[int, int], touch: Any
    ) -> None:
        (self.num_warps, self.width), (self.warp, self.lane) = shape, place
        self.number = self.warp * self.width + self.lane
        self.of_row = {b.name for b in ast.scratch if b.of_row}
        self.shared = {b.name: b.offset for b in ast.scratch if b.place is Place.SHARED}
        self.written = {b.name for b in ast.params if b.written} | self.shared.keys()
        self.tile_waits = self.row_waits = 0
        self.touch_it = touch

    def run(self, ast: KernelAST, sizes: Names) -> None:
        """The tiles of one block."""
        for phase in ast.phases:
            for tile in range(value(phase.tile.start)(sizes), value(phase.tile.stop)(sizes)):
                for part in phase.parts:
                    self._part(part, {**sizes, phase.tile.var.name: tile})

    def _part(self, part: Part, e: Names) -> None:
        self.tile_waits += part.barrier_before
        self.in_row = False
        for let in part.lets:
            self._statement(let, e, True)
        for inner in self._turns(part.rows, e, self.warp, self.num_warps) if part.rows else [e]:
            self.in_row = part.rows is not None
            for let in part.row_lets:
                self._statement(let, inner, True)
            for stage in part.stages:
                if part.rows is None:
                    self.tile_waits += stage.barrier_before
                else:
                    self.row_waits += stage.barrier_before
                self.in_row = part.rows is not None
                if isinstance(stage, Dot):
                    self._dot(stage, dict(inner))
                else:
                    self._stage(stage, dict(inner))

    def _turns(self, loop: Loop, e: Names, first: int, step: int) -> Iterator[Names]:
        stop = value(loop.stop)(e)
        if loop.limit is not None:
            stop = min(stop, value(loop.limit)(e))
        start = value(loop.start)(e)
        for k in range(first, stop - start, step):
            yield {**e, loop.var.name: stop - 1 - k if loop.down else start + k}

    def _stage(self, stage: Stage, e: Names) -> None:
        over = [x for x in stage.loops if x.level is Level.WARP]
        mine = (0, 1) if self.in_row else (self.warp, self.num_warps)
        for row in self._turns(over[0], e, *mine) if over else [e]:
            self.in_row |= bool(over)
            for let in stage.before:
                self._statement(let, row, True)
            for s in stage.body:
                if isinstance(s, (Fold, Running)) and s.buffer is not None:  # its identity
                    lanes = [x for x in stage.loops if x.level is Level.CTA]
                    self._nest(lanes, row, [Store(s.buffer, s.index, s.identity)])  # type: ignore[arg-type]
            self._nest([x for x in stage.loops if x.level is not Level.WARP], row, list(stage.body))
            for s in stage.after:
                self._statement(s, row, True)

    def _nest(self, loops: list[Loop], e: Names, body: list[Any], lanes: bool = False) -> None:
        if not loops:
            for s in body:
                self._statement(s, e, not lanes)
            return
        first, step = 0, 1
        if loops[0].level is Level.CTA:
            first, step = (
                (self.lane, self.width)
                if self.in_row
                else (self.number, self.width * self.num_warps)
            )
        for inner in self._turns(loops[0], e, first, step):
            self._nest(loops[1:], inner, body, lanes or loops[0].level is Level.CTA)

    def _statement(self, s: Any, e: Names, alone: bool) -> None:
        """A statement; one that is not in lanes is done by all, but written by the first."""
        if isinstance(s, Prefetch):
            return
        for x in loads(s.value):
            self._touch(x.buffer, False, value(x.index)(e))
        if isinstance(s, Let):
            if not loads(s.value):
                e[s.var.name] = value(s.value)(e)
        elif s.buffer is not None and not (alone and (self.lane if self.in_row else self.number)):
            at = value(s.index)(e)
            if isinstance(s, (Fold, Running)):
                self._touch(s.buffer, False, at)
            self._touch(s.buffer, True, at)

    def _dot(self, dot: Dot, e: Names) -> None:
        """A product, its elements shared out in an order of its own."""
        m, n, k = (value(x)(e) for x in (dot.m, dot.n, dot.k))
        threads, own = self.width * self.num_warps, self.number
        if self.in_row:
            threads, own = self.width, self.lane
        for i in range(m):
            for j in range(n):
                if (3 * i + j + 1) % threads == own:
                    for step in range(k):
                        self._element(dot.a, False, i, step, e)
                        self._element(dot.b, False, step, j, e)
                    self._element(dot.c, True, i, j, e)

    def _element(self, x: Matrix, writes: bool, i: int, j: int, e: Names) -> None:
        start, down, along = (value(v)(e) for v in (x.start, x.down, x.along))
        self._touch(x.buffer, writes, start + i * down + j * along)

    def _touch(self, buffer: str, writes: bool, at: int) -> None:
        if buffer in self.written:
            place: Any = buffer, at
            if (offset := self.shared.get(buffer)) is not None:
                place = "scratch", int(offset) + 4 * at  # type: ignore[call-overload]
            if buffer in self.of_row:
                place = *place, self.warp
            waits = self.tile_waits, self.row_waits
            self.touch_it(place, (self.warp, self.lane), writes, *waits)


def races(ast: KernelAST, shape: tuple[int, int], sizes: Names) -> list[Any]:
    """The elements that two threads meet at without a wait of both between."""
    met: dict[Any, set[tuple[Any, bool, int]]] = defaultdict(set)
    for warp in range(shape[0]):
        for lane in range(shape[1]):

            def touch(place: Any, who: Any, writes: bool, tile_waits: int, row_waits: int) -> None:
                met[place, tile_waits].add((who, writes, row_waits))

            Thread(ast, shape, (warp, lane), touch).run(ast, sizes)
    return [place for place, accesses in met.items() if _is_race(accesses)]


def _is_race(accesses: set[tuple[Any, bool, int]]) -> bool:
    writes = [x for x in accesses if x[1]]
    return any(
        a[0] != b[0] and (a[0][0] != b[0][0] or a[2] == b[2]) for a in writes for b in accesses
    )


def has_race(ast: KernelAST, sizes: Names) -> bool:
    """Whether there is one in blocks of any of the shapes."""
    return any(races(ast, shape, sizes) for shape in SHAPES)
