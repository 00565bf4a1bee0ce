"""The emulated device: compiles kernels, and launches them as the CUDA run time does."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from attrs import field, frozen

from passkit.graph.kernel import Kernel
from passkit.runtime.cuda.launch_config import launch_config, size_arguments
from passkit.values.size import evaluate
from tests.emulator.compiling import compiled, machine

COUNTERS = "counters"
"""The parameter of a kernel that has the counters of its blocks."""


class EmulatedError(Exception):
    """A fault of a kernel that the emulator found: which thread, which line, which fault."""


class ThreadOrder(IntEnum):
    """The order in which threads and blocks run; any larger number seeds a random order."""

    FORWARDS = 0
    BACKWARDS = 1


@frozen
class LaunchOptions:
    """How kernels are launched.

    Attributes:
        blocks: The most blocks of a launch, which share the tiles.
        threads: Threads of a block, for operators' own kernels.
        order: The order in which threads and blocks run.
    """

    blocks: int = 16
    threads: int = 256
    order: int = ThreadOrder.FORWARDS

    @staticmethod
    def random(rng: np.random.Generator, cooperative: bool) -> LaunchOptions:
        """Draw options. A cooperative launch has few blocks, as all of them run at once."""
        blocks = int(rng.choice([1, 2, 3, 4] if cooperative else [1, 2, 3, 7, 16]))
        threads = int(rng.choice([32, 64, 96, 256]))
        return LaunchOptions(blocks, threads, int(rng.integers(0, 1000)))


class _Array(ctypes.Structure):
    _fields_ = (
        ("at", ctypes.c_void_p),
        ("nbytes", ctypes.c_int64),
        ("item", ctypes.c_int32),
        ("stored", ctypes.c_int32),
        ("filled", ctypes.c_int32),
        ("name", ctypes.c_char_p),
    )


@frozen(eq=False)
class EmulatedDevice:
    """Compiled kernels by key, and how they are launched.

    Without ``options`` those of each launch are drawn from ``rng``.
    """

    options: LaunchOptions | None = None
    rng: np.random.Generator = field(factory=lambda: np.random.default_rng(0))
    libraries: dict[str, tuple[Any, str]] = field(factory=dict, repr=False)

    def prepare(self, kernels: Iterable[Kernel]) -> None:
        """Compile the kernels that are not compiled yet, together."""
        missing = {k.key: k for k in kernels if k.key not in self.libraries}
        libraries = compiled(self.texts(missing.values()))
        self.libraries.update({key: (libraries[k.name], k.name) for key, k in missing.items()})

    def texts(self, kernels: Iterable[Kernel]) -> dict[str, str]:
        """Return the source of each kernel by its name. Tests override this to plant faults."""
        return {k.name: k.source for k in kernels}

    def launch(
        self,
        kernel: Kernel,
        sizes: Mapping[str, int],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        """Run a kernel on arrays, for values of the graph's sizes. Raises: EmulatedError."""
        self.prepare([kernel])
        tiles = evaluate(kernel.grid, sizes)
        if tiles == 0:
            if any(a.size for a in outputs):
                raise EmulatedError(f"kernel {kernel.name} has no tile, and results")
            return
        cooperative = len(kernel.ast.phases) > 1
        _check_restricted(kernel, inputs, outputs)
        options = self.options or LaunchOptions.random(self.rng, cooperative)
        config = launch_config(kernel, sizes, blocks=options.blocks, threads=options.threads)
        names = [b.name for b in kernel.ast.params]
        arrays = [*inputs, *outputs]
        counters = np.zeros(getattr(kernel.ast, "counters", 0), np.uint32)
        if counters.size:
            names, arrays = [*names, COUNTERS], [*arrays, counters]
        launch(
            *self.libraries[kernel.key],
            names,
            arrays,
            len(inputs),
            size_arguments(kernel, sizes),
            grid=config.grid,
            block=config.block,
            shared=0,
            cooperative=cooperative,
            order=options.order,
        )
        if counters.any():
            raise EmulatedError(f"kernel {kernel.name} leaves a counter at {counters.max()}")


def _check_restricted(kernel: Kernel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Raise EmulatedError where an output shares an input's memory and either is __restrict__."""
    params = kernel.ast.params
    for i, x in enumerate(inputs):
        for o, y in enumerate(outputs, len(inputs)):
            if np.shares_memory(x, y):
                for name in (params[i].name, params[o].name):
                    if re.search(rf"__restrict__ {name}\b", kernel.source):
                        raise EmulatedError(
                            f"kernel {kernel.name}: {params[o].name} has the place of "
                            f"{params[i].name}, and the text says __restrict__ {name}"
                        )


def launch(
    library: Any,
    name: str,
    names: Sequence[str],
    arrays: Sequence[Any],
    num_inputs: int,
    numbers: Sequence[int],
    *,
    grid: int,
    block: tuple[int, int],
    shared: int,
    cooperative: bool = False,
    order: int = 0,
    filled: bool = False,
) -> None:
    """Run a kernel on the emulator.

    Args:
        library: The compiled library.
        name: The kernel's name.
        names: The names of its arrays.
        arrays: Its arrays, inputs first.
        num_inputs: The number of inputs.
        numbers: Its size arguments.
        grid: The number of blocks.
        block: The threads of a block along x and y.
        shared: Dynamic shared memory in bytes.
        cooperative: Whether its blocks wait for each other.
        order: A `ThreadOrder`, or the seed of a random order.
        filled: Whether outputs count as initialized: the kernel need not store all elements.

    Raises:
        EmulatedError: for a fault of the kernel.
    """
    assert all(a.flags.c_contiguous for a in arrays)
    inputs, outputs = arrays[:num_inputs], arrays[num_inputs:]
    overwritten = [a for a in inputs if any(np.shares_memory(a, b) for b in outputs)]
    described = [
        _Array(
            a.ctypes.data,
            a.nbytes,
            a.itemsize,
            k >= num_inputs,
            filled or names[k] == COUNTERS or any(np.shares_memory(a, b) for b in overwritten),
            names[k].encode(),
        )
        for k, a in enumerate(arrays)
        if k >= num_inputs or not any(a is b for b in overwritten)
    ]
    arrays_argument = (_Array * len(described))(*described)
    values = (ctypes.c_int64 * (len(arrays) + len(numbers)))(
        *(a.ctypes.data for a in arrays), *numbers
    )
    start, step = ctypes.addressof(values), ctypes.sizeof(ctypes.c_int64)
    pointers = (ctypes.c_void_p * len(values))(*(start + step * k for k in range(len(values))))
    text = ctypes.create_string_buffer(1000)
    is_faulty = machine().emulate(
        name.encode(),
        getattr(library, f"run_{name}"),
        pointers,
        arrays_argument,
        len(arrays_argument),
        grid,
        *block,
        ctypes.c_size_t(shared),
        cooperative,
        order,
        text,
        ctypes.c_size_t(1000),
    )
    if is_faulty:
        if cooperative:  # the gate of one that did not end is open
            ctypes.c_uint32.in_dll(library, f"{name}_gate").value = 0
        raise EmulatedError(text.value.decode())
