"""Methods of `Array` that other modules implement: indexing, manipulation and interchange."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.frontends.xp.aliases import written
from passkit.streams.recorder import slot_method
from passkit.streams.settings import settings
from passkit.values.lazy import Lazy

if TYPE_CHECKING:
    from passkit.frontends.xp import (
        assignment,
        conversion,
        indexing,
        interchange,
        manipulation,
        namespace_info,
        numpy_protocols,
    )
    from passkit.frontends.xp.array import Array
else:
    assignment = Lazy("passkit.frontends.xp.assignment")
    conversion = Lazy("passkit.frontends.xp.conversion")
    indexing = Lazy("passkit.frontends.xp.indexing")
    interchange = Lazy("passkit.frontends.xp.interchange")
    manipulation = Lazy("passkit.frontends.xp.manipulation")
    namespace_info = Lazy("passkit.frontends.xp.namespace_info")
    numpy_protocols = Lazy("passkit.frontends.xp.numpy_protocols")


def _extents(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a method, or the items of a single argument, a tuple or list."""
    if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)):
        return tuple(arguments[0])
    return arguments


MANY_PARTS = 64
"""Iterating over more parts than this executes what the array needs, once for all of them."""


class ArrayMethods:
    """The methods of `Array` for indexing, manipulation and interchange with other libraries."""

    __slots__ = ()

    # Indexing

    @slot_method
    def __getitem__(self: Any, key: Any) -> Array:
        part = indexing.read(self, key)
        return assignment.view_of(self, key, part) if settings.aliasing else part

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        assignment.write(self, key, value)
        if settings.aliasing:
            written(self)

    def __iter__(self: Any) -> Iterator[Array]:
        if not self.ndim:
            raise TypeError("a 0-dimensional array has no elements to iterate over")
        if self.shape[0] > MANY_PARTS:
            self._numpy("iteration")
        return (self[k] for k in range(self.shape[0]))

    def __contains__(self: Any, value: Any) -> bool:
        return bool(np.any(np.asarray(self == value)))

    # Manipulation

    @property
    def T(self: Any) -> Array:  # noqa: N802
        """A new array with the axes in reverse order: of a matrix, the transposed one."""
        return manipulation.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self: Any) -> Array:  # noqa: N802
        """A new array with the last two axes swapped: each matrix transposed.

        Raises: ShapeError for an array of fewer than two axes.
        """
        return manipulation.matrix_transpose(self)

    def astype(self: Any, dtype: Any, /, *, copy: bool = True) -> Array:
        """Return a new array, converted to a dtype.

        Floats are cut to integers, integers that are too large wrap around, and as bool all numbers
        but 0 are true. With ``copy`` False, an array of this dtype already is returned itself.

        Raises: DTypeError if there is no such dtype (None is none), or complex numbers would become
        real ones.
        """
        return conversion.astype(self, dtype, copy=copy)

    def copy(self: Any) -> Array:
        """Return a new array of the same value."""
        return conversion.duplicate(self)

    def flatten(self: Any) -> Array:
        """Return the elements in row-major order, as a new array of one axis, which is no view."""
        source = conversion.duplicate(self) if settings.aliasing else self
        return manipulation.reshape(source, (-1,) if self.size else (0,))

    def ravel(self: Any) -> Array:
        """Return the elements in row-major order, as a new array of one axis.

        With the setting ``aliasing``, it is a view of this array.
        """
        return manipulation.reshape(self, (-1,) if self.size else (0,))

    def reshape(self: Any, *shape: Any, copy: bool | None = None) -> Array:
        """Return a new array with another shape, given as ints or as one tuple.

        One extent may be -1, which is filled in; ``copy`` has no effect.

        Raises: ShapeError if the number of elements differs, or the -1 cannot be filled in;
        ArgumentError if an extent is no integer.
        """
        return manipulation.reshape(self, _extents(shape), copy=copy)

    def squeeze(self: Any, axis: int | tuple[int, ...] | None = None) -> Array:
        """Return a new array without axes of length 1.

        ``axis`` is an axis or several, and the others stay; None: all of length 1.

        Raises: ShapeError if a named axis is longer, out of range or named twice; ArgumentError if
        it is no integer.
        """
        every = tuple(k for k, n in enumerate(self.shape) if n == 1)
        return manipulation.squeeze(self, every if axis is None else axis)

    def transpose(self: Any, *axes: Any) -> Array:
        """Return a new array with its axes in another order, given as ints or as one tuple.

        Item k is the axis of this array that becomes axis k. Without arguments, or for None, the
        order is reversed.

        Raises: ShapeError if they do not name each axis once; ArgumentError if one is no integer.
        """
        if not axes or (len(axes) == 1 and axes[0] is None):
            return manipulation.permute_dims(self, tuple(reversed(range(self.ndim))))
        return manipulation.permute_dims(self, _extents(axes))

    def view(self: Any, dtype: Any = None) -> Array:
        """Return the elements' bytes as elements of another dtype, None for the same one.

        The last axis becomes longer or shorter where elements have another size. Unlike NumPy's,
        the result shares no memory: assignments to it do not change this array. What the array
        needs is executed, unless the dtype is its own.

        Raises:
            DTypeError: There is no such dtype.
            ShapeError: The bytes of the last axis are no entire number of elements, or a
                0-dimensional array would change its size.
            ConcretizationError: The dtype is another one, and the array depends on arguments of a
                function that is traced.
        """
        return conversion.reinterpreted(self, dtype)

    # Interchange

    def tolist(self: Any) -> Any:
        """Return the elements as nested lists of Python numbers; a 0-dimensional array as a number.

        What the array needs is executed.

        Raises: PasskitError if an operation of that fails; ConcretizationError for an array that
        depends on arguments of a function that is traced.
        """
        return self._numpy().tolist()

    def to_device(self: Any, device: Any, /, *, stream: Any = None) -> Array:
        """Return the array on a device: itself if it is there, else a copy.

        For a copy, what the array needs is executed.

        Args:
            device: the name of the device, such as "cpu" or "opencl:0"; None: that of the array.
            stream: must be None.

        Raises: SettingError if there is no such device, or ``stream`` is something else;
        MissingDependencyError or DeviceError if its package or driver is missing; DeviceError if
        the device has no memory left; for a copy, ConcretizationError if the array depends on
        arguments of a function that is traced.
        """
        return interchange.to_device(self, device, stream)

    def __array_namespace__(self: Any, *, api_version: str | None = None) -> Any:
        namespace_info.check_version(api_version)
        return namespace_info.namespace()

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        return interchange.numpy_array(self, dtype, copy)

    def __array_ufunc__(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return numpy_protocols.apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return numpy_protocols.apply_function(func, args, kwargs)

    def __dlpack__(
        self: Any,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a capsule of DLPack 1 that shares the memory, which consumers must not write.

        A consumer that asks for less than version 1 gets a copy, unless ``copy`` is False: then it
        shares the memory, and nothing keeps it from writing.

        Args:
            stream: the handle of the consumer's stream on a CUDA device, which waits for the array;
                None for the legacy default stream, -1 for no wait. Elsewhere it is ignored: what
                computes the array is done.
            max_version: the newest version that the consumer reads; None: one before 1.
            dl_device: the device that the memory must be on, as kind and number; None: that of the
                array. Memory of a device is copied for the CPU.
            copy: True copies the memory; False refuses to.

        Raises: BufferError for a device that is neither that of the array nor the CPU, a copy that
        is refused, or elements that DLPack of NumPy does not have, such as bfloat16;
        ConcretizationError if the array depends on arguments of a function that is traced.
        """
        return interchange.dlpack(self, max_version, dl_device, copy, stream)

    def __dlpack_device__(self: Any) -> tuple[int, int]:
        device = self._value.type.device
        return interchange.CPU if device is None else device.dlpack

    @property
    def __cuda_array_interface__(self: Any) -> dict[str, Any]:
        """The CUDA array interface of an array on a CUDA device, for Numba, CuPy and PyTorch.

        It names the stream in which the array is computed.

        Raises: AttributeError for an array on another device.
        """
        return interchange.cuda_interface(self)

    @property
    def __opencl_array__(self: Any) -> Any:
        """The array of the run time of an array on an OpenCL device, for compiled graphs.

        What computes it is enqueued in the queue of its device.

        Raises: AttributeError for an array on another device.
        """
        return interchange.opencl_array(self)

    def __buffer__(self: Any, flags: int, /) -> memoryview:
        """Return a read-only view of the memory; Python calls this from 3.12 on.

        ``flags`` are those of the buffer protocol. What the array needs is executed.

        Raises: BufferError if the caller wants to write, or the array is on a device;
        ConcretizationError if it depends on arguments of a function that is traced.
        """
        return interchange.buffer(self, flags)

    def __reduce__(self: Any) -> tuple[Any, ...]:
        return interchange.reduced(self)

    def __copy__(self: Any) -> Array:
        return conversion.duplicate(self)

    def __deepcopy__(self: Any, memo: Any) -> Array:
        return conversion.duplicate(self)

    # Text

    def __format__(self: Any, spec: str) -> str:
        if self.ndim:
            return format(str(self), spec)
        return format(self.item(), spec)
