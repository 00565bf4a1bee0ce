"""The training programs by name, and the rows of the table of speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from training import TrainingProgram, micro, networks

BY_NAME = {p.name: p for p in (*micro.PROGRAMS, *networks.PROGRAMS)}
BATCHES = (1, 8, 16, 32, 64)
BY_BATCH = ("lenet", "resnet-1")
"""Programs measured at each of these batch sizes."""


def named(name: str, sizes: Mapping[str, int] | None = None) -> TrainingProgram:
    """Return a program, with some of its sizes replaced.

    Raises:
        KeyError: there is no program of this name.
    """
    program = BY_NAME[name]
    return evolve(program, sizes={**program.sizes, **(sizes or {})})


def label(program: TrainingProgram) -> str:
    """Return the program's name, followed by its batch unless that is the default."""
    defaults, batch = BY_NAME[program.name].sizes, program.sizes["batch"]
    return program.name if batch == defaults["batch"] else f"{program.name}/{batch}"


def rows(names: Sequence[str], batches: Sequence[int]) -> list[TrainingProgram]:
    """Return the programs of these names at each batch; without names, all rows of the table."""
    if names:
        sizes = [{"batch": batch} for batch in batches] or [{}]
        return [named(name, size) for name in names for size in sizes]
    single_rows = [*micro.PROGRAMS, BY_NAME["transformer"]]
    return single_rows + [named(n, {"batch": b}) for n in BY_BATCH for b in batches or BATCHES]
