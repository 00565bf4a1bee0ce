"""The most frequent functions of `passkit.xp.nn` in NumPy, for small arrays."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, pi
from typing import Any

import numpy as np

from passkit.frontends.xp.elementwise_operations import common_dtype
from passkit.values.dtype import dtype_of, is_narrow

_erf = np.frompyfunc(erf, 1, 1)


def in_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of real arrays that converts them, and its result, to their float dtype.

    That is float64 if there are only integers and booleans. 16-bit floats are computed in float32,
    and the result is rounded to 16 bits.
    """

    def of_floats(*arrays: Any, **params: Any) -> Any:
        dtype = common_dtype([dtype_of(a.dtype) for a in arrays], "special")
        computed = np.dtype(np.float32) if is_narrow(dtype) else dtype.numpy
        result = function(*[a.astype(computed, copy=False) for a in arrays], **params)
        return np.asarray(result).astype(dtype.numpy, copy=False)

    return of_floats


def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x)), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def softplus(x: Any, beta: float) -> Any:
    """Return log(1 + exp(beta x)) / beta, without overflow, for a beta other than 0."""
    return np.logaddexp(0, x * beta) / beta


def log_sigmoid(x: Any) -> Any:
    """Return the logarithm of `sigmoid`, without overflow."""
    return -np.logaddexp(0, -x)


def gelu(x: Any, approximate: str) -> Any:
    """Return x times the normal distribution function of x; "tanh" approximates it by tanh.

    ``x`` has floats of 32 or 64 bits, and may have no axes.
    """
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh((2 / pi) ** 0.5 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + np.asarray(_erf(x * 0.5**0.5), x.dtype))


def elu(x: Any, alpha: float) -> Any:
    """Return x where it is positive, else alpha (exp(x) - 1)."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def leaky_relu(x: Any, alpha: float) -> Any:
    """Return x where it is positive, else alpha x."""
    return np.where(x > 0, x, alpha * x)


def softmax(x: Any, axis: Any) -> Any:
    """Return exp(x) divided by its sum along axes (None for all); a copy of an empty array.

    It is NaN where all elements are -inf, or one is infinite or NaN.
    """
    if not x.size:
        return x.copy()
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any) -> Any:
    """Return the logarithm of `softmax` along axes (None for all); a copy of an empty array."""
    if not x.size:
        return x.copy()
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def linear(x: Any, weight: Any, *bias: Any) -> Any:
    """Return x @ transpose(weight), plus a bias, at most one, if it is passed."""
    product = x @ weight.T
    return product + bias[0] if bias else product


def _with_vectors(y: Any, axes: tuple[int, ...], vectors: tuple[Any, ...], scale: bool) -> Any:
    """Return y times a weight plus a bias, as far as they are among ``vectors``.

    The first of these is the weight if ``scale``. They are aligned with ``axes``, which are sorted
    and not negative.
    """
    shape = tuple([n if k in axes else 1 for k, n in enumerate(y.shape)])
    for k, vector in enumerate(vectors):
        aligned = vector.reshape(shape)
        y = y * aligned if scale and k == 0 else y + aligned
    return y


def layer_norm(
    x: Any, *vectors: Any, axis: tuple[int, ...], epsilon: float, scale: bool, center: bool
) -> Any:
    """Return x with mean 0 and variance 1 along axes, times a weight, plus a bias.

    Of an empty array it is a copy.

    Args:
        x: floats.
        *vectors: the weight if ``scale``, then the bias if ``center``, with the extents of the
            axes.
        axis: the sorted axes, not negative.
        epsilon: a number that is added to the variance.
        scale: whether there is a weight.
        center: whether there is a bias.
    """
    if not x.size:
        return x.copy()
    deviation = x - np.mean(x, axis=axis, keepdims=True)
    variance = np.mean(deviation * deviation, axis=axis, keepdims=True)
    return _with_vectors(deviation / np.sqrt(variance + epsilon), axis, vectors, scale)


def rms_norm(x: Any, *vectors: Any, axis: tuple[int, ...], epsilon: float, scale: bool) -> Any:
    """Return x divided by the root of its mean square along axes, times a weight.

    ``axis`` holds the sorted axes, not negative; ``epsilon`` is added to the mean square;
    ``vectors`` is the weight, with the extents of the axes, if ``scale``, and else empty. Of an
    empty array it is a copy.
    """
    if not x.size:
        return x.copy()
    mean_square = np.mean(x * x, axis=axis, keepdims=True)
    return _with_vectors(x / np.sqrt(mean_square + epsilon), axis, vectors, scale)
