"""Products of matrices as steps on a CUDA device, by cuBLASLt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

from passkit.runtime.cuda.cublaslt import ALIGNED, CublasLt, Epilogue, Multiply, Numbers
from passkit.runtime.cuda.device import Device
from passkit.runtime.cuda.enqueued import Addresses, LibraryStep, Rooms, tried
from passkit.runtime.cuda.shared import MissingError
from passkit.runtime.program import Library, Product, Ref
from passkit.runtime.table import batch_axes
from passkit.values.dtype import DType

if TYPE_CHECKING:
    from passkit.runtime.cuda.run import Bound


@cache
def cublaslt(device: Device) -> CublasLt | MissingError:
    """The library on a device, or why there is none."""
    return tried(lambda: CublasLt(device.facts.capability[0]))


class ProductsStep(LibraryStep):
    """Products of matrices, which are added up where there are several."""

    def __init__(
        self, step: Library, parts: Sequence[Product], bound: Bound, bias: Ref | None
    ) -> None:
        super().__init__(step, bound, *([] if bias is None else [bias]))
        library = cublaslt(bound.device)
        if isinstance(library, MissingError):
            raise library
        self.nbytes = bound.number(step.writes[0].nbytes)
        epilogue = Epilogue.NONE if bias is None else Epilogue.BIAS
        self.parts: list[tuple[int, _Part]] = []
        for k, own in enumerate(parts):
            if self.nbytes and bound.number(own.k):
                adds = bool(self.parts)
                told = Epilogue.NONE if adds else epilogue
                self.parts.append((2 * k, _Part(library, own, bound, self.dtype, told, adds)))

    def enqueue(self, what: Addresses, rooms: Rooms, stream: Any) -> None:
        """Multiply, or clear what sums of nothing are."""
        operands, result = what
        driver = self.device.driver
        if not self.parts and self.nbytes:
            driver.fill(result, 0, self.nbytes, stream)
        biases = operands[len(self.step.reads) :]
        for at, part in self.parts:
            for places in part.places(operands[at], operands[at + 1], result):
                with self.device.lock:
                    made = part.multiply(all(p % ALIGNED == 0 for p in places))
                    held = self.room(made.workspace, rooms)
                    where = 0 if held is None else held.address
                    own = () if part.numbers.adds else biases
                    made.enqueue(*places, where, driver.handle(stream), *own)


class _Part:
    """Products of a batch of matrices; of one that is broadcast, those of each outer place."""

    def __init__(
        self, library: CublasLt, own: Product, bound: Bound, dtype: DType, epilogue: Epilogue,
        adds: bool,
    ) -> None:  # fmt: skip
        m, n, k = (bound.number(x) for x in (own.m, own.n, own.k))
        a, b = bound.shape(own.batch_a), bound.shape(own.batch_b)
        *outer, (batch, *steps) = batch_axes(a, b, m * k, k * n, m * n)
        one = not outer and steps[1] == 0 and steps[0] == m * k and not own.transpose_a
        if one and batch > 1:  # one matrix on the right serves all rows at once
            m, batch, steps = m * batch, 1, [0, 0, 0]
        flags = own.transpose_a, own.transpose_b
        self.numbers = Numbers(
            dtype, m, n, k, *flags, batch, (steps[0], steps[1], steps[2]), epilogue, adds
        )
        self.moves = [
            [dtype.nbytes * sum(i * x[1 + w] for i, x in zip(at, outer, strict=True))
             for w in range(3)]
            for at in product(*(range(x[0]) for x in outer))
        ]  # fmt: skip
        self.library, self.known = library, dict[bool, Multiply]()
        self.multiply(True)

    def places(self, a: int, b: int, c: int) -> Iterator[tuple[int, int, int]]:
        """The addresses of the operands and results of each call."""
        for move_a, move_b, move_c in self.moves:
            yield a + move_a, b + move_b, c + move_c

    def multiply(self, even: bool) -> Multiply:
        """What multiplies arrays at addresses that are aligned, or at any."""
        if even not in self.known:
            alignment = ALIGNED if even else self.numbers.dtype.nbytes
            self.known[even] = self.library.prepared(self.numbers, alignment)
        return self.known[even]
