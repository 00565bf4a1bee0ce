"""Importers of operators that create tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import passkit.ops as ops
from passkit.frontends.torch.errors import unsupported
from passkit.frontends.torch.op_importers.registry import AtenCall, aten, cast, constant, imports
from passkit.frontends.torch.sizes import size_value
from passkit.graph.node import Entry
from passkit.values.dtype import dtype_of
from passkit.values.size import Size


@imports(aten.full.default, aten.full_like.default, aten.new_full.default)
def _full(call: AtenCall, like: Any, *args: Any, **kwargs: Any) -> Entry:
    """Import a tensor of one number."""
    value = args[-1]
    if isinstance(value, Size):
        return ops.broadcast_to(size_value(value, call.dtype), call.shape)
    return _filled(call, value)


@imports(
    aten.zeros.default,
    aten.zeros_like.default,
    aten.new_zeros.default,
    aten.empty.memory_format,
    aten.empty_like.default,
    aten.new_empty.default,
    aten.empty_strided.default,
    aten.new_empty_strided.default,
    aten.empty_permuted.default,
)
def _zeros(call: AtenCall, *args: Any, **kwargs: Any) -> Entry:
    """Import a tensor of zeros; one without values has them, too."""
    return _filled(call, 0)


@imports(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def _ones(call: AtenCall, *args: Any, **kwargs: Any) -> Entry:
    """Import a tensor of ones."""
    return _filled(call, 1)


def _filled(call: AtenCall, value: Any) -> Entry:
    """Return a tensor of one number in the shape and dtype of a call's result."""
    return ops.broadcast_to(constant(value, call.dtype), call.shape)


@imports(aten.scalar_tensor.default)
def _scalar_tensor(call: AtenCall, value: Any, **kwargs: Any) -> Entry:
    """Import a number, or a symbolic size, as a tensor."""
    if isinstance(value, Size):
        return size_value(value, call.dtype)
    return constant(value, call.dtype)


@imports(aten.fill.Scalar)
def _fill(call: AtenCall, x: Entry, value: Any) -> Entry:
    """Import a tensor filled with a number."""
    return _filled(call, value)


@imports(aten.fill.Tensor)
def _fill_tensor(call: AtenCall, x: Entry, value: Entry) -> Entry:
    """Import a tensor filled with a scalar."""
    return ops.broadcast_to(cast(value, call.dtype), call.shape)


@imports(aten.copy.default)
def _copy(call: AtenCall, x: Entry, source: Entry, non_blocking: bool = False) -> Entry:
    """Import a copy into a tensor: the source, broadcast and converted."""
    return ops.broadcast_to(cast(source, call.dtype), call.shape)


@imports(aten.arange.default, aten.arange.start, aten.arange.start_step)
def _arange(call: AtenCall, *args: Any, **kwargs: Any) -> Entry:
    """Import numbers at equal distances."""
    start: Any = 0
    step: Any = 1
    if len(args) > 1:
        start = args[0]
    if len(args) > 2:
        step = args[2]
    if isinstance(start, Size) or isinstance(step, Size):
        unsupported("a range that begins at a symbolic size")
    (count,) = call.shape
    exact = dtype_of("float64") if call.dtype.is_float else dtype_of("int64")
    numbers = ops.cast(ops.range(0, count), exact.name)
    if step != 1:
        numbers = numbers * step
    if start != 0:
        numbers = numbers + start
    return cast(numbers, call.dtype)


@imports(aten.tril_indices.default, aten.triu_indices.default)
def _triangle_indices(
    call: AtenCall, rows: int, columns: int, offset: int = 0, **kwargs: Any
) -> Entry:
    """Import the rows and columns of the elements of a triangle."""
    is_lower = call.function is aten.tril_indices.default
    function = np.tril_indices if is_lower else np.triu_indices
    return constant(np.stack(function(rows, offset, columns)), call.dtype)


@imports(aten.eye.default, aten.eye.m)
def _eye(call: AtenCall, *args: Any, **kwargs: Any) -> Entry:
    """Import a matrix with ones on the diagonal."""
    rows, columns = call.shape
    down = ops.reshape(ops.cast(ops.range(0, rows), "int64"), (rows, 1))
    across = ops.reshape(ops.cast(ops.range(0, columns), "int64"), (1, columns))
    return cast(ops.equal(down, across), call.dtype)
