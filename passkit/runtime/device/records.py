"""Records of programs: what the launcher in C needs to enqueue one for known shapes by itself.

A program has a record where a call on arrays of the device only launches kernels: it has no step on
the host or in a library, and copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from passkit.runtime.device.call_memory import ArrayKey
from passkit.runtime.device.launcher import Pool, Record
from passkit.runtime.device.variables import DeviceVariables
from passkit.runtime.state import State

MAX_RANK = 8  # launcher.c has the same
REPLAYS = "graph_replays"
"""The statistic of a program that counts launches of graphs."""
CONSTANT = -1
"""The base of a word that is a number."""
WORD = (1 << 64) - 1


@frozen
class ResidentLaunch:
    """A launch of a kernel on memory of the device.

    Attributes:
        function: The driver's handle of the kernel.
        grid: The blocks along three axes, in OpenCL the work-items.
        block: The threads of a block along three axes, in OpenCL the work-items of a group.
        words: The arguments: arrays by their keys, and numbers. In OpenCL those that are numbers
            are set already.
        num_dims: The axes that count.
        shared: Dynamic shared memory in bytes.
        cooperative: Whether the blocks wait for each other.
    """

    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    words: Sequence[ArrayKey | int]
    num_dims: int = 1
    shared: int = 0
    cooperative: bool = False


@frozen
class ResidentProgram:
    """The launches of a program, bound to sizes, whose arrays are on the device.

    Attributes:
        driver: The launcher's `DriverCalls`.
        launches: The launches, in order.
        temporaries: The bytes of blocks that only the call uses.
        places: The block of ``temporaries`` in which an array is, and its offset there in bytes.
        build_graph: Returns a graph's handle, and an object that it lives with, for the addresses
            of all inputs, outputs and temporaries; None for no graph. See `graph_launches`.
    """

    driver: Any
    launches: Sequence[ResidentLaunch]
    temporaries: Sequence[int]
    places: Mapping[ArrayKey, tuple[int, int]]
    build_graph: Callable[[tuple[int, ...]], tuple[int, Any] | None] | None = None


def record_of(
    program: ResidentProgram,
    pool: Pool,
    array_type: type,
    device: Any,
    shapes: Sequence[tuple[int, ...]],
    results: Sequence[tuple[Any, tuple[int, ...], int]],
    fixed: Mapping[ArrayKey, int],
    owner: Any,
    variables: DeviceVariables | None = None,
    state: State | None = None,
) -> Any | None:
    """Return the launcher's record of a program.

    Args:
        program: The launches.
        pool: What blocks are taken from.
        array_type: The type of the device's arrays, of which results are created.
        device: The device that these have.
        shapes: The shape of each input.
        results: The NumPy dtype, shape and bytes of each result.
        fixed: The addresses of constants and variables.
        owner: What must live as long as the record.
        variables: The variables that the program uses; None for none.
        state: Their state; None without variables.

    Returns: None where an array has too many axes, or a launch needs an array that has no address.
    """
    if any(len(shape) > MAX_RANK for shape in (*shapes, *(shape for _, shape, _ in results))):
        return None
    bases = _bases(program, len(shapes), len(results))
    launches = []
    for launch in program.launches:
        words = []
        for word in launch.words:
            if isinstance(word, int):
                words.append((CONSTANT, word & WORD))
            elif word in bases:
                words.append(bases[word])
            elif word in fixed:
                words.append((CONSTANT, fixed[word]))
            else:
                return None
        head = (launch.function, launch.num_dims, launch.grid, launch.block)
        launches.append((*head, launch.shared, launch.cooperative, tuple(words)))
    return Record(
        program.driver,
        pool,
        array_type,
        device,
        tuple(shapes),
        tuple(results),
        tuple(program.temporaries),
        tuple(launches),
        owner,
        variables,
        None if state is None or variables is None else state.lock,
        program.build_graph,
    )


def _bases(
    program: ResidentProgram, num_inputs: int, num_outputs: int
) -> dict[ArrayKey, tuple[int, int]]:
    """Return the base, and the offset from it, of each array whose address depends on the call.

    Bases count inputs first, then outputs, then the program's temporaries.
    """
    bases: dict[ArrayKey, tuple[int, int]] = {("input", k): (k, 0) for k in range(num_inputs)}
    bases |= {("output", k): (num_inputs + k, 0) for k in range(num_outputs)}
    first = num_inputs + num_outputs
    return bases | {key: (first + k, offset) for key, (k, offset) in program.places.items()}


def graph_words(
    program: ResidentProgram,
    num_inputs: int,
    num_outputs: int,
    fixed: Mapping[ArrayKey, int],
    addresses: Sequence[int],
) -> list[tuple[int, ...]]:
    """Return the arguments of each launch as numbers, for the addresses that a graph is built for.

    ``addresses`` are those of all inputs, outputs and temporaries; the others are as in
    `record_of`.
    """
    bases = _bases(program, num_inputs, num_outputs)

    def number(word: ArrayKey | int) -> int:
        """Return an argument as a number."""
        if isinstance(word, int):
            return word
        if word in bases:
            base, offset = bases[word]
            return addresses[base] + offset
        return fixed[word]

    return [tuple(map(number, launch.words)) for launch in program.launches]
