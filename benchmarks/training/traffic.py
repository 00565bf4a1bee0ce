"""Count the memory traffic of optimizers in NumPy's execution of the emitted kernels.

Target "blocks" interprets the statements that are printed as C++, and each load and store of an
array that kernels share goes through `CheckedBuffer`, whose elements are counted here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import define

import passkit as pk
from passkit.ast.stage import Place
from passkit.runtime.blocks.memory import CheckedBuffer
from training.optimizers import OPTIMIZERS
from training.passkit_steps import PasskitFunctions


@define
class Traffic:
    """Numbers of elements read from and written to arrays in memory."""

    loads: int = 0
    stores: int = 0

    @property
    def total(self) -> int:
        """The sum of both."""
        return self.loads + self.stores


@contextmanager
def counted() -> Iterator[Traffic]:
    """Count the traffic of kernels inside the `with` block."""
    traffic, load, store = Traffic(), CheckedBuffer.load, CheckedBuffer.store

    def shared(memory: CheckedBuffer) -> bool:
        """Return whether a memory is global, not local to a kernel."""
        return memory.buffer.place is Place.GLOBAL

    def count_load(self: CheckedBuffer, index: Any, who: Any) -> Any:
        traffic.loads += np.size(index) * shared(self)
        return load(self, index, who)

    def count_store(self: CheckedBuffer, index: Any, value: Any, who: Any) -> None:
        traffic.stores += np.size(index) * shared(self)
        store(self, index, value, who)

    CheckedBuffer.load, CheckedBuffer.store = count_load, count_store  # type: ignore[method-assign]
    try:
        yield traffic
    finally:
        CheckedBuffer.load, CheckedBuffer.store = load, store  # type: ignore[method-assign]


def optimizer_step(name: str, sizes: Sequence[int], rate: float = 0.01) -> pk.Graph:
    """Build the updates of tensors of these sizes; gradients ``g0``, ``g1``, … are fed."""
    optimizer = OPTIMIZERS[name]
    shared = {n: pk.state(n, np.float32(value)) for n, value in optimizer.shared.items()}
    updates = []
    for k, n in enumerate(sizes):
        w, g = pk.state(f"w{k}", np.zeros(n, np.float32)), pk.var(f"g{k}", (n,), "float32")
        slots = {
            s: pk.state(f"w{k}/{s}", np.full(n, value, np.float32))
            for s, value in optimizer.slots.items()
        }
        results = optimizer.rule(PasskitFunctions, rate, w, g, slots, shared)
        updates += [({"": w, **slots}[s], value) for s, value in results.items()]
    updates += [(shared[s], value) for s, value in optimizer.advance(shared).items()]
    writes = [pk.ops.assign(old, new) for old, new in updates]
    return pk.Graph([], [(w.node.inputs[0].node, w) for w in writes])


def floats_per_parameter(name: str, sizes: Sequence[int], **options: Any) -> float:
    """Return the number of floats that one step reads and writes per parameter."""
    graph = optimizer_step(name, sizes)
    exe = pk.compile(graph, target="blocks", **options)
    feeds = {f"g{k}": np.ones(n, np.float32) for k, n in enumerate(sizes)}
    with counted() as traffic:
        exe(feeds)
    return traffic.total / sum(sizes)
