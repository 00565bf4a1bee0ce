"""Gradients of tensors by tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passkit.errors import DTypeError
from passkit.frontends.tinyflow.deferring import deferred, is_deferred
from passkit.frontends.tinyflow.refusals import refuses
from passkit.frontends.tinyflow.scopes import name_scope
from passkit.frontends.tinyflow.tensors import Tensor, read, wrapped
from passkit.frontends.tinyflow.variables import Variable
from passkit.graph import adjoint
from passkit.graph import graph as core
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.ops.helpers import make

ALL_AT_ONCE = "a run is one program, in which all gradients are of the old values"


@refuses(ALL_AT_ONCE, "colocate_gradients_with_ops", "gate_gradients", "aggregation_method")
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: str = "none",
) -> list[Tensor | None]:
    """The gradients of the sum of ``ys`` by each of ``xs``, weighed by ``grad_ys``.

    None, or zeros with ``unconnected_gradients="zero"``, for an x that no y depends on. Nothing
    flows through ``stop_gradients``, though it may end in them.
    """
    tops, leaves = _list(ys), _list(xs)
    weights = None if grad_ys is None else [None if g is None else read(g) for g in _list(grad_ys)]
    for x in leaves:
        if not isinstance(x, Tensor):
            raise DTypeError(f"gradients are by tensors and variables, got {x!r} in xs")
    stops = [_leaf(x) for x in _list([] if stop_gradients is None else stop_gradients)]
    heads, bottoms = [read(y) for y in tops], [_leaf(x) for x in leaves]
    find = _deferred if _await_ranks(heads, bottoms) else _found
    found = find(heads, bottoms, weights, stops, unconnected_gradients)
    with name_scope(name) as prefix:
        return [
            None if g is None else wrapped(g, f"{prefix}{x._name}_grad")
            for x, g in zip(leaves, found, strict=True)
        ]


Entries = Sequence[Entry]
Weights = Sequence[Entry | None] | None


def _found(
    ys: Entries, xs: Entries, weights: Weights, stops: Entries, unconnected: str
) -> list[Entry | None]:
    """The gradients of a graph whose ranks are known."""
    heads, bottoms = _cut(list(ys), list(xs), stops)
    return adjoint.gradients(heads, bottoms, weights, unconnected=unconnected)


def _between(ys: Entries, xs: Entries) -> list[Node]:
    """The nodes through which a gradient may flow from ``ys`` to ``xs``, those of ``xs`` first.

    It flows along floats, and not through a stop_gradient.
    """
    order = core.post_order([y.node for y in ys])
    above = {x.node for x in xs}
    for node in order:
        if any(e.node in above for e in _differentiated(node)):
            above.add(node)
    flowing = {y.node for y in ys} & above
    for node in reversed(order):
        if node in flowing:
            flowing.update(e.node for e in _differentiated(node) if e.node in above)
    return [n for n in order if n in flowing]


def _differentiated(node: Node) -> list[Entry]:
    """The inputs of a node that a gradient may flow to."""
    if node.op is None or node.op.name == "stop_gradient":
        return []
    return [e for e in node.inputs if e.dtype is None or e.dtype.is_float]


def _await_ranks(ys: Entries, xs: Entries) -> bool:
    """Whether a gradient rule would need a shape that only a run knows."""
    leaves = set(xs)
    return any(
        e.shape is None or is_deferred(node)
        for node in _between(ys, xs)
        for e in (*node.entries, *(() if leaves & set(node.entries) else node.inputs))
    )


def _deferred(
    ys: Entries, xs: Entries, weights: Weights, stops: Entries, unconnected: str
) -> list[Entry | None]:
    """The gradients of a graph with unknown ranks: found when a run tells them.

    An x that no y depends on is known now; one that turns out to get nothing, as behind a rounding,
    gets zeros.
    """
    given = [w for w in weights or () if w is not None]
    places = [len(ys), len(xs), len(given)]
    used = set(_between(ys, xs))

    def call(known: Sequence[Tensor]) -> list[Tensor]:
        entries = iter([t.entry for t in known])
        tops, bottoms, some = ([next(entries) for _ in range(n)] for n in places)
        scales = iter(some)
        seeds = None if weights is None else [None if w is None else next(scales) for w in weights]
        found = _found(tops, bottoms, seeds, list(entries), "zero")
        return [wrapped(g, "gradient") for g in found if g is not None]

    outputs = [(x.shape, x.dtype) for x in xs]
    found = deferred(call, [*ys, *xs, *given, *stops], outputs, "gradients")
    if unconnected == "zero":
        return list(found)
    return [g if x.node in used else None for x, g in zip(xs, found, strict=True)]


def _leaf(x: Tensor) -> Entry:
    """What a gradient is by: a variable itself, or a tensor."""
    return x.state if isinstance(x, Variable) else x.entry


def _cut(
    ys: list[Entry], xs: list[Entry], stops: Sequence[Entry]
) -> tuple[list[Entry], list[Entry]]:
    """Ends of a graph in which nothing passes stops."""
    graph = core.Graph([*ys, *xs])
    # A constant of one element is a number to the rules, which have no gradient by it.
    changed = {x: make("identity", x) for x in xs if x.node.op is CONSTANT}
    inside = {e for n in graph.nodes for e in n.entries}
    changed.update((e, make("stop_gradient", e)) for e in stops if e in inside)
    if not changed:
        return ys, xs
    outputs = graph.replace(changed).outputs
    return list(outputs[: len(ys)]), list(outputs[len(ys) :])


def _list(given: Any) -> Sequence[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]
