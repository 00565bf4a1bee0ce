"""Size arguments: larger extents are arguments of a kernel, so that shapes share its text."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from passkit.ast import Cast, Const, Expr, Fixed, SizeOf, Var, const, size_of
from passkit.ast.stage import Dot, KernelAST, Let, Loop, Matrix, Part, Phase, Stage, Store
from passkit.ast.tidy import map_statement, replace_children
from passkit.values import dtype as dt
from passkit.values.size import Extent, Size

MAX_LITERAL_EXTENT = 64
"""The largest extent that is a literal in the text of a kernel; larger ones are arguments."""


def argument(size: Extent) -> Expr:
    """Return an extent that is an argument of the kernel, even if small: batches share a text."""
    return size_of(size, Fixed.ARGUMENT)


def pool_sizes(ast: KernelAST) -> tuple[KernelAST, tuple[Extent, ...]]:
    """Return the AST with its larger extents as size arguments ``n0``, ``n1``, …, and their values.

    Shapes that differ only in such extents then have one text, and one compiled kernel.
    """
    pool: dict[Extent, Var] = {}

    def argument_of(extent: Extent) -> Var:
        """Return the argument that has an extent as its value."""
        return pool.setdefault(extent, Var(f"n{len(pool)}", dt.int64))

    def with_arguments(x: Expr) -> Expr:
        """Return an expression with arguments and literals in place of extents."""
        if isinstance(x, SizeOf):
            is_small = isinstance(x.size, int) and (
                x.fixed is Fixed.LITERAL or x.size <= MAX_LITERAL_EXTENT
            )
            if x.fixed is Fixed.ARGUMENT or not is_small:
                return argument_of(x.size)
            return const(x.size, dt.int64)
        new = replace_children(x, with_arguments)
        if isinstance(x, Cast) and isinstance(x.x, SizeOf) and isinstance(new, Cast):
            # A literal of the cast's dtype: divisions by it become products with its reciprocal.
            return const(new.x.value, new.dtype) if isinstance(new.x, Const) else new
        return new

    def symbol_of(extent: Extent) -> Extent:
        """Return an extent with the argument in place of a symbolic one."""
        return extent if isinstance(extent, int) else Size.symbol(argument_of(extent).name)

    phases = tuple(_map_phase(p, with_arguments) for p in ast.phases)
    scratch = []
    for b in ast.scratch:
        extent = symbol_of(b.extent)
        offset = None if b.offset is None else symbol_of(b.offset)
        scratch.append(evolve(b, extent=extent, offset=offset))
    names = tuple(v.name for v in pool.values())
    return evolve(ast, phases=phases, scratch=tuple(scratch), sizes=names), tuple(pool)


def _map_phase(phase: Phase, change: Callable[[Expr], Expr]) -> Phase:
    """Return a phase with a function applied to all its expressions."""

    def loop(x: Loop) -> Loop:
        """Return a loop with the function applied."""
        limit = None if x.limit is None else change(x.limit)
        return Loop(x.var, change(x.start), change(x.stop), x.level, limit, x.wide, x.down)

    def let(x: Let) -> Let:
        """Return a local variable with the function applied."""
        return Let(x.var, change(x.value))

    def matrix(x: Matrix) -> Matrix:
        """Return an operand of a product with the function applied."""
        return Matrix(x.buffer, change(x.start), change(x.down), change(x.along))

    def stage(x: Stage | Dot) -> Stage | Dot:
        """Return a stage or a product with the function applied."""
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
        """Return a part with the function applied."""
        rows = None if x.rows is None else loop(x.rows)
        around, inside = tuple(map(let, x.lets)), tuple(map(let, x.row_lets))
        stages = tuple(map(stage, x.stages))
        span = None if x.span is None else (change(x.span[0]), change(x.span[1]))
        return Part(around, rows, inside, stages, x.barrier_before, span)

    parts = tuple(map(part, phase.parts))
    return Phase(loop(phase.tile), parts)
