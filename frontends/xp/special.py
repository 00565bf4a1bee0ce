"""Special functions with the names of `scipy.special`, as fused kernels.

Operands are arrays that broadcast and Python numbers. Integers are computed in float64. Gradients
exist where `passkit.ops` has them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

import passkit.ops as ops
from passkit.errors import ArgumentError
from passkit.frontends.xp import special_limits
from passkit.frontends.xp.array import Array, array_of, operand_value, wrap
from passkit.frontends.xp.elementwise import operand_values
from passkit.frontends.xp.elementwise_operations import converted
from passkit.frontends.xp.reductions import Axes, one_axis, reduced
from passkit.frontends.xp.runtime import OPERATIONS, apply, operation
from passkit.graph.node import Entry
from passkit.values.arguments import shown
from passkit.values.dtype import float64


@frozen
class SpecialFunction:
    """A special function of floats.

    Attributes:
        name: its name in `scipy.special`.
        build: the operator, a function of entries of one float type.
        operands: the names of its operands.
        summary: the first line of its documentation, as a phrase.
    """

    name: str
    build: Callable[..., Entry]
    operands: tuple[str, ...]
    summary: str


def _log_ndtr(x: Entry) -> Entry:
    """Build log(ndtr(x)) of floats, accurate in both tails."""
    root_half = 0.5**0.5
    # Below the limit erfc comes near to its least number; there, an asymptotic series is exact.
    limit = -30.0 if x.dtype is float64 else -12.0
    z = ops.minimum(x, limit)
    w = ops.reciprocal(ops.square(z))
    series = 1.0 - w * (1.0 - 3.0 * w * (1.0 - 5.0 * w * (1.0 - 7.0 * w * (1.0 - 9.0 * w))))
    tail = -0.5 * ops.square(z) - ops.log(-z) - 0.9189385332046727 + ops.log(series)
    middle = ops.log(0.5 * ops.erfc(-root_half * ops.maximum(x, limit)))
    upper = ops.log1p(-0.5 * ops.erfc(root_half * ops.maximum(x, 0.0)))
    return ops.where(ops.less(x, limit), tail, ops.where(ops.greater(x, 0.0), upper, middle))


def _entr(x: Entry) -> Entry:
    """Build -x log(x) of floats; 0 at 0, and -inf below."""
    return ops.where(ops.less(x, 0.0), float("-inf"), -ops.xlogy(x, x))


def _rel_entr(x: Entry, y: Entry) -> Entry:
    """Build x log(x / y) of floats; 0 where x is 0 and y is not negative; NaN of NaN.

    Where else one of them is not positive, it is infinite.
    """
    both = ops.logical_and(ops.greater(x, 0.0), ops.greater(y, 0.0))
    is_zero = ops.logical_and(ops.equal(x, 0.0), ops.greater_equal(y, 0.0))
    is_nan = ops.logical_or(ops.isnan(x), ops.isnan(y))
    value = x * ops.log(x / y)
    outside = ops.where(is_zero, 0.0, ops.where(is_nan, x + y, float("inf")))
    return ops.where(both, value, outside)


FUNCTIONS = (
    SpecialFunction("beta", ops.beta, ("a", "b"), "the beta function"),
    SpecialFunction(
        "betainc",
        special_limits.betainc,
        ("a", "b", "x"),
        "the regularized incomplete beta function",
    ),
    SpecialFunction(
        "betaln",
        special_limits.betaln,
        ("a", "b"),
        "the logarithm of the beta function",
    ),
    SpecialFunction("cbrt", ops.cbrt, ("x",), "the cube root"),
    SpecialFunction(
        "chdtr",
        special_limits.chdtr,
        ("v", "x"),
        "the distribution function of the chi-square distribution",
    ),
    SpecialFunction(
        "chdtrc",
        special_limits.chdtrc,
        ("v", "x"),
        "1 - chdtr(v, x), accurate in the upper tail",
    ),
    SpecialFunction("digamma", ops.digamma, ("x",), "the derivative of gammaln"),
    SpecialFunction("entr", _entr, ("x",), "the entropy -x log(x)"),
    SpecialFunction("erf", ops.erf, ("x",), "the error function"),
    SpecialFunction("erfc", ops.erfc, ("x",), "1 - erf(x), accurate in the tail"),
    SpecialFunction("erfcinv", ops.erfcinv, ("x",), "the inverse of erfc, from 0 to 2"),
    SpecialFunction("erfinv", ops.erfinv, ("x",), "the inverse of erf, from -1 to 1"),
    SpecialFunction("exp10", ops.exp10, ("x",), "10 to the power of x"),
    SpecialFunction("exp2", ops.exp2, ("x",), "2 to the power of x"),
    SpecialFunction("expit", ops.expit, ("x",), "the logistic function 1 / (1 + exp(-x))"),
    SpecialFunction("expm1", ops.expm1, ("x",), "exp(x) - 1, accurate near 0"),
    SpecialFunction("gamma", ops.gamma, ("x",), "the gamma function"),
    SpecialFunction(
        "gammainc",
        special_limits.gammainc,
        ("a", "x"),
        "the regularized lower incomplete gamma function",
    ),
    SpecialFunction(
        "gammaincc",
        special_limits.gammaincc,
        ("a", "x"),
        "the regularized upper incomplete gamma function",
    ),
    SpecialFunction(
        "gammaln", ops.gammaln, ("x",), "the logarithm of the magnitude of the gamma function"
    ),
    SpecialFunction("i0", ops.i0, ("x",), "the modified Bessel function of order 0"),
    SpecialFunction("i0e", ops.i0e, ("x",), "exp(-abs(x)) i0(x)"),
    SpecialFunction("i1", ops.i1, ("x",), "the modified Bessel function of order 1"),
    SpecialFunction("i1e", ops.i1e, ("x",), "exp(-abs(x)) i1(x)"),
    SpecialFunction("log1p", ops.log1p, ("x",), "log(1 + x), accurate near 0"),
    SpecialFunction("log_expit", ops.log_expit, ("x",), "the logarithm of expit"),
    SpecialFunction("log_ndtr", _log_ndtr, ("x",), "the logarithm of ndtr"),
    SpecialFunction("logit", ops.logit, ("x",), "log(x / (1 - x)), the inverse of expit"),
    SpecialFunction("ndtr", ops.ndtr, ("x",), "the distribution function of the normal one"),
    SpecialFunction("ndtri", ops.ndtri, ("x",), "the inverse of ndtr, from 0 to 1"),
    SpecialFunction("psi", ops.psi, ("x",), "the derivative of gammaln"),
    SpecialFunction("rel_entr", _rel_entr, ("x", "y"), "the relative entropy x log(x / y)"),
    SpecialFunction("sinc", ops.sinc, ("x",), "sin(pi x) / (pi x), and 1 at 0"),
    SpecialFunction(
        "stdtr",
        special_limits.stdtr,
        ("df", "t"),
        "the distribution function of Student's t distribution",
    ),
    SpecialFunction("xlog1py", ops.xlog1py, ("x", "y"), "x log(1 + y), and 0 where x is 0"),
    SpecialFunction("xlogy", ops.xlogy, ("x", "y"), "x log(y), and 0 where x is 0"),
    SpecialFunction("zeta", special_limits.zeta, ("x", "q"), "Hurwitz' zeta function"),
)


def _build(build: Callable[..., Entry], *operands: Entry, **params: Any) -> Entry:
    """Build an operator on operands that are converted to one float type, float64 for integers.

    ``params`` are parameters of the operator. Raises: DTypeError if an operand is complex.
    """
    return build(*converted(operands, "special"), **params)


_OF_SEVERAL = """\
    ShapeError: the shapes do not broadcast, or to too many elements.
    DeviceError: the arrays are on several devices.
"""
"""The errors in docstrings that several operands may raise."""


def _function(function: SpecialFunction) -> Any:
    """Return the public function of an operation that is defined, with a docstring."""
    op = operation(f"special.{function.name}")
    count = len(function.operands)

    def of_one(x: Any, /) -> Array:
        return wrap(apply(op, array_of(x)._value))

    def of_two(x1: Any, x2: Any, /) -> Array:
        return wrap(apply(op, *operand_values(x1, x2)))

    def of_three(x1: Any, x2: Any, x3: Any, /) -> Array:
        left, middle = operand_values(x1, x2)
        return wrap(apply(op, left, middle, operand_value(x3, left.type.dtype)))

    public: Any = {1: of_one, 2: of_two, 3: of_three}[count]
    public.__name__ = public.__qualname__ = function.name
    lines = "\n".join(
        f"    {name}: an array of real numbers, or a number." for name in function.operands
    )
    public.__doc__ = (
        f"Return {function.summary}, for each element.\n\n"
        f"Args:\n{lines}\n\n"
        "Returns: A new array of the common float dtype; float64 for integers and booleans. It is\n"
        "    NaN outside of the domain.\n\n"
        "Raises:\n"
        "    ArgumentError: an operand is neither an array nor a number.\n"
        "    DTypeError: an operand is complex, or a Python integer does not fit its dtype.\n"
        + (_OF_SEVERAL if count > 1 else "")
    )
    return public


for _special in FUNCTIONS:
    OPERATIONS.define(f"special.{_special.name}", partial(_build, _special.build))
_BY_NAME = {function.name: _function(function) for function in FUNCTIONS}

beta: Callable[[Any, Any], Array] = _BY_NAME["beta"]
betainc: Callable[[Any, Any, Any], Array] = _BY_NAME["betainc"]
betaln: Callable[[Any, Any], Array] = _BY_NAME["betaln"]
cbrt: Callable[[Any], Array] = _BY_NAME["cbrt"]
chdtr: Callable[[Any, Any], Array] = _BY_NAME["chdtr"]
chdtrc: Callable[[Any, Any], Array] = _BY_NAME["chdtrc"]
digamma: Callable[[Any], Array] = _BY_NAME["digamma"]
entr: Callable[[Any], Array] = _BY_NAME["entr"]
erf: Callable[[Any], Array] = _BY_NAME["erf"]
erfc: Callable[[Any], Array] = _BY_NAME["erfc"]
erfcinv: Callable[[Any], Array] = _BY_NAME["erfcinv"]
erfinv: Callable[[Any], Array] = _BY_NAME["erfinv"]
exp10: Callable[[Any], Array] = _BY_NAME["exp10"]
exp2: Callable[[Any], Array] = _BY_NAME["exp2"]
expit: Callable[[Any], Array] = _BY_NAME["expit"]
expm1: Callable[[Any], Array] = _BY_NAME["expm1"]
gamma: Callable[[Any], Array] = _BY_NAME["gamma"]
gammainc: Callable[[Any, Any], Array] = _BY_NAME["gammainc"]
gammaincc: Callable[[Any, Any], Array] = _BY_NAME["gammaincc"]
gammaln: Callable[[Any], Array] = _BY_NAME["gammaln"]
i0: Callable[[Any], Array] = _BY_NAME["i0"]
i0e: Callable[[Any], Array] = _BY_NAME["i0e"]
i1: Callable[[Any], Array] = _BY_NAME["i1"]
i1e: Callable[[Any], Array] = _BY_NAME["i1e"]
log1p: Callable[[Any], Array] = _BY_NAME["log1p"]
log_expit: Callable[[Any], Array] = _BY_NAME["log_expit"]
log_ndtr: Callable[[Any], Array] = _BY_NAME["log_ndtr"]
logit: Callable[[Any], Array] = _BY_NAME["logit"]
ndtr: Callable[[Any], Array] = _BY_NAME["ndtr"]
ndtri: Callable[[Any], Array] = _BY_NAME["ndtri"]
psi: Callable[[Any], Array] = _BY_NAME["psi"]
rel_entr: Callable[[Any, Any], Array] = _BY_NAME["rel_entr"]
sinc: Callable[[Any], Array] = _BY_NAME["sinc"]
stdtr: Callable[[Any, Any], Array] = _BY_NAME["stdtr"]
xlog1py: Callable[[Any, Any], Array] = _BY_NAME["xlog1py"]
xlogy: Callable[[Any, Any], Array] = _BY_NAME["xlogy"]
zeta: Callable[[Any, Any], Array] = _BY_NAME["zeta"]


# Functions with parameters.


def _softmax(x: Entry, axis: int | None) -> Entry:
    """Build softmax of floats along an axis, or, for None, over all elements."""
    return ops.exp(_log_softmax(x, axis)) if axis is None else ops.softmax(x, axis=axis)


def _log_softmax(x: Entry, axis: int | None) -> Entry:
    """Build the logarithm of softmax of floats along an axis, or, for None, over all elements."""
    if axis is None:
        return x - ops.logsumexp(x, axis=None, keepdims=True)
    return ops.log_softmax(x, axis=axis)


LARGEST_ORDER = 20
"""The largest order of `passkit.ops.polygamma`."""
MOST_ORDERS = 2**53
"""Up to here, whole numbers are exact in float64."""

OPERATIONS.define("special.logsumexp", partial(_build, ops.logsumexp))
OPERATIONS.define("special.softmax", partial(_build, _softmax))
OPERATIONS.define("special.log_softmax", partial(_build, _log_softmax))
OPERATIONS.define("special.polygamma", partial(_build, ops.polygamma))
OPERATIONS.define("special.polygamma_of_orders", partial(_build, special_limits.polygamma))


def logsumexp(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return log(sum(exp(a))) along axes, without overflow.

    Args:
        a: an array of real numbers; integers are computed in float64.
        axis: the axis or axes; None for all.
        keepdims: keep the reduced axes with extent 1.

    Raises:
        ArgumentError: ``a`` is no array or number, or an axis no integer.
        DTypeError: ``a`` is complex, or an int that fits no dtype.
        ShapeError: there is no such axis, it is named twice, or there is no element along it.
    """
    return wrap(reduced("special.logsumexp", array_of(a)._value, axis, keepdims))


def _along_axis(name: str, x: Any, axis: int | None) -> Array:
    """Apply the operation ``name`` along an axis, or, for None, over all elements.

    Raises:
        ArgumentError: ``x`` is no array or number, or the axis no integer.
        DTypeError: ``x`` is complex.
        ShapeError: there is no such axis, or for None no element.
    """
    array = array_of(x)
    axis = None if axis is None else one_axis(name, axis, array.ndim)
    return wrap(apply(operation(name, axis=axis), array._value))


def softmax(x: Any, axis: int | None = None) -> Array:
    """Return exp(x) divided by its sum along an axis, or over all elements.

    Args:
        x: an array of real numbers; integers are computed in float64.
        axis: the axis, an int; None for all elements together.

    Raises:
        ArgumentError: ``x`` is no array or number, or the axis no integer.
        DTypeError: ``x`` is complex.
        ShapeError: there is no such axis, or for None no element.
    """
    return _along_axis("special.softmax", x, axis)


def log_softmax(x: Any, axis: int | None = None) -> Array:
    """Return the logarithm of `softmax` along an axis, or over all elements.

    Args:
        x: an array of real numbers; integers are computed in float64.
        axis: the axis, an int; None for all elements together.

    Raises:
        ArgumentError: ``x`` is no array or number, or the axis no integer.
        DTypeError: ``x`` is complex.
        ShapeError: there is no such axis, or for None no element.
    """
    return _along_axis("special.log_softmax", x, axis)


def polygamma(n: Any, x: Any) -> Array:
    """Return the n-th derivative of `digamma`.

    Args:
        n: an int from 0 to 2**53, or an array of whole numbers, which is broadcast with ``x``.
            Derivatives of negative orders in an array are infinite or NaN, as in `scipy.special`;
            that its elements are whole is not checked.
        x: an array of real numbers, or a number; integers are computed in float64.

    Raises:
        ArgumentError: n is neither an array nor an int, or an int out of range; or x is no array
            or number.
        ShapeError: The shapes do not broadcast, or to too many elements.
        DTypeError: An operand is complex.
        DeviceError: the arrays are on several devices.
    """
    value = array_of(x)._value
    if isinstance(n, (Array, np.ndarray)):
        orders = array_of(n)._value
    elif not isinstance(n, (int, np.integer)) or n < 0:
        raise ArgumentError(f"polygamma: n must be a natural number, got {shown(n)}")
    elif n <= LARGEST_ORDER:
        return wrap(apply(operation("special.polygamma", n=int(n)), value))
    elif n > MOST_ORDERS:
        raise ArgumentError(f"polygamma: n must be at most 2**53, got {shown(n)}")
    else:
        orders = operand_value(float(n), value.type.dtype)
    return wrap(apply(operation("special.polygamma_of_orders"), orders, value))
