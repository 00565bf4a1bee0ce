"""Where the largest and smallest elements are, and how many differ from zero: whole numbers.

They have no gradient. An axis may be None (all, flattened), an int or a tuple; several count as
one, flattened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.errors import ShapeError
from passkit.graph.node import Entry, Node, constant, known_shape
from passkit.ops.composites import composite
from passkit.ops.helpers import check_kinds, common_dtype, count_param, make, normalize_axes
from passkit.ops.reduce import nonempty_shape, reduced_shape
from passkit.values.dtype import DType, int64
from passkit.values.size import Extent, Shape, numel

PARAMS = {"axis": None, "keepdims": False}


def no_gradient(node: Node, *dy: Entry | None) -> list[None]:
    """Whole numbers do not move with what they were found by."""
    return [None] * len(node.inputs)


def places(x: Entry, axes: tuple[int, ...]) -> Entry:
    """The position of each element in the flattened ``axes``, in a shape that broadcasts to x."""
    shape = known_shape(x)
    count = numel(shape[k] for k in axes)
    dtype = "int32" if isinstance(count, int) and count < 1 << 31 else "int64"
    stride: Extent = 1
    total: Entry | None = None
    for k in reversed(axes):
        along = make("arange", start=0, stop=shape[k], dtype=dtype)
        along = make("reshape", along, shape=(shape[k], *[1] * (len(shape) - 1 - k)))
        if total is not None:
            along = along * _number(stride, dtype) + total
        total, stride = along, stride * shape[k]
    return make("full", shape=(), fill_value=0, dtype=dtype) if total is None else total


def _number(size: Extent, dtype: str) -> Any:
    """An extent as a factor: a stride that is unknown is the last of a range."""
    if isinstance(size, int):
        return size
    steps = make("arange", start=0, stop=size + 1, dtype=dtype)
    return make("reduce_max", steps)


def _arg(fold: str) -> Callable[[Node, Entry], Entry]:
    """The smallest position of what equals the result of ``fold``, or is NaN beside a NaN."""

    def expand(node: Node, x: Entry) -> Entry:
        axes = normalize_axes(node, len(known_shape(x)), node.params["axis"])
        assert x.dtype is not None
        if x.dtype.kind == "b":
            x = make("cast", x, dtype="int32")
        hit = make("equal", x, make(fold, x, axis=axes, keepdims=True))
        if x.dtype is not None and x.dtype.is_float:
            hit = make("logical_or", hit, make("isnan", x))
        at = places(x, axes)
        assert at.dtype is not None
        found = make("where", hit, at, int(np.iinfo(at.dtype.numpy).max))
        first = make("reduce_min", found, axis=axes, keepdims=node.params["keepdims"])
        return make("cast", first, dtype="int64")

    return expand


def _count(node: Node, x: Entry) -> Entry:
    hit = make("cast", make("not_equal", x, make("zeros_like", x)), dtype="int64")
    return make("reduce_sum", hit, **node.params)


for _name, _fold, _word in (("argmax", "max", "largest"), ("argmin", "min", "smallest")):
    composite(
        _name,
        1,
        _arg(f"reduce_{_fold}"),
        f"where the {_word} element is, the first of equal ones, or the first NaN; int64",
        PARAMS,
        shape=nonempty_shape,
        types=common_dtype("biuf", int64),
        aliases=f"arg_{_fold}",
        FGradient=no_gradient,
    )
composite(
    "count_nonzero",
    1,
    _count,
    "how many elements are not 0; int64",
    PARAMS,
    shape=reduced_shape,
    types=common_dtype("biuf", int64),
    FGradient=no_gradient,
)


# Counts of values: a scatter of ones.


def _length(node: Node, what: str) -> int:
    """A parameter that counts results. Raises: ShapeError for no number of at least 1."""
    found = count_param(node, what)
    if not isinstance(found, int) or found < 1:
        raise ShapeError(f"{node.where} needs an int of at least 1 as {what}, got {found!r}")
    return found


def _counted(rows: Entry, length: int) -> Entry:
    """How often each number below ``length`` occurs among int64 numbers."""
    count = numel(known_shape(rows))
    ones = make("full", shape=(1, 1, count, 1), fill_value=1, dtype="int64")
    none = make("full", shape=(1, 1, length, 1), fill_value=0, dtype="int64")
    out = make("scatter_rows", none, make("reshape", rows, shape=(1, count)), ones)
    return make("reshape", out, shape=(length,))


def _bincount(node: Node, x: Entry) -> Entry:
    return _counted(make("cast", x, dtype="int64"), _length(node, "length"))


def _bounds(node: Node) -> tuple[float, float]:
    given = node.params["range"]
    good = isinstance(given, tuple) and len(given) == 2
    if not good or not all(isinstance(v, (int, float)) for v in given) or not given[0] < given[1]:
        raise ShapeError(f"{node.where} needs (low, high) with low < high as range, got {given!r}")
    return given  # type: ignore[no-any-return]


def _histogram(node: Node, x: Entry) -> Entry:
    """Source: numpy.histogram with equal bins; the last takes its upper end too."""
    bins, (low, high) = _length(node, "bins"), _bounds(node)
    wide = make("cast", x, dtype="float64")
    edges = constant(np.linspace(low, high, bins + 1))
    behind = make("searchsorted", edges, wide, side="right")
    last = make("equal", wide, make("full_like", wide, fill_value=high))
    bin_of = make("where", last, make("full_like", behind, fill_value=bins), behind)
    return _counted(bin_of - 1, bins)


def _bins_shape(node: Node, shape: Shape) -> Shape:
    _bounds(node)
    return (_length(node, "bins"),)


def _whole_type(node: Node, dtype: DType) -> DType:
    check_kinds(node, "iu", dtype)
    return int64


composite(
    "bincount", 1, _bincount, "how often 0 … length-1 occur; others do not count", {"length": 1},
    shape=lambda node, shape: (_length(node, "length"),), types=_whole_type,
    FGradient=no_gradient,
)  # fmt: skip
composite(
    "histogram", 1, _histogram,
    "how many elements lie in each of equal bins over range; others do not count",
    {"bins": 10, "range": (0.0, 1.0)}, shape=_bins_shape, types=common_dtype("biuf", int64),
    FGradient=no_gradient,
)  # fmt: skip
