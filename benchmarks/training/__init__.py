"""Programs that train: a loss, initial inputs and variables, and an optimizer.

A loss is written once over a namespace ``f`` of functions, as in `workloads`, so that passkit,
PyTorch, JAX and TensorFlow trace the same text. Nothing here imports any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import Factory, frozen

NamedArrays = Mapping[str, np.ndarray]
ProgramSizes = Mapping[str, int]
NamedValues = Mapping[str, Any]
"""Tensors of any library by name."""


@frozen
class ProgramInputs:
    """The inputs of a step: ``feeds`` of each call, and first values of ``variables``."""

    feeds: NamedArrays
    variables: NamedArrays


@frozen
class TrainingProgram:
    """A training program.

    Attributes:
        name: its name.
        loss: (f, variables by name, feeds by name) -> a scalar.
        draw: (sizes, generator) -> `ProgramInputs`.
        optimizer: a key of `optimizers.OPTIMIZERS`.
        rate: the learning rate.
        sizes: the sizes by name, such as "batch".
        small: sizes with which a step costs next to nothing.
        rows: tables of which a step changes only the rows that it reads: name of the table -> (f,
            feeds) -> row numbers. The loss knows those rows as ``NAME_rows``. A row that is read
            twice is changed by both gradients.
    """

    name: str
    loss: Callable[[Any, NamedValues, NamedValues], Any]
    draw: Callable[[ProgramSizes, np.random.Generator], ProgramInputs]
    optimizer: str
    rate: float
    sizes: ProgramSizes
    small: ProgramSizes
    rows: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = Factory(dict)

    def drawn(self, small: bool = False, seed: int = 0) -> ProgramInputs:
        """Draw inputs and first values; floats are float32, integers int64."""
        inputs = self.draw(
            {**self.sizes, **(self.small if small else {})}, np.random.default_rng(seed)
        )
        return ProgramInputs(_narrowed(inputs.feeds), _narrowed(inputs.variables))

    def both_feeds(self, drawn: ProgramInputs) -> list[NamedArrays]:
        """Return two sets of feeds, used in turn: the drawn ones and another draw."""
        return [drawn.feeds, self.drawn(seed=1).feeds]


def _narrowed(arrays: NamedArrays) -> NamedArrays:
    """Convert integers to int64 and floats to float32."""
    return {
        name: np.asarray(a, np.int64 if a.dtype.kind == "i" else np.float32)
        for name, a in arrays.items()
    }
