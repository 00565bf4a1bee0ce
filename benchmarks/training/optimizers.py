"""What makes new variables of old ones and their gradients, over a namespace as the losses are.

Each is a pair: the slots that a variable needs, with what they begin with, and the rule, which
gives the new variable and the new slots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

Rule = Callable[[Any, float, Any, Any, Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


@frozen
class Optimizer:
    """A way to descend.

    slots: first value of each array kept for a variable. shared: first value of each number kept
    for all, which ``advance`` makes new. rule: (f, rate, variable, gradient, slots, shared) -> the
    new variable under ``""``, and the new slots.
    """

    rule: Rule
    slots: Mapping[str, float] = {}
    shared: Mapping[str, float] = {}
    advance: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda shared: {}


def sgd(f: Any, rate: float, w: Any, g: Any, slots: Any, shared: Any) -> dict[str, Any]:
    """Plain descent."""
    return {"": w - rate * g}


def adam(f: Any, rate: float, w: Any, g: Any, slots: Any, shared: Any) -> dict[str, Any]:
    """Kingma and Ba, as TensorFlow computes it: the bias is corrected in the rate."""
    m = slots["m"] + 0.1 * (g - slots["m"])
    v = slots["v"] + 0.001 * (f.square(g) - slots["v"])
    rate = rate * f.sqrt(1.0 - shared["power2"]) / (1.0 - shared["power1"])
    return {"": w - rate * m / (f.sqrt(v) + 1e-8), "m": m, "v": v}


def tinyflow_adam(
    f: Any, rate: float, w: Any, g: Any, slots: Any, shared: Any
) -> dict[str, Any]:
    """Adam as TinyFlow computes it: the number of the step is kept, and epsilon is 1e-4."""
    step = shared["step"]
    rate = rate * (f.sqrt(1.0 - f.pow(0.999, step)) / (1.0 - f.pow(0.9, step)))
    m = 0.9 * slots["m"] + 0.1 * g
    v = 0.999 * slots["v"] + 0.001 * g * g
    return {"": w - rate * m / (f.sqrt(v) + 1e-4), "m": m, "v": v}


def rmsprop(f: Any, rate: float, w: Any, g: Any, slots: Any, shared: Any) -> dict[str, Any]:
    """Tieleman and Hinton, as TensorFlow computes it, with a momentum of 0."""
    square = slots["square"] + 0.1 * (f.square(g) - slots["square"])
    momentum = slots["momentum"] * 0.0 + rate * g * f.rsqrt(square + 1e-10)
    return {"": w - momentum, "square": square, "momentum": momentum}


OPTIMIZERS = {
    "sgd": Optimizer(sgd),
    "adam": Optimizer(
        adam, {"m": 0.0, "v": 0.0}, {"power1": 0.9, "power2": 0.999},
        lambda s: {"power1": s["power1"] * 0.9, "power2": s["power2"] * 0.999},
    ),
    "tinyflow_adam": Optimizer(
        tinyflow_adam, {"m": 0.0, "v": 0.0}, {"step": 1.0}, lambda s: {"step": s["step"] + 1.0}
    ),
    "rmsprop": Optimizer(rmsprop, {"square": 1.0, "momentum": 0.0}),
}
