"""Reductions: fold the elements along ``axis`` (None: all; an int; a tuple) into one.

``keepdims`` leaves the folded axes in the shape, as 1. The result has the input's dtype: a sum of
int32 is int32 and wraps. 16-bit floats are accumulated in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.graph.infer import demand
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import Op, OpPattern, register_op
from passkit.ops.helpers import add_aliases, as_replacement, common_dtype, make, normalize_axes
from passkit.values.dtype import DType, float32
from passkit.values.size import Shape, numel

if TYPE_CHECKING:
    from passkit.ast import Expr, Reduce

PARAMS = {"axis": None, "keepdims": False}


def reduced_shape(node: Node, shape: Shape | None) -> Any:
    """The input's shape without the folded axes, or with 1 in their place.

    A reduction over all axes is a scalar whatever the rank of its input, which may be unknown.
    """
    if shape is None:
        whole = node.params["axis"] is None and not node.params["keepdims"]
        return () if whole else None
    axes = normalize_axes(node, len(shape), node.params["axis"])
    if node.params["keepdims"]:
        return tuple(1 if k in axes else n for k, n in enumerate(shape))
    return tuple(n for k, n in enumerate(shape) if k not in axes)


def nonempty_shape(node: Node, shape: Shape | None) -> Any:
    """As `reduced_shape`. Raises: ShapeError when nothing is folded: there is no identity."""
    if shape is None:
        return reduced_shape(node, None)
    for k in normalize_axes(node, len(shape), node.params["axis"]):
        demand(node, shape[k], 1, f"axis {k} must not be empty, as {_name(node)} has no identity")
    return reduced_shape(node, shape)


for _rule in (reduced_shape, nonempty_shape):
    _rule.__dict__["partial"] = True


def _name(node: Node) -> str:
    return node.op.name if node.op else ""


def _nothing_folded(node: Node) -> Entry | None:
    """A fold over no axes is its input."""
    return as_replacement(node, node.inputs[0]) if node.params["axis"] == () else None


def accumulator(dtype: DType) -> DType:
    """The dtype in which values of ``dtype`` are summed."""
    return float32 if dtype.is_float and dtype.nbytes < 4 else dtype


def lowest(dtype: DType) -> Any:
    """The smallest value of a dtype: -inf for floats."""
    return -np.inf if dtype.is_float else np.iinfo(dtype.numpy).min


def highest(dtype: DType) -> Any:
    """The largest value of a dtype: inf for floats."""
    return np.inf if dtype.is_float else np.iinfo(dtype.numpy).max


def spread(node: Node, folded: Entry) -> Entry:
    """``folded``, which has the shape of the node's result, stretched over what was folded."""
    shape = known_shape(node.inputs[0])
    axes = normalize_axes(node, len(shape), node.params["axis"])
    aligned = tuple(1 if k in axes else n for k, n in enumerate(shape))
    if not node.params["keepdims"] and axes:
        folded = make("reshape", folded, shape=aligned)
    return make("broadcast_to", folded, shape=shape)


def _sum_gradient(node: Node, dy: Entry) -> list[Entry]:
    return [spread(node, dy)]


def _mean_gradient(node: Node, dy: Entry) -> list[Entry]:
    shape = known_shape(node.inputs[0])
    count = numel(shape[k] for k in normalize_axes(node, len(shape), node.params["axis"]))
    return [spread(node, make("div_by_size", dy, size=count))]


def _extreme_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Those that are the largest share it equally, as in TensorFlow."""
    x, fold = node.inputs[0], {k: node.params[k] for k in PARAMS}
    chosen = make("equal", x, spread(node, node.entries[0]))
    count = make("reduce_sum", make("cast", chosen, dtype=x.dtype), **fold)
    return [make("where", chosen, spread(node, dy / count), 0.0)]


def _prod_gradient(node: Node, dy: Entry) -> list[Entry]:
    x = node.inputs[0]
    return [spread(node, dy) * make("prod_others", x, axis=node.params["axis"])]


def reduction(
    name: str,
    kinds: str,
    identity: Callable[[DType], Any],
    combine: Callable[[Expr, Expr], Expr],
    doc: str,
    *,
    finish: Callable[[Expr, Expr], Expr] | None = None,
    shape: Callable[..., Shape] = reduced_shape,
    gradient: Callable[..., list[Entry]] | None = None,
    aliases: str = "",
) -> Op:
    """Register ``name`` with what all reductions share."""

    @lru_cache(maxsize=256)  # planning asks for that of a node again and again
    def fold_of(dtype: DType, axes: tuple[int, ...], keepdims: bool) -> Reduce:
        acc = accumulator(dtype)

        def ending(total: Expr, count: Expr) -> Expr:
            return ast.cast(finish(total, count) if finish else total, dtype)

        return ast.Reduce(
            axes=axes,
            keepdims=keepdims,
            identity=ast.const(identity(acc), acc),
            combine=combine(ast.left(acc), ast.right(acc)),
            prepare=None if acc is dtype else lambda x: ast.cast(x, acc),
            finish=None if acc is dtype and finish is None else ending,
        )

    def fold(node: Node) -> Reduce:
        dtype = node.inputs[0].dtype
        assert dtype is not None
        axes = normalize_axes(node, len(known_shape(node.inputs[0])), node.params["axis"])
        return fold_of(dtype, axes, node.params["keepdims"])

    op = register_op(name, num_inputs=1, params=PARAMS, doc=doc)
    op.set_attr("FReduce", fold)
    op.set_attr("FInferShape", shape)
    op.set_attr("FInferType", common_dtype(kinds))
    op.set_attr("FSimplify", _nothing_folded)
    op.set_attr("TOpPattern", OpPattern.REDUCE)
    op.set_attr("TOpCost", "expensive")
    if gradient is not None:
        op.set_attr("FGradient", gradient)
    add_aliases(op, aliases)
    return op


# name, kinds, identity, combination of two, meaning
reduction(
    "reduce_sum",
    "iuf",
    lambda d: 0,
    lambda a, b: a + b,
    "the sum; 0 of nothing",
    gradient=_sum_gradient,
)
reduction(
    "reduce_prod",
    "iuf",
    lambda d: 1,
    lambda a, b: a * b,
    "the product; 1 of nothing",
    gradient=_prod_gradient,
)
reduction(
    "reduce_mean",
    "f",
    lambda d: 0,
    lambda a, b: a + b,
    "the sum divided by the count; NaN of nothing",
    finish=lambda total, count: total / ast.cast(count, total.dtype),
    gradient=_mean_gradient,
)
reduction(
    "reduce_max",
    "iuf",
    lowest,
    lambda a, b: ast.maximum(a, b),
    "the largest; NaN if any is; of zeros of both signs either",
    shape=nonempty_shape,
    gradient=_extreme_gradient,
)
reduction(
    "reduce_min",
    "iuf",
    highest,
    lambda a, b: ast.minimum(a, b),
    "the smallest; NaN if any is; of zeros of both signs either",
    shape=nonempty_shape,
    gradient=_extreme_gradient,
)
reduction("reduce_any", "b", lambda d: False, lambda a, b: a | b, "whether any holds")
reduction("reduce_all", "b", lambda d: True, lambda a, b: a & b, "whether all hold")
