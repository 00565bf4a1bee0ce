"""Facts for a page: of each step what it runs, how, how fast, and why its neighbours stayed out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import asdict

from passkit.runtime.program import AliasStep, CopyStep, LaunchStep, LibraryCall
from passkit.values.size import Extent, Size, numel
from passkit.values.units import bytes_text
from passkit.viz.labels import call_text, type_text
from passkit.viz.sight import Sight
from passkit.viz.sizes import size_text

if TYPE_CHECKING:
    from passkit.graph.graph import Graph
    from passkit.graph.node import Entry, Node
    from passkit.plan.group import Decision
    from passkit.plan.kernel import Kernel
    from passkit.program.executable import Executable
    from passkit.runtime.profile import ExecutionProfile
    from passkit.runtime.program import ProgramStep

Fact = dict[str, Any]


def facts(
    run: Executable, profile: ExecutionProfile | None, sizes: Mapping[str, int]
) -> list[Fact]:
    """One fact for each step that does something, in the order of a run; JSON can hold them.

    ``sizes`` are the numbers of unknown sizes; bytes that depend on others are None.
    """
    if run.program is None:
        return []
    teller = _Teller(run.graph, profile, sizes)
    pairs = zip(run.program.steps, run.program.names, strict=True)
    found = [
        teller.fact(k, step, name)
        for k, (step, name) in enumerate(pairs)
        if not isinstance(step, AliasStep)
    ]
    teller.tell_apart(found)
    return found


class _Teller:
    def __init__(
        self, graph: Graph, profile: ExecutionProfile | None, sizes: Mapping[str, int]
    ) -> None:
        self.graph, self.profile = graph, profile
        self.sight = Sight(graph, {}, sizes)
        self.nodes = {name: node for node, name in graph.names.items()}
        self.home: dict[str, int] = {}
        """The step that computes what is called so, groups opened."""

    def fact(self, k: int, step: ProgramStep, name: str) -> Fact:
        node = self.nodes.get(name)
        fact: Fact = {"id": k, "name": name or str(step), "step": str(step)}
        fact |= {
            "bytes": self._total(step),
            "seconds": None,
            "of_copy": None,
            "threads": 1,
            "flops": 0,
        }
        if self.profile is not None:
            row, total = self.profile.rows[k], self.profile.seconds or 1.0
            fact |= {"seconds": row.seconds, "share": row.seconds / total, "bytes": row.nbytes}
            fact |= {"of_copy": row.of_copy, "threads": row.threads, "flops": row.flops}
        if isinstance(step, CopyStep) or node is None:
            return fact | {"kind": "copy", "operators": [], "reads": [], "writes": []}
        fact["kind"] = self.sight.kind(node)
        fact["reads"] = [self._value(e) for e in node.inputs]
        fact["writes"] = [self._value(e) for e in node.entries]
        fact["operators"] = self._operators(node)
        for each in (name, *(o["name"] for o in fact["operators"])):
            self.home.setdefault(each, k)
        if isinstance(step, LaunchStep):
            kernel = step.kernel
            fact["kernel"] = {"name": kernel.name, "key": kernel.key}
            fact |= self._plan(node, kernel)
        elif isinstance(step, LibraryCall):
            fact["routine"] = f"{step.routine} {step.what}"
        return fact

    def _total(self, step: ProgramStep) -> int | None:
        found = [self._number(r.nbytes) for r in (*step.reads, *step.writes)]
        return None if None in found else sum(n for n in found if n is not None)

    def _number(self, size: Extent) -> int | None:
        found = self.sight.known(size)
        return None if isinstance(found, Size) else int(found)

    def _value(self, entry: Entry) -> dict[str, str]:
        node = entry.node
        name = self.graph.names[node]
        return {
            "name": name if len(node.entries) == 1 else f"{name}:{entry.index}",
            "type": self._type(entry),
        }

    def _type(self, entry: Entry) -> str:
        """Dtype, shape and bytes, with numbers for sizes where they are known."""
        shape = tuple(map(self.sight.known, self.graph.shape(entry)))
        dtype = self.graph.dtype(entry)
        nbytes = self._number(numel(shape) * dtype.nbytes)
        text = type_text(shape, dtype)
        return text if nbytes is None else f"{text}, {bytes_text(nbytes)}"

    def _operators(self, node: Node) -> list[dict[str, str]]:
        body = node.params.get("body")
        if body is None:
            return [{"name": self.graph.names[node], "call": call_text(node)}]
        names = body.graph.names
        return [
            {"name": body.origin.get(n) or names[n], "call": call_text(n)}
            for n in body.ops
        ]

    def _plan(self, node: Node, kernel: Kernel) -> Fact:
        """How a kernel is made: in a few words, by parts, and by stages where it has no parts."""
        made = self.sight.anatomy(node)
        if made is None:  # an operator brought the kernel along
            tiles = size_text(self.sight.known(kernel.grid))
            return {"told": [("tiles", tiles)], "parts": [], "schedule": []}
        parts = [asdict(p) for p in made.parts()]
        schedule = [] if parts else [str(made.schedule), *made.stages()]
        return {"told": made.told(), "parts": parts, "schedule": schedule}

    def tell_apart(self, found: list[Fact]) -> None:
        """Give each fact the decisions that kept its neighbours out of it."""
        facts = {f["id"]: f for f in found}
        for fact in found:
            fact["apart"] = []
        for d in dict.fromkeys(map(_Told, self.graph.attrs.get("fusion_log", ()))):
            ends = self.home.get(d.decision.producer), self.home.get(d.decision.consumer)
            if d.decision.fused or ends[0] == ends[1]:
                continue
            for mine, other in (ends, ends[::-1]):
                if mine is not None:
                    facts[mine]["apart"].append({**d.as_dict(), "other": other})


class _Told:
    """A decision that equals another which says the same."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.text = str(decision)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Told) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def as_dict(self) -> dict[str, str]:
        d = self.decision
        data = ", ".join(f"{k}={v}" for k, v in d.data.items())
        return {
            "producer": d.producer,
            "consumer": d.consumer,
            "code": d.code,
            "reason": f"{d.reason} ({data})" if data else d.reason,
            "way_out": d.way_out,
        }
