"""Operators that gradients consist of: the adjoints of broadcasting, slices and products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_dtype, known_shape
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.helpers import (
    as_replacement,
    common_dtype,
    first_shape,
    make,
    normalize_axes,
    parse_extents,
)
from passkit.ops.movement import register_movement
from passkit.values.dtype import float32, is_narrow
from passkit.values.size import Extent, Shape, Size

if TYPE_CHECKING:
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr


def _sum_like(node: Node, x: Entry, like: Entry) -> Entry:
    """Expand sum_like: sum x over the axes along which ``like`` would be repeated to its shape.

    An axis that is known to have one element is not summed, so that -0 stays -0. The result is
    ``x`` itself where it has the shape of ``like`` already. Whether ``like`` broadcasts to ``x`` is
    not checked. ``node`` is not used.

    Raises: ShapeError if a rank is unknown.
    """
    shape, target = known_shape(x), known_shape(like)
    new_axes = len(shape) - len(target)
    repeated = [new_axes + k for k, n in enumerate(target) if n == 1 != shape[new_axes + k]]
    axes = (*range(new_axes), *repeated)
    out = make("reduce_sum", x, axis=axes) if axes else x
    return out if out.shape == target else make("reshape", out, shape=target)


def _infer_sum_like_shape(node: Node, x: Shape, like: Shape) -> Shape:
    """Return ``like``, the shape of the second input of sum_like.

    ``x`` is the shape of the first input. Where an extent of ``like`` is not known to be 1 and
    differs from that of ``x`` symbolically, a guard that they are equal is recorded.

    Raises:
        ShapeError: If ``like`` does not broadcast to ``x``; the error names ``node``.
    """
    new_axes = len(x) - len(like)
    pairs: list[tuple[Extent, Extent]] = []
    if new_axes >= 0:
        pairs = [(n, m) for n, m in zip(x[new_axes:], like, strict=True) if m != 1]
    differ = any(isinstance(n, int) and isinstance(m, int) and n != m for n, m in pairs)
    if new_axes < 0 or differ:
        raise ShapeError(
            f"{node.where} needs a shape that broadcasts to {show_shape(x)}, got "
            f"{show_shape(like)}; reduce_sum takes any axes"
        )
    for n, m in pairs:
        agree(node, n, m, "a dimension that is not summed")
    return like


sum_like = composite(
    name="sum_like",
    inputs=["x", "like"],
    expand=_sum_like,
    shape=_infer_sum_like_shape,
    types=common_dtype("iuf"),
    TOperator="sum_like",
    FGradient=lambda node, dy: [
        make("broadcast_to", dy, shape=known_shape(node.inputs[0])),
        None,
    ],
    doc="x summed to the shape of like, over the axes along which like is broadcast to x",
)


# sized_by: an input that is there for its sizes only

sized_by = register_op(
    "sized_by", -1, doc="the first input; the others only determine symbolic sizes of a call"
)
sized_by.set_attr("FInferShape", first_shape)
sized_by.set_attr("FInferType", lambda node, dtype, *rest: dtype)
sized_by.set_attr("FElement", lambda node, index, read, *rest: read(*index))
sized_by.set_attr("FCompute", lambda node, x, *rest: x)
sized_by.set_attr("FGradient", lambda node, dy: [dy, *[None] * (len(node.inputs) - 1)])
sized_by.set_attr("TOpPattern", OpPattern.INJECTIVE)
sized_by.set_attr("TOpCost", "light")
sized_by.set_attr("TOperator", "sized_by")


# unslice: the adjoint of slice


def _unslice_params(node: Node, shape: Shape) -> tuple[Shape, Shape, tuple[int, ...]]:
    """Return the parameters shape, begin and step of a node, an extent for each axis.

    A step of None is 1 along each axis. ``shape`` is that of the input. That elements lie inside of
    the output is checked along axes where all extents are known.

    Raises:
        ShapeError: If they are not one for each axis of the input's ``shape``, an extent is neither
            int nor Size, ``shape`` has a negative one, a step is no int other than 0, or an element
            would lie outside of the output.
    """
    target = parse_extents(node, node.params["shape"], "shape")
    begin = parse_extents(node, node.params["begin"], "begin")
    step_param = node.params["step"]
    step = (1,) * len(shape) if step_param is None else parse_extents(node, step_param, "step")
    for name, value in (("shape", target), ("begin", begin), ("step", step)):
        if len(value) != len(shape):
            raise ShapeError(
                f"{node.where} needs {len(shape)} extents as {name}, one for each axis of "
                f"{show_shape(shape)}, got {show_shape(value)}"
            )
    if any(isinstance(m, int) and m < 0 for m in target):
        raise ShapeError(f"{node.where} needs extents >= 0 as shape, got {show_shape(target)}")
    steps = tuple(s for s in step if isinstance(s, int) and s != 0)
    if len(steps) != len(step):
        raise ShapeError(f"{node.where} needs ints other than 0 as step, got {show_shape(step)}")
    for k, (n, b, s, m) in enumerate(zip(shape, begin, steps, target, strict=True)):
        if not all(isinstance(v, int) for v in (n, b, m)) or n == 0:
            continue
        last = b + (n - 1) * s
        if min(b, last) < 0 or max(b, last) >= m:  # type: ignore[type-var, operator]
            raise ShapeError(
                f"{node.where} writes elements {b} to {last} of axis {k}, which has length {m}"
            )
    return target, begin, steps


def _infer_unslice_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape of unslice: the parameter ``shape`` of ``node``.

    ``shape`` is that of the input.

    Raises: ShapeError if the parameters shape, begin and step do not fit it.
    """
    return _unslice_params(node, shape)[0]


def _unslice_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the element of the input that is written to an index of the output, else 0.

    Args:
        node: The node.
        index: An expression for each axis of the output.
        read: Reads the input at an index; only where the condition holds that the index is written.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    shape = known_shape(node.inputs[0])
    target, begin, steps = _unslice_params(node, shape)
    inside: Expr | None = None
    input_index: list[Expr] = []
    for i, n, m, b, s in zip(index, shape, target, begin, steps, strict=True):
        if (b, s) == (0, 1) and n == m:
            input_index.append(i)
            continue
        distance = i - ast.size_of(b) if s > 0 else ast.size_of(b) - i
        conditions = [distance >= 0] if not (s > 0 and b == 0) else []
        conditions.append(distance < ast.size_of(n * abs(s)))
        if abs(s) > 1:
            conditions.append(ast.equal(distance % ast.size_of(abs(s)), 0))
        for condition in conditions:
            inside = condition if inside is None else inside & condition
        input_index.append(distance if abs(s) == 1 else distance // ast.size_of(abs(s)))
    value = read(*input_index)
    return value if inside is None else ast.where(inside, value, ast.const(0, value.dtype))


def _compute_unslice(node: Node, x: Any) -> Any:
    """Write the array ``x`` into zeros at the positions of a slice, in NumPy; return the new array.

    ``node`` holds the parameters shape, begin and step.

    Raises: ShapeError if they do not fit ``x``.
    """
    target, begin, steps = _unslice_params(node, x.shape)
    out = np.zeros([int(n) for n in target], x.dtype)
    positions = [int(b) + s * np.arange(n) for b, n, s in zip(begin, x.shape, steps, strict=True)]
    if positions:
        out[np.ix_(*positions)] = x
    else:
        out[()] = x
    return out


def _unslice_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: the slice of dy, the output's gradient, that it fills.

    ``node`` is the forward node, with the parameters ``begin``, ``shape`` and ``step``; ``dy`` is
    the gradient of its output.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    shape = known_shape(node.inputs[0])
    _, begin, steps = _unslice_params(node, shape)
    return [make("slice", dy, begin=begin, size=shape, step=steps)]


def _simplify_unslice(node: Node) -> Entry | None:
    """Return the input if an unslice fills the entire output in order, else None.

    None also if shape or dtype of input and output are not known to be the same. ``node`` has the
    parameters ``begin``, ``shape`` and ``step``.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    shape = known_shape(node.inputs[0])
    _, begin, steps = _unslice_params(node, shape)
    in_order = all(b == 0 for b in begin) and all(s == 1 for s in steps)
    return as_replacement(node, node.inputs[0]) if in_order else None


unslice = register_movement(
    "unslice",
    {"shape": REQUIRED, "begin": REQUIRED, "step": None},
    "zeros of a shape, with x written from begin[k] of axis k on, its elements step[k] apart",
    OpPattern.INJECTIVE,
)
unslice.set_attr("FInferShape", _infer_unslice_shape)
unslice.set_attr("FElement", _unslice_element)
unslice.set_attr("FCompute", _compute_unslice)
unslice.set_attr("FGradient", _unslice_gradient)
unslice.set_attr("FSimplify", _simplify_unslice)


# div_by_size: division by an extent, which may be symbolic


def _size_param(node: Node) -> Extent:
    """Return the parameter ``size`` of ``node``, an extent by which div_by_size divides.

    Any int is accepted, 0 and negative ones too.

    Raises:
        ShapeError: If it is neither an int nor a Size, such as a bool or a float.
    """
    size = node.params["size"]
    if isinstance(size, bool) or not isinstance(size, (int, Size)):
        raise ShapeError(f"{node.where} needs an int or a size, got {size!r}")
    return size


def _infer_div_by_size_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, ``shape`` of the input.

    Raises: ShapeError if the parameter ``size`` of ``node`` is neither an int nor a Size.
    """
    _size_param(node)
    return shape


def _div_by_size(node: Node, x: Expr) -> Expr:
    """Return x, a float element, divided by the parameter ``size`` of ``node``, in the dtype of x.

    16-bit floats, which may not hold the size, are divided in float32.

    Raises: ShapeError if ``size`` is neither an int nor a Size.
    """
    compute_dtype = float32 if is_narrow(x.dtype) else x.dtype
    divisor = ast.cast(ast.size_of(_size_param(node)), compute_dtype)
    quotient = ast.cast(x, compute_dtype) / divisor
    return ast.cast(quotient, x.dtype)


div_by_size = register_op(
    "div_by_size", 1, params={"size": REQUIRED}, doc="x divided by an extent, such as x.shape[0]"
).include("elementwise")
div_by_size.set_attr("FCodeGen", _div_by_size)
div_by_size.set_attr("FInferType", common_dtype("f"))
div_by_size.set_attr("FInferShape", _infer_div_by_size_shape)
div_by_size.set_attr("TOpPattern", OpPattern.ELEMWISE)
div_by_size.set_attr("TOpCost", "light")
div_by_size.set_attr(
    "FGradient", lambda node, dy: [make("div_by_size", dy, size=node.params["size"])]
)


# prod_others: the derivative of a product, correct where factors are 0


def _mask_zeros(node: Node, x: Entry) -> tuple[Entry, Entry, Entry, Entry]:
    """Separate the zeros among the factors of products along the parameter ``axis`` of ``node``.

    ``x``, the factors, has floats; ``axis`` is one or several axes, or None for all.

    Returns:
        Four entries: whether each factor is 0; the number of zeros along the axis, in the dtype of
        x; x with 1 in place of 0; and the product of these along the axis. Products and numbers
        keep the axis with length 1.

    Raises: DTypeError if the dtype of ``x`` is unknown, ShapeError if the axis is out of range, no
    int or listed twice.
    """
    params = {"axis": node.params["axis"], "keepdims": True}
    is_zero = make("equal", x, 0.0)
    zero_count = make("reduce_sum", make("cast", is_zero, dtype=known_dtype(x).name), **params)
    others = make("where", is_zero, 1.0, x)
    return is_zero, zero_count, others, make("reduce_prod", others, **params)


def _prod_others(node: Node, x: Entry) -> Entry:
    """Expand prod_others: for each element the product of all others along ``axis``.

    It is the product of the nonzero elements over the element. It is 0 where another element is 0;
    for the only zero it is the product of the others. ``node`` has the parameter ``axis``: one or
    several axes, or None for all. ``x`` has floats.

    Raises: DTypeError if the dtype of ``x`` is unknown, ShapeError if the axis is out of range, no
    int or listed twice.
    """
    is_zero, zero_count, others, product = _mask_zeros(node, x)
    is_only_zero = make("logical_and", is_zero, make("equal", zero_count, 1.0))
    nonzero = make("logical_or", is_only_zero, make("equal", zero_count, 0.0))
    return make("where", nonzero, product / others, 0.0)


def _prod_others_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of x, in which dy[i] is multiplied by the product of all but i and k.

    The gradient at k is the sum of these over i. With one zero, that product is not 0 if i or k is
    its position; with two, if i and k are their positions; with three it is always 0. ``node`` is
    the forward node, with the parameter ``axis``; ``dy`` is the gradient of its output.

    Raises: DTypeError if the dtype of the input is unknown, ShapeError if the axis is out of range,
    no int or listed twice.
    """
    x = node.inputs[0]
    params = {"axis": node.params["axis"], "keepdims": True}
    is_zero, zero_count, others, product = _mask_zeros(node, x)
    term = dy / others
    sum_of_terms = make("reduce_sum", make("where", is_zero, 0.0, term), **params)
    dy_at_zeros = make("reduce_sum", make("where", is_zero, dy, 0.0), **params)
    one_zero = make("where", is_zero, sum_of_terms, dy_at_zeros)
    is_one_of_two = make("logical_and", is_zero, make("equal", zero_count, 2.0))
    more_zeros = make("where", is_one_of_two, dy_at_zeros - dy, 0.0)
    with_zeros = make("where", make("equal", zero_count, 1.0), one_zero, more_zeros)
    no_zeros = make("equal", zero_count, 0.0)
    return [product / others * make("where", no_zeros, sum_of_terms - term, with_zeros)]


def _infer_prod_others_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, ``shape`` of the input.

    Raises: ShapeError if the parameter ``axis`` of ``node`` is not None (all axes), and no int or
    ints, out of range, or listed twice.
    """
    normalize_axes(node, len(shape), node.params["axis"])
    return shape


prod_others = composite(
    name="prod_others",
    inputs=1,
    expand=_prod_others,
    params={"axis": None},
    shape=_infer_prod_others_shape,
    FGradient=_prod_others_gradient,
    doc="for each element the product of all other elements along axis, in the shape of x",
)
