"""Specimens of softmax, activations, norms and attention, against definitions in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from tests.ops.specimens import between, call, calls, elementwise, reduction

Array = Any


def softmax(x: Array, axis: Any = -1) -> Array:
    """Return softmax by definition."""
    return special.softmax(x, axis)


def mask(*shape: int) -> Any:
    """Return a function that draws bools; the first row is all False."""

    def draw(rng: Any, dtype: Any) -> Array:
        unmasked = rng.random(shape) < 0.6
        unmasked[..., 0, :] = False
        return unmasked

    return draw


# softmax and its like

for _name, _reference in (
    ("softmax", softmax),
    ("log_softmax", lambda x, axis: special.log_softmax(x, axis)),
    ("softmin", lambda x, axis: softmax(-x, axis)),
):
    calls(_name, _reference, [call((5, 7), axis=-1), call((3, 7, 2), axis=1)], slack=40)
calls("softmax", lambda x, axis: softmax(x, axis), [call((3, 4, 5), axis=(0, 2))], slack=40)
reduction("logsumexp", lambda x, **k: special.logsumexp(x, **k), slack=16, empty=False)
calls(
    "reduce_variance",
    lambda x, axis=None, keepdims=False: np.var(x, axis, keepdims=keepdims),
    [call((5, 40)), call((5, 40), axis=0), call((3, 4, 5), axis=(0, 2), keepdims=True)],
    slack=16,
)


def masked_softmax(x: Array, unmasked: Array, axis: int) -> Array:
    """Return softmax of the unmasked elements; zeros where there are none."""
    e = np.where(unmasked, np.exp(x), 0)
    total = e.sum(axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


calls(
    "masked_softmax",
    masked_softmax,
    [call((5, 7), mask(5, 7), axis=-1), call((3, 4, 5), mask(4, 5), axis=1)],
    slack=40,
)

# activations that are composites

GELU: dict[str, Any] = {
    "none": lambda x: x * special.ndtr(x),
    "tanh": lambda x: x * 0.5 * (np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)) + 1),
    "sigmoid": lambda x: x * special.expit(1.702 * x),
}
for _form, _gelu in GELU.items():
    calls(
        "gelu",
        lambda x, approximate: GELU[approximate](x),
        [call((33,), approximate=_form), call((0, 3), approximate=_form)],
        slack=4,
    )
elementwise("silu", lambda x: x * special.expit(x), between(-8, 8), ulps=16, special=False)


def halves(x: Array, axis: int) -> tuple[Array, Array]:
    """Return the two halves of an array along an axis."""
    a, b = np.split(x, 2, axis)
    return a, b


for _name, _gate in (
    ("glu", lambda a, b: a * special.expit(b)),
    ("reglu", lambda a, b: np.maximum(a, 0) * b),
    ("geglu", lambda a, b: a * special.ndtr(a) * b),
    ("swiglu", lambda a, b: a * special.expit(a) * b),
):
    calls(
        _name,
        lambda x, axis=-1, gate=_gate: gate(*halves(x, axis)),
        [call((3, 8)), call((4, 3, 2), axis=0)],
        slack=8,
    )

# norms


def standard(x: Array, axes: Any, epsilon: float) -> Array:
    """Return the array with mean 0 and variance 1 along axes."""
    d = x - x.mean(axes, keepdims=True)
    return d / np.sqrt((d * d).mean(axes, keepdims=True) + epsilon)


def spread(v: Array, rank: int, axes: tuple[int, ...]) -> Array:
    """Return ``v``, reshaped to broadcast along ``axes`` of an array of a rank."""
    return v.reshape([v.shape[axes.index(k)] if k in axes else 1 for k in range(rank)])


def layer_norm(x: Array, gamma: Array, beta: Array, axis: Any, epsilon: float = 1e-5) -> Array:
    """Return layer norm by definition."""
    axes = tuple(sorted(a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))))
    out = standard(x, axes, epsilon)
    return out * spread(gamma, x.ndim, axes) + spread(beta, x.ndim, axes)


calls(
    "layer_norm",
    layer_norm,
    [
        call((4, 9), (9,), (9,), axis=-1),
        call((3, 4, 5), (4, 5), (4, 5), axis=(1, 2), epsilon=1e-3),
        call((3, 4, 5), (4,), (4,), axis=1),
    ],
    slack=40,
)
calls(
    "layer_norm",
    lambda x, **k: standard(x, -1, 1e-5),
    [call((4, 9), scale=False, center=False)],
    slack=40,
)


def rms_norm(x: Array, *gamma: Array, axis: int = -1, epsilon: float = 1e-6, **more: Any) -> Array:
    """Return RMS norm by definition."""
    out = x / np.sqrt((x * x).mean(axis, keepdims=True) + epsilon)
    return out * spread(gamma[0], x.ndim, (axis % x.ndim,)) if gamma else out


calls(
    "rms_norm",
    rms_norm,
    [call((4, 9), (9,)), call((3, 4, 5), (4,), axis=1), call((4, 9), scale=False, epsilon=0.1)],
    slack=40,
)


def group_norm(x: Array, *rest: Array, groups: int, channel_axis: int = -1, **more: Any) -> Array:
    """Return group norm by definition: channels are moved last and split into groups."""
    last = np.moveaxis(x, channel_axis, -1)
    split = last.reshape(*last.shape[:-1], groups, -1)
    axes = (*range(1, split.ndim - 2), split.ndim - 1)
    out = standard(split, axes, 1e-5).reshape(last.shape)
    for v, combine in zip(rest, (np.multiply, np.add), strict=False):
        out = combine(out, v)
    return np.moveaxis(out, -1, channel_axis)


calls(
    "group_norm",
    group_norm,
    [
        call((2, 3, 5, 6), (6,), (6,), groups=3),
        call((2, 6, 5), (6,), (6,), groups=2, channel_axis=1),
        call((2, 6, 5), groups=6, channel_axis=1, scale=False, center=False),
    ],
    slack=60,
)
calls(
    "instance_norm",
    lambda x, *rest, channel_axis=-1, **k: group_norm(
        x, *rest, groups=x.shape[channel_axis], channel_axis=channel_axis
    ),
    [call((2, 3, 5, 6), (6,), (6,)), call((2, 6, 5), (6,), (6,), channel_axis=1)],
    slack=60,
)
calls(
    "l2_normalize",
    lambda x, axis=-1, epsilon=1e-12: (
        x / np.sqrt(np.maximum((x * x).sum(axis, keepdims=True), epsilon))
    ),
    [call((4, 9)), call((3, 4, 5), axis=(0, 2)), call((4, 9), epsilon=40.0)],
    slack=16,
)


def clip_by_norm(x: Array, clip_norm: float = 1.0, axis: Any = None) -> Array:
    """Return vectors, shortened where they are longer than ``clip_norm``."""
    length = np.sqrt((x * x).sum(axis, keepdims=True))
    return np.where(length > clip_norm, x * clip_norm / np.where(length > 0, length, 1), x)


calls("clip_by_norm", clip_by_norm, [call((4, 9)), call((4, 3), axis=-1, clip_norm=3.0)], slack=16)
calls(
    "global_norm",
    lambda *xs: np.sqrt(sum((x * x).sum() for x in xs)),
    [call((4, 9), (3,), ()), call((5,))],
    slack=16,
)
calls(
    "scale_by_global_norm",
    lambda norm, x, clip_norm=1.0: x * min(1, clip_norm / norm),
    [
        call(lambda rng, dtype: np.asarray(2.5, dtype.numpy), (4, 9)),
        call(lambda rng, dtype: np.asarray(0.5, dtype.numpy), (4, 9), clip_norm=0.7),
    ],
    slack=8,
)

# attention


def causal(x: Array, value: float = -np.inf) -> Array:
    """Return scores with another value for keys later than the query."""
    rows, columns = x.shape[-2:]
    return np.where(np.arange(columns) - np.arange(rows)[:, None] > columns - rows, value, x)


calls(
    "causal_mask",
    causal,
    [call((5, 5), value=0.0), call((2, 3, 5), value=-1.0), call((2, 5, 3), value=-9.0)],
)


def attention(
    q: Array, k: Array, v: Array, *attention_mask: Array, scale: Any = None, **more: Any
) -> Array:
    """Return attention by definition. Source: Vaswani and others, equation 1."""
    x = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    x = causal(x) if more.get("causal") else x
    if attention_mask and attention_mask[0].dtype == bool:
        weights = masked_softmax(x, attention_mask[0] & (x > -np.inf), -1)
    else:
        weights = softmax(x + attention_mask[0] if attention_mask else x)
    return weights @ v


calls(
    "scaled_dot_product_attention",
    attention,
    [
        call((2, 3, 4), (2, 5, 4), (2, 5, 6)),
        call((3, 4), (5, 4), (5, 6), causal=True, scale=0.3),
        call((3, 4), (5, 4), (5, 6), (3, 5), masked=True),
        call((2, 5, 4), (2, 5, 4), (2, 5, 6), mask(5, 5), masked=True, causal=True),
    ],
    slack=60,
)


def rotate_half(x: Array, interleaved: bool = False) -> Array:
    """Return pairs (a, b) as (-b, a)."""
    if interleaved:
        return np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    a, b = np.split(x, 2, -1)
    return np.concatenate([-b, a], -1)


def angles(x: Array, base: float = 10000.0, offset: int = 0, interleaved: bool = False) -> Array:
    """Return the angle by which each pair is rotated."""
    half = x.shape[-1] // 2
    each = base ** -(np.arange(half) / half)
    along = np.repeat(each, 2) if interleaved else np.concatenate([each, each])
    return np.broadcast_to((np.arange(x.shape[-2]) + offset)[:, None] * along, x.shape)


def rotary(x: Array, interleaved: bool = False, **more: Any) -> Array:
    """Return pairs rotated by the angle of their position."""
    angle = angles(x, interleaved=interleaved, **more)
    return x * np.cos(angle) + rotate_half(x, interleaved) * np.sin(angle)


ROTARY_CALLS = [call((5, 6)), call((2, 5, 8), offset=3, base=100.0, interleaved=True)]
calls("rotate_half", rotate_half, [call((5, 6)), call((2, 5, 8), interleaved=True)])
calls(
    "rotary_wave",
    lambda x, sine=False, **k: np.sin(angles(x, **k)) if sine else np.cos(angles(x, **k)),
    [*ROTARY_CALLS, call((5, 6), sine=True)],
    slack=8,
)
calls("rotary_embedding", rotary, ROTARY_CALLS, slack=16)


def alibi(x: Array) -> Array:
    """Return minus the distances of keys and queries times the slopes of heads."""
    heads, rows, columns = x.shape[-3:]
    slope = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    behind = np.arange(columns) - np.arange(rows)[:, None] - (columns - rows)
    return np.broadcast_to(-np.abs(behind) * slope[:, None, None], x.shape)


calls("alibi_bias", alibi, [call((3, 4, 4)), call((2, 8, 3, 5))], slack=4)

# polynomials

calls("polyval", np.polyval, [call((4,), (5, 7)), call((1,), (3,)), call((0,), (3,))], slack=16)
