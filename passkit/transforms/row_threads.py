"""The threads of a row: a warp, or a part of one, which then has several short rows at a time.

A warp that reduces a row of 40 elements has most of its threads idle, and combines their partial
results in five steps; eight threads need three, and a warp has four such rows. Of a tile of ten
rows a block of eight warps would have six idle in its second iteration: five warps take two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from passkit.ast import Const, Expr, SizeOf, Var
from passkit.ast.index import expression, normal
from passkit.ast.stage import Dot, KernelAST, Level, Loop, Part, Stage
from passkit.values.size import Extent, Size, substitute

WARP, LEAST = 32, 8
EACH = 8
"""Elements that a thread of a row has at most before more threads share it."""


def row_lanes(ast: KernelAST, values: Mapping[str, Extent]) -> int:
    """Return how many threads take a row of a kernel together, a power of two from 8 to 32.

    ``values`` are the kernel's sizes by their names. All rows of a kernel are taken by as many, as
    its longest needs; by a warp where one of them may have any length.
    """
    longest = 0
    for loop in _lanes(ast):
        start, stop = (_number(x, values) for x in (loop.start, loop.stop))
        if start is None or stop is None:
            return WARP
        longest = max(longest, stop - start)
    lanes = LEAST
    while lanes < WARP and longest > EACH * lanes:
        lanes *= 2
    return lanes


def rows_at_once(ast: KernelAST, values: Mapping[str, Extent], most: int) -> int:
    """Return how many rows of a tile a block takes at a time, as many in each iteration.

    At most so many, which are those where a tile may have any number.
    """
    longest = 0
    for loop in _rows(ast):
        number = _number(expression(normal(loop.stop - loop.start, {})), values)
        if number is None:
            return most
        longest = max(longest, number)
    turns = -(-longest // most)
    return -(-longest // turns) if turns else most


def has_rows(ast: KernelAST) -> bool:
    """Return whether rows of a tile have threads of their own."""
    return any(part.rows is not None or any(map(_is_of_rows, part.stages)) for part in _parts(ast))


def _lanes(ast: KernelAST) -> Iterator[Loop]:
    """Yield the loops over the elements of a row."""
    for part in _parts(ast):
        for stage in part.stages:
            if isinstance(stage, Stage) and (part.rows is not None or _is_of_rows(stage)):
                yield from (x for x in stage.loops if x.level is Level.CTA)


def _rows(ast: KernelAST) -> Iterator[Loop]:
    """Yield the loops over the rows of a tile."""
    for part in _parts(ast):
        if part.rows is not None:
            yield part.rows
        for stage in part.stages:
            if isinstance(stage, Stage):
                yield from (x for x in stage.loops if x.level is Level.WARP)


def _parts(ast: KernelAST) -> Iterator[Part]:
    return (part for phase in ast.phases for part in phase.parts)


def _is_of_rows(stage: Stage | Dot) -> bool:
    return any(x.level is Level.WARP for x in stage.loops)


def _number(x: Expr, values: Mapping[str, Extent]) -> int | None:
    """Return an index that follows from sizes alone; None for another."""
    extent: Extent | None = None
    match x:
        case Const():
            extent = int(x.value)
        case Var(name):
            extent = values.get(name)
        case SizeOf(size):
            extent = substitute(size, values)
    return None if isinstance(extent, Size) else extent
