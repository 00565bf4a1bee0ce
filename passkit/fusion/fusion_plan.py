"""Fusion plans: which operators share a kernel, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field

from passkit.analysis.group import Decision
from passkit.diagnostics import Diagnostic
from passkit.graph.node import Node


@define(eq=False)
class FusionPlan:
    """The groups of a graph, each of which becomes a kernel.

    Attributes:
        groups: disjoint lists of nodes in post-order.
        duplicated: for each group nodes that it computes as well, though others do, too; empty if
            no group has any.
        log: the decision about each edge between operators.
        selection: how larger groups were chosen, if they were.
        packs: whether small kernels that do not depend on each other may be put side by side in
            one.
    """

    groups: list[list[Node]] = field(factory=list)
    duplicated: list[list[Node]] = field(factory=list)
    log: list[Decision] = field(factory=list)
    selection: Any = None
    packs: bool = False

    @property
    def pairs(self) -> list[tuple[list[Node], list[Node]]]:
        """Each group with the nodes that it computes as well."""
        duplicated = self.duplicated or [[] for _ in self.groups]
        return list(zip(self.groups, duplicated, strict=True))

    def note(
        self,
        names: Mapping[Node, str],
        producer: Node,
        consumer: Node,
        diagnostic: Diagnostic,
    ) -> None:
        """Record why an edge stays apart, or that it is fused (a code "fused.…")."""
        self.log.append(Decision(names[producer], names[consumer], diagnostic))
