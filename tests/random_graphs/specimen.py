"""Any operator of the library, called as one of its specimens is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.graph.node import Entry, known_shape
from passkit.graph.op import get_op
from passkit.values.dtype import dtype_of
from tests.ops.specimens import Specimen
from tests.random_graphs.arrays import DTYPES
from tests.random_graphs.elementwise import is_elementwise, operate
from tests.random_graphs.folds import is_fold, reduced
from tests.random_graphs.kinds import KINDS, kind
from tests.random_graphs.registry import NOT_DRAWN, specimens_of, standard_ops

if TYPE_CHECKING:
    from tests.random_graphs.growth import Growth

SEARCHES = ("searchsorted", "digitize")
"""Operators that mean nothing on other numbers than sorted ones."""


def drawn(g: Growth, name: str, plainly: bool) -> Entry | Sequence[Entry] | None:
    """The operator called ``name``, on entries of the pool or as a specimen calls it."""
    if plainly and is_elementwise(name):
        return operate(g, get_op(name))
    if plainly and is_fold(name):
        return reduced(g, get_op(name))
    if plainly and name in KINDS:
        return KINDS[name][1](g)
    return called(g, name)


@kind(8)
def _any(g: Growth) -> Entry | Sequence[Entry] | None:
    name = g.op([n for n in standard_ops() if n not in NOT_DRAWN]).name
    return drawn(g, name, plainly=g.chance(0.5))


def called(g: Growth, name: str) -> Entry | Sequence[Entry] | None:
    """A call of a specimen: some inputs are what it feeds, others of the pool."""
    usable = [s for s in specimens_of(name) if _dtypes(s)]
    if not usable:
        return None
    specimen = g.rng.choice(usable)
    dtype = g.rng.choice(_dtypes(specimen))
    rng = np.random.default_rng(g.rng.randrange(1 << 30))
    trials = specimen.trials(dtype_of(dtype), rng)
    rows = [(t, f) for t in trials for f in t.feeds]
    few = [(t, f) for t, f in rows if all(a.size <= 2 * g.most for a in f)]
    smallest = min(rows, key=lambda row: sum(a.size for a in row[1]))
    trial, arrays = g.rng.choice(few or [smallest])
    pooled = g.chance(0.6) and name not in SEARCHES
    entries: list[Entry] = []
    for array in arrays:
        entry = _pooled(g, array, entries) if pooled and array.dtype == dtype else None
        entries.append(g.fed(array) if entry is None else entry)
    out = get_op(name)(*entries, **trial.params, **g.control())
    return tuple(out) if isinstance(out, (tuple, list)) else out


def _dtypes(specimen: Specimen) -> list[str]:
    return [d.name for d in specimen.dtypes() if d.name in DTYPES or d.kind == "c"]


def _pooled(g: Growth, like: Any, others: Sequence[Entry]) -> Entry | None:
    """An entry of the shape and dtype of an array: an earlier one again, or some of another's."""
    if dtype_of(like.dtype).is_integer and not g.chance(0.3):
        return None  # these may be indices
    for e in others:
        if e.shape == like.shape and e.dtype is dtype_of(like.dtype) and g.chance(0.2):
            return e
    entry = g.pick(lambda e: e.dtype is dtype_of(like.dtype) and _holds(g, e, like.size))
    if entry is None:
        return None
    if entry.shape == like.shape:
        return entry
    flat = get_op("reshape")(entry, shape=[-1])
    part = get_op("slice")(flat, begin=[0], size=[like.size])
    return g.add(get_op("reshape")(part, shape=list(like.shape)))


def _holds(g: Growth, entry: Entry, size: int) -> bool:
    shape = known_shape(entry)
    return all(isinstance(n, int) for n in shape) and int(np.prod(shape, dtype=np.int64)) >= size
