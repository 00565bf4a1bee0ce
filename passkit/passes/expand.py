"""Expand: replace composite operators by the primitive operators that define them.

A softmax written as exp, sum and division fuses with its producers and users; as one operator, no
kernel could compute it. So Fusion depends on "expanded", and a user's pass that reads only
primitives may, too. Expand is implied, like InferShape.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from passkit.errors import PassError
from passkit.fusion.strategy import find_fusion
from passkit.graph.call import convert
from passkit.graph.graph import Graph
from passkit.graph.infer import show_shape
from passkit.graph.narrow import expand_node
from passkit.graph.node import CONSTANT, Entry, Node, known_dtype
from passkit.graph.op import (
    FCodeGen,
    FCompute,
    FContract,
    FElement,
    FExpand,
    FReduce,
    FScan,
    TLibraryCall,
    TStateful,
)
from passkit.graph.registry import Table
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.values.dtype import float32, is_narrow

RUNS_ITSELF: tuple[Table, ...] = (
    FCodeGen,
    FElement,
    FReduce,
    FScan,
    FContract,
    FCompute,
    TLibraryCall,
)
"""Attributes by which an operator runs without being expanded."""

MAX_DEPTH = 64
"""How deep composites may be nested in the expansions of composites."""

NONE = "none"
"""The value of the annotation "expanded" if no composite is left."""


@register_pass(
    "Expand",
    depends="complete",
    provides="expanded",
    preserves="functional",
    changes_graph=True,
    implied=True,
    required=True,
)
def expand(graph: Graph, context: PassContext) -> Graph:
    """Replace every composite by its FExpand, until none is left.

    Under a fusion strategy that keeps composites, such as "nnvm", only those are expanded that
    cannot run otherwise. A composite of 16-bit floats whose parts would round in between is
    expanded in float32 and rounded once at its end. A contraction of 16-bit floats becomes one of
    float32, which libraries compute, between casts that fuse. The annotation "expanded" tells which
    composites may be left. ``context`` has the strategy.

    y = softmax(x)    becomes    e = exp(sub(x, reduce_max(x))); y = div(e, reduce_sum(e))

    Raises: PassError if FExpand gives a shape or dtype that the operator does not declare, or does
    not terminate; RuleError if it returns something else than entries or None; DTypeError if it
    mixes dtypes when its 16-bit inputs are widened to float32. Other errors of FExpand propagate.
    """
    expands_all = find_fusion(context.fusion).expands
    for _ in range(MAX_DEPTH):
        existing = set(graph.nodes)

        def replace(node: Node, existing: set[Node] = existing) -> Sequence[Entry] | None:
            """Return the entries that replace a node's outputs, None for a node that stays.

            ``existing`` are the nodes from before this iteration. A composite stays where FExpand
            declines, or its control dependencies would be lost. Raises: PassError, RuleError or
            DTypeError if FExpand returns something wrong, see `expansion`; what else FExpand
            raises.
            """
            if is_composite(node, expands_all):
                entries = expansion(node, existing)
                if entries is not None:
                    return entries
            if is_narrow_contraction(node):
                return _replacement(node, _in_float32(node), existing)
            return None

        rebuilt = graph.transform(replace)
        if rebuilt.heads == graph.heads:
            return graph.with_attrs(expanded=composites_left(context))
        graph = rebuilt
    left = {n.op.name for n in graph.nodes if n.op and is_composite(n, expands_all)}
    raise PassError(
        f"Expand: composites remain after {MAX_DEPTH} iterations: {', '.join(sorted(left))}; the "
        f"FExpand of an operator must not lead back to the operator itself"
    )


def composites_left(context: PassContext) -> str:
    """Return the value of "expanded": the composites that Expand keeps in a context.

    It is `NONE` if the context's fusion strategy keeps none.
    """
    return NONE if find_fusion(context.fusion).expands else f"those that {context.fusion!r} keeps"


def is_composite(node: Node, expands_all: bool = True) -> bool:
    """Return whether a node is to be expanded: its operator has FExpand, and no TStateful.

    Those with state are left to Functionalize. Unless ``expands_all``, composites that have one of
    `RUNS_ITSELF`, and so run without being expanded, do not count.
    """
    if node.op is None or node.op.name not in FExpand.rows or TStateful.get(node.op.name):
        return False
    return expands_all or not any(node.op.name in t.rows for t in RUNS_ITSELF)


def is_narrow_contraction(node: Node) -> bool:
    """Return whether a node multiplies and sums 16-bit floats (it has FContract).

    False for a variable, and for inputs of unknown dtype.
    """
    if node.op is None or FContract.get(node.op.name) is None:
        return False
    return any(e.dtype is not None and is_narrow(e.dtype) for e in node.inputs)


def _in_float32(node: Node) -> list[Entry]:
    """Return the outputs of a contraction of 16-bit floats, computed in float32 and rounded once.

    They have the dtypes of the outputs of ``node``. Inputs of other dtypes are not converted. All
    dtypes are known.
    """
    assert node.op is not None
    wide = [convert(e, float32) if is_narrow(known_dtype(e)) else e for e in node.inputs]
    outputs = node.op(*wide, **node.params)
    entries = [outputs] if isinstance(outputs, Entry) else list(outputs)
    return [convert(e, known_dtype(old)) for e, old in zip(entries, node.entries, strict=True)]


def expansion(node: Node, existing: Collection[Node] = ()) -> Sequence[Entry] | None:
    """Return the entries that a composite expands to.

    The nodes of these entries take the composite's name and control dependencies.

    Args:
        node: The composite.
        existing: Nodes that were created before the expansion.

    Returns: One entry for each output; None if FExpand declines, or if the composite has control
        dependencies and an entry is not of a new node, such as an input, so that they would be
        lost.

    Raises: PassError if an entry has another shape or dtype than the output that it replaces;
        RuleError if FExpand returns something else than entries or None; DTypeError if it mixes
        dtypes when its 16-bit inputs are widened to float32. Other errors of FExpand propagate.
    """
    assert node.op is not None
    entries = expand_node(node, node.inputs)
    if entries is None:
        return None
    for entry, output in zip(entries, node.entries, strict=True):
        if entry.shape != output.shape or entry.dtype is not output.dtype:
            raise PassError(
                f"FExpand of {node.where} must keep shape and dtype, "
                f"{output.dtype}{show_shape(output.shape)}, got "
                f"{entry.dtype}{show_shape(entry.shape)}; insert cast or reshape"
            )
    return _replacement(node, entries, existing)


def _replacement(
    node: Node, entries: Sequence[Entry], existing: Collection[Node]
) -> Sequence[Entry] | None:
    """Return ``entries`` with the name and control dependencies of the node that they replace.

    ``existing`` are nodes created before, which are not changed.

    Returns: None if the node has control dependencies and an entry is not of a new node.
    """
    created = _created_nodes(entries, {*existing, *(e.node for e in node.inputs)})
    if node.control and not all(e.node in created for e in entries):
        return None
    last = {e.node for e in entries}
    replaced: dict[Entry, Entry] = {}
    for inner in created:
        inputs = tuple(replaced.get(e, e) for e in inner.inputs)
        new = inner
        if inner in last and inner.op is not CONSTANT:
            control = dict.fromkeys((*inner.control, *node.control))
            new = inner.replaced(inputs, control, inner.name or node.name)
        elif inputs != inner.inputs:
            new = inner.replaced(inputs)
        replaced.update(zip(inner.entries, new.entries, strict=True))
    return [replaced.get(e, e) for e in entries]


def _created_nodes(entries: Iterable[Entry], existing: set[Node]) -> dict[Node, None]:
    """Return the nodes that compute ``entries``, down to the ``existing`` ones, producers first."""
    order: dict[Node, None] = {}
    stack = [e.node for e in reversed(list(entries))]
    while stack:
        node = stack[-1]
        pending = [e.node for e in node.inputs if e.node not in order and e.node not in existing]
        if node in existing or node in order or not pending:
            stack.pop()
            if node not in existing:
                order.setdefault(node)
        else:
            stack += reversed(pending)
    return order
