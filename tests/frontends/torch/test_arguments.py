"""Arguments of compiled functions that are no dense tensors: numbers that change, other layouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

import sympy  # noqa: E402
from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache  # noqa: E402

from passkit.errors import SettingError  # noqa: E402
from passkit.frontends.torch import passkit_backend, report  # noqa: E402
from passkit.frontends.torch.errors import UnsupportedNodeError  # noqa: E402
from passkit.frontends.torch.reports import recording  # noqa: E402
from passkit.frontends.torch.symbols import (  # noqa: E402
    GraphSymbols,
    extent_of_expression,
    hint_of,
    known_symbols,
)
from passkit.values.size import Size  # noqa: E402

F: Any = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore")


@torch.library.custom_op("passkit_tests::scaled", mutates_args=())  # type: ignore[untyped-decorator]
def scaled(x: torch.Tensor, factor: int, terms: list[int]) -> torch.Tensor:
    """Return a tensor times a number plus others."""
    return x * factor + sum(terms)


@scaled.register_fake  # type: ignore[untyped-decorator]
def _(x: Any, factor: int, terms: list[int]) -> Any:
    return torch.empty_like(x)


def assert_equal(actual: Any, expected: Any) -> None:
    """Compare results, which are tensors, numbers or tuples of them."""
    pairs = zip(*map(torch.utils._pytree.tree_leaves, (actual, expected)), strict=True)
    for a, b in pairs:
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        else:
            assert a == b


def check(
    function: Callable[..., Any], numbers: Sequence[Any], compilations: int | None = None
) -> None:
    """Compare calls with PyTorch, and the graphs that were compiled with a number of them."""
    x = torch.arange(24.0).view(4, 6) - 3
    with recording() as records:
        fast = torch.compile(function, backend=passkit_backend)
        for number in numbers:
            assert_equal(fast(x, number), function(x, number))
    assert not any(graph.whole for graph in records)
    assert compilations is None or len(records) == compilations


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: x * n + n,
        lambda x, n: (x + n // 3, x * (n % 4), n // 3, n % 4, -n, n * n - 1, n),
        lambda x, n: F.pad(x, (n, 1)),
        lambda x, n: torch.zeros(n + 5) + n,
        lambda x, n: torch.zeros(n // 2 + 5) + n,
        lambda x, n: x[:, n:] + n * x.shape[0],
        lambda x, n: torch.roll(x, n, 1),
        lambda x, n: (x > n) & (x != n),
        lambda x, n: x.int() * n + (x.long() << n * n) - (x.to(torch.int8) + n),
        lambda x, n: scaled(x, n, [n + 1, n // 2]) - n,
        lambda x, n: torch.poisson(x * 0) + n // 2,
    ],
    ids=[
        "value",
        "quotients and results",
        "padding",
        "extent",
        "quotient as extent",
        "slice",
        "roll",
        "comparison",
        "integers",
        "argument of a custom operator",
        "random operator",
    ],
)
def test_integers_may_be_negative_and_change(function: Callable[..., Any]) -> None:
    """An integer argument that changes is not a length: it may be negative."""
    check(function, (2, 3, -2, -3, 4, 0, 1))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x[-y.shape[0] :] * 2,
        lambda x, y: x[y.shape[0] - 4 :] * 2,
        lambda x, y: x[3 - 2 * y.shape[0] : -1] * 2,
        lambda x, y: x[y.shape[0] :: 2] * 2,
        lambda x, y: y[5:] * 2,
        lambda x, y: y[-5:] * 2,
        lambda x, y: x.select(0, -y.shape[0]) * 2,
        lambda x, y: torch.slice_scatter(x, y, 0, -y.shape[0]),
    ],
    ids=[
        "from the end",
        "either",
        "before the first",
        "steps",
        "behind the last",
        "before the first of few",
        "one element",
        "scattered",
    ],
)
def test_slices_begin_at_symbolic_positions(function: Callable[..., Any]) -> None:
    """Positions count from the end of an axis if they are negative, and stop at its ends."""
    x = torch.arange(12.0).view(6, 2)
    with recording() as records:
        fast = torch.compile(function, backend=passkit_backend, dynamic=True)
        for n in (3, 2, 5, 4, 6):
            y = -torch.ones(n, 2)
            assert_equal(fast(x, y), function(x, y))
    assert not any(graph.whole for graph in records)


def test_lengths_of_a_call_have_no_hint() -> None:
    """A length that only a call computes is not compared before."""
    with known_symbols(GraphSymbols(hints={"s0": 3})):
        assert hint_of(Size.symbol("s0") * -2) == -6
        with pytest.raises(UnsupportedNodeError, match=r"the value of s0 - u0 is not known"):
            hint_of(Size.symbol("s0") - Size.symbol("u0"))


def test_integers_may_be_large() -> None:
    """A number takes no memory: it is no length, and symbols that are one have no elements."""
    check(lambda x, n: x * n + n, (2, 3, 2**40, 2**62, -(2**62)), compilations=2)
    check(lambda x, n: torch.zeros(n - 2**40) + x[0, 0], (2**40 + 2, 2**40 + 3, 2**40 + 5))


def test_gradients_with_integers() -> None:
    """The backward graph gets the numbers of the forward graph."""

    def gradient(function: Callable[..., Any], n: int) -> Any:
        x = (torch.arange(24.0).view(4, 6) + 1).requires_grad_()
        function(x, n).backward()
        return x.grad

    def function(x: Any, n: int) -> Any:
        return (x * n)[:, : abs(n) + 1].sum() + (x**n).sum() * n

    fast = torch.compile(function, backend=passkit_backend)
    for n in (2, 3, -2, 4, -1):
        assert_equal(gradient(fast, n), gradient(function, n))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, s: (x * s).clamp(-s, s),
        lambda x, s: F.rms_norm(x * s, (6,), eps=s + 1e-3),
        lambda x, s: F.huber_loss(x * s, x + 1, delta=s),
        lambda x, s: F.scaled_dot_product_attention(x * s, x, x, scale=s),
        lambda x, s: x * s + s,
    ],
    ids=["clamp", "norm", "loss", "attention", "any value"],
)
def test_floats_that_change(function: Callable[..., Any]) -> None:
    """A graph for one value of a float is not found for another one in PyTorch's cache."""
    for _ in range(2):
        check(function, (0.1, 0.2, 0.3, 0.4, 0.3))
        torch._dynamo.reset()


def test_a_graph_for_one_value_of_a_float_is_not_saved() -> None:
    """Saving names the condition and the setting that makes the value part of the key."""

    def save(path: Path | None = None) -> Any:
        torch._dynamo.reset()
        fast = torch.compile(
            lambda x, s: (x * s).clamp(-s, s),
            backend=passkit_backend,
            fullgraph=True,
            dynamic=True,
        )
        return fast.aot_compile(((torch.ones(3), 0.25), {}))

    with pytest.raises(
        BypassAOTAutogradCache,
        match=r"the graph is for Eq\(.*0\.25\).*specialize_float = True",
    ):
        save()
    with torch._dynamo.config.patch(specialize_float=True):
        assert_equal(save()(torch.ones(3), 0.25), torch.full((3,), 0.25))


def test_graphs_with_sparse_tensors_are_those_of_pytorch() -> None:
    """The sparse gradient of an embedding is computed by PyTorch, and the report says why."""
    table = torch.nn.Embedding(5, 3, sparse=True)
    rows = torch.tensor([1, 2, 1])
    with recording() as records:
        fast = torch.compile(lambda i: table(i) * 2, backend=passkit_backend)
        fast(rows).sum().backward()
    assert table.weight.grad.layout is torch.sparse_coo
    actual, table.weight.grad = table.weight.grad.to_dense(), None
    (table(rows) * 2).sum().backward()
    assert_equal(actual, table.weight.grad.to_dense())
    forward, backward = records
    assert not forward.whole
    assert "has a tensor of layout torch.sparse_coo" in backward.whole
    module = torch.fx.symbolic_trace(lambda x: (x + x,))
    with pytest.raises(SettingError, match=r"a whole graph: .* of layout torch\.sparse_coo"):
        x = torch.eye(3).to_sparse()
        passkit_backend(module, [x], options={"fallback": "error"})


def test_nested_tensors() -> None:
    """Lengths of ragged axes pass through; gradients of the values are those of PyTorch."""
    layer = torch.nn.Linear(4, 4)

    def function(x: Any) -> Any:
        return (layer(x) * 2).sin()

    fast = torch.compile(function, backend=passkit_backend)
    for lengths in ((2, 3), (1, 4), (3, 1, 2)):
        parts = [torch.randn(n, 4) for n in lengths]
        values = []
        for run in (fast, function):
            x = torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)
            y = run(x)
            y.values().sum().backward()
            values.append((y.values(), y.offsets(), x.grad.values()))
        assert_equal(*values)
    shown = report(function, torch.nested.nested_tensor(parts, layout=torch.jagged))
    assert shown.graphs > 0
    assert shown.native == shown.nodes > 0


def longest(x: Any, y: Any) -> Any:
    """Return sums in an array of the greater of two lengths."""
    return x.new_zeros(torch.sym_max(x.shape[0], y.shape[0]), x.shape[1]) + x.sum(0) + y.sum(0)


def common(x: Any, y: Any) -> Any:
    """Return products of the rows that two tensors both have, and their number."""
    rows = torch.sym_min(x.shape[0], y.shape[0])
    return x[:rows] * y[:rows], rows


def repeated(x: Any, y: Any) -> Any:
    """Return rows of ones, as many as the difference of two lengths."""
    return x.new_ones(abs(x.shape[0] - y.shape[0]), 3) * y.sum()


def resized(x: Any, y: Any) -> Any:
    """Return an image of three halves of the size."""
    return F.interpolate(x[None, None] * 2, scale_factor=1.5) + y.sum()


def square(x: Any, y: Any) -> Any:
    """Return ones, as many as the root of a length."""
    return x.new_ones(int(math.sqrt(x.shape[0]))) * y.sum()


@pytest.mark.parametrize("function", [longest, common, repeated, resized, square])
def test_sizes_may_be_computed_of_other_sizes(function: Callable[..., Any]) -> None:
    """Maxima, absolute values, roots and products with floats are computed at each call."""
    with recording() as records:
        fast = torch.compile(function, backend=passkit_backend, dynamic=True)
        for rows, others in ((9, 4), (11, 13), (4, 7)):
            x, y = torch.randn(rows, 5), torch.randn(others, 5)
            assert_equal(fast(x, y), function(x, y))
    assert [graph.whole for graph in records] == [""] and not records[0].externs


def test_a_computed_size_is_not_negative() -> None:
    """PyTorch runs a graph with a size that may be negative for all that is known."""
    size = torch.utils._sympy.functions.Min(sympy.Symbol("u0", integer=True), 3)
    with (
        known_symbols(GraphSymbols(computed={})),
        pytest.raises(UnsupportedNodeError, match=r"the size Min\(3, u0\) may be negative"),
    ):
        extent_of_expression(size)
    with (
        known_symbols(GraphSymbols()),
        pytest.raises(UnsupportedNodeError, match=r"the size Min\(3, u0\) is no sum"),
    ):
        extent_of_expression(size)
