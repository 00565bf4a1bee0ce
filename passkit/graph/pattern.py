"""Pattern rewriting: replace the matches of a small graph over placeholders by another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, signature

import numpy as np
from attrs import frozen

from passkit.errors import DTypeError, GraphError, ShapeError
from passkit.graph.graph import Graph, freeze, post_order
from passkit.graph.infer import show_shape
from passkit.graph.node import CONSTANT, Entry, Node, is_state, var
from passkit.graph.op import Op, TStateful
from passkit.values.arguments import shown
from passkit.values.size import Shape

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

        A placeholder is a variable of unknown shape and dtype. ``function`` may be an operator,
        which has a placeholder for each input.

        Raises:
            GraphError: It does not return the only result of an operator other than a constant,
                does not use one of its arguments, takes other than plain arguments, or has no
                signature. Errors of the function propagate.
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

        Operators, the results of them that are read, inputs in their order, and parameters must be
        those of the pattern, and constants equal its constants (see `_same_constant`). Of ``node``
        the first result is matched.

        Args:
            node: the node to match the root of the pattern with.
            refuse: returns whether a node must not be a part of a match; it is called with
                operators other than constants, ``node`` included.

        Returns:
            The entries that match the arguments, in their order, or None where there is no match.
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
    """Return the names of a function's arguments; those of an operator are x0, x1 and so on.

    An operator of any number of inputs has none.

    Raises: GraphError for ``*args``, keyword-only arguments, and a function without a signature.
    """
    if isinstance(function, Op):
        return [f"x{k}" for k in range(max(function.num_inputs or 0, 0))]
    try:
        parameters = list(signature(function).parameters.values())
    except ValueError:  # a function of C
        raise GraphError(
            f"a pattern takes plain arguments, and {shown(function)} does not tell its own; "
            f"wrap it into a lambda"
        ) from None
    for p in parameters:
        if p.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            raise GraphError(
                f"a pattern takes plain arguments, one for each matched value, got '{p}'"
            )
    return [p.name for p in parameters]


def _same_constant(pattern: Node, node: Node) -> bool:
    """Return whether ``node`` is a constant of the same value as ``pattern``, one of the pattern.

    A scalar of the pattern also matches arrays filled with it; empty arrays match nothing. The
    pattern's value is cast to the dtype of the node's, and may be rounded to a float in doing so,
    but no integer or bool stands for another number. The bits must then be equal: -0.0 is not 0.0.
    """
    if node.op is not CONSTANT:
        return False
    a, b = pattern.params["value"], node.params["value"]
    if (a.ndim and a.shape != b.shape) or (a.dtype.kind == "c" and b.dtype.kind != "c"):
        return False
    with np.errstate(all="ignore"):
        cast = a.astype(b.dtype)
    if b.dtype.kind in "biu" and not np.array_equal(cast, a):
        return False
    filled = np.ascontiguousarray(np.broadcast_to(cast, b.shape))
    return bool(b.size > 0 and filled.tobytes() == b.tobytes())


def rewrite(
    graph: Graph,
    pattern: EntryFunction,
    replacement: EntryFunction,
    where: Callable[..., bool] | None = None,
) -> Graph:
    """Return ``graph`` with every match of ``pattern`` replaced by ``replacement``.

    The arguments are those of `Graph.rewrite`; a match is left as it is where ``where``, called
    with the matched entries, returns a false value; None replaces all. A replacement that is a new
    node without a name gets that of the node that it replaces. Annotations but the unread names are
    dropped.

    One sweep in post-order: an earlier match wins over one that overlaps it, and nodes that a
    replacement created are not matched again. Nodes with control dependences and operators with
    TStateful are never part of a match, nor are inner nodes that read a state variable in a graph
    that has such operators.

    Raises:
        GraphError: The pattern or the replacement does not return one entry, or the pattern does
            not use one of its arguments, takes ``*args`` or keyword-only ones, has no signature, or
            returns an argument, a constant or one of several results.
        ShapeError: The replacement has another rank, or an extent that is another number. Unknown
            ranks and symbolic extents are not compared.
        DTypeError: The replacement has another dtype; an unknown one is not compared.
        Exception: What ``where``, ``pattern`` or ``replacement`` raises.
    """
    compiled = GraphPattern.of(pattern)
    stateful = any(n.op is not None and TStateful.get(n.op.name) for n in graph.nodes)
    created: set[Node] = set()

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        """Return the replacement of a match that ends in ``node``, else None or the node's results.

        ``inputs`` are the node's inputs in the new graph. The nodes of a replacement are recorded.
        Raises: GraphError, ShapeError or DTypeError for a replacement that is no entry or does not
        fit; what ``where`` and ``replacement`` raise.
        """
        if node.op is not compiled.root.node.op or node.control:
            return None
        end = node if inputs == node.inputs else node.replaced(inputs)

        def refuse(n: Node) -> bool:
            """Return whether an operator's node must not be a part of a match."""
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
    """Return the node of ``new`` and those that it is computed from, without ``matched``.

    Inputs of the matched ones are not followed.
    """
    nodes: set[Node] = set()
    todo = [new.node]
    while todo:
        node = todo.pop()
        if node not in matched and node not in nodes:
            nodes.add(node)
            todo.extend(e.node for e in node.inputs)
    return nodes


def _check_replacement(node: Node, new: object) -> Entry:
    """Return ``new``, which replaces a matched ``node``, if shape and dtype may be the same.

    Those that are unknown, and symbolic extents, are not compared.

    Raises: GraphError if it is no entry; ShapeError if the ranks, or extents that are numbers,
    differ; DTypeError if the dtypes differ.
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
    if _certainly_differ(old.shape, new.shape):
        raise ShapeError(
            f"the replacement of {node.where} must have its shape {show_shape(old.shape)}, got "
            f"{show_shape(new.shape)}; insert reshape or broadcast_to"
        )
    return new


def _certainly_differ(a: Shape | None, b: Shape | None) -> bool:
    """Return whether two shapes have different ranks, or extents that are different numbers.

    It is False where a rank is unknown (None).
    """
    if a is None or b is None:
        return False
    return len(a) != len(b) or any(
        isinstance(m, int) and isinstance(n, int) and m != n for m, n in zip(a, b, strict=True)
    )
