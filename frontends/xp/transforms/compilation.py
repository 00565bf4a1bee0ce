"""`jit` of functions of arrays: traced once for each form of the arguments, then one operation.

A call with arrays of `passkit.xp` records the function's operations as one operation of the
stream. Later calls with arguments of the same form record it again without calling the function.
Plans do not depend on numbers, so a call with another number traces the function, and compiles
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from attrs import frozen

from passkit.errors import GraphError, SettingError
from passkit.frontends.xp.array import Array, wrap
from passkit.frontends.xp.conversion import asarray
from passkit.frontends.xp.runtime import current_stream
from passkit.frontends.xp.transforms.programs import (
    ProgramResults,
    ProgramStream,
    put_program,
)
from passkit.frontends.xp.transforms.tracing_stream import TracingStream, describe
from passkit.program.tracing import register_arrays
from passkit.streams.operation import Operation
from passkit.streams.recorder import ArrayType, Value, values_like, with_leaves
from passkit.values.arguments import shown
from passkit.values.trees import Structure, flatten, paths, unflatten

MAX_TRACES = 256
"""The most traces of a function; then the one that was made first is dropped."""


@frozen
class ArrayTrace:
    """A recorded function, for arguments of one form.

    Attributes:
        operation: the program as an operation; None if no result depends on an argument.
        captures: the values that the program reads besides the arguments.
        types: the types of its results.
        structure: the structure of what the function returns.
        leaves: the leaves of that; those that the program computes are replaced.
        positions: the positions of these among the leaves.
    """

    operation: Operation | None
    captures: tuple[Value, ...]
    types: tuple[ArrayType, ...]
    structure: Structure
    leaves: tuple[Any, ...]
    positions: tuple[int, ...]

    @property
    def is_valid(self) -> bool:
        """Return whether no input of the program belongs to another traced function that has ended.

        Otherwise the trace cannot be used again.
        """
        for value in self.captures:
            stream = value.stream
            if value.operation is None or not isinstance(stream, TracingStream):
                continue
            if not stream.is_open:
                return False
        return True

    def call(self, values: tuple[Value, ...]) -> Any:
        """Return what the function returns for ``values``, those of its array arguments in order.

        The program is recorded as one operation, so its arrays are pending and new; other leaves of
        the result are those of the trace itself. Before, what is queued may be executed.

        Raises: what an operation raises that is executed; ArgumentError in `vmap` if the program
        cannot be vectorized.
        """
        if self.operation is None:
            return unflatten(self.structure, self.leaves)
        operands = (*values, *self.captures)
        arrays = put_program(current_stream(), self.operation, operands, self.types)
        if len(arrays) == len(self.leaves):
            result = with_leaves(self.structure, arrays)
            return unflatten(self.structure, arrays) if result is NotImplemented else result
        leaves = list(self.leaves)
        for k, array in zip(self.positions, arrays, strict=True):
            leaves[k] = array
        return unflatten(self.structure, leaves)


class _Call(NamedTuple):
    """The form of a call, with its trace.

    Attributes:
        structure: the structure of ``(args, kwargs)``.
        forms: the type of each of its leaves that is an array; of another one a pair, of its type
            and itself.
        trace: the trace for arguments of this form.
    """

    structure: Structure
    forms: tuple[Any, ...]
    trace: ArrayTrace


class CompiledArrayFunction:
    """A function of arrays that is traced once for each form of its arguments.

    Args:
        function: the function.
        options: options of `passkit.compile` by name, which are for functions of entries.

    Attributes:
        function: the function.
        traces: the traces by the forms of arguments, `MAX_TRACES` at most.

    Raises: SettingError if there are options.
    """

    def __init__(self, function: Callable[..., Any], options: Any) -> None:
        if options:
            raise SettingError(
                f"jit: the option {next(iter(options))!r} is for functions of entries, called with "
                f"NumPy arrays; with arrays of passkit.xp, got {', '.join(options)}, use none"
            )
        self.function = function
        self.traces: dict[Any, ArrayTrace] = {}
        self._purpose = describe("jit", function)
        self._lock = RLock()
        self._last: _Call | None = None

    def repeated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the function returns for arguments of the form of the last call.

        Returns: NotImplemented if they have another form; then nothing was done.
        """
        last = self._last
        if last is None:
            return NotImplemented
        values = values_like(last.structure, last.forms, (args, kwargs))
        if values is None or not last.trace.is_valid:
            return NotImplemented
        return last.trace.call(values)

    def __call__(self, leaves: list[Any], structure: Structure) -> Any:
        """Return what the function returns for these arguments; its arrays are pending.

        ``leaves`` and ``structure`` are those of ``(args, kwargs)``, as of `flatten`.
        The function is called only if none of the `MAX_TRACES` latest forms is that of these
        arguments: arrays of the same dtypes, shapes, devices and triangular views, and other leaves
        that are equal and of the same type. NumPy arrays count as arrays. Its errors pass.

        Raises:
            GraphError: a leaf of the arguments is neither an array nor hashable, or the function
                changes a pending array in place that it uses and that is none of its arguments.
            ConcretizationError: the function needs the elements of an array.
            DTypeError: a NumPy array has no dtype of `passkit.xp`.
        """
        values = []
        forms: list[Any] = [structure]
        for leaf in leaves:
            if type(leaf) is Array:
                values.append(leaf._value)
                forms.append(leaf._value.type)
            elif isinstance(leaf, np.ndarray):
                values.append(asarray(leaf)._value)
                forms.append(values[-1].type)
            else:
                forms.append((type(leaf), leaf))
        key = tuple(forms)
        try:
            trace = self.traces.get(key)
        except TypeError:
            raise self._unhashable(leaves, structure) from None
        if trace is None or not trace.is_valid:
            trace = self._trace(leaves, structure)
            with self._lock:
                if len(self.traces) >= MAX_TRACES:
                    del self.traces[next(iter(self.traces))]
                self.traces[key] = trace
        self._last = _Call(structure, key[1:], trace)
        return trace.call(tuple(values))

    def _unhashable(self, leaves: list[Any], structure: Any) -> GraphError:
        """Return the error for a leaf of the arguments that is neither an array nor hashable.

        ``leaves`` and ``structure`` are those of ``(args, kwargs)``. Without such a leaf, the error
        says that a key of a dict is not hashable.
        """
        _, _, (args, kwargs) = structure
        names = paths(args, "args") + paths(kwargs, "kwargs")
        for name, leaf in zip(names, leaves, strict=True):
            try:
                hash((type(leaf), leaf) if type(leaf) is not Array else None)
            except TypeError:
                return GraphError(
                    f"{self._purpose}: argument {name} must be an array, a nested list, tuple or "
                    f"dict of arrays, or hashable, got {shown(leaf)}"
                )
        return GraphError(f"{self._purpose}: a key of a dict among the arguments is not hashable")

    def _trace(self, leaves: list[Any], structure: Structure) -> ArrayTrace:
        """Call the function with arrays without elements; return the trace of its operations.

        ``leaves`` and ``structure`` are those of ``(args, kwargs)``.

        Raises: ConcretizationError if the function needs elements; GraphError if it changes a
        pending array in place that it uses and that is none of its arguments; what the function
        raises.
        """
        stream = ProgramStream(self._purpose, captures_are_kept=True)
        with stream.recording():
            stand_ins = []
            for leaf in leaves:
                if isinstance(leaf, np.ndarray):
                    leaf = asarray(leaf)
                is_array = isinstance(leaf, Array)
                stand_ins.append(wrap(stream.argument(leaf._value)) if is_array else leaf)
            args, kwargs = unflatten(structure, stand_ins)
            result = self.function(*args, **kwargs)
        results, result_structure = flatten(result)
        positions = [k for k, r in enumerate(results) if isinstance(r, Array)]
        values = [results[k]._value for k in positions]
        if not values:
            return ArrayTrace(None, (), (), result_structure, tuple(results), ())
        for k in positions:
            results[k] = None
        numbers = tuple(stream.number(v) for v in values)
        program = stream.recorded(ProgramResults(numbers))
        types = tuple(v.type for v in values)
        num_arguments = sum(isinstance(leaf, (Array, np.ndarray)) for leaf in leaves)
        return ArrayTrace(
            operation=program.operation,
            captures=program.inputs[num_arguments:],
            types=types,
            structure=result_structure,
            leaves=tuple(results),
            positions=tuple(positions),
        )


def _flatten_arrays(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], Structure] | None:
    """Return the leaves and the structure of ``(args, kwargs)``; None without an `Array`."""
    flat = flatten((args, kwargs))
    for leaf in flat[0]:
        if isinstance(leaf, Array):
            return flat
    return None


register_arrays(_flatten_arrays, CompiledArrayFunction)
