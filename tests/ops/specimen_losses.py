"""Specimens of losses and of similarity, against definitions in NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from tests.ops.specimens import call, calls, unit

Array = Any


def labels(*shape: int, classes: int) -> Any:
    """Return a function that draws ints below ``classes``."""
    return lambda rng, dtype: rng.integers(0, classes, shape).astype(np.int32)


def shares(*shape: int, axis: int = -1) -> Any:
    """Return a function that draws distributions along an axis, with zeros among them."""

    def draw(rng: Any, dtype: Any) -> Array:
        x = rng.random(shape) * (rng.random(shape) > 0.3) + 0.01 * (np.arange(shape[axis]) == 0)
        return (x / x.sum(axis, keepdims=True)).astype(dtype.numpy)

    return draw


def probabilities(*shape: int) -> Any:
    """Return a function that draws numbers between 0.02 and 0.98."""
    return lambda rng, dtype: unit(rng, shape).astype(dtype.numpy)


def signs(*shape: int) -> Any:
    """Return a function that draws -1 and 1."""
    return lambda rng, dtype: np.where(rng.random(shape) < 0.5, -1, 1).astype(dtype.numpy)


REDUCTIONS = {"mean": np.mean, "sum": np.sum, "none": lambda x: x}


def reduced(element: Any) -> Any:
    """Return a loss from a loss of each element, reduced as ``reduction`` says."""
    return lambda a, b, reduction="mean", **k: REDUCTIONS[reduction](element(a, b, **k))


def huber(a: Array, b: Array, delta: float = 1.0) -> Array:
    """Return the Huber loss: a parabola up to ``delta``, then a line."""
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
        reduced(_element),
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
        reduced(lambda a, b, power=_power: np.maximum(1 - a * b, 0) ** power),
        [call(signs(5, 7), (5, 7)), call(signs(4), (4,), reduction="none")],
        slack=16,
    )
calls(
    "binary_cross_entropy",
    reduced(lambda a, p: -(a * np.log(p) + (1 - a) * np.log1p(-p))),
    [
        call(probabilities(5, 7), probabilities(5, 7)),
        call(probabilities(4), probabilities(4), reduction="none"),
    ],
    slack=16,
)
calls(
    "kl_divergence",
    reduced(lambda a, p: special.rel_entr(a, p)),
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
    """Return the elements that labels choose along an axis."""
    return np.take_along_axis(x, np.expand_dims(chosen.astype(np.int64), axis), axis).squeeze(axis)


calls(
    "sparse_softmax_cross_entropy_with_logits",
    lambda a, x, axis=-1: -picked(special.log_softmax(x, axis), a, axis),
    [call(labels(5, classes=7), (5, 7)), call(labels(3, 5, classes=4), (3, 4, 5), axis=1)],
    slack=32,
)
calls(
    "nll_loss",
    lambda a, x, axis=-1, reduction="mean": REDUCTIONS[reduction](-picked(x, a, axis)),
    [
        call(labels(5, classes=7), (5, 7)),
        call(labels(3, 5, classes=4), (3, 4, 5), axis=1, reduction="none"),
    ],
    slack=16,
)


def pick_label(x: Array, chosen: Array, axis: int = -1) -> Array:
    """Return the array with zeros for all but the chosen elements."""
    position = np.arange(x.shape[axis]).reshape(
        [-1 if k == axis % x.ndim else 1 for k in range(x.ndim)]
    )
    return np.where(position == np.expand_dims(chosen, axis), x, 0)


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
    """Return the cosine of the angle of two vectors; 0 if one is zero."""
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
