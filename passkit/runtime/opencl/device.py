"""The OpenCL device that kernels run on: which one, what it can do, its queue, pool and targets."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from threading import RLock
from types import ModuleType, TracebackType
from typing import Any

from attrs import evolve, field, frozen

from passkit.errors import DeviceError, MissingDependencyError
from passkit.ir.loop import WARP
from passkit.runtime.device.external_arrays import ExternalArray
from passkit.runtime.device.interface import check_process, is_registered
from passkit.runtime.device.launcher import IS_NATIVE, DriverCalls, Pool
from passkit.runtime.device.pool import DevicePool
from passkit.target import KIB, Target
from passkit.values.dtype import float32
from passkit.values.units import bytes_text

INSTALL = "pip install 'passkit[opencl]'"
MAX_BLOCK = 256
"""The most work-items of a group."""
CPU_TILE = 4096
"""The most points of a tile on a CPU: with larger ones, some cores wait for the last tiles."""
POCL = "Portable Computing Language"
"""The name of PoCL's platform."""
POCL_MAX_VECTOR = 8
"""The most floats of a vector that PoCL's compiler handles."""
SHUFFLE_EXTENSIONS = frozenset(["cl_khr_subgroups", "cl_khr_subgroup_shuffle"])
"""The extensions by which work-items exchange values in registers."""
SUB_GROUP_SIZES = (
    ("cl_nv_device_attribute_query", "WARP_SIZE_NV"),
    ("cl_amd_device_attribute_query", "WAVEFRONT_WIDTH_AMD"),
)
"""The extensions by which devices report the work-items of sub-groups, and what is asked."""
REDUCTION_NBYTES = 8
"""Local memory that a reduction needs for each work-item, in bytes: the widest element."""
EXCHANGE_ARRAYS = 4
"""Arrays of such elements through which the threads of a loop nest exchange values, at most: two of
each of two dtypes."""


def pyopencl() -> ModuleType:
    """Import and return pyopencl.

    Raises: MissingDependencyError, with the command that installs it, where it is not installed.
    """
    module = sys.modules.get("pyopencl")  # sooner than import_module
    if module is not None:
        return module
    try:
        return import_module("pyopencl")
    except ImportError as error:
        raise MissingDependencyError(
            f"target 'opencl' needs pyopencl, which cannot be imported: {error}; {INSTALL}"
        ) from None


@frozen
class OpenClLimits:
    """The limits and features that a device reports. Units: bytes.

    Attributes:
        local_nbytes: Local memory of a work-group.
        global_nbytes: Memory of the device.
        largest_nbytes: The largest buffer.
        block: The most work-items of a group.
        units: Compute units.
        vector: Floats of the vector that the device prefers.
        double: Whether it computes in float64.
        half: Whether it computes in float16.
        exact: Whether division and square root can be rounded correctly.
        denormal: Whether float32 has denormals.
        subgroups: Whether it has sub-groups, in any extension.
        shuffles: Whether it has the extensions `SHUFFLE_EXTENSIONS`, which kernels here use, and
            its sub-groups are known to have the 32 work-items of a warp.
        is_cpu: Whether it is a CPU.
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


LAUNCHER_FUNCTIONS = (
    "clSetKernelArg",
    "clEnqueueNDRangeKernel",
    "clFlush",
    "clFinish",
    "clEnqueueWriteBuffer",
    "clEnqueueReadBuffer",
    "clCreateUserEvent",
    "clSetUserEventStatus",
    "clReleaseEvent",
)
"""The functions of the driver that the launcher in C calls."""


def memory_of(buffer: Any) -> Any:
    """Return pyopencl's buffer of a block of the pool, or of an array on the device."""
    return (buffer.keep_alive if isinstance(buffer, ExternalArray) else buffer).memory


@frozen(eq=False)
class OpenClQueue:
    """An in-order queue as `passkit.runtime.device.interface.DeviceQueue`.

    ``handle`` is pyopencl's queue; events are pyopencl's.
    """

    handle: Any

    def upload(self, buffer: Any, array: Any) -> Any:
        """Enqueue a copy of an array's bytes to a buffer; return its event.

        Raises: pyopencl.Error where the driver refuses.
        """
        target = memory_of(buffer)
        return pyopencl().enqueue_copy(self.handle, target, array, is_blocking=False)

    def download(self, array: Any, buffer: Any) -> Any:
        """Enqueue a copy from a buffer that fills an array; return its event.

        Raises: pyopencl.Error where the driver refuses.
        """
        source = memory_of(buffer)
        return pyopencl().enqueue_copy(self.handle, array, source, is_blocking=False)

    def copy(self, target: Any, source: Any, nbytes: int) -> Any:
        """Enqueue a copy of ``nbytes`` bytes from buffer ``source`` to buffer ``target``.

        Return its event. Raises: pyopencl.Error where the driver refuses.
        """
        target, source = memory_of(target), memory_of(source)
        return pyopencl().enqueue_copy(self.handle, target, source, byte_count=nbytes)

    def finish(self) -> None:
        """Block until all enqueued work is done. Raises: pyopencl.Error where the driver fails."""
        self.handle.finish()

    def seconds(self, event: Any) -> float:
        """Return the seconds that one transfer or kernel took, on a queue that measures.

        Raises: pyopencl.Error on other queues.
        """
        return float(event.profile.end - event.profile.start) / 1e9


@frozen(eq=False)
class OpenClDevice:
    """A device with its context and an in-order queue.

    Attributes:
        name: The device's name.
        platform: The name of its platform.
        version: The version of OpenCL that the device reports, such as "OpenCL 3.0".
        driver: The driver's version.
        limits: Its limits and features.
        context: pyopencl's context.
        queue: The queue that all calls use.
        process: The id of the process that opened the device.
        lock: Held while a kernel's arguments are set and it is enqueued, as they belong to the
            kernel.
    """

    name: str
    platform: str
    version: str
    driver: str
    limits: OpenClLimits
    context: Any = field(repr=False)
    queue: OpenClQueue = field(repr=False)
    process: int = field(factory=os.getpid, repr=False)
    lock: Any = field(factory=RLock, repr=False)

    @property
    def handle(self) -> Any:
        """pyopencl's device."""
        return self.context.devices[0]

    @property
    def calls(self) -> Any | None:
        """The functions of the driver for the launcher in C; None where they are unknown."""
        return driver_calls(self)

    def measuring_queue(self) -> OpenClQueue:
        """Return a new queue whose events can be timed by `OpenClQueue.seconds`."""
        properties = pyopencl().command_queue_properties.PROFILING_ENABLE
        return OpenClQueue(pyopencl().CommandQueue(self.context, properties=properties))

    def active(self, doing: str) -> AbstractContextManager[None]:
        """Return a `with` block that converts pyopencl's errors; other exceptions pass unchanged.

        ``doing`` is the activity of the block, for error messages. Entering it raises a DeviceError
        in a fork of the process that opened the device; so does a call of pyopencl that fails.
        """
        return _ActiveDevice(self, doing)

    @property
    def fingerprint(self) -> str:
        """The names and versions on which machine code depends, besides text and options."""
        return "\n".join([self.platform, self.name, self.version, self.driver])

    def __str__(self) -> str:
        """Return the device's name, with its platform in parentheses."""
        return f"{self.name} ({self.platform})"


_selected: ContextVar[OpenClDevice | None] = ContextVar("selected_opencl_device", default=None)


class _ActiveDevice(AbstractContextManager[None]):
    """Converts pyopencl's errors inside a `with` block: a generator would take longer."""

    __slots__ = ("device", "doing")

    def __init__(self, device: OpenClDevice, doing: str) -> None:
        self.device = device
        self.doing = doing

    def __enter__(self) -> None:
        """Raise DeviceError in a fork of the process that opened the device."""
        check_process(self.device)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Raise DeviceError for an error of pyopencl that ended the block; let others pass."""
        if error is not None and isinstance(error, pyopencl().Error):
            raise DeviceError(f"{self.device} failed at {self.doing}: {error}") from error


class _SelectedDevice(AbstractContextManager[None]):
    """Selects a device inside a `with` block: a generator would take longer."""

    __slots__ = ("device", "token")

    def __init__(self, device: OpenClDevice) -> None:
        self.device = device

    def __enter__(self) -> None:
        """Select the device. Raises: DeviceError in a fork of the process that opened it."""
        check_process(self.device)
        self.token = _selected.set(self.device)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Select the device again that was selected before, also after an exception."""
        _selected.reset(self.token)


def selected(opened: OpenClDevice) -> AbstractContextManager[None]:
    """Return a `with` block that compiles for a device, and runs on it, whatever PYOPENCL_CTX says.

    A program stays on the device that it first ran on. Entering it raises a DeviceError in a fork
    of the process that opened the device.
    """
    return _SelectedDevice(opened)


def device() -> OpenClDevice:
    """Return the device that is `selected`, else that of PYOPENCL_CTX, else the first one.

    Raises:
        MissingDependencyError: without pyopencl.
        DeviceError: where there is no such device, with those there are; or in a fork of the
            process that opened it.
    """
    opened = _selected.get()
    if opened is None:
        opened = open_device(os.environ.get("PYOPENCL_CTX", ""))
    check_process(opened)
    return opened


def numbered_devices() -> list[Any]:
    """Return pyopencl's devices of all platforms, in its order; none where no driver is installed.

    Raises: MissingDependencyError without pyopencl.
    """
    return [handle for _, handle in _handles(pyopencl())]


def platform_numbers() -> list[tuple[int, int]]:
    """Return the numbers of platform and device for each of `numbered_devices`.

    Raises: MissingDependencyError without pyopencl.
    """
    names = [name.rpartition("=")[2].rstrip(")").split(":") for name, _ in _handles(pyopencl())]
    return [(int(platform), int(number)) for platform, number in names]


@cache
def open_device(setting: str) -> OpenClDevice:
    """Open the device that PYOPENCL_CTX selects, once for each value of it.

    pyopencl reads the variable; without it, the first device is opened. ``setting`` is its value,
    "" where it is not set, for this function's cache and for messages. Raises: DeviceError where
    the variable names no device, with the devices there are; MissingDependencyError without
    pyopencl.
    """
    cl = pyopencl()
    try:
        (handle, *_) = cl.choose_devices(interactive=False)
        return open_handle(handle)
    except (cl.Error, RuntimeError) as error:
        available = ", ".join(device_names(cl)) or f"none; {INSTALL} brings one for every machine"
        problem = "there is no OpenCL device"
        if setting:
            problem = f"PYOPENCL_CTX={setting!r} names no OpenCL device"
        raise DeviceError(
            f"target 'opencl' needs a device, and {problem}: {str(error).strip()}; available "
            f"devices: {available}"
        ) from None


@cache
def open_handle(handle: Any) -> OpenClDevice:
    """Return a device of pyopencl with a context and a queue, opened once.

    Raises: pyopencl.Error where the driver refuses.
    """
    cl = pyopencl()
    context = cl.Context([handle])
    queue = OpenClQueue(cl.CommandQueue(context))
    return OpenClDevice(
        handle.name.strip(),
        handle.platform.name.strip(),
        handle.version.strip(),
        handle.driver_version.strip(),
        limits_of(cl, handle),
        context,
        queue,
    )


class BufferSource:
    """Allocates pyopencl's buffers on a device, for a pool of the launcher."""

    def __init__(self, device: OpenClDevice) -> None:
        tools = import_module("pyopencl.tools")
        self.allocator = tools.ImmediateAllocator(device.queue.handle)

    def allocate(self, nbytes: int) -> tuple[int, Any]:
        """Return the handle of a new buffer, and the buffer.

        Raises: pyopencl's MemoryError or LogicError where the device has no memory left.
        """
        buffer = self.allocator(nbytes)
        return buffer.int_ptr, buffer

    def free(self, handle: int) -> None:
        """Do nothing: a buffer is freed when nothing refers to it."""

    def wait(self, readers: Any) -> None:
        """Do nothing: only the device's queue uses its memory."""


def new_pool(device: OpenClDevice, source: BufferSource | None = None) -> DevicePool:
    """Return a new memory pool for a device; ``source`` allocates its buffers, by default new ones.

    Raises: MissingDependencyError without pyopencl.
    """
    cl = pyopencl()
    refusals = (cl.MemoryError, cl.LogicError, MemoryError)
    source = source or BufferSource(device)
    pool = Pool(source.allocate, source.free, source.wait)
    return DevicePool(device, pool, refusals, "PYOPENCL_CTX")


@cache
def driver_calls(device: OpenClDevice) -> Any | None:
    """Return the functions of a device's driver for the launcher in C; None where they are unknown.

    They are those of the library that pyopencl is linked to. Without the launcher in C it is None,
    too.
    """
    if not IS_NATIVE:
        return None
    try:
        library = ctypes.CDLL(import_module("pyopencl._cl").__file__)
        functions = [getattr(library, name) for name in LAUNCHER_FUNCTIONS]
    except (ImportError, OSError, AttributeError):
        return None
    addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
    return DriverCalls(
        False,
        dict(zip(LAUNCHER_FUNCTIONS, addresses, strict=True)),
        device.queue.handle.int_ptr,
        device.context.int_ptr,
        device.limits.is_cpu,
    )


@cache
def pool_of(device: OpenClDevice) -> DevicePool:
    """Return the memory pool that the calls of all executables on a device share."""
    return new_pool(device)


def device_names(cl: ModuleType) -> Iterator[str]:
    """Yield the names of all platforms' devices, such as "GPU (PYOPENCL_CTX=0:0)".

    ``cl`` is the module pyopencl.
    """
    yield from (name for name, _ in _handles(cl))


def describe_devices() -> Iterator[str]:
    """Yield the devices of all platforms with their features, a line each.

    Raises:
        MissingDependencyError: without pyopencl.
    """
    cl = pyopencl()
    for name, handle in _handles(cl):
        limits = limits_of(cl, handle)
        features = {
            "float64": limits.double,
            "float16": limits.half,
            "sub-groups": limits.subgroups,
        }
        parts = [
            f"{name}: {bytes_text(limits.local_nbytes)} of local memory",
            f"groups of {limits.block}",
            f"vectors of {limits.vector} floats",
        ]
        parts += [feature if present else f"no {feature}" for feature, present in features.items()]
        yield ", ".join(parts)


def _handles(cl: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the name of each device, with its value of PYOPENCL_CTX, and pyopencl's device.

    Yields nothing where no driver is installed.
    """
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # the loader finds no driver
        return
    for k, platform in enumerate(platforms):
        for j, handle in enumerate(platform.get_devices()):
            yield f"{handle.name.strip()} (PYOPENCL_CTX={k}:{j})", handle


def limits_of(cl: ModuleType, handle: Any) -> OpenClLimits:
    """Return the limits and features that a device reports.

    ``cl`` is the module pyopencl, ``handle`` its device.
    """
    extensions = set(handle.extensions.split())
    config = handle.single_fp_config
    return OpenClLimits(
        local_nbytes=handle.local_mem_size,
        global_nbytes=handle.global_mem_size,
        largest_nbytes=handle.max_mem_alloc_size,
        block=handle.max_work_group_size,
        units=handle.max_compute_units,
        vector=_vector_width(handle),
        double="cl_khr_fp64" in extensions,
        half="cl_khr_fp16" in extensions,
        exact=bool(config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT),
        denormal=bool(config & cl.device_fp_config.DENORM),
        subgroups=bool(extensions & {"cl_khr_subgroups", "cl_intel_subgroups"}),
        shuffles=extensions >= SHUFFLE_EXTENSIONS and _sub_group_size(cl, handle) == WARP,
        is_cpu=bool(handle.type & cl.device_type.CPU),
    )


def _sub_group_size(cl: ModuleType, handle: Any) -> int | None:
    """Return the work-items of each sub-group of a device; None where that is not known.

    ``cl`` is the module pyopencl, ``handle`` its device.
    """
    extensions = handle.extensions.split()
    for extension, name in SUB_GROUP_SIZES:
        if extension in extensions:
            return int(handle.get_info(getattr(cl.device_info, name)))
    return None


def _vector_width(handle: Any) -> int:
    """Return the floats of a vector that a device prefers and its compiler handles.

    PoCL 3 reports 16, and its compiler crashes or hangs on functions with such vectors.
    """
    preferred: int = handle.preferred_vector_width_float
    is_pocl = handle.platform.name.strip() == POCL
    return min(preferred, POCL_MAX_VECTOR) if is_pocl else preferred


def adapt_target(target: Target) -> Target:
    """Return the registered target within the limits of the opened device.

    A target that a caller created or changed is returned as it is, without opening a device.
    Raises: DeviceError where there is no device; MissingDependencyError without pyopencl.
    """
    return fit_target(target, device().limits) if is_registered(target) else target


def fit_target(target: Target, limits: OpenClLimits) -> Target:
    """Return a copy of a target whose work-groups and scratch memory fit a device's limits.

    Work-groups have a power of two of at most `MAX_BLOCK` items; the device's local memory, less
    that of reductions, is rounded down to KiB. A CPU runs the work-items of a group one after the
    other, so that one is enough; it computes with vectors of the width that it prefers, in tiles
    of at most `CPU_TILE` points. On other devices threads have the points of loop nests, as on
    CUDA, and they get ``shuffles`` from ``limits``.
    """
    largest = min(target.block, MAX_BLOCK, limits.block)
    block = 1 if limits.is_cpu else power_of_two(largest)
    arrays = 1 if limits.is_cpu else EXCHANGE_ARRAYS
    available = limits.local_nbytes - arrays * REDUCTION_NBYTES * block
    fitted = evolve(target, block=block, scratch=min(target.scratch, available // KIB * KIB))
    if not limits.is_cpu:
        threads = evolve(target.limits, block_threads=block)
        return evolve(fitted, shuffles=limits.shuffles, nests=True, limits=threads)
    simd = limits.vector > 1
    return evolve(
        fitted,
        access=limits.vector * float32.nbytes if simd else 0,
        simd=simd,
        tile=min(target.tile, CPU_TILE),
    )


def power_of_two(limit: int) -> int:
    """Return the largest power of two up to ``limit``, which is at least 1.

    Reductions in work-groups need such a number of work-items.

    >>> power_of_two(255), power_of_two(256)
    (128, 256)
    """
    return 1 << (limit.bit_length() - 1)
