"""Movement: the same elements at other places. Each operator is an index map, so it fuses."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import agree, demand, same_dtype_rule, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, Op, OpPattern, register_op
from passkit.ops.concat_kernel import concat_kernel
from passkit.ops.helpers import (
    add_aliases,
    as_replacement,
    check_broadcast,
    make,
    normalize_axes,
    normalize_axis,
    parse_extents,
    show_shapes,
)
from passkit.values.lazy import Lazy
from passkit.values.size import Extent, Shape, divide_exactly, has_size, numel

if TYPE_CHECKING:
    from passkit.ast import Expr
    from passkit.space import reads
    from passkit.space.reads import Index, Reader
else:
    reads = Lazy("passkit.space.reads")


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


def _reshape_shape(node: Node, shape: Shape | None) -> Shape | None:
    """The wanted shape, with its one -1 filled in. Raises: ShapeError when elements do not fit.

    Of an input of unknown rank, a wanted shape without -1 is the result's.
    """
    wanted = parse_extents(node, node.params["shape"], "shape")
    if shape is None:
        return None if -1 in wanted else wanted
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
        demand(node, rest, 1, "the other extents must not be 0, for -1 to be filled in")
        wanted = (*wanted[:k], total // rest if filled is None else filled, *wanted[k + 1 :])
    if isinstance(total, int) and isinstance(numel(wanted), int) and total != numel(wanted):
        raise ShapeError(
            f"{node.where} needs as many elements as {show_shape(shape)} has, {total}, got "
            f"{show_shape(wanted)}, which has {numel(wanted)}"
        )
    agree(node, total, numel(wanted), "the number of elements")
    return wanted


_reshape_shape.__dict__["partial"] = True


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
            joined = i if joined is None else joined * ast.size_of(n) + i
    linear = ast.size_of(0) if joined is None else joined
    out: list[Expr] = []
    for k in range(len(wanted) - 1, -1, -1):
        outer = all(n == 1 for n in wanted[:k])
        if wanted[k] == 1:
            out.insert(0, ast.size_of(0))
        else:
            out.insert(0, linear if outer else linear % ast.size_of(wanted[k]))
            linear = linear if outer else linear // ast.size_of(wanted[k])
    return out


def _keep_order(node: Node, index: Index, read: Reader) -> Expr:
    return read(*regroup(index, _output(node), _input(node)))


def _simplify_reshape(node: Node) -> Entry | None:
    """A reshape to the same shape goes; one of another such operator reads its input."""
    x = node.inputs[0]
    if as_replacement(node, x) is not None:
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
    if axis is None:
        raise ShapeError(f"{node.where} needs an int, or several, as axis, got None")
    count = len(axis) if isinstance(axis, tuple) else 1
    axes = normalize_axes(node, len(shape) + count, axis)
    rest = iter(shape)
    return tuple(1 if k in axes else next(rest) for k in range(len(shape) + count))


def _expand_element(node: Node, index: Index, read: Reader) -> Expr:
    axes = normalize_axes(node, len(index), node.params["axis"])
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
    return normalize_axes(node, len(shape), node.params["axis"])


def _squeeze_shape(node: Node, shape: Shape) -> Shape:
    if node.params["axis"] is None and has_size(shape):
        raise ShapeError(
            f"{node.where} needs to know which axes have length 1, got {show_shape(shape)}; name "
            f"them in axis"
        )
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
    return read(*(ast.size_of(0) if k in gone else next(rest) for k in range(len(shape))))


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
    _op.set_attr("FGradient", lambda node, dy: [make("reshape", dy, shape=_input(node))])


def axes_order(node: Node, rank: int) -> tuple[int, ...]:
    """The input axis of each result axis; None reverses them."""
    axes = node.params["axes"]
    if axes is None:
        return tuple(reversed(range(rank)))
    found = axes if isinstance(axes, tuple) else (axes,)
    normalize_axes(node, rank, found, "axes")
    if len(found) != rank:
        raise ShapeError(f"{node.where} needs {rank} axes, one for each of the input, got {axes}")
    return tuple(normalize_axis(node, rank, a, "axes") for a in found)


def _transpose_shape(node: Node, shape: Shape) -> Shape:
    return tuple(shape[a] for a in axes_order(node, len(shape)))


def _transpose_element(node: Node, index: Index, read: Reader) -> Expr:
    axes = axes_order(node, len(index))
    return read(*(index[axes.index(k)] for k in range(len(axes))))


def _simplify_transpose(node: Node) -> Entry | None:
    """The identity goes; a transpose of a transpose is one."""
    x = node.inputs[0]
    if x.shape is None:
        return None
    axes = axes_order(node, len(x.shape))
    if axes == tuple(range(len(axes))):
        return x
    if x.node.op is not node.op:
        return None
    inner = axes_order(x.node, len(axes))
    return transpose(x.node.inputs[0], axes=tuple(inner[a] for a in axes))  # type: ignore[no-any-return]


transpose = movement(
    "transpose", {"axes": None}, "x with its axes in another order", OpPattern.INJECTIVE
)
transpose.set_attr("FInferShape", _transpose_shape)
transpose.set_attr("FElement", _transpose_element)
transpose.set_attr("FCompute", lambda node, x: np.transpose(x, node.params["axes"]))
transpose.set_attr("FSimplify", _simplify_transpose)


def _transpose_gradient(node: Node, dy: Entry) -> list[Entry]:
    axes = axes_order(node, len(_input(node)))
    return [make("transpose", dy, axes=tuple(axes.index(k) for k in range(len(axes))))]


transpose.set_attr("FGradient", _transpose_gradient)


def _broadcast_shape(node: Node, shape: Shape) -> Shape:
    wanted = parse_extents(node, node.params["shape"], "shape")
    if any(isinstance(n, int) and n < 0 for n in wanted):
        raise ShapeError(f"{node.where} needs extents >= 0, got {show_shape(wanted)}")
    check_broadcast(node, shape, wanted)
    return wanted


broadcast_to = movement(
    "broadcast_to",
    {"shape": REQUIRED},
    "x stretched to a shape, as NumPy broadcasts",
    OpPattern.BROADCAST,
)
broadcast_to.set_attr("FInferShape", _broadcast_shape)
broadcast_to.set_attr(
    "FElement", lambda node, index, read: read(*reads.aligned(index, _input(node)))
)
broadcast_to.set_attr("FCompute", lambda node, x: np.broadcast_to(x, node.entries[0].shape))
broadcast_to.set_attr("FSimplify", lambda node: as_replacement(node, node.inputs[0]))
broadcast_to.set_attr("TOperator", "broadcast_to")
broadcast_to.set_attr("FGradient", lambda node, dy: [make("sum_like", dy, node.inputs[0])])


def _concat_shape(node: Node, *shapes: Shape) -> Shape:
    if not shapes:
        raise ShapeError(f"{node.where} needs at least one input, got none")
    first = shapes[0]
    axis = normalize_axis(node, len(first), node.params["axis"])
    total: Extent = 0
    out = list(first)
    for s in shapes:
        if len(s) != len(first) or any(
            k != axis and isinstance(a, int) and isinstance(b, int) and a != b
            for k, (a, b) in enumerate(zip(s, out, strict=False))
        ):
            raise ShapeError(
                f"{node.where} needs shapes that differ at axis {axis} only, got "
                f"{show_shapes(shapes)}"
            )
        for k, n in enumerate(s):
            if k != axis:
                out[k] = agree(node, n, out[k], f"dimension {k}")
        total = total + s[axis]
    out[axis] = total
    return tuple(out)


def _concat_element(node: Node, index: Index, *readers: Reader) -> Expr:
    """Select the input that holds the element by a binary search; only its branch is evaluated."""
    axis = normalize_axis(node, len(index), node.params["axis"])
    starts: list[Extent] = list(accumulate((known_shape(e)[axis] for e in node.inputs), initial=0))

    def pick(low: int, high: int) -> Expr:
        if high - low == 1:
            moved = index[axis] - ast.size_of(starts[low]) if low else index[axis]
            return readers[low](*index[:axis], moved, *index[axis + 1 :])
        middle = (low + high) // 2
        return ast.where(
            index[axis] < ast.size_of(starts[middle]), pick(low, middle), pick(middle, high)
        )

    return pick(0, len(readers))


concat = movement(
    "concat", {"axis": 0}, "the inputs one after the other along axis", OpPattern.INJECTIVE, -1
)
concat.set_attr("FInferShape", _concat_shape)
concat.set_attr("FElement", _concat_element)
concat.set_attr("FKernel", concat_kernel)
concat.set_attr("FCompute", lambda node, *x: np.concatenate(x, node.params["axis"]))
concat.set_attr("FSimplify", lambda node: node.inputs[0] if len(node.inputs) == 1 else None)
add_aliases(concat, "concatenate")


def _concat_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Each input's part of it."""
    axis = normalize_axis(node, len(_output(node)), node.params["axis"])
    starts: list[Extent] = list(accumulate((known_shape(e)[axis] for e in node.inputs), initial=0))
    return [
        make("slice", dy, begin=tuple(start if k == axis else 0 for k in range(len(n))), size=n)
        for start, n in zip(starts, map(known_shape, node.inputs), strict=False)
    ]


concat.set_attr("FGradient", _concat_gradient)
