"""Slices: a part of each axis, by `slice`, by Python's ``x[...]``, and by `split`."""

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
from passkit.ops.movement import movement
from passkit.values import arguments
from passkit.values.size import Extent, Shape, Size, at_least, divide_exactly

if TYPE_CHECKING:
    from passkit.ast import Expr
    from passkit.space.reads import Index, Reader


def slice_params(node: Node, shape: Shape) -> tuple[Shape, Shape, Shape]:
    """Begin, size and step for each axis; a size of -1 is the rest."""
    rank = len(shape)
    begin = parse_extents(node, node.params["begin"], "begin")
    size = parse_extents(node, node.params["size"], "size")
    given = node.params["step"]
    step = (1,) * rank if given is None else parse_extents(node, given, "step")
    for what, value in (("begin", begin), ("size", size), ("step", step)):
        if len(value) != rank:
            raise ShapeError(
                f"{node.where} needs {rank} extents as {what}, one for each axis of "
                f"{show_shape(shape)}, got {show_shape(value)}"
            )
    if any(not isinstance(s, int) or s == 0 for s in step):
        raise ShapeError(f"{node.where} needs ints other than 0 as step, got {show_shape(step)}")
    filled = tuple(
        _steps(n - b, s) if k == -1 else k
        for n, b, k, s in zip(shape, begin, size, step, strict=True)
    )
    return begin, filled, step


def _steps(length: Extent, step: Extent) -> Extent:
    """How many elements ``length`` positions hold at this step."""
    return length if step == 1 else (length + (step - 1)) // step


def slice_shape(node: Node, shape: Shape) -> Shape:
    """The size. Raises: ShapeError when an element would be outside of the input."""
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
        for extent in (low, count):  # not negative: written with n, as a guard needs it
            if isinstance(extent, Size) and extent != n:
                demand(node, n, n - extent, f"axis {k} must be long enough for the slice")
    return size


def _slice_element(node: Node, index: Index, read: Reader) -> Expr:
    begin, _, step = slice_params(node, known_shape(node.inputs[0]))
    return read(*(_shifted(i, b, s) for i, b, s in zip(index, begin, step, strict=True)))


def _shifted(i: Expr, begin: Extent, step: Extent) -> Expr:
    scaled = i if step == 1 else i * ast.size_of(step)
    return scaled if begin == 0 else scaled + ast.size_of(begin)


def _slice_compute(node: Node, x: Any) -> Any:
    begin, size, step = slice_params(node, x.shape)
    at = [
        operator.index(b) + operator.index(s) * np.arange(operator.index(n))
        for b, n, s in zip(begin, size, step, strict=True)
    ]
    return x[np.ix_(*at)] if at else x


def _simplify_slice(node: Node) -> Entry | None:
    """A slice of everything goes."""
    x = node.inputs[0]
    if x.shape is None:
        return None
    begin, _, step = slice_params(node, x.shape)
    whole = all(b == 0 for b in begin) and all(s == 1 for s in step)
    return as_replacement(node, x) if whole else None


slice_ = movement(
    "slice",
    {"begin": REQUIRED, "size": REQUIRED, "step": None},
    "size[k] elements of axis k from begin[k], step[k] apart; a size of -1 is the rest",
    OpPattern.INJECTIVE,
)
slice_.set_attr("FInferShape", slice_shape)
slice_.set_attr("FElement", _slice_element)
slice_.set_attr("FCompute", _slice_compute)
slice_.set_attr("FSimplify", _simplify_slice)
slice_.set_attr("TOperator", "[]")


class Key(NamedTuple):
    """What an index selects: a slice, axes of it that go, and new axes in the result."""

    begin: tuple[Extent, ...]
    size: tuple[Extent, ...]
    step: tuple[int, ...]
    gone: tuple[int, ...]
    new: tuple[int, ...]


def parse_key(x: Entry, key: Any) -> Key:
    """What ``x[key]`` selects.

    Raises: ShapeError for too many indices, an int out of range, or anything else as index.
    """
    shape = known_shape(x)
    parts = list(key) if isinstance(key, tuple) else [key]
    if sum(p is Ellipsis for p in parts) > 1:
        raise ShapeError(f"{x.name}[…] has more than one '...'; one stands for all missing axes")
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > len(shape):
        raise ShapeError(f"{x.name} has {len(shape)} axes, got {used} indices")
    if Ellipsis not in [p if p is Ellipsis else None for p in parts]:
        parts.append(Ellipsis)
    at = next(k for k, p in enumerate(parts) if p is Ellipsis)
    parts[at : at + 1] = [slice(None)] * (len(shape) - used)

    ranges: list[tuple[Extent, Extent, int]] = []
    gone, new = [], []
    place = 0
    for part in parts:
        if part is None:
            new.append(place)
            place += 1
            continue
        axis = len(ranges)
        ranges.append(_range(x, part, shape[axis], axis))
        if isinstance(part, slice):
            place += 1
        else:
            gone.append(axis)
    begin, size, step = ([r[k] for r in ranges] for k in range(3))
    return Key(tuple(begin), tuple(size), tuple(step), tuple(gone), tuple(new))  # type: ignore[arg-type]


def index(x: Entry, key: Any) -> Entry:
    """``x[key]`` in Python: ints, slices, ``...`` and None, as in NumPy.

    Bounds are clipped where the extent is known; where it is not, they must fit at the call.
    """
    begin, size, step, gone, new = parse_key(x, key)
    out = x
    if size != known_shape(x) or any(s != 1 for s in step):
        out = slice_(out, begin=begin, size=size, step=None if set(step) == {1} else step)
    out = get_op("squeeze")(out, axis=gone) if gone else out
    return get_op("expand_dims")(out, axis=new) if new else out


def _range(x: Entry, part: Any, n: Extent, axis: int) -> tuple[Extent, Extent, int]:
    """Begin, size and step that one index selects of an axis of length ``n``."""
    if isinstance(part, (int, np.integer)) and not isinstance(part, bool):
        at = int(part)
        if isinstance(n, int) and not -n <= at < n:
            raise ShapeError(f"index {at} is out of range for axis {axis} of {x.name}, length {n}")
        return (n + at if at < 0 else at), 1, 1
    if isinstance(part, Size):
        return part, 1, 1
    if not isinstance(part, slice):
        raise ShapeError(
            f"{x.name} is indexed by ints, slices, '...' and None, got {type(part).__name__}; "
            f"pk.ops.where chooses by value"
        )
    ends = (part.start, part.stop)
    start, stop = (e if isinstance(e, Size) else _whole(x, e, axis) for e in ends)
    step: int = _whole(x, 1 if part.step is None else part.step, axis)
    part = slice(start, stop, step)
    if step == 0:
        raise ShapeError(f"the step of an index of {x.name} must not be 0")
    if isinstance(n, int) and not isinstance(start, Size) and not isinstance(stop, Size):
        found = range(*part.indices(n))
        return (found.start if len(found) else 0), len(found), step
    return _open_range(x, part, n, step)


def _whole(x: Entry, given: Any, axis: int) -> Any:
    """A part of a slice as an int, or None. Raises: ShapeError for what is no whole number."""
    try:
        return None if given is None else operator.index(given)
    except TypeError:
        raise ShapeError(
            f"axis {axis} of {x.name} is sliced by ints, got {given!r}; pk.ops.gather takes what "
            "only the data tells"
        ) from None


def _open_range(x: Entry, part: slice, n: Extent, step: int) -> tuple[Extent, Extent, int]:
    """As `_range` where an extent is not known: bounds are taken to be inside of it."""

    def bound(value: Extent | None, default: Extent) -> Extent:
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
    return start, _steps(length, abs(step)), step


slice_.set_attr("FOperator", index)


def _slice_gradient(node: Node, dy: Entry) -> list[Entry]:
    shape = known_shape(node.inputs[0])
    begin, _, step = slice_params(node, shape)
    return [make("unslice", dy, shape=shape, begin=begin, step=step)]


slice_.set_attr("FGradient", _slice_gradient)


def split(x: Any, num_or_sizes: int | Sequence[Extent], axis: int = 0) -> tuple[Entry, ...]:
    """Slices of ``x`` along ``axis``: a number of equal ones, or of the given sizes.

    Raises: ShapeError when they do not add up to the axis.
    """
    entry = as_entry(x)
    shape = known_shape(entry)
    rank = len(shape)
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise ShapeError(f"split: axis {axis!r} is out of range for {show_shape(shape)}")
    axis %= rank
    if isinstance(num_or_sizes, int) and not isinstance(num_or_sizes, bool):
        if num_or_sizes < 1:
            raise ShapeError(f"split: num_or_sizes must be at least 1, got {num_or_sizes}")
        part = divide_exactly(shape[axis], num_or_sizes)
        if part is None:
            raise ShapeError(
                f"split: axis {axis} of length {shape[axis]} does not fall into {num_or_sizes} "
                f"equal parts; give their sizes"
            )
        sizes: list[Extent] = [part] * num_or_sizes
    else:
        need = "a number of parts, or a sequence of their sizes"
        kinds = (int, np.integer, Size)
        sizes = list(arguments.sequence("split: num_or_sizes", num_or_sizes, kinds, need))
        total: Extent = 0
        for n in sizes:
            total = total + n
        if total != shape[axis]:
            raise ShapeError(
                f"split: sizes {show_shape(tuple(sizes))} add up to {total}, but axis {axis} has "
                f"length {shape[axis]}"
            )
    starts = accumulate(sizes[:-1], initial=0)
    out = []
    for start, n in zip(starts, sizes, strict=True):
        begin: list[Extent] = [0] * rank
        size = list(shape)
        begin[axis], size[axis] = start, n
        out.append(slice_(entry, begin=begin, size=size))
    return tuple(out)
