"""Scaled dot-product attention and its gradient equal PyTorch's, masked in each way."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from passkit.frontends.torch import passkit_backend  # noqa: E402  (after the skip)

attention = torch.nn.functional.scaled_dot_product_attention


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"attn_mask": torch.linspace(-1, 1, 64).reshape(8, 8)},
        {"attn_mask": torch.arange(64).reshape(8, 8) % 3 > 0},
        {"attn_mask": (torch.arange(8) != 2)[:, None].expand(8, 8)},
        {"scale": 0.3},
    ],
    ids=["plain", "causal", "added mask", "bool mask", "a row without keys", "scale"],
)
def test_attention_and_its_gradients(options: dict[str, Any]) -> None:
    """Results, strides and gradients by queries, keys and values equal PyTorch's."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    plain = [torch.randn(2, 3, 8, 16, requires_grad=True) for _ in range(3)]
    copies = [x.detach().clone().requires_grad_() for x in plain]
    dy = torch.randn(2, 3, 8, 16)
    expected = attention(*plain, **options)
    compiled = torch.compile(lambda *x: attention(*x, **options), backend=passkit_backend)
    actual = compiled(*copies)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    assert actual.stride() == expected.stride()
    expected.backward(dy)
    actual.backward(dy)
    for a, b in zip(plain, copies, strict=True):
        torch.testing.assert_close(b.grad, a.grad, rtol=1e-4, atol=1e-5)
