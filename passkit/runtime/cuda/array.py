"""Results that stay on the device: other libraries take them where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import field, frozen

from passkit.errors import FeedError
from passkit.runtime.cuda.device import Device, device
from passkit.runtime.cuda.pool import Buffer, pool_of
from passkit.runtime.device.dlpack import CUDA, capsule_of
from passkit.runtime.native.feeds import type_text


@frozen(eq=False)
class DeviceArray:
    """An array on the CUDA device, whose elements follow each other.

    What it holds is there when the call that made it returns: whoever reads it, in whichever
    stream, has not to wait.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    buffer: Buffer = field(repr=False)
    device: Device = field(repr=False)

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Where it is, for Numba, CuPy and PyTorch; not for bfloat16, of which that knows nothing.

        Raises: AttributeError for bfloat16.
        """
        if self.dtype.kind == "V":
            raise AttributeError(f"the CUDA array interface has no {self.dtype}; use __dlpack__")
        return {
            "shape": self.shape, "typestr": self.dtype.str, "strides": None, "version": 3,
            "data": (self.buffer.address if self.nbytes else 0, False), "stream": None,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        """A CUDA device, and which."""
        return CUDA, 0

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule for whoever reads it in ``stream``, as the array API standard has it.

        Raises: FeedError for stream 0, which says two things; BufferError for another device, or
        where a copy is asked for.
        """
        if stream == 0:
            raise FeedError(
                f"__dlpack__ of {self} got stream=0, which may be the legacy or the per-thread "
                "default stream; pass 1 or 2"
            )
        if dl_device not in (None, self.__dlpack_device__()) or copy:
            raise BufferError(f"{self} is handed over where it is; numpy() copies it")
        return capsule_of(
            self.buffer.address, self.dtype, self.shape, self.__dlpack_device__(), self.buffer
        )

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host. Raises: DeviceError."""
        found = np.empty(self.shape, self.dtype)
        if found.size:
            with self.device.used("reading an array"):
                flat = found.reshape(-1).view(np.uint8)
                self.device.queue.download(flat, self.buffer).wait()
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """For NumPy's functions: a copy."""
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    def __str__(self) -> str:
        return f"{type_text(self.dtype, self.shape)} on {self.device}"


def new_array(dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceArray:
    """An array on the device, of whatever its memory held. Raises: DeviceError."""
    own = device()
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    with own.used("making an array"):
        return DeviceArray(dtype, shape, pool_of(own).take(nbytes), own)
