"""What tensors begin with: placeholders, constants, and tensors filled with numbers."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from passkit.errors import GraphError, ShapeError
from passkit.frontends.tinyflow.deferring import (
    awaits_numbers,
    call_later,
    deferred,
    free_size,
    needs_ranks,
)
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.numbers import real, whole
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.refusals import refuses
from passkit.frontends.tinyflow.shapes import extent_of, extents_of, shown
from passkit.frontends.tinyflow.tensors import (
    HostTensor,
    Tensor,
    _known,
    convert_to_tensor,
    known_tensor,
    made,
    named,
    read,
    wrapped,
)
from passkit.frontends.tinyflow.types import as_dtype
from passkit.graph.node import MOST_ELEMENTS, Entry, var
from passkit.graph.node import constant as constant_entry
from passkit.graph.op import get_op
from passkit.values.size import Shape, Size


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """What a run is fed. A dimension of None is known only there.

    Without a shape even the rank is; then a run is compiled for each shape that is fed.
    """
    full = named(name, "Placeholder")
    sizes = None if shape is None else extents_of(shape, f"placeholder '{full}'")
    return wrapped(var(full, sizes, as_dtype(dtype)), full, control=False)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """``input``, unless a run is fed something else of this shape, of which None is any size."""
    full = named(name, "PlaceholderWithDefault")
    entry = read(input)
    if shape is None:
        return _replaceable(entry, None, full)
    sizes, found = extents_of(shape, f"placeholder '{full}'"), known_shape(entry, full)
    if len(found) != len(sizes) or any(
        n is not None and n != m for n, m in zip(sizes, found, strict=True)
    ):
        raise ShapeError(
            f"placeholder '{full}' needs a default of shape {shown(sizes)}, got {shown(found)}"
        )
    if None in sizes:
        own = tuple(free_size(full, k) if n is None else n for k, n in enumerate(sizes))
        return _replaceable(entry, own, full)
    return wrapped(get_op("identity")(entry, name=full), full)


def _replaceable(entry: Entry, shape: Shape | None, name: str) -> Tensor:
    """A default whose sizes a feed may change, so that a run tells them."""
    return wrapped(deferred(lambda known: known, [entry], [(shape, entry.dtype)], name)[0], name)


def constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """A constant; numbers are float32 and int32 by default, NumPy's arrays what they are.

    With ``shape`` a number, or the last of a list, is repeated; not with ``verify_shape``.
    """
    full = named(name, "Const")
    if isinstance(value, (str, bytes)):
        text = value.encode() if isinstance(value, str) else value
        return HostTensor([], lambda: text, full, get_default_graph())
    if isinstance(value, (Tensor, Entry)):
        raise GraphError(
            f"constant '{full}' needs numbers, got {value!r}; tf.identity gives a tensor a name"
        )
    array = read(value, dtype).node.params["value"]
    if shape is not None:
        array = _filled(full, array, extents_of(shape, f"constant '{full}'"), verify_shape)
    return wrapped(constant_entry(array, name=full), full, known=_known(array))


def _filled(name: str, array: Any, shape: Any, verify: bool) -> Any:
    if any(not isinstance(n, int) for n in shape):
        raise ShapeError(f"constant '{name}' needs a known shape, got {shown(shape)}")
    count = prod(shape)
    if count > MOST_ELEMENTS:
        raise ShapeError(
            f"constant '{name}' of shape {shown(shape)} would have {count} elements; the most that "
            f"can be addressed are {MOST_ELEMENTS}"
        )
    if verify and array.shape != tuple(shape):
        raise ShapeError(
            f"constant '{name}' with verify_shape needs shape {shown(shape)}, got "
            f"{shown(array.shape)}"
        )
    if array.size > count or not array.size:
        raise ShapeError(
            f"constant '{name}' needs at most {count} numbers for shape {shown(shape)}, got "
            f"{array.size}"
        )
    flat = array.ravel()
    return np.concatenate([flat, np.repeat(flat[-1:], count - array.size)]).reshape(shape)


@refuses("arrays have one layout", "layout")
def zeros(
    shape: Any, dtype: Any = "float32", name: str | None = None, layout: Any = None
) -> Tensor:
    """Zeros of a shape."""
    return _full("zeros", shape, 0, dtype, name)


@refuses("arrays have one layout", "layout")
def ones(
    shape: Any, dtype: Any = "float32", name: str | None = None, layout: Any = None
) -> Tensor:
    """Ones of a shape."""
    return _full("ones", shape, 1, dtype, name)


def _full(what: str, shape: Any, value: Any, dtype: Any, name: str | None) -> Tensor:
    if awaits_numbers(shape):
        given = {"what": what, "shape": shape, "value": value, "dtype": dtype}
        return call_later(_full, given, [(None, as_dtype(dtype))], named(name, what))[0]
    sizes = extents_of(shape, what)
    return made("full", what, name, shape=sizes, fill_value=value, dtype=as_dtype(dtype).name)


@refuses("arrays have one layout", "layout")
def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> Tensor:
    """A scalar repeated over a shape."""
    if awaits_numbers(dims):
        number = convert_to_tensor(value)
        given = {"dims": dims, "value": number}
        return call_later(fill, given, [(None, number.dtype)], named(name, "Fill"))[0]
    return made("broadcast_to", "Fill", name, read(value), shape=extents_of(dims, "fill"))


@refuses("it is always folded", "optimize")
def zeros_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Zeros of a tensor's shape."""
    return _like("zeros_like", tensor, dtype, name)


@refuses("it is always folded", "optimize")
def ones_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Ones of a tensor's shape."""
    return _like("ones_like", tensor, dtype, name)


def _like(op: str, tensor: Any, dtype: Any, name: str | None) -> Tensor:
    entry = read(tensor)
    if dtype is not None:
        entry = get_op("cast")(entry, dtype=as_dtype(dtype).name)
    return made(op, op, name, entry)


def range_(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> Tensor:
    """start, start + delta, … before limit; range(limit) begins at 0. ``limit`` may be a size."""
    if limit is None:
        start, limit = 0, start
    parts = [_number(v, "range") for v in (start, limit, delta)]
    if dtype is None:
        floats = any(isinstance(p, float) for p in parts)
        found = [v.dtype for v in (start, limit, delta) if isinstance(v, Tensor)]
        dtype = found[0] if found else ("float32" if floats else "int32")
    first, last, step = parts
    return made("arange", "range", name, first, last, step, dtype=as_dtype(dtype).name)


def _number(value: Any, where: str) -> Any:
    if isinstance(value, (float, np.floating)):
        return float(value)
    found = extent_of(value, where)
    return found if isinstance(found, Size) or found is None else int(found)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """``num`` evenly spaced numbers from start to stop, both included, along ``axis``."""
    from passkit.errors import SettingError

    if axis != 0:
        raise SettingError(f"linspace of numbers has axis 0 only, got {axis!r}")
    params = {
        "start": real("linspace", "start", start),
        "stop": real("linspace", "stop", stop),
        "num": whole("linspace", "num", num),
    }
    return made("linspace", "LinSpace", name, **params)


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = "float32",
    name: str | None = None,
) -> Tensor:
    """The identity matrix, or one for each element of ``batch_shape``."""
    full = named(name, "eye")
    rows = extent_of(num_rows, "eye")
    columns = rows if num_columns is None else extent_of(num_columns, "eye")
    found = get_op("eye")(n_rows=rows, n_cols=columns, dtype=as_dtype(dtype).name)
    if batch_shape is not None:
        sizes = extents_of(batch_shape, "eye")
        found = get_op("broadcast_to")(found, shape=(*sizes, rows, columns))
    return wrapped(found, full)


@needs_ranks("Shape", "int32")
def shape(input: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The shape of a tensor as a tensor, from which other shapes may be computed."""
    sizes = np.array([*known_shape(read(input)), None], dtype=object)[:-1]
    return known_tensor(sizes, as_dtype(out_type or "int32"), name, "Shape")


@needs_ranks("Size", "int32", ())
def size(input: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The number of elements of a tensor."""
    from passkit.values.size import numel

    count = np.array(numel(known_shape(read(input))), dtype=object)
    return known_tensor(count, as_dtype(out_type or "int32"), name, "Size")


@needs_ranks("Rank", "int32", ())
def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of axes of a tensor."""
    count = np.array(len(known_shape(read(input))), dtype=object)
    return known_tensor(count, as_dtype("int32"), name, "Rank")

