"""Packs: loop nests without data flow between them in one kernel, whose blocks they share out.

A nest is a kernel of loop IR of its own. Parts that have equal nests are computed by one body,
which finds the arrays and sizes of its block's part in a table: the arguments of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve, field, frozen

from passkit.ir.loop import KernelIR, LaunchShape, LoopBuffer
from passkit.values.lazy import Lazy

text: Any = Lazy("passkit.ir.pack_text")

MAX_WORDS = 512
"""The arguments of a kernel, at most: 4 KB of 8 bytes each.

Source: CUDA C++ Programming Guide, function parameters; devices and drivers with more exist.
"""


@frozen
class PackPart:
    """The arguments of the kernel from which a nest computes one part.

    Attributes:
        buffers: the parameters that take the place of the nest's, in their order.
        sizes: the size arguments that take the place of the nest's, in their order.
        first: the size argument that is the number of the part's first block.
        blocks: the size argument that is the number of the nest's own blocks; None unless a block
            of the kernel has several of them.
    """

    buffers: tuple[str, ...]
    sizes: tuple[str, ...]
    first: str
    blocks: str | None = None


@frozen
class PackedNest:
    """A loop nest and the parts that it computes.

    Attributes:
        kernel: the nest as a kernel, in final form.
        parts: the parts, by their first blocks.
    """

    kernel: KernelIR
    parts: tuple[PackPart, ...]


@frozen
class PackIR:
    """A kernel of several loop nests.

    A block of the kernel computes one block of a nest, or several side by side, if that has fewer
    threads: each by threads that follow each other, and have barriers of their own. The blocks of
    a nest's parts follow each other, and so do those of the nests.

    Attributes:
        params: the buffers that are arguments: inputs, then outputs.
        sizes: the names of the size arguments, in order.
        nests: the nests, by their first blocks.
        launch: the threads of a block.
        aliased: the names of params that may share memory with another.
        comment: a text for readers of the source.
    """

    params: tuple[LoopBuffer, ...]
    sizes: tuple[str, ...]
    nests: tuple[PackedNest, ...]
    launch: LaunchShape
    aliased: frozenset[str] = frozenset()
    comment: str = field(default="", eq=False)

    def __str__(self) -> str:
        """Return the text form, see `passkit.ir.pack_text`."""
        return str(text.print_pack_ir(self))

    @property
    def phases(self) -> tuple[()]:
        """Return an empty tuple: the kernel has no grid barrier, see `passkit.ast.stage`."""
        return ()

    @property
    def scratch(self) -> tuple[()]:
        """Return an empty tuple: all its shared arrays are declared in the text."""
        return ()

    def side_by_side(self, nest: PackedNest) -> int:
        """Return how many blocks of a nest a block of the kernel computes."""
        return self.launch.threads // nest.kernel.launch.threads

    @property
    def shared_nbytes(self) -> int:
        """Return the bytes of shared memory of a block: nests use the same ones."""
        nbytes = (self.side_by_side(n) * n.kernel.shared_nbytes for n in self.nests)
        return max(nbytes, default=0)

    @property
    def parts(self) -> Iterator[tuple[PackedNest, PackPart]]:
        """Yield the parts by their first blocks, each with its nest."""
        return ((nest, part) for nest in self.nests for part in nest.parts)

    def kernel_of(self, nest: PackedNest, part: PackPart) -> KernelIR:
        """Return the kernel of one part: the nest with the extents of the part's buffers."""
        extents = {b.name: b.extent for b in self.params}
        params = tuple(
            evolve(b, extent=extents[name])
            for b, name in zip(nest.kernel.params, part.buffers, strict=True)
        )
        return evolve(nest.kernel, params=params)


def without_extents(kernel: KernelIR) -> KernelIR:
    """Return a kernel whose buffers have no extents: equal ones are one body of a pack."""
    params = tuple(evolve(b, extent=0) for b in kernel.params)
    return evolve(kernel, params=params)
