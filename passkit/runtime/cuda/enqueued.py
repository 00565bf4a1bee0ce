"""Steps on a CUDA device, kernels' and libraries': what they have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from passkit.runtime.cuda.driver import DriverError
from passkit.runtime.cuda.shared import MissingError
from passkit.runtime.device.memory import Memory
from passkit.runtime.program import Library, Ref

if TYPE_CHECKING:
    from passkit.runtime.cuda.run import Bound

Found = TypeVar("Found")


class Part(NamedTuple):
    """A part of memory that somebody else holds."""

    address: int


class Rooms(Protocol):
    """What has memory for a while: whoever has it next comes behind in the stream."""

    def take(self, nbytes: int) -> Any:
        """Memory of at least so many bytes, with its address."""
        ...


class Enqueued(ABC):
    """What a step enqueues: called with a call's memory.

    ``reads`` and ``writes`` are what it has there.
    """

    reads: Sequence[Ref]
    writes: Sequence[Ref]

    def __init__(self, bound: Bound) -> None:
        self.bound, self.device = bound, bound.device

    def __call__(self, memory: Memory) -> None:
        """Bring operands where they are wanted, and enqueue."""
        what = self.placed(memory)
        memory.launched.append(memory.queue.did(self.enqueue, what, memory.pool))

    @abstractmethod
    def placed(self, memory: Memory) -> Any:
        """What is to be done in a call: with addresses, at which operands are from now on."""

    @abstractmethod
    def enqueue(self, what: Any, rooms: Rooms, stream: Any) -> None:
        """Let a stream do that. Raises: DeviceError, DriverError."""


Addresses = tuple[list[int], int]
"""Those of the operands and of the result."""


class LibraryStep(Enqueued):
    """What a library of the device does."""

    def __init__(self, step: Library, bound: Bound, *more: Ref) -> None:
        super().__init__(bound)
        self.step, self.dtype = step, step.writes[0].dtype
        self.operands = (*step.reads, *more)
        self.reads, self.writes = self.operands, step.writes

    def placed(self, memory: Memory) -> Addresses:
        """The addresses."""
        operands = [self.address(r, memory) for r in self.operands]
        return operands, memory.written(self.step.writes[0]).address

    def address(self, ref: Ref, memory: Memory) -> int:
        """Where an operand is on the device."""
        return int(memory.read(ref).address)

    @abstractmethod
    def enqueue(self, what: Addresses, rooms: Rooms, stream: Any) -> None:
        """Let a stream do it."""

    def room(self, nbytes: int, rooms: Rooms) -> Any:
        """Memory for a while, or None where none is needed."""
        return rooms.take(nbytes) if nbytes else None


def tried(make: Callable[[], Found]) -> Found | MissingError:
    """A library of a device, or why there is none."""
    try:
        return make()
    except MissingError as error:
        return error
    except DriverError as error:
        return MissingError(f"a library of the device does not begin: {error}")
