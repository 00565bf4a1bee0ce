"""Entries of kernels for target "blocks": functions that a program calls as steps in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from passkit.ast.stage import KernelAST
from passkit.errors import BlocksError
from passkit.graph.kernel import Kernel
from passkit.runtime.blocks.kernels import run_blocks
from passkit.runtime.blocks.memory import WORKAROUND
from passkit.values.size import evaluate, known_or_zero

Array = Any


@frozen
class BlocksEntry:
    """A kernel as a function of sizes, input arrays and output arrays, which it fills.

    Attributes:
        kernel: the kernel.
        barriers: where threads synchronize, one of `BARRIERS`.
    """

    kernel: Kernel
    barriers: str

    def __call__(
        self, sizes: Mapping[str, int], inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> None:
        """Run the kernel.

        Args:
            sizes: the values of the graph's symbolic sizes.
            inputs: the input arrays.
            outputs: the output arrays, contiguous, which are filled.

        Raises:
            BlocksError: An access is wrong, or an element of an output is not stored, which is so
                for every element where the kernel has no tile.
            ShapeError: A size of the kernel has no value. Where the kernel has no tile, only its
                grid needs one.
            SettingError: ``barriers`` is none of `BARRIERS`.
        """
        kernel = self.kernel
        assert isinstance(kernel.ast, KernelAST)  # targets of blocks have no loop IR
        if evaluate(kernel.grid, sizes) == 0:  # other sizes of the kernel may have no value then
            for buffer, array in zip(kernel.ast.params[len(inputs) :], outputs, strict=True):
                if array.size:
                    raise BlocksError(
                        f"kernel {kernel.name} has no tile, and does not store the {array.size} "
                        f"elements of its output {buffer.name}; {WORKAROUND}"
                    )
            return
        number = known_or_zero if kernel.phases else evaluate
        size_arguments = (number(n, sizes) for n in kernel.sizes)
        run_blocks(
            kernel.ast,
            [a.reshape(-1) for a in (*inputs, *outputs)],
            dict(zip(kernel.ast.sizes, size_arguments, strict=True)),
            name=kernel.name,
            barriers=self.barriers,
        )


def blocks_entry(kernel: Kernel) -> BlocksEntry | None:
    """Return the entry of a kernel; None for hand-written text, which has no AST.

    In the C++ dialect threads synchronize at the end of every stage, in others where the AST has a
    barrier.
    """
    if not kernel.ast.phases:
        return None
    return BlocksEntry(kernel, "loops" if kernel.dialect == "cxx" else "waits")
