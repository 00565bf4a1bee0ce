"""build_block: the scalar form of a stitched kernel, whose parts meet in shared memory.

A block has a tile. Operands of products that lie in device memory are copied to shared memory
first. Then the parts follow one another; `passkit.transforms.place_barriers` adds what they wait
for.
"""

from __future__ import annotations

from passkit.ast import Var
from passkit.ir.loop import (
    Bind,
    KernelIR,
    LoopBuffer,
    Stmt,
    StorageScope,
    ThreadIndex,
    index_let,
)
from passkit.schedule.block import BlockSchedule, PointMap, ProductMap, RowMap
from passkit.schedule.block_memory import (
    StagedOperand,
    staged_operands,
    unwritten_regions,
)
from passkit.schedule.block_nest import BlockNest, ProductPart, RowPart
from passkit.transforms.block_points import PointPartBuilder
from passkit.transforms.block_products import ProductBuilder
from passkit.transforms.block_rows import RowPartBuilder
from passkit.transforms.block_values import THREAD, BlockValues, unrolled
from passkit.transforms.stage_operands import fill, staging_statements
from passkit.values import dtype as dt
from passkit.values.size import Extent

TILE = Var("tile", dt.int64)


class BlockBuilder:
    """Builds the scalar form of one kernel.

    Args:
        nest: the parts of the kernel, with the pitches of the schedule.
        schedule: how the threads of a block share them out.
        aliased: the names of parameters that may share memory with another.
    """

    def __init__(self, nest: BlockNest, schedule: BlockSchedule, aliased: frozenset[str]) -> None:
        if schedule.is_flat:
            nest = nest.with_flat_arrays()
        self.nest, self.schedule = nest, schedule
        read = frozenset[str]().union(*(part.reads for part in nest.parts))
        reread = {b.name for b in nest.params if b.written} & read
        self.aliased = aliased | reread
        self.values = BlockValues(nest, schedule, self.aliased)

    def _is_late(self, operand: StagedOperand) -> bool:
        """Return whether an operand is copied at its product: in pieces, or behind other parts."""
        own = self.schedule.parts[operand.product]
        is_chunked = isinstance(own, ProductMap) and own.chunk is not None
        return is_chunked or self.values.is_shared(operand.side.operand.buffer)

    def kernel(self, index_bits: int) -> tuple[KernelIR, tuple[Extent, ...], Extent]:
        """Return the kernel, the values of its size arguments, and the number of its blocks.

        ``index_bits`` is the width of index arithmetic.
        """
        nest, schedule, values = self.nest, self.schedule, self.values
        body: list[Stmt] = [
            index_let(TILE, ThreadIndex(Bind.GRID)),
            index_let(THREAD, ThreadIndex(Bind.THREAD_X)),
        ]
        body += [index_let(x.var, values.settled(x.value)) for x in nest.lets]
        for regions in unwritten_regions(nest, schedule):
            fills = (fill(values, r) for r in regions)
            body.append(unrolled(Var("once", dt.int64), 1, *fills))
        operands = staged_operands(nest, schedule)
        early = [x for x in operands if schedule.is_early and not self._is_late(x)]
        body += staging_statements(values, early)
        for number, (part, own) in enumerate(zip(nest.parts, schedule.parts, strict=True)):
            if isinstance(part, ProductPart):
                assert isinstance(own, ProductMap)
                staged = [x for x in operands if x.product == number]
                if own.chunk is None:
                    body += staging_statements(values, [x for x in staged if x not in early])
                body += ProductBuilder(values, number, part, own, staged).statements()
            elif isinstance(part, RowPart):
                assert isinstance(own, RowMap)
                body += RowPartBuilder(values, number, part, own).statements()
            else:
                assert isinstance(own, PointMap)
                body += PointPartBuilder(values, number, part, own).statements()
        params = tuple(
            LoopBuffer(b.name, b.dtype, StorageScope.GLOBAL, b.extent, b.written)
            for b in nest.params
        )
        kernel = KernelIR(
            params,
            tuple(values.sizes.names.values()),
            tuple(values.arrays.values()),
            tuple(body),
            schedule.launch,
            index_bits,
            self.aliased,
        )
        return kernel, tuple(values.sizes.names), nest.tiles
