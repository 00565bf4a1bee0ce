"""Limits of GPUs: what a thread, a block and a multiprocessor have, and how many blocks fit.

Source: CUDA C++ Programming Guide, technical specifications per compute capability, and occupancy.
"""

from __future__ import annotations

from math import ceil

from attrs import frozen


@frozen(cache_hash=True)
class GpuLimits:
    """Limits of the threads, blocks and multiprocessors of a GPU.

    The defaults are those of compute capabilities 7.0, 8.0 and 9.0. Registers have 4 bytes.

    Attributes:
        threads: threads of a multiprocessor.
        blocks: blocks of a multiprocessor.
        registers: registers of a multiprocessor.
        shared: bytes of shared memory of a multiprocessor. 0 if they are not known: then it is not
            estimated how many blocks fit.
        reserved: bytes of shared memory that a block has besides its own.
        warp: threads of a warp.
        block_threads: threads of a block.
        thread_registers: registers of a thread.
        register_unit: registers are given to a warp in multiples of so many.
        shared_unit: shared memory is given to a block in multiples of so many bytes.
        enough_threads: the share of a multiprocessor's threads from which on some compute while
            others wait for memory.
    """

    threads: int = 2048
    blocks: int = 32
    registers: int = 65536
    shared: int = 0
    reserved: int = 0
    warp: int = 32
    block_threads: int = 1024
    thread_registers: int = 255
    register_unit: int = 256
    shared_unit: int = 256
    enough_threads: float = 0.25

    def occupancy(self, registers: int, shared: int, threads: int) -> float:
        """Return the share of all threads that blocks of a kernel fill, 0 if no block fits.

        Args:
            registers: registers of a thread.
            shared: bytes of shared memory of a block.
            threads: threads of a block.
        """
        warps = ceil(threads / self.warp)
        of_warp = ceil(registers * self.warp / self.register_unit) * self.register_unit
        at_once = min(
            self.threads // (warps * self.warp),
            self.blocks,
            self.registers // (of_warp * warps),
        )
        if shared + self.reserved:
            own = ceil((shared + self.reserved) / self.shared_unit) * self.shared_unit
            at_once = min(at_once, self.shared // own)
        return at_once * warps * self.warp / self.threads

    def slowdown(self, registers: int, shared: int, threads: int) -> float:
        """Return how many times longer a kernel takes as few of its threads are resident, from 1.

        The arguments are those of `occupancy`. It is 1 where the shared memory is not known.
        """
        if not self.shared:
            return 1.0
        least = self.warp / self.threads
        return max(
            1.0, self.enough_threads / max(least, self.occupancy(registers, shared, threads))
        )
