"""Streams that record what a function does with its arguments, for a transformation of it.

While a transformation calls a function, such a stream takes the place of the thread's stream. Its
arguments are pending arrays of the stream: they have a shape and a dtype, but no elements. What
does not depend on them goes to the stream around it, as if there were no transformation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from passkit.errors import ConcretizationError
from passkit.frontends.xp import runtime
from passkit.frontends.xp.array import Array, wrap
from passkit.streams.operation import Operation
from passkit.streams.recorder import Value

ARGUMENT = Operation("argument", {}, None, None)
"""Stands for the operation of an argument, which is pending as long as the stream exists."""

_LIBRARY = "passkit."


class TracingStream:
    """The base of streams that record operations on the arguments of a function.

    Args:
        purpose: the transformation and the function, for messages, such as "grad of loss".

    Attributes:
        outer: the stream of the thread when this one was created.
        is_open: whether the function runs; afterwards its arrays cannot be used any more.
        device: None: there is one such stream for all devices.
        queue: recorded operations that wait to be part of a program; nothing is executed here.
    """

    queue: list[Value]
    purpose: str
    device: Any
    outer: Any
    is_open: bool

    def __init__(self, purpose: str) -> None:
        self.purpose = purpose
        self.device = None
        self.outer = runtime.current_stream()
        self.is_open = True

    def recording(self) -> RecordingBlock:
        """Return a context manager that records the operations of this thread in this stream.

        At the end of its block the stream is closed; if the block raises, `release` is called, too.
        """
        return RecordingBlock(self)

    def release(self) -> None:
        """Do nothing; derived streams forget their values here.

        The values refer to the stream, which refers to them; without this, arrays would be freed
        only by the garbage collector.
        """

    def pending(self, type: Any, operation: Operation = ARGUMENT) -> Value:
        """Return a new pending value of this stream, which is not recorded anywhere.

        ``type`` is an `ArrayType`, or a tuple of them for an operation with several results;
        ``operation`` is what the value waits for.
        """
        value = Value(type)
        value.operation = operation
        value.stream = self
        return value

    def record(self, operation: Operation, operands: tuple[Value, ...], result_type: Any) -> Value:
        """Record an operation and return its pending result, as `Stream.record` does.

        An operation of which no operand is a value of this stream goes to the stream around.
        ``result_type`` is an `ArrayType`, or a tuple of them for several results. Raises what the
        stream that records it does.
        """
        trace = self.trace  # a comparison with a stream of unknown type hides the type of self
        for operand in operands:
            if operand.stream is self:
                return trace(operation, operands, result_type)
        value: Value = self.outer.record(operation, operands, result_type)
        return value

    def put(self, operation: Operation, operands: tuple[Value, ...], type: Any) -> Value:
        """Record an operation as `record` does; streams that execute have this method, too."""
        return self.record(operation, operands, type)

    def project(self, value: Value, index: int) -> Value:
        """Return result ``index`` of an operation with several, for the value of that operation."""
        trace = self.trace
        if value.stream is not self:
            result: Value = self.outer.project(value, index)
            return result
        types: Any = value.type
        return trace(runtime.OPERATIONS.projection(index), (value,), types[index])

    def trace(self, operation: Operation, operands: tuple[Value, ...], result_type: Any) -> Value:
        """Record an operation that depends on the arguments, and return its pending result.

        Derived streams define it. Raises: NotImplementedError.
        """
        raise NotImplementedError

    def sync(self, values: Sequence[Value], reason: str = "a result is needed") -> None:
        """Execute what values of other streams need; computed ones need nothing.

        Raises: ConcretizationError if a pending value is of this stream, so that it depends on the
        arguments; its message has ``reason``, for which the elements are needed.
        """
        for value in values:
            if value.operation is None:
                continue
            if value.stream is self:
                raise ConcretizationError(self._message(value, reason))
            value.stream.sync((value,), reason)

    def flush(self, reason: str = "the stream is flushed") -> None:
        """Do nothing: no operation can run before the function ends. ``reason`` has no effect."""

    def watch(self, value: Value, notify: Callable[[], None]) -> None:
        """Do nothing: values without elements are not checked, so ``notify`` is never called."""

    def _message(self, value: Value, reason: str) -> str:
        """Return the text of the error for a value of this stream whose elements are needed.

        ``reason`` says what needs them. If the function has ended, the text says so.
        """
        place = f"{user_line()}: {reason} needs the elements of an array"
        if not self.is_open:
            return (
                f"{place} that was an argument or intermediate result of {self.purpose}, which has "
                f"ended; return it from the function, with has_aux=True if that is differentiated"
            )
        return (
            f"{place} of type {value.type} that depends on an argument of {self.purpose}, and "
            f"has none while the function is traced. Use xp.where for choices between elements; "
            f"compute what decides about control flow outside of the function, or from numbers "
            f"and shapes. Functions without a kernel, such as NumPy's, cannot be traced"
        )


class RecordingBlock:
    """The block in which a `TracingStream` takes the place of the thread's stream.

    A generator would cost a tenth of the tracing of a short function.

    Args:
        stream: the stream.
    """

    __slots__ = ("previous", "stream")

    def __init__(self, stream: TracingStream) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        self.previous = runtime.current_stream()
        runtime.set_current_stream(self.stream)

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        runtime.set_current_stream(self.previous)
        self.stream.is_open = False
        if kind is not None:
            self.stream.release()


@contextmanager
def active(stream: Any) -> Iterator[None]:
    """Record the operations of this thread in a stream inside the block, then in the previous."""
    previous = runtime.current_stream()
    runtime.set_current_stream(stream)
    try:
        yield
    finally:
        runtime.set_current_stream(previous)


def user_line() -> str:
    """Return "file:line" of the innermost stack frame whose module is not of passkit.

    If there is none, it is that of the outermost frame.
    """
    frame: Any = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_LIBRARY):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def array_with(value: Value) -> Array:
    """Return the array that holds a value: the existing one, or else a new one."""
    return wrap(value) if value.array is None else value.array


def describe(name: str, function: Any) -> str:
    """Return the text for the transformation ``name`` of a function, such as "grad of loss".

    A callable without a name is shown by its class.
    """
    return f"{name} of {getattr(function, '__name__', type(function).__name__)}"
