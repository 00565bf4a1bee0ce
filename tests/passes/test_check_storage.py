"""The checker of memory plans detects planted mistakes of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from tests.memory_plans import check_plan, moved

ops = pk.ops


def graph() -> tuple[pk.Graph, dict[str, pk.Entry]]:
    """e and t live at once; p is broadcast; s is updated; y and e are results."""
    x, c = pk.var("x", (8, 8)), pk.constant(np.ones((8, 8), "float32"), name="c")
    s = pk.state("s", np.ones((8, 8), "float32"))
    e = ops.exp(ops.add(x, c, name="a"), name="e")
    r = ops.reduce_sum(e, axis=0, keepdims=True, name="r")
    t = ops.transpose(e, name="t")
    y = ops.add(ops.mul(t, r, name="m"), s, name="y")
    new = ops.tanh(ops.mul(y, s, name="k"), name="new")
    out = pk.ApplyPasses(pk.Graph([ops.neg(y, name="o"), y], [(s.node, new)]), "PlanMemory")
    return out, {v.name: v.entries[0] for v in out.nodes}


def test_a_sound_plan_passes() -> None:
    """A plan of PlanMemory passes the check, which returns the bytes of the arena."""
    out, _ = graph()

    assert check_plan(out, out.attrs["storage"]) == out.attrs["storage"].bind({})[1] > 0


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (("r", "arena", 0), r"writes r over its input e, .* 8 elements of float32 over 64"),
        (("t", "arena", 0), r"transpose 't' writes t over its input e"),
        (
            ("y", "output", 0),
            r"mul 'k' reads y at bytes 0 to 256 of output 0, which hold o",
        ),
        (("y", "arena", 0), r"the caller of output 1 reads y at bytes 0 to 256"),
        (("a", "input", 0), r"add 'a' is written into input 0, which a run must not change"),
        (("a", "constant", 0), r"add 'a' is written into constant 0, which a run must not change"),
        (("m", "state", 0), r"add 'y' reads m at bytes 0 to 256 of state 0, which hold s"),
        (("new", "output", 1), r"caller of output 1 reads y .* hold new"),
        (
            ("x", "arena", 0),
            r"variable 'x' must have a buffer of its own, and is in arena 0",
        ),
        (
            ("c", "input", 0),
            r"constant 'c' must have a buffer of its own, and is in input 0",
        ),
    ],
)
def test_a_misplaced_value_is_found(place: tuple[str, str, int], message: str) -> None:
    """The error tells how a value is misplaced."""
    out, entries = graph()
    name, home, index = place
    plan = moved(out.attrs["storage"], entries[name], home, index)

    with pytest.raises(pk.PassError, match=message):
        check_plan(out, plan)


def test_the_last_reader_may_overwrite_a_state() -> None:
    """k is the last to read s, element by element, and may be written over it."""
    out, entries = graph()
    check_plan(out, moved(out.attrs["storage"], entries["k"], "state", 0))


def test_a_slot_that_is_too_small_is_found() -> None:
    """Values must end before the arena does, and not reach into the next slot."""
    out, _ = graph()
    plan = out.attrs["storage"]
    tight = evolve(plan, slots=((1,),) * len(plan.slots))
    first = evolve(plan, slots=((1,), *plan.slots[1:]))

    with pytest.raises(
        pk.PassError, match=r"arena 0 of 256 bytes ends after the arena's \d+ bytes"
    ):
        check_plan(out, tight)
    with pytest.raises(pk.PassError, match="transpose 't' writes t over its input e"):
        check_plan(out, first)


def test_a_forgotten_copy_is_found() -> None:
    """New values of state and outputs must be in place at the end."""
    x = pk.var("x", (4,))
    twice = pk.ApplyPasses(pk.Graph([x, x]), "PlanMemory")

    with pytest.raises(
        pk.PassError, match="caller of output 0 reads x at bytes 0 to 16 of output 0, w"
    ):
        check_plan(twice, evolve(twice.attrs["storage"], copies=()))
    a = pk.state("a", np.ones(4, "float32"))
    swap = pk.ApplyPasses(pk.Graph([ops.neg(a)], [(a.node, x)]), "PlanMemory")
    with pytest.raises(
        pk.PassError, match="the next call's 'a' reads x at .* state 0, which hold a"
    ):
        check_plan(swap, evolve(swap.attrs["storage"], copies=()))


def test_copies_in_the_wrong_order_are_found() -> None:
    """Swapping two states without saving the old values is an error."""
    a, b = (pk.state(s, np.ones(4, "float32")) for s in "ab")
    out = pk.ApplyPasses(pk.Graph([], [(a.node, b), (b.node, a)]), "PlanMemory")
    plan = out.attrs["storage"]
    check_plan(out, plan)

    with pytest.raises(pk.PassError, match="the copy to state 1 reads b at .* hold nothing"):
        check_plan(out, evolve(plan, copies=plan.copies[::-1][1:] + plan.copies[:1]))


def test_outputs_of_one_node_must_not_overlap() -> None:
    """Two outputs in one slot are an error although nobody reads the second."""
    op = pk.register_op("test_check_two", num_outputs=2)
    op.set_attr("FInferShape", lambda node, s: (s, s))
    op.set_attr("FInferType", lambda node, d: (d, d))
    first, second = op(pk.var("x", (4,)), name="p")
    out = pk.ApplyPasses(pk.Graph([ops.neg(first)]), "PlanMemory")
    slot = out.attrs["storage"][first].index
    plan = moved(out.attrs["storage"], second, "arena", slot)

    with pytest.raises(pk.PassError, match="p:0 and p:1 of test_check_two 'p' share bytes"):
        check_plan(out, plan)
