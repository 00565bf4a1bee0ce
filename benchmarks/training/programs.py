"""The training programs by name, and the rows of the table of speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from training import Program, micro, networks

BY_NAME = {p.name: p for p in (*micro.PROGRAMS, *networks.PROGRAMS)}
BATCHES = (1, 8, 16, 32, 64)
BY_BATCH = ("lenet", "resnet-1")
"""What is measured at each of those, beside the micro-benchmarks and the transformer."""


def named(name: str, sizes: Mapping[str, int] | None = None) -> Program:
    """A program, at its own sizes or some others. Raises: KeyError."""
    program = BY_NAME[name]
    return evolve(program, sizes={**program.sizes, **(sizes or {})})


def label(program: Program) -> str:
    """Its name, and its batch where that is not its own."""
    own, batch = BY_NAME[program.name].sizes, program.sizes["batch"]
    return program.name if batch == own["batch"] else f"{program.name}/{batch}"


def rows(names: Sequence[str], batches: Sequence[int]) -> list[Program]:
    """The programs of these names at each batch, or all that is promised to be quick."""
    if names:
        sizes = [{"batch": batch} for batch in batches] or [{}]
        return [named(name, size) for name in names for size in sizes]
    found = [*micro.PROGRAMS, BY_NAME["transformer"]]
    return found + [named(n, {"batch": b}) for n in BY_BATCH for b in batches or BATCHES]
