"""Gradients read state as the forward pass did, and may recompute values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk

pytestmark = pytest.mark.usefixtures("quick_kernels")

ops = pk.ops


def trained() -> tuple[pk.Graph, dict[str, Any]]:
    """Return a training step of two variables, whose gradients each need both."""
    a, b = pk.state("a", np.array([2.0, 3.0])), pk.state("b", np.array([5.0, 7.0]))
    loss = ops.reduce_sum(a * a * b)
    da, db = pk.gradients(loss, [a, b])
    first = ops.assign(a, a - da)
    return pk.Graph([loss, first, ops.assign(b, b - db)]), {}


def test_gradients_read_state_before_it_is_written() -> None:
    """The second variable's gradient uses the value of the first before its update."""
    graph, state = trained()
    expected = [2 - 2 * 2 * 5.0, 3 - 2 * 3 * 7.0], [5 - 4.0, 7 - 9.0]

    _, a, b = pk.interpret(graph, {}, state)
    np.testing.assert_array_equal([a, b], expected)
    functional = pk.ApplyPasses(graph, "Functionalize")
    assert "as_read" not in {n.op.name for n in functional.nodes if n.op is not None}
    assert "as_read" in {n.op.name for n in graph.nodes if n.op is not None}
    np.testing.assert_array_equal(pk.interpret(functional, {})[1:], expected)
    np.testing.assert_array_equal(pk.compile(graph)()[1:], expected)


def test_the_gradient_of_a_read_after_a_write_goes_to_the_written_value() -> None:
    """A read after an assignment is differentiated by the assigned value, not the variable."""
    x, a = pk.var("x", (2,), "float64"), pk.state("a", np.array([2.0, 3.0]))
    before = a * a
    written = ops.assign(a, x * 3.0)
    after = pk.Node(ops.mul, (a, a), control=(before.node, written.node)).entries[0]
    dx, da = pk.gradients([before, after], [x, a])

    results = pk.interpret(pk.Graph([before, after, dx, da]), {"x": np.array([1.0, 2.0])})
    np.testing.assert_array_equal(results[2], [2 * 3.0 * 3, 2 * 6.0 * 3])
    np.testing.assert_array_equal(results[3], [4.0, 6.0])


def test_second_derivatives_by_state_are_right() -> None:
    """The gradient of a gradient by a state variable is differentiated like any value."""
    a = pk.state("a", np.array([2.0, 3.0]))
    (once,) = pk.gradients(a * a * a, a)
    assert once is not None
    (twice,) = pk.gradients(once, a)

    np.testing.assert_array_equal(pk.interpret(pk.Graph([twice]))[0], [12.0, 18.0])


def deep(depth: int, recompute: Callable[[pk.Node], bool] | None = None) -> pk.Graph:
    """Return the gradients of a chain of cheap operators, a composite among them, and products."""
    x = pk.var("x", (32, 32))
    weights = [pk.var(f"w{k}", (32, 32)) for k in range(depth)]
    y = x
    for w in weights:
        y = (ops.gelu(y) + ops.sin(y) * y) @ w
    gradients = pk.gradients(ops.reduce_sum(y * y), [*reversed(weights), x], recompute=recompute)
    return pk.Graph([e for e in gradients if e is not None])


def cheap(node: pk.Node) -> bool:
    """Return whether a node is recomputed: all except matrix products are."""
    return node.op is not ops.matmul


@pytest.mark.parametrize(("depth", "passes"), [(100, ()), (20, ("Fusion",))])
def test_recomputation_saves_memory(depth: int, passes: tuple[str, ...]) -> None:
    """The planned bytes of a deep chain fall by more than 30 %, fused or not."""

    def planned(rule: Callable[[pk.Node], bool] | None) -> int:
        pipeline = ["Functionalize", "Expand", "Simplify", *passes, "PlanMemory"]
        plan = pk.ApplyPasses(deep(depth, rule), pipeline).attrs["storage"]
        return int(plan.bind({})[1])

    assert planned(cheap) < 0.7 * planned(None)


def test_recomputed_values_have_the_same_bits() -> None:
    """Gradients with and without recomputation are equal, interpreted and compiled."""
    rng = np.random.default_rng(0)
    kept, again = deep(3), deep(3, cheap)
    feeds = {n.name: rng.normal(size=(32, 32)).astype("float32") * 0.2 for n in kept.inputs}

    for run in (lambda g: pk.interpret(g, feeds), lambda g: pk.compile(g)(feeds)):
        for a, b in zip(run(kept), run(again), strict=True):
            np.testing.assert_array_equal(a, b)


def test_recomputation_reads_state_before_it_is_written() -> None:
    """Recomputed nodes read state variables as the originals did, and each is copied once."""
    a = pk.state("a", np.array([2.0, 3.0]))
    h = ops.exp(a) * a
    (da,) = pk.gradients(h * h, a, recompute=lambda node: True)
    assert da is not None
    graph = pk.Graph([h, ops.assign(a, np.zeros(2)), da])
    x = np.array([2.0, 3.0])

    np.testing.assert_allclose(pk.interpret(graph)[2], 2 * np.exp(x) ** 2 * x * (1 + x), rtol=1e-12)
    functional = pk.ApplyPasses(graph, ["Functionalize", "Simplify"])
    assert sum(n.op is ops.exp for n in functional.nodes) == 2
