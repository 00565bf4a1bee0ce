"""Packs: several loop nests in one kernel, whose blocks they share out, in one phase or several.

A nest is a kernel of loop IR of its own. The nests of a phase have no data flow between them, and
all blocks of the grid wait for each other between two phases. Parts that have equal nests are
computed by one body, which finds the arrays and sizes of its block's part in a table: the arguments
of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve, field, frozen

from passkit.ir.loop import KernelIR, LaunchShape, LoopBuffer
from passkit.values.lazy import Lazy

text: Any = Lazy("passkit.ir.pack_text")

STATIC_SHARED_NBYTES = 48 << 10
"""The bytes of shared memory that every device gives a block whose arrays have literal extents."""
MAX_GROUPS = 15
"""The groups of threads of a block that may wait by themselves: barriers of a block less its own.

Source: PTX ISA, bar.sync: barriers 0 to 15.
"""

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
        first: the size argument that is the number of the part's first block in its phase.
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
class PackPhase:
    """The nests that run between two grid barriers.

    Attributes:
        nests: the nests, by their first blocks.
        end: the size argument that is the number of blocks of the phase; None in a kernel of one
            phase, whose grid has so many.
    """

    nests: tuple[PackedNest, ...]
    end: str | None = None

    @property
    def parts(self) -> Iterator[tuple[PackedNest, PackPart]]:
        """Yield the parts by their first blocks, each with its nest."""
        return ((nest, part) for nest in self.nests for part in nest.parts)


@frozen
class PackIR:
    """A kernel of several loop nests.

    A block of the kernel computes one block of a nest, or several side by side, if that has fewer
    threads: each by threads that follow each other, and have barriers of their own. The blocks of
    a nest's parts follow each other, and so do those of the nests. In a kernel of several phases
    a block of the grid goes through blocks of each phase, and may find values that an earlier phase
    stored: these are buffers that a nest reads and that may change.

    Attributes:
        params: the buffers that are arguments: inputs, then outputs.
        sizes: the names of the size arguments, in order.
        phases: the phases, in order.
        launch: the threads of a block.
        aliased: the names of params that may share memory with another.
        comment: a text for readers of the source.
    """

    params: tuple[LoopBuffer, ...]
    sizes: tuple[str, ...]
    phases: tuple[PackPhase, ...]
    launch: LaunchShape
    aliased: frozenset[str] = frozenset()
    comment: str = field(default="", eq=False)

    def __str__(self) -> str:
        """Return the text form, see `passkit.ir.pack_text`."""
        return str(text.print_pack_ir(self))

    @property
    def nests(self) -> tuple[PackedNest, ...]:
        """Return the nests of all phases."""
        return tuple(nest for phase in self.phases for nest in phase.nests)

    @property
    def scratch(self) -> tuple[()]:
        """Return an empty tuple: all its shared arrays are declared in the text."""
        return ()

    def side_by_side(self, nest: PackedNest) -> int:
        """Return how many blocks of a nest a block of the kernel computes.

        These are as many as there are threads, barriers and shared memory for.
        """
        kernel = nest.kernel
        return blocks_side_by_side(self.launch, kernel.launch, kernel.shared_nbytes)

    @property
    def shared_nbytes(self) -> int:
        """Return the bytes of shared memory of a block: nests use the same ones."""
        nbytes = (self.side_by_side(n) * n.kernel.shared_nbytes for n in self.nests)
        return max(nbytes, default=0)

    def changing(self, phase: PackPhase) -> set[str]:
        """Return the parameters that other phases than ``phase`` write."""
        others = (n for p in self.phases if p is not phase for n in p.nests)
        return {name for nest in others for name in written_by(nest)}

    @property
    def parts(self) -> Iterator[tuple[PackedNest, PackPart]]:
        """Yield the parts of all phases by their first blocks, each with its nest."""
        return (pair for phase in self.phases for pair in phase.parts)

    def kernel_of(self, nest: PackedNest, part: PackPart) -> KernelIR:
        """Return the kernel of one part: the nest with the extents of the part's buffers.

        Only those that may share memory in the pack may do so in it, not those that change.
        """
        extents = {b.name: b.extent for b in self.params}
        params = tuple(
            evolve(b, extent=extents[name])
            for b, name in zip(nest.kernel.params, part.buffers, strict=True)
        )
        pairs = zip(nest.kernel.params, part.buffers, strict=True)
        aliased = frozenset(b.name for b, name in pairs if name in self.aliased)
        return evolve(nest.kernel, params=params, aliased=aliased)


def written_by(nest: PackedNest) -> set[str]:
    """Return the parameters of a pack that the parts of a nest write."""
    pairs = ((b, n) for p in nest.parts for b, n in zip(nest.kernel.params, p.buffers, strict=True))
    return {name for b, name in pairs if b.written}


def blocks_side_by_side(launch: LaunchShape, own: LaunchShape, nbytes: int) -> int:
    """Return how many blocks of a nest a block of a pack computes.

    Args:
        launch: the threads of a block of the pack.
        own: the threads of a block of the nest.
        nbytes: the bytes of shared memory of a block of the nest.
    """
    groups = min(launch.threads // own.threads, MAX_GROUPS)
    return max(1, min(groups, STATIC_SHARED_NBYTES // nbytes) if nbytes else groups)


def without_extents(kernel: KernelIR) -> KernelIR:
    """Return a kernel whose buffers have no extents: equal ones are one body of a pack."""
    params = tuple(evolve(b, extent=0) for b in kernel.params)
    return evolve(kernel, params=params)
