"""Library steps on a CUDA device: what they have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from passkit.runtime.cuda.driver import DriverError
from passkit.runtime.cuda.shared import MissingError
from passkit.runtime.device.memory import Memory
from passkit.runtime.program import Library, Ref

if TYPE_CHECKING:
    from passkit.runtime.cuda.run import Bound

Found = TypeVar("Found")


class Enqueued(ABC):
    """What a step enqueues: called with a call's memory."""

    def __init__(self, step: Library, bound: Bound) -> None:
        self.step, self.bound, self.device = step, bound, bound.device
        self.dtype = step.writes[0].dtype

    def __call__(self, memory: Memory) -> None:
        """Bring operands where they are wanted, and enqueue."""
        operands = [self.address(r, memory) for r in self.reads]
        result = memory.written(self.step.writes[0]).address
        memory.launched.append(memory.queue.did(self.enqueue, operands, result, memory))

    @property
    def reads(self) -> tuple[Ref, ...]:
        """The operands."""
        return self.step.reads

    def address(self, ref: Ref, memory: Memory) -> int:
        """Where an operand is on the device."""
        return int(memory.read(ref).address)

    @abstractmethod
    def enqueue(self, operands: list[int], result: int, memory: Memory, stream: Any) -> None:
        """Let a stream do it."""

    def room(self, nbytes: int, memory: Memory) -> Any:
        """Memory for a while: whoever has it next comes behind in the stream."""
        return memory.pool.take(nbytes) if nbytes else None


def tried(make: Callable[[], Found]) -> Found | MissingError:
    """A library of a device, or why there is none."""
    try:
        return make()
    except MissingError as error:
        return error
    except DriverError as error:
        return MissingError(f"a library of the device does not begin: {error}")
