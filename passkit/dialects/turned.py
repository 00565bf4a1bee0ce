"""Blocks of lanes and another loop in C: inputs that lie across the lanes are turned there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from attrs import evolve

from passkit.ast import Const, Expr, Load, Select, Var, const
from passkit.ast.index import expression, normal
from passkit.ast.stage import Let, Loop, Statement, Store
from passkit.ast.tidy import expressions, map_statement, replace_children
from passkit.ast.walk import variables
from passkit.dialects.totals import replaced
from passkit.ir.strides import Stride, moves_with, stride_of
from passkit.space.turning import BLOCK, FEW
from passkit.transforms.row_loads import certain_loads
from passkit.values import dtype as dt
from passkit.values.dtype import DType

if TYPE_CHECKING:
    from passkit.dialects.lane_loop import LaneLoop


def turned_loads(loop: LaneLoop, serial: Loop) -> list[Load]:
    """The loads that happen for every element and lie along ``serial``, across the lanes."""
    if loop.lanes is None:
        return []
    inner = {s.var for s in loop.stage.body if isinstance(s, Let)}
    found = dict.fromkeys(
        x
        for s in loop.stage.body
        for value in expressions(s)
        for x in certain_loads(value)
        if inner.isdisjoint(variables(x.index))
        and stride_of(x.index, serial.var, moves_with(serial.var)) == 1
        and loop.lanes.step(x.index) not in (None, 0, 1, -1)
    )
    return list(found)


def rows_ahead(loop: LaneLoop, serial: Loop) -> dict[Load, Stride]:
    """Loads along the lanes of another row in each turn, and how far those lie apart.

    A block reads so little of each row that processors do not notice what comes next: measured, a
    tenth of a large transposition's time is waiting for it.
    """
    if loop.lanes is None:
        return {}
    loads = (x for s in loop.stage.body for v in expressions(s) for x in certain_loads(v))
    found = {}
    for x in loads:
        stride = stride_of(x.index, serial.var, moves_with(serial.var))
        if loop.lanes.step(x.index) == 1 and stride not in (None, 0, 1):
            found[x] = stride
    return found


def turned_stores(loop: LaneLoop, serial: Loop) -> list[Store]:
    """The stores of rows that follow each other, each written in the turns of ``serial``."""
    length = _length(serial)
    if loop.lanes is None or length is None:
        return []
    return [
        s
        for s in loop.stage.body
        if isinstance(s, Store)
        and stride_of(s.index, serial.var, moves_with(serial.var)) == 1
        and loop.lanes.step(s.index) == length > 1
    ]


def _length(serial: Loop) -> int | None:
    """The turns of a loop from 0 to a known number that makes one block."""
    stop = serial.stop
    if serial.start != const(0, dt.int64) or not isinstance(stop, Const):
        return None
    return int(stop.value) if stop.value <= BLOCK else None


def print_turned(loop: LaneLoop, serial: Loop, loads: list[Load], stores: list[Store]) -> None:
    """The lanes, each vector with a block of turns of ``serial`` inside it.

    The outer loop of both is the one over blocks, or that over lanes, as the stage says.
    """
    assert loop.lanes is not None
    body = loop.body
    names = {x: Var(f"{x.buffer}_turned_{k}", x.dtype) for k, x in enumerate(loads)}
    written = {s.buffer for s in stores}
    steps = {x: step for x in loads if (step := loop.lanes.step(x.index)) is not None}
    block = Block(loop, serial, steps)
    statements = [map_statement(s, lambda x: named(x, names)) for s in loop.stage.body]
    inside = loop.varying | set(names.values())
    for s in statements:
        if isinstance(s, Let) and inside & set(variables(s.value)):
            inside |= {s.var}
    inner = _inner(serial.var, statements)
    loop.lanes = evolve(loop.lanes, varying=inside, inner=inner)
    outside = loop.stage.loops.index(loop.loop) < loop.stage.loops.index(serial)
    if not outside:
        block.open()
    front = len(body.lines)
    straight = [s for s in statements if not (isinstance(s, Store) and s.buffer in written)]
    first = serial.start if outside else block.first
    loop.open_block([block.moved(s, first) for s in straight])
    if outside:
        block.open()
    if any(map(block.turns_over, steps.values())):
        for x, stride in rows_ahead(loop, serial).items():
            block.ask(x, stride)
    for x, name in names.items():
        block.load(x, name)
    for s in stores:
        block.make_room(s)
    block.open_turns()
    for name in names.values():
        block.fetch(name)
    for s in statements:
        if isinstance(s, Store) and s.buffer in written:
            block.put(s)
        else:
            loop.statement(s, inside)
    body.close()
    for s in stores:
        block.store(s)
    if outside:
        block.close()
    loop.close(front)
    if not outside:
        block.close()


def _inner(var: Var, statements: Iterable[Statement]) -> frozenset[Var]:
    """The variable of a loop and the locals that are made in it."""
    return frozenset([var, *(s.var for s in statements if isinstance(s, Let))])


class Block:
    """The text of a block: a few turns of a loop, in each of which some vectors are.

    Where the loop has no more turns than that, and their number is known, it is the one block.
    ``steps`` are how far the lanes step in what is turned, ``most`` the turns of a block.
    """

    def __init__(
        self, loop: LaneLoop, serial: Loop, steps: Mapping[Load, Stride], most: int = BLOCK
    ) -> None:
        assert loop.lanes is not None
        self.loop, self.serial, self.steps = loop, serial, steps
        self.body, self.scalars, self.dialect = loop.body, loop.scalars, loop.dialect
        self.vectors = loop.lanes.vectors
        self.length = _length(serial)
        self.is_whole = self.length is not None
        self.most = self.length or most
        var = self.name = serial.var.name
        whole = self.is_whole
        self.first: Expr = serial.start if whole else Var(f"{var}_low", serial.var.dtype)
        self.turns = str(self.length) if whole else f"{var}_high - {var}_low"
        self.place = var if whole else f"({var} - {var}_low)"

    def open(self) -> None:
        """Begin the loop over blocks."""
        if self.length is None:
            start, stop = (self.scalars.expr(x) for x in (self.serial.start, self.serial.stop))
            v, values = self.vectors, {"var": self.name, "stop": stop, "turns": self.most}
            self.body.open(v.block.format(start=start, **values))
            self.body.line(v.block_end.format(**values))

    def open_turns(self) -> None:
        """Begin the turns of a block."""
        ends = {"start": f"{self.name}_low", "stop": f"{self.name}_high"}
        if self.length is not None:
            ends = {"start": "0", "stop": self.turns}
        self.body.open(self.dialect.thread.format(var=self.name, **ends))

    def close(self) -> None:
        """End the loop over blocks."""
        if self.length is None:
            self.body.close()

    def turns_over(self, step: Stride) -> bool:
        """Whether rows that start so far from each other are more than the block's few elements."""
        return not (step == self.length and isinstance(step, int) and step <= FEW)

    def ask(self, x: Load, stride: Stride) -> None:
        """Ask memory for the rows of a load that lies along the lanes."""
        self._read(self.vectors.ahead, "", x, stride)

    def load(self, x: Load, name: Var) -> None:
        """A block of what a load reads."""
        template = self.vectors.turn if self.turns_over(self.steps[x]) else self.vectors.apart
        self._read(template, name.name, x, self.steps[x])

    def load_rows(self, x: Load, array: str, low: Var, lanes: str, width: int) -> None:
        """A block of what a load reads, many lanes wide: ``lanes`` of them from ``low`` on."""
        index = replaced(x.index, {self.loop.loop.var.name: low})
        part, step = evolve(x, index=index), self.steps[x]
        size: dict[str, str | int] = {"most": self.most, "width": width, "lanes": lanes}
        self._read(self.vectors.turn_rows, array, part, step, **size)

    def _read(self, template: str, name: str, x: Load, step: Stride, **values: str | int) -> None:
        assert self.loop.lanes is not None
        values["stride"] = self.loop.lanes.stride(step)
        self._lines(template, name, x.dtype, at=self._at(x.buffer, x.index), **values)

    def fetch(self, name: Var) -> None:
        """What a turn has of such a block."""
        self._lines(self.vectors.turned, name.name, name.dtype)

    def make_room(self, s: Store) -> None:
        """Room for a block of results."""
        self._lines(self.vectors.room, s.buffer, s.value.dtype)

    def put(self, s: Store) -> None:
        """What a turn adds to such a block."""
        assert self.loop.lanes is not None
        value = self.loop.lanes.splat(s.value)
        self._lines(self.vectors.put, s.buffer, s.value.dtype, value=value)

    def store(self, s: Store) -> None:
        """A block of results stored."""
        at = self._at(s.buffer, s.index)
        self._lines(self.vectors.together, s.buffer, s.value.dtype, at=at)

    def moved(self, s: Statement, first: Expr) -> Statement:
        """A statement as it is in the first turn."""
        return evolve(s, index=self._moved(s.index, first)) if isinstance(s, Store) else s

    def _lines(self, template: str, name: str, dtype: DType, **values: str | int) -> None:
        kind = self.dialect.type_of(dtype)
        text = template.format(type=kind, name=name, turns=self.turns, place=self.place, **values)
        for line in text.splitlines():
            self.body.line(line)

    def _at(self, buffer: str, index: Expr) -> str:
        return self.scalars.address(buffer, expression(normal(self._moved(index, self.first), {})))

    def _moved(self, x: Expr, first: Expr) -> Expr:
        if isinstance(x, Var):
            return first if x == self.serial.var else x
        return replace_children(x, lambda child: self._moved(child, first))


def named(x: Expr, names: Mapping[Load, Expr]) -> Expr:
    """An expression whose loads have been done: what is in their place is read instead."""
    if isinstance(x, Load) and x in names:
        return names[x]
    if isinstance(x, Select):  # its arms keep their loads
        return evolve(x, condition=named(x.condition, names))
    return replace_children(x, lambda child: named(child, names))
