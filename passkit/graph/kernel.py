"""Kernels: the results of CodeGen and of RTCGen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from passkit.ast.stage import KernelAST, Place
from passkit.graph.attribute_calls import call_attribute, refuse_result
from passkit.graph.node import Node
from passkit.graph.op import FKernel
from passkit.ir.loop import KernelIR, LaunchShape
from passkit.ir.pack import PackIR
from passkit.values.lazy import Lazy
from passkit.values.size import Extent, known_or_zero

notebook: Any = Lazy("passkit.reporting.notebook")
"""The module of the displays in notebooks, in a higher layer; imported at the first display."""


@frozen(eq=False)
class Kernel:
    """One launch: the text of a kernel, and the numbers that a call must supply.

    Extents are expressions in the unknown sizes of the graph.

    Attributes:
        name: the name of the kernel.
        key: a digest of the content; equal kernels have equal keys in every process.
        ast: the kernel in the form that it was printed from.
        source: the text.
        grid: the number of tiles, of all phases together; in loop IR the blocks of a launch, which
            are as many as the largest phase has.
        block: the threads of a tile, or of a block.
        shared_nbytes: the bytes of scratch memory of a tile, or of shared memory of a block.
        sizes: the values of the size arguments.
        ops: the names of the operators inside.
        dialect: the name of the dialect.
        guard: pairs of extents that must be equal at a call.
        seconds: the seconds of one thread by the cost model.
        phases: for a kernel of several phases, the tiles and the seconds of each.
    """

    name: str
    key: str
    ast: KernelAST | KernelIR | PackIR = field(repr=False)
    source: str = field(repr=False)
    grid: Extent
    block: Extent
    shared_nbytes: Extent
    sizes: tuple[Extent, ...]
    ops: tuple[str, ...]
    dialect: str = "cxx"
    guard: tuple[tuple[Extent, Extent], ...] = ()
    seconds: float = 0.0
    phases: tuple[tuple[Extent, float], ...] = ()

    def __str__(self) -> str:
        return self.source

    @property
    def launch(self) -> LaunchShape | None:
        """The threads of a block by the schedule; None if the launch chooses them."""
        return None if isinstance(self.ast, KernelAST) else self.ast.launch

    def scratch_bytes(self, numbers: Mapping[str, int]) -> tuple[int, int]:
        """Return the bytes that the scratch arrays of a tile request, and those that they cover.

        The second number is less if arrays share bytes.

        Args:
            numbers: the sizes of the graph; a size that divides by zero counts as 0.
        """
        arrays = [b for b in self.ast.scratch if b.place is Place.SHARED]
        if not arrays:
            return 0, 0
        values = {
            n: known_or_zero(x, numbers) for n, x in zip(self.ast.sizes, self.sizes, strict=True)
        }
        nbytes = [known_or_zero(b.extent, values) * b.dtype.nbytes for b in arrays]
        requested = sum(nbytes)
        if any(b.offset is None for b in arrays):
            return requested, requested
        places = [
            (b.of_row, known_or_zero(b.offset, values), n)
            for b, n in zip(arrays, nbytes, strict=True)
            if b.offset is not None
        ]
        covered, ends = 0, dict[bool, int]()
        for of_row, offset, n in sorted(places):
            end = ends.get(of_row, 0)
            covered += max(0, offset + n - max(end, offset))
            ends[of_row] = max(end, offset + n)
        return requested, covered

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the display of the kernel in a notebook."""
        return notebook.kernel(self)  # type: ignore[no-any-return]


@frozen
class OwnKernel:
    """The result of an operator's FKernel: a kernel that is written by hand.

    Attributes:
        source: the text, with a function KERNEL that takes the inputs, then the outputs.
        sizes: the values of the size arguments.
        grid: the number of tiles, which any number of threads may share.
    """

    source: str
    sizes: tuple[Extent, ...]
    grid: Extent


def own_kernel_of(node: Node, language: str) -> OwnKernel | None:
    """Return the hand-written kernel of an operator in a language; None if it has none.

    Raises: RuleError if FKernel of the operator returns something else.
    """
    if node.op is None or FKernel.get(node.op.name) is None:
        return None
    own_kernel = call_attribute(FKernel, node, node, language)
    if own_kernel is not None and not isinstance(own_kernel, OwnKernel):
        refuse_result(FKernel, node, "an OwnKernel (passkit.graph.kernel) or None", own_kernel)
    return own_kernel


@frozen(eq=False)
class RTC:
    """A compiled kernel.

    Attributes:
        kernel: the kernel.
        entry: the address of the function, or a handle of the driver; a Python function for the
            blocks target; None for an operator that is called.
        registers: the registers of a thread, if known.
        spills: the bytes of registers that are spilled, if known.
    """

    kernel: Kernel
    entry: Any
    registers: int | None = None
    spills: int | None = None
