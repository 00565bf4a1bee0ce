"""Gradient: from a graph to the graph of its gradients.

Source: NNVM's Gradient, whose annotations these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passkit.errors import PassError, nearest
from passkit.graph.adjoint import gradients
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes.base import register_pass


@register_pass("Gradient", depends="grad_xs", changes_graph=True)
def gradient(graph: Graph) -> Graph:
    """Replace the outputs by their gradients by ``grad_xs``: entries, variables or their names.

    Of the annotations that say how, only ``grad_xs`` must be there: ``grad_ys`` are differentiated
    (the outputs), weighed by ``grad_ys_out_grad`` (ones); ``grad_aggregate_fun`` sums a list of
    entries; nodes for which ``grad_mirror_fun`` holds are computed again; ``grad_unconnected`` is
    "zero" or "error". Updates of state stay.

    y = mul(x, x); return y    becomes    return mul(2, x)

    Raises: PassError when an x is no part of the graph.
    """
    attrs = graph.attrs
    found = gradients(
        _entries(graph, attrs.get("grad_ys", graph.outputs)),
        _entries(graph, attrs["grad_xs"]),
        attrs.get("grad_ys_out_grad"),
        unconnected=attrs.get("grad_unconnected", "zero"),
        aggregate=attrs.get("grad_aggregate_fun"),
        recompute=attrs.get("grad_mirror_fun"),
    )
    return Graph([e for e in found if e is not None], graph.updates)


def _entries(graph: Graph, given: Any) -> list[Entry]:
    """What is named in an annotation, as entries of the graph."""
    names = {name: node for node, name in graph.names.items()}
    single = isinstance(given, (str, Entry, Node)) or not isinstance(given, Sequence)
    out: list[Entry] = []
    for what in [given] if single else given:
        node = names.get(what) if isinstance(what, str) else getattr(what, "node", what)
        if not isinstance(node, Node) or node not in graph.positions:
            hint = nearest(what, names) if isinstance(what, str) else "give an entry or a name"
            raise PassError(f"Gradient found no {what!r} in the graph; {hint}")
        out.append(what if isinstance(what, Entry) else node.entries[0])
    return out
