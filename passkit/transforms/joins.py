"""Joins: one kernel of a reduction's chunks and of what joins their partial results.

Each block reduces a chunk and stores its partial results. The last block of those that share
results joins them, in the order of the chunks, so that no bit depends on the order of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import evolve, frozen

from passkit.ast import Binary, Expr
from passkit.ast.tidy import replace_children
from passkit.ir.index import literal, plus, times
from passkit.ir.loop import (
    Barrier,
    BarrierScope,
    Bind,
    Fence,
    If,
    KernelIR,
    LastBlock,
    LaunchShape,
    LoopBuffer,
    Stmt,
    ThreadIndex,
)
from passkit.ir.rewrite import map_all_expressions
from passkit.transforms.renaming import renamed_kernel
from passkit.values import dtype as dt

PREFIX = "join_"
"""The prefix of the names of variables and arrays of the second phase."""


@frozen
class JoinPhase:
    """A phase of a kernel that joins partial results.

    Attributes:
        kernel: the phase as a kernel of its own, in scalar form, without loops over threads.
        names: what the whole kernel calls its parameters.
    """

    kernel: KernelIR
    names: Mapping[str, str]


def joined_kernel(
    first: JoinPhase, then: JoinPhase, params: tuple[LoopBuffer, ...], joins: int, count: int
) -> KernelIR:
    """Return the kernel of two phases, the second of which the last blocks run.

    Args:
        first: the chunks. Its block ``b`` has a part of the results of the join ``b % joins``.
        then: the joins, each of which is a block of a kernel of its own.
        params: the parameters of the whole kernel.
        joins: the number of joins.
        count: the blocks of each of them.
    """
    one = renamed_kernel(first.kernel, lambda name: first.names.get(name, name))
    number_of = {n: f"n{k + len(one.sizes)}" for k, n in enumerate(then.kernel.sizes)}
    names = {**then.names, **number_of}
    two = renamed_kernel(then.kernel, lambda name: names.get(name, f"{PREFIX}{name}"))
    block = ThreadIndex(Bind.GRID)
    number: Expr = literal(0) if joins == 1 else Binary("%", block, literal(joins), dt.int64)
    change = _as_block(number, one.launch, two.launch)
    written = {b.name for k in (one, two) for b in k.params if b.written}
    last = _without_peeling(map_all_expressions(two.body, change))
    if two.launch.threads < one.launch.threads:  # a thread has a column: none waits for another
        thread = change(ThreadIndex(Bind.THREAD_X))
        last = (If(Binary("<", thread, literal(two.launch.threads), dt.bool_), last),)
    body: tuple[Stmt, ...] = (
        *one.body,
        Barrier(BarrierScope.BLOCK),
        Fence(),
        LastBlock(number, count),
        *last,
    )
    return KernelIR(
        tuple(evolve(b, written=b.name in written) for b in params),
        (*one.sizes, *two.sizes),
        (*one.arrays, *two.arrays),
        body,
        one.launch,
        max(one.index_bits, two.index_bits),
        one.aliased | two.aliased,
        counters=joins,
    )


def _without_peeling(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return statements whose branches are no peeled loops: one test of addresses is for all."""
    return tuple(evolve(s, is_peeled=False) if isinstance(s, If) else s for s in body)


def _as_block(number: Expr, launch: LaunchShape, own: LaunchShape) -> Callable[[Expr], Expr]:
    """Return the change of expressions for a block of other extents that has a number.

    Args:
        number: the number of the block.
        launch: the threads of a block of the kernel.
        own: the threads of the block that the expressions are for, as many in all.
    """
    thread: Expr = ThreadIndex(Bind.THREAD_X)
    if launch.y > 1:
        thread = plus(times(ThreadIndex(Bind.THREAD_Y), launch.x), thread)
    of_thread: dict[Bind, Expr] = {
        Bind.GRID: number,
        Bind.THREAD_X: Binary("%", thread, literal(own.x), dt.int64) if own.y > 1 else thread,
        Bind.THREAD_Y: Binary("//", thread, literal(own.x), dt.int64) if own.y > 1 else literal(0),
    }
    if (launch.y, launch.x) == (own.y, own.x):
        of_thread = {Bind.GRID: number}

    def change(x: Expr) -> Expr:
        if isinstance(x, ThreadIndex):
            return of_thread.get(x.bind, x)
        return replace_children(x, change)

    return change
