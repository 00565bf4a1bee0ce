"""Optimizers as formulas over a namespace of functions, like the losses.

Each has the slots that a variable needs, with their first values, and a rule that returns the new
variable and the new slots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

UpdateRule = Callable[[Any, float, Any, Any, Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


@frozen
class OptimizerFormula:
    """One optimizer.

    Attributes:
        rule: (f, rate, variable, gradient, slots, shared) -> the new variable under ``""``, and the
            new slots.
        slots: first value of each array kept for a variable.
        shared: first value of each number kept for all variables.
        advance: returns the new shared numbers.
    """

    rule: UpdateRule
    slots: Mapping[str, float] = {}
    shared: Mapping[str, float] = {}
    advance: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda shared: {}


def sgd(f: Any, rate: float, w: Any, g: Any, slots: Any, shared: Any) -> dict[str, Any]:
    """Return plain gradient descent."""
    return {"": w - rate * g}


def adam(f: Any, rate: float, w: Any, g: Any, slots: Any, shared: Any) -> dict[str, Any]:
    """Return Adam (Kingma and Ba) as in TensorFlow, which corrects the bias in the rate."""
    m = slots["m"] + 0.1 * (g - slots["m"])
    v = slots["v"] + 0.001 * (f.square(g) - slots["v"])
    rate = rate * f.sqrt(1.0 - shared["power2"]) / (1.0 - shared["power1"])
    return {"": w - rate * m / (f.sqrt(v) + 1e-8), "m": m, "v": v}


def tinyflow_adam(f: Any, rate: float, w: Any, g: Any, slots: Any, shared: Any) -> dict[str, Any]:
    """Return Adam as in TinyFlow, which keeps the step's number and has epsilon 1e-4."""
    step = shared["step"]
    rate = rate * (f.sqrt(1.0 - f.pow(0.999, step)) / (1.0 - f.pow(0.9, step)))
    m = 0.9 * slots["m"] + 0.1 * g
    v = 0.999 * slots["v"] + 0.001 * g * g
    return {"": w - rate * m / (f.sqrt(v) + 1e-4), "m": m, "v": v}


def rmsprop(f: Any, rate: float, w: Any, g: Any, slots: Any, shared: Any) -> dict[str, Any]:
    """Return RMSProp (Tieleman and Hinton) as in TensorFlow, with a momentum of 0."""
    square = slots["square"] + 0.1 * (f.square(g) - slots["square"])
    momentum = slots["momentum"] * 0.0 + rate * g * f.rsqrt(square + 1e-10)
    return {"": w - momentum, "square": square, "momentum": momentum}


OPTIMIZERS = {
    "sgd": OptimizerFormula(sgd),
    "adam": OptimizerFormula(
        adam,
        {"m": 0.0, "v": 0.0},
        {"power1": 0.9, "power2": 0.999},
        lambda s: {"power1": s["power1"] * 0.9, "power2": s["power2"] * 0.999},
    ),
    "tinyflow_adam": OptimizerFormula(
        tinyflow_adam, {"m": 0.0, "v": 0.0}, {"step": 1.0}, lambda s: {"step": s["step"] + 1.0}
    ),
    "rmsprop": OptimizerFormula(rmsprop, {"square": 1.0, "momentum": 0.0}),
}
