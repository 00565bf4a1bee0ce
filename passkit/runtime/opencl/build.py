"""Kernel texts to kernels: what is not in this process or on disk is built, many at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import field, frozen

from passkit.dialects.opencl import OPENCL
from passkit.kernel import Kernel
from passkit.runtime.opencl.device import Device, pyopencl
from passkit.size import Extent

MANY = 40
"""Kernels in one program, at most."""


@frozen(eq=False)
class DeviceKernel:
    """A kernel on a device: a function for each of its phases."""

    kernel: Kernel
    device: Device = field(repr=False)
    functions: tuple[Any, ...] = field(repr=False)
    block: Extent


def entries(kernel: Kernel) -> list[str]:
    """The functions that a kernel's text has, one for each of its phases."""
    if not kernel.phases:
        return [kernel.name]
    return [f"{kernel.name}_phase{k}" for k in range(len(kernel.phases))]


def options(device: Device) -> list[str]:
    """What the device's compiler is told."""
    exact = ["-cl-fp32-correctly-rounded-divide-sqrt"] * device.limits.exact
    return ["-cl-std=CL1.2", "-w", "-cl-opt-disable", *exact]


def build(kernels: Iterable[Kernel], device: Device) -> dict[str, DeviceKernel]:
    """Each kernel on a device, by its key."""
    cl = pyopencl()
    wanted = {k.key: k for k in kernels}
    text = "\n".join([OPENCL.preamble, *(k.source for k in wanted.values())])
    program = cl.Program(device.context, text).build(options(device), cache_dir=False)
    return {
        key: DeviceKernel(k, device, tuple(cl.Kernel(program, n) for n in entries(k)), k.block)
        for key, k in wanted.items()
    }
