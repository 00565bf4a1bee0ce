"""From arrays to streams: the stream of a thread, and how operations are applied to arrays."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.errors import DTypeError, ShapeError
from passkit.streams import recorder
from passkit.streams.device import StreamDevice, host_array
from passkit.streams.operation import (
    HOST,
    Operation,
    OperationTable,
    array_type,
    common_device,
    owns_memory,
    quiet_context,
)
from passkit.streams.plan_store import PlanStore
from passkit.streams.recorder import ArrayType, Value, enter_stream
from passkit.streams.settings import settings
from passkit.streams.stream import Stream, write_eagerly
from passkit.values.dtype import DType
from passkit.values.lazy import Lazy

if TYPE_CHECKING:
    from passkit.frontends.xp import views
else:
    views = Lazy("passkit.frontends.xp.views")

OPERATIONS = OperationTable()
"""All operations of `passkit.xp`."""
STORE = PlanStore(OPERATIONS)
"""The plans of the CPU, which also has those of other devices."""


class _ThreadState(threading.local):
    """The stream of each thread, created when the thread records its first operation.

    Attributes:
        stream: the stream.
        context: the context in which operations on small arrays run; NumPy does not warn in it.
    """

    stream: Stream
    context: Any

    def __getattr__(self, name: str) -> Any:
        if name not in ("stream", "context"):
            return self.__getattribute__(name)  # an AttributeError
        # Not earlier: plans on disk are read with the first stream, when all operations are known.
        self.stream = Stream(STORE)
        self.context = quiet_context()
        return getattr(self, name)


_state = _ThreadState()


THREADS = _state
"""Has an attribute ``stream``, the stream of the thread that asks."""


def thread_state() -> tuple[Stream, Any]:
    """Return the stream of this thread, and the context in which its operations run at once.

    Both are created at the first call.
    """
    return _state.stream, _state.context


def current_stream() -> Stream:
    """Return the stream that operations of this thread are queued in; created at the first call."""
    return _state.stream


def current_streams() -> list[Any]:
    """Return the streams of this thread, one for each device; or the one that traces a function."""
    stream = _state.stream
    return stream.all_devices if isinstance(stream, Stream) else [stream]


def set_current_stream(stream: Any) -> None:
    """Queue the operations of this thread in a stream, or an object like one, from now on.

    Operations of the one before stay queued there.
    """
    _state.stream = stream
    enter_stream(stream)


def operation(name: str, **params: Hashable) -> Operation:
    """Return the operation of this name with these parameters: one object for equal ones.

    Raises: KeyError if there is no operation of this name.
    """
    return OPERATIONS.get(name, **params)


apply = recorder.apply
"""Apply an operation with one result to values, and return the result, computed or pending.

It is queued; but it is computed at once if it has no kernel, or if all operands are computed and
they and the result are small. Raises a PasskitError if the operands do not fit.
"""


def apply_any(operation: Operation, *operands: Value) -> Value:
    """Apply an operation with one result to values, and return the result, computed or pending.

    It is computed at once if it has no kernel, if an operand is complex, or if operands are
    computed and small, like the result; else it is queued. `apply` does the same faster, and calls
    this for what is not frequent.

    Raises: PasskitError, mostly ShapeError or DTypeError, if the operands do not fit.
    """
    types = tuple([v.type for v in operands])
    result_type: Any = operation.result_types.get(types) or operation.infer(types)
    if result_type is HOST:
        return apply_unqueued(operation, operands)[0]
    if result_type.size <= settings.small and result_type.device is None:
        for v in operands:
            if v.operation is not None or v.type.size > settings.small:
                break
        else:
            return evaluated(operation, operands, result_type)
    return _state.stream.record(operation, operands, result_type)


def evaluated(operation: Operation, operands: Sequence[Value], type: ArrayType) -> Value:
    """Return the value of an operation with one result, computed at once in NumPy.

    All operands must be computed and on the CPU. ``type`` is that of the result; if NumPy's array
    has another dtype, it is converted. Raises: what the operation's function of NumPy arrays does,
    such as a FeedError for a singular matrix.
    """
    array = operation.evaluate_one([v.buffer for v in operands])
    if array.dtype is not type.dtype and array.dtype != type.dtype:
        array = array.astype(type.dtype)
    value = Value(type, array)
    value.is_owned = owns_memory(array, operands)
    return value


def apply_unqueued(operation: Operation, operands: tuple[Value, ...]) -> tuple[Value, ...]:
    """Apply an operation whose result type is `HOST`, and return all its results.

    It is computed at once in NumPy. But with a triangular view of an operand, it is queued if it
    has a kernel for operands without views.

    Raises: PasskitError if the operands do not fit; ConcretizationError if NumPy computes it, and
    an operand depends on arguments of a function that is traced.
    """
    if any([v.type.band is not None for v in operands]):
        return views.apply_viewed(operation, operands)
    return on_host(operation, operands)


def on_host(operation: Operation, operands: Sequence[Value]) -> tuple[Value, ...]:
    """Return the results of an operation, computed in NumPy after executing what its operands need.

    They are on the device of the operands. The operation counts in ``host_operations``, and those
    who inspect the stream see it.

    Raises:
        DTypeError: NumPy's function does not take these elements, such as complex ones.
        ShapeError: It does not take these shapes.
        CapacityError: There is no memory for the result.
        ConcretizationError: An operand depends on arguments of a function that is traced.

    Other errors of the function pass, such as a FeedError of a singular matrix.
    """
    STORE.counts["host_operations"] += 1
    current_stream().sync(operands, f"{operation.name} in NumPy")
    started = perf_counter()
    computed_operands = [computed(v) for v in operands]
    try:
        arrays = operation.evaluate(computed_operands)
    except (TypeError, ValueError, IndexError) as error:
        if type(error) is TypeError:
            dtypes = ", ".join(str(v.type.dtype) for v in operands)
            raise DTypeError(f"{operation.name} does not take {dtypes}: {error}") from error
        if type(error) not in (ValueError, IndexError):
            raise
        shapes = ", ".join(str(v.type.shape) for v in operands)
        raise ShapeError(f"{operation.name} does not take shapes {shapes}: {error}") from error
    if STORE.inspectors:
        seconds = perf_counter() - started
        record = STORE.tracker.host_operation(operation, operands, seconds)
        for log in STORE.inspectors:
            log.host_operations.append(record)
    device = common_device(operation, [v.type for v in operands])
    return tuple(from_numpy(a, owns_memory(a, operands), device) for a in arrays)


def converted(value: Value, dtype: DType) -> Value:
    """Return a value converted to another dtype: at once in NumPy if that is complex, else queued.

    A small computed value is converted at once, too. A real dtype drops imaginary parts; callers
    refuse that.

    Raises: ConcretizationError if the dtype is complex, and the value depends on arguments of a
    function that is traced.
    """
    op = operation("astype", dtype=dtype.name)
    return on_host(op, (value,))[0] if dtype.kind == "c" else apply(op, value)


def apply_several(operation: Operation, *operands: Value) -> tuple[Value, ...]:
    """Apply an operation with several results to values, and return all results.

    They are pending; but computed if the operation has no kernel or an operand is complex.

    Raises: PasskitError, mostly ShapeError or DTypeError, if the operands do not fit.
    """
    types = tuple([v.type for v in operands])
    result_types: Any = operation.result_types.get(types) or operation.infer(types)
    if result_types is HOST:
        return apply_unqueued(operation, operands)
    stream = _state.stream
    value = stream.put(operation, operands, result_types)
    return tuple(stream.project(value, k) for k in range(len(result_types)))


def from_numpy(array: Any, is_owned: bool = False, device: StreamDevice | None = None) -> Value:
    """Return the value of a NumPy array, without a copy if it is for the CPU.

    Args:
        array: a NumPy array, contiguous or not; nobody may write to it while the value exists.
        is_owned: whether only the value refers to the array's memory, so that a later result may be
            stored over it.
        device: the device to copy it to; None for the CPU.

    Raises: DeviceError if a device has no memory left.
    """
    if device is not None:
        value = Value(array_type(array.dtype, array.shape, device), device.upload(array))
        value.is_owned = True
        return value
    value = Value(array_type(array.dtype, array.shape), array)
    value.is_owned = is_owned
    return value


def scalar(number: Any, dtype: np.dtype[Any]) -> Value:
    """Return the 0-dimensional value of a Python number, of a dtype: an input of plans.

    Raises: OverflowError for an int that the dtype cannot hold, as NumPy; TypeError for a complex
    number and a real dtype.
    """
    value = Value(array_type(dtype, ()), np.asarray(number, dtype))
    value.is_scalar = True
    return value


def computed(value: Value, reason: str = "a result is needed") -> Any:
    """Return the NumPy array of a value after executing what it needs.

    It has the memory of the value, which must not be written; from a device it is a copy.
    ``reason`` says why it is needed, for those who inspect the stream.

    Raises: PasskitError if an operation cannot be executed; ConcretizationError for a value that
    depends on arguments of a function that is traced.
    """
    if value.operation is not None:
        value.stream.sync((value,), reason)
    elif value.origin is not None:
        write_eagerly(value)
    return value.buffer if value.type.device is None else host_array(value.buffer)
