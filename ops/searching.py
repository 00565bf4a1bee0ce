"""Searching: sorted numbers halved again and again, members, what is not 0.

NaN counts as the largest number. Where the length of what is searched is unknown, NumPy searches.
What has a shape that only the data tells (`argwhere`, `flatnonzero`) asks for a ``size``: the
result is cut to it, or filled up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from passkit.errors import GraphError, ShapeError, nearest
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED
from passkit.ops.composites import composite
from passkit.ops.helpers import check_kinds, count_param, make
from passkit.ops.ranges import check_number
from passkit.ops.sorting import flat_gradient, giving, searching
from passkit.values.dtype import DType, bool_, dtype_of, int64
from passkit.values.size import Extent, Shape, numel

Array = Any

SIDES = ("left", "right")

FEW = 64
"""So many numbers are compared one by one; more are sorted."""


def _search_shape(node: Node, sequence: Shape, values: Shape) -> Shape:
    """The values' shape. Raises: ShapeError when the leading axes differ."""
    side = node.params["side"]
    if side not in SIDES:
        raise GraphError(f"{node.where} has no side {side!r}; {nearest(side, SIDES)}")
    rows = len(sequence) == len(values) > 1 and sequence[:-1] == values[:-1]
    if len(sequence) != 1 and not rows:
        raise ShapeError(
            f"{node.where} needs a vector, or a vector for each row of the values, got "
            f"{show_shape(sequence)} for {show_shape(values)}"
        )
    return values


def _search(node: Node, sequence: Array, values: Array) -> Array:
    side = node.params["side"]
    if dtype_of(sequence.dtype).name == "bfloat16":  # where NaN has no place
        sequence, values = sequence.astype(np.float32), values.astype(np.float32)
    if sequence.ndim == 1:
        return np.asarray(np.searchsorted(sequence, values, side), np.int64)
    count = math.prod(sequence.shape[:-1])
    rows = sequence.reshape(count, sequence.shape[-1])
    wanted = values.reshape(count, values.shape[-1])
    found = [np.searchsorted(r, v, side) for r, v in zip(rows, wanted, strict=True)]
    return np.asarray(found, np.int64).reshape(values.shape)


def _halving(node: Node, sequence: Entry, values: Entry) -> Entry | None:
    """As many steps as the length has bits: each asks whether so many more come before a value."""
    n = known_shape(sequence)[-1]
    assert values.dtype is not None
    if not isinstance(n, int) or values.dtype.kind == "c":
        return None
    found = make("full_like", make("cast", values, dtype="int64"), fill_value=0)
    vector = len(known_shape(sequence)) == 1
    for bit in reversed(range(n.bit_length())):
        more = found + (1 << bit)
        if vector:
            seen = make("take", sequence, more - 1, axis=0)
        else:
            seen = make("take_along_axis", sequence, more - 1, axis=-1)
        fits = make("less_equal", more, make("full_like", more, fill_value=n))
        before = _before(seen, values, node.params["side"] == "right")
        found = make("where", make("logical_and", fits, before), more, found)
    return found


def _before(seen: Entry, value: Entry, equal: bool) -> Entry:
    """Whether what is seen comes before a value, or, if ``equal``, is as large."""
    dtype = value.dtype
    assert dtype is not None
    if dtype.kind == "b":
        seen, value = (make("cast", e, dtype="uint8") for e in (seen, value))
    out = make("less_equal" if equal else "less", seen, value)
    if not dtype.is_float:
        return out
    last = make("isnan", value)
    if not equal:
        last = make("logical_and", last, make("logical_not", make("isnan", seen)))
    return make("logical_or", out, last)


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
search.set_attr("FExpand", _halving)
search.set_attr("FGradient", flat_gradient)


def _digitize(node: Node, x: Entry, bins: Entry) -> Entry:
    return make("searchsorted", bins, x, side="left" if node.params["right"] else "right")


composite("digitize", ("x", "bins"), _digitize,
          "the bin of each element: how many of the rising bins are at most it, or below it with "
          "right", {"right": False},
          types=giving(int64),
          FGradient=flat_gradient, aliases="bucketize")


def _member(node: Node, x: Entry, test: Entry) -> Entry | None:
    """Compared with each of a few; of many the next one in order tells."""
    assert x.dtype is not None
    count = numel(known_shape(test))
    if not isinstance(count, int) or x.dtype.kind == "c":
        return None
    flat = make("reshape", test, shape=(count,))
    if count <= FEW:
        same = make("equal", make("expand_dims", x, axis=-1), flat)
        found = make("reduce_any", same, axis=-1)
    else:
        rising = make("sort", flat)
        near = make("take", rising, make("searchsorted", rising, x), axis=0)
        found = make("equal", near, x)
    return make("logical_not", found) if node.params["invert"] else found


member = searching(
    "isin",
    ["x", "test"],
    lambda node, x, test: np.isin(x, test, invert=node.params["invert"]),
    "whether each element of x is among those of test, or is not with invert",
    {"invert": False},
)
member.set_attr("FInferShape", lambda node, shape, test: shape)
member.set_attr("FInferType", giving(bool_))
member.set_attr("FExpand", _member)
member.set_attr("FGradient", flat_gradient)


# Where elements are not 0: their places, moved up by how many stand before them.


def _moved_up(node: Node, x: Entry, what: Entry, width: Extent) -> Entry:
    """The rows of ``what``, one an element, of the first ``size`` elements that are not 0."""
    count, size = numel(known_shape(x)), count_param(node, "size")
    flat = make("reshape", x, shape=(count,))
    there = make("not_equal", flat, make("zeros_like", flat))
    one = make("cast", there, dtype="int64")
    place = make("cumsum", one, axis=0) - one
    rows = make("where", there, place, make("full_like", place, fill_value=-1))
    fill = make("full", shape=(1, 1, size, width), fill_value=node.params["fill_value"],
                dtype="int64")  # fmt: skip
    return make(
        "scatter_rows", fill, make("reshape", rows, shape=(1, count)),
        make("reshape", what, shape=(1, 1, count, width)), kind="update",
    )  # fmt: skip


def _argwhere(node: Node, x: Entry) -> Entry:
    shape, size = known_shape(x), count_param(node, "size")
    rank = len(shape)
    if rank == 0:
        return make("full", shape=(size, 0), fill_value=0, dtype="int64")
    steps = [make("arange", start=0, stop=n, dtype="int64") for n in shape]
    steps = [
        make("broadcast_to", make("reshape", s, shape=(n, *(1,) * (rank - 1 - k))), shape=shape)
        for k, (s, n) in enumerate(zip(steps, shape, strict=True))
    ]
    out = _moved_up(node, x, make("stack", *steps, axis=-1), rank)
    return make("reshape", out, shape=(size, rank))


def _flatnonzero(node: Node, x: Entry) -> Entry:
    count, size = numel(known_shape(x)), count_param(node, "size")
    out = _moved_up(node, x, make("arange", start=0, stop=count, dtype="int64"), 1)
    return make("reshape", out, shape=(size,))


def _where_type(node: Node, x: DType) -> DType:
    check_kinds(node, "biuf", x)
    check_number(node, node.params["fill_value"], int64)
    return int64


composite(
    "argwhere", 1, _argwhere,
    "the coordinates of the first size elements that are not 0, in row-major order; fill_value "
    "behind them", {"size": REQUIRED, "fill_value": -1},
    shape=lambda node, shape: (count_param(node, "size"), len(shape)), types=_where_type,
    FGradient=flat_gradient,
)  # fmt: skip
composite(
    "flatnonzero", 1, _flatnonzero,
    "the row-major places of the first size elements that are not 0; fill_value behind them",
    {"size": REQUIRED, "fill_value": -1},
    shape=lambda node, shape: (count_param(node, "size"),), types=_where_type,
    FGradient=flat_gradient,
)  # fmt: skip
