"""What an executable says of itself in numbers: launches, compilations, steps and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from passkit.graph.graph import Graph
from passkit.plan.kernel import Kernel
from passkit.runtime.program import Library, Python, Role, Step
from passkit.values.size import Size, evaluate, numel, symbols_of


@frozen
class Counts:
    """The kernels and steps of a planned graph, at the numbers of its sizes that are known."""

    graph: Graph = field(repr=False)
    kernels: Sequence[Kernel]
    steps: Sequence[Step]
    sizes: Mapping[str, int]

    def launches(self) -> dict[str, int]:
        """How many kernels, and what else."""
        libraries = sum(isinstance(s, Library) for s in self.steps)
        python = [s for s in self.steps if isinstance(s, Python)]
        return {
            "launches": len(self.kernels) + libraries,
            "kernels": len(self.kernels),
            "distinct_kernels": len({k.key for k in self.kernels}),
            "library_calls": libraries,
            "python_calls": len(python),
            "interpreted_calls": sum(s.role is Role.INTERPRETED for s in python),
        }

    def bytes(self) -> dict[str, int]:
        """What one run reads and writes, and what its operators would one by one; 0 if unknown.

        Of scratch, a tile of each kernel has arrays of ``scratch_requested`` bytes, all kernels
        together; they lie in ``scratch_allocated`` bytes, since arrays share.
        """
        known = [k for k in self.kernels if symbols_of(k.sizes) <= set(self.sizes)]
        pairs = [k.scratch_bytes(self.sizes) for k in known]
        return {
            "bytes_read": sum(self.number(r.nbytes) for s in self.steps for r in s.reads),
            "bytes_written": sum(self.number(r.nbytes) for s in self.steps for r in s.writes),
            "bytes_unfused": self.unfused(),
            "scratch_requested": sum(requested for requested, _ in pairs),
            "scratch_allocated": sum(allocated for _, allocated in pairs),
        }

    def number(self, size: Any) -> int:
        """A size's number, 0 where it is not known."""
        if isinstance(size, Size):
            return evaluate(size, self.sizes) if size.symbols <= set(self.sizes) else 0
        return int(size)

    def unfused(self) -> int:
        """Bytes that the operators of the groups would move, each reading and writing memory."""
        total = 0
        for group in self.graph.attrs.get("subgraph", {}).values():
            for node in group.ops:
                for e in (*node.inputs, *node.entries):
                    total += self.number(numel(e.shape)) * e.dtype.nbytes
        for step in self.steps:
            if isinstance(step, Library):
                total += sum(self.number(r.nbytes) for r in (*step.reads, *step.writes))
        return total
