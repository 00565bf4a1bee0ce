"""Simplify: common subexpression elimination, constant folding and exact algebraic rewrites.

All of them keep results bit for bit. Dead code never enters a graph: it consists of what its
outputs depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from passkit.errors import PassError
from passkit.graph import attribute_calls
from passkit.graph.graph import Graph
from passkit.graph.infer import show_shape
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.op import FSimplify, TStateful
from passkit.passes.base import register_pass
from passkit.passes.constant_folding import can_fold, fold
from passkit.passes.context import PassContext
from passkit.passes.node_keys import node_key

MAX_REWRITES = 1000
"""How often one node may be rewritten, before FSimplify is taken to run in circles."""


@register_pass("Simplify", depends="complete", preserves="functional", changes_graph=True)
def simplify(graph: Graph, context: PassContext) -> Graph:
    """Merge equal nodes, fold constants, and apply FSimplify until nothing changes.

    Each of these takes fuel of ``context``, except merging constants.

    a = exp(x); b = exp(x); y = add(a, b)    becomes    a = exp(x); y = add(a, a)

    Raises: PassError if FSimplify changes a shape or dtype, or does not terminate; RuleError if it
    returns something else than an entry or None; FeedError, or another error of `interpret`, if a
    constant operator cannot be evaluated.
    """
    simplifier = _Simplifier(context.spend)
    for node in graph.nodes:
        simplifier.simplify(node)
    updates = [(v, simplifier.result(e)) for v, e in graph.updates]
    return Graph([simplifier.result(e) for e in graph.outputs], updates)


class _Simplifier:
    """Maps nodes to simplified entries; equal nodes are mapped to one.

    A node is finished when its simplified entries are known. A node that is rewritten waits for the
    entries that replace it, which are simplified like any others, so that the result is a fixed
    point.
    """

    def __init__(self, spend: Callable[[str], bool]) -> None:
        self.spend = spend
        self.results: dict[Node, Sequence[Entry]] = {}
        """Finished nodes, with their simplified entries."""
        self.replacements: dict[Node, Sequence[Entry]] = {}
        """Rewritten nodes, with the entries that replace them."""
        self.num_rewrites: dict[Node, int] = {}
        self.node_by_key: dict[Hashable, Node] = {}
        """The first finished node with each key."""
        self.rewriting_by_key: dict[Hashable, Node] = {}
        """Nodes that FSimplify or folding replaced and that are not finished yet."""
        self.rewriting_keys: dict[Node, Hashable] = {}

    def result(self, entry: Entry) -> Entry:
        """Return the simplified entry for an entry of a finished node, perhaps the entry itself."""
        return self.results[entry.node][entry.index]

    def simplify(self, node: Node) -> None:
        """Finish a node, and all nodes that its simplification depends on: set ``results``.

        Raises: PassError if FSimplify returns an entry that depends on the rewritten node itself,
        changes a shape or dtype, or does not terminate; RuleError if it returns something else than
        an entry or None; errors of `interpret` for a constant that cannot be evaluated.
        """
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self.results:
                stack.pop()
                continue
            replacement = self.replacements.get(top)
            if replacement is not None:
                dependencies = [e.node for e in replacement]
            else:
                dependencies = [*(e.node for e in top.inputs), *top.control]
            unfinished = [n for n in dependencies if n not in self.results]
            if unfinished:
                cyclic = next((n for n in unfinished if n in self.replacements), None)
                if cyclic is not None:
                    raise PassError(
                        f"FSimplify of {cyclic.where} returns an entry that is computed from "
                        f"{cyclic.where} itself; compute it from node.inputs alone"
                    )
                stack += reversed(unfinished)
            elif replacement is not None:
                self.results[top] = [self.result(e) for e in replacement]
                if top in self.rewriting_keys:
                    key = self.rewriting_keys.pop(top)
                    self.node_by_key[key] = self.rewriting_by_key.pop(key)
            else:
                self.step(top)

    def step(self, node: Node) -> None:
        """Finish a node whose inputs are finished, or record its replacement.

        Raises: PassError if FSimplify rewrites a node too often or changes its shape or dtype;
        RuleError if it returns something else than an entry or None; errors of `interpret`, such as
        FeedError, if a constant operator cannot be evaluated.
        """
        inputs = tuple(self.result(e) for e in node.inputs)
        control = tuple(dict.fromkeys(self.results[c][0].node for c in node.control))
        if inputs != node.inputs or control != node.control:
            self.replace(node, node.replaced(inputs, control).entries)
            return
        key = node_key(node)
        if key is None:
            self.results[node] = node.entries
            return
        equal = self.node_by_key.get(key)
        if equal is not None and (
            node.op is CONSTANT or self.spend(f"Simplify: merge {node.where}")
        ):
            self.results[node] = self.results[equal]
            return
        # A rewrite that leads back to a node being rewritten ends there.
        rewritten = None if key in self.rewriting_by_key else self.rewrite(node)
        if rewritten is None:
            self.node_by_key[key] = node
            self.results[node] = node.entries
        else:
            self.rewriting_by_key[key] = node
            self.rewriting_keys[node] = key
            self.replace(node, rewritten)

    def replace(self, node: Node, entries: Sequence[Entry]) -> None:
        """Record that ``node`` is to be replaced by ``entries``, which are simplified first.

        Raises: PassError after more than `MAX_REWRITES` rewrites of one node.
        """
        count = self.num_rewrites.get(node, 0) + 1
        if count > MAX_REWRITES:
            raise PassError(
                f"FSimplify of {node.where} still rewrites its own results after {MAX_REWRITES} "
                f"rewrites; it must return None for a node that it has created"
            )
        self.replacements[node] = entries
        for entry in entries:
            if entry.node not in self.results:
                self.num_rewrites[entry.node] = count

    def rewrite(self, node: Node) -> Sequence[Entry] | None:
        """Return simpler entries with the values of a node's outputs, None if there are none.

        None also for a constant, a node with control dependencies or TStateful, or without fuel.
        A node that can be folded is not given to FSimplify, even without fuel.

        Raises: PassError if FSimplify changes the shape or dtype; RuleError if it returns something
        else than an entry or None; FeedError, or another error of `interpret`, if a constant
        operator cannot be evaluated.
        """
        assert node.op is not None
        if node.control or node.op is CONSTANT or TStateful.get(node.op.name):
            return None
        if can_fold(node):
            return fold(node) if self.spend(f"Simplify: fold {node.where}") else None
        if FSimplify.get(node.op.name) is None:
            return None
        simpler = attribute_calls.check_entry(
            FSimplify, node, attribute_calls.call_attribute(FSimplify, node, node)
        )
        output = node.entries[0]
        if simpler is None or simpler is output:
            return None
        if simpler.shape != output.shape or simpler.dtype is not output.dtype:
            raise PassError(
                f"FSimplify of {node.where} must keep shape and dtype, "
                f"{output.dtype}{show_shape(output.shape)}, got "
                f"{simpler.dtype}{show_shape(simpler.shape)}; insert cast or reshape, or return "
                f"None"
            )
        return [simpler] if self.spend(f"Simplify: rewrite {node.where}") else None
