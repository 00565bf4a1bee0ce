"""SharedMemPlan: allocate the scratch arrays in which the stages of a kernel keep values."""

from __future__ import annotations

from passkit.graph.graph import Annotation, Graph
from passkit.passes.base import register_pass
from passkit.schedule.shared_plan import plan_shared


@register_pass(
    "SharedMemPlan",
    depends=("subgraph", "schedule"),
    provides=("shared",),
    target_dependent=True,
)
def shared_mem_plan(graph: Graph) -> Graph:
    """Annotate each fused node with its `SharedPlan`: arrays and offsets, in bytes of a tile."""
    groups, schedules = graph.attrs["subgraph"], graph.attrs["schedule"]
    plans = {n: plan_shared(g, schedules[n]) for n, g in groups.items()}
    return graph.with_attrs(shared=Annotation("shared", plans))
