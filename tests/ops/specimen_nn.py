"""Specimens of what neural networks are made of; references are definitions in NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from tests.ops.specimens import between, call, calls, elementwise, reduction, unit

Array = Any


def softmax(x: Array, axis: Any = -1) -> Array:
    """The definition."""
    return special.softmax(x, axis)


def labels(*shape: int, classes: int) -> Any:
    """Whole numbers below ``classes``."""
    return lambda rng, dtype: rng.integers(0, classes, shape).astype(np.int32)


def shares(*shape: int, axis: int = -1) -> Any:
    """Distributions along an axis, with zeros among them."""

    def made(rng: Any, dtype: Any) -> Array:
        x = rng.random(shape) * (rng.random(shape) > 0.3) + 0.01 * (np.arange(shape[axis]) == 0)
        return (x / x.sum(axis, keepdims=True)).astype(dtype.numpy)

    return made


def probabilities(*shape: int) -> Any:
    """Between 0.02 and 0.98."""
    return lambda rng, dtype: unit(rng, shape).astype(dtype.numpy)


def signs(*shape: int) -> Any:
    """-1 and 1."""
    return lambda rng, dtype: np.where(rng.random(shape) < 0.5, -1, 1).astype(dtype.numpy)


def mask(*shape: int) -> Any:
    """True or False; the first row has nothing."""

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


def masked_softmax(x: Array, seen: Array, axis: int) -> Array:
    """Of the elements seen; zeros where there are none."""
    e = np.where(seen, np.exp(x), 0)
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
    """Both halves along an axis."""
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
    """Mean 0, variance 1."""
    d = x - x.mean(axes, keepdims=True)
    return d / np.sqrt((d * d).mean(axes, keepdims=True) + epsilon)


def spread(v: Array, rank: int, axes: tuple[int, ...]) -> Array:
    """``v`` along ``axes`` of an array of ``rank``."""
    return v.reshape([v.shape[axes.index(k)] if k in axes else 1 for k in range(rank)])


def layer_norm(x: Array, gamma: Array, beta: Array, axis: Any, epsilon: float = 1e-5) -> Array:
    """Over ``axis``."""
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
    """Divided by the root of the mean square."""
    out = x / np.sqrt((x * x).mean(axis, keepdims=True) + epsilon)
    return out * spread(gamma[0], x.ndim, (axis % x.ndim,)) if gamma else out


calls(
    "rms_norm",
    rms_norm,
    [call((4, 9), (9,)), call((3, 4, 5), (4,), axis=1), call((4, 9), scale=False, epsilon=0.1)],
    slack=40,
)


def group_norm(x: Array, *rest: Array, groups: int, channel_axis: int = -1, **more: Any) -> Array:
    """Channels last, in groups, and back."""
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
    """Shortened where longer."""
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

# losses

FOLDS = {"mean": np.mean, "sum": np.sum, "none": lambda x: x}


def folded(element: Any) -> Any:
    """A loss of labels and predictions, folded as ``reduction`` says."""
    return lambda a, b, reduction="mean", **k: FOLDS[reduction](element(a, b, **k))


def huber(a: Array, b: Array, delta: float = 1.0) -> Array:
    """A parabola, then a line."""
    return special.huber(delta, b - a)


LOSSES: dict[str, tuple[Any, dict[str, Any]]] = {
    "mean_squared_error": (lambda a, b: (b - a) ** 2, {}),
    "mean_absolute_error": (lambda a, b: np.abs(b - a), {}),
    "huber_loss": (huber, {"delta": 1.5}),
    "smooth_l1_loss": (lambda a, b, beta=1.0: huber(a, b, beta) / beta, {"beta": 0.5}),
    "log_cosh_loss": (lambda a, b: np.log(np.cosh(b - a)), {}),
    "poisson_loss": (lambda a, b: np.exp(b) - a * b, {}),
}
for _name, (_element, _params) in LOSSES.items():
    calls(
        _name,
        folded(_element),
        [
            call((5, 7), (5, 7), **_params),
            call((3, 4), (4,), reduction="none", **_params),
            call((6,), (6,), reduction="sum", **_params),
        ],
        slack=16,
    )
for _name, _power in (("hinge_loss", 1), ("squared_hinge_loss", 2)):
    calls(
        _name,
        folded(lambda a, b, power=_power: np.maximum(1 - a * b, 0) ** power),
        [call(signs(5, 7), (5, 7)), call(signs(4), (4,), reduction="none")],
        slack=16,
    )
calls(
    "binary_cross_entropy",
    folded(lambda a, p: -(a * np.log(p) + (1 - a) * np.log1p(-p))),
    [
        call(probabilities(5, 7), probabilities(5, 7)),
        call(probabilities(4), probabilities(4), reduction="none"),
    ],
    slack=16,
)
calls(
    "kl_divergence",
    folded(lambda a, p: special.rel_entr(a, p)),
    [
        call(probabilities(5, 7), probabilities(5, 7), reduction="none"),
        call(probabilities(5, 7), probabilities(5, 7), reduction="sum"),
    ],
    slack=32,
)
calls(
    "sigmoid_cross_entropy_with_logits",
    lambda a, x: np.maximum(x, 0) - x * a + np.log1p(np.exp(-np.abs(x))),
    [call(probabilities(5, 7), (5, 7)), call(probabilities(), ())],
    slack=8,
)
calls(
    "softmax_cross_entropy_with_logits",
    lambda a, x, axis=-1: -(a * special.log_softmax(x, axis)).sum(axis),
    [call(shares(5, 7), (5, 7)), call(shares(3, 4, 5), (3, 4, 5), axis=1)],
    slack=32,
)


def picked(x: Array, chosen: Array, axis: int) -> Array:
    """The elements that labels choose along an axis."""
    return np.take_along_axis(x, np.expand_dims(chosen.astype(np.int64), axis), axis).squeeze(axis)


calls(
    "sparse_softmax_cross_entropy_with_logits",
    lambda a, x, axis=-1: -picked(special.log_softmax(x, axis), a, axis),
    [call(labels(5, classes=7), (5, 7)), call(labels(3, 5, classes=4), (3, 4, 5), axis=1)],
    slack=32,
)
calls(
    "nll_loss",
    lambda a, x, axis=-1, reduction="mean": FOLDS[reduction](-picked(x, a, axis)),
    [
        call(labels(5, classes=7), (5, 7)),
        call(labels(3, 5, classes=4), (3, 4, 5), axis=1, reduction="none"),
    ],
    slack=16,
)


def pick_label(x: Array, chosen: Array, axis: int = -1) -> Array:
    """All but what is chosen becomes 0."""
    place = np.arange(x.shape[axis]).reshape(
        [-1 if k == axis % x.ndim else 1 for k in range(x.ndim)]
    )
    return np.where(place == np.expand_dims(chosen, axis), x, 0)


calls(
    "pick_label",
    pick_label,
    [
        call((5, 7), labels(5, classes=9)),
        call((3, 4, 5), labels(3, 5, classes=4), axis=1),
        call((2, 3), lambda rng, dtype: np.array([-1, 2], np.int64)),
    ],
)


def cosine(a: Array, b: Array, axis: int = -1, epsilon: float = 1e-8) -> Array:
    """Of the angle."""
    lengths = np.linalg.norm(a, axis=axis) * np.linalg.norm(b, axis=axis)
    return (a * b).sum(axis) / np.where(lengths == 0, 1, lengths)


calls(
    "cosine_similarity",
    cosine,
    [call((5, 7), (5, 7)), call((3, 4, 5), (3, 4, 5), axis=1)],
    slack=16,
)
calls(
    "label_smoothing",
    lambda a, smoothing=0.1, axis=-1: a * (1 - smoothing) + smoothing / a.shape[axis],
    [call(shares(5, 7)), call(shares(3, 4), axis=0, smoothing=0.3)],
    slack=4,
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


def attention(q: Array, k: Array, v: Array, *seen: Array, scale: Any = None, **more: Any) -> Array:
    """Source: Vaswani and others, equation 1."""
    x = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    x = causal(x) if more.get("causal") else x
    if seen and seen[0].dtype == bool:
        weights = masked_softmax(x, seen[0] & (x > -np.inf), -1)
    else:
        weights = softmax(x + seen[0] if seen else x)
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


def partners(x: Array, interleaved: bool = False) -> Array:
    """(a, b) as (-b, a)."""
    if interleaved:
        return np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    a, b = np.split(x, 2, -1)
    return np.concatenate([-b, a], -1)


def turns(x: Array, base: float = 10000.0, offset: int = 0, interleaved: bool = False) -> Array:
    """How far each pair is turned."""
    half = x.shape[-1] // 2
    each = base ** -(np.arange(half) / half)
    along = np.repeat(each, 2) if interleaved else np.concatenate([each, each])
    return np.broadcast_to((np.arange(x.shape[-2]) + offset)[:, None] * along, x.shape)


def rotary(x: Array, interleaved: bool = False, **more: Any) -> Array:
    """Pairs turned."""
    angle = turns(x, interleaved=interleaved, **more)
    return x * np.cos(angle) + partners(x, interleaved) * np.sin(angle)


PLACES = [call((5, 6)), call((2, 5, 8), offset=3, base=100.0, interleaved=True)]
calls("rotate_half", partners, [call((5, 6)), call((2, 5, 8), interleaved=True)])
calls(
    "rotary_wave",
    lambda x, sine=False, **k: np.sin(turns(x, **k)) if sine else np.cos(turns(x, **k)),
    [*PLACES, call((5, 6), sine=True)],
    slack=8,
)
calls("rotary_embedding", rotary, PLACES, slack=16)


def alibi(x: Array) -> Array:
    """Distances, by slopes of heads."""
    heads, rows, columns = x.shape[-3:]
    slope = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    behind = np.arange(columns) - np.arange(rows)[:, None] - (columns - rows)
    return np.broadcast_to(-np.abs(behind) * slope[:, None, None], x.shape)


calls("alibi_bias", alibi, [call((3, 4, 4)), call((2, 8, 3, 5))], slack=4)

# polynomials

calls("polyval", np.polyval, [call((4,), (5, 7)), call((1,), (3,)), call((0,), (3,))], slack=16)

# cells

sigmoid = special.expit


def simple_rnn(x: Array, h: Array, w: Array, u: Array, b: Array, activation: str = "tanh") -> Array:
    """One step."""
    z = x @ w + h @ u + b
    return np.tanh(z) if activation == "tanh" else np.maximum(z, 0)


def lstm(
    x: Array, h: Array, c: Array, w: Array, u: Array, b: Array, forget_bias: float = 0.0
) -> tuple[Array, Array]:
    """One step, gates i f c o."""
    i, f, g, o = np.split(x @ w + h @ u + b, 4, 1)
    new = sigmoid(f + forget_bias) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(new), new


def block(
    x: Array,
    c: Array,
    h: Array,
    w: Array,
    b: Array,
    forget_bias: float = 1.0,
    cell_clip: float = -1.0,
) -> tuple[Array, ...]:
    """One step, gates i c f o, as TensorFlow's documentation of LSTMBlockCell has it."""
    i, ci, f, o = np.split(np.concatenate([x, h], 1) @ w + b, 4, 1)
    i, ci, f, o = sigmoid(i), np.tanh(ci), sigmoid(f + forget_bias), sigmoid(o)
    cs = ci * i + c * f
    cs = np.clip(cs, -cell_clip, cell_clip) if cell_clip > 0 else cs
    return i, cs, f, o, ci, np.tanh(cs), np.tanh(cs) * o


def gru(x: Array, h: Array, w: Array, u: Array, b: Array, reset_after: bool = True) -> Array:
    """One step, gates z r h."""
    n = h.shape[1]
    a = x @ w + (b[0] if reset_after else b)
    r = h @ u + (b[1] if reset_after else 0)
    z, reset = sigmoid(a[:, :n] + r[:, :n]), sigmoid(a[:, n : 2 * n] + r[:, n : 2 * n])
    last = reset * r[:, 2 * n :] if reset_after else (reset * h) @ u[:, 2 * n :]
    return z * h + (1 - z) * np.tanh(a[:, 2 * n :] + last)


calls(
    "simple_rnn_cell",
    simple_rnn,
    [
        call((3, 4), (3, 5), (4, 5), (5, 5), (5,)),
        call((3, 4), (3, 5), (4, 5), (5, 5), (5,), activation="relu"),
    ],
    slack=60,
)
calls(
    "lstm_cell",
    lstm,
    [
        call((3, 4), (3, 5), (3, 5), (4, 20), (5, 20), (20,)),
        call((3, 4), (3, 5), (3, 5), (4, 20), (5, 20), (20,), forget_bias=1.0),
    ],
    slack=60,
)
calls(
    "lstm_block_cell",
    block,
    [
        call((3, 4), (3, 5), (3, 5), (9, 20), (20,)),
        call((3, 4), (3, 5), (3, 5), (9, 20), (20,), forget_bias=0.0, cell_clip=0.8),
    ],
    slack=60,
)
calls(
    "gru_cell",
    gru,
    [
        call((3, 4), (3, 5), (4, 15), (5, 15), (2, 15)),
        call((3, 4), (3, 5), (4, 15), (5, 15), (15,), reset_after=False),
    ],
    slack=60,
)
