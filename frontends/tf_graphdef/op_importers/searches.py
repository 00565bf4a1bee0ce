"""Where elements are: the largest ones, their order, and places in sorted numbers."""

from __future__ import annotations

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.values.dtype import dtype_of, largest_finite
from passkit.values.size import Extent


@row("ArgMax", "ArgMin")
def _arg(call: Call, x: Value, axis: Value) -> Result:
    """TensorFlow passes over NaN, which NumPy takes for the largest and the smallest.

    It begins with element 0 and the lowest finite number (for ArgMin the highest), and goes on to
    whatever is greater (less). So elements that are NaN or -inf (inf) count as that number.
    """
    largest = call.node.op == "ArgMax"
    entry = x.entry
    if x.dtype.is_float:
        limit = largest_finite(x.dtype)
        start = -limit if largest else limit
        ahead = ops.greater(entry, start) if largest else ops.less(entry, start)
        entry = ops.where(ahead, entry, start)
    found = (ops.argmax if largest else ops.argmin)(entry, axis=call.integer(axis, "axis"))
    wanted = call.dtype("output_type") if "output_type" in call.node.attr else dtype_of("int64")
    return ops.cast(found, dtype=wanted.name, name=call.name)


@row("TopK")
def _top_k_attribute(call: Call, x: Value) -> Result:
    return _top(call, x, call.attr("k", "i"))


@row("TopKV2")
def _top_k(call: Call, x: Value, k: Value) -> Result:
    (count,) = call.extents(k, "k")[:1] or (0,)
    return _top(call, x, count)


def _top(call: Call, x: Value, k: Extent) -> Result:
    """Largest first, which is an order too where the model wants none."""
    values, places = ops.top_k(x.entry, k=k)
    wanted = call.dtype("index_type") if "index_type" in call.node.attr else dtype_of("int32")
    return values, ops.cast(places, dtype=wanted.name) if wanted.name != "int32" else places


@row("LowerBound", "UpperBound")
def _bound(call: Call, rows: Value, values: Value) -> Result:
    side = "left" if call.node.op == "LowerBound" else "right"
    call.rank(rows, 2)
    call.rank(values, 2)
    found = ops.searchsorted(rows.entry, values.entry, side=side)
    return ops.cast(found, dtype=call.index_type("out_type").name, name=call.name)


@row("Where")
def _where(call: Call, condition: Value) -> Result:
    """The coordinates of what is not 0. Raises: ModelError unless they are known already."""
    known = condition.known
    if known is None or known.dtype == object:
        raise ModelError(
            f"{call.where} gives as many rows as its input has elements other than 0, and needs "
            f"to know them when the model is loaded, got {call.shown(condition)}; use a mask"
        )
    call.budget.take(8 * known.size * max(known.ndim, 1), call.where)
    return Value(call.name, dtype_of("int64"), known=np.argwhere(known).astype(np.int64))
