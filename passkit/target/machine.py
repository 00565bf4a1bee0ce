"""Models of machines: the seconds of work, tiles, rows and library calls.

They stand beside the bandwidths and launches of a `Target`, which `passkit doctor --calibrate`
measures; a model says how work, libraries and loops relate to them.
"""

from __future__ import annotations

from attrs import frozen


@frozen(cache_hash=True)
class MachineModel:
    """Seconds and factors of a machine, for the cost model of kernels and library calls.

    The defaults are `ZEN4`. A step is one multiplication with its addition.

    Attributes:
        library_steps: steps of matrix products that a library computes in a second, one thread.
        library_columns: columns that a library computes at a time.
        library_call_seconds: seconds until a library begins with a matrix.
        library_caches: pairs of bytes and a factor; operands of fewer bytes are read so many times
            faster than from memory.
        reduction_factor: seconds of kernels with reductions, as a part of the seconds that their
            bytes and operations take by themselves.
        elementwise_factor: the same of kernels without.
        llc_bytes: bytes of the last cache; kernels that move as many read them from memory.
        memory_factor: how much faster than the target's bandwidth kernels read memory.
        streams: arrays that a loop walks through without losing time.
        stream_cost: the share of its seconds that a loop loses for each array more, as registers
            and ways of caches run out.
        min_tiles: tiles below which long kernels leave threads without work; the multiprocessors of
            a GPU.
        in_flight_bytes: bytes on their way from memory from which on it is as fast as it can be, of
            all multiprocessors of a GPU together. 0 for machines without: on them kernels of few
            tiles take longer by `min_tiles` and by their imbalance alone.
        tile_seconds: seconds until a tile begins.
        nest_seconds: seconds until a loop nest of a tile begins.
        matrix_seconds: seconds until a matrix product of a tile begins.
        kernel_steps: steps of matrix products that a kernel computes in a second, from caches.
        chain_seconds: seconds from one addition of a sum to the next.
        transposed_seconds: seconds for an element of a right operand that is transposed alone.
        transposed_block_seconds: seconds for one that is transposed in a block of a vector's width.
        row_pass_seconds: seconds until a pass over a row begins.
        row_reduction_seconds: seconds at the end of the reduction of a row.
        row_function_seconds: seconds of a function such as exp that is computed once per row.
        scratch_bytes: bytes of scratch of a tile that the nearest cache holds.
        scratch_byte_seconds: seconds for a byte of scratch where a tile has more.
        peak_byte_weight: bytes that are moved, to weigh a byte more at the peak of memory.
    """

    library_steps: float = 5e10
    library_columns: int = 8
    library_call_seconds: float = 2.5e-8
    library_caches: tuple[tuple[int, float], ...] = ((1 << 20, 8.0), (4 << 20, 2.0), (1 << 62, 1.0))
    reduction_factor: float = 0.42
    elementwise_factor: float = 0.25
    llc_bytes: int = 8 << 20
    memory_factor: float = 1.25
    streams: int = 8
    stream_cost: float = 0.05
    min_tiles: int = 4
    in_flight_bytes: float = 0.0
    tile_seconds: float = 4e-8
    nest_seconds: float = 3e-9
    matrix_seconds: float = 6e-8
    kernel_steps: float = 6e10
    chain_seconds: float = 1.2e-9
    transposed_seconds: float = 6e-10
    transposed_block_seconds: float = 1e-10
    row_pass_seconds: float = 4e-9
    row_reduction_seconds: float = 8e-9
    row_function_seconds: float = 1e-8
    scratch_bytes: int = 32 << 10
    scratch_byte_seconds: float = 5e-12
    peak_byte_weight: float = 2.0


ZEN4 = MachineModel()
"""Measured on a Zen 4 guest, one thread: medians of 500 kernels of networks, and OpenBLAS."""
DEVICE = MachineModel(
    reduction_factor=1.0,
    elementwise_factor=1.0,
    memory_factor=1.0,
    streams=1 << 30,
    min_tiles=128,
    nest_seconds=0.0,
)
"""A GPU, whose own numbers say what its work takes; tiles stay as long as on a CPU, since PoCL's
compiler dies of some kernels with more of them."""
