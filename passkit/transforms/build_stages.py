"""Lowering of a group with one iteration domain: a kernel AST with the stages of its schedule.

In a stage every value is a local variable. Those that are used once are then inlined if they are
short, and those that are invariant in the loop over threads are hoisted.
"""

from __future__ import annotations

from attrs import evolve

from passkit.analysis.domain import ValueKind
from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.analysis.params import params_of
from passkit.ast import Call, Expr, Load, Reduce, Var, cast, left, right, size_of
from passkit.ast.index import Sum, add, expression, normal, ravel, times
from passkit.ast.stage import (
    Buffer,
    Fold,
    KernelAST,
    Level,
    Part,
    Phase,
    Place,
    Stage,
    Statement,
    Store,
)
from passkit.ast.tidy import tidy_stage
from passkit.diagnostics import Diagnostic
from passkit.errors import CodeGenError
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.node import Entry, Node, known_dtype
from passkit.schedule.schedule import Schedule, StagePlan
from passkit.schedule.shared_plan import SharedPlan, is_collected, padded, same_row_value
from passkit.schedule.tile_buffers import BufferContent
from passkit.schedule.tile_loops import TileLoops
from passkit.transforms.buffer_map import BufferMap
from passkit.transforms.build_values import ValueBuilder
from passkit.transforms.local_names import local_names
from passkit.transforms.nest_loops import NestLoops
from passkit.transforms.prefetch import StagePrefetches
from passkit.values.size import Extent, numel


def lower_single_nest(
    group: Group, schedule: Schedule, shared: SharedPlan
) -> tuple[KernelAST, Extent]:
    """Return the kernel AST of a group with one iteration domain, and its number of tiles.

    Args:
        group: the group.
        schedule: its schedule.
        shared: the plan of its scratch memory.

    Raises: CodeGenError if the schedule was made for another group.
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
    """Builds the stages of one loop nest, in order.

    Args:
        group: the group.
        info: the analysis of its iteration domain.
        schedule: its schedule.
        shared: the plan of its scratch memory.
        buffer_map: the locations of inputs and outputs; those of parameters by default.
        loops: the loops of a stage; those of a kernel with one nest by default.

    Attributes:
        first_array: the number of the nest's first scratch array in the kernel.
        vector_axis: the axis along which threads or vector elements are adjacent.
        row_value_axis: the axis along which row values have a thread each; None for scalars.
        is_column: whether the reduced axis is outside of ``vector_axis``.
        is_short: whether a tile consists of several short rows.
        name_counts: how often each name of a local variable was used.
        row_values: the expressions of row values.
        row_maxima: the entries whose maximum over a row an expression is.
        array_values: the names of the row values in scratch arrays.
        stored: the nodes whose values an earlier stage stored.
    """

    def __init__(
        self,
        group: Group,
        info: DomainInfo,
        schedule: Schedule,
        shared: SharedPlan,
        buffer_map: BufferMap | None = None,
        loops: TileLoops | NestLoops | None = None,
    ) -> None:
        self.group, self.info, self.schedule, self.shared = group, info, schedule, shared
        self.graph, self.domain = info.graph, info.domain
        self.nodes = self.graph.nodes
        self.number = {n: k for k, n in enumerate(self.nodes)}
        self.names = local_names(self.nodes)
        self.buffer_map = buffer_map or BufferMap(self.graph, self.domain)
        self.staged_values = {self.nodes[k.value]: k for k in schedule.staged}
        self.loops = loops or TileLoops(self.domain, schedule)
        self.first_array = 0
        self.vector_axis, self.row_value_axis = self.loops.vector_axis, self.loops.row_value_axis
        self.is_column, self.is_short = self.loops.is_column, self.loops.is_short
        self.name_counts: dict[str, int] = {}
        self.row_values: dict[Entry, Expr] = {}
        self.row_maxima: dict[Expr, Entry] = {}
        self.array_values: dict[str, str] = {}
        self.stored: set[Node] = set()
        # A nest of several has none: its inputs are small, or the tile before has prefetched them.
        self.prefetches: StagePrefetches | None = None
        if isinstance(self.loops, TileLoops):
            self.prefetches = StagePrefetches(schedule, info, self.loops, self.buffer_map)

    def kernel(self) -> tuple[KernelAST, Extent]:
        """Return the kernel AST and its number of tiles."""
        assert isinstance(self.loops, TileLoops)
        tile, rows, lets, tiles = self.loops.tile_loops()
        stages = self.stages()
        tile_lets, row_lets = (lets, []) if rows is None else ([], lets)
        part = Part(tuple(tile_lets), rows, tuple(row_lets), tuple(stages))
        registers = [
            Buffer(
                f"r{k.value}",
                known_dtype(self.nodes[k.value].entries[0]),
                k.place,
                self.vector_axis.extent,
            )
            for k in self.schedule.staged
            if k.place is Place.LANES
        ]
        scratch = (*self.shared.buffers(rows is not None), *registers)
        return KernelAST(params_of(self.graph), (), scratch, (Phase(tile, (part,)),)), tiles

    def stages(self) -> list[Stage]:
        """Return the stages of the schedule, without empty ones."""
        plans = enumerate(self.schedule.stages)
        return [s for k, plan in plans for s in self._stages_of(plan, f"stage{k}") if s.body]

    # A traversal of the points of a tile or row, and the row values behind it.

    def _stages_of(self, plan: StagePlan, name: str) -> list[Stage]:
        """Return the stages of one planned stage."""
        stages: list[Stage] = []
        if plan.reduces or plan.staged or plan.stores:
            stages.append(self._full_stage(plan, name))
            stages += [self._copy_stage(k) for k in plan.stores if self._is_gathered(k)]
        if plan.row_values:
            stages.append(self._row_stage(plan, name))
        return stages

    def _full_stage(self, plan: StagePlan, name: str) -> Stage:
        """Return the stage that traverses all points."""
        values = ValueBuilder(self)
        reductions = [self.nodes[k] for k in plan.reduces]
        roots = [n.inputs[0].node for n in reductions]
        roots += [self.nodes[k] for k in plan.staged]
        roots += [self.graph.outputs[k].node for k in plan.stores]
        values.compute(roots)
        body: list[Statement] = [self._reduction_statement(n, values) for n in reductions]
        staged = {}
        for k in plan.staged:
            node = self.nodes[k]
            staged[self.staged_element(node)] = node.entries[0]
            body.append(Store(*self.staged_element(node), values.full(node.entries[0])))
            self.stored.add(node)
        for k in sorted(plan.stores, key=str):
            entry = self.graph.outputs[k]
            stores = self._output_stores(k, values.full(entry))
            # A value that is staged in the output's buffer is stored already.
            body += [s for s in stores if staged.get((s.buffer, s.index)) is not entry]
        body += [] if self.prefetches is None else self.prefetches.of_stage(plan)
        inner = self.loops.stage_loops()
        if values.is_reversed:
            inner = tuple(
                evolve(x, down=not (self.is_column and x.level is Level.CTA)) for x in inner
            )
        loops = (*self.loops.short_row_loops(Level.WARP), *inner)
        for node in reductions:
            self._bind_total(node)
        after = tuple(self._store_total(n) for n in reductions) if self.is_short else ()
        stage = Stage(name, loops, (*values.lets, *body), after=after)
        return tidy_stage(stage, self.vector_axis.var)

    def _output_stores(self, k: int, value: Expr) -> list[Store]:
        """Return the stores of an output, to its buffer or to a scratch array with its tile."""
        if self._is_gathered(k) and isinstance(self.loops, TileLoops):
            at = self._point(self.domain.point_index) - self.loops.first_point()
            return [Store(self._scratch(BufferContent.RESULT, k), at, value)]
        stream = k in self.schedule.stream
        places = self.buffer_map.outputs(k, ValueKind.POINT)
        return [Store(buffer, self._point(at), value, stream) for buffer, at in places]

    def _is_gathered(self, k: int) -> bool:
        """Return whether a tile of an output is collected in scratch memory first."""
        return is_collected(self.schedule, k, known_dtype(self.graph.outputs[k]))

    def _copy_stage(self, k: int) -> Stage:
        """Return the stage that copies the tile of an output from scratch by whole cache lines."""
        assert isinstance(self.loops, TileLoops)
        loop = self.loops.point_loop()
        buffer, dtype = self._scratch(BufferContent.RESULT, k), known_dtype(self.graph.outputs[k])
        value = Load(buffer, loop.var - self.loops.first_point(), dtype)
        return Stage(f"stream{k}", (loop,), (Store(f"y{k}", loop.var, value, True),))

    def _store_total(self, node: Node) -> Store:
        """Return the store of a reduction's result to scratch memory."""
        total = Var(self.names[node], _reduction(node).identity.dtype)
        return Store(
            self._scratch(BufferContent.TOTAL, self.number[node]), self.loops.row_offset(), total
        )

    def _reduction_statement(self, node: Node, values: ValueBuilder) -> Fold:
        """Return the reduction of a node's operand."""
        reduction = _reduction(node)
        value = values.full(node.inputs[0], node)
        if reduction.prepare is not None:
            value = reduction.prepare(value)
        var = Var(self.names[node], reduction.identity.dtype)
        element = self.accumulator(node)
        return Fold(var, value, reduction.identity, reduction.combine, *element)

    def accumulator(self, node: Node) -> tuple[str, Expr] | tuple[()]:
        """Return buffer and index of each column's partial result; () if threads have it."""
        if not self.is_column:
            return ()
        return self._scratch(BufferContent.TOTAL, self.number[node]), self.loops.row_offset()

    def _bind_total(self, node: Node) -> None:
        """Record the expression of a reduction's result for later stages."""
        reduction = _reduction(node)
        total: Expr = Var(self.names[node], reduction.identity.dtype)
        if self.row_value_axis is not None:
            buffer = self._scratch(BufferContent.TOTAL, self.number[node])
            self.array_values[buffer] = self.names[node]
            total = Load(buffer, self.loops.row_offset(), reduction.identity.dtype)
        self.row_values[node.entries[0]] = total
        a, b = left(total.dtype), right(total.dtype)
        is_maximum = reduction.combine == Call("maximum", (a, b), total.dtype)
        if reduction.prepare is None and is_maximum:
            self.row_maxima[total] = node.inputs[0]

    def _row_stage(self, plan: StagePlan, name: str) -> Stage:
        """Return the stage of row values: of one row as scalars, else in a loop over rows."""
        values = ValueBuilder(self, is_row_stage=True)
        computed, renamed = self._compute_rows(plan, values)
        body: list[Statement] = [*values.lets, *self._row_output_stores(plan)]
        if self.row_value_axis is None:
            # Scalars are visible to later stages of the row, so that none may be inlined.
            visible = frozenset(v for e in computed if isinstance(v := self.row_values[e], Var))
            return tidy_stage(Stage(f"{name}_rows", (), tuple(body)), None, visible)
        body += self._store_rows(computed)
        for entry, same in renamed.items():
            self.row_values[entry] = self.row_values[same]
        loop = self.loops.short_row_loops(Level.CTA) or [self.loops.vector_loop()]
        return tidy_stage(Stage(f"{name}_rows", tuple(loop), tuple(body)), self.row_value_axis.var)

    def _compute_rows(
        self, plan: StagePlan, values: ValueBuilder
    ) -> tuple[list[Entry], dict[Entry, Entry]]:
        """Bind the row values of a stage.

        Returns: the computed ones, and those that equal another one.
        """
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

    def _row_output_stores(self, plan: StagePlan) -> list[Store]:
        """Return the stores of row values that are outputs."""
        return [
            Store(buffer, self._row_point(at), self.row_values[entry])
            for k, entry in enumerate(self.graph.outputs)
            if self.number[entry.node] in plan.row_values
            for buffer, at in self.buffer_map.outputs(k, ValueKind.REDUCED)
        ]

    def _store_rows(self, computed: list[Entry]) -> list[Store]:
        """Return the stores to scratch of row values that a later stage loads from there."""
        stores = []
        for entry in computed:
            number = self.number[entry.node]
            if self.shared.array_of(BufferContent.VALUE, number) is not None:
                buffer = self._scratch(BufferContent.VALUE, number)
                self.array_values[buffer] = self.names[entry.node]
                stores.append(Store(buffer, self.loops.row_offset(), self.row_values[entry]))
                self.row_values[entry] = Load(buffer, self.loops.row_offset(), known_dtype(entry))
        return stores

    def _row_point(self, at: Sum) -> Expr:
        """Return the index of a row value's store, which varies even if there is one row."""
        one = self.row_value_axis is not None and self.row_value_axis.extent == 1
        return expression(
            add(at, Sum(((self.row_value_axis.var, 1),))) if one and self.row_value_axis else at
        )

    def _row_value(self, node: Node, values: ValueBuilder) -> Expr:
        """Return the expression of a row value; a reduction's result is finished and rounded."""
        entry = node.entries[0]
        if reduce_of(node) is None:
            return values.at(node, self.info.index(entry, ValueKind.REDUCED))
        finish, value = _reduction(node).finish, self.row_values[entry]
        if finish is not None:
            count = size_of(numel(a.extent for a in self.domain.reduced))
            value = finish(values.row(entry), count)
        return cast(value, known_dtype(entry))

    # Locations of staged values and of scratch.

    def _scratch(self, content: BufferContent, number: int) -> str:
        """Return the name of a scratch array.

        Raises: CodeGenError if the plan of scratch memory has none.
        """
        k = self.shared.array_of(content, number)
        if k is None:
            raise CodeGenError(
                f"{self.group} needs scratch for its {content.value} {number}, and the shared plan "
                f"has none; run SharedMemPlan after SchedulePlan"
            )
        return f"s{self.first_array + k}"

    def new_local(self, name: str) -> str:
        """Return an unused name for a local variable; those of two stages may both be hoisted."""
        count = self.name_counts[name] = self.name_counts.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count}"

    def _point(self, at: Sum) -> Expr:
        """Return an index with the variable of ``vector_axis``, even if its length is 1."""
        if isinstance(self.loops, NestLoops):
            at = self.loops.along(at)
        one = Sum(((self.vector_axis.var, 1),)) if self.vector_axis.extent == 1 else Sum(())
        return expression(add(at, one))

    def staged_element(self, node: Node) -> tuple[str, Expr]:
        """Return the buffer and index of a staged value at the current point."""
        staged = self.staged_values[node]
        if staged.place is Place.GLOBAL:
            buffer, at = self.buffer_map.outputs(staged.output, ValueKind.POINT)[0]
            own = self.shared.array_of(BufferContent.VALUE, staged.value)  # laid out as the output
            name = buffer if own is None else self._scratch(BufferContent.VALUE, staged.value)
            return name, self._point(at)
        if staged.place is Place.LANES:
            return f"r{staged.value}", self.vector_axis.var
        reduced = self.domain.reduced
        extents = tuple(a.extent for a in reduced)
        point = ravel([a.var for a in reduced], extents, self.domain.extents)
        scratch = self._scratch(BufferContent.VALUE, staged.value)
        if self.is_column:
            assert self.schedule.width is not None
            point = add(times(point, self.schedule.width), normal(self.loops.row_offset(), {}))
            return scratch, expression(point)
        if self.is_short:
            row = self.loops.row_offset() * size_of(padded(numel(extents)))
            return scratch, row + self._point(point)
        return scratch, self._point(point)


def _reduction(node: Node) -> Reduce:
    """Return the reduction that an operator is."""
    reduction = reduce_of(node)
    assert reduction is not None
    return reduction
