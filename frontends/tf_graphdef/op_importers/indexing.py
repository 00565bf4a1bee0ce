"""Importers of gathers and scatters."""

from __future__ import annotations

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer

SCATTERS = {
    "TensorScatterAdd": "tensor_scatter_nd_add",
    "TensorScatterMax": "tensor_scatter_nd_max",
    "TensorScatterMin": "tensor_scatter_nd_min",
    "TensorScatterSub": "tensor_scatter_nd_sub",
    "TensorScatterUpdate": "tensor_scatter_nd_update",
}
"""passkit's names of the scatters into tensors."""


@op_importer("Gather")
def _gather(call: ImportCall, x: ImportedValue, indices: ImportedValue) -> ImportResult:
    """Import Gather: the rows of ``x`` at ``indices``, along the first axis.

    ``call`` is the node.

    Raises:
        ShapeError: If ``x`` is a scalar, or has no rows.
        DTypeError: If ``indices`` are not integers.
    """
    return ops.gather(x.entry, indices.entry, name=call.name)


@op_importer("GatherV2")
def _gather_v2(
    call: ImportCall, x: ImportedValue, indices: ImportedValue, axis: ImportedValue
) -> ImportResult:
    """Import GatherV2: the elements of ``x`` at ``indices`` along ``axis``, known during import.

    The attribute ``batch_dims`` is the number of leading axes that both inputs share; to a negative
    one, the rank of ``indices`` is added. ``call`` is the node.

    Raises:
        ModelError: If ``axis`` is not one integer known during import, or ``batch_dims`` is
            negative and the rank of ``indices`` unknown, or an attribute is of another kind.
        ShapeError: If the axis is out of range or has no elements, ``batch_dims`` exceeds the axis
            or the rank of ``indices``, or the leading axes differ.
        DTypeError: If ``indices`` are not integers.
    """
    batch_dims = call.attr("batch_dims", "i", 0)
    batch_dims += len(call.shape(indices)) if batch_dims < 0 else 0
    axis_number = call.integer(axis, "axis")
    return ops.gather(
        x.entry, indices.entry, axis=axis_number, batch_dims=batch_dims, name=call.name
    )


@op_importer("GatherNd")
def _gather_nd(call: ImportCall, x: ImportedValue, indices: ImportedValue) -> ImportResult:
    """Import GatherNd: the last axis of ``indices`` is coordinates in the first axes of ``x``.

    ``call`` is the node.

    Raises:
        ShapeError: If ``indices`` is a scalar, its last axis has an unknown length or more
            coordinates than ``x`` has axes, or an axis that they index has no elements.
        DTypeError: If ``indices`` are not integers.
    """
    return ops.gather_nd(x.entry, indices.entry, name=call.name)


@op_importer("ScatterNd")
def _scatter_nd(
    call: ImportCall, indices: ImportedValue, updates: ImportedValue, shape: ImportedValue
) -> ImportResult:
    """Import ScatterNd: zeros of ``shape`` to which ``updates`` are added at ``indices``.

    ``call`` is the node.

    Raises:
        ModelError: If updates are bools, or ``shape`` is not known during import up to symbolic
            extents.
        ShapeError: If the shapes of indices, updates and result do not fit.
        DTypeError: If ``indices`` are not integers.
    """
    result_shape = tuple(call.extents(shape, "shape"))
    if updates.dtype.kind == "b":
        raise ModelError(f"{call.where} needs updates that are numbers, got {updates.dtype}")
    return ops.scatter_nd(indices.entry, updates.entry, shape=result_shape, name=call.name)


@op_importer(*SCATTERS)
def _tensor_scatter(
    call: ImportCall, x: ImportedValue, indices: ImportedValue, updates: ImportedValue
) -> ImportResult:
    """Import TensorScatterAdd, Sub, Max, Min and Update: ``x`` with ``updates`` combined into it.

    The operator's name says how: add, subtract, maximum, minimum, or replace. The last axis of
    ``indices`` holds coordinates in the first axes of ``x``. ``call`` is the node.

    Raises:
        ShapeError: If the shapes of ``indices``, ``updates`` and ``x`` do not fit.
        DTypeError: If ``indices`` are not integers, ``updates`` and ``x`` differ in dtype, or bools
            are subtracted.
    """
    op = getattr(ops, SCATTERS[call.node.op])
    return op(x.entry, indices.entry, updates.entry, name=call.name)


@op_importer("InvertPermutation")
def _invert_permutation(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import InvertPermutation: return the inverse of the permutation ``x``, in its dtype.

    ``call`` is the node.

    Raises:
        ShapeError: If ``x`` is not a vector.
        DTypeError: If it is not of integers.
    """
    inverse = ops.invert_permutation(x.entry)
    return ops.cast(inverse, dtype=x.dtype.name, name=call.name)
