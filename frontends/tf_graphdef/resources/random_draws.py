"""Random operators in models that are trained, for initial values and dropout.

TensorFlow draws from a generator of the process. Here a draw is a function of the node's seeds
and name and of the run number, so that training is reproducible.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from passkit import ops
from passkit.frontends.tf_graphdef.control_flow.calls import unavailable_results
from passkit.frontends.tf_graphdef.evaluation import NodeContext
from passkit.frontends.tf_graphdef.import_state import context_importer
from passkit.frontends.tf_graphdef.imported_value import value_of
from passkit.frontends.tf_graphdef.non_arrays import AnyValue
from passkit.graph.node import Entry, constant
from passkit.values.dtype import dtype_of

_FLOATS = {
    "RandomUniform": "random_uniform",
    "RandomStandardNormal": "random_normal",
    "TruncatedNormal": "random_truncated_normal",
}


def _key(ctx: NodeContext) -> Entry:
    """Return the key of this node's draws: the run number plus a number derived from the node.

    The latter is 62 bits of a hash of the node's seeds and name; the entry is an int64 scalar.
    ``ctx`` is the node; the import state must have a run number.

    Raises:
        ModelError: If an attribute is of another kind.
    """
    seeds = [ctx.call.attr(k, "i", 0) for k in ("seed", "seed2")]
    seed_text = repr((*seeds, ctx.call.name)).encode()
    node_number = int.from_bytes(hashlib.sha256(seed_text).digest()[:8], "little") >> 2
    assert ctx.shared.run_number is not None
    return ctx.shared.run_number + constant(node_number, dtype_of("int64"))


@context_importer(*_FLOATS, training=True)
def _floats(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import RandomUniform, RandomStandardNormal and TruncatedNormal: floats of a known shape.

    The input is the shape, which may be symbolic. Each call of the program draws other numbers. The
    result is unsupported or dead if the input is. ``ctx`` is the node, and ``inputs`` are its
    inputs.

    Raises:
        ModelError: If there is not one input, it is no array or depends on data, or the attribute
            ``dtype`` is missing.
        DTypeError: If ``dtype`` is not of floats.
        ShapeError: If an extent is negative.
    """
    ctx.check_count(inputs, 1)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    shape = tuple(ctx.call.extents(ctx.value(inputs[0]), "shape"))
    draw = getattr(ops, _FLOATS[ctx.call.node.op])
    return (value_of(draw(_key(ctx), shape=shape, dtype=ctx.call.dtype("dtype").name)),)


@context_importer("RandomUniformInt", training=True)
def _integers(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import RandomUniformInt: integers from ``minval`` to below ``maxval``, both known.

    The inputs are the shape, which may be symbolic, and both limits. The result is unsupported or
    dead if an input is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not three inputs, one is no array or depends on data, or the
            attribute ``Tout`` is missing.
        ShapeError: If an extent is negative.
        GraphError: If ``minval`` is not less than ``maxval``, or out of the dtype's range.
        DTypeError: If ``Tout`` is not of integers.
    """
    ctx.check_count(inputs, 3)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    shape, low, high = (ctx.value(x) for x in inputs)
    drawn = ops.random_integers(
        _key(ctx),
        low=ctx.call.integer(low, "minval"),
        high=ctx.call.integer(high, "maxval"),
        shape=tuple(ctx.call.extents(shape, "shape")),
        dtype=ctx.call.dtype("Tout").name,
    )
    return (value_of(drawn),)


@context_importer("RandomShuffle", training=True)
def _shuffled(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import RandomShuffle: the rows of an array in random order.

    The result is unsupported or dead if the input is. ``ctx`` is the node, and ``inputs`` are its
    inputs.

    Raises:
        ModelError: If there is not one input, or it is no array.
        ShapeError: If it is a scalar.
    """
    ctx.check_count(inputs, 1)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    return (value_of(ops.shuffle(ctx.value(inputs[0]).entry, _key(ctx))),)
