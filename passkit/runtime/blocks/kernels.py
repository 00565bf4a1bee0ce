"""Kernels block by block: tiles in an order drawn by lot, parts and stages in theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from passkit.ast.stage import Dot, KernelAST, Part, Phase, Stage
from passkit.errors import BlocksError, SettingError, nearest
from passkit.runtime.blocks.memory import WAY_OUT, Journal, Memory, of_params
from passkit.runtime.blocks.products import DotRun
from passkit.runtime.blocks.scratch import Scratch
from passkit.runtime.blocks.stages import StageRun, Values
from passkit.runtime.blocks.threads import Clock, bounds
from passkit.runtime.evaluate import evaluate

Array = Any

BARRIERS = ("loops", "waits")
"""What threads wait for each other at: the end of every stage, as where a stage is a loop; or only
what the AST says, as where threads run by themselves."""


def run_blocks(
    ast: KernelAST,
    arrays: Sequence[Array],
    sizes: Mapping[str, int],
    *,
    name: str = "kernel",
    barriers: str = "loops",
    seed: int = 0,
) -> None:
    """Run a kernel on flat arrays, one for each parameter; ``sizes`` are its arguments by name.

    ``barriers`` is one of `BARRIERS`; ``seed`` draws the order of tiles.

    Raises: BlocksError for an access outside of its buffer, one whose order with another thread's
    is open, a load of what nothing has stored, and results that are not stored.
    """
    if barriers not in BARRIERS:
        raise SettingError(f"there are no barriers {barriers!r}; {nearest(barriers, BARRIERS)}")
    with np.errstate(all="ignore"):
        _Run(ast, arrays, sizes, name, barriers == "loops", seed).run()


MOMENTS = 3
"""What a stage does: before its lanes, in them, behind them."""


class _Run:
    """One run of a kernel: its memory, and the waits so far.

    Where only what the AST says is a wait, a team of threads goes from tile to tile and from row to
    row, in the same scratch.
    """

    def __init__(
        self,
        ast: KernelAST,
        arrays: Sequence[Array],
        sizes: Mapping[str, int],
        name: str,
        stages_end: bool,
        seed: int,
    ) -> None:
        self.ast, self.sizes, self.stages_end = ast, sizes, stages_end
        self.rng = np.random.default_rng(seed)
        self.journal = Journal(name)
        self.variables: Values = {k: np.int64(n) for k, n in sizes.items()}
        for buffer, array in zip(ast.params, arrays, strict=True):
            if isinstance(buffer.extent, int) and array.size != buffer.extent:
                raise BlocksError(
                    f"kernel {name} needs {buffer.extent} elements in {buffer.name}, got "
                    f"{array.size}; {WAY_OUT}"
                )
        self.params = of_params(ast.params, arrays, self.journal)
        self.scratch = Scratch(ast.scratch, sizes, self.journal)
        self.team = self.squad = self.step = 0

    @property
    def memory(self) -> dict[str, Memory]:
        """All buffers by name."""
        return {**{m.buffer.name: m for m in self.params}, **self.scratch.memory}

    def run(self) -> None:
        """All phases; then every result has been stored."""
        for phase in self.ast.phases:
            for memory in self.params:
                memory.ground.forget_tiles()
            self._wait_of_tile()
            first, stop = bounds(phase.tile, self.variables)
            for tile in self.rng.permutation(np.arange(first, stop)):
                self._tile(phase, int(tile))
        for memory in self.params:
            memory.check_stored()

    def _wait_of_tile(self) -> None:
        self.team += 1
        self._wait_of_row()

    def _wait_of_row(self) -> None:
        self.squad += MOMENTS

    def _tile(self, phase: Phase, tile: int) -> None:
        self.scratch.begin_tile()
        for part in phase.parts:
            number = tile
            if part.span is not None:
                first, end = (int(evaluate(x, self.variables)) for x in part.span)
                if not first <= tile < end:
                    continue
                number = tile - first
            if part.waits or self.stages_end:
                self._wait_of_tile()
            self._part(part, {**self.variables, phase.tile.var.name: np.int64(number)}, tile)

    def _part(self, part: Part, values: Values, tile: int) -> None:
        for let in part.lets:
            values[let.var.name] = evaluate(let.value, values)
        if part.rows is None:
            self.scratch.begin_rows(1)
            self._stages(part, values, np.zeros(1, np.int64), tile)
            return
        first, stop = bounds(part.rows, values)
        count = max(0, int(stop - first))
        for numbers in self._shares(count):
            self.scratch.begin_rows(len(numbers))
            inside = {**values, part.rows.var.name: first + numbers}
            for let in part.row_lets:
                inside[let.var.name] = evaluate(let.value, inside)
            self._stages(part, inside, numbers, tile)

    def _shares(self, count: int) -> Iterator[Array]:
        """The rows that run side by side: all, or one by one in the scratch of the one before."""
        numbers = np.arange(count)
        if self.stages_end:
            yield from [numbers] if count else []
        else:
            yield from (numbers[k : k + 1] for k in self.rng.permutation(count))

    def _stages(self, part: Part, values: Values, rows: Array, tile: int) -> None:
        for stage in part.stages:
            if stage.waits or self.stages_end:
                if part.rows is None:
                    self._wait_of_tile()
                else:
                    self._wait_of_row()
            values.update(self._stage(stage, values, rows, tile))

    def _stage(self, stage: Stage | Dot, values: Values, rows: Array, tile: int) -> Values:
        number = self.journal.number(stage.name)
        clock = Clock(number, tile, self.team, self.squad, self.step, self.stages_end)
        if isinstance(stage, Dot):
            product = DotRun(stage, rows, values, self.memory, clock)
            product.run()
            self.step += product.threads.num_steps
            return {}
        run = StageRun(stage, rows, values, self.memory, clock)
        seen = run.run()
        self.step += run.threads.num_steps
        return seen
