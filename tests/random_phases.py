"""Random groups that take phases: folds of rows, columns and everything, brought back at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve

import passkit as pk
from passkit.target import Target

o = pk.ops
ROWS, COLUMNS = (1, 2, 7, 31, 64, 131), (1, 3, 16, 37, 61)
DTYPES = ("float32", "float32", "float64", "float16", "bfloat16")
UNKNOWN = "n"


class Phases:
    """A graph in the making: a chain of steps over one shape, of which some leave on the way."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = str(self.rng.choice(DTYPES))
        rows = UNKNOWN if self.rng.random() < 0.25 else int(self.rng.choice(ROWS))
        self.shape = (rows, int(self.rng.choice(COLUMNS)))
        self.x = pk.var("x", self.shape, self.dtype)

    def graph(self) -> pk.Graph:
        """Two to five steps; results are the last value, and some of those before."""
        steps = (self.curve, self.less, self.over, self.weighed, self.product)
        value, results = self.x, list[Any]()
        for _ in range(int(self.rng.integers(2, 6))):
            value = steps[self.rng.integers(len(steps))](value)
            if self.rng.random() < 0.25:
                results.append(value)
            if self.rng.random() < 0.25:
                results.append(o.reduce_max(o.concat(value, self.x, axis=1), axis=1))
        return pk.Graph([*results, o.neg(value)])

    def axes(self) -> tuple[int, ...]:
        """Rows, columns, or all."""
        return [(1,), (0,), (0, 1)][self.rng.integers(3)]

    def curve(self, x: Any) -> Any:
        """An elementwise operator."""
        return [o.tanh, o.sigmoid, o.abs][self.rng.integers(3)](x)

    def less(self, x: Any) -> Any:
        """Less a mean."""
        return x - o.reduce_mean(x, axis=self.axes(), keepdims=True)

    def over(self, x: Any) -> Any:
        """Over a sum."""
        total = o.reduce_sum(o.abs(x), axis=self.axes(), keepdims=True)
        return x / (total + 1.0)

    def weighed(self, x: Any) -> Any:
        """By a root of a mean of squares."""
        return x * o.rsqrt(o.reduce_mean(x * x, axis=self.axes(), keepdims=True) + 0.5)

    def product(self, x: Any) -> Any:
        """A product with a new matrix; of any rows for a dtype that has none."""
        if self.dtype not in ("float32", "float64"):
            return self.curve(x)
        n = self.shape[1]
        name = f"w{int(self.rng.integers(1 << 30))}"
        return o.tanh(o.matmul(x, pk.var(name, (n, n), self.dtype)) * 0.1)


def random_phases(seed: int) -> tuple[pk.Graph, list[list[str]]]:
    """The graph of a seed, and all its operators as what is wanted in one kernel."""
    graph = Phases(seed).graph()
    nodes = [n for n in graph.nodes if n.op is not None and n.op.name != "constant"]
    return graph, [[graph.names[n] for n in nodes]]


def with_short_reductions_split(target: Target, row: int, column: int) -> Target:
    """Return a target that splits reductions of so many elements, of rows and columns, in two."""
    tiling = evolve(
        target.tiling,
        row_chunk=row // 2,
        min_row=row,
        min_fused_row=row,
        column_chunk=column // 2,
        min_column=column,
        min_fused_column=column,
    )
    return evolve(target, tiling=tiling)
