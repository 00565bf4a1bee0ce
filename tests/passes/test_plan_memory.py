"""Memory plans: slots, in place, aliases, results and state."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import numpy as np
import pytest

import passkit as pk
from tests.memory_plans import (
    any_input_overwritten,
    check_plan,
    checked_plan,
    nnvm_plan,
    values_freed_too_early,
)
from tests.passes.storage_graphs import random_graph

ops = pk.ops


def test_a_chain_lives_in_one_slot() -> None:
    """exp -> log -> sqrt of 4x4: NNVM's ids [-1, 0, 0, 0], in place [-1, -1, 0, 0], 64 bytes."""
    x = pk.var("x", (4, 4))

    assert nnvm_plan(ops.sqrt(ops.log(ops.exp(x)))) == ([-1, 0, 0, 0], [-1, -1, 0, 0], 64)


def test_a_diamond_needs_two_slots() -> None:
    """log(s) + sqrt(s): NNVM's ids [-1, 0, 1, 0, 1], 128 bytes."""
    s = ops.exp(pk.var("x", (4, 4)))
    ids, _, total = nnvm_plan(ops.log(s) + ops.sqrt(s))

    assert (ids, total) == ([-1, 0, 1, 0, 1], 128)


def test_bytes_of_elements_count() -> None:
    """Doubles need twice the memory (NNVM took every element for four bytes)."""
    x = pk.var("x", (4, 4), "float64")

    assert nnvm_plan(ops.sqrt(ops.log(ops.exp(x))))[2] == 128


def test_results_have_buffers_of_their_own() -> None:
    """Nothing shares the bytes of an output."""
    e = ops.exp(pk.var("x", (4,)), name="e")
    result = checked_plan(pk.Graph([ops.tanh(e), e, ops.sqrt(ops.tanh(e))]))

    assert str(result[e]) == "output 1"
    assert len(result.slots) == 1


def test_a_result_that_is_an_input_is_copied() -> None:
    """The caller gets an array of its own, also if an input is returned twice."""
    x = pk.var("x", (4,))
    e = ops.exp(x)
    result = checked_plan(
        pk.Graph([x, e, e, ops.reshape(e, shape=(2, 2)), pk.constant(np.ones(3))])
    )

    assert [f"{c.source} -> {c.target}, {c.nbytes}" for c in result.copies] == [
        "input 0 -> output 0, 16",
        "output 1 -> output 2, 16",
        "output 1 -> output 3, 16",
        "constant 0 -> output 4, 24",
    ]


def test_a_reshape_is_an_alias() -> None:
    """A reshape shares the bytes of its input, whose live range includes its own."""
    x = pk.var("x", (2, 3))
    r = ops.reshape(x, shape=(6,))
    e = ops.exp(r)
    back = ops.reshape(e, shape=(2, 3))
    result = checked_plan(pk.Graph([back]))

    assert result.aliases == {r: x, back: e}
    assert (str(result[r]), str(result[e]), str(result[back])) == (
        "input 0",
        "output 0",
        "output 0",
    )
    assert result.slots == ()


def test_a_broadcast_input_is_not_overwritten() -> None:
    """Only an input with as many elements as the output is overwritten."""
    x, row = pk.var("x", (3, 4)), ops.exp(pk.var("r", (1, 4)))
    result = checked_plan(pk.Graph([ops.tanh(ops.add(x, row))]))

    assert len(result.slots) == 2 and result.inplace == {}


def of_two_dtypes() -> pk.Graph:
    """Floats, and a row of doubles with as many bytes, which is broadcast to them."""
    op = pk.register_op("test_mixed", num_inputs=2)
    op.set_attr("FCodeGen", lambda node, a, b: a)
    op.set_attr("TOpPattern", pk.OpPattern.BROADCAST)
    a, b = ops.exp(pk.var("a", (2, 4))), ops.exp(pk.var("b", (1, 4), "float64"))
    return pk.Graph([ops.neg(op(a, b)), ops.neg(a)])


def test_equal_bytes_are_not_enough() -> None:
    """A row of doubles has the bytes of two rows of floats, but is read twice."""
    result = checked_plan(of_two_dtypes())

    assert result.inplace == {}


def test_a_value_that_one_node_reads_twice_is_overwritten() -> None:
    """x * x may overwrite x: both reads are of the element that is written."""
    e = ops.exp(pk.var("x", (4,)))
    square = ops.mul(e, e)
    result = checked_plan(pk.Graph([ops.tanh(square)]))

    assert result.inplace == {square: e}


def test_a_value_with_later_readers_is_not_overwritten() -> None:
    """Only the last reader of a value may overwrite it."""
    e = ops.exp(pk.var("x", (4,)))
    t = ops.tanh(e)
    result = checked_plan(pk.Graph([ops.mul(ops.sqrt(t), e)]))

    assert t not in result.inplace


def test_the_largest_result_chooses_first() -> None:
    """The largest of several outputs takes the best slot, so that no slot grows needlessly."""
    op = pk.register_op("test_small_large", num_outputs=2)
    op.set_attr("FInferShape", lambda node, s: ((1,), s))
    op.set_attr("FInferType", lambda node, d: (d, d))
    a = ops.tanh(ops.transpose(ops.exp(pk.var("x", (64, 64)))))
    small, large = op(ops.reduce_sum(a))
    wide = op(ops.transpose(a))[1]
    result = checked_plan(pk.Graph([ops.neg(small), ops.neg(large), ops.neg(wide)]))

    assert result.bind({})[1] <= 3 * 64 * 64 * 4


def test_unused_results_have_memory() -> None:
    """An unread output is written to memory that no live value has."""
    op = pk.register_op("test_two_out", num_outputs=2)
    op.set_attr("FInferShape", lambda node, s: (s, s))
    op.set_attr("FInferType", lambda node, d: (d, d))
    e = ops.exp(pk.var("x", (4,)))
    a, _ = op(e)
    result = checked_plan(pk.Graph([ops.mul(a, e)]))

    assert len(result.slots) == 3


def test_state_is_updated_in_place() -> None:
    """a <- a + x writes over a, when nobody reads the old a any more."""
    a, x = pk.state("a", np.ones(4, "float32")), pk.var("x", (4,))
    new = ops.add(a, x)
    result = checked_plan(pk.Graph([ops.exp(new)], [(a.node, new)]))

    assert str(result[new]) == "state 0"
    assert result.copies == () and result.inplace == {new: a}


def test_state_that_is_read_later_is_updated_last() -> None:
    """The old value is kept until its last reader has run."""
    a, x = pk.state("a", np.ones(4, "float32")), pk.var("x", (4,))
    new = ops.add(a, x)
    result = checked_plan(pk.Graph([ops.mul(ops.exp(new), a)], [(a.node, new)]))

    assert str(result[new]) == "arena 0"
    assert [str(c.target) for c in result.copies] == ["state 0"]


def test_state_is_not_overwritten_while_it_is_transposed() -> None:
    """Only an elementwise reader may be the writer."""
    a = pk.state("a", np.ones((4, 4), "float32"))
    result = checked_plan(pk.Graph([], [(a.node, ops.transpose(a))]))

    assert [str(c.target) for c in result.copies] == ["state 0"]


def test_state_read_before_may_be_overwritten_by_anything() -> None:
    """After the last reader, a product is computed in the state's own buffer."""
    a = pk.state("a", np.ones((4, 4), "float32"))
    e = ops.exp(a)
    new = ops.matmul(e, e)
    result = checked_plan(pk.Graph([], [(a.node, new)]))

    assert str(result[new]) == "state 0" and result.copies == ()


def test_states_are_swapped() -> None:
    """a <- b and b <- a: the old values are saved before either is written."""
    a, b = (pk.state(s, np.ones(4, "float32")) for s in "ab")
    result = checked_plan(pk.Graph([], [(a.node, b), (b.node, a)]))

    assert [f"{c.source} -> {c.target}" for c in result.copies] == [
        "state 0 -> arena 0",
        "state 1 -> arena 1",
        "arena 0 -> state 1",
        "arena 1 -> state 0",
    ]


def test_a_result_and_new_state_are_two_arrays() -> None:
    """An output and new state of one value have separate buffers."""
    a = pk.state("a", np.ones(4, "float32"))
    new = ops.add(a, 1.0)
    result = checked_plan(pk.Graph([new], [(a.node, new)]))

    assert [f"{c.source} -> {c.target}" for c in result.copies] == ["output 0 -> state 0"]


def test_sizes_may_be_unknown() -> None:
    """A slot holds the largest of its values; its bytes are known when sizes are."""
    n, m = pk.Size.symbol("n"), pk.Size.symbol("m")
    x, y = pk.var("x", (n, 4)), pk.var("y", (m, 4))
    a = ops.reduce_sum(ops.exp(x), axis=0)
    b = ops.reduce_sum(ops.exp(y), axis=0)
    graph = pk.ApplyPasses(pk.Graph([a + b]), "PlanMemory")
    result = graph.attrs["storage"]

    small, large = (check_plan(graph, result, {"n": 3, "m": k}) for k in (2, 50))
    assert (small, large) == (3 * 64, 832 + 2 * 64)
    assert {s for slot in result.slots for s in slot} >= {n * 16, m * 16}


def test_slots_of_unlike_sizes_are_not_shared() -> None:
    """A scalar does not take a slot that is more than sixteen times as large."""
    big = ops.transpose(ops.exp(pk.var("x", (64, 64))))
    small = ops.transpose(ops.exp(pk.var("y", (2, 2))))
    late = ops.exp(ops.reduce_sum(big)) * ops.exp(small)
    result = checked_plan(pk.Graph([ops.neg(late)]))

    assert max(len(slot) for slot in result.slots) == 1


@pytest.mark.parametrize(("extent", "shared"), [(2, False), (64, True)])
def test_slots_of_unknown_sizes_are_compared_as_1024_elements(extent: int, shared: bool) -> None:
    """A slot of n floats counts as 4096 bytes: it holds a value of 256 bytes, not one of 8."""
    large = ops.transpose(ops.exp(pk.var("x", ("n", 1))))
    small = ops.transpose(ops.exp(pk.var("y", (extent, 1))))
    late = ops.exp(ops.reduce_sum(large)) * ops.exp(small)
    result = checked_plan(pk.Graph([ops.neg(late)]))

    n = pk.Size.symbol("n")
    assert any({n * 4, extent * 4} <= set(slot) for slot in result.slots) is shared


def test_sizes_may_divide_by_zero_where_slots_are_compared() -> None:
    """A program whose size has no value for 1024 is planned; a call with 1024 elements fails."""
    x, y = pk.var("x", ("n",)), pk.var("y", (1,))
    n = pk.Size.symbol("n")
    stretched = ops.broadcast_to(y, shape=(n // (n - 1024),))
    run = pk.compile(pk.Graph([ops.sort(stretched + 1.0), ops.reduce_sum(x)]))

    values, total = run(x=np.ones(2048, np.float32), y=np.zeros(1, np.float32))
    assert (values.tolist(), total) == ([1, 1], 2048)
    with pytest.raises(pk.ShapeError, match=r"divides by zero at {'n': 1024}"):
        run(x=np.ones(1024, np.float32), y=np.zeros(1, np.float32))


def test_writes_of_state_must_be_values() -> None:
    """An assign that is still a node is refused."""
    a = pk.state("a", np.ones(4, "float32"))
    with pytest.raises(pk.PassError, match="assign 'w' writes state; run Functionalize first"):
        checked_plan(pk.Graph([ops.assign(a, a, name="w")]))


@pytest.mark.parametrize("symbolic", [False, True])
def test_random_graphs_have_sound_plans(symbolic: bool, rng: np.random.Generator) -> None:
    """An independent checker simulates 300 random graphs, at several sizes."""
    visited: Counter[str] = Counter()
    for _ in range(150):
        graph = random_graph(rng, visited, symbolic)
        out = pk.ApplyPasses(graph, "PlanMemory")
        result = out.attrs["storage"]
        for n in (0, 1, 7) if symbolic else (0,):
            check_plan(out, result, {"n": n})
        visited["in place"] += len(result.inplace)
        visited["alias"] += len(result.aliases)
        visited["copy"] += len(result.copies)
        visited["state in place"] += any(
            result[e].home.value == "state" for _, e in out.updates if not e.node.is_variable
        )
        shared = Counter(result[e].index for e in result.places if result[e].home.value == "arena")
        visited["shared slot"] += any(count > 1 for count in shared.values())
    print(dict(visited))
    assert min(visited.values()) > 0 and len(visited) == 17


def test_a_value_freed_too_early_is_found(rng: np.random.Generator) -> None:
    """A planner that frees values one reader too early is caught within a few graphs."""
    message = r"reads \w+ at bytes|over its input \w+"
    with values_freed_too_early(), pytest.raises(pk.PassError, match=message):
        for _ in range(50):
            with suppress(AssertionError):  # the planner itself may notice
                checked_plan(random_graph(rng, Counter()))


def test_a_broadcast_input_that_is_overwritten_is_found() -> None:
    """A planner that writes over broadcast inputs is caught, too."""
    message = "over its input exp, .* 8 elements of float32 over 4"
    with any_input_overwritten(), pytest.raises(pk.PassError, match=message):
        checked_plan(of_two_dtypes())
