"""Operations, and the types of their results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import Context, copy_context
from typing import Any

import numpy as np

from passkit.errors import CapacityError, DeviceError, PasskitError
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, var
from passkit.program.executable import Executable
from passkit.streams.recorder import ArrayType, OperationBase, Value
from passkit.values.dtype import dtype_of

MAX_MEMO = 4096
"""The most entries of a memo table; it is emptied when it is full."""


def quiet_context() -> Context:
    """Return a new copy of the current context, in which NumPy ignores floating-point errors."""
    context = copy_context()
    context.run(np.seterr, all="ignore")
    return context


MAX_OPERATIONS = 1 << 16
"""With more operations in a table, those with a parameter ``shape`` are dropped."""


class _Quiet(threading.local):
    """The context of each thread in which NumPy does not warn of floating-point errors."""

    def __init__(self) -> None:
        self.context = quiet_context()


_quiet = _Quiet()


def quietly(function: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """Return what a function returns, called without NumPy's warnings of floating-point errors.

    It runs in a context of the thread, which costs a tenth of `numpy.errstate`. Raises: what the
    function raises.
    """
    try:
        return _quiet.context.run(function, *args, **params)
    except RuntimeError as error:
        if "already entered" not in str(error):
            raise
        return function(*args, **params)  # nested in itself: NumPy is quiet already


class _Host:
    """The type of `HOST`."""

    def __repr__(self) -> str:
        return "HOST"


HOST = _Host()
"""Stands for the result type of an operation that is not queued as it is: those without a kernel
run at once in NumPy."""


CPU = "cpu"
"""The name of the device whose arrays have the device None in their types."""
_types: dict[Hashable, ArrayType] = {}


def array_type(dtype: np.dtype[Any], shape: tuple[int, ...], device: Any = None) -> ArrayType:
    """Return the `ArrayType` of a dtype and a shape, without a band.

    ``device`` is the device that the array is on, None for the CPU. For equal arguments it is the
    same object, unless the memo of `MAX_MEMO` types was cleared between.
    """
    key = (dtype, shape) if device is None else (dtype, shape, None, device)
    try:
        return _types[key]
    except KeyError:
        if len(_types) >= MAX_MEMO:
            _types.clear()
        return _types.setdefault(key, ArrayType(*key))


def banded_type(type: ArrayType, band: Hashable) -> ArrayType:
    """Return an array type with another band; None: with none.

    A type without a band is returned itself for None. Equal types with a band are one object while
    it is remembered.
    """
    if band is None:
        return type if type.band is None else array_type(type.dtype, type.shape, type.device)
    key = type.dtype, type.shape, band, type.device
    banded = _types.get(key)
    return _types.setdefault(key, ArrayType(*key)) if banded is None else banded


def placed_type(type: ArrayType, device: Any) -> ArrayType:
    """Return an array type with another device, None for the CPU; its band stays.

    A type with this device already is returned itself.
    """
    if type.device is device:
        return type
    return banded_type(array_type(type.dtype, type.shape, device), type.band)


def common_device(operation: Any, types: Sequence[ArrayType]) -> Any:
    """Return the device of the arrays that an operation reads, None for the CPU.

    Arrays of the CPU without axes, or without elements, may be read beside those of a device.

    Args:
        operation: the operation, for the message.
        types: the types of its operands.

    Raises: DeviceError if they are on several devices.
    """
    device = next((t.device for t in types if t.device is not None), None)
    if device is None:
        return None
    for type in types:
        if type.device is not device and (type.device is not None or (type.shape and type.size)):
            listed = ", ".join(f"{t} on {t.device or CPU}" for t in types)
            raise DeviceError(
                f"{operation.name} needs arrays on one device, got {listed}; "
                f"x.to_device({str(device)!r}) copies an array to {device}"
            )
    return device


class Operation(OperationBase):
    """An operator with its parameters, but without operands.

    Two operations with equal names and parameters are one object, see `OperationTable`.

    Attributes:
        name: the name under which the table knows ``build``.
        params: the parameters by name; hashable values of which JSON keeps all.
        build: ``build(*entries, **params)`` returns an entry, or a tuple of them; None if the
            operation has no kernel.

    The other attributes are those of `OperationBase`.
    """

    __slots__ = ("_interpreted", "build", "name", "params")

    def __init__(
        self,
        name: str,
        params: Mapping[str, Hashable],
        build: Callable[..., Any] | None,
        on_arrays: Callable[..., Any] | None,
    ) -> None:
        self.name, self.params = name, dict(params)
        self.build, self.on_arrays = build, on_arrays
        self.is_direct = on_arrays is not None and not params
        self.num_operators = 0
        self.generic = self
        self.extents = None
        self.result_types = {}
        self._interpreted: dict[Any, Executable] = {}

    def __repr__(self) -> str:
        params = ", ".join(f"{k}={v!r}" for k, v in self.params.items())
        return f"{self.name}({params})"

    def entries(self, operands: Sequence[Entry]) -> tuple[Entry, ...]:
        """Build the operation; return a tuple of the entries of all its results.

        ``operands`` are the entries that it reads.

        The operation must have a kernel. Raises: PasskitError if the operands do not fit.
        """
        assert self.build is not None
        result = self.build(*operands, **self.params)
        return result if isinstance(result, tuple) else (result,)

    def infer(self, types: tuple[ArrayType, ...]) -> ArrayType | tuple[ArrayType, ...] | _Host:
        """Return the type of the result, or a tuple of those of several, for types of the operands.

        It is remembered in `result_types`. Operations without a kernel, and all on complex numbers
        or on types with a band, have the result type `HOST`, which is not remembered: the frontend
        applies them in another way.

        Raises: DeviceError if they are on several devices; PasskitError if they do not fit, or a
        shape depends on their values.
        """
        device = common_device(self, types)
        if self.build is None or any(t.dtype.kind == "c" or t.band is not None for t in types):
            return HOST
        operands = [var(f"x{k}", t.shape, dtype_of(t.dtype)) for k, t in enumerate(types)]
        result = self.build(*operands, **self.params)
        several = isinstance(result, tuple)
        listed = result if several else (result,)
        results = tuple([placed_type(_type_of(entry), device) for entry in listed])
        if len(self.result_types) >= MAX_MEMO:
            self.result_types.clear()
        self.result_types[types] = results if several else results[0]
        result_types: ArrayType | tuple[ArrayType, ...] | _Host = self.result_types[types]
        return result_types

    def evaluate_one(self, arrays: Sequence[Any]) -> Any:
        """Compute the single result at once in NumPy, as an array; a shorter path of `evaluate`.

        Raises: what NumPy's function raises; CapacityError if it has no memory; without a function,
        PasskitError if the graph cannot be built.
        """
        if self.on_arrays is None or self.params:
            return self.evaluate(arrays)[0]
        try:
            result = _quiet.context.run(self.on_arrays, *arrays)
        except (RuntimeError, MemoryError):
            return self.evaluate(arrays)[0]
        return result if type(result) is np.ndarray else np.asarray(result)

    def evaluate(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the results at once in NumPy, as arrays.

        Without a function of NumPy arrays, the graph that `build` builds is interpreted.

        Args:
            arrays: the operands, NumPy arrays.

        Returns: An array for each result.

        Raises: what that function raises; CapacityError if it has no memory; PasskitError if the
            graph cannot be built.
        """
        if self.on_arrays is not None:
            try:
                result = quietly(self.on_arrays, *arrays, **self.params)
            except MemoryError as error:
                raise CapacityError(f"{self.name} has no memory for its result: {error}") from None
            if type(result) is np.ndarray:
                return (result,)
            return (
                tuple(map(np.asarray, result)) if type(result) is tuple else (np.asarray(result),)
            )
        types = tuple((a.dtype, a.shape) for a in arrays)
        executable = self._interpreted.get(types)
        if executable is None:
            operands = [var(f"x{k}", s, dtype_of(d)) for k, (d, s) in enumerate(types)]
            results = self.entries(operands)
            # Unread operands become outputs, so that calls may feed them.
            graph = Graph((*results, *operands))
            executable = Executable(graph, {"target": "interpret"})
            if len(self._interpreted) >= MAX_MEMO:
                self._interpreted.clear()
            self._interpreted[types] = executable
        feeds = {f"x{k}": a for k, a in enumerate(arrays)}
        return tuple(executable(feeds)[: len(executable.outputs) - len(arrays)])


def _type_of(entry: Entry) -> ArrayType:
    """Return the array type of an entry whose shape and dtype are known.

    Raises: PasskitError if an extent depends on the values of the operands.
    """
    shape = entry.shape
    if shape is None or entry.dtype is None or not all(isinstance(n, int) for n in shape):
        raise PasskitError(f"{entry.name}: the shape of the result depends on the operands' values")
    return array_type(entry.dtype.numpy, tuple(map(int, shape)))


class Projection(Operation):
    """Selects one result of an operation that has several; its operand is that operation's value.

    Args:
        index: which result.
    """

    def __init__(self, index: int) -> None:
        super().__init__("project", {"index": index}, _item, _item)
        self.index = index

    def infer(self, types: tuple[Any, ...]) -> ArrayType:
        """Return the type of one of several results; ``types`` is a tuple of the tuple of all."""
        (results,) = types
        return results[self.index]  # type: ignore[no-any-return]


def _item(results: Any, index: int) -> Any:
    """Return result ``index`` of a sequence of several: entries or arrays."""
    return results[index]


def owns_memory(array: Any, operands: Sequence[Value]) -> bool:
    """Return whether an array that NumPy computed from values is sure to share no memory.

    So it must be no view, of whatever, and no buffer of one of ``operands``.
    """
    return array.base is None and not any(array is v.buffer for v in operands)


class OperationTable:
    """The operations that a frontend records, by name. Plans on disk refer to these names.

    Attributes:
        recomputed: the names of operations that cost no more than reading their result, such as the
            triangle of a matrix. Of computed operands, their results are written only if they are
            waited for; each run that reads one computes it again.
    """

    def __init__(self) -> None:
        self.recomputed: set[str] = set()
        self._builders: dict[str, tuple[Any, Any]] = {}
        self._operations: dict[Any, Operation] = {}
        self._projections: list[Projection] = []

    def projection(self, index: int) -> Projection:
        """Return the operation that selects result ``index``, from 0, of an operation with several.

        It is the same object each time.
        """
        return self.projections(index + 1)[index]

    def projections(self, count: int) -> list[Projection]:
        """Return the operations that select results, the first ``count`` at least.

        It is the same list each time, which callers must not change.
        """
        while len(self._projections) < count:
            self._projections.append(Projection(len(self._projections)))
        return self._projections

    def define(
        self,
        name: str,
        build: Callable[..., Any] | None,
        on_arrays: Callable[..., Any] | None = None,
    ) -> None:
        """Define an operation.

        Args:
            name: its name.
            build: the function of entries and parameters that builds it; None without a kernel.
            on_arrays: the same function of NumPy arrays; None without a fast one.

        Raises: PasskitError if there is an operation of this name.
        """
        if name in self._builders:
            raise PasskitError(f"there is an operation '{name}' already; choose another name")
        self._builders[name] = build, on_arrays

    def __contains__(self, name: object) -> bool:
        return name in self._builders

    def __len__(self) -> int:
        """Return the number of operations that are defined."""
        return len(self._builders)

    def get(self, name: str, **params: Hashable) -> Operation:
        """Return the operation of this name with these parameters: one object for equal ones.

        Parameters are equal if they come in the same order, and their values and the types of these
        are equal: 1, 1.0 and True differ, except in tuples. A parameter ``shape`` is a tuple of
        extents.

        Raises: KeyError if there is no operation of this name; TypeError if a parameter is not
            hashable.
        """
        key = (name, *params.items(), *map(type, params.values())) if params else name
        operation = self._operations.get(key)
        if operation is None:
            operation = Operation(name, params, *self._builders[name])
            if "shape" in params:
                rest = {k: v for k, v in params.items() if k != "shape"}
                operation.generic = self.get(name, **rest)
                operation.extents = tuple(params["shape"])  # type: ignore[arg-type]
                if len(self._operations) >= MAX_OPERATIONS:
                    self._forget_extents()
            self._operations[key] = operation
        return operation

    def _forget_extents(self) -> None:
        """Drop the operations of certain extents; plans know the generic ones, which have none."""
        self._operations = {k: o for k, o in self._operations.items() if o.extents is None}
