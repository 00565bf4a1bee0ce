"""Launch configuration of kernels in CUDA: blocks, and the threads of a block."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from passkit.graph.kernel import Kernel
from passkit.values.size import evaluate, known_or_zero


@frozen
class LaunchConfig:
    """How a kernel is launched.

    Attributes:
        grid: The number of blocks.
        block: The threads of a block along x and y.
    """

    grid: int
    block: tuple[int, int]

    @property
    def threads(self) -> int:
        """Return the number of threads of a block."""
        return self.block[0] * self.block[1]


def launch_config(
    kernel: Kernel, sizes: Mapping[str, int], *, blocks: int, threads: int
) -> LaunchConfig:
    """Choose the launch configuration of a kernel for values of the graph's sizes.

    A kernel has the threads of its schedule, and a block for each tile; blocks of a kernel with
    phases go through several tiles. The tiles of an operator's own kernel are distributed over any
    number of blocks and threads.

    Args:
        kernel: The kernel.
        sizes: The value of each symbolic size of the graph.
        blocks: The most blocks of a grid, where blocks may have several tiles.
        threads: The threads of a block, for operators' own kernels.

    Raises:
        ShapeError: A size has no value in ``sizes``.
    """
    grid, launch = evaluate(kernel.grid, sizes), kernel.launch
    if launch is None:
        return LaunchConfig(min(grid, blocks), (threads, 1))
    return LaunchConfig(min(grid, blocks) if kernel.phases else grid, (launch.x, launch.y))


def size_arguments(kernel: Kernel, sizes: Mapping[str, int]) -> list[int]:
    """Return the values of a kernel's size arguments, in their order.

    In a kernel with phases, one that divides by zero is 0: the phase that uses it has no work.
    Raises: ShapeError where a size has no value in ``sizes``, or divides by zero in a kernel
    without phases.
    """
    value = known_or_zero if kernel.phases else evaluate
    return [value(n, sizes) for n in kernel.sizes]
