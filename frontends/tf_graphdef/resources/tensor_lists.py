"""Tensor lists, as loops fill and read them: TensorList operators, and helpers for TensorArrays.

A list is an immutable value: operators return a changed copy. So of the lists of an unrolled loop
only the items remain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef import stacked_lists
from passkit.frontends.tf_graphdef.control_flow.calls import unavailable_results
from passkit.frontends.tf_graphdef.evaluation import NodeContext
from passkit.frontends.tf_graphdef.import_state import ContextImporter, context_importer
from passkit.frontends.tf_graphdef.imported_value import ImportedValue, known_value, value_of
from passkit.frontends.tf_graphdef.non_arrays import AnyValue, NonArray, StackedList, TensorList
from passkit.frontends.tf_graphdef.proto import short
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.ops.helpers import make
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Shape, Size

_ITEM_NBYTES = 100
"""Approximate memory of an item in a list."""
_ROW_NBYTES = 1300
"""Approximate memory of reading or writing a row of an array."""


def list_importer(*names: str, num_inputs: int) -> Callable[[ContextImporter], ContextImporter]:
    """Return a decorator that registers an importer of operators with ``num_inputs`` inputs.

    What is registered, and returned by the decorator, is a function that raises ModelError for
    another number of inputs, returns unsupported or dead results if an input is so, and else calls
    the importer.

    Args:
        names: TensorFlow operators.
        num_inputs: Number of inputs.
    """

    def register(function: ContextImporter) -> ContextImporter:
        def checked(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
            ctx.check_count(inputs, num_inputs)
            return unavailable_results(ctx, inputs) or function(ctx, inputs)

        context_importer(*names)(checked)
        return checked

    return register


def as_list(ctx: NodeContext, value: AnyValue) -> TensorList:
    """Return an input that must be a tensor list; ``ctx`` names the node in errors.

    Raises:
        ModelError: If it is another value, such as an array or a list stored as one array.
    """
    if not isinstance(value, TensorList):
        kind = value.description if isinstance(value, NonArray) else "an array"
        raise ModelError(f"{ctx.where} needs a list, got {short(value.name)}, {kind}")
    return value


def _shape_of(ctx: NodeContext, value: AnyValue) -> Shape | None:
    """Return the item shape that the input ``value`` declares.

    None if it is not known during import, or -1, or has an unknown dimension -1. ``ctx`` names the
    node in errors.

    Raises:
        ModelError: If the input is no array, or a known one that is no list of integers.
    """
    value = ctx.value(value)
    if value.array is None or (value.array.ndim == 0 and int(value.array) == -1):
        return None
    extents = ctx.call.extents(value, "element shape")
    if any(isinstance(n, int) and n < 0 for n in extents):
        return None
    return tuple(extents)


def empty_list(ctx: NodeContext, length: int, dtype: DType, shape: Shape | None) -> TensorList:
    """Return a list of ``length`` items that are not set yet.

    Args:
        ctx: The node, whose name the list gets.
        length: Number of items.
        dtype: Dtype of the items.
        shape: Declared shape of the items; None if there is none.

    Raises:
        ModelError: If the length is negative, or exceeds the memory budget.
    """
    if length < 0:
        raise ModelError(f"{ctx.where} needs a length of at least 0, got {length}")
    ctx.shared.budget.take(_ITEM_NBYTES * length, f"{ctx.where} of {length:,} items")
    return TensorList(ctx.call.name, (None,) * length, dtype, shape)


def with_items(
    ctx: NodeContext, items: TensorList, new_items: Sequence[ImportedValue | None]
) -> TensorList:
    """Return a list of ``new_items`` (None where not set) of the dtype and item shape of ``items``.

    Raises:
        ModelError: If the memory budget is exceeded; ``ctx`` is the node, whose name the list gets.
    """
    ctx.shared.budget.take(16 * len(new_items), ctx.where)
    return TensorList(ctx.call.name, tuple(new_items), items.dtype, items.shape)


@list_importer("TensorListReserve", num_inputs=2)
def _reserve(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListReserve: a list of items that are not set.

    A list of a symbolic number of items is stored as one array. The result is unsupported or dead
    if an input is.

    Args:
        ctx: The node.
        inputs: Shape of the items, and their number, which may be symbolic; an empty vector counts
            as 0.

    Raises:
        ModelError: If there are not two inputs, the number is not one known integer or is negative,
            or ``element_dtype`` is missing.
    """
    count, *further = ctx.call.extents(ctx.value(inputs[1]), "number of elements") or (0,)
    if further:
        raise ModelError(
            f"{ctx.where} needs one integer as its number of elements, got {[count, *further]}"
        )
    shape, dtype = _shape_of(ctx, inputs[0]), ctx.call.dtype("element_dtype")
    if isinstance(count, Size):
        return (stacked_lists.unfilled_stack(ctx, count, dtype, shape),)
    return (empty_list(ctx, count, dtype, shape),)


@list_importer("EmptyTensorList", num_inputs=2)
def _empty_list(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import EmptyTensorList: a list without items, of the declared item shape.

    The inputs are the shape of the items and their largest number, which is ignored. The result is
    unsupported or dead if an input is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not two inputs, the shape is no array, or ``element_dtype`` is
            missing.
    """
    return (empty_list(ctx, 0, ctx.call.dtype("element_dtype"), _shape_of(ctx, inputs[0])),)


def unstack(ctx: NodeContext, value: ImportedValue) -> list[ImportedValue]:
    """Return the rows of the array ``value`` as a list of values.

    Rows of a known array of at most 4096 elements are known.

    Raises:
        ModelError: If the rank or the length of the first axis is unknown, the array is a scalar,
            or the memory budget is exceeded; ``ctx`` names the node.
    """
    shape = ctx.call.shape(value)
    if not shape or not isinstance(shape[0], int):
        raise ModelError(
            f"{ctx.where} needs an array whose first axis has a known length, got "
            f"{short(value.name)} of shape {show_shape(shape)}; give load the full shape of its "
            f"input in shapes="
        )
    ctx.shared.budget.take(_ROW_NBYTES * shape[0], f"{ctx.where} of {shape[0]:,} items")
    array = value.array
    if array is not None and array.dtype == object:
        return [known_value(value.name, value.dtype, row) for row in array]
    if array is not None and array.size <= 4096:
        return [ImportedValue(value.name, value.dtype, array=np.asarray(row)) for row in array]
    entry = value.entry
    return [value_of(entry[k]) for k in range(shape[0])]


@list_importer("TensorListFromTensor", num_inputs=2)
def _from_tensor(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListFromTensor: a list of the rows of an array.

    An array with a symbolic number of rows stays an array. The second input, the declared shape of
    the items, is ignored. The result is unsupported or dead if an input is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not two inputs, the first is no array, is a scalar, or has an
            unknown rank.
    """
    value = ctx.value(inputs[0])
    shape = ctx.call.shape(value)
    if shape and isinstance(shape[0], Size):
        return (StackedList(ctx.call.name, value, shape[0], value.dtype, shape[1:]),)
    rows = unstack(ctx, value)
    return (TensorList(ctx.call.name, tuple(rows), value.dtype, ctx.call.shape(value)[1:]),)


def item_index(ctx: NodeContext, items: TensorList, index: AnyValue, resize: bool = False) -> int:
    """Return an index into a list, known during import.

    Args:
        ctx: The node.
        items: The list.
        index: The index.
        resize: Whether indices behind the end are allowed.

    Raises:
        ModelError: If it is no array, not one known integer, negative, or out of range.
    """
    position = ctx.call.integer(ctx.value(index), "index")
    if position < 0 or (position >= len(items.items) and not resize):
        raise ModelError(
            f"{ctx.where} needs an index into a list of {len(items.items)} items, got {position}"
        )
    return position


def check_dtype(ctx: NodeContext, items: TensorList, dtype: DType | None) -> None:
    """Raise ModelError unless ``dtype`` is that of the list ``items``; None, unknown, fits any.

    ``ctx`` names the node in errors.
    """
    if None not in (items.dtype, dtype) and dtype != items.dtype:
        raise ModelError(f"{ctx.where} needs an item of {items.dtype}, got {dtype}")


def with_item(
    ctx: NodeContext, items: TensorList, position: int, item: ImportedValue
) -> TensorList:
    """Return a copy of list ``items`` with the item at ``position`` set, lengthened if necessary.

    ``ctx`` is the node, whose name the new list gets; ``position`` must not be negative.

    Raises:
        ModelError: If the item has another dtype, or the memory budget is exceeded.
    """
    check_dtype(ctx, items, item.dtype)
    new_items = [*items.items, *[None] * (position + 1 - len(items.items))]
    new_items[position] = item
    return with_items(ctx, items, new_items)


@list_importer("TensorListSetItem", num_inputs=3)
def _set_item(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListSetItem: return the list with an item set.

    The inputs are list, index and item. If the index is known only at run time, the list becomes
    the rows of an array. With the attribute ``resize_if_index_out_of_bounds``, an index behind the
    end lengthens the list. The result is unsupported or dead if an input is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not three inputs, the first is no list, the index is out of range,
            or the item is no array or of another dtype, or the memory budget of the import is
            exceeded.
        ShapeError: If an item does not fit the rows of the array.
        DTypeError: If an index known only at run time is not an integer, or the item's dtype is not
            that of the array.
    """
    if stacked := stacked_lists.as_stacked_if_dynamic(ctx, inputs[0], inputs[1]):
        return (
            stacked_lists.with_stacked_item(
                ctx, stacked, ctx.value(inputs[1]), ctx.value(inputs[2])
            ),
        )
    items = as_list(ctx, inputs[0])
    resize = ctx.call.attr("resize_if_index_out_of_bounds", "b", False)
    position = item_index(ctx, items, inputs[1], resize)
    ctx.shared.budget.take(_ITEM_NBYTES * max(0, position - len(items.items)), ctx.where)
    return (with_item(ctx, items, position, ctx.value(inputs[2])),)


def get_item(
    ctx: NodeContext, items: TensorList, position: int, shape: Shape | None = None
) -> ImportedValue:
    """Return an item of a list; one that is not set is zero.

    The shape of an item that is not set is that which the list declares, else ``shape``, else that
    of the first item that is set. ``position`` must be in range.

    Args:
        ctx: The node.
        items: The list.
        position: Index of the item.
        shape: Shape of items that are not set, if the list does not declare one; None if it is not
            known.

    Raises:
        ModelError: If the shape of an item that is not set is unknown, or the list has no dtype.
    """
    item = items.items[position]
    if item is not None:
        return item
    item_shape = next((i.shape for i in items.items if i is not None), None)
    shape_to_fill = (
        items.shape if items.shape is not None else shape if shape is not None else item_shape
    )
    if shape_to_fill is None or items.dtype is None:
        raise ModelError(
            f"{ctx.where} needs the shape of item {position}, which was not set, and the list "
            f"declares none; set an item first, or declare the shape of the items"
        )
    return value_of(make("full", shape=shape_to_fill, fill_value=0, dtype=items.dtype.name))


@list_importer("TensorListGetItem", num_inputs=3)
def _get_item(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListGetItem: return an item; zeros if it is not set.

    The inputs are list, index, and shape of the items. If the index is known only at run time, the
    list is read as the rows of an array. The result is unsupported or dead if an input is. ``ctx``
    is the node.

    Raises:
        ModelError: If there are not three inputs, the first is no list, the index is out of range,
            or the shape of an item that is not set is unknown.
        ShapeError: If the index is known only at run time and the list has no items.
        DTypeError: If an index known only at run time is not an integer.
    """
    if stacked := stacked_lists.as_stacked_if_dynamic(ctx, inputs[0], inputs[1]):
        return (stacked_lists.stacked_item(ctx, stacked, ctx.value(inputs[1])),)
    items = as_list(ctx, inputs[0])
    position = item_index(ctx, items, inputs[1])
    return (get_item(ctx, items, position, _shape_of(ctx, inputs[2])),)


def stack_items(ctx: NodeContext, items: TensorList, shape: Shape | None = None) -> ImportedValue:
    """Return all items as rows of one array; items that are not set are zeros.

    Of an empty list with a known item shape, the array has no rows. Small known items give a known
    array.

    Args:
        ctx: The node.
        items: The list.
        shape: Shape of the items, read if the list does not declare one; None if it is not known.

    Raises:
        ModelError: If the list is empty or has items that are not set, of unknown shape, or the
            memory budget is exceeded.
        ShapeError: If the items differ in shape.
    """
    ctx.shared.budget.take(_ROW_NBYTES * len(items.items), ctx.where)
    if not items.items:
        item_shape = items.shape if items.shape is not None else shape
        if item_shape is None or items.dtype is None:
            raise ModelError(
                f"{ctx.where} needs the shape of the items of {short(items.name)}, an empty list "
                f"that declares none; declare the shape of the items"
            )
        empty_array = make("full", shape=(0, *item_shape), fill_value=0, dtype=items.dtype.name)
        return value_of(empty_array)
    values = [get_item(ctx, items, k, shape) for k in range(len(items.items))]
    first_value = values[0]
    if all(v.array is not None and v.array.dtype != object and v.array.size < 64 for v in values):
        arrays = [v.array for v in values if v.array is not None]
        if len({a.shape for a in arrays}) == 1:
            return ImportedValue(ctx.call.name, first_value.dtype, array=np.stack(arrays))
    rows: list[Entry] = [make("expand_dims", v.entry, axis=0) for v in values]
    return value_of(_concatenated(ctx, rows))


def _concatenated(ctx: NodeContext, entries: Sequence[Entry]) -> Entry:
    """Return arrays concatenated along their first axis; a single one is returned itself.

    ``entries`` must not be empty; ``ctx`` is the node, whose name the result gets.

    Raises:
        ShapeError: If the shapes do not fit together.
        DTypeError: If the dtypes differ.
    """
    if len(entries) == 1:
        return entries[0]
    joined: Entry = ops.concat(*entries, axis=0, name=ctx.call.name)
    return joined


@list_importer("TensorListStack", num_inputs=2)
def _stack(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListStack: the items as rows of one array.

    The inputs are list, and shape of the items. The result is unsupported or dead if an input is.
    ``ctx`` is the node.

    Raises:
        ModelError: If there are not two inputs, the first is no list, or the shape of items that
            are not set, or of an empty list, is unknown.
        ShapeError: If the items differ in shape.
    """
    if isinstance(inputs[0], StackedList):
        return (stacked_lists.stacked_array(ctx, inputs[0], _shape_of(ctx, inputs[1])),)
    return (stack_items(ctx, as_list(ctx, inputs[0]), _shape_of(ctx, inputs[1])),)


@list_importer("TensorListLength", num_inputs=1)
def _length(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListLength: the number of items, which may be symbolic, as a known int32.

    The input is the list; if it is unsupported or dead, so is the result. ``ctx`` is the node, and
    ``inputs`` are its inputs.

    Raises:
        ModelError: If there is not one input, or it is no list, or the memory budget of the import
            is exceeded.
    """
    if isinstance(inputs[0], StackedList):
        return (ctx.call.known_value(dtype_of("int32"), inputs[0].length),)
    return (ctx.call.known_value(dtype_of("int32"), len(as_list(ctx, inputs[0]).items)),)


@list_importer("TensorListElementShape", num_inputs=1)
def _element_shape(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListElementShape: the declared shape of the items as a vector.

    It is the scalar -1 if the rank or one of the extents is unknown. Its dtype is the attribute
    ``shape_type``, by default int32. If the input is unsupported or dead, so is the result. ``ctx``
    is the node, and ``inputs`` are its inputs.

    Raises:
        ModelError: If there is not one input, it is no list, or is stored as one array, or the
            memory budget of the import is exceeded.
    """
    items = as_list(ctx, inputs[0])
    dtype = ctx.call.index_type("shape_type")
    return (ctx.call.known_value(dtype, -1 if items.shape is None else list(items.shape)),)


@list_importer("TensorListPushBack", num_inputs=2)
def _push(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListPushBack: the list with an item appended.

    The inputs are list and item. The result is unsupported or dead if an input is. ``ctx`` is the
    node.

    Raises:
        ModelError: If there are not two inputs, the first is no list or stored as one array, or the
            item is no array or of another dtype.
    """
    items = as_list(ctx, inputs[0])
    return (with_item(ctx, items, len(items.items), ctx.value(inputs[1])),)


@list_importer("TensorListPopBack", num_inputs=2)
def _pop(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListPopBack: the list without its last item, and that item.

    The inputs are list and shape of the items. The results are unsupported or dead if an input is.
    ``ctx`` is the node.

    Raises:
        ModelError: If there are not two inputs, the first is no list or stored as one array, has no
            items, or the shape of an item that is not set is unknown.
    """
    items = as_list(ctx, inputs[0])
    if not items.items:
        raise ModelError(
            f"{ctx.where} needs a list with an item to remove, got the empty {short(items.name)}"
        )
    last = get_item(ctx, items, len(items.items) - 1, _shape_of(ctx, inputs[1]))
    return (with_items(ctx, items, items.items[:-1]), last)


@list_importer("TensorListResize", num_inputs=2)
def _resize(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListResize: the list shortened, or lengthened by items that are not set.

    The inputs are list and number of items, known during import. The result is unsupported or dead
    if an input is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not two inputs, the first is no list or stored as one array, or the
            number is not known or negative.
    """
    items = as_list(ctx, inputs[0])
    count = ctx.call.integer(ctx.value(inputs[1]), "size")
    longer = empty_list(ctx, count, dtype_of("int32"), None).items
    return (with_items(ctx, items, [*items.items, *longer][:count]),)


@list_importer("TensorListConcatLists", num_inputs=2)
def _concat_lists(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListConcatLists: the items of two lists in one, of the first one's item shape.

    The result is unsupported or dead if an input is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not two inputs, one is no list or stored as one array, or their
            items differ in dtype.
    """
    a, b = (as_list(ctx, x) for x in inputs)
    check_dtype(ctx, a, b.dtype)
    return (with_items(ctx, a, [*a.items, *b.items]),)


def gather_items(ctx: NodeContext, items: TensorList, indices: AnyValue) -> ImportedValue:
    """Return the items at ``indices``, known during import, as rows of one array.

    Raises:
        ModelError: If an index is not known, or out of range, no index is given and the item shape
            is unknown, or the shape of an item that is not set is unknown; ``ctx`` names the node.
        ShapeError: If the items differ in shape.
    """
    selected = [get_item(ctx, items, _checked(ctx, items, k)) for k in _indices(ctx, indices)]
    return stack_items(ctx, TensorList(ctx.call.name, tuple(selected), items.dtype, items.shape))


def _indices(ctx: NodeContext, value: AnyValue) -> list[int]:
    """Return an input, a vector or scalar, as a list of known indices; ``ctx`` is the node.

    Raises:
        ModelError: If ``value`` is no array, known only at run time, not of integers, of rank above
            1, or exceeds the memory budget.
    """
    value = ctx.value(value)
    array = value.array
    if array is None or array.dtype == object or array.ndim > 1 or not value.dtype.is_integer:
        raise ModelError(
            f"{ctx.where} needs a list of integers as its indices, known when the model is "
            f"loaded, got {value.dtype}{show_shape(value.shape)} from {short(value.name)}"
        )
    ctx.shared.budget.take(_ITEM_NBYTES * array.size, ctx.where)
    return [int(k) for k in array.ravel()]


def _checked(ctx: NodeContext, items: TensorList, position: int) -> int:
    """Return ``position`` unchanged if it is the index of one of ``items``, a list.

    ``ctx`` names the node in errors.

    Raises:
        ModelError: If it is negative, or behind the end.
    """
    if not 0 <= position < len(items.items):
        raise ModelError(
            f"{ctx.where} needs indices into a list of {len(items.items)} items, got {position}"
        )
    return position


@list_importer("TensorListGather", num_inputs=3)
def _gather(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListGather: the items at indices known during import as rows of one array.

    The inputs are list, indices, and shape of the items, which is ignored. The result is
    unsupported or dead if an input is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not three inputs, the first is no list, indices are not known or
            out of range, or the shape of an item that is not set is unknown.
        ShapeError: If the items differ in shape.
    """
    return (gather_items(ctx, as_list(ctx, inputs[0]), inputs[1]),)


def scatter_items(
    ctx: NodeContext, items: TensorList, indices: AnyValue, value: ImportedValue
) -> TensorList:
    """Return a copy of a list with the rows of ``value`` set at known indices.

    The list is lengthened to as many items as there are rows, if an index requires it.

    Raises:
        ModelError: If the array has an unknown number of rows or another dtype than the list, or
            the indices are not known, out of range, or of another number than the rows; ``ctx``
            names the node.
    """
    check_dtype(ctx, items, value.dtype)
    rows = unstack(ctx, value)
    positions = _indices(ctx, indices)
    if len(positions) != len(rows):
        raise ModelError(
            f"{ctx.where} needs an index for each of {len(rows)} rows, got {len(positions)} indices"
        )
    new_items = list(items.items)
    for position, row in zip(positions, rows, strict=True):
        if not 0 <= position < max(len(new_items), len(rows)):
            raise ModelError(
                f"{ctx.where} needs indices into a list of {len(new_items)} items, got {position}"
            )
        new_items += [None] * (position + 1 - len(new_items))
        new_items[position] = row
    return with_items(ctx, items, new_items)


@context_importer("TensorListScatter", "TensorListScatterV2")
def _scatter(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListScatter and its V2: a new list with the rows of an array at indices.

    The inputs are array, indices known during import, shape of the items, and in V2 the number of
    items. Without that number, or if it is negative, the list ends at the largest index. The result
    is unsupported or dead if an input is. ``ctx`` is the node.

    Raises:
        ModelError: If there are fewer than three inputs, the array has an unknown number of rows,
            or the indices are not known, out of range, or of another number than the rows.
    """
    ctx.check_count(inputs, 3, None)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    value = ctx.value(inputs[0])
    count = ctx.call.integer(ctx.value(inputs[3]), "number of elements") if inputs[3:] else -1
    if count < 0:
        count = max(_indices(ctx, inputs[1]), default=-1) + 1
    reserved = empty_list(ctx, max(count, 0), value.dtype, _shape_of(ctx, inputs[2]))
    return (scatter_items(ctx, reserved, inputs[1], value),)


def concat_items(ctx: NodeContext, items: TensorList) -> tuple[ImportedValue, ImportedValue]:
    """Return the items concatenated along their first axis, and their lengths as a known vector.

    The lengths are int64, and may be symbolic.

    Raises:
        ModelError: If the list has no items, or one of unknown shape; ``ctx`` names the node, or
            the memory budget of the import is exceeded.
        ShapeError: If the items do not fit together, or there are several and one is a scalar.
    """
    values = [get_item(ctx, items, k) for k in range(len(items.items))]
    if not values:
        raise ModelError(
            f"{ctx.where} needs a list with items to concatenate, got the empty {short(items.name)}"
        )
    lengths = [ctx.call.shape(v)[0] if ctx.call.shape(v) else 1 for v in values]
    joined = _concatenated(ctx, [v.entry for v in values])
    return value_of(joined), ctx.call.known_value(dtype_of("int64"), lengths)


@context_importer("TensorListConcat", "TensorListConcatV2")
def _concat(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListConcat and its V2: the items joined along their first axis, and lengths.

    The first input is the list, others are ignored. The results are unsupported or dead if an input
    is. ``ctx`` is the node, and ``inputs`` are its inputs.

    Raises:
        ModelError: If there is no input, it is no list or stored as one array, is empty, or has an
            item of unknown shape.
        ShapeError: If the items do not fit together, or there are several and one is a scalar.
    """
    ctx.check_count(inputs, 1, None)
    return unavailable_results(ctx, inputs) or concat_items(ctx, as_list(ctx, inputs[0]))


def split_rows(ctx: NodeContext, value: ImportedValue, lengths: AnyValue) -> list[ImportedValue]:
    """Return consecutive parts of the array ``value`` along its first axis, of known ``lengths``.

    ``ctx`` names the node in errors.

    Raises:
        ModelError: If the array is a scalar or of unknown rank, lengths are not known integers or
            negative, or they do not add up to the length of the axis, or the memory budget of the
            import is exceeded.
    """
    begin, parts, shape = 0, [], ctx.call.shape(value)
    part_lengths = ctx.call.ints(ctx.value(lengths), "lengths")
    if not shape or any(n < 0 for n in part_lengths) or shape[0] != sum(part_lengths):
        raise ModelError(
            f"{ctx.where} needs lengths of at least 0 that add up to the first axis of "
            f"{short(value.name)} of shape {show_shape(shape)}, got {part_lengths}"
        )
    ctx.shared.budget.take(_ROW_NBYTES * len(part_lengths), ctx.where)
    for count in part_lengths:
        parts.append(value_of(value.entry[begin : begin + count]))
        begin += count
    return parts


@list_importer("TensorListSplit", num_inputs=3)
def _split(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import TensorListSplit: a list of consecutive rows of an array, of given lengths.

    The inputs are array, shape of the items, which is ignored, and lengths known during import. The
    result is unsupported or dead if an input is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not three inputs, the array is a scalar or of unknown rank, or the
            lengths are not known, negative, or do not add up to the first axis.
    """
    value = ctx.value(inputs[0])
    return (TensorList(ctx.call.name, tuple(split_rows(ctx, value, inputs[2])), value.dtype, None),)
