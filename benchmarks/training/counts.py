"""How many kernels a step is, and which of them are the optimizer's."""

from __future__ import annotations

from typing import Any

from attrs import frozen

import passkit as pk
from passkit.graph.node import CONSTANT
from passkit.graph.op import TLibraryCall
from passkit.passes.plan_memory import storage_plan
from passkit.plan.group import FUSED
from passkit.program.planning import planned
from training import Drawn, Program
from training.optimizers import OPTIMIZERS
from training.steps import training_step


@frozen
class Optimizing:
    """The kernels that write state, or compute what all writes share, such as a rate.

    ``fused`` are of several operators, of which ``distinct`` are different; ``single`` of one.
    """

    fused: int
    single: int
    distinct: int

    @property
    def launches(self) -> int:
        """All of them."""
        return self.fused + self.single


def optimizing(program: Program, drawn: Drawn, **options: Any) -> Optimizing:
    """The kernels of a program's optimizer under options of `PassContext`."""
    graph = planned(training_step(program, drawn).graph, "CodeGen", **options)
    written = {e.node for _, e in graph.updates}
    numbers = set(OPTIMIZERS[program.optimizer].shared)
    fused = [n for n in graph.nodes if n.op is FUSED]
    own = [n for n in fused if n in written or {e.node.name for e in n.inputs} <= numbers]
    whole = [n for n in own if len(n.params["body"].ops) > 1]
    keys = {graph.attrs["kernel"][n].key for n in whole}
    return Optimizing(len(whole), len(own) - len(whole), len(keys))


FUSIONS = ("none", "nnvm", "xla", "deep", "stitch")


@frozen
class Launches:
    """What a step launches: kernels, calls of libraries, and of functions in Python."""

    kernels: int
    library_calls: int
    python_calls: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.kernels + self.library_calls + self.python_calls


def launches(graph: pk.Graph, fusion: str) -> Launches:
    """What a graph launches under a strategy; what only gives bytes another shape is nothing."""
    plan = planned(graph, "CodeGen", fusion=fusion)
    aliases = {e.node for e in storage_plan(plan).aliases}
    rest = [n for n in plan.nodes
            if n.op not in (None, CONSTANT) and n not in plan.attrs["kernel"] and n not in aliases]
    library = sum(n.op is not None and TLibraryCall.get(n.op.name) is not None for n in rest)
    return Launches(len(plan.attrs["kernel"]), library, len(rest) - library)
