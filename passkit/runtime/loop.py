"""Loops at run time: an operator that contains two graphs, a body and a condition to continue.

``while_loop(*state, *constants, condition, body, count)``: the first ``count`` inputs are the
state, the others have the same values in each iteration. The inputs of both graphs are named
`INPUT_PREFIX` + position. The condition returns one boolean, the body the next state. The
interpreter interprets the graphs; a compiled program runs them as programs of their own.
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

INPUT_PREFIX = "value_"
"""The name of an input of the graphs, without its position."""


def _shapes(node: Node, *shapes: Shape | None) -> tuple[Shape | None, ...]:
    """Infer the shapes of a loop's results: those of its state, the first inputs.

    ``shapes`` are those of all inputs of ``node``; None where unknown, which is then unknown in the
    result too.

    Raises:
        GraphError: The body returns another number of values, or values of other dtypes or known
            ranks, or ``count`` is negative or more than the node has inputs.
    """
    count, body = node.params["count"], node.params["body"]
    if not 0 <= count <= len(shapes) or len(body.outputs) != count:
        raise GraphError(
            f"{node.where} has a state of {count} values, and its body returns "
            f"{len(body.outputs)}; return the next value of each"
        )
    for k, (entry, new) in enumerate(zip(node.inputs[:count], body.outputs, strict=True)):
        ranks = {len(s) for s in (entry.shape, new.shape) if s is not None}
        if entry.dtype != new.dtype or len(ranks) > 1:
            raise GraphError(
                f"{node.where} begins with {entry.dtype}{show_shape(entry.shape)} as value {k} of "
                f"its state, and its body returns {new.dtype}{show_shape(new.shape)} for it; both "
                "need the same dtype and rank"
            )
    return tuple(shapes[:count])


_shapes.__dict__["partial"] = True

WHILE = register_op(
    "while_loop",
    num_inputs=-1,
    num_outputs=-1,
    params={"condition": REQUIRED, "body": REQUIRED, "count": REQUIRED},
    doc="Iterates a body while a condition holds; both are graphs of the state.",
)
WHILE.set_attr("FInferShape", _shapes)
WHILE.set_attr("FInferType", lambda node, *dtypes: tuple(dtypes[: node.params["count"]]))
WHILE.set_attr("TOpPattern", OpPattern.OPAQUE)


def _interpreted(node: Node, *arrays: Any) -> tuple[Any, ...]:
    """Return the arrays of the state after the loop ``node``, with both graphs interpreted.

    ``arrays`` are the initial state and the constants. Raises: FeedError where an array does not
    fit an input of a graph; the other errors of `interpret` where a node cannot be evaluated.
    """
    return tuple(_runner(node, lambda graph: lambda **feeds: interpret(graph, feeds))(*arrays))


def _runner(
    node: Node, program: Callable[[Graph], Callable[..., list[Any]]]
) -> Callable[..., list[Any]]:
    """Return a function that runs the loop ``node`` on the arrays of its inputs.

    It takes the initial state and the constants, and returns a list of the state after the last
    iteration; if there is none, the arrays of the initial state themselves. ``program`` compiles a
    graph to a function of arrays by input name, which returns a list.
    """
    count = node.params["count"]
    parts = []
    for graph in (node.params["condition"], node.params["body"]):
        names = [(n.name, int(n.name.removeprefix(INPUT_PREFIX))) for n in graph.inputs]
        parts.append((program(graph), names))

    def run(*arrays: Any) -> list[Any]:
        """Run the loop on the initial state and the constants; return a list of the last state."""
        (condition, condition_inputs), (body, body_inputs) = parts
        values = list(arrays)
        while bool(condition(**{name: values[k] for name, k in condition_inputs})[0]):
            values[:count] = body(**{name: values[k] for name, k in body_inputs})
        return [np.asarray(v) for v in values[:count]]

    return run


WHILE.set_attr("FCompute", _interpreted)
WHILE.set_attr("FHostCall", _runner)


def while_loop(
    condition: Graph, body: Graph, state: Sequence[Entry], constants: Sequence[Entry], name: str
) -> tuple[Entry, ...]:
    """Create the node of a loop.

    Args:
        condition: a graph whose first output is whether to continue, as one boolean. Its inputs,
            and those of ``body``, are named `INPUT_PREFIX` + position in state and constants.
        body: a graph that returns the next state.
        state: the initial state.
        constants: values that both graphs read and no iteration changes.
        name: the name of the node.

    Returns:
        The entries of the state after the last iteration, with the shapes and dtypes of ``state``.

    Raises:
        GraphError: The body returns another number of values than ``state``, or of other dtypes or
            ranks.
        ArgumentError: An element of ``state`` or ``constants`` is no entry.
    """
    params = {"condition": condition, "body": body, "count": len(state)}
    return Node(WHILE, [*state, *constants], params, name).entries
