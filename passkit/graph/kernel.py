"""Kernels: what CodeGen makes of a group, and what RTCGen compiles."""

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
"""What notebooks show stands above, and is asked for only by them."""


@frozen(eq=False)
class Kernel:
    """One launch: its AST, its text, and the numbers that a call must supply.

    ``sizes`` are the values of the AST's size arguments, ``grid`` the number of tiles, ``block``
    the threads of one, ``shared_nbytes`` its scratch, all expressions over the graph's unknown
    sizes. ``key`` names the content: equal kernels have equal keys in every process. ``ops``
    are the names of the operators inside; ``seconds`` is one thread's time by the model. Where a
    kernel has several ``phases``, these are the tiles and the seconds of each, ``grid`` all tiles.
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
        """The threads of a block as its schedule says; None if the launch chooses them."""
        return None if isinstance(self.ast, KernelAST) else self.ast.launch

    def scratch_bytes(self, numbers: Mapping[str, int]) -> tuple[int, int]:
        """The bytes that a tile's arrays take in all, and those that they lie in.

        The second is less where arrays share bytes. ``numbers`` are the graph's sizes; what divides
        by zero counts as 0.
        """
        arrays = [b for b in self.ast.scratch if b.place is Place.SHARED]
        if not arrays:
            return 0, 0
        values = {
            n: known_or_zero(x, numbers) for n, x in zip(self.ast.sizes, self.sizes, strict=True)
        }
        places = [
            (
                b.of_row,
                known_or_zero(begin, values),
                known_or_zero(b.extent, values) * b.dtype.nbytes,
            )
            for b in arrays
            for begin in [0 if b.offset is None else b.offset]
        ]
        requested = sum(nbytes for _, _, nbytes in places)
        if any(b.offset is None for b in arrays):
            return requested, requested
        covered, ends = 0, dict[bool, int]()
        for of_row, offset, nbytes in sorted(places):
            end = ends.get(of_row, 0)
            covered += max(0, offset + nbytes - max(end, offset))
            ends[of_row] = max(end, offset + nbytes)
        return requested, covered

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook shows."""
        return notebook.kernel(self)  # type: ignore[no-any-return]


@frozen
class OwnKernel:
    """What an operator's FKernel gives: a kernel that is written by hand, where no plan makes one.

    ``source`` calls its function KERNEL; it takes the inputs, then the results. ``sizes`` are its
    size arguments, ``grid`` the number of tiles, which any number of threads may share.
    """

    source: str
    sizes: tuple[Extent, ...]
    grid: Extent


def own_kernel_of(node: Node, language: str) -> OwnKernel | None:
    """The kernel that an operator brings for a language, by FKernel; None if it brings none.

    Raises: RuleError where the rule gives something else.
    """
    if node.op is None or FKernel.get(node.op.name) is None:
        return None
    own_kernel = call_attribute(FKernel, node, node, language)
    if own_kernel is not None and not isinstance(own_kernel, OwnKernel):
        refuse_result(FKernel, node, "an OwnKernel (passkit.graph.kernel) or None", own_kernel)
    return own_kernel


@frozen(eq=False)
class RTC:
    """A compiled kernel. ``entry`` is an address or a driver's handle; the rest if it is known.

    Where an AST is run as it is, the entry is a function; None where a kernel's operator is called.
    """

    kernel: Kernel
    entry: Any
    registers: int | None = None
    spills: int | None = None
