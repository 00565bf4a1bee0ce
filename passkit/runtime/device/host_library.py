"""Library steps of a device's program that run on the host, with the host's library."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from passkit.runtime.device.call_memory import ArrayKey
from passkit.runtime.native.launcher import launcher
from passkit.runtime.program import ArrayRef, LibraryCall, RuntimeProgram
from passkit.runtime.table import ProgramTable
from passkit.runtime.table_binder import TableEntry
from passkit.values.size import evaluate

HostRoutine = Callable[[Sequence[Any], Any], None]
"""Called with the operands and the array to fill."""


def host_routine(
    step: LibraryCall,
    program: RuntimeProgram,
    constants: Collection[ArrayKey],
    sizes: Mapping[str, int],
) -> tuple[HostRoutine, list[ArrayRef]]:
    """Return a function that runs a library step on the host, and the operands that it takes.

    The function is a native program of this one step. It takes a host array for each operand, in
    that order, and the host array to fill with the result.

    Args:
        step: The step.
        program: The program that it belongs to.
        constants: The keys of constants: the library packs them once, and they are no operands.
        sizes: The value of each symbolic size.

    Returns:
        The function, and the references of its operands, each listed once.

    Raises:
        ShapeError: A symbolic size has no value.
        CompilerError, CacheError, SettingError: The launcher, or the unit of convolutions, cannot
            be compiled or loaded.
    """
    keys: dict[ArrayKey, TableEntry] = {}
    reads: list[ArrayRef] = []
    for ref in step.reads:
        if ref.key not in keys and ref.key not in constants:
            keys[ref.key] = ("input", len(reads))
            reads.append(ref)
    (result,) = step.writes
    keys[result.key] = ("output", 0)
    table = ProgramTable(
        [(f"x{k}", ref.dtype, ref.shape) for k, ref in enumerate(reads)],
        [(result.dtype, result.shape)],
        [_with_keys(step.table_entry, keys)],
        (),
        (),
        (-1,),
        program.constants,
        program.target.parallel,
    )
    shapes = [tuple(evaluate(n, sizes) for n in ref.shape) for ref in reads]
    bound = table.bind(shapes, sizes)
    inputs = [(name, dtype.numpy.num, len(shape)) for name, dtype, shape in table.inputs]
    native_program = launcher().Program(inputs, 1, lambda _: bound)

    def run(arrays: Sequence[Any], result_array: Any) -> None:
        """Run the call on an array for each of ``reads``; fill ``result_array``."""
        native_program(tuple(arrays), out=[result_array])

    return run, reads


def _with_keys(row: TableEntry, keys: Mapping[ArrayKey, TableEntry]) -> TableEntry:
    """Return a copy of a table entry, ``row``, with the operands' keys replaced as ``keys`` says.

    Operands that are not in ``keys`` stay as they are.
    """
    refs = next(k for k, x in enumerate(row) if isinstance(x, list))
    return (*row[:refs], [keys.get(key, key) for key in row[refs]], *row[refs + 1 :])
