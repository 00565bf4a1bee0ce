"""Columns of a few elements in C: all stages of a tile in one loop over its lanes.

Where each lane folds a known handful of elements, as pools do, and hands what it folds to nobody
but itself, its totals are registers, and what a later stage loads again is still in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from passkit.ast import Binary, Const, Expr, Load, Var
from passkit.ast.renaming import names_in
from passkit.ast.stage import Fold, Let, Level, Loop, Part, Running, Stage, Statement, Store
from passkit.ast.tidy import expressions, map_statement, parts, replace_children
from passkit.ast.walk import loads, variables
from passkit.dialects.body import Body
from passkit.dialects.lane_loop import LaneLoop
from passkit.dialects.totals import replaced
from passkit.values import dtype as dt

MOST, TEXT = 16, 512
"""The elements that a lane folds at most, and the operators and leaves of all that it does."""


@frozen
class Columns:
    """Stages of a tile over the same lanes; ``totals`` are locals for its arrays of scratch."""

    stages: tuple[Stage, ...]
    lane: Loop
    totals: dict[str, Var]
    body: Body

    def print(self) -> None:
        """All stages, one after the other in each vector of lanes."""
        body, declared = self.body, set[str]()
        for stage in self.stages:
            for let in stage.before:
                body.let(let)
        loop = LaneLoop(self.stages[0], self.lane, body, None)
        assert loop.lanes is not None
        varying, inner = self._varying(), frozenset(self._inner())
        loop.lanes = evolve(loop.lanes, varying=varying, inner=inner - varying)
        front = len(body.lines)
        loop.open_block([])
        for stage in self.stages:
            for s in stage.body:
                if isinstance(s, Fold):
                    self._set(self._total(s), s.identity, loop, declared)
            serial = stage.loops[:-1]
            for x in serial:
                body.loop(body.dialect.thread, x)
            for s in map(self._in_registers, stage.body):
                self._statement(s, loop, declared)
            for _ in serial:
                body.close()
        loop.close(front)

    def _statement(self, s: Statement, loop: LaneLoop, declared: set[str]) -> None:
        assert loop.lanes is not None
        match s:
            case Fold():
                total = self._total(s)
                joined = replaced(s.combine, {"a": total, "b": s.value})
                self._set(total, joined, loop, declared)
            case Store(buffer, _, value) if buffer in self.totals:
                self._set(self.totals[buffer], value, loop, declared)
            case _:
                loop.statement(s, loop.lanes.varying)

    def _set(self, total: Var, value: Expr, loop: LaneLoop, declared: set[str]) -> None:
        assert loop.lanes is not None
        v, text = loop.lanes.vectors, loop.lanes.splat(value)
        if total.name in declared:
            self.body.line(f"{total.name} = {text};")
            return
        declared.add(total.name)
        self.body.line(v.total.format(name=total.name, value=text))

    def _total(self, f: Fold) -> Var:
        assert f.buffer is not None
        return self.totals[f.buffer]

    def _in_registers(self, s: Statement) -> Statement:
        """A statement that finds in registers what lay in scratch."""

        def change(x: Expr) -> Expr:
            if isinstance(x, Load) and x.buffer in self.totals:
                return self.totals[x.buffer]
            return replace_children(x, change)

        return map_statement(s, change)

    def _varying(self) -> frozenset[Var]:
        """What differs from lane to lane."""
        found = {self.lane.var, *self.totals.values()}
        for stage in self.stages:
            for s in map(self._in_registers, stage.body):
                if isinstance(s, Let) and not found.isdisjoint(variables(s.value)):
                    found.add(s.var)
        return frozenset(found)

    def _inner(self) -> Iterator[Var]:
        """What is made inside the lanes."""
        for stage in self.stages:
            yield from (x.var for x in stage.loops)
            yield from (s.var for s in stage.body if isinstance(s, Let))


def columns_of(part: Part, beside: Sequence[Part], body: Body) -> Columns | None:
    """The stages of a part as columns in registers; None where they are not such.

    Parts ``beside`` it may not meet it in scratch.
    """
    stages = tuple(s for s in part.stages if isinstance(s, Stage))
    if body.dialect.vectors is None or body.aliased or len(stages) != len(part.stages):
        return None
    folds = [s for stage in stages for s in stage.body if isinstance(s, Fold)]
    if len(stages) < 2 or part.rows is not None or part.waits or not folds:
        return None
    lane = stages[0].loops[-1] if stages[0].loops else None
    if lane is None or lane.level is not Level.CTA or lane.down:
        return None
    dtypes = {b: body.dtypes[b] for b in body.scalars.scratch}
    totals = {b: Var(f"{b}_lanes", dtype) for b, dtype in dtypes.items()}
    found = Columns(stages, lane, totals, body)
    if not _is_short(stages) or not all(_fits(s, found) for s in stages):
        return None
    shared = set(names_in(stages)) & totals.keys()
    alone = all(p is part or shared.isdisjoint(names_in(p.stages)) for p in beside)
    return found if alone else None


def _is_short(stages: tuple[Stage, ...]) -> bool:
    """Whether few elements are folded, by little text."""
    turns = [_turns(stage) for stage in stages]
    sizes = [sum(parts(x) for s in stage.body for x in expressions(s)) for stage in stages]
    known = [n for n in turns if n is not None]
    if len(known) < len(turns) or max(known) > MOST:
        return False
    return sum(n * size for n, size in zip(known, sizes, strict=True)) <= TEXT


def _turns(stage: Stage) -> int | None:
    """How often the loops around the lanes of a stage turn, where that is known."""
    turns = 1
    for x in stage.loops[:-1]:
        if not isinstance(x.start, Const) or not isinstance(x.stop, Const):
            return None
        turns *= int(x.stop.value) - int(x.start.value)
    return turns


def _fits(stage: Stage, columns: Columns) -> bool:
    """Whether a stage has the same lanes as others, each of which meets nobody but itself."""
    *serial, lane = stage.loops or (None,)
    if lane != columns.lane or any(x is None or x.level is not Level.THREAD for x in serial):
        return False
    if stage.after or stage.waits or any(x is None or x.down for x in serial):
        return False
    at = Binary("-", lane.var, lane.start, dt.int64)
    written = {
        s.buffer for other in columns.stages for s in other.body if isinstance(s, (Store, Fold))
    }
    return all(
        _is_own(s, at, bool(serial), written - columns.totals.keys(), columns) for s in stage.body
    )


def _is_own(
    s: Statement, at: Expr, repeated: bool, written: set[str | None], columns: Columns
) -> bool:
    """Whether a statement has scratch at its lane's own place only, and reads no result."""
    totals = columns.totals
    if isinstance(s, Running) or (isinstance(s, Fold) and s.buffer not in totals):
        return False
    if isinstance(s, (Store, Fold)) and s.buffer in totals and s.index != at:
        return False
    if isinstance(s, Store) and (s.stream or (repeated and s.buffer in totals)):
        return False
    found = [x for value in expressions(s) for x in loads(value)]
    if any(x.buffer in written for x in found):
        return False
    return all(x.index == at for x in found if x.buffer in totals)
