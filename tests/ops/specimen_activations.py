"""Specimens of activation functions, by their defining formulas in double."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from tests.ops.specimens import elementwise, normal, unit


def _elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(x))


def _relu6(x: Any) -> Any:
    return np.clip(x, 0, 6)


def _mish(x: Any) -> Any:
    return x * np.tanh(np.logaddexp(0, x))


def _shrunk(x: Any, threshold: float = 0.5) -> Any:
    return np.where(np.isnan(x), x, np.sign(x) * np.maximum(np.abs(x) - threshold, 0))


elementwise("relu6", _relu6, ulps=1)
elementwise("leaky_relu", lambda x, alpha=0.2: np.where(x > 0, x, alpha * x), ulps=1)
elementwise(
    "leaky_relu", lambda x, alpha: np.where(x > 0, x, alpha * x), params={"alpha": 0.01}, ulps=1
)
elementwise("prelu", lambda x, alpha: np.where(x > 0, x, alpha * x), normal, unit, ulps=1)
elementwise("elu", _elu, ulps=4)
elementwise("elu", _elu, params={"alpha": 0.5}, ulps=4)
elementwise(
    "selu",
    lambda x: 1.0507009873554805 * _elu(x, 1.6732632423543772),
    ulps=6,
)
elementwise(
    "celu",
    lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x / alpha)),
    params={"alpha": 2.0},
    ulps=4,
)
elementwise("softsign", lambda x: x / (1 + np.abs(x)), ulps=2)
elementwise("hard_sigmoid", lambda x: _relu6(x + 3) / 6, ulps=4, special=False)
elementwise("hard_swish", lambda x: x * _relu6(x + 3) / 6, ulps=4, special=False)
elementwise("hard_tanh", lambda x, low=-1.0, high=1.0: np.clip(x, low, high), ulps=1)
elementwise(
    "hard_tanh",
    lambda x, low, high: np.clip(x, low, high),
    params={"low": -0.5, "high": 2.0},
    ulps=1,
)
elementwise("hard_shrink", lambda x, threshold=0.5: np.where(np.abs(x) <= threshold, 0, x))
elementwise("soft_shrink", _shrunk, params={"threshold": 1.5}, ulps=4)
elementwise(
    "threshold",
    lambda x, threshold, value: np.where(x <= threshold, value, x),
    params={"threshold": 0.5, "value": 20.0},
)
elementwise("mish", _mish, ulps=8)
elementwise("quick_gelu", lambda x: x * sp.expit(1.702 * x), ulps=16)


def _tanh_shrink(x: Any) -> Any:
    """By the series where the difference cancels."""
    z = np.minimum(x * x, 0.01)
    series = 1 / 3 + z * (-2 / 15 + z * (17 / 315 + z * (-62 / 2835 + z * 1382 / 155925)))
    wide = x.astype(np.longdouble)
    return np.where(np.abs(x) < 0.02, x * x * x * series, (wide - np.tanh(wide)).astype(float))


elementwise("tanh_shrink", _tanh_shrink, ulps=60)
