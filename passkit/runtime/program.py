"""Programs: the assembled steps of a planned graph, over symbolic sizes.

`assemble` builds a `RuntimeProgram`; reports and device runtimes read its steps, and CPU runs use
its `ProgramTable`, which the launcher binds to the shapes of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
from attrs import field, frozen

from passkit.ast.folds import Convolution
from passkit.graph.kernel import Kernel
from passkit.graph.node import Node
from passkit.runtime.table import ProgramTable
from passkit.runtime.table_binder import RowChain, TableEntry
from passkit.target import Target
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape, numel


@frozen
class ArrayRef:
    """A reference to an array that a step reads or writes.

    Attributes:
        kind: "input", "output", "arena" or "constant".
        index: the position among arrays of that kind; in the arena, the number of a storage slot.
        shape: the array's shape, in elements.
        dtype: the element type.
    """

    kind: str
    index: int
    shape: Shape
    dtype: DType

    @property
    def nbytes(self) -> Extent:
        """The size of the array in bytes, symbolic where its shape is."""
        return numel(self.shape) * self.dtype.nbytes

    @property
    def key(self) -> tuple[str, int]:
        """The pair (kind, index) that identifies the memory."""
        return self.kind, self.index

    @property
    def view(self) -> TableEntry:
        """The view for a `ProgramTable`: (kind, index), NumPy's dtype number, shape."""
        return self.key, self.dtype.numpy.num, self.shape


@frozen
class LaunchStep:
    """Launch a kernel.

    Attributes:
        kernel: the kernel, with its AST and launch configuration.
        entry: the address of a native kernel; a callable as in `PythonCall` for target "blocks";
            or the device runtime's object for a built kernel, such as a `CudaKernel`.
        refs: one array for each parameter of the kernel.
    """

    kernel: Kernel
    entry: Any
    refs: tuple[ArrayRef, ...]

    @property
    def reads(self) -> tuple[ArrayRef, ...]:
        """The arrays that the kernel only reads."""
        params: Sequence[Any] = self.kernel.ast.params
        return tuple(r for r, b in zip(self.refs, params, strict=True) if not b.written)

    @property
    def writes(self) -> tuple[ArrayRef, ...]:
        """The arrays that the kernel writes, including those that it reads as well."""
        params: Sequence[Any] = self.kernel.ast.params
        return tuple(r for r, b in zip(self.refs, params, strict=True) if b.written)

    def __str__(self) -> str:
        """Return "launch" and the kernel's name."""
        return f"launch {self.kernel.name}"


@frozen
class MatrixProduct:
    """A batched matrix product (m, k) x (k, n); the batch shapes broadcast against each other.

    Operands are row-major. A transposed operand is stored with its last two dimensions swapped.

    Attributes:
        batch_a: the batch dimensions of the left operand, as many as those of the right one.
        batch_b: those of the right operand.
        m: the rows of the result.
        n: its columns.
        k: the length of the sums.
        transpose_a: whether the left operand is stored transposed.
        transpose_b: whether the right operand is stored transposed.
    """

    batch_a: Shape
    batch_b: Shape
    m: Extent
    n: Extent
    k: Extent
    transpose_a: bool
    transpose_b: bool


@frozen
class MatrixProductSum:
    """A sum of matrix products A1 B1 + A2 B2 + …, with operands in the order A1, B1, A2, B2, …."""

    parts: tuple[MatrixProduct, ...]


@frozen
class FilterGradient:
    """The gradient of a convolution with respect to its filters.

    The operands are the convolution's images and the gradient of its result.
    """

    of: Convolution


LibraryOperation = MatrixProduct | MatrixProductSum | Convolution | FilterGradient


@frozen
class LibraryCall:
    """Call a library routine: a matrix product, a convolution or the gradient of its filters.

    Attributes:
        routine: the name of the routine or library, for reports.
        sizes_text: the sizes of the call as text, for reports.
        refs: the operands, then the result.
        table_entry: the entry of the `ProgramTable` that runs the call on the CPU.
        flops: floating-point multiplications and additions.
        operation: the mathematical operation, from which a device selects its own library call.
    """

    routine: str
    sizes_text: str
    refs: tuple[ArrayRef, ...]
    table_entry: TableEntry = field(repr=False)
    flops: Extent
    operation: LibraryOperation = field(repr=False)

    @property
    def reads(self) -> tuple[ArrayRef, ...]:
        """The operands."""
        return self.refs[:-1]

    @property
    def writes(self) -> tuple[ArrayRef, ...]:
        """The result, as a tuple of one reference."""
        return self.refs[-1:]

    def __str__(self) -> str:
        """Return "library", the routine and the sizes."""
        return f"library {self.routine} {self.sizes_text}"


class PythonCallKind(Enum):
    """Why a step runs in Python.

    Attributes:
        HOST: the operator contains graphs, such as a loop, and runs their programs.
        LIBRARY: the operator is defined as a library routine called from Python, such as a sort.
        INTERPRETED: the operator has no kernel and is evaluated in NumPy.
    """

    HOST = "host"
    LIBRARY = "library"
    INTERPRETED = "interpreted"


@frozen
class PythonCall:
    """Call a Python function.

    Attributes:
        name: the label of the node, for reports.
        function: ``function(sizes, inputs, outputs)``, which takes the values of symbolic sizes and
            arrays, and fills the outputs.
        reads: the inputs.
        writes: the outputs.
        kind: why the step runs in Python.
        node: the node that it evaluates; None for another function.
    """

    name: str
    function: Callable[..., Any] = field(repr=False)
    reads: tuple[ArrayRef, ...]
    writes: tuple[ArrayRef, ...]
    kind: PythonCallKind
    node: Node | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """Return "python" and the name."""
        return f"python {self.name}"


@frozen
class CopyStep:
    """Copy the array ``source`` to ``target``.

    The target is an output, or a state variable, whose value another array has.
    """

    source: ArrayRef
    target: ArrayRef

    @property
    def reads(self) -> tuple[ArrayRef, ...]:
        """The source, as a tuple of one reference."""
        return (self.source,)

    @property
    def writes(self) -> tuple[ArrayRef, ...]:
        """The target, as a tuple of one reference."""
        return (self.target,)

    def __str__(self) -> str:
        """Return "copy" with kind and index of source and target."""
        return (
            f"copy {self.source.kind} {self.source.index} -> {self.target.kind} {self.target.index}"
        )


@frozen
class AliasStep:
    """Do nothing: a value shares the memory of another one.

    ``name`` is the label of its node, ``of`` the reference to its memory.
    """

    name: str
    of: ArrayRef
    reads: tuple[ArrayRef, ...] = ()
    writes: tuple[ArrayRef, ...] = ()

    def __str__(self) -> str:
        """Return "alias" and the name."""
        return f"alias {self.name}"


ProgramStep = LaunchStep | LibraryCall | PythonCall | CopyStep | AliasStep


@frozen(eq=False)
class RuntimeProgram:
    """The steps of a planned graph in execution order, with inputs, outputs and storage.

    Attributes:
        inputs: name, dtype and declared shape of each input.
        outputs: dtype and shape of each output.
        steps: the steps of a call, in order.
        guards: pairs of sizes that must be equal, each with a description.
        slots: for each arena slot, the sizes in bytes of the values stored in it.
        donors: for each output, the position of the input over which it may be stored, or -1.
        constants: the arrays of constants, then those of state variables.
        target: the target that the graph was planned for.
        names: for each step the name of its node in the planned graph; "" for copies to outputs.
        chains: the sequences of steps that run block by block of rows on the CPU.
        table: the steps as table entries that can be bound to shapes and written to a file.
    """

    inputs: tuple[tuple[str, DType, Shape], ...]
    outputs: tuple[tuple[DType, Shape], ...]
    steps: tuple[ProgramStep, ...]
    guards: tuple[tuple[Extent, Extent, str], ...]
    slots: tuple[tuple[Extent, ...], ...] = field(repr=False)
    donors: tuple[int, ...] = field(repr=False)
    constants: tuple[Any, ...] = field(repr=False)
    target: Target = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    chains: tuple[RowChain, ...] = field(default=(), repr=False)

    table: ProgramTable = field(init=False, repr=False)

    @table.default
    def _table(self) -> ProgramTable:
        """Create the table of the program."""
        return ProgramTable(
            inputs=self.inputs,
            outputs=self.outputs,
            entries=tuple(map(self._table_entry, self.steps)),
            guards=self.guards,
            slots=self.slots,
            donors=self.donors,
            constants=self.constants,
            parallel=self.target.parallel,
            chains=self.chains,
        )

    def sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """Return the value of each symbolic size, by name, for the shapes of the inputs.

        ``shapes`` has one for each input, in order and of its rank. Raises: FeedError where an
        extent does not match, or the shapes do not determine a size; ShapeError where an extent
        divides by zero.
        """
        return self.table.sizes(shapes)

    def broken(self, sizes: Mapping[str, int]) -> str | None:
        """Return the description of the first guard that ``sizes`` violate, None if all hold.

        Raises: ShapeError where a size of a guard has no value.
        """
        return self.table.broken(sizes)

    def _table_entry(self, step: ProgramStep) -> TableEntry | None:
        """Return the table entry of a step, None for an AliasStep, which does nothing."""
        match step:
            case LaunchStep():
                return self._launch_entry(step)
            case LibraryCall():
                return step.table_entry
            case PythonCall():
                return _python_entry(step.function, step)
            case CopyStep(source, target):
                return "copy", source.key, target.key, source.nbytes
        return None

    def _launch_entry(self, step: LaunchStep) -> TableEntry:
        """Return the table entry of a kernel launch.

        It is that of a Python call where the step's entry is a Python function.
        """
        kernel = step.kernel
        if callable(step.entry):
            return _python_entry(step.entry, step)
        return (
            "launch",
            step.entry,
            kernel.phases or kernel.grid,
            kernel.shared_nbytes,
            kernel.seconds,
            [numel(r.shape) for r in step.refs],
            self.target.light * 2 * len(kernel.ops),
            [r.key for r in step.refs],
            kernel.sizes,
        )


def _python_entry(function: Callable[..., Any], step: LaunchStep | PythonCall) -> TableEntry:
    """Return the table entry that calls ``function`` on the arrays of a step.

    It is ("python", function, views that are only read, views that are written).
    """
    return "python", function, [r.view for r in step.reads], [r.view for r in step.writes]


def constant_array(value: Any) -> Any:
    """Return ``value`` as a C-contiguous, aligned array, copied only where it is not one."""
    return np.require(value, requirements=["C", "A"])
