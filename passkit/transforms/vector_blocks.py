"""Vector loops with blocks of another loop's iterations inside them.

`interchange` and `transpose_tiles` decide where there are some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from passkit.ast import (
    Expr,
    Load,
    SizeOf,
    Var,
    size_of,
)
from passkit.ast.stage import (
    Fold,
    Let,
    Loop,
    Running,
    Stage,
    Store,
)
from passkit.ast.tidy import map_statement
from passkit.ast.walk import variables
from passkit.ir.loop import LetStmt
from passkit.ir.rewrite import combined, substitute
from passkit.ir.strides import Stride
from passkit.ir.vector import (
    BlockFor,
    PrefetchRows,
    PutRow,
    SerialFor,
    TransposedLoad,
    TransposedRow,
    TransposedStore,
    VectorDeclare,
    VectorStmt,
    WideTransposedLoad,
    high,
    low,
)
from passkit.transforms.interchange import StrideOf, interchanged_rows
from passkit.transforms.partial_results import extreme_of, memory_of, partial_variable
from passkit.transforms.transpose_tiles import (
    Block,
    block_of,
    inner_variables,
    rows_ahead,
    transposed_loads,
    transposed_stores,
    wide_block,
    with_values,
)
from passkit.transforms.vector_loop import (
    LoopVectorizer,
    first_streamed,
    interchanged_statement,
    vector_statement,
    wide_store,
)
from passkit.transforms.vector_shape import (
    LoopShape,
    loop_shape,
    vector_variables,
)
from passkit.transforms.vector_values import Divisors, VectorValues
from passkit.values import dtype as dt


def interchanged_loop(
    loops: LoopVectorizer, stage: Stage, lane: Loop, serial: Loop, shape: LoopShape
) -> list[VectorStmt]:
    """Return the vector loop with some iterations of ``serial`` inside it."""
    reductions = [s for s in stage.body if isinstance(s, Fold)]
    scans = [s for s in stage.body if isinstance(s, Running)]
    vectors = vector_variables(stage.body, lane.var)
    totals = {f.var for f in reductions} | {partial_variable(s) for s in scans}
    divisors = Divisors(loops.num_divisors)
    values = VectorValues(lane.var, vectors | totals, divisors, is_unrolled=shape.is_unrolled)
    body: list[VectorStmt] = []
    for f in reductions:
        body.append(VectorDeclare(f.var, values.splat(f.identity)))
    for s in scans:
        body.append(VectorDeclare(partial_variable(s), values.value(memory_of(s))))
    inner: list[VectorStmt] = []
    for statement in stage.body:
        inner += interchanged_statement(statement, values, vectors)
    body.append(SerialFor(serial.var, low(serial.var), high(serial.var), tuple(inner)))
    for s in scans:
        memory = memory_of(s)
        total = values.splat(partial_variable(s))
        body.append(wide_store(memory.buffer, memory.index, total, False, values))
    for f in reductions:
        memory = memory_of(f)
        total = values.splat(combined(f.combine, memory, f.var))
        body.append(wide_store(memory.buffer, memory.index, total, False, values))
    size = interchanged_rows(stage, serial, lambda f: bool(extreme_of(f)))
    out: list[VectorStmt] = []
    if not isinstance(size, SizeOf):
        name = Var(f"{serial.var.name}_turns", dt.int64)
        out.append(LetStmt(name, size))
        size = name
    loop = loops.vector_for(lane, tuple(body), shape, None)
    prepared = loops.prepare(divisors)
    return [*out, BlockFor(serial.var, serial.start, serial.stop, size, (*prepared, loop))]


def transposed_blocks(
    loops: LoopVectorizer, stage: Stage, lane: Loop, serial: Sequence[Loop], stride: StrideOf
) -> list[VectorStmt]:
    """Return the last of the serial loops and the vector loop, with blocks that are transposed.

    Returns: No statements where there are none.
    """
    if any(isinstance(s, (Fold, Running)) for s in stage.body):
        return []
    loads = transposed_loads(stage, serial[-1], stride)
    stores = transposed_stores(stage, serial[-1], stride)
    if not loads and not stores:
        return []
    wide = None if stores else wide_block(stage, lane, serial[-1], loads, stride)
    if wide is None:
        return _narrow_blocks(loops, stage, lane, serial[-1], loads, stores)
    return _wide_blocks(loops, stage, lane, loads, *wide)


def _narrow_blocks(
    loops: LoopVectorizer,
    stage: Stage,
    lane: Loop,
    serial: Loop,
    loads: Mapping[Load, Stride],
    stores: Sequence[Store],
) -> list[VectorStmt]:
    """Return the vector loop with blocks of iterations of ``serial`` inside it.

    The outer loop of both is the one over blocks, or the vector loop, as the stage says.
    """
    block = block_of(serial)
    rows = {x: Var(f"{x.buffer}_turned_{k}", x.dtype) for k, x in enumerate(loads)}
    written = {s.buffer for s in stores}
    statements = [map_statement(s, lambda x: with_values(x, rows)) for s in stage.body]
    vectors = {*vector_variables(stage.body, lane.var), *rows.values()}
    for s in statements:
        if isinstance(s, Let) and not vectors.isdisjoint(variables(s.value)):
            vectors.add(s.var)
    divisors = Divisors(loops.num_divisors)
    inner_names = inner_variables(serial, statements)
    values = VectorValues(lane.var, frozenset(vectors), divisors, inner=inner_names)
    body: list[VectorStmt] = []
    if any(map(block.transposes, loads.values())):
        stride = VectorValues(lane.var, vector_variables(stage.body, lane.var), None).stride
        for x, distance in rows_ahead(stage, serial, stride).items():
            body.append(PrefetchRows(x.buffer, block.index(x.index), distance, block.count))
    for x, distance in loads.items():
        index, is_dense = block.index(x.index), not block.transposes(distance)
        body.append(
            TransposedLoad(rows[x].name, x.dtype, x.buffer, index, distance, block.count, is_dense)
        )
    body += [TransposedStore(s.buffer, s.value.dtype, block.count, None) for s in stores]
    inner: list[VectorStmt] = [TransposedRow(row, row.name, block.place) for row in rows.values()]
    for s in statements:
        if isinstance(s, Store) and s.buffer in written:
            inner.append(PutRow(s.buffer, block.place, values.splat(s.value)))
        elif isinstance(s, Let) and s.var not in vectors:
            inner.append(LetStmt(s.var, s.value))
        else:
            inner += vector_statement(s, values, is_once=False)
    first = low(serial.var) if block.length is None else serial.start
    body.append(SerialFor(serial.var, first, block.stop, tuple(inner)))
    body += [
        TransposedStore(s.buffer, s.value.dtype, block.count, block.index(s.index)) for s in stores
    ]
    is_vector_outside = stage.loops.index(lane) < stage.loops.index(serial)
    at_first = serial.start if is_vector_outside else block.first
    streamed = [
        evolve(s, index=substitute(s.index, {serial.var.name: at_first}))
        for s in statements
        if isinstance(s, Store) and s.buffer not in written
    ]
    shape, aligned = LoopShape(loops.features.width), first_streamed(streamed, lane)

    def blocks(inside: Sequence[VectorStmt]) -> list[VectorStmt]:
        if block.length is not None:
            return list(inside)
        size = size_of(block.size)
        return [BlockFor(serial.var, serial.start, serial.stop, size, tuple(inside))]

    prepared = loops.prepare(divisors)
    if is_vector_outside:
        loop = loops.vector_for(lane, tuple(blocks(body)), shape, aligned)
        return [*prepared, loop]
    return blocks([*prepared, loops.vector_for(lane, tuple(body), shape, aligned)])


def _wide_blocks(
    loops: LoopVectorizer,
    stage: Stage,
    lane: Loop,
    loads: Mapping[Load, Stride],
    block: Block,
    width: int,
) -> list[VectorStmt]:
    """Return loops over blocks of iterations and of points, in which whole rows are read."""
    first, end = low(lane.var), high(lane.var)
    place = (block.serial.var - block.first) * width + (lane.var - first)
    arrays: dict[Load, Expr] = {}
    body: list[VectorStmt] = []
    for k, (x, stride) in enumerate(loads.items()):
        name = f"{x.buffer}_rows_{k}"
        index = block.index(substitute(x.index, {lane.var.name: first}))
        body.append(
            WideTransposedLoad(
                name,
                x.dtype,
                x.buffer,
                index,
                stride,
                block.count,
                block.size,
                end - first,
                width,
            )
        )
        arrays[x] = Load(name, place, x.dtype)
    statements = [map_statement(s, lambda x: with_values(x, arrays)) for s in stage.body]
    inner = evolve(lane, start=first, stop=end)
    own = evolve(stage, loops=(inner,), body=tuple(statements))
    shape = loop_shape(own, inner, loops.features)
    var = block.serial.var
    rows = tuple(loops.vector_loop(statements, own, inner, shape))
    body.append(SerialFor(var, low(var), high(var), rows))
    points = BlockFor(lane.var, lane.start, lane.stop, size_of(width), tuple(body))
    serial = block.serial
    return [BlockFor(var, serial.start, serial.stop, size_of(block.size), (points,))]
