"""Loops that run: an operator that holds two graphs, and goes round while one of them says so.

``while_loop(state…, given…, condition, body, count)``: the first ``count`` inputs are the state.
Both graphs are functions of state and given values, by the names `STATE` + position; the condition
returns one boolean, the body the next state. Interpreted, the graphs are interpreted; compiled,
they are programs of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from passkit.errors import GraphError
from passkit.graph.graph import Graph
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.runtime.interpret import interpret
from passkit.values.size import Shape

STATE = "value_"
"""What the graphs call their inputs, in front of a position."""

Arrays = Sequence[Any]


def _shapes(node: Node, *shapes: Shape | None) -> tuple[Shape | None, ...]:
    """The state's. Raises: GraphError when the body gives another number of values, or others."""
    count, body = node.params["count"], node.params["body"]
    if not 0 <= count <= len(shapes) or len(body.outputs) != count:
        raise GraphError(
            f"{node.where} has a state of {count} values, and its body gives {len(body.outputs)}"
        )
    for k, (entry, new) in enumerate(zip(node.inputs[:count], body.outputs, strict=True)):
        ranks = {len(s) for s in (entry.shape, new.shape) if s is not None}
        if entry.dtype != new.dtype or len(ranks) > 1:
            raise GraphError(
                f"{node.where} begins with {entry.dtype}{show_shape(entry.shape)} as value {k}, "
                f"and its body gives {new.dtype}{show_shape(new.shape)}"
            )
    return tuple(shapes[:count])


_shapes.__dict__["partial"] = True

WHILE = register_op(
    "while_loop",
    num_inputs=-1,
    num_outputs=-1,
    params={"condition": REQUIRED, "body": REQUIRED, "count": REQUIRED},
    doc="Goes round a body while a condition holds; both are graphs of the state.",
)
WHILE.set_attr("FInferShape", _shapes)
WHILE.set_attr("FInferType", lambda node, *dtypes: tuple(dtypes[: node.params["count"]]))
WHILE.set_attr("TOpPattern", OpPattern.OPAQUE)


def _computed(node: Node, *arrays: Any) -> tuple[Any, ...]:
    return tuple(_runner(node, lambda graph: lambda **feeds: interpret(graph, feeds))(*arrays))


def _runner(
    node: Node, program: Callable[[Graph], Callable[..., list[Any]]]
) -> Callable[..., list[Any]]:
    """What goes round, with ``program`` to run a graph on arrays by name."""
    count = node.params["count"]
    parts = []
    for graph in (node.params["condition"], node.params["body"]):
        names = [(n.name, int(n.name.removeprefix(STATE))) for n in graph.inputs]
        parts.append((program(graph), names))

    def go(*arrays: Any) -> list[Any]:
        (condition, asks), (body, reads) = parts
        values = list(arrays)
        while bool(condition(**{name: values[k] for name, k in asks})[0]):
            values[:count] = body(**{name: values[k] for name, k in reads})
        return [np.asarray(v) for v in values[:count]]

    return go


WHILE.set_attr("FCompute", _computed)
WHILE.set_attr("FHostCall", _runner)

def while_loop(
    condition: Graph, body: Graph, state: Sequence[Entry], given: Sequence[Entry], name: str
) -> tuple[Entry, ...]:
    """The state after the last round."""
    params = {"condition": condition, "body": body, "count": len(state)}
    return Node(WHILE, [*state, *given], params, name).entries
