"""Gradients of tensors by tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passkit.errors import DTypeError
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.refusals import refuses
from passkit.frontends.tinyflow.scopes import name_scope
from passkit.frontends.tinyflow.tensors import Tensor, read, wrapped
from passkit.frontends.tinyflow.variables import Variable
from passkit.graph import adjoint
from passkit.graph import graph as core
from passkit.graph.node import CONSTANT, Entry, var
from passkit.ops.rules import make

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
    heads, bottoms = _cut([read(y) for y in tops], [_leaf(x) for x in leaves], stops)
    found = adjoint.gradients(heads, bottoms, weights, unconnected=unconnected_gradients)
    with name_scope(name) as prefix:
        return [
            None if g is None else wrapped(g, f"{prefix}{x._name}_grad")
            for x, g in zip(leaves, found, strict=True)
        ]


def _leaf(x: Tensor) -> Entry:
    """What a gradient is by: a variable itself, or a tensor."""
    return x.state if isinstance(x, Variable) else x.entry


def _cut(
    ys: list[Entry], xs: list[Entry], stops: Sequence[Entry]
) -> tuple[list[Entry], list[Entry]]:
    """Ends of a graph in which placeholders of unknown rank are numbers, and nothing passes stops.

    A run that feeds such a placeholder something else, and needs a gradient, is refused.
    """
    graph = core.Graph([*ys, *xs])
    numbers = get_default_graph().scalars
    changed: dict[Entry, Entry] = {}
    for node in graph.inputs:
        e = node.entries[0]
        if e.shape is None:
            changed[e] = numbers.setdefault(e, var(node.name, (), e.dtype))
    # A constant of one element is a number to the rules, which have no gradient by it.
    changed.update((x, make("identity", x)) for x in xs if x.node.op is CONSTANT)
    inside = {e for n in graph.nodes for e in n.entries}
    changed.update((e, make("stop_gradient", e)) for e in stops if e in inside)
    if not changed:
        return ys, xs
    outputs = graph.replace(changed).outputs
    return list(outputs[: len(ys)]), list(outputs[len(ys) :])


def _list(given: Any) -> Sequence[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]
