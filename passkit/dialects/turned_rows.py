"""Turned blocks in C, many lanes wide: whole rows of an array, which other rows are joined with.

Sixteen lanes at a time touch as many rows of the result, and of all that is read beside, a cache
line of each. Memory and its caches are made for whole rows: 25 MB of images turned and added to
others take a fifth less time, 4096 x 4096 turned a quarter less.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from attrs import evolve

from passkit.ast import Expr, Load, Var
from passkit.ast.stage import Loop, Store
from passkit.ast.tidy import map_statement
from passkit.dialects.lane_loop import LaneLoop
from passkit.dialects.turned import Block, named, rows_ahead
from passkit.space.turning import BLOCK, POINTS, WIDTHS

if TYPE_CHECKING:
    from passkit.ir.strides import Stride

NBYTES, MANY = 65536, 4
"""The most bytes of such blocks, what a second cache has room for, and how many there may be.

Blocks of sixteen turns would read a line of each lane, and the one behind it would be gone before
the next block where lanes lie a power of two apart: 4096 x 4096 takes a fifth more time.
"""


def wide_steps(
    loop: LaneLoop, serial: Loop, loads: list[Load], stores: list[Store]
) -> dict[Load, Stride] | None:
    """How far the lanes step in what is turned, where wide blocks are quicker; else None.

    What is streamed goes past the caches from registers. Where nothing else is read and the lanes
    are near each other, at steps that are written out, an array is up to a tenth slower.
    """
    body = loop.stage.body
    if loop.lanes is None or stores or any(isinstance(s, Store) and s.stream for s in body):
        return None
    steps = {x: loop.lanes.step(x.index) for x in loads}
    known = {x: step for x, step in steps.items() if step is not None}
    if len(known) < len(loads) or len(loads) > MANY or Block(loop, serial, known).is_whole:
        return None
    far = any(isinstance(step, Expr) for step in known.values())
    return known if far or rows_ahead(loop, serial) else None


def _shape(loop: LaneLoop, serial: Loop, loads: Collection[Load]) -> tuple[int, int]:
    """The turns and the lanes of a block: those of a tile, if it is not too large.

    The turns are a multiple of sixteen, because squares of sixteen are written whole.
    """
    loops = loop.stage.loops
    inside = loops.index(serial) < loops.index(loop.loop)
    width = WIDTHS[-1] if inside else WIDTHS[loop.loop.wide]
    points = min(POINTS, NBYTES // len(loads) // max(x.dtype.nbytes for x in loads))
    return max(BLOCK, points // width // BLOCK * BLOCK), width


def print_turned_rows(loop: LaneLoop, serial: Loop, steps: dict[Load, Stride]) -> None:
    """Blocks of turns of ``serial`` and of lanes, which go inside its turns."""
    assert loop.lanes is not None
    body, v, lane = loop.body, loop.lanes.vectors, loop.loop
    turns, width = _shape(loop, serial, steps)
    block = Block(loop, serial, steps, turns)
    block.open()
    name = lane.var.name
    low, high = (Var(f"{name}_{end}", lane.var.dtype) for end in ("low", "high"))
    values = {"var": name, "stop": loop.scalars.expr(lane.stop), "turns": width}
    body.open(v.block.format(start=loop.scalars.expr(lane.start), **values))
    body.line(v.block_end.format(**values))
    rows: dict[Load, Expr] = {}
    place = (serial.var - block.first) * width + (lane.var - low)
    for k, x in enumerate(steps):
        array = f"{x.buffer}_rows_{k}"
        block.load_rows(x, array, low, f"{high.name} - {low.name}", width)
        rows[x] = Load(array, place, x.dtype)
    block.open_turns()
    statements = [map_statement(s, lambda x: named(x, rows)) for s in loop.stage.body]
    inner = evolve(lane, start=low, stop=high)
    stage = evolve(loop.stage, loops=(inner,), body=tuple(statements))
    LaneLoop(stage, inner, body, loop.rows).print(statements)
    body.close()
    body.close()
    block.close()
