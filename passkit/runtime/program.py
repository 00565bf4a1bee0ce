"""Programs: a table of steps over symbolic sizes, and its binding to the shapes of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from passkit.dtype import DType
from passkit.errors import FeedError
from passkit.kernel import Kernel
from passkit.runtime.native.launcher import launcher
from passkit.size import Extent, Shape, Size, evaluate, numel, solved
from passkit.target import Target


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


@frozen
class Launch:
    """Run a kernel's tiles."""

    kernel: Kernel
    entry: int
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
class Library:
    """Run a routine of a library: rows of matrix products through BLAS.

    ``sizes`` are the arguments of the built-in gemm kernel but for the number of rows of a tile.
    """

    routine: str
    entry: int
    function: int
    refs: tuple[Ref, ...]
    batch: Extent
    m: Extent
    n: Extent
    k: Extent
    flags: tuple[int, int, int]
    strides: tuple[Extent, Extent, Extent]

    @property
    def reads(self) -> tuple[Ref, ...]:
        """The operands."""
        return self.refs[:-1]

    @property
    def writes(self) -> tuple[Ref, ...]:
        """The product."""
        return self.refs[-1:]

    def __str__(self) -> str:
        return f"library {self.routine} ({self.batch}, {self.m}, {self.k}) x ({self.k}, {self.n})"


@frozen
class Python:
    """Call a Python function on arrays: an operator that has only a NumPy meaning."""

    name: str
    function: Callable[..., Any] = field(repr=False)
    reads: tuple[Ref, ...]
    writes: tuple[Ref, ...]

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
    """Steps, and what a call's shapes must satisfy.

    ``inputs`` are (name, dtype, shape); ``guards`` are pairs of sizes that must be equal, with
    what they are. ``storage`` gives arena offsets and total bytes for numbers of all sizes.
    ``constants`` are arrays that stay where they are.
    """

    inputs: tuple[tuple[str, DType, Shape], ...]
    outputs: tuple[tuple[DType, Shape], ...]
    steps: tuple[Step, ...]
    guards: tuple[tuple[Extent, Extent, str], ...]
    storage: Callable[[Mapping[str, int]], tuple[Sequence[int], int]] = field(repr=False)
    constants: tuple[Any, ...] = field(repr=False)
    target: Target = field(repr=False)

    def sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """The number of every unknown size.

        Raises: FeedError when a shape does not fit, naming the input.
        """
        found: dict[str, int] = {}
        derived: list[tuple[str, int, Size, int]] = []
        for (name, _, shape), given in zip(self.inputs, shapes, strict=True):
            for axis, (wanted, number) in enumerate(zip(shape, given, strict=True)):
                if isinstance(wanted, int):
                    value = wanted
                elif len(wanted.terms) == 1 and wanted.terms[0] == ((str(wanted),), 1):
                    value = found.setdefault(str(wanted), number)
                else:
                    derived.append((name, axis, wanted, number))
                    continue
                if value != number:
                    raise FeedError(
                        f"input '{name}' needs {value} in dimension {axis}, got {number}"
                    )
        for name, axis, wanted, number in derived:
            for symbol in wanted.symbols - found.keys():
                found[symbol] = solved(wanted, symbol, number, found)
            if evaluate(wanted, found) != number:
                raise FeedError(
                    f"input '{name}' needs {evaluate(wanted, found)} in dimension {axis}, where "
                    f"the size {wanted} stands, got {number}"
                )
        return found

    def broken(self, sizes: Mapping[str, int]) -> str | None:
        """What the first guard that does not hold is about."""
        for a, b, what in self.guards:
            if evaluate(a, sizes) != evaluate(b, sizes):
                return what
        return None

    def bind(
        self,
        shapes: Sequence[tuple[int, ...]],
        sizes: Mapping[str, int],
        between: Callable[[int], Callable[..., None]] | None = None,
    ) -> Any:
        """The launcher's `Bound` for these shapes: every size a number, every slot an offset.

        ``between(k)``, if given, makes a function that is called after step k; it ends up in
        Python between any two steps, which costs the single native call.
        """
        offsets, arena = self.storage(sizes)
        binder = _Binder(self, offsets, sizes)
        table: list[tuple[Any, ...]] = []
        for k, step in enumerate(self.steps):
            made = binder.step(step)
            if made is not None:
                table.append(made)
            if between is not None:
                table.append(("python", between(k), [], []))
        outputs = [(d.numpy.num, binder.shape(s)) for d, s in self.outputs]
        return launcher().Bound(
            tuple(shapes), outputs, arena, binder.scratch, table, seconds=binder.seconds
        )


class _Binder:
    def __init__(self, program: Program, offsets: Sequence[int], sizes: Mapping[str, int]) -> None:
        self.program, self.offsets, self.sizes = program, offsets, sizes
        self.scratch = 0
        self.seconds = 0.0

    def number(self, size: Extent) -> int:
        return size if isinstance(size, int) else evaluate(size, self.sizes)

    def shape(self, shape: Shape) -> tuple[int, ...]:
        return tuple(map(self.number, shape))

    def ref(self, ref: Ref) -> tuple[Any, ...]:
        if ref.kind == "arena":
            return "arena", self.offsets[ref.index]
        if ref.kind == "constant":
            array = self.program.constants[ref.index]
            return "address", array.ctypes.data, array
        return ref.kind, ref.index

    def view(self, ref: Ref) -> tuple[Any, ...]:
        return self.ref(ref), ref.dtype.numpy.num, self.shape(ref.shape)

    def step(self, step: Step) -> tuple[Any, ...] | None:
        match step:
            case Launch():
                return self.launch(step)
            case Library():
                return self.library(step)
            case Python(_, function, inputs, outputs):
                return (
                    "python",
                    function,
                    [self.view(r) for r in inputs],
                    [self.view(r) for r in outputs],
                )
            case Copy(source, target):
                return "copy", self.ref(source), self.ref(target), self.number(source.nbytes)
        return None

    def launch(self, step: Launch) -> tuple[Any, ...] | None:
        kernel = step.kernel
        tiles = self.number(kernel.grid)
        if tiles == 0:
            return None
        self.scratch = max(self.scratch, self.number(kernel.shared_nbytes))
        seconds = kernel.seconds or self.estimate(step)
        self.seconds += seconds
        return (
            "launch",
            step.entry,
            tiles,
            tiles > 1 and seconds > self.program.target.parallel,
            [self.ref(r) for r in step.refs],
            tuple(map(self.number, kernel.sizes)),
        )

    def estimate(self, step: Launch) -> float:
        """One thread's seconds where the model had no sizes: points times operators."""
        points = max(self.number(numel(r.shape)) for r in step.refs)
        return points * self.program.target.light * 2 * len(step.kernel.ops)

    def library(self, step: Library) -> tuple[Any, ...] | None:
        m, n, k, batch = map(self.number, (step.m, step.n, step.k, step.batch))
        if m * n * batch == 0:
            return None
        trans_a, trans_b, ilp64 = step.flags
        # Blocks of rows depend on the shape alone, so that bits do not depend on threads; below 64
        # rows a product is too thin for a BLAS kernel.
        rows = m if batch > 1 else max(64, -(-m // 8))
        seconds = 2e-11 * m * n * max(k, 1) * batch
        self.seconds += seconds
        sizes = (
            *(m, n, k, trans_a, trans_b),
            *(m if trans_a else k, k if trans_b else n, n, batch),
            *map(self.number, step.strides),
            *(rows, ilp64),
        )
        tiles = batch * -(-m // rows)
        refs = [("address", step.function), *map(self.ref, step.refs)]
        parallel = tiles > 1 and seconds > self.program.target.parallel
        return "launch", step.entry, tiles, parallel, refs, sizes


def constant_array(value: Any) -> Any:
    """A constant as an array that a kernel can read: contiguous, aligned, kept alive."""
    return np.require(value, requirements=["C", "A"])
