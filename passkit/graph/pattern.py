"""Rewriting: find what a small graph over placeholders looks like, and put another in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from itertools import zip_longest

import numpy as np
from attrs import frozen

from passkit.errors import DTypeError, GraphError, ShapeError
from passkit.graph.graph import Graph, freeze, post_order
from passkit.graph.infer import show_shape
from passkit.graph.node import CONSTANT, Entry, Node, var
from passkit.graph.op import Op, TStateful

Maker = Callable[..., Entry]


@frozen(eq=False)
class Pattern:
    """A function's graph over placeholders: what to look for."""

    root: Entry
    arguments: tuple[Entry, ...]

    @staticmethod
    def of(function: Maker) -> Pattern:
        """The graph that ``function`` makes of placeholders named like its arguments.

        Raises: GraphError when it does not return one result of an operator.
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
                raise GraphError(f"the pattern does not use its argument '{argument.name}'")
        return Pattern(root, arguments)

    def match(self, node: Node, refuse: Callable[[Node], bool]) -> tuple[Entry, ...] | None:
        """What the arguments stand for when the pattern ends in ``node``; None when it does not.

        ``refuse`` says which nodes cannot be a part of the match.
        """
        if self.root.node.op is not node.op:
            return None
        bound: dict[Entry, Entry] = {}
        seen: set[tuple[Entry, Entry]] = set()
        todo = [(self.root, node.entries[0])]
        while todo:
            wanted, found = todo.pop()
            if (wanted, found) in seen:
                continue
            seen.add((wanted, found))
            p, n = wanted.node, found.node
            if p.op is None:
                if bound.setdefault(wanted, found) is not found:
                    return None
                continue
            if p.op is CONSTANT:
                if not _same_constant(p, n):
                    return None
                continue
            alike = p.op is n.op and wanted.index == found.index and len(p.inputs) == len(n.inputs)
            if not alike or refuse(n) or freeze(p.params) != freeze(n.params):
                return None
            todo.extend(zip(p.inputs, n.inputs, strict=True))
        return tuple(bound[a] for a in self.arguments)


def _argument_names(function: Maker | Op) -> list[str]:
    if isinstance(function, Op):
        return [f"x{k}" for k in range(max(function.num_inputs or 0, 0))]
    found = list(signature(function).parameters.values())
    for p in found:
        if p.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            raise GraphError(
                f"a pattern takes plain arguments, one for each matched value, got '{p}'"
            )
    return [p.name for p in found]


def _same_constant(wanted: Node, found: Node) -> bool:
    """Whether two constants are equal by value: a scalar of the pattern has no dtype or shape."""
    if found.op is not CONSTANT:
        return False
    a, b = wanted.params["value"], found.params["value"]
    if a.ndim and a.shape != b.shape:
        return False
    with np.errstate(all="ignore"):
        cast = np.broadcast_to(a.astype(b.dtype), b.shape)
    return bool(b.size > 0 and np.ascontiguousarray(cast).tobytes() == b.tobytes())


def rewrite(
    graph: Graph,
    pattern: Maker,
    replacement: Maker,
    where: Callable[..., bool] | None = None,
) -> Graph:
    """Replace every match of ``pattern`` by ``replacement``; see `Graph.rewrite`.

    One sweep in post-order: an earlier match wins over one that overlaps it, and what a
    replacement made is not matched again. Nodes with control dependences, and operators that write
    state, are never part of a match; nor is a value that read a state variable which is written.

    Raises: GraphError, ShapeError or DTypeError when the replacement does not fit.
    """
    wanted = Pattern.of(pattern)
    stateful = any(n.op is not None and TStateful.get(n.op.name) for n in graph.nodes)
    made: set[Node] = set()

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        if node.op is not wanted.root.node.op or node.control:
            return None
        here = node if inputs == node.inputs else node.replaced(inputs)

        def refuse(n: Node) -> bool:
            assert n.op is not None
            if n in made or n.control or TStateful.get(n.op.name):
                return True
            return stateful and n is not here and any(_is_state(e) for e in n.inputs)

        found = wanted.match(here, refuse)
        if found is None or (where is not None and not where(*found)):
            return None if here is node else here.entries
        new = _fitting(here, replacement(*found))
        before = {e.node for e in found}
        fresh = _made_from(new, before)
        made.update(fresh)
        if new.node in fresh and here.name and not new.node.name and not new.node.is_variable:
            renamed = new.node.replaced(name=here.name)
            made.add(renamed)
            new = renamed.entries[new.index]
        return (new,)

    return graph.rebuild(change)


def _is_state(entry: Entry) -> bool:
    return entry.node.is_variable and bool(entry.node.params.get("state"))


def _made_from(new: Entry, before: set[Node]) -> set[Node]:
    """The nodes of a replacement that were not there before: all above the matched values."""
    fresh: set[Node] = set()
    todo = [new.node]
    while todo:
        node = todo.pop()
        if node not in before and node not in fresh:
            fresh.add(node)
            todo.extend(e.node for e in node.inputs)
    return fresh


def _fitting(node: Node, new: object) -> Entry:
    """The replacement of ``node``, which must have its shape and dtype as far as they are known."""
    if not isinstance(new, Entry):
        raise GraphError(
            f"the replacement of {node.where} must be one Entry, got {type(new).__name__}"
        )
    old = node.entries[0]
    if old.dtype is not None and new.dtype is not None and old.dtype is not new.dtype:
        raise DTypeError(
            f"the replacement of {node.where} is {new.dtype} and stands for {old.dtype}; "
            f"pk.ops.cast(x, '{old.dtype}')"
        )
    if old.shape is not None and new.shape is not None:
        pairs = zip_longest(old.shape, new.shape)
        if any(a != b and (_known(a) and _known(b)) for a, b in pairs):
            raise ShapeError(
                f"the replacement of {node.where} has shape {show_shape(new.shape)} and stands for "
                f"{show_shape(old.shape)}"
            )
    return new


def _known(n: object) -> bool:
    return n is None or isinstance(n, int)
