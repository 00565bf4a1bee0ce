"""Library steps of a device's program: the host's library, called on arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from passkit.runtime.native.launcher import launcher
from passkit.runtime.program import Library, Program, Ref
from passkit.runtime.table import Row, Table
from passkit.values.size import evaluate

Place = tuple[str, int]


def host_routine(
    step: Library, program: Program, fixed: Collection[Place], sizes: Mapping[str, int]
) -> tuple[Callable[[Sequence[Any], Any], None], list[Ref]]:
    """A function of the step's operands and the array that it fills; and which operands it takes.

    It is a program of the launcher of one step. Operands at ``fixed`` places are constants, which
    libraries lay out once.
    """
    places: dict[Place, Row] = {}
    reads: list[Ref] = []
    for ref in step.reads:
        if ref.place not in places and ref.place not in fixed:
            places[ref.place] = ("input", len(reads))
            reads.append(ref)
    (result,) = step.writes
    places[result.place] = ("output", 0)
    table = Table(
        [(f"x{k}", r.dtype, r.shape) for k, r in enumerate(reads)],
        [(result.dtype, result.shape)],
        [_moved(step.row, places)],
        *((), (), program.constants, program.target.parallel),
    )
    shapes = [tuple(evaluate(n, sizes) for n in r.shape) for r in reads]
    bound = table.bind(shapes, sizes)
    inputs = [(name, dtype.numpy.num, len(shape)) for name, dtype, shape in table.inputs]
    made = launcher().Program(inputs, 1, lambda _: bound)

    def run(arrays: Sequence[Any], filled: Any) -> None:
        made(tuple(arrays), out=[filled])

    return run, reads


def _moved(row: Row, places: Mapping[Place, Row]) -> Row:
    """A row of a `Table` whose refs are elsewhere."""
    refs = next(k for k, x in enumerate(row) if isinstance(x, list))
    return (*row[:refs], [places.get(p, p) for p in row[refs]], *row[refs + 1 :])
