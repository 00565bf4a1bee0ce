"""A loop that runs is one operator; its graphs are checked, and run as the rest is."""

from __future__ import annotations

import numpy as np
import pytest

import passkit as pk
from passkit.errors import GraphError
from passkit.runtime.loop import STATE, while_loop

COUNT, TOTAL = pk.var(f"{STATE}0", (), "int32"), pk.var(f"{STATE}1", ("n",))
END = pk.var(f"{STATE}2", (), "int32")
CONDITION = pk.Graph([COUNT < END])
BODY = pk.Graph([COUNT + 1, TOTAL * 2 + 1])
BEGIN = [pk.var("i", (), "int32"), pk.var("x", ("n",))]
GIVEN = [pk.var("end", (), "int32")]


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_a_loop_goes_round(target: str) -> None:
    """As often as the condition says, for any sizes."""
    exe = pk.compile(while_loop(CONDITION, BODY, BEGIN, GIVEN, "loop"), target=target)

    for n, rounds in ((3, 0), (5, 4)):
        x = np.arange(n, dtype=np.float32)
        i, found = exe(i=np.int32(0), x=x, end=np.int32(rounds))
        assert i == rounds
        np.testing.assert_array_equal(found, x * 2**rounds + 2**rounds - 1)


def test_values_of_unknown_rank() -> None:
    """What is not known before a call is not known of the results either."""
    total = pk.var(f"{STATE}1", None)
    begin = [pk.var("i", (), "int32"), pk.var("x", None)]
    count, found = while_loop(CONDITION, pk.Graph([COUNT + 1, total * 2]), begin, GIVEN, "loop")

    assert (count.shape, found.shape) == ((), None)
    feeds = {"i": np.int32(0), "end": np.int32(2), "x": np.ones((2, 2), np.float32)}
    assert pk.interpret(pk.Graph([found]), feeds)[0].tolist() == [[4, 4], [4, 4]]


def test_bodies_that_do_not_fit() -> None:
    """A body gives as many values as there are, each of its type."""
    with pytest.raises(GraphError, match="'loop' has a state of 2 values, and its body gives 1"):
        while_loop(CONDITION, pk.Graph([COUNT]), BEGIN, GIVEN, "loop")
    with pytest.raises(GraphError, match=r"begins with int32\(\) as value 0, and .* float32\(n,\)"):
        while_loop(CONDITION, pk.Graph([TOTAL, TOTAL]), BEGIN, GIVEN, "loop")


def test_templates_are_for_the_graph_around() -> None:
    """The names of templates are not looked for in a loop's graphs."""
    i, x = while_loop(CONDITION, BODY, BEGIN, GIVEN, "loop")
    total = pk.ops.reduce_sum(pk.ops.exp(pk.var("y", (8, 300))), axis=1, name="total")
    templates = {total: "reduce_sum_1[GRID,CTA];"}

    exe = pk.compile(pk.Graph([i, x, total]), templates=templates)

    assert [k.grid for k in exe.kernels] == [8]
    feeds = {"i": np.int32(0), "x": np.ones(3, np.float32), "end": np.int32(2)}
    assert exe(feeds | {"y": np.zeros((8, 300), np.float32)})[2].tolist() == [300] * 8
