"""``jit``: one trace for each structure of arguments."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest

import passkit as pk
from passkit.errors import GraphError

pytestmark = pytest.mark.usefixtures("quick_kernels")


def array(*shape: int) -> Any:
    """Small whole numbers."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_jit_keeps_calls_and_name() -> None:
    """A jitted function is called like the traced function, and keeps its name."""

    @pk.jit
    def scaled(x: Any, y: Any, factor: float = 2.0) -> Any:
        """Doc."""
        return x * factor + y

    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Doc.")
    np.testing.assert_array_equal(scaled(array(3), array(3)), array(3) * 3)
    np.testing.assert_array_equal(scaled(array(3), y=array(3), factor=4.0), array(3) * 5)
    assert len(scaled.executables) == 2


class Bounds(NamedTuple):
    """A result with named members."""

    low: Any
    high: Any


@pytest.mark.parametrize(
    "result",
    [
        lambda x: x,
        lambda x: (x + 1, x),
        lambda x: [x + 1],
        lambda x: {"a": x + 1, "b": -x},
        lambda x: Bounds(x - 1, x + 1),
    ],
)
def test_results_come_in_the_same_form(result: Any) -> None:
    """An array, or a tuple, named tuple, list or dict of them, also on the second, fast call."""
    f = pk.jit(result)
    expected = result(array(4))

    for _ in range(2):
        outcome = f(array(4))
        assert type(outcome) is type(expected)
        pairs = (
            [(outcome, expected)]
            if isinstance(expected, np.ndarray)
            else list(
                zip(outcome.values(), expected.values(), strict=True)
                if isinstance(expected, dict)
                else zip(outcome, expected, strict=True)
            )
        )
        for a, b in pairs:
            np.testing.assert_array_equal(a, b)


def test_a_changed_extent_becomes_unknown() -> None:
    """The first trace has known extents, the next an unknown one; then nothing is traced again."""
    traced = []

    @pk.jit
    def f(x: Any) -> Any:
        traced.append(x.shape)
        return pk.ops.reduce_sum(pk.ops.exp(x) * x, axis=1)

    for n in (4, 4, 5, 6, 999, 4):
        np.testing.assert_allclose(
            f(array(n, 3) / 100), (np.exp(array(n, 3) / 100) * array(n, 3) / 100).sum(1), rtol=1e-5
        )
    assert len(traced) == 2 and traced[0] == (4, 3) and traced[1][1] == 3
    f(array(2, 5))
    assert len(traced) == 3
    f(array(2, 3).astype(np.float64))
    assert len(traced) == 4


def test_an_extent_of_one_is_traced_separately() -> None:
    """An extent of 1 broadcasts, and so has a trace of its own."""
    f = pk.jit(lambda x, y: x + y)

    for a, b in ((3, 3), (4, 4), (1, 4), (4, 1), (1, 1), (5, 5), (1, 6)):
        np.testing.assert_array_equal(f(array(a, 2), array(b, 2)), array(a, 2) + array(b, 2))


def test_items_of_tuples_and_arguments_may_have_similar_names() -> None:
    """An argument that is called as the item of a tuple would be keeps its own array."""

    @pk.jit(target="interpret")
    def total(x: Any, x_0: Any, x_0_: Any) -> Any:
        return x[0] + x[1] * 10 + x_0 * 100 + x_0_ * 1000

    one, two, three, four = (np.array([n], np.float32) for n in (1, 2, 3, 4))

    assert total((one, two), three, four).tolist() == [4321]


def test_tuples_of_arrays_and_unused_arguments() -> None:
    """A tuple of arrays is an argument; an unused argument is accepted."""
    f = pk.jit(lambda pair, unused: pair[0] - pair[1])

    np.testing.assert_array_equal(f((array(3) * 2, array(3)), array(7)), array(3))
    np.testing.assert_array_equal(f((array(4) * 2, array(4)), array(1)), array(4))


def test_jit_takes_options_and_threads() -> None:
    """Options are those of compile; calls may come from several threads."""
    f = pk.jit(lambda x: pk.ops.exp(x), target="interpret")
    assert next(iter(f.executables.values()), None) is None
    f(array(3))
    assert [e.target.name for _, e, _ in f.executables.values()] == ["interpret"]
    g = pk.jit(lambda x: x * 3)
    with ThreadPoolExecutor(4) as pool:
        for n, y in enumerate(pool.map(lambda n: g(array(n + 1)), range(60))):
            np.testing.assert_array_equal(y, array(n + 1) * 3)


def test_arguments_and_results_that_cannot_be_traced() -> None:
    """Unhashable arguments, and results that are not entries, are errors."""
    with pytest.raises(GraphError, match="argument 'x' of a jitted function must be .* got list"):
        pk.jit(lambda x: x)([1, 2])
    with pytest.raises(GraphError, match="<lambda> must return an Entry, .* got str"):
        pk.jit(lambda x: "x")(array(3))


def test_graph_inputs_can_be_reordered() -> None:
    """`with_inputs` reorders the inputs of a graph, and refuses others."""
    graph = pk.parse("x: f32[2]; y: f32[2]; return sub(x, y)")
    x, y = graph.inputs

    assert [n.name for n in graph.with_inputs([y, x]).inputs] == ["y", "x"]
    with pytest.raises(GraphError, match="must contain each input once, x, y, got x"):
        graph.with_inputs([x])


@pytest.mark.parametrize("target", ["cpu", "blocks", "interpret"])
def test_arguments_keep_their_order(target: str) -> None:
    """Positional arguments are matched in order, for every target."""
    outcome = pk.jit(lambda x, y: y - x, target=target)(array(3), array(3) + 1)

    assert outcome.tolist() == [1, 1, 1]
