"""Lowering: a group, its schedule and its scratch become a kernel AST of stages.

Stages follow the schedule; inside a stage every value is a local, computed once. Locals used once
are put back into their user where that reads better, those that no lane changes move in front.
"""

from __future__ import annotations

from attrs import evolve

from passkit.analysis.domain import ValueKind
from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.analysis.params import params_of
from passkit.analysis.size_arguments import SMALL
from passkit.analysis.unrolled import small_taps
from passkit.ast import Call, Expr, Fixed, Load, Reduce, Var, cast, left, right, size_of
from passkit.ast.index import Sum, add, expression, normal, ravel, times
from passkit.ast.stage import (
    Buffer,
    Fold,
    KernelAST,
    Level,
    Part,
    Phase,
    Place,
    Prefetch,
    Stage,
    Statement,
    Store,
)
from passkit.ast.tidy import tidy_stage
from passkit.diagnostics import Diagnostic
from passkit.errors import CodeGenError
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.node import Entry, Node, known_shape
from passkit.schedule.schedule import Schedule, StagePlan
from passkit.schedule.shared_plan import SharedPlan, gathers, padded, same_row_value
from passkit.schedule.tile_buffers import BufferContent
from passkit.schedule.tile_loops import TileLoops
from passkit.transforms.block_loops import NestLoops
from passkit.transforms.buffer_map import BufferMap
from passkit.transforms.build_values import ValueBuilder
from passkit.transforms.local_names import local_names
from passkit.values.dtype import DType
from passkit.values.size import Extent, numel

ROWS_AHEAD = 4
AHEAD = 512
"""How many elements before its use a streaming kernel asks for an input."""
NEAR = 64
"""How many elements before its use a kernel of many reads asks for an input."""
MANY = 8
"""From how many reads on processors do not see all streams: an EPYC 9004 gains a third with 24."""
LARGE = 1 << 18
"""From how many elements on an input is worth asking for ahead, where others would find it."""


def lower_single_nest(
    group: Group, schedule: Schedule, shared: SharedPlan
) -> tuple[KernelAST, Extent]:
    """The kernel AST of a group of one iteration space, and its number of tiles.

    Raises: CodeGenError when the schedule was made for another group.
    """
    info = analyze_domain(group.graph)
    if isinstance(info, Diagnostic):
        raise CodeGenError(f"{group} cannot be one kernel: {info}")
    if info.domain.axes != schedule.axes:
        raise CodeGenError(
            f"{group} has axes {info.domain.axes}, its schedule {schedule.axes}; run SchedulePlan "
            f"on this graph"
        )
    return StageBuilder(group, info, schedule, shared).kernel()


class StageBuilder:
    """The stages of one kernel in the making, and where each value lies by now."""

    def __init__(
        self,
        group: Group,
        info: DomainInfo,
        schedule: Schedule,
        shared: SharedPlan,
        homes: BufferMap | None = None,
        loops: TileLoops | NestLoops | None = None,
    ) -> None:
        self.group, self.info, self.schedule, self.shared = group, info, schedule, shared
        self.graph, self.domain = info.graph, info.domain
        self.nodes = self.graph.nodes
        self.number = {n: k for k, n in enumerate(self.nodes)}
        self.names = local_names(self.nodes)
        self.homes = homes or BufferMap(self.graph, self.domain)
        self.kept = {self.nodes[k.value]: k for k in schedule.staged}
        self.loops = loops or TileLoops(self.domain, schedule)
        self.first_array = 0
        self.lane, self.across = self.loops.vector_axis, self.loops.row_value_axis
        self.column, self.short = self.loops.is_column, self.loops.is_short
        self.locals: dict[str, int] = {}
        self.row_values: dict[Entry, Expr] = {}
        self.greatest: dict[Expr, Entry] = {}  # row value -> that whose greatest it is
        self.holder: dict[str, str] = {}  # scratch array -> the name of the row value in it
        self.written: set[Node] = set()
        passes = [p for p in schedule.stages if p.reduces or p.staged or p.stores]
        self._second = passes[1] if len(passes) > 1 else None

    def kernel(self) -> tuple[KernelAST, Extent]:
        """The kernel AST, and its number of tiles."""
        assert isinstance(self.loops, TileLoops)
        tile, rows, lets, tiles = self.loops.tile_loops()
        stages = self.stages()
        around, inside = (lets, []) if rows is None else ([], lets)
        part = Part(tuple(around), rows, tuple(inside), tuple(stages))
        registers = [
            Buffer(f"r{k.value}", _dtype(self.nodes[k.value].entries[0]), k.place, self.lane.extent)
            for k in self.schedule.staged
            if k.place is Place.LANES
        ]
        scratch = (*self.shared.buffers(rows is not None), *registers)
        return KernelAST(params_of(self.graph), (), scratch, (Phase(tile, (part,)),)), tiles

    def stages(self) -> list[Stage]:
        """The stages of the schedule."""
        found: list[Stage] = []
        for k, plan in enumerate(self.schedule.stages):
            found += [s for s in self._stage(plan, f"stage{k}") if s.body]
        return found

    # One pass over the points of a tile or row, and the row values it leaves.

    def _stage(self, plan: StagePlan, name: str) -> list[Stage]:
        stages: list[Stage] = []
        if plan.reduces or plan.staged or plan.stores:
            stages.append(self._pass(plan, name))
            stages += [self._stream(k) for k in plan.stores if self._gathers(k)]
        if plan.row_values:
            stages.append(self._row_stage(plan, name))
        return stages

    def _pass(self, plan: StagePlan, name: str) -> Stage:
        values = ValueBuilder(self)
        folds = [self.nodes[k] for k in plan.reduces]
        roots = [n.inputs[0].node for n in folds]
        roots += [self.nodes[k] for k in plan.staged]
        roots += [self.graph.outputs[k].node for k in plan.stores]
        values.compute(roots)
        body: list[Statement] = [self._fold(n, values) for n in folds]
        held = {}
        for k in plan.staged:
            node = self.nodes[k]
            held[self.kept_at(node)] = node.entries[0]
            body.append(Store(*self.kept_at(node), values.full(node.entries[0])))
            self.written.add(node)
        for k in sorted(plan.stores, key=str):
            entry = self.graph.outputs[k]
            stores = self._result(k, values.full(entry))
            # One that is kept there is stored already.
            body += [s for s in stores if held.get((s.buffer, s.index)) is not entry]
        body += self._prefetches(plan)
        inner = self.loops.stage_loops()
        if values.down:
            inner = tuple(evolve(x, down=not (self.column and x.level is Level.CTA)) for x in inner)
        loops = (*self.loops.short_row_loops(Level.WARP), *inner)
        for node in folds:
            self._after_fold(node)
        after = tuple(self._keep_total(n) for n in folds) if self.short else ()
        stage = Stage(name, loops, (*values.lets, *body), after=after)
        return tidy_stage(stage, self.lane.var)

    def _result(self, k: int, value: Expr) -> list[Store]:
        """The stores of an output, to where it lies or to where a tile of it is gathered."""
        if self._gathers(k) and isinstance(self.loops, TileLoops):
            at = self._point(self.domain.full) - self.loops.first_point()
            return [Store(self._scratch(BufferContent.RESULT, k), at, value)]
        stream = k in self.schedule.stream
        places = self.homes.outputs(k, ValueKind.FULL)
        return [Store(buffer, self._point(at), value, stream) for buffer, at in places]

    def _gathers(self, k: int) -> bool:
        return gathers(self.schedule, k, _dtype(self.graph.outputs[k]))

    def _stream(self, k: int) -> Stage:
        """The results of a tile, from scratch to memory by whole cache lines."""
        assert isinstance(self.loops, TileLoops)
        loop = self.loops.point_loop()
        buffer, dtype = self._scratch(BufferContent.RESULT, k), _dtype(self.graph.outputs[k])
        value = Load(buffer, loop.var - self.loops.first_point(), dtype)
        return Stage(f"stream{k}", (loop,), (Store(f"y{k}", loop.var, value, True),))

    def _keep_total(self, node: Node) -> Store:
        total = Var(self.names[node], _reduction(node).identity.dtype)
        return Store(
            self._scratch(BufferContent.TOTAL, self.number[node]), self.loops.row_offset(), total
        )

    def _prefetches(self, plan: StagePlan) -> list[Statement]:
        """What is asked of memory ahead of its use.

        In the stage after the first the next row, or the next tile of short rows, of what is read
        row by row: the first stage then finds it in the cache. Where one pass streams its results,
        reduces a chunk, or is made of short reductions of much memory, what it reads a little
        later; of columns, the next rows. Without reductions, what many reads take a little later,
        as there are more of them than processors follow.
        """
        long = not isinstance(self.lane.extent, int) or self.lane.extent > SMALL
        if isinstance(self.loops, NestLoops):
            return []  # what a tile reads is small, or was asked for by the tile before
        if plan is self._second and self.short:
            ahead = size_of(numel([self.schedule.split.chunk, self.lane.extent]), Fixed.LITERAL)
        elif plan is self._second and self.lane.reduced and long:
            ahead = size_of(self._next_row())
        elif self.loops.vector_loop().wide and plan.reduces and self.domain.axes[0].counting:
            reads = self.info.input_accesses
            if sum(self.domain.full in reads.get(n, ()) for n in self.graph.inputs) > 1:
                return []  # their rows are read one by one, which processors notice
            ahead = size_of(numel([self._rows_ahead(plan), self.lane.extent]))
        elif self._runs_through(plan) or any(map(self._passes_over, self.graph.inputs)):
            ahead = size_of(AHEAD, Fixed.LITERAL)
        elif long and (streams := self._many_streams()):
            return [
                Prefetch(self.homes.inputs[n], expression(at) + size_of(NEAR, Fixed.LITERAL))
                for n, at in streams
            ]
        else:
            return []
        return [
            Prefetch(self.homes.inputs[n], expression(at) + ahead)
            for n in self.graph.inputs
            for at in dict.fromkeys(self.info.input_accesses.get(n, []))
            if at == self.domain.full or self._passes_over(n)
        ]

    def _many_streams(self) -> list[tuple[Node, Sum]]:
        """The inputs that a kernel without reductions reads lane by lane, with where.

        They are none if these are few reads, or the inputs are known to be small.
        """
        if self.domain.reduced:
            return []
        reads = self.info.input_accesses
        streams = [
            (n, at)
            for n in self.graph.inputs
            for at in dict.fromkeys(reads.get(n, []))
            if at.coefficient(self.lane.var) == 1
        ]
        sizes = [numel(_shape(n.entries[0])) for n in dict.fromkeys(n for n, _ in streams)]
        is_small = all(isinstance(n, int) for n in sizes) and sum(map(int, sizes)) < LARGE
        return [] if is_small or len(streams) < MANY else streams

    def _next_row(self) -> Extent:
        """How far apart two rows begin, of what is read row by row."""
        for axis in reversed(self.domain.kept):
            if axis.extent != 1:
                return self.domain.full.coefficient(axis.var)
        return numel(a.extent for a in self.domain.reduced)

    def _passes_over(self, node: Node) -> bool:
        """Whether short reductions read a large input, each element once: in several streams."""
        size, taps = numel(_shape(node.entries[0])), max(map(small_taps, self.nodes))
        points = self.domain.size * taps
        return taps > 1 and isinstance(size, int) and size >= LARGE and size == points

    def _rows_ahead(self, plan: StagePlan) -> int:
        """More where a step waits longer for the one before, as extremes do."""
        waits = any(isinstance(_reduction(self.nodes[k]).combine, Call) for k in plan.reduces)
        return 2 * ROWS_AHEAD if waits else ROWS_AHEAD

    def _runs_through(self, plan: StagePlan) -> bool:
        """Whether a stage goes once through much memory: to stream results, or to fold a chunk."""
        if self.domain.axes[0].counting:
            return self.lane.reduced and bool(plan.reduces)
        blocks = self.loops.block_axis is not None or self.loops.unrolled_axis is not None
        return bool(self.schedule.stream) and not blocks and not self.domain.reduced

    def _fold(self, node: Node, values: ValueBuilder) -> Fold:
        found = _reduction(node)
        value = values.full(node.inputs[0])
        if found.prepare is not None:
            value = found.prepare(value)
        var = Var(self.names[node], found.identity.dtype)
        return Fold(var, value, found.identity, found.combine, *self.total_at(node))

    def total_at(self, node: Node) -> tuple[str, Expr] | tuple[()]:
        """Where each column has the running total of a fold; elsewhere the lanes have it."""
        if not self.column:
            return ()
        return self._scratch(BufferContent.TOTAL, self.number[node]), self.loops.row_offset()

    def _after_fold(self, node: Node) -> None:
        found = _reduction(node)
        total: Expr = Var(self.names[node], found.identity.dtype)
        if self.across is not None:
            buffer = self._scratch(BufferContent.TOTAL, self.number[node])
            self.holder[buffer] = self.names[node]
            total = Load(buffer, self.loops.row_offset(), found.identity.dtype)
        self.row_values[node.entries[0]] = total
        a, b = left(total.dtype), right(total.dtype)
        if found.prepare is None and found.combine == Call("maximum", (a, b), total.dtype):
            self.greatest[total] = node.inputs[0]

    def _row_stage(self, plan: StagePlan, name: str) -> Stage:
        """Row values in scalars (ROW), or lane by lane through scratch (COLUMN, SHORT)."""
        values = ValueBuilder(self, rows=True)
        computed, renamed = self._compute_rows(plan, values)
        body: list[Statement] = [*values.lets, *self._row_results(plan)]
        if self.across is None:
            # Scalars stay visible to the later stages of the row, so none may be put back.
            visible = frozenset(v for e in computed if isinstance(v := self.row_values[e], Var))
            return tidy_stage(Stage(f"{name}_rows", (), tuple(body)), None, visible)
        body += self._keep_rows(computed)
        for entry, same in renamed.items():
            self.row_values[entry] = self.row_values[same]
        loop = self.loops.short_row_loops(Level.CTA) or [self.loops.vector_loop()]
        return tidy_stage(Stage(f"{name}_rows", tuple(loop), tuple(body)), self.across.var)

    def _compute_rows(
        self, plan: StagePlan, values: ValueBuilder
    ) -> tuple[list[Entry], dict[Entry, Entry]]:
        """Bind the row values of a stage: those computed, and those that are others renamed."""
        computed: list[Entry] = []
        renamed: dict[Entry, Entry] = {}
        for k in plan.row_values:
            node, entry = self.nodes[k], self.nodes[k].entries[0]
            same = same_row_value(node, self.domain)
            if same is not None and same in self.row_values:
                self.row_values[entry] = self.row_values[same]
                renamed[entry] = same
                continue
            value = self._row_value(node, values)
            if value is not self.row_values.get(entry):
                local = self.names[node] if reduce_of(node) is None else f"{self.names[node]}_row"
                self.row_values[entry] = values.let(local, value)
                computed.append(entry)
        return computed, renamed

    def _row_results(self, plan: StagePlan) -> list[Store]:
        """The stores of those row values that are outputs."""
        outputs = enumerate(self.graph.outputs)
        found = [(j, e) for j, e in outputs if self.number[e.node] in plan.row_values]
        return [
            Store(buffer, self._row_point(at), self.row_values[e])
            for j, e in found
            for buffer, at in self.homes.outputs(j, ValueKind.ROW)
        ]

    def _keep_rows(self, computed: list[Entry]) -> list[Store]:
        """The stores to scratch of what a later stage reads, from where it is fetched then."""
        stores = []
        for entry in computed:
            number = self.number[entry.node]
            if self.shared.array_of(BufferContent.VALUE, number) is not None:
                buffer = self._scratch(BufferContent.VALUE, number)
                self.holder[buffer] = self.names[entry.node]
                stores.append(Store(buffer, self.loops.row_offset(), self.row_values[entry]))
                self.row_values[entry] = Load(buffer, self.loops.row_offset(), _dtype(entry))
        return stores

    def _row_point(self, at: Sum) -> Expr:
        """Where a row value is stored, stepping along the lanes even where there is one row."""
        one = self.across is not None and self.across.extent == 1
        return expression(add(at, Sum(((self.across.var, 1),))) if one and self.across else at)

    def _row_value(self, node: Node, values: ValueBuilder) -> Expr:
        """A reduction's total as it is, or finished and rounded; any other row value computed."""
        entry = node.entries[0]
        if reduce_of(node) is None:
            return values.at(node, self.info.index(entry, ValueKind.ROW))
        finish, value = _reduction(node).finish, self.row_values[entry]
        if finish is not None:
            count = size_of(numel(a.extent for a in self.domain.reduced))
            value = finish(values.row(entry), count)
        return cast(value, _dtype(entry))

    # Where kept values and scratch lie.

    def _scratch(self, holds: BufferContent, number: int) -> str:
        k = self.shared.array_of(holds, number)
        if k is None:
            raise CodeGenError(
                f"{self.group} needs scratch for its {holds.value} {number}, and the shared plan "
                f"has none; run SharedMemPlan after SchedulePlan"
            )
        return f"s{self.first_array + k}"

    def local(self, name: str) -> str:
        """A name for a local, numbered where another stage has taken it: both may be hoisted."""
        count = self.locals[name] = self.locals.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count}"

    def _point(self, at: Sum) -> Expr:
        """An index that steps along the lanes, even where there is only one."""
        if isinstance(self.loops, NestLoops):
            at = self.loops.along(at)
        one = Sum(((self.lane.var, 1),)) if self.lane.extent == 1 else Sum(())
        return expression(add(at, one))

    def kept_at(self, node: Node) -> tuple[str, Expr]:
        """The buffer and the index that a value kept between stages has at the current point."""
        kept = self.kept[node]
        if kept.place is Place.GLOBAL:
            buffer, at = self.homes.outputs(kept.output, ValueKind.FULL)[0]
            own = self.shared.array_of(
                BufferContent.VALUE, kept.value
            )  # it lies as the output does
            place = buffer if own is None else self._scratch(BufferContent.VALUE, kept.value)
            return place, self._point(at)
        if kept.place is Place.LANES:
            return f"r{kept.value}", self.lane.var
        folded = self.domain.reduced
        point = ravel([a.var for a in folded], tuple(a.extent for a in folded), self.domain.extents)
        if self.column:
            assert self.schedule.width is not None
            point = add(times(point, self.schedule.width), normal(self.loops.row_offset(), {}))
        if self.short:
            row = self.loops.row_offset() * size_of(padded(numel(a.extent for a in folded)))
            return self._scratch(BufferContent.VALUE, kept.value), row + self._point(point)
        if self.column:
            return self._scratch(BufferContent.VALUE, kept.value), expression(point)
        return self._scratch(BufferContent.VALUE, kept.value), self._point(point)


def _reduction(node: Node) -> Reduce:
    found = reduce_of(node)
    assert found is not None
    return found


def _shape(entry: Entry) -> tuple[Extent, ...]:
    return known_shape(entry)


def _dtype(entry: Entry) -> DType:
    assert entry.dtype is not None
    return entry.dtype
