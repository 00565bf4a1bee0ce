"""Figures of a kernel on a multiprocessor, from its machine code and some executed warps."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from attrs import frozen

from machine_code.listing import Listing
from machine_code.memory import DeviceMemory, MemoryRegion
from machine_code.warp import Warp, WarpLaunch, WarpTrace

KIB = 1 << 10
UNITS = {80: 108, 90: 132, 100: 148}
"""Multiprocessors of A100, H100 or H200, and B200."""
SHARED = {80: 164 * KIB, 90: 228 * KIB, 100: 228 * KIB}
"""Shared memory of a multiprocessor."""
THREADS, BLOCKS, REGISTERS, RESERVED = 2048, 32, 65536, KIB
"""Limits of a multiprocessor, and shared memory that each block has besides its own."""
HELPERS = ("shflsync", "warpsync", "votesync", "matchsync", "reduxsync")
"""In names of functions that are no slow path of arithmetic."""
SAMPLED_WARPS = 4
ENDS = ("BRA", "EXIT", "RET", "BRX", "JMP")


@frozen
class CompiledKernel:
    """A kernel as machine code, with what the compiler says of it."""

    name: str
    listing: Listing
    registers: int
    spilled: int
    static_shared: int


@frozen
class KernelFigures:
    """Figures of a launch on an architecture.

    Attributes:
        registers: of a thread.
        spilled: bytes that a thread stores to local memory, and accesses of it.
        shared: bytes of a block.
        slow_calls: times that all warps of the launch branched around a slow path, or took one.
        waits: the most times that a thread waits for loads of large arrays between two backward
            branches; 1 if all of its loads stand before the first use.
        in_flight: bytes of a thread that are loaded before the first use, on average.
        per_unit: the same of all threads that are on a multiprocessor at a time.
        issued: instructions of all warps of the launch.
        loaded: bytes that all threads load from large arrays.
        sectors: share of the 32-byte sectors of memory that these loads use.
        turns: turns of an access of shared memory over those without conflicts of banks.
    """

    registers: int
    spilled: int
    shared: int
    slow_calls: float
    waits: int
    in_flight: float
    per_unit: float
    issued: float
    loaded: float
    sectors: float
    turns: float


def resident_blocks(kernel: CompiledKernel, launch: WarpLaunch, dynamic_shared: int) -> int:
    """Return how many blocks of a kernel are on a multiprocessor at a time.

    Source: CUDA C++ Programming Guide, technical specifications per compute capability.
    """
    warps = ceil(launch.threads / 32)
    of_warp = ceil(kernel.registers * 32 / 256) * 256
    shared = kernel.static_shared + dynamic_shared + RESERVED
    most = min(
        THREADS // (warps * 32),
        BLOCKS,
        REGISTERS // (of_warp * warps),
        SHARED[launch.architecture] // shared,
    )
    return min(most, max(1, launch.grid // UNITS[launch.architecture]))


def measured(
    kernel: CompiledKernel,
    launch: WarpLaunch,
    regions: Sequence[MemoryRegion],
    dynamic_shared: int = 0,
    blocks: Sequence[int] | None = None,
) -> KernelFigures:
    """Run some warps of some blocks, by default of one in the middle, and return what they cost.

    Raises: UnknownInstructionError, StrayAccessError, EndlessWarpError.
    """
    chosen = [launch.grid // 2] if blocks is None else sorted(set(blocks))
    warps = ceil(launch.threads / 32)
    numbers = sorted({k * (warps - 1) // (SAMPLED_WARPS - 1) for k in range(SAMPLED_WARPS)})
    memories = [DeviceMemory(regions, blocks is not None) for _ in chosen for _ in numbers]
    traces = [
        Warp(kernel.listing, launch, memory, block, number).run()
        for memory, (block, number) in zip(
            memories, ((b, n) for b in chosen for n in numbers), strict=True
        )
    ]
    share = launch.grid * warps / len(traces)
    in_flight = float(np.mean([bytes_in_flight(t) for t in traces]))
    resident = resident_blocks(kernel, launch, dynamic_shared)
    requested, fetched = (sum(t.traffic[k] for t in traces) for k in range(2))
    turns, least = (sum(m.turns[k] for m in memories) for k in range(2))
    return KernelFigures(
        registers=kernel.registers,
        spilled=kernel.spilled,
        shared=kernel.static_shared + dynamic_shared,
        slow_calls=share * slow_calls(kernel.listing, sum(t.issued for t in traces)),
        waits=max(map(waits_at_once, traces)),
        in_flight=in_flight,
        per_unit=in_flight * launch.threads * resident,
        issued=share * sum(t.instructions for t in traces),
        loaded=share * requested,
        sectors=requested / fetched if fetched else 1.0,
        turns=turns / least if least else 1.0,
    )


def bytes_in_flight(trace: WarpTrace) -> float:
    """Return the bytes of a thread that are loaded when it waits, weighted by themselves.

    Only waits for large arrays count, with all that was loaded before them.
    """
    waits = [w.nbytes for w in trace.waits if w.streamed]
    return sum(n * n for n in waits) / sum(waits) / 32 if waits else 0.0


def waits_at_once(trace: WarpTrace) -> int:
    """Return the most waits for large arrays between two backward branches."""
    segments = [w.segment for w in trace.waits if w.streamed]
    return max((segments.count(s) for s in set(segments)), default=0)


def slow_calls(listing: Listing, issued: np.ndarray) -> int:
    """Return how often executed code branches around calls of slow paths, or takes them.

    Slow paths are functions of the compiler; it also writes calls of labels where loops end.
    ``issued`` are the times that each instruction was issued.
    """
    labels = set(listing.labels.values())
    count = 0
    for k, i in enumerate(listing.instructions):
        target = str(i.operands[-1].value) if i.name == "CALL" else ""
        if not target.startswith("$") or any(name in target for name in HELPERS):
            continue
        begin = k
        while begin and begin not in labels and listing.instructions[begin - 1].name not in ENDS:
            begin -= 1
        count += max(int(issued[k]), *(int(issued[j]) for j in _before(listing, begin)), 0)
    return count


def _before(listing: Listing, begin: int) -> list[int]:
    """Return the instructions from which code at an index is reached: branches, and the last."""
    before = [
        k
        for k, i in enumerate(listing.instructions)
        if i.name == "BRA" and listing.labels.get(str(i.operands[-1].value)) == begin
    ]
    last = listing.instructions[begin - 1] if begin else None
    if last is not None and (last.name not in ENDS or last.guard or len(last.operands) > 1):
        before.append(begin - 1)
    return before
