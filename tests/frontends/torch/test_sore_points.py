"""Functions that other compilers are slow on: right results, in few kernels, compiled quickly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from benchmarks.torch_sore_points import (  # noqa: E402  (after the skip)
    chain,
    largest_of_sums,
    shifted_windows,
)
from passkit.frontends.torch import passkit_backend  # noqa: E402
from passkit.frontends.torch.reports import recording  # noqa: E402

T: Any = torch.randn


@pytest.mark.parametrize(
    ("function", "args", "most_steps"),
    [
        (chain, (T(16, 24) * 0.1, T(16, 24) * 0.1), 1),
        (shifted_windows, (T(2, 14, 21, 8),), 7),
        (largest_of_sums, (T(6, 10, 34),), 2),
        (lambda x: x[:, ::2].mean(1), (T(5, 12, 33),), 1),
        (lambda x: torch.softmax(x, 0), (T(40, 33),), 1),
        (torch.nn.LSTM(8, 12, batch_first=True), (T(3, 5, 8),), None),
        (torch.nn.GRU(8, 12, batch_first=True), (T(3, 5, 8),), None),
    ],
    ids=["chain", "shifted windows", "argmax", "strided mean", "outer softmax", "LSTM", "GRU"],
)
def test_results_equal_pytorch_in_few_steps(
    function: Callable[..., Any], args: tuple[Any, ...], most_steps: int | None
) -> None:
    """Results equal PyTorch's in one graph, and kernels are few where a number is given.

    A whole LSTM is an operator of PyTorch where no gradient is asked for.
    """
    torch._dynamo.reset()
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True), recording() as records:
        actual = torch.compile(function, backend=passkit_backend)(*args)
        torch.testing.assert_close(actual, function(*args), rtol=1e-4, atol=1e-5)
    (record,) = records
    assert {x.function for x in record.externs} <= {"aten::mkldnn_rnn_layer"}
    assert record.program is not None and record.program.executable is not None
    stats = record.program.executable.stats
    if most_steps is not None:
        assert stats["kernels"] + stats["library_calls"] <= most_steps


def test_gradients_of_a_chain_equal_pytorch() -> None:
    """The gradient of a chain whose values are each read twice is compiled and right."""
    torch._dynamo.reset()
    plain = [(T(8, 24) * 0.1).requires_grad_() for _ in range(2)]
    own = [x.detach().clone().requires_grad_() for x in plain]
    expected = torch.autograd.grad(sum(x.sum() for x in chain(*plain)), plain)
    compiled = torch.compile(chain, backend=passkit_backend)
    actual = torch.autograd.grad(sum(x.sum() for x in compiled(*own)), own)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
