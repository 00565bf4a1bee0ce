"""One kernel each: what users write as softmax, layer norm and GELU, in several spellings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.planned import agrees, feeds_of, prebuild

ops = pk.ops
Spread = Callable[[str, pk.Entry, int], pk.Entry]
SHAPE = (3, 5, 70)


def keepdims(name: str, x: pk.Entry, axis: int) -> pk.Entry:
    """A reduction that keeps its axis, and broadcasts by itself."""
    return getattr(ops, name)(x, axis=axis, keepdims=True)


def expanded(name: str, x: pk.Entry, axis: int) -> pk.Entry:
    """A reduction without its axis, which is put back."""
    return ops.expand_dims(getattr(ops, name)(x, axis=axis), axis=axis)


def reshaped(name: str, x: pk.Entry, axis: int) -> pk.Entry:
    """A reduction without its axis, reshaped to have it."""
    shape = tuple(1 if k == axis % 3 else n for k, n in enumerate(x.shape))
    return ops.reshape(getattr(ops, name)(x, axis=axis), shape=shape)


def broadcast(name: str, x: pk.Entry, axis: int) -> pk.Entry:
    """A reduction broadcast by an operator of its own."""
    return ops.broadcast_to(expanded(name, x, axis), shape=x.shape)


def softmax(x: pk.Entry, axis: int, of: Spread) -> pk.Entry:
    """exp(x - max) / sum."""
    e = ops.exp(x - of("reduce_max", x, axis))
    return e / of("reduce_sum", e, axis)


def log_softmax(x: pk.Entry, axis: int, of: Spread) -> pk.Entry:
    """x - max - log(sum(exp(x - max)))."""
    d = x - of("reduce_max", x, axis)
    return d - ops.log(of("reduce_sum", ops.exp(d), axis))


def layer_norm(x: pk.Entry, axis: int, of: Spread) -> pk.Entry:
    """Scaled, shifted, the variance as the mean of squared deviations."""
    scale, shift = along("scale", axis), along("shift", axis)
    d = x - of("reduce_mean", x, axis)
    return d * ops.rsqrt(of("reduce_mean", d * d, axis) + 1e-5) * scale + shift


def layer_norm_of_squares(x: pk.Entry, axis: int, of: Spread) -> pk.Entry:
    """The variance as E[x²] - mean²."""
    mean = of("reduce_mean", x, axis)
    variance = of("reduce_mean", x * x, axis) - mean * mean
    return (x - mean) / ops.sqrt(variance + 1e-5)


def along(name: str, axis: int) -> pk.Entry:
    """A vector input, laid along one axis."""
    shape = tuple(n if k == axis % 3 else 1 for k, n in enumerate(SHAPE))
    return ops.reshape(pk.var(name, (SHAPE[axis],), "float32"), shape=shape)


def gelus() -> Iterator[tuple[str, Callable[[pk.Entry], pk.Entry]]]:
    """GELU's three forms, each in three spellings."""
    yield "erf", lambda x: x * 0.5 * (ops.erf(x / 2**0.5) + 1)
    yield "erf factored", lambda x: 0.5 * (x + x * ops.erf(x * 0.5**0.5))
    yield "erf composite", lambda x: ops.gelu(x, approximate="none")
    c = (2 / np.pi) ** 0.5
    yield "tanh", lambda x: 0.5 * x * (1 + ops.tanh(c * (x + 0.044715 * x * x * x)))
    yield "tanh power", lambda x: 0.5 * x * (1 + ops.tanh((x + 0.044715 * x**3) * c))
    yield "tanh composite", lambda x: ops.gelu(x, approximate="tanh")
    yield "sigmoid", lambda x: x * ops.sigmoid(1.702 * x)
    yield "sigmoid written out", lambda x: x / (1 + ops.exp(-1.702 * x))
    yield "sigmoid composite", lambda x: ops.gelu(x, approximate="sigmoid")


def graphs() -> Iterator[tuple[str, pk.Graph]]:
    """Every program over last, first and middle axes, in every spelling."""
    x = pk.var("x", SHAPE, "float32")
    for make in (softmax, log_softmax, layer_norm, layer_norm_of_squares):
        for of in (keepdims, expanded, reshaped, broadcast):
            for axis in (-1, 0, 1):
                yield f"{make.__name__} {of.__name__} {axis}", pk.Graph([make(x, axis, of)])
    for form, gelu in gelus():
        yield f"gelu {form}", pk.Graph([gelu(x)])
        for axis in (-1, 0, 1):
            bias = along("bias", axis)
            yield f"bias gelu {form} {axis}", pk.Graph([gelu(x + bias)])
            spread = ops.broadcast_to(bias, shape=SHAPE)
            yield f"bias spread gelu {form} {axis}", pk.Graph([gelu(ops.add(spread, x))])


GRAPHS = dict(graphs())


@pytest.fixture(scope="module", autouse=True)
def _built(quick_module: None) -> None:
    """Compile the kernels of all graphs at once."""
    prebuild(GRAPHS.values())


@pytest.mark.parametrize("name", GRAPHS)
def test_one_kernel(name: str, rng: Any) -> None:
    """One kernel, one launch, one native call a run, and the operators' results."""
    graph = GRAPHS[name]
    exe, feeds = pk.compile(graph), feeds_of(graph, rng)
    before = exe.stats["native_calls"]
    outs = exe(feeds)

    assert (len(exe.kernels), exe.stats["launches"]) == (1, 1)
    assert exe.stats["native_calls"] == before + 1
    assert exe.stats["python_calls"] == exe.stats["library_calls"] == 0
    agrees(graph, feeds, outs, 1e-4 if "squares" in name else 2e-6)  # E[x²] - mean² cancels


@pytest.mark.parametrize("make", [softmax, log_softmax, layer_norm_of_squares])
def test_one_kernel_of_unknown_sizes(make: Any, rng: Any) -> None:
    """Also where no size is known; one kernel then serves them all."""
    x = pk.var("x", ("n", "m"), "float32")
    graph = pk.Graph([make(x, -1, keepdims)])
    exe = pk.compile(graph)
    for n, m in ((3, 5), (1, 1), (2, 333), (40, 64)):
        feeds = feeds_of(graph, rng, n=n, m=m)
        agrees(graph, feeds, exe(feeds), 1e-4)

    assert len(exe.kernels) == 1


def test_spellings_share_a_kernel() -> None:
    """Spellings of one meaning come down to one text: it is compiled once."""
    names = [f"softmax {s} -1" for s in ("keepdims", "expanded", "reshaped", "broadcast")]
    keys = {k.key for name in names for k in pk.compile(GRAPHS[name]).kernels}

    assert len(keys) == 1


def test_shifted_windows_are_one_kernel(rng: Any) -> None:
    """Windows of rolled images are normalized where they come from, as they return there."""
    graph = pk.parse(
        """x: f32[2, 14, 21, 64]
        rolled = roll(x, shift=(-3, -3), axis=(1, 2))
        grid = transpose(reshape(rolled, shape=(2, 2, 7, 3, 7, 64)), axes=(0, 1, 3, 2, 4, 5))
        normed = layer_norm(reshape(grid, shape=(12, 49, 64)), scale=false, center=false)
        back = transpose(reshape(normed, shape=(2, 2, 3, 7, 7, 64)), axes=(0, 1, 3, 2, 4, 5))
        unrolled = roll(reshape(back, shape=(2, 14, 21, 64)), shift=(3, 3), axis=(1, 2))
        return add(x, unrolled)"""
    )
    exe, feeds = pk.compile(graph), feeds_of(graph, rng)

    agrees(graph, feeds, exe(feeds), 2e-6)
    assert len(exe.kernels) == 1
