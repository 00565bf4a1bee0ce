"""Values that are known while the graph is built, and functions that are traced several times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.frontends.tinyflow.deferred_calls import is_unranked
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.scopes import reuse_or_create_variables
from passkit.frontends.tinyflow.shapes import require_shape
from passkit.frontends.tinyflow.tensors import Tensor, static_tensor
from passkit.graph.graph import Graph, post_order
from passkit.graph.node import Node
from passkit.graph.op import TStateful
from passkit.runtime.interpret import interpret
from passkit.values.size import Size, symbols_of

MAX_NODES = 64
"""The most nodes that are evaluated while the graph is built."""
ONE_PROGRAM = "a run is one program"
"""Why arguments that tune TensorFlow's executor are rejected."""


def static_scalar(value: Any) -> Any:
    """Return the number that a scalar has in every run.

    Args:
        value: A tensor; anything else is returned as it is.

    Returns:
        The number; None if only a run determines it, if it takes more than `MAX_NODES` nodes to
        compute, or if the tensor is no scalar.

    Raises:
        DTypeError: For a tensor of text.
    """
    if not isinstance(value, Tensor):
        return value
    if value.static_value is not None:
        number = value.static_value[()] if value.static_value.ndim == 0 else None
        return None if isinstance(number, Size) else number
    if is_unranked(value) or require_shape(value.entry) != ():
        return None
    nodes: list[Node] = post_order([value.entry.node])
    is_constant = all(n.op is not None and not TStateful.get(n.op.name, False) for n in nodes)
    writes = any(n in value.graph.writes for n in nodes)
    if len(nodes) > MAX_NODES or not is_constant or writes or any(map(_depends_on_sizes, nodes)):
        return None
    return interpret(Graph([value.entry]), {})[0][()]


def _depends_on_sizes(node: Node) -> bool:
    """Return whether a parameter of a node holds a symbolic size, which only a run determines."""
    values = (v if isinstance(v, tuple) else (v,) for v in node.params.values())
    return any(symbols_of(v) for v in values)


def simplify_counter(tensor: Tensor) -> Tensor:
    """Return a constant tensor for an integer scalar whose value is known, else the tensor itself.

    A tensor that has a static value is returned as it is. The next iteration of a loop then finds
    its value without evaluating all iterations before.
    """
    number = None
    if tensor.dtype.is_integer and tensor.static_value is None:
        number = static_scalar(tensor)
    if number is None:
        return tensor
    return static_tensor(np.array(int(number), dtype=object), tensor.dtype, None, "counter")


def share_variables(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that its first call creates variables and later calls reuse them.

    Args:
        function: Takes any positional arguments.

    Returns:
        A function of the same positional arguments and results. Later calls number variable scopes
        as the first one did.
    """
    graph = get_default_graph()
    scope_counts: dict[str, int] | None = None

    def call(*args: Any) -> Any:
        nonlocal scope_counts
        if scope_counts is None:
            scope_counts = dict(graph.scope_counts)
            return function(*args)
        graph.scope_counts = dict(scope_counts)
        with reuse_or_create_variables():
            return function(*args)

    return call
