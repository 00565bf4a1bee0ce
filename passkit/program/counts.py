"""Counts of a compiled program for `Executable.stats`: launches, compilations, steps and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from passkit.graph.graph import Graph
from passkit.graph.kernel import Kernel
from passkit.runtime.program import LibraryCall, ProgramStep, PythonCall, PythonCallKind
from passkit.values.size import Size, known_or_zero, numel, symbols_of


@frozen
class ProgramCounts:
    """Counts the kernels and steps of a planned graph, at the values of its sizes known so far."""

    graph: Graph = field(repr=False)
    kernels: Sequence[Kernel]
    steps: Sequence[ProgramStep]
    sizes: Mapping[str, int]

    def launches(self) -> dict[str, int]:
        """Return the number of steps of each kind, by the names in `Executable.stats`.

        The kinds are "launches" (kernels and library calls), "kernels", "distinct_kernels",
        "library_calls", "python_calls" and, of these, "interpreted_calls".
        """
        libraries = sum(isinstance(s, LibraryCall) for s in self.steps)
        python = [s for s in self.steps if isinstance(s, PythonCall)]
        return {
            "launches": len(self.kernels) + libraries,
            "kernels": len(self.kernels),
            "distinct_kernels": len({k.key for k in self.kernels}),
            "library_calls": libraries,
            "python_calls": len(python),
            "interpreted_calls": sum(s.kind is PythonCallKind.INTERPRETED for s in python),
        }

    def bytes(self) -> dict[str, int]:
        """Return the bytes that one run moves, those of its operators one by one, and of scratch.

        They are given by the names in `Executable.stats`. Arrays of unknown size, and of one that
        divides by zero, count 0.
        """
        sized = [k for k in self.kernels if symbols_of(k.sizes) <= set(self.sizes)]
        scratch = [k.scratch_bytes(self.sizes) for k in sized]
        return {
            "bytes_read": sum(self._number(r.nbytes) for s in self.steps for r in s.reads),
            "bytes_written": sum(self._number(r.nbytes) for s in self.steps for r in s.writes),
            "bytes_unfused": self._bytes_unfused(),
            "scratch_requested": sum(requested for requested, _ in scratch),
            "scratch_allocated": sum(allocated for _, allocated in scratch),
        }

    def _number(self, size: Any) -> int:
        """Return the value of a size, an int or a Size.

        It is 0 if a symbol of the size is unknown, or the size divides by zero.
        """
        if isinstance(size, Size):
            return known_or_zero(size, self.sizes) if size.symbols <= set(self.sizes) else 0
        return int(size)

    def _bytes_unfused(self) -> int:
        """Return the bytes that operators would move if each read and wrote memory.

        These are the operators in groups, and library calls; steps in Python count 0, as do arrays
        of unknown size.
        """
        total = 0
        for group in self.graph.attrs.get("subgraph", {}).values():
            for node in group.ops:
                for e in (*node.inputs, *node.entries):
                    total += self._number(numel(e.shape)) * e.dtype.nbytes
        for step in self.steps:
            if isinstance(step, LibraryCall):
                total += sum(self._number(r.nbytes) for r in (*step.reads, *step.writes))
        return total
