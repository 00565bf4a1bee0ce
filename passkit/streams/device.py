"""Devices that arrays of streams can be on, besides the CPU: OpenCL and CUDA devices.

An array type has a `StreamDevice` or None, for the CPU. The buffer of a value on a device is an
array of `passkit.runtime`, which stays there between executions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from contextvars import Context
from functools import partial
from typing import Any

import numpy as np

from passkit.graph.graph import Graph
from passkit.program.executable import Executable
from passkit.runtime.device.interface import raise_status
from passkit.values.lazy import Lazy

contexts: Any = Lazy("passkit.passes.context")
cuda_arrays: Any = Lazy("passkit.runtime.cuda.arrays")
cuda_device: Any = Lazy("passkit.runtime.cuda.device")
launcher: Any = Lazy("passkit.runtime.device.launcher")
opencl_arrays: Any = Lazy("passkit.runtime.opencl.arrays")
opencl_device: Any = Lazy("passkit.runtime.opencl.device")

MAX_NUMBERS = 1024
"""The most numbers that a device keeps; then all are dropped."""


class StreamDevice(ABC):
    """A device of this machine.

    Args:
        name: its name, such as "opencl:0".
        opened: the device of the run time.

    Attributes:
        target: the target that plans are compiled for.
        dlpack: the kind and the number of the device in DLPack.
        facts: what compiled code depends on; plans on disk are kept by it.
    """

    target: str
    dlpack: tuple[int, int]
    facts: str

    def __init__(self, name: str, opened: Any) -> None:
        self.name, self.opened = name, opened
        self._numbers: dict[Hashable, Any] = {}

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    @abstractmethod
    def selected(self) -> AbstractContextManager[None]:
        """Return a block in which programs are compiled for, bound to and run on this device."""

    @abstractmethod
    def new_array(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        """Return an uninitialized array on the device. Raises: DeviceError without memory."""

    @abstractmethod
    def capsule(self, array: Any, stream: int | None = None) -> Any:
        """Return an unversioned DLPack capsule of the memory of an array on the device.

        A consumer's ``stream``, given by its handle, waits for the array where DLPack has streams
        for the device; else the host waits. None is the legacy default stream of CUDA.
        """

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a copy of a NumPy array on the device. Raises: DeviceError without memory."""
        with self.selected():
            copy = self.new_array(array.dtype, array.shape)
            if array.size:
                flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                with self.opened.active("copying an array"):
                    self.opened.queue.upload(copy.block, flat).wait()
        return copy

    def number(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a copy of a 0-dimensional NumPy array on the device, as an array of the run time.

        For equal bits of one dtype it is the same copy, until `MAX_NUMBERS` others were asked for.
        Raises: DeviceError without memory.
        """
        key = array.dtype, array.tobytes()
        number = self._numbers.get(key)
        if number is None:
            if len(self._numbers) >= MAX_NUMBERS:
                self._numbers.clear()
            number = self._numbers[key] = self.upload(array)
        return number

    def finish(self) -> None:
        """Wait until the device has done all work that was enqueued.

        Raises: DeviceError where work has failed, or in a fork of the process that opened the
            device.
        """
        calls = self.opened.calls
        if calls is None:
            with self.opened.active("waiting"):
                self.opened.queue.finish()
            return
        status = calls.finish()
        if status:
            raise_status(self.opened, "waiting", status)

    def compile(self, graph: Graph) -> Executable:
        """Return the executable of a graph on this device; options of the caller do not count.

        Raises: PasskitError if the operations cannot be compiled.
        """

        def compiled() -> Executable:
            with self.selected():
                return Executable(graph, {"target": self.target})

        return Context().run(compiled)  # settings of the caller's do not matter

    def explained(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what ``function(*arguments)`` returns, called with the planner set to this device.

        Settings of the caller's context do not matter. Its errors pass.
        """

        def planned() -> Any:
            with self.selected(), contexts.PassContext(target=self.target):
                return function(*arguments)

        return Context().run(planned)

    def running(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls ``function``, which runs a program, on this device.

        NumPy arrays without axes, which are numbers, become arrays of the device. NumPy arrays
        without elements, which give extents, are passed as they are.
        """
        number, array_type = self.number, np.ndarray

        def run(*arrays: Any) -> Any:
            with self.selected():
                return function(
                    *[number(a) if type(a) is array_type and not a.shape else a for a in arrays]
                )

        return run

    def runners(self, run_into: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
        """Return functions that run a program on this device: with new results, and with others.

        Args:
            run_into: runs it, called with arrays for the results, or None, and all inputs.

        Returns: Functions of all inputs; and of arrays for the results and all inputs.
        """
        run, into = self.running(partial(run_into, None)), self.running(run_into)
        program = getattr(run_into, "__self__", None)
        if not launcher.IS_NATIVE or not isinstance(program, launcher.LauncherBase):
            return run, into
        numbers = self._numbers
        return (
            launcher.Runner(program, run, numbers, False),
            launcher.Runner(program, into, numbers, True),
        )


class OpenClStreamDevice(StreamDevice):
    """An OpenCL device.

    Args:
        number: its position among the devices of all platforms.
        opened: the device of the run time.
    """

    target = "opencl"

    def __init__(self, number: int, opened: Any) -> None:
        super().__init__(f"opencl:{number}", opened)
        self.dlpack = 4, number
        self.facts = f"opencl\n{opened.fingerprint}"

    def selected(self) -> AbstractContextManager[None]:
        """Return a block in which programs are compiled for, bound to and run on this device."""
        return opencl_device.selected(self.opened)  # type: ignore[no-any-return]

    def new_array(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        """Return an uninitialized array on the device. Raises: DeviceError without memory."""
        return opencl_arrays.new_array(dtype, shape)

    def capsule(self, array: Any, stream: int | None = None) -> Any:
        """Return an unversioned DLPack capsule of the memory of an array on the device.

        A consumer's ``stream``, given by its handle, waits for the array where DLPack has streams
        for the device; else the host waits. None is the legacy default stream of CUDA.
        """
        return array.capsule(self.dlpack[1])


class CudaStreamDevice(StreamDevice):
    """The CUDA device. ``opened`` is the device of the run time."""

    target = "cuda"
    dlpack = 2, 0

    def __init__(self, opened: Any) -> None:
        super().__init__("cuda:0", opened)
        self.facts = f"cuda\n{opened}"

    def selected(self) -> AbstractContextManager[None]:
        """Return a block in which programs are compiled for, bound to and run on this device."""
        return self.opened.active("a run")  # type: ignore[no-any-return]

    def new_array(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        """Return an uninitialized array on the device. Raises: DeviceError without memory."""
        return cuda_arrays.new_array(dtype, shape)

    def capsule(self, array: Any, stream: int | None = None) -> Any:
        """Return an unversioned DLPack capsule of the memory of an array on the device.

        A consumer's ``stream``, given by its handle, waits for the array where DLPack has streams
        for the device; else the host waits. None is the legacy default stream of CUDA.
        """
        return array.__dlpack__(stream=stream)


def host_array(buffer: Any) -> Any:
    """Return the NumPy array of a value's buffer; of an array on a device, a copy.

    A NumPy array, or a tuple of them, is returned itself. Raises: DeviceError where copying fails.
    """
    return buffer if isinstance(buffer, (np.ndarray, tuple)) else buffer.numpy()
