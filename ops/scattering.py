"""Scatters: updates written into an array at indices that are data.

They expand to the kernel `scatter_rows` and to the computation of row numbers, which fuses. Updates
that meet at one element are applied in their order, so results are reproducible; "update" keeps the
last. Floats of 16 bits are accumulated in float32. `passkit.ops.indices` describes indices that are
out of range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from passkit.errors import ShapeError
from passkit.graph.call import convert
from passkit.graph.infer import agree, broadcast_shapes, show_shape
from passkit.graph.node import Entry, Node, known_dtype, known_shape
from passkit.graph.op import REQUIRED, Op, OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.gathering import point_axes
from passkit.ops.helpers import add_aliases, check_kinds, make, normalize_axis, parse_extents
from passkit.ops.indices import (
    check_indices,
    clipped_positions,
    index_mode,
    indexed_dtype,
    zeros_of,
)
from passkit.ops.scatter_kernels import COMBINE
from passkit.values.dtype import DType, dtype_of, float32, is_narrow
from passkit.values.size import Shape, numel

Array = Any

ACCUMULATING = ("add", "sub", "mul")
"""Kinds of updates that floats of 16 bits accumulate in float32 for."""


# Where updates go, in NumPy: an advanced index and the updates that are not dropped.


def _keep_valid(
    node: Node, valid: Array, index: tuple[Array, ...], updates: Array
) -> tuple[Any, Array]:
    """Return index and updates without those whose index is out of range, in NumPy.

    Args:
        node: The scatter; in its mode "clip" all stay.
        valid: A mask of the indices in range.
        index: The index arrays, which broadcast to the mask.
        updates: The updates, whose first axes are those of the mask.

    Returns:
        The index, a tuple of arrays, and the updates; the arguments themselves if all stay.

    Raises:
        GraphError: If ``mode`` is neither "clip" nor "zero".
    """
    if index_mode(node) == "clip" or valid.all():
        return index, updates
    return tuple(np.broadcast_to(a, valid.shape)[valid] for a in index), updates[valid]


def _slice_index(node: Node, x: Array, indices: Array, updates: Array) -> Any:
    """Return an index for NumPy and updates for slices of ``x`` along ``axis``.

    ``batch_dims`` leading axes are shared by x and indices. All are arrays; updates out of range
    are left out, or in mode "clip" go to the nearest slice. ``node`` has the parameters ``axis``,
    ``batch_dims`` and ``mode``.

    Raises: ShapeError if a parameter is invalid; GraphError if ``mode`` is unknown.
    """
    axis, batch = normalize_axis(node, x.ndim, node.params["axis"]), node.params["batch_dims"]
    positions, valid = clipped_positions(indices, x.shape[axis])
    inner = x.shape[batch:axis]
    ones = (1,) * len(inner)
    aligned_shape = (*positions.shape[:batch], *ones, *positions.shape[batch:])
    shape = (*positions.shape[:batch], *inner, *positions.shape[batch:])
    positions, valid = (
        np.broadcast_to(a.reshape(aligned_shape), shape) for a in (positions, valid)
    )
    grid = _open_grid(shape, len(shape))[:axis]
    return _keep_valid(node, valid, (*grid, positions), updates)


def _element_index(node: Node, x: Array, indices: Array, updates: Array) -> Any:
    """Return an index for NumPy and updates for single elements of ``x`` along ``axis``.

    Where another axis of x has length 1 and the updates are longer, they meet. ``indices`` are
    positions along the axis. All are arrays; updates out of range are left out, or in mode "clip"
    go to the nearest element. ``node`` has the parameters ``axis`` and ``mode``.

    Raises: ShapeError if a parameter is invalid; GraphError if ``mode`` is unknown.
    """
    axis = normalize_axis(node, x.ndim, node.params["axis"])
    positions, valid = clipped_positions(indices, x.shape[axis])
    shape = updates.shape
    positions, valid = (np.broadcast_to(a, shape) for a in (positions, valid))
    lengths = [n if m != 1 else 1 for n, m in zip(shape, x.shape, strict=True)]
    grid = _open_grid(lengths, x.ndim)
    grid[axis] = positions
    return _keep_valid(node, valid, tuple(grid), updates)


def _point_index(node: Node, x: Array, indices: Array, updates: Array) -> Any:
    """Return an index for NumPy and updates for points of ``x``, or slices.

    The last axis of the indices has the coordinates of a point. All are arrays; updates out of
    range are left out, or in mode "clip" go to the nearest point. ``node`` has the parameters
    ``batch_dims`` and ``mode``.

    Raises: ShapeError if there are more coordinates than axes or ``batch_dims`` is invalid;
    GraphError if ``mode`` is unknown.
    """
    batch, count = point_axes(node, x.shape, indices.shape)
    points = indices.shape[:-1]
    valid = np.ones(points, bool)
    grid = _open_grid(points[:batch], len(points))
    for k in range(count):
        positions, k_valid = clipped_positions(indices[..., k], x.shape[batch + k])
        grid.append(positions)
        valid = valid & k_valid
    if not grid:  # without coordinates each update is for all of x
        index = (np.zeros((*points, 1), np.int64),)
        return _keep_valid(node, valid[..., None], index, updates[..., None])
    return _keep_valid(node, valid, tuple(grid), updates)


def _open_grid(lengths: Any, rank: int) -> list[Array]:
    """Return numbers 0, 1, … along the first axes, which broadcast together to ``rank`` axes.

    ``lengths`` has the length of each of these; there is an array for each.
    """
    grid = []
    for k, n in enumerate(lengths):
        trailing = (1,) * (rank - k - 1)
        grid.append(np.arange(n).reshape(-1, *trailing))
    return grid


def _write(kind: str, x: Array, index: tuple[Array, ...], updates: Array) -> Array:
    """Return a copy of ``x`` with updates at an advanced index, combined as ``kind`` says.

    "update" replaces, the last of several at one place; "add", "sub", "mul", "min" and "max"
    combine with the elements. Sums, differences and products of 16-bit floats are accumulated in
    float32.
    """
    is_narrow_float = dtype_of(x.dtype).is_float and x.dtype.itemsize < 4
    accumulate = is_narrow_float and kind in ACCUMULATING
    out = x.astype(np.float32) if accumulate else np.array(x)
    if kind == "update":
        out[index] = updates
    else:
        COMBINE[kind].at(out, index, updates.astype(out.dtype))
    return out.astype(x.dtype)


# The shape that updates must have.


def _slice_updates_shape(node: Node, x: Shape, indices: Shape) -> Shape:
    """Return the shape that updates of slices along ``axis`` must have.

    ``x`` and ``indices`` are shapes. ``node`` has the parameters ``axis`` and ``batch_dims``.

    Raises: ShapeError if ``axis`` is no int or out of range, or ``batch_dims`` no int (a bool is
    none) from 0 to it and the rank of the indices.
    """
    axis, batch = normalize_axis(node, len(x), node.params["axis"]), node.params["batch_dims"]
    if type(batch) is not int or not 0 <= batch <= min(axis, len(indices)):
        raise ShapeError(
            f"{node.where} needs batch_dims from 0 to {min(axis, len(indices))}, got {batch!r}"
        )
    return (*x[:axis], *indices[batch:], *x[axis + 1 :])


def _element_updates_shape(node: Node, x: Shape, indices: Shape) -> Shape:
    """Return the shape that updates of single elements along ``axis`` must have.

    ``x`` and ``indices`` are shapes. ``node`` has the parameter ``axis``.

    Raises: ShapeError if they differ in rank or do not broadcast, or the axis is no int or out of
    range.
    """
    axis = normalize_axis(node, len(x), node.params["axis"])
    if len(indices) != len(x):
        raise ShapeError(
            f"{node.where} needs indices of rank {len(x)}, as x has, got {show_shape(indices)}"
        )
    other_axes = [(*s[:axis], 1, *s[axis + 1 :]) for s in (x, indices)]
    out = broadcast_shapes(node, other_axes)
    return (*out[:axis], indices[axis], *out[axis + 1 :])


def _point_updates_shape(node: Node, x: Shape, indices: Shape) -> Shape:
    """Return the shape that updates of points must have: (*indices[:-1], *x[first:]).

    ``x`` and ``indices`` are shapes. The parameter ``batch_dims`` of ``node`` is the number of axes
    that both share; ``first`` is the sum of it and the number of coordinates of a point, which is
    the last extent of the indices.

    Raises: ShapeError if there are more coordinates than axes, their number is unknown, or
    ``batch_dims`` is invalid.
    """
    batch, count = point_axes(node, x, indices)
    return (*indices[:-1], *x[batch + count :])


# Arguments of scatter_rows: x as (a, b, n, c), and the row of each update, (a, m).


def _slice_rows(node: Node, x: Entry, indices: Entry, updates: Entry) -> tuple[Shape, Entry]:
    """Return the shape to give x for scatter_rows, and the row number of each slice.

    The numbers are an int64 entry (batch, number of indices); ``updates`` is not used. ``node`` has
    the parameters ``axis``, ``batch_dims`` and ``mode``.

    Raises: ShapeError if ``axis`` is no int or out of range, or a rank is unknown; GraphError if
    ``mode`` is unknown.
    """
    shape, index_shape = known_shape(x), known_shape(indices)
    axis, batch = normalize_axis(node, len(shape), node.params["axis"]), node.params["batch_dims"]
    groups = (shape[:batch], shape[batch:axis], shape[axis : axis + 1], shape[axis + 1 :])
    rows = make(
        "rows_of_points",
        make("expand_dims", indices, axis=-1),
        shape=(shape[axis],),
        mode=index_mode(node),
    )
    count = numel(index_shape[batch:])
    rows_shape = tuple(map(numel, groups))
    return rows_shape, make("reshape", rows, shape=(rows_shape[0], count))


def _element_rows(node: Node, x: Entry, indices: Entry, updates: Entry) -> tuple[Shape, Entry]:
    """Return the shape to give x for scatter_rows, and the row number of each element.

    ``indices`` are positions along ``axis``. The numbers are an int64 entry (1, number of updates).
    ``node`` has the parameters ``axis`` and ``mode``.

    Raises: ShapeError if a rank is unknown, ``axis`` is no int or out of range, or the indices do
    not broadcast; GraphError if ``mode`` is unknown.
    """
    shape, updates_shape = known_shape(x), known_shape(updates)
    rows = make(
        "rows_along_axis",
        indices,
        shape=shape,
        updates=updates_shape,
        axis=node.params["axis"],
        mode=index_mode(node),
    )
    return (1, 1, numel(shape), 1), make("reshape", rows, shape=(1, numel(updates_shape)))


def _point_rows(node: Node, x: Entry, indices: Entry, updates: Entry) -> tuple[Shape, Entry]:
    """Return the shape to give x for scatter_rows, and the row number of each point.

    ``indices`` have the coordinates of points in their last axis. The numbers are an int64 entry
    (batch, number of points); ``updates`` is not used. ``node`` has the parameters ``batch_dims``
    and ``mode``.

    Raises: ShapeError if the coordinates do not fit x, ``batch_dims`` is invalid, or a rank is
    unknown; GraphError if ``mode`` is unknown.
    """
    shape, index_shape = known_shape(x), known_shape(indices)
    batch, count = point_axes(node, shape, index_shape)
    point_shape = shape[batch : batch + count]
    rows = make("rows_of_points", indices, shape=point_shape, mode=index_mode(node))
    rows_shape = (numel(shape[:batch]), 1, numel(point_shape), numel(shape[batch + count :]))
    return rows_shape, make("reshape", rows, shape=(rows_shape[0], numel(index_shape[batch:-1])))


@frozen
class Addressing:
    """A way in which indices address parts of an array.

    Attributes:
        params: parameters of scatters, with their defaults.
        numpy_index: returns an advanced index of NumPy and the updates that are not dropped.
        updates_shape: returns the shape that updates must have.
        rows: returns the shape of x for ``scatter_rows`` and the row of each update.
        gather: name of the operator that reads the parts.
        scatter: name of the operators that write the parts, with the kind of update to fill in.
    """

    params: dict[str, Any]
    numpy_index: Callable[..., Any]
    updates_shape: Callable[..., Shape]
    rows: Callable[..., tuple[Shape, Entry]]
    gather: str
    scatter: str


SLICES = Addressing(
    params={"axis": 0, "batch_dims": 0, "mode": "zero"},
    numpy_index=_slice_index,
    updates_shape=_slice_updates_shape,
    rows=_slice_rows,
    gather="gather",
    scatter="index_{kind}",
)
ELEMENTS = Addressing(
    params={"axis": -1, "mode": "zero"},
    numpy_index=_element_index,
    updates_shape=_element_updates_shape,
    rows=_element_rows,
    gather="take_along_axis",
    scatter="{kind}_along_axis",
)
POINTS = Addressing(
    params={"batch_dims": 0, "mode": "zero"},
    numpy_index=_point_index,
    updates_shape=_point_updates_shape,
    rows=_point_rows,
    gather="gather_nd",
    scatter="tensor_scatter_nd_{kind}",
)


# Registration.


def register_scatter(
    name: str,
    addressing: Addressing,
    kind: str,
    doc: str,
    gradient: Callable[..., list[Entry | None]],
    aliases: str = "",
) -> Op:
    """Register an operator that combines updates with parts of its first input.

    Args:
        name: The operator's name.
        addressing: How indices address the parts.
        kind: How an element and an update are combined, one of `scatter_rows`'s kinds.
        doc: The operator's documentation.
        gradient: The operator's FGradient.
        aliases: Further names, separated by spaces.

    Returns:
        The registered operator.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, an
            attribute of it was set elsewhere, or an alias names another.
        ArgumentError: If ``name`` or an alias is no identifier.
    """

    def infer_shape(node: Node, x: Shape, indices: Shape, updates: Shape) -> Shape:
        """Infer the shape, that of x; all arguments but ``node`` are shapes.

        Raises: ShapeError if updates, indices or the parameters of the addressing do not fit,
        GraphError if ``mode`` is unknown.
        """
        index_mode(node)
        expected = addressing.updates_shape(node, x, indices)
        if len(expected) != len(updates):
            raise ShapeError(
                f"{node.where} needs updates of shape {show_shape(expected)}, got "
                f"{show_shape(updates)}"
            )
        for k, (n, m) in enumerate(zip(expected, updates, strict=True)):
            agree(node, n, m, f"dimension {k} of the updates")
        return x

    def infer_dtype(node: Node, x: DType, indices: DType, updates: DType) -> DType:
        """Infer the dtype, that of x and updates.

        Raises: DTypeError, naming ``node``, if they differ, ``indices`` is no integer, or bools are
        subtracted.
        """
        if kind == "sub":
            check_kinds(node, "iufc", x)
        return indexed_dtype(node, x, indices, updates)

    op = register_op(name, num_inputs=3, params=addressing.params, doc=doc)
    op.set_attr("FListInputNames", lambda params: ["x", "indices", "updates"])
    op.set_attr("FInferShape", infer_shape)
    op.set_attr("FInferType", infer_dtype)
    op.set_attr("FCompute", _compute_scatter(addressing, kind))
    op.set_attr("FExpand", _expand_scatter(addressing, kind))
    op.set_attr("FGradient", gradient)
    op.set_attr("TOpPattern", OpPattern.OPAQUE)
    add_aliases(op, aliases)
    return op


def _compute_scatter(addressing: Addressing, kind: str) -> Callable[..., Array]:
    """Return the FCompute of a scatter of a kind: NumPy's advanced indexing by ``addressing``."""

    def compute(node: Node, x: Array, indices: Array, updates: Array) -> Array:
        """Return a copy of the array x with updates combined at indices, in NumPy.

        ``node`` has the parameters of the addressing. Empty x or updates leave the copy as it is.

        Raises: ShapeError if a parameter is invalid, GraphError if ``mode`` is; neither for empty x
        or updates.
        """
        if not x.size or not updates.size:
            return np.array(x)
        index, valid_updates = addressing.numpy_index(node, x, indices, updates)
        if addressing is POINTS and point_axes(node, x.shape, indices.shape) == (0, 0):
            shape = index[0].shape + x.shape
            return _write(kind, x[None], index, valid_updates.reshape(shape))[0]
        return _write(kind, x, index, valid_updates)

    return compute


def _expand_scatter(addressing: Addressing, kind: str) -> Callable[..., Entry]:
    """Return the FExpand of a scatter of a kind: ``scatter_rows`` on reshaped inputs.

    ``addressing`` says what the indices address.
    """

    def expand(node: Node, x: Entry, indices: Entry, updates: Entry) -> Entry:
        """Reshape x into rows, and apply ``scatter_rows``.

        The result is x with ``updates`` combined at ``indices``. Floats of 16 bits are combined in
        float32. ``node`` has the parameters of the addressing.

        Raises: ShapeError if a rank is unknown or a parameter does not fit, GraphError if ``mode``
        is unknown, DTypeError if the dtype of x is.
        """
        dtype = known_dtype(x)
        shape, rows = addressing.rows(node, x, indices, updates)
        in_float32 = is_narrow(dtype) and kind != "update"
        old, new = (convert(e, float32) if in_float32 else e for e in (x, updates))
        updates_shape = (*shape[:2], known_shape(rows)[1], shape[3])
        out = make(
            "scatter_rows",
            make("reshape", old, shape=shape),
            rows,
            make("reshape", new, shape=updates_shape),
            kind=kind,
        )
        out = convert(out, dtype) if in_float32 else out
        return make("reshape", out, shape=known_shape(x))

    return expand


# Gradients: the gather of the same addressing reads the elements that updates went to.


def _read(node: Node, addressing: Addressing, x: Entry) -> Entry:
    """Return the elements of ``x`` that the updates of the scatter ``node`` go to.

    ``addressing`` is that of the scatter. Where x is empty, all updates were dropped: the elements
    are zeros.

    Raises: ShapeError if a rank is unknown, DTypeError if ``x`` is empty and its dtype unknown.
    """
    if numel(known_shape(x)) == 0:
        return make("cast", zeros_of(node.inputs[2]), dtype=known_dtype(x).name)
    return make(addressing.gather, x, node.inputs[1], **node.params)


def _scatter_like(node: Node, addressing: Addressing, kind: str, x: Entry, updates: Entry) -> Entry:
    """Return a scatter of ``updates`` into ``x`` at the indices of ``node``, of the kind ``kind``.

    ``addressing`` is that of the node.

    Raises: ShapeError or DTypeError if they do not fit.
    """
    name = "put_along_axis" if addressing is ELEMENTS and kind == "update" else addressing.scatter
    return make(name.format(kind=kind), x, node.inputs[1], updates, **node.params)


def _add_gradient(addressing: Addressing) -> Callable[..., list[Entry | None]]:
    """Return the FGradient of "add": dy, None, and its elements that updates were added to.

    ``addressing`` is that of the scatter operator.
    """

    def gradient(node: Node, dy: Entry) -> list[Entry | None]:
        """Return the gradients of x, of indices (None) and of updates of a scatter that adds.

        ``node`` is the forward node, ``dy`` the gradient of its output.

        Raises: ShapeError if a rank is unknown, DTypeError if the output is empty and its dtype
        unknown.
        """
        return [dy, None, _read(node, addressing, dy)]

    return gradient


def _sub_gradient(addressing: Addressing) -> Callable[..., list[Entry | None]]:
    """Return the FGradient of "sub": dy, and minus its elements that the updates went to.

    The gradient of indices is None. ``addressing`` is that of the scatter operator.
    """

    def gradient(node: Node, dy: Entry) -> list[Entry | None]:
        """Return the gradients of x, of indices (None) and of updates of a scatter that subtracts.

        ``node`` is the forward node, ``dy`` the gradient of its output.

        Raises: ShapeError if a rank is unknown, DTypeError if the output is empty and its dtype
        unknown.
        """
        return [dy, None, make("neg", _read(node, addressing, dy))]

    return gradient


def _update_gradient(addressing: Addressing) -> Callable[..., list[Entry | None]]:
    """Return the FGradient of "update" for an addressing.

    Elements that are not replaced pass dy on, and so does the last of several updates that meet.

    The gradient of indices is None.
    """

    def gradient(node: Node, dy: Entry) -> list[Entry | None]:
        """Return the gradients of x, of indices (None) and of updates of a scatter that replaces.

        ``node`` is the forward node, ``dy`` the gradient of its output.

        Raises: ShapeError if a rank is unknown, DTypeError if the output is empty and its dtype
        unknown.
        """
        x, _, updates = node.inputs
        dx = _scatter_like(node, addressing, "update", dy, zeros_of(updates))
        shape = known_shape(updates)
        flat = make("arange", numel(shape), None, dtype="int64")
        number = make("reshape", flat, shape=shape)
        zeros = make("cast", zeros_of(x), dtype="int64")
        last = _scatter_like(node, addressing, "update", zeros, number)
        is_last = make("equal", _read(node, addressing, last), number)
        dy_read = _read(node, addressing, dy)
        return [dx, None, make("where", is_last, dy_read, zeros_of(dy_read))]

    return gradient


def _mul_gradient(addressing: Addressing) -> Callable[..., list[Entry | None]]:
    """Return the FGradient of "mul": dy times the product of all other factors of an element.

    It is the product of all factors that are not zero, divided by the factor, or 0 where another
    factor is zero: zeros are counted, so that nothing is divided by zero.

    The gradient of indices is None. ``addressing`` is that of the scatter operator.
    """

    def gradient(node: Node, dy: Entry) -> list[Entry | None]:
        """Return the gradients of x, of indices (None) and of updates of a scatter that multiplies.

        ``node`` is the forward node, ``dy`` the gradient of its output.

        Raises: ShapeError if a rank is unknown; DTypeError if the dtype of x is unknown, or that of
        integers or bools.
        """
        x, _, updates = node.inputs
        factors, dtype = (x, updates), known_dtype(x).name
        ones = [make("full_like", e, fill_value=1) for e in factors]
        are_zero = [make("equal", e, zeros_of(e)) for e in factors]
        nonzero = [make("where", z, o, e) for z, o, e in zip(are_zero, ones, factors, strict=True)]
        product = _scatter_like(node, addressing, "mul", *nonzero)
        zero_flags = (make("cast", z, dtype=dtype) for z in are_zero)
        zero_count = _scatter_like(node, addressing, "add", *zero_flags)
        read_product, read_count, read_dy = (
            _read(node, addressing, e) for e in (product, zero_count, dy)
        )
        x_others = _product_of_others(are_zero[0], nonzero[0], product, zero_count)
        dx = make("mul", dy, x_others)
        updates_others = _product_of_others(are_zero[1], nonzero[1], read_product, read_count)
        return [dx, None, make("mul", read_dy, updates_others)]

    return gradient


def _product_of_others(is_zero: Entry, factor: Entry, product: Entry, zero_count: Entry) -> Entry:
    """Return the product of all factors but one.

    Args:
        is_zero: Whether the factor is zero.
        factor: The factor, or 1 if it is zero.
        product: The product of all factors that are not zero.
        zero_count: The number of factors that are zero.

    Raises:
        DTypeError: For integers and bools.
    """
    is_only_zero = make("equal", zero_count, make("ones_like", zero_count))
    if_zero = make("where", is_only_zero, product, zeros_of(product))
    no_zeros = make("equal", zero_count, zeros_of(zero_count))
    if_not_zero = make("where", no_zeros, make("div", product, factor), zeros_of(product))
    return make("where", is_zero, if_zero, if_not_zero)


def _extreme_gradient(addressing: Addressing) -> Callable[..., list[Entry | None]]:
    """Return the FGradient of "min" and "max": all that equal the result share dy equally.

    The gradient of indices is None. ``addressing`` is that of the scatter operator.
    """

    def gradient(node: Node, dy: Entry) -> list[Entry | None]:
        """Return the gradients of x, of indices (None) and of updates; ``dy`` is the output's.

        ``node`` is the forward node.

        Raises: ShapeError if a rank is unknown, DTypeError for integers and bools.
        """
        x, _, updates = node.inputs
        out = node.entries[0]
        dtype = dy.dtype.name if dy.dtype is not None else "float32"
        x_equals = make("cast", make("equal", x, out), dtype=dtype)
        read_out = _read(node, addressing, out)
        updates_equal = make("cast", make("equal", updates, read_out), dtype=dtype)
        count = _scatter_like(node, addressing, "add", x_equals, updates_equal)
        share = make("div", dy, count)
        dx = make("mul", share, x_equals)
        return [dx, None, make("mul", _read(node, addressing, share), updates_equal)]

    return gradient


@frozen
class UpdateKind:
    """A kind of update.

    Attributes:
        wording: what happens to an element, for the operators' documentation.
        gradient: returns the FGradient of this kind for an addressing.
    """

    wording: str
    gradient: Callable[[Addressing], Callable[..., list[Entry | None]]]


UPDATE_KINDS = {
    "update": UpdateKind(wording="replaced by the", gradient=_update_gradient),
    "add": UpdateKind(wording="increased by the", gradient=_add_gradient),
    "sub": UpdateKind(wording="decreased by the", gradient=_sub_gradient),
    "mul": UpdateKind(wording="multiplied by the", gradient=_mul_gradient),
    "min": UpdateKind(wording="limited to at most the", gradient=_extreme_gradient),
    "max": UpdateKind(wording="limited to at least the", gradient=_extreme_gradient),
}
for _kind, _update in UPDATE_KINDS.items():
    register_scatter(
        f"index_{_kind}",
        addressing=SLICES,
        kind=_kind,
        doc=f"x with the slices at indices along axis {_update.wording} updates, which have the "
        "shape of gather(x, indices)",
        gradient=_update.gradient(SLICES),
        aliases=f"scatter_{_kind}",
    )
    register_scatter(
        f"tensor_scatter_nd_{_kind}",
        addressing=POINTS,
        kind=_kind,
        doc=f"x with the elements or slices at the points in the last axis of indices "
        f"{_update.wording} updates",
        gradient=_update.gradient(POINTS),
        aliases=f"tensor_scatter_{_kind}",
    )
register_scatter(
    "put_along_axis",
    addressing=ELEMENTS,
    kind="update",
    doc="x with the element at each index along axis replaced by that of updates, which has the "
    "shape of indices",
    gradient=_update_gradient(ELEMENTS),
)
register_scatter(
    "add_along_axis",
    addressing=ELEMENTS,
    kind="add",
    doc="x with the element at each index along axis increased by that of updates, which has the "
    "shape of indices",
    gradient=_add_gradient(ELEMENTS),
)


# scatter_nd: into zeros.


def full_of(shape: Shape, value: Any, like: Entry) -> Entry:
    """Return an array of ``value`` of a shape, in the dtype of ``like``.

    Raises: DTypeError if the dtype is unknown or cannot hold the value, ShapeError if ``shape`` has
    a negative extent.
    """
    return make("full", shape=shape, fill_value=value, dtype=known_dtype(like).name)


def _scatter_nd_dtype(node: Node, indices: DType, updates: DType) -> DType:
    """Infer the dtype, ``updates``.

    Raises: DTypeError, naming ``node``, if ``indices``, a dtype, is no integer.
    """
    check_indices(node, indices)
    return updates


def _scatter_nd(node: Node, indices: Entry, updates: Entry) -> Entry:
    """Expand scatter_nd: the updates added to zeros of the parameter ``shape`` of ``node``.

    Points out of range are dropped.

    Raises: ShapeError if that is no shape, or indices or updates do not fit it; DTypeError if the
    dtype of the updates is unknown.
    """
    shape = parse_extents(node, node.params["shape"], "shape")
    return make("tensor_scatter_nd_add", full_of(shape, 0, updates), indices, updates)


composite(
    "scatter_nd",
    inputs=["indices", "updates"],
    expand=_scatter_nd,
    doc="an array of a shape: zeros, plus the updates at the coordinates in the last axis of "
    "indices; updates of one point add up",
    params={"shape": REQUIRED},
    types=_scatter_nd_dtype,
    TOpCost="light",
)
