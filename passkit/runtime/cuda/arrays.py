"""Arrays on the CUDA device: outputs that stay there, and arrays of PyTorch, JAX, CuPy and Numba.

Source: Numba's documentation, CUDA Array Interface (version 3); else DLPack, by which the array's
library makes the device's stream wait for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.errors import FeedError, PasskitError
from passkit.runtime.cuda.device import device, pool_of
from passkit.runtime.device import dlpack
from passkit.runtime.device.arrays import ResidentArray
from passkit.runtime.device.external_arrays import ExternalArray

INTERFACE = "__cuda_array_interface__"
LEGACY_STREAM = 1
"""The handle of the legacy default stream, which DLPack means by None."""
NO_WAIT = -1
"""Stands in DLPack in place of a stream for a consumer that waits by itself."""


class DeviceArray(ResidentArray):
    """A C-contiguous array on the CUDA device: an output of a call with ``out="device"``.

    Both interfaces tell other streams to wait for it.
    """

    __slots__ = ()

    @property
    def buffer(self) -> Any:
        """The block of memory, with its ``address``."""
        return self.block

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The address, dtype, shape and stream of this array, for Numba, CuPy and PyTorch.

        Raises:
            AttributeError: for bfloat16, which the interface lacks.
        """
        if self.dtype.kind == "V":
            raise AttributeError(
                f"the CUDA array interface has no dtype {self.dtype}, which {self} has; use "
                "__dlpack__"
            )
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "strides": None,
            "version": 3,
            "data": (self.address if self.nbytes else 0, False),
            "stream": self.device.stream,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device: the pair of the DLDeviceType CUDA, 2, and the index 0."""
        return dlpack.CUDA, 0

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule. Source: Python array API standard.

        Args:
            stream: The handle of the consumer's stream, which waits for the array; None for the
                legacy default stream, -1 for no wait. Memory that the consumer gives back is used
                again when that stream has passed.
            max_version: Ignored: the capsule is an unversioned DLManagedTensor.
            dl_device: None or this device.
            copy: None or False.

        Raises:
            FeedError: for stream 0, which is ambiguous.
            DeviceError: where work that was enqueued before has failed.
            BufferError: for another device, or where a copy is requested.
            KeyError: for a dtype that DLPack lacks; passkit's dtypes all have one.
        """
        if stream == 0:
            raise FeedError(
                f"__dlpack__ of {self} needs the handle of a stream, got stream=0, which may be "
                "the legacy or the per-thread default stream; pass 1 or 2 for these"
            )
        if dl_device not in (None, self.__dlpack_device__()) or copy:
            raise BufferError(
                f"__dlpack__ of {self} passes its memory without a copy, got dl_device="
                f"{dl_device} and copy={copy}; numpy() copies it to the host"
            )
        consumer = LEGACY_STREAM if stream is None else stream
        if consumer not in (NO_WAIT, self.device.stream):
            with self.device.active("exporting an array"):
                self.device.driver.wait_for(consumer, self.device.stream)
            self.block.readers = tuple({consumer}.union(self.block.readers or ()))
        return dlpack.export_capsule(
            self.address, self.dtype, self.shape, self.__dlpack_device__(), self.block
        )


def new_array(dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceArray:
    """Allocate an uninitialized array of a dtype and shape on the device.

    Raises: DeviceError where there is no driver or device, in a fork of the process that opened it,
    for an array larger than the largest buffer of the device, and where it has no memory left;
    MissingDependencyError without PyCUDA and cuda-bindings.
    """
    opened = device()
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    with opened.active("making an array"):
        return DeviceArray(dtype, shape, pool_of(opened).take(nbytes), opened)


def find_array(value: Any) -> ExternalArray | None:
    """Return where a value is on the device; None for values that are not there.

    A value is there if it has ``__cuda_array_interface__``, or ``__dlpack__`` for a CUDA device. An
    interface before version 3 names no stream to wait for; then ``__dlpack__`` is preferred.

    Raises:
        FeedError: for an array of a type that NumPy lacks, or one that its library does not share.
        DeviceError, MissingDependencyError: where the device cannot be opened to import an array.
    """
    if isinstance(value, np.ndarray):
        return None
    if type(value) is DeviceArray and value.device is device():
        return value.external
    try:
        interface = getattr(value, INTERFACE, None)
        if interface is None or "stream" not in interface:
            imported = _import_dlpack(value)
            if imported is not None or interface is None:
                return imported
        return _by_interface(value, interface)
    except PasskitError:
        raise
    except (BufferError, RuntimeError, ValueError, TypeError, KeyError) as error:
        raise FeedError(
            f"a {type(value).__name__} on the device cannot be shared: {error}; convert it, or "
            "copy it to the host"
        ) from error


def _by_interface(value: Any, interface: dict[str, Any]) -> ExternalArray:
    """Return where ``value`` is by its CUDA array interface.

    Raises: TypeError or ValueError for a type that NumPy lacks, KeyError for a missing entry.
    """
    address, readonly = interface["data"]
    dtype, shape = np.dtype(interface["typestr"]), tuple(map(int, interface["shape"]))
    strides = interface.get("strides")
    is_contiguous = strides is None or tuple(strides) == _contiguous_strides(shape, dtype.itemsize)
    stream = interface.get("stream")
    is_own = stream is not None and stream == device().stream
    return ExternalArray(
        owner=value,
        address=address or 0,
        dtype=dtype,
        shape=shape,
        contiguous=is_contiguous or 0 in shape,
        writeable=not readonly,
        stream=None if is_own else stream,
        is_own=is_own,
    )


def _import_dlpack(value: Any) -> ExternalArray | None:
    """Import a value by ``__dlpack__``; return None for values that are on no CUDA device.

    The value's library makes the device's stream wait for what it has enqueued. Raises: DeviceError
    or MissingDependencyError where the device cannot be opened; ValueError or TypeError for a type
    that NumPy lacks; what the library raises.
    """
    dlpack_device = getattr(value, "__dlpack_device__", None)
    if dlpack_device is None or dlpack_device()[0] not in (dlpack.CUDA, dlpack.CUDA_MANAGED):
        return None
    opened = device()
    with opened.active("taking an array"):
        stream = opened.driver.handle(opened.queue.stream)
        imported = dlpack.import_capsule(value.__dlpack__(stream=stream))
    itemsize = imported.dtype.itemsize
    strides = imported.strides and tuple(n * itemsize for n in imported.strides)
    return ExternalArray(
        owner=value,
        address=imported.address,
        dtype=imported.dtype,
        shape=imported.shape,
        contiguous=strides is None or _is_contiguous(imported.shape, strides, itemsize),
        writeable=True,
        keep_alive=imported.owner,
    )


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Return whether an array of a shape and strides, in bytes, is C-contiguous.

    Strides of axes of extent 1 do not matter; ``itemsize`` is the bytes of an element.
    """
    axes = zip(shape, strides, _contiguous_strides(shape, itemsize), strict=True)
    return 0 in shape or all(n == 1 or actual == packed for n, actual, packed in axes)


def _contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides in bytes of a C-contiguous array of a shape.

    ``itemsize`` is the bytes of an element.
    """
    strides: list[int] = []
    stride = itemsize
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return tuple(reversed(strides))
