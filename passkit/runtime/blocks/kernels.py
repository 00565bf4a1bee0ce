"""Kernels run block by block: tiles in random order, parts and stages in program order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from passkit.ast.stage import Dot, KernelAST, Part, Phase, Stage
from passkit.errors import BlocksError, SettingError, nearest
from passkit.runtime.blocks.matrix_products import DotRun
from passkit.runtime.blocks.memory import (
    WORKAROUND,
    CheckedBuffer,
    StageLog,
    parameter_buffers,
)
from passkit.runtime.blocks.scratch import TileScratch
from passkit.runtime.blocks.stages import StageRun, VariableArrays
from passkit.runtime.blocks.threads import StageContext, bounds
from passkit.runtime.evaluate import evaluate

Array = Any

BARRIERS = ("loops", "waits")
"""Where threads synchronize.

With "loops" at the end of every stage, as where each stage is a loop of its own; with "waits" only
where the AST has a barrier, as where threads run independently.
"""

MOMENTS = 3
"""Before the thread loop of a stage, in it, and after it."""


def run_blocks(
    ast: KernelAST,
    arrays: Sequence[Array],
    sizes: Mapping[str, int],
    *,
    name: str = "kernel",
    barriers: str = "loops",
    seed: int = 0,
) -> None:
    """Run a kernel and check every access.

    Args:
        ast: the kernel.
        arrays: a flat array for each parameter; those that the kernel writes are filled.
        sizes: the size arguments by name.
        name: the kernel's name, for messages.
        barriers: where threads synchronize, one of `BARRIERS`.
        seed: the seed of the order of tiles, and of rows with barriers "waits".

    Raises:
        BlocksError: An access is out of bounds or not ordered with that of another thread, a load
            reads an element that nothing stored, an element of a result is not stored, or an array
            has another size than its parameter.
        SettingError: ``barriers`` is none of `BARRIERS`.
        ValueError: There are more or fewer arrays than parameters.
        CodeGenError: A size of the kernel has no value in ``sizes``.
    """
    if barriers not in BARRIERS:
        raise SettingError(
            f"barriers must be one of {', '.join(BARRIERS)}, got {barriers!r}; "
            f"{nearest(barriers, BARRIERS)}"
        )
    with np.errstate(all="ignore"):
        _KernelRun(ast, arrays, sizes, name, barriers == "loops", seed).run()


class _KernelRun:
    """One run of a kernel: its memory, and the barriers so far.

    With barriers "waits", the threads go on from tile to tile and from row to row without a
    barrier, in the same scratch memory.

    Args:
        ast: the kernel.
        arrays: a flat array for each parameter.
        sizes: the size arguments by name.
        name: the kernel's name, for messages.
        stages_are_loops: whether barriers are "loops", else "waits".
        seed: the seed of the order of tiles and rows.

    Raises:
        BlocksError: An array has another size than its parameter.

    Attributes:
        tile_epoch: the number of barriers of tiles so far.
        row_epoch: the number of barriers of rows and tiles so far, times `MOMENTS`.
        step: the number of serial iterations so far.
    """

    def __init__(
        self,
        ast: KernelAST,
        arrays: Sequence[Array],
        sizes: Mapping[str, int],
        name: str,
        stages_are_loops: bool,
        seed: int,
    ) -> None:
        self.ast, self.sizes, self.stages_are_loops = ast, sizes, stages_are_loops
        self.rng = np.random.default_rng(seed)
        self.log = StageLog(name)
        self.variables: VariableArrays = {k: np.int64(n) for k, n in sizes.items()}
        for buffer, array in zip(ast.params, arrays, strict=True):
            if isinstance(buffer.extent, int) and array.size != buffer.extent:
                raise BlocksError(
                    f"kernel {name} needs {buffer.extent} elements in {buffer.name}, got "
                    f"{array.size}; {WORKAROUND}"
                )
        self.params = parameter_buffers(ast.params, arrays, self.log)
        self.scratch = TileScratch(ast.scratch, sizes, self.log)
        self.tile_epoch = self.row_epoch = self.step = 0

    @property
    def buffers(self) -> dict[str, CheckedBuffer]:
        """All buffers of the kernel by name, parameters and scratch."""
        return {**{b.buffer.name: b for b in self.params}, **self.scratch.buffers_by_name}

    def run(self) -> None:
        """Run all phases and check that every element of the results was stored.

        Raises: BlocksError for a wrong access, or an element that was not stored.
        """
        for phase in self.ast.phases:
            for buffer in self.params:
                buffer.region.end_phase()
            self._tile_barrier()
            first, stop = bounds(phase.tile, self.variables)
            for tile in self.rng.permutation(np.arange(first, stop)):
                self._run_tile(phase, int(tile))
        for buffer in self.params:
            buffer.check_stored()

    def _tile_barrier(self) -> None:
        """Record a barrier of all threads of a tile: ``tile_epoch`` and ``row_epoch`` advance."""
        self.tile_epoch += 1
        self._row_barrier()

    def _row_barrier(self) -> None:
        """Record a barrier of the threads of a row: ``row_epoch`` advances by `MOMENTS`."""
        self.row_epoch += MOMENTS

    def _run_tile(self, phase: Phase, tile: int) -> None:
        """Run those parts of a phase whose span contains the tile number, in program order.

        A part without span runs in every tile; in others the tile variable counts from the span's
        begin. Raises: BlocksError for a wrong access.
        """
        self.scratch.begin_tile()
        for part in phase.parts:
            part_tile = tile
            if part.span is not None:
                first, end = (int(evaluate(x, self.variables)) for x in part.span)
                if not first <= tile < end:
                    continue
                part_tile = tile - first
            if part.barrier_before or self.stages_are_loops:
                self._tile_barrier()
            values = {**self.variables, phase.tile.var.name: np.int64(part_tile)}
            self._run_part(part, values, tile)

    def _run_part(self, part: Part, values: VariableArrays, tile: int) -> None:
        """Run a part of a tile: its row variables, then its stages, for blocks of rows.

        ``values`` has the variables, to which those of the part are added; ``tile`` is the number
        of the tile in the phase. A part without rows runs as one row. Raises: BlocksError for a
        wrong access.
        """
        for let in part.lets:
            values[let.var.name] = evaluate(let.value, values)
        if part.rows is None:
            self.scratch.begin_rows(1)
            self._run_stages(part, values, np.zeros(1, np.int64), tile)
            return
        first, stop = bounds(part.rows, values)
        count = max(0, int(stop - first))
        for rows in self._concurrent_rows(count):
            self.scratch.begin_rows(len(rows))
            row_values = {**values, part.rows.var.name: first + rows}
            for let in part.row_lets:
                row_values[let.var.name] = evaluate(let.value, row_values)
            self._run_stages(part, row_values, rows, tile)

    def _concurrent_rows(self, count: int) -> Iterator[Array]:
        """Yield arrays of the rows, of 0 to ``count`` - 1, that run at the same time.

        With barriers "loops" these are all rows at once; with "waits" each row by itself, in random
        order, in the same scratch memory.
        """
        rows = np.arange(count)
        if self.stages_are_loops:
            yield from [rows] if count else []
        else:
            yield from (rows[k : k + 1] for k in self.rng.permutation(count))

    def _run_stages(self, part: Part, values: VariableArrays, rows: Array, tile: int) -> None:
        """Run the stages of a part for the rows ``rows``, with the barriers between them.

        The variables that stages compute are added to ``values``; ``tile`` is the number of the
        tile in the phase. Raises: BlocksError for a wrong access.
        """
        for stage in part.stages:
            if stage.barrier_before or self.stages_are_loops:
                if part.rows is None:
                    self._tile_barrier()
                else:
                    self._row_barrier()
            values.update(self._run_stage(stage, values, rows, tile))

    def _run_stage(
        self, stage: Stage | Dot, values: VariableArrays, rows: Array, tile: int
    ) -> VariableArrays:
        """Run a stage, or a matrix product, of a tile for the rows ``rows``.

        ``values`` has the variables around it. The serial iterations are added to ``step``.

        Returns: The variables that later stages of the row can read, by name; none of a matrix
        product. Raises: BlocksError for a wrong access.
        """
        context = StageContext(
            stage=self.log.begin(stage.name),
            tile=tile,
            tile_epoch=self.tile_epoch,
            row_epoch=self.row_epoch,
            first_step=self.step,
            is_loop=self.stages_are_loops,
        )
        if isinstance(stage, Dot):
            product = DotRun(stage, rows, values, self.buffers, context)
            product.run()
            self.step += product.threads.num_steps
            return {}
        run = StageRun(stage, rows, values, self.buffers, context)
        results = run.run()
        self.step += run.threads.num_steps
        return results
