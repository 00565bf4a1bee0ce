"""Arrays made of numbers: fills, ranges, one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.values.size import Size


def _number(value: Value) -> Any:
    """The one number of a known value, else None."""
    known = value.known
    if known is None or known.dtype == object or known.size != 1:
        return None
    return known.astype(np.float64).item() if value.dtype.is_float else known.item()


@row("Fill")
def _fill(call: Call, shape: Value, x: Value) -> Result:
    wanted = tuple(call.extents(shape, "shape"))
    return ops.broadcast_to(x.entry, shape=wanted, name=call.name)


@row("Empty")
def _empty(call: Call, shape: Value) -> Result:
    wanted = tuple(call.extents(shape, "shape"))
    return ops.zeros(wanted, dtype=call.dtype("dtype").name, name=call.name)


@row("Range")
def _range(call: Call, start: Value, limit: Value, delta: Value) -> Result:
    """Known floats, or a range of whole numbers up to an unknown size."""
    dtype = start.dtype
    if dtype.is_integer:
        (low,), (high,), step = (
            call.extents(start, "start"),
            call.extents(limit, "limit"),
            call.integer(delta, "delta"),
        )
        if isinstance(low, Size) or (step != 1 and isinstance(high, Size)):
            raise ModelError(
                f"{call.where} needs a known start, and delta 1 up to the unknown size {high}, "
                f"got start {low} and delta {step}"
            )
        if isinstance(high, Size):
            return ops.arange(low, high, 1, dtype=dtype.name, name=call.name)
    first, last, by = (_number(v) for v in (start, limit, delta))
    if None in (first, last, by) or by == 0:
        raise ModelError(
            f"{call.where} needs known numbers and a delta other than 0, got "
            f"{', '.join(call.shown(v) for v in (start, limit, delta))}"
        )
    if not np.isfinite((last - first) / by):
        raise ModelError(f"{call.where} needs finite numbers, got {first}, {last} and {by}")
    return ops.arange(first, last, by, dtype=dtype.name, name=call.name)


@row("LinSpace")
def _lin_space(call: Call, start: Value, stop: Value, num: Value) -> Result:
    (count,) = call.extents(num, "num")[:1] or (0,)
    if isinstance(count, int) and count < 1:
        raise ModelError(f"{call.where} needs a num of at least 1, got {count}")
    dtype = start.dtype.name
    first, last = _number(start), _number(stop)
    if first is not None and last is not None:
        return ops.linspace(first, last, num=count, dtype=dtype, name=call.name)
    part = ops.linspace(0.0, 1.0, num=count, dtype=dtype)
    line = start.entry + (stop.entry - start.entry) * part
    return ops.where(part < 1.0, line, stop.entry) if count != 1 else line


@row("OneHot")
def _one_hot(call: Call, indices: Value, depth: Value, on: Value, off: Value) -> Result:
    (count,) = call.extents(depth, "depth")[:1] or (-1,)
    axis = call.attr("axis", "i", -1)
    high, low = _number(on), _number(off)
    if high is not None and low is not None and on.dtype.kind != "c":
        return ops.one_hot(
            indices.entry,
            depth=count,
            on_value=high,
            off_value=low,
            axis=axis,
            dtype=on.dtype.name,
            name=call.name,
        )
    hit = ops.one_hot(
        indices.entry, depth=count, on_value=True, off_value=False, axis=axis, dtype="bool"
    )
    return ops.where(hit, on.entry, off.entry, name=call.name)
