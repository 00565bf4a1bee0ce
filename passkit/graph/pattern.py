"""Pattern rewriting: replace the matches of a small graph over placeholders by another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from itertools import zip_longest

import numpy as np
from attrs import frozen

from passkit.errors import DTypeError, GraphError, ShapeError
from passkit.graph.graph import Graph, freeze, post_order
from passkit.graph.infer import show_shape
from passkit.graph.node import CONSTANT, Entry, Node, is_state, var
from passkit.graph.op import Op, TStateful

EntryFunction = Callable[..., Entry]
"""A function that builds an entry from entries."""


@frozen(eq=False)
class GraphPattern:
    """A graph over placeholders to look for in another graph.

    Attributes:
        root: the result of the pattern.
        arguments: the placeholders: variables of any shape and dtype.
    """

    root: Entry
    arguments: tuple[Entry, ...]

    @staticmethod
    def of(function: EntryFunction) -> GraphPattern:
        """Return the pattern that ``function`` builds from a placeholder for each argument.

        Raises:
            GraphError: It does not return the only result of an operator, does not use one of its
                arguments, or takes other than plain arguments.
        """
        arguments = tuple(var(name, None, None) for name in _argument_names(function))
        root = function(*arguments)
        if not isinstance(root, Entry) or root.node.op is None or root.node.op is CONSTANT:
            raise GraphError(
                f"a pattern returns the result of an operator, got {root!r}; build it from its "
                f"arguments with pk.ops"
            )
        if len(root.node.entries) > 1:
            raise GraphError(
                f"a pattern ends in an operator with one result, got {root.node.where} with "
                f"{len(root.node.entries)}"
            )
        used = {n for n in post_order([root.node]) if n.is_variable}
        for argument in arguments:
            if argument.node not in used:
                raise GraphError(
                    f"the pattern does not use its argument '{argument.name}'; use it, or leave "
                    f"it out"
                )
        return GraphPattern(root, arguments)

    def match(self, node: Node, refuse: Callable[[Node], bool]) -> tuple[Entry, ...] | None:
        """Match the pattern against the nodes that end in ``node``.

        Args:
            node: the node to match the root of the pattern with.
            refuse: returns whether a node must not be a part of a match.

        Returns:
            The entries that match the arguments, or None where there is no match.
        """
        if self.root.node.op is not node.op:
            return None
        bound: dict[Entry, Entry] = {}
        done: set[tuple[Entry, Entry]] = set()
        todo = [(self.root, node.entries[0])]
        while todo:
            placeholder, entry = todo.pop()
            if (placeholder, entry) in done:
                continue
            done.add((placeholder, entry))
            p, n = placeholder.node, entry.node
            if p.op is None:
                if bound.setdefault(placeholder, entry) is not entry:
                    return None
                continue
            if p.op is CONSTANT:
                if not _same_constant(p, n):
                    return None
                continue
            same_output = p.op is n.op and placeholder.index == entry.index
            if not same_output or len(p.inputs) != len(n.inputs):
                return None
            if refuse(n) or freeze(p.params) != freeze(n.params):
                return None
            todo.extend(zip(p.inputs, n.inputs, strict=True))
        return tuple(bound[a] for a in self.arguments)


def _argument_names(function: EntryFunction | Op) -> list[str]:
    """Return the names of a function's arguments. Raises: GraphError unless all are plain."""
    if isinstance(function, Op):
        return [f"x{k}" for k in range(max(function.num_inputs or 0, 0))]
    parameters = list(signature(function).parameters.values())
    for p in parameters:
        if p.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            raise GraphError(
                f"a pattern takes plain arguments, one for each matched value, got '{p}'"
            )
    return [p.name for p in parameters]


def _same_constant(pattern: Node, node: Node) -> bool:
    """Return whether ``node`` is a constant of the same value as one of the pattern.

    The dtype does not matter; a scalar of the pattern also matches arrays filled with it.
    """
    if node.op is not CONSTANT:
        return False
    a, b = pattern.params["value"], node.params["value"]
    if a.ndim and a.shape != b.shape:
        return False
    with np.errstate(all="ignore"):
        cast = np.broadcast_to(a.astype(b.dtype), b.shape)
    return bool(b.size > 0 and np.ascontiguousarray(cast).tobytes() == b.tobytes())


def rewrite(
    graph: Graph,
    pattern: EntryFunction,
    replacement: EntryFunction,
    where: Callable[..., bool] | None = None,
) -> Graph:
    """Return ``graph`` with every match of ``pattern`` replaced by ``replacement``.

    The arguments are those of `Graph.rewrite`; a match is kept where ``where``, called with the
    matched entries, returns False.

    One sweep in post-order: an earlier match wins over one that overlaps it, and nodes that a
    replacement created are not matched again. Nodes with control dependences and operators that
    write state are never part of a match, nor are inner nodes that read a state variable in a
    graph that writes state.

    Raises:
        GraphError: The pattern or the replacement does not return one entry, or the pattern does
            not use one of its arguments.
        ShapeError: The replacement has another shape.
        DTypeError: The replacement has another dtype.
    """
    compiled = GraphPattern.of(pattern)
    stateful = any(n.op is not None and TStateful.get(n.op.name) for n in graph.nodes)
    created: set[Node] = set()

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        if node.op is not compiled.root.node.op or node.control:
            return None
        end = node if inputs == node.inputs else node.replaced(inputs)

        def refuse(n: Node) -> bool:
            assert n.op is not None
            if n in created or n.control or TStateful.get(n.op.name):
                return True
            return stateful and n is not end and any(is_state(e) for e in n.inputs)

        matched = compiled.match(end, refuse)
        if matched is None or (where is not None and not where(*matched)):
            return None if end is node else end.entries
        new = _check_replacement(end, replacement(*matched))
        new_nodes = _new_nodes(new, {e.node for e in matched})
        created.update(new_nodes)
        if new.node in new_nodes and end.name and not new.node.name and not new.node.is_variable:
            renamed = new.node.replaced(name=end.name)
            created.add(renamed)
            new = renamed.entries[new.index]
        return (new,)

    return graph.rebuild(change)


def _new_nodes(new: Entry, matched: set[Node]) -> set[Node]:
    """Return the nodes from which ``new`` is computed, down to the matched ones."""
    nodes: set[Node] = set()
    todo = [new.node]
    while todo:
        node = todo.pop()
        if node not in matched and node not in nodes:
            nodes.add(node)
            todo.extend(e.node for e in node.inputs)
    return nodes


def _check_replacement(node: Node, new: object) -> Entry:
    """Return ``new``, which replaces a matched ``node``, if its shape and dtype are the same.

    Raises: GraphError if it is no entry; ShapeError or DTypeError if shape or dtype differ.
    """
    if not isinstance(new, Entry):
        raise GraphError(
            f"the replacement of {node.where} must be one Entry, got {type(new).__name__}"
        )
    old = node.entries[0]
    if old.dtype is not None and new.dtype is not None and old.dtype is not new.dtype:
        raise DTypeError(
            f"the replacement of {node.where} must be {old.dtype}, as that is, got {new.dtype}; "
            f"insert pk.ops.cast(x, '{old.dtype}')"
        )
    if old.shape is not None and new.shape is not None:
        pairs = zip_longest(old.shape, new.shape)
        if any(a != b and (_is_certain(a) and _is_certain(b)) for a, b in pairs):
            raise ShapeError(
                f"the replacement of {node.where} must have its shape {show_shape(old.shape)}, got "
                f"{show_shape(new.shape)}; insert reshape or broadcast_to"
            )
    return new


def _is_certain(n: object) -> bool:
    """Return whether an extent is a number, or None for an axis that does not exist."""
    return n is None or isinstance(n, int)
