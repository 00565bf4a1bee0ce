"""Importers of slices, and of writes into slices."""

from __future__ import annotations

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.frontends.tf_graphdef.shape_arithmetic import numpy_index
from passkit.frontends.tf_graphdef.tensor import parse_shape
from passkit.graph.infer import show_shape


@op_importer("Slice")
def _slice(
    call: ImportCall, x: ImportedValue, begin: ImportedValue, size: ImportedValue
) -> ImportResult:
    """Import Slice: ``size`` elements from ``begin`` on along each axis; -1 takes the rest.

    Both are known during import, and may be symbolic. ``call`` is the node.

    Raises:
        ModelError: If ``begin`` or ``size`` depends on data or is no list of integers.
        ShapeError: If they have not a number for each axis, or the slice is not within ``x``.
    """
    return ops.slice(
        x.entry,
        begin=tuple(call.extents(begin, "begin")),
        size=tuple(call.extents(size, "size")),
        name=call.name,
    )


@op_importer("StridedSlice")
def _strided_slice(
    call: ImportCall,
    x: ImportedValue,
    begin: ImportedValue,
    end: ImportedValue,
    strides: ImportedValue,
) -> ImportResult:
    """Import StridedSlice, with the masks in its attributes, as basic indexing of ``x``.

    ``begin`` and ``end`` are positions for each axis, known during import, and may be symbolic;
    ``strides`` are known integers. ``call`` is the node.

    Raises:
        ModelError: If the rank of ``x`` is unknown, the lists are not known or differ in length,
            there are several ellipses, or an attribute is of another kind.
        ShapeError: If there are more indices than axes, a step is 0, an index is out of range, or a
            symbolic bound cannot be sliced at.
    """
    call.shape(x)
    return x.entry[numpy_index(call, begin, end, strides)]


@op_importer("StridedSliceGrad")
def _strided_slice_grad(
    call: ImportCall,
    shape: ImportedValue,
    begin: ImportedValue,
    end: ImportedValue,
    strides: ImportedValue,
    dy: ImportedValue,
) -> ImportResult:
    """Import StridedSliceGrad: zeros of ``shape`` with ``dy`` written into the slice.

    Args:
        call: The node, whose attributes are the masks of the StridedSlice.
        shape: Shape of the slice's input, known during import, with symbolic extents.
        begin: First positions, known during import.
        end: Positions behind the last, known during import.
        strides: Steps, known during import.
        dy: Gradient of the slice.

    Raises:
        ModelError: If ``shape`` or the lists are not known, lists differ in length, there are
            several ellipses, or an attribute is of another kind.
        ShapeError: If an extent is negative, the slice is out of range, or ``dy`` does not
            broadcast to it.
    """
    result_shape = tuple(call.extents(shape, "shape"))
    zeros = ops.zeros(result_shape, dtype=dy.dtype.name)
    return ops.assign_index(zeros, numpy_index(call, begin, end, strides), dy.entry)


@op_importer("TensorStridedSliceUpdate")
def _strided_slice_update(
    call: ImportCall,
    x: ImportedValue,
    begin: ImportedValue,
    end: ImportedValue,
    strides: ImportedValue,
    value: ImportedValue,
) -> ImportResult:
    """Import TensorStridedSliceUpdate: ``x`` with ``value`` written into the slice.

    Args:
        call: The node, whose attributes are the masks of a StridedSlice.
        x: The array; the result is a changed copy.
        begin: First positions, known during import.
        end: Positions behind the last, known during import.
        strides: Steps, known during import.
        value: New elements, which broadcast to the slice.

    Raises:
        ModelError: If the rank of ``x`` is unknown, the lists are not known or differ in length,
            there are several ellipses, or an attribute is of another kind.
        ShapeError: If the slice is out of range, or ``value`` does not broadcast to it.
        DTypeError: If the dtypes differ.
    """
    call.shape(x)
    return ops.assign_index(x.entry, numpy_index(call, begin, end, strides), value.entry)


def _shown(shape: tuple[int | None, ...]) -> str:
    """Format a shape for a message; unknown extents, None, are shown as "?"."""
    return "(" + ", ".join("?" if n is None else str(n) for n in shape) + ")"


@op_importer("EnsureShape")
def _ensure_shape(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import EnsureShape: return the input with unknown extents replaced by the attribute's.

    The input itself is returned if the attribute has an unknown rank or knows no further extent.
    ``call`` is the node.

    Raises:
        ModelError: If the rank of ``x`` is unknown, the shapes contradict each other, or the
            attribute ``shape`` is missing, invalid or of another kind.
    """
    declared = parse_shape(call.attr("shape", "shape"), call.where)
    input_shape = call.shape(x)
    if declared is None:
        return x
    is_compatible = len(declared) == len(input_shape) and all(
        n is None or n == m or not isinstance(m, int)
        for n, m in zip(declared, input_shape, strict=True)
    )
    if not is_compatible:
        raise ModelError(
            f"{call.where} needs the shape {_shown(declared)}, got {show_shape(input_shape)}"
        )
    shape = tuple(m if n is None else n for n, m in zip(declared, input_shape, strict=True))
    if shape == input_shape:
        return x
    return ops.reshape(x.entry, shape=shape, name=call.name)
