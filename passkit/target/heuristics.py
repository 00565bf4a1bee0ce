"""Heuristics: the thresholds by which fusion and schedules are chosen, as fields of a target.

They change how fast kernels are and how long planning takes, never results but for the order in
which sums are added. Where no source stands, a value was chosen by the benchmarks of fusion
(`benchmarks/selections.py`) and of training on a Zen 4 guest.
"""

from __future__ import annotations

from attrs import frozen


@frozen(cache_hash=True)
class FusionHeuristics:
    """Thresholds of the fusion strategies and of packing.

    A step is one multiplication or addition of a matrix product. The gain of a pattern of groups is
    the seconds that it saves, by the cost model.

    Attributes:
        product_steps: steps of a matrix product that a kernel computes at most; larger ones are
            left to a library.
        batched_product_steps: the same of each product of a batch.
        deep_rounds: how often the strategy "deep" computes spans at most.
        layer_bytes: bytes that elementwise operators of one layer read and write together, at most,
            where the strategy "deep" joins them.
        copied_elements: elements of a value that each tile computes for itself, at most.
        repeated_ops: light operators that are repeated where another group reads them, at most.
        repeated_terms: terms of the text of a repeated group, at most.
        slice_readers: readers at most that each take one element of rows apart.
        function_ops: light operators that an expensive one counts as: a function has so many
            instructions.
        scalars_per_input: scalars that count as one input of a kernel.
        min_gain: seconds that a pattern gains at least.
        sure_gain: the same without products, where a kernel does what its groups did: of 60 that
            were measured none was slower where the model said that it gains.
        min_product_share: share of its groups' seconds that a pattern with products gains at least.
        min_gather_share: the same where values are read at other points, as what their indices cost
            is little known.
        long_row_nbytes: bytes of a row from which on rows may be read in any order: of its four
            cache lines the first comes unexpected, and the others stream.
        grown_loss_share: share of its groups' seconds that a pattern loses at most that others are
            grown from: what is next may save it.
        pattern_ops: operators of a pattern at most.
        pattern_groups: groups of a pattern at most.
        neighbours: neighbours of a group at most that patterns begin at.
        min_split_share: share of its seconds that splitting a group gains at least.
        measured_share: share of its groups' seconds that a pattern takes at least, however much it
            was measured to save.
        planned_ops: operators of groups that are planned to see what they gain, at most.
        planned_ops_base: the same in graphs of few operators.
        planned_ops_each: the same, more for each operator.
        enumerated_patterns: patterns that are searched through without a solver, whose import takes
            longer.
        recomputed_growth: how many times as many bytes as all its operands a value has at least
            that is computed again in the place of being stored.
        min_recompute_share: share of the seconds of the kernels that recomputation changes that it
            gains at least.
        scarce_bytes: bytes at the peak of memory from which on each counts twice; of more, in
            proportion more: machines run out.
        phase_values: values that are tried as what phases pass on, at most, all together.
        phase_trials: the same, one by one.
        idle_tiles: tiles of a kernel, at most, that leave threads without work.
        idle_factor: how many times `Target.parallel` a kernel of few tiles takes that is run in
            phases.
        pack_ops: operators of a packed kernel at most.
        pack_group_factor: the same, as a multiple of `Target.max_ops`.
        pack_size_arguments: arguments of a branch of a packed kernel for its sizes, about.
        pack_cache_factor: how much faster than memory caches are, where small arrays lie. Measured.
        pack_ready_factor: how many times longer than `Target.packed` a branch takes at most that
            waits for nothing. Measured: longer ones had better be run together.
    """

    product_steps: int = 2_000_000
    batched_product_steps: int = 2 * 512 * 512 * 128
    deep_rounds: int = 10
    layer_bytes: int = 64 << 20
    copied_elements: int = 4096
    repeated_ops: int = 8
    repeated_terms: int = 64
    slice_readers: int = 2
    function_ops: int = 24
    scalars_per_input: int = 8
    min_gain: float = 1e-6
    sure_gain: float = 2e-8
    min_product_share: float = 0.15
    min_gather_share: float = 0.4
    long_row_nbytes: int = 256
    grown_loss_share: float = 0.4
    pattern_ops: int = 96
    pattern_groups: int = 8
    neighbours: int = 10
    min_split_share: float = 0.35
    measured_share: float = 0.02
    planned_ops: int = 4000
    planned_ops_base: int = 64
    planned_ops_each: int = 2
    enumerated_patterns: int = 12
    recomputed_growth: int = 8
    min_recompute_share: float = 0.1
    scarce_bytes: int = 128 << 20
    phase_values: int = 64
    phase_trials: int = 3
    idle_tiles: int = 4
    idle_factor: int = 4
    pack_ops: int = 1024
    pack_group_factor: int = 4
    pack_size_arguments: int = 6
    pack_cache_factor: int = 8
    pack_ready_factor: int = 10


@frozen(cache_hash=True)
class TilingHeuristics:
    """Thresholds of tiles, of kernels of several loop nests, and of split reductions.

    Attributes:
        columns: columns of a tile that reduces columns.
        min_columns: the same at least, where there would be fewer than `column_tiles` tiles.
        column_tiles: tiles below which they are made narrower.
        line_elements: elements of a cache line, of which such a tile has a whole number.
        chunk_columns: columns at least of a tile that reduces chunks of long columns: a page of
            float32, as memory is read in its order then.
        chunk_sum_bytes: bytes of sums of such a tile at most, which stay in the first cache.
        chunk_tiles: tiles below which such tiles stay at `chunk_columns`. Reading whole rows is a
            fifth faster, measured on Zen 4.
        register_row: elements of the longest row whose values stay in registers between stages.
        register_functions: functions such as exp that are written out for such a row, at most: one
            for each of its vectors and each operator. Compilers take long for more.
        short_rows: short rows that a tile of a kernel with several loop nests reduces together, at
            most.
        near_bytes: bytes of a block's rows that are kept in shared memory at most, so that a
            multiprocessor has enough blocks.
        ways: ways to split the results of a kernel with several loop nests that are planned, at
            most.
        ways_of_a_count: the same with one number of tiles.
        enough_tiles: tiles that are enough for most teams of threads.
        pack_tiles: tiles of a packed kernel that are enough for any team of threads.
        pack_tile_seconds: seconds that a tile of a packed kernel takes at least.
        pack_tile_points: points of such a tile at least.
        product_vectors: vectors of columns of a matrix product that are summed at a time.
        product_heights: rows of a matrix product that are summed at a time: the first number that
            there are as many of.
        free_registers: registers of a thread that leave room for all threads, for kernels of
            several loop nests.
        short_rows_at_once: short rows that are reduced in the time of one, as none waits for
            another.
        candidates: templates of a group that are offered and tuned, at most.
        tile_factors: how much smaller and larger tiles are tried.
        tile_widths: columns of tiles that are tried.
        row_chunk: elements that a chunk of a split reduction has along the innermost axis.
        min_row_chunk: the elements of shorter chunks, which are taken as long as there are at most
            ``row_chunks`` of them.
        device_row_chunk: ``min_row_chunk`` on a GPU, each of whose multiprocessors needs a chunk.
            An OpenCL device has chunks of this length only: it gets whole chunks, and more of them
            are shared evenly.
        row_chunks: chunks of a row from which on these grow, up to ``row_chunk``.
        even_chunks: whether chunks along one of several reduced axes are no longer than others, as
            a GPU needs as many. On a CPU whole coordinates of the outermost axis are as fast.
        column_chunk: elements of a chunk along another axis.
        long_matrix_chunk: elements of a chunk of a vector with an element for each row of a long
            matrix that two products read: products and kernels then run on one chunk after the
            other while its rows of the matrix are in the caches (`passkit.runtime.row_chain`).
        min_long_matrix: elements from which on such a reduction is split.
        min_row: elements from which on a reduction along the innermost axis is split, if nothing
            broadcasts its result back.
        min_column: the same along another axis.
        min_fused_row: the same as `min_row`, if the elements are read again: splitting separates
            what would be one kernel.
        min_fused_column: the same as `min_column`, if the elements are read again.
    """

    columns: int = 512
    min_columns: int = 48
    column_tiles: int = 8
    line_elements: int = 16
    chunk_columns: int = 1024
    chunk_sum_bytes: int = 1 << 14
    chunk_tiles: int = 32
    register_row: int = 256
    register_functions: int = 32
    short_rows: int = 256
    near_bytes: int = 32 << 10
    ways: int = 64
    ways_of_a_count: int = 8
    enough_tiles: int = 16
    pack_tiles: int = 64
    pack_tile_seconds: float = 1e-6
    pack_tile_points: int = 256
    product_vectors: int = 3
    product_heights: tuple[int, ...] = (8, 4, 1)
    free_registers: int = 32
    short_rows_at_once: int = 4
    candidates: int = 24
    tile_factors: tuple[float, ...] = (0.25, 4.0, 0.0625, 16.0)
    tile_widths: tuple[int, ...] = (512, 128, 64, 2048)
    row_chunk: int = 1 << 15
    min_row_chunk: int = 1 << 15
    device_row_chunk: int = 1 << 13
    row_chunks: int = 512
    even_chunks: bool = False
    column_chunk: int = 128
    long_matrix_chunk: int = 1 << 11
    min_long_matrix: int = 1 << 13
    min_row: int = 1 << 16
    min_column: int = 512
    min_fused_row: int = 1 << 18
    min_fused_column: int = 4096


@frozen(cache_hash=True)
class NestHeuristics:
    """Thresholds of the schedule rules of single loop nests on GPUs.

    Attributes:
        staged_registers: registers of a thread for cached inputs and staged values, at most.
        loaded_bytes: bytes that a thread of an elementwise kernel loads before it computes.
        read_once_length: elements of a row from which on a row that is read once is not kept in
            registers.
        few_rows: rows of unknown length, at most, of which each has a block: about as many as a GPU
            has multiprocessors. Of more rows each has a warp.
        column_threads: threads of a block that reduces columns.
        column_unroll: vectors that a thread of such a block loads before it uses the first.
        column_rows: threads of a block that share a column which several stages read.
        column_bytes: bytes of a row of such a block at least: two sectors of global memory.
        join_unroll: partial results, or vectors of them, that a thread of a block which joins them
            loads before it uses the first.
        max_partial: elements of the partial results that a last block joins, at most: the check for
            races looks at each of them.
        short_row: elements of the longest row that moves through shared memory with others.
        short_row_registers: registers for the part of a short row that a thread has, at most.
        short_row_bytes: bytes of shared memory of a block of short rows, at most, so that several
            blocks fit.
        tile_bytes: bytes of a tile of the widest array that a block turns.
        tile_row_bytes: bytes of the shortest row of a tile, of the narrowest array, if the axis is
            longer.
        tile_edge: points along an axis that a tile costs besides its own, so that smaller tiles
            cost more.
        tile_threads: threads of a block that turns a tile.
        tile_lanes: threads with neighbouring vectors: more of them have conflicts of banks.
        tile_paddings: elements that may lie between two rows of a tile, the preferred ones first.
        min_tile_points: points of the smallest tile: with fewer, arrays have rows of a sector or
            less.
        sector_bytes: bytes that global memory gives at least.
        resident_tile_bytes: shared memory of a multiprocessor by which it is counted how many
            tiles it has at a time: that of sm_80; later ones have more.
        reserved_tile_bytes: shared memory that a block takes besides its tiles.
        base_registers: registers for addresses, indices and intermediate results, at least.
        index_registers: registers for addresses and indices, where many values are live at a time.
        float64_registers: registers that the functions of float64 need besides.
        min_registers: registers that a thread needs besides its elements, at least.
        unrolled_ops: operations of a thread in unrolled loops, at most: more take long to compile.
    """

    staged_registers: int = 64
    loaded_bytes: int = 32
    read_once_length: int = 2048
    few_rows: int = 128
    column_threads: int = 256
    column_unroll: int = 8
    column_rows: int = 64
    column_bytes: int = 64
    join_unroll: int = 8
    max_partial: int = 1 << 24
    short_row: int = 128
    short_row_registers: int = 34
    short_row_bytes: int = 24 << 10
    tile_bytes: int = 16 << 10
    tile_row_bytes: int = 64
    tile_edge: int = 8
    tile_threads: int = 256
    tile_lanes: int = 8
    tile_paddings: tuple[int, ...] = (1, 2, 3, 4, 5, 8, 9, 0)
    min_tile_points: int = 256
    sector_bytes: int = 32
    resident_tile_bytes: int = 164 << 10
    reserved_tile_bytes: int = 1 << 10
    base_registers: int = 32
    index_registers: int = 12
    float64_registers: int = 24
    min_registers: int = 16
    unrolled_ops: int = 4096
