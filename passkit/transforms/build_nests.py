"""Lowering of several loop nests, which run one after another in each tile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve

from passkit.analysis.accesses import Index
from passkit.analysis.group import Group
from passkit.analysis.nests import source_of
from passkit.analysis.params import params_of
from passkit.analysis.tile_layout import window_bounds
from passkit.ast import Expr, Var, dt, size_of
from passkit.ast.index import Extents, ravel
from passkit.ast.stage import Dot, KernelAST, Let, Part, Phase, Stage
from passkit.ast.tidy import expressions
from passkit.ast.walk import variables
from passkit.diagnostics import Diagnostic
from passkit.errors import CodeGenError
from passkit.graph.node import Entry, Node, known_shape
from passkit.schedule.nest_info import analyze_nest
from passkit.schedule.schedule import MultiNest, Schedule, TileNest
from passkit.schedule.shared_plan import SharedPlan
from passkit.schedule.tile_loops import loop_over_tiles
from passkit.transforms.buffer_map import ScratchArray, StoredElement, TileBufferMap
from passkit.transforms.build_product import product_stages
from passkit.transforms.build_stages import StageBuilder
from passkit.transforms.nest_loops import NestLoops
from passkit.values.size import Extent


def lower_multi_nest(
    group: Group, schedule: Schedule, shared: SharedPlan
) -> tuple[KernelAST, Extent]:
    """Return the kernel AST of a group of several nests, and its number of tiles.

    Raises: CodeGenError when the schedule was made for another group.
    """
    assert schedule.multi_nest is not None
    return _NestLowering(group, schedule.multi_nest, shared).kernel()


def multi_nest_parts(group: Group, schedule: Schedule, shared: SharedPlan) -> Iterator[Part]:
    """Yield the parts of `lower_multi_nest`, each lowered when it is needed.

    Raises: CodeGenError when the schedule was made for another group.
    """
    assert schedule.multi_nest is not None
    return _NestLowering(group, schedule.multi_nest, shared).parts()


class _NestLowering:
    """The nests of a kernel while they are lowered."""

    def __init__(self, group: Group, multi_nest: MultiNest, shared: SharedPlan) -> None:
        self.group, self.graph = group, group.graph
        self.multi_nest, self.shared = multi_nest, shared
        self.nodes = self.graph.nodes
        self.number = {n: k for k, n in enumerate(self.nodes)}
        self.layouts = {self.nodes[k]: layout for k, layout in multi_nest.layouts}
        self.params = {n: f"x{k}" for k, n in enumerate(self.graph.inputs)}
        self.arrays = {
            self.nodes[a.number]: ScratchArray(
                f"s{k}", self.layouts[self.nodes[a.number]], self._first(self.nodes[a.number])
            )
            for k, a in enumerate(shared.arrays)
        }
        self.stored: set[Node] = set()
        """The values that earlier nests have stored."""

    def kernel(self) -> tuple[KernelAST, Extent]:
        """Return the kernel AST and its number of tiles."""
        parts = list(self.parts())
        buffers = list(self.shared.buffers(of_row=False, has_offsets=True))
        for k, part in enumerate(parts):
            own = self.shared.parts[k]
            buffers += own.buffers(part.rows is not None, self._begin(k), has_offsets=True)
        phase = Phase(loop_over_tiles(self.multi_nest.tiles), tuple(parts))
        ast = KernelAST(params_of(self.graph), (), tuple(buffers), (phase,))
        return ast, self.multi_nest.tiles

    def parts(self) -> Iterator[Part]:
        """Yield the parts in order."""
        return (self._part(k, p) for k, p in enumerate(self.multi_nest.nests))

    def _begin(self, part: int) -> int:
        """Return the number of the first array that only one nest has."""
        before = (len(p.arrays) for p in self.shared.parts[:part])
        return len(self.shared.arrays) + sum(before)

    def _first(self, node: Node) -> Var | None:
        """Return the variable of the first coordinate of a window; None without a window."""
        if self.layouts[node].tile_map.window is None:
            return None
        return Var(f"first_{self.number[node]}", dt.int64)

    def _windows(self, values: Iterable[Node]) -> list[Let]:
        lets: list[Let] = []
        for n in dict.fromkeys(values):
            first = self._first(n) if n in self.arrays else None
            if first is not None:
                end = Var(f"end_{self.number[n]}", dt.int64)
                lets += window_bounds(self.layouts[n].tile_map, first, end)
        return lets

    def _home(self, entry: Entry) -> str | ScratchArray:
        """Return the buffer of a value that a nest reads: a scratch array if it has one."""
        node = entry.node
        if node in self.arrays:
            return self.arrays[node]
        if node in self.params:
            return self.params[node]
        return f"y{self.graph.outputs.index(entry)}"

    def _results(self, entry: Entry) -> list[str | ScratchArray]:
        """Return the buffers that a result of a nest is stored in."""
        buffers: list[str | ScratchArray] = []
        if entry.node in self.arrays:
            buffers.append(self.arrays[entry.node])
        return [*buffers, *(f"y{k}" for k, e in enumerate(self.graph.outputs) if e is entry)]

    def _part(self, k: int, nest: TileNest) -> Part:
        """Return the part of a nest."""
        results = [self.nodes[j].entries[0] for j in nest.results]
        if nest.schedule is None:
            part = self._product(f"dot{k}", results[0])
        else:
            part = self._loops(k, nest, nest.schedule, results)
        self.stored.update(e.node for e in results)
        return part

    def _loops(self, k: int, nest: TileNest, schedule: Schedule, results: Sequence[Entry]) -> Part:
        """Return the part of a nest with an iteration domain, whose stages are those of its group.

        Raises: CodeGenError if the schedule was made for another group.
        """
        body = [self.nodes[j] for j in nest.nodes]
        info = analyze_nest(self.group, body, [e.node for e in results], self.layouts)
        if isinstance(info, Diagnostic) or info.info.domain.axes != schedule.axes:
            raise CodeGenError(
                f"{self.group} has other parts than its schedule; run SchedulePlan on this graph"
            )
        loops = NestLoops(info.info.domain, schedule, info.domain_tile)
        inputs = dict(zip(info.group.graph.inputs, map(self._home, info.feeds), strict=True))
        buffers = TileBufferMap(
            info.group.graph, info.info.domain, inputs, [self._results(e) for e in results]
        )
        shared = self.shared.parts[k]
        builder = StageBuilder(info.group, info.info, schedule, shared, buffers, loops)
        builder.first_array = self._begin(k)
        stages = builder.stages()
        rows, row_lets = loops.rows()
        windows = self._windows(e.node for e in (*info.feeds, *results))
        lets = [*loops.decode(info.tile_map), *windows]
        part = Part(tuple(lets), rows, tuple(row_lets), tuple(stages))
        return evolve(part, lets=_used(part))

    def _product(self, name: str, result: Entry) -> Part:
        """Return the part of a matrix product."""
        node, buffers = result.node, self._results(result)

        def where(which: int, index: Index, extents: Extents) -> StoredElement:
            """Return the buffer and position of an element of an operand or result."""
            entry = result
            if which < 2:
                source = source_of(node.inputs[which], index, self.stored, extents)
                assert source is not None
                entry, index = source
            buffer = self._home(entry) if which < 2 else buffers[which - 2]
            if isinstance(buffer, str):
                return buffer, ravel(index, known_shape(entry), extents)
            first: Expr = size_of(0) if buffer.first is None else buffer.first
            return buffer.name, buffer.layout.local(index, first, extents)

        lets, dots = product_stages(node, where, len(buffers), self.layouts[node].tile_map, name)
        windows = self._windows([*(e.node for e in node.inputs), node])
        part = Part((*lets, *windows), None, (), tuple(dots))
        return evolve(part, lets=_used(part))


def _used(part: Part) -> tuple[Let, ...]:
    """Return the definitions of a part that it uses."""
    used: set[Var] = set()
    for stage in part.stages:
        used.update(_read(stage))
    loops = [] if part.rows is None else [part.rows]
    for loop in loops:
        used.update(v for x in (loop.start, loop.stop) for v in variables(x))
    used.update(v for let in part.row_lets for v in variables(let.value))
    kept: list[Let] = []
    for let in reversed(part.lets):
        if let.var in used:
            kept.append(let)
            used.update(variables(let.value))
    return tuple(reversed(kept))


def _read(stage: Stage | Dot) -> Iterable[Var]:
    """Yield the variables that a stage reads."""
    for loop in stage.loops:
        yield from variables(loop.start)
        yield from variables(loop.stop)
    if isinstance(stage, Dot):
        for m in (stage.a, stage.b, stage.c):
            yield from (v for x in (m.start, m.down, m.along) for v in variables(x))
        yield from (v for x in (stage.m, stage.n, stage.k) for v in variables(x))
        return
    for s in (*stage.before, *stage.body, *stage.after):
        yield from (v for x in expressions(s) for v in variables(x))
