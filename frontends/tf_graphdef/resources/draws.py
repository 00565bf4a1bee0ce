"""Draws that differ from run to run, in models that are trained: initial values and dropout.

TensorFlow draws anew in each run, by a generator that its process keeps. Here a draw is a function
of the node's seeds and name and of the number of the run, so that a training can be repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from passkit import ops
from passkit.frontends.tf_graphdef.control_flow.calls import unreachable
from passkit.frontends.tf_graphdef.opaque import Anything
from passkit.frontends.tf_graphdef.scope import Site, structure
from passkit.frontends.tf_graphdef.value import value_of
from passkit.graph.node import Entry, constant
from passkit.values.dtype import dtype_of

_FLOATS = {
    "RandomUniform": "random_uniform",
    "RandomStandardNormal": "random_normal",
    "TruncatedNormal": "random_truncated_normal",
}


def _key(site: Site) -> Entry:
    """The key of this node's draws in this run."""
    seeds = [site.call.attr(k, "i", 0) for k in ("seed", "seed2")]
    words = repr((*seeds, site.call.name)).encode()
    own = int.from_bytes(hashlib.sha256(words).digest()[:8], "little") >> 2
    assert site.program.run_number is not None
    return site.program.run_number + constant(own, dtype_of("int64"))


@structure(*_FLOATS, trains=True)
def _floats(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    site.needs(inputs, 1)
    if (found := unreachable(site, inputs)) is not None:
        return found
    shape = tuple(site.call.extents(site.value(inputs[0]), "shape"))
    draw = getattr(ops, _FLOATS[site.call.node.op])
    return (value_of(draw(_key(site), shape=shape, dtype=site.call.dtype("dtype").name)),)


@structure("RandomUniformInt", trains=True)
def _integers(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    site.needs(inputs, 3)
    if (found := unreachable(site, inputs)) is not None:
        return found
    shape, low, high = (site.value(x) for x in inputs)
    made = ops.random_integers(
        _key(site),
        low=site.call.integer(low, "minval"),
        high=site.call.integer(high, "maxval"),
        shape=tuple(site.call.extents(shape, "shape")),
        dtype=site.call.dtype("Tout").name,
    )
    return (value_of(made),)


@structure("RandomShuffle", trains=True)
def _shuffled(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    site.needs(inputs, 1)
    if (found := unreachable(site, inputs)) is not None:
        return found
    return (value_of(ops.shuffle(site.value(inputs[0]).entry, _key(site))),)
