"""TensorFlow 1's TensorArrays, represented by the flow value that orders their uses."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.frontends.tf_graphdef.evaluation import NodeContext
from passkit.frontends.tf_graphdef.non_arrays import AnyValue
from passkit.frontends.tf_graphdef.resources import tensor_lists
from passkit.values.dtype import dtype_of


@tensor_lists.list_importer("TensorArrayV3", num_inputs=1)
def _array(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorArrayV3: return a list of items that are not set, as handle and as flow.

    The input is the number of items, known during import; the attribute ``dtype`` is that of the
    items. ``ctx`` is the node, and ``inputs`` are its inputs.

    Raises:
        ModelError: If there is not one input, the number is not known or negative, or ``dtype`` is
            missing.
    """
    count = ctx.call.integer(ctx.value(inputs[0]), "size")
    empty = tensor_lists.empty_list(ctx, count, ctx.call.dtype("dtype"), None)
    return empty, empty


@tensor_lists.list_importer("TensorArrayWriteV3", num_inputs=4)
def _write(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorArrayWriteV3: return the array with an item set, lengthened if necessary.

    The result is unsupported or dead if an input is.

    Args:
        ctx: The node.
        inputs: Handle, index known during import, item, and flow.

    Raises:
        ModelError: If there are not four inputs, the flow is no list, the index is not known or
            negative, or the item is no array or of another dtype.
    """
    items = tensor_lists.as_list(ctx, inputs[3])
    position = tensor_lists.item_index(ctx, items, inputs[1], resize=True)
    return (tensor_lists.with_item(ctx, items, position, ctx.value(inputs[2])),)


@tensor_lists.list_importer("TensorArrayReadV3", num_inputs=3)
def _read(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorArrayReadV3: the item at an index known during import; zeros if not set.

    The inputs are handle, index and flow. The result is unsupported or dead if an input is. ``ctx``
    is the node.

    Raises:
        ModelError: If there are not three inputs, the flow is no list, the index is not known or
            out of range, or the shape of an item that is not set is unknown.
    """
    items = tensor_lists.as_list(ctx, inputs[2])
    return (tensor_lists.get_item(ctx, items, tensor_lists.item_index(ctx, items, inputs[1])),)


@tensor_lists.list_importer("TensorArrayScatterV3", num_inputs=4)
def _scatter(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorArrayScatterV3: the list with the items at indices set to rows of an array.

    The inputs are handle, indices known during import, array, and flow. The result is unsupported
    or dead if an input is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not four inputs, the flow is no list, the array has an unknown
            number of rows or another dtype, or the indices are not known, out of range, or not one
            for each row.
    """
    items = tensor_lists.as_list(ctx, inputs[3])
    return (tensor_lists.scatter_items(ctx, items, inputs[1], ctx.value(inputs[2])),)


@tensor_lists.list_importer("TensorArrayGatherV3", num_inputs=3)
def _gather(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorArrayGatherV3: the items at indices as rows of one array.

    The inputs are handle, indices known during import, and flow. The result is unsupported or dead
    if an input is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not three inputs, the flow is no list, indices are not known or out
            of range, or the shape of an item that is not set is unknown.
        ShapeError: If the items differ in shape.
    """
    return (tensor_lists.gather_items(ctx, tensor_lists.as_list(ctx, inputs[2]), inputs[1]),)


@tensor_lists.list_importer("TensorArraySizeV3", num_inputs=2)
def _size(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorArraySizeV3: the number of items, as a known int32 scalar.

    The inputs are handle and flow. The result is unsupported or dead if an input is. ``ctx`` is the
    node.

    Raises:
        ModelError: If there are not two inputs, or the flow is no list, or the memory budget of the
            import is exceeded.
    """
    return (
        ctx.call.known_value(dtype_of("int32"), len(tensor_lists.as_list(ctx, inputs[1]).items)),
    )


@tensor_lists.list_importer("TensorArrayConcatV3", num_inputs=2)
def _concat(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorArrayConcatV3: the items joined along their first axis, and their lengths.

    The inputs are handle and flow; the lengths are a known int64 vector. The results are
    unsupported or dead if an input is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not two inputs, or the flow is no list, empty, or has an item of
            unknown shape.
        ShapeError: If the items do not fit together, or there are several and one is a scalar.
    """
    return tensor_lists.concat_items(ctx, tensor_lists.as_list(ctx, inputs[1]))


@tensor_lists.list_importer("TensorArraySplitV3", num_inputs=4)
def _split(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorArraySplitV3: a list of consecutive parts of an array, by known lengths.

    The inputs are handle, array, lengths, and flow. The result is unsupported or dead if an input
    is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not four inputs, the flow is no list, the array has another dtype,
            or the lengths are not known, negative, or do not add up to the first axis.
    """
    items, value = tensor_lists.as_list(ctx, inputs[3]), ctx.value(inputs[1])
    tensor_lists.check_dtype(ctx, items, value.dtype)
    return (tensor_lists.with_items(ctx, items, tensor_lists.split_rows(ctx, value, inputs[2])),)


@tensor_lists.list_importer("TensorArrayCloseV3", num_inputs=1)
def _close(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorArrayCloseV3, which has no effect: return no results.

    ``ctx`` is the node, and ``inputs`` are its inputs.

    Raises:
        ModelError: If there is not one input.
    """
    return ()
