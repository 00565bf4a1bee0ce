"""Partitions: which nodes go together, and the log of why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen

from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.graph.op import (
    FCodeGen,
    FContract,
    FElement,
    FExpand,
    FHostCall,
    FReduce,
    FScan,
    Op,
    OpPattern,
    THostLibrary,
    TLibraryCall,
    TOpPattern,
    TStateful,
)
from passkit.plan.group import Decision
from passkit.plan.kernel import own_kernel_of
from passkit.space.space import is_free
from passkit.target import Target

KINDS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NATIVE = frozenset((*KINDS, "float16", "bfloat16", "float32", "float64"))
"""The dtypes that kernels compute with."""
CODE = (FCodeGen, FElement, FReduce, FScan)
"""Attributes of which one tells a kernel how to compute an operator."""


@define(eq=False)
class Partition:
    """Groups as lists of nodes in post-order; ``clones`` are free copies a group takes along.

    ``selection`` says how larger groups were chosen, where they were. Where ``packs``, small
    kernels that do not depend on each other may be put side by side in one.
    """

    groups: list[list[Node]] = field(factory=list)
    clones: list[list[Node]] = field(factory=list)
    log: list[Decision] = field(factory=list)
    selection: Any = None
    packs: bool = False

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


@frozen
class Opaque:
    """Why no kernel computes a node, and what a user can do about it ("" where nothing)."""

    reason: str
    way_out: str = ""


def is_fusible(graph: Graph, node: Node, target: Target) -> bool:
    """Whether a kernel can compute ``node``: it has code, one result, and native dtypes."""
    return why_opaque(graph, node, target) is None


def why_opaque(graph: Graph, node: Node, target: Target) -> Opaque | None:
    """The reason why no generated kernel computes ``node``, with the way out; None if one can."""
    op = node.op
    if op is None or is_free(node):
        return Opaque("it is an input or constant")
    if TStateful.get(op.name):
        return Opaque(f"{op.name} reads or writes state")
    if own_kernel_of(node, target.dialect) is not None:
        return Opaque(f"{op.name} of {len(node.inputs)} inputs has a kernel of its own (FKernel)")
    if TOpPattern.get(op.name) is OpPattern.OPAQUE or THostLibrary.get(op.name) is not None:
        return _marked_opaque(op)
    if FContract.get(op.name) is not None or TLibraryCall.get(op.name) is not None:
        dtype = graph.dtype(node.entries[0])
        if dtype.is_float:
            return Opaque(
                f"a library call computes {op.name}, and the call takes in no other operator"
            )
        return Opaque(
            f"no library computes {op.name} of {dtype}",
            "cast it to float32, or choose fusion='stitch', which expands it",
        )
    if not any(t.get(op.name) for t in CODE):
        return _without_code(op)
    if FScan.get(op.name) is not None and target.lanes == 1:
        return Opaque(f"kernels of target {target.name} have no scans")
    if len(node.entries) != 1:
        return Opaque(
            f"{op.name} has {len(node.entries)} results",
            f"set FExpand on {op.name}: operators of one result each",
        )
    for entry in (*node.inputs, *node.entries):
        if graph.dtype(entry).name not in NATIVE:
            return Opaque(
                f"kernels do not compute with {graph.dtype(entry)}",
                "compute with its real and imaginary parts"
                if graph.dtype(entry).numpy.kind == "c"
                else "cast it to a dtype that kernels have, such as float32",
            )
    return None


def _marked_opaque(op: Op) -> Opaque:
    """Why an operator whose TOpPattern is OPAQUE is so: what runs it instead of a kernel."""
    reason = f"the TOpPattern of {op.name} is OPAQUE"
    if (library := THostLibrary.get(op.name)) is not None:
        return Opaque(f"{reason}: {library} computes it")
    if FHostCall.get(op.name) is not None:
        return Opaque(f"{reason}: it runs programs of the graphs that it holds")
    if FContract.get(op.name) is not None or TLibraryCall.get(op.name) is not None:
        return Opaque(
            f"{reason}: a library call computes it, and the call takes in no other operator"
        )
    if any(t.get(op.name) for t in CODE):
        return Opaque(reason, f"set another TOpPattern on {op.name}, if kernels may compute it")
    return _without_code(op)


def _without_code(op: Op) -> Opaque:
    """Why an operator that has no code is in no kernel, and which attribute would change that."""
    if FExpand.get(op.name) is not None:
        return Opaque(
            f"{op.name} is a composite that stays whole: FExpand gives nothing for this node, or "
            f"the fusion strategy keeps it",
            "choose fusion='stitch', or let its FExpand cover this case",
        )
    return Opaque(
        f"{op.name} has no FCodeGen, FElement, FReduce or FScan",
        f"set FCodeGen on {op.name} (or FElement, FReduce, FScan, FExpand), and kernels compute it",
    )
