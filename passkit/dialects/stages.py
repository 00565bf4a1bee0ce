"""Stages in C: their loops, their statements, and the folds that join what the lanes found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np
from attrs import evolve

from passkit import dtype as dt
from passkit.ast import Call, Expr, Load, Var, left, right
from passkit.dialects.expressions import Scalars
from passkit.dialects.lanes import MASK, Lanes, turns, varying
from passkit.dialects.rows import Rows
from passkit.errors import CodeGenError
from passkit.index import expression, normal
from passkit.stage import Fold, Let, Level, Loop, Prefetch, Stage, Statement, Store
from passkit.tidy import replace_children

INDENT = "  "


class Body:
    """The body of a kernel as it grows: lines, and the loops and statements outside lane loops.

    ``num_divisors`` have a name so far; ``streams`` says whether a store went past the caches.
    """

    def __init__(self, scalars: Scalars) -> None:
        self.scalars, self.dialect = scalars, scalars.dialect
        self.lines: list[str] = []
        self.depth = 0
        self.num_divisors = 0
        self.streams = False

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(INDENT * self.depth + text if text else "")

    def insert(self, at: int, texts: Iterable[str]) -> None:
        """Add lines in front of the line that is number ``at`` so far."""
        self.lines[at:at] = [INDENT * self.depth + text for text in texts]

    def drop_unused(self, locals: Iterable[Var], begin: int) -> None:
        """Take out locals among the lines from ``begin`` on that no other line names."""
        for var in locals:
            named = [k for k in range(begin, len(self.lines)) if _names(self.lines[k], var)]
            if len(named) == 1:
                del self.lines[named[0]]

    def open(self, text: str) -> None:
        """Begin a block."""
        self.line(text + " {")
        self.depth += 1

    def close(self, text: str = "}") -> None:
        """End the innermost block."""
        self.depth -= 1
        self.line(text)

    def loop(self, template: str, loop: Loop) -> None:
        """Begin a loop."""
        start, stop = self.scalars.expr(loop.start), self.scalars.expr(loop.stop)
        if loop.limit is not None:
            limit, kind = self.scalars.expr(loop.limit), self.dialect.type_of(dt.int64)
            name = f"{loop.var.name}_end"
            self.line(f"const {kind} {name} = {stop} < {limit} ? {stop} : {limit};")
            stop = name
        self.open(template.format(var=loop.var.name, start=start, stop=stop))

    def statement(self, s: Statement) -> None:
        """A local or an assignment: the others are for lanes."""
        if isinstance(s, Let):
            self.let(s)
        else:
            assert isinstance(s, Store)
            self.store(s)

    def let(self, let: Let) -> None:
        """A local."""
        kind, value = self.dialect.type_of(let.var.dtype), self.scalars.expr(let.value)
        self.line(self.dialect.local.format(type=kind, name=let.var.name, value=value))

    def store(self, s: Store) -> None:
        """An assignment."""
        at = self.scalars.element(s.buffer, s.index)
        self.line(f"{at} = {self.scalars.expr(s.value)};")


def print_stage(stage: Stage, body: Body) -> None:
    """Add a stage to the body of its kernel."""
    loops = [x for x in stage.loops if x.level is Level.WARP]
    lane = next((x for x in stage.loops if x.level is Level.CTA), None)
    front = len(body.lines)
    for x in loops:
        body.loop(body.dialect.warp, x)
    begin = len(body.lines)
    for let in stage.before:
        body.let(let)
    if lane is None:
        for s in stage.body:
            body.statement(s)
        return
    v, rows = body.dialect.vectors, None
    if v is not None and loops:
        rows = Rows(loops[0], body.scalars, v.rows)
    loop = _LaneLoop(stage, lane, body, rows)
    _print_lanes(stage, loop, body)
    if rows is not None:  # what its divisors fetched is already theirs
        body.drop_unused((s.var for s in stage.body if isinstance(s, Let)), begin)
    for _ in loops:
        body.close()
    body.insert(front, loop.in_front)
    for text in loop.behind:
        body.line(text)


def _print_lanes(stage: Stage, loop: _LaneLoop, body: Body) -> None:
    """The loops of a stage, between the beginnings of its folds and their results."""
    folds = [s for s in stage.body if isinstance(s, Fold)]
    serial = [x for x in stage.loops if x.level is Level.THREAD]
    for f in folds:
        loop.begin(f)
    for x in serial:
        body.loop(body.dialect.thread, x)
    loop.print(stage.body)
    for _ in serial:
        body.close()
    for f in folds:
        loop.finish(f)
    for store in stage.after:
        if store not in loop.totals.values():
            body.store(store)


class _LaneLoop:
    """Prints the lane loop of a stage, and what its folds need in front of it and behind.

    ``in_front`` and ``behind`` are lines around the loop over ``rows``, if there is one; ``totals``
    are the stores that those behind take care of.
    """

    def __init__(self, stage: Stage, loop: Loop, body: Body, rows: Rows | None) -> None:
        self.stage, self.loop, self.body, self.rows = stage, loop, body, rows
        self.in_front: list[str] = []
        self.behind: list[str] = []
        self.totals: dict[Fold, Store] = {}
        self.ends: dict[Fold, str] = {}
        self.scalars, self.dialect = body.scalars, body.dialect
        self.template, self.width = turns(stage, loop, body.dialect)
        self.varying = varying(stage, loop.var)
        self.lanes: Lanes | None = None
        if v := self.dialect.vectors:
            divided = body.num_divisors
            self.lanes = Lanes(self.scalars, v, loop.var, self.varying, divided, divisors={})

    def print(self, statements: Iterable[Statement]) -> None:
        """The loop: what no lane changes stands in front of it."""
        inside: list[Statement] = []
        for s in statements:
            if isinstance(s, Let) and s.var not in self.varying:
                self.body.let(s)
            else:
                inside.append(s)
        front = len(self.body.lines)
        self.body.open(
            self.template.format(
                var=self.loop.var.name,
                start=self.scalars.expr(self.loop.start),
                stop=self.scalars.expr(self.loop.stop),
                lanes=self.width,
                at=self._streamed(inside),
            )
        )
        for s in inside:
            self._statement(s)
        if self.lanes is None:
            self.body.close()
            return
        self.body.close(self.lanes.vectors.loop_end)
        self.body.insert(front, self._divisors(self.lanes))
        self.body.num_divisors += len(self.lanes.divisors or ())

    def _streamed(self, statements: Iterable[Statement]) -> str:
        """Where the first element lies that the loop streams, if it streams any."""
        for s in statements:
            if isinstance(s, Store) and s.stream:
                first = _replace(s.index, {self.loop.var.name: self.loop.start})
                return self.scalars.address(s.buffer, expression(normal(first, {})))
        return ""

    def _divisors(self, lanes: Lanes) -> Iterator[str]:
        """What stands in front of the lanes: each divisor, its reciprocal taken once."""
        for b, name in (lanes.divisors or {}).items():
            lines = self.rows and self.rows.divisor_lines(b, name, self.stage.body)
            if lines:
                self.in_front.append(lines[0])
                yield lines[1]
            else:
                yield lanes.divisor_line(b, name)

    # Statements.

    def _statement(self, s: Statement) -> None:
        match s:
            case Let():
                self._let(s)
            case Store():
                self._store(s)
            case Fold():
                self._fold(s)
            case Prefetch(buffer, index):
                if self.dialect.prefetch:
                    at = self.scalars.address(buffer, index)
                    self.body.line(self.dialect.prefetch.format(at=at, mask=MASK))

    def _let(self, s: Let) -> None:
        if self.lanes is None:
            self.body.let(s)
            return
        kind, template = self.dialect.type_of(s.var.dtype), self.lanes.vectors.local
        value = self.lanes.expr(s.value)
        self.body.line(template.format(type=kind, name=s.var.name, value=value))

    def _store(self, s: Store) -> None:
        if self.lanes is None:
            self.body.store(s)
            return
        value, v = self.lanes.splat(s.value), self.lanes.vectors
        if s.buffer in self.scalars.registers:
            self.body.line(f"{self.scalars.element(s.buffer, s.index)} = {value};")
            return
        step, at = self.lanes.step(s.index), self.scalars.address(s.buffer, s.index)
        if step is None or step == 0:
            raise CodeGenError(
                f"a store to {s.buffer} must step along the lanes, got index {s.index}"
            )
        if step == 1:
            self.body.streams |= s.stream
            template = v.stream if s.stream else v.store
            self.body.line(template.format(at=at, value=value, mask=MASK))
        else:
            self.body.line(v.store_strided.format(at=at, value=value, stride=step, mask=MASK))

    # Folds.

    def begin(self, f: Fold) -> None:
        """What a fold is before the first lane: its identity."""
        if f.buffer is not None:
            assert f.index is not None
            self.print([Store(f.buffer, f.index, f.identity)])
            return
        kind, name = self.dialect.type_of(f.var.dtype), _partial(f).name
        identity = self.scalars.expr(f.identity)
        if self.lanes is None:
            self.body.line(f"{kind} {name} = {identity};")
            return
        v, values = self.lanes.vectors, {"type": kind, "lanes": self.width}
        if which := _extreme(f):
            fold = v.extreme.format(which=which, **values)
        else:
            a, b = left(f.var.dtype), right(f.var.dtype)
            joined = evolve(self.lanes, varying=frozenset([a, b]), divisors=None, like="a")
            combine = joined.splat(f.combine)
            fold = v.folding.format(identity=identity, combine=combine, **values)
        total = None if self.rows is None else self.rows.total_of(f, self.stage.after)
        if self.rows is None or total is None:
            self.body.line(v.begin.format(name=name, fold=fold))
            return
        self.totals[f] = total
        front, begin, self.ends[f], behind = self.rows.fold_lines(f, fold, total)
        self.in_front.append(front)
        self.body.line(begin)
        self.behind.append(behind)

    def _fold(self, f: Fold) -> None:
        acc = _partial(f)
        if f.buffer is not None:
            assert f.index is not None
            old = Load(f.buffer, f.index, f.var.dtype)
            self._store(Store(f.buffer, f.index, _replace(f.combine, {"a": old, "b": f.value})))
        elif self.lanes is not None:
            value = self.lanes.splat(f.value)
            self.body.line(self.lanes.vectors.take.format(acc=acc.name, value=value, mask=MASK))
        else:
            term = f.value
            if not isinstance(term, Var):
                term = Var(f"{f.var.name}_term", f.var.dtype)
                self.body.let(Let(term, f.value))
            step = self.scalars.expr(_replace(f.combine, {"a": acc, "b": term}))
            self.body.line(f"{acc.name} = {step};")

    def finish(self, f: Fold) -> None:
        """What a fold is behind the last lane: one number, unless each lane has its own."""
        if f.buffer is not None:
            return
        if f in self.totals:
            self.body.line(self.ends[f])
            return
        template = self.dialect.fold if self.lanes is None else self.lanes.vectors.result
        text = template.format(
            type=self.dialect.type_of(f.var.dtype),
            name=f.var.name,
            acc=_partial(f).name,
            combine=self.scalars.expr(f.combine),
        )
        for part in text.splitlines():
            self.body.line(part)


def _names(line: str, var: Var) -> bool:
    return re.search(rf"\b{var.name}\b", line) is not None


def _partial(f: Fold) -> Var:
    """What the lanes fold to, before they are joined."""
    return Var(f"{f.var.name}_lanes", f.var.dtype)


def _extreme(f: Fold) -> str | None:
    """The fold that is just the greatest or least of floats."""
    a, b = left(f.var.dtype), right(f.var.dtype)
    if not f.var.dtype.is_float or not np.isinf(f.identity.value):
        return None
    if f.identity.value < 0 and f.combine == Call("maximum", (a, b), f.var.dtype):
        return "largest"
    if f.identity.value > 0 and f.combine == Call("minimum", (a, b), f.var.dtype):
        return "smallest"
    return None


def _replace(x: Expr, values: dict[str, Expr]) -> Expr:
    if isinstance(x, Var):
        return values.get(x.name, x)
    return replace_children(x, lambda child: _replace(child, values))
