"""What is asked of CUDA: a few methods, which more than one library offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any

from attrs import frozen


class Trouble(Enum):
    """What a call's failure means for those who made it."""

    ROOM = "no memory is left"
    LOST = "the device is lost to this process"
    IMAGE = "the device cannot run this machine code"
    OTHER = "anything else"


TROUBLES = {
    "out of memory": Trouble.ROOM,
    "device kernel image is invalid": Trouble.IMAGE,
    "no kernel image is available for execution on the device": Trouble.IMAGE,
    "an illegal memory access was encountered": Trouble.LOST,
    "the launch timed out and was terminated": Trouble.LOST,
    "unspecified launch failure": Trouble.LOST,
    "uncorrectable ECC error encountered": Trouble.LOST,
    "hardware stack error": Trouble.LOST,
    "an illegal instruction was encountered": Trouble.LOST,
    "misaligned address": Trouble.LOST,
    "operation not supported on global/shared address space": Trouble.LOST,
    "invalid program counter": Trouble.LOST,
    "context is destroyed": Trouble.LOST,
    "device-side assert triggered": Trouble.LOST,
    "CUDA-capable device(s) is/are busy or unavailable": Trouble.LOST,
    "unknown error": Trouble.LOST,
}
"""By what cuGetErrorString says, which is what both libraries have. Source: cuda.h, CUresult."""


class DriverError(Exception):
    """A call of the driver failed: which, and what the driver says."""

    def __init__(self, call: str, said: str) -> None:
        super().__init__(f"{call}: {said}")
        self.call, self.said = call, said

    @property
    def trouble(self) -> Trouble:
        """What that means."""
        return trouble_of(self.said)


class RoomError(DriverError):
    """A call failed because the device has no memory left."""


def trouble_of(said: str) -> Trouble:
    """What a text of the driver means."""
    return next((t for text, t in TROUBLES.items() if text in said), Trouble.OTHER)


def failed(call: str, said: str) -> DriverError:
    """The error of a call, by what the driver says."""
    return (RoomError if trouble_of(said) is Trouble.ROOM else DriverError)(call, said)


@frozen
class Limits:
    """What a device says of itself. Units: bytes.

    ``shared_nbytes`` is what a block may have of shared memory if it asks for it, ``threads`` are
    those of a block, ``units`` the multiprocessors, ``grid`` the blocks of a launch.
    ``cooperative`` is whether the blocks of a launch can wait for each other.
    """

    shared_nbytes: int
    global_nbytes: int
    threads: int
    units: int
    grid: int
    cooperative: bool

    @property
    def largest_nbytes(self) -> int:
        """The largest buffer there can be."""
        return self.global_nbytes


@frozen
class Facts:
    """A device: its name, its architecture as (major, minor), the CUDA that its driver knows."""

    name: str
    capability: tuple[int, int]
    version: tuple[int, int]
    limits: Limits

    @property
    def architecture(self) -> str:
        """As compilers call it."""
        return "sm_{}{}".format(*self.capability)


@frozen
class Used:
    """What a function takes of a multiprocessor. Units of all but the first: bytes, threads.

    ``shared`` is what its text declares, ``local`` what registers spill to, ``threads`` the most
    that a block may have.
    """

    registers: int
    shared: int
    local: int
    threads: int


@frozen
class Task:
    """A launch: a function of a driver, its blocks, threads and dynamic shared bytes.

    ``arguments`` are words of 64 bits, as all are that kernels here take: addresses and sizes. The
    blocks of a ``cooperative`` one wait for each other.
    """

    function: Any
    grid: int
    block: tuple[int, int]
    shared: int
    arguments: tuple[int, ...]
    cooperative: bool = False


class Driver(ABC):
    """One device with its primary context, which PyTorch, JAX and CuPy have as well.

    Methods but `current` need the context: call them inside it. Addresses are numbers; streams,
    events and functions are the library's. Each raises DriverError with what the driver says.
    """

    name: str
    """The library, with its version."""
    facts: Facts
    graphs: bool
    """Whether it has graphs and cooperative launches."""

    @abstractmethod
    def current(self) -> AbstractContextManager[Any]:
        """Inside, the context is this thread's; after it, the one that was before."""

    @abstractmethod
    def load(self, image: bytes, name: str) -> Any:
        """A function of machine code."""

    @abstractmethod
    def used(self, function: Any) -> Used:
        """What a function takes."""

    @abstractmethod
    def allow_shared(self, function: Any, nbytes: int) -> None:
        """Let a function have so much dynamic shared memory, which may be more than usual."""

    @abstractmethod
    def blocks_at_once(self, function: Any, threads: int, shared: int) -> int:
        """How many blocks of a function a multiprocessor holds at a time."""

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """The address of new memory on the device."""

    @abstractmethod
    def free(self, address: int) -> None:
        """Give memory back."""

    @abstractmethod
    def stream(self) -> Any:
        """A new stream, which does not wait for the default one."""

    @abstractmethod
    def handle(self, stream: Any) -> int:
        """A stream as other libraries name it."""

    @abstractmethod
    def finish(self, stream: Any) -> None:
        """Wait until all in a stream is done."""

    @abstractmethod
    def upload(self, address: int, array: Any, stream: Any) -> None:
        """Copy a contiguous array to the device."""

    @abstractmethod
    def download(self, array: Any, address: int, stream: Any) -> None:
        """Fill a contiguous array from the device."""

    @abstractmethod
    def copy(self, to: int, source: int, nbytes: int, stream: Any) -> None:
        """Copy bytes on the device."""

    @abstractmethod
    def fill(self, address: int, byte: int, nbytes: int, stream: Any) -> None:
        """Set bytes on the device."""

    @abstractmethod
    def event(self, stream: Any) -> Any:
        """A point in a stream."""

    @abstractmethod
    def follow(self, stream: Any, other: int) -> None:
        """Let a stream wait for all that is in another library's now, by its handle."""

    @abstractmethod
    def seconds(self, first: Any, last: Any) -> float:
        """The time between two points that have been reached."""

    @abstractmethod
    def launch(self, task: Task, stream: Any) -> None:
        """Enqueue a kernel."""

    @abstractmethod
    def graph(self, tasks: Sequence[Task]) -> Any:
        """Tasks, one after the other, as something that is enqueued by one call."""

    @abstractmethod
    def capture(self, enqueue: Callable[[], None], stream: Any) -> Any:
        """What a function enqueues in a stream, as such a thing. Nothing of it is done.

        If anything fails, the stream is one as before.
        """

    @abstractmethod
    def change(self, graph: Any, number: int, task: Task) -> None:
        """Give one of the tasks of `graph` other figures or arguments."""

    @abstractmethod
    def replay(self, graph: Any, stream: Any) -> None:
        """Enqueue a graph."""

    @abstractmethod
    def drop(self, graph: Any) -> None:
        """Give a graph back."""
