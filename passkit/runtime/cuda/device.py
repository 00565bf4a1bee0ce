"""The CUDA device that kernels run on: opening a driver, its queue, its pool, and its targets."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import RLock
from typing import Any, NoReturn

from attrs import define, evolve, field, frozen

from passkit.errors import DeviceError, MissingDependencyError
from passkit.library.gpu_profile import read_gpu_profile
from passkit.runtime.cuda.driver import (
    CudaLimits,
    CudaProperties,
    Driver,
    DriverError,
    DriverFailure,
    OutOfDeviceMemoryError,
)
from passkit.runtime.cuda.driver_bindings import BindingsDriver
from passkit.runtime.cuda.driver_pycuda import PyCudaDriver
from passkit.runtime.device.interface import check_process, is_registered
from passkit.runtime.device.launcher import IS_NATIVE, DriverCalls, Pool
from passkit.runtime.device.pool import DevicePool
from passkit.target import KIB, Target
from passkit.target.gpus import Gpu, gpu_of
from passkit.values.units import bytes_text

INSTALL = "pip install 'passkit[cuda]'"
DRIVER_MODULES = {
    "PyCUDA": "pycuda.driver",
    "cuda-bindings": "cuda.bindings.driver",
}
"""The modules of the driver libraries, in order of preference."""


@frozen
class CudaEvent:
    """The work in a queue up to and including one operation.

    ``first`` and ``last`` are the driver's events before and after that operation, in a queue that
    measures; None in others.
    """

    queue: CudaQueue
    first: Any = None
    last: Any = None

    def wait(self) -> None:
        """Block until all work in the queue is done, also that after this event.

        Raises: DriverError where work in it has failed.
        """
        self.queue.finish()


@define(eq=False)
class CudaQueue:
    """A stream as `passkit.runtime.device.interface.DeviceQueue`.

    Attributes:
        driver: The driver.
        stream: The driver's stream.
        measures: Whether each operation is timed.
        keep_busy: Enqueues, in a stream, a kernel that runs while the host prepares the operation
            that is timed; None for no such kernel.
    """

    driver: Driver
    stream: Any
    measures: bool = False
    keep_busy: Callable[[Any], None] | None = None

    def upload(self, buffer: Any, array: Any) -> CudaEvent:
        """Enqueue a copy of the bytes of ``array``, contiguous, to ``buffer``; return its event.

        Raises: DriverError where the driver refuses.
        """
        return self.enqueue(self.driver.upload, buffer.address, array)

    def download(self, array: Any, buffer: Any) -> CudaEvent:
        """Enqueue a copy from ``buffer`` that fills ``array``, contiguous; return its event.

        Raises: DriverError where the driver refuses.
        """
        return self.enqueue(self.driver.download, array, buffer.address)

    def copy(self, target: Any, source: Any, nbytes: int) -> CudaEvent:
        """Enqueue a copy of ``nbytes`` bytes from buffer ``source`` to buffer ``target``.

        Returns: The copy's event. Raises: DriverError where the driver refuses.
        """
        return self.enqueue(self.driver.copy, target.address, source.address, nbytes)

    def enqueue(self, function: Callable[..., None], *arguments: Any) -> CudaEvent:
        """Call ``function(*arguments, stream)``, which enqueues an operation; return its event.

        In a queue that measures, events are recorded before and after it. Raises: DriverError, and
        what the function raises.
        """
        if self.keep_busy is not None:
            self.keep_busy(self.stream)
        first = self.driver.event(self.stream) if self.measures else None
        function(*arguments, self.stream)
        last = self.driver.event(self.stream) if self.measures else None
        return CudaEvent(self, first, last)

    def finish(self) -> None:
        """Block until all enqueued work is done.

        Raises: DriverError where work in the queue has failed.
        """
        self.driver.finish(self.stream)

    def seconds(self, event: CudaEvent) -> float:
        """Return the seconds that one operation took on the device, in a queue that measures.

        Raises: DriverError where the events have not been reached.
        """
        return self.driver.seconds(event.first, event.last)


@frozen(eq=False)
class CudaDevice:
    """A device with an in-order queue.

    Attributes:
        driver: The driver, opened for this device.
        queue: The queue that all calls use.
        process: The id of the process that opened the device.
        lock: Held while work is enqueued, so that the reads and writes of a call stay in order.
    """

    driver: Driver = field(repr=False)
    queue: CudaQueue = field(repr=False)
    process: int = field(factory=os.getpid, repr=False)
    lock: Any = field(factory=RLock, repr=False)

    @property
    def properties(self) -> CudaProperties:
        """Return the device's name, architecture and limits."""
        return self.driver.properties

    @property
    def limits(self) -> CudaLimits:
        """Return the device's limits."""
        return self.properties.limits

    @property
    def calls(self) -> Any | None:
        """The functions of the driver for the launcher in C; None where they are unknown."""
        return driver_calls(self)

    @property
    def stream(self) -> int:
        """The handle of the stream of ``queue``."""
        return self.driver.handle(self.queue.stream)

    def measuring_queue(self) -> CudaQueue:
        """Return a queue that measures what it does, in the same stream."""
        return CudaQueue(self.driver, self.queue.stream, measures=True)

    @contextmanager
    def active(self, doing: str) -> Iterator[None]:
        """Make the context current inside the `with` block, and convert the driver's errors.

        Other exceptions pass unchanged.

        Args:
            doing: The activity of the block, for error messages: "a call".

        Raises:
            DeviceError: for a driver call that fails inside, or in a fork of the process that
                opened the device.
        """
        check_process(self)
        try:
            with self.driver.current():
                yield
        except DriverError as error:
            raise DeviceError(self._failure_text(error, doing)) from error

    def _failure_text(self, error: DriverError, doing: str) -> str:
        """Return the message for the failed driver call ``error``; ``doing`` names the activity.

        It tells to start a new process where the device is lost.
        """
        if error.failure is DriverFailure.DEVICE_LOST:
            return (
                f"{self} is lost to this process: {doing} failed with {error}, perhaps because of "
                "an earlier call, as calls return before their kernels have run; no kernel runs on "
                "it any more, so start a new process (compute-sanitizer finds the kernel at fault)"
            )
        return f"{self} failed at {doing}: {error}"

    def __str__(self) -> str:
        """Return the device's name, its architecture and the driver library as text."""
        return f"{self.properties.name} ({self.properties.architecture}, {self.driver.name})"


def device() -> CudaDevice:
    """Return the first device that CUDA_VISIBLE_DEVICES leaves, opened once per process.

    Raises:
        MissingDependencyError: without PyCUDA and cuda-bindings.
        DeviceError: without a driver or a device, or in a fork of the process that opened it.
    """
    opened = open_device()
    check_process(opened)
    return opened


@cache
def open_device() -> CudaDevice:
    """Open the CUDA device that the environment selects, with a new stream, once per process.

    Raises: DeviceError where there is no driver or no device; MissingDependencyError without PyCUDA
    and cuda-bindings.
    """
    driver = open_driver()
    try:
        with driver.current():
            return CudaDevice(driver, CudaQueue(driver, driver.stream()))
    except DriverError as error:
        raise_no_device(driver.name, error)


@cache
def pool_of(device: CudaDevice) -> DevicePool:
    """Return the memory pool that the calls of all executables on a device share."""
    driver = device.driver

    def wait_for_readers(streams: tuple[int, ...]) -> None:
        """Let the device's stream wait for others, which may still use a block that is free.

        Raises: DriverError where the driver refuses.
        """
        for stream in streams:
            driver.wait_for(device.stream, stream)

    allocator = Pool(driver.allocate, driver.free, wait_for_readers)
    return DevicePool(device, allocator, (OutOfDeviceMemoryError,), "CUDA_VISIBLE_DEVICES")


@cache
def driver_calls(device: CudaDevice) -> Any | None:
    """Return the functions of a device's driver for the launcher in C; None where they are unknown.

    Without the launcher in C it is None, too.
    """
    calls = device.driver.native_calls() if IS_NATIVE else None
    if calls is None:
        return None
    return DriverCalls(True, dict(calls.addresses), device.stream, calls.context, False)


def describe_device() -> str:
    """Return the device, its driver and its features as one line of text.

    Raises: DeviceError without a driver or a device; MissingDependencyError without PyCUDA and
    cuda-bindings.
    """
    opened = device()
    limits = opened.limits
    parts = [
        f"{opened}: CUDA {'.'.join(map(str, opened.properties.version))}",
        f"{bytes_text(limits.global_nbytes)} of memory",
        f"{limits.units} multiprocessors",
        f"{bytes_text(limits.shared_nbytes)} of shared memory for a block",
    ]
    has_graphs = opened.driver.supports_graphs
    features = {
        "graphs": has_graphs,
        "grid barriers": has_graphs and limits.cooperative,
    }
    parts += [name if present else f"no {name}" for name, present in features.items()]
    return ", ".join(parts)


def open_driver() -> Driver:
    """Open the driver through the first library that is installed.

    Raises:
        MissingDependencyError: without any library.
        DeviceError: without a driver or a device.
    """
    missing: list[str] = []
    for name in DRIVER_MODULES:
        try:
            import_driver_module(name)
        except ImportError as error:
            if "libcuda" in str(error):
                raise_no_driver(name, error)
            missing.append(f"{name}: {error}")
            continue
        try:
            return open_driver_by(name)
        except DriverError as error:
            raise_no_device(name, error)
        except RuntimeError as error:  # cuda-bindings looks for the driver at its first call
            raise_no_driver(name, error)
    raise MissingDependencyError(
        f"target 'cuda' needs PyCUDA or cuda-bindings, and neither can be imported: "
        f"{'; '.join(missing)}; {INSTALL}"
    )


def open_driver_by(name: str) -> Driver:
    """Open the driver through a library, PyCUDA's together with cuda-bindings if installed.

    Args:
        name: A key of `DRIVER_MODULES`.

    Raises:
        ImportError: where the library is not installed, or PyCUDA's finds no driver (libcuda).
        DriverError: where there is no device.
        RuntimeError: where cuda-bindings finds no driver.
    """
    import_driver_module(name)
    if name != "PyCUDA":
        return BindingsDriver()
    try:
        import_driver_module("cuda-bindings")
    except ImportError:
        return PyCudaDriver()
    return PyCudaDriver(open_bindings=BindingsDriver)


def import_driver_module(name: str) -> None:
    """Import the driver module of a library, "PyCUDA" or "cuda-bindings", without its warnings.

    Raises: ImportError where it is not installed, or PyCUDA finds no driver (libcuda).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyCUDA warns of what it then raises
        import_module(DRIVER_MODULES[name])


def raise_no_driver(name: str, error: Exception) -> NoReturn:
    """Raise DeviceError: NVIDIA's driver is not installed, or too old for the library ``name``."""
    raise DeviceError(
        f"target 'cuda' needs NVIDIA's driver (libcuda.so.1), and {name} found no usable one: "
        f"{error}; install it, or compile for target 'cpu' or 'opencl'"
    ) from error


def raise_no_device(name: str, error: DriverError) -> NoReturn:
    """Raise DeviceError: the driver, opened by the library ``name``, offers no device."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    where = "" if visible is None else f" under CUDA_VISIBLE_DEVICES={visible!r}"
    raise DeviceError(
        f"target 'cuda' needs a CUDA device, and there is none{where}: {name} reports {error}; "
        "nvidia-smi lists the devices, and targets 'cpu' and 'opencl' need none"
    ) from error


def adapt_target(target: Target) -> Target:
    """Return the registered target with the speeds and limits of the opened device.

    A target that a caller created or changed is returned as it is, without opening a device.
    Raises: DeviceError without a driver or a device; MissingDependencyError without PyCUDA and
    cuda-bindings; CacheError where other users may write to the cache folder.
    """
    if not is_registered(target):
        return target
    properties = device().properties
    return fit_target(profiled_target(target, properties), properties.limits)


def profiled_target(target: Target, properties: CudaProperties) -> Target:
    """Return a copy of a target with a device's speeds: shipped ones, or those measured on it.

    ``properties`` are the device's. A stored calibration replaces the curve of bandwidths and the
    time of a launch.

    Raises:
        CacheError: where other users may write to the cache folder.
    """
    shipped = shipped_profile(properties).numbers(target)
    calibration = read_gpu_profile(calibration_name(properties))
    if calibration is None:
        return shipped
    return evolve(shipped, curve=calibration.curve, launch=calibration.launch)


def shipped_profile(properties: CudaProperties) -> Gpu:
    """Return the profile that is shipped for a device's name, or else for devices of its kind."""
    return gpu_of(properties.name, properties.capability, properties.limits.units)


def calibration_name(properties: CudaProperties) -> str:
    """Return the name under which a device's calibration is stored, with its driver's version."""
    version = ".".join(map(str, properties.version))
    return f"{properties.name}, {properties.architecture}, CUDA {version}"


def fit_target(target: Target, limits: CudaLimits) -> Target:
    """Return a copy of a target with blocks and scratch memory no larger than a device can hold.

    ``limits`` are the device's; its shared memory is rounded down to a multiple of a KiB.
    """
    scratch = min(target.scratch, limits.shared_nbytes // KIB * KIB)
    return evolve(target, block=min(target.block, limits.threads), scratch=scratch)
