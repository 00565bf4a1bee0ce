"""Programs: steps over symbolic sizes, as people and profiles look at them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
from attrs import field, frozen

from passkit.ast.folds import Convolution
from passkit.plan.kernel import Kernel
from passkit.plan.target import Target
from passkit.runtime.table import Row, Table
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape, numel


@frozen
class Ref:
    """Where a step finds or puts an array: "input", "output", "arena" or "constant", and which.

    ``index`` is a position; in the arena it is the number of a storage slot.
    """

    kind: str
    index: int
    shape: Shape
    dtype: DType

    @property
    def nbytes(self) -> Extent:
        """The bytes of the array."""
        return numel(self.shape) * self.dtype.nbytes

    @property
    def place(self) -> tuple[str, int]:
        """Kind and index."""
        return self.kind, self.index

    @property
    def view(self) -> Row:
        """As a row of a table has it."""
        return self.place, self.dtype.numpy.num, self.shape


@frozen
class Launch:
    """Run a kernel's tiles: native ones by their address, others by a function as of `Python`.

    Or as its device wants it.
    """

    kernel: Kernel
    entry: Any
    refs: tuple[Ref, ...]

    @property
    def reads(self) -> tuple[Ref, ...]:
        """The arrays read."""
        params = self.kernel.ast.params
        return tuple(r for r, b in zip(self.refs, params, strict=True) if not b.written)

    @property
    def writes(self) -> tuple[Ref, ...]:
        """The arrays written."""
        params = self.kernel.ast.params
        return tuple(r for r, b in zip(self.refs, params, strict=True) if b.written)

    def __str__(self) -> str:
        return f"launch {self.kernel.name}"


@frozen
class Product:
    """Products of matrices, (m, k) x (k, n), of batches that are broadcast against each other.

    Operands lie by rows; one that is transposed has its two last dimensions the other way round.
    """

    batch_a: Shape
    batch_b: Shape
    m: Extent
    n: Extent
    k: Extent
    transpose_a: bool
    transpose_b: bool


@frozen
class ProductSum:
    """Products of matrices that are added up; each has two operands, one behind the other."""

    parts: tuple[Product, ...]


@frozen
class FilterGradient:
    """The gradient of a convolution's filters, of its images and its result's gradient."""

    of: Convolution


Contract = Product | ProductSum | Convolution | FilterGradient


@frozen
class Library:
    """Run a routine of a library: products of matrices, or a convolution.

    ``what`` says of which sizes, ``row`` is the step as a `Table` has it; the result comes last.
    ``flops`` are the multiplications and additions of floats that it takes, ``contract`` is what a
    library of a device may do in its place.
    """

    routine: str
    what: str
    refs: tuple[Ref, ...]
    row: Row = field(repr=False)
    flops: Extent
    contract: Contract = field(repr=False)

    @property
    def reads(self) -> tuple[Ref, ...]:
        """The operands."""
        return self.refs[:-1]

    @property
    def writes(self) -> tuple[Ref, ...]:
        """The result."""
        return self.refs[-1:]

    def __str__(self) -> str:
        return f"library {self.routine} {self.what}"


class Role(Enum):
    """Why a step runs in Python."""

    HOST = "host"
    LIBRARY = "library"
    INTERPRETED = "interpreted"


@frozen
class Python:
    """Call a Python function on arrays.

    ``role`` says why: HOST runs programs of the graphs that an operator holds (a loop), LIBRARY
    calls a library's routine from Python, as the operator means it (a sort, a decomposition), and
    INTERPRETED evaluates an operator in NumPy because it has no kernel.
    """

    name: str
    function: Callable[..., Any] = field(repr=False)
    reads: tuple[Ref, ...]
    writes: tuple[Ref, ...]
    role: Role

    def __str__(self) -> str:
        return f"python {self.name}"


@frozen
class Copy:
    """Copy an array: a result that is an input, a state or another result."""

    source: Ref
    target: Ref

    @property
    def reads(self) -> tuple[Ref, ...]:
        """What is copied."""
        return (self.source,)

    @property
    def writes(self) -> tuple[Ref, ...]:
        """Where it is copied to."""
        return (self.target,)

    def __str__(self) -> str:
        return (
            f"copy {self.source.kind} {self.source.index} -> {self.target.kind} {self.target.index}"
        )


@frozen
class Alias:
    """Nothing to do: a value is another one's memory, read with another shape."""

    name: str
    of: Ref
    reads: tuple[Ref, ...] = ()
    writes: tuple[Ref, ...] = ()

    def __str__(self) -> str:
        return f"alias {self.name}"


Step = Launch | Library | Python | Copy | Alias


@frozen(eq=False)
class Program:
    """Steps, and what a call's shapes must satisfy; ``table`` is what a run needs of them.

    ``inputs``, ``guards``, ``slots`` and ``constants`` are those of `Table`. ``names`` are for each
    step what the planned graph calls the node that it runs; "" for copies at the end.
    """

    inputs: tuple[tuple[str, DType, Shape], ...]
    outputs: tuple[tuple[DType, Shape], ...]
    steps: tuple[Step, ...]
    guards: tuple[tuple[Extent, Extent, str], ...]
    slots: tuple[tuple[Extent, ...], ...] = field(repr=False)
    constants: tuple[Any, ...] = field(repr=False)
    target: Target = field(repr=False)
    names: tuple[str, ...] = field(repr=False)

    table: Table = field(init=False, repr=False)

    @table.default
    def _table(self) -> Table:
        return Table(
            *(self.inputs, self.outputs, tuple(map(self._row, self.steps)), self.guards),
            *(self.slots, self.constants, self.target.parallel),
        )

    def sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """As `Table.sizes`."""
        return self.table.sizes(shapes)

    def broken(self, sizes: Mapping[str, int]) -> str | None:
        """As `Table.broken`."""
        return self.table.broken(sizes)

    def _row(self, step: Step) -> Row | None:
        match step:
            case Launch(kernel, entry, refs):
                if callable(entry):
                    return "python", entry, [r.view for r in step.reads], [
                        r.view for r in step.writes
                    ]
                return (
                    *("launch", entry, kernel.phases or kernel.grid),
                    *(kernel.shared_nbytes, kernel.seconds),
                    *([numel(r.shape) for r in refs], self.target.light * 2 * len(kernel.ops)),
                    *([r.place for r in refs], kernel.sizes),
                )
            case Library():
                return step.row
            case Python(_, function, reads, writes, _):
                return "python", function, [r.view for r in reads], [r.view for r in writes]
            case Copy(source, target):
                return "copy", source.place, target.place, source.nbytes
        return None


def constant_array(value: Any) -> Any:
    """A constant as an array that a kernel can read: contiguous, aligned, kept alive."""
    return np.require(value, requirements=["C", "A"])
