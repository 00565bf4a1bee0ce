"""The kernels of plans: which operations share a kernel, and why.

Executables of plans know operations by the names of operators, and plans from disk are not planned
in this process. So the operations of a plan are planned again, with names of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Context
from functools import cached_property
from typing import TYPE_CHECKING

from passkit.graph.op import FInplaceIdentity, TLibraryCall
from passkit.program.planning import planned
from passkit.reasons import explanation
from passkit.streams.plan import node_name

if TYPE_CHECKING:
    from passkit.graph.graph import Graph
    from passkit.graph.node import Node
    from passkit.program.executable import Executable
    from passkit.reasons.explanation import Explanation
    from passkit.streams.device import StreamDevice
    from passkit.streams.plan import Plan


class PlanDetails:
    """The kernels of a plan that writes certain results, with their operations.

    Args:
        plan: the plan.
        outputs: positions of the operations whose results it writes.
        dims: the extents by symbol, if the plan serves these only; else None.
        executable: the compiled plan.
        device: the device that it runs on; None for the CPU.
    """

    def __init__(
        self,
        plan: Plan,
        outputs: tuple[int, ...],
        dims: tuple[int, ...] | None,
        executable: Executable,
        device: StreamDevice | None = None,
    ) -> None:
        self._plan, self._outputs, self._dims = plan, outputs, dims
        self._executable, self._device = executable, device

    @cached_property
    def graph(self) -> Graph:
        """The planned graph, in which nodes have the names of operations in ``xp``."""
        graph, _ = self._plan.graph(self._outputs, self._dims, has_names=True)
        # As for executables of plans, no context of the caller applies.
        if self._device is not None:
            planned_graph: Graph = self._device.explained(planned, graph, "CodeGen")
            return planned_graph
        return Context().run(planned, graph, "CodeGen")

    @cached_property
    def groups(self) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
        """The kernels and library calls in order: kind of work, name, and positions of operations.

        Positions are those in the plan, sorted. The kind is that of a group's body, "library",
        "own" for an operator with a kernel of its own, or "NumPy". Nodes that only view their input
        are left out.
        """
        position_of = {
            node_name(operation.name, k): k for k, (operation, *_) in enumerate(self._plan.keys)
        }
        graph = self.graph
        kernels: Mapping[Node, object] = graph.attrs.get("kernel", {})
        groups = []
        for node in graph.nodes:
            if node.op is None or node.op.name == "constant":
                continue
            body = node.params.get("body")
            if body is not None:
                kind, names = body.kind.value, [body.called(n) for n in body.ops]
            else:
                names = [graph.names[node]]
                kind = _kind_of_operator(node, node in kernels)
            heads = [name.partition("/")[0] for name in names]
            positions = sorted({position_of[name] for name in heads if name in position_of})
            title = getattr(kernels.get(node), "name", None) or node.op.name
            if kind:
                groups.append((kind, title, tuple(positions)))
        return tuple(groups)

    def explain(self, name: str | None) -> Explanation:
        """Return the decision about each edge, or, unless None, about those at the node ``name``.

        Nodes are called after operations, such as "multiply_2".

        Raises: GraphError if no node has this name.
        """
        return explanation.explain(self.graph, name, lambda graph: graph)


def _kind_of_operator(node: Node, has_kernel: bool) -> str:
    """Return the kind of work of a node that is no group, by its operator.

    It is "library" for a library call, "own" if it has a kernel, "" for one whose result is another
    view of its input, else "NumPy".
    """
    assert node.op is not None
    if TLibraryCall.get(node.op.name):
        return "library"
    if has_kernel:
        return "own"
    return "" if FInplaceIdentity.get(node.op.name) else "NumPy"
