"""Sorting: NumPy steps, stable, with NaN as the largest number.

What has a shape that only the data tells (`unique`) asks for a ``size``: the result is cut to it,
or filled up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.errors import ShapeError
from passkit.graph.infer import demand, same_dtype_rule, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, Op, OpPattern, register_op
from passkit.ops.helpers import count_param, make, normalize_axis
from passkit.ops.indices import check_indices, zeros_of
from passkit.values.dtype import DType, dtype_of, int32, int64
from passkit.values.size import Shape

Array = Any


def searching(
    name: str,
    inputs: list[str],
    compute: Callable[..., Any],
    doc: str,
    params: dict[str, Any] | None = None,
    results: int = 1,
) -> Op:
    """Register an operator that NumPy's routines run."""
    op = register_op(name, len(inputs), results, params, doc)
    op.set_attr("FListInputNames", lambda params: inputs)
    op.set_attr("FCompute", compute)
    op.set_attr("TOpPattern", OpPattern.OPAQUE)
    op.set_attr("THostLibrary", "numpy")
    return op


def giving(result: DType) -> Callable[..., DType]:
    """The FInferType of an operator whose inputs share a dtype and that gives ``result``."""

    def infer_type(node: Node, *dtypes: DType) -> DType:
        same_dtype_rule(node, *dtypes)
        return result

    return infer_type


def flat_gradient(node: Node, *dy: Entry | None) -> list[Entry | None]:
    """Whole numbers do not move with what they were found by."""
    return [None] * len(node.inputs)


def _axis(node: Node, rank: int) -> int:
    return normalize_axis(node, rank, node.params["axis"])


def _sorted_shape(node: Node, shape: Shape) -> Shape:
    """The input's shape, once the axis is checked."""
    _axis(node, len(shape))
    return shape


def _order(x: Array, axis: int, descending: bool) -> Array:
    """Where the sorted elements stand in x; of equal ones the first comes first."""
    if dtype_of(x.dtype).is_float and x.dtype.itemsize < 4:
        x = x.astype(np.float32)  # so that NaN has its place in bfloat16 too
    if not descending:
        return np.argsort(x, axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(backwards, axis)


def _order_of(node: Node, x: Array) -> Array:
    return _order(x, _axis(node, x.ndim), node.params["descending"])


def _sort_gradient(node: Node, dy: Entry) -> list[Entry | None]:
    """dy taken back to where the elements came from, by the inverse of their order."""
    axis = node.params["axis"]
    order = make("argsort", node.inputs[0], axis=axis, descending=node.params["descending"])
    back = make("argsort", order, axis=axis)
    return [make("take_along_axis", dy, back, axis=axis)]


_PARAMS = {"axis": -1, "descending": False}
sort = searching(
    "sort",
    ["x"],
    lambda node, x: np.take_along_axis(x, _order_of(node, x), _axis(node, x.ndim)),
    "the elements along axis in order; NaN counts as the largest; equal ones, such as -0.0 and "
    "0.0, stay in theirs, as in numpy.sort(kind='stable')",
    _PARAMS,
)
sort.set_attr("FInferShape", _sorted_shape)
sort.set_attr("FInferType", same_dtype_rule)
sort.set_attr("FGradient", _sort_gradient)

argsort = searching(
    "argsort",
    ["x"],
    lambda node, x: _order_of(node, x).astype(np.int64),
    "the positions of the elements along axis in their order; equal ones stay in theirs",
    _PARAMS,
)
argsort.set_attr("FInferShape", _sorted_shape)
argsort.set_attr("FInferType", giving(int64))
argsort.set_attr("FGradient", flat_gradient)


# top_k


def _top_shape(node: Node, shape: Shape) -> tuple[Shape, Shape]:
    k = count_param(node, "k")
    axis = _axis(node, len(shape))
    demand(node, shape[axis], k, f"axis {axis} must have k elements")
    out = (*shape[:axis], k, *shape[axis + 1 :])
    return out, out


def _top(node: Node, x: Array) -> tuple[Array, Array]:
    axis = _axis(node, x.ndim)
    best = np.take(_order(x, axis, True), np.arange(node.params["k"]), axis)
    return np.take_along_axis(x, best, axis), best.astype(np.int32)


def _top_gradient(node: Node, dy: Entry | None, *_: Any) -> list[Entry | None]:
    if dy is None:
        return [None]
    x, axis = node.inputs[0], node.params["axis"]
    return [make("add_along_axis", zeros_of(x), node.entries[1], dy, axis=axis)]


top_k = searching(
    "top_k",
    ["x"],
    _top,
    "the k largest elements along axis, largest first, and their positions as int32; of equal ones "
    "the first",
    {"k": 1, "axis": -1},
    results=2,
)
top_k.set_attr("FInferShape", _top_shape)
top_k.set_attr("FInferType", lambda node, x: (x, int32))
top_k.set_attr("FGradient", _top_gradient)


# Shapes that only the data tells: cut or filled up to a size.


def _sized(node: Node, found: Array, fill: Any) -> Array:
    """The first ``size`` rows, with rows of ``fill`` behind."""
    size = int(node.params["size"])
    out = np.full((size, *found.shape[1:]), fill, found.dtype)
    out[: min(size, len(found))] = found[:size]
    return out


def _unique_shape(node: Node, shape: Shape) -> tuple[Shape, Shape]:
    return (count_param(node, "size"),), (count_param(node, "size"),)


def _unique(node: Node, x: Array) -> tuple[Array, Array]:
    values, counts = np.unique(x, return_counts=True)
    return _sized(node, values, 0), _sized(node, counts.astype(np.int64), 0)


def _unique_gradient(node: Node, dy: Entry | None, *_: Any) -> list[Entry | None]:
    """What is equal shares the gradient of its value alike."""
    if dy is None:
        return [None]
    x = node.inputs[0]
    values, counts = node.entries
    zero = make("full_like", counts, fill_value=0)
    used = make("greater", counts, zero)
    many = make("maximum", counts, make("full_like", counts, fill_value=1))
    assert dy.dtype is not None
    share = make("div", dy, make("cast", many, dtype=dy.dtype.name))
    share = make("where", used, share, zeros_of(share))
    flat = make("reshape", x, shape=(-1,))
    same = make("equal", make("expand_dims", flat, axis=1), make("expand_dims", values, axis=0))
    each = make("where", same, make("expand_dims", share, axis=0), zeros_of(share))
    return [make("reshape", make("reduce_sum", each, axis=1), shape=known_shape(x))]


unique = searching(
    "unique",
    ["x"],
    _unique,
    "the first size different elements in order, and how often each occurs; zeros behind them",
    {"size": REQUIRED},
    results=2,
)
unique.set_attr("FInferShape", _unique_shape)
unique.set_attr("FInferType", lambda node, x: (x, int64))
unique.set_attr("FGradient", _unique_gradient)


# Where equal elements were first.


def _vector_shape(node: Node, shape: Shape) -> Shape:
    """The input's shape. Raises: ShapeError for what is no vector."""
    if len(shape) != 1:
        raise ShapeError(f"{node.where} needs a vector, got {show_shape(shape)}; reshape it")
    return shape


def _first(node: Node, x: Array) -> Array:
    _, first, each = np.unique(x, return_index=True, return_inverse=True)
    return first[each.reshape(-1)].astype(np.int64)


def _positions_type(node: Node, x: DType) -> DType:
    """Positions. Raises: DTypeError for what is no integers."""
    check_indices(node, x, "elements")
    return int64


first_positions = searching(
    "first_positions",
    ["x"],
    _first,
    "for each of a vector of integers the position of the first one that equals it",
)
first_positions.set_attr("FInferShape", _vector_shape)
first_positions.set_attr("FInferType", _positions_type)
first_positions.set_attr("FGradient", flat_gradient)
