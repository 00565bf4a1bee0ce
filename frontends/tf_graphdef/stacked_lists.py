"""Tensor lists whose length or index is known only at run time: the rows of one array.

Writing an item selects, for each row, the old or the new one. That is one elementwise pass over the
array, which fuses with the computation of the item.
"""

from __future__ import annotations

from typing import Any

from passkit.errors import DTypeError, ModelError
from passkit.frontends.tf_graphdef.evaluation import NodeContext
from passkit.frontends.tf_graphdef.imported_value import ImportedValue, value_of
from passkit.frontends.tf_graphdef.non_arrays import AnyValue, NonArray, StackedList, TensorList
from passkit.frontends.tf_graphdef.proto import short
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.ops.helpers import make
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape

_ROW_NBYTES = 1300


def unfilled_stack(
    ctx: NodeContext, length: Extent, dtype: DType, shape: Shape | None
) -> StackedList:
    """Return a stacked list of zeros, or without an array if the shape of its items is not known.

    Args:
        ctx: The node that creates it.
        length: Number of items, which may be symbolic.
        dtype: Dtype of the items.
        shape: Shape of the items; None if it is not known yet.
    """
    stack = StackedList(ctx.call.name, None, length, dtype, shape)
    if shape is not None:
        stack.value = _zeros(length, dtype, shape)
    return stack


def _zeros(length: Extent, dtype: DType, shape: Shape) -> ImportedValue:
    """Return an array of ``length`` rows of zeros, of ``dtype``; ``shape`` is that of one row."""
    return value_of(make("full", shape=(length, *shape), fill_value=0, dtype=dtype.name))


def as_stacked_if_dynamic(ctx: NodeContext, value: AnyValue, index: AnyValue) -> StackedList | None:
    """Return a list as rows of an array if it is stored so, or if the index is not known.

    Args:
        ctx: The node, for errors.
        value: The list, or another value.
        index: An index into it.

    Returns:
        The stacked list: ``value`` itself if it is one, whatever the index is. None for an ordinary
        list with a known index or an index that is no array, and for another value.

    Raises:
        ModelError: If the shapes of the items differ, or the memory budget is exceeded.
    """
    if isinstance(value, StackedList):
        return value
    if not isinstance(value, TensorList) or isinstance(index, NonArray):
        return None
    array = ctx.value(index).array
    if array is not None and array.dtype != object:
        return None
    return as_stacked_list(ctx, value)


def as_stacked_list(ctx: NodeContext, items: TensorList) -> StackedList:
    """Stack the items of a list as rows of an array; items not set yet are zeros.

    Without an item that is set, the array has the item shape that the list declares, or is missing
    if it declares none. The list must have a dtype. ``ctx`` is the node, for errors.

    Raises:
        ModelError: If the shapes of the items differ, or the memory budget is exceeded.
    """
    ctx.shared.budget.take(_ROW_NBYTES * len(items.items), ctx.where)
    item_shapes = {tuple(i.shape) for i in items.items if i is not None and i.shape is not None}
    if len(item_shapes) > 1:
        shown_shapes = " and ".join(show_shape(s) for s in list(item_shapes)[:2])
        raise ModelError(
            f"{ctx.where} reads {short(items.name)} by an index known only at run time and needs "
            f"items of one shape, got {shown_shapes}"
        )
    shape = next(iter(item_shapes), items.shape)
    dtype = items.dtype
    assert dtype is not None
    stack = unfilled_stack(ctx, len(items.items), dtype, shape)
    if shape is None or not item_shapes:
        return stack
    zero = make("full", shape=(1, *shape), fill_value=0, dtype=dtype.name)
    rows = [zero if i is None else make("expand_dims", i.entry, axis=0) for i in items.items]
    stack.value = value_of(make("concat", *rows, axis=0) if len(rows) > 1 else rows[0])
    return stack


def stacked_array(
    ctx: NodeContext, stack: StackedList, shape: Shape | None = None
) -> ImportedValue:
    """Return the array of the stacked list ``stack``.

    A list without an array gets zeros, in place, if it has a dtype and ``shape``, that of its
    items, is not None.

    Raises:
        ModelError: If it has no array, and shape or dtype of its items are not known yet; ``ctx``
            names the node.
    """
    if stack.value is None and shape is not None and stack.dtype is not None:
        stack.value = _zeros(stack.length, stack.dtype, shape)
    if stack.value is None:
        raise ModelError(
            f"{ctx.where} needs the shape of the items of {short(stack.name)}, a list of length "
            f"{stack.length} that declares none; declare the shape of the items"
        )
    return stack.value


def stacked_item(ctx: NodeContext, stack: StackedList, index: ImportedValue) -> ImportedValue:
    """Return the row of ``stack`` at an index that is known only at run time.

    ``ctx`` is the node, for errors.

    Raises:
        ModelError: If the shape of the items is not known yet.
        ShapeError: If the list has no items.
        DTypeError: If the index is not an integer.
    """
    rows = stacked_array(ctx, stack)
    return value_of(make("take", rows.entry, index.entry, axis=0))


def with_stacked_item(
    ctx: NodeContext, stack: StackedList, index: ImportedValue, new: ImportedValue
) -> StackedList:
    """Return the list with the row at ``index`` replaced by ``new``.

    The shape of ``new`` is appended, in place, to ``item_shapes``, which both lists share. A list
    without an array stays so.

    Args:
        ctx: The node.
        stack: The list.
        index: Position of the row, known only at run time; out of range, no row is replaced.
        new: The new row.

    Raises:
        ModelError: If the rank of ``new`` is unknown.
        ShapeError: If it does not broadcast with the rows of the list.
        DTypeError: If ``index`` is not an integer, or the dtype of ``new`` is not the list's.
    """
    if not index.dtype.is_integer:
        raise DTypeError(f"{ctx.where} needs an integer as its index, got {index.dtype}")
    shape = ctx.call.shape(new)
    stack.item_shapes.append(shape)
    if stack.value is None:
        return StackedList(
            stack.name, None, stack.length, stack.dtype, stack.shape, stack.item_shapes
        )
    rows = stack.value.entry
    row_numbers: Any = make("arange", start=0, stop=stack.length, step=1, dtype=index.dtype.name)
    is_index = make("equal", row_numbers, index.entry)
    is_index = (
        make("expand_dims", is_index, axis=tuple(range(1, len(shape) + 1))) if shape else is_index
    )
    new_rows: Entry = make("where", is_index, new.entry, rows)
    return StackedList(
        stack.name, value_of(new_rows), stack.length, stack.dtype, shape, stack.item_shapes
    )
