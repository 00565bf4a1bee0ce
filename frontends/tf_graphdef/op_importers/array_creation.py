"""Importers of fills, ranges and one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.values.size import Extent, Size


def _known_number(value: ImportedValue) -> Any:
    """Return the number of a known scalar, else None.

    Args:
        value: Any value; it is known if its elements were computed during import.

    Returns:
        A float for floating dtypes, else the Python number of the dtype. None if the value is not
        known, holds symbolic sizes, or has other than one element.
    """
    array = value.array
    if array is None or array.dtype == object or array.size != 1:
        return None
    return array.astype(np.float64).item() if value.dtype.is_float else array.item()


def _one_extent(call: ImportCall, value: ImportedValue, role: str) -> Extent:
    """Return the input ``value`` as one int or symbolic size; ``role`` names it in errors.

    ``call`` is the node.

    Raises:
        ModelError: If it depends on data, is not of integers, or has other than one element.
    """
    extents = call.extents(value, role)
    if len(extents) != 1:
        raise ModelError(f"{call.where} needs one integer as its {role}, got {extents}")
    return extents[0]


@op_importer("Fill")
def _fill(call: ImportCall, shape: ImportedValue, x: ImportedValue) -> ImportResult:
    """Import Fill: an array of ``shape`` whose elements are all the scalar ``x``.

    The shape is known during import, and may have symbolic extents. ``call`` is the node.

    Raises:
        ModelError: If the shape depends on data or is no list of integers.
        ShapeError: If an extent is negative, or ``x`` does not broadcast to the shape.
    """
    result_shape = tuple(call.extents(shape, "shape"))
    return ops.broadcast_to(x.entry, shape=result_shape, name=call.name)


@op_importer("Empty")
def _empty(call: ImportCall, shape: ImportedValue) -> ImportResult:
    """Import Empty: zeros of ``shape`` in the attribute ``dtype``, even if ``init`` is unset.

    The shape is known during import, and may have symbolic extents. ``call`` is the node.

    Raises:
        ModelError: If the shape depends on data or is no list of integers, or ``dtype`` is missing
            or a type that passkit does not have.
        ShapeError: If an extent is negative.
    """
    result_shape = tuple(call.extents(shape, "shape"))
    return ops.zeros(result_shape, dtype=call.dtype("dtype").name, name=call.name)


@op_importer("Range")
def _range(
    call: ImportCall, start: ImportedValue, limit: ImportedValue, delta: ImportedValue
) -> ImportResult:
    """Import Range: numbers from ``start`` up to, but without, ``limit``, ``delta`` apart.

    All three must be known; of integers with delta 1, the limit may be symbolic. The result has the
    dtype of ``start``; it is empty if the limit is not ahead. ``call`` is the node.

    Raises:
        ModelError: If the numbers are not known, not scalars or not finite, the step is 0, the
            start of integers is symbolic, or their limit is and the step is not 1.
        ShapeError: If ``start`` is a bool or complex.
    """
    dtype = start.dtype
    if dtype.is_integer:
        low, high = _one_extent(call, start, "start"), _one_extent(call, limit, "limit")
        step = call.integer(delta, "delta")
        if isinstance(low, Size) or (step != 1 and isinstance(high, Size)):
            raise ModelError(
                f"{call.where} needs a known start, and delta 1 for a limit of unknown size, got "
                f"start {low}, limit {high} and delta {step}"
            )
        if isinstance(high, Size):
            return ops.arange(low, high, 1, dtype=dtype.name, name=call.name)
    first, last, step_number = (_known_number(v) for v in (start, limit, delta))
    if None in (first, last, step_number) or step_number == 0:
        raise ModelError(
            f"{call.where} needs known numbers and a delta other than 0, got "
            f"{', '.join(call.shown(v) for v in (start, limit, delta))}"
        )
    if not np.isfinite((last - first) / step_number):
        raise ModelError(
            f"{call.where} needs finite numbers, got {first}, {last} and {step_number}"
        )
    return ops.arange(first, last, step_number, dtype=dtype.name, name=call.name)


@op_importer("LinSpace")
def _lin_space(
    call: ImportCall, start: ImportedValue, stop: ImportedValue, num: ImportedValue
) -> ImportResult:
    """Import LinSpace: ``num`` evenly spaced numbers from ``start`` to ``stop``, both included.

    Known limits give the dtype of ``start``. Limits that are known only at run time are
    interpolated; the last number is exactly ``stop``. ``num`` may be symbolic; of a vector, its
    first element is taken. ``call`` is the node.

    Raises:
        ModelError: If ``num`` is not known during import, or less than 1.
        GraphError: If a limit is a known bool or complex number, and both are known.
        ShapeError: If a limit is an array that does not broadcast to ``num`` elements.
        DTypeError: If ``start`` is otherwise not of floats.
    """
    (count,) = call.extents(num, "num")[:1] or (0,)
    if isinstance(count, int) and count < 1:
        raise ModelError(f"{call.where} needs a num of at least 1, got {count}")
    dtype = start.dtype.name
    first, last = _known_number(start), _known_number(stop)
    if first is not None and last is not None:
        return ops.linspace(first, last, num=count, dtype=dtype, name=call.name)
    fractions = ops.linspace(0.0, 1.0, num=count, dtype=dtype)
    line = start.entry + (stop.entry - start.entry) * fractions
    return ops.where(fractions < 1.0, line, stop.entry) if count != 1 else line


@op_importer("OneHot")
def _one_hot(
    call: ImportCall,
    indices: ImportedValue,
    depth: ImportedValue,
    on: ImportedValue,
    off: ImportedValue,
) -> ImportResult:
    """Import OneHot: a new axis of length ``depth``, ``on`` at the index and ``off`` elsewhere.

    The new axis is at the attribute ``axis``, by default the last. On and off numbers that are not
    known during import are selected by a mask.

    Args:
        call: The node; its attribute ``axis`` is the position of the new axis, -1 by default.
        indices: Positions; those out of range give ``off`` only.
        depth: Length of the new axis, known during import; may be symbolic. Of a vector, the first
            element is taken.
        on: One number at the index, whose dtype is the result's.
        off: One number elsewhere.

    Raises:
        ModelError: If ``depth`` is not known during import, or an attribute is of another kind.
        ShapeError: If it is negative or an empty vector, the axis is out of range, or ``on`` or
            ``off`` does not broadcast.
        DTypeError: If indices are not integers; or if ``on`` and ``off`` differ in dtype, unless
            both are known and real.
    """
    (count,) = call.extents(depth, "depth")[:1] or (-1,)
    axis = call.attr("axis", "i", -1)
    on_number, off_number = _known_number(on), _known_number(off)
    if on_number is not None and off_number is not None and on.dtype.kind != "c":
        return ops.one_hot(
            indices.entry,
            depth=count,
            on_value=on_number,
            off_value=off_number,
            axis=axis,
            dtype=on.dtype.name,
            name=call.name,
        )
    is_hot = ops.one_hot(
        indices.entry, depth=count, on_value=True, off_value=False, axis=axis, dtype="bool"
    )
    return ops.where(is_hot, on.entry, off.entry, name=call.name)
