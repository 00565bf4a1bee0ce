"""Programs that train: a loss, where its inputs and variables begin, and who changes them how.

A loss is written once over a namespace ``f`` of functions, as in `workloads`, so that passkit,
PyTorch, JAX and TensorFlow trace the same text. Nothing here imports any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import Factory, frozen

Arrays = Mapping[str, np.ndarray]
Sizes = Mapping[str, int]


@frozen
class Drawn:
    """What a step is given: ``feeds`` with each call, ``variables`` once."""

    feeds: Arrays
    variables: Arrays


@frozen
class Program:
    """A training program.

    loss: (f, variables by name, feeds by name) -> a scalar.
    draw: (sizes, generator) -> `Drawn`.
    rows: tables of which only the rows that a step reads are changed, each under the name by which
    the loss knows those rows: (f, feeds) -> their numbers. A row that is read twice is changed by
    both gradients.
    small: sizes with which a step costs next to nothing.
    """

    name: str
    loss: Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Any]
    draw: Callable[[Sizes, np.random.Generator], Drawn]
    optimizer: str
    rate: float
    sizes: Sizes
    small: Sizes
    rows: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = Factory(dict)

    def drawn(self, small: bool = False, seed: int = 0) -> Drawn:
        """Inputs and first values; floats are float32, whole numbers int64."""
        made = self.draw({**self.sizes, **(self.small if small else {})},
                         np.random.default_rng(seed))
        return Drawn(_narrowed(made.feeds), _narrowed(made.variables))

    def both_feeds(self, drawn: Drawn) -> list[Arrays]:
        """What steps are fed in turn: those that were drawn, and another draw's."""
        return [drawn.feeds, self.drawn(seed=1).feeds]


def _narrowed(arrays: Arrays) -> Arrays:
    return {name: np.asarray(a, np.int64 if a.dtype.kind == "i" else np.float32)
            for name, a in arrays.items()}
