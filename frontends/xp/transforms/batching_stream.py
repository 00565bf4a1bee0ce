"""The stream of `vmap`: operations on one part are performed on all parts at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from passkit.frontends.xp.array import Array
from passkit.frontends.xp.runtime import apply, apply_several
from passkit.frontends.xp.transforms.tracing_stream import TracingStream, active, array_with
from passkit.streams.operation import Operation, Projection, array_type, banded_type
from passkit.streams.recorder import Value


class BatchingStream(TracingStream):
    """A stream whose values stand for one part each, and that computes with all parts.

    Args:
        purpose: the transformation and the function, for messages.
        size: the number of parts.
        perform: ``perform(stream, operation, operands, result_types)`` applies an operation to
            all parts. An operand is a pair of an array and whether its first axis is that of the
            parts. It returns an array, or a tuple of them.

    Attributes:
        arrays: for each value of the stream, all parts along the first axis; a tuple of such
            arrays for an operation with several results.
    """

    def __init__(self, purpose: str, size: int, perform: Callable[..., Any]) -> None:
        super().__init__(purpose)
        self.queue = []
        self.size = size
        self.arrays: dict[Value, Any] = {}
        self._perform = perform

    def argument(self, array: Array) -> Value:
        """Return a new value that stands for one part of ``array``, whose first axis is divided.

        The value has the shape of the array without that axis.
        """
        value = self.pending(array_type(array.dtype, array.shape[1:], array._value.type.device))
        self.arrays[value] = array
        return value

    def release(self) -> None:
        """Forget the values of this stream, and their arrays; they cannot be used any more."""
        self.arrays.clear()

    def trace(self, operation: Operation, operands: tuple[Value, ...], result_type: Any) -> Value:
        """Apply an operation to all parts, and return the value that stands for one part's result.

        It is applied in the stream around this one. Operands that are no values of this stream are
        shared by all parts. ``result_type`` is that of one part, or a tuple of types for several
        results. These are one value, whose type is the tuple; a `Projection` of it is not applied,
        and gives the value of one result.

        Raises: ArgumentError if the operation cannot be vectorized.
        """
        value = self.pending(result_type, operation)
        if isinstance(operation, Projection):
            self.arrays[value] = self.arrays[operands[0]][operation.index]
            return value
        pairs = [
            (self.arrays[v], True) if v.stream is self else (array_with(v), False) for v in operands
        ]
        with active(self.outer):
            self.arrays[value] = self._perform(self, operation, pairs, result_type)
        return value

    def applied(self, operation: Operation, operands: Sequence[Value]) -> Any:
        """Apply an operation to values of this stream or others, and return the result's value.

        The operation and its result are those of one part. For an operation with several results it
        is a tuple of values.

        Raises: ArgumentError if the operation cannot be vectorized; PasskitError if the operands do
        not fit.
        """
        types = tuple([banded_type(v.type, None) for v in operands])
        result_type: Any = operation.result_types.get(types) or operation.infer(types)
        with active(self):
            if type(result_type) is tuple:
                return apply_several(operation, *operands)
            return apply(operation, *operands)
