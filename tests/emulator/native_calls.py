"""Functions of the fake driver for the launcher in C: pointers that call its methods."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.runtime.cuda.driver import DriverError, LaunchParams, NativeCalls

CODES = {
    1: "invalid argument",
    2: "out of memory",
    200: "device kernel image is invalid",
    209: "no kernel image is available for execution on the device",
    700: "an illegal memory access was encountered",
    719: "unspecified launch failure",
    801: "operation not supported",
    900: "operation not permitted when stream is capturing",
    901: "operation failed due to a previous error during capture",
    999: "unknown error",
}
"""The statuses of the driver by number, as in cuda.h."""
NUMBERS = {text: number for number, text in CODES.items()}
CONTEXT = 77
"""The handle of the fake driver's context."""
POINTER = ctypes.c_void_p
SIZE = ctypes.c_uint64
LAUNCH = (POINTER, *[ctypes.c_uint] * 7, POINTER, POINTER)


def word(address: int) -> int:
    """Return the 64 bits at an address."""
    return int(ctypes.c_uint64.from_address(address).value)


def at(address: int, nbytes: int) -> Any:
    """Return host memory at an address."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))


class NativeFunctions:
    """The functions of a fake driver that the launcher in C calls.

    Args:
        driver: the driver, whose methods are called and record the calls.

    Attributes:
        handles: the functions and graphs of the driver by their handles.
        switches: how often a thread's context was read or set.
    """

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.handles: dict[int, Any] = {}
        self.switches = 0
        prototypes: dict[str, tuple[Callable[..., None], tuple[Any, ...]]] = {
            "cuLaunchKernel": (self.launch, (*LAUNCH, POINTER)),
            "cuLaunchCooperativeKernel": (self.launch_cooperative, LAUNCH),
            "cuGraphLaunch": (self.replay, (POINTER, POINTER)),
            "cuMemcpyHtoDAsync_v2": (self.upload, (SIZE, SIZE, SIZE, POINTER)),
            "cuMemcpyDtoHAsync_v2": (self.download, (SIZE, SIZE, SIZE, POINTER)),
            "cuStreamSynchronize": (self.driver_finish, (POINTER,)),
            "cuCtxGetCurrent": (self.get_current, (POINTER,)),
            "cuCtxSetCurrent": (self.set_current, (POINTER,)),
            "cuCtxPushCurrent_v2": (self.set_current, (POINTER,)),
            "cuCtxPopCurrent_v2": (self.pop_current, (POINTER,)),
        }
        self.pointers = {
            name: ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._guarded(function))
            for name, (function, types) in prototypes.items()
        }

    @staticmethod
    def _guarded(function: Callable[..., None]) -> Callable[..., int]:
        """Return a function that returns the status of a call."""

        def call(*arguments: Any) -> int:
            try:
                function(*arguments)
            except DriverError as error:
                return NUMBERS.get(error.message, 999)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                return 999
            return 0

        return call

    def calls(self) -> NativeCalls:
        """Return the addresses of the functions."""
        addresses = {
            name: ctypes.cast(pointer, POINTER).value or 0
            for name, pointer in self.pointers.items()
        }
        return NativeCalls(addresses, CONTEXT)

    def handle(self, held: Any) -> int:
        """Return a handle of a function or graph."""
        self.handles[id(held)] = held
        return id(held)

    def launch(self, function: int, *rest: int, cooperative: bool = False) -> None:
        """Launch a kernel: grid, block, shared memory, stream and the places of arguments."""
        own = self.handles[function]
        grid, block, (shared, stream, places) = rest[:3], rest[3:6], rest[6:9]
        assert grid[1:] == (1, 1) and block[2] == 1
        arguments = own.words(places)
        params = LaunchParams(own, grid[0], block[:2], shared, arguments, cooperative)  # type: ignore[arg-type]
        self.driver.launch(params, stream)

    def launch_cooperative(self, *arguments: int) -> None:
        """Launch a kernel whose blocks wait for each other."""
        self.launch(*arguments, cooperative=True)

    def replay(self, graph: int, stream: int) -> None:
        """Launch a graph."""
        self.driver.replay(self.handles[graph], stream)

    def upload(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy bytes to the device."""
        self.driver.upload(target, at(source, nbytes), stream)

    def download(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy bytes from the device."""
        self.driver.download(at(target, nbytes), source, stream)

    def driver_finish(self, stream: int) -> None:
        """Wait for a stream."""
        self.driver.finish(stream)

    def get_current(self, place: int) -> None:
        """Store the handle of the thread's context."""
        current = CONTEXT if getattr(self.driver.local, "depth", 0) else 0
        ctypes.c_uint64.from_address(place).value = current

    def set_current(self, context: int) -> None:
        """Make the context current."""
        assert context == CONTEXT
        self.switches += 1
        self.driver.local.depth = getattr(self.driver.local, "depth", 0) + 1

    def pop_current(self, place: int) -> None:
        """Make the context current that was before."""
        self.driver.local.depth -= 1
