"""Placeholders, constants, filled tensors and ranges, and tensors that describe shapes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from passkit.errors import DTypeError, GraphError, SettingError, ShapeError
from passkit.frontends.tinyflow.argument_checks import reject_arguments, require_float, require_int
from passkit.frontends.tinyflow.deferred_calls import (
    defer_call,
    defer_if_unranked,
    deferred_entries,
    depends_on_deferred,
    runtime_size,
)
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.shapes import format_shape, parse_extent, parse_shape, require_shape
from passkit.frontends.tinyflow.tensors import (
    HostTensor,
    Tensor,
    as_entry,
    as_tensor,
    call_operator,
    convert_to_tensor,
    static_tensor,
    static_value_of,
    unique_name,
)
from passkit.graph.node import MOST_ELEMENTS, Entry, var
from passkit.graph.node import constant as constant_entry
from passkit.graph.op import get_op
from passkit.values.dtype import DType
from passkit.values.size import Shape, Size, numel


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """Create a tensor that runs are fed.

    Args:
        dtype: The element type.
        shape: A list with an int for each axis, or None for a size that each run determines. By
            default even the rank is unknown, and runs are compiled for the ranks and sizes that are
            fed.
        name: The name of the result; "Placeholder" by default.

    Returns:
        A tensor that needs a value in ``feed_dict`` when a run reads it.

    Raises:
        DTypeError: If ``dtype`` is no element type, such as text or None.
        ShapeError: If an extent is neither an int of at least 0 nor None.
        ArgumentError: If ``name`` is no text.

    >>> from passkit.frontends import tinyflow as tf
    >>> x = tf.placeholder(tf.float32, [None, 2], name="inputs")
    >>> x.shape
    (?, 2)
    """
    full_name = unique_name(name, "Placeholder")
    sizes = None if shape is None else parse_shape(shape, f"placeholder '{full_name}'")
    return as_tensor(var(full_name, sizes, as_dtype(dtype)), full_name, control=False)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Create a tensor whose value is ``input`` unless a run feeds another one.

    Args:
        input: The default, a tensor or numbers.
        shape: A list with an int for each axis, or None for any size; None for any rank.
        name: The name of the result; "PlaceholderWithDefault" by default.

    Returns:
        A tensor of the dtype of ``input`` and of this static shape.

    Raises:
        ShapeError: If the default does not have this shape, an extent is neither an int nor None,
            or the rank of the default is unknown and ``shape`` is not None.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    full_name = unique_name(name, "PlaceholderWithDefault")
    entry = as_entry(input)
    if shape is None:
        return _overridable_default(entry, None, full_name)
    sizes, default_shape = (
        parse_shape(shape, f"placeholder '{full_name}'"),
        require_shape(entry, full_name),
    )
    if len(default_shape) != len(sizes) or any(
        n is not None and n != m for n, m in zip(sizes, default_shape, strict=True)
    ):
        raise ShapeError(
            f"placeholder '{full_name}' needs a default of shape {format_shape(sizes)}, got "
            f"{format_shape(default_shape)}"
        )
    if None in sizes:
        symbolic_shape = tuple(
            runtime_size(full_name, k) if n is None else n for k, n in enumerate(sizes)
        )
        return _overridable_default(entry, symbolic_shape, full_name)
    return as_tensor(get_op("identity")(entry, name=full_name), full_name)


def _overridable_default(entry: Entry, shape: Shape | None, name: str) -> Tensor:
    """Create a tensor for a default that feeds of other sizes may replace.

    Args:
        entry: The default.
        shape: The declared shape of feeds; None for any.
        name: Full name of the tensor.

    Returns:
        The output of a deferred node, of ``shape`` and of the dtype of ``entry``.
    """
    return as_tensor(
        deferred_entries(lambda tensors: tensors, [entry], [(shape, entry.dtype)], name)[0], name
    )


def constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """Create a constant tensor.

    Args:
        value: A number, nested lists of numbers, an array, or text, for which the other arguments
            but ``name`` are ignored. Python's numbers are float32 and int32, or int64 if they do
            not fit; NumPy arrays keep their dtype.
        dtype: The dtype of the constant; by default that of ``value``. Floats are truncated to an
            integer dtype.
        shape: The shape; by default that of ``value``. A single number, or the last one of a list,
            is repeated to fill it.
        name: The name of the result; "Const" by default.
        verify_shape: Whether ``value`` must have ``shape`` already; False by default.

    Returns:
        A tensor; one of text can only be fetched.

    Raises:
        ShapeError: If ``value`` is empty and ``shape`` is not, ``value`` has too many numbers or,
            with ``verify_shape``, another shape; or if ``shape`` holds anything but ints of at
            least 0.
        GraphError: If ``value`` is a tensor; one in a list is refused as no number.
        ArgumentError: If ``value`` is neither numbers nor text, complex and ``dtype`` real but not
            bool, or holds Python's ints beyond 64 bits or the limits of an integer ``dtype``, or
            for one a float that is NaN or too large.
        DTypeError: If ``dtype`` is no element type.
    """
    full_name = unique_name(name, "Const")
    if isinstance(value, (str, bytes)):
        text = value.encode() if isinstance(value, str) else value
        return HostTensor([], lambda: text, full_name, get_default_graph())
    if isinstance(value, (Tensor, Entry)):
        raise GraphError(
            f"constant '{full_name}' needs numbers, got {value!r}; tf.identity gives a tensor a "
            f"name"
        )
    array = as_entry(value, dtype).node.params["value"]
    if shape is not None:
        array = _fill_shape(
            full_name, array, parse_shape(shape, f"constant '{full_name}'"), verify_shape
        )
    return as_tensor(constant_entry(array, name=full_name), full_name, static_value_of(array))


def _fill_shape(name: str, array: Any, shape: Any, verify: bool) -> Any:
    """Return ``array`` in a shape, of which its last number fills the rest.

    Args:
        name: Name of the constant in errors.
        array: The numbers, an array.
        shape: The extents.
        verify: Whether the array must have this shape already.

    Returns:
        An array of this shape, with the numbers first in row-major order.

    Raises:
        ShapeError: If an extent is no int of at least 0, the shape has more than `MOST_ELEMENTS`
            elements, there are more numbers than elements or none for some, or the shape is another
            one than that of the array while ``verify``.
    """
    if any(not isinstance(n, int) or n < 0 for n in shape):
        raise ShapeError(
            f"constant '{name}' needs a known shape of extents >= 0, got {format_shape(shape)}"
        )
    count = prod(shape)
    if count > MOST_ELEMENTS:
        raise ShapeError(
            f"constant '{name}' of shape {format_shape(shape)} would have {count} elements; the "
            f"most that can be addressed are {MOST_ELEMENTS}"
        )
    if verify and array.shape != tuple(shape):
        raise ShapeError(
            f"constant '{name}' with verify_shape needs shape {format_shape(shape)}, got "
            f"{format_shape(array.shape)}"
        )
    if array.size > count or (count and not array.size):
        raise ShapeError(
            f"constant '{name}' needs at most {count} numbers for shape {format_shape(shape)}, got "
            f"{array.size}"
        )
    flat = array.ravel()
    return np.concatenate([flat, np.repeat(flat[-1:], count - array.size)]).reshape(shape)


@reject_arguments("arrays have one layout", "layout")
def zeros(
    shape: Any, dtype: Any = "float32", name: str | None = None, layout: Any = None
) -> Tensor:
    """Create a tensor of zeros.

    Args:
        shape: The shape of the result: ints, or sizes computed from `tf.shape`.
        dtype: The dtype of the result; float32 by default.
        name: The name of the result; "zeros" by default.
        layout: Unsupported; only the default is accepted.

    Returns:
        A tensor of this shape and dtype.

    Raises:
        ShapeError: If an extent is None, negative, too large, no int, or a tensor that only a run
            computes.
        DTypeError: If ``dtype`` is no element type.
        SettingError: If an unsupported argument is set.
    """
    return _filled_tensor("zeros", shape, 0, dtype, name)


@reject_arguments("arrays have one layout", "layout")
def ones(shape: Any, dtype: Any = "float32", name: str | None = None, layout: Any = None) -> Tensor:
    """Create a tensor of ones.

    Args:
        shape: The shape of the result: ints, or sizes computed from `tf.shape`.
        dtype: The dtype of the result; float32 by default.
        name: The name of the result; "ones" by default.
        layout: Unsupported; only the default is accepted.

    Returns:
        A tensor of this shape and dtype.

    Raises:
        ShapeError: If an extent is None, negative, too large, no int, or a tensor that only a run
            computes.
        DTypeError: If ``dtype`` is no element type.
        SettingError: If an unsupported argument is set.
    """
    return _filled_tensor("ones", shape, 1, dtype, name)


def _filled_tensor(function: str, shape: Any, value: Any, dtype: Any, name: str | None) -> Tensor:
    """Create a tensor filled with a number; deferred if its shape depends on a deferred call.

    Args:
        function: Name of the function in errors, and default name of the result.
        shape: Shape, which may be a tensor.
        value: Number of all elements.
        dtype: Dtype.
        name: Name of the result.

    Raises:
        ShapeError: If an extent is None, negative, too large, no int, or a tensor that only a run
            computes.
        DTypeError: If ``dtype`` is no element type.
    """
    if depends_on_deferred(shape):
        arguments = {"function": function, "shape": shape, "value": value, "dtype": dtype}
        return defer_call(
            _filled_tensor, arguments, [(None, as_dtype(dtype))], unique_name(name, function)
        )[0]
    sizes = parse_shape(shape, function)
    return call_operator(
        "full", function, name, shape=sizes, fill_value=value, dtype=as_dtype(dtype).name
    )


@reject_arguments("arrays have one layout", "layout")
def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> Tensor:
    """Repeat a scalar over a shape.

    Args:
        dims: The shape of the result: ints, or sizes computed from `tf.shape`.
        value: A number or a scalar tensor; or an array or tensor that broadcasts to ``dims``.
        name: The name of the result; "Fill" by default.
        layout: Unsupported; only the default is accepted.

    Returns:
        A tensor of the shape ``dims``, in the dtype of ``value``.

    Raises:
        ShapeError: If an extent is None, negative, too large, no int, or a tensor that only a run
            computes, or if ``value`` does not broadcast to ``dims``.
        SettingError: If an unsupported argument is set.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    if depends_on_deferred(dims):
        number = convert_to_tensor(value)
        arguments = {"dims": dims, "value": number}
        return defer_call(fill, arguments, [(None, number.dtype)], unique_name(name, "Fill"))[0]
    return call_operator(
        "broadcast_to", "Fill", name, as_entry(value), shape=parse_shape(dims, "fill")
    )


@reject_arguments("the shape is always a constant if it is known", "optimize")
def zeros_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Create zeros of the shape of a tensor.

    Args:
        tensor: A tensor or numbers.
        dtype: The dtype of the result; by default that of ``tensor``.
        name: The name of the result; "zeros_like" by default.
        optimize: Unsupported; only the default is accepted.

    Returns:
        A tensor of the shape of ``tensor``.

    Raises:
        DTypeError: If ``dtype`` is no element type, or differs from that of ``tensor`` where one of
            them is complex; for a tensor of text.
        ArgumentError: For a value that is neither a tensor nor numbers.
        SettingError: If an unsupported argument is set.
    """
    return _filled_like("zeros_like", tensor, dtype, name)


@reject_arguments("the shape is always a constant if it is known", "optimize")
def ones_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Create ones of the shape of a tensor.

    Args:
        tensor: A tensor or numbers.
        dtype: The dtype of the result; by default that of ``tensor``.
        name: The name of the result; "ones_like" by default.
        optimize: Unsupported; only the default is accepted.

    Returns:
        A tensor of the shape of ``tensor``.

    Raises:
        DTypeError: If ``dtype`` is no element type, or differs from that of ``tensor`` where one of
            them is complex; for a tensor of text.
        ArgumentError: For a value that is neither a tensor nor numbers.
        SettingError: If an unsupported argument is set.
    """
    return _filled_like("ones_like", tensor, dtype, name)


def _filled_like(op: str, tensor: Any, dtype: Any, name: str | None) -> Tensor:
    """Create a tensor of the shape of another one.

    Args:
        op: Operator that creates it and default name of the result: ``zeros_like`` or
            ``ones_like``.
        tensor: The other tensor.
        dtype: Dtype; None for that of the tensor.
        name: Requested name of the result; None for the default.

    Raises:
        DTypeError: If ``dtype`` is no element type, or differs from that of ``tensor`` where one of
            them is complex; for a tensor of text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    entry = as_entry(tensor)
    if dtype is not None and as_dtype(dtype) is not entry.dtype:
        entry = get_op("cast")(entry, dtype=as_dtype(dtype).name)
    return call_operator(op, op, name, entry)


def range_(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> Tensor:
    """Return the numbers from ``start`` in steps of ``delta``, up to and without ``limit``.

    Args:
        start: The first number; if ``limit`` is None, this is the limit, and the first number is 0.
        limit: The end, which is not part of the result; a number, or a size that a run determines,
            which needs whole numbers as ``start`` and the step 1.
        delta: The step, a number, which may be negative; 1 by default.
        dtype: The dtype of the result; by default that of the first tensor among the bounds, else
            float32 if a bound is a float, else int32, or int64 if a bound does not fit.
        name: The name of the result; "range" by default.

    Returns:
        A vector; without elements if ``limit`` is not beyond ``start`` in the direction of
        ``delta``.

    Raises:
        ShapeError: If a bound is no finite real number, such as None, text, or a tensor of floats
            or one that only a run computes; or if ``delta`` is 0.
        DTypeError: If ``dtype`` is no element type, or bool or complex.
    """
    if limit is None:
        start, limit = 0, start
    bounds = [_range_bound(v, "range") for v in (start, limit, delta)]
    if dtype is None:
        floats = any(isinstance(p, float) for p in bounds)
        is_wide = any(isinstance(p, int) and not -(2**31) <= p < 2**31 for p in bounds)
        dtypes = [v.dtype for v in (start, limit, delta) if isinstance(v, Tensor)]
        integer_dtype = "int64" if is_wide else "int32"
        dtype = dtypes[0] if dtypes else ("float32" if floats else integer_dtype)
    first, last, step = bounds
    return call_operator("arange", "range", name, first, last, step, dtype=as_dtype(dtype).name)


range_.__name__ = range_.__qualname__ = "range"  # the definition does not hide Python's range


def _range_bound(value: Any, function: str) -> Any:
    """Convert a bound of a range to a float, an int or a symbolic size.

    Args:
        value: A number, a `Dimension`, a `Size`, or a scalar tensor of static value.
        function: The function's name, for the message.

    Raises:
        ShapeError: For any other value, such as None, an unknown dimension, or a tensor that only a
            run computes.
    """
    if isinstance(value, (float, np.floating)):
        return float(value)
    extent = parse_extent(value, function)
    if extent is None:
        raise ShapeError(f"{function} needs known bounds, got {value!r}")
    return extent if isinstance(extent, Size) else int(extent)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``, both included.

    Args:
        start: The first number, no tensor.
        stop: The last number, no tensor.
        num: How many numbers there are, an int; 1 gives ``start`` only.
        name: The name of the result; "LinSpace" by default.
        axis: Must be 0, the default.

    Returns:
        A float32 vector of length ``num``.

    Raises:
        SettingError: For another axis, if ``start`` or ``stop`` is no number, such as a tensor, or
            ``num`` is no int.
        ShapeError: If ``num`` is negative.
    """
    if axis != 0:
        raise SettingError(f"linspace of numbers needs axis 0, got {axis!r}; leave it out")
    params = {
        "start": require_float("linspace", "start", start),
        "stop": require_float("linspace", "stop", stop),
        "num": require_int("linspace", "num", num),
    }
    return call_operator("linspace", "LinSpace", name, **params)


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = "float32",
    name: str | None = None,
) -> Tensor:
    """Return the identity matrix, or a batch of identity matrices: ones on the main diagonal.

    Args:
        num_rows: The number of rows, an int or a size.
        num_columns: The number of columns; by default that of rows.
        batch_shape: The leading axes of the result; none by default.
        dtype: The dtype of the result; float32 by default.
        name: The name of the result; "eye" by default.

    Returns:
        A tensor of shape (*batch_shape, num_rows, num_columns).

    Raises:
        ShapeError: If an extent is None, negative, too large, no int, or a tensor that only a run
            computes.
        DTypeError: If ``dtype`` is no element type.
    """
    full_name = unique_name(name, "eye")
    rows = parse_extent(num_rows, "eye")
    columns = rows if num_columns is None else parse_extent(num_columns, "eye")
    matrix = get_op("eye")(n_rows=rows, n_cols=columns, dtype=as_dtype(dtype).name)
    if batch_shape is not None:
        sizes = parse_shape(batch_shape, "eye")
        matrix = get_op("broadcast_to")(matrix, shape=(*sizes, rows, columns))
    return as_tensor(matrix, full_name)


def _extents_dtype(function: str, out_type: Any) -> DType:
    """Return the dtype of extents: ``out_type``, int32 for None.

    Raises:
        DTypeError: If it is neither int32 nor int64.
    """
    dtype = as_dtype("int32" if out_type is None else out_type)
    if dtype.name not in ("int32", "int64"):
        raise DTypeError(f"{function} needs int32 or int64 as out_type, got {dtype}")
    return dtype


@defer_if_unranked("Shape", "int32", dtype_argument="out_type")
def shape(input: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """Return the shape of a tensor as a vector, from which other shapes may be computed.

    Args:
        input: A tensor or numbers of any shape.
        name: The name of the result; "Shape" by default.
        out_type: The dtype of the result, int32 (default) or int64. A number that only a run knows
            wraps around if int32 does not hold it.

    Returns:
        A vector with the extent of each axis. Functions that take a shape accept it.

    Raises:
        DTypeError: For a tensor of text, and for another ``out_type``, which a run refuses if it is
            an element type and the rank is unknown. Also where the result is used, if an extent is
            known before a run and int32 does not hold it.
        ArgumentError: For a value that is neither a tensor nor numbers, or an int that no element
            type holds.
    """
    sizes = np.array([*require_shape(as_entry(input)), None], dtype=object)[:-1]
    return static_tensor(sizes, _extents_dtype("shape", out_type), name, "Shape")


@defer_if_unranked("Size", "int32", (), dtype_argument="out_type")
def size(input: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """Return the number of elements of a tensor as a scalar.

    Args:
        input: A tensor or numbers of any shape.
        name: The name of the result; "Size" by default.
        out_type: The dtype of the result, int32 (default) or int64. A number that only a run knows
            wraps around if int32 does not hold it.

    Returns:
        A scalar tensor. Functions that take a size accept it.

    Raises:
        DTypeError: For a tensor of text, and for another ``out_type``, which a run refuses if it is
            an element type and the rank is unknown. Also where the result is used, if the number is
            known before a run and int32 does not hold it.
        ArgumentError: For a value that is neither a tensor nor numbers, or an int that no element
            type holds.
    """
    count = np.array(numel(require_shape(as_entry(input))), dtype=object)
    return static_tensor(count, _extents_dtype("size", out_type), name, "Size")


@defer_if_unranked("Rank", "int32", ())
def rank(input: Any, name: str | None = None) -> Tensor:
    """Return the number of axes of a tensor as a scalar.

    Args:
        input: A tensor or numbers of any shape.
        name: The name of the result; "Rank" by default.

    Returns:
        A scalar int32 tensor.

    Raises:
        ArgumentError: For a value that is neither a tensor nor numbers, or an int that no element
            type holds.
        DTypeError: For a tensor of text.
    """
    count = np.array(len(require_shape(as_entry(input))), dtype=object)
    return static_tensor(count, as_dtype("int32"), name, "Rank")
