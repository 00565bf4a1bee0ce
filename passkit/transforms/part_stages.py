"""Stages of the parts of a stitched kernel, from the stages that their nests are lowered to.

The variables of a nest are replaced by their values in the part, indices become canonical sums, and
serial loops get names that no other part has. Further functions list the buffers that statements
access, and say whether several threads access one element of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from attrs import evolve

from passkit.ast import Binary, Expr, Load, Var
from passkit.ast.index import Known, Sum, expression, is_exact, normal
from passkit.ast.stage import Fold, Let, Level, Loop, Running, Stage, Statement, Store
from passkit.ast.tidy import loads_of, map_statement, replace_children
from passkit.ast.walk import has_loads, variables
from passkit.ir.index import with_literals
from passkit.ir.rewrite import substitute
from passkit.transforms.block_coordinates import BlockCoordinates, ends_of
from passkit.values import dtype as dt


def part_stages(
    number: int, stages: Sequence[Stage], values: Mapping[str, Expr], extents: Known
) -> tuple[Stage, ...]:
    """Return the stages of a part.

    Args:
        number: the number of the part.
        stages: the stages that its nest is lowered to.
        values: the values of the variables of the part, by name.
        extents: the extents of the variables along a row.
    """
    changed = (_with_loops(_with_values(s, values, extents), values) for s in stages)
    return tuple(_with_loop_names(s, f"p{number}") for s in changed)


def _with_loops(stage: Stage, values: Mapping[str, Expr]) -> Stage:
    """Return a stage with the bounds of its serial loops resolved.

    ``values`` are the values of the variables of the part, by name.
    """

    def resolved(x: Loop) -> Loop:
        if x.level is not Level.THREAD:
            return x
        start, stop = ends_of(x, values)
        limit = None if x.limit is None else with_literals(substitute(x.limit, values))
        return evolve(x, start=start, stop=stop, limit=limit)

    return evolve(stage, loops=tuple(map(resolved, stage.loops)))


def _with_values(stage: Stage, values: Mapping[str, Expr], extents: Known) -> Stage:
    """Return a stage with expressions in place of variables, and literals of known sizes.

    Indices are canonical, for variables of these extents: those of loads and stores, and in other
    expressions those that depend on no data.
    """
    computed = {s.var for s in (*stage.before, *stage.body) if isinstance(s, (Let, Fold, Running))}

    def change(x: Expr) -> Expr:
        return indexed(with_literals(substitute(x, values)))

    def indexed(x: Expr) -> Expr:
        if isinstance(x, Load):
            return Load(x.buffer, place(indexed(x.index)), x.dtype)
        if isinstance(x, Binary) and _is_index(x, computed, extents):
            return place(x)
        return replace_children(x, indexed)

    def place(x: Expr) -> Expr:
        return with_literals(expression(normal(x, extents)))

    def changed(s: Statement) -> Statement:
        s = map_statement(s, change)
        return evolve(s, index=place(s.index)) if isinstance(s, Store) else s

    return evolve(
        stage,
        before=tuple(Let(s.var, change(s.value)) for s in stage.before),
        body=tuple(changed(s) for s in stage.body),
        after=tuple(
            evolve(s, index=place(change(s.index)), value=change(s.value)) for s in stage.after
        ),
    )


def _is_index(x: Binary, computed: Set[Var], extents: Known) -> bool:
    """Return whether an expression is an index that depends on no data, and has a canonical form.

    Args:
        x: the expression.
        computed: the variables that statements define.
        extents: those of variables, by name.
    """
    if x.dtype is not dt.int64 or has_loads(x) or not computed.isdisjoint(variables(x)):
        return False
    return is_exact(x, extents)


def _with_loop_names(stage: Stage, prefix: str) -> Stage:
    """Return a stage whose serial loops have variables of its part: names are defined once.

    ``prefix`` is that of the part's names.
    """
    loops = [x for x in stage.loops if x.level is Level.THREAD]
    if not loops:
        return stage
    names = {x.var.name: Var(f"{prefix}_{x.var.name}", dt.int64) for x in loops}

    def renamed(x: Expr) -> Expr:
        return substitute(x, names)

    def with_name(x: Loop) -> Loop:
        if x.level is not Level.THREAD:
            return x
        return evolve(
            x,
            var=names[x.var.name],
            start=renamed(x.start),
            stop=renamed(x.stop),
            limit=None if x.limit is None else renamed(x.limit),
        )

    return evolve(
        stage,
        loops=tuple(map(with_name, stage.loops)),
        body=tuple(map_statement(s, renamed) for s in stage.body),
    )


def reads_of(statements: Sequence[Statement]) -> frozenset[str]:
    """Return the names of the buffers that statements load from."""
    return frozenset(x.buffer for x in loads_of(statements))


def accesses_of_part(
    statements: Sequence[Statement], tile: BlockCoordinates
) -> Iterator[tuple[str, Sum]]:
    """Yield the buffer and the index of each store, and of each load in an expression.

    Neither prefetches nor the buffers that hold partial results of reductions and scans are
    accesses here.
    """
    for s in statements:
        if isinstance(s, Store):
            yield s.buffer, tile.sum(s.index)
        for load in loads_of([s]):
            yield load.buffer, tile.sum(load.index)


def depends_on_data(index: Sum, computed: Set[Var]) -> bool:
    """Return whether an index depends on what is loaded, or on variables that are ``computed``."""
    return any(
        has_loads(atom) or not computed.isdisjoint(variables(atom)) for atom, _ in index.terms
    )


def is_of_its_thread(
    buffer: str, index: Sum, written: Mapping[str, set[Sum]], computed: Set[Var]
) -> bool:
    """Return whether a thread accesses nothing of an array that another one writes.

    Of an array that a part writes each thread reads what it writes. What a part only reads data may
    say the index of.

    Args:
        buffer: the array in shared memory.
        index: the index.
        written: the indices of the part's stores to each array.
        computed: the variables that depend on data.
    """
    stores = written.get(buffer)
    return stores is None or (stores == {index} and not depends_on_data(index, computed))


def overwritten(
    buffer: str, index: Sum, written: Mapping[str, set[Sum]], tile: BlockCoordinates
) -> frozenset[str]:
    """Return arrays that would have the same bytes, and that a part writes at another index.

    They need memory of their own. The arguments are those of `is_of_its_thread`, and the
    coordinates of the tile.
    """
    low, high = tile.place[buffer]
    names = set()
    for name, stores in written.items():
        begin, end = tile.place[name]
        if name != buffer and begin < high and low < end and stores != {index}:
            names.add(name)
    return frozenset(names)
