"""Importers of constants, shapes, and operators that pass their inputs on."""

from __future__ import annotations

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.frontends.tf_graphdef.tensor import parse_tensor
from passkit.values.dtype import dtype_of
from passkit.values.size import Extent, numel


@op_importer("Identity", "StopGradient", "PreventGradient", "Snapshot")
def _identity(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Identity, StopGradient, PreventGradient and Snapshot: return the input unchanged.

    ``call`` is the node, ``x`` its input.
    """
    return x


@op_importer("CheckNumerics", "CheckNumericsV2")
def _check_numerics(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import CheckNumerics: return the input unchanged, without a check.

    Programs continue with NaN and infinities, as they do past Assert. ``call`` is the node, ``x``
    its input.
    """
    return x


@op_importer("IdentityN")
def _identity_n(call: ImportCall, *values: ImportedValue) -> ImportResult:
    """Import IdentityN: return all inputs unchanged, as a tuple.

    ``call`` is the node, and ``values`` are its inputs.
    """
    return values


@op_importer("PlaceholderWithDefault")
def _default(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import PlaceholderWithDefault that is not fed: return its default.

    ``call`` is the node, ``x`` its input.
    """
    return x


@op_importer("Const")
def _const(call: ImportCall) -> ImportResult:
    """Import Const: return the array of the attribute ``value`` as a known value.

    ``call`` is the node.

    Raises:
        ModelError: If the attribute is missing or of another kind, the tensor is invalid, or it
            exceeds the memory budget of the import.
    """
    array = parse_tensor(call.attr("value", "tensor"), call.where, call.budget)
    return ImportedValue(call.name, dtype_of(array.dtype), array=array)


@op_importer("Shape")
def _shape(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Shape: return the shape of ``x`` as a known vector, whose extents may be symbolic.

    Its dtype is the attribute ``out_type``, by default int32. ``call`` is the node.

    Raises:
        ModelError: If the rank of ``x`` is unknown, ``out_type`` is neither int32 nor int64, or the
            memory budget of the import is exceeded, or an attribute is of another kind.
    """
    return call.known_value(call.index_type("out_type"), list(call.shape(x)))


@op_importer("Size")
def _size(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Size: return the number of elements of ``x`` as a known scalar, which may be symbolic.

    Its dtype is the attribute ``out_type``, by default int32. ``call`` is the node.

    Raises:
        ModelError: If the rank of ``x`` is unknown, ``out_type`` is neither int32 nor int64, or the
            number has too many symbolic terms (over 64), or an attribute is of another kind, or the
            memory budget of the import is exceeded.
    """
    return call.known_value(call.index_type("out_type"), numel(call.shape(x)))


@op_importer("Rank")
def _rank(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Rank: return the number of axes of ``x`` as a known int32 scalar.

    ``call`` is the node.

    Raises:
        ModelError: If the rank is unknown, or the memory budget of the import is exceeded.
    """
    return call.known_value(dtype_of("int32"), len(call.shape(x)))


@op_importer("ShapeN")
def _shape_n(call: ImportCall, *values: ImportedValue) -> ImportResult:
    """Import ShapeN: return the shape of each input as a known vector, in a tuple.

    Their dtype is the attribute ``out_type``, by default int32; extents may be symbolic. ``call``
    is the node, and ``values`` are its inputs.

    Raises:
        ModelError: If the rank of an input is unknown, or ``out_type`` is neither int32 nor int64,
            or an attribute is of another kind, or the memory budget of the import is exceeded.
    """
    dtype = call.index_type("out_type")
    return tuple(call.known_value(dtype, list(call.shape(v))) for v in values)


@op_importer("ConcatOffset")
def _concat_offset(call: ImportCall, axis: ImportedValue, *shapes: ImportedValue) -> ImportResult:
    """Import ConcatOffset: return, for each input of a concatenation, its offset in the result.

    Args:
        call: The node.
        axis: Axis of the concatenation, known during import; a negative one counts from the end.
        shapes: Shapes of the inputs, as known vectors.

    Returns:
        For each input a known vector: its first position along ``axis``, and 0 for other axes.

    Raises:
        ModelError: If the axis is not one integer known during import, or out of range for a shape,
            or a shape is not a known vector of integers, or the memory budget of the import is
            exceeded.
    """
    axis_number, offsets = call.integer(axis, "axis"), []
    start: Extent = 0
    for value in shapes:
        parts = call.extents(value, "shape")
        if not -len(parts) <= axis_number < len(parts):
            raise ModelError(
                f"{call.where} needs an axis of the shape {call.shown(value)}, got {axis_number}"
            )
        offset = [start if k == axis_number % len(parts) else 0 for k in range(len(parts))]
        offsets.append(call.known_value(value.dtype, offset))
        start = start + parts[axis_number]
    return tuple(offsets)


def _two_shapes(
    call: ImportCall, a: ImportedValue, b: ImportedValue
) -> list[tuple[Extent, Extent]]:
    """Return the shapes ``a`` and ``b`` as pairs of extents, from the first axis to the last.

    The shorter shape is preceded by ones. ``call`` is the node.

    Raises:
        ModelError: If a pair has different extents and neither is 1, also if one is symbolic; or if
            a shape is not a known vector of integers.
    """
    left_shape, right_shape = call.extents(a, "shape"), call.extents(b, "shape")
    rank = max(len(left_shape), len(right_shape))
    padded_shapes: list[list[Extent]] = [
        [*[1] * (rank - len(s)), *s] for s in (left_shape, right_shape)
    ]
    for n, m in zip(*padded_shapes, strict=True):
        if n != m and 1 not in (n, m):
            raise ModelError(
                f"{call.where} needs shapes that broadcast, with sizes known to be equal, got "
                f"{call.shown(a)} and {call.shown(b)}; give load the full shapes in shapes="
            )
    return list(zip(*padded_shapes, strict=True))


@op_importer("BroadcastArgs")
def _broadcast_args(call: ImportCall, a: ImportedValue, b: ImportedValue) -> ImportResult:
    """Import BroadcastArgs: the shape to which shapes ``a`` and ``b`` broadcast, as a known vector.

    It has the dtype of ``a``. An extent of 1 takes that of the other shape. ``call`` is the node.

    Raises:
        ModelError: If the shapes do not broadcast, sizes are not known to be equal, or a shape is
            not a known vector of integers, or the memory budget of the import is exceeded.
    """
    pairs = _two_shapes(call, a, b)
    return call.known_value(a.dtype, [m if n == 1 else n for n, m in pairs])


@op_importer("BroadcastGradientArgs")
def _broadcast_gradient_args(call: ImportCall, a: ImportedValue, b: ImportedValue) -> ImportResult:
    """Import BroadcastGradientArgs: the axes along which each of two shapes is broadcast.

    Return two known vectors of axes, for the shapes ``a`` and ``b``, in the dtype of ``a``. A
    gradient is summed over these axes. Axes are counted in the common shape; extents of 1 are
    listed, also where both shapes have 1, except that two equal shapes of ones have no axes.
    ``call`` is the node.

    Raises:
        ModelError: If the shapes do not broadcast, sizes are not known to be equal, or a shape is
            not a known vector of integers, or the memory budget of the import is exceeded.
    """
    pairs = _two_shapes(call, a, b)
    ranks = [len(call.extents(v, "shape")) for v in (a, b)]
    results = []
    for side in (0, 1):
        num_missing = len(pairs) - ranks[side]
        axes = [k for k, pair in enumerate(pairs) if k < num_missing or pair[side] == 1]
        if all(pair == (1, 1) for pair in pairs) and ranks[0] == ranks[1]:
            axes = []
        results.append(call.known_value(a.dtype, axes))
    return tuple(results)
