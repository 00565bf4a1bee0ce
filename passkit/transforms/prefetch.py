"""Prefetches of the inputs of a kernel with one loop nest."""

from __future__ import annotations

from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.size_arguments import MAX_LITERAL_EXTENT
from passkit.analysis.unrolled import unrolled_length
from passkit.ast import Call, Expr, Fixed, size_of
from passkit.ast.index import Sum, expression
from passkit.ast.stage import Prefetch
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.node import Node, known_shape
from passkit.schedule.schedule import Schedule, StagePlan
from passkit.schedule.tile_loops import TileLoops
from passkit.transforms.buffer_map import BufferMap
from passkit.values.size import Extent, numel

PREFETCH_ROWS = 4
"""The distance of prefetches in rows, for reductions of a chunk of rows."""
PREFETCH_STREAM = 512
"""The distance of prefetches in elements, for kernels that stream their outputs."""
PREFETCH_MANY = 64
"""The distance of prefetches in elements, for kernels that read many inputs."""
MIN_STREAMS = 8
"""The number of inputs from which on they are prefetched: hardware prefetchers follow fewer.

An EPYC 9004 gains a third with 24 inputs.
"""
MIN_PREFETCHED = 1 << 18
"""The number of elements from which on inputs are prefetched that are read without interruption."""


class StagePrefetches:
    """The prefetches in the stages of one kernel.

    Args:
        schedule: its schedule.
        info: the analysis of its iteration domain.
        loops: its loops.
        buffer_map: the locations of its inputs.
    """

    def __init__(
        self, schedule: Schedule, info: DomainInfo, loops: TileLoops, buffer_map: BufferMap
    ) -> None:
        self.schedule, self.info, self.loops, self.buffer_map = schedule, info, loops, buffer_map
        self.domain, self.vector_axis = info.domain, loops.vector_axis
        self.inputs = info.graph.inputs
        traversals = [p for p in schedule.stages if p.reduces or p.staged or p.stores]
        self.second_stage = traversals[1] if len(traversals) > 1 else None

    def of_stage(self, plan: StagePlan) -> list[Prefetch]:
        """Return the prefetches of a stage.

        The second stage prefetches the next row, or the next tile of short rows, of inputs that are
        read row by row: the first stage then finds it in the cache. A stage that streams its
        outputs, reduces a chunk, or consists of short reductions of large inputs prefetches
        elements some iterations ahead; a reduction of columns, the next rows. Without reductions
        many inputs are prefetched, since hardware prefetchers follow few.
        """
        is_long = (
            not isinstance(self.vector_axis.extent, int)
            or self.vector_axis.extent > MAX_LITERAL_EXTENT
        )
        is_second = plan is self.second_stage
        if is_second and self.loops.is_short:
            nearby = numel([self.schedule.split.chunk, self.vector_axis.extent])
            return self._prefetches(size_of(nearby, Fixed.LITERAL))
        if is_second and self.vector_axis.reduced and is_long:
            return self._prefetches(size_of(self._row_distance()))
        if self.loops.vector_loop().wide and plan.reduces and self.domain.axes[0].is_chunk_axis:
            accesses = self.info.input_accesses
            if sum(self.domain.point_index in accesses.get(n, ()) for n in self.inputs) > 1:
                return []  # their rows are read one by one, which hardware prefetchers detect
            rows = numel([self._rows_ahead(plan), self.vector_axis.extent])
            return self._prefetches(size_of(rows))
        if self._is_streaming(plan) or any(map(self._is_read_once, self.inputs)):
            return self._prefetches(size_of(PREFETCH_STREAM, Fixed.LITERAL))
        distance = size_of(PREFETCH_MANY, Fixed.LITERAL)
        streams = self._input_streams() if is_long else []
        return [Prefetch(self.buffer_map.inputs[n], expression(at) + distance) for n, at in streams]

    def _prefetches(self, distance: Expr) -> list[Prefetch]:
        """Return prefetches of the inputs that are read point by point, or once, at a distance."""
        return [
            Prefetch(self.buffer_map.inputs[n], expression(at) + distance)
            for n in self.inputs
            for at in dict.fromkeys(self.info.input_accesses.get(n, []))
            if at == self.domain.point_index or self._is_read_once(n)
        ]

    def _input_streams(self) -> list[tuple[Node, Sum]]:
        """Return the inputs that a kernel without reductions reads with stride 1, and the indices.

        Returns: an empty list for few inputs, or if they are known to be small.
        """
        if self.domain.reduced:
            return []
        streams = [
            (n, at)
            for n in self.inputs
            for at in dict.fromkeys(self.info.input_accesses.get(n, []))
            if at.coefficient(self.vector_axis.var) == 1
        ]
        sizes = [numel(known_shape(n.entries[0])) for n in dict.fromkeys(n for n, _ in streams)]
        is_small = all(isinstance(n, int) for n in sizes) and sum(map(int, sizes)) < MIN_PREFETCHED
        return [] if is_small or len(streams) < MIN_STREAMS else streams

    def _row_distance(self) -> Extent:
        """Return the distance of two rows of inputs that are read row by row."""
        for axis in reversed(self.domain.kept):
            if axis.extent != 1:
                return self.domain.point_index.coefficient(axis.var)
        return numel(a.extent for a in self.domain.reduced)

    def _is_read_once(self, node: Node) -> bool:
        """Return whether short reductions read each element of a large input once."""
        size = numel(known_shape(node.entries[0]))
        taps = max(map(unrolled_length, self.info.graph.nodes))
        points = self.domain.size * taps
        return taps > 1 and isinstance(size, int) and size >= MIN_PREFETCHED and size == points

    def _rows_ahead(self, plan: StagePlan) -> int:
        """Return the distance of prefetches in rows: more for extremes, whose steps take longer."""
        reductions = [reduce_of(self.info.graph.nodes[k]) for k in plan.reduces]
        has_extremes = any(r is not None and isinstance(r.combine, Call) for r in reductions)
        return 2 * PREFETCH_ROWS if has_extremes else PREFETCH_ROWS

    def _is_streaming(self, plan: StagePlan) -> bool:
        """Return whether a stage traverses much memory once: streamed outputs, reduced chunks."""
        if self.domain.axes[0].is_chunk_axis:
            return self.vector_axis.reduced and bool(plan.reduces)
        has_blocks = self.loops.block_axis is not None or self.loops.unrolled_axis is not None
        return bool(self.schedule.stream) and not has_blocks and not self.domain.reduced
