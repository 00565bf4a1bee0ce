"""The layers in PyTorch, with the weights that Keras made.

Images are permuted to PyTorch's order of axes and back, which moves nothing: it is the
channels_last format, in which oneDNN is fastest. Weights are parameters of one module, which
Inductor's freezing takes as constants and packs, as every competitor here does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import functional

from networks import Array, Written


class Layers:
    """The namespace for a network's formula."""

    relu, tanh, sigmoid, gelu = torch.relu, torch.tanh, torch.sigmoid, functional.gelu
    relu6, elu = staticmethod(functional.relu6), staticmethod(functional.elu)
    sqrt, exp, log, cumsum = torch.sqrt, torch.exp, torch.log, torch.cumsum
    mean, concat = torch.mean, torch.cat

    def __init__(self, weights: Mapping[str, torch.Tensor]) -> None:
        self.weights = weights

    def dense(self, x: Any, name: str, units: int) -> Any:
        """A product along the last axis."""
        w = self.weights
        return functional.linear(x, w[f"{name}/kernel"], w[f"{name}/bias"])

    def conv(
        self, x: Any, name: str, filters: int, window: int, stride: int = 1, bias: bool = True
    ) -> Any:
        """A convolution of images, padded to the same size."""
        offset = self.weights[f"{name}/bias"] if bias else None
        return self._convolved(x, self.weights[f"{name}/kernel"], offset, window, stride, 1)

    def depthwise(self, x: Any, name: str, window: int, stride: int) -> Any:
        """A filter for each channel."""
        return self._convolved(x, self.weights[f"{name}/kernel"], None, window, stride, x.shape[-1])

    @staticmethod
    def _convolved(x: Any, w: Any, bias: Any, window: int, stride: int, groups: int) -> Any:
        """As TensorFlow pads: what is odd goes to the end."""
        pads = [max((-(-n // stride) - 1) * stride + window - n, 0) for n in x.shape[1:3]]
        x = x.permute(0, 3, 1, 2)
        before = [pad // 2 for pad in pads]
        if any(pad % 2 for pad in pads):
            (top, left), (high, wide) = before, pads
            x, before = functional.pad(x, (left, wide - left, top, high - top)), [0, 0]
        y = functional.conv2d(x, w, bias, stride, before, groups=groups)
        return y.permute(0, 2, 3, 1)

    def causal(self, x: Any, name: str, filters: int, window: int, rate: int = 1) -> Any:
        """A convolution in time that sees the past only."""
        w, bias = self.weights[f"{name}/kernel"], self.weights[f"{name}/bias"]
        if window == 1:
            return functional.linear(x, w[:, :, 0], bias)
        x = functional.pad(x.permute(0, 2, 1), ((window - 1) * rate, 0))
        return functional.conv1d(x, w, bias, dilation=rate).permute(0, 2, 1)

    def batch_norm(self, x: Any, name: str) -> Any:
        """By statistics that were learnt."""
        kinds = ("moving_mean", "moving_variance", "gamma", "beta")
        mean, variance, gamma, beta = (self.weights[f"{name}/{kind}"] for kind in kinds)
        y = functional.batch_norm(x.permute(0, 3, 1, 2), mean, variance, gamma, beta, eps=1e-3)
        return y.permute(0, 2, 3, 1)

    def layer_norm(self, x: Any, name: str) -> Any:
        """Along the last axis."""
        w = self.weights
        return functional.layer_norm(x, x.shape[-1:], w[f"{name}/gamma"], w[f"{name}/beta"], 1e-5)

    def embedding(self, words: Any, name: str, count: int, width: int) -> Any:
        """Rows of a table."""
        return functional.embedding(words, self.weights[f"{name}/embeddings"])

    def attention(self, x: Any, name: str, heads: int) -> Any:
        """Every place looks at every other."""
        batch, length, wide = x.shape
        q, k, v = (
            self.dense(x, f"{name}/{part}", wide).view(batch, length, heads, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        return self.dense(y.reshape(batch, length, wide), f"{name}/attention_output", wide)

    def lstm(self, x: Any, name: str, units: int) -> Any:
        """The last state of a recurrent layer, by PyTorch's own."""
        kinds = ("kernel", "recurrent_kernel", "bias", "recurrent_bias")
        flat = [self.weights[f"{name}/lstm_cell/{kind}"] for kind in kinds]
        zero = x.new_zeros(1, x.shape[0], units)
        return torch.lstm(x, (zero, zero), flat, True, 1, 0.0, False, False, True)[1][0]

    def max_pool(self, x: Any) -> Any:
        """The largest of 2 x 2."""
        return functional.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)

    def upsample(self, x: Any) -> Any:
        """Each pixel 2 x 2 times."""
        return functional.interpolate(x.permute(0, 3, 1, 2), scale_factor=2).permute(0, 2, 3, 1)

    def softmax(self, x: Any) -> Any:
        """Along the last axis."""
        return torch.softmax(x, -1)

    def sum(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        """Over axes."""
        return torch.sum(x, axes, keepdim=keepdims)

    def number(self, x: Any) -> Any:
        """Truth as 0 and 1."""
        return x.float()

    def reshape(self, x: Any, example: tuple[int, ...]) -> Any:
        """Each example in another shape."""
        return x.reshape(x.shape[0], *example)


def taken(path: str, value: Array) -> torch.Tensor:
    """A weight in the order of axes and the format that PyTorch's layers want."""
    kind, w = path.rsplit("/", 1)[-1], torch.from_numpy(value)
    if "/attention_output/" in path:
        w = w.flatten(0, -2) if kind == "kernel" else w
    elif path.startswith("attention"):
        w = w.flatten(1) if kind == "kernel" else w.flatten()
    if kind not in {"kernel", "recurrent_kernel"}:
        return w
    if w.ndim == 4:
        order = (2, 3, 0, 1) if path.startswith("depthwise") else (3, 2, 0, 1)
        return w.permute(order).contiguous(memory_format=torch.channels_last)
    return w.permute(*reversed(range(w.ndim))).contiguous()


class Twin(torch.nn.Module):
    """A network with these weights."""

    def __init__(self, written: Written, weights: Mapping[str, Array]) -> None:
        super().__init__()
        self.formula = written.formula
        made = {path: taken(path, value) for path, value in weights.items()}
        for path, value in weights.items():
            if path.endswith("lstm_cell/bias"):
                made[path.replace("bias", "recurrent_bias")] = torch.zeros(value.shape)
        self.weights = torch.nn.ParameterDict(made)
        self.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Its result."""
        return self.formula(Layers(self.weights), x)
