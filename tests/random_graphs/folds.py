"""Kinds of reductions: along any axes, and joined with what they reduced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import passkit as pk
from passkit.graph.node import Entry, known_shape
from passkit.graph.op import FReduce, get_op
from tests.random_graphs.elementwise import accepts
from tests.random_graphs.kinds import is_real, kind
from tests.random_graphs.registry import callable_plainly, standard_ops

if TYPE_CHECKING:
    from tests.random_graphs.growth import Growth


def axes(g: Growth, rank: int) -> Any:
    """Axes of a reduction: last, first, middle, several, all or none."""
    menu: list[Any] = [None, ()] if g.chance(0.25) else []
    menu += [-1, rank - 1, 0] if rank else [None]
    if rank > 2:
        menu += [rank // 2, (0, rank - 1), (1, 2), tuple(range(1, rank)), tuple(range(rank - 1))]
    elif rank == 2:
        menu += [(0, 1), (-1,)]
    return g.rng.choice(menu)


def is_fold(name: str) -> bool:
    """Whether an operator folds one input along ``axis``."""
    op = get_op(name)
    plain = op.num_inputs == 1 and callable_plainly(op) and op.num_outputs == 1
    return name in FReduce.rows and plain and {"axis", "keepdims"} <= op.params.keys()


def reduced(g: Growth, op: pk.Op) -> Entry | None:
    """A reduction of some entry."""
    x = g.pick(lambda e: e.dtype is not None and accepts(op, e.dtype))
    if x is None:
        return None
    axis = axes(g, len(known_shape(x)))
    return op(x, axis=axis, keepdims=g.chance(0.5), **g.control())  # type: ignore[no-any-return]


@kind(4)
def _reduce(g: Growth) -> Entry | None:
    return reduced(g, g.op([n for n in standard_ops() if is_fold(n)]))


def _spread_back(g: Growth, x: Entry, name: str, axis: int) -> Entry:
    """A reduction that broadcasts back to what it reduced, in one of several spellings."""
    shape = known_shape(x)
    kept = tuple(1 if k == axis else n for k, n in enumerate(shape))
    fold = get_op(name)
    if g.chance(0.5):
        out = fold(x, axis=axis, keepdims=True)
    elif g.chance(0.5):
        out = get_op("expand_dims")(fold(x, axis=axis), axis=axis)
    else:
        out = get_op("reshape")(fold(x, axis=axis), shape=kept)
    if g.chance(0.2):
        out = get_op("broadcast_to")(out, shape=shape)
    return out  # type: ignore[no-any-return]


@kind(1.6)
def _normalise(g: Growth) -> Entry | None:
    """Softmax, centring and scaling by primitives, over any axis."""
    x = g.pick(lambda e: is_real(e) and len(known_shape(e)) > 0)
    if x is None:
        return None
    axis = g.rng.randrange(len(known_shape(x)))
    form = g.rng.randrange(4)
    if form == 0:
        e = get_op("exp")(x - _spread_back(g, x, "reduce_max", axis))
        return e / _spread_back(g, e, "reduce_sum", axis)
    if form == 1:
        d = x - _spread_back(g, x, "reduce_mean", axis)
        return d * get_op("rsqrt")(_spread_back(g, d * d, "reduce_mean", axis) + 1e-3)
    if form == 2:
        return x / (_spread_back(g, get_op("abs")(x), "reduce_max", axis) + 1.0)
    return get_op("reduce_sum")(x - _spread_back(g, x, "reduce_min", axis), axis=axis)
