"""Importers of operators that only move elements."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.registry import NODE_NBYTES, ImportResult, op_importer
from passkit.frontends.tf_graphdef.shape_arithmetic import squeeze_axes
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry


@op_importer("Reshape")
def _reshape(call: ImportCall, x: ImportedValue, shape: ImportedValue) -> ImportResult:
    """Import Reshape to a shape known during import, whose extents may be symbolic or one -1.

    ``call`` is the node, ``x`` one of its inputs.

    Raises:
        ModelError: If the shape depends on data or is no list of integers.
        ShapeError: If it has another number of elements, an extent below -1, or several of -1.
    """
    new_shape = tuple(call.extents(shape, "shape"))
    return ops.reshape(x.entry, shape=new_shape, name=call.name)


@op_importer("Transpose", "ConjugateTranspose")
def _transpose(call: ImportCall, x: ImportedValue, axes: ImportedValue) -> ImportResult:
    """Import Transpose and ConjugateTranspose: permute the axes, known during import.

    ``axes`` lists for each axis of the result that of ``x``. ``call`` is the node.

    Raises:
        ModelError: If the axes are not known integers.
        ShapeError: If they are no permutation of the axes of ``x``.
        DTypeError: If a conjugate of bools is taken.
    """
    permutation = call.ints(axes, "permutation")
    entry = ops.conj(x.entry) if call.node.op == "ConjugateTranspose" else x.entry
    return ops.transpose(entry, axes=permutation, name=call.name)


@op_importer("BroadcastTo")
def _broadcast_to(call: ImportCall, x: ImportedValue, shape: ImportedValue) -> ImportResult:
    """Import BroadcastTo a shape known during import, whose extents may be symbolic.

    ``call`` is the node.

    Raises:
        ModelError: If the shape depends on data or is no list of integers.
        ShapeError: If ``x`` does not broadcast to it.
    """
    new_shape = tuple(call.extents(shape, "shape"))
    return ops.broadcast_to(x.entry, shape=new_shape, name=call.name)


@op_importer("ExpandDims")
def _expand_dims(call: ImportCall, x: ImportedValue, axis: ImportedValue) -> ImportResult:
    """Import ExpandDims: insert an axis of length 1 at ``axis``, known during import.

    ``call`` is the node, ``x`` one of its inputs.

    Raises:
        ModelError: If ``axis`` is not one integer known during import.
        ShapeError: If it is out of range.
    """
    position = call.integer(axis, "axis")
    return ops.expand_dims(x.entry, axis=position, name=call.name)


@op_importer("Squeeze")
def _squeeze(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Squeeze: remove the axes of the attribute ``squeeze_dims``, or all of length 1.

    ``call`` is the node, ``x`` its input.

    Raises:
        ModelError: If no axes are listed and the rank or a dimension is unknown, or the attribute
            is of another kind.
        ShapeError: If a listed axis is out of range or has another length than 1.
    """
    return ops.squeeze(x.entry, axis=squeeze_axes(call, x), name=call.name)


@op_importer("ConcatV2")
def _concat_v2(call: ImportCall, *values: ImportedValue) -> ImportResult:
    """Import ConcatV2: concatenate all inputs but the last, which is the axis.

    ``call`` is the node, and ``values`` are its inputs.

    Raises:
        ModelError: If the axis is not one integer known during import.
        ShapeError: If it is out of range, or the other extents differ.
        DTypeError: If the dtypes differ.
    """
    return _concat(call, values[:-1], values[-1])


@op_importer("ParallelConcat")
def _parallel_concat(call: ImportCall, *values: ImportedValue) -> ImportResult:
    """Import ParallelConcat: concatenate the inputs along the first axis.

    ``call`` is the node, and ``values`` are its inputs.

    Raises:
        ShapeError: If an input is a scalar, or the other extents differ.
        DTypeError: If the dtypes differ.
    """
    return ops.concat(*(v.entry for v in values), axis=0, name=call.name)


@op_importer("Concat")
def _concat_v1(call: ImportCall, *values: ImportedValue) -> ImportResult:
    """Import Concat: concatenate all inputs but the first, which is the axis.

    ``call`` is the node, and ``values`` are its inputs.

    Raises:
        ModelError: If the axis is not one integer known during import.
        ShapeError: If it is out of range, or the other extents differ.
        DTypeError: If the dtypes differ.
    """
    return _concat(call, values[1:], values[0])


def _concat(call: ImportCall, values: Sequence[ImportedValue], axis: ImportedValue) -> ImportResult:
    """Return ``values`` concatenated along ``axis``, which must be known during import.

    ``call`` is the node.

    Raises:
        ModelError: If the axis is not one integer known during import.
        ShapeError: If it is out of range, or the other extents differ.
        DTypeError: If the dtypes differ.
    """
    axis_number = call.integer(axis, "axis")
    return ops.concat(*(v.entry for v in values), axis=axis_number, name=call.name)


@op_importer("Pack")
def _pack(call: ImportCall, *values: ImportedValue) -> ImportResult:
    """Import Pack: stack the inputs along a new axis, at the attribute ``axis``.

    ``axis`` is 0 by default. ``call`` is the node, and ``values`` are its inputs.

    Raises:
        ModelError: If the nodes exceed the memory budget of the import, or an attribute is of
            another kind.
        ShapeError: If the axis is out of range, or the shapes differ.
        DTypeError: If the dtypes differ.
    """
    axis = call.attr("axis", "i", 0)
    call.budget.take(NODE_NBYTES * len(values), call.where)
    rows = [ops.expand_dims(v.entry, axis=axis) for v in values]
    return ops.concat(*rows, axis=axis, name=call.name)


@op_importer("Split")
def _split(call: ImportCall, axis: ImportedValue, x: ImportedValue) -> ImportResult:
    """Import Split: return ``num_split`` equal parts of ``x`` along ``axis``, as a tuple.

    ``num_split`` is an attribute; ``axis`` is known during import. ``call`` is the node.

    Raises:
        ModelError: If the rank is unknown, the axis is not known or out of range, or has an unknown
            length or fewer elements than parts, the attribute is missing, of another kind or below
            1, or the parts exceed the memory budget of the import.
        ShapeError: If the length is no multiple of the number of parts.
    """
    parts = call.attr("num_split", "i")
    return _parts(call, x, call.integer(axis, "axis"), parts)


@op_importer("SplitV")
def _split_v(
    call: ImportCall, x: ImportedValue, sizes: ImportedValue, axis: ImportedValue
) -> ImportResult:
    """Import SplitV: parts of ``x`` of the ``sizes`` along ``axis``; one may be -1 for the rest.

    The parts are returned as a tuple. Sizes may be symbolic. ``call`` is the node.

    Raises:
        ModelError: If ``sizes`` or ``axis`` is not known during import, sizes are negative, several
            are -1, the rank of ``x`` is unknown, or the parts exceed the memory budget of the
            import.
        ShapeError: If the axis is out of range, or the sizes do not add up to its length.
    """
    part_sizes = call.extents(sizes, "sizes")
    axis_number = call.integer(axis, "axis")
    shape = call.shape(x)
    inferred = [k for k, n in enumerate(part_sizes) if n == -1]
    if len(inferred) == 1 and -len(shape) <= axis_number < len(shape):
        part_sizes[inferred[0]] = shape[axis_number] - sum(n for n in part_sizes if n != -1)
    if any(isinstance(n, int) and n < 0 for n in part_sizes):
        raise ModelError(
            f"{call.where} needs sizes of at least 0, and at most one -1, got {call.shown(sizes)}"
        )
    call.budget.take(2 * NODE_NBYTES * len(part_sizes), call.where)
    return ops.split(x.entry, part_sizes, axis_number)


@op_importer("Unpack")
def _unpack(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Unpack: the ``num`` elements of ``x`` along the attribute ``axis``, as a tuple.

    ``axis`` is 0 by default. ``call`` is the node.

    Raises:
        ModelError: If the rank is unknown, the axis is out of range, has an unknown length or fewer
            than ``num`` elements, ``num`` is missing or below 1, an attribute is of another kind,
            or the parts exceed the memory budget of the import.
        ShapeError: If the axis is longer than ``num``.
    """
    axis = call.attr("axis", "i", 0)
    parts = _parts(call, x, axis, call.attr("num", "i"))
    return tuple(ops.squeeze(part, axis=axis) for part in parts)


def _parts(call: ImportCall, x: ImportedValue, axis: int, count: int) -> tuple[Entry, ...]:
    """Split ``x`` into ``count`` equal parts along ``axis``.

    ``call`` is the node.

    Raises:
        ModelError: If the rank is unknown, the axis is out of range, has an unknown length or fewer
            than ``count`` elements, ``count`` is below 1, or the parts exceed the memory budget of
            the import.
        ShapeError: If the length is no multiple of ``count``.
    """
    shape = call.shape(x)
    extent = shape[axis] if -len(shape) <= axis < len(shape) else 0
    if not 0 < count <= (extent if isinstance(extent, int) else 0):
        raise ModelError(
            f"{call.where} needs an axis {axis} of known length that has {count} part(s), got "
            f"{short(x.name)} of shape {show_shape(shape)}"
        )
    call.budget.take(2 * NODE_NBYTES * count, call.where)
    parts: tuple[Entry, ...] = ops.split(x.entry, count, axis)
    return parts


@op_importer("Reverse")
def _reverse_marked(call: ImportCall, x: ImportedValue, marks: ImportedValue) -> ImportResult:
    """Import Reverse: flip the axes that are marked True.

    Args:
        call: The node.
        x: The input.
        marks: A bool for each axis, known during import.

    Raises:
        ModelError: If the rank of ``x`` is unknown, or marks are not known, not bools, or not one
            for each axis.
    """
    if marks.array is None or marks.dtype.kind != "b":
        raise ModelError(f"{call.where} needs known bools as its axes, got {call.shown(marks)}")
    rank = len(call.shape(x))
    if marks.array.size != rank:
        raise ModelError(
            f"{call.where} needs a bool for each of {rank} axes, got {marks.array.size}"
        )
    axes = tuple(k for k, mark in enumerate(marks.array.ravel().tolist()) if mark)
    return ops.flip(x.entry, axis=axes, name=call.name)


@op_importer("ReverseV2")
def _reverse(call: ImportCall, x: ImportedValue, axes: ImportedValue) -> ImportResult:
    """Import ReverseV2: flip ``axes``, known during import; negative ones count from the end.

    ``call`` is the node, ``x`` one of its inputs.

    Raises:
        ModelError: If the axes are not known integers.
        ShapeError: If one is out of range or listed twice.
    """
    return ops.flip(x.entry, axis=call.ints(axes, "axes"), name=call.name)


@op_importer("ReverseSequence")
def _reverse_sequence(call: ImportCall, x: ImportedValue, lengths: ImportedValue) -> ImportResult:
    """Import ReverseSequence: flip the first ``lengths`` elements of each sequence of a batch.

    The attributes ``seq_dim`` and ``batch_dim`` (0 by default) are the axes of elements and of
    sequences. ``call`` is the node, ``x`` one of its inputs.

    Raises:
        ModelError: If ``seq_dim`` is missing, or an attribute is of another kind.
        ShapeError: If an axis is out of range, or ``lengths`` is not a vector of one number for
            each sequence.
        DTypeError: If ``lengths`` are not integers.
    """
    axes = {"axis": call.attr("seq_dim", "i"), "batch_axis": call.attr("batch_dim", "i", 0)}
    return ops.reverse_sequence(x.entry, lengths.entry, name=call.name, **axes)


@op_importer("Roll")
def _roll(
    call: ImportCall, x: ImportedValue, shift: ImportedValue, axis: ImportedValue
) -> ImportResult:
    """Import Roll: shift elements cyclically along axes; both are known during import.

    ``shift`` is the number of positions toward larger indices for each axis of ``axis``. ``call``
    is the node, ``x`` one of its inputs.

    Raises:
        ModelError: If a shift or an axis is not a known integer.
        ShapeError: If an axis is out of range, or the numbers of shifts and axes differ.
    """
    shifts, axes = call.ints(shift, "shift"), call.ints(axis, "axis")
    return ops.roll(x.entry, shift=shifts, axis=axes, name=call.name)


@op_importer("Tile")
def _tile(call: ImportCall, x: ImportedValue, repetitions: ImportedValue) -> ImportResult:
    """Import Tile: repeat ``x`` along each axis, ``repetitions`` times.

    The repetitions are known during import, and may be symbolic. If they are not as many as the
    axes, ones are put in front of the shorter shape, as in `numpy.tile`. ``call`` is the node.

    Raises:
        ModelError: If they depend on data or are no integers.
        ShapeError: If one is negative.
    """
    multiples = tuple(call.extents(repetitions, "multiples"))
    return ops.tile(x.entry, repetitions=multiples, name=call.name)
