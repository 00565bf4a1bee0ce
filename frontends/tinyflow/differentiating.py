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
from passkit.graph.node import Entry, var

STOPS = "tf.stop_gradient says where none flows"
ALL_AT_ONCE = "a run is one program, in which all gradients are of the old values"


@refuses(STOPS, "stop_gradients")
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

    None, or zeros with ``unconnected_gradients="zero"``, for an x that no y depends on.
    """
    tops, leaves = _list(ys), _list(xs)
    weights = None if grad_ys is None else [None if g is None else read(g) for g in _list(grad_ys)]
    for x in leaves:
        if not isinstance(x, Tensor):
            raise DTypeError(f"gradients are by tensors and variables, got {x!r} in xs")
    heads, bottoms = _ranked(
        [read(y) for y in tops],
        [x.state if isinstance(x, Variable) else x.entry for x in leaves],
    )
    found = adjoint.gradients(heads, bottoms, weights, unconnected=unconnected_gradients)
    with name_scope(name) as prefix:
        return [
            None if g is None else wrapped(g, f"{prefix}{x._name}_grad")
            for x, g in zip(leaves, found, strict=True)
        ]


def _ranked(ys: list[Entry], xs: list[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Ends of a graph in which placeholders of unknown rank are numbers.

    A run that feeds one something else, and needs a gradient, is refused.
    """
    graph = core.Graph([*ys, *xs])
    open_ = [n.entries[0] for n in graph.inputs if n.entries[0].shape is None]
    if not open_:
        return ys, xs
    numbers = get_default_graph().scalars
    for e in open_:
        numbers.setdefault(e, var(e.node.name, (), e.dtype))
    outputs = graph.replace({e: numbers[e] for e in open_}).outputs
    return list(outputs[: len(ys)]), list(outputs[len(ys) :])


def _list(given: Any) -> Sequence[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]
