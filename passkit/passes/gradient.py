"""Gradient: replace the outputs of a graph by their gradients.

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
    """Replace the outputs by their gradients with respect to ``grad_xs``.

    Annotations of the graph are the arguments. All but ``grad_xs`` are optional:

    - ``grad_xs``: entries, nodes or their names, or one of these.
    - ``grad_ys``: the same to differentiate, by default the outputs.
    - ``grad_ys_out_grad``: the gradients of ``grad_ys``, by default ones.
    - ``grad_aggregate_fun``: sums a list of entries.
    - ``grad_mirror_fun``: whether a node is recomputed in the backward pass.
    - ``grad_unconnected``: for an x on which no y depends "zero", the default, "error", or "none",
      with which there is no output for it.

    Updates of state are kept.

    y = mul(x, x); return y    becomes    return mul(2, x)

    Raises: PassError if an entry in ``grad_xs`` or ``grad_ys`` is not part of the graph; GraphError
        if an operator has no gradient, ``grad_unconnected`` is "error" and an x is unconnected, or
        there are not as many ``grad_ys_out_grad`` as ys; SettingError for another
        ``grad_unconnected``; ArgumentError, DTypeError, ShapeError, RuleError and CodeGenError as
        `passkit.gradients`.
    """
    attrs = graph.attrs
    results = gradients(
        _entries(graph, attrs.get("grad_ys", graph.outputs)),
        _entries(graph, attrs["grad_xs"]),
        attrs.get("grad_ys_out_grad"),
        unconnected=attrs.get("grad_unconnected", "zero"),
        aggregate=attrs.get("grad_aggregate_fun"),
        recompute=attrs.get("grad_mirror_fun"),
    )
    return Graph([e for e in results if e is not None], graph.updates)


def _entries(graph: Graph, values: Any) -> list[Entry]:
    """Return the entries of a graph that an annotation lists by name, as nodes or as entries.

    ``values`` is a sequence of them or a single one; of a node, or a name, it is the first entry.

    Raises: PassError for a value that is not part of the graph, and for one of another type.
    """
    names = {name: node for node, name in graph.names.items()}
    is_single = isinstance(values, (str, Entry, Node)) or not isinstance(values, Sequence)
    entries: list[Entry] = []
    for value in [values] if is_single else values:
        node = names.get(value) if isinstance(value, str) else getattr(value, "node", value)
        if not isinstance(node, Node) or node not in graph.positions:
            hint = nearest(value, names) if isinstance(value, str) else "give an entry or a name"
            raise PassError(f"Gradient: {value!r} is not in the graph; {hint}")
        entries.append(value if isinstance(value, Entry) else node.entries[0])
    return entries
