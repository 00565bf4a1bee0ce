"""Slices assigned: copies of x with a slice replaced; and TensorFlow's strided_slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, as_entry, known_shape
from passkit.graph.op import REQUIRED, OpPattern
from passkit.ops.helpers import int_param, make
from passkit.ops.indices import zeros_of
from passkit.ops.movement import register_movement
from passkit.ops.movement_composites import movement_composite
from passkit.ops.slicing import index, parse_key, slice_params, slice_shape
from passkit.values.size import Shape

if TYPE_CHECKING:
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
"""The parameters of `strided_slice` of which each bit is about one entry of begin and end."""


def _infer_slice_assign_shape(node: Node, shape: Shape, value: Shape) -> Shape:
    """Infer the shape, that of the first input.

    Extents of slice and value that differ symbolically are recorded as guards.

    Args:
        node: The node, with the parameters begin, size and step.
        shape: The shape of the array.
        value: The shape of the value that replaces a slice; it does not broadcast.

    Raises:
        ShapeError: If the slice is out of range or its parameters are invalid, or the value is
            known to have another shape than the slice.
    """
    size = slice_shape(node, shape)
    if len(size) != len(value):
        raise ShapeError(
            f"{node.where} needs a value of shape {show_shape(size)}, that of the slice, got "
            f"{show_shape(value)}"
        )
    for k, (n, m) in enumerate(zip(size, value, strict=True)):
        agree(node, n, m, f"dimension {k} of slice and value")
    return shape


def _slice_assign_element(node: Node, index: Index, read: Reader, read_value: Reader) -> Expr:
    """Return the element of the value where the index lies in the slice, else that of x.

    Args:
        node: The node, with the parameters begin, size and step.
        index: An expression for each axis of the output.
        read: Reads x at an index.
        read_value: Reads the value at an index; valid only where the index lies in the slice.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    shape = known_shape(node.inputs[0])
    begin, size, step = slice_params(node, shape)
    in_slice: Expr | None = None
    value_index: list[Expr] = []
    for i, n, b, count, s in zip(index, shape, begin, size, step, strict=True):
        if (b, s) == (0, 1) and count == n:
            value_index.append(i)
            continue
        assert isinstance(s, int)
        distance = i - ast.size_of(b) if s > 0 else ast.size_of(b) - i
        in_axis = distance >= 0
        position = distance if abs(s) == 1 else distance // abs(s)
        if abs(s) != 1:
            in_axis = in_axis & ast.equal(distance % abs(s), 0)
        in_axis = in_axis & (position < ast.size_of(count))
        in_slice = in_axis if in_slice is None else in_slice & in_axis
        value_index.append(position)
    value = read_value(*value_index)
    return value if in_slice is None else ast.where(in_slice, value, read(*index))


def _slice_assign_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradients of x and value: dy with 0 in the slice, and the slice of dy.

    ``node`` is the forward node, with the parameters ``begin`` and ``step``; ``dy`` is the gradient
    of its output.

    Raises: ShapeError if a rank is unknown.
    """
    value = node.inputs[1]
    dx = make("slice_assign", dy, zeros_of(value), **node.params)
    begin, step = node.params["begin"], node.params["step"]
    return [dx, make("slice", dy, begin=begin, size=known_shape(value), step=step)]


slice_assign = register_movement(
    "slice_assign",
    {"begin": REQUIRED, "size": REQUIRED, "step": None},
    "x with the slice of begin, size and step replaced by value, which has the slice's shape",
    OpPattern.INJECTIVE,
    2,
)
slice_assign.set_attr("FListInputNames", lambda params: ["x", "value"])
slice_assign.set_attr("FInferShape", _infer_slice_assign_shape)
slice_assign.set_attr("FElement", _slice_assign_element)
slice_assign.set_attr("FGradient", _slice_assign_gradient)


def assign_index(x: Any, key: Any, value: Any) -> Entry:
    """Return a copy of ``x`` after ``x[key] = value`` of NumPy.

    >>> import numpy as np, passkit as pk
    >>> x = pk.var("x", (2, 3))
    >>> y = pk.ops.assign_index(x, (slice(None), 0), 7)
    >>> (result,) = pk.interpret(pk.Graph([y]), {"x": np.zeros((2, 3), np.float32)})
    >>> result.tolist()
    [[7.0, 0.0, 0.0], [7.0, 0.0, 0.0]]

    Args:
        x: An entry or array.
        key: Ints, sizes, slices, None and Ellipsis, or a tuple of them, as in basic indexing.
        value: An entry, array or number, which broadcasts to the shape of ``x[key]``. A Python
            bool, int or float gets the dtype of ``x``; floats out of range become infinity.

    Returns:
        An entry of the shape and dtype of ``x``.

    Raises:
        ShapeError: If the key is something else, such as a list or bool, or does not fit the shape
            of ``x``, the rank of ``x`` is unknown, or the value does not broadcast.
        DTypeError: If the value has another dtype than ``x``, is a complex number beside a real
            ``x``, or a number that an ``x`` of integers cannot hold, such as 0.5; for an array of a
            dtype that passkit does not have.
        ArgumentError: If ``x`` or ``value`` is no array of numbers; a GraphError for a tuple of
            entries.
    """
    entry = as_entry(x)
    parsed = parse_key(entry, key)
    shape = known_shape(index(entry, key))
    value = make("broadcast_to", _value_entry(value, entry), shape=shape)
    if parsed.new_axes:
        value = make("squeeze", value, axis=tuple(parsed.new_axes))
    if parsed.squeezed_axes:
        value = make("expand_dims", value, axis=tuple(parsed.squeezed_axes))
    return make(
        "slice_assign", entry, value, begin=parsed.begin, size=parsed.size, step=parsed.step
    )


def _value_entry(value: Any, x: Entry) -> Entry:
    """Return ``value`` as an entry; a Python bool, int or float has the dtype of ``x``.

    ``x`` is the array that is written. A complex number, and any number beside an unknown dtype,
    becomes a constant of its own dtype. Floats out of range become infinity.

    Raises: DTypeError for a number that is not whole or out of range beside an ``x`` of integers,
    and an array of a dtype that passkit does not have; ArgumentError, or GraphError for a tuple of
    entries, if ``value`` is no number, array or entry.
    """
    if isinstance(value, (bool, int, float)) and x.dtype is not None:
        return make("full", shape=(), fill_value=value, dtype=x.dtype.name)
    return as_entry(value)


def _strided_slice(node: Node, x: Entry) -> Entry:
    """Expand to the basic indexing of ``x`` that begin, end, strides and masks describe.

    Strides of None are 1. An index that selects everything gives an ``identity`` of x. ``node`` has
    the parameters ``begin``, ``end``, ``strides`` and those of `MASKS`.

    Raises:
        ShapeError: If begin, end and strides are no tuples of one length, a mask or an entry of
            these is no int, a stride is 0, the index does not fit the shape of ``x``, or that has
            an unknown rank.
    """
    params = node.params
    masks = {name: int_param(node, name) for name in MASKS}
    begin, end, strides = params["begin"], params["end"], params["strides"]
    if strides is None:
        strides = (1,) * len(begin) if isinstance(begin, tuple) else 1
    if any(not isinstance(v, tuple) or len(v) != len(begin) for v in (begin, end, strides)):
        raise ShapeError(
            f"{node.where} needs begin, end and strides of one length, got {begin}, {end} and "
            f"{strides}"
        )

    def is_set(mask: str, k: int) -> bool:
        """Return whether bit ``k`` of the parameter called ``mask`` is 1."""
        return bool(masks[mask] >> k & 1)

    key: list[Any] = []
    for k, (b, e, s) in enumerate(zip(begin, end, strides, strict=True)):
        if is_set("ellipsis_mask", k):
            key.append(Ellipsis)
        elif is_set("new_axis_mask", k):
            key.append(None)
        elif is_set("shrink_axis_mask", k):
            key.append(b)
        else:
            first = None if is_set("begin_mask", k) else b
            last = None if is_set("end_mask", k) else e
            key.append(slice(first, last, s))
    out = index(x, tuple(key))
    return make("identity", out) if out is x else out


movement_composite(
    name="strided_slice",
    inputs=("x",),
    expand=_strided_slice,
    params={"begin": REQUIRED, "end": REQUIRED, "strides": None, **dict.fromkeys(MASKS, 0)},
    doc="the elements of x from begin to end in steps of strides along each axis, as TensorFlow's "
    "StridedSlice; bit k of each mask changes the meaning of entry k of these",
)
