"""The backend of `torch.compile`: equal results, layouts, mutations, symbolic shapes, options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from passkit.frontends.torch import passkit_backend, report  # noqa: E402  (after the skip)

T: Any = torch.randn


def own_arguments(args: Sequence[Any]) -> list[Any]:
    """Return copies of the arguments in the same layouts."""
    return [a.clone() if isinstance(a, torch.Tensor) and a.is_contiguous() else a for a in args]


def check(function: Callable[..., Any], *calls: Sequence[Any], **options: Any) -> None:
    """Compare the compiled function with PyTorch: results, strides and changed arguments."""
    compiled = torch.compile(function, backend=passkit_backend, **options)
    for args in calls:
        expected_args, actual_args = own_arguments(args), own_arguments(args)
        expected, actual = function(*expected_args), compiled(*actual_args)
        pairs = zip(
            [*_listed(expected), *expected_args], [*_listed(actual), *actual_args], strict=True
        )
        for a, b in pairs:
            torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5, equal_nan=True)
            if isinstance(a, torch.Tensor):
                assert b.stride() == a.stride()


def _listed(results: Any) -> list[Any]:
    """Return results as a list."""
    return list(results) if isinstance(results, (tuple, list)) else [results]


class Block(torch.nn.Module):
    """A layer norm between two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 32)
        self.norm = torch.nn.LayerNorm(32)
        self.last = torch.nn.Linear(32, 4)

    def forward(self, x: Any) -> Any:
        """Return the probabilities of four classes."""
        hidden = torch.nn.functional.gelu(self.norm(self.first(x)))
        return torch.softmax(self.last(hidden), -1)


def test_a_module_and_its_gradients_equal_pytorch() -> None:
    """Forward and backward of a module give PyTorch's results, without a call of PyTorch."""
    module, x = Block(), T(8, 16)
    compiled = torch.compile(module, backend=passkit_backend, options={"fallback": "error"})
    torch.testing.assert_close(compiled(x), module(x))
    compiled(x).square().sum().backward()
    actual = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    module(x).square().sum().backward()
    for a, p in zip(actual, module.parameters(), strict=True):
        torch.testing.assert_close(a, p.grad, rtol=1e-4, atol=1e-6)


def test_a_training_step_updates_batch_statistics() -> None:
    """Buffers that a batch norm changes are changed equally."""
    plain = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    other = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    other.load_state_dict(plain.state_dict())
    x = T(2, 3, 8, 8)
    plain(x).sum().backward()
    torch.compile(other, backend=passkit_backend)(x).sum().backward()
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(other.state_dict()[name], value)
    for a, b in zip(plain.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(b.grad, a.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: (x.t() * 2, (x + 1).t()), [T(3, 4)]),
        (lambda x: x.expand(4, 5) * 2, [T(1, 5)]),
        (lambda x: x * 2 + 1, [T(8, 8)[::2, 1::3]]),
        (lambda x: torch.relu(x) * 2, [T(2, 3, 4, 5).to(memory_format=torch.channels_last)]),
        (lambda x: (x, x + 0, x.detach()), [T(3, 4)]),
        (lambda x: (x * 2).sum(0), [T(0, 4)]),
        (lambda x: x * 2 + 1, [torch.tensor(3.0)]),
        (lambda x: torch.nn.functional.gelu(x) * x, [T(8, 8).bfloat16()]),
        (lambda x: (x // 3) * 2 % 5 - x, [torch.arange(-8, 8)]),
        (lambda x: (x > 0) & (x < 1) | torch.isnan(x), [T(5, 5)]),
        (lambda x: x.expand(3, 5).t(), [T(1, 5)]),
    ],
    ids=[
        "transposed results",
        "broadcast input",
        "strided input",
        "channels last",
        "results that are inputs",
        "no elements",
        "a scalar",
        "bfloat16",
        "integers",
        "bools",
        "a view as result",
    ],
)
def test_layouts_and_dtypes(function: Callable[..., Any], args: Sequence[Any]) -> None:
    """Results have PyTorch's values, dtypes and strides."""
    check(function, args)


def test_arguments_are_changed_in_place() -> None:
    """Writes to arguments, also through views, happen to the caller's tensors."""

    def function(x: Any, y: Any) -> Any:
        x.add_(1)
        y[0] = x[1] * 2
        flat = x.view(-1)
        flat.mul_(2)
        return x + y, flat

    check(function, [T(3, 4), T(3, 4)])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.softmax(x * 2, -1),
        lambda x: x.mean(0) + x.shape[0],
        lambda x: x.view(x.shape[0] * 2, -1).cumsum(0),
        lambda x: x[1:-1, ::2] + 1,
        lambda x: (x.flatten()[:-1] * 2, x.shape[0] * 3),
        lambda x: x[:, 0] + torch.arange(x.shape[0]),
        lambda x: torch.zeros(x.shape[0]) + 1,
        lambda x: torch.poisson(x.abs() * 0) + x.shape[0],
        lambda x: torch.cat([x, x[1:]], 0).sum(1),
    ],
    ids=[
        "rows",
        "size as value",
        "view",
        "slice",
        "size as result",
        "range",
        "size only",
        "call of PyTorch",
        "join",
    ],
)
def test_one_program_serves_many_lengths(function: Callable[..., Any]) -> None:
    """With dynamic=True a function is compiled once for several lengths."""
    count = 0

    def backend(module: Any, inputs: Any) -> Any:
        nonlocal count
        count += 1
        return passkit_backend(module, inputs)

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for n in (4, 6, 9, 13):
        x = T(n, 16)
        expected, actual = function(x), compiled(x)
        for a, b in zip(_listed(expected), _listed(actual), strict=True):
            torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)
    assert count <= 2


def test_random_operators_draw_from_pytorchs_generator() -> None:
    """Dropout gives what PyTorch's kernel gives for the seed, and another result each time."""

    def function(x: Any) -> Any:
        first, second = torch.rand_like(x), torch.rand_like(x)
        return first, second

    compiled = torch.compile(function, backend=passkit_backend)
    x = T(5, 5)
    torch.manual_seed(3)
    expected = function(x)
    torch.manual_seed(3)
    for a, b in zip(expected, compiled(x), strict=True):
        torch.testing.assert_close(b, a)
    assert not torch.equal(*compiled(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.rand(4),
        lambda x: x + torch.normal(0.0, 1.0, (4,)),
        lambda x: x + torch.bernoulli(torch.full((4,), 0.5)),
        lambda x: x + torch.rand_like(torch.zeros(4)),
        lambda x: x + torch.nn.functional.dropout(torch.ones(4)),
        lambda x: x[:, torch.randperm(4)],
        lambda x: x + torch.empty(4).uniform_(1, 2) + torch.empty(4).exponential_(),
    ],
    ids=["alone", "normal", "bernoulli", "like", "dropout", "permutation", "two"],
)
def test_random_numbers_of_constants_are_drawn_by_each_call(function: Callable[..., Any]) -> None:
    """A random operator whose inputs are known when compiling is not computed there."""
    compiled, x = torch.compile(function, backend=passkit_backend), T(3, 4)
    for seed in (1, 2, 1):
        drawn = []
        for run in (function, compiled):
            torch.manual_seed(seed)
            drawn.append([run(x), run(x), torch.rand(1)])
        for a, b in zip(*drawn, strict=True):
            torch.testing.assert_close(b, a)


CALLS_OF_COUNTER: list[int] = []


@torch.library.custom_op("passkit_tests::counter", mutates_args=())  # type: ignore[untyped-decorator]
def counter(start: int) -> torch.Tensor:
    """Return the number of calls so far, plus a start."""
    CALLS_OF_COUNTER.append(start)
    return torch.tensor(len(CALLS_OF_COUNTER) + start)


@counter.register_fake  # type: ignore[untyped-decorator]
def _(start: int) -> Any:
    return torch.empty((), dtype=torch.int64)


def test_operators_of_others_run_in_each_call() -> None:
    """A custom operator without inputs is called each time, twice where it stands twice."""
    compiled = torch.compile(lambda x: (counter(5) + x, counter(5) + x), backend=passkit_backend)
    x = torch.zeros(2, dtype=torch.int64)
    CALLS_OF_COUNTER.clear()
    first, second = compiled(x), compiled(x)
    assert [int(t[0]) for t in (*first, *second)] == [6, 7, 8, 9]


def test_what_pytorch_runs_is_reported() -> None:
    """A report names the operators that PyTorch ran, why, and the shares of passkit."""

    def function(x: Any) -> Any:
        return torch.poisson(x * 2) + 1

    shown = report(function, T(3, 4).abs())
    assert (shown.graphs, shown.nodes, shown.native) == (1, 3, 2)
    assert 0 < shown.native_nbytes < shown.nbytes
    (extern,) = shown.externs
    assert extern.function == "aten::poisson"
    assert extern.reason == "its random numbers are those of PyTorch's generator"
    assert "test_backend.py" in extern.line
    assert "passkit ran 2 of 3 operators in 1 graph" in repr(shown)


def test_calls_of_pytorch_can_be_forbidden() -> None:
    """With fallback="error" compiling fails, and names the first operator."""
    compiled = torch.compile(
        lambda x: torch.poisson(x.abs() * 2),
        backend=passkit_backend,
        options={"fallback": "error"},
    )
    with pytest.raises(Exception, match=r"PyTorch would run 1 of 3 operators, first aten::poisson"):
        compiled(T(3, 4))


def test_unknown_options_are_refused() -> None:
    """An unknown fallback or mode is named, with what there is."""
    x = T(3)
    wrong = torch.compile(lambda x: x + 1, backend=passkit_backend, options={"fallback": "extrn"})
    with pytest.raises(Exception, match=r"'extern', 'error', got 'extrn'; did you mean 'extern'"):
        wrong(x)
    misspelled = torch.compile(lambda x: x + 1, backend=passkit_backend, options={"freezin": True})
    with pytest.raises(Exception, match=r"no option 'freezin'; did you mean 'freezing'"):
        misspelled(x)
    with pytest.raises(Exception, match=r"mode 'fast' is unknown"):
        passkit_backend(torch.fx.symbolic_trace(torch.nn.ReLU()), [x], mode="fast")
