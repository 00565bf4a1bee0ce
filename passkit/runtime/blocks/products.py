"""Products of matrices in blocks: any thread may compute any element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from passkit.ast import Expr
from passkit.ast.stage import Dot, Matrix
from passkit.runtime.blocks.memory import Memory
from passkit.runtime.blocks.stages import Values, Work, spread
from passkit.runtime.blocks.threads import Clock, Crew, Threads
from passkit.runtime.evaluate import call_array, cast_array
from passkit.values.dtype import dtype_of, float32, is_narrow

Array = Any

APART = 1 << 56
"""From the threads of all lanes to those of an operand of a product, and on to the next one's."""


class DotRun:
    """One run of a product in a tile, for some rows of its part.

    An element of an operand is loaded by a thread of its own, one of the result stored by another:
    so none is in order with what any thread did, but where all have waited.
    """

    def __init__(
        self, dot: Dot, rows: Array, outer: Values, memory: Mapping[str, Memory], clock: Clock
    ) -> None:
        self.dot, self.memory = dot, memory
        self.rank = len(dot.loops) + 2
        self.threads = Threads(rows, self.rank, clock)
        self.values: Values = {k: spread(v, self.rank) for k, v in outer.items()}

    def run(self) -> None:
        """Each element by fma from step 0 on, in float32 where its numbers have 16 bits."""
        dot, threads = self.dot, self.threads
        for loop in dot.loops:
            threads.add(loop, self.values)
            self.values.update(threads.values)
        self.crew = threads.crew()
        self.sizes = {x: self._number(getattr(dot, x)) for x in "mnk"}
        work = float32 if is_narrow(dot.dtype) else dot.dtype
        a = cast_array(self._load(dot.a, "m", "k", 1), work)
        b = cast_array(self._load(dot.b, "k", "n", 2), work)
        total = np.zeros((*self.crew.shape[:-2], a.shape[-2], b.shape[-1]), work.numpy)
        for step in range(a.shape[-1]):
            factors = a[..., :, step : step + 1], b[..., step : step + 1, :]
            more = call_array("fma", work, *np.broadcast_arrays(*factors, total))
            total = np.where(step < self.sizes["k"], more, total)
        self._store(dot.c, total)

    def _number(self, x: Expr) -> Array:
        return np.asarray(Work(self.values, self.memory, self.crew).run(x, self.crew.active))

    def _elements(self, x: Matrix, down: str, along: str, which: int) -> tuple[Array, Crew]:
        """Where the elements of a matrix lie, and who touches them."""
        m, n = (max(0, int(self.sizes[e].max(initial=0))) for e in (down, along))
        i, j = np.arange(m).reshape(-1, 1), np.arange(n)
        shape = (*self.crew.shape[:-2], m, n)
        there = (i < self.sizes[down]) & (j < self.sizes[along])
        active = there if self.crew.active is None else there & self.crew.active
        own = which * APART + i * n + j
        crew = Crew(self.crew.clock, shape, self.crew.row, own, self.crew.step, active)
        at = self._number(x.start) + i * self._number(x.down) + j * self._number(x.along)
        return np.broadcast_to(at, shape).ravel(), crew

    def _load(self, x: Matrix, down: str, along: str, which: int) -> Array:
        memory = self.memory[x.buffer]
        at, crew = self._elements(x, down, along, which)
        who, chosen = crew.who(None, crew.shape)
        found = np.ones(at.size, memory.data.dtype)
        found[chosen] = memory.load(at[chosen], who)
        return found.reshape(crew.shape)

    def _store(self, x: Matrix, total: Array) -> None:
        memory = self.memory[x.buffer]
        at, crew = self._elements(x, "m", "n", 3)
        who, chosen = crew.who(None, crew.shape)
        value = cast_array(total, dtype_of(memory.data.dtype))
        memory.store(at[chosen], value.ravel()[chosen], who)
