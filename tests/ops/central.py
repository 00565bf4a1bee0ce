"""Comparison of gradients with central differences, in float64 and interpreted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import passkit as pk
from passkit import Entry

Array = Any

STEPS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
RELATIVE = 1e-6
"""Allowed error of a gradient, relative to the sum of the magnitudes of its terms."""
NOISE = 50
"""Allowed error of a difference, in rounding errors of the results."""


class Measured:
    """A weighted sum of the results of a graph, with random weights, and its gradients."""

    def __init__(
        self, outs: Sequence[Entry], arrays: dict[str, Array], rng: np.random.Generator
    ) -> None:
        self.outs = [e for e in outs if e.dtype is not None and e.dtype.is_float]
        self.arrays, self.rng = arrays, rng
        self.graph = pk.Graph(self.outs)
        self.xs = [n.entries[0] for n in self.graph.inputs if n.entries[0].dtype.is_float]
        values = self.values(arrays)
        self.finite = all(np.isfinite(v).all() for v in values)
        self.weights = [
            np.where(np.isfinite(v), rng.normal(size=v.shape), 0.0).astype(v.dtype) for v in values
        ]
        self.size = float(sum(np.abs(v).sum() for v in self.weighed(values)))
        self.noise = NOISE * max(float(ml_dtypes.finfo(v.dtype).eps) for v in values)

    def values(self, arrays: dict[str, Array]) -> list[Array]:
        """Return the results for ``arrays``."""
        return pk.interpret(self.graph, {n.name: arrays[n.name] for n in self.graph.inputs})

    def total(self, arrays: dict[str, Array]) -> float:
        """Return the weighted sum of all results."""
        return float(sum(np.sum(v) for v in self.weighed(self.values(arrays))))

    def weighed(self, values: Sequence[Array]) -> list[Array]:
        """Return the results times their weights, 0 for those that were infinite at first."""
        pairs = zip(values, self.weights, strict=True)
        return [np.where(w == 0, 0, v).astype(np.float64) * w for v, w in pairs]

    def gradient(self) -> list[Array]:
        """Return the gradient by each float input."""
        seeds = [pk.var(f"dy{k}", e.shape, e.dtype) for k, e in enumerate(self.outs)]
        graph = pk.Graph(pk.gradients(self.outs, self.xs, seeds))
        feeds = {**self.arrays, **{f"dy{k}": w for k, w in enumerate(self.weights)}}
        return pk.interpret(graph, {n.name: feeds[n.name] for n in graph.inputs})

    def directions(self) -> Iterator[tuple[int, Array]]:
        """Yield number of an input and direction: each element of small inputs, else mixtures."""
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
        """Return the central difference along a direction."""
        ends = [
            self.total({**self.arrays, name: self.arrays[name] + s * direction})
            for s in (step, -step)
        ]
        return (ends[0] - ends[1]) / (2 * step)

    def compared(self, gradient: Array, name: str, direction: Array) -> str:
        """Compare a gradient with differences along a direction: "", "rough" or a message.

        It is "rough" where the function jumps or bends nearby, so that the differences of several
        steps disagree with each other.
        """
        got = float(np.sum(gradient * direction))
        scale = float(np.sum(np.abs(gradient * direction)))
        slopes: list[float] = []
        for step in STEPS:
            slope = self.slope(name, direction, step)
            better = [slope] if not slopes else [slope, (100 * slope - slopes[-1]) / 99]
            allowed = RELATIVE * (scale + abs(slope)) + self.noise / step * (self.size + 1e-3)
            if any(abs(w - got) <= allowed for w in better):
                return ""
            if slopes and abs(slope - slopes[-1]) <= 0.1 * abs(got - slope):
                return f"by {name}: {got!r}, and central differences give {slope!r}"
            slopes.append(slope)
        return "rough"

    def mistakes(self) -> list[str]:
        """Return a message for each difference; "rough" where differences cannot be taken."""
        gradients = self.gradient()
        for x, g in zip(self.xs, gradients, strict=True):
            array = self.arrays[x.node.name]
            if g.shape != array.shape or g.dtype != array.dtype:
                return [f"by {x.name}: {g.dtype}{g.shape} for {array.dtype}{array.shape}"]
            if np.isnan(g).any():
                return [f"by {x.name}: NaN where the result is finite"]
            if np.isinf(g).any():
                return ["rough"]
        messages = [
            self.compared(gradients[k], self.xs[k].node.name, direction)
            for k, direction in self.directions()
        ]
        return [message for message in messages if message]


def differences(
    build: Callable[..., Any], *arrays: Array, open_sizes: bool = False, seed: int = 0
) -> list[str]:
    """Return where gradients of ``build`` at ``arrays`` differ from central differences.

    Args:
        build: returns the outputs for entries.
        *arrays: the inputs; integers are not differentiated.
        open_sizes: whether the extents of the variables are symbolic.
        seed: seed of the weights and directions.
    """
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
    return Measured(outs, feeds, np.random.default_rng(seed)).mistakes()
