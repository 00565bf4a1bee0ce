"""References of the functions of `passkit.xp.nn` in NumPy, written independently in float64."""

from __future__ import annotations

from itertools import product
from math import erf, pi
from typing import Any

import numpy as np

ERF = np.vectorize(erf)


def sigmoid(x: Any) -> Any:
    """Return the logistic function."""
    return 1 / (1 + np.exp(-x))


def softplus(x: Any) -> Any:
    """Return log(1 + exp(x))."""
    return np.logaddexp(0, x)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """Return x or alpha (exp(x) - 1)."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def gelu_tanh(x: Any) -> Any:
    """Return the approximation of gelu by tanh."""
    return 0.5 * x * (1 + np.tanh((2 / pi) ** 0.5 * (x + 0.044715 * x**3)))


def softmax(x: Any, axis: Any = -1) -> Any:
    """Return exp(x) by its sum."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = -1) -> Any:
    """Return the logarithm of softmax."""
    return np.log(softmax(x, axis))


def masked_softmax(x: Any, mask: Any) -> Any:
    """Return softmax over the elements of a mask along the last axis; 0 without any."""
    e = np.where(mask, np.exp(x - x.max(axis=-1, keepdims=True)), 0)
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def standardized(x: Any, axes: Any, eps: float = 1e-5) -> Any:
    """Return x with mean 0 and variance 1."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def group_norm(x: Any, groups: int, weight: Any, bias: Any) -> Any:
    """Return group norm of (batch, channels, length)."""
    batch, channels, length = x.shape
    y = standardized(x.reshape(batch, groups, -1), (2,)).reshape(batch, channels, length)
    return y * weight[:, None] + bias[:, None]


def attention(
    q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False, scale: Any = None
) -> Any:
    """Return attention, by loops over queries; ``mask`` is of bools or of numbers."""
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    allowed = np.ones(scores.shape, bool)
    if causal:
        allowed &= np.tril(np.ones(scores.shape[-2:], bool))
    if mask is not None and mask.dtype == bool:
        allowed &= mask
    elif mask is not None:
        scores = scores + mask
    return masked_softmax(scores, allowed) @ v


def convolution(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    """Return a convolution by loops: (batch, channels, *size), (filters, channels, *window)."""
    count = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    window = w.shape[2:]
    sizes = [
        (x.shape[2 + k] - (window[k] - 1) * dilation[k] - 1) // stride[k] + 1 for k in range(count)
    ]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    inner, outer = x.shape[1] // groups, w.shape[0] // groups
    for f, position in product(range(w.shape[0]), product(*map(range, sizes))):
        g = f // outer
        begin = [position[k] * stride[k] for k in range(count)]
        cut = tuple(
            slice(begin[k], begin[k] + (window[k] - 1) * dilation[k] + 1, dilation[k])
            for k in range(count)
        )
        patch = x[(slice(None), slice(g * inner, (g + 1) * inner), *cut)]
        out[(slice(None), f, *position)] = (patch * w[f]).reshape(x.shape[0], -1).sum(1)
    return out


def transposed_convolution(x: Any, w: Any, stride: Any, padding: Any, extra: Any) -> Any:
    """Return a transposed convolution by loops: (batch, n, *size), (n, filters, *window)."""
    count = x.ndim - 2
    window = w.shape[2:]
    sizes = [(x.shape[2 + k] - 1) * stride[k] + window[k] + extra[k] for k in range(count)]
    out = np.zeros((x.shape[0], w.shape[1], *sizes))
    for position in product(*map(range, x.shape[2:])):
        cut = tuple(
            slice(position[k] * stride[k], position[k] * stride[k] + window[k])
            for k in range(count)
        )
        element = x[(slice(None), slice(None), *position)]
        out[(slice(None), slice(None), *cut)] += np.tensordot(element, w, 1)
    inside = tuple(slice(p, n - p) for p, n in zip(padding, sizes, strict=True))
    return out[(slice(None), slice(None), *inside)]


def pool(x: Any, window: Any, stride: Any, padding: Any, function: Any, fill: float) -> Any:
    """Return a pool by loops: a function of the elements of each window; ``fill`` is padding."""
    count = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]], constant_values=fill)
    sizes = [(x.shape[2 + k] - window[k]) // stride[k] + 1 for k in range(count)]
    out = np.zeros((*x.shape[:2], *sizes))
    for position in product(*map(range, sizes)):
        cut = tuple(
            slice(position[k] * stride[k], position[k] * stride[k] + window[k])
            for k in range(count)
        )
        patch = x[(slice(None), slice(None), *cut)]
        out[(slice(None), slice(None), *position)] = function(patch.reshape(*x.shape[:2], -1), -1)
    return out


def heads(x: Any, count: int) -> Any:
    """Return (batch, l, heads * d) as (batch, heads, l, d)."""
    batch, length, features = x.shape
    return x.reshape(batch, length, count, features // count).transpose(0, 2, 1, 3)


def binary_cross_entropy(p: Any, y: Any) -> Any:
    """Return the cross entropies of probabilities."""
    return -(y * np.log(p) + (1 - y) * np.log(1 - p))


def cosine(a: Any, b: Any) -> Any:
    """Return cosines along the last axis."""
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
