"""Propagation of shapes over a graph: each is inferred once, and guesses come last."""

from __future__ import annotations

from typing import Any

import pytest

import passkit as pk


def requires_shape(*shape: int) -> Any:
    """Register an operator whose only input, and output, has a shape."""
    op = pk.register_op(f"test_propagation_{'_'.join(map(str, shape))}", num_inputs=1)
    op.set_attr("FInferShape", lambda node, inferred: inferred)
    op.set_attr("FInferShapeBack", lambda node, inputs, outputs: [shape])
    return op


def inferred(*outputs: pk.Entry) -> dict[str, Any]:
    """Return the inferred shape of each node by name."""
    graph = pk.ApplyPasses(pk.Graph(list(outputs)), "InferShape")
    return {graph.names[n]: graph.attrs["shape"][n.entries[0]] for n in graph.nodes}


def test_a_shape_reaches_all_nodes_with_few_visits() -> None:
    """From one known shape a chain is inferred backward, with two visits of a node at most."""
    visits: list[pk.Node] = []

    def visit(node: pk.Node, inputs: Any, outputs: Any) -> list[Any]:
        visits.append(node)
        return list(outputs)

    step = pk.register_op("test_propagation_step", num_inputs=1)
    step.set_attr("FInferShape", lambda node, shape: shape)
    step.set_attr("FInferShapeBack", visit)
    y = pk.var("x", None)
    for _ in range(100):
        y = step(y)

    assert set(inferred(requires_shape(7, 3)(y)).values()) == {(7, 3)}
    assert max(visits.count(node) for node in set(visits)) <= 2


@pytest.mark.parametrize("is_first", [True, False])
def test_guesses_come_last(is_first: bool) -> None:
    """The shape of a sum is a guess for its operands, which only replaces what nothing implies."""
    a, b = pk.var("a", (3,)), pk.var("b", None)
    total = requires_shape(7, 3)(pk.ops.add(pk.ops.exp(a, name="e"), pk.ops.exp(b), name="sum"))
    column = requires_shape(7, 1)(b)

    guessed = inferred(total)
    assert (guessed["a"], guessed["e"]) == ((3,), (3,))
    assert guessed["b"] == guessed["sum"] == (7, 3)
    implied = inferred(column, total) if is_first else inferred(total, column)
    assert (implied["a"], implied["b"], implied["sum"]) == ((3,), (7, 1), (7, 3))


def test_a_shape_is_inferred_once() -> None:
    """Another shape that a second use implies does not replace the first, but is an error."""
    x = pk.var("x", None)

    with pytest.raises(pk.ShapeError, match=r"shape \(7, 3\) by its .* and \(7, 1\) by its uses"):
        inferred(requires_shape(7, 1)(requires_shape(7, 3)(x)))
