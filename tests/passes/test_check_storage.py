"""The checker of memory plans detects planted mistakes of every kind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.passes.check_storage import check_storage
from passkit.plan.storage import Home, Storage, StoragePlan

ops = pk.ops
Change = Callable[[StoragePlan, dict[str, pk.Entry]], StoragePlan]


def move(name: str, home: Home, index: int) -> Change:
    """Put the entry of that name somewhere else."""

    def change(plan: StoragePlan, entries: dict[str, pk.Entry]) -> StoragePlan:
        places = pk.Annotation("storage", plan.places)
        places[entries[name]] = Storage(home, index)
        return evolve(plan, places=places)

    return change


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

    assert check_storage(out, out.attrs["storage"]) == out.attrs["storage"].bind({})[1] > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (move("r", Home.ARENA, 0), r"writes r over its input e, .* 8 elements of float32 over 64"),
        (move("t", Home.ARENA, 0), r"transpose 't' writes t over its input e"),
        (
            move("y", Home.OUTPUT, 0),
            r"mul 'k' reads y at bytes 0 to 256 of output 0, which hold o",
        ),
        (move("y", Home.ARENA, 0), r"the caller of output 1 reads y at bytes 0 to 256"),
        (move("a", Home.INPUT, 0), r"add 'a' is written into input 0, which is not ours"),
        (move("a", Home.CONSTANT, 0), r"add 'a' is written into constant 0, which is not ours"),
        (move("k", Home.STATE, 0), r"never"),
        (move("m", Home.STATE, 0), r"add 'y' reads m at bytes 0 to 256 of state 0, which hold s"),
        (move("new", Home.OUTPUT, 1), r"caller of output 1 reads y .* hold new"),
        (
            move("x", Home.ARENA, 0),
            r"variable 'x' must have a buffer of its own, and is in arena 0",
        ),
        (
            move("c", Home.INPUT, 0),
            r"constant 'c' must have a buffer of its own, and is in input 0",
        ),
    ],
)
def test_a_misplaced_value_is_found(change: Change, message: str) -> None:
    """The error tells how a value is misplaced."""
    out, entries = graph()
    plan = change(out.attrs["storage"], entries)
    if message == "never":  # s is read for the last time by k itself, element by element
        check_storage(out, plan)
        return

    with pytest.raises(pk.PassError, match=message):
        check_storage(out, plan)


def test_a_slot_that_is_too_small_is_found() -> None:
    """Values must end before the arena does, and not reach into the next slot."""
    out, _ = graph()
    plan = out.attrs["storage"]
    tight = evolve(plan, slots=((1,),) * len(plan.slots))
    first = evolve(plan, slots=((1,), *plan.slots[1:]))

    with pytest.raises(
        pk.PassError, match=r"arena 0 of 256 bytes ends after the arena's \d+ bytes"
    ):
        check_storage(out, tight)
    with pytest.raises(pk.PassError, match="transpose 't' writes t over its input e"):
        check_storage(out, first)


def test_a_forgotten_copy_is_found() -> None:
    """New values of state and outputs must be in place at the end."""
    x = pk.var("x", (4,))
    twice = pk.ApplyPasses(pk.Graph([x, x]), "PlanMemory")

    with pytest.raises(
        pk.PassError, match="caller of output 0 reads x at bytes 0 to 16 of output 0, w"
    ):
        check_storage(twice, evolve(twice.attrs["storage"], copies=()))
    a = pk.state("a", np.ones(4, "float32"))
    swap = pk.ApplyPasses(pk.Graph([ops.neg(a)], [(a.node, x)]), "PlanMemory")
    with pytest.raises(
        pk.PassError, match="the next call's 'a' reads x at .* state 0, which hold a"
    ):
        check_storage(swap, evolve(swap.attrs["storage"], copies=()))


def test_copies_in_the_wrong_order_are_found() -> None:
    """Swapping two states without saving the old values is an error."""
    a, b = (pk.state(s, np.ones(4, "float32")) for s in "ab")
    out = pk.ApplyPasses(pk.Graph([], [(a.node, b), (b.node, a)]), "PlanMemory")
    plan = out.attrs["storage"]
    check_storage(out, plan)

    with pytest.raises(pk.PassError, match="the copy to state 1 reads b at .* hold nothing"):
        check_storage(out, evolve(plan, copies=plan.copies[::-1][1:] + plan.copies[:1]))


def test_outputs_of_one_node_must_not_overlap() -> None:
    """Two outputs in one slot are an error although nobody reads the second."""
    op = pk.register_op("test_check_two", num_outputs=2)
    op.set_attr("FInferShape", lambda node, s: (s, s))
    op.set_attr("FInferType", lambda node, d: (d, d))
    first, second = op(pk.var("x", (4,)), name="p")
    out = pk.ApplyPasses(pk.Graph([ops.neg(first)]), "PlanMemory")
    places = pk.Annotation("storage", out.attrs["storage"].places)
    places[second] = places[first]

    with pytest.raises(pk.PassError, match="p:0 and p:1 of test_check_two 'p' share bytes"):
        check_storage(out, evolve(out.attrs["storage"], places=places))
