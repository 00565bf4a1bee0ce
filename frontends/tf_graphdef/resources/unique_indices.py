"""Distinct indices: how TensorFlow 1 adds up the gradients of rows that are looked up repeatedly.

The gradient of a gather has a row for each index. Optimizers other than gradient descent first add
up the rows of equal indices: `Unique` finds the distinct indices, `UnsortedSegmentSum` adds up, and
the update takes both. The number of distinct indices is known only at run time, so here all rows
stay: a sum is at the first occurrence of its index, and updates of the other rows are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.control_flow.calls import unavailable_results
from passkit.frontends.tf_graphdef.evaluation import NodeContext
from passkit.frontends.tf_graphdef.import_state import (
    context_importer,
    current_value,
    unique_importer,
)
from passkit.frontends.tf_graphdef.imported_value import ImportedValue, value_of
from passkit.frontends.tf_graphdef.non_arrays import (
    UNIQUE_VALUES,
    AnyValue,
    NonArray,
    UniqueCount,
    UniqueElements,
    UniquePositions,
    UniqueRows,
    VariableHandle,
)
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.registry import import_node
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.values.size import Extent

BY_ELEMENTS = (
    "Abs",
    "Add",
    "AddN",
    "AddV2",
    "Cast",
    "Div",
    "DivNoNan",
    "Exp",
    "Log",
    "Maximum",
    "Minimum",
    "Mul",
    "Neg",
    "OnesLike",
    "Pow",
    "RealDiv",
    "Reciprocal",
    "Rsqrt",
    "Sign",
    "Sqrt",
    "Square",
    "SquaredDifference",
    "Sub",
    "Tanh",
    "ZerosLike",
)
"""Elementwise operators, which compute the ignored rows independently of the others."""


@context_importer("Unique", training=True)
def _unique(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import Unique: the distinct elements, and the position of each element among them.

    They are a `UniqueElements` and a `UniquePositions`, unless the user supplies a host function
    for Unique, whose results are arrays. Distinct elements are returned as they are. The results
    are unsupported or dead if the input is. ``ctx`` is the node, and ``inputs`` are its inputs.

    Raises:
        ModelError: If there is not one input, or it is not a vector of integers.
    """
    if "Unique" in ctx.shared.host_ops:
        return ctx.shared.host_ops["Unique"].results(ctx.call, [ctx.value(x) for x in inputs])
    ctx.check_count(inputs, 1)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    if isinstance(inputs[0], UniqueElements):
        return inputs[0], UniquePositions(f"{ctx.call.name}:1", source=inputs[0])
    x = ctx.value(inputs[0])
    if len(ctx.call.shape(x)) != 1 or not x.dtype.is_integer:
        raise ModelError(
            f"{ctx.where} needs a vector of integers, got {x.dtype}{show_shape(x.shape)}; "
            f"allow_host_ops= can give a NumPy function for Unique"
        )
    name = ctx.call.name
    unique = UniqueElements(name, indices=x, first=ops.first_positions(x.entry))
    return unique, UniquePositions(f"{name}:1", source=unique)


@unique_importer("Shape")
def _shape(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import Shape of the distinct elements of Unique: their number, as a shape of one dimension.

    The result is a `UniqueCount` for which ``is_shape`` is set. ``ctx`` is the node, and ``inputs``
    are its inputs.

    Raises:
        ModelError: If there is not one input, or it is another result of Unique.
    """
    ctx.check_count(inputs, 1)
    if isinstance(inputs[0], UniqueElements):
        return (UniqueCount(ctx.call.name, source=inputs[0], is_shape=True),)
    return (_refuse_unique(ctx, inputs[0]),)


@unique_importer("Size")
def _size(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import Size of the distinct elements of Unique: their number, as a scalar `UniqueCount`.

    ``ctx`` is the node, and ``inputs`` are its inputs.

    Raises:
        ModelError: If there is not one input, or it is another result of Unique.
    """
    ctx.check_count(inputs, 1)
    if isinstance(inputs[0], UniqueElements):
        return (UniqueCount(ctx.call.name, source=inputs[0]),)
    return (_refuse_unique(ctx, inputs[0]),)


@unique_importer("StridedSlice")
def _first_of_shape(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import the StridedSlice ``shape[0]``, where ``shape`` is that of distinct elements.

    The inputs are shape, begin, end and strides. The result is their number, as a scalar
    `UniqueCount`. It is unsupported or dead if an input is. ``ctx`` is the node.

    Raises:
        ModelError: If there are not four inputs, or it is another slice, or of another result of
            Unique, or an attribute is of another kind.
    """
    ctx.check_count(inputs, 4)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    shape, *bounds = inputs
    if not isinstance(shape, UniqueCount) or not shape.is_shape:
        return (_refuse_unique(ctx, *inputs),)
    begin, end, step = (ctx.call.ints(ctx.value(x), "bounds") for x in bounds)
    masks = {
        mask_name: ctx.call.attr(f"{mask_name}_mask", "i", 0)
        for mask_name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    is_first_element = (
        begin in ((0,), (-1,)) and masks["shrink_axis"] == 1 and len(end) == len(step) == 1
    )
    if not is_first_element or masks["ellipsis"] or masks["new_axis"]:
        raise ModelError(
            f"{ctx.where} needs to select element 0 of {short(shape.name)}, got "
            f"[{', '.join(map(str, begin))}:{', '.join(map(str, end))}]; it is "
            f"{shape.description}"
        )
    return (UniqueCount(ctx.call.name, source=shape.source),)


def _refuse_unique(ctx: NodeContext, *inputs: AnyValue) -> ImportedValue:
    """Raise the ModelError of an operator that cannot use results of Unique.

    At least one of the inputs must be such a result; the first one is named. Nothing is returned.
    ``ctx`` is the node.
    """
    return ctx.value(next(x for x in inputs if isinstance(x, UNIQUE_VALUES)))


@unique_importer("UnsortedSegmentSum")
def _segment_sum(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import UnsortedSegmentSum of rows by the positions that Unique returned, as `UniqueRows`.

    The inputs are rows, ids and number of segments. The sum of the rows of an index is stored at
    the first occurrence of the index. The result is unsupported or dead if an input is. ``ctx`` is
    the node.

    Raises:
        ModelError: If there are not three inputs, the first is no array, or ids and number of
            segments are not results of the same Unique.
        ShapeError: If the rows are not as many as the ids.
        DTypeError: If the rows are of bools or complex.
    """
    ctx.check_count(inputs, 3)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    x, ids, count = ctx.value(inputs[0]), inputs[1], inputs[2]
    match = (
        isinstance(ids, UniquePositions) and isinstance(count, UniqueCount) and not count.is_shape
    )
    if not match or ids.source is not count.source:  # type: ignore[union-attr]
        raise ModelError(
            f"{ctx.where} needs ids and number of segments from the same Unique, got ids "
            f"{_shown(ids)} and number {_shown(count)}"
        )
    assert isinstance(ids, UniquePositions)
    first = ids.source.first
    sums = ops.segment_sum(x.entry, first, num_segments=_length(ctx, ids.source))
    return (UniqueRows(ctx.call.name, source=ids.source, value=value_of(sums)),)


def _shown(value: AnyValue) -> str:
    """Format a value for a message: its name, then its kind in parentheses."""
    return (
        f"{short(value.name)} ({value.description if isinstance(value, NonArray) else 'an array'})"
    )


def _length(ctx: NodeContext, source: UniqueElements) -> Extent:
    """Return the number of indices that Unique read, equal ones included; it may be symbolic.

    ``source`` are the distinct elements that Unique returned; ``ctx`` names the node in errors.

    Raises:
        ModelError: If the rank of the indices is unknown.
    """
    return ctx.call.shape(source.indices)[0]


@unique_importer("Gather", "GatherV2", "ResourceGather")
def _gather(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import Gather at results of Unique, along the first axis.

    The inputs are the array, a variable's handle or rows of Unique; the indices; and in GatherV2
    the axis. At the distinct elements, the result is a row for each (`UniqueRows`). At the
    positions that Unique returned, gathered from such rows or from the elements, it is an array
    with a row for each original index. The result is unsupported or dead if an input is. ``ctx`` is
    the node.

    Raises:
        ModelError: If there are not two or three inputs, the axis is not the first, ``batch_dims``
            is set, or the inputs are results of different Uniques or other ones, or an attribute is
            of another kind.
        ShapeError: If the array is a scalar.
    """
    ctx.check_count(inputs, 2, 3)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    x, indices = inputs[:2]
    axis = ctx.call.integer(ctx.value(inputs[2]), "axis") if len(inputs) > 2 else 0
    if axis or ctx.call.attr("batch_dims", "i", 0):
        raise ModelError(
            f"{ctx.where} needs axis 0 and no batch_dims for the indices {_shown(indices)}, got "
            f"axis {axis} and batch_dims {ctx.call.attr('batch_dims', 'i', 0)}"
        )
    if isinstance(indices, UniqueElements):
        array = (
            current_value(ctx.shared, x.variable) if isinstance(x, VariableHandle) else ctx.value(x)
        )
        rows = ops.gather(array.entry, indices.indices.entry)
        return (UniqueRows(ctx.call.name, source=indices, value=value_of(rows)),)
    if (
        isinstance(x, UniqueElements)
        and isinstance(indices, UniquePositions)
        and x is indices.source
    ):
        return (x.indices,)
    if (
        isinstance(x, UniqueRows)
        and isinstance(indices, UniquePositions)
        and x.source is indices.source
    ):
        return (value_of(ops.gather(x.value.entry, indices.source.first, name=ctx.call.name)),)
    return (_refuse_unique(ctx, indices, x),)


@unique_importer(*BY_ELEMENTS)
def _by_elements(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import an elementwise operator on `UniqueRows` of one Unique, whose result is such rows.

    Other operands must be equal for all rows, such as scalars. The result is unsupported or dead if
    an input is. ``ctx`` is the node, and ``inputs`` are its inputs.

    Raises:
        ModelError: If another operand has rows of its own, rows of another Unique or an unknown
            rank, or no input is `UniqueRows`.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If the dtypes differ.
    """
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    row_inputs = [x for x in inputs if isinstance(x, UniqueRows)]
    if not row_inputs:
        return (_refuse_unique(ctx, *inputs),)
    rank = max(len(ctx.call.shape(x.value)) for x in row_inputs)
    values = []
    for x in inputs:
        value = (
            x.value
            if isinstance(x, UniqueRows) and x.source is row_inputs[0].source
            else ctx.value(x)
        )
        shape = ctx.call.shape(value)
        has_own_rows = len(shape) > rank or (len(shape) == rank and shape[0] != 1)
        if has_own_rows if value is x else len(shape) != rank:
            raise ModelError(
                f"{ctx.where} reads {short(row_inputs[0].name)}, a row for each distinct index, "
                f"and needs other operands that are equal for all rows, such as a scalar; got "
                f"{short(x.name)} of shape {show_shape(shape)}"
            )
        values.append(value)
    (result,) = import_node(ctx.call, values)
    return (UniqueRows(ctx.call.name, source=row_inputs[0].source, value=result),)


def scatter_operands(
    ctx: NodeContext, indices: AnyValue, rows: AnyValue, size: Extent
) -> tuple[Entry, Entry]:
    """Return the indices and updates of an operator that changes rows of a variable, as entries.

    Among equal indices of Unique, all but the first become ``size``, the number of rows, where
    writes are dropped.

    Args:
        ctx: The node, for errors.
        indices: Distinct elements of Unique, or an array.
        rows: Updates: rows of the same Unique, or an array.
        size: Number of rows of the variable.

    Raises:
        ModelError: If the indices are distinct elements of Unique and the updates are not rows for
            these, or an input is no array otherwise.
    """
    if isinstance(indices, UniqueElements):
        if not isinstance(rows, UniqueRows) or rows.source is not indices:
            raise ModelError(
                f"{ctx.where} needs updates with a row for each of the indices "
                f"{_shown(indices)}, got {_shown(rows)}; add up the rows by UnsortedSegmentSum, "
                f"with the second result of the same Unique as ids"
            )
        return scatter_targets(ctx, indices, size), rows.value.entry
    return ctx.value(indices).entry, ctx.value(rows).entry


def scatter_targets(ctx: NodeContext, unique: UniqueElements, size: Extent) -> Entry:
    """Return the indices as int64, with ``size`` in place of those that equal an earlier one.

    ``unique`` are the distinct elements with their indices; ``ctx`` names the node in errors.

    Raises:
        ModelError: If the rank of the indices is unknown.
    """
    positions = ops.arange(0, _length(ctx, unique), dtype="int64")
    indices = ops.cast(unique.indices.entry, dtype="int64")
    dropped = ops.full_like(indices, fill_value=size)
    return ops.where(ops.equal(unique.first, positions), indices, dropped)  # type: ignore[no-any-return]
