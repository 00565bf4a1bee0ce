"""A driver of the emulated machine: launches, with figures as a CUDA run time chooses them."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from attrs import field, frozen

from passkit.plan.kernel import Kernel
from passkit.runtime.cuda.launch_config import launch_config, size_arguments
from passkit.values.size import evaluate
from tests.emulator.compiling import compiled, machine

MOST_SHARED = 227 << 10


class EmulatedError(Exception):
    """What the machine found about a kernel: who, where and what."""


class Order(IntEnum):
    """In which order threads and blocks get their turn; any number above is a shuffle's seed."""

    FORWARDS = 0
    BACKWARDS = 1


@frozen
class Figures:
    """How a kernel is launched: at most so many ``blocks``, which go round.

    A block has so many ``threads``, or where a tile has rows, so many ``rows`` of a warp each;
    ``order`` is that in which they run.
    """

    blocks: int = 16
    threads: int = 256
    rows: int = 8
    order: int = Order.FORWARDS

    @staticmethod
    def drawn(rng: np.random.Generator, cooperative: bool) -> Figures:
        """Figures by lot. Blocks of a cooperative launch are all there at once, so they are few."""
        blocks = int(rng.choice([1, 2, 3, 4] if cooperative else [1, 2, 3, 7, 16]))
        threads, rows = int(rng.choice([32, 64, 96, 256])), int(rng.choice([1, 2, 3, 8]))
        return Figures(blocks, threads, rows, int(rng.integers(0, 1000)))


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
class Driver:
    """Kernels that were compiled, by key, and how they are launched.

    Without ``figures`` those of each launch are drawn by ``rng``.
    """

    figures: Figures | None = None
    rng: np.random.Generator = field(factory=lambda: np.random.default_rng(0))
    libraries: dict[str, tuple[Any, str]] = field(factory=dict, repr=False)

    def prepare(self, kernels: Iterable[Kernel]) -> None:
        """Compile those that are not there, together."""
        missing = {k.key: k for k in kernels if k.key not in self.libraries}
        made = compiled(self.texts(missing.values()))
        self.libraries.update({key: (made[k.name], k.name) for key, k in missing.items()})

    def texts(self, kernels: Iterable[Kernel]) -> dict[str, str]:
        """What is compiled, by name."""
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
        wanted = self.figures or Figures.drawn(self.rng, cooperative)
        own = launch_config(
            kernel,
            sizes,
            blocks=wanted.blocks,
            threads=wanted.threads,
            rows=wanted.rows,
            usual=MOST_SHARED,
        )
        launch(
            *self.libraries[kernel.key],
            [b.name for b in kernel.ast.params],
            [*inputs, *outputs],
            len(inputs),
            size_arguments(kernel, sizes),
            grid=own.grid,
            block=own.block,
            shared=own.shared,
            cooperative=cooperative,
            order=wanted.order,
        )


def _check_restricted(kernel: Kernel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Raise EmulatedError where a result has an input's place, and the text says it has not."""
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
    """Run the kernel of this name, as a driver does. Raises: EmulatedError.

    Where results are ``filled``, a kernel need not store all of their elements.
    """
    assert all(a.flags.c_contiguous for a in arrays)
    inputs, outputs = arrays[:num_inputs], arrays[num_inputs:]
    met = [a for a in inputs if any(np.shares_memory(a, b) for b in outputs)]
    described = [
        _Array(
            a.ctypes.data,
            a.nbytes,
            a.itemsize,
            k >= num_inputs,
            filled or any(np.shares_memory(a, b) for b in met),
            names[k].encode(),
        )
        for k, a in enumerate(arrays)
        if k >= num_inputs or not any(a is b for b in met)
    ]
    given = (_Array * len(described))(*described)
    values = (ctypes.c_int64 * (len(arrays) + len(numbers)))(
        *(a.ctypes.data for a in arrays), *numbers
    )
    start, step = ctypes.addressof(values), ctypes.sizeof(ctypes.c_int64)
    pointers = (ctypes.c_void_p * len(values))(*(start + step * k for k in range(len(values))))
    text = ctypes.create_string_buffer(1000)
    wrong = machine().emulate(
        name.encode(),
        getattr(library, f"run_{name}"),
        pointers,
        given,
        len(given),
        grid,
        *block,
        ctypes.c_size_t(shared),
        cooperative,
        order,
        text,
        ctypes.c_size_t(1000),
    )
    if wrong:
        if cooperative:  # the gate of one that did not end is open
            ctypes.c_uint32.in_dll(library, f"{name}_gate").value = 0
        raise EmulatedError(text.value.decode())
