"""Epilogues: a kernel that computes row by row runs on the rows that a convolution has just stored.

A kernel behind a convolution, such as a batch norm with its activation or the sum with a residual,
reads the convolution's result once. Launched on its own it reads from memory what has left the
caches; run on each range of rows as soon as this is stored, it finds them there. A row is what
belongs to one position of an image: all its channels.

This holds for any kernel whose tiles are ranges of rows: one phase, no scratch memory, and in each
stage one loop over the channels, with every access to a large array at the row and the channel of
the loops. It also holds for a kernel that goes over all elements in one loop, of which each is a
row of its own. Such a kernel means the same for fewer rows, with each large array beginning at the
first of them, so that its compiled code serves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from passkit.ast import Binary, Const, Expr, Select, Var, where
from passkit.ast.stage import Let, Level, Loop, Part, Stage, Store
from passkit.ast.walk import children, loads, variables
from passkit.plan.kernel import Kernel
from passkit.runtime.program import Launch, Ref
from passkit.values.size import Extent, numel

MOST_BUFFERS, MOST_SIZES = 32, 32
"""What the unit that runs convolutions has room for."""


class Epilogue(NamedTuple):
    """How a kernel is run on some rows.

    Attributes:
        rows: which of the kernel's size arguments is the number of its rows.
        rows_per_tile: which of them is the number of rows of a tile; -1 where the text has it.
        tile_rows: the rows of a tile where the text has them; else 0.
        row_parts: how many rows of the kernel a row of the convolution is: 1, or one a channel.
        row_nbytes: for each array of the kernel the bytes from one row of the convolution to the
            next; 0 for one that all rows share.
    """

    rows: int
    rows_per_tile: int
    tile_rows: int
    row_parts: int
    row_nbytes: tuple[int, ...]


def epilogue_of(launch: Launch, result: Ref) -> Epilogue | None:
    """How a launch runs row by row on a convolution's result; None where it cannot.

    Args:
        launch: the step behind the convolution.
        result: where the convolution stores; its last dimension are the channels.
    """
    kernel, channels = launch.kernel, result.shape[-1]
    if kernel.dialect != "cxx" or callable(launch.entry) or kernel.phases or kernel.ast.scratch:
        return None
    if len(launch.refs) > MOST_BUFFERS or len(kernel.sizes) > MOST_SIZES:
        return None
    if not isinstance(channels, int):
        return None
    rows = _RowKernel.of(kernel)
    if rows is None:
        return None
    parts = 1 if rows.has_channels else channels
    if rows.num_rows != numel(result.shape[:-1]) * parts:
        return None
    large = rows.large_buffers(channels)
    if large is None:
        return None
    names = [b.name for b in kernel.ast.params]
    reads_result = [n for n, r in zip(names, launch.refs, strict=True) if r.place == result.place]
    written = [b.name for b in kernel.ast.params if b.written]
    if not reads_result or not large.issuperset([*reads_result, *written]):
        return None
    row_nbytes = tuple(
        channels * b.dtype.nbytes if b.name in large else 0 for b in kernel.ast.params
    )
    return Epilogue(rows.rows_index, rows.tile_index, rows.tile_rows, parts, row_nbytes)


class _RowKernel(NamedTuple):
    """A kernel whose tiles are ranges of rows: the row's variable, and its stages.

    Where it ``has_channels`` each stage loops over those of a row; else a row is an element.
    """

    kernel: Kernel
    row: Var
    stages: tuple[Stage, ...]
    rows_index: int
    tile_index: int
    tile_rows: int
    has_channels: bool

    @property
    def num_rows(self) -> Extent:
        """The number of rows."""
        return self.kernel.sizes[self.rows_index]

    @staticmethod
    def of(kernel: Kernel) -> _RowKernel | None:
        """The rows of a kernel; None where its tiles are no ranges of rows."""
        ast = kernel.ast
        if len(ast.phases) != 1 or len(ast.phases[0].parts) != 1:
            return None
        tile, (part,) = ast.phases[0].tile.var, ast.phases[0].parts
        stages = tuple(s for s in part.stages if isinstance(s, Stage))
        if part.row_lets or part.waits or part.span is not None or len(stages) < len(part.stages):
            return None
        cut = _rows_of(part, tile) if part.lets == () else _elements_of(part, stages, tile)
        if cut is None or cut.limit.name not in ast.sizes:
            return None
        hidden = {tile.name, cut.limit.name, *(let.var.name for let in part.lets)}
        tile_index, tile_rows = -1, 0
        if isinstance(cut.per_tile, Const):
            tile_rows = int(cut.per_tile.value)
        elif isinstance(cut.per_tile, Var) and cut.per_tile.name in ast.sizes:
            hidden.add(cut.per_tile.name)
            tile_index = ast.sizes.index(cut.per_tile.name)
        else:
            return None
        if any(hidden & {v.name for v in variables(x)} for s in stages for x in _expressions(s)):
            return None
        at_rows = ast.sizes.index(cut.limit.name)
        has_channels = part.rows is not None
        return _RowKernel(kernel, cut.row, stages, at_rows, tile_index, tile_rows, has_channels)

    def large_buffers(self, channels: int) -> set[str] | None:
        """The arrays with elements for each row, read and written at the row and channel only.

        None where another access depends on the row, so that the kernel does more than this.
        """
        large: set[str] = set()
        shared: set[str] = set()
        for stage in self.stages:
            if len(stage.loops) != 1 or stage.before or stage.after or stage.waits:
                return None
            (loop,) = stage.loops
            if self.has_channels and not self.is_over_channels(loop, channels):
                return None
            for statement in stage.body:
                if not isinstance(statement, (Let, Store)):
                    return None
                if isinstance(statement, Store) and statement.stream:
                    return None
            for buffer, index in _accesses(stage):
                if self.is_row_and_channel(index, loop):
                    large.add(buffer)
                elif self.row.name in {v.name for v in variables(index)}:
                    return None
                else:
                    shared.add(buffer)
            if any(self.depends_on_row(x) for x in _values(stage)):
                return None
        return None if large & shared else large

    def is_over_channels(self, loop: Loop, channels: int) -> bool:
        """Whether a loop runs from 0 to the number of channels."""
        return (
            isinstance(loop.start, Const)
            and loop.start.value == 0
            and loop.limit is None
            and not loop.down
            and loop.level in (Level.CTA, Level.THREAD)
            and self.number(loop.stop) == channels
        )

    def number(self, x: Expr) -> Extent | None:
        """The value of a constant or of a size argument."""
        if isinstance(x, Const):
            return int(x.value)
        sizes = self.kernel.ast.sizes
        if isinstance(x, Var) and x.name in sizes:
            return self.kernel.sizes[sizes.index(x.name)]
        return None

    def is_row_and_channel(self, index: Expr, loop: Loop) -> bool:
        """Whether an index is that of the row and, where there are channels, of the channel."""
        return index == (self.row * loop.stop + loop.var if self.has_channels else self.row)

    def depends_on_row(self, value: Expr) -> bool:
        """Whether a value is computed from the row's number itself, not from what lies there."""
        inside = {id(load.index) for load in loads(value)}
        return _reads(value, self.row.name, inside)


class _Cut(NamedTuple):
    """How tiles cut rows: the row's variable, the rows of a tile, and the number of all rows."""

    row: Var
    per_tile: Expr
    limit: Var


def _rows_of(part: Part, tile: Var) -> _Cut | None:
    """The cut of a part that loops over rows, from tile * n to tile * n + n."""
    rows = part.rows
    if rows is None or not isinstance(rows.limit, Var) or not isinstance(rows.start, Binary):
        return None
    per_tile = rows.start.b
    if rows.start != tile * per_tile or rows.stop != rows.start + per_tile or rows.down:
        return None
    return _Cut(rows.var, per_tile, rows.limit)


def _elements_of(part: Part, stages: tuple[Stage, ...], tile: Var) -> _Cut | None:
    """The cut of a part whose stages loop over elements, from tile * n to there + n or the end."""
    if part.rows is not None or len(part.lets) != 2:
        return None
    low, high = part.lets
    if not isinstance(low.value, Binary) or not isinstance(high.value, Select):
        return None
    per_tile, limit = low.value.b, high.value.b
    end = low.var + per_tile
    if low.value != tile * per_tile or not isinstance(limit, Var):
        return None
    if high.value != where(end < limit, end, limit):
        return None
    loops = {loop for stage in stages for loop in stage.loops}
    if len(loops) != 1:
        return None
    (loop,) = loops
    if (loop.start, loop.stop) != (low.var, high.var) or loop.limit is not None or loop.down:
        return None
    return _Cut(loop.var, per_tile, limit)


def _reads(x: Expr, name: str, skipped: set[int]) -> bool:
    """Whether an expression reads a variable outside of the skipped parts."""
    if id(x) in skipped:
        return False
    if isinstance(x, Var):
        return x.name == name
    return any(_reads(child, name, skipped) for child in children(x))


def _values(stage: Stage) -> Iterator[Expr]:
    """The values that a stage computes."""
    for statement in stage.body:
        if isinstance(statement, (Let, Store)):
            yield statement.value


def _expressions(stage: Stage) -> Iterator[Expr]:
    """The values and the indices of a stage."""
    yield from _values(stage)
    for statement in stage.body:
        if isinstance(statement, Store):
            yield statement.index


def _accesses(stage: Stage) -> Iterator[tuple[str, Expr]]:
    """The buffers that a stage loads from and stores to, with the index."""
    for value in _values(stage):
        for load in loads(value):
            yield load.buffer, load.index
    for statement in stage.body:
        if isinstance(statement, Store):
            yield statement.buffer, statement.index
