"""Segments: what stands at equal ids is folded, in any order of ids. Scatters do it.

A negative id, or one that is too large, takes no part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.errors import ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED
from passkit.ops.composites import composite
from passkit.ops.helpers import check_kinds, count_param, make
from passkit.ops.indices import indexed_type
from passkit.ops.reduce import highest, lowest
from passkit.ops.scattering import filled
from passkit.values.dtype import DType
from passkit.values.size import Shape, numel


def _segments(node: Node, x: Entry, ids: Entry) -> tuple[Entry, Entry, Shape]:
    """The rows of x, the id of each, and the shape of the result."""
    count = count_param(node, "num_segments")
    lead = known_shape(ids)
    shape = known_shape(x)
    if len(lead) > len(shape):
        raise ShapeError(
            f"{node.where} needs ids for the first axes of x, got {show_shape(lead)} for "
            f"{show_shape(shape)}"
        )
    for k, n in enumerate(lead):
        agree(node, shape[k], n, f"dimension {k} of x and ids")
    rest = shape[len(lead) :]
    rows = make("reshape", x, shape=(numel(lead), *rest))
    wide = make("cast", ids, dtype="int64")
    outside = make("full_like", wide, fill_value=np.iinfo(np.int64).max)
    known = make("where", make("less", wide, make("full_like", wide, fill_value=0)), outside, wide)
    return rows, make("reshape", known, shape=(numel(lead),)), (count, *rest)


def _segment(kind: str, start: Callable[[DType], Any]) -> Callable[..., Entry]:
    def expand(node: Node, x: Entry, ids: Entry) -> Entry:
        rows, at, shape = _segments(node, x, ids)
        assert x.dtype is not None
        return make(f"index_{kind}", filled(shape, start(x.dtype), x), at, rows)

    return expand


def _segment_type(node: Node, x: DType, ids: DType) -> DType:
    check_kinds(node, "iuf", x)
    return indexed_type(node, x, ids)


def _average(of: Callable[[Entry], Entry]) -> Callable[..., Entry]:
    """Sums over what ``of`` makes of the numbers of rows; of none 0."""

    def expand(node: Node, x: Entry, ids: Entry) -> Entry:
        rows, at, shape = _segments(node, x, ids)
        total = make("index_add", filled(shape, 0, x), at, rows)
        ones = filled((known_shape(rows)[0],), 1, x)
        count = make("index_add", filled(shape[:1], 0, x), at, ones)
        some = of(make("maximum", count, make("full_like", count, fill_value=1)))
        return make("div", total, make("reshape", some, shape=(shape[0], *(1,) * (len(shape) - 1))))

    return expand


_EACH = "of the rows of x with each id below num_segments; negative ids take no part"
for _name, _expand, _doc in (
    ("segment_sum", _segment("add", lambda d: 0), f"the sum {_EACH}"),
    ("segment_prod", _segment("mul", lambda d: 1), f"the product {_EACH}; of none 1"),
    ("segment_max", _segment("max", lowest), f"the largest {_EACH}; of none the lowest"),
    ("segment_min", _segment("min", highest), f"the smallest {_EACH}; of none the highest"),
    ("segment_mean", _average(lambda n: n), f"the mean {_EACH}; of none 0"),
    ("segment_sqrt_n", _average(lambda n: make("sqrt", n)),
     f"the sum {_EACH}, over the root of their number; of none 0"),
):  # fmt: skip
    composite(_name, ("x", "segment_ids"), _expand, _doc, {"num_segments": REQUIRED},
              types=_segment_type, aliases=f"unsorted_{_name}")  # fmt: skip
