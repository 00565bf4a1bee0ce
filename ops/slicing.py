"""Slices: the operator ``slice``, Python's ``x[...]``, and the function ``split``."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import demand, show_shape
from passkit.graph.node import Entry, Node, as_entry, known_shape
from passkit.graph.op import REQUIRED, OpPattern, get_op
from passkit.ops.helpers import as_replacement, make, parse_extents
from passkit.ops.movement import register_movement
from passkit.values import arguments
from passkit.values.size import Extent, Shape, Size, at_least, divide_exactly

if TYPE_CHECKING:
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr


# slice.


def slice_params(node: Node, shape: Shape) -> tuple[Shape, Shape, Shape]:
    """Return begin, size and step of a slice, an extent for each axis.

    Args:
        node: A node with the parameters ``begin``, ``size`` and ``step``; a step of None is 1.
        shape: Shape of the input; a size of -1 becomes the rest of the axis in the direction of the
            step.

    Raises:
        ShapeError: If a parameter does not have an int or Size for each axis, or a step is 0 or a
            Size. Whether the slice lies in the input is not checked.
    """
    rank = len(shape)
    begin = parse_extents(node, node.params["begin"], "begin")
    size = parse_extents(node, node.params["size"], "size")
    step_param = node.params["step"]
    step = (1,) * rank if step_param is None else parse_extents(node, step_param, "step")
    for name, value in (("begin", begin), ("size", size), ("step", step)):
        if len(value) != rank:
            raise ShapeError(
                f"{node.where} needs {rank} extents as {name}, one for each axis of "
                f"{show_shape(shape)}, got {show_shape(value)}"
            )
    if any(not isinstance(s, int) or s == 0 for s in step):
        raise ShapeError(f"{node.where} needs ints other than 0 as step, got {show_shape(step)}")
    filled = tuple(
        _count_to_end(n, b, s) if k == -1 else k
        for n, b, k, s in zip(shape, begin, size, step, strict=True)
    )
    return begin, filled, step


def _count_to_end(n: Extent, begin: Extent, step: Extent) -> Extent:
    """Return the number of elements from ``begin`` on to the end of an axis of length ``n``.

    They are ``step`` apart. For a negative step the end is the front of the axis; a symbolic step
    counts as positive.
    """
    is_forward = not isinstance(step, int) or step > 0
    return _step_count(n - begin, step) if is_forward else _step_count(begin + 1, -step)


def _step_count(length: Extent, step: Extent) -> Extent:
    """Return the number of elements that steps of ``step`` select of ``length`` neighbours.

    It is length / step, rounded up. The step is positive.
    """
    return length if step == 1 else (length + (step - 1)) // step


def slice_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape of a slice, its size.

    Conditions on symbolic extents are recorded, which a call checks.

    Args:
        node: A node with the parameters ``begin``, ``size`` and ``step``.
        shape: Shape of the input.

    Raises:
        ShapeError: If a parameter is invalid, a size is negative, or an element lies outside of the
            input.
    """
    begin, size, step = slice_params(node, shape)
    for k, (n, b, count, s) in enumerate(zip(shape, begin, size, step, strict=True)):
        if isinstance(count, int) and count < 0:
            raise ShapeError(f"{node.where} needs sizes >= 0 or -1, got {count} at axis {k}")
        if count == 0:
            continue
        last = b + (count - 1) * s
        low, high = (b, last) if at_least(s, 1) else (last, b)
        if isinstance(low, int) and low < 0:
            raise ShapeError(f"{node.where} reads element {low} of axis {k}; begin must be >= 0")
        demand(node, n, high + 1, f"axis {k} must be long enough for the slice")
        for extent in (low, count):  # at least 0: expressed by n, as run-time guards need it
            if isinstance(extent, Size) and extent != n:
                demand(node, n, n - extent, f"axis {k} must be long enough for the slice")
    return size


def _slice_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the input's element at begin + index * step.

    ``index`` has an expression for each axis, ``read`` reads the input. ``node`` has the parameters
    ``begin``, ``size`` and ``step``.

    Raises: ShapeError if the rank of the input is unknown, or a parameter is invalid.
    """
    begin, _, step = slice_params(node, known_shape(node.inputs[0]))
    return read(*(_source_index(i, b, s) for i, b, s in zip(index, begin, step, strict=True)))


def _source_index(i: Expr, begin: Extent, step: Extent) -> Expr:
    """Return i * step + begin, without operations that do nothing."""
    scaled = i if step == 1 else i * ast.size_of(step)
    return scaled if begin == 0 else scaled + ast.size_of(begin)


def _compute_slice(node: Node, x: Any) -> Any:
    """Compute a slice of the array ``x`` with NumPy, a new array; of a scalar, ``x`` itself.

    It has explicit indices, since a negative step may end before 0. ``node`` has the parameters
    ``begin``, ``size`` and ``step``.

    Raises: ShapeError if there is not one of each for each axis of x, or a step is 0.
    """
    begin, size, step = slice_params(node, x.shape)
    indices = [
        operator.index(b) + operator.index(s) * np.arange(operator.index(n))
        for b, n, s in zip(begin, size, step, strict=True)
    ]
    return x[np.ix_(*indices)] if indices else x


def _simplify_slice(node: Node) -> Entry | None:
    """Return the input of a slice that selects every element in order, else None.

    None also if its shape or dtype is unknown. ``node`` has the parameters ``begin``, ``size`` and
    ``step``.

    Raises: ShapeError if a parameter is invalid.
    """
    x = node.inputs[0]
    if x.shape is None:
        return None
    begin, _, step = slice_params(node, x.shape)
    is_identity = all(b == 0 for b in begin) and all(s == 1 for s in step)
    return as_replacement(node, x) if is_identity else None


def _slice_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: dy written into zeros at the positions of the slice.

    ``node`` is the forward node, with the parameters ``begin``, ``size`` and ``step``; ``dy`` is
    the gradient of its output.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    shape = known_shape(node.inputs[0])
    begin, _, step = slice_params(node, shape)
    return [make("unslice", dy, shape=shape, begin=begin, step=step)]


slice_ = register_movement(
    "slice",
    params={"begin": REQUIRED, "size": REQUIRED, "step": None},
    doc="size[k] elements of each axis k from begin[k] on, step[k] apart; a size of -1 is the "
    "rest of the axis",
    pattern=OpPattern.INJECTIVE,
)
slice_.set_attr("FInferShape", slice_shape)
slice_.set_attr("FElement", _slice_element)
slice_.set_attr("FCompute", _compute_slice)
slice_.set_attr("FSimplify", _simplify_slice)
slice_.set_attr("FGradient", _slice_gradient)
slice_.set_attr("TOperator", "[]")


# x[...].


class IndexKey(NamedTuple):
    """A parsed index: a slice, then axes to squeeze and axes to insert.

    Attributes:
        begin: first element of each axis of the input.
        size: number of elements of each axis.
        step: distance of elements of each axis.
        squeezed_axes: axes of the slice that an int selects from.
        new_axes: axes of the result for None.
    """

    begin: tuple[Extent, ...]
    size: tuple[Extent, ...]
    step: tuple[int, ...]
    squeezed_axes: tuple[int, ...]
    new_axes: tuple[int, ...]


def parse_key(x: Entry, key: Any) -> IndexKey:
    """Parse the key of ``x[key]``.

    Args:
        x: An entry of known rank.
        key: Ints, sizes, slices, ``...`` and None, or a tuple of them. NumPy integers are ints.

    Raises:
        ShapeError: If there are too many indices or two ``...``, an int is out of range of a known
            length, a step is 0, an index is none of these, such as a bool or a list, or the rank is
            unknown.
    """
    shape = known_shape(x)
    parts = list(key) if isinstance(key, tuple) else [key]
    if sum(p is Ellipsis for p in parts) > 1:
        raise ShapeError(f"{x.name}[…] has more than one '...'; one stands for all missing axes")
    index_count = sum(p is not None and p is not Ellipsis for p in parts)
    if index_count > len(shape):
        raise ShapeError(f"{x.name} has {len(shape)} axes, got {index_count} indices")
    if not any(p is Ellipsis for p in parts):
        parts.append(Ellipsis)
    position = next(k for k, p in enumerate(parts) if p is Ellipsis)
    parts[position : position + 1] = [slice(None)] * (len(shape) - index_count)

    ranges: list[tuple[Extent, Extent, int]] = []
    squeezed_axes, new_axes = [], []
    result_axis = 0
    for part in parts:
        if part is None:
            new_axes.append(result_axis)
            result_axis += 1
            continue
        axis = len(ranges)
        ranges.append(_parse_index(x, part, shape[axis], axis))
        if isinstance(part, slice):
            result_axis += 1
        else:
            squeezed_axes.append(axis)
    return IndexKey(
        begin=tuple(begin for begin, _, _ in ranges),
        size=tuple(size for _, size, _ in ranges),
        step=tuple(step for _, _, step in ranges),
        squeezed_axes=tuple(squeezed_axes),
        new_axes=tuple(new_axes),
    )


def index(x: Entry, key: Any) -> Entry:
    """Return ``x[key]`` for ints, sizes, slices, ``...`` and None, as in NumPy.

    Bounds of slices are clipped where the extent is known; where it is not, they must fit at the
    call. A key that selects everything returns ``x`` itself.

    Args:
        x: An entry of known rank.
        key: Ints, sizes, slices, ``...`` and None, or a tuple of them.

    Raises:
        ShapeError: If an index is something else, such as a bool, a list or an array, the key is
            out of range, or the rank is unknown.
    """
    begin, size, step, squeezed_axes, new_axes = parse_key(x, key)
    out = x
    if size != known_shape(x) or any(s != 1 for s in step):
        out = slice_(out, begin=begin, size=size, step=None if set(step) == {1} else step)
    out = get_op("squeeze")(out, axis=squeezed_axes) if squeezed_axes else out
    return get_op("expand_dims")(out, axis=new_axes) if new_axes else out


slice_.set_attr("FOperator", index)


def _parse_index(x: Entry, part: Any, n: Extent, axis: int) -> tuple[Extent, Extent, int]:
    """Return begin, size and step that one index selects of an axis.

    An int selects one element, a negative one from the end; a Size selects one unchecked. A slice
    of nothing begins at 0.

    Args:
        x: The entry that is indexed, for messages.
        part: The index: an int of Python or NumPy, a Size or a Python slice.
        n: The length of the axis.
        axis: The axis, for messages.

    Raises:
        ShapeError: If it is something else, such as a bool, an int is out of range of a known
            length, a step is 0, or a bound or step of a slice is no integer.
    """
    if isinstance(part, (int, np.integer)) and not isinstance(part, bool):
        position = int(part)
        if isinstance(n, int) and not -n <= position < n:
            raise ShapeError(
                f"index {position} is out of range for axis {axis} of {x.name}, length {n}"
            )
        return (n + position if position < 0 else position), 1, 1
    if isinstance(part, Size):
        return part, 1, 1
    if not isinstance(part, slice):
        raise ShapeError(
            f"{x.name} is indexed by ints, slices, '...' and None, got {type(part).__name__}; "
            f"pk.ops.where chooses by value"
        )
    ends = (part.start, part.stop)
    start, stop = (e if isinstance(e, Size) else _int_or_none(x, e, axis) for e in ends)
    step: int = _int_or_none(x, 1 if part.step is None else part.step, axis)
    part = slice(start, stop, step)
    if step == 0:
        raise ShapeError(f"the step of an index of {x.name} must not be 0")
    if isinstance(n, int) and not isinstance(start, Size) and not isinstance(stop, Size):
        selected = range(*part.indices(n))
        return (selected.start if len(selected) else 0), len(selected), step
    return _parse_unclipped(part, n, step)


def _int_or_none(x: Entry, value: Any, axis: int) -> Any:
    """Return ``value``, a part of a slice of ``axis`` of ``x``, as an int, or None for None.

    NumPy integers and bools are converted to ints.

    Raises: ShapeError if it is none of these, such as a float.
    """
    try:
        return None if value is None else operator.index(value)
    except TypeError:
        raise ShapeError(
            f"axis {axis} of {x.name} is sliced by ints, got {value!r}; pk.ops.gather takes what "
            "only the data tells"
        ) from None


def _parse_unclipped(part: slice, n: Extent, step: int) -> tuple[Extent, Extent, int]:
    """Return begin, size and step of a slice with unknown extents: bounds are not clipped.

    A call checks that they are in range. A slice that ends before it begins is (0, 0, step).

    Args:
        part: The slice, of ints, sizes and None.
        n: The length of the axis.
        step: The step, not 0.
    """

    def bound(value: Extent | None, default: Extent) -> Extent:
        """Return a bound ``value`` as a position from the front; ``default`` for None."""
        if value is None:
            return default
        if isinstance(value, Size):
            return value
        return n + value if value < 0 else value

    start = bound(part.start, 0 if step > 0 else n - 1)
    stop = bound(part.stop, n if step > 0 else -1)
    length = stop - start if step > 0 else start - stop
    if isinstance(length, int) and length < 0:
        return 0, 0, step
    return start, _step_count(length, abs(step)), step


# split.


def split(x: Any, num_or_sizes: int | Sequence[Extent], axis: int = 0) -> tuple[Entry, ...]:
    """Return slices of ``x`` along an axis.

    Args:
        x: An entry or array of rank 1 or more.
        num_or_sizes: A number of equal slices, a Python int, or a sequence of the size of each.
        axis: The axis to split; 0 by default.

    Returns:
        A tuple of entries, the slices in order; empty for no sizes of an empty axis.

    Raises:
        ShapeError: If the axis is no int or out of range, the rank of ``x`` unknown, the number of
            slices is below 1 or not known to divide its length, or their sizes are not known to add
            up to it, or one is negative.
        ArgumentError: If ``num_or_sizes`` is neither an int nor a sequence of ints and sizes, or
            ``x`` no array of numbers; a GraphError for a tuple of entries as ``x``, a DTypeError
            for an array of a dtype that passkit does not have.
    """
    entry = as_entry(x)
    shape = known_shape(entry)
    rank = len(shape)
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise ShapeError(f"split: axis {axis!r} is out of range for {show_shape(shape)}")
    axis %= rank
    sizes = _split_sizes(num_or_sizes, axis, shape[axis])
    slices = []
    for start, n in zip(accumulate(sizes, initial=0), sizes, strict=False):
        begin: list[Extent] = [0] * rank
        size = list(shape)
        begin[axis], size[axis] = start, n
        slices.append(slice_(entry, begin=begin, size=size))
    return tuple(slices)


def _split_sizes(num_or_sizes: Any, axis: int, length: Extent) -> list[Extent]:
    """Return the size of each slice of an axis.

    Args:
        num_or_sizes: The number of equal slices, or their sizes.
        axis: The axis, for messages.
        length: Its length.

    Raises:
        ShapeError: If their number is below 1 or not known to divide the length, or they are not
            known to add up to it; negative sizes are not refused here.
        ArgumentError: If ``num_or_sizes`` is neither a Python int nor a sequence of ints and sizes;
            a bool is neither.
    """
    if isinstance(num_or_sizes, int) and not isinstance(num_or_sizes, bool):
        if num_or_sizes < 1:
            raise ShapeError(f"split: num_or_sizes must be at least 1, got {num_or_sizes}")
        part = divide_exactly(length, num_or_sizes)
        if part is None:
            raise ShapeError(
                f"split: axis {axis} of length {length} does not fall into {num_or_sizes} "
                f"equal parts; give their sizes"
            )
        return [part] * num_or_sizes
    accepted = (int, np.integer, Size)
    sizes: list[Extent] = list(
        arguments.sequence(
            "split: num_or_sizes",
            num_or_sizes,
            accepted,
            "a number of parts, or a sequence of their sizes",
        )
    )
    total: Extent = 0
    for n in sizes:
        total = total + n
    if total != length:
        raise ShapeError(
            f"split: sizes {show_shape(tuple(sizes))} add up to {total}, but axis {axis} has "
            f"length {length}"
        )
    return sizes
