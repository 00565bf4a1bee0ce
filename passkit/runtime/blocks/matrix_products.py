"""Matrix products in blocks: the AST leaves open which thread computes an element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from passkit.ast import Expr
from passkit.ast.stage import Dot, Matrix
from passkit.runtime.blocks.memory import CheckedBuffer
from passkit.runtime.blocks.stages import CheckedEvaluator, VariableArrays, with_loop_axes
from passkit.runtime.blocks.threads import StageContext, StageThreads, ThreadGroup
from passkit.runtime.evaluate import call_array, cast_array
from passkit.values.dtype import dtype_of, float32, is_narrow

Array = Any

OPERAND_STRIDE = 1 << 56
"""The distance between the thread numbers of two operands; below it are all other threads."""
OPERAND_A, OPERAND_B, RESULT = 1, 2, 3


class DotRun:
    """One run of a matrix product in a tile, for some rows of its part.

    Each element of an operand is loaded by a thread of its own, and each element of the result is
    stored by another one: accesses are ordered with those of other statements only by barriers.

    Args:
        dot: the product.
        rows: the numbers of the rows.
        outer: the variables around it; row variables have an element for each row.
        buffers: all buffers of the kernel by name.
        context: when the product runs.
    """

    def __init__(
        self,
        dot: Dot,
        rows: Array,
        outer: VariableArrays,
        buffers: Mapping[str, CheckedBuffer],
        context: StageContext,
    ) -> None:
        self.dot, self.buffers = dot, buffers
        self.rank = len(dot.loops) + 2
        self.threads = StageThreads(rows, self.rank, context)
        self.values: VariableArrays = {k: with_loop_axes(v, self.rank) for k, v in outer.items()}

    def run(self) -> None:
        """Compute and store each element by fma in order of k, in float32 for 16-bit operands.

        Raises: BlocksError for a wrong access.
        """
        dot, threads = self.dot, self.threads
        for loop in dot.loops:
            threads.add(loop, self.values)
            self.values.update(threads.values)
        self.group = threads.group()
        self.sizes = {x: self._evaluate(getattr(dot, x)) for x in "mnk"}
        work = float32 if is_narrow(dot.dtype) else dot.dtype
        a = cast_array(self._load(dot.a, "m", "k", OPERAND_A), work)
        b = cast_array(self._load(dot.b, "k", "n", OPERAND_B), work)
        total = np.zeros((*self.group.shape[:-2], a.shape[-2], b.shape[-1]), work.numpy)
        for step in range(a.shape[-1]):
            factors = a[..., :, step : step + 1], b[..., step : step + 1, :]
            next_total = call_array("fma", work, *np.broadcast_arrays(*factors, total))
            total = np.where(step < self.sizes["k"], next_total, total)
        self._store(dot.c, total)

    def _evaluate(self, x: Expr) -> Array:
        """Return the value of an expression as an array, for all threads of the product.

        Raises: BlocksError for a wrong load.
        """
        evaluator = CheckedEvaluator(self.values, self.buffers, self.group)
        return np.asarray(evaluator.run(x, self.group.active))

    def _elements(
        self, x: Matrix, down: str, along: str, operand: int
    ) -> tuple[Array, ThreadGroup]:
        """Return the flat index of each element of a matrix, and the threads that access them.

        Elements beyond the size of a row's own matrix are not active in the group.

        Args:
            x: the matrix.
            down: the name of its number of rows, of "m", "n" and "k".
            along: the name of its number of columns.
            operand: `OPERAND_A`, `OPERAND_B` or `RESULT`.
        """
        m, n = (max(0, int(self.sizes[e].max(initial=0))) for e in (down, along))
        i, j = np.arange(m).reshape(-1, 1), np.arange(n)
        shape = (*self.group.shape[:-2], m, n)
        inside = (i < self.sizes[down]) & (j < self.sizes[along])
        group = ThreadGroup(
            context=self.group.context,
            row_epoch=self.group.row_epoch,
            shape=shape,
            row=self.group.row,
            thread=operand * OPERAND_STRIDE + i * n + j,
            step=self.group.step,
            active=inside if self.group.active is None else inside & self.group.active,
        )
        row_offsets, column_offsets = i * self._evaluate(x.down), j * self._evaluate(x.along)
        index = self._evaluate(x.start) + row_offsets + column_offsets
        return np.broadcast_to(index, shape).ravel(), group

    def _load(self, x: Matrix, down: str, along: str, operand: int) -> Array:
        """Return the elements of an operand; 1 where there are none.

        Raises: BlocksError for a wrong access.

        Args:
            x: the operand's matrix.
            down: the axis of the product, "m", "n" or "k", that its rows are.
            along: the axis that its columns are.
            operand: `OPERAND_A` or `OPERAND_B`.
        """
        buffer = self.buffers[x.buffer]
        index, group = self._elements(x, down, along, operand)
        origin, mask = group.origin(None, group.shape)
        elements = np.ones(index.size, buffer.data.dtype)
        elements[mask] = buffer.load(index[mask], origin)
        return elements.reshape(group.shape)

    def _store(self, x: Matrix, total: Array) -> None:
        """Store the product ``total`` to the matrix ``x``, in the dtype of its buffer.

        Raises: BlocksError for a wrong access.
        """
        buffer = self.buffers[x.buffer]
        index, group = self._elements(x, "m", "n", RESULT)
        origin, mask = group.origin(None, group.shape)
        value = cast_array(total, dtype_of(buffer.data.dtype))
        buffer.store(index[mask], value.ravel()[mask], origin)
