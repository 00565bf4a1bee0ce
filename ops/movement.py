"""Primitive movement operators: reshape, transpose, broadcast_to, concat and their relatives.

Their results have the elements of their inputs at other positions. Each is described by an index
map, FElement, so that it fuses with its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    from passkit.analysis import accesses
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr
else:
    accesses = Lazy("passkit.analysis.accesses")


def register_movement(
    name: str, params: Mapping[str, Any], doc: str, pattern: OpPattern, num_inputs: int = 1
) -> Op:
    """Register an operator that moves elements of any dtype, and set the attributes they share.

    These are FInferType, by which all inputs must have one dtype, TOpPattern and TOpCost.

    Args:
        name: The operator's name.
        params: The parameters and their defaults.
        doc: The operator's documentation.
        pattern: How it fuses.
        num_inputs: Number of inputs, -1 for any.

    Returns:
        The operator, which still needs FInferShape and FElement.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, or an
            attribute of it was set elsewhere.
        ArgumentError: If ``name`` is no identifier.
    """
    op = register_op(name, num_inputs=num_inputs, params=dict(params), doc=doc)
    op.set_attr("FInferType", same_dtype_rule)
    op.set_attr("TOpPattern", pattern)
    op.set_attr("TOpCost", "light")
    return op


def _input_shape(node: Node) -> Shape:
    """Return the shape of the first input. Raises: ShapeError if its rank is unknown."""
    return known_shape(node.inputs[0])


def _output_shape(node: Node) -> Shape:
    """Return the shape of the first output. Raises: ShapeError if its rank is unknown."""
    return known_shape(node.entries[0])


# reshape, expand_dims, squeeze: the row-major order of elements stays.


def _reshape_shape(node: Node, shape: Shape | None) -> Shape | None:
    """Infer the shape: the parameter ``shape`` of ``node`` with its one -1 filled in.

    ``shape`` is that of the input, None where its rank is unknown. Numbers of elements that differ
    symbolically are recorded as a guard.

    Returns:
        None where the rank of the input is unknown and the parameter has a -1.

    Raises:
        ShapeError: If the parameter is no ints or sizes, has other negative extents or two -1, or
            does not fit the elements.
    """
    target = parse_extents(node, node.params["shape"], "shape")
    open_axes = [k for k, n in enumerate(target) if n == -1]
    if len(open_axes) > 1 or any(isinstance(n, int) and n < -1 for n in target):
        raise ShapeError(
            f"{node.where} needs extents >= 0 and at most one -1, got {show_shape(target)}"
        )
    if shape is None:
        return None if open_axes else target
    total = numel(shape)
    if open_axes:
        target = _fill_open_axis(node, shape, target, open_axes[0])
    if isinstance(total, int) and isinstance(numel(target), int) and total != numel(target):
        raise ShapeError(
            f"{node.where} needs as many elements as {show_shape(shape)} has, {total}, got "
            f"{show_shape(target)}, which has {numel(target)}"
        )
    agree(node, total, numel(target), "the number of elements")
    return target


def _fill_open_axis(node: Node, shape: Shape, target: Shape, k: int) -> Shape:
    """Return ``target`` with the -1 at axis ``k`` replaced, for the elements of ``shape``.

    Symbolic extents may give a quotient that a call checks. Errors name ``node``.

    Raises:
        ShapeError: If the number of elements is no multiple of the other extents, or one of these
            is 0.
    """
    total = numel(shape)
    rest = numel(n for n in target if n != -1)
    filled = divide_exactly(total, rest)
    if (filled is None and isinstance(total, int) and isinstance(rest, int)) or rest == 0:
        raise ShapeError(
            f"{node.where} cannot fill in -1: {show_shape(shape)} has {total} elements, "
            f"{show_shape(target)} takes a multiple of {rest}"
        )
    demand(node, rest, 1, "the other extents must not be 0, for -1 to be filled in")
    return (*target[:k], total // rest if filled is None else filled, *target[k + 1 :])


_reshape_shape.__dict__["partial"] = True


def regroup_index(index: Index, shape: Shape, target: Shape) -> Index:
    """Convert an index of one shape to the index of the same element in another shape.

    Elements are in row-major order. Axes are matched from the last one in the smallest groups of
    equal product, so that only axes that are joined or split need divisions.

    Args:
        index: An index into ``shape``.
        shape: A shape.
        target: A shape of as many elements.

    Returns:
        An index into ``target``.
    """
    out: list[Expr] = []
    a, b = len(shape), len(target)
    while b > 0:
        p, q = a - 1, b - 1
        left: Extent = shape[p] if a else 1
        right: Extent = target[q]
        while left != right and (p > 0 or q > 0):
            if q > 0 and (p <= 0 or _grows_first(right, left)):
                q -= 1
                right = target[q] * right
            else:
                p -= 1
                left = shape[p] * left
        out[:0] = _regroup_axes(index[max(p, 0) : a], shape[max(p, 0) : a], target[q:b])
        a, b = max(p, 0), q
    return tuple(out)


def _grows_first(a: Extent, b: Extent) -> bool:
    """Return whether ``a`` is smaller than ``b``, or certainly divides it if one is symbolic."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    return divide_exactly(b, a) is not None


def _regroup_axes(index: Index, shape: Shape, target: Shape) -> list[Expr]:
    """Convert an index of one group of axes by way of the linear index in the group.

    Args:
        index: The index, an expression for each extent of ``shape``.
        shape: The extents that it is for.
        target: Other extents of the same product.

    Returns: The index for ``target``.
    """
    if len(index) == len(target) == 1:
        return [index[0]]
    joined: Expr | None = None
    for i, n in zip(index, shape, strict=True):
        if n != 1:
            joined = i if joined is None else joined * ast.size_of(n) + i
    linear = ast.size_of(0) if joined is None else joined
    out: list[Expr] = []
    for k in range(len(target) - 1, -1, -1):
        is_outermost = all(n == 1 for n in target[:k])
        if target[k] == 1:
            out.insert(0, ast.size_of(0))
        else:
            out.insert(0, linear if is_outermost else linear % ast.size_of(target[k]))
            linear = linear if is_outermost else linear // ast.size_of(target[k])
    return out


def _reshape_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the input's element at the same row-major position.

    ``index`` has an expression for each axis of the output; ``read`` reads the input at an index.
    ``node`` has both shapes.

    Raises: ShapeError if a rank is unknown.
    """
    return read(*regroup_index(index, _output_shape(node), _input_shape(node)))


def _simplify_reshape(node: Node) -> Entry | None:
    """Remove a reshape to the same shape; merge two operators that keep the row-major order.

    ``node`` is a reshape, expand_dims or squeeze.

    Returns: The entry that replaces its output, its input or a reshape; None if neither applies, or
    its shape is unknown.
    """
    x = node.inputs[0]
    if as_replacement(node, x) is not None:
        return x
    out = node.entries[0].shape
    if x.node.op in ORDER_KEEPING and out is not None:
        return reshape(x.node.inputs[0], shape=out)  # type: ignore[no-any-return]
    return None


reshape = register_movement(
    "reshape",
    params={"shape": REQUIRED},
    doc="the elements of x, in row-major order, in another shape",
    pattern=OpPattern.INJECTIVE,
)
reshape.set_attr("FInferShape", _reshape_shape)
reshape.set_attr("FElement", _reshape_element)
reshape.set_attr("FCompute", lambda node, x: x.reshape(_output_shape(node)))


def _expand_dims_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape: ``shape`` with axes of length 1 at the positions ``axis`` of the result.

    ``node`` has the parameter ``axis``.

    Raises: ShapeError if ``axis`` is None, no int or ints, out of range, or has a position twice.
    """
    axis = node.params["axis"]
    if axis is None:
        raise ShapeError(f"{node.where} needs an int, or several, as axis, got None")
    count = len(axis) if isinstance(axis, tuple) else 1
    axes = normalize_axes(node, len(shape) + count, axis)
    rest = iter(shape)
    return tuple(1 if k in axes else next(rest) for k in range(len(shape) + count))


def _expand_dims_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the input's element at ``index``, that of the output, without the inserted axes.

    ``read`` reads the input. ``node`` has the parameter ``axis``.

    Raises: ShapeError if a parameter is invalid.
    """
    axes = normalize_axes(node, len(index), node.params["axis"])
    return read(*(i for k, i in enumerate(index) if k not in axes))


expand_dims = register_movement(
    "expand_dims",
    params={"axis": 0},
    doc="x with new axes of length 1 at the positions axis of the result",
    pattern=OpPattern.BROADCAST,
)
expand_dims.set_attr("FInferShape", _expand_dims_shape)
expand_dims.set_attr("FElement", _expand_dims_element)
expand_dims.set_attr("FCompute", lambda node, x: np.expand_dims(x, node.params["axis"]))


def _squeezed_axes(node: Node, shape: Shape) -> tuple[int, ...]:
    """Return the axes to remove of ``shape``: the parameter ``axis``, or for None all of length 1.

    ``node`` has the parameter ``axis``.

    Raises: ShapeError if ``axis`` is no int or ints, out of range, or has an axis twice.
    """
    if node.params["axis"] is None:
        return tuple(k for k, n in enumerate(shape) if n == 1)
    return normalize_axes(node, len(shape), node.params["axis"])


def _squeeze_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape: ``shape`` of the input without the squeezed axes.

    For a symbolic extent of an axis that is named a guard is recorded, that it is 1. ``node`` has
    the parameter ``axis``.

    Raises:
        ShapeError: If an axis to squeeze is longer than 1, no int or out of range, or an extent is
            symbolic and ``axis`` is None.
    """
    if node.params["axis"] is None and has_size(shape):
        raise ShapeError(
            f"{node.where} needs to know which axes have length 1, got {show_shape(shape)}; name "
            f"them in axis"
        )
    axes = _squeezed_axes(node, shape)
    for k in axes:
        if isinstance(shape[k], int) and shape[k] != 1:
            raise ShapeError(
                f"{node.where} needs length 1 at axis {k}, got {show_shape(shape)}; take an "
                f"element or reshape"
            )
        agree(node, shape[k], 1, f"axis {k} to squeeze")
    return tuple(n for k, n in enumerate(shape) if k not in axes)


def _squeeze_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the input's element at ``index``, that of the output, with 0 along the removed axes.

    ``read`` reads the input. ``node`` has the parameter ``axis``.

    Raises: ShapeError if the input's rank is unknown.
    """
    shape = _input_shape(node)
    axes = _squeezed_axes(node, shape)
    rest = iter(index)
    return read(*(ast.size_of(0) if k in axes else next(rest) for k in range(len(shape))))


squeeze = register_movement(
    "squeeze",
    params={"axis": None},
    doc="x without the axes of length 1 that axis names; by default without all of them",
    pattern=OpPattern.INJECTIVE,
)
squeeze.set_attr("FInferShape", _squeeze_shape)
squeeze.set_attr("FElement", _squeeze_element)
squeeze.set_attr("FCompute", lambda node, x: x.reshape(_output_shape(node)))

ORDER_KEEPING = (reshape, expand_dims, squeeze)
"""Operators that keep the row-major order of elements: their result can alias their input."""
for _op in ORDER_KEEPING:
    _op.set_attr("FSimplify", _simplify_reshape)
    _op.set_attr("FInplaceOption", lambda node: [(0, 0)])
    _op.set_attr("FInplaceIdentity", lambda node: [True])
    _op.set_attr("FGradient", lambda node, dy: [make("reshape", dy, shape=_input_shape(node))])


# transpose.


def permutation(node: Node, rank: int) -> tuple[int, ...]:
    """Return the input axis of each axis of the result of a transpose.

    Args:
        node: A node with a parameter ``axes``: a tuple of ints, or one int for a vector; None
            reverses the axes, negative ones count from the end.
        rank: Number of axes.

    Raises:
        ShapeError: If ``axes`` does not name each axis once.
    """
    axes = node.params["axes"]
    if axes is None:
        return tuple(reversed(range(rank)))
    listed = axes if isinstance(axes, tuple) else (axes,)
    normalize_axes(node, rank, listed, "axes")
    if len(listed) != rank:
        raise ShapeError(f"{node.where} needs {rank} axes, one for each of the input, got {axes}")
    return tuple(normalize_axis(node, rank, a, "axes") for a in listed)


def _transpose_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape: the extents of ``shape``, the input's, in the order ``axes``.

    Raises: ShapeError if the parameter ``axes`` of ``node`` does not name each axis once.
    """
    return tuple(shape[a] for a in permutation(node, len(shape)))


def _transpose_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the input's element at ``index``, that of the output, in the original order of axes.

    ``read`` reads the input. ``node`` has the parameter ``axes``.

    Raises: ShapeError if a parameter is invalid.
    """
    axes = permutation(node, len(index))
    return read(*(index[axes.index(k)] for k in range(len(axes))))


def _simplify_transpose(node: Node) -> Entry | None:
    """Remove a transpose that keeps the order of axes; merge two transposes.

    ``node`` has the parameter ``axes``.

    Returns: The input for the former, a transpose of its input for the latter; None if neither
    applies, or the rank of the input is unknown.

    Raises: ShapeError if a parameter is invalid.
    """
    x = node.inputs[0]
    if x.shape is None:
        return None
    axes = permutation(node, len(x.shape))
    if axes == tuple(range(len(axes))):
        return x
    if x.node.op is not node.op:
        return None
    inner = permutation(x.node, len(axes))
    merged = tuple(inner[a] for a in axes)
    return transpose(x.node.inputs[0], axes=merged)  # type: ignore[no-any-return]


def _transpose_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: dy, that of the output, with axes in the original order.

    ``node`` is the forward node, with the parameter ``axes``; ``dy`` is the gradient of its output.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    axes = permutation(node, len(_input_shape(node)))
    return [make("transpose", dy, axes=tuple(axes.index(k) for k in range(len(axes))))]


transpose = register_movement(
    "transpose",
    params={"axes": None},
    doc="x with its axes in the order axes: axis k of the result is axis axes[k] of x",
    pattern=OpPattern.INJECTIVE,
)
transpose.set_attr("FInferShape", _transpose_shape)
transpose.set_attr("FElement", _transpose_element)
transpose.set_attr("FCompute", lambda node, x: np.transpose(x, node.params["axes"]))
transpose.set_attr("FSimplify", _simplify_transpose)
transpose.set_attr("FGradient", _transpose_gradient)


# broadcast_to.


def _broadcast_to_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, the parameter ``shape`` of ``node``; one extent counts as a tuple of one.

    Raises: ShapeError if an extent is negative, or neither an int nor a Size, or if ``shape``, the
    input's, does not broadcast to it.
    """
    target = parse_extents(node, node.params["shape"], "shape")
    if any(isinstance(n, int) and n < 0 for n in target):
        raise ShapeError(f"{node.where} needs extents >= 0, got {show_shape(target)}")
    check_broadcast(node, shape, target)
    return target


broadcast_to = register_movement(
    "broadcast_to",
    params={"shape": REQUIRED},
    doc="x broadcast to a shape, as in NumPy",
    pattern=OpPattern.BROADCAST,
)
broadcast_to.set_attr("FInferShape", _broadcast_to_shape)
broadcast_to.set_attr(
    "FElement", lambda node, index, read: read(*accesses.broadcast_index(index, _input_shape(node)))
)
broadcast_to.set_attr("FCompute", lambda node, x: np.broadcast_to(x, node.entries[0].shape))
broadcast_to.set_attr("FSimplify", lambda node: as_replacement(node, node.inputs[0]))
broadcast_to.set_attr("FGradient", lambda node, dy: [make("sum_like", dy, node.inputs[0])])
broadcast_to.set_attr("TOperator", "broadcast_to")


# concat.


def _concat_shape(node: Node, *shapes: Shape) -> Shape:
    """Infer the shape: the sum of the inputs' lengths along ``axis``.

    Symbolic extents at other axes that differ are recorded as guards. ``node`` has the parameter
    ``axis``.

    Raises:
        ShapeError: If there are no inputs, they differ in rank or at another axis, or ``axis`` is
            no int or out of range.
    """
    if not shapes:
        raise ShapeError(f"{node.where} needs at least one input, got none")
    first = shapes[0]
    axis = normalize_axis(node, len(first), node.params["axis"])
    total: Extent = 0
    out = list(first)
    for shape in shapes:
        if len(shape) != len(first) or any(
            k != axis and isinstance(a, int) and isinstance(b, int) and a != b
            for k, (a, b) in enumerate(zip(shape, out, strict=False))
        ):
            raise ShapeError(
                f"{node.where} needs shapes that differ at axis {axis} only, got "
                f"{show_shapes(shapes)}"
            )
        for k, n in enumerate(shape):
            if k != axis:
                out[k] = agree(node, n, out[k], f"dimension {k}")
        total = total + shape[axis]
    out[axis] = total
    return tuple(out)


def _concat_offsets(node: Node, axis: int) -> list[Extent]:
    """Return the position of each input of ``node`` along ``axis``, then the total length.

    Raises: ShapeError if the rank of an input is unknown.
    """
    return list(accumulate((known_shape(e)[axis] for e in node.inputs), initial=0))


def _concat_element(node: Node, index: Index, *readers: Reader) -> Expr:
    """Return the element at ``index``, from the input that holds it; ``readers`` read the inputs.

    A binary search over the offsets along the parameter ``axis`` of ``node`` selects the input;
    only its branch is evaluated.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    axis = normalize_axis(node, len(index), node.params["axis"])
    offsets = _concat_offsets(node, axis)

    def select(low: int, high: int) -> Expr:
        """Return the element, which one of the inputs ``low`` to below ``high`` holds."""
        if high - low == 1:
            position = index[axis] - ast.size_of(offsets[low]) if low else index[axis]
            return readers[low](*index[:axis], position, *index[axis + 1 :])
        middle = (low + high) // 2
        is_lower = index[axis] < ast.size_of(offsets[middle])
        return ast.where(is_lower, select(low, middle), select(middle, high))

    return select(0, len(readers))


def _concat_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradients of the inputs: the slices of dy, the output's gradient.

    ``node`` is the forward node, with the parameter ``axis``; ``dy`` is the gradient of its output.

    Raises: ShapeError if the rank of an input is unknown.
    """
    axis = normalize_axis(node, len(_output_shape(node)), node.params["axis"])
    return [
        make(
            "slice",
            dy,
            begin=tuple(offset if k == axis else 0 for k in range(len(shape))),
            size=shape,
        )
        for offset, shape in zip(
            _concat_offsets(node, axis), map(known_shape, node.inputs), strict=False
        )
    ]


concat = register_movement(
    "concat",
    params={"axis": 0},
    doc="the inputs joined along axis, whose length is the sum of theirs",
    pattern=OpPattern.INJECTIVE,
    num_inputs=-1,
)
concat.set_attr("FInferShape", _concat_shape)
concat.set_attr("FElement", _concat_element)
concat.set_attr("FKernel", concat_kernel)
concat.set_attr("FCompute", lambda node, *x: np.concatenate(x, node.params["axis"]))
concat.set_attr("FSimplify", lambda node: node.inputs[0] if len(node.inputs) == 1 else None)
concat.set_attr("FGradient", _concat_gradient)
add_aliases(concat, "concatenate")
