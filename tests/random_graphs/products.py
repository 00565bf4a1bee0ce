"""Kinds of products, and of composites on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passkit.graph.node import Entry, known_shape
from passkit.graph.op import FExpand, get_op
from passkit.values.dtype import bool_
from tests.random_graphs.folds import axes as axes_drawn
from tests.random_graphs.kinds import is_real, kind
from tests.random_graphs.registry import callable_plainly, standard_ops

if TYPE_CHECKING:
    from tests.random_graphs.growth import Growth


@kind(1.0)
def _matmul(g: Growth) -> Entry | None:
    x = g.pick(lambda e: len(known_shape(e)) > 1 and e.dtype is not bool_)
    if x is None:
        return None
    assert x.dtype is not None
    shape, flip_a, flip_b = known_shape(x), g.chance(0.25), g.chance(0.25)
    k = shape[-2] if flip_a else shape[-1]
    n = g.rng.choice((1, 2, 5, 16, 33, shape[-1]))
    batch = shape[:-2] if g.chance(0.5) else tuple(1 if g.chance(0.5) else d for d in shape[:-2])
    batch = batch if g.chance(0.6) else ()
    y = g.fresh((*batch, *((n, k) if flip_b else (k, n))), x.dtype.name, exact_sizes=True)
    product = get_op("matmul")(x, y, transpose_a=flip_a, transpose_b=flip_b, **g.control())
    return product  # type: ignore[no-any-return]


@kind(0.4)
def _linear(g: Growth) -> Entry | None:
    x = g.pick(lambda e: is_real(e) and len(known_shape(e)) > 0)
    if x is None:
        return None
    assert x.dtype is not None
    hidden = g.rng.choice((1, 3, 17))
    rest = [g.fresh((hidden, known_shape(x)[-1]), x.dtype.name, exact_sizes=True)]
    if g.chance(0.6):
        rest.append(g.fresh((hidden,), x.dtype.name))
    return get_op("linear")(x, *rest, no_bias=len(rest) == 1)  # type: ignore[no-any-return]


def _is_composite(name: str) -> bool:
    """Whether an operator expands, and takes one input, or those of a layer norm."""
    op = get_op(name)
    one = op.num_inputs == 1 and op.num_outputs == 1 and callable_plainly(op)
    return name in FExpand.rows and (one or name == "layer_norm")


@kind(1.6)
def _composite(g: Growth) -> Entry | None:
    op = g.op([n for n in standard_ops() if _is_composite(n)])
    name = op.name
    x = g.pick(lambda e: is_real(e) and (len(known_shape(e)) > 0 or name in ("gelu", "silu")))
    if x is None:
        return None
    assert x.dtype is not None
    params: dict[str, Any] = {}
    if "axis" in op.params:
        axis = axes_drawn(g, len(known_shape(x)))
        params["axis"] = axis if axis != () else -1
    if "keepdims" in op.params:
        params["keepdims"] = g.chance(0.5)
    if "approximate" in op.params:
        params["approximate"] = g.rng.choice(("none", "tanh", "sigmoid"))
    if name != "layer_norm":
        return op(x, **params, **g.control())  # type: ignore[no-any-return]
    shape = known_shape(x)
    axes = params["axis"]
    axes = range(len(shape)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    reduced_shape = tuple(shape[k] for k in sorted(a % len(shape) for a in axes))
    scale, center = g.chance(0.7), g.chance(0.7)
    rest = [g.fresh(reduced_shape, x.dtype.name, exact_sizes=True) for _ in range(scale + center)]
    return op(x, *rest, **params, scale=scale, center=center)  # type: ignore[no-any-return]
