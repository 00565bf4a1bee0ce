"""The base of arrays on a device, which stay there between calls."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from passkit.runtime.device.external_arrays import ExternalArray
from passkit.runtime.device.interface import raise_status
from passkit.runtime.device.launcher import DeviceArrayBase
from passkit.runtime.native.feeds import type_text


class ResidentArray(DeviceArrayBase):
    """A C-contiguous array on a device: an output of a call with ``out="device"``.

    Its content is complete for whatever is enqueued after it in the device's queue; copying it to
    the host waits.

    Attributes:
        dtype: The type of an element.
        shape: The extents in elements.
        block: Its memory, which is reused when no array refers to it.
        device: The device that it is on.
        address: The address of its first element, or the driver's handle of the memory.
        nbytes: The size of the elements in bytes.
        external_type: The `ExternalArray` of the device.
    """

    __slots__ = ()
    external_type: ClassVar[type[ExternalArray]] = ExternalArray

    @property
    def external(self) -> ExternalArray:
        """The array as programs take it."""
        return self.external_type(
            owner=self,
            address=self.address,
            dtype=self.dtype,
            shape=self.shape,
            contiguous=True,
            writeable=True,
            keep_alive=self.block,
            is_own=True,
        )

    def reshaped(self, shape: tuple[int, ...]) -> Self:
        """Return an array of the same memory with another shape of as many elements."""
        return type(self)(self.dtype, shape, self.block, self.device)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return a copy in host memory.

        Raises: DeviceError where the download fails, or work that was enqueued before has failed.
        """
        array = np.empty(self.shape, self.dtype)
        if not array.size:
            return array
        calls = self.device.calls
        if calls is None:
            with self.device.active("reading an array"):
                flat = array.reshape(-1).view(np.uint8)
                self.device.queue.download(flat, self.block).wait()
            return array
        status = calls.read(self, array)
        if status:
            raise_status(self.device, "reading an array", status)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return a copy in host memory, converted to ``dtype`` if that is not None.

        NumPy's functions call this. ``copy`` is ignored: the result is always a copy. Raises:
        DeviceError.
        """
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __str__(self) -> str:
        """Return dtype, shape and device as text."""
        return f"{type_text(self.dtype, self.shape)} on {self.device}"
