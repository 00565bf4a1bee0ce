"""Products and convolutions equal PyTorch's, and read weights as they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from passkit.frontends.torch import passkit_backend  # noqa: E402  (after the skip)
from passkit.frontends.torch.reports import recording  # noqa: E402

T: Any = torch.randn
LINEAR = torch.nn.Linear(24, 32)


def steps_of(function: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """Return the steps of a compiled function as texts, after its result was compared."""
    torch._dynamo.reset()
    with torch.no_grad(), recording() as records:
        actual = torch.compile(function, backend=passkit_backend)(*args)
        torch.testing.assert_close(actual, function(*args), rtol=1e-4, atol=1e-5)
    (record,) = records
    assert record.program is not None and record.program.executable is not None
    return [str(step) for step in record.program.executable.steps]


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (torch.nn.Linear(24, 32, bias=False), (T(5, 24),)),
        (lambda q, k: q @ k.transpose(-1, -2), (T(2, 3, 8, 16), T(2, 3, 9, 16))),
        (lambda a, b: a.t() @ b, (T(24, 5), T(24, 7))),
        (lambda a, b: a @ b.t().t(), (T(5, 24), T(24, 7))),
        (lambda a, b: torch.mv(a.t(), b), (T(24, 5), T(24))),
    ],
    ids=["linear", "batches", "left", "turned twice", "vector"],
)
def test_transposed_operands_are_read_as_they_lie(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    """No kernel turns an operand before the library multiplies."""
    assert not [step for step in steps_of(function, args) if step.startswith("launch")]


def test_filters_of_single_pixels_are_read_as_they_lie() -> None:
    """Images are turned to channels last and back; the filters are not."""
    images = T(2, 24, 4, 4)
    launches = [
        step
        for step in steps_of(torch.nn.Conv2d(24, 32, 1, bias=False), (images,))
        if step.startswith("launch")
    ]
    assert len(launches) == 2


def test_many_rows_are_multiplied_by_turned_weights() -> None:
    """Where a product has many rows, its weights are turned once."""
    launches = [s for s in steps_of(LINEAR, (T(4096, 24),)) if s.startswith("launch transpose")]
    assert len(launches) == 1


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda a, b: a.t() @ b.t(), (T(24, 5), T(7, 24))),
        (lambda a, b: a @ b.t(), (torch.arange(12).reshape(3, 4), torch.arange(8).reshape(2, 4))),
        (
            lambda a, b: a @ b.transpose(0, 1),
            (T(5, 4, dtype=torch.complex64), T(3, 4, dtype=torch.complex64)),
        ),
        (lambda a, b: a @ b.permute(2, 1, 0), (T(3, 5, 4), T(6, 4, 3))),
        (lambda a, b: torch.bmm(a, b.mT.reshape(6, 4, 7)), (T(6, 5, 4), T(2, 3, 7, 4))),
    ],
    ids=["both turned", "integers", "complex", "other axes turned", "reshaped batch"],
)
def test_products_of_turned_operands(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Products equal PyTorch's whichever operands are turned."""
    steps_of(function, args)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("convolution", "shape"),
    [
        (torch.nn.Conv2d(8, 12, 1), (2, 8, 5, 6)),
        (torch.nn.Conv2d(8, 12, 1, stride=2), (2, 8, 5, 6)),
        (torch.nn.Conv2d(8, 12, 1, stride=(2, 3), bias=False), (2, 8, 6, 7)),
        (torch.nn.Conv2d(8, 12, 3, stride=2), (2, 8, 5, 6)),
        (torch.nn.Conv2d(8, 12, 1, groups=2), (2, 8, 5, 6)),
        (torch.nn.Conv2d(8, 12, 1, padding=1), (2, 8, 5, 6)),
        (torch.nn.ConvTranspose2d(8, 12, 1), (2, 8, 5, 6)),
        (torch.nn.Conv1d(8, 12, 1), (2, 8, 5)),
        (torch.nn.Conv3d(8, 12, 1), (2, 8, 3, 4, 5)),
    ],
    ids=[
        "pixels",
        "strides",
        "two strides",
        "windows and strides",
        "groups",
        "padding",
        "transposed",
        "1d",
        "3d",
    ],
)
def test_convolutions_and_their_gradients(
    convolution: Any, shape: tuple[int, ...], dynamic: bool
) -> None:
    """Results, strides and gradients equal PyTorch's, also of symbolic sizes."""
    torch._dynamo.reset()
    plain = T(shape, requires_grad=True)
    own = plain.detach().clone().requires_grad_()
    expected = convolution(plain)
    dy = torch.randn_like(expected)
    actual = torch.compile(convolution, backend=passkit_backend, dynamic=dynamic)(own)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    assert actual.stride() == expected.stride()
    weights = list(convolution.parameters())
    torch.testing.assert_close(
        torch.autograd.grad(actual, [own, *weights], dy),
        torch.autograd.grad(expected, [plain, *weights], dy),
        rtol=1e-4,
        atol=1e-5,
    )
