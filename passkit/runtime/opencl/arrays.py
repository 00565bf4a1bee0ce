"""Arrays on an OpenCL device: inputs and outputs that stay there."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from attrs import frozen

from passkit.runtime.device import dlpack
from passkit.runtime.device.external_arrays import ExternalArray
from passkit.runtime.device.launcher import ArrayBase
from passkit.runtime.native.feeds import type_text
from passkit.runtime.opencl.device import device, pool_of


class OpenClArray(ArrayBase):
    """A C-contiguous array on an OpenCL device: an output of a call with ``out="device"``.

    Its content is complete for whatever is enqueued after it, in the one queue of its device;
    copying it to the host waits.

    Attributes:
        dtype: The type of an element.
        shape: The extents in elements.
        block: Its memory, which is reused when no array refers to it.
        device: The device that it is on.
        address: The cl_mem.
        nbytes: The size of the elements in bytes.
    """

    __slots__ = ()

    @property
    def buffer(self) -> Any:
        """pyopencl's buffer, whose memory is the array's as long as the array exists."""
        return self.block.memory

    @property
    def external(self) -> OpenClExternalArray:
        """The array as programs take it."""
        return OpenClExternalArray(
            owner=self,
            address=0,
            dtype=self.dtype,
            shape=self.shape,
            contiguous=True,
            writeable=True,
            keep_alive=self.block,
            is_own=True,
        )

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return a copy in host memory. Raises: DeviceError where the download fails."""
        array = np.empty(self.shape, self.dtype)
        if array.size:
            with self.device.active("reading an array"):
                flat = array.reshape(-1).view(np.uint8)
                self.device.queue.download(flat, self.external).wait()
        return array

    def reshaped(self, shape: tuple[int, ...]) -> OpenClArray:
        """Return an array of the same memory with another shape of as many elements."""
        return OpenClArray(self.dtype, shape, self.block, self.device)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return a copy in host memory, converted to ``dtype`` if that is not None.

        NumPy's functions call this. ``copy`` is ignored: the result is always a copy. Raises:
        DeviceError.
        """
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def capsule(self, number: int) -> Any:
        """Return an unversioned DLPack capsule of the memory.

        ``number`` is the index of the device. Its address is that of the cl_mem, as DLPack has it
        for OpenCL; work that was enqueued before is done.
        """
        self.device.queue.finish()
        where = dlpack.OPENCL, number
        return dlpack.export_capsule(self.address, self.dtype, self.shape, where, self.block)

    def __str__(self) -> str:
        """Return dtype, shape and device as text."""
        return f"{type_text(self.dtype, self.shape)} on {self.device}"


@frozen(eq=False)
class OpenClExternalArray(ExternalArray):
    """An `ExternalArray` whose memory is ``keep_alive``, a block of the pool, from its start."""

    def overlaps(self, other: ExternalArray) -> bool:
        """Return whether the arrays share bytes."""
        return self.keep_alive is other.keep_alive


def new_array(dtype: np.dtype[Any], shape: tuple[int, ...]) -> OpenClArray:
    """Allocate an uninitialized array of a dtype and shape on the device.

    Raises: DeviceError where there is no device, or not enough memory; MissingDependencyError
    without pyopencl.
    """
    opened = device()
    return OpenClArray(dtype, shape, pool_of(opened).take(prod(shape) * dtype.itemsize), opened)


def find_array(value: Any) -> ExternalArray | None:
    """Return an array that is on the device as programs take it; None for any other value.

    That is an `OpenClArray`, or an object with one as ``__opencl_array__``. An array on another
    device counts as a value of the host, which is copied. Raises: DeviceError for such an array
    where the device cannot be opened, or in a fork of the process that opened it.
    """
    if type(value) is not OpenClArray:
        value = getattr(value, "__opencl_array__", None)
    if type(value) is OpenClArray and value.device is device():
        return value.external
    return None
