"""Gathers: reads at indices that are data, of slices, elements along an axis, and points.

They are index maps whose indices are read, too, so they fuse with the computation of the indices
and with what uses the result. `passkit.ops.indices` describes indices that are out of range.
"""

from __future__ import annotations

from collections.abc import Callable
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
    check_nonempty,
    clipped_position,
    index_mode,
    indexed_dtype,
    is_inside,
    zeros_of,
)
from passkit.values.dtype import DType, bool_, int64
from passkit.values.lazy import Lazy
from passkit.values.size import Extent, Shape, Size

if TYPE_CHECKING:
    from passkit.analysis import accesses
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr
else:
    accesses = Lazy("passkit.analysis.accesses")


def register_gather(
    name: str, params: dict[str, Any], doc: str, second_input: str = "indices"
) -> Op:
    """Register an operator that reads its first input, x, at positions that its second input says.

    Its output has the dtype of x; FInferType raises DTypeError unless the second input has
    integers.

    Args:
        name: The operator's name.
        params: The parameters and their defaults.
        doc: The operator's documentation.
        second_input: Name of the second input.

    Returns:
        The operator, which still needs FInferShape and FElement.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, or an
            attribute of it was set elsewhere.
        ArgumentError: If ``name`` is no identifier.
    """
    op = register_op(name, num_inputs=2, params=params, doc=doc)
    op.set_attr("FListInputNames", lambda params: ["x", second_input])
    op.set_attr("FInferType", indexed_dtype)
    op.set_attr("TOpPattern", OpPattern.INJECTIVE)
    op.set_attr("TOpCost", "light")
    return op


def _read_indexed(
    node: Node,
    read: Reader,
    indices: list[tuple[Expr, Extent]],
    full_index: Callable[[list[Expr]], Any],
) -> Expr:
    """Return the element at indices; 0 in mode "zero" if one is out of range.

    Args:
        node: Its parameter ``mode`` is "clip" or "zero".
        read: Reads the input.
        indices: Each index with the length of its axis; at least one.
        full_index: Returns an index into the input from the positions that the indices refer to.

    Raises:
        GraphError: If the mode is another.
    """
    positions = [clipped_position(i, n) for i, n in indices]
    value = read(*full_index([p for p, _ in positions]))
    if index_mode(node) == "clip":
        return value
    all_inside = is_inside(positions[0][1], indices[0][1])
    for (_, from_front), (_, n) in zip(positions[1:], indices[1:], strict=True):
        all_inside = all_inside & is_inside(from_front, n)
    return ast.where(all_inside, value, ast.const(0, value.dtype))


# gather: slices along an axis.


def _gather_axes(node: Node, rank: int, index_rank: int) -> tuple[int, int]:
    """Return the parameter ``axis``, not negative, and ``batch_dims``, the leading axes shared.

    ``rank`` is that of the input, ``index_rank`` that of the indices. ``node`` has the parameters
    ``axis`` and ``batch_dims``.

    Raises:
        ShapeError: If ``axis`` is no int or out of range, or ``batch_dims`` is no int (a bool is
            none) from 0 to the axis and the rank of the indices.
    """
    axis, batch = normalize_axis(node, rank, node.params["axis"]), node.params["batch_dims"]
    if type(batch) is not int or not 0 <= batch <= min(axis, index_rank):
        raise ShapeError(
            f"{node.where} needs batch_dims from 0 to {min(axis, index_rank)}, so that axis {axis} "
            f"comes after those that both inputs share, got {batch!r}"
        )
    return axis, batch


def _gather_shape(node: Node, shape: Shape, indices: Shape) -> Shape:
    """Infer the shape: that of the input with the axes of the indices in place of the axis.

    ``shape`` and ``indices`` are the shapes of the inputs; axes shared by ``batch_dims`` occur
    once. ``node`` has the parameters ``axis``, ``batch_dims`` and ``mode``. Symbolic extents of
    shared axes are recorded as guards.

    Raises:
        ShapeError: If ``axis`` or ``batch_dims`` is invalid, shared axes differ, or the axis is
            empty and the indices are not known to be.
        GraphError: If ``mode`` is neither "clip" nor "zero".
    """
    axis, batch = _gather_axes(node, len(shape), len(indices))
    index_mode(node)
    check_nonempty(node, shape[axis], indices, f"axis {axis}")
    shared = [agree(node, shape[k], indices[k], f"dimension {k}") for k in range(batch)]
    return (*shared, *shape[batch:axis], *indices[batch:], *shape[axis + 1 :])


def _gather_element(node: Node, index: Index, read: Reader, read_index: Reader) -> Expr:
    """Return the input's element at the position that the index along ``axis`` gives.

    Args:
        node: The node, with the parameters axis, batch_dims and mode.
        index: An expression for each axis of the output.
        read: Reads the input at an index.
        read_index: Reads the indices.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid; GraphError if ``mode`` is
    unknown.
    """
    shape, indices = (known_shape(e) for e in node.inputs)
    axis, batch = _gather_axes(node, len(shape), len(indices))
    end = axis + len(indices) - batch
    i = read_index(*index[:batch], *index[axis:end])
    return _read_indexed(
        node, read, [(i, shape[axis])], lambda position: (*index[:axis], *position, *index[end:])
    )


def _gather_gradient(node: Node, dy: Entry) -> list[Entry | None]:
    """Return the gradients of x and indices: dy added to zeros at the indices, and None.

    ``node`` is the forward node; ``dy`` is the gradient of its output.
    """
    x, indices = node.inputs
    return [make("index_add", zeros_of(x), indices, dy, **node.params), None]


gather = register_gather(
    "gather",
    params={"axis": 0, "batch_dims": 0, "mode": "clip"},
    doc="the slices of x at indices along axis; the first batch_dims axes of x and indices are "
    "shared. The axes of indices after these replace axis",
)
gather.set_attr("FInferShape", _gather_shape)
gather.set_attr("FElement", _gather_element)
gather.set_attr("FGradient", _gather_gradient)
add_aliases(gather, "embedding_lookup")


def _take(node: Node, x: Entry, indices: Entry) -> Entry:
    """Expand take to a gather of ``x``, flattened if the parameter ``axis`` of ``node`` is None.

    Source: numpy.take.

    Raises: ShapeError for an axis that is no int or out of range, or an empty one with indices;
    GraphError for another ``mode`` than "clip" and "zero".
    """
    axis, mode = node.params["axis"], node.params["mode"]
    if axis is None:
        return make("gather", make("reshape", x, shape=(-1,)), indices, mode=mode)
    return make("gather", x, indices, axis=axis, mode=mode)


composite(
    "take",
    inputs=["x", "indices"],
    expand=_take,
    doc="the slices of x at indices along axis, in place of that axis; without an axis, the "
    "elements of x in row-major order at indices",
    params={"axis": None, "mode": "clip"},
    types=indexed_dtype,
    TOpCost="light",
)


# take_along_axis: one index for each element.


def _take_along_axis_shape(node: Node, shape: Shape, indices: Shape) -> Shape:
    """Infer the shape: the length of the indices along the axis, other axes broadcast.

    ``shape`` and ``indices`` are the shapes of the inputs. ``node`` has the parameters ``axis`` and
    ``mode``.

    Raises:
        ShapeError: If ``axis`` is no int or out of range, the ranks differ, other axes do not
            broadcast, or the axis is empty and the indices are not known to be.
        GraphError: If ``mode`` is neither "clip" nor "zero".
    """
    axis = normalize_axis(node, len(shape), node.params["axis"])
    index_mode(node)
    if len(indices) != len(shape):
        raise ShapeError(
            f"{node.where} needs indices of rank {len(shape)}, as x has, got {show_shape(indices)}"
        )
    check_nonempty(node, shape[axis], indices, f"axis {axis}")
    other_axes = [(*s[:axis], 1, *s[axis + 1 :]) for s in (shape, indices)]
    out = broadcast_shapes(node, other_axes)
    return (*out[:axis], indices[axis], *out[axis + 1 :])


def _take_along_axis_element(node: Node, index: Index, read: Reader, read_index: Reader) -> Expr:
    """Return the input's element at the index along ``axis``, elsewhere at the same position.

    Args:
        node: The node, with the parameters axis and mode.
        index: An expression for each axis of the output.
        read: Reads the input at an index.
        read_index: Reads the indices.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid; GraphError if ``mode`` is
    unknown.
    """
    shape, indices = (known_shape(e) for e in node.inputs)
    axis = normalize_axis(node, len(shape), node.params["axis"])
    i = read_index(*accesses.broadcast_index(index, indices))
    aligned = accesses.broadcast_index(index, shape)
    return _read_indexed(
        node,
        read,
        [(i, shape[axis])],
        lambda position: (*aligned[:axis], *position, *aligned[axis + 1 :]),
    )


def _take_along_axis_gradient(node: Node, dy: Entry) -> list[Entry | None]:
    """Return the gradients of x and indices: dy added to zeros at the indices, and None.

    ``node`` is the forward node; ``dy`` is the gradient of its output.
    """
    x, indices = node.inputs
    return [make("add_along_axis", zeros_of(x), indices, dy, **node.params), None]


take_along_axis = register_gather(
    "take_along_axis",
    params={"axis": -1, "mode": "clip"},
    doc="for each element of indices the element of x at that position along axis, in the shape "
    "of indices; other axes broadcast",
)
take_along_axis.set_attr("FInferShape", _take_along_axis_shape)
take_along_axis.set_attr("FElement", _take_along_axis_element)
take_along_axis.set_attr("FGradient", _take_along_axis_gradient)


# gather_nd: elements, or slices, by coordinates.


def point_axes(node: Node, shape: Shape, indices: Shape) -> tuple[int, int]:
    """Return the number of shared leading axes, and the number of coordinates of a point.

    Args:
        node: A node with the parameter ``batch_dims``, or without it for 0.
        shape: Shape of the array that points refer to.
        indices: Shape of the indices, whose last axis holds the coordinates.

    Raises:
        ShapeError: If ``indices`` is a scalar's shape, there are more coordinates than axes that
            are not shared, their number is symbolic, or ``batch_dims`` is no int (a bool is none)
            from 0 to below the rank of the indices.
    """
    batch = node.params.get("batch_dims", 0)
    if type(batch) is not int or not 0 <= batch < max(len(indices), 1):
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


def _gather_nd_shape(node: Node, shape: Shape, indices: Shape) -> Shape:
    """Infer the shape: that of the points, then the axes that coordinates leave.

    ``shape`` and ``indices`` are the shapes of the inputs. ``node`` has the parameters
    ``batch_dims`` and ``mode``.

    Raises:
        ShapeError: If coordinates or ``batch_dims`` do not fit the shapes, shared axes differ, or
            an axis is empty and the points are not known to be none.
        GraphError: If ``mode`` is neither "clip" nor "zero".
    """
    batch, count = point_axes(node, shape, indices)
    index_mode(node)
    for k in range(batch, batch + count):
        check_nonempty(node, shape[k], indices[:-1], f"axis {k}")
    shared = [agree(node, shape[k], indices[k], f"dimension {k}") for k in range(batch)]
    return (*shared, *indices[batch:-1], *shape[batch + count :])


def _gather_nd_element(node: Node, index: Index, read: Reader, read_index: Reader) -> Expr:
    """Return the input's element at the point whose coordinates are a row of the indices.

    Args:
        node: The node, with the parameters batch_dims and mode.
        index: An expression for each axis of the output.
        read: Reads the input at an index.
        read_index: Reads the indices.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid; GraphError if ``mode`` is
    unknown.
    """
    shape, indices = (known_shape(e) for e in node.inputs)
    batch, count = point_axes(node, shape, indices)
    end = len(indices) - 1
    coordinates = [
        (read_index(*index[:end], ast.size_of(k)), shape[batch + k]) for k in range(count)
    ]
    if not coordinates:
        return read(*index[:batch], *index[end:])
    return _read_indexed(
        node, read, coordinates, lambda point: (*index[:batch], *point, *index[end:])
    )


def _gather_nd_gradient(node: Node, dy: Entry) -> list[Entry | None]:
    """Return the gradients of x and indices: dy added to zeros at the points, and None.

    ``node`` is the forward node; ``dy`` is the gradient of its output.
    """
    x, indices = node.inputs
    return [make("tensor_scatter_nd_add", zeros_of(x), indices, dy, **node.params), None]


gather_nd = register_gather(
    "gather_nd",
    params={"batch_dims": 0, "mode": "clip"},
    doc="the elements or slices of x at the points whose coordinates are the last axis of "
    "indices; the first batch_dims axes are shared",
)
gather_nd.set_attr("FInferShape", _gather_nd_shape)
gather_nd.set_attr("FElement", _gather_nd_element)
gather_nd.set_attr("FGradient", _gather_nd_gradient)


# Sequences of different lengths: reverse_sequence and sequence_mask.


def _reverse_sequence_axes(node: Node, rank: int) -> tuple[int, int]:
    """Return the parameters ``axis`` and ``batch_axis`` as ints from 0 to below ``rank``.

    ``node`` has the parameters ``axis`` and ``batch_axis``.

    Raises: ShapeError if one is no int or out of range.
    """
    axis = normalize_axis(node, rank, node.params["axis"])
    batch_axis = normalize_axis(node, rank, node.params["batch_axis"])
    return axis, batch_axis


def _reverse_sequence_shape(node: Node, shape: Shape, lengths: Shape) -> Shape:
    """Infer the shape, ``shape`` of the first input; ``lengths`` is the shape of the second.

    ``node`` has the parameters ``axis`` and ``batch_axis``.

    Raises:
        ShapeError: If there is not one length for each element of ``batch_axis`` in a vector, or
            both axes are equal, no int or out of range.
    """
    axis, batch_axis = _reverse_sequence_axes(node, len(shape))
    if axis == batch_axis or len(lengths) != 1:
        raise ShapeError(
            f"{node.where} needs one length for each element of batch_axis {batch_axis}, an axis "
            f"other than {axis}, got lengths {show_shape(lengths)} for {show_shape(shape)}"
        )
    agree(node, shape[batch_axis], lengths[0], "the number of lengths")
    return shape


def _reverse_sequence_element(node: Node, index: Index, read: Reader, read_length: Reader) -> Expr:
    """Return the element at the mirrored position in the first ``length`` of its example.

    Later elements stay; a length beyond the axis counts as that of the axis, a negative one as 0.

    Args:
        node: The node, with the parameters axis and batch_axis.
        index: An expression for each axis of the output.
        read: Reads the input at an index.
        read_length: Reads the vector of lengths.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    shape = known_shape(node.inputs[0])
    axis, batch_axis = _reverse_sequence_axes(node, len(shape))
    length = ast.cast(read_length(index[batch_axis]), "int64")
    length = ast.minimum(length, ast.size_of(shape[axis]))
    i = index[axis]
    reversed_position = ast.where(i < length, length - 1 - i, i)
    # Clamp, so that the range of the index is known whatever the length says.
    position = ast.minimum(ast.maximum(reversed_position, 0), ast.size_of(shape[axis] - 1))
    return read(*index[:axis], position, *index[axis + 1 :])


reverse_sequence = register_gather(
    "reverse_sequence",
    params={"axis": 1, "batch_axis": 0},
    doc="x with the first lengths[b] elements along axis reversed, for each index b of batch_axis",
    second_input="lengths",
)
reverse_sequence.set_attr("FInferShape", _reverse_sequence_shape)
reverse_sequence.set_attr("FElement", _reverse_sequence_element)
reverse_sequence.set_attr(
    "FGradient",
    lambda node, dy: [make("reverse_sequence", dy, node.inputs[1], **node.params), None],
)


def _sequence_mask_shape(node: Node, lengths: Shape) -> Shape:
    """Infer the shape: that of the lengths, and the parameter ``maxlen`` of ``node``.

    Raises: ShapeError if ``maxlen`` is neither an int >= 0 nor a Size.
    """
    return (*lengths, count_param(node, "maxlen"))


def _sequence_mask_dtype(node: Node, lengths: DType) -> DType:
    """Infer the dtype, bool.

    Raises: DTypeError, naming ``node``, if ``lengths``, the input's dtype, is no integer.
    """
    check_indices(node, lengths, "lengths")
    return bool_


def _sequence_mask_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return whether the position in the last axis of ``index`` is below the length.

    ``read`` reads the input, the lengths, at the other axes. ``node`` is not used.
    """
    return index[-1] < ast.cast(read(*index[:-1]), "int64")


sequence_mask = register_op(
    "sequence_mask",
    num_inputs=1,
    params={"maxlen": REQUIRED},
    doc="whether each position from 0 to below maxlen, in a new last axis, is below the length in "
    "x, as bool",
)
sequence_mask.set_attr("FInferShape", _sequence_mask_shape)
sequence_mask.set_attr("FInferType", _sequence_mask_dtype)
sequence_mask.set_attr("FElement", _sequence_mask_element)
sequence_mask.set_attr("TOpPattern", OpPattern.INJECTIVE)
sequence_mask.set_attr("TOpCost", "light")


# invert_permutation.


def _invert_permutation_dtype(node: Node, x: DType) -> DType:
    """Infer the dtype, int64.

    Raises: DTypeError, naming ``node``, if ``x``, the input's dtype, is no integer.
    """
    check_indices(node, x, "x")
    return int64


def _invert_permutation_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, ``shape`` of the input.

    Raises: ShapeError, naming ``node``, if it is no vector.
    """
    if len(shape) != 1:
        raise ShapeError(f"{node.where} needs a vector, got {show_shape(shape)}")
    return shape


def _invert_permutation(node: Node, x: Entry) -> Entry:
    """Expand invert_permutation: scatter the position of each number to the number's position.

    ``x`` is a vector of integers. Numbers outside of its positions, negative ones too, are dropped;
    a position that no number names gets 0. ``node`` is not used.

    Raises: ShapeError if a rank is unknown.
    """
    count = known_shape(x)[0]
    positions = make("arange", start=0, stop=count, dtype="int64")
    positions = make("reshape", positions, shape=(1, 1, count, 1))
    rows = make("reshape", make("cast", x, dtype="int64"), shape=(1, count))
    zeros = make("zeros_like", positions)
    out = make("scatter_rows", zeros, rows, positions, kind="update")
    return make("reshape", out, shape=(count,))


composite(
    "invert_permutation",
    inputs=["x"],
    expand=_invert_permutation,
    doc="the inverse permutation of the vector x: element x[k] of the result is k, as int64",
    shape=_invert_permutation_shape,
    types=_invert_permutation_dtype,
)
