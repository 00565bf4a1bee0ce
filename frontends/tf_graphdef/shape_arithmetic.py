"""Arithmetic on shapes, done when the model is loaded.

TensorFlow computes shapes at run time, from the operator Shape on. passkit computes them here, with
sizes for the dimensions that are not known yet, so that a Reshape learns what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from passkit.errors import ModelError, PasskitError
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.value import Array, Call, Value
from passkit.values.size import Extent, Size

SECOND = ("Concat", "Fill", "Split")
"""Operators whose result has the type of their second input."""

LIMIT = 256
"""Known values of more elements are data, not shapes."""


def is_shape(value: Value) -> bool:
    """Whether a value is known, of integers, and small."""
    known = value.known
    return known is not None and value.dtype.is_integer and known.size <= LIMIT


def fold(call: Call, inputs: Sequence[Value]) -> tuple[Value, ...] | None:
    """The results of a node that works on shapes; None where it works on data.

    Raises: ModelError when the shapes do not fit the operator.
    """
    rule = FOLDS.get(call.node.op)
    if rule is None or not inputs or not all(map(is_shape, inputs)):
        return None
    op = call.node.op
    whole = inputs[1 if op in SECOND and len(inputs) > 1 else 0].dtype
    dtype = call.dtype("DstT") if op == "Cast" else whole
    if not dtype.is_integer or sum(v.known.size for v in inputs if v.known is not None) > LIMIT:
        return None
    arrays = [np.asarray(v.known, dtype=object) for v in inputs]
    try:
        found = rule(call, inputs, *arrays)
        if found is NotImplemented:
            return None
        many = found if isinstance(found, tuple) else (found,)
        return tuple(call.known(dtype, part) for part in many)
    except PasskitError:
        raise
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        shown = ", ".join(f"{short(v.name)} = {_shown(v)}" for v in inputs[:4])
        raise ModelError(f"{call.where} cannot work on the shapes {shown}: {error}") from None


def _shown(value: Value) -> str:
    assert value.known is not None
    flat = ", ".join(map(str, value.known.ravel()[:8]))
    return f"[{flat}{', …' if value.known.size > 8 else ''}]"


def squeezed(call: Call, x: Value) -> tuple[int, ...]:
    """The axes that go; without any in the model, those of a length that is 1 for certain.

    Raises: ModelError when an unknown dimension could be 1.
    """
    axes = call.integers("squeeze_dims") or call.integers("axis")
    if axes:
        return axes
    shape = call.shape(x)
    for axis, extent in enumerate(shape):
        if not isinstance(extent, int):
            raise ModelError(
                f"{call.where} drops dimensions of length 1, and axis {axis} of "
                f"{short(x.name)} has the unknown size {extent}; "
                f"give load the whole shape of its input in shapes="
            )
    return tuple(axis for axis, extent in enumerate(shape) if extent == 1)


def numpy_index(call: Call, begin: Value, end: Value, strides: Value) -> tuple[Any, ...]:
    """The NumPy index that the masks of a StridedSlice spell out."""
    begins, ends = call.extents(begin, "begin"), call.extents(end, "end")
    steps = call.ints(strides, "strides")
    if not len(begins) == len(ends) == len(steps):
        raise ModelError(
            f"{call.where} needs begin, end and strides of one length, got {len(begins)}, "
            f"{len(ends)} and {len(steps)}"
        )
    masks = {
        what: call.attr(f"{what}_mask", "i", 0)
        for what in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    index: list[Any] = []
    for k, (first, stop, step) in enumerate(zip(begins, ends, steps, strict=True)):
        bits = {what for what, mask in masks.items() if mask >> k & 1}
        if "ellipsis" in bits:
            index.append(Ellipsis)
        elif "new_axis" in bits:
            index.append(None)
        elif "shrink_axis" in bits:
            index.append(first)
        else:
            low = None if "begin" in bits else first
            index.append(slice(low, None if "end" in bits else stop, step))
    if sum(part is Ellipsis for part in index) > 1:
        raise ModelError(
            f"{call.where} has more than one ellipsis, ellipsis_mask={masks['ellipsis']}"
        )
    return tuple(index)


def _strided(call: Call, values: Sequence[Value], x: Array, *rest: Array) -> Any:
    return x[numpy_index(call, *values[1:])]


def _sliced(call: Call, values: Sequence[Value], x: Array, begin: Array, size: Array) -> Any:
    starts, counts = call.ints(values[1], "begin"), call.ints(values[2], "size")
    pairs = list(zip(starts, counts, x.shape, strict=True))
    if any(not 0 <= b <= n or not -1 <= count <= n - b for b, count, n in pairs):
        raise ModelError(f"{call.where} cannot take {counts} from {starts} of the shape {x.shape}")
    return x[tuple(slice(b, n if count < 0 else b + count) for b, count, n in pairs)]


def _gathered(call: Call, values: Sequence[Value], x: Array, at: Array, *axis: Array) -> Any:
    if x.ndim != 1:
        return NotImplemented
    if any(not 0 <= k < x.size for k in at.ravel()):
        raise ModelError(f"{call.where} cannot take {at.tolist()} of the shape {x.shape}")
    return x[at.astype(np.int64)]


def _range(call: Call, values: Sequence[Value], *bounds: Array) -> Any:
    """Known whole numbers; up to a size, or very many, they are data."""
    if any(isinstance(extent, Size) for b in bounds for extent in b.ravel()):
        return NotImplemented
    found = range(*(call.integer(v, "bounds") for v in values))
    return list(found) if len(found) <= LIMIT else NotImplemented


def _extreme(call: Call, values: Sequence[Value], x: Array, y: Array) -> Any:
    """The larger or smaller of each pair, where it is known which that is."""
    larger = call.node.op == "Maximum"
    pairs = np.broadcast(x, y)
    out = np.empty(pairs.shape, dtype=object)
    for k, (a, b) in enumerate(pairs):
        first, second = _never_less(a, b), _never_less(b, a)
        if not (first or second):
            return NotImplemented
        out.reshape(-1)[k] = a if first == larger else b
    return out


def _never_less(a: Extent, b: Extent) -> bool:
    """Whether a >= b for all sizes, 0 among them."""
    d = a - b
    if not isinstance(d, Size):
        return d >= 0
    return all(c >= 0 and all(isinstance(n, str) for n in m) for m, c in d.terms)


def _parts(call: Call, values: Sequence[Value], *x: Array) -> Any:
    """The equal parts of Split, whose axis comes first, or those of SplitV."""
    if call.node.op == "Split":
        axis, count = call.integer(values[0], "axis"), call.attr("num_split", "i")
        return tuple(np.split(x[1], count, axis)) if 0 < count <= LIMIT else NotImplemented
    sizes, axis = call.ints(values[1], "sizes"), call.integer(values[2], "axis")
    if min(sizes, default=0) < 0 or sum(sizes) != x[0].shape[axis]:
        return NotImplemented
    return tuple(np.split(x[0], np.cumsum(sizes)[:-1].tolist(), axis))


def _unpacked(call: Call, values: Sequence[Value], x: Array) -> Any:
    rows = np.moveaxis(x, call.attr("axis", "i", 0), 0)
    return tuple(rows) if len(rows) == call.attr("num", "i") else NotImplemented


def _repeated(call: Call, values: Sequence[Value], x: Array, many: Array) -> Any:
    times = call.ints(values[1], "multiples")
    total = x.size * prod(times)
    return np.tile(x, times) if min(times, default=0) >= 0 and total <= LIMIT else NotImplemented


def _filled(call: Call, values: Sequence[Value], shape: Array, x: Array) -> Any:
    if any(isinstance(n, Size) for n in shape.ravel()):
        return NotImplemented
    wanted = call.ints(values[0], "shape")
    good = min(wanted, default=0) >= 0 and prod(wanted) <= LIMIT and x.ndim == 0
    return np.full(wanted, x.item(), dtype=object) if good else NotImplemented


def _total(call: Call, values: Sequence[Value], x: Array, axes: Array) -> Any:
    keepdims = call.attr("keep_dims", "b", False)
    return np.sum(x, axis=call.ints(values[1], "axes"), keepdims=keepdims)


def _remainder(call: Call, values: Sequence[Value], x: Array, y: Array) -> Any:
    """Of a whole number by itself, or of sizes; 0 has none."""
    return NotImplemented if any(n == 0 for n in y.ravel()) else x - (x // y) * y


def _converted(call: Call, values: Sequence[Value], x: Array) -> Any:
    """Known ints wrap. A size is taken to fit int32 and int64; other types may lose its bits."""
    sizes = any(isinstance(n, Size) for n in x.ravel())
    return NotImplemented if sizes and call.dtype("DstT").name not in ("int32", "int64") else x


def _concatenated(call: Call, values: Sequence[Value], *x: Array) -> Any:
    return np.concatenate(x[:-1], axis=call.integer(values[-1], "axis"))


def _product(call: Call, values: Sequence[Value], x: Array, axes: Array) -> Any:
    keepdims = call.attr("keep_dims", "b", False)
    return np.prod(x, axis=call.ints(values[1], "axes"), keepdims=keepdims)


FOLDS: dict[str, Callable[..., Any]] = {
    "Add": lambda call, values, x, y: x + y,
    "AddV2": lambda call, values, x, y: x + y,
    "Cast": _converted,
    "Concat": lambda call, values, axis, *x: np.concatenate(x, call.integer(values[0], "axis")),
    "ConcatV2": _concatenated,
    "ExpandDims": lambda call, values, x, _: np.expand_dims(x, call.integer(values[1], "axis")),
    "Fill": _filled,
    "FloorDiv": lambda call, values, x, y: x // y,
    "FloorMod": _remainder,
    "Gather": _gathered,
    "GatherV2": _gathered,
    "Maximum": _extreme,
    "Minimum": _extreme,
    "Mul": lambda call, values, x, y: x * y,
    "Neg": lambda call, values, x: -x,
    "Pack": lambda call, values, *x: np.stack(x, call.attr("axis", "i", 0)),
    "Prod": _product,
    "Range": _range,
    "Reshape": lambda call, values, x, _: x.reshape(call.ints(values[1], "shape")),
    "Slice": _sliced,
    "Squeeze": lambda call, values, x: np.squeeze(x, squeezed(call, values[0])),
    "Split": _parts,
    "SplitV": _parts,
    "Square": lambda call, values, x: x * x,
    "StridedSlice": _strided,
    "Sub": lambda call, values, x, y: x - y,
    "Sum": _total,
    "Tile": _repeated,
    "Unpack": _unpacked,
}
"""What each operator is on arrays of ints and sizes; NumPy checks the rest."""
