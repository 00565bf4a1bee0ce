"""Activation functions, softmax and its relatives.

They compute in the dtype of the array; integers are computed in float64. Each fuses with what
produces its operand and what reads its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

import passkit.ops as ops
from passkit.errors import ArgumentError, FeedError, ShapeError
from passkit.frontends.xp import special
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.elementwise import add
from passkit.frontends.xp.manipulation import broadcast_shapes
from passkit.frontends.xp.nn import array_functions as in_numpy
from passkit.frontends.xp.nn.operands import (
    applied,
    define,
    positive_number,
    real_number,
    real_value,
    real_values,
)
from passkit.frontends.xp.random.distributions import gumbel
from passkit.frontends.xp.reductions import Axes, one_axis, several_axes
from passkit.frontends.xp.runtime import OPERATIONS, apply, operation
from passkit.graph.node import Entry
from passkit.values.arguments import shown
from passkit.values.dtype import bool_


@frozen
class Activation:
    """An activation function without parameters.

    Attributes:
        name: its name.
        build: the operator, a function of an entry of floats.
        summary: the first line of its documentation, as a phrase.
        on_arrays: the same function of NumPy arrays of floats; None interprets.
    """

    name: str
    build: Callable[[Entry], Entry]
    summary: str
    on_arrays: Callable[..., Any] | None = None


ACTIVATIONS = (
    Activation("hard_sigmoid", ops.hard_sigmoid, "relu6(x + 3) / 6"),
    Activation("hard_silu", ops.hard_swish, "x * relu6(x + 3) / 6"),
    Activation(
        "log_sigmoid",
        ops.log_sigmoid,
        "log(sigmoid(x)), accurate for negative x",
        in_numpy.log_sigmoid,
    ),
    Activation("mish", ops.mish, "x * tanh(softplus(x))"),
    Activation("quick_gelu", ops.quick_gelu, "x * sigmoid(1.702 * x), an approximation of gelu"),
    Activation(
        "relu6", ops.relu6, "x limited to the range from 0 to 6", lambda x: np.clip(x, 0, 6)
    ),
    Activation("selu", ops.selu, "elu with a scale and an alpha that keep mean 0 and variance 1"),
    Activation("sigmoid", ops.sigmoid, "1 / (1 + exp(-x))", in_numpy.sigmoid),
    Activation("silu", ops.silu, "x * sigmoid(x)", lambda x: x * in_numpy.sigmoid(x)),
    Activation("softsign", ops.softsign, "x / (1 + abs(x))"),
    Activation("tanh", ops.tanh, "the hyperbolic tangent", np.tanh),
    Activation("tanh_shrink", ops.tanh_shrink, "x - tanh(x), accurate near 0"),
)
"""The activation functions of one array without parameters. relu is separate: it keeps integers."""


def _activation(activation: Activation) -> Any:
    """Define the operation of an activation; return its public function, with a docstring."""
    name = activation.name
    define(name, activation.build, on_arrays=activation.on_arrays)
    op = operation(f"nn.{name}")

    def function(x: Any, /) -> Array:
        return wrap(apply(op, real_value(name, "x", x)))

    function.__name__ = function.__qualname__ = activation.name
    function.__doc__ = (
        f"Return {activation.summary}, for each element.\n\n"
        "Args:\n    x: an array of real numbers, or a number; integers and booleans are computed "
        "in\n        float64.\n\n"
        "Returns: A new array of the dtype of x, or of float64; NaN where x is NaN.\n\n"
        "Raises:\n    ArgumentError: it is neither.\n"
        "    DTypeError: it is a complex array, or an int too large for a float.\n"
    )
    return function


_BY_NAME = {activation.name: _activation(activation) for activation in ACTIVATIONS}

hard_sigmoid: Callable[[Any], Array] = _BY_NAME["hard_sigmoid"]
hard_silu: Callable[[Any], Array] = _BY_NAME["hard_silu"]
log_sigmoid: Callable[[Any], Array] = _BY_NAME["log_sigmoid"]
mish: Callable[[Any], Array] = _BY_NAME["mish"]
quick_gelu: Callable[[Any], Array] = _BY_NAME["quick_gelu"]
relu6: Callable[[Any], Array] = _BY_NAME["relu6"]
selu: Callable[[Any], Array] = _BY_NAME["selu"]
sigmoid: Callable[[Any], Array] = _BY_NAME["sigmoid"]
silu: Callable[[Any], Array] = _BY_NAME["silu"]
softsign: Callable[[Any], Array] = _BY_NAME["softsign"]
tanh: Callable[[Any], Array] = _BY_NAME["tanh"]
tanh_shrink: Callable[[Any], Array] = _BY_NAME["tanh_shrink"]
hard_swish = hard_silu
swish = silu


# Activations with parameters.


def _relu(x: Entry) -> Entry:
    """Build relu of real numbers; integers and booleans keep their dtype."""
    assert x.dtype is not None
    if x.dtype is bool_:
        return ops.identity(x)
    return ops.relu(x) if x.dtype.is_float else ops.maximum(x, 0)


def _softplus(x: Entry, beta: float) -> Entry:
    """Build log(1 + exp(beta x)) / beta of floats; beta must not be 0."""
    return ops.softplus(x) if beta == 1 else ops.softplus(x * beta) * (1 / beta)


def _squareplus(x: Entry, b: float) -> Entry:
    """Build (x + sqrt(x² + b)) / 2 of floats."""
    return (x + ops.sqrt(ops.square(x) + b)) * 0.5


OPERATIONS.define("nn.relu", _relu, lambda x: np.maximum(x, np.zeros((), x.dtype)))
define("celu", ops.celu)
define("elu", ops.elu, on_arrays=in_numpy.elu)
define("gelu", ops.gelu, on_arrays=in_numpy.gelu)
define("glu", ops.glu)
define("hard_shrink", ops.hard_shrink)
define("hard_tanh", ops.hard_tanh)
define("leaky_relu", ops.leaky_relu, on_arrays=in_numpy.leaky_relu)
define("prelu", ops.prelu)
define("soft_shrink", ops.soft_shrink)
define("softplus", _softplus, on_arrays=in_numpy.softplus)
define("squareplus", _squareplus)
define("threshold", ops.threshold)


def relu(x: Any, /) -> Array:
    """Return x where it is positive, else 0, for each element; NaN stays.

    Args:
        x: an array of real numbers, whose dtype the result has, also of integers and booleans; or
            a number of Python, which becomes float64.

    Raises:
        ArgumentError: it is neither.
        DTypeError: it is a complex array, or an int too large for a float.
    """
    return applied("relu", real_value("relu", "x", x))


def celu(x: Any, /, alpha: float = 1.0) -> Array:
    """Return x where it is positive, else alpha * (exp(x / alpha) - 1).

    ``x`` has real numbers; integers are computed in float64. ``alpha`` is a number; with 0, the
    result is NaN where x is 0.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, or ``alpha`` no number.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
    """
    return applied("celu", real_value("celu", "x", x), alpha=real_number("celu", "alpha", alpha))


def elu(x: Any, /, alpha: float = 1.0) -> Array:
    """Return x where it is positive, else alpha * (exp(x) - 1).

    ``x`` has real numbers; integers are computed in float64. ``alpha`` is any number.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, or ``alpha`` no number.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
    """
    return applied("elu", real_value("elu", "x", x), alpha=real_number("elu", "alpha", alpha))


def gelu(x: Any, /, approximate: str | bool = "none") -> Array:
    """Return x times the normal distribution function of x.

    Args:
        x: an array of real numbers, or a number; integers are computed in float64.
        approximate: "none" or False: exact; "tanh" or True: a formula with tanh.

    Raises:
        ArgumentError: ``approximate`` is something else, or ``x`` no array or number.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
    """
    method = approximate
    if isinstance(approximate, bool):
        method = "tanh" if approximate else "none"
    if not isinstance(method, str) or method not in ("none", "tanh"):
        raise ArgumentError(f"gelu: approximate must be 'none' or 'tanh', got {shown(approximate)}")
    return applied("gelu", real_value("gelu", "x", x), approximate=method)


def glu(x: Any, /, axis: int = -1) -> Array:
    """Return a * sigmoid(b) for the halves a and b of x along an axis, which it halves.

    Args:
        x: an array of real numbers; integers are computed in float64.
        axis: the axis; negative ones count from the end.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, or the axis no integer.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
        ShapeError: there is no such axis, or its extent is odd.
    """
    value = real_value("glu", "x", x)
    return applied("glu", value, axis=one_axis("glu", axis, len(value.type.shape)))


def hard_shrink(x: Any, /, threshold: float = 0.5) -> Array:
    """Return x where its magnitude exceeds a threshold, else 0; NaN stays.

    ``x`` has real numbers; integers are computed in float64.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, or the threshold no number.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
    """
    value = real_value("hard_shrink", "x", x)
    number = real_number("hard_shrink", "threshold", threshold)
    return applied("hard_shrink", value, threshold=number)


def hard_tanh(x: Any, /, min_value: float = -1.0, max_value: float = 1.0) -> Array:
    """Return x limited to the range from ``min_value`` to ``max_value``.

    ``x`` has real numbers; integers are computed in float64. The limits are not compared.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, or a limit no number.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
    """
    low = real_number("hard_tanh", "min_value", min_value)
    high = real_number("hard_tanh", "max_value", max_value)
    return applied("hard_tanh", real_value("hard_tanh", "x", x), low=low, high=high)


def leaky_relu(x: Any, /, negative_slope: float = 0.01) -> Array:
    """Return x where it is positive, else negative_slope * x.

    ``x`` has real numbers; integers are computed in float64.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, or the slope no number.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
    """
    slope = real_number("leaky_relu", "negative_slope", negative_slope)
    return applied("leaky_relu", real_value("leaky_relu", "x", x), alpha=slope)


def prelu(x: Any, weight: Any, /) -> Array:
    """Return x where it is positive, else weight * x.

    ``weight`` is an array that broadcasts with ``x``, or a number; integers are computed in
    float64.

    Raises:
        ArgumentError: one is neither an array nor a real number.
        DTypeError: one is an array of complex numbers or of a dtype that passkit does not have, or
            an int too large for a float.
        ShapeError: they do not broadcast.
        DeviceError: the arrays are on several devices.
    """
    return applied("prelu", *real_values("prelu", x=x, weight=weight))


def soft_shrink(x: Any, /, threshold: float = 0.5) -> Array:
    """Return x moved towards 0 by a threshold; 0 where its magnitude is not larger; NaN stays.

    ``x`` has real numbers; integers are computed in float64.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, or the threshold no number.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
    """
    value = real_value("soft_shrink", "x", x)
    number = real_number("soft_shrink", "threshold", threshold)
    return applied("soft_shrink", value, threshold=number)


_ONE = 1.0
_SOFTPLUS = operation("nn.softplus", beta=_ONE)


def softplus(x: Any, /, beta: float = _ONE) -> Array:
    """Return log(1 + exp(beta * x)) / beta, without overflow.

    ``x`` has real numbers; integers are computed in float64.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, or ``beta`` no number.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
        FeedError: ``beta`` is 0.
    """
    value = real_value("softplus", "x", x)
    if beta is _ONE:  # the default: no parameter needs a check
        return wrap(apply(_SOFTPLUS, value))
    number = real_number("softplus", "beta", beta)
    if not number:
        raise FeedError(f"softplus needs a beta other than 0, got {shown(beta)}")
    return applied("softplus", value, beta=number)


def squareplus(x: Any, /, b: float = 4.0) -> Array:
    """Return (x + sqrt(x**2 + b)) / 2; NaN where x**2 + b is negative.

    ``x`` has real numbers; integers are computed in float64.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, or ``b`` no number.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
    """
    value = real_value("squareplus", "x", x)
    return applied("squareplus", value, b=real_number("squareplus", "b", b))


def threshold(x: Any, /, threshold: float, value: float) -> Array:
    """Return x where it exceeds a threshold, else ``value``; NaN stays.

    ``x`` has real numbers; integers are computed in float64.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, or ``threshold`` or ``value`` no
            number.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
    """
    limit = real_number("threshold", "threshold", threshold)
    other = real_number("threshold", "value", value)
    return applied("threshold", real_value("threshold", "x", x), threshold=limit, value=other)


# Softmax and its relatives.

define("log_softmax", ops.log_softmax, on_arrays=in_numpy.log_softmax)
define("masked_softmax", ops.masked_softmax, floats=1)
define("softmax", ops.softmax, on_arrays=in_numpy.softmax)
define("softmin", ops.softmin)


def _along(where: str, x: Any, axis: Axes, *masks: Any) -> Array:
    """Apply the operation of the function ``where`` along axes, or masked softmax with a mask.

    There is at most one mask, whose shape broadcasts to that of ``x``.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, or an axis no integer.
        DTypeError: ``x`` is an array of complex numbers, or the mask not of booleans.
        ShapeError: there is no such axis, it is named twice, or the mask does not broadcast to x.
        DeviceError: the arrays are on several devices.
    """
    value = real_value(where, "x", x)
    shape = value.type.shape
    axes = several_axes(where, axis, len(shape))
    name = "masked_softmax" if masks else where
    arrays = [array_of(m) for m in masks]
    for mask in arrays:
        if broadcast_shapes(mask.shape, shape) != shape:
            raise ShapeError(f"{where}: a mask of shape {mask.shape} does not fit x of {shape}")
    return applied(name, value, *[m._value for m in arrays], axis=axes)


def softmax(x: Any, /, axis: Axes = -1, *, where: Any = None) -> Array:
    """Return exp(x) divided by its sum along axes.

    Args:
        x: an array of real numbers; integers are computed in float64.
        axis: the axis or axes; None for all.
        where: booleans that broadcast to the shape of ``x``, an array or a bool: elements where
            they are False count as -inf. Where all are, the result is 0. None: there is no mask.

    Returns: A new array in the shape of ``x``. It is NaN where an element that counts is +inf or
        NaN. Where all are -inf it is NaN without a mask, and 0 with one; elsewhere -inf gives 0.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, or an axis no integer.
        DTypeError: ``x`` is an array of complex numbers, or the mask not of booleans.
        ShapeError: there is no such axis, it is named twice, or the mask does not broadcast to the
            shape of ``x``.
        DeviceError: the arrays are on several devices.

    >>> from passkit import xp
    >>> xp.nn.softmax(xp.zeros(4))
    Array([0.25, 0.25, 0.25, 0.25], dtype=float64)
    """
    return _along("softmax", x, axis) if where is None else _along("softmax", x, axis, where)


def log_softmax(x: Any, /, axis: Axes = -1) -> Array:
    """Return the logarithm of `softmax`: x - log(sum(exp(x))) along axes; None for all.

    ``x`` has real numbers; integers are computed in float64.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, or an axis no integer.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
        ShapeError: there is no such axis, or it is named twice.
    """
    return _along("log_softmax", x, axis)


def softmin(x: Any, /, axis: Axes = -1) -> Array:
    """Return softmax(-x) along axes; None for all.

    ``x`` has real numbers; integers are computed in float64.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, or an axis no integer.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
        ShapeError: there is no such axis, or it is named twice.
    """
    return _along("softmin", x, axis)


def gumbel_softmax(logits: Any, key: Array, temperature: float = 1.0, *, axis: int = -1) -> Array:
    """Return softmax((logits + Gumbel noise) / temperature): nearly one-hot draws of classes.

    Args:
        logits: an array of floats.
        key: a key of `passkit.xp.random`.
        temperature: a number above 0: the smaller it is, the nearer are the draws to one-hot.
        axis: the axis of the classes; or several, or None for all, as of `softmax`.

    Raises:
        ArgumentError: the logits are no array or number, the key is no `Array`, the temperature no
            number, or the axis no integer.
        DTypeError: the logits are no real floats, or the key is not of int64.
        FeedError: the temperature is not above 0.
        ShapeError: the key is not 0-dimensional, or there is no such axis.
        DeviceError: the arrays are on several devices.
    """
    array = array_of(logits)
    noise = gumbel(key, array.shape, array.dtype)
    number = positive_number("gumbel_softmax", "temperature", temperature)
    return softmax(add(array, noise) / number, axis)


logsumexp = special.logsumexp
