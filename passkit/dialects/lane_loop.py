"""Lane loops in C: their statements, and the folds that join what the lanes found."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from attrs import evolve

from passkit.ast import Load, Var, is_sum, left, right
from passkit.ast.index import expression, normal
from passkit.ast.stage import Fold, Let, Level, Loop, Prefetch, Running, Stage, Statement, Store
from passkit.ast.tidy import map_statement
from passkit.ast.walk import walk
from passkit.dialects.body import Body
from passkit.dialects.bundles import bundles_of
from passkit.dialects.lanes import MASK, NUMBERED, Lanes, turns
from passkit.dialects.pairs import Pairs
from passkit.dialects.quotients import is_quotient, proofs_of
from passkit.dialects.rows import Rows
from passkit.dialects.totals import extreme_of, memory_of, partial_of, replaced
from passkit.dialects.wholes import whole_of
from passkit.errors import CodeGenError
from passkit.ir.vector import VECTOR_WIDTH
from passkit.transforms.row_loads import row_loads
from passkit.transforms.transpose_tiles import with_values
from passkit.transforms.vector_shape import vector_variables
from passkit.values import dtype as dt


class LaneLoop:
    """Prints the lane loop of a stage, and what its folds need in front of it and behind.

    ``in_front`` and ``behind`` are lines around the loop over ``rows``, if there is one; ``totals``
    are the stores that those behind take care of.
    """

    def __init__(
        self, stage: Stage, loop: Loop, body: Body, rows: Rows | None, pairs: Pairs | None = None
    ) -> None:
        self.stage, self.loop, self.body, self.rows, self.pairs = stage, loop, body, rows, pairs
        self.in_front: list[str] = []
        self.behind: list[str] = []
        self.totals: dict[Fold, Store] = {}
        self.ends: dict[Fold, str] = {}
        self.scalars, self.dialect = body.scalars, body.dialect
        self.template, self.width = turns(stage, loop, body.dialect)
        if body.dialect.vectors is None:
            self.template = body.lane
        self.varying = vector_variables(stage, loop.var, body.aliased)
        self.lanes: Lanes | None = None
        if v := self.dialect.vectors:
            divided = body.num_divisors
            fixed = self.template == v.fixed
            if pairs is not None:
                self.template = v.pairs.fixed
                self.varying |= {s.var for s in pairs.values}
            self.lanes = Lanes(
                self.scalars, v, loop.var, self.varying, divided, {}, fixed=fixed, pairs=pairs
            )

    def print(self, statements: Iterable[Statement]) -> None:
        """The loop: what no lane changes stands in front of it."""
        statements, inside = list(statements), list[Statement]()
        if self.dialect.quotients is not None:
            self.scalars.proofs.update(proofs_of(statements, self.varying))
        for s in statements:
            if self.pairs is not None and s in self.pairs.values:
                self.body.line(self.pairs.fetched(s))
                inside.append(s)
            elif isinstance(s, Let) and s.var not in self.varying:
                self.body.let(s)
            else:
                inside.append(s)
        if whole := whole_of(self.loop, inside, self.body):
            return whole.print()
        self._prepare_divisors(inside)
        front, bundles = len(self.body.lines), bundles_of(self.loop, inside, self.body)
        if bundles is not None:
            self.scalars.proofs.update(proofs_of(bundles.statements, self.varying))
            for s in bundles.open():
                self._statement(s)
        self.open(inside, None if bundles is None else bundles.close())
        for s in self._interleaved(inside):
            self._statement(s)
        self.close(front)
        if bundles is not None:
            self.body.close()
        self.scalars.proofs.clear()
        self.scalars.divisors.clear()

    def _prepare_divisors(self, inside: Iterable[Statement]) -> None:
        """Name what divides all lanes, its reciprocal taken once, where lanes are no vectors."""
        templates = self.dialect.quotients
        if templates is None or self.lanes is not None:
            return
        for s in inside:
            for x in () if isinstance(s, Prefetch) else walk(s.value):
                if not is_quotient(x) or not isinstance(x.b, Var):  # type: ignore[attr-defined]
                    continue
                divisors, b = self.scalars.divisors, x.b  # type: ignore[attr-defined]
                if b in self.varying or b in divisors:
                    continue
                divisors[b] = f"by{self.body.num_divisors}"
                self.body.num_divisors += 1
                value = self.scalars.expr(b)
                self.body.line(templates.prepare.format(name=divisors[b], value=value))

    def _interleaved(self, statements: Sequence[Statement]) -> Sequence[Statement]:
        """Load rows of a few elements as columns; the statements that read them from there."""
        lanes = self.lanes
        if lanes is None or not lanes.vectors.columns or lanes.fixed or lanes.pairs is not None:
            return statements
        kinds = (Store, Fold, Running)
        excluded = {s.buffer for s in self.stage.body if isinstance(s, kinds) and s.buffer}
        excluded |= {*self.body.aliased, *self.scalars.registers}
        v, columns = lanes.vectors, dict[Load, Var]()
        for row in row_loads(statements, lanes.step, excluded):
            first = row.statement()
            at = self.scalars.address(first.buffer, first.index)
            self.body.line(v.columns.format(name=row.name, count=row.count, at=at, mask=MASK))
            for load, k in row.offsets.items():
                columns[load] = Var(v.column.format(name=row.name, k=k), load.dtype)
        if not columns:
            return statements
        self.lanes = evolve(lanes, varying=lanes.varying | set(columns.values()))
        return [map_statement(s, lambda x: with_values(x, columns)) for s in statements]

    def open_block(self, statements: Iterable[Statement]) -> None:
        """Begin lanes of one vector at a time, with other loops inside."""
        v, statements = self.dialect.vectors, list(statements)
        assert v is not None
        aligned = any(isinstance(s, Store) and s.stream for s in statements)
        self.template, self.width = v.aligned_loop if aligned else v.loop, VECTOR_WIDTH
        assert self.lanes is not None
        self.lanes = evolve(self.lanes, fixed=False)
        self.open(statements)

    def statement(self, s: Statement, varying: Container[Var]) -> None:
        """A statement in such a loop; ``varying`` are the variables that differ between lanes."""
        if isinstance(s, Let) and s.var not in varying:
            self.body.let(s)
        else:
            self._statement(s)

    def open(self, inside: Iterable[Statement], rest: Loop | None = None) -> None:
        """Begin the lanes, or those that are left of them, with these statements inside."""
        loop = rest or self.loop
        self.body.open_loop(
            self.template,
            var=loop.var.name,
            start=self.scalars.expr(loop.start),
            stop=self.scalars.expr(loop.stop),
            lanes=self.width,
            at=self._streamed(inside),
        )

    def close(self, front: int) -> None:
        """The end of the lanes; what divides all of them stands at line ``front``."""
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
                first = replaced(s.index, {self.loop.var.name: self.loop.start})
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
            case Let() if self.pairs is not None and s in self.pairs.values:
                self.body.line(self.pairs.spread(s))
            case Let():
                self.let(s)
            case Store():
                self.store(s)
            case Fold():
                self._fold(s)
            case Running():
                self._scan(s)
            case Prefetch(buffer, index):
                if self.dialect.prefetch:
                    at = self.scalars.address(buffer, index)
                    self.body.line(self.dialect.prefetch.format(at=at, mask=MASK))

    def let(self, s: Let) -> None:
        """A local of each lane."""
        if self.lanes is None:
            self.body.let(s)
            return
        kind, template = self.dialect.type_of(s.var.dtype), self.lanes.vectors.local
        value = self.lanes.expr(s.value)
        self.body.line(template.format(type=kind, name=s.var.name, value=value))

    def store(self, s: Store) -> None:
        """A store of each lane."""
        if self.lanes is None:
            self.body.store(s)
            return
        value, v = self.lanes.splat(s.value), self.lanes.vectors
        if s.buffer in self.scalars.registers:
            self.body.line(f"{self.scalars.element(s.buffer, s.index)} = {value};")
            return
        step, at = self.lanes.step(s.index), self.scalars.address(s.buffer, s.index)
        apart = self.lanes.apart(s.index)
        if step is None or step == 0:
            raise CodeGenError(
                f"a store to {s.buffer} must step along the lanes, got index {s.index}"
            )
        if apart is not None:
            template = v.pairs.store
            self.body.line(template.format(at=at, value=value, mask=MASK, stride=apart))
        elif step == 1:
            self.body.streams |= s.stream
            template = v.stream if s.stream else v.store
            self.body.line(template.format(at=at, value=value, mask=MASK))
        else:
            stride = self.lanes.stride(step)
            self.body.line(v.store_strided.format(at=at, value=value, stride=stride, mask=MASK))

    # Folds.

    def begin(self, f: Fold) -> None:
        """What a fold is before the first lane: its identity."""
        if f.buffer is not None:
            assert f.index is not None
            self.print([Store(f.buffer, f.index, f.identity)])
            return
        kind, name = self.dialect.type_of(f.var.dtype), partial_of(f).name
        identity = self.scalars.expr(f.identity)
        if self.lanes is None:
            self.body.line(f"{kind} {name} = {identity};")
            return
        v, values = self.lanes.vectors, {"type": kind, "lanes": self.width}
        if which := extreme_of(f):
            fold = v.extreme.format(which=which, **values)
        elif self.rows is None and self.template != v.fixed and is_sum(f.combine, dt.float32):
            fold = v.summing.format(**values)
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
        acc = partial_of(f)
        if f.buffer is not None:
            old = memory_of(f)
            self.store(Store(old.buffer, old.index, replaced(f.combine, {"a": old, "b": f.value})))
        elif self.lanes is not None:
            value = self.lanes.splat(f.value)
            once = all(x.level is not Level.THREAD for x in self.stage.loops)
            mask = NUMBERED if self.lanes.fixed and once else MASK
            self.body.line(self.lanes.vectors.take.format(acc=acc.name, value=value, mask=mask))
        else:
            term = f.value
            if not isinstance(term, Var):
                term = Var(f"{f.var.name}_term", f.var.dtype)
                self.body.let(Let(term, f.value))
            step = self.scalars.expr(replaced(f.combine, {"a": acc, "b": term}))
            self.body.line(f"{acc.name} = {step};")

    # Scans.

    def begin_scan(self, s: Running) -> None:
        """What a scan is before the first step: its identity."""
        if self.lanes is None:
            raise CodeGenError(f"dialect {self.dialect.name} has no scans; plan for its own target")
        if s.buffer is not None:
            assert s.index is not None
            self.print([Store(s.buffer, s.index, s.identity)])
            return
        a, b = left(s.var.dtype), right(s.var.dtype)
        joined = evolve(self.lanes, varying=frozenset([a, b]), divisors=None, like="a")
        text = self.lanes.vectors.running.format(
            name=partial_of(s).name,
            type=self.dialect.type_of(s.var.dtype),
            exclusive=str(s.exclusive).lower(),
            down=str(self.loop.down).lower(),
            identity=self.scalars.expr(s.identity),
            combine=joined.splat(s.combine),
        )
        self.body.line(text)

    def _scan(self, s: Running) -> None:
        """One step of a scan: along the lanes, or in each lane by itself, its total in memory."""
        assert self.lanes is not None
        if s.buffer is None:
            value, acc = self.lanes.splat(s.value), partial_of(s).name
            template = self.lanes.vectors.scan
            self.body.line(template.format(name=s.var.name, running=acc, value=value, mask=MASK))
            return
        old, memory = partial_of(s), memory_of(s)
        step = replaced(s.combine, {"a": old, "b": s.value})
        self.lanes = evolve(self.lanes, varying=self.lanes.varying | {old})
        self.let(Let(old, memory))
        if s.exclusive:
            self.let(Let(s.var, old))
        else:
            self.let(Let(s.var, step))
        self.store(Store(memory.buffer, memory.index, step if s.exclusive else s.var))

    def finish(self, f: Fold) -> None:
        """What a fold is behind the last lane: one number, unless each lane has its own."""
        if f.buffer is not None:
            return
        if f in self.totals:
            self.body.line(self.ends[f])
            return
        template = self.body.fold if self.lanes is None else self.lanes.vectors.result
        text = template.format(
            type=self.dialect.type_of(f.var.dtype),
            name=f.var.name,
            acc=partial_of(f).name,
            combine=self.scalars.expr(f.combine),
        )
        for part in text.splitlines():
            self.body.line(part)
