"""Devices: their names, and the arguments ``device`` of functions."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

from passkit.errors import PasskitError, SettingError
from passkit.streams.device import (
    CudaStreamDevice,
    OpenClStreamDevice,
    StreamDevice,
    cuda_device,
    opencl_device,
)
from passkit.streams.operation import CPU
from passkit.streams.settings import settings
from passkit.values.arguments import shown

KINDS = (CPU, "opencl", "cuda")


def device_names() -> list[str]:
    """Return the names of this machine's devices: "cpu", then "opencl:0", …, then "cuda:0".

    Devices are left out whose package or driver is missing. Raises nothing.
    """
    names = [CPU]
    with suppress(PasskitError):
        names += [f"opencl:{k}" for k, _ in enumerate(opencl_device.numbered_devices())]
    with suppress(PasskitError):
        names.append(str(_cuda(cuda_device.device())))
    return names


def device_argument(where: str, device: Any, default: StreamDevice | None) -> StreamDevice | None:
    """Return the device that an argument ``device`` names; None for the CPU.

    Args:
        where: the function, for the message.
        device: None; "cpu" or "cpu:0"; "opencl:k" for device k of all platforms, or "opencl:p:d"
            for device d of platform p; "opencl" for the one that PYOPENCL_CTX selects, else the
            first one; or "cuda" or "cuda:0".
        default: the device to return if ``device`` is None.

    Raises:
        SettingError: There is no such device.
        MissingDependencyError, DeviceError: Its package or driver is missing.
    """
    if device is None:
        return default
    if isinstance(device, str) and device == CPU:
        return None
    kind, _, numbers = device.partition(":") if isinstance(device, str) else ("", "", "")
    listed = numbers.split(":") if numbers else []
    if kind in KINDS and all(n.isdecimal() for n in listed):
        if kind == "opencl" and (opened := _opencl(tuple(map(int, listed)))) is not None:
            return opened
        if kind == "cuda" and listed in ([], ["0"]):
            return _cuda(cuda_device.device())
        if kind == CPU and listed in ([], ["0"]):
            return None
    names = ", ".join(device_names())
    raise SettingError(f"{where}: there is no device {shown(device)}; devices: {names}")


def creation_device(where: str, device: Any) -> StreamDevice | None:
    """Return the device of a new array, None for the CPU: the named one, or that of `xp.config`.

    ``device`` is a name such as "cpu", "opencl:0" or "cuda:0"; for None the setting holds.
    ``where`` is the function, for the message.

    Raises:
        SettingError: There is no such device.
        MissingDependencyError, DeviceError: Its package or driver is missing.
    """
    if device is None:
        if settings.device == CPU:
            return None
        device = settings.device
    return device_argument(where, device, None)


@cache
def _cuda(opened: Any) -> CudaStreamDevice:
    """Return the device of streams for a device of the run time: one object for each."""
    return CudaStreamDevice(opened)


def _opencl(numbers: tuple[int, ...]) -> OpenClStreamDevice | None:
    """Return an OpenCL device by its number, or by those of platform and device.

    Without numbers, it is the one that PYOPENCL_CTX selects, else the first one.

    Returns: None if no device has these numbers.

    Raises: MissingDependencyError or DeviceError if pyopencl or a driver is missing.
    """
    handles = opencl_device.numbered_devices()
    if not numbers:
        position = handles.index(opencl_device.device().handle)
    elif len(numbers) == 1:
        position = numbers[0]
    else:
        names = opencl_device.platform_numbers()
        position = names.index(numbers) if numbers in names else len(handles)
    return _numbered(position, handles[position]) if position < len(handles) else None


@cache
def _numbered(position: int, handle: Any) -> OpenClStreamDevice:
    """Return the device of streams for ``handle``, pyopencl's device; it is one object for each.

    ``position`` is its number among the devices of all platforms, for its name.
    """
    return OpenClStreamDevice(position, opencl_device.open_handle(handle))
