"""Importers of arg-reductions, sorting, and searches in sorted numbers."""

from __future__ import annotations

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.values.dtype import dtype_of, largest_finite
from passkit.values.size import Extent


@op_importer("ArgMax", "ArgMin")
def _arg_extreme(call: ImportCall, x: ImportedValue, axis: ImportedValue) -> ImportResult:
    """Import ArgMax or ArgMin: positions along ``axis``, in the attribute ``output_type``.

    TensorFlow starts with element 0 and the lowest finite number (highest for ArgMin), and moves on
    to whatever is greater (less). So NaN and -inf (inf) count as that number.

    The dtype is int64 without the attribute ``output_type``. ``axis`` is known during import.
    ``call`` is the node.

    Raises:
        ModelError: If ``axis`` is not one integer known during import, or an attribute is of
            another kind.
        ShapeError: If it is out of range, or has no elements.
        DTypeError: If ``x`` or ``output_type`` is complex.
    """
    largest = call.node.op == "ArgMax"
    entry = x.entry
    if x.dtype.is_float:
        extreme = largest_finite(x.dtype)
        start = -extreme if largest else extreme
        beats_start = ops.greater(entry, start) if largest else ops.less(entry, start)
        entry = ops.where(beats_start, entry, start)
    positions = (ops.argmax if largest else ops.argmin)(entry, axis=call.integer(axis, "axis"))
    index_dtype = (
        call.dtype("output_type") if "output_type" in call.node.attr else dtype_of("int64")
    )
    return ops.cast(positions, dtype=index_dtype.name, name=call.name)


@op_importer("TopK")
def _top_k_attribute(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import TopK: the ``k`` largest elements of the last axis and their positions.

    ``k`` is an attribute. The results are the elements in descending order, and positions in the
    last axis, int32. ``call`` is the node.

    Raises:
        ModelError: If the attribute is missing or of another kind.
        ShapeError: If ``x`` is a scalar, ``k`` negative, or larger than the last axis.
    """
    return _top_elements(call, x, call.attr("k", "i"))


@op_importer("TopKV2")
def _top_k(call: ImportCall, x: ImportedValue, k: ImportedValue) -> ImportResult:
    """Import TopKV2: the ``k`` largest elements of the last axis and their positions.

    ``k`` is an input known during import, which may be symbolic; of a vector its first element is
    taken, and an empty one counts as 0. The results are the elements in descending order, and
    positions in the last axis, in the attribute ``index_type`` (int32). ``call`` is the node.

    Raises:
        ModelError: If ``k`` is not known during import, or ``index_type`` is no type.
        ShapeError: If ``x`` is a scalar, ``k`` negative, or larger than the last axis.
        DTypeError: If ``index_type`` is complex.
    """
    (count,) = call.extents(k, "k")[:1] or (0,)
    return _top_elements(call, x, count)


def _top_elements(call: ImportCall, x: ImportedValue, k: Extent) -> ImportResult:
    """Return the k largest elements in descending order, and their positions in the last axis.

    Also ``sorted=False`` gives this order. Positions have the attribute ``index_type`` as dtype, by
    default int32. ``call`` is the node.

    Raises:
        ModelError: If an attribute is of another kind.
        ShapeError: If ``x`` is a scalar, ``k`` negative, or larger than the last axis.
        DTypeError: If ``index_type`` is complex.
    """
    values, positions = ops.top_k(x.entry, k=k)
    index_dtype = call.dtype("index_type") if "index_type" in call.node.attr else dtype_of("int32")
    return values, ops.cast(
        positions, dtype=index_dtype.name
    ) if index_dtype.name != "int32" else positions


@op_importer("LowerBound", "UpperBound")
def _bound(call: ImportCall, rows: ImportedValue, values: ImportedValue) -> ImportResult:
    """Import LowerBound and UpperBound: where to insert values so that sorted rows stay sorted.

    Args:
        call: The node.
        rows: Sorted rows (batch, n).
        values: Numbers to search, (batch, m).

    Returns:
        Positions (batch, m): before equal elements for LowerBound, else behind them.

    Raises:
        ModelError: If an input has another rank than 2, or an unknown one, or ``out_type`` is
            neither int32 nor int64, or an attribute is of another kind.
        ShapeError: If the numbers of rows differ.
        DTypeError: If the dtypes differ.
    """
    side = "left" if call.node.op == "LowerBound" else "right"
    call.rank(rows, 2)
    call.rank(values, 2)
    positions = ops.searchsorted(rows.entry, values.entry, side=side)
    return ops.cast(positions, dtype=call.index_type("out_type").name, name=call.name)


@op_importer("Where")
def _where(call: ImportCall, condition: ImportedValue) -> ImportResult:
    """Import Where: the coordinates of nonzero elements, known int64 of shape (count, rank).

    ``call`` is the node, ``condition`` its input.

    Raises:
        ModelError: If the input is not known during import, or the result exceeds the memory
            budget.
    """
    array = condition.array
    if array is None or array.dtype == object:
        raise ModelError(
            f"{call.where} needs an input that is known when the model is loaded, since its number "
            f"of nonzero elements is the number of rows, got {call.shown(condition)}; use a mask"
        )
    call.budget.take(8 * array.size * max(array.ndim, 1), call.where)
    return ImportedValue(call.name, dtype_of("int64"), array=np.argwhere(array).astype(np.int64))
