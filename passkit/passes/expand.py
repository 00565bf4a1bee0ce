"""Expand: composites become the primitives that they are made of.

A softmax written as exp, sum and division fuses with what stands before and after it; as one
operator no kernel could compute it. So Fusion depends on "expanded", and so may a user's pass that
reads only primitives: Expand is implied, as InferShape is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from passkit.errors import PassError
from passkit.graph.call import convert
from passkit.graph.graph import Graph
from passkit.graph.infer import show_shape
from passkit.graph.narrow import expanded
from passkit.graph.node import CONSTANT, Entry, Node
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
from passkit.plan.strategy import find_fusion
from passkit.values.dtype import DType, float32, is_narrow

RUNS_ITSELF: tuple[Table, ...] = (
    *(FCodeGen, FElement, FReduce, FScan, FContract, FCompute, TLibraryCall),
)
"""Attributes by which an operator runs without being expanded."""

DEPTH = 64
"""How often composites may stand within composites."""


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

    With a strategy that does not want them expanded, such as "nnvm", only those that cannot run
    otherwise. A composite of floats of 16 bits that would round in between is expanded in float32
    and rounded once at its end. A contraction of floats of 16 bits becomes one of float32, for
    which there are libraries, between casts that fuse. The annotation "expanded" says which
    composites may be left.

    y = softmax(x)    becomes    e = exp(sub(x, reduce_max(x))); y = div(e, reduce_sum(e))

    Raises: PassError when FExpand gives other results than the operator declares, or never ends.
    """
    every = find_fusion(context.fusion).expands
    for _ in range(DEPTH):
        old = set(graph.nodes)

        def change(node: Node, old: set[Node] = old) -> Sequence[Entry] | None:
            made = expansion(node, old) if is_composite(node, every) else None
            if made is not None:
                return made
            return _replaced(node, _in_float32(node), old) if is_narrow_contraction(node) else None

        rebuilt = graph.transform(change)
        if rebuilt.heads == graph.heads:
            return graph.with_attrs(expanded=left_by(context))
        graph = rebuilt
    left = sorted({n.op.name for n in graph.nodes if n.op and is_composite(n, every)})
    raise PassError(
        f"Expand found composites after {DEPTH} rounds: {', '.join(left)}; FExpand must not "
        f"come back to its own operator"
    )


NONE = "none"
"""The value of "expanded" where no composite is left."""


def left_by(context: PassContext) -> str:
    """Which composites Expand leaves in a context, as the annotation "expanded" says it."""
    return NONE if find_fusion(context.fusion).expands else f"those that {context.fusion!r} keeps"


def is_composite(node: Node, every: bool = True) -> bool:
    """Whether a node is to be expanded; what writes state is Functionalize's.

    Unless ``every`` composite is, those are not that run without it.
    """
    if node.op is None or node.op.name not in FExpand.rows or TStateful.get(node.op.name):
        return False
    return every or not any(node.op.name in t.rows for t in RUNS_ITSELF)


def is_narrow_contraction(node: Node) -> bool:
    """Whether a node multiplies and sums floats of 16 bits."""
    if node.op is None or FContract.get(node.op.name) is None:
        return False
    return any(e.dtype is not None and is_narrow(e.dtype) for e in node.inputs)


def _in_float32(node: Node) -> list[Entry]:
    """The same contraction in float32, rounded once."""
    assert node.op is not None
    wide = [convert(e, float32) if is_narrow(_dtype(e)) else e for e in node.inputs]
    made = node.op(*wide, **node.params)
    results = [made] if isinstance(made, Entry) else list(made)
    return [convert(e, _dtype(w)) for e, w in zip(results, node.entries, strict=True)]


def _dtype(entry: Entry) -> DType:
    assert entry.dtype is not None
    return entry.dtype


def expansion(node: Node, old: Collection[Node] = ()) -> Sequence[Entry] | None:
    """What a composite is made of; the last nodes take its name and its control dependences.

    None when control dependences would be lost, because a result is an input, and where FExpand
    gives none. ``old`` are nodes that were there before.
    """
    assert node.op is not None
    entries = expanded(node, node.inputs)
    if entries is None:
        return None
    for entry, wanted in zip(entries, node.entries, strict=True):
        if entry.shape != wanted.shape or entry.dtype is not wanted.dtype:
            raise PassError(
                f"FExpand of {node.where} gives {entry.dtype}{show_shape(entry.shape)}, and the "
                f"operator declares {wanted.dtype}{show_shape(wanted.shape)}"
            )
    return _replaced(node, entries, old)


def _replaced(
    node: Node, entries: Sequence[Entry], old: Collection[Node]
) -> Sequence[Entry] | None:
    """New entries for those of a node: the last of them take its name and control dependences."""
    fresh = _made(entries, {*old, *(e.node for e in node.inputs)})
    if node.control and not all(e.node in fresh for e in entries):
        return None
    last = {e.node for e in entries}
    new: dict[Entry, Entry] = {}
    for inner in fresh:
        sources = tuple(new.get(e, e) for e in inner.inputs)
        made = inner
        if inner in last and inner.op is not CONSTANT:
            control = dict.fromkeys((*inner.control, *node.control))
            made = inner.replaced(sources, control, inner.name or node.name)
        elif sources != inner.inputs:
            made = inner.replaced(sources)
        new.update(zip(inner.entries, made.entries, strict=True))
    return [new.get(e, e) for e in entries]


def _made(entries: Iterable[Entry], known: set[Node]) -> dict[Node, None]:
    """The nodes that an expansion made, in post-order."""
    order: dict[Node, None] = {}
    stack = [e.node for e in reversed(list(entries))]
    while stack:
        node = stack[-1]
        before = [e.node for e in node.inputs if e.node not in order and e.node not in known]
        if node in known or node in order or not before:
            stack.pop()
            if node not in known:
                order.setdefault(node)
        else:
            stack += reversed(before)
    return order
