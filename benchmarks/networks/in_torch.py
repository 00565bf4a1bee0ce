"""The layers of `networks` in PyTorch, with the weights that Keras initialised.

Images are permuted to PyTorch's order of axes and back, which moves no data: it is the
channels_last format, in which oneDNN is fastest. Weights are parameters of one module, which
Inductor's freezing takes as constants and packs, as the other competitors do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import functional

from networks import NetworkArray, NetworkDefinition


class TorchLayers:
    """The namespace for a network's formula, over weights by their paths in Keras."""

    relu, tanh, sigmoid, gelu = torch.relu, torch.tanh, torch.sigmoid, functional.gelu
    relu6, elu = staticmethod(functional.relu6), staticmethod(functional.elu)
    sqrt, exp, log, cumsum = torch.sqrt, torch.exp, torch.log, torch.cumsum
    mean, concat = torch.mean, torch.cat

    def __init__(self, weights: Mapping[str, torch.Tensor]) -> None:
        self.weights = weights

    def dense(self, x: Any, name: str, units: int) -> Any:
        """Multiply along the last axis and add a bias."""
        w = self.weights
        return functional.linear(x, w[f"{name}/kernel"], w[f"{name}/bias"])

    def conv(
        self, x: Any, name: str, filters: int, window: int, stride: int = 1, bias: bool = True
    ) -> Any:
        """Convolve images, padded to the same size."""
        offset = self.weights[f"{name}/bias"] if bias else None
        return self._convolved(x, self.weights[f"{name}/kernel"], offset, window, stride, 1)

    def depthwise(self, x: Any, name: str, window: int, stride: int) -> Any:
        """Convolve each channel with its own filter, without bias."""
        return self._convolved(x, self.weights[f"{name}/kernel"], None, window, stride, x.shape[-1])

    @staticmethod
    def _convolved(x: Any, w: Any, bias: Any, window: int, stride: int, groups: int) -> Any:
        """Convolve with TensorFlow's padding: an odd pixel goes to the end."""
        pads = [max((-(-n // stride) - 1) * stride + window - n, 0) for n in x.shape[1:3]]
        x = x.permute(0, 3, 1, 2)
        before = [pad // 2 for pad in pads]
        if any(pad % 2 for pad in pads):
            (top, left), (height_pad, width_pad) = before, pads
            x, before = functional.pad(x, (left, width_pad - left, top, height_pad - top)), [0, 0]
        y = functional.conv2d(x, w, bias, stride, before, groups=groups)
        return y.permute(0, 2, 3, 1)

    def causal(self, x: Any, name: str, filters: int, window: int, rate: int = 1) -> Any:
        """Convolve in time over the past only; ``rate`` is the dilation."""
        w, bias = self.weights[f"{name}/kernel"], self.weights[f"{name}/bias"]
        if window == 1:
            return functional.linear(x, w[:, :, 0], bias)
        x = functional.pad(x.permute(0, 2, 1), ((window - 1) * rate, 0))
        return functional.conv1d(x, w, bias, dilation=rate).permute(0, 2, 1)

    def batch_norm(self, x: Any, name: str) -> Any:
        """Normalise channels by learnt statistics."""
        kinds = ("moving_mean", "moving_variance", "gamma", "beta")
        mean, variance, gamma, beta = (self.weights[f"{name}/{kind}"] for kind in kinds)
        y = functional.batch_norm(x.permute(0, 3, 1, 2), mean, variance, gamma, beta, eps=1e-3)
        return y.permute(0, 2, 3, 1)

    def layer_norm(self, x: Any, name: str) -> Any:
        """Normalise along the last axis."""
        w = self.weights
        return functional.layer_norm(x, x.shape[-1:], w[f"{name}/gamma"], w[f"{name}/beta"], 1e-5)

    def embedding(self, words: Any, name: str, count: int, width: int) -> Any:
        """Look up rows of a table."""
        return functional.embedding(words, self.weights[f"{name}/embeddings"])

    def attention(self, x: Any, name: str, heads: int) -> Any:
        """Return multi-head self-attention."""
        batch, length, wide = x.shape
        q, k, v = (
            self.dense(x, f"{name}/{part}", wide).view(batch, length, heads, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        return self.dense(y.reshape(batch, length, wide), f"{name}/attention_output", wide)

    def lstm(self, x: Any, name: str, units: int) -> Any:
        """Return the last state of PyTorch's own LSTM."""
        kinds = ("kernel", "recurrent_kernel", "bias", "recurrent_bias")
        flat = [self.weights[f"{name}/lstm_cell/{kind}"] for kind in kinds]
        zero = x.new_zeros(1, x.shape[0], units)
        return torch.lstm(x, (zero, zero), flat, True, 1, 0.0, False, False, True)[1][0]

    def max_pool(self, x: Any) -> Any:
        """Return the maxima of windows of 2 x 2."""
        return functional.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)

    def upsample(self, x: Any) -> Any:
        """Repeat each pixel 2 x 2 times."""
        return functional.interpolate(x.permute(0, 3, 1, 2), scale_factor=2).permute(0, 2, 3, 1)

    def softmax(self, x: Any) -> Any:
        """Return a softmax along the last axis."""
        return torch.softmax(x, -1)

    def sum(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        """Sum over axes."""
        return torch.sum(x, axes, keepdim=keepdims)

    def number(self, x: Any) -> Any:
        """Convert booleans to 0.0 and 1.0."""
        return x.float()

    def reshape(self, x: Any, example: tuple[int, ...]) -> Any:
        """Reshape each example; the batch axis stays."""
        return x.reshape(x.shape[0], *example)


def to_torch(path: str, value: NetworkArray) -> torch.Tensor:
    """Convert a weight of Keras to the order of axes and memory format of PyTorch's layers."""
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


class TorchNetwork(torch.nn.Module):
    """A network as a module, with the weights of the frozen graph."""

    def __init__(self, written: NetworkDefinition, weights: Mapping[str, NetworkArray]) -> None:
        super().__init__()
        self.formula = written.formula
        tensors = {path: to_torch(path, value) for path, value in weights.items()}
        for path, value in weights.items():
            if path.endswith("lstm_cell/bias"):
                tensors[path.replace("bias", "recurrent_bias")] = torch.zeros(value.shape)
        self.weights = torch.nn.ParameterDict(tensors)
        self.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the network's output."""
        return self.formula(TorchLayers(self.weights), x)
