"""Reads at indices that are data: rows of a table, elements along an axis, points.

They are index maps whose indices are read too, so they fuse with what computes the indices and
with what is done to the result. `passkit.ops.indices` says what an index out of range reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import agree, broadcast_shapes, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, Op, OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.helpers import add_aliases, count_param, make, normalize_axis
from passkit.ops.indices import (
    check_indices,
    indexed_type,
    inside,
    mode_of,
    need_elements,
    position,
    zeros_of,
)
from passkit.values.dtype import DType, bool_, int64
from passkit.values.lazy import Lazy
from passkit.values.size import Extent, Shape, Size

if TYPE_CHECKING:
    from passkit.ast import Expr
    from passkit.space import reads
    from passkit.space.reads import Index, Reader
else:
    reads = Lazy("passkit.space.reads")


def lookup(name: str, params: dict[str, Any], doc: str, second: str = "indices") -> Op:
    """Register an operator that reads its first input where its second says."""
    op = register_op(name, num_inputs=2, params=params, doc=doc)
    op.set_attr("FListInputNames", lambda params: ["x", second])
    op.set_attr("FInferType", indexed_type)
    op.set_attr("TOpPattern", OpPattern.INJECTIVE)
    op.set_attr("TOpCost", "light")
    return op


def _found(node: Node, read: Reader, at: list[tuple[Expr, Extent]], where: Any) -> Expr:
    """What ``read`` has at ``where(positions)``; 0 where mode is "zero" and an index is outside."""
    placed = [position(i, n) for i, n in at]
    value = read(*where([p for p, _ in placed]))
    if mode_of(node) == "clip":
        return value
    there = inside(placed[0][1], at[0][1])
    for (_, front), (_, n) in zip(placed[1:], at[1:], strict=True):
        there = there & inside(front, n)
    return ast.where(there, value, ast.const(0, value.dtype))


# gather: whole slices along an axis


def _gather_axes(node: Node, rank: int, indices: int) -> tuple[int, int]:
    """The axis, and the number of leading axes that both inputs share."""
    axis, batch = normalize_axis(node, rank, node.params["axis"]), node.params["batch_dims"]
    if not isinstance(batch, int) or not 0 <= batch <= min(axis, indices):
        raise ShapeError(
            f"{node.where} needs batch_dims from 0 to {min(axis, indices)}, so that axis {axis} "
            f"comes after those that both inputs share, got {batch!r}"
        )
    return axis, batch


def _gather_shape(node: Node, shape: Shape, indices: Shape) -> Shape:
    """The input's shape with the indices' in place of the axis."""
    axis, batch = _gather_axes(node, len(shape), len(indices))
    mode_of(node)
    need_elements(node, shape[axis], indices, f"axis {axis}")
    shared = [agree(node, shape[k], indices[k], f"dimension {k}") for k in range(batch)]
    return (*shared, *shape[batch:axis], *indices[batch:], *shape[axis + 1 :])


def _gather_element(node: Node, index: Index, read: Reader, read_index: Reader) -> Expr:
    shape, indices = (known_shape(e) for e in node.inputs)
    axis, batch = _gather_axes(node, len(shape), len(indices))
    end = axis + len(indices) - batch
    i = read_index(*index[:batch], *index[axis:end])
    return _found(node, read, [(i, shape[axis])], lambda p: (*index[:axis], *p, *index[end:]))


def _gather_gradient(node: Node, dy: Entry) -> list[Entry | None]:
    x, indices = node.inputs
    return [make("index_add", zeros_of(x), indices, dy, **node.params), None]


gather = lookup(
    "gather",
    {"axis": 0, "batch_dims": 0, "mode": "clip"},
    "the slices of x along axis that indices name; the first batch_dims axes go together",
)
gather.set_attr("FInferShape", _gather_shape)
gather.set_attr("FElement", _gather_element)
gather.set_attr("FGradient", _gather_gradient)
add_aliases(gather, "embedding_lookup")


def _take(node: Node, x: Entry, indices: Entry) -> Entry:
    axis, mode = node.params["axis"], node.params["mode"]
    if axis is None:
        return make("gather", make("reshape", x, shape=(-1,)), indices, mode=mode)
    return make("gather", x, indices, axis=axis, mode=mode)


composite(
    "take",
    ("x", "indices"),
    _take,
    "the slices of x along axis that indices name; without an axis, elements of x in order",
    {"axis": None, "mode": "clip"},
    types=indexed_type,
    TOpCost="light",
)


# take_along_axis: one index an element


def _along_shape(node: Node, shape: Shape, indices: Shape) -> Shape:
    """The indices' shape; the other dimensions broadcast. Raises: ShapeError for other ranks."""
    axis = normalize_axis(node, len(shape), node.params["axis"])
    mode_of(node)
    if len(indices) != len(shape):
        raise ShapeError(
            f"{node.where} needs indices of rank {len(shape)}, as x has, got {show_shape(indices)}"
        )
    need_elements(node, shape[axis], indices, f"axis {axis}")
    rest = [(*s[:axis], 1, *s[axis + 1 :]) for s in (shape, indices)]
    out = broadcast_shapes(node, rest)
    return (*out[:axis], indices[axis], *out[axis + 1 :])


def _along_element(node: Node, index: Index, read: Reader, read_index: Reader) -> Expr:
    shape, indices = (known_shape(e) for e in node.inputs)
    axis = normalize_axis(node, len(shape), node.params["axis"])
    i = read_index(*reads.aligned(index, indices))
    here = reads.aligned(index, shape)
    at = [(i, shape[axis])]
    return _found(node, read, at, lambda p: (*here[:axis], *p, *here[axis + 1 :]))


def _along_gradient(node: Node, dy: Entry) -> list[Entry | None]:
    x, indices = node.inputs
    return [make("add_along_axis", zeros_of(x), indices, dy, **node.params), None]


along = lookup(
    "take_along_axis",
    {"axis": -1, "mode": "clip"},
    "for each element of indices that of x at this position of the axis",
)
along.set_attr("FInferShape", _along_shape)
along.set_attr("FElement", _along_element)
along.set_attr("FGradient", _along_gradient)


# gather_nd: points, or slices, by coordinates


def point_axes(node: Node, shape: Shape, indices: Shape) -> tuple[int, int]:
    """The number of shared leading axes, and of coordinates of a point.

    Raises: ShapeError where x has fewer axes, or the number of coordinates is not known.
    """
    batch = node.params.get("batch_dims", 0)
    if not isinstance(batch, int) or not 0 <= batch < max(len(indices), 1):
        raise ShapeError(
            f"{node.where} needs batch_dims from 0 to {len(indices) - 1}, got {batch!r}"
        )
    if not indices:
        raise ShapeError(f"{node.where} needs indices with an axis of coordinates, got a scalar")
    count = indices[-1]
    if isinstance(count, Size) or not 0 <= count <= len(shape) - batch:
        raise ShapeError(
            f"{node.where} needs 0 to {len(shape) - batch} coordinates in the last axis of "
            f"indices, got {show_shape(indices)} for {show_shape(shape)}"
        )
    return batch, count


def _points_shape(node: Node, shape: Shape, indices: Shape) -> Shape:
    batch, count = point_axes(node, shape, indices)
    mode_of(node)
    for k in range(batch, batch + count):
        need_elements(node, shape[k], indices[:-1], f"axis {k}")
    shared = [agree(node, shape[k], indices[k], f"dimension {k}") for k in range(batch)]
    return (*shared, *indices[batch:-1], *shape[batch + count :])


def _points_element(node: Node, index: Index, read: Reader, read_index: Reader) -> Expr:
    shape, indices = (known_shape(e) for e in node.inputs)
    batch, count = point_axes(node, shape, indices)
    lead = len(indices) - 1
    at = [
        (read_index(*index[:lead], ast.size_of(k)), shape[batch + k]) for k in range(count)
    ]
    if not at:
        return read(*index[:batch], *index[lead:])
    return _found(node, read, at, lambda p: (*index[:batch], *p, *index[lead:]))


def _points_gradient(node: Node, dy: Entry) -> list[Entry | None]:
    x, indices = node.inputs
    return [make("tensor_scatter_nd_add", zeros_of(x), indices, dy, **node.params), None]


points = lookup(
    "gather_nd",
    {"batch_dims": 0, "mode": "clip"},
    "the elements, or slices, of x whose coordinates are the last axis of indices",
)
points.set_attr("FInferShape", _points_shape)
points.set_attr("FElement", _points_element)
points.set_attr("FGradient", _points_gradient)


# reverse_sequence, sequence_mask


def _lengths_shape(node: Node, shape: Shape, lengths: Shape) -> Shape:
    """The input's shape. Raises: ShapeError when there is not one length for each batch."""
    axis, batch = (normalize_axis(node, len(shape), node.params[k]) for k in ("axis", "batch_axis"))
    if axis == batch or len(lengths) != 1:
        raise ShapeError(
            f"{node.where} needs one length for each element of batch_axis {batch}, an axis other "
            f"than {axis}, got lengths {show_shape(lengths)} for {show_shape(shape)}"
        )
    agree(node, shape[batch], lengths[0], "the number of lengths")
    return shape


def _reverse_element(node: Node, index: Index, read: Reader, read_length: Reader) -> Expr:
    shape = known_shape(node.inputs[0])
    axis, batch = (normalize_axis(node, len(shape), node.params[k]) for k in ("axis", "batch_axis"))
    length = ast.minimum(ast.cast(read_length(index[batch]), "int64"), ast.size_of(shape[axis]))
    i = index[axis]
    at = ast.where(i < length, length - 1 - i, i)
    bounded = ast.minimum(ast.maximum(at, 0), ast.size_of(shape[axis] - 1))
    return read(*index[:axis], bounded, *index[axis + 1 :])


reverse = lookup(
    "reverse_sequence",
    {"axis": 1, "batch_axis": 0},
    "x with the first lengths[b] elements of axis reversed, for each b of batch_axis",
    "lengths",
)
reverse.set_attr("FInferShape", _lengths_shape)
reverse.set_attr("FElement", _reverse_element)
reverse.set_attr(
    "FGradient",
    lambda node, dy: [make("reverse_sequence", dy, node.inputs[1], **node.params), None],
)


def _mask_shape(node: Node, lengths: Shape) -> Shape:
    return (*lengths, count_param(node, "maxlen"))


def _mask_type(node: Node, lengths: DType) -> DType:
    check_indices(node, lengths, "lengths")
    return bool_


def _mask_element(node: Node, index: Index, read: Reader) -> Expr:
    return index[-1] < ast.cast(read(*index[:-1]), "int64")


mask = register_op(
    "sequence_mask",
    num_inputs=1,
    params={"maxlen": REQUIRED},
    doc="whether a position below maxlen comes before each of the lengths, in a new last axis",
)
mask.set_attr("FInferShape", _mask_shape)
mask.set_attr("FInferType", _mask_type)
mask.set_attr("FElement", _mask_element)
mask.set_attr("TOpPattern", OpPattern.INJECTIVE)
mask.set_attr("TOpCost", "light")

def _permutation_type(node: Node, x: DType) -> DType:
    check_indices(node, x, "x")
    return int64


def _permutation_shape(node: Node, shape: Shape) -> Shape:
    if len(shape) != 1:
        raise ShapeError(f"{node.where} needs a vector, got {show_shape(shape)}")
    return shape


def _inverse(node: Node, x: Entry) -> Entry:
    """Each number's place, written where the number points."""
    count = known_shape(x)[0]
    places = make("arange", start=0, stop=count, dtype="int64")
    places = make("reshape", places, shape=(1, 1, count, 1))
    rows = make("reshape", make("cast", x, dtype="int64"), shape=(1, count))
    out = make("scatter_rows", make("zeros_like", places), rows, places, kind="update")
    return make("reshape", out, shape=(count,))


composite(
    "invert_permutation",
    ("x",),
    _inverse,
    "the permutation that undoes x, which tells where each number stands",
    shape=_permutation_shape,
    types=_permutation_type,
)
