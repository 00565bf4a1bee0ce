"""Arrays on an OpenCL device: inputs and outputs that stay there."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from attrs import frozen

from passkit.runtime.device import dlpack
from passkit.runtime.device.arrays import ResidentArray
from passkit.runtime.device.external_arrays import ExternalArray
from passkit.runtime.opencl.device import device, pool_of


@frozen(eq=False)
class OpenClExternalArray(ExternalArray):
    """An `ExternalArray` whose memory is ``keep_alive``, a block of the pool, from its start."""

    def overlaps(self, other: ExternalArray) -> bool:
        """Return whether the arrays share bytes."""
        return self.keep_alive is other.keep_alive


class OpenClArray(ResidentArray):
    """A C-contiguous array on an OpenCL device: an output of a call with ``out="device"``."""

    __slots__ = ()
    external_type = OpenClExternalArray

    @property
    def buffer(self) -> Any:
        """pyopencl's buffer, whose memory is the array's as long as the array exists."""
        return self.block.memory

    def capsule(self, number: int) -> Any:
        """Return an unversioned DLPack capsule of the memory.

        ``number`` is the index of the device. Its address is that of the cl_mem, as DLPack has it
        for OpenCL; work that was enqueued before is done.
        """
        self.device.queue.finish()
        where = dlpack.OPENCL, number
        return dlpack.export_capsule(self.address, self.dtype, self.shape, where, self.block)


def new_array(dtype: np.dtype[Any], shape: tuple[int, ...]) -> OpenClArray:
    """Allocate an uninitialized array of a dtype and shape on the device.

    Raises: DeviceError where there is no device, in a fork of the process that opened it, for an
    array larger than the largest buffer of the device, and where it has no memory left;
    MissingDependencyError without pyopencl.
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
