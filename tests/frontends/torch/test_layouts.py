"""Memory of tensors: layouts, aliases and writes are those of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import passkit as pk

torch: Any = pytest.importorskip("torch")

from benchmarks.torch_fuzz import check  # noqa: E402  (after the skip)
from benchmarks.torch_programs import random_program, shares_storage  # noqa: E402
from passkit.frontends.torch import from_torch, passkit_backend  # noqa: E402

T: Any = torch.randn


TARGETS = pytest.mark.parametrize("target", ["interpret", "cpu"])
"""The interpreter, whose calls use arrays, and kernels, whose launcher makes tensors itself."""


def compiled(
    function: Callable[..., Any], target: str = "interpret", **options: Any
) -> Callable[..., Any]:
    """Return a function compiled for a target."""
    own = {"target": target}
    return torch.compile(  # type: ignore[no-any-return]
        function, backend=passkit_backend, options=own, **options
    )


def places(tensors: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return for each tensor the first one in the same memory, its offset to it, and strides."""
    rows = []
    for x in tensors:
        first = next(k for k, y in enumerate(tensors) if x is y or shares_storage(x, y))
        offset = x.storage_offset() - tensors[first].storage_offset()
        rows.append((first, offset, tuple(x.shape), x.stride()))
    return rows


@TARGETS
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.clone(),
        lambda x: torch.cumsum(x, 0),
        lambda x: x.to(torch.float32, copy=True),
        lambda x: torch.flip(x, ()),
        lambda x: x.sum(()),
    ],
    ids=["clone", "cumsum", "to", "flip", "sum"],
)
def test_a_copy_of_an_input_is_not_the_input(function: Callable[..., Any], target: str) -> None:
    """An operator that keeps all elements gives a tensor of its own, which can be changed alone."""
    x = torch.tensor(3.0)
    copy = compiled(function, target)(x)
    copy.add_(1)
    assert (x.item(), copy.item()) == (3, 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + 1).unbind(0),
        lambda x: (lambda y: (y, y.t(), y[1:], y[:, ::2]))(x * 2),
        lambda x: (lambda y: (y[1:], y[:-1]))(x * 2),
        lambda x: (lambda y: (y.t(), y.view(-1)))(x.exp()),
        lambda x: (lambda y: (y, y.expand(2, *y.shape)))(x.neg()),
        lambda x: (x.clone(), x.view(-1), x[1:].t()),
        lambda x: (x.add_(1).t(),),
        lambda x: (x.detach(), x + 1),
        lambda x: (lambda y: (y, *torch.view_as_real(y).unbind(-1)))(torch.complex(x, x)),
        lambda x: (x.view(torch.int16)[:, 1::2], x[1:].view(torch.int32)),
    ],
    ids=[
        "parts",
        "views",
        "overlapping views",
        "orders",
        "broadcast",
        "views of an input",
        "views of a written input",
        "detached",
        "parts of complex numbers",
        "bits of an input",
    ],
)
@pytest.mark.parametrize("is_dynamic", [False, True], ids=["known sizes", "symbolic sizes"])
@TARGETS
def test_results_share_the_memory_that_they_share_in_pytorch(
    function: Callable[..., Any], is_dynamic: bool, target: str
) -> None:
    """Results that are views of one tensor, or of an input, lie in the same memory."""
    x, y = (T(5, 8)[1:] for _ in range(2))
    y.copy_(x)
    expected, actual = function(x), compiled(function, target, dynamic=is_dynamic)(y)
    assert places([y, *actual]) == places([x, *expected])
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b)


@TARGETS
@pytest.mark.parametrize("is_trained", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.transpose(0, 1) * 2, x + 1),
        lambda x: (x.bfloat16(), x + 1),
        lambda x: (x[None, :, :1].transpose(0, 2) * 2, x + 1),
        lambda x: ((x + 1)[::2], x * 2),
        lambda x: (x.expand(2, 4, 6).clone(), x * 2),
    ],
    ids=["transposed", "bfloat16", "extents of 1", "with gaps", "contiguous"],
)
def test_results_can_be_changed_in_place(
    function: Callable[..., Any], is_trained: bool, target: str
) -> None:
    """Autograd takes results as tensors of their own, not as views that may not be written."""
    x = T(4, 6, requires_grad=is_trained)
    for a, b in zip(compiled(function, target)(x), function(x), strict=True):
        torch.testing.assert_close(a.add_(1), b.add_(1))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 2)[:, :0],
        lambda x: (x * 2).as_strided((1, 4), (3, 6)),
        lambda x: (x * 2)[:1, 3:],
        lambda x: (x * 2)[None].transpose(0, 1),
    ],
    ids=["no columns", "strided row", "part of a row", "extent of 1"],
)
def test_strides_at_which_no_element_lies_are_those_of_pytorch(
    function: Callable[..., Any],
) -> None:
    """Axes of one element, and tensors without elements, have the strides of PyTorch, too."""
    x = T(4, 6)
    expected, actual = function(x), compiled(function)(x)
    assert (actual.shape, actual.stride()) == (expected.shape, expected.stride())


@pytest.mark.parametrize(
    "views",
    [
        lambda base: (base[:], base[0].expand_as(base)),
        lambda base: (base[1:], base[:-1]),
        lambda base: (base.transpose(1, 2), base[:, ::2]),
        lambda base: (base.permute(3, 2, 1, 0), base[:, 0]),
    ],
    ids=["broadcast", "overlapping", "transposed", "reversed"],
)
def test_a_write_to_one_view_is_seen_through_another(views: Callable[..., Any]) -> None:
    """Two inputs in the memory of one tensor in channels last: one is written, one is read."""

    def function(first: Any, second: Any) -> Any:
        read = second.transpose(-1, 0)
        first.mul_(2)
        return read / (read.abs() + 1)

    base = T(3, 4, 5, 6).to(memory_format=torch.channels_last)
    other = base.clone()
    expected = function(*views(base))
    actual = compiled(function)(*views(other))
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(other, base)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.as_strided(x * 2, (2, 3), (1, 2), 1),
        lambda x: torch.as_strided_scatter(x * 2, x.new_ones(2, 3), (2, 3), (1, 2), 1),
        lambda x: torch.as_strided(x, (2, 3), (1, 2)),
        lambda x: torch.as_strided(x * 2, (x.shape[1], x.shape[0] - 1), (x.shape[0], 1), 1),
        lambda x: torch.as_strided(x[1:], (2, 3), (1, 2), 1),
        lambda x: torch.as_strided((x * 2)[:, 1:2], (2, 3), (1, 2), 1),
    ],
    ids=[
        "computed",
        "scatter",
        "an input",
        "all rows",
        "a part of an input",
        "a part of a computed tensor",
    ],
)
@pytest.mark.parametrize("is_dynamic", [False, True], ids=["known sizes", "symbolic sizes"])
def test_strides_are_those_of_memory(function: Callable[..., Any], is_dynamic: bool) -> None:
    """Strides go through the memory of a tensor, in which its axes may lie in any order."""
    x = T(6, 4).t()
    actual = compiled(function, dynamic=is_dynamic)(x)
    torch.testing.assert_close(actual, function(x))


@pytest.mark.parametrize(
    "function",
    [
        torch.rand_like,
        lambda x: torch.bernoulli(x.sigmoid()),
        lambda x: torch.dropout(x, 0.5, True),
    ],
    ids=["rand_like", "bernoulli", "dropout"],
)
def test_random_numbers_are_drawn_in_the_order_of_memory(function: Callable[..., Any]) -> None:
    """PyTorch fills tensors in the order of their memory, not in that of their axes."""
    x = T(2, 3, 4, 5).to(memory_format=torch.channels_last)
    torch.manual_seed(1)
    expected = function(x)
    torch.manual_seed(1)
    torch.testing.assert_close(compiled(function)(x), expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[..., 1::2].mul_(2),
        lambda x: x[1].mul_(2),
        lambda x: x.diagonal().fill_(3),
        lambda x: x.as_strided((2,), (4,)).zero_(),
    ],
    ids=["slice", "row", "diagonal", "strides"],
)
def test_a_write_to_a_part_reaches_all_elements_in_its_memory(function: Callable[..., Any]) -> None:
    """A write to some elements of an input also changes the elements that share their memory."""

    def written(x: Any) -> Any:
        function(x)
        return x * 2

    x, y = torch.arange(11.0), torch.arange(11.0)
    expected = written(x.as_strided((4, 4), (1, 2), 1))
    torch.testing.assert_close(compiled(written)(y.as_strided((4, 4), (1, 2), 1)), expected)
    torch.testing.assert_close(y, x)


@TARGETS
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (lambda y: (y, y, y + 1))(x * 2),
        lambda x: (lambda y: (y.t(), torch.atleast_2d(y), y))(x * 2),
    ],
    ids=["twice", "as another name"],
)
def test_a_result_that_is_returned_twice_is_one_tensor(
    function: Callable[..., Any], target: str
) -> None:
    """Results are the same object where they are the same in PyTorch."""
    x = T(3, 4)
    expected, actual = function(x), compiled(function, target)(x)
    same = [[a is b for b in expected] for a in expected]
    assert [[a is b for b in actual] for a in actual] == same


@TARGETS
def test_a_written_part_keeps_symbolic_strides(target: str) -> None:
    """AOTAutograd copies a written input back to its strides, which no extent determines."""

    def function(x: Any) -> Any:
        return x.index_fill_(-1, torch.tensor([0]), 3) * 2

    for n in (5, 7):
        x, y = (torch.ones(n, n)[2:5:3] for _ in range(2))
        torch.testing.assert_close(compiled(function, target, dynamic=True)(x), function(y))
        torch.testing.assert_close(x, y)


@TARGETS
def test_a_call_of_pytorch_gets_sizes_of_tensors_that_nothing_else_reads(target: str) -> None:
    """A symbolic size is an argument of an operator, but no extent of its operands."""

    def function(x: Any, y: Any) -> Any:
        return torch.randint(0, y.shape[0], (3,)) + x

    run = compiled(function, target, dynamic=True)
    for n in (1000, 2000):
        x, y = torch.zeros(3), torch.zeros(n)
        torch.manual_seed(n)
        expected = function(x, y)
        torch.manual_seed(n)
        torch.testing.assert_close(run(x, y), expected)


class Moved(torch.nn.Module):
    """Results in other orders of axes than that of memory, copies and views of the input."""

    def forward(self, x: Any) -> Any:
        """Return the tensors."""
        return (x * 2).t(), x.clone(), x.view(-1), (x + 1)[::2], x.exp().expand(2, 3, 4)


def test_results_of_an_exported_graph_have_their_axes_in_order() -> None:
    """A graph of its own has arrays as results, whatever the layouts of PyTorch are."""
    x = T(3, 4)
    run = pk.compile(from_torch(Moved(), (x,)), target="interpret")
    for a, b in zip(run(x=x.numpy()), Moved()(x), strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-6)


@pytest.mark.parametrize("number", range(0, 60))
def test_random_programs_equal_pytorch(number: int) -> None:
    """Programs with views and writes do what PyTorch does; see benchmarks/torch_fuzz.py."""
    verdict = check(random_program(1, number), is_reduced=False)
    assert not verdict.problem or verdict.is_pytorchs, f"{verdict.problem}\n{verdict.text}"
