"""Epilogues: kernels that run on the rows that a convolution has just stored.

A kernel after a convolution, such as a batch norm with its activation or the sum with a residual,
reads the convolution's result once. Launched by itself it reads from memory what has left the
caches; run on each range of rows as soon as that is stored, it finds them in the caches. A row is
all channels of one position of an image.

A kernel can be an epilogue if its tiles are ranges of rows: it has one phase, no scratch memory, in
each stage one loop over the channels, and accesses each large array at the row and channel of the
loops only. So can a kernel with one loop over all elements, each of which is a row. The compiled
code of such a kernel also runs on fewer rows, if every large array begins at the first of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from passkit.ast import Binary, Const, Expr, Select, Var, where
from passkit.ast.stage import KernelAST, Let, Level, Loop, Part, Stage, Store
from passkit.ast.walk import children, loads, variables
from passkit.graph.kernel import Kernel
from passkit.runtime.native.convolution_unit import MAX_EPILOGUE_ARRAYS, MAX_EPILOGUE_SIZES
from passkit.runtime.program import ArrayRef, LaunchStep
from passkit.values.size import Extent, numel


class RowEpilogue(NamedTuple):
    """How a kernel runs on some rows of a convolution's result.

    Attributes:
        rows: the index of the kernel's size argument that is the number of its rows.
        rows_per_tile: the index of the size argument that is the number of rows of a tile; -1 where
            the kernel's text has it as a constant.
        tile_rows: the rows of a tile where they are a constant; else 0.
        row_parts: the kernel's rows per row of the convolution: 1, or one for each channel.
        row_nbytes: for each array of the kernel the bytes from one row of the convolution to the
            next; 0 for an array that all rows share.
    """

    rows: int
    rows_per_tile: int
    tile_rows: int
    row_parts: int
    row_nbytes: tuple[int, ...]


def row_epilogue(launch: LaunchStep, result: ArrayRef) -> RowEpilogue | None:
    """Return how a launch runs row by row on a convolution's result; None where it cannot.

    It cannot, for example, where the kernel is not in the C++ dialect, has scratch memory or
    several phases, does not read the result, or the number of channels is symbolic.

    Args:
        launch: the step after the convolution.
        result: the array that the convolution stores; its last dimension are the channels.
    """
    kernel, channels = launch.kernel, result.shape[-1]
    if kernel.dialect != "cxx" or callable(launch.entry) or kernel.phases or kernel.ast.scratch:
        return None
    if len(launch.refs) > MAX_EPILOGUE_ARRAYS or len(kernel.sizes) > MAX_EPILOGUE_SIZES:
        return None
    if not isinstance(channels, int):
        return None
    rows = _RowKernel.of(kernel)
    if rows is None:
        return None
    row_parts = 1 if rows.has_channels else channels
    if rows.num_rows != numel(result.shape[:-1]) * row_parts:
        return None
    large = rows.large_buffers(channels)
    if large is None:
        return None
    params = kernel.ast.params
    names = [b.name for b in params]
    reads_result = [n for n, r in zip(names, launch.refs, strict=True) if r.key == result.key]
    written = [b.name for b in params if b.written]
    if not reads_result or not large.issuperset([*reads_result, *written]):
        return None
    return RowEpilogue(
        rows=rows.rows_index,
        rows_per_tile=rows.tile_index,
        tile_rows=rows.tile_rows,
        row_parts=row_parts,
        row_nbytes=tuple(channels * b.dtype.nbytes if b.name in large else 0 for b in params),
    )


class _RowKernel(NamedTuple):
    """A kernel whose tiles are ranges of rows.

    Attributes:
        kernel: the kernel.
        row: the variable of the row.
        stages: the stages of a row.
        rows_index: the index of the size argument that is the number of rows.
        tile_index: the index of the size argument that is the number of rows of a tile; -1 where
            that is a constant.
        tile_rows: the rows of a tile where they are a constant; else 0.
        has_channels: whether each stage loops over the channels of a row; else a row is an element.
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
        """The number of rows, which may be symbolic."""
        return self.kernel.sizes[self.rows_index]

    @staticmethod
    def of(kernel: Kernel) -> _RowKernel | None:
        """Return a kernel as one of rows; None where its tiles are not ranges of rows."""
        ast = kernel.ast
        if not isinstance(ast, KernelAST) or len(ast.phases) != 1 or len(ast.phases[0].parts) != 1:
            return None
        tile, (part,) = ast.phases[0].tile.var, ast.phases[0].parts
        stages = tuple(s for s in part.stages if isinstance(s, Stage))
        if (
            part.row_lets
            or part.barrier_before
            or part.span is not None
            or len(stages) < len(part.stages)
        ):
            return None
        if part.lets == ():
            tiling = rows_of(part, tile)
        else:
            tiling = None if part.rows else elements_of(part.lets, stages, tile)
        if tiling is None or tiling.limit.name not in ast.sizes:
            return None
        # Variables that have other values when the kernel runs on fewer rows.
        changing = {tile.name, tiling.limit.name, *(let.var.name for let in part.lets)}
        tile_index, tile_rows = -1, 0
        if isinstance(tiling.per_tile, Const):
            tile_rows = int(tiling.per_tile.value)
        elif isinstance(tiling.per_tile, Var) and tiling.per_tile.name in ast.sizes:
            changing.add(tiling.per_tile.name)
            tile_index = ast.sizes.index(tiling.per_tile.name)
        else:
            return None
        if any(changing & {v.name for v in variables(x)} for s in stages for x in _expressions(s)):
            return None
        return _RowKernel(
            kernel=kernel,
            row=tiling.row,
            stages=stages,
            rows_index=ast.sizes.index(tiling.limit.name),
            tile_index=tile_index,
            tile_rows=tile_rows,
            has_channels=part.rows is not None,
        )

    def large_buffers(self, channels: int) -> set[str] | None:
        """Return the names of the arrays with elements for each row.

        They are accessed at the row and channel of the loops only. Returns None where any other
        access or value depends on the row, an array is accessed in both ways, or a stage is not one
        loop, over all channels if rows have channels, of lets and of stores that are not streamed.
        ``channels`` is the number of channels of a row.
        """
        large: set[str] = set()
        shared: set[str] = set()
        for stage in self.stages:
            if len(stage.loops) != 1 or stage.before or stage.after or stage.barrier_before:
                return None
            (loop,) = stage.loops
            if self.has_channels and not self._is_over_channels(loop, channels):
                return None
            for statement in stage.body:
                if not isinstance(statement, (Let, Store)):
                    return None
                if isinstance(statement, Store) and statement.stream:
                    return None
            for buffer, index in _accesses(stage):
                if self._is_row_and_channel(index, loop):
                    large.add(buffer)
                elif self.row.name in {v.name for v in variables(index)}:
                    return None
                else:
                    shared.add(buffer)
            if any(self._depends_on_row(x) for x in _values(stage)):
                return None
        return None if large & shared else large

    def _is_over_channels(self, loop: Loop, channels: int) -> bool:
        """Return whether a loop of a thread or thread block counts up from 0 to ``channels``."""
        return (
            isinstance(loop.start, Const)
            and loop.start.value == 0
            and loop.limit is None
            and not loop.down
            and loop.level in (Level.CTA, Level.THREAD)
            and self._number(loop.stop) == channels
        )

    def _number(self, x: Expr) -> Extent | None:
        """Return the value of a constant or of a size argument, None for other expressions.

        That of a size argument may be symbolic.
        """
        if isinstance(x, Const):
            return int(x.value)
        sizes = self.kernel.ast.sizes
        if isinstance(x, Var) and x.name in sizes:
            return self.kernel.sizes[sizes.index(x.name)]
        return None

    def _is_row_and_channel(self, index: Expr, loop: Loop) -> bool:
        """Return whether an index is the expression row * channels + channel, or the row alone.

        The latter is meant where rows have no channels. ``loop`` is the loop over the channels.
        """
        return index == (self.row * loop.stop + loop.var if self.has_channels else self.row)

    def _depends_on_row(self, value: Expr) -> bool:
        """Return whether a value reads the row's variable outside the indices of its loads."""
        load_indices = {id(load.index) for load in loads(value)}
        return _reads_variable(value, self.row.name, load_indices)


class RowTiling(NamedTuple):
    """How tiles divide rows: the row's variable, the rows of a tile, and the number of all rows."""

    row: Var
    per_tile: Expr
    limit: Var


def rows_of(part: Part, tile: Var) -> RowTiling | None:
    """Return the tiling of a part that loops over rows from tile * n to tile * n + n.

    The loop is limited by a variable. None for a part with another loop or without one. ``tile`` is
    the variable of the tile.
    """
    rows = part.rows
    if rows is None or not isinstance(rows.limit, Var) or not isinstance(rows.start, Binary):
        return None
    per_tile = rows.start.b
    if rows.start != tile * per_tile or rows.stop != rows.start + per_tile or rows.down:
        return None
    return RowTiling(rows.var, per_tile, rows.limit)


def elements_of(lets: tuple[Let, ...], stages: Sequence[Stage], outer: Var) -> RowTiling | None:
    """Return the tiling of stages that loop over the elements of a tile or a chunk.

    All have the same loop, from outer * n to the minimum of outer * n + n and the number of
    elements, a variable. None where that is not so.

    Args:
        lets: the definitions of the two bounds of the loop.
        stages: the stages; some may have no loop.
        outer: the variable of the tile or the chunk.
    """
    if len(lets) != 2:
        return None
    low, high = lets
    if not isinstance(low.value, Binary) or not isinstance(high.value, Select):
        return None
    length, limit = low.value.b, high.value.b
    end = low.var + length
    if low.value != outer * length or not isinstance(limit, Var):
        return None
    if high.value != where(end < limit, end, limit):
        return None
    loops = {loop for stage in stages for loop in stage.loops}
    if len(loops) != 1:
        return None
    (loop,) = loops
    if (loop.start, loop.stop) != (low.var, high.var) or loop.limit is not None or loop.down:
        return None
    return RowTiling(loop.var, length, limit)


def _reads_variable(x: Expr, name: str, skipped: set[int]) -> bool:
    """Return whether expression ``x`` reads the variable ``name``.

    Subexpressions whose `id` is in ``skipped`` are left out.
    """
    if id(x) in skipped:
        return False
    if isinstance(x, Var):
        return x.name == name
    return any(_reads_variable(child, name, skipped) for child in children(x))


def _values(stage: Stage) -> Iterator[Expr]:
    """Yield the values of a stage's lets and stores."""
    for statement in stage.body:
        if isinstance(statement, (Let, Store)):
            yield statement.value


def _expressions(stage: Stage) -> Iterator[Expr]:
    """Yield the values of a stage's lets and stores, then the indices at which it stores."""
    yield from _values(stage)
    for statement in stage.body:
        if isinstance(statement, Store):
            yield statement.index


def _accesses(stage: Stage) -> Iterator[tuple[str, Expr]]:
    """Yield the buffer's name and the index of each access of a stage.

    First come the loads in the values of its lets and stores, then the stores.
    """
    for value in _values(stage):
        for load in loads(value):
            yield load.buffer, load.index
    for statement in stage.body:
        if isinstance(statement, Store):
            yield statement.buffer, statement.index
