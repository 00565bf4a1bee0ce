"""Schedule rules of GPUs for single loop nests.

Source of the tables: `docs/gpu-kernels.md`. Terms: a vector is the elements of one access of up to
16 bytes; a row is the points of the reduced axes for one point of the kept ones; a value is staged
if a later stage reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from passkit.ir.loop import WARP, Bind, StorageScope
from passkit.schedule.actions import (
    Action,
    CacheRead,
    CacheRows,
    LaunchBlocks,
    Recompute,
    SetScope,
)
from passkit.schedule.apply import distribution
from passkit.schedule.limits import resident_blocks
from passkit.schedule.loop_nest import AxisRole, LoopNest
from passkit.schedule.nest import AxisPart
from passkit.schedule.traffic import NestTraffic
from passkit.target import Target
from passkit.values.size import known_factor, numel


def vector_width(nbytes: int, length: int | None, target: Target) -> int:
    """Return the elements of a vector: a power of two that divides ``length``, if that is given.

    ``nbytes`` are the bytes of the widest element; ``target`` has the widest access.
    """
    width = target.access // nbytes
    return width if length is None else gcd(width, length)


def elementwise(nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Return the schedule of a nest without reductions; None for another one.

    A block has consecutive points. Each thread loads ``loaded_bytes`` of the inputs, at least
    one vector of each, before it computes. Where no input has an element for each point, vectors do
    not cross the end of a last axis of unknown extent: neighbouring threads read neighbouring
    elements.

    Args:
        nest: the nest.
        target: the GPU.
    """
    if nest.is_reduced:
        return None
    traffic = nest.traffic
    vector = vector_width(traffic.nbytes, None, target)
    last = nest.axes[-1].extent
    if len(nest.axes) > 1 and not traffic.streams and not isinstance(last, int):
        vector = vector_width(traffic.nbytes, known_factor(last), target)
    per_vector = sum(n * vector for n in traffic.stream_nbytes) or traffic.nbytes * vector
    unroll = max(1, min(4, target.rules.loaded_bytes // per_vector))
    threads = 128 if len(traffic.streams) < 2 else 256
    parts = [AxisPart(Bind.UNROLL, unroll)] if unroll > 1 else []
    parts.append(AxisPart(Bind.THREAD_X, threads))
    if vector > 1:
        parts.append(AxisPart(Bind.VECTOR, vector))
    held = -(-per_vector * unroll // 4)
    blocks = resident_blocks(
        threads, max(32, nest.registers(target.rules) + held - 8), target.limits
    )
    return (*distribution(nest, AxisRole.KEPT, parts), *in_registers(nest), LaunchBlocks(blocks))


def rows(nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Return the schedule of rows that stay in registers; of longer ones, of rows in steps.

    A row has 8 or 16 threads, a warp or a block, by its length and its number of inputs. Each
    thread loads its part of all inputs before it computes. A vector does not cross the end of the
    last axis.

    Args:
        nest: the nest; without reductions the result is None.
        target: the GPU.
    """
    if not nest.is_reduced or nest.is_column or nest.is_chunked:
        return None
    traffic, length = nest.traffic, nest.row_length
    if not nest.has_known_rows or length == 0:
        return _rows_in_steps(nest, target)
    vector = vector_width(traffic.nbytes, nest.vector_length, target)
    vectors = -(-length // vector)
    per_vector = sum(-(-n * vector // 4) for n in (*traffic.stream_nbytes, *traffic.staged_nbytes))
    most = max(1, target.rules.staged_registers // max(1, per_vector))
    lanes = next((n for n in (8, 16, WARP) if vectors <= n * min(2, most)), 0)
    if not lanes or (lanes < WARP and vectors % lanes):
        lanes = WARP
    while vectors > lanes * most or (lanes >= WARP and vectors > lanes * 8):
        lanes *= 2 if lanes >= WARP else WARP // lanes
        if lanes == 2 * WARP:
            lanes = 4 * WARP
    if lanes > target.limits.block_threads:
        return _rows_in_steps(nest, target)
    own = -(-vectors // lanes)
    per_block = max(1, 4 * WARP // lanes)
    threads = per_block * lanes
    live = own * sum(-(-n * vector // 4) for n in _live(traffic))
    if target.rules.min_registers + live > target.limits.registers // threads:
        return _rows_in_steps(nest, target)
    row_parts = [AxisPart(Bind.THREAD_Y, per_block)] if per_block > 1 else []
    parts = []
    if own > 1:
        parts.append(AxisPart(Bind.UNROLL, own))
    parts.append(AxisPart(Bind.THREAD_X, lanes))
    if vector > 1:
        parts.append(AxisPart(Bind.VECTOR, vector))
    registers = min(target.limits.thread_registers, nest.registers(target.rules) + live)
    blocks = resident_blocks(threads, registers, target.limits)
    return (
        *distribution(nest, AxisRole.KEPT, row_parts),
        *distribution(nest, AxisRole.REDUCED, parts),
        *in_registers(nest),
        LaunchBlocks(blocks),
    )


def rows_read_once(nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Return the schedule of long rows, or chunks of them, that are read once and reduced.

    Args:
        nest: the nest; without such rows the result is None.
        target: the GPU.
    """
    if not nest.is_reduced or nest.is_column or not (nest.is_read_once or nest.is_chunked):
        return None
    is_short = nest.has_known_rows and nest.row_length <= target.rules.read_once_length
    if not nest.is_chunked and is_short:
        return None
    return _rows_in_steps(nest, target)


def _rows_in_steps(nest: LoopNest, target: Target) -> Sequence[Action]:
    """Return the schedule of rows, or chunks of them, that each stage reads in steps.

    A block has a row. Its threads go through it in steps, and each loads ``column_unroll`` vectors
    before it uses the first. A stage computes again what an earlier one computed of an element.

    A row of unknown length has a warp, and a block several rows. Where there are ``few_rows``, it
    has a block, as a long row has. So the bits of a row depend on its length, and on no other size
    that only a call knows.

    Args:
        nest: a nest whose last axis is reduced.
        target: the GPU.
    """
    traffic, rules = nest.traffic, target.rules
    vector = vector_width(traffic.nbytes, nest.vector_length, target)
    vectors = max(1, -(-nest.row_length // vector))
    limit = min(rules.column_threads, target.limits.block_threads)
    threads = max(WARP, min(limit, 1 << (-(-vectors // 2) - 1).bit_length()))
    unroll = max(1, rules.column_unroll // max(1, len(traffic.streams)))
    per_block = 1
    if nest.has_known_rows:
        unroll = max(1, min(unroll, vectors // threads))
    else:
        rows = numel(a.extent for a in nest.axes if a.role is AxisRole.KEPT)
        is_few = isinstance(rows, int) and rows <= rules.few_rows
        threads, per_block = (limit, 1) if is_few else (WARP, 4)
    row_parts = [AxisPart(Bind.THREAD_Y, per_block)] if per_block > 1 else []
    parts = [AxisPart(Bind.SERIAL, None)]
    if unroll > 1:
        parts.append(AxisPart(Bind.UNROLL, unroll))
    parts.append(AxisPart(Bind.THREAD_X, threads))
    if vector > 1:
        parts.append(AxisPart(Bind.VECTOR, vector))
    loaded = unroll * sum(-(-n * vector // 4) for n in traffic.stream_nbytes)
    registers = min(target.limits.thread_registers, nest.registers(rules) + loaded)
    return (
        *distribution(nest, AxisRole.KEPT, row_parts),
        *distribution(nest, AxisRole.REDUCED, parts),
        *recomputed(nest),
        LaunchBlocks(resident_blocks(threads * per_block, registers, target.limits)),
    )


def columns(nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Return the schedule of columns, or chunks of them, in one pass; None for another nest.

    A block has 32 vectors of columns. `columns_in_passes` is for several passes.

    Args:
        nest: the nest.
        target: the GPU.
    """
    if not nest.is_column or not (nest.is_read_once or nest.is_chunked):
        return None
    threads = min(WARP, max(8, _power_above(_column_vectors(nest, target))))
    down = target.rules.column_threads // threads
    while down > 1 and nest.has_known_rows and down * 2 > nest.row_length:
        down //= 2
    return _column_actions(nest, target, threads, down)


def columns_in_passes(nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Return the schedule of columns that several stages read; None for another nest.

    A block has whole columns, of at least ``column_bytes`` side by side, so that there are many
    blocks. ``column_rows`` threads share a column. A stage computes again what an earlier one
    computed of an element.

    Args:
        nest: the nest.
        target: the GPU.
    """
    if not nest.is_column or nest.is_read_once or nest.is_chunked:
        return None
    vector = _column_vector(nest, target)
    least = -(-target.rules.column_bytes // (vector * nest.traffic.nbytes))
    threads = _power_above(min(_column_vectors(nest, target), least))
    down = 1
    most = min(target.rules.column_rows, target.limits.block_threads // threads)
    most = min(most, nest.row_length) if nest.has_known_rows else most
    while down * 2 <= most:
        down *= 2
    return _column_actions(nest, target, threads, down)


def _power_above(count: int) -> int:
    """Return the least power of two that is not below a number; of 0 it is 2."""
    return 1 << (count - 1).bit_length()


def _column_vectors(nest: LoopNest, target: Target) -> int:
    """Return the vectors of a row of columns; if their number is unknown, those of a warp."""
    last = nest.axes[-1].extent
    return -(-last // _column_vector(nest, target)) if isinstance(last, int) else WARP


def _column_vector(nest: LoopNest, target: Target) -> int:
    """Return the columns of a vector."""
    widest = max(nest.traffic.nbytes, *nest.total_nbytes)
    return vector_width(widest, known_factor(nest.axes[-1].extent), target)


def _column_actions(nest: LoopNest, target: Target, threads: int, down: int) -> Sequence[Action]:
    """Return the schedule of columns whose blocks read several rows at a time.

    Each thread loads ``column_unroll`` vectors before it uses the first.

    Args:
        nest: the nest.
        target: the GPU.
        threads: the threads of a block with neighbouring vectors of columns; blocks are whole warps
            in any case.
        down: those that share a column; fewer if their sums exceed the shared memory of a block.
    """
    traffic, vector = nest.traffic, _column_vector(nest, target)
    sums_nbytes = sum(nest.total_nbytes) * vector
    while down > 1 and sums_nbytes * max(threads * down, WARP) > target.scratch:
        down //= 2
    threads = max(threads, WARP // down)
    per_row = max(1, len(traffic.streams))
    unroll = max(1, target.rules.column_unroll // per_row)
    if nest.has_known_rows:
        unroll = max(1, min(unroll, nest.row_length // down))
    parts = [AxisPart(Bind.SERIAL, None)]
    if unroll > 1:
        parts.append(AxisPart(Bind.UNROLL, unroll))
    if down > 1:
        parts.append(AxisPart(Bind.THREAD_Y, down))
    across = [AxisPart(Bind.THREAD_X, threads)] if threads > 1 else []
    if vector > 1:
        across.append(AxisPart(Bind.VECTOR, vector))
    loaded = unroll * sum(-(-n * vector // 4) for n in traffic.stream_nbytes)
    sums = sum(n * vector // 4 for n in nest.total_nbytes)
    registers = min(target.limits.thread_registers, nest.registers(target.rules) + loaded + sums)
    return (
        *distribution(nest, AxisRole.KEPT, ()),
        *distribution(nest, AxisRole.REDUCED, parts),
        *distribution(nest, AxisRole.COLUMN, across),
        *recomputed(nest),
        LaunchBlocks(resident_blocks(threads * down, registers, target.limits)),
    )


def short_rows(nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Return the schedule of short rows that move through shared memory; None for other rows.

    A warp has 32 / ``share`` rows, of which each thread computes a ``share``-th part.

    Args:
        nest: the nest.
        target: the GPU.
    """
    if not nest.is_reduced or nest.is_column or nest.is_chunked:
        return None
    traffic, length = nest.traffic, nest.row_length
    if not nest.has_known_rows or length > target.rules.short_row:
        return None
    if length > WARP and length % WARP == 0:
        return None
    elements = next((length // s for s in (1, 2, 4) if _fits(length, s, traffic, target)), 0)
    if not elements:
        return None
    share = length // elements
    widest = max(traffic.stream_nbytes, default=traffic.nbytes)
    vector = vector_width(max(widest, traffic.nbytes), length, target)
    inner = gcd(vector, elements)
    pitch = elements + inner * (1 - elements // inner % 2)
    parts = [AxisPart(Bind.THREAD_X, share)] if share > 1 else []
    if elements // inner > 1:
        parts.append(AxisPart(Bind.UNROLL, elements // inner))
    if inner > 1:
        parts.append(AxisPart(Bind.VECTOR, inner))
    shared = sum(n * pitch * 4 * WARP for n in traffic.stream_nbytes)
    if shared > target.rules.short_row_bytes:
        return None
    row_parts = (
        AxisPart(Bind.THREAD_Y, 4),
        AxisPart(Bind.THREAD_X, WARP // share),
    )
    words = sum(-(-n // 4) for n in _live(traffic)) + 1
    registers = min(target.limits.thread_registers, nest.registers(target.rules) + elements * words)
    return (
        *distribution(nest, AxisRole.KEPT, row_parts),
        *distribution(nest, AxisRole.REDUCED, parts),
        *in_registers(nest),
        CacheRows(vector, pitch),
        LaunchBlocks(resident_blocks(4 * WARP, registers, target.limits)),
    )


def single_elements(nest: LoopNest, target: Target) -> Sequence[Action]:
    """Return the schedule of a nest that no other rule has a legal schedule for.

    Each thread has one element at a time: a block 128 points, a warp a row, or the threads of a
    warp a column each. So it holds the fewest registers, and computes each value in one place.

    Args:
        nest: the nest.
        target: the GPU.
    """
    threads = (AxisPart(Bind.THREAD_X, WARP),)
    steps = (AxisPart(Bind.SERIAL, None),)
    if nest.is_column:
        return (
            *distribution(nest, AxisRole.KEPT, ()),
            *distribution(nest, AxisRole.REDUCED, steps),
            *distribution(nest, AxisRole.COLUMN, threads),
            *_recomputations(nest),
        )
    if nest.is_reduced:
        rows = () if nest.is_chunked else (AxisPart(Bind.THREAD_Y, 4),)
        return (
            *distribution(nest, AxisRole.KEPT, rows),
            *distribution(nest, AxisRole.REDUCED, (*steps, *threads)),
            *_recomputations(nest),
        )
    return distribution(nest, AxisRole.KEPT, (AxisPart(Bind.THREAD_X, 4 * WARP),))


def _fits(length: int, share: int, traffic: NestTraffic, target: Target) -> bool:
    """Return whether a ``share``-th part of a row is a thread's: it fits in its registers."""
    if length % share:
        return False
    words = max(1, sum(-(-n // 4) for n in _live(traffic)))
    return length // share * words <= target.rules.short_row_registers


def _live(traffic: NestTraffic) -> tuple[int, ...]:
    """Return the bytes per point of values that are live at a time.

    A staged value takes the place of the input that it is computed from, as a rule.
    """
    streams, staged = traffic.stream_nbytes, traffic.staged_nbytes
    return streams if len(streams) >= len(staged) else staged


def in_registers(nest: LoopNest) -> tuple[Action, ...]:
    """Return the actions that keep values of a thread's points in registers.

    They load each input that has an element at each point of the domain and is read there
    (``NestTraffic.streams``) before anything is computed. They keep each value that a later stage
    reads.
    """
    staged = (SetScope(nest.value_names[k], StorageScope.REGISTER) for k in nest.traffic.staged)
    return (*cached_inputs(nest), *staged)


def recomputed(nest: LoopNest) -> tuple[Action, ...]:
    """Return the actions for points that a thread does not keep from one stage to the next.

    They load the inputs as `in_registers` does, and compute values again in each stage.
    """
    return (*cached_inputs(nest), *_recomputations(nest))


def _recomputations(nest: LoopNest) -> tuple[Action, ...]:
    """Return the actions that compute values again in each stage."""
    return tuple(Recompute(nest.value_names[k]) for k in nest.all_recomputed)


def cached_inputs(nest: LoopNest) -> tuple[Action, ...]:
    """Return the actions that load inputs into registers before a thread computes."""
    return tuple(CacheRead(f"x{k}", StorageScope.REGISTER) for k in nest.traffic.streams)


RULES = (
    ("elementwise", elementwise),
    ("columns", columns),
    ("columns_in_passes", columns_in_passes),
    ("rows_read_once", rows_read_once),
    ("short_rows", short_rows),
    ("rows", rows),
    ("single_elements", single_elements),
)
"""The built-in rules by name, in the order in which they are tried."""
