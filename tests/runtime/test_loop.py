"""Loops at run time: one operator, whose graphs are checked, interpreted and compiled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import passkit as pk
from passkit.errors import GraphError

COUNT, TOTAL = pk.var("value_0", (), "int32"), pk.var("value_1", ("n",))
END = pk.var("value_2", (), "int32")
CONDITION = pk.Graph([COUNT < END])
BODY = pk.Graph([COUNT + 1, TOTAL * 2 + 1])
BEGIN = [pk.var("i", (), "int32"), pk.var("x", ("n",))]
CONSTANTS = [pk.var("end", (), "int32")]


def while_loop(
    condition: pk.Graph, body: pk.Graph, state: Sequence[pk.Entry] = BEGIN
) -> Sequence[pk.Entry]:
    """Return the state after a loop, which is called "loop"."""
    params = {"condition": condition, "body": body, "count": len(state)}
    return pk.get_op("while_loop")(*state, *CONSTANTS, **params, name="loop")


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_a_loop_iterates_while_its_condition_holds(target: str) -> None:
    """The condition decides the number of iterations, for any sizes."""
    exe = pk.compile(while_loop(CONDITION, BODY), target=target)

    for n, rounds in ((3, 0), (5, 4)):
        x = np.arange(n, dtype=np.float32)
        i, actual = exe(i=np.int32(0), x=x, end=np.int32(rounds))
        assert i == rounds
        np.testing.assert_array_equal(actual, x * 2**rounds + 2**rounds - 1)


def test_results_of_unknown_rank_have_unknown_rank() -> None:
    """A state of unknown rank gives results of unknown rank."""
    total = pk.var("value_1", None)
    begin = [pk.var("i", (), "int32"), pk.var("x", None)]
    count, actual = while_loop(CONDITION, pk.Graph([COUNT + 1, total * 2]), begin)

    assert (count.shape, actual.shape) == ((), None)
    feeds = {"i": np.int32(0), "end": np.int32(2), "x": np.ones((2, 2), np.float32)}
    assert pk.interpret(pk.Graph([actual]), feeds)[0].tolist() == [[4, 4], [4, 4]]


def test_a_body_must_return_the_state() -> None:
    """A body that returns another number or type of values raises."""
    with pytest.raises(GraphError, match="'loop' has a state of 2 values, and its body returns 1"):
        while_loop(CONDITION, pk.Graph([COUNT]))
    with pytest.raises(
        GraphError, match=r"begins with int32\(\) as value 0 of its state, and .* float32\(n,\)"
    ):
        while_loop(CONDITION, pk.Graph([TOTAL, TOTAL]))


def test_templates_do_not_apply_to_the_graphs_of_a_loop() -> None:
    """Names in a template are not looked up in a loop's graphs."""
    i, x = while_loop(CONDITION, BODY)
    total = pk.ops.reduce_sum(pk.ops.exp(pk.var("y", (8, 300))), axis=1, name="total")
    templates = {total: "reduce_sum_1[GRID,CTA];"}

    exe = pk.compile(pk.Graph([i, x, total]), templates=templates)

    assert [k.grid for k in exe.kernels] == [8]
    feeds = {"i": np.int32(0), "x": np.ones(3, np.float32), "end": np.int32(2)}
    assert exe(feeds | {"y": np.zeros((8, 300), np.float32)})[2].tolist() == [300] * 8
