"""From arrays to streams: the stream of a thread, and how operations are applied to arrays."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.streams.operation import (
    HOST,
    ArrayType,
    Operation,
    OperationTable,
    Value,
    array_type,
    owns_memory,
)
from passkit.streams.settings import settings
from passkit.streams.stream import PlanStore, Stream
from passkit.values.lazy import Lazy

if TYPE_CHECKING:
    from passkit.frontends.xp import views
else:
    views = Lazy("passkit.frontends.xp.views")

OPERATIONS = OperationTable()
"""All operations of `passkit.xp`."""
_new_value = object.__new__
STORE = PlanStore(OPERATIONS, "cpu")
"""The plans of the CPU."""


class _ThreadStreams(threading.local):
    """The stream of each thread, created when the thread records its first operation."""

    stream: Stream

    def __getattr__(self, name: str) -> Any:
        if name != "stream":
            return self.__getattribute__(name)  # an AttributeError
        self.stream = Stream(STORE)
        return self.stream


_streams = _ThreadStreams()


def current_stream() -> Stream:
    """Return the stream that operations of this thread are queued in."""
    return _streams.stream


def operation(name: str, **params: Hashable) -> Operation:
    """Return the operation of this name with these parameters."""
    return OPERATIONS.get(name, **params)


def apply(operation: Operation, *operands: Value) -> Value:
    """Apply an operation with one result to values.

    It is queued; but it is computed at once if it has no kernel, or if all operands are computed
    and they and the result are small.

    Args:
        operation: the operation.
        operands: what it reads.

    Returns: The result, computed or pending.

    Raises: PasskitError if the operands do not fit.
    """
    types = tuple([v.type for v in operands])
    result_type: Any = operation.result_types.get(types) or operation.infer(types)
    if result_type is HOST:
        return apply_unqueued(operation, operands)[0]
    if result_type.size <= settings.small:
        for v in operands:
            if v.operation is not None or v.type.size > settings.small:
                break
        else:
            return evaluated(operation, operands, result_type)
    return _streams.stream.record(operation, operands, result_type)


def apply_binary(operation: Operation, a: Value, b: Value) -> Value:
    """Apply an operation to two values, as `apply` does: a shorter path for Python's operators.

    Raises: PasskitError if the operands do not fit.
    """
    types = a.type, b.type
    result_type: Any = operation.result_types.get(types)
    if result_type is None or result_type is HOST:
        return apply(operation, a, b)
    small = settings.small
    if (
        result_type.size <= small
        and a.operation is None
        and b.operation is None
        and types[0].size <= small
        and types[1].size <= small
    ):
        return evaluated(operation, (a, b), result_type)
    return _streams.stream.record(operation, (a, b), result_type)


def evaluated(operation: Operation, operands: Sequence[Value], type: ArrayType) -> Value:
    """Return the value of an operation on small arrays, computed in NumPy."""
    array = operation.evaluate_one([v.buffer for v in operands])
    if array.dtype is not type.dtype and array.dtype != type.dtype:
        array = array.astype(type.dtype)
    value = _new_value(Value)  # without the call of its constructor
    value.type, value.buffer = type, array
    value.is_owned = owns_memory(array, operands)
    return value


def apply_unqueued(operation: Operation, operands: tuple[Value, ...]) -> tuple[Value, ...]:
    """Apply an operation whose result type is `HOST`: with views, or at once in NumPy."""
    if any([v.type.band is not None for v in operands]):
        return views.apply_viewed(operation, operands)
    return on_host(operation, operands)


def on_host(operation: Operation, operands: Sequence[Value]) -> tuple[Value, ...]:
    """Compute the results of an operation in NumPy, after what its operands need."""
    STORE.counts["host_operations"] += 1
    current_stream().sync(operands)
    arrays = operation.evaluate([computed(v) for v in operands])
    return tuple(from_numpy(a, owns_memory(a, operands)) for a in arrays)


def apply_several(operation: Operation, *operands: Value) -> tuple[Value, ...]:
    """Apply an operation with several results to values; return all results.

    Raises: PasskitError if the operands do not fit.
    """
    types = tuple([v.type for v in operands])
    result_types: Any = operation.result_types.get(types) or operation.infer(types)
    if result_types is HOST:
        return apply_unqueued(operation, operands)
    stream = _streams.stream
    value = stream.record(operation, operands, result_types)
    return tuple(stream.project(value, k) for k in range(len(result_types)))


def from_numpy(array: Any, is_owned: bool = False) -> Value:
    """Return the value of a NumPy array, without a copy.

    Args:
        array: C-contiguous or not; nobody may write to it while the value exists.
        is_owned: whether only the value refers to the array's memory.
    """
    value = Value(array_type(array.dtype, array.shape), array)
    value.is_owned = is_owned
    return value


_scalars: dict[Any, Any] = {}


def scalar(number: Any, dtype: np.dtype[Any]) -> Value:
    """Return the value of a Python number: a 0-d input of plans, never a constant of them."""
    key = dtype, number
    array = _scalars.get(key) if number else None  # 0.0 and -0.0 are equal keys
    if array is None:
        array = np.asarray(number, dtype)
        if len(_scalars) >= 1024:
            _scalars.clear()
        _scalars[key] = array
    value = Value(array_type(dtype, ()), array)
    value.is_scalar = True
    return value


def computed(value: Value, reason: str = "a result is needed") -> Any:
    """Return the NumPy array of a value, after executing what it needs.

    ``reason`` says why it is needed, for those who inspect the stream.
    """
    if value.operation is not None:
        value.stream.sync((value,), reason)
    return value.buffer
