"""Schedule rules of GPUs for single loop nests.

Source of the tables: `docs/gpu-kernels.md`. Terms: a vector is the elements of one access of up to
16 bytes; a row is the points of the reduced axes for one point of the kept ones; a value is staged
if a later stage reads it.
"""

from __future__ import annotations

from math import gcd

from attrs import frozen

from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of, scan_of
from passkit.ir.loop import Bind, LaunchShape
from passkit.plan.registers import registers_of
from passkit.plan.schedule import Schedule
from passkit.schedule.nest import AxisGroup, AxisPart, NestSchedule, WarpTile
from passkit.space.layout import Layout
from passkit.values.size import numel

WARP = 32
ACCESS_NBYTES = 16
"""The bytes of the widest access of a thread."""
REGISTERS = 65536
"""The registers of a multiprocessor, of 4 bytes."""
THREADS = 2048
"""The threads that a multiprocessor has at most."""
MAX_REGISTERS = 255
"""The registers that a thread has at most."""
STAGED_REGISTERS = 64
"""The registers of a thread for cached inputs and staged values together, at most."""
ELEMENTWISE_NBYTES = 32
"""The bytes that a thread of an elementwise kernel loads before it computes."""
BASE_REGISTERS = 32
"""The registers for addresses, indices and intermediate results, at least."""
WIDE_REGISTERS = 24
"""The registers that the functions of float64 need beside these."""
INDEX_REGISTERS = 12
"""The registers for addresses and indices, where many values are live at a time."""

READ_ONCE_LENGTH = 2048
"""The elements of a row from which on a row that is read once is not kept in registers."""
COLUMN_THREADS = 256
"""The threads of a block that reduces columns."""
COLUMN_UNROLL = 8
"""The vectors that a thread of such a block loads before it uses the first."""
MAX_SHORT = 128
"""The elements of the longest row that moves through shared memory with others."""
SHORT_REGISTERS = 34
"""The registers for the part of a short row that a thread has, at most."""
SHORT_SHARED_NBYTES = 24 << 10
"""The bytes of shared memory of a block for short rows, at most, so that several blocks fit."""
MAX_UNROLLED = 4096
"""The operations of a thread in unrolled loops, at most: more take long to compile."""


@frozen
class NestTraffic:
    """The memory accesses of a nest, as far as schedules depend on them.

    Attributes:
        nbytes: the bytes of the widest element among all arrays that are accessed at the own point.
        streams: the inputs, by position, that are read at the own point of the domain.
        stream_nbytes: the bytes of an element of each of these.
        staged: the values, by position in the body, that a later stage reads.
        staged_nbytes: the bytes of each of these in registers.
    """

    nbytes: int
    streams: tuple[int, ...]
    stream_nbytes: tuple[int, ...]
    staged: tuple[int, ...] = ()
    staged_nbytes: tuple[int, ...] = ()


def vector_width(nbytes: int, length: int | None) -> int:
    """Return the elements of a vector: a power of two that divides ``length``, if that is given.

    ``nbytes`` are the bytes of the widest element.
    """
    width = ACCESS_NBYTES // nbytes
    return width if length is None else gcd(width, length)


def resident_blocks(threads: int, registers: int) -> int:
    """Return how many blocks a multiprocessor should have, for threads with so many registers."""
    rounded = -(-registers // 8) * 8
    return max(1, min(32, THREADS // threads, REGISTERS // (threads * rounded)))


def elementwise(axes: int, traffic: NestTraffic, registers: int) -> NestSchedule:
    """Return the schedule of a nest without reductions.

    A block has consecutive points. Each thread loads `ELEMENTWISE_NBYTES` of the inputs, at least
    one vector of each, before it computes.

    Args:
        axes: the number of axes.
        traffic: the accesses.
        registers: the registers that the computation of one point needs.
    """
    vector = vector_width(traffic.nbytes, None)
    per_vector = sum(n * vector for n in traffic.stream_nbytes) or traffic.nbytes * vector
    unroll = max(1, min(4, ELEMENTWISE_NBYTES // per_vector))
    threads = 128 if len(traffic.streams) < 2 else 256
    parts = [AxisPart(Bind.GRID, None)]
    if unroll > 1:
        parts.append(AxisPart(Bind.UNROLL, unroll))
    parts.append(AxisPart(Bind.THREAD_X, threads))
    if vector > 1:
        parts.append(AxisPart(Bind.VECTOR, vector))
    held = -(-per_vector * unroll // 4)
    blocks = resident_blocks(threads, max(32, registers + held - 8))
    group = AxisGroup(tuple(range(axes)), tuple(parts))
    return NestSchedule(group, None, traffic.streams, (), LaunchShape(1, threads, blocks))


def rows(
    kept: tuple[int, ...],
    reduced: tuple[int, ...],
    length: int,
    last: int,
    traffic: NestTraffic,
    registers: int,
) -> NestSchedule | None:
    """Return the schedule of rows that stay in registers; None for rows that are too long.

    A row has 8 or 16 threads, a warp or a block, by its length. Each thread loads its part of all
    inputs before it computes.

    Args:
        kept: the axes that are not reduced.
        reduced: the axes that are.
        length: the points of a row.
        last: the extent of the last reduced axis; a vector does not cross its end.
        traffic: the accesses.
        registers: the registers that the computation of one point needs.
    """
    vector = vector_width(traffic.nbytes, last)
    vectors = -(-length // vector)
    per_vector = sum(-(-n * vector // 4) for n in (*traffic.stream_nbytes, *traffic.staged_nbytes))
    most = max(1, STAGED_REGISTERS // max(1, per_vector))
    lanes = next((n for n in (8, 16, WARP) if vectors <= n * min(2, most)), 0)
    if not lanes or (lanes < WARP and vectors % lanes):
        lanes = WARP
    while vectors > lanes * most or (lanes >= WARP and vectors > lanes * 8):
        lanes *= 2 if lanes >= WARP else WARP // lanes
        if lanes == 2 * WARP:
            lanes = 4 * WARP
    if lanes > 1024:
        return None
    own = -(-vectors // lanes)
    per_block = max(1, 4 * WARP // lanes)
    row_parts = [AxisPart(Bind.GRID, None)]
    if per_block > 1:
        row_parts.append(AxisPart(Bind.THREAD_Y, per_block))
    parts = []
    if own > 1:
        parts.append(AxisPart(Bind.UNROLL, own))
    parts.append(AxisPart(Bind.THREAD_X, lanes))
    if vector > 1:
        parts.append(AxisPart(Bind.VECTOR, vector))
    live = own * sum(-(-n * vector // 4) for n in _live(traffic))
    threads = per_block * lanes
    blocks = resident_blocks(threads, min(MAX_REGISTERS, registers + live))
    return NestSchedule(
        AxisGroup(kept, tuple(row_parts)),
        AxisGroup(reduced, tuple(parts)),
        traffic.streams,
        traffic.staged,
        LaunchShape(per_block, lanes, blocks),
    )


def rows_read_once(
    kept: tuple[int, ...],
    reduced: tuple[int, ...],
    length: int,
    last: int,
    traffic: NestTraffic,
    registers: int,
) -> NestSchedule:
    """Return the schedule of rows, or chunks of them, that are read once and reduced.

    A block has a row. Its threads go through it in steps, and each loads `COLUMN_UNROLL` vectors
    before it uses the first. The arguments are those of `rows`.
    """
    vector = vector_width(traffic.nbytes, last)
    vectors = -(-length // vector)
    threads = max(WARP, min(COLUMN_THREADS, 1 << (-(-vectors // 2) - 1).bit_length()))
    most = max(1, COLUMN_UNROLL // max(1, len(traffic.streams)))
    unroll = max(1, min(most, vectors // threads))
    parts = [AxisPart(Bind.SERIAL, None)]
    if unroll > 1:
        parts.append(AxisPart(Bind.UNROLL, unroll))
    parts.append(AxisPart(Bind.THREAD_X, threads))
    if vector > 1:
        parts.append(AxisPart(Bind.VECTOR, vector))
    loaded = unroll * sum(-(-n * vector // 4) for n in traffic.stream_nbytes)
    blocks = resident_blocks(threads, min(MAX_REGISTERS, registers + loaded))
    return NestSchedule(
        AxisGroup(kept, (AxisPart(Bind.GRID, None),)),
        AxisGroup(reduced, tuple(parts)),
        traffic.streams,
        (),
        LaunchShape(1, threads, blocks),
    )


def columns(
    layout: Layout, schedule: Schedule, traffic: NestTraffic, registers: int
) -> NestSchedule:
    """Return the schedule of a reduction of columns in one pass.

    A block has 32 vectors of columns. Its threads read several rows at a time, and each thread
    loads `COLUMN_UNROLL` vectors before it uses the first.

    Args:
        layout: the iteration domain, whose last axis is kept.
        schedule: its stages.
        traffic: the accesses.
        registers: the registers that the computation of one point needs.
    """
    axes = layout.space.axes
    last = axes[-1].extent
    assert isinstance(last, int)
    totals = [reduce_of(layout.graph.nodes[k]) for s in schedule.stages for k in s.folds]
    widest = max([traffic.nbytes, *(r.identity.dtype.nbytes for r in totals if r is not None)])
    vector = vector_width(widest, last)
    threads = min(WARP, max(8, 1 << (-(-last // vector) - 1).bit_length()))
    (reduced,) = (k for k, a in enumerate(axes) if a.reduced)
    length = axes[reduced].steps
    assert isinstance(length, int)
    down = COLUMN_THREADS // threads
    while down > 1 and down * 2 > length:
        down //= 2
    threads = max(threads, WARP // down)  # blocks are whole warps
    per_row = max(1, len(traffic.streams))
    unroll = max(1, min(COLUMN_UNROLL, COLUMN_UNROLL // per_row, length // down))
    parts = [AxisPart(Bind.SERIAL, None)]
    if unroll > 1:
        parts.append(AxisPart(Bind.UNROLL, unroll))
    if down > 1:
        parts.append(AxisPart(Bind.THREAD_Y, down))
    across = [AxisPart(Bind.THREAD_X, threads)]
    if vector > 1:
        across.append(AxisPart(Bind.VECTOR, vector))
    loaded = unroll * sum(-(-n * vector // 4) for n in traffic.stream_nbytes)
    sums = sum(r.identity.dtype.nbytes * vector // 4 for r in totals if r is not None)
    blocks = resident_blocks(threads * down, min(MAX_REGISTERS, registers + loaded + sums))
    kept = tuple(k for k, a in enumerate(axes[:-1]) if not a.reduced)
    return NestSchedule(
        AxisGroup(kept, (AxisPart(Bind.GRID, None),)),
        AxisGroup((reduced,), tuple(parts)),
        traffic.streams,
        (),
        LaunchShape(down, threads, blocks),
        columns=AxisGroup((len(axes) - 1,), tuple(across)),
    )


def short_rows(
    kept: tuple[int, ...],
    reduced: tuple[int, ...],
    length: int,
    traffic: NestTraffic,
    registers: int,
) -> NestSchedule | None:
    """Return the schedule of short rows that move through shared memory; None for other rows.

    A warp has 32 / ``share`` rows, of which each thread computes a ``share``-th part. The arguments
    are those of `rows`.
    """
    if length > MAX_SHORT or (length > WARP and length % WARP == 0):
        return None
    elements = next((length // s for s in (1, 2, 4) if _fits(length, s, traffic)), 0)
    if not elements:
        return None
    share = length // elements
    widest = max(traffic.stream_nbytes, default=traffic.nbytes)
    vector = vector_width(max(widest, traffic.nbytes), length)
    inner = gcd(vector, elements)
    pitch = elements + inner * (1 - elements // inner % 2)
    parts = [AxisPart(Bind.THREAD_X, share)] if share > 1 else []
    if elements // inner > 1:
        parts.append(AxisPart(Bind.UNROLL, elements // inner))
    if inner > 1:
        parts.append(AxisPart(Bind.VECTOR, inner))
    shared = sum(n * pitch * 4 * WARP for n in traffic.stream_nbytes)
    if shared > SHORT_SHARED_NBYTES:
        return None
    row_parts = (
        AxisPart(Bind.GRID, None),
        AxisPart(Bind.THREAD_Y, 4),
        AxisPart(Bind.THREAD_X, WARP // share),
    )
    words = sum(-(-n // 4) for n in _live(traffic)) + 1
    blocks = resident_blocks(4 * WARP, min(MAX_REGISTERS, registers + elements * words))
    return NestSchedule(
        AxisGroup(kept, row_parts),
        AxisGroup(reduced, tuple(parts)),
        traffic.streams,
        traffic.staged,
        LaunchShape(4, WARP, blocks),
        WarpTile(vector, elements, pitch),
    )


def _fits(length: int, share: int, traffic: NestTraffic) -> bool:
    """Return whether a ``share``-th part of a row is a thread's: it fits in its registers."""
    if length % share:
        return False
    words = max(1, sum(-(-n // 4) for n in _live(traffic)))
    return length // share * words <= SHORT_REGISTERS


def _live(traffic: NestTraffic) -> tuple[int, ...]:
    """Return the bytes per point of values that are live at a time.

    A staged value takes the place of the input that it is computed from, as a rule.
    """
    streams, staged = traffic.stream_nbytes, traffic.staged_nbytes
    return streams if len(streams) >= len(staged) else staged


def plan_nest(layout: Layout, schedule: Schedule) -> NestSchedule | Diagnostic:
    """Return the schedule of a group of one loop nest, or why it has none.

    Args:
        layout: the iteration domain of the group.
        schedule: its stages.
    """
    space, graph = layout.space, layout.graph
    problem = _problem(layout, schedule)
    if problem is not None:
        return problem
    traffic = _traffic(layout, schedule)
    wide = WIDE_REGISTERS if traffic.nbytes == 8 else 0
    registers = max(BASE_REGISTERS, registers_of(graph) + INDEX_REGISTERS) + wide
    operations = sum(n.op is not None for n in graph.nodes)
    nest: NestSchedule | Diagnostic
    if not space.reduced:
        nest = elementwise(len(space.axes), traffic, registers)
    elif space.axes[-1].reduced:
        nest = _row_nest(layout, schedule, traffic, registers)
    else:
        nest = columns(layout, schedule, traffic, registers)
    if isinstance(nest, Diagnostic):
        return nest
    count = operations * (nest.reduced or nest.kept).per_thread
    if count > MAX_UNROLLED:
        return Diagnostic("limit.unroll", {"count": count, "limit": MAX_UNROLLED})
    return nest


def _row_nest(
    layout: Layout, schedule: Schedule, traffic: NestTraffic, registers: int
) -> NestSchedule | Diagnostic:
    """Return the schedule of a nest whose last axis is reduced, or why it has none."""
    axes = layout.space.axes
    reduced = tuple(k for k, a in enumerate(axes) if a.reduced)
    kept = tuple(k for k, a in enumerate(axes) if not a.reduced)
    length, last = numel(axes[k].steps for k in reduced), axes[-1].steps
    extent = axes[-1].extent
    assert isinstance(length, int) and isinstance(last, int) and isinstance(extent, int)
    is_long = axes[-1].chunk is not None or length > READ_ONCE_LENGTH
    if is_long and _is_read_once(schedule):
        return rows_read_once(kept, reduced, length, gcd(last, extent), traffic, registers)
    nest = None
    if max(kept, default=-1) < reduced[0]:  # the elements of a row are consecutive
        nest = short_rows(kept, reduced, length, traffic, registers)
    if nest is None:
        nest = rows(kept, reduced, length, last, traffic, registers)
    return Diagnostic("memory.registers", {"length": length}) if nest is None else nest


def _problem(layout: Layout, schedule: Schedule) -> Diagnostic | None:
    """Return why a group has no nest in registers, as far as its domain tells."""
    space = layout.space
    if schedule.parts or schedule.stitching is not None:
        return Diagnostic("tile.composition")
    for node in layout.graph.nodes:
        if scan_of(node) is not None:
            return Diagnostic("op.scan", {"op": node.label})
    is_column = bool(space.reduced) and not space.axes[-1].reduced
    if is_column:
        points = [s for s in schedule.stages if s.folds or s.stores or s.keeps]
        if len(points) != 1 or points[0].stores or len(space.reduced) != 1:
            return Diagnostic("domain.order")
    elif any(a.chunk is not None or a.counting for a in space.axes):
        is_plain = len(space.reduced) == 1 and len(space.kept) == 1
        if not is_plain or not _is_read_once(schedule):
            return Diagnostic("domain.chunks")
    outer = next((k for k, a in enumerate(space.axes) if not a.reduced), None)
    if is_column and outer == len(space.axes) - 1:
        outer = None
    for k, axis in enumerate(space.axes):
        if k != outer and not isinstance(axis.extent, int):
            return Diagnostic("domain.extent", {"axis": axis.var.name, "extent": axis.extent})
    return None


def _is_read_once(schedule: Schedule) -> bool:
    """Return whether one stage reads all points, and nothing but values of rows is left of them."""
    stages = [s for s in schedule.stages if s.folds or s.stores or s.keeps]
    return len(stages) == 1 and not stages[0].stores and not stages[0].keeps


def _traffic(layout: Layout, schedule: Schedule) -> NestTraffic:
    """Return the memory accesses of a group."""
    graph, full = layout.graph, layout.space.full
    streams = tuple(
        k for k, n in enumerate(graph.inputs) if full in layout.input_reads.get(n, ())
    )
    stream_nbytes = tuple(graph.dtype(graph.inputs[k].entries[0]).nbytes for k in streams)
    staged = tuple(k.value for k in schedule.kept)
    staged_nbytes = tuple(
        max(4, graph.dtype(graph.nodes[k].entries[0]).nbytes) for k in staged
    )
    stored = {graph.outputs[k] for stage in schedule.stages for k in stage.stores}
    widest = max((*stream_nbytes, *(graph.dtype(e).nbytes for e in stored)), default=4)
    return NestTraffic(widest, streams, stream_nbytes, staged, staged_nbytes)
