"""Sizes and arrays for the graphs of the corpus, with which programs run them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passkit.values.size import evaluate, symbols_of

PRIMES = (7, 13, 5, 11, 3, 17)


def sizes_of(graph: Any, extents: Sequence[int] = PRIMES) -> dict[str, int]:
    """Return one of ``extents`` for each unknown size of a graph's inputs, by name."""
    names: dict[str, int] = {}
    for node in graph.inputs:
        for symbol in sorted(symbols_of(node.entries[0].shape or ())):
            names.setdefault(symbol, extents[len(names) % len(extents)])
    return names


def elements_of(graph: Any, sizes: dict[str, int]) -> int:
    """Return the number of elements of all values of a graph; unknown ones count as one."""
    total = 0
    for node in graph.nodes:
        for entry in node.entries:
            shape = entry.shape or ()
            counted = [e for e in shape if symbols_of([e]) <= sizes.keys()]
            total += int(np.prod([int(evaluate(e, sizes)) for e in counted], dtype=np.int64))
    return total


def feeds_of(graph: Any, sizes: dict[str, int]) -> dict[str, Any]:
    """Return normally distributed feeds; those of integers are from 0 to 3."""
    rng = np.random.default_rng(0)
    feeds: dict[str, Any] = {}
    for node in graph.inputs:
        entry = node.entries[0]
        shape = [int(evaluate(n, sizes)) for n in entry.shape or ()]
        dtype = entry.dtype.numpy
        is_float = np.issubdtype(dtype, np.inexact) or dtype.kind == "V"
        values = rng.standard_normal(shape) if is_float else rng.integers(0, 4, shape)
        feeds[graph.names[node]] = values.astype(dtype)
    return feeds
