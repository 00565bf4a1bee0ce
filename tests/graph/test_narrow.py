"""Composites and gradients of 16-bit floats are computed in float32 if they round twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pytest

import passkit as pk

ops = pk.ops


def float32_ops(outputs: Any, expand: bool = True) -> list[str]:
    """Return the operators, except casts, whose result is float32, after expansion."""
    graph = pk.Graph(outputs)
    if expand:
        graph = pk.ApplyPasses(graph, ["Expand"])
    return sorted(
        n.op.name
        for n in graph.nodes
        if n.op is not None and n.op.name != "cast" and str(n.entries[0].dtype) == "float32"
    )


def casts(outputs: Any) -> int:
    """Return the number of casts after expansion of composites."""
    graph = pk.ApplyPasses(pk.Graph(outputs), ["Expand"])
    return sum(n.op is not None and n.op.name == "cast" for n in graph.nodes)


def half(name: str = "x", shape: Sequence[int] = (4, 6), dtype: str = "float16") -> Any:
    """Return a variable of a 16-bit dtype."""
    return pk.var(name, shape, dtype)


def test_composites_that_round_once_have_no_casts() -> None:
    """Composites that move or select elements, or compute once, are built without casts."""
    x, i = half(), pk.var("i", (3,), "int64")
    moved = [ops.take(x, i, axis=1), ops.roll(x, shift=2), ops.stack(x, x), ops.repeat(x, 2)]
    once = [ops.sum(x), ops.global_max_pool(half("y", (1, 4, 4, 2))), ops.diff(x)]
    slopes = [*pk.gradients(ops.roll(x, shift=2), [x]), *pk.gradients(ops.sum(x * 2.0), [x])]

    assert casts([*moved, *once, *slopes]) == 0


def test_composites_that_round_repeatedly_compute_in_float32() -> None:
    """Composites of several operations are float32 inside; float32 itself gets no casts."""
    for build in (ops.silu, ops.std, ops.softmax, lambda x: ops.diff(x, n=2)):
        for dtype in ("float16", "bfloat16"):
            x = half(dtype=dtype)
            assert float32_ops(build(x))
            assert str(build(x).dtype) == dtype
        assert casts(build(half(dtype="float64"))) == 0


def test_gradients_that_round_repeatedly_are_computed_in_float32() -> None:
    """A gradient that rounds once stays in 16 bits; others, and sums of many, are float32."""
    x, w = half(), half("w", (6, 5))

    assert float32_ops(pk.gradients(x * 3.0 - 1.0, [x]), expand=False) == []
    assert float32_ops(pk.gradients(x @ w, [x, w]), expand=False) == []
    assert float32_ops(pk.gradients(-ops.relu(x), [x]), expand=False) == []
    assert "exp" in float32_ops(pk.gradients(ops.exp(x), [x]), expand=False)
    several = [x, x[::-1], -x]
    assert "add" not in float32_ops(pk.gradients(several[:2], [x]), expand=False)
    assert float32_ops(pk.gradients(several, [x]), expand=False).count("add") == 2


def test_sums_of_gradients_round_once() -> None:
    """Contributions of several users are added in float32, also by a custom aggregate."""
    x = half(shape=(3,))
    dtypes: list[str] = []

    def added(terms: Sequence[Any]) -> Any:
        dtypes.extend(str(t.dtype) for t in terms)
        return reduce(ops.add, terms)

    uses = [x * 1.0 for _ in range(5)]
    weights = [pk.constant(np.full(3, w, np.float16)) for w in (2048, 1, 1, 1, 1)]
    dx = pk.gradients(uses, [x], weights)[0]
    dx_own = pk.gradients(uses, [x], weights, aggregate=added)[0]
    assert dx is not None and dx_own is not None

    results = pk.interpret(pk.Graph([dx, dx_own]))
    assert [str(e.dtype) for e in (dx, dx_own)] == ["float16", "float16"]
    assert dtypes == ["float32"] * 5
    for array in results:
        np.testing.assert_array_equal(array, np.full(3, 2052, np.float16))


def test_broadcast_gradients_round_once() -> None:
    """Products are summed over a broadcast axis before they are rounded."""
    x, b = half(shape=(70_000,)), half("b", ())
    (db,) = pk.gradients(x * b, [b])

    (result,) = pk.interpret(
        pk.Graph([db]), {"x": np.full(70_000, 0.1, np.float16), "b": np.float16(1)}
    )
    assert result == np.float16(70_000 * float(np.float16(0.1)))


SMOOTH: Sequence[Callable[[Any], Any]] = [
    ops.exp,
    ops.tanh,
    ops.gelu,
    ops.softmax,
    ops.log_softmax,
    ops.std,
    ops.reduce_l2,
    ops.logsumexp,
    ops.silu,
    lambda x: ops.layer_norm(x, scale=False, center=False),
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_second_derivatives_are_near_float64(dtype: str, rng: Any) -> None:
    """The gradient of a 16-bit gradient has at most one rounding error."""
    kind = half(dtype=dtype).dtype.numpy
    data = [rng.integers(64, 192, (4, 6)).astype(np.float64) / 128 for _ in range(3)]

    def seconds(dtype: str) -> list[Any]:
        x, w, v = (half(name, dtype=dtype) for name in "xwv")
        outs: list[Any] = []
        for build in SMOOTH:
            y = build(x)
            slopes = pk.gradients(y, [x], [w if y.shape == w.shape else w[0, 0]])
            outs += pk.gradients(slopes, [x], [v])
        feeds = {e.name: a.astype(x.dtype.numpy) for e, a in zip((x, w, v), data, strict=True)}
        return pk.interpret(pk.Graph(outs), feeds)

    eps = 2.0 ** (-10 if kind == np.float16 else -7)
    for result, exact in zip(seconds(dtype), seconds("float64"), strict=True):
        assert result.dtype == kind
        assert np.abs(result.astype(np.float64) - exact).max() <= eps * np.abs(exact).max()


@pytest.fixture
def fixed() -> pk.Op:
    """Return a composite whose expansion and gradient contain float16 constants."""
    two = np.float16(2)
    op = pk.register_op("test_narrow_fixed", num_inputs=1)
    op.set_attr("FExpand", lambda node, x: ops.exp(ops.mul(x, pk.constant(two))))
    op.set_attr("FGradient", lambda node, dy: [ops.exp(ops.mul(dy, pk.constant(two)))])
    op.set_attr("FInferShape", lambda node, shape: shape)
    op.set_attr("FInferType", lambda node, dtype: dtype)
    return op


def test_rules_that_assume_float16_are_refused(fixed: pk.Op) -> None:
    """The error of a rule that mixes float16 with its inputs says that they are float32."""
    x = half()
    message = (
        "test_narrow_fixed was called with float32 inputs in place of its 16-bit floats.*float16"
    )

    with pytest.raises(pk.DTypeError, match=f"FExpand of {message}"):
        pk.interpret(pk.Graph([fixed(x)]), {"x": np.ones((4, 6), np.float16)})
    with pytest.raises(pk.DTypeError, match=f"FGradient of {message}"):
        pk.gradients(fixed(x), [x])


def test_an_expansion_that_returns_none_is_named() -> None:
    """The interpreter names an operator that has no definition but an FExpand returning None."""
    op = pk.register_op("test_narrow_declines", num_inputs=1)
    op.set_attr("FExpand", lambda node, x: None)
    op.set_attr("FInferShape", lambda node, shape: shape)
    op.set_attr("FInferType", lambda node, dtype: dtype)

    with pytest.raises(pk.CodeGenError, match=re.escape("FCompute on op test_narrow_declines")):
        pk.interpret(pk.Graph([op(half())]), {"x": np.ones((4, 6), np.float16)})
