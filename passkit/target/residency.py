"""Residency: how many blocks are on a multiprocessor at a time, and what it costs if few are.

Source: CUDA C++ Programming Guide, occupancy.
"""

from __future__ import annotations

from math import ceil

from attrs import frozen

ENOUGH = 0.25
"""The share of a multiprocessor's threads from which on some work while others wait for memory."""
PER_WARP = 256
"""Registers are dealt to a warp by so many."""
REGISTERS, WARP = 65536, 32


@frozen
class Residency:
    """What a multiprocessor has: ``threads``, ``blocks``, and bytes of ``shared`` memory.

    A block has ``reserved`` bytes of that besides its own.
    """

    threads: int
    blocks: int
    shared: int
    reserved: int = 0

    def occupancy(self, registers: int, shared: int, threads: int) -> float:
        """The share of all threads that blocks of a kernel fill. 0 where none fits."""
        warps = ceil(threads / WARP)
        of_warp = ceil(registers * WARP / PER_WARP) * PER_WARP
        at_once = min(self.threads // (warps * WARP), self.blocks, REGISTERS // (of_warp * warps))
        if shared + self.reserved:
            at_once = min(at_once, self.shared // (ceil((shared + self.reserved) / 256) * 256))
        return at_once * warps * WARP / self.threads

    def waiting(self, registers: int, shared: int, threads: int) -> float:
        """How many times longer a kernel takes because too few threads are there; at least 1."""
        least = WARP / self.threads
        return max(1.0, ENOUGH / max(least, self.occupancy(registers, shared, threads)))
