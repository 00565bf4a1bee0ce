"""Expansions of composites for the interpreter, kept while their nodes exist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from attrs import frozen

from passkit.errors import CodeGenError
from passkit.graph.graph import post_order
from passkit.graph.narrow import expand_node
from passkit.graph.node import Entry, Node
from passkit.graph.op import FExpand
from passkit.values.dtype import DType

Types = tuple[tuple[tuple[int, ...], DType], ...]
"""The shape and dtype of each input."""


@frozen(eq=False)
class Expansion:
    """The operators that replace a node.

    Attributes:
        rule: the FExpand that returned them.
        types: the types of the inputs.
        inputs: a variable for each input.
        nodes: the operators, each after those that it reads.
        heads: an entry for each output of the node.
    """

    rule: Any
    types: Types
    inputs: Sequence[Entry]
    nodes: Sequence[Node]
    heads: Sequence[Entry]


_kept: WeakKeyDictionary[Node, Expansion] = WeakKeyDictionary()
"""The last expansion of each node that exists: an evaluation of a graph repeats the one before."""


def expansion(node: Node, types: Types) -> Expansion:
    """Return the expansion of a node by its FExpand, on variables of its own.

    It is computed once for a node as long as the types and the rule are the same, and freed with
    the node, to which it does not refer.

    Args:
        node: a node whose operator has FExpand.
        types: the shape and dtype of each input.

    Raises: CodeGenError where FExpand returns None; RuleError where it returns something else than
    entries, or takes other arguments; PasskitError where it refuses the inputs or a parameter.
    """
    assert node.op is not None
    rule, kept = FExpand.get(node.op.name), _kept.get(node)
    if kept is not None and kept.rule is rule and kept.types == types:
        return kept
    inputs = [
        Node(None, (), {"shape": shape, "dtype": dtype}, f"x{k}").entries[0]
        for k, (shape, dtype) in enumerate(types)
    ]
    heads = expand_node(node, inputs)
    if heads is None:
        raise CodeGenError(
            f"{node.where} cannot be evaluated: its FExpand returns None; set FCompute on op "
            f"{node.op.name}"
        )
    nodes = [n for n in post_order(e.node for e in heads) if not n.is_variable]
    _kept[node] = new = Expansion(rule, types, inputs, nodes, heads)
    return new
