"""Recomputation: which operators a stage repeats rather than reads back."""

from __future__ import annotations

from passkit.graph.node import Node
from passkit.graph.op import OpPattern, TOpCost

RECOMPUTE = 4
"""The most light operations that a stage repeats instead of reading their result again."""


def is_expensive(node: Node) -> bool:
    """Return whether an operator costs more than a few light ones."""
    assert node.op is not None
    cost = TOpCost.get(node.op.name)
    return cost == "expensive" or (cost is None and node.op.pattern > OpPattern.INJECTIVE)
