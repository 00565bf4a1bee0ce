"""The parts of a stitched kernel, as far as GPUs have schedules of them.

They are read from the statements that the group is lowered to. Definitions of the tile's
coordinates that several parts have are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from passkit.analysis.group import Group
from passkit.analysis.params import params_of
from passkit.analysis.tilemap import TileMap
from passkit.ast import Binary, Expr, Load, Select, SizeOf, Var
from passkit.ast.index import Known, Sum, expression, normal
from passkit.ast.stage import (
    Buffer,
    Dot,
    Fold,
    Matrix,
    Part,
    Place,
    Running,
    Stage,
    Statement,
)
from passkit.ast.stage import Let as StageLet
from passkit.ast.stage import Store as StageStore
from passkit.ast.tidy import expressions, map_statement, replace_children
from passkit.diagnostics import Diagnostic
from passkit.ir.index import times, with_literals
from passkit.ir.rewrite import loads_in, substitute
from passkit.schedule.schedule import Schedule, StagedValue
from passkit.schedule.shared_plan import plan_shared
from passkit.schedule.tiling import Composition
from passkit.transforms.build_nests import multi_nest_parts
from passkit.values import dtype as dt
from passkit.values.size import Extent

ROW = Var("own_row", dt.int64)
"""The row of a tile that a statement is executed for, counted from the tile's first."""


@frozen(eq=False)
class Operand:
    """A matrix of a product, of each head of a tile.

    Attributes:
        buffer: the buffer.
        start: its first element, of the tile's first head.
        down: the distance from one row to the next.
        along: the distance from one column to the next.
        head: the distance from one head to the next.
    """

    buffer: str
    start: Expr
    down: int
    along: int
    head: int


@frozen(eq=False)
class ProductPart:
    """A matrix product, of each of some heads.

    Attributes:
        a, b, c: the operands and the result.
        heads: the heads of a tile, at most.
        head_bound: the heads that are left for the last tile; None if all tiles have as many.
        rows: the rows of the result that a tile has, at most, of a head.
        bound: the rows that are left for the last tile; None if all tiles have as many.
        columns: its columns.
        steps: the products that are added to an element.
    """

    a: Operand
    b: Operand
    c: Operand
    heads: int
    head_bound: Expr | None
    rows: int
    bound: Expr | None
    columns: int
    steps: int


@frozen(eq=False)
class RowPart:
    """A part that goes through rows one by one; indices of rows are those of `ROW`.

    Attributes:
        stages: the passes over a row, and what is computed once per row.
        rows: the rows of a tile, at most.
        bound: the rows that are left for the last tile; None if all tiles have as many.
        axis: the variable along a row.
        length: the elements of a row.
        is_reduced: whether a row is reduced.
        is_single: whether a tile has one row, so that no index depends on it.
        buffers: the buffers that it reads or writes.
        reads: those that it reads.
        writes: those that it writes.
        wide: those of them in shared memory that it goes through along a row.
        partial: those that it writes from another than the first element of a row on.
    """

    stages: tuple[Stage, ...]
    rows: int
    bound: Expr | None
    axis: Var
    length: int
    is_reduced: bool
    is_single: bool
    buffers: frozenset[str]
    reads: frozenset[str]
    writes: frozenset[str]
    wide: frozenset[str]
    partial: frozenset[str]


@frozen(eq=False)
class BlockNest:
    """A stitched kernel.

    Attributes:
        params: its parameters.
        shared: its arrays in shared memory.
        values: the positions in the group of the values that lie in them, in their order.
        lengths: the elements of a row of each of these values; 0 for a value of each row.
        lets: the definitions of a tile's coordinates.
        parts: the parts, in order.
        tiles: the number of tiles.
    """

    params: tuple[Buffer, ...]
    shared: tuple[Buffer, ...]
    values: tuple[int, ...]
    lengths: tuple[int, ...]
    lets: tuple[StageLet, ...]
    parts: tuple[ProductPart | RowPart, ...]
    tiles: Extent


def block_nest(group: Group, schedule: Schedule) -> BlockNest | Diagnostic:
    """Return the parts of a stitched kernel, or why GPUs have no schedule of them.

    Args:
        group: the group.
        schedule: its schedule, with the tiling of its values.
    """
    multi_nest = schedule.multi_nest
    if multi_nest is None:
        return Diagnostic("tile.composition")
    for node in group.graph.nodes:
        for entry in node.entries:
            if entry.dtype is not dt.float32:
                return Diagnostic("block.dtype", {"value": node.label, "dtype": entry.dtype})
    for part in multi_nest.nests:
        if part.schedule is None:
            continue
        composition = part.schedule.composition
        if composition not in (Composition.ROW, Composition.THREAD):
            return Diagnostic("block.order", {"composition": composition.value})
    parts = tuple(
        p if p.schedule is None else evolve(p, schedule=_in_registers(p.schedule))
        for p in multi_nest.nests
    )
    plain = evolve(schedule, multi_nest=evolve(multi_nest, nests=parts), block=None)
    shared = plan_shared(group, plain)
    values = tuple(a.number for a in shared.arrays)
    layouts = dict(multi_nest.layouts)
    lengths = tuple(_row_length(layouts[k].tile_map) for k in values)
    arrays = shared.buffers(of_row=False, has_offsets=True)
    reader = _BlockReader(params_of(group.graph), arrays, multi_nest.tiles, values, lengths)
    return reader.nest(multi_nest_parts(group, plain, shared))


def _row_length(tile_map: TileMap) -> int:
    """Return the elements of a row of a tile's part of a value; 0 if it has no known row."""
    if not tile_map.dims or tile_map.dims[-1].count != 1:
        return 0
    length = tile_map.shape[-1]
    return length if isinstance(length, int) and length > 1 else 0


def _in_registers(schedule: Schedule) -> Schedule:
    """Return the schedule of a part with the values between its stages in registers."""
    return evolve(
        schedule, staged=tuple(StagedValue(k.value, Place.LANES) for k in schedule.staged)
    )


@frozen(eq=False)
class _Window:
    """The rows of a tile: the first one, how many there are at most, and how many are left."""

    first: Expr
    rows: int
    bound: Expr | None


class _BlockReader:
    """The reading of one kernel, which collects the definitions of coordinates.

    Args:
        params: the parameters of the kernel.
        shared: its arrays in shared memory.
        tiles: the number of tiles.
        values: the positions in the group of the values in shared memory, in its order.
        lengths: the elements of a row of each of them.
    """

    def __init__(
        self,
        params: tuple[Buffer, ...],
        shared: tuple[Buffer, ...],
        tiles: Extent,
        values: tuple[int, ...],
        lengths: tuple[int, ...],
    ) -> None:
        self.params, self.shared, self.tiles = params, shared, tiles
        self.values, self.lengths = values, lengths
        self.length_of = dict(zip((b.name for b in shared), lengths, strict=True))
        self.lets: list[StageLet] = []
        self.place = {b.name: _bytes_of(b) for b in shared}
        self.sums = Known(())  # no extent is known; it caches sums

    def nest(self, lowered: Iterable[Part]) -> BlockNest | Diagnostic:
        """Return the parts of ``lowered`` statements, or why there is no schedule of them."""
        parts: list[ProductPart | RowPart] = []
        for part in lowered:
            names = self._define(part.lets)
            for stage in part.stages:
                if isinstance(stage, Dot):
                    product = self._product(stage, names)
                    if isinstance(product, Diagnostic):
                        return product
                    parts.append(product)
            stages = tuple(s for s in part.stages if isinstance(s, Stage))
            if stages:
                rows = self._rows(part, stages, names)
                if isinstance(rows, Diagnostic):
                    return rows
                parts.append(rows)
        return BlockNest(
            self.params,
            self.shared,
            self.values,
            self.lengths,
            tuple(self.lets),
            tuple(parts),
            self.tiles,
        )

    def _define(self, lets: Sequence[StageLet]) -> dict[str, Expr]:
        """Add definitions, and return what stands for the variables of a part.

        Two of one value are one; a multiple of a quotient or remainder is written as one, so that
        sums of several cancel.
        """
        names: dict[str, Expr] = {}
        for let in lets:
            value = with_literals(substitute(let.value, names))
            atom, factor = self._scaled(value)
            if isinstance(atom, Var):
                names[let.var.name] = times(atom, factor)
                continue
            name = let.var.name if factor == 1 else f"{let.var.name}_tile"
            names[let.var.name] = times(self._variable(name, atom), factor)
        return names

    def _variable(self, name: str, value: Expr) -> Var:
        """Return the variable of a value; a new one has the name, or a similar one."""
        for let in self.lets:
            if let.value == value:
                return let.var
        while any(x.var.name == name for x in self.lets):
            name += "_"
        self.lets.append(StageLet(Var(name, dt.int64), value))
        return Var(name, dt.int64)

    def _window(self, first: Expr, last: Expr) -> _Window | Diagnostic:
        """Return the rows from ``first`` to ``last``, or that their number is not known."""
        count = self._sum(Binary("-", last, first, dt.int64))
        if not count.terms and isinstance(count.constant, int):
            return _Window(first, count.constant, None)
        end, scale = self._scaled(last)
        end = next((x.value for x in self.lets if x.var == end), end)
        if isinstance(end, Select):
            step = self._sum(Binary("-", times(end.a, scale), first, dt.int64))
            if not step.terms and isinstance(step.constant, int):
                left = Binary("-", times(end.b, scale), first, dt.int64)
                is_whole = self._divides(step.constant, times(end.b, scale))
                return _Window(first, step.constant, None if is_whole else left)
        return Diagnostic("block.rows")

    # Products.

    def _product(self, dot: Dot, names: Mapping[str, Expr]) -> ProductPart | Diagnostic:
        """Return a matrix product."""
        m, n, k = (substitute(with_literals(x), names) for x in (dot.m, dot.n, dot.k))
        zero = with_literals(SizeOf(0))
        first, last = (m.b, m.a) if isinstance(m, Binary) and m.op == "-" else (zero, m)
        window = self._window(first, last)
        heads = self._heads(dot, names)
        problem = Diagnostic("block.product", {"product": dot.name})
        columns, steps = (self._sum(x).constant for x in (n, k))
        if isinstance(window, Diagnostic) or heads is None:
            return problem
        if not isinstance(columns, int) or not isinstance(steps, int):
            return problem
        counts = window.rows, columns, steps, heads[1].rows
        matrices = [self._operand(x, heads, names) for x in (dot.a, dot.b, dot.c)]
        a, b, c = matrices
        if a is None or b is None or c is None or min(counts) < 1:
            return problem
        for x in (a, b, c):
            length = self.length_of.get(x.buffer)
            is_even = x.along == 1 or (x.down == 1 and x is not c)
            pitch = x.down if x.along == 1 else x.along
            if length is not None and not (is_even and self._is_zero(x.start)):
                return problem
            if length is not None and length != pitch and window.rows > 1:
                return problem
        if heads[1].rows > 1:
            sides = (
                (a, window.rows, steps, a.down, a.along),
                (b, columns, steps, b.along, b.down),
                (c, window.rows, columns, c.down, 1 if c.buffer in self.place else 0),
            )
            for x, outer_count, count, outer, step in sides:
                is_along = outer != 1 and step == 1
                even = outer_count * outer if is_along else count * step
                if (x.head not in (0, even) and step != 0) or window.bound is not None:
                    return problem
        bounds = heads[1].bound, window.bound
        return ProductPart(
            *(a, b, c, heads[1].rows, bounds[0], window.rows, bounds[1], columns, steps)
        )

    def _heads(self, dot: Dot, names: Mapping[str, Expr]) -> tuple[dict[str, int], _Window] | None:
        """Return how far apart heads are for each variable that counts them, and how many.

        None if their number is not known. Only the outermost loop may have a window.
        """
        zero = with_literals(SizeOf(0))
        strides: dict[str, int] = {}
        whole = _Window(zero, 1, None)
        for loop in reversed(dot.loops):
            first, last = (substitute(with_literals(x), names) for x in (loop.start, loop.stop))
            window = self._window(first, last)
            if isinstance(window, Diagnostic) or whole.bound is not None:
                return None
            if loop is not dot.loops[0] and not self._is_zero(first):
                return None
            strides[loop.var.name] = whole.rows
            bound = None if window.bound is None else times(window.bound, whole.rows)
            whole = _Window(first, window.rows * whole.rows, bound)
        return strides, whole

    def _operand(
        self, x: Matrix, heads: tuple[dict[str, int], _Window], names: Mapping[str, Expr]
    ) -> Operand | None:
        """Return an operand; None if its strides are not known, or its heads not evenly apart."""
        strides, window = heads
        start = self._sum(substitute(with_literals(x.start), names))
        steps = {name: start.coefficient(Var(name, dt.int64)) for name in strides}
        numbers = [self._sum(with_literals(e)).constant for e in (x.down, x.along)]
        inner = next((steps[name] for name, s in strides.items() if s == 1), 0)
        if not all(isinstance(n, int) for n in (*numbers, *steps.values(), inner)):
            return None
        if any(steps[name] != inner * s for name, s in strides.items()):
            return None
        outer = next(iter(reversed(strides)), None)
        values = {name: with_literals(SizeOf(0)) for name in strides}
        if outer is not None:
            values[outer] = window.first
        first = substitute(expression(start), values)
        down, along = numbers
        assert isinstance(down, int) and isinstance(along, int) and isinstance(inner, int)
        begin = with_literals(expression(self._sum(first)))
        return Operand(x.buffer, begin, down, along, inner)

    # Rows.

    def _rows(
        self, part: Part, stages: tuple[Stage, ...], names: Mapping[str, Expr]
    ) -> RowPart | Diagnostic:
        """Return a part that goes through rows."""
        loops = [x for s in stages for x in s.loops]
        if any(len(s.loops) > 1 for s in stages) or not loops:
            return Diagnostic("block.order", {"composition": Composition.BLOCK.value})
        axis, zero = loops[0].var, with_literals(SizeOf(0))
        ends = [
            tuple(substitute(with_literals(e), names) for e in (x.start, x.stop)) for x in loops
        ]
        along = self._window(*ends[0])
        if any(e != ends[0] for e in ends) or any(x.var != axis for x in loops):
            return Diagnostic("block.rows")
        if isinstance(along, Diagnostic):
            return along
        if along.bound is not None:  # the last tile has fewer elements of a row
            return Diagnostic("block.rows")
        length = along.rows
        values = dict(names)
        window: _Window | Diagnostic = _Window(zero, 1, None)
        is_single = part.rows is None
        if part.rows is not None:
            first, last = (
                substitute(with_literals(x), names) for x in (part.rows.start, part.rows.stop)
            )
            window = self._window(first, last)
            values[part.rows.var.name] = Binary("+", first, ROW, dt.int64)
            if not self._is_zero(along.first):
                return Diagnostic("block.rows")
        elif self._flat_length(stages, along):
            length = self._flat_length(stages, along)
            window = _Window(along.first, along.rows // length, None)
            row = Binary("+", along.first, times(ROW, length), dt.int64)
            values[axis.name] = Binary("+", row, axis, dt.int64)
            is_single = False
        elif not self._is_zero(along.first):  # a tile has a part of the row
            values[axis.name] = Binary("+", along.first, axis, dt.int64)
        if isinstance(window, Diagnostic):
            return window
        if not length or not window.rows:
            return Diagnostic("block.rows")
        for let in part.row_lets:
            values[let.var.name] = with_literals(substitute(let.value, values))
        extents = Known(((axis.name, length),))
        changed = tuple(_with_values(s, values, extents) for s in stages)
        statements = [s for x in changed for s in (*x.before, *x.body, *x.after)]
        for s in statements:
            if isinstance(s, Running) or (isinstance(s, Fold) and s.buffer is not None):
                return Diagnostic("block.order", {"composition": Composition.COLUMN.value})
        accesses = list(self._accesses(statements))
        result = RowPart(
            changed,
            window.rows,
            window.bound,
            axis,
            length,
            any(isinstance(s, Fold) for s in statements),
            is_single,
            frozenset(b for b, _ in accesses),
            frozenset(x.buffer for s in statements for e in expressions(s) for x in loads_in(e)),
            frozenset(s.buffer for s in statements if isinstance(s, StageStore)),
            frozenset(b for b, at in accesses if b in self.place and at.coefficient(axis) != 0),
            frozenset(
                s.buffer
                for s in statements
                if isinstance(s, StageStore) and self._sum(s.index).constant != 0
            ),
        )
        return self._checked(result, statements, accesses)

    def _flat_length(self, stages: Sequence[Stage], along: _Window) -> int:
        """Return the length of rows that a part goes through as one; 0 if it does not.

        It is that of a value in shared memory.
        """
        statements = [s for x in stages for s in x.body]
        reads = {x.buffer for s in statements for e in expressions(s) for x in loads_in(e)}
        buffers = reads | {s.buffer for s in statements if isinstance(s, StageStore)}
        if any(not isinstance(s, (StageLet, StageStore)) for s in statements):
            return 0  # what is reduced is all of it
        lengths = {self.length_of[b] for b in buffers if b in self.length_of}
        length = lengths.pop() if len(lengths) == 1 else 0
        is_flat = length and along.bound is None and along.rows % length == 0
        return length if is_flat and along.rows > length else 0

    def _checked(
        self,
        part: RowPart,
        statements: Sequence[Statement],
        accesses: Sequence[tuple[str, Sum]],
    ) -> RowPart | Diagnostic:
        """Return a part if its threads meet in no element of shared memory that it writes.

        Of an array that it writes each thread reads what it writes. ``accesses`` are those of its
        ``statements``.
        """
        written: dict[str, set[Sum]] = {}
        for s in statements:
            if isinstance(s, StageStore) and s.buffer in self.place:
                written.setdefault(s.buffer, set()).add(self._sum(s.index))
        for buffer, index in accesses:
            if buffer not in self.place:
                continue
            length = self.length_of[buffer]
            is_even = _is_affine(index) and index.coefficient(part.axis) in (0, 1)
            pitch = 0 if part.is_single else max(length, 1)
            is_even &= part.rows == 1 or index.coefficient(ROW) == pitch
            if not is_even or any(atom not in (ROW, part.axis) for atom, _ in index.terms):
                return Diagnostic("block.access", {"buffer": buffer})
            last = index.constant
            assert isinstance(last, int)
            last += part.length if index.coefficient(part.axis) else 1
            if not 0 <= index.constant < last <= max(length, 1):  # type: ignore[operator]
                return Diagnostic("block.access", {"buffer": buffer})
            low, high = self.place[buffer]
            for name, stores in written.items():
                begin, end = self.place[name]
                if begin < high and low < end and stores != {index}:
                    return Diagnostic("block.access", {"buffer": buffer})
        return part

    # Indices.

    def _sum(self, index: Expr) -> Sum:
        """Return an index in canonical form."""
        return normal(index, self.sums)

    def _scaled(self, x: Expr) -> tuple[Expr, int]:
        """Return an index as a variable, or another expression, times a literal."""
        total = self._sum(x)
        if len(total.terms) == 1 and total.constant == 0:
            atom, factor = total.terms[0]
            if isinstance(factor, int) and factor > 0:
                return atom, factor
        return x, 1

    def _divides(self, step: int, extent: Expr) -> bool:
        """Return whether windows of ``step`` rows divide an extent, as far as it is known."""
        total = self._sum(extent)
        return not total.terms and isinstance(total.constant, int) and total.constant % step == 0

    def _is_zero(self, x: Expr) -> bool:
        """Return whether an expression is the literal 0."""
        total = self._sum(x)
        return not total.terms and total.constant == 0

    def _accesses(self, statements: Sequence[Statement]) -> Iterator[tuple[str, Sum]]:
        """Yield the buffer and the index of each store, and of each load in an expression.

        Neither prefetches nor the buffers that hold partial results of reductions and scans are
        accesses here.
        """
        for s in statements:
            if isinstance(s, StageStore):
                yield s.buffer, self._sum(s.index)
            for x in expressions(s):
                for load in loads_in(x):
                    yield load.buffer, self._sum(load.index)


def _with_values(stage: Stage, values: Mapping[str, Expr], extents: Known) -> Stage:
    """Return a stage with expressions in place of variables, and literals of known sizes.

    Indices of loads and stores are canonical, for variables of these extents.
    """

    def change(x: Expr) -> Expr:
        return indexed(with_literals(substitute(x, values)))

    def indexed(x: Expr) -> Expr:
        if isinstance(x, Load):
            return Load(x.buffer, place(indexed(x.index)), x.dtype)
        return replace_children(x, indexed)

    def place(x: Expr) -> Expr:
        return with_literals(expression(normal(x, extents)))

    def changed(s: Statement) -> Statement:
        s = map_statement(s, change)
        return evolve(s, index=place(s.index)) if isinstance(s, StageStore) else s

    return evolve(
        stage,
        before=tuple(StageLet(s.var, change(s.value)) for s in stage.before),
        body=tuple(changed(s) for s in stage.body),
        after=tuple(
            evolve(s, index=place(change(s.index)), value=change(s.value)) for s in stage.after
        ),
    )


def _is_affine(index: Sum) -> bool:
    """Return whether an index is a sum of variables with literal factors."""
    is_literal = all(isinstance(c, int) for _, c in index.terms) and isinstance(index.constant, int)
    return is_literal and all(isinstance(atom, Var) for atom, _ in index.terms)


def _bytes_of(b: Buffer) -> tuple[int, int]:
    """Return the first byte of an array in shared memory, and its end."""
    if not isinstance(b.offset, int) or not isinstance(b.extent, int):
        return 0, 1 << 62  # not known: it may lie anywhere
    return b.offset, b.offset + b.extent * b.dtype.nbytes
