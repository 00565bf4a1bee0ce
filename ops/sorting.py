"""Sorting and searching: NumPy steps, stable, with NaN as the largest number.

What has a shape that only the data tells (`unique`, `argwhere`) asks for a ``size``: the result is
cut to it, or filled up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.dtype import DType, bool_, dtype_of, int32, int64
from passkit.errors import GraphError, ShapeError, nearest
from passkit.infer import agree, demand, same_dtype_rule, show_shape
from passkit.node import Entry, Node, known_shape
from passkit.op import REQUIRED, Op, OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.indices import zeros_of
from passkit.ops.rules import extents, make, one_axis, take
from passkit.size import Shape, Size

Array = Any


def searching(
    name: str,
    inputs: list[str],
    compute: Callable[..., Any],
    doc: str,
    params: dict[str, Any] | None = None,
    results: int = 1,
) -> Op:
    """Register an operator that runs in NumPy."""
    op = register_op(name, len(inputs), results, params, doc)
    op.set_attr("FListInputNames", lambda params: inputs)
    op.set_attr("FCompute", compute)
    op.set_attr("TOpPattern", OpPattern.OPAQUE)
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
    return one_axis(node, rank, node.params["axis"])


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
    "the elements along axis in order; NaN counts as the largest",
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
    k = extents(node, node.params["k"], "k")[0]
    axis = _axis(node, len(shape))
    if isinstance(k, int) and k < 0:
        raise ShapeError(f"{node.where} needs k >= 0, got {k}")
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


# searchsorted, isin


SIDES = ("left", "right")


def _search_shape(node: Node, sequence: Shape, values: Shape) -> Shape:
    """The values' shape. Raises: ShapeError when the leading axes differ."""
    side = node.params["side"]
    if side not in SIDES:
        raise GraphError(f"{node.where} has no side {side!r}; {nearest(side, SIDES)}")
    if len(sequence) == 1:
        return values
    rows = list(zip(sequence[:-1], values[:-1], strict=False))
    if len(sequence) != len(values) or any(
        isinstance(n, int) and isinstance(m, int) and n != m for n, m in rows
    ):
        raise ShapeError(
            f"{node.where} needs a vector, or a vector for each row of the values, got "
            f"{show_shape(sequence)} for {show_shape(values)}"
        )
    return (*(agree(node, n, m, f"dimension {k}") for k, (n, m) in enumerate(rows)), values[-1])


def _search(node: Node, sequence: Array, values: Array) -> Array:
    side = node.params["side"]
    if sequence.ndim == 1:
        return np.asarray(np.searchsorted(sequence, values, side), np.int64)
    rows = sequence.reshape(-1, sequence.shape[-1])
    wanted = values.reshape(rows.shape[0], -1)
    found = [np.searchsorted(r, v, side) for r, v in zip(rows, wanted, strict=True)]
    return np.asarray(found, np.int64).reshape(values.shape)


search = searching(
    "searchsorted",
    ["sorted_sequence", "values"],
    _search,
    "where each value would be put into the sorted numbers: before equal ones, or after them with "
    "side 'right'",
    {"side": "left"},
)
search.set_attr("FInferShape", _search_shape)
search.set_attr("FInferType", giving(int64))
search.set_attr("FGradient", flat_gradient)


def _digitize(node: Node, x: Entry, bins: Entry) -> Entry:
    return make("searchsorted", bins, x, side="left" if node.params["right"] else "right")


composite("digitize", ("x", "bins"), _digitize,
          "the bin of each element: how many of the rising bins are at most it, or below it with "
          "right", {"right": False},
          types=giving(int64),
          FGradient=flat_gradient, aliases="bucketize")


member = searching(
    "isin",
    ["x", "test"],
    lambda node, x, test: np.isin(x, test, invert=node.params["invert"]),
    "whether each element of x is among those of test, or is not with invert",
    {"invert": False},
)
member.set_attr("FInferShape", lambda node, shape, test: shape)
member.set_attr("FInferType", giving(bool_))
member.set_attr("FGradient", flat_gradient)


# Shapes that only the data tells: cut or filled up to a size.


def _size(node: Node) -> int | Size:
    size = extents(node, node.params["size"], "size")[0]
    if isinstance(size, int) and size < 0:
        raise ShapeError(f"{node.where} needs a size >= 0, got {size}")
    return size


def _sized(node: Node, found: Array, fill: Any) -> Array:
    """The first ``size`` rows, with rows of ``fill`` behind."""
    size = int(node.params["size"])
    out = np.full((size, *found.shape[1:]), fill, found.dtype)
    out[: min(size, len(found))] = found[:size]
    return out


def _where_shape(node: Node, shape: Shape) -> Shape:
    return (_size(node), len(shape))


def _where_type(node: Node, x: DType) -> DType:
    take(node, "biuf", x)
    return int64


argwhere = searching(
    "argwhere",
    ["x"],
    lambda node, x: _sized(
        node, np.argwhere(x).astype(np.int64), node.params["fill_value"]
    ),
    "the coordinates of the first size elements that are not 0, in row-major order; fill_value "
    "behind them",
    {"size": REQUIRED, "fill_value": -1},
)
argwhere.set_attr("FInferShape", _where_shape)
argwhere.set_attr("FInferType", _where_type)
argwhere.set_attr("FGradient", flat_gradient)


def _unique_shape(node: Node, shape: Shape) -> tuple[Shape, Shape]:
    return (_size(node),), (_size(node),)


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
