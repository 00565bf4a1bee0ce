"""Indices that only a call knows: ``x[i]`` of a loop that counts when the graph runs."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.control_flow.calls import unreachable
from passkit.frontends.tf_graphdef.opaque import Anything
from passkit.frontends.tf_graphdef.scope import Site, structure
from passkit.frontends.tf_graphdef.table import build
from passkit.frontends.tf_graphdef.value import Value, value_of
from passkit.ops.helpers import make


@structure("StridedSlice")
def _strided_slice(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """A slice whose bounds are known stands in the table; here an index may be any number."""
    site.needs(inputs, 4)
    if (found := unreachable(site, inputs)) is not None:
        return found
    values = [site.value(x) for x in inputs]
    if values[1].known is not None:
        return build(site.call, values)
    return (_indexed(site, *values),)


def _indexed(site: Site, x: Value, begin: Value, end: Value, strides: Value) -> Value:
    """Elements at one index in each axis that goes; the other axes whole.

    Raises: ModelError for a slice between bounds that only a call knows.
    """
    call = site.call
    masks = {
        what: call.attr(f"{what}_mask", "i", 0)
        for what in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    count = call.shape(begin)
    whole, one = masks["begin"] & masks["end"], masks["shrink_axis"]
    if len(count) != 1 or not isinstance(count[0], int) or count[0] > len(call.shape(x)):
        raise ModelError(f"{site.where} needs a list of indices, got one of shape {count}")
    asked = range(count[0])
    if masks["ellipsis"] or masks["new_axis"] or not all((whole | one) >> k & 1 for k in asked):
        shown = ", ".join(f"{what}_mask={mask}" for what, mask in masks.items())
        raise ModelError(
            f"{site.where} slices between bounds that only a call knows ({shown}); only single "
            f"indices may be, with whole axes beside them"
        )
    entry = x.entry
    for k in reversed(asked):
        if one >> k & 1:
            at = begin.entry[k]
            size = call.shape(x)[k]
            if isinstance(size, int):
                below = make("less", at, begin.dtype.numpy.type(0))
                at = make("where", below, at + begin.dtype.numpy.type(size), at)
            entry = make("take", entry, at, axis=k)
    return value_of(entry)
