"""Size arguments: larger extents of a kernel become arguments, so that shapes share its text."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from passkit.ast import Cast, Const, Expr, Fixed, SizeOf, Var, const, size_of
from passkit.ast.stage import Dot, KernelAST, Let, Loop, Matrix, Part, Phase, Stage, Store
from passkit.ast.tidy import map_statement, replace_children
from passkit.values import dtype as dt
from passkit.values.size import Extent, Size

MAX_LITERAL_EXTENT = 64
"""Extents up to this are written into the kernel; larger ones are arguments."""


def argument(size: Extent) -> Expr:
    """An extent that is always an argument of the kernel, so that batches share one text."""
    return size_of(size, Fixed.ARGUMENT)


def pool_sizes(ast: KernelAST) -> tuple[KernelAST, tuple[Extent, ...]]:
    """The AST with its larger extents as size arguments ``n0``, ``n1``, …, and their values.

    Shapes that differ only in such extents then have one text, and one compiled kernel.
    """
    pool: dict[Extent, Var] = {}

    def swap(x: Expr) -> Expr:
        if not isinstance(x, SizeOf):
            made = replace_children(x, swap)
            if isinstance(x, Cast) and isinstance(x.x, SizeOf) and isinstance(made, Cast):
                # A count that is known divides as any number does, by a reciprocal that is known.
                return const(made.x.value, made.dtype) if isinstance(made.x, Const) else made
            return made
        small = isinstance(x.size, int) and (
            x.fixed is Fixed.LITERAL or x.size <= MAX_LITERAL_EXTENT
        )
        if x.fixed is Fixed.ARGUMENT or not small:
            return pool.setdefault(x.size, Var(f"n{len(pool)}", dt.int64))
        return const(x.size, dt.int64)

    def argument_of(extent: Extent) -> Extent:
        if isinstance(extent, int):
            return extent
        return Size.symbol(pool.setdefault(extent, Var(f"n{len(pool)}", dt.int64)).name)

    phases = tuple(_map_phase(p, swap) for p in ast.phases)
    scratch = []
    for b in ast.scratch:
        extent = argument_of(b.extent)
        begin = None if b.offset is None else argument_of(b.offset)
        scratch.append(evolve(b, extent=extent, offset=begin))
    names = tuple(v.name for v in pool.values())
    return evolve(ast, phases=phases, scratch=tuple(scratch), sizes=names), tuple(pool)


def _map_phase(phase: Phase, change: Callable[[Expr], Expr]) -> Phase:
    """A phase with ``change`` applied to all its expressions."""

    def loop(x: Loop) -> Loop:
        limit = None if x.limit is None else change(x.limit)
        return Loop(x.var, change(x.start), change(x.stop), x.level, limit, x.wide, x.down)

    def let(x: Let) -> Let:
        return Let(x.var, change(x.value))

    def matrix(x: Matrix) -> Matrix:
        return Matrix(x.buffer, change(x.start), change(x.down), change(x.along))

    def stage(x: Stage | Dot) -> Stage | Dot:
        if isinstance(x, Dot):
            a, b, c = map(matrix, (x.a, x.b, x.c))
            loops = tuple(map(loop, x.loops))
            return Dot(
                x.name,
                loops,
                a,
                b,
                c,
                change(x.m),
                change(x.n),
                change(x.k),
                x.dtype,
                x.barrier_before,
            )
        body = tuple(map_statement(s, change) for s in x.body)
        before = tuple(map(let, x.before))
        after = tuple(Store(s.buffer, change(s.index), change(s.value)) for s in x.after)
        return Stage(x.name, tuple(map(loop, x.loops)), body, before, after, x.barrier_before)

    def part(x: Part) -> Part:
        rows = None if x.rows is None else loop(x.rows)
        around, inside = tuple(map(let, x.lets)), tuple(map(let, x.row_lets))
        stages = tuple(map(stage, x.stages))
        span = None if x.span is None else (change(x.span[0]), change(x.span[1]))
        return Part(around, rows, inside, stages, x.barrier_before, span)

    parts = tuple(map(part, phase.parts))
    return Phase(loop(phase.tile), parts)
