"""Operators that gradients need: what undoes a broadcast, a slice or a product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
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
    from passkit.ast import Expr
    from passkit.space.reads import Index, Reader


def _sum_like(node: Node, x: Entry, like: Entry) -> Entry:
    """The sum over what broadcasting ``like`` to the shape of x repeats.

    An axis that is known to have one element is not summed: there -0 stays -0.
    """
    wide, wanted = known_shape(x), known_shape(like)
    lead = len(wide) - len(wanted)
    axes = (*range(lead), *(lead + k for k, n in enumerate(wanted) if n == 1 != wide[lead + k]))
    out = make("reduce_sum", x, axis=axes) if axes else x
    return out if out.shape == wanted else make("reshape", out, shape=wanted)


def _sum_like_shape(node: Node, x: Shape, like: Shape) -> Shape:
    """The second shape. Raises: ShapeError where it does not broadcast to the first."""
    lead = len(x) - len(like)
    pairs = [(n, m) for n, m in zip(x[lead:], like, strict=True) if m != 1] if lead >= 0 else []
    if lead < 0 or any(isinstance(n, int) and isinstance(m, int) and n != m for n, m in pairs):
        raise ShapeError(
            f"{node.where} needs a shape that broadcasts to {show_shape(x)}, got "
            f"{show_shape(like)}; reduce_sum takes any axes"
        )
    for n, m in pairs:
        agree(node, n, m, "a dimension that is not summed")
    return like


sum_like = composite(
    "sum_like",
    ["x", "like"],
    _sum_like,
    "x summed to the shape of like, which broadcasts to that of x",
    shape=_sum_like_shape,
    types=common_dtype("iuf"),
    TOperator="sum_like",
    FGradient=lambda node, dy: [
        make("broadcast_to", dy, shape=known_shape(node.inputs[0])),
        None,
    ],
)


sized_by = register_op(
    "sized_by", -1, doc="the first input; the others only tell a call what sizes there are"
)
sized_by.set_attr("FInferShape", first_shape)
sized_by.set_attr("FInferType", lambda node, dtype, *rest: dtype)
sized_by.set_attr("FElement", lambda node, index, read, *rest: read(*index))
sized_by.set_attr("FCompute", lambda node, x, *rest: x)
sized_by.set_attr("FGradient", lambda node, dy: [dy, *[None] * (len(node.inputs) - 1)])
sized_by.set_attr("TOpPattern", OpPattern.INJECTIVE)
sized_by.set_attr("TOpCost", "light")
sized_by.set_attr("TOperator", "sized_by")


# unslice: the other way round than slice


def _unslice_params(node: Node, shape: Shape) -> tuple[Shape, Shape, tuple[int, ...]]:
    """The result's shape, begin and step, one for each axis."""
    wanted = parse_extents(node, node.params["shape"], "shape")
    begin = parse_extents(node, node.params["begin"], "begin")
    given = node.params["step"]
    step = (1,) * len(shape) if given is None else parse_extents(node, given, "step")
    for what, value in (("shape", wanted), ("begin", begin), ("step", step)):
        if len(value) != len(shape):
            raise ShapeError(
                f"{node.where} needs {len(shape)} extents as {what}, one for each axis of "
                f"{show_shape(shape)}, got {show_shape(value)}"
            )
    steps = tuple(s for s in step if isinstance(s, int) and s != 0)
    if len(steps) != len(step):
        raise ShapeError(f"{node.where} needs ints other than 0 as step, got {show_shape(step)}")
    for k, (n, b, s, m) in enumerate(zip(shape, begin, steps, wanted, strict=True)):
        if not all(isinstance(v, int) for v in (n, b, m)) or n == 0:
            continue
        last = b + (n - 1) * s
        if min(b, last) < 0 or max(b, last) >= m:  # type: ignore[type-var, operator]
            raise ShapeError(
                f"{node.where} writes elements {b} to {last} of axis {k}, which has length {m}"
            )
    return wanted, begin, steps


def _unslice_shape(node: Node, shape: Shape) -> Shape:
    """The wanted shape. Raises: ShapeError when an element would lie outside of it."""
    return _unslice_params(node, shape)[0]


def _unslice_element(node: Node, index: Index, read: Reader) -> Expr:
    """Zero, but where an element of the input goes; the arm that reads is lazy."""
    x = node.inputs[0]
    shape = known_shape(x)
    wanted, begin, steps = _unslice_params(node, shape)
    inside: Expr | None = None
    at: list[Expr] = []
    for i, n, m, b, s in zip(index, shape, wanted, begin, steps, strict=True):
        if (b, s) == (0, 1) and n == m:
            at.append(i)
            continue
        ahead = i - ast.size_of(b) if s > 0 else ast.size_of(b) - i
        conditions = [ahead >= 0] if not (s > 0 and b == 0) else []
        conditions.append(ahead < _reach(n, abs(s)))
        if abs(s) > 1:
            conditions.append(ast.equal(ahead % ast.size_of(abs(s)), 0))
        for c in conditions:
            inside = c if inside is None else inside & c
        at.append(ahead if abs(s) == 1 else ahead // ast.size_of(abs(s)))
    value = read(*at)
    return value if inside is None else ast.where(inside, value, ast.const(0, value.dtype))


def _reach(n: Extent, step: int) -> Expr:
    return ast.size_of(n * step)


def _unslice_compute(node: Node, x: Any) -> Any:
    wanted, begin, steps = _unslice_params(node, x.shape)
    out = np.zeros([int(n) for n in wanted], x.dtype)
    at = [int(b) + s * np.arange(n) for b, n, s in zip(begin, x.shape, steps, strict=True)]
    if at:
        out[np.ix_(*at)] = x
    else:
        out[()] = x
    return out


def _unslice_gradient(node: Node, dy: Entry) -> list[Entry]:
    shape = known_shape(node.inputs[0])
    _, begin, steps = _unslice_params(node, shape)
    return [make("slice", dy, begin=begin, size=shape, step=steps)]


def _simplify_unslice(node: Node) -> Entry | None:
    """What fills everything in its order goes."""
    shape = known_shape(node.inputs[0])
    _, begin, steps = _unslice_params(node, shape)
    whole = all(b == 0 for b in begin) and all(s == 1 for s in steps)
    return as_replacement(node, node.inputs[0]) if whole else None


unslice = register_movement(
    "unslice",
    {"shape": REQUIRED, "begin": REQUIRED, "step": None},
    "zeros of a shape with x in them, from begin[k] of axis k on, step[k] apart",
    OpPattern.INJECTIVE,
)
unslice.set_attr("FInferShape", _unslice_shape)
unslice.set_attr("FElement", _unslice_element)
unslice.set_attr("FCompute", _unslice_compute)
unslice.set_attr("FGradient", _unslice_gradient)
unslice.set_attr("FSimplify", _simplify_unslice)


def _size_param(node: Node) -> Extent:
    size = node.params["size"]
    if isinstance(size, bool) or not isinstance(size, (int, Size)):
        raise ShapeError(f"{node.where} needs an int or a size, got {size!r}")
    return size


def _div_shape(node: Node, shape: Shape) -> Shape:
    """The input's shape, once the size is checked."""
    _size_param(node)
    return shape


def _div_by_size(node: Node, x: Expr) -> Expr:
    """The quotient; sizes may be larger than any float of 16 bits, so those divide in float32."""
    wide = float32 if is_narrow(x.dtype) else x.dtype
    quotient = ast.cast(x, wide) / ast.cast(ast.size_of(_size_param(node)), wide)
    return ast.cast(quotient, x.dtype)


div_by_size = register_op(
    "div_by_size", 1, params={"size": REQUIRED}, doc="x divided by an extent, such as x.shape[0]"
).include("elementwise")
div_by_size.set_attr("FCodeGen", _div_by_size)
div_by_size.set_attr("FInferType", common_dtype("f"))
div_by_size.set_attr("FInferShape", _div_shape)
div_by_size.set_attr("TOpPattern", OpPattern.ELEMWISE)
div_by_size.set_attr("TOpCost", "light")
div_by_size.set_attr(
    "FGradient", lambda node, dy: [make("div_by_size", dy, size=node.params["size"])]
)


# prod_others: the derivative of a product, right where factors are 0


def _zeros_among(node: Node, x: Entry) -> tuple[Entry, Entry, Entry, Entry]:
    """Which factors are 0, how many; the factors, and their product, with 1 for those."""
    fold = {"axis": node.params["axis"], "keepdims": True}
    zero = make("equal", x, 0.0)
    count = make("reduce_sum", make("cast", zero, dtype=x.dtype), **fold)
    others = make("where", zero, 1.0, x)
    return zero, count, others, make("reduce_prod", others, **fold)


def _prod_others(node: Node, x: Entry) -> Entry:
    zero, count, others, product = _zeros_among(node, x)
    alone = make("logical_and", zero, make("equal", count, 1.0))
    chosen = make("logical_or", alone, make("equal", count, 0.0))
    return make("where", chosen, product / others, 0.0)


def _prod_others_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Sum over i of dy[i] times the product of all but i and the one it is the gradient of.

    With two zeros only the product without both is left, with three nothing.
    """
    x = node.inputs[0]
    fold = {"axis": node.params["axis"], "keepdims": True}
    zero, count, others, product = _zeros_among(node, x)
    part = dy / others
    rest = make("reduce_sum", make("where", zero, 0.0, part), **fold)
    lost = make("reduce_sum", make("where", zero, dy, 0.0), **fold)
    one = make("where", zero, rest, lost)
    two = make("where", make("logical_and", zero, make("equal", count, 2.0)), lost - dy, 0.0)
    some = make("where", make("equal", count, 1.0), one, two)
    return [product / others * make("where", make("equal", count, 0.0), rest - part, some)]


def _others_shape(node: Node, shape: Shape) -> Shape:
    normalize_axes(node, len(shape), node.params["axis"])
    return shape


prod_others = composite(
    "prod_others",
    1,
    _prod_others,
    "for each element the product of all others along axis",
    {"axis": None},
    shape=_others_shape,
    FGradient=_prod_others_gradient,
)
