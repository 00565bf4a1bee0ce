"""Library steps on a CUDA device: products by cuBLASLt, convolutions by cuDNN."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from passkit.ast.folds import Convolution
from passkit.runtime.cuda.arranging import Arranged, bare, bordered, turned
from passkit.runtime.cuda.cublaslt import ALIGNED, CublasLt, Epilogue, Multiply, Numbers
from passkit.runtime.cuda.cudnn import Cudnn, filters_of, padded_result
from passkit.runtime.cuda.device import Device
from passkit.runtime.cuda.driver import DriverError
from passkit.runtime.cuda.shared import MissingError
from passkit.runtime.device.memory import Memory
from passkit.runtime.native.onednn import Geometry
from passkit.runtime.program import Library, Product, Ref
from passkit.runtime.table import batch_axes
from passkit.values.size import Extent

if TYPE_CHECKING:
    from passkit.runtime.cuda.run import Bound

Action = Callable[[Memory], None]
Found = TypeVar("Found")


@cache
def cublaslt(device: Device) -> CublasLt | MissingError:
    """The library on a device, or why there is none."""
    return _tried(lambda: CublasLt(device.facts.capability[0]))


@cache
def cudnn(device: Device) -> Cudnn | MissingError:
    """The library on a device, or why there is none."""
    return _tried(Cudnn)


def _tried(make: Callable[[], Found]) -> Found | MissingError:
    try:
        return make()
    except MissingError as error:
        return error
    except DriverError as error:
        return MissingError(f"a library of the device does not begin: {error}")


def on_device(step: Library, bound: Bound, bias: Ref | None = None) -> Action:
    """What runs a step on the device, in its stream; to products a ``bias`` may be added.

    Raises: MissingError where nothing does.
    """
    if isinstance(step.contract, Product):
        return _Products(step, step.contract, bound, bias)
    assert step.contract is not None
    return _Convolution(step, step.contract, bound)


class _Enqueued(ABC):
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


class _Products(_Enqueued):
    """Products of matrices; of a batch that is broadcast, those of each of its outer places."""

    def __init__(self, step: Library, own: Product, bound: Bound, bias: Ref | None) -> None:
        super().__init__(step, bound)
        self.bias = bias
        library = cublaslt(bound.device)
        if isinstance(library, MissingError):
            raise library
        m, n, k = (bound.number(x) for x in (own.m, own.n, own.k))
        a, b = bound.shape(own.batch_a), bound.shape(own.batch_b)
        *outer, (batch, *steps) = batch_axes(a, b, m * k, k * n, m * n)
        one = not outer and steps[1] == 0 and steps[0] == m * k and not own.transpose_a
        if one and batch > 1:  # one matrix on the right serves all rows at once
            m, batch, steps = m * batch, 1, [0, 0, 0]
        self.empty = m * n * batch * int(np.prod([x[0] for x in outer])) == 0
        self.nbytes = 0 if k else bound.number(step.writes[0].nbytes)
        flags = own.transpose_a, own.transpose_b
        epilogue = Epilogue.NONE if bias is None else Epilogue.BIAS
        self.numbers = Numbers(
            self.dtype, m, n, k, *flags, batch, (steps[0], steps[1], steps[2]), epilogue
        )
        self.moves = [
            [self.dtype.nbytes * sum(i * x[1 + w] for i, x in zip(at, outer, strict=True))
             for w in range(3)]
            for at in product(*(range(x[0]) for x in outer))
        ]  # fmt: skip
        self.library, self.known = library, dict[int, Multiply]()
        if not self.empty and k:
            self.multiply(ALIGNED)

    @property
    def reads(self) -> tuple[Ref, ...]:
        """The operands, and what is added to each row of the result."""
        return self.step.reads if self.bias is None else (*self.step.reads, self.bias)

    def multiply(self, alignment: int) -> Multiply:
        """What multiplies arrays at addresses of an alignment."""
        if alignment not in self.known:
            self.known[alignment] = self.library.prepared(self.numbers, alignment)
        return self.known[alignment]

    def enqueue(self, operands: list[int], result: int, memory: Memory, stream: Any) -> None:
        """Multiply, or clear what sums of nothing are."""
        driver = self.device.driver
        if self.empty:
            return
        if not self.numbers.k:
            driver.fill(result, 0, self.nbytes, stream)
            return
        a, b, *biases = operands
        for move_a, move_b, move_c in self.moves:
            places = a + move_a, b + move_b, result + move_c
            even = all(p % ALIGNED == 0 for p in places)
            with self.device.lock:
                made = self.multiply(ALIGNED if even else self.dtype.nbytes)
                held = self.room(made.workspace, memory)
                where = 0 if held is None else held.address
                made.enqueue(*places, where, driver.handle(stream), *biases)


class _Convolution(_Enqueued):
    """A convolution. Constant filters are laid out once, others on the device in each call.

    Where an axis has more padding at one end, the device makes images with their border first.
    """

    def __init__(self, step: Library, own: Convolution, bound: Bound) -> None:
        super().__init__(step, bound)
        library = cudnn(bound.device)
        if isinstance(library, MissingError):
            raise library
        self.constant = step.reads[1].place in bound.table.constants
        self.geometry = c = Geometry(*(self.numbers(x) for x in own))
        self.empty = min(c.batch, c.filters, *c.result) < 1
        self.convolve, self.turn, self.border = None, None, None
        if self.empty:
            return
        even = min(c.before) >= 0 and padded_result(c) == tuple(c.result)
        told = c if even else bare(c)
        self.convolve = library.prepared(told, self.dtype)
        if not even:
            self.border = bordered(bound.device, c, told.size, self.dtype.nbytes)
        if not self.constant:
            self.turn = turned(bound.device, c, self.dtype.nbytes)
        self.kept: Any = None

    def numbers(self, x: Extent | tuple[Extent, ...]) -> Any:
        """Sizes as numbers."""
        return self.bound.shape(x) if isinstance(x, tuple) else self.bound.number(x)

    def address(self, ref: Ref, memory: Memory) -> int:
        """Where an operand is; constant filters are taken there once, in their order."""
        if ref is not self.step.reads[1] or not self.constant or self.convolve is None:
            return super().address(ref, memory)
        if self.kept is None:
            plain = self.bound.program.constants[ref.index]
            array = filters_of(np.asarray(plain), self.geometry)
            self.kept = memory.pool.take(array.nbytes)
            memory.noted(memory.queue.upload(self.kept, array.reshape(-1).view(np.uint8))).wait()
            memory.uploaded += array.nbytes
        return int(self.kept.address)

    def enqueue(self, operands: list[int], result: int, memory: Memory, stream: Any) -> None:
        """Convolve."""
        if self.convolve is None:
            return
        with self.device.lock:
            held: list[Any] = []

            def made(by: Arranged | None, source: int) -> int:
                """What a kernel makes of an operand, or the operand."""
                if by is None:
                    return source
                held.append(self.room(by.nbytes, memory))
                by.enqueue(source, held[-1].address, stream)
                return int(held[-1].address)

            source, filters = operands
            images, laid_out = made(self.border, source), made(self.turn, filters)
            held.append(self.room(self.convolve.workspace, memory))
            where = 0 if held[-1] is None else held[-1].address
            number = self.device.driver.handle(stream)
            self.convolve.enqueue(images, laid_out, result, where, number)


def counted(missing: MissingError, counts: dict[str, Any]) -> None:
    """Note that a step stays on the host, and why."""
    reasons = counts.setdefault("on_host_because", ())
    if str(missing) not in reasons:
        counts["on_host_because"] = (*reasons, str(missing))
