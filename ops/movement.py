"""Movement: the same elements at other places. Each operator is an index map, so it fuses."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from passkit.ops.rules import alias, axes_of, extents, one_axis, shapes_text, unchanged

from passkit import ast
from passkit.ast import Expr, size_of
from passkit.errors import ShapeError
from passkit.infer import agree, demand, same_dtype_rule, show_shape
from passkit.node import Entry, Node, as_entry, known_shape
from passkit.op import REQUIRED, Op, OpPattern, register_op
from passkit.reads import Index, Reader, aligned
from passkit.size import Extent, Shape, Size, at_least, divide_exactly, numel


def movement(
    name: str, params: dict[str, Any], doc: str, pattern: OpPattern, num_inputs: int = 1
) -> Op:
    """Register ``name`` with what all movement operators share."""
    op = register_op(name, num_inputs=num_inputs, params=params, doc=doc)
    op.set_attr("FInferType", same_dtype_rule)
    op.set_attr("TOpPattern", pattern)
    op.set_attr("TOpCost", "light")
    return op


def _input(node: Node, k: int = 0) -> Shape:
    return known_shape(node.inputs[k])


def _output(node: Node) -> Shape:
    return known_shape(node.entries[0])


# reshape, expand_dims, squeeze: the row-major order of elements stays


def _reshape_shape(node: Node, shape: Shape) -> Shape:
    """The wanted shape, with its one -1 filled in. Raises: ShapeError when elements do not fit."""
    wanted = extents(node, node.params["shape"], "shape")
    total = numel(shape)
    open_axes = [k for k, n in enumerate(wanted) if n == -1]
    if len(open_axes) > 1 or any(isinstance(n, int) and n < -1 for n in wanted):
        raise ShapeError(
            f"{node.where} needs extents >= 0 and at most one -1, got {show_shape(wanted)}"
        )
    if open_axes:
        k = open_axes[0]
        rest = numel(n for n in wanted if n != -1)
        filled = divide_exactly(total, rest)
        if (filled is None and isinstance(total, int) and isinstance(rest, int)) or rest == 0:
            raise ShapeError(
                f"{node.where} cannot fill in -1: {show_shape(shape)} has {total} elements, "
                f"{show_shape(wanted)} takes a multiple of {rest}"
            )
        wanted = (*wanted[:k], total // rest if filled is None else filled, *wanted[k + 1 :])
    if isinstance(total, int) and isinstance(numel(wanted), int) and total != numel(wanted):
        raise ShapeError(
            f"{node.where} needs as many elements as {show_shape(shape)} has, {total}, got "
            f"{show_shape(wanted)}, which has {numel(wanted)}"
        )
    agree(node, total, numel(wanted), "the number of elements")
    return wanted


def regroup(index: Index, shape: Shape, wanted: Shape) -> Index:
    """The index into ``wanted`` of the element at ``index`` of ``shape``, in row-major order.

    Dimensions are matched from the end in the smallest groups of equal product, so that only
    those that really join or split pay for a division.
    """
    out: list[Expr] = []
    a, b = len(shape), len(wanted)
    while b > 0:
        p, q = a - 1, b - 1
        left: Extent = shape[p] if a else 1
        right: Extent = wanted[q]
        while left != right and (p > 0 or q > 0):
            if q > 0 and (p <= 0 or _smaller(right, left)):
                q -= 1
                right = wanted[q] * right
            else:
                p -= 1
                left = shape[p] * left
        out[:0] = _spread(index[max(p, 0) : a], shape[max(p, 0) : a], wanted[q:b])
        a, b = max(p, 0), q
    return tuple(out)


def _smaller(a: Extent, b: Extent) -> bool:
    """Whether ``a`` is to grow first: known to be smaller, or a divisor of ``b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    return divide_exactly(b, a) is not None


def _spread(index: Index, shape: Shape, wanted: Shape) -> list[Expr]:
    if len(index) == len(wanted) == 1:
        return [index[0]]
    joined: Expr | None = None
    for i, n in zip(index, shape, strict=True):
        if n != 1:
            joined = i if joined is None else joined * size_of(n) + i
    linear = size_of(0) if joined is None else joined
    out: list[Expr] = []
    for k in range(len(wanted) - 1, -1, -1):
        outer = all(n == 1 for n in wanted[:k])
        if wanted[k] == 1:
            out.insert(0, size_of(0))
        else:
            out.insert(0, linear if outer else linear % size_of(wanted[k]))
            linear = linear if outer else linear // size_of(wanted[k])
    return out


def _keep_order(node: Node, index: Index, read: Reader) -> Expr:
    return read(*regroup(index, _output(node), _input(node)))


def _simplify_reshape(node: Node) -> Entry | None:
    """A reshape to the same shape goes; one of another such operator reads its input."""
    x = node.inputs[0]
    if unchanged(node, x) is not None:
        return x
    out = node.entries[0].shape
    if x.node.op in ORDER_KEEPING and out is not None:
        return reshape(x.node.inputs[0], shape=out)  # type: ignore[no-any-return]
    return None


reshape = movement(
    "reshape", {"shape": REQUIRED}, "x with another shape; -1 is filled in", OpPattern.INJECTIVE
)
reshape.set_attr("FInferShape", _reshape_shape)
reshape.set_attr("FCompute", lambda node, x: x.reshape(_output(node)))


def _expand_shape(node: Node, shape: Shape) -> Shape:
    axis = node.params["axis"]
    count = len(axis) if isinstance(axis, tuple) else 1
    axes = axes_of(node, len(shape) + count, axis)
    rest = iter(shape)
    return tuple(1 if k in axes else next(rest) for k in range(len(shape) + count))


def _expand_element(node: Node, index: Index, read: Reader) -> Expr:
    axes = axes_of(node, len(index), node.params["axis"])
    return read(*(i for k, i in enumerate(index) if k not in axes))


expand_dims = movement(
    "expand_dims", {"axis": 0}, "x with new axes of length 1", OpPattern.BROADCAST
)
expand_dims.set_attr("FInferShape", _expand_shape)
expand_dims.set_attr("FElement", _expand_element)
expand_dims.set_attr("FCompute", lambda node, x: np.expand_dims(x, node.params["axis"]))


def _squeezed(node: Node, shape: Shape) -> tuple[int, ...]:
    """The axes that go: those named, else all of length 1."""
    if node.params["axis"] is None:
        return tuple(k for k, n in enumerate(shape) if n == 1)
    return axes_of(node, len(shape), node.params["axis"])


def _squeeze_shape(node: Node, shape: Shape) -> Shape:
    gone = _squeezed(node, shape)
    for k in gone:
        if isinstance(shape[k], int) and shape[k] != 1:
            raise ShapeError(
                f"{node.where} needs length 1 at axis {k}, got {show_shape(shape)}; take an "
                f"element or reshape"
            )
        agree(node, shape[k], 1, f"axis {k} to squeeze")
    return tuple(n for k, n in enumerate(shape) if k not in gone)


def _squeeze_element(node: Node, index: Index, read: Reader) -> Expr:
    shape = _input(node)
    gone = _squeezed(node, shape)
    rest = iter(index)
    return read(*(size_of(0) if k in gone else next(rest) for k in range(len(shape))))


squeeze = movement("squeeze", {"axis": None}, "x without axes of length 1", OpPattern.INJECTIVE)
squeeze.set_attr("FInferShape", _squeeze_shape)
squeeze.set_attr("FElement", _squeeze_element)
squeeze.set_attr("FCompute", lambda node, x: x.reshape(_output(node)))
ORDER_KEEPING = (reshape, expand_dims, squeeze)
reshape.set_attr("FElement", _keep_order)
for _op in ORDER_KEEPING:
    _op.set_attr("FSimplify", _simplify_reshape)
    _op.set_attr("FInplaceOption", lambda node: [(0, 0)])
    _op.set_attr("FInplaceIdentity", lambda node: [True])


def _axes(node: Node, rank: int) -> tuple[int, ...]:
    """The input axis of each result axis; None reverses them."""
    axes = node.params["axes"]
    if axes is None:
        return tuple(reversed(range(rank)))
    found = axes if isinstance(axes, tuple) else (axes,)
    axes_of(node, rank, found, "axes")
    if len(found) != rank:
        raise ShapeError(f"{node.where} needs {rank} axes, one for each of the input, got {axes}")
    return tuple(one_axis(node, rank, a, "axes") for a in found)


def _transpose_shape(node: Node, shape: Shape) -> Shape:
    return tuple(shape[a] for a in _axes(node, len(shape)))


def _transpose_element(node: Node, index: Index, read: Reader) -> Expr:
    axes = _axes(node, len(index))
    return read(*(index[axes.index(k)] for k in range(len(axes))))


def _simplify_transpose(node: Node) -> Entry | None:
    """The identity goes; a transpose of a transpose is one."""
    x = node.inputs[0]
    if x.shape is None:
        return None
    axes = _axes(node, len(x.shape))
    if axes == tuple(range(len(axes))):
        return x
    if x.node.op is not node.op:
        return None
    inner = _axes(x.node, len(axes))
    return transpose(x.node.inputs[0], axes=tuple(inner[a] for a in axes))  # type: ignore[no-any-return]


transpose = movement(
    "transpose", {"axes": None}, "x with its axes in another order", OpPattern.INJECTIVE
)
transpose.set_attr("FInferShape", _transpose_shape)
transpose.set_attr("FElement", _transpose_element)
transpose.set_attr("FCompute", lambda node, x: np.transpose(x, node.params["axes"]))
transpose.set_attr("FSimplify", _simplify_transpose)


def _broadcast_shape(node: Node, shape: Shape) -> Shape:
    wanted = extents(node, node.params["shape"], "shape")
    if any(isinstance(n, int) and n < 0 for n in wanted):
        raise ShapeError(f"{node.where} needs extents >= 0, got {show_shape(wanted)}")
    lead = len(wanted) - len(shape)
    pairs = [(n, wanted[k]) for k, n in enumerate(shape, lead) if n != 1] if lead >= 0 else []
    if lead < 0 or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
        raise ShapeError(
            f"{node.where} cannot stretch {show_shape(shape)} to {show_shape(wanted)}; only "
            f"lengths of 1 stretch, aligned at the end"
        )
    for n, m in pairs:
        agree(node, n, m, "a dimension that is not stretched")
    return wanted


broadcast_to = movement(
    "broadcast_to",
    {"shape": REQUIRED},
    "x stretched to a shape, as NumPy broadcasts",
    OpPattern.BROADCAST,
)
broadcast_to.set_attr("FInferShape", _broadcast_shape)
broadcast_to.set_attr("FElement", lambda node, index, read: read(*aligned(index, _input(node))))
broadcast_to.set_attr("FCompute", lambda node, x: np.broadcast_to(x, node.entries[0].shape))
broadcast_to.set_attr("FSimplify", lambda node: unchanged(node, node.inputs[0]))


def _concat_shape(node: Node, *shapes: Shape) -> Shape:
    if not shapes:
        raise ShapeError(f"{node.where} needs at least one input, got none")
    first = shapes[0]
    axis = one_axis(node, len(first), node.params["axis"])
    total: Extent = 0
    out = list(first)
    for s in shapes:
        if len(s) != len(first) or any(
            k != axis and isinstance(a, int) and isinstance(b, int) and a != b
            for k, (a, b) in enumerate(zip(s, out, strict=False))
        ):
            raise ShapeError(
                f"{node.where} needs shapes that differ at axis {axis} only, got "
                f"{shapes_text(shapes)}"
            )
        for k, n in enumerate(s):
            if k != axis:
                out[k] = agree(node, n, out[k], f"dimension {k}")
        total = total + s[axis]
    out[axis] = total
    return tuple(out)


def _concat_element(node: Node, index: Index, *reads: Reader) -> Expr:
    """A binary search for the input that holds the element; arms are lazy."""
    axis = one_axis(node, len(index), node.params["axis"])
    starts: list[Extent] = list(accumulate((known_shape(e)[axis] for e in node.inputs), initial=0))

    def pick(low: int, high: int) -> Expr:
        if high - low == 1:
            moved = index[axis] - size_of(starts[low]) if low else index[axis]
            return reads[low](*index[:axis], moved, *index[axis + 1 :])
        middle = (low + high) // 2
        return ast.where(
            index[axis] < size_of(starts[middle]), pick(low, middle), pick(middle, high)
        )

    return pick(0, len(reads))


concat = movement(
    "concat", {"axis": 0}, "the inputs one after the other along axis", OpPattern.INJECTIVE, -1
)
concat.set_attr("FInferShape", _concat_shape)
concat.set_attr("FElement", _concat_element)
concat.set_attr("FCompute", lambda node, *x: np.concatenate(x, node.params["axis"]))
concat.set_attr("FSimplify", lambda node: node.inputs[0] if len(node.inputs) == 1 else None)
alias(concat, "concatenate")


def _slice_params(node: Node, shape: Shape) -> tuple[Shape, Shape, Shape]:
    """Begin, size and step for each axis; a size of -1 is the rest."""
    rank = len(shape)
    begin = extents(node, node.params["begin"], "begin")
    size = extents(node, node.params["size"], "size")
    given = node.params["step"]
    step = (1,) * rank if given is None else extents(node, given, "step")
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


def _slice_shape(node: Node, shape: Shape) -> Shape:
    """The size. Raises: ShapeError when an element would be outside of the input."""
    begin, size, step = _slice_params(node, shape)
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
    begin, _, step = _slice_params(node, _input(node))
    return read(*(_shifted(i, b, s) for i, b, s in zip(index, begin, step, strict=True)))


def _shifted(i: Expr, begin: Extent, step: Extent) -> Expr:
    scaled = i if step == 1 else i * size_of(step)
    return scaled if begin == 0 else scaled + size_of(begin)


def _slice_compute(node: Node, x: Any) -> Any:
    begin, size, step = _slice_params(node, x.shape)
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
    begin, _, step = _slice_params(node, x.shape)
    whole = all(b == 0 for b in begin) and all(s == 1 for s in step)
    return unchanged(node, x) if whole else None


slice_ = movement(
    "slice",
    {"begin": REQUIRED, "size": REQUIRED, "step": None},
    "size[k] elements of axis k from begin[k], step[k] apart; a size of -1 is the rest",
    OpPattern.INJECTIVE,
)
slice_.set_attr("FInferShape", _slice_shape)
slice_.set_attr("FElement", _slice_element)
slice_.set_attr("FCompute", _slice_compute)
slice_.set_attr("FSimplify", _simplify_slice)
slice_.set_attr("TOperator", "[]")


def index(x: Entry, key: Any) -> Entry:
    """``x[key]`` in Python: ints, slices, ``...`` and None, as in NumPy.

    Bounds are clipped where the extent is known; where it is not, they must fit at the call.

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

    begin, size, step, gone, new = [], [], [], [], []
    axis = place = 0
    for part in parts:
        if part is None:
            new.append(place)
            place += 1
            continue
        b, n, s = _range(x, part, shape[axis], axis)
        begin.append(b)
        size.append(n)
        step.append(s)
        if isinstance(part, slice):
            place += 1
        else:
            gone.append(axis)
        axis += 1
    out = x
    if size != list(shape) or any(s != 1 for s in step):
        out = slice_(out, begin=begin, size=size, step=None if set(step) == {1} else step)
    out = squeeze(out, axis=gone) if gone else out
    return expand_dims(out, axis=new) if new else out


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
    step = 1 if part.step is None else int(part.step)
    if step == 0:
        raise ShapeError(f"the step of an index of {x.name} must not be 0")
    if isinstance(n, int) and not isinstance(part.start, Size) and not isinstance(part.stop, Size):
        found = range(*part.indices(n))
        return (found.start if len(found) else 0), len(found), step
    return _open_range(x, part, n, step)


def _open_range(x: Entry, part: slice, n: Extent, step: int) -> tuple[Extent, Extent, int]:
    """As `_range` where an extent is not known: bounds are taken to be inside of it."""

    def bound(value: Any, default: Extent) -> Extent:
        if value is None:
            return default
        if isinstance(value, Size):
            return value
        return n + int(value) if value < 0 else int(value)

    start = bound(part.start, 0 if step > 0 else n - 1)
    stop = bound(part.stop, n if step > 0 else -1)
    length = stop - start if step > 0 else start - stop
    if isinstance(length, int) and length < 0:
        return 0, 0, step
    return start, _steps(length, abs(step)), step


slice_.set_attr("FOperator", index)


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
    if isinstance(num_or_sizes, int):
        part = divide_exactly(shape[axis], num_or_sizes)
        if part is None or num_or_sizes < 1:
            raise ShapeError(
                f"split: axis {axis} of length {shape[axis]} does not fall into {num_or_sizes} "
                f"equal parts; give their sizes"
            )
        sizes: list[Extent] = [part] * num_or_sizes
    else:
        sizes = list(num_or_sizes)
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
