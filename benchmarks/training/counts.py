"""Count the kernels of a step, and those of its optimizer."""

from __future__ import annotations

from typing import Any

from attrs import frozen

import passkit as pk
from passkit.analysis.group import FUSED
from passkit.graph.node import CONSTANT
from passkit.graph.op import TLibraryCall
from passkit.passes.plan_memory import storage_plan
from passkit.program.planning import planned
from training import ProgramInputs, TrainingProgram
from training.optimizers import OPTIMIZERS
from training.passkit_steps import training_step


@frozen
class OptimizerKernels:
    """Counts of the kernels that write state, or compute a value shared by all writes.

    Attributes:
        fused: kernels of several operators.
        single: kernels of one operator.
        distinct: different kernels among the fused ones.
    """

    fused: int
    single: int
    distinct: int

    @property
    def launches(self) -> int:
        """The number of all kernels."""
        return self.fused + self.single


def optimizing(program: TrainingProgram, drawn: ProgramInputs, **options: Any) -> OptimizerKernels:
    """Count the kernels of a program's optimizer, under options of `PassContext`."""
    graph = planned(training_step(program, drawn).graph, "CodeGen", **options)
    written = {e.node for _, e in graph.updates}
    shared_names = set(OPTIMIZERS[program.optimizer].shared)
    fused = [n for n in graph.nodes if n.op is FUSED]
    kernels = [n for n in fused if n in written or {e.node.name for e in n.inputs} <= shared_names]
    several = [n for n in kernels if len(n.params["body"].ops) > 1]
    keys = {graph.attrs["kernel"][n].key for n in several}
    return OptimizerKernels(len(several), len(kernels) - len(several), len(keys))


FUSIONS = ("none", "nnvm", "xla", "deep", "stitch")


@frozen
class LaunchCounts:
    """Launches of a step: kernels, library calls, and calls of Python functions."""

    kernels: int
    library_calls: int
    python_calls: int

    @property
    def total(self) -> int:
        """The sum."""
        return self.kernels + self.library_calls + self.python_calls


def launches(graph: pk.Graph, fusion: str) -> LaunchCounts:
    """Count the launches of a graph under a fusion strategy; reshapes of memory do not count."""
    plan = planned(graph, "CodeGen", fusion=fusion)
    aliases = {e.node for e in storage_plan(plan).aliases}
    rest = [
        n
        for n in plan.nodes
        if n.op not in (None, CONSTANT) and n not in plan.attrs["kernel"] and n not in aliases
    ]
    library = sum(n.op is not None and TLibraryCall.get(n.op.name) is not None for n in rest)
    return LaunchCounts(len(plan.attrs["kernel"]), library, len(rest) - library)
