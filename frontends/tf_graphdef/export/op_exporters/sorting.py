"""Exporters of sorting and searching by TensorFlow's TopKV2: stable, with NaN as largest."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.export.functions import compare, select
from passkit.frontends.tf_graphdef.export.graphdef_writer import (
    FLOAT32,
    INT32,
    INT64,
    NameScope,
    NodeOutput,
)
from passkit.frontends.tf_graphdef.export.kernel_types import kernel_dtype
from passkit.frontends.tf_graphdef.export.registry import ExportCall, ExportResult, op_exporter
from passkit.ops.helpers import make, normalize_axis
from passkit.values.dtype import dtype_of
from passkit.values.size import Extent, Shape, numel


def _key(scope: NameScope, x: NodeOutput) -> NodeOutput:
    """Write integers in ``scope`` that are ordered as the elements of ``x``; return the tensor.

    For floats these are their bits, flipped where negative, in int64 for float64 and else int32;
    NaN becomes the largest integer. Bools become uint8; integers and complex numbers are returned
    as they are.
    """
    if not x.dtype.is_float:
        return scope.cast(x, dtype_of("uint8")) if x.dtype.kind == "b" else x
    value = scope.cast(x, FLOAT32) if x.dtype.nbytes == 2 else x
    int_dtype = dtype_of("int64" if value.dtype.nbytes == 8 else "int32")
    positive_zero = scope.op("AddV2", value, scope.const(0, value.dtype))  # -0 is 0
    bits = scope.op("Bitcast", positive_zero, out=int_dtype, type=int_dtype)
    flipped = scope.op("BitwiseXor", bits, scope.const(np.iinfo(int_dtype.numpy).max, int_dtype))
    ordered = select(scope, compare(scope, "Less", bits, 0), flipped, bits)
    largest = scope.const(np.iinfo(int_dtype.numpy).max, int_dtype)
    return select(scope, compare(scope, "NotEqual", value, value), largest, ordered)


def _swap(call: ExportCall, x: NodeOutput, axis: int, is_result: bool = False) -> NodeOutput:
    """Write ``x`` with ``axis`` and the last axis exchanged.

    If they are the same, return ``x`` itself, or with ``is_result`` an Identity of it.

    Args:
        call: The node.
        x: An array of the rank of its first input.
        axis: The axis, from 0 on.
        is_result: Whether the node gets the operator's name.

    Raises:
        ShapeError: If the rank of an input is unknown.
    """
    rank = len(call.shape())
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    if order == list(range(rank)):
        return call.scope.op("Identity", x, is_result=True) if is_result else x
    return call.scope.op("Transpose", x, call.const(order), Tperm=INT32, is_result=is_result)


def _sorted(
    call: ExportCall, x: NodeOutput, count: Extent, descending: bool
) -> tuple[NodeOutput, NodeOutput, int]:
    """Write the first elements in order along the last axis.

    Args:
        call: The node, whose parameter ``axis`` says what is sorted.
        x: The array.
        count: Number of elements to return.
        descending: Whether the largest come first.

    Returns:
        Values and int32 positions, with the sorted axis exchanged with the last, and the number of
        that axis, from 0 on.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, as for complex numbers, or a symbol
            of the count has no source.
        ShapeError: If the rank of an input is unknown.
    """
    shape = call.shape()
    axis = normalize_axis(call.node, len(shape), call.params["axis"])
    last_axis_input = _swap(call, x, axis)
    key = _key(call.scope, last_axis_input)
    if kernel_dtype("TopKV2", key.dtype) is None:
        raise ModelError(f"TensorFlow has no kernel of TopKV2 for {key.dtype}")
    if not descending:
        key = call.op("Invert", key)
    k = call.scope.cast(call.size(count), INT32)
    attrs = {"T": key.dtype, "sorted": True}
    _, positions = call.scope.nodes("TopKV2", [key, k], [key.dtype, INT32], False, **attrs)
    values = call.op(
        "GatherV2",
        last_axis_input,
        positions,
        call.const(-1),
        like="Tparams",
        Tindices=INT32,
        Taxis=INT32,
        batch_dims=len(shape) - 1,
    )
    return values, positions, axis


def _length(call: ExportCall) -> Extent:
    """Return the length, which may be symbolic, of the axis that the node ``call`` sorts.

    Raises:
        ShapeError: If the rank of an input is unknown.
    """
    shape: Shape = call.shape()
    return shape[normalize_axis(call.node, len(shape), call.params["axis"])]


@op_exporter("sort")
def _sort(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `sort` as TopKV2 of sort keys, and a gather.

    The parameters are ``axis`` and ``descending``. ``call`` is the node to write, ``x`` the tensor
    of its input.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, or the length has a symbol without a
            source.
        ShapeError: If the rank of an input is unknown.
    """
    best, _, axis = _sorted(call, x, _length(call), bool(call.params["descending"]))
    return _swap(call, best, axis, is_result=True)


@op_exporter("argsort")
def _argsort(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `argsort`, int64 positions, as TopKV2 of sort keys.

    ``call`` is the node to write, ``x`` the tensor of its input.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, or the length has a symbol without a
            source.
        ShapeError: If the rank of an input is unknown.
    """
    _, positions, axis = _sorted(call, x, _length(call), bool(call.params["descending"]))
    return _swap(call, call.scope.cast(positions, INT64), axis, is_result=True)


@op_exporter("top_k")
def _top_k(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `top_k`: the k largest values along an axis, and their int32 positions.

    ``call`` is the node to write, ``x`` the tensor of its input.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, or a symbol of k has no source.
        ShapeError: If the rank of an input is unknown.
    """
    best, positions, axis = _sorted(call, x, call.params["k"], True)
    return _swap(call, best, axis, is_result=True), _swap(call, positions, axis)


@op_exporter("searchsorted")
def _search(call: ExportCall, sequence: NodeOutput, values: NodeOutput) -> ExportResult:
    """Write `searchsorted` as LowerBound or UpperBound, by its ``side``; return int64 positions.

    ``sequence`` is sorted, or each of its rows is; ``values`` are the numbers to look up. NaN
    counts as largest. None for a symbolic number of rows, and for empty arrays. ``call`` is the
    node to write.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, or a symbol has no source.
        ShapeError: If the rank of an input is unknown.
    """
    op = "LowerBound" if call.params["side"] == "left" else "UpperBound"
    shape, values_shape = call.shape(0), call.shape(1)
    rows = 1 if len(shape) == 1 else int(np.prod([n for n in shape[:-1] if isinstance(n, int)]))
    if any(not isinstance(n, int) for n in shape[:-1]) or rows == 0:
        return None
    if any(n == 0 for n in (*shape, *values_shape)):
        return None
    values_per_row = numel(values_shape) if len(shape) == 1 else values_shape[-1]
    a = call.reshaped(_key(call.scope, sequence), (rows, shape[-1]))
    b = call.reshaped(_key(call.scope, values), (rows, values_per_row))
    positions = call.op(op, a, b, out=INT64, out_type=INT64)
    return call.reshaped(positions, call.out, is_result=True)


@op_exporter("isin")
def _isin(call: ExportCall, x: NodeOutput, among: NodeOutput) -> ExportResult:
    """Write `isin` by comparing each element of x with each of ``among``; ``invert`` negates it.

    ``call`` is the node to write; shapes may be symbolic.

    Raises:
        ShapeError: If the rank of an input is unknown.
    """
    invert, total = call.params["invert"], call.shape(1)

    def each(x: Any, among: Any) -> Any:
        rank = len(call.shape(0))
        flat_values = among if len(total) == 1 else make("reshape", among, shape=(-1,))
        expanded = make("expand_dims", x, axis=rank)
        is_member = make("reduce_any", make("equal", expanded, flat_values), axis=rank)
        return make("logical_not", is_member) if invert else is_member

    return call.expanded(each, x, among)


@op_exporter("bincount")
def _bincount(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `bincount` of a vector as segment sums of ones; None for other ranks.

    Negative numbers and those of at least ``length``, a parameter that may be symbolic, are
    dropped. ``call`` is the node to write, ``x`` the tensor of its input.

    Raises:
        ModelError: If a symbol of ``length`` has no source.
        ShapeError: If the rank of an input is unknown.
    """
    length = call.params["length"]
    if len(call.shape()) != 1:
        return None
    values = call.scope.cast(x, INT64)
    too_large = compare(call.scope, "GreaterEqual", values, call.size(length))
    segment_ids = select(call.scope, too_large, call.const(-1, INT64), values)
    ones = call.op("OnesLike", values)
    count = call.scope.cast(call.size(length), INT32)
    return call.result(
        "UnsortedSegmentSum", ones, segment_ids, count, Tindices=INT64, Tnumsegments=INT32
    )
