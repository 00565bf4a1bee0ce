"""Constant folding of shape arithmetic during import.

TensorFlow computes shapes at run time, starting from the operator Shape. passkit computes them
while importing, with symbolic sizes for unknown dimensions, so that operators such as Reshape know
their parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passkit.errors import ModelError, PasskitError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.proto import short
from passkit.values.size import Extent, Size

SECOND = ("Concat", "Fill", "Split")
"""Operators whose result has the dtype of their second input."""

LIMIT = 256
"""Maximal number of elements of a folded value; larger ones are data, not shapes."""


def is_shape(value: ImportedValue) -> bool:
    """Return whether a value is a known array of at most 256 integers and sizes."""
    array = value.array
    return array is not None and value.dtype.is_integer and array.size <= LIMIT


def fold_shapes(
    call: ImportCall, inputs: Sequence[ImportedValue]
) -> tuple[ImportedValue, ...] | None:
    """Compute the results of a node whose inputs are shapes.

    None is returned, too, if the operator has no function in `SHAPE_FUNCTIONS`, an input is no
    small known array of integers, or all have more than 256 elements together.

    Args:
        call: The node.
        inputs: Its inputs.

    Returns:
        Its results as known values; None if the node works on data, or cannot be folded.

    Raises:
        ModelError: If the shapes do not fit the operator, a result has a size of more than 64
            terms or exceeds the memory budget, or an attribute is of another kind.
    """
    function = SHAPE_FUNCTIONS.get(call.node.op)
    if function is None or not inputs or not all(map(is_shape, inputs)):
        return None
    op = call.node.op
    first_dtype = inputs[1 if op in SECOND and len(inputs) > 1 else 0].dtype
    dtype = call.dtype("DstT") if op == "Cast" else first_dtype
    if not dtype.is_integer or sum(v.array.size for v in inputs if v.array is not None) > LIMIT:
        return None
    arrays = [np.asarray(v.array, dtype=object) for v in inputs]
    try:
        result = function(call, inputs, *arrays)
        if result is NotImplemented:
            return None
        results = result if isinstance(result, tuple) else (result,)
        return tuple(call.known_value(dtype, part) for part in results)
    except PasskitError:
        raise
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        shown = ", ".join(f"{short(v.name)} = {_shown(v)}" for v in inputs[:4])
        raise ModelError(
            f"{call.where} needs shapes that fit the operator, got {shown}: {error}"
        ) from None


def _shown(value: ImportedValue) -> str:
    """Format the known array of ``value`` for a message, with at most 8 elements."""
    assert value.array is not None
    flat = ", ".join(map(str, value.array.ravel()[:8]))
    return f"[{flat}{', …' if value.array.size > 8 else ''}]"


def squeeze_axes(call: ImportCall, x: ImportedValue) -> tuple[int, ...]:
    """Return the axes that Squeeze removes; without an attribute, those of length 1.

    Negative axes count from the end; the attribute ``squeeze_dims`` precedes ``axis``. Listed axes
    are not checked. ``call`` is the node.

    Raises:
        ModelError: If no axes are listed, and the rank or any dimension is unknown, or an attribute
            is of another kind.
    """
    axes = call.integers("squeeze_dims") or call.integers("axis")
    if axes:
        return axes
    shape = call.shape(x)
    for axis, extent in enumerate(shape):
        if not isinstance(extent, int):
            raise ModelError(
                f"{call.where} removes axes of length 1 and needs to know all lengths, and axis "
                f"{axis} of {short(x.name)} has the unknown size {extent}; give load the full "
                f"shape of its input in shapes="
            )
    return tuple(axis for axis, extent in enumerate(shape) if extent == 1)


def numpy_index(
    call: ImportCall, begin: ImportedValue, end: ImportedValue, strides: ImportedValue
) -> tuple[Any, ...]:
    """Return the inputs and mask attributes of a StridedSlice as a NumPy index.

    Args:
        call: The node; masks that are missing are 0.
        begin: First positions, known during import; may be symbolic.
        end: Positions behind the last, known during import; may be symbolic.
        strides: Steps, known integers.

    Returns:
        A tuple of slices, indices, None for new axes, and Ellipsis. Indices and the ends of slices
        may be symbolic.

    Raises:
        ModelError: If the lists are not known integers, have more than 64 or differ in length,
            strides are symbolic, there are several ellipses, or an attribute is of another kind.
    """
    begins, ends = call.extents(begin, "begin"), call.extents(end, "end")
    steps = call.ints(strides, "strides")
    if not len(begins) == len(ends) == len(steps):
        raise ModelError(
            f"{call.where} needs begin, end and strides of one length, got {len(begins)}, "
            f"{len(ends)} and {len(steps)}"
        )
    masks = {
        mask_name: call.attr(f"{mask_name}_mask", "i", 0)
        for mask_name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    index: list[Any] = []
    for k, (first, stop, step) in enumerate(zip(begins, ends, steps, strict=True)):
        set_masks = {mask_name for mask_name, mask in masks.items() if mask >> k & 1}
        if "ellipsis" in set_masks:
            index.append(Ellipsis)
        elif "new_axis" in set_masks:
            index.append(None)
        elif "shrink_axis" in set_masks:
            index.append(first)
        else:
            first_or_none = None if "begin" in set_masks else first
            index.append(slice(first_or_none, None if "end" in set_masks else stop, step))
    if sum(part is Ellipsis for part in index) > 1:
        raise ModelError(
            f"{call.where} needs at most one ellipsis, got ellipsis_mask={masks['ellipsis']}"
        )
    return tuple(index)


def _strided(
    call: ImportCall, values: Sequence[ImportedValue], x: NDArray[Any], *rest: NDArray[Any]
) -> Any:
    """Fold StridedSlice: return the slice of the known array ``x``.

    ``values`` are the node's inputs, of which the last three are begin, end and strides; ``rest``
    are their arrays. Return NotImplemented if one of them is symbolic. ``call`` is the node.

    Raises:
        ModelError: If the lists differ in length, or there are several ellipses.
        IndexError: If an index is out of range; `fold_shapes` turns it into a ModelError, as it
            does a ValueError for a stride of 0.
    """
    if any(isinstance(extent, Size) for bounds in rest for extent in bounds.ravel()):
        return NotImplemented
    return x[numpy_index(call, *values[1:])]


def _sliced(
    call: ImportCall,
    values: Sequence[ImportedValue],
    x: NDArray[Any],
    begin: NDArray[Any],
    size: NDArray[Any],
) -> Any:
    """Fold Slice: return ``size`` elements of the known array ``x`` from ``begin`` on.

    A size of -1 takes the rest of the axis. ``values`` are the node's inputs: x, begin and size.
    ``call`` is the node.

    Raises:
        ModelError: If the slice is out of range, or ``begin`` or ``size`` is symbolic.
        ValueError: If they have not a number for each axis; `fold_shapes` turns it into a
            ModelError.
    """
    begins, counts = call.ints(values[1], "begin"), call.ints(values[2], "size")
    pairs = list(zip(begins, counts, x.shape, strict=True))
    if any(not 0 <= b <= n or not -1 <= count <= n - b for b, count, n in pairs):
        raise ModelError(
            f"{call.where} needs a slice within the shape {x.shape}, got begin {begins} and size "
            f"{counts}"
        )
    return x[tuple(slice(b, n if count < 0 else b + count) for b, count, n in pairs)]


def _gathered(
    call: ImportCall,
    values: Sequence[ImportedValue],
    x: NDArray[Any],
    at: NDArray[Any],
    *axis: NDArray[Any],
) -> Any:
    """Fold Gather: return the elements of the known vector ``x`` at indices ``at``.

    Return NotImplemented if ``x`` is no vector, or an index is symbolic. ``values`` and the axis
    are not read. ``call`` is the node.

    Raises:
        ModelError: If an index is negative or out of range.
    """
    if x.ndim != 1 or any(isinstance(k, Size) for k in at.ravel()):
        return NotImplemented
    if any(not 0 <= k < x.size for k in at.ravel()):
        raise ModelError(
            f"{call.where} needs indices within the shape {x.shape}, got {at.tolist()}"
        )
    return x[at.astype(np.int64)]


def _range(call: ImportCall, values: Sequence[ImportedValue], *bounds: NDArray[Any]) -> Any:
    """Fold Range: return the list of integers; NotImplemented for symbolic or long ranges.

    ``values`` are start, limit and step, ``bounds`` their arrays. Over 256 numbers are long.
    ``call`` is the node.

    Raises:
        ModelError: If one of them has other than one element.
        ValueError: If the step is 0; `fold_shapes` turns it into a ModelError.
    """
    if any(isinstance(extent, Size) for b in bounds for extent in b.ravel()):
        return NotImplemented
    numbers = range(*(call.integer(v, "bounds") for v in values))
    return list(numbers) if len(numbers) <= LIMIT else NotImplemented


def _extreme(
    call: ImportCall, values: Sequence[ImportedValue], x: NDArray[Any], y: NDArray[Any]
) -> Any:
    """Fold Maximum or Minimum: return the array of the larger or smaller elements.

    ``x`` and ``y`` broadcast; ``values`` are not read. Return NotImplemented if it is not known
    which element of a pair is larger. ``call`` is the node.

    Raises:
        ValueError: If they do not broadcast; `fold_shapes` turns it into a ModelError.
    """
    larger = call.node.op == "Maximum"
    pairs = np.broadcast(x, y)
    out = np.empty(pairs.shape, dtype=object)
    for k, (a, b) in enumerate(pairs):
        first, second = _never_less(a, b), _never_less(b, a)
        if not (first or second):
            return NotImplemented
        out.reshape(-1)[k] = a if first == larger else b
    return out


def _never_less(a: Extent, b: Extent) -> bool:
    """Return whether ``a >= b`` for all values of the sizes, which are at least 0.

    False means that it is not known: differences with quotients are never decided.
    """
    d = a - b
    if not isinstance(d, Size):
        return d >= 0
    return all(c >= 0 and all(isinstance(n, str) for n in m) for m, c in d.terms)


def _parts(call: ImportCall, values: Sequence[ImportedValue], *x: NDArray[Any]) -> Any:
    """Fold Split, whose axis is the first input, and SplitV: return a tuple of arrays.

    ``values`` are the node's inputs, ``x`` their arrays. Return NotImplemented for sizes that do
    not fit, or that are negative, and for a number of parts below 1 or above 256. ``call`` is the
    node.

    Raises:
        ModelError: If axis or sizes are symbolic, or the attribute ``num_split`` of a Split is
            missing.
        ValueError: If a Split is uneven; `fold_shapes` turns it into a ModelError.
        IndexError: If the axis is out of range; likewise.
    """
    if call.node.op == "Split":
        axis, count = call.integer(values[0], "axis"), call.attr("num_split", "i")
        return tuple(np.split(x[1], count, axis)) if 0 < count <= LIMIT else NotImplemented
    sizes, axis = call.ints(values[1], "sizes"), call.integer(values[2], "axis")
    if min(sizes, default=0) < 0 or sum(sizes) != x[0].shape[axis]:
        return NotImplemented
    return tuple(np.split(x[0], np.cumsum(sizes)[:-1].tolist(), axis))


def _unpacked(call: ImportCall, values: Sequence[ImportedValue], x: NDArray[Any]) -> Any:
    """Fold Unpack: return the parts of ``x`` along ``axis``, an attribute (default 0), as a tuple.

    Return NotImplemented if the attribute ``num`` is not their number. ``values`` are not read.
    ``call`` is the node.

    Raises:
        ModelError: If ``num`` is missing.
        IndexError: If the axis is out of range; `fold_shapes` turns it into a ModelError.
    """
    rows = np.moveaxis(x, call.attr("axis", "i", 0), 0)
    return tuple(rows) if len(rows) == call.attr("num", "i") else NotImplemented


def _repeated(
    call: ImportCall, values: Sequence[ImportedValue], x: NDArray[Any], multiples: NDArray[Any]
) -> Any:
    """Fold Tile: return ``x`` repeated along each axis, as often as ``multiples`` say.

    ``values`` are the node's inputs. Return NotImplemented if a multiple is negative, or the result
    has over 256 elements. ``call`` is the node.

    Raises:
        ModelError: If a multiple is symbolic.
    """
    repeats = call.ints(values[1], "multiples")
    total = x.size * prod(repeats)
    return (
        np.tile(x, repeats) if min(repeats, default=0) >= 0 and total <= LIMIT else NotImplemented
    )


def _filled(
    call: ImportCall, values: Sequence[ImportedValue], shape: NDArray[Any], x: NDArray[Any]
) -> Any:
    """Fold Fill: return an array of the scalar ``x`` of a known ``shape``.

    ``values`` are the node's inputs. Return NotImplemented if the shape is symbolic or negative,
    the result has over 256 elements, or ``x`` is no scalar. ``call`` is the node.

    Raises:
        ModelError: If ``shape`` is no scalar or vector, or has more than 64 elements.
    """
    if any(isinstance(n, Size) for n in shape.ravel()):
        return NotImplemented
    dimensions = call.ints(values[0], "shape")
    is_small = min(dimensions, default=0) >= 0 and prod(dimensions) <= LIMIT and x.ndim == 0
    return np.full(dimensions, x.item(), dtype=object) if is_small else NotImplemented


def _total(
    call: ImportCall, values: Sequence[ImportedValue], x: NDArray[Any], axes: NDArray[Any]
) -> Any:
    """Fold Sum: return the sum of ``x`` over known axes; ``values`` are the node's inputs.

    With the attribute ``keep_dims``, the axes stay with length 1. ``call`` is the node.

    Raises:
        ModelError: If an axis is symbolic, or an attribute is of another kind.
        IndexError: If an axis is out of range; `fold_shapes` turns it into a ModelError, as it does
            a ValueError for a repeated axis.
    """
    keepdims = call.attr("keep_dims", "b", False)
    return np.sum(x, axis=call.ints(values[1], "axes"), keepdims=keepdims)


def _remainder(
    call: ImportCall, values: Sequence[ImportedValue], x: NDArray[Any], y: NDArray[Any]
) -> Any:
    """Fold FloorMod: return the remainders of ``x`` by ``y``, with the sign of ``y``.

    Return NotImplemented if a divisor is 0. ``values`` are not read. ``call`` is the node.

    Raises:
        ValueError: If they do not broadcast; `fold_shapes` turns it into a ModelError.
    """
    return NotImplemented if any(n == 0 for n in y.ravel()) else x - (x // y) * y


def _converted(call: ImportCall, values: Sequence[ImportedValue], x: NDArray[Any]) -> Any:
    """Fold Cast: return ``x``, whose integers wrap when the caller converts them.

    Return NotImplemented if it has symbolic sizes and the attribute ``DstT`` is neither int32 nor
    int64. ``values`` are not read. ``call`` is the node.

    Raises:
        ModelError: If it has symbolic sizes, and ``DstT`` is missing or no type of passkit.
    """
    sizes = any(isinstance(n, Size) for n in x.ravel())
    return NotImplemented if sizes and call.dtype("DstT").name not in ("int32", "int64") else x


def _concatenated(call: ImportCall, values: Sequence[ImportedValue], *x: NDArray[Any]) -> Any:
    """Fold ConcatV2: return all inputs but the last, which is the axis, concatenated.

    ``values`` are the node's inputs, ``x`` their arrays. ``call`` is the node.

    Raises:
        ModelError: If the axis is symbolic, or other than one integer.
        ValueError: If the arrays do not fit, or there is none; `fold_shapes` turns it into a
            ModelError, as it does an IndexError for an axis out of range.
    """
    return np.concatenate(x[:-1], axis=call.integer(values[-1], "axis"))


def _product(
    call: ImportCall, values: Sequence[ImportedValue], x: NDArray[Any], axes: NDArray[Any]
) -> Any:
    """Fold Prod: return the product of ``x`` over known axes; ``values`` are the node's inputs.

    With the attribute ``keep_dims``, the axes stay with length 1. ``call`` is the node.

    Raises:
        ModelError: If an axis is symbolic, or an attribute is of another kind.
        IndexError: If an axis is out of range; `fold_shapes` turns it into a ModelError, as it does
            a ValueError for a repeated axis.
    """
    keepdims = call.attr("keep_dims", "b", False)
    return np.prod(x, axis=call.ints(values[1], "axes"), keepdims=keepdims)


SHAPE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": lambda call, values, x, y: x + y,
    "AddV2": lambda call, values, x, y: x + y,
    "Cast": _converted,
    "Concat": lambda call, values, axis, *x: np.concatenate(x, call.integer(values[0], "axis")),
    "ConcatV2": _concatenated,
    "ExpandDims": lambda call, values, x, _: np.expand_dims(x, call.integer(values[1], "axis")),
    "Fill": _filled,
    "FloorDiv": lambda call, values, x, y: x // y,
    "FloorMod": _remainder,
    "Gather": _gathered,
    "GatherV2": _gathered,
    "Maximum": _extreme,
    "Minimum": _extreme,
    "Mul": lambda call, values, x, y: x * y,
    "Neg": lambda call, values, x: -x,
    "Pack": lambda call, values, *x: np.stack(x, call.attr("axis", "i", 0)),
    "Prod": _product,
    "Range": _range,
    "Reshape": lambda call, values, x, _: x.reshape(call.ints(values[1], "shape")),
    "Slice": _sliced,
    "Squeeze": lambda call, values, x: np.squeeze(x, squeeze_axes(call, values[0])),
    "Split": _parts,
    "SplitV": _parts,
    "Square": lambda call, values, x: x * x,
    "StridedSlice": _strided,
    "Sub": lambda call, values, x, y: x - y,
    "Sum": _total,
    "Tile": _repeated,
    "Unpack": _unpacked,
}
"""For each operator, a function of the call, its inputs, and their arrays of ints and sizes."""
