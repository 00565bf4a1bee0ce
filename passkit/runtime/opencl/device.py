"""The OpenCL device that kernels run on: which one, and what it can do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any

from attrs import evolve, field, frozen

from passkit.errors import DeviceError, MissingDependencyError
from passkit.plan.target import KIB, Target, target_of
from passkit.runtime.device.process import check_process
from passkit.values.dtype import float32
from passkit.values.units import bytes_text

INSTALL = "pip install 'passkit[opencl]'"
LARGEST_BLOCK = 256
POCL, WIDEST = "Portable Computing Language", 8
"""A platform, and the floats of the vectors that its compiler is given, at most."""
SHUFFLES = frozenset(["cl_khr_subgroups", "cl_khr_subgroup_shuffle"])
"""The extensions by which work-items hand each other numbers."""
JOINED = 8
"""The bytes of local memory that a fold needs for each work-item: the widest element's."""


def pyopencl() -> ModuleType:
    """The module. Raises: MissingDependencyError with the command that installs it."""
    try:
        return import_module("pyopencl")
    except ImportError as error:
        raise MissingDependencyError(
            f"target 'opencl' needs pyopencl, and importing it says: {error}; {INSTALL}"
        ) from None


@frozen
class Limits:
    """What a device says of itself. Units: bytes; ``vector`` is the floats of a vector it prefers.

    ``double`` and ``half`` say whether it computes in float64 and float16, ``exact`` whether it
    divides and takes roots as NumPy does if it is told to, ``denormal`` whether float32 has
    denormals. ``subgroups`` is whether work-items of a group can talk without local memory,
    ``shuffles`` whether they do by what kernels here ask for.
    """

    local_nbytes: int
    global_nbytes: int
    largest_nbytes: int
    block: int
    units: int
    vector: int
    double: bool
    half: bool
    exact: bool
    denormal: bool
    subgroups: bool
    shuffles: bool
    is_cpu: bool


@frozen(eq=False)
class Queue:
    """A device's queue as memory and steps use it; ``handle`` is pyopencl's, which is in order."""

    handle: Any

    def upload(self, buffer: Any, array: Any) -> Any:
        """Copy an array's bytes to the device."""
        return pyopencl().enqueue_copy(self.handle, buffer, array, is_blocking=False)

    def download(self, array: Any, buffer: Any) -> Any:
        """Copy as many bytes as an array has from the device."""
        return pyopencl().enqueue_copy(self.handle, array, buffer, is_blocking=False)

    def copy(self, to: Any, source: Any, nbytes: int) -> Any:
        """Copy bytes from one buffer to another."""
        return pyopencl().enqueue_copy(self.handle, to, source, byte_count=nbytes)

    def finish(self) -> None:
        """Wait until all is done."""
        self.handle.finish()

    def seconds(self, done: Any) -> float:
        """How long the device took for a transfer or kernel, on a queue that measures."""
        return float(done.profile.end - done.profile.start) / 1e9


@frozen(eq=False)
class Device:
    """A device with its context, and a queue that does everything in order.

    ``lock`` is held while a kernel is given its arguments, which belong to the kernel.
    """

    name: str
    platform: str
    version: str
    driver: str
    limits: Limits
    context: Any = field(repr=False)
    queue: Queue = field(repr=False)
    process: int = field(factory=os.getpid, repr=False)
    lock: Any = field(factory=RLock, repr=False)

    @property
    def handle(self) -> Any:
        """The device as pyopencl has it."""
        return self.context.devices[0]

    def measuring(self) -> Queue:
        """Another queue, which measures what it does."""
        properties = pyopencl().command_queue_properties.PROFILING_ENABLE
        return Queue(pyopencl().CommandQueue(self.context, properties=properties))

    def used(self, doing: str) -> AbstractContextManager[None]:
        """Inside, it can be used. Its library needs nothing for that."""
        return nullcontext()

    @property
    def fingerprint(self) -> str:
        """What a program's machine code depends on besides its text."""
        return "\n".join([self.platform, self.name, self.version, self.driver])

    def __str__(self) -> str:
        return f"{self.name} ({self.platform})"


def device() -> Device:
    """The device that PYOPENCL_CTX names, as pyopencl reads it, else the first one.

    Raises: MissingDependencyError without pyopencl; DeviceError where there is no such device, or
    in a process that was forked from one that has used it.
    """
    found = _device(os.environ.get("PYOPENCL_CTX", ""))
    check_process(found)
    return found


@cache
def _device(wanted: str) -> Device:
    cl = pyopencl()
    try:
        (handle, *_) = cl.choose_devices(interactive=False)
        context = cl.Context([handle])
        queue = Queue(cl.CommandQueue(context))
    except (cl.Error, RuntimeError) as error:
        known = ", ".join(names(cl)) or f"none; {INSTALL} brings one for every machine"
        asked = f"PYOPENCL_CTX={wanted!r} names no OpenCL device" if wanted else "no OpenCL device"
        raise DeviceError(f"{asked}: {str(error).strip()}; there are: {known}") from None
    return Device(
        handle.name.strip(),
        handle.platform.name.strip(),
        handle.version.strip(),
        handle.driver_version.strip(),
        limits_of(cl, handle),
        context,
        queue,
    )


def names(cl: ModuleType) -> Iterator[str]:
    """The devices of all platforms, each with the value of PYOPENCL_CTX that names it."""
    yield from (name for name, _ in _handles(cl))


def described() -> Iterator[str]:
    """The devices of all platforms, with what they can do. Raises: MissingDependencyError."""
    cl = pyopencl()
    for name, handle in _handles(cl):
        x = limits_of(cl, handle)
        can = {"float64": x.double, "float16": x.half, "sub-groups": x.subgroups}
        yield ", ".join(
            [
                f"{name}: {bytes_text(x.local_nbytes)} of local memory",
                f"groups of {x.block}",
                f"vectors of {x.vector} floats",
                *(what if does else f"no {what}" for what, does in can.items()),
            ]
        )


def _handles(cl: ModuleType) -> Iterator[tuple[str, Any]]:
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # the loader finds no driver
        return
    for k, platform in enumerate(platforms):
        for j, handle in enumerate(platform.get_devices()):
            yield f"{handle.name.strip()} (PYOPENCL_CTX={k}:{j})", handle


def limits_of(cl: ModuleType, handle: Any) -> Limits:
    """What a device reports."""
    extensions = set(handle.extensions.split())
    config = handle.single_fp_config
    return Limits(
        local_nbytes=handle.local_mem_size,
        global_nbytes=handle.global_mem_size,
        largest_nbytes=handle.max_mem_alloc_size,
        block=handle.max_work_group_size,
        units=handle.max_compute_units,
        vector=_vector(handle),
        double="cl_khr_fp64" in extensions,
        half="cl_khr_fp16" in extensions,
        exact=bool(config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT),
        denormal=bool(config & cl.device_fp_config.DENORM),
        subgroups=bool(extensions & {"cl_khr_subgroups", "cl_intel_subgroups"}),
        shuffles=extensions >= SHUFFLES,
        is_cpu=bool(handle.type & cl.device_type.CPU),
    )


def _vector(handle: Any) -> int:
    """The floats of a vector that a device prefers, of those that its compiler can do.

    PoCL 3 says 16, and its compiler ends the process over functions of them, or never comes back.
    """
    preferred: int = handle.preferred_vector_width_float
    return min(preferred, WIDEST) if handle.platform.name.strip() == POCL else preferred


def settled(target: Target) -> Target:
    """The registered target as the device wants it; a target of the caller's own as it is."""
    return fitted(target, device().limits) if target is target_of(target.name) else target


def fitted(target: Target, limits: Limits) -> Target:
    """A target whose work-groups and scratch a device can hold.

    A CPU goes through the work-items of a group one after the other, so that one is enough; it
    computes with vectors as wide as it says, if it has any.
    """
    largest = min(target.block, LARGEST_BLOCK, limits.block)
    block = 1 if limits.is_cpu else power_of_two(largest)
    room = limits.local_nbytes - JOINED * block
    fits = evolve(target, block=block, scratch=min(target.scratch, room // KIB * KIB))
    if not limits.is_cpu:
        return evolve(fits, shuffles=limits.shuffles)
    simd = limits.vector > 1
    return evolve(fits, access=limits.vector * float32.nbytes if simd else 0, simd=simd)


def power_of_two(most: int) -> int:
    """The largest power of two up to a number, which folds of a group's items need.

    >>> power_of_two(255), power_of_two(256)
    (128, 256)
    """
    return 1 << (most.bit_length() - 1)
