"""Mutations of kernels: a loop or index off by one, a stage or store removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import evolve

from passkit.ast import Expr, Load
from passkit.ast.stage import Dot, KernelAST, Prefetch, Stage, Statement, Store
from passkit.ast.tidy import expressions, map_statement, replace_children
from passkit.ast.walk import walk


def mutants(ast: KernelAST) -> Iterator[tuple[str, KernelAST]]:
    """Yield the name and AST of each mutation of a kernel of one part."""
    (phase,) = ast.phases
    (part,) = phase.parts
    for k, stage in enumerate(part.stages):
        assert not isinstance(stage, Dot)
        for what, changed in faults(stage):
            stages = (*part.stages[:k], *changed, *part.stages[k + 1 :])
            wrong = evolve(phase, parts=(evolve(part, stages=stages),))
            yield f"{stage.name}: {what}", evolve(ast, phases=(wrong,))


def faults(stage: Stage) -> Iterator[tuple[str, tuple[Stage, ...]]]:
    """Yield the name of each mutation of a stage, and the stages that replace it."""
    yield "is missing", ()
    for k, loop in enumerate(stage.loops):
        for what, wrong in (
            ("ends late", evolve(loop, stop=loop.stop + 1)),
            ("ends early", evolve(loop, stop=loop.stop - 1)),
            ("begins late", evolve(loop, start=loop.start + 1)),
        ):
            loops = (*stage.loops[:k], wrong, *stage.loops[k + 1 :])
            yield f"loop {loop.var.name} {what}", (evolve(stage, loops=loops),)
    for k, s in enumerate(stage.body):
        if isinstance(s, Prefetch):
            continue
        for what, changed in _of_statement(s):
            body = (*stage.body[:k], *changed, *stage.body[k + 1 :])
            yield f"statement {k} {what}", (evolve(stage, body=body),)


def _of_statement(s: Statement) -> Iterator[tuple[str, tuple[Statement, ...]]]:
    if isinstance(s, Store):
        yield "is missing", ()
        yield "stores one further", (evolve(s, index=s.index + 1),)
        yield "stores one before", (evolve(s, index=s.index - 1),)
    loads = {x for e in expressions(s) for x in walk(e) if isinstance(x, Load)}
    for load in sorted(loads, key=lambda x: x.buffer):
        for step in (1, -1):
            wrong = evolve(load, index=load.index + step)
            yield f"loads {load.buffer} {step:+} further", (map_statement(s, _swap(load, wrong)),)


def _swap(old: Expr, new: Expr) -> Callable[[Expr], Expr]:
    def change(x: Expr) -> Expr:
        return new if x == old else replace_children(x, change)

    return change
