"""The interface of a CUDA driver, which PyCUDA and cuda-bindings implement, and its errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any

from attrs import frozen


class DriverFailure(Enum):
    """Kinds of failures of driver calls, by how the caller has to react."""

    OUT_OF_MEMORY = "no memory is left"
    DEVICE_LOST = "the device is lost to this process"
    INVALID_IMAGE = "the device cannot run this machine code"
    OTHER = "anything else"


FAILURES = {
    "out of memory": DriverFailure.OUT_OF_MEMORY,
    "device kernel image is invalid": DriverFailure.INVALID_IMAGE,
    "no kernel image is available for execution on the device": DriverFailure.INVALID_IMAGE,
    "an illegal memory access was encountered": DriverFailure.DEVICE_LOST,
    "the launch timed out and was terminated": DriverFailure.DEVICE_LOST,
    "unspecified launch failure": DriverFailure.DEVICE_LOST,
    "uncorrectable ECC error encountered": DriverFailure.DEVICE_LOST,
    "hardware stack error": DriverFailure.DEVICE_LOST,
    "an illegal instruction was encountered": DriverFailure.DEVICE_LOST,
    "misaligned address": DriverFailure.DEVICE_LOST,
    "operation not supported on global/shared address space": DriverFailure.DEVICE_LOST,
    "invalid program counter": DriverFailure.DEVICE_LOST,
    "context is destroyed": DriverFailure.DEVICE_LOST,
    "device-side assert triggered": DriverFailure.DEVICE_LOST,
    "CUDA-capable device(s) is/are busy or unavailable": DriverFailure.DEVICE_LOST,
    "unknown error": DriverFailure.DEVICE_LOST,
}
"""Failures by the text of cuGetErrorString, which both libraries report. Source: cuda.h."""


class DriverError(Exception):
    """A driver call failed. ``call`` is its name, ``message`` the driver's text."""

    def __init__(self, call: str, message: str) -> None:
        super().__init__(f"{call}: {message}")
        self.call = call
        self.message = message

    @property
    def failure(self) -> DriverFailure:
        """The kind of the failure, by the driver's text."""
        return failure_of(self.message)


class OutOfDeviceMemoryError(DriverError):
    """A call failed because the device has no memory left."""


def failure_of(message: str) -> DriverFailure:
    """Return the kind of failure that a text of the driver reports, OTHER if unknown."""
    failures = (failure for text, failure in FAILURES.items() if text in message)
    return next(failures, DriverFailure.OTHER)


def driver_error(call: str, message: str) -> DriverError:
    """Return the exception for a failed call, to be raised by the caller.

    It is an OutOfDeviceMemoryError where the driver's text ``message`` says so. ``call`` is the
    name of the function.
    """
    if failure_of(message) is DriverFailure.OUT_OF_MEMORY:
        return OutOfDeviceMemoryError(call, message)
    return DriverError(call, message)


@frozen
class CudaLimits:
    """The limits that a device reports. Units: bytes.

    Attributes:
        shared_nbytes: Shared memory that a block may opt into.
        global_nbytes: Memory of the device.
        threads: Threads of a block.
        units: Multiprocessors.
        grid: Blocks of a launch along x.
        cooperative: Whether the blocks of a launch can wait for each other.
    """

    shared_nbytes: int
    global_nbytes: int
    threads: int
    units: int
    grid: int
    cooperative: bool

    @property
    def largest_nbytes(self) -> int:
        """Return the size of the largest possible buffer in bytes."""
        return self.global_nbytes


@frozen
class CudaProperties:
    """A device's properties.

    Attributes:
        name: Its name.
        capability: Its compute capability (major, minor).
        version: The CUDA version (major, minor) that its driver supports.
        limits: Its limits.
    """

    name: str
    capability: tuple[int, int]
    version: tuple[int, int]
    limits: CudaLimits

    @property
    def architecture(self) -> str:
        """The name that compilers use, such as sm_90."""
        return "sm_{}{}".format(*self.capability)


@frozen
class FunctionAttributes:
    """Resources that a kernel's machine code needs.

    Attributes:
        registers: Registers of a thread.
        shared: Static shared memory in bytes.
        local: Local memory of a thread in bytes, to which registers are spilled.
        threads: The most threads that its block may have.
    """

    registers: int
    shared: int
    local: int
    threads: int


@frozen
class LaunchParams:
    """The parameters of a kernel launch.

    Attributes:
        function: A function of the driver.
        grid: The number of blocks, along x.
        block: The threads of a block along x and y.
        shared: Dynamic shared memory in bytes.
        arguments: Words of 64 bits, as all kernels here take them: addresses and sizes.
        cooperative: Whether its blocks wait for each other.
    """

    function: Any
    grid: int
    block: tuple[int, int]
    shared: int
    arguments: tuple[int, ...]
    cooperative: bool = False


LAUNCHER_FUNCTIONS = (
    "cuLaunchKernel",
    "cuLaunchCooperativeKernel",
    "cuGraphLaunch",
    "cuStreamSynchronize",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
)
"""The functions of the driver that the launcher in C calls."""


@frozen
class NativeCalls:
    """A driver for the launcher in C.

    Attributes:
        addresses: The address of each of `LAUNCHER_FUNCTIONS`.
        context: The CUcontext.
    """

    addresses: Mapping[str, int]
    context: int


class Driver(ABC):
    """One device with its primary context, which PyTorch, JAX and CuPy use as well.

    Methods other than `current` need the context: call them inside its `with` block. Addresses are
    integers; streams, events and functions are objects of the library. Each method raises
    `DriverError` with the driver's text, `OutOfDeviceMemoryError` where memory is exhausted.
    """

    name: str
    """The library, with its version."""
    properties: CudaProperties
    supports_graphs: bool
    """Whether it has graphs and cooperative launches."""

    @abstractmethod
    def current(self) -> AbstractContextManager[Any]:
        """Make the context current in this thread inside the `with` block.

        Raises: DriverError where the driver refuses.
        """

    @abstractmethod
    def load(self, image: bytes, name: str) -> Any:
        """Load machine code, a cubin, and return its function called ``name``.

        Raises: DriverError, with the failure INVALID_IMAGE where the device does not accept the
        code.
        """

    @abstractmethod
    def attributes(self, function: Any) -> FunctionAttributes:
        """Return the registers, memory and threads per block of a function.

        Raises: DriverError where the driver refuses.
        """

    @abstractmethod
    def blocks_at_once(self, function: Any, threads: int, shared: int) -> int:
        """Return how many blocks of a function a multiprocessor holds at a time.

        ``threads`` are those of a block, ``shared`` its bytes of dynamic shared memory. Raises:
        DriverError where the driver refuses.
        """

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """Return the address of new memory on the device.

        Raises: OutOfDeviceMemoryError where the device has none left, DriverError for another
        failure.
        """

    @abstractmethod
    def free(self, address: int) -> None:
        """Free memory that `allocate` returned. Raises: DriverError where the driver refuses."""

    @abstractmethod
    def stream(self) -> Any:
        """Create a stream that does not wait for the default stream.

        Raises: DriverError where the driver refuses.
        """

    @abstractmethod
    def handle(self, stream: Any) -> int:
        """Return a stream's CUstream handle, which other libraries take."""

    @abstractmethod
    def finish(self, stream: Any) -> None:
        """Block until all work in a stream is done.

        Raises: DriverError where work in it has failed.
        """

    @abstractmethod
    def upload(self, address: int, array: Any, stream: Any) -> None:
        """Enqueue a copy of a contiguous array to an address on the device, in a stream.

        Raises: DriverError where the driver refuses.
        """

    @abstractmethod
    def download(self, array: Any, address: int, stream: Any) -> None:
        """Enqueue a copy from an address on the device that fills a contiguous array.

        ``stream`` is the stream. Raises: DriverError where the driver refuses.
        """

    @abstractmethod
    def copy(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        """Enqueue a copy of ``nbytes`` on the device, from address ``source`` to ``target``.

        ``stream`` is the stream. Raises: DriverError where the driver refuses.
        """

    @abstractmethod
    def fill(self, address: int, byte: int, nbytes: int, stream: Any) -> None:
        """Enqueue setting ``nbytes`` bytes from an address on to the value ``byte``.

        ``stream`` is the stream. Raises: DriverError where the driver refuses.
        """

    @abstractmethod
    def event(self, stream: Any) -> Any:
        """Record an event in a stream and return it.

        It is reached when all work enqueued before it is done. Raises: DriverError where the driver
        refuses.
        """

    @abstractmethod
    def wait_for(self, stream: int, other: int) -> None:
        """Let a stream wait for all work that is now in another one, both given by their handles.

        Raises: DriverError where the driver refuses.
        """

    @abstractmethod
    def seconds(self, first: Any, last: Any) -> float:
        """Return the seconds from ``first`` to ``last``, events that must have been reached.

        Raises: DriverError where the driver refuses.
        """

    @abstractmethod
    def launch(self, params: LaunchParams, stream: Any) -> None:
        """Enqueue a kernel launch, given by ``params``, in a stream.

        Raises: DriverError where the driver refuses.
        """

    @abstractmethod
    def graph(self, launches: Sequence[LaunchParams]) -> Any:
        """Return an executable graph of launches, each of which depends on the one before.

        Raises: DriverError where the driver refuses.
        """

    @abstractmethod
    def capture(self, enqueue: Callable[[], None], stream: Any) -> Any:
        """Return an executable graph of the work that ``enqueue()`` enqueues in ``stream``.

        The work itself does not run. If ``enqueue`` or the capture fails, the error is raised and
        the stream is usable as before. Raises: DriverError where the driver refuses.
        """

    @abstractmethod
    def replay(self, graph: Any, stream: Any) -> None:
        """Enqueue a graph in a stream, as one launch.

        Raises: DriverError where the driver refuses.
        """

    @abstractmethod
    def drop(self, graph: Any) -> None:
        """Destroy a graph that `graph` or `capture` returned.

        Raises: DriverError where the driver refuses.
        """

    def native_calls(self) -> NativeCalls | None:
        """Return what the launcher in C needs to call the driver; None where that is unknown."""
        return None

    def native_function(self, function: Any) -> int:
        """Return the CUfunction of a function. Raises: DriverError where it cannot be loaded."""
        return int(function)

    def native_graph(self, graph: Any) -> int:
        """Return the CUgraphExec of a graph that `graph` returned."""
        return int(graph.executable)
