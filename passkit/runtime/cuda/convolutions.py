"""Convolutions and gradients of their filters as steps on a CUDA device, by cuDNN."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.ast.folds import Convolution
from passkit.runtime.cuda.arranging import Arranged, bare, bordered, turned
from passkit.runtime.cuda.cudnn import Convolve, ConvolveBack, Cudnn, filters_of, padded_result
from passkit.runtime.cuda.device import Device
from passkit.runtime.cuda.enqueued import Addresses, LibraryStep, Part, Rooms, tried
from passkit.runtime.cuda.shared import MissingError
from passkit.runtime.device.memory import Memory
from passkit.runtime.native.onednn import Geometry
from passkit.runtime.program import Library, Ref
from passkit.values.size import Extent

if TYPE_CHECKING:
    from passkit.runtime.cuda.run import Bound


@cache
def cudnn(device: Device) -> Cudnn | MissingError:
    """The library on a device, or why there is none."""
    return tried(Cudnn)


class _CudnnStep(LibraryStep):
    """What cuDNN does with images, which get their border first where it wants them so.

    It pads both ends of an axis alike.
    """

    def __init__(self, step: Library, own: Convolution, bound: Bound, made: type[Convolve]) -> None:
        super().__init__(step, bound)
        library = cudnn(bound.device)
        if isinstance(library, MissingError):
            raise library
        self.geometry = c = Geometry(*(self.numbers(x) for x in own))
        self.nbytes = bound.number(step.writes[0].nbytes)
        self.empty = min(c.batch, c.channels, c.filters, *c.window, *c.result) < 1
        self.convolve, self.border = None, None
        if self.empty:
            return
        even = min(c.before) >= 0 and padded_result(c) == tuple(c.result)
        told = c if even else bare(c)
        self.convolve = library.prepared(told, self.dtype, made)
        if not even:
            self.border = bordered(bound.device, c, told.size, self.dtype.nbytes)

    def clear(self, result: int, stream: Any) -> None:
        """Write what sums of nothing are."""
        if self.nbytes:
            self.device.driver.fill(result, 0, self.nbytes, stream)

    def numbers(self, x: Extent | tuple[Extent, ...]) -> Any:
        """Sizes as numbers."""
        return self.bound.shape(x) if isinstance(x, tuple) else self.bound.number(x)

    @property
    def filters(self) -> tuple[int, int]:
        """The rows and columns of filters as they lie: all that one sees, and how many."""
        c = self.geometry
        return prod(c.window) * (c.channels // c.groups), c.filters

    def made(self, by: Arranged | None, source: int, rooms: Rooms, stream: Any) -> Any:
        """Memory with what a kernel makes of an operand, or that operand's."""
        if by is None:
            return Part(source)
        room = self.room(by.nbytes, rooms)
        by.enqueue(source, room.address, stream)
        return room

    def convolved(
        self, one: int, other: int, result: int, rooms: Rooms, stream: Any
    ) -> None:
        """Let the library do it."""
        assert self.convolve is not None
        room = self.room(self.convolve.workspace, rooms) or Part(0)
        number = self.device.driver.handle(stream)
        self.convolve.enqueue(one, other, result, room.address, number)


class ConvolutionStep(_CudnnStep):
    """A convolution. Constant filters are laid out once, others on the device in each call."""

    def __init__(self, step: Library, own: Convolution, bound: Bound) -> None:
        super().__init__(step, own, bound, Convolve)
        self.constant = step.reads[1].place in bound.table.constants and not self.empty
        if self.constant:
            self.reads = step.reads[:1]  # the filters are this step's own
        self.turn: Arranged | None = None
        self.kept: Any = None
        if not self.empty and not self.constant:
            self.turn = turned(bound.device, *self.filters, self.dtype.nbytes)

    def address(self, ref: Ref, memory: Memory) -> int:
        """Where an operand is; constant filters are taken there once, in their order."""
        if ref is not self.step.reads[1] or not self.constant:
            return super().address(ref, memory)
        if self.kept is None:
            plain = self.bound.program.constants[ref.index]
            array = filters_of(np.asarray(plain), self.geometry)
            self.kept = memory.pool.take(array.nbytes)
            memory.noted(memory.queue.upload(self.kept, array.reshape(-1).view(np.uint8))).wait()
            memory.uploaded += array.nbytes
        return int(self.kept.address)

    def enqueue(self, what: Addresses, rooms: Rooms, stream: Any) -> None:
        """Convolve."""
        operands, result = what
        if self.empty:
            self.clear(result, stream)
            return
        source, filters = operands
        with self.device.lock:
            images = self.made(self.border, source, rooms, stream)
            laid_out = self.made(self.turn, filters, rooms, stream)
            self.convolved(images.address, laid_out.address, result, rooms, stream)


class FilterGradientStep(_CudnnStep):
    """The gradient of a convolution's filters, which the device lays out as ours lie."""

    def __init__(self, step: Library, own: Convolution, bound: Bound) -> None:
        super().__init__(step, own, bound, ConvolveBack)
        self.turn = None
        if not self.empty:
            self.turn = turned(bound.device, *self.filters[::-1], self.dtype.nbytes)

    def enqueue(self, what: Addresses, rooms: Rooms, stream: Any) -> None:
        """Convolve."""
        operands, result = what
        if self.turn is None:
            self.clear(result, stream)
            return
        source, gradient = operands
        with self.device.lock:
            images = self.made(self.border, source, rooms, stream)
            room = self.room(self.turn.nbytes, rooms)
            self.convolved(images.address, gradient, room.address, rooms, stream)
            self.turn.enqueue(room.address, result, stream)
