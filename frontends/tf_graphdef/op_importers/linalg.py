"""Importers of matrix products and biases."""

from __future__ import annotations

from passkit.errors import ModelError, ShapeError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.values.size import Shape


@op_importer("MatMul")
def _matmul(call: ImportCall, a: ImportedValue, b: ImportedValue) -> ImportResult:
    """Import MatMul; the attributes ``transpose_a`` and ``transpose_b`` transpose the matrices.

    ``call`` is the node, and ``a`` and ``b`` are its inputs.

    Raises:
        ModelError: If an attribute is of another kind.
        ShapeError: If the shapes do not fit, or an input has fewer than two axes.
        DTypeError: If the dtypes differ, or are bool or complex.
    """
    return ops.matmul(
        a.entry,
        b.entry,
        transpose_a=call.attr("transpose_a", "b", False),
        transpose_b=call.attr("transpose_b", "b", False),
        name=call.name,
    )


@op_importer("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _batch_matmul(call: ImportCall, a: ImportedValue, b: ImportedValue) -> ImportResult:
    """Import a batched product; the attributes ``adj_x`` and ``adj_y`` transpose the matrices.

    V3 has an attribute ``Tout`` for the dtype of the result and of the sums.

    Else the dtype is that of ``a``, to which ``b`` is cast. ``call`` is the node.

    Raises:
        ModelError: If ``Tout`` is missing in V3, or a type that passkit does not have, or another
            attribute is of another kind.
        ShapeError: If the shapes do not fit, or an input has fewer than two axes.
        DTypeError: If an input or the result is complex, or the result is bool.
    """
    result_dtype = call.dtype("Tout") if call.node.op == "BatchMatMulV3" else a.dtype
    left, right = (
        v.entry if v.dtype is result_dtype else ops.cast(v.entry, dtype=result_dtype.name)
        for v in (a, b)
    )
    return ops.matmul(
        left,
        right,
        transpose_a=call.attr("adj_x", "b", False),
        transpose_b=call.attr("adj_y", "b", False),
        name=call.name,
    )


@op_importer("Einsum")
def _einsum(call: ImportCall, *values: ImportedValue) -> ImportResult:
    """Import Einsum of any number of inputs, by the attribute ``equation``.

    ``call`` is the node, and ``values`` are its inputs.

    Raises:
        ModelError: If the attribute is missing or of another kind.
        GraphError: If the equation cannot be read, or does not fit the number or ranks of the
            inputs.
        ShapeError: If axes of one letter have different lengths.
        DTypeError: If the dtypes differ, or are bool or complex.
    """
    equation = call.attr("equation", "s").decode(errors="replace")
    return ops.einsum(*(v.entry for v in values), equation=equation, name=call.name)


@op_importer("Cross")
def _cross(call: ImportCall, a: ImportedValue, b: ImportedValue) -> ImportResult:
    """Import Cross: the vector product of ``a`` and ``b`` along the last axis, of length 3.

    ``call`` is the node.

    Raises:
        ShapeError: If the last axis has another length, an input is a scalar, or shapes do not
            broadcast.
        DTypeError: If the dtypes differ, or are neither signed integers nor floats.
    """
    return ops.cross(a.entry, b.entry, name=call.name)


def check_bias(call: ImportCall, bias: Entry, shape: Shape | None, axis: int) -> None:
    """Check that ``bias`` is a vector of one element for each channel; unknown shapes pass.

    Args:
        call: The node.
        bias: The bias.
        shape: Shape of the data that it is added to, None for an unknown rank.
        axis: Axis of the channels.

    Raises:
        ShapeError: If it is not, or the data are a scalar.
    """
    if bias.shape is None or shape is None:
        return
    if len(bias.shape) == 1 and shape:
        length, channels = bias.shape[0], shape[axis]
        if length == channels or not (isinstance(length, int) and isinstance(channels, int)):
            return
    raise ShapeError(
        f"{call.where} needs a bias with an element for each channel, got {show_shape(bias.shape)} "
        f"for {show_shape(shape)}"
    )


@op_importer("BiasAdd", "BiasAddV1")
def _bias_add(call: ImportCall, x: ImportedValue, bias: ImportedValue) -> ImportResult:
    """Import BiasAdd and BiasAddV1: add a vector to the channels of ``x``.

    Channels are the last axis, or axis 1 for the data format NCHW. ``call`` is the node.

    Raises:
        ModelError: If the attribute ``data_format`` is neither NHWC nor NCHW, or of another kind,
            or a rank is unknown or that of ``bias`` not 1.
        ShapeError: If ``x`` is a scalar, or the bias has another length than the channels.
        DTypeError: If the dtypes differ.
    """
    shape, bias_entry = call.shape(x), bias.entry
    data_format = call.attr("data_format", "s", b"NHWC")
    if data_format not in (b"NHWC", b"NCHW"):
        raise ModelError(f"{call.where} needs the data_format NHWC or NCHW, got {data_format!r}")
    call.rank(bias, 1)
    is_first = data_format == b"NCHW" and len(shape) > 2
    check_bias(call, bias_entry, shape, 1 if is_first else -1)
    if is_first:
        bias_entry = ops.expand_dims(bias_entry, axis=tuple(range(1, len(shape) - 1)))
    return ops.add(x.entry, bias_entry, name=call.name)
