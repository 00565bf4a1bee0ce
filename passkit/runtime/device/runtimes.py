"""The run time of each kind of device: what planning, building and running use of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from passkit.graph.kernel import Kernel
from passkit.runtime.device.bound_program import BoundProgram
from passkit.runtime.device.external_arrays import ArrayAllocator, ArrayFinder
from passkit.runtime.program import RuntimeProgram
from passkit.runtime.state import State
from passkit.target import Target


class DeviceRuntime(NamedTuple):
    """The functions of a kind of device.

    Attributes:
        adapt_target: Returns a target within the limits of this machine's device.
        build_kernels: Builds kernels for a target; returns, by the kernel's key, the entry that a
            `LaunchStep` of this device launches.
        bind_program: Returns a program bound to the values of its symbolic sizes, with the state
            that has its variables.
        kernel_stats: Returns the entries of `Executable.stats` about kernels.
        find_array: Finds arrays of other libraries that are on the device.
        allocate_array: Creates an array there; None where results cannot stay on the device.
        array_type: The type of such arrays.
    """

    adapt_target: Callable[[Target], Target]
    build_kernels: Callable[[Iterable[Kernel], Target], Mapping[str, Any]]
    bind_program: Callable[[RuntimeProgram, Mapping[str, int], State], BoundProgram]
    kernel_stats: Callable[[Sequence[Kernel]], dict[str, Any]]
    find_array: ArrayFinder
    allocate_array: ArrayAllocator | None = None
    array_type: type | None = None


def runtime_of(target: Target) -> DeviceRuntime:
    """Return the run time of a target whose `Target.device` is "cuda" or "opencl".

    Its module is imported by name: few programs need one, and none needs both. Raises:
    ModuleNotFoundError for the device "cpu", which has no such module.
    """
    module = import_module(f"passkit.runtime.{target.device}.program")
    runtime: DeviceRuntime = module.RUNTIME
    return runtime
