"""Partitions: which nodes go together, and the log of why."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.graph.op import (
    FCodeGen,
    FContract,
    FElement,
    FKernel,
    FReduce,
    FScan,
    OpPattern,
    TLibraryCall,
    TOpPattern,
    TStateful,
)
from passkit.plan.group import Decision
from passkit.plan.target import Target
from passkit.space.space import is_free

KINDS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NATIVE = frozenset((*KINDS, "float16", "bfloat16", "float32", "float64"))
"""The dtypes that kernels compute with."""


@define(eq=False)
class Partition:
    """Groups as lists of nodes in post-order; ``clones`` are free copies a group takes along."""

    groups: list[list[Node]] = field(factory=list)
    clones: list[list[Node]] = field(factory=list)
    log: list[Decision] = field(factory=list)

    def note(
        self,
        names: Mapping[Node, str],
        producer: Node,
        consumer: Node,
        code: str,
        reason: str,
        way_out: str = "",
        **data: object,
    ) -> None:
        """Record why an edge stays apart, or that it is fused (code "fused")."""
        self.log.append(
            Decision(names[producer], names[consumer], code == "fused", code, reason, data, way_out)
        )


def is_fusible(graph: Graph, node: Node, target: Target) -> bool:
    """Whether a kernel can compute ``node``: it has code, one result, and native dtypes."""
    return why_opaque(graph, node, target) is None


def why_opaque(graph: Graph, node: Node, target: Target) -> str | None:
    """The reason why no kernel computes ``node``, or None."""
    op = node.op
    if op is None or is_free(node):
        return "it is an input or constant"
    if TStateful.get(op.name):
        return f"{op.name} reads or writes state"
    if TOpPattern.get(op.name) is OpPattern.OPAQUE:
        return f"the TOpPattern of {op.name} is OPAQUE"
    own_kernel = FKernel.get(op.name)
    if own_kernel is not None and own_kernel(node, target.dialect) is not None:
        return f"{op.name} of {len(node.inputs)} inputs has a kernel of its own (FKernel)"
    if FContract.get(op.name) is not None or TLibraryCall.get(op.name) is not None:
        return f"a library computes {op.name}"
    if not any(t.get(op.name) for t in (FCodeGen, FElement, FReduce, FScan)):
        return (
            f"{op.name} has no FCodeGen, FElement, FReduce or FScan: set one, and kernels compute "
            f"it"
        )
    if FScan.get(op.name) is not None and target.lanes == 1:
        return f"kernels of target {target.name} have no scans"
    if op.num_outputs != 1:
        return f"{op.name} has {op.num_outputs} results"
    for entry in (*node.inputs, *node.entries):
        if graph.dtype(entry).name not in NATIVE:
            return f"kernels do not compute with {graph.dtype(entry)}"
    return None
