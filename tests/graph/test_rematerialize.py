"""What gradients refer to: state as it was read, values computed again instead of kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.graph.node import AS_READ, Node

pytestmark = pytest.mark.usefixtures("quick_kernels")

ops = pk.ops


def trained() -> tuple[pk.Graph, dict[str, Any]]:
    """Two parameters written one after the other by gradients that each need both."""
    a, b = pk.state("a", np.array([2.0, 3.0])), pk.state("b", np.array([5.0, 7.0]))
    loss = ops.reduce_sum(a * a * b)
    da, db = pk.gradients(loss, [a, b])
    first = ops.assign(a, a - da)
    return pk.Graph([loss, first, ops.assign(b, b - db)]), {}


def test_gradients_refer_to_the_state_that_was_read() -> None:
    """The second parameter's gradient needs the first as it was before it was written."""
    graph, state = trained()
    wanted = [2 - 2 * 2 * 5.0, 3 - 2 * 3 * 7.0], [5 - 4.0, 7 - 9.0]

    _, a, b = pk.interpret(graph, {}, state)
    np.testing.assert_array_equal([a, b], wanted)
    functional = pk.ApplyPasses(graph, "Functionalize")
    assert not any(n.op is AS_READ for n in functional.nodes)
    np.testing.assert_array_equal(pk.interpret(functional, {})[1:], wanted)
    np.testing.assert_array_equal(pk.compile(graph)()[1:], wanted)


def test_what_was_written_passes_its_gradient_to_the_value() -> None:
    """A read after a write is a read of the value written, not of the variable."""
    x, a = pk.var("x", (2,), "float64"), pk.state("a", np.array([2.0, 3.0]))
    before = a * a
    written = ops.assign(a, x * 3.0)
    after = Node(ops.mul, (a, a), control=(before.node, written.node)).entries[0]
    dx, da = pk.gradients([before, after], [x, a])

    found = pk.interpret(pk.Graph([before, after, dx, da]), {"x": np.array([1.0, 2.0])})
    np.testing.assert_array_equal(found[2], [2 * 3.0 * 3, 2 * 6.0 * 3])
    np.testing.assert_array_equal(found[3], [4.0, 6.0])


def test_gradients_of_gradients_of_state() -> None:
    """What was read as it was is differentiated like any value."""
    a = pk.state("a", np.array([2.0, 3.0]))
    (once,) = pk.gradients(a * a * a, a)
    assert once is not None
    (twice,) = pk.gradients(once, a)

    np.testing.assert_array_equal(pk.interpret(pk.Graph([twice]))[0], [12.0, 18.0])


def deep(depth: int, recompute: Callable[[Node], bool] | None = None) -> pk.Graph:
    """A chain of cheap operators, one of them a composite, and matrix products; its gradients."""
    x = pk.var("x", (32, 32))
    weights = [pk.var(f"w{k}", (32, 32)) for k in range(depth)]
    y = x
    for w in weights:
        y = (ops.gelu(y) + ops.sin(y) * y) @ w
    found = pk.gradients(ops.reduce_sum(y * y), [*reversed(weights), x], recompute=recompute)
    return pk.Graph([e for e in found if e is not None])


def cheap(node: Node) -> bool:
    """What is computed again: all but products."""
    return node.op is not ops.matmul


@pytest.mark.parametrize(("depth", "passes"), [(100, ()), (20, ("Fusion",))])
def test_recomputed_values_need_not_be_kept(depth: int, passes: tuple[str, ...]) -> None:
    """The planned bytes of a deep chain fall by more than 30 %, fused or not."""

    def planned(rule: Callable[[Node], bool] | None) -> int:
        ladder = ["Functionalize", "Expand", "Simplify", *passes, "PlanMemory"]
        plan = pk.ApplyPasses(deep(depth, rule), ladder).attrs["storage"]
        return int(plan.bind({})[1])

    assert planned(cheap) < 0.7 * planned(None)


def test_recomputed_values_are_the_same() -> None:
    """Bit for bit, interpreted and in kernels."""
    rng = np.random.default_rng(0)
    kept, again = deep(3), deep(3, cheap)
    feeds = {n.name: rng.normal(size=(32, 32)).astype("float32") * 0.2 for n in kept.inputs}

    for run in (lambda g: pk.interpret(g, feeds), lambda g: pk.compile(g)(feeds)):
        for a, b in zip(run(kept), run(again), strict=True):
            np.testing.assert_array_equal(a, b)


def test_state_is_recomputed_from_what_was_read() -> None:
    """Copies refer to state variables as the originals read them, and none is made twice."""
    a = pk.state("a", np.array([2.0, 3.0]))
    h = ops.exp(a) * a
    (da,) = pk.gradients(h * h, a, recompute=lambda node: True)
    assert da is not None
    graph = pk.Graph([h, ops.assign(a, np.zeros(2)), da])
    x = np.array([2.0, 3.0])

    np.testing.assert_allclose(
        pk.interpret(graph)[2], 2 * np.exp(x) ** 2 * x * (1 + x), rtol=1e-12
    )
    functional = pk.ApplyPasses(graph, ["Functionalize", "Simplify"])
    assert sum(n.op is ops.exp for n in functional.nodes) == 2
