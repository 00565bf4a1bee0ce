"""Kernels of several phases: each phase as a kernel with all buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve, fields, has

from passkit.ast.renaming import names_in
from passkit.ast.stage import Dot, Fold, KernelAST, Phase, Running, Store


def separate_phases(ast: KernelAST) -> Iterator[KernelAST]:
    """Yield the phases of a kernel, each with its scratch and the buffers that it writes."""
    for phase in ast.phases:
        names, stored = set(names_in(phase)), _stored(phase)
        yield evolve(
            ast,
            params=tuple(evolve(b, written=b.name in stored) for b in ast.params),
            scratch=tuple(b for b in ast.scratch if b.name in names),
            phases=(phase,),
        )


def _stored(phase: Phase) -> set[str]:
    """Return the buffers that a phase writes."""
    written: set[str] = set()
    todo: list[Any] = list(phase.stages)
    while todo:
        x = todo.pop()
        if isinstance(x, tuple):
            todo += x
        elif isinstance(x, Dot):
            written.add(x.c.buffer)
        elif isinstance(x, (Store, Fold, Running)):
            written |= {x.buffer} if x.buffer is not None else set()
        elif has(type(x)):
            todo += (v for f in fields(type(x)) if isinstance(v := getattr(x, f.name), tuple))
    return written
