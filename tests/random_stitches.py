"""Random groups of several iteration spaces: products, folds, movement and what is between."""

from __future__ import annotations

import numpy as np

import passkit as pk
from passkit.graph.node import Entry, known_shape
from passkit.values.size import numel

o = pk.ops
EXTENTS = (1, 2, 3, 5, 8, 17, 33)
LARGEST = 4096


class Stitch:
    """A graph in the making: each step applies an operator to values that are there."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.inputs = 0
        rank = int(self.rng.integers(2, 4))
        self.values = [self.input(tuple(int(n) for n in self.rng.choice(EXTENTS, rank)))]

    def input(self, shape: tuple[int, ...]) -> Entry:
        """A new input."""
        self.inputs += 1
        return pk.var(f"x{self.inputs}", shape)

    def any(self) -> Entry:
        """A value, rather a late one."""
        count = len(self.values)
        return self.values[min(count - 1, int(count * self.rng.random() ** 0.5))]

    def graph(self, steps: int | None = None) -> pk.Graph:
        """A graph of so many steps, by default up to a dozen, of an operator or two.

        Results are what nobody reads, and some more.
        """
        for _ in range(int(self.rng.integers(4, 13)) if steps is None else steps):
            step = self.rng.choice([self.curve, self.pair, self.fold, self.product, self.move])
            result = step(self.any())
            if 0 < numel(known_shape(result)) <= LARGEST:
                self.values.append(result)
        read = {e for v in self.values for e in pk.Graph([v]).users}
        results = [v for v in self.values if v not in read and v.node.op is not None]
        more = [v for v in self.values if v.node.op is not None and self.rng.random() < 0.2]
        return pk.Graph(list(dict.fromkeys([*results, *more])) or [o.neg(self.values[0])])

    def curve(self, x: Entry) -> Entry:
        """An elementwise operator of one input."""
        return [o.tanh, o.neg, o.sigmoid, lambda v: o.exp(o.tanh(v))][self.rng.integers(4)](x)

    def pair(self, x: Entry) -> Entry:
        """An elementwise operator with another value, or an input, that broadcasts."""
        alike = [v for v in self.values if _broadcasts(known_shape(v), known_shape(x))]
        y = alike[self.rng.integers(len(alike))]
        if self.rng.random() < 0.4:
            y = self.input(tuple(n if self.rng.random() < 0.6 else 1 for n in known_shape(x)))
        return [o.add, o.sub, o.mul, o.maximum][self.rng.integers(4)](x, y)

    def fold(self, x: Entry) -> Entry:
        """A reduction of some axes; what it leaves is often brought back at once."""
        rank = len(known_shape(x))
        if rank == 0:
            return o.neg(x)
        axes = tuple(sorted(self.rng.choice(rank, int(self.rng.integers(1, rank + 1)), False)))
        op = [o.reduce_sum, o.reduce_max, o.reduce_mean][self.rng.integers(3)]
        keep = bool(self.rng.random() < 0.6)
        result = op(x, axis=tuple(map(int, axes)), keepdims=keep)
        return o.sub(x, result) if keep and self.rng.random() < 0.5 else result

    def product(self, x: Entry) -> Entry:
        """A product with a new input, or with the same value transposed."""
        shape = known_shape(x)
        if len(shape) < 2:
            return o.neg(x)
        if self.rng.random() < 0.3:
            return o.tanh(o.matmul(x, x, transpose_b=True))
        n, batch = int(self.rng.choice(EXTENTS)), shape[:-2] if self.rng.random() < 0.5 else ()
        if self.rng.random() < 0.5:
            return o.tanh(o.matmul(x, self.input((*batch, n, shape[-1])), transpose_b=True))
        return o.tanh(o.matmul(x, self.input((*batch, shape[-1], n))))

    def move(self, x: Entry) -> Entry:
        """A transposition, a slice, a reversal, a concatenation, or another shape."""
        shape = known_shape(x)
        rank = len(shape)
        kind = int(self.rng.integers(5)) if rank else 4
        if kind == 0:
            return o.transpose(x, axes=tuple(map(int, self.rng.permutation(rank))))
        axis = int(self.rng.integers(max(1, rank)))
        if kind == 1:
            begin = [int(k == axis and n > 1) for k, n in enumerate(shape)]
            return o.slice(x, begin=tuple(begin), size=(-1,) * rank)
        if kind == 2:
            return o.reverse(x, axis=axis)
        if kind == 3:
            return o.concat(x, o.neg(x), axis=axis)
        return o.reshape(x, shape=(-1,) if rank != 1 else (1, -1))


def _broadcasts(shape: tuple[int, ...], onto: tuple[int, ...]) -> bool:
    if len(shape) > len(onto):
        return False
    tail = onto[len(onto) - len(shape) :]
    return all(n in (1, m) for n, m in zip(shape, tail, strict=True))


def random_stitch(seed: int, steps: int | None = None) -> tuple[pk.Graph, list[list[str]]]:
    """The graph of a seed, and all its operators as what is wanted in one kernel."""
    graph = Stitch(seed).graph(steps)
    nodes = [n for n in graph.nodes if n.op is not None and n.op.name != "constant"]
    return graph, [[graph.names[n] for n in nodes]]
