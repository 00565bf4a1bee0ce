"""Segment reductions: rows with equal ids are reduced to one, whatever the order of the ids.

They expand to scatters. An id that is negative or too large is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.errors import ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_dtype, known_shape
from passkit.graph.op import REQUIRED
from passkit.ops.composites import composite
from passkit.ops.helpers import check_kinds, count_param, make
from passkit.ops.indices import indexed_dtype
from passkit.ops.reduce import highest, lowest
from passkit.ops.scattering import full_of
from passkit.values.dtype import DType
from passkit.values.size import Shape, numel


def _rows_and_ids(node: Node, x: Entry, ids: Entry) -> tuple[Entry, Entry, Shape]:
    """Return the rows of x, the id of each row, and the shape of the result.

    The ids' axes are the first ones of x, which are flattened. Negative ids are replaced by one
    that is too large, since a scatter would count them from the end. The ids are int64; the result
    has the parameter ``num_segments`` of rows. ``node`` has the parameter ``num_segments``.

    Raises:
        ShapeError: If the ids have another shape than the first axes of x, ``num_segments`` is no
            int >= 0 or Size, or a rank is unknown.
    """
    count = count_param(node, "num_segments")
    id_shape = known_shape(ids)
    shape = known_shape(x)
    if len(id_shape) > len(shape):
        raise ShapeError(
            f"{node.where} needs ids for the first axes of x, got {show_shape(id_shape)} for "
            f"{show_shape(shape)}"
        )
    for k, n in enumerate(id_shape):
        agree(node, shape[k], n, f"dimension {k} of x and ids")
    row_shape = shape[len(id_shape) :]
    rows = make("reshape", x, shape=(numel(id_shape), *row_shape))
    ids64 = make("cast", ids, dtype="int64")
    too_large = make("full_like", ids64, fill_value=np.iinfo(np.int64).max)
    is_negative = make("less", ids64, make("full_like", ids64, fill_value=0))
    row_ids = make("where", is_negative, too_large, ids64)
    return rows, make("reshape", row_ids, shape=(numel(id_shape),)), (count, *row_shape)


def _expand_segments(kind: str, initial: Callable[[DType], Any]) -> Callable[..., Entry]:
    """Return the FExpand of a segment reduction.

    Args:
        kind: The kind of scatter that combines rows.
        initial: Returns the result for a segment without rows, for a dtype.
    """

    def expand(node: Node, x: Entry, ids: Entry) -> Entry:
        """Scatter the rows of x into an array of initial values.

        ``ids`` has the segment of each row. ``node`` has the parameter ``num_segments``.

        Raises: ShapeError if ids and x, or ``num_segments``, do not fit, or a rank is unknown;
        DTypeError if the dtype of x is unknown.
        """
        rows, row_ids, shape = _rows_and_ids(node, x, ids)
        return make(f"index_{kind}", full_of(shape, initial(known_dtype(x)), x), row_ids, rows)

    return expand


def _expand_segment_mean(divisor: Callable[[Entry], Entry]) -> Callable[..., Entry]:
    """Return the FExpand of sums of segments, divided by a function of their numbers of rows.

    Args:
        divisor: Returns the divisor from the number of rows, which is 1 for a segment without rows.
    """

    def expand(node: Node, x: Entry, ids: Entry) -> Entry:
        """Scatter sums and counts of the rows of x, and divide.

        ``ids`` has the segment of each row. ``node`` has the parameter ``num_segments``.

        Raises: ShapeError if ids and x, or ``num_segments``, do not fit, or a rank is unknown;
        DTypeError if the dtype of x is unknown or an integer.
        """
        rows, row_ids, shape = _rows_and_ids(node, x, ids)
        total = make("index_add", full_of(shape, 0, x), row_ids, rows)
        ones = full_of((known_shape(rows)[0],), 1, x)
        count = make("index_add", full_of(shape[:1], 0, x), row_ids, ones)
        divisors = divisor(make("maximum", count, make("full_like", count, fill_value=1)))
        trailing = (1,) * (len(shape) - 1)
        return make("div", total, make("reshape", divisors, shape=(shape[0], *trailing)))

    return expand


def _segment_dtype(node: Node, x: DType, ids: DType) -> DType:
    """Infer the dtype, that of ``x``.

    Raises: DTypeError, naming ``node``, if ``ids``, a dtype, is no integer, or x is bool or
    complex.
    """
    check_kinds(node, "iuf", x)
    return indexed_dtype(node, x, ids)


def _register_segment_reduction(name: str, expand: Callable[..., Entry], doc: str) -> None:
    """Register the segment reduction ``name``; its alias is TensorFlow's name unsorted_….

    ``expand`` is its FExpand, ``doc`` its documentation. Its inputs are x and segment_ids, its
    parameter is ``num_segments``.

    Raises: RegistryError if an operator of that name has another number of inputs, an attribute of
    it was set elsewhere, or the alias names another; ArgumentError if ``name`` is no identifier.
    """
    composite(
        name,
        inputs=["x", "segment_ids"],
        expand=expand,
        doc=doc,
        params={"num_segments": REQUIRED},
        types=_segment_dtype,
        aliases=f"unsorted_{name}",
    )


_OF_ROWS = "of the rows of x of each id from 0 to below num_segments; other ids are ignored"
_register_segment_reduction(
    "segment_sum",
    expand=_expand_segments("add", initial=lambda dtype: 0),
    doc=f"the sum {_OF_ROWS}",
)
_register_segment_reduction(
    "segment_prod",
    expand=_expand_segments("mul", initial=lambda dtype: 1),
    doc=f"the product {_OF_ROWS}; 1 without rows",
)
_register_segment_reduction(
    "segment_max",
    expand=_expand_segments("max", initial=lowest),
    doc=f"the largest {_OF_ROWS}; the lowest number without rows",
)
_register_segment_reduction(
    "segment_min",
    expand=_expand_segments("min", initial=highest),
    doc=f"the smallest {_OF_ROWS}; the highest number without rows",
)
_register_segment_reduction(
    "segment_mean",
    expand=_expand_segment_mean(divisor=lambda count: count),
    doc=f"the mean {_OF_ROWS}; 0 without rows",
)
_register_segment_reduction(
    "segment_sqrt_n",
    expand=_expand_segment_mean(divisor=lambda count: make("sqrt", count)),
    doc=f"the sum {_OF_ROWS}, divided by the square root of their number; 0 without rows",
)
