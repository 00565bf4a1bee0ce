"""Central differences: what a gradient is measured against, in float64 and interpreted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import passkit as pk
from passkit.node import Entry

Array = Any

STEP = 1e-4
RELATIVE = 1e-6
"""By how much a gradient may be off, relative to the sum of what it is made of."""
NOISE = 1e-8
"""The same for differences of rounded results: relative to the results."""


class Measured:
    """Results of a graph, each element weighed at random, and their gradient by some inputs."""

    def __init__(
        self, outs: Sequence[Entry], arrays: dict[str, Array], rng: np.random.Generator
    ) -> None:
        self.outs = [e for e in outs if e.dtype is not None and e.dtype.is_float]
        self.arrays, self.rng = arrays, rng
        self.graph = pk.Graph(self.outs)
        self.xs = [n.entries[0] for n in self.graph.inputs if n.entries[0].dtype.is_float]
        values = self.values(arrays)
        self.finite = all(np.isfinite(v).all() for v in values)
        self.weights = [rng.normal(size=v.shape) for v in values]
        self.size = sum(
            float(np.abs(v * w).sum()) for v, w in zip(values, self.weights, strict=True)
        )

    def values(self, arrays: dict[str, Array]) -> list[Array]:
        """The results for ``arrays``."""
        return pk.interpret(self.graph, {n.name: arrays[n.name] for n in self.graph.inputs})

    def total(self, arrays: dict[str, Array]) -> float:
        """The weighted sum of all results."""
        pairs = zip(self.values(arrays), self.weights, strict=True)
        return float(sum(np.sum(v * w) for v, w in pairs))

    def gradient(self) -> list[Array]:
        """What `gradients` says, for each float input."""
        seeds = [pk.var(f"dy{k}", e.shape, e.dtype) for k, e in enumerate(self.outs)]
        found = pk.gradients(self.outs, self.xs, seeds)
        graph = pk.Graph(found)
        feeds = {**self.arrays, **{f"dy{k}": w for k, w in enumerate(self.weights)}}
        return pk.interpret(graph, {n.name: feeds[n.name] for n in graph.inputs})

    def directions(self) -> Iterator[tuple[int, Array]]:
        """Which input to move and how: each element of small inputs, else some mixtures."""
        for k, x in enumerate(self.xs):
            array = self.arrays[x.node.name]
            if array.size <= 6:
                for i in np.ndindex(array.shape):
                    unit = np.zeros(array.shape)
                    unit[i] = 1.0
                    yield k, unit
            else:
                for _ in range(3):
                    yield k, self.rng.normal(size=array.shape)

    def slope(self, name: str, direction: Array, step: float) -> float:
        """The central difference along a direction."""
        ends = [
            self.total({**self.arrays, name: self.arrays[name] + s * direction})
            for s in (step, -step)
        ]
        return (ends[0] - ends[1]) / (2 * step)

    def mistakes(self) -> Iterator[str]:
        """Where gradient and central differences disagree."""
        found = self.gradient()
        for x, g in zip(self.xs, found, strict=True):
            array = self.arrays[x.node.name]
            if g.shape != array.shape or g.dtype != array.dtype:
                yield f"by {x.name}: {g.dtype}{g.shape} for {array.dtype}{array.shape}"
                return
            if not np.isfinite(g).all():
                yield f"by {x.name}: not finite where the result is"
                return
        for k, direction in self.directions():
            name = self.xs[k].node.name
            wide, narrow = (self.slope(name, direction, s) for s in (STEP, STEP / 2))
            wanted = (4 * narrow - wide) / 3  # the error in STEP**2 cancels
            got = float(np.sum(found[k] * direction))
            scale = float(np.sum(np.abs(found[k] * direction))) + abs(wanted)
            if not abs(wanted - got) <= RELATIVE * scale + NOISE * self.size + 1e-9:
                yield f"by {name}: {got!r}, and central differences give {wanted!r}"


def differences(
    build: Callable[..., Any], *arrays: Array, open_sizes: bool = False, seed: int = 0
) -> list[str]:
    """What is wrong with the gradients of ``build`` at ``arrays``; integers are no xs."""
    entries = [
        pk.var(
            f"x{k}",
            tuple(f"n{k}_{j}" for j in range(np.ndim(a))) if open_sizes else a.shape,
            a.dtype,
        )
        for k, a in enumerate(arrays)
    ]
    out = build(*entries)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    feeds = {f"x{k}": a for k, a in enumerate(arrays)}
    return list(Measured(outs, feeds, np.random.default_rng(seed)).mistakes())
