"""What RTCGen makes of a kernel for target "blocks": a function that a program calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from passkit.errors import BlocksError
from passkit.plan.kernel import Kernel
from passkit.runtime.blocks.kernels import run_blocks
from passkit.runtime.blocks.memory import WAY_OUT
from passkit.values.size import evaluate, known_or_zero

Array = Any


@frozen
class BlocksEntry:
    """A kernel as a step in Python: it fills ``outputs``, for values of the graph's sizes."""

    kernel: Kernel
    barriers: str

    def __call__(
        self, sizes: Mapping[str, int], inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> None:
        """Run it. Raises: BlocksError."""
        kernel = self.kernel
        if evaluate(kernel.grid, sizes) == 0:  # other sizes of it may then have no value
            for buffer, array in zip(kernel.ast.params[len(inputs) :], outputs, strict=True):
                if array.size:
                    raise BlocksError(
                        f"kernel {kernel.name} has no tile, and leaves {buffer.name} as it was, "
                        f"which has {array.size} elements; {WAY_OUT}"
                    )
            return
        known = known_or_zero if kernel.phases else evaluate
        numbers = (known(n, sizes) for n in kernel.sizes)
        run_blocks(
            kernel.ast,
            [a.reshape(-1) for a in (*inputs, *outputs)],
            dict(zip(kernel.ast.sizes, numbers, strict=True)),
            name=kernel.name,
            barriers=self.barriers,
        )


def blocks_entry(kernel: Kernel) -> BlocksEntry | None:
    """How a kernel is run block by block; None for a text by hand, which has no AST.

    In C++ threads wait at the end of every stage; elsewhere where the AST says so.
    """
    if not kernel.ast.phases:
        return None
    return BlocksEntry(kernel, "loops" if kernel.dialect == "cxx" else "waits")
