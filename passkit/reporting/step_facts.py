"""The data of a report page: operators, kernel, times and refused fusions of each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import asdict

from passkit.runtime.program import AliasStep, CopyStep, LaunchStep, LibraryCall
from passkit.values.size import Extent, Size, numel
from passkit.values.units import bytes_text
from passkit.viz.labels import call_text, size_text, type_text
from passkit.viz.plan_view import PlanView

if TYPE_CHECKING:
    from passkit.analysis.group import Decision
    from passkit.graph.graph import Graph
    from passkit.graph.kernel import Kernel
    from passkit.graph.node import Entry, Node
    from passkit.program.executable import Executable
    from passkit.runtime.profile import ExecutionProfile
    from passkit.runtime.program import ProgramStep

StepFacts = dict[str, Any]
"""The facts of one step by name, as JSON can hold them."""


def step_facts(
    run: Executable, profile: ExecutionProfile | None, sizes: Mapping[str, int]
) -> list[StepFacts]:
    """Return the facts of each step except aliases, in execution order.

    Args:
        run: The executable; of one that interprets, the result is empty.
        profile: The times of its steps; without one, times are None.
        sizes: Numbers of symbolic sizes; bytes that depend on others are None.
    """
    if run.program is None:
        return []
    describer = _StepDescriber(run.graph, profile, sizes)
    pairs = zip(run.program.steps, run.program.names, strict=True)
    facts = [
        describer.describe(k, step, name)
        for k, (step, name) in enumerate(pairs)
        if not isinstance(step, AliasStep)
    ]
    describer.add_refused_fusions(facts)
    return facts


class _StepDescriber:
    """Describes the steps of a program; keeps the step that computes each named node."""

    def __init__(
        self, graph: Graph, profile: ExecutionProfile | None, sizes: Mapping[str, int]
    ) -> None:
        self.graph, self.profile = graph, profile
        self.view = PlanView(graph, {}, sizes)
        self.nodes = {name: node for node, name in graph.names.items()}
        self.step_of: dict[str, int] = {}

    def describe(self, k: int, step: ProgramStep, name: str) -> StepFacts:
        """Return the facts of step ``k``, which runs the node called ``name``; "" for a copy.

        Records in ``step_of`` which nodes it computes.
        """
        node = self.nodes.get(name)
        facts: StepFacts = {
            "id": k,
            "name": name or str(step),
            "step": str(step),
            "bytes": self._moved_bytes(step),
            "seconds": None,
            "of_copy": None,
            "threads": 1,
            "flops": 0,
        }
        if self.profile is not None:
            facts |= self._measured(k)
        if isinstance(step, CopyStep) or node is None:
            return facts | {"kind": "copy", "operators": [], "reads": [], "writes": []}
        facts["kind"] = self.view.kind(node)
        facts["reads"] = [self._value(e) for e in node.inputs]
        facts["writes"] = [self._value(e) for e in node.entries]
        facts["operators"] = self._operators(node)
        for each in (name, *(o["name"] for o in facts["operators"])):
            self.step_of.setdefault(each, k)
        if isinstance(step, LaunchStep):
            kernel = step.kernel
            facts["kernel"] = {"name": kernel.name, "key": kernel.key}
            facts |= self._kernel_facts(node, kernel)
        elif isinstance(step, LibraryCall):
            facts["routine"] = f"{step.routine} {step.sizes_text}"
        return facts

    def _measured(self, k: int) -> StepFacts:
        """Return the facts of step ``k`` that the profile, which is not None, has."""
        assert self.profile is not None
        row, total = self.profile.rows[k], self.profile.seconds or 1.0
        return {
            "seconds": row.seconds,
            "share": row.seconds / total,
            "bytes": row.nbytes,
            "of_copy": row.of_copy,
            "threads": row.threads,
            "flops": row.flops,
        }

    def _moved_bytes(self, step: ProgramStep) -> int | None:
        """Return the bytes that a step reads and writes; None if sizes are unknown."""
        total = 0
        for access in (*step.reads, *step.writes):
            number = self._number(access.nbytes)
            if number is None:
                return None
            total += number
        return total

    def _number(self, size: Extent) -> int | None:
        """Return a size as a number; None if a symbol of it is unknown."""
        resolved = self.view.resolve_size(size)
        return None if isinstance(resolved, Size) else int(resolved)

    def _value(self, entry: Entry) -> dict[str, str]:
        """Return the name and the type of a value."""
        node = entry.node
        name = self.graph.names[node]
        return {
            "name": name if len(node.entries) == 1 else f"{name}:{entry.index}",
            "type": self._type(entry),
        }

    def _type(self, entry: Entry) -> str:
        """Return dtype, shape and bytes of a value, with numbers for known sizes."""
        shape = tuple(map(self.view.resolve_size, self.graph.shape(entry)))
        dtype = self.graph.dtype(entry)
        nbytes = self._number(numel(shape) * dtype.nbytes)
        text = type_text(shape, dtype)
        return text if nbytes is None else f"{text}, {bytes_text(nbytes)}"

    def _operators(self, node: Node) -> list[dict[str, str]]:
        """Return the name and the call of each operator of a group, or of a single operator."""
        body = node.params.get("body")
        if body is None:
            return [{"name": self.graph.names[node], "call": call_text(node)}]
        names = body.graph.names
        return [{"name": body.origin.get(n) or names[n], "call": call_text(n)} for n in body.ops]

    def _kernel_facts(self, node: Node, kernel: Kernel) -> StepFacts:
        """Return the properties of ``kernel``, its parts, and its schedule if it has no parts.

        ``node`` is the node that it computes. Of a kernel that the operator brings along, only the
        number of tiles is known.
        """
        structure = self.view.kernel_structure(node)
        if structure is None:  # the operator brings the kernel along
            tiles = size_text(self.view.resolve_size(kernel.grid))
            return {"properties": [("tiles", tiles)], "parts": [], "schedule": []}
        parts = [asdict(p) for p in structure.parts()]
        schedule = [] if parts else structure.schedule_lines()
        return {"properties": structure.properties(), "parts": parts, "schedule": schedule}

    def add_refused_fusions(self, all_facts: list[StepFacts]) -> None:
        """Add to each step, as "refused", the decisions not to fuse it with a neighbour.

        The facts are changed in place; equal decisions are added once. "other" is the neighbour's
        id, None if no step computes it.
        """
        facts_of = {f["id"]: f for f in all_facts}
        for facts in all_facts:
            facts["refused"] = []
        distinct: dict[str, Decision] = {}
        for decision in self.graph.attrs.get("fusion_log", ()):
            distinct.setdefault(str(decision), decision)
        for decision in distinct.values():
            ends = self.step_of.get(decision.producer), self.step_of.get(decision.consumer)
            if decision.fused or ends[0] == ends[1]:
                continue
            for step, other in (ends, ends[::-1]):
                if step is not None:
                    facts_of[step]["refused"].append(_decision_facts(decision) | {"other": other})


def _decision_facts(decision: Decision) -> dict[str, Any]:
    """Return a decision as JSON can hold it."""
    return {
        "producer": decision.producer,
        "consumer": decision.consumer,
        "code": decision.code,
        "reason": decision.reason,
        "way_out": decision.way_out,
    }
