"""Indices that are known only at run time, such as ``x[i]`` in a loop."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.control_flow.calls import unavailable_results
from passkit.frontends.tf_graphdef.evaluation import NodeContext
from passkit.frontends.tf_graphdef.import_state import context_importer
from passkit.frontends.tf_graphdef.imported_value import ImportedValue, value_of
from passkit.frontends.tf_graphdef.non_arrays import AnyValue
from passkit.frontends.tf_graphdef.registry import import_node
from passkit.ops.helpers import make


@context_importer("StridedSlice")
def _strided_slice(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import a slice; known bounds use the op importer, others must be single indices.

    The inputs are array, begin, end and strides. The result is unsupported or dead if one of them
    is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not four inputs, one is no array, a slice has bounds known only at
            run time, or the known bounds do not fit the array.
        ShapeError: If a known index is out of range, or an index known only at run time is into an
            empty axis.
        DTypeError: If indices known only at run time are not integers.
    """
    ctx.check_count(inputs, 4)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    values = [ctx.value(x) for x in inputs]
    if values[1].array is not None:
        return import_node(ctx.call, values)
    return (_take_elements(ctx, *values),)


def _take_elements(
    ctx: NodeContext,
    x: ImportedValue,
    begin: ImportedValue,
    end: ImportedValue,
    strides: ImportedValue,
) -> ImportedValue:
    """Return the elements at an index along each axis of shrink_axis_mask; other axes stay.

    Args:
        ctx: The StridedSlice.
        x: The array.
        begin: Vector of indices known only at run time; negative ones count from the end of an axis
            of known length.
        end: Not read, since each index selects one element.
        strides: Not read either.

    Raises:
        ModelError: If a slice has bounds that are known only at run time, ``begin`` is not a vector
            of at most as many indices as ``x`` has axes, or a rank is unknown.
        ShapeError: If an axis that an index is for is empty.
        DTypeError: If ``begin`` is not of integers.
    """
    call = ctx.call
    masks = {
        mask_name: call.attr(f"{mask_name}_mask", "i", 0)
        for mask_name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    count = call.shape(begin)
    full_axes, index_axes = masks["begin"] & masks["end"], masks["shrink_axis"]
    if len(count) != 1 or not isinstance(count[0], int) or count[0] > len(call.shape(x)):
        raise ModelError(f"{ctx.where} needs a list of indices, got one of shape {count}")
    axes = range(count[0])
    if (
        masks["ellipsis"]
        or masks["new_axis"]
        or not all((full_axes | index_axes) >> k & 1 for k in axes)
    ):
        shown = ", ".join(f"{mask_name}_mask={mask}" for mask_name, mask in masks.items())
        raise ModelError(
            f"{ctx.where} slices between bounds known only at run time ({shown}); supported are "
            f"single indices known at run time, beside full axes"
        )
    entry = x.entry
    for k in reversed(axes):
        if index_axes >> k & 1:
            position = begin.entry[k]
            size = call.shape(x)[k]
            if isinstance(size, int):
                is_negative = make("less", position, begin.dtype.numpy.type(0))
                position = make(
                    "where", is_negative, position + begin.dtype.numpy.type(size), position
                )
            entry = make("take", entry, position, axis=k)
    return value_of(entry)
