"""Storage: slots bound to sizes, and which inputs may give up their bytes."""

from __future__ import annotations

import pytest

import passkit as pk
from passkit.graph.storage import ALIGN, Home, Storage, StoragePlan, identities, sharing
from passkit.values.size import Size

ops = pk.ops
n = Size.symbol("n")


def test_slots_are_bound_to_sizes() -> None:
    """Every slot starts at a cache line and has room for its largest value."""
    plan = StoragePlan(pk.Annotation("storage"), ((10,), (n * 4, n + 100), (0,)), (), {}, {})

    assert plan.bind({"n": 1}) == ((0, 64, 192), 192)
    assert plan.bind({"n": 1000}) == ((0, 64, 64 + 4032), 4096)
    assert all(offset % ALIGN == 0 for offset in plan.bind({"n": 77})[0])


def test_a_missing_size_is_named() -> None:
    """A plan with unknown sizes needs values for all of them."""
    plan = StoragePlan(pk.Annotation("storage"), ((n * 4,),), (), {}, {})

    with pytest.raises(pk.ShapeError, match=r"the size 4\*n needs a value for 'n'"):
        plan.bind({})


def test_text_of_storage() -> None:
    """Places and plans print what they are."""
    plan = StoragePlan(pk.Annotation("storage"), ((1,),), (), {}, {})

    assert str(Storage(Home.ARENA, 3)) == "arena 3"
    assert repr(plan) == "StoragePlan(1 slots, 0 in place, 0 aliases, 0 copies)"


def test_elementwise_operators_share() -> None:
    """By default each input of an elementwise operator may give its place to each result."""
    op = pk.register_op("test_shares", num_inputs=2, num_outputs=2)
    op.set_attr("FCodeGen", lambda node, a, b: (a + b, a - b))
    op.set_attr("TOpPattern", pk.OpPattern.BROADCAST)
    x = pk.var("x", (3,))

    product = ops.matmul(pk.var("a", (2, 2)), pk.var("b", (2, 2)))
    both = op(x, x)
    graph = pk.Graph([*both, product])

    assert sharing(graph, both[0].node) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert sharing(graph, product.node) == []


def test_identities_are_pairs_that_are_the_same() -> None:
    """A reshape is its input byte for byte; an exp is not."""
    x = pk.var("x", (2, 3))

    assert identities(ops.reshape(x, shape=(6,)).node) == [(0, 0)]
    assert identities(ops.exp(x).node) == ()
