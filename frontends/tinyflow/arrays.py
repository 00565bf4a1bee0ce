"""Array functions: reshape, split, join, slice, gather, pad, tile and mask tensors."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from passkit import ops
from passkit.errors import SettingError, ShapeError
from passkit.frontends.tinyflow.argument_checks import (
    axis_length,
    reject_arguments,
    renamed_argument,
    require_int,
    require_int_rows,
    require_ints,
    require_list,
)
from passkit.frontends.tinyflow.deferred_calls import (
    defer_call,
    depends_on_deferred,
    is_unranked,
    nested_tensors,
    runtime_size,
)
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.reductions import parse_axes
from passkit.frontends.tinyflow.shapes import (
    format_shape,
    parse_shape,
    parse_single_extent,
    require_shape,
)
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    as_entry,
    as_operand,
    as_tensor,
    call_operator,
    convert_to_tensor,
    static_tensor,
    static_value_fits,
    unique_name,
)
from passkit.graph.node import Entry
from passkit.graph.op import get_op
from passkit.values.size import divide_exactly


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return the elements in another shape.

    Args:
        tensor: A tensor or numbers of any shape.
        shape: The new extents, ints or sizes; one may be -1, which stands for the remaining
            elements.
        name: The name of the result; "Reshape" by default.

    Returns:
        A tensor of the new shape and the dtype of ``tensor``, elements in row-major order.

    Raises:
        ShapeError: If the numbers of elements differ, several extents are -1, or an extent is None,
            below -1, no int, or a tensor that only a run computes.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.

    >>> from passkit.frontends import tinyflow as tf
    >>> tf.reshape(tf.zeros([2, 3]), [-1]).shape
    (6)
    """
    x = convert_to_tensor(tensor)
    if depends_on_deferred(shape):
        arguments = {"tensor": x, "shape": shape}
        return defer_call(reshape, arguments, [(None, x.dtype)], unique_name(name, "Reshape"))[0]
    extents = parse_shape(shape, "reshape")
    if is_unranked(x) and extents.count(-1) == 1:
        full_name = unique_name(name, "Reshape")
        sizes: Any = tuple(
            runtime_size(full_name, k) if n == -1 else n for k, n in enumerate(extents)
        )
        return defer_call(reshape, {"tensor": x, "shape": extents}, [(sizes, x.dtype)], full_name)[
            0
        ]
    return call_operator("reshape", "Reshape", name, x.entry, shape=extents)


@reject_arguments("numbers are real", "conjugate")
def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    """Permute the axes of a tensor.

    Args:
        a: A tensor or numbers of any shape.
        perm: For each axis of the result the axis of ``a``; by default the axes are reversed.
        name: The name of the result; "transpose" by default.
        conjugate: Unsupported; only the default is accepted.

    Returns:
        A tensor whose axis k is the axis perm[k] of ``a``.

    Raises:
        ShapeError: If ``perm`` does not name each axis of ``a`` once.
        SettingError: If an unsupported argument is set.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    return call_operator("transpose", "transpose", name, as_entry(a), axes=parse_axes(perm))


def _common_dtype_entries(values: Any) -> list[Entry]:
    """Convert tensors and arrays to entries.

    Python's numbers, and arrays as `as_operand` converts them, take the dtype of the first tensor.
    If there are only Python's bools, ints and floats, all take the dtype that `as_entry` gives a
    list of them.

    Args:
        values: A list or tuple of tensors, entries and numbers; any other value counts as a list of
            one.

    Raises:
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
        ShapeError: For a `Dimension` that is unknown.
    """
    items = list(values) if isinstance(values, (list, tuple)) else [values]
    like = next((v.dtype for v in items if isinstance(v, Tensor)), None)
    if items and all(type(v) in (bool, int, float) for v in items):
        like = as_entry(items).dtype
    operands = [v if isinstance(v, Entry) else as_operand(v, like) for v in items]
    return [o if isinstance(o, Entry) else as_entry(o, like) for o in operands]


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Concatenate tensors along an axis.

    Args:
        values: A list of tensors of one dtype, whose shapes differ along ``axis`` at most; or a
            single tensor, which is returned as a copy. Arrays and lists of numbers take the dtype
            of the first tensor if NumPy's casting "same_kind" allows.
        axis: The axis, an int, which may be negative.
        name: The name of the result; "concat" by default.

    Returns:
        A tensor whose extent along ``axis`` is the sum of those of ``values``.

    Raises:
        ShapeError: If there are no tensors, ``axis`` is no int or does not exist, as for scalars,
            or other extents differ.
        DTypeError: If the dtypes differ, or a tensor is text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    return call_operator(
        "concat", "concat", name, *_common_dtype_entries(values), axis=parse_axes(axis)
    )


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Join tensors along a new axis.

    Args:
        values: A list of tensors of one shape and dtype. Python's numbers take the dtype of the
            first tensor, floats truncated to integers; without tensors, that of a constant of the
            list.
        axis: The position of the new axis in the result, which may be negative; 0 by default.
        name: The name of the result; "stack" by default.

    Returns:
        A tensor of one axis more, whose length is the number of tensors; of no tensors an int32
        vector of length 0.

    Raises:
        ShapeError: If the shapes differ, or ``axis`` is no int or does not exist.
        DTypeError: If the dtypes differ, or a tensor is text.
        GraphError: If ``values`` is no list, such as a single tensor.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    values = require_list("stack", "values", values)
    if axis == 0 and depends_on_deferred(values):
        full_name, dtype = unique_name(name, "stack"), next(nested_tensors(values)).dtype
        sizes = None if any(map(is_unranked, values)) and not dtype.is_integer else (len(values),)
        return defer_call(stack, {"values": values}, [(sizes, dtype)], full_name)[0]
    static_values = [
        getattr(v, "static_value", None) if isinstance(v, Tensor) else v for v in values
    ]
    all_static = all(
        type(k) is int or (isinstance(k, np.ndarray) and k.ndim == 0) for k in static_values
    )
    dtypes = {v.dtype for v in values if isinstance(v, Tensor)} or {as_dtype("int32")}
    if axis == 0 and all_static and len(dtypes) == 1:
        numbers = np.array(
            [*(k[()] if isinstance(k, np.ndarray) else k for k in static_values), None],
            dtype=object,
        )[:-1]
        (dtype,) = dtypes
        if static_value_fits(numbers, dtype):
            return static_tensor(numbers, dtype, name, "stack")
    return call_operator("stack", "stack", name, *_common_dtype_entries(values), axis=axis)


def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str = "unstack"
) -> list[Tensor]:
    """Split a tensor into its slices along an axis.

    Args:
        value: A tensor or numbers of rank 1 or more.
        num: The number of slices, an int; by default the length of the axis.
        axis: The axis, which may be negative; the slices do not have it. 0 by default.
        name: The name of the results; "unstack" by default.

    Returns:
        A list of tensors, one for each index of the axis, in order.

    Raises:
        ShapeError: If the axis does not exist, its length is unknown, or its length is not ``num``;
            for a tensor of unknown rank without ``num``, or with one below 1. A run checks the
            length of a tensor of unknown rank.
        SettingError: If ``num`` or ``axis`` is no int.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    num = None if num is None else require_int("unstack", "num", num)
    axis = require_int("unstack", "axis", axis)
    if is_unranked(value) and num is not None:
        if num < 1:
            raise ShapeError(f"unstack of a tensor of unknown rank needs num from 1 on, got {num}")
        arguments = {"value": value, "num": num, "axis": axis}
        return defer_call(
            unstack, arguments, [(None, value.dtype)] * num, unique_name(name, "unstack")
        )
    entry = as_entry(value)
    count = axis_length("unstack", require_shape(entry, "unstack"), axis)
    if not isinstance(count, int) or num not in (None, count):
        raise ShapeError(
            f"unstack along axis {axis} of {format_shape(require_shape(entry))} needs a known "
            f"length{'' if num is None else f', as num={num}'}, got {count}"
        )
    full_name = unique_name(name, "unstack")
    return [as_tensor(e, full_name, index=k) for k, e in enumerate(ops.unstack(entry, axis))]


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Split a tensor along an axis.

    Args:
        value: A tensor or numbers of rank 1 or more.
        num_or_size_splits: The number of equal parts, an int; or a list with the length of each
            part, of which one may be -1 for the remaining elements.
        axis: The axis, an int, which may be negative; 0 by default.
        num: The number of parts, which is compared with that of the result; None (default) for any.
        name: The name of the results; "split" by default.

    Returns:
        A list of the parts, in order.

    Raises:
        ShapeError: If the axis does not exist, a number of parts does not divide its length or is
            below 1, or the lengths are negative, do not add up to it, or are not ``num`` in number;
            for a symbolic length, the sum is compared in a run.
        SettingError: If ``num_or_size_splits`` holds anything but ints, or ``axis`` is no int.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
        GraphError: If ``num_or_size_splits`` is a tensor that only a run computes.
    """
    static_value = getattr(num_or_size_splits, "static_value", None)
    sizes_argument = static_value.tolist() if static_value is not None else num_or_size_splits
    is_count = isinstance(sizes_argument, (int, np.integer))
    if is_unranked(value) and (is_count or isinstance(sizes_argument, (list, tuple))):
        part_count = int(sizes_argument) if is_count else len(sizes_argument)
        if part_count < 1:
            raise ShapeError(f"split needs one part or more, got {sizes_argument}")
        outputs = [(None, value.dtype)] * part_count
        arguments = {"value": value, "num_or_size_splits": sizes_argument, "axis": axis, "num": num}
        return defer_call(split, arguments, outputs, unique_name(name, "split"))
    entry, split_axis = as_entry(value), parse_axes(axis)
    sizes = require_shape(entry, "split")
    count = axis_length("split", sizes, split_axis)
    if is_count:
        part_length = divide_exactly(count, int(sizes_argument)) if sizes_argument > 0 else None
        if part_length is None:
            raise ShapeError(
                f"split needs a length that {sizes_argument} divides, got {count} along axis "
                f"{axis} of {format_shape(sizes)}"
            )
        parts: list[Any] = [part_length] * int(sizes_argument)
    else:
        parts = list(require_ints("split", "num_or_size_splits", sizes_argument))
    if parts.count(-1) == 1:
        parts[parts.index(-1)] = count - (sum(parts) + 1)
    total = sum(parts)
    is_negative = any(isinstance(n, int) and n < 0 for n in parts)
    if is_negative or num not in (None, len(parts)) or (isinstance(count, int) and total != count):
        raise ShapeError(
            f"split needs sizes that add up to {count}{'' if num is None else f', as num={num}'}"
            f", got {parts}"
        )
    full_name = unique_name(name, "split")
    tensors = []
    for k, (first, n) in enumerate(zip(accumulate([0, *parts]), parts, strict=False)):
        begin = [first if a == split_axis % len(sizes) else 0 for a in range(len(sizes))]
        size = [n if a == split_axis % len(sizes) else m for a, m in enumerate(sizes)]
        part = get_op("slice")(entry, begin=tuple(begin), size=tuple(size))
        tensors.append(as_tensor(part, full_name, index=k))
    return tensors


def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Return the part of a tensor that begins at ``begin`` and has the shape ``size``.

    Args:
        input_: A tensor or numbers of any shape.
        begin: The first index along each axis, at least 0.
        size: The extent along each axis; -1 for all remaining elements.
        name: The name of the result; "Slice" by default.

    Returns:
        A tensor of the shape ``size``.

    Raises:
        ShapeError: If ``begin`` or ``size`` has another length than the rank or holds anything but
            ints and sizes, ``begin`` is negative, or the part exceeds the tensor.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    params = {"begin": parse_shape(begin, "slice"), "size": parse_shape(size, "slice")}
    return call_operator("slice", "Slice", name, as_entry(input_), **params)


slice_.__name__ = slice_.__qualname__ = "slice"  # the definition does not hide Python's slice


@reject_arguments("indices outside are taken as the nearest inside", "validate_indices")
def gather(
    params: Any,
    indices: Any,
    validate_indices: bool | None = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """Return the slices of a tensor at indices.

    Args:
        params: A tensor of rank 1 or more.
        indices: Integers of any shape. Negative ones count from the end; those that are still
            outside of the axis are clipped to it.
        validate_indices: Unsupported; only the default is accepted.
        name: The name of the result; "Gather" by default.
        axis: The axis of ``params`` that is indexed; ``batch_dims`` by default.
        batch_dims: The number of leading axes that ``params`` and ``indices`` share; 0 by default.

    Returns:
        A tensor of the shape of ``params``, in which the axes of ``indices`` after the shared ones
        replace ``axis``.

    Raises:
        ShapeError: If ``axis`` is no int, does not exist or has no elements, shared axes differ in
            length, or ``batch_dims`` is negative, beyond ``axis`` or no int.
        DTypeError: If ``indices`` are no integers, or ``params`` is a tensor of text.
        SettingError: If an unsupported argument is set.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    gather_axis = batch_dims if axis is None else parse_axes(axis)
    entries = as_entry(params), as_entry(indices)
    return call_operator(
        "gather", "Gather", name, *entries, axis=gather_axis, batch_dims=batch_dims
    )


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Insert an axis of length 1.

    Args:
        input: A tensor or numbers of any shape.
        axis: The position of the new axis in the result, or a list of several; negative ones count
            from the end.
        name: The name of the result; "ExpandDims" by default.
        dim: The older name of ``axis``.

    Returns:
        A tensor of one axis more, or of several.

    Raises:
        SettingError: Without an axis, or if both ``axis`` and ``dim`` are passed.
        ShapeError: If the axis is no int, does not exist or is named twice.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    new_axis = renamed_argument("expand_dims", "axis", axis, "dim", dim)
    if new_axis is None:
        raise SettingError("expand_dims needs an axis, got None; 0 is the first, -1 the last")
    return call_operator(
        "expand_dims", "ExpandDims", name, as_entry(input), axis=parse_axes(new_axis)
    )


def squeeze(
    input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None
) -> Tensor:
    """Remove axes of length 1.

    Args:
        input: A tensor or numbers of any shape.
        axis: The axis or axes to remove; by default all of length 1.
        name: The name of the result; "Squeeze" by default.
        squeeze_dims: The older name of ``axis``.

    Returns:
        A tensor without these axes.

    Raises:
        ShapeError: If an axis is no int, does not exist or has a length that is known not to be 1;
            or without ``axis``, if a length is unknown.
        SettingError: If both ``axis`` and ``squeeze_dims`` are passed.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    squeezed_axes = renamed_argument("squeeze", "axis", axis, "squeeze_dims", squeeze_dims)
    return call_operator(
        "squeeze", "Squeeze", name, as_entry(input), axis=parse_axes(squeezed_axes)
    )


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return vectors with ``on_value`` at each index and ``off_value`` elsewhere.

    Args:
        indices: Integers of any shape.
        depth: The length of the new axis, an int or a size.
        on_value: The number at each index, no tensor; 1 by default.
        off_value: The number elsewhere, no tensor; 0 by default.
        axis: The position of the new axis in the result; the last by default.
        dtype: The dtype of the result; float32 by default.
        name: The name of the result; "one_hot" by default.

    Returns:
        A tensor of the shape of ``indices`` with an axis of length ``depth`` more. An index outside
        of the depth gives off values only.

    Raises:
        ShapeError: If ``depth`` is not one number of at least 0, or ``axis`` is no int or does not
            exist.
        DTypeError: If ``indices`` are no integers, ``on_value`` or ``off_value`` is no real number
            or, for an integer ``dtype``, no integer within its limits, or ``dtype`` is no element
            type.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    dtype_name = "float32" if dtype is None else as_dtype(dtype).name
    params = {
        "depth": parse_single_extent(depth, "one_hot", "depth"),
        "on_value": 1 if on_value is None else on_value,
        "off_value": 0 if off_value is None else off_value,
        "axis": -1 if axis is None else axis,
        "dtype": dtype_name,
    }
    return call_operator("one_hot", "one_hot", name, as_entry(indices), **params)


PADDING = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric"}


def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:
    """Pad a tensor along its axes.

    Args:
        tensor: A tensor or numbers of any shape.
        paddings: A pair (before, after) for each axis: numbers of elements; negative ones cut off
            in the mode "CONSTANT". A single pair stands for all axes.
        mode: "CONSTANT" (default), "REFLECT" to mirror without the edge, or "SYMMETRIC" to mirror
            with it; in any case of letters.
        name: The name of the result; "Pad" by default.
        constant_values: The real number to pad with; 0 by default. One too large for floats is
            infinity, and any but 0 is true for bools.

    Returns:
        A tensor whose extents are larger by the paddings.

    Raises:
        SettingError: For another mode, or paddings that are no list or array of ints.
        ShapeError: If there is not a pair for each axis, an axis is too short to be mirrored or for
            what is cut off, or a padding is negative where the mode mirrors.
        DTypeError: If ``constant_values`` is no int, float or bool, such as a tensor or a complex
            number, or is not an integer within the limits where ``tensor`` has integers; where the
            mode is "CONSTANT"; for a tensor of text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    if not isinstance(mode, str) or mode.upper() not in PADDING:
        raise SettingError(f"pad needs {', '.join(PADDING)} as mode, got {mode!r}")
    width = require_int_rows("pad", "paddings", getattr(paddings, "static_value", paddings))
    params = {"mode": PADDING[mode.upper()], "constant_values": constant_values}
    return call_operator("pad", "Pad", name, as_entry(tensor), pad_width=width, **params)


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Repeat a tensor along its axes.

    Args:
        input: A tensor or numbers of any shape.
        multiples: The number of repetitions along each axis, the last axis last. More numbers than
            axes add leading axes; fewer leave the leading axes as they are.
        name: The name of the result; "Tile" by default.

    Returns:
        A tensor whose extents are multiplied by ``multiples``.

    Raises:
        ShapeError: If a number of repetitions is negative, unknown, or a tensor that only a run
            computes.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    return call_operator(
        "tile", "Tile", name, as_entry(input), repetitions=parse_shape(multiples, "tile")
    )


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Reverse the order of elements along axes.

    Args:
        tensor: A tensor or numbers of any shape.
        axis: An axis or a list of several, which may be negative; None for all.
        name: The name of the result; "ReverseV2" by default.

    Returns:
        A tensor of the shape and dtype of ``tensor``.

    Raises:
        ShapeError: If an axis is no int, does not exist or is named twice.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    return call_operator("flip", "ReverseV2", name, as_entry(tensor), axis=parse_axes(axis))


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = "bool", name: str | None = None
) -> Tensor:
    """Return a mask that is true for the first ``lengths`` elements of each sequence.

    Args:
        lengths: Integers of any shape, the length of each sequence.
        maxlen: The length of the new last axis; required.
        dtype: The dtype of the result; bool by default. Other dtypes hold 1 and 0.
        name: The name of the result; "SequenceMask" by default.

    Returns:
        A tensor of the shape of ``lengths`` with a last axis of length ``maxlen`` more.

    Raises:
        ShapeError: Without ``maxlen``, as no shape may depend on the lengths; or if it is not one
            number of at least 0.
        DTypeError: If ``lengths`` are no integers, or ``dtype`` is no element type.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    if maxlen is None:
        raise ShapeError("sequence_mask needs maxlen, got None: no shape may depend on the lengths")
    full_name = unique_name(name, "SequenceMask")
    max_length = parse_single_extent(maxlen, "sequence_mask", "maxlen")
    mask = get_op("sequence_mask")(as_entry(lengths), maxlen=max_length)
    mask_dtype = as_dtype(dtype)
    return as_tensor(
        mask if mask_dtype.name == "bool" else get_op("cast")(mask, dtype=mask_dtype.name),
        full_name,
    )
