"""Lowering: a group, its schedule and its scratch become a kernel AST of stages.

Stages follow the schedule; inside a stage every value is a local, computed once. Locals used once
are put back into their user where that reads better, those that no lane changes move in front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import evolve

from passkit import dtype as dt
from passkit.ast import (
    Binary,
    Buffer,
    Expr,
    Fixed,
    Fold,
    KernelAST,
    Let,
    Level,
    Load,
    Loop,
    Phase,
    Place,
    Prefetch,
    Reduce,
    SizeOf,
    Stage,
    Statement,
    Store,
    Var,
    cast,
    const,
    size_of,
    where,
)
from passkit.errors import CodeGenError
from passkit.group import Group
from passkit.index import Sum, add, expression, normal, ravel, times
from passkit.node import Entry, Node, known_shape
from passkit.op import FElement
from passkit.reads import Index, Reader, element
from passkit.schedule import Composition, Schedule, StagePlan
from passkit.shared import SharedPlan, padded
from passkit.size import Extent, Size, numel
from passkit.space import Axis, Infeasible, Layout, Role, is_free, lay_out, reduce_of
from passkit.tidy import map_statement, replace_children, tidy_stage

AHEAD = 512
"""How many elements before its use a streaming kernel asks for an input."""
TILE = Var("tile", dt.int64)
ROW = Var("row", dt.int64)
LOW, HIGH = Var("low", dt.int64), Var("high", dt.int64)


def lower(group: Group, schedule: Schedule, shared: SharedPlan) -> tuple[KernelAST, Extent]:
    """The kernel AST of a group, and its number of tiles.

    Raises: CodeGenError when the schedule was made for another group.
    """
    layout = lay_out(group.graph)
    if isinstance(layout, Infeasible):
        raise CodeGenError(f"{group} cannot be one kernel: {layout.reason}")
    if layout.space.axes != schedule.axes:
        raise CodeGenError(
            f"{group} has axes {layout.space.axes}, its schedule {schedule.axes}; run SchedulePlan "
            f"on this graph"
        )
    return _Lowering(group, layout, schedule, shared).kernel()


class _Lowering:
    def __init__(
        self, group: Group, layout: Layout, schedule: Schedule, shared: SharedPlan
    ) -> None:
        self.group, self.layout, self.schedule, self.shared = group, layout, schedule, shared
        self.graph, self.space = layout.graph, layout.space
        self.nodes = self.graph.nodes
        self.number = {n: k for k, n in enumerate(self.nodes)}
        self.names = _local_names(self.nodes)
        self.inputs = {n: f"x{k}" for k, n in enumerate(self.graph.inputs)}
        self.kept = {self.nodes[k.value]: k for k in schedule.kept}
        self.column = schedule.composition is Composition.COLUMN
        self.short = schedule.composition is Composition.SHORT
        self.lane = self.space.axes[-1]
        # The axis along which row values have lanes of their own; None where they are scalars.
        self.across = self.lane if self.column else self.space.kept[0] if self.short else None
        self.locals: dict[str, int] = {}
        self.row_values: dict[Entry, Expr] = {}
        self.written: set[Node] = set()
        passes = [p for p in schedule.stages if p.folds or p.keeps or p.stores]
        self._second = passes[1] if len(passes) > 1 else None

    def kernel(self) -> tuple[KernelAST, Extent]:
        tile, rows, lets, tiles = self._tiles()
        stages: list[Stage] = []
        for k, plan in enumerate(self.schedule.stages):
            stages += [s for s in self._stage(plan, f"stage{k}") if s.body]
        buffers = [
            Buffer(self.inputs[n], _dtype(n.entries[0]), Place.GLOBAL, numel(_shape(n.entries[0])))
            for n in self.graph.inputs
        ]
        buffers += [
            Buffer(f"y{k}", _dtype(e), Place.GLOBAL, numel(_shape(e)), written=True)
            for k, e in enumerate(self.graph.outputs)
        ]
        phase = Phase(tile, rows, tuple(lets), tuple(stages))
        registers = [
            Buffer(f"r{k.value}", _dtype(self.nodes[k.value].entries[0]), k.place, self.lane.extent)
            for k in self.schedule.kept
            if k.place is Place.LANES
        ]
        ast = KernelAST(tuple(buffers), (), (*self.shared.buffers(), *registers), (phase,))
        return ast, tiles

    # The loops around the stages.

    def _tiles(self) -> tuple[Loop, Loop | None, list[Let], Extent]:
        s, chunk, width = self.space, self.schedule.split.chunk, self.schedule.width
        grid = [a for a in s.kept if a is not self.lane]
        count = numel(a.extent for a in grid)
        if self.short:
            tiles = _ceil(count, chunk)
            return self._grid(tiles), None, self._range(TILE, chunk, count), tiles
        if self.column or (not grid and not self.lane.reduced):
            assert width is not None
            blocks = _ceil(self.lane.extent, width)
            tiles = count * blocks
            several = argument(blocks)
            block = Binary("%", TILE, several, dt.int64) if grid else TILE
            lets = [*self._range(block, width, self.lane.extent), *_decode(TILE // several, grid)]
            return self._grid(tiles), None, lets, tiles
        tiles = _ceil(count, chunk)
        var = grid[0].var if len(grid) == 1 else ROW
        start = TILE * argument(chunk)
        rows = Loop(var, start, start + argument(chunk), Level.WARP, argument(count))
        lets = [] if len(grid) == 1 else _decode(ROW, grid)
        return self._grid(tiles), rows, lets, tiles

    def _range(self, block: Expr, width: Extent, extent: Extent) -> list[Let]:
        """The lanes, or rows, of a tile: from ``low`` to ``high``."""
        step = size_of(width, Fixed.LITERAL)
        end = LOW + step
        last = argument(extent)
        return [Let(LOW, block * step), Let(HIGH, where(end < last, end, last))]

    def _grid(self, tiles: Extent) -> Loop:
        return Loop(TILE, size_of(0), argument(tiles), Level.GRID)

    def _lane_loop(self) -> Loop:
        if self.schedule.width is None:
            return Loop(self.lane.var, size_of(0), size_of(self.lane.extent), Level.CTA)
        return Loop(self.lane.var, LOW, HIGH, Level.CTA)

    def _serial_loops(self) -> list[Loop]:
        axes = [a for a in self.space.reduced if a is not self.lane]
        return [Loop(a.var, size_of(0), size_of(a.extent), Level.THREAD) for a in axes]

    # One pass over the points of a tile or row, and the row values it leaves.

    def _stage(self, plan: StagePlan, name: str) -> list[Stage]:
        stages: list[Stage] = []
        if plan.folds or plan.keeps or plan.stores:
            stages.append(self._pass(plan, name))
        if plan.rows:
            stages.append(self._row_stage(plan, name))
        return stages

    def _pass(self, plan: StagePlan, name: str) -> Stage:
        values = _Values(self)
        folds = [self.nodes[k] for k in plan.folds]
        roots = [n.inputs[0].node for n in folds]
        roots += [self.nodes[k] for k in plan.keeps]
        roots += [self.graph.outputs[k].node for k in plan.stores]
        values.compute(roots)
        body: list[Statement] = [self._fold(n, values) for n in folds]
        stores = {(f"y{k}", self.graph.outputs[k]) for k in plan.stores}
        for k in plan.keeps:
            node = self.nodes[k]
            buffer, index = self._kept_at(node)
            stores.discard((buffer, node.entries[0]))  # it is stored by being kept there
            body.append(Store(buffer, index, values.full(node.entries[0])))
            self.written.add(node)
        for buffer, entry in sorted(stores, key=lambda s: s[0]):
            stream = int(buffer[1:]) in self.schedule.stream
            body.append(Store(buffer, self._point(self.space.full), values.full(entry), stream))
        body += self._prefetches(plan)
        loops = (*self._row_loops(Level.WARP), *self._serial_loops(), self._lane_loop())
        for node in folds:
            self._after_fold(node)
        after = tuple(self._keep_total(n) for n in folds) if self.short else ()
        stage = Stage(name, loops, (*values.lets, *body), after=after)
        return tidy_stage(stage, self.lane.var)

    def _row_loops(self, level: Level) -> list[Loop]:
        """The rows of a tile of short rows."""
        return [Loop(self.across.var, LOW, HIGH, level)] if self.short and self.across else []

    def _keep_total(self, node: Node) -> Store:
        total = Var(self.names[node], _reduction(node).identity.dtype)
        return Store(self._scratch(-1 - self.number[node]), self._offset(), total)

    def _prefetches(self, plan: StagePlan) -> list[Statement]:
        """What is asked of memory ahead of its use.

        In the stage after the first the next row, or the next tile of short rows, of what is read
        row by row: the first stage then finds it in the cache. Where one pass streams its results,
        what it reads a little later.
        """
        long = not isinstance(self.lane.extent, int) or self.lane.extent > SMALL
        if plan is self._second and self.short:
            ahead = size_of(numel([self.schedule.split.chunk, self.lane.extent]), Fixed.LITERAL)
        elif plan is self._second and self.lane.reduced and long:
            ahead = size_of(numel(a.extent for a in self.space.reduced))
        elif self.schedule.stream and not self.space.reduced:
            ahead = size_of(AHEAD, Fixed.LITERAL)
        else:
            return []
        reads = self.layout.input_reads
        return [
            Prefetch(self.inputs[n], expression(self.space.full) + ahead)
            for n in self.graph.inputs
            if any(a == self.space.full for a in reads.get(n, []))
        ]

    def _fold(self, node: Node, values: _Values) -> Fold:
        found = _reduction(node)
        value = values.full(node.inputs[0])
        if found.prepare is not None:
            value = found.prepare(value)
        var = Var(self.names[node], found.identity.dtype)
        if not self.column:
            return Fold(var, value, found.identity, found.combine)
        buffer = self._scratch(-1 - self.number[node])
        return Fold(var, value, found.identity, found.combine, buffer, self._offset())

    def _after_fold(self, node: Node) -> None:
        found = _reduction(node)
        total: Expr = Var(self.names[node], found.identity.dtype)
        if self.across is not None:
            buffer = self._scratch(-1 - self.number[node])
            total = Load(buffer, self._offset(), found.identity.dtype)
        self.row_values[node.entries[0]] = total

    def _row_stage(self, plan: StagePlan, name: str) -> Stage:
        """Row values in scalars (ROW), or lane by lane through scratch (COLUMN, SHORT)."""
        values = _Values(self, rows=True)
        body: list[Statement] = []
        computed: list[int] = []
        for k in plan.rows:
            node, entry = self.nodes[k], self.nodes[k].entries[0]
            value = self._row_value(node, values)
            renamed = isinstance(value, Var) and self.across is None
            if value is not self.row_values.get(entry) and not renamed:
                name = self.names[node]
                name = name if reduce_of(node) is None else f"{name}_row"
                var = Var(self.local(name), value.dtype)
                body.append(Let(var, value))
                computed.append(k)
                value = var
            self.row_values[entry] = value
        for j, entry in enumerate(self.graph.outputs):
            if self.number[entry.node] in plan.rows:
                at = self._row_point() if self.across else expression(self.space.row)
                body.append(Store(f"y{j}", at, self.row_values[entry]))
        if self.across is None:
            # Scalars stay visible to the later stages of the row, so none may be put back.
            return Stage(f"{name}_rows", (), tuple(body))
        for k in computed:
            entry = self.nodes[k].entries[0]
            buffer = self._scratch(k)
            body.append(Store(buffer, self._offset(), self.row_values[entry]))
            self.row_values[entry] = Load(buffer, self._offset(), _dtype(entry))
        loop = self._row_loops(Level.CTA) or [self._lane_loop()]
        return tidy_stage(Stage(f"{name}_rows", tuple(loop), tuple(body)), self.across.var)

    def _row_point(self) -> Expr:
        """Where a row value is stored, stepping along the lanes even where there is one row."""
        assert self.across is not None
        one = Sum(((self.across.var, 1),)) if self.across.extent == 1 else Sum(())
        return expression(add(self.space.row, one))

    def _row_value(self, node: Node, values: _Values) -> Expr:
        """A reduction's total as it is, or finished and rounded; any other row value computed."""
        entry = node.entries[0]
        if reduce_of(node) is None:
            return values.at(node, self.space.index(Role.ROW, _shape(entry)))
        finish, value = _reduction(node).finish, self.row_values[entry]
        if finish is not None:
            value = finish(value, size_of(numel(a.extent for a in self.space.reduced)))
        return cast(value, _dtype(entry))

    # Where kept values and scratch lie.

    def _scratch(self, value: int) -> str:
        k = self.shared.array_of(value)
        if k is None:
            raise CodeGenError(
                f"{self.group} needs scratch for its value {value}, and the shared plan has none; "
                f"run SharedMemPlan after SchedulePlan"
            )
        return f"s{k}"

    def local(self, name: str) -> str:
        """A name for a local, numbered where another stage has taken it: both may be hoisted."""
        count = self.locals[name] = self.locals.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count}"

    def _point(self, at: Sum) -> Expr:
        """An index that steps along the lanes, even where there is only one."""
        one = Sum(((self.lane.var, 1),)) if self.lane.extent == 1 else Sum(())
        return expression(add(at, one))

    def _offset(self) -> Expr:
        """The place of the current lane, or short row, in the tile."""
        assert self.across is not None
        return Binary("-", self.across.var, LOW, dt.int64)

    def _kept_at(self, node: Node) -> tuple[str, Expr]:
        kept = self.kept[node]
        if kept.place is Place.GLOBAL:
            return f"y{kept.output}", self._point(self.space.full)
        if kept.place is Place.LANES:
            return f"r{kept.value}", self.lane.var
        folded = self.space.reduced
        point = ravel([a.var for a in folded], tuple(a.extent for a in folded), self.space.extents)
        if self.column:
            assert self.schedule.width is not None
            point = add(times(point, self.schedule.width), normal(self._offset(), {}))
        if self.short:
            row = self._offset() * size_of(padded(numel(a.extent for a in folded)))
            return self._scratch(kept.value), row + self._point(point)
        if self.column:
            return self._scratch(kept.value), expression(point)
        return self._scratch(kept.value), self._point(point)


class _Values:
    """The locals of one stage: each value at the current point, bound once."""

    def __init__(self, lowering: _Lowering, rows: bool = False) -> None:
        self.of, self.rows = lowering, rows
        self.space = lowering.space
        self.lets: list[Let] = []
        self.bound: dict[tuple[Entry, Index], Expr] = {}

    def compute(self, roots: Iterable[Node]) -> None:
        """Bind every FULL value that ``roots`` need, in the group's order."""
        needed: set[Node] = set()
        todo = list(roots)
        while todo:
            node = todo.pop()
            if is_free(node) or node in needed or reduce_of(node) is not None:
                continue
            if Role.FULL not in self.of.layout.roles[node]:
                continue
            needed.add(node)
            if node not in self.of.written:
                todo += [e.node for e in node.inputs]
        for node in self.of.nodes:
            if node in needed:
                self.full(node.entries[0])

    def full(self, entry: Entry) -> Expr:
        """The value of ``entry`` at the current point."""
        index = self.space.index(Role.FULL, _shape(entry))
        key = (entry, index)
        if key not in self.bound:
            self.bound[key] = self._full(entry, index)
        return self.bound[key]

    def _full(self, entry: Entry, index: Index) -> Expr:
        node = entry.node
        if is_free(node):
            return self._leaf(entry, index, lazy=False)
        if node in self.of.written:
            buffer, at = self.of._kept_at(node)
            return self._let(self.of.names[node], Load(buffer, at, _dtype(entry)))
        return self._let(self.of.names[node], self.at(node, index))

    def at(self, node: Node, index: Index) -> Expr:
        """The expression of ``node``'s value at ``index``."""
        op = node.op
        assert op is not None
        lazy = FElement.get(op.name) is not None
        readers = [self._reader(e, lazy) for e in node.inputs]
        out = element(node, index, readers)
        if isinstance(out, tuple):
            raise CodeGenError(f"{node.where} has several results in one kernel")
        wanted = _dtype(node.entries[0])
        if out.dtype is not wanted:
            raise CodeGenError(
                f"{node.where}: its code gives {out.dtype}, its type rule {wanted}; make "
                f"FCodeGen and FInferType agree"
            )
        return out

    def _reader(self, entry: Entry, lazy: bool) -> Reader:
        def read(*at: Expr) -> Expr:
            extents = self.space.extents
            index = tuple(expression(normal(i, extents)) for i in at)
            if is_free(entry.node):
                return self._leaf(entry, index, lazy)
            role = self.of.layout.role_at(entry, index)
            if role is Role.ROW and entry in self.of.row_values:
                return self._row(entry)
            if role is Role.FULL and not self.rows:
                return self.full(entry)
            return self.at(entry.node, index)  # small enough to be repeated at another index

        return read

    def _row(self, entry: Entry) -> Expr:
        """A row value; a short row's is fetched once, in front of its lanes."""
        value = self.of.row_values[entry]
        if not self.of.short or self.rows or not isinstance(value, Load):
            return value
        key = (entry, ())
        if key not in self.bound:
            self.bound[key] = self._let(f"{self.of.names[entry.node]}_row", value)
        return self.bound[key]

    def _leaf(self, entry: Entry, index: Index, lazy: bool) -> Expr:
        """A load or a literal. Lazy loads stay inside the arm that asks for them."""
        node, shape = entry.node, _shape(entry)
        if node.op is not None:
            return const(node.params["value"].reshape(-1)[0], _dtype(entry))
        key = (entry, index)
        if key in self.bound:
            return self.bound[key]
        where = expression(ravel(index, shape, self.space.extents))
        load = Load(self.of.inputs[node], where, _dtype(entry))
        if lazy or self.rows:
            return load
        self.bound[key] = self._let(f"{self.of.inputs[node]}_{len(self.lets)}", load)
        return self.bound[key]

    def _let(self, name: str, value: Expr) -> Expr:
        if isinstance(value, Var):
            return value
        var = Var(self.of.local(name), value.dtype)
        self.lets.append(Let(var, value))
        return var


def _decode(linear: Expr, axes: list[Axis]) -> list[Let]:
    """The coordinates of a linear index, outermost first."""
    lets, stride = [], numel(a.extent for a in axes)
    for k, axis in enumerate(axes):
        stride = _over(stride, axis.extent)
        value = linear if stride == 1 else Binary("//", linear, size_of(stride), dt.int64)
        if k:
            value = Binary("%", value, size_of(axis.extent), dt.int64)
        lets.append(Let(axis.var, value))
    return lets


def _over(a: Extent, b: Extent) -> Extent:
    return a // b if b != 0 else 0


def argument(size: Extent) -> Expr:
    """An extent that is always an argument of the kernel, so that batches share one text."""
    return size_of(size, Fixed.ARGUMENT)


def _ceil(a: Extent, b: Extent) -> Extent:
    return (a + (b - 1)) // b


def _reduction(node: Node) -> Reduce:
    found = reduce_of(node)
    assert found is not None
    return found


def _local_names(nodes: Iterable[Node]) -> dict[Node, str]:
    """Names of locals: the operator's name, numbered where it repeats; C identifiers."""
    count: dict[str, int] = {}
    names = {}
    for node in nodes:
        if is_free(node) or node.op is None:
            continue
        base = "".join(c if c.isalnum() and c.isascii() else "_" for c in node.op.name) or "op"
        base = f"v_{base}" if base[0].isdigit() else base
        k = count[base] = count.get(base, 0) + 1
        names[node] = f"{base}_{k}"
    return names


def _shape(entry: Entry) -> tuple[Extent, ...]:
    return known_shape(entry)


def _dtype(entry: Entry) -> dt.DType:
    assert entry.dtype is not None
    return entry.dtype


SMALL = 64
"""Extents up to this are written into the kernel; larger ones are arguments."""


def pool_sizes(ast: KernelAST) -> tuple[KernelAST, tuple[Extent, ...]]:
    """The AST with its larger extents as size arguments ``n0``, ``n1``, …, and their values.

    Shapes that differ only in such extents then have one text, and one compiled kernel.
    """
    pool: dict[Extent, Var] = {}

    def swap(x: Expr) -> Expr:
        if not isinstance(x, SizeOf):
            return replace_children(x, swap)
        small = isinstance(x.size, int) and (x.fixed is Fixed.LITERAL or x.size <= SMALL)
        if x.fixed is Fixed.ARGUMENT or not small:
            return pool.setdefault(x.size, Var(f"n{len(pool)}", dt.int64))
        return const(x.size, dt.int64)

    def argument_of(extent: Extent) -> Extent:
        if isinstance(extent, int):
            return extent
        return Size.symbol(pool.setdefault(extent, Var(f"n{len(pool)}", dt.int64)).name)

    phases = tuple(_map_phase(p, swap) for p in ast.phases)
    scratch = tuple(evolve(b, extent=argument_of(b.extent)) for b in ast.scratch)
    names = tuple(v.name for v in pool.values())
    return evolve(ast, phases=phases, scratch=scratch, sizes=names), tuple(pool)


def _map_phase(phase: Phase, change: Callable[[Expr], Expr]) -> Phase:
    def loop(x: Loop) -> Loop:
        limit = None if x.limit is None else change(x.limit)
        return Loop(x.var, change(x.start), change(x.stop), x.level, limit)

    def let(x: Let) -> Let:
        return Let(x.var, change(x.value))

    def stage(x: Stage) -> Stage:
        body = tuple(map_statement(s, change) for s in x.body)
        before = tuple(map(let, x.before))
        after = tuple(Store(s.buffer, change(s.index), change(s.value)) for s in x.after)
        return Stage(x.name, tuple(map(loop, x.loops)), body, before, after)

    rows = None if phase.rows is None else loop(phase.rows)
    lets, stages = tuple(map(let, phase.lets)), tuple(map(stage, phase.stages))
    return Phase(loop(phase.tile), rows, lets, stages)
