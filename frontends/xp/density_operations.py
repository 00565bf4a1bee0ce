"""The operations of probability densities: the log density, derivatives and checks in one kernel.

An operation returns the sum of the log density over all elements, the derivatives that were asked
for, each in the shape of its argument, and the code of the first element that an argument must not
have, see `checks`. What nobody needs of these is not computed.

Source: Stan Math's `prim/prob` and `opencl/prim`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from attrs import frozen

import passkit.ops as ops
from passkit.frontends.xp.checks import build_first_failure
from passkit.frontends.xp.elementwise_operations import cast
from passkit.frontends.xp.runtime import OPERATIONS
from passkit.graph.node import Entry, known_shape
from passkit.values.dtype import DType, float64, promote
from passkit.values.size import Extent, Shape

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)

PREDICATES: dict[str, Callable[[Entry], Entry]] = {
    "not NaN": lambda x: ops.logical_not(ops.isnan(x)),
    "finite": lambda x: ops.isfinite(x),
    "positive": lambda x: ops.greater(x, 0),
    "positive finite": lambda x: ops.logical_and(ops.greater(x, 0), ops.isfinite(x)),
    "nonnegative": lambda x: ops.greater_equal(x, 0),
    "in the interval [0, 1]": lambda x: ops.logical_and(
        ops.greater_equal(x, 0), ops.less_equal(x, 1)
    ),
}
"""Conditions on arguments, by what messages say."""


@frozen
class Argument:
    """An argument of a density.

    Attributes:
        name: its name.
        description: what messages call it.
        must_be: the condition on its elements, a key of `PREDICATES`.
        is_discrete: whether it holds integers, by which there is no derivative.
    """

    name: str
    description: str
    must_be: str
    is_discrete: bool = False


Terms = Callable[..., tuple[Entry, dict[str, Callable[[], Entry]]]]
"""Builds the log density of each element, and functions that build its derivatives."""


@frozen
class Density:
    """A family of distributions.

    Attributes:
        name: the name of the function, such as "normal_lpdf".
        arguments: its arguments.
        terms: builds the terms of the sum, from entries of one float dtype.
        location: of a generalized linear model, the argument that is ``x @ beta + alpha``.
    """

    name: str
    arguments: tuple[Argument, ...]
    terms: Terms
    location: str = ""

    @property
    def continuous(self) -> tuple[str, ...]:
        """The names of the arguments by which there are derivatives, in the order of arguments."""
        return tuple(a.name for a in self.arguments if not a.is_discrete)


# The terms of the families.


def _normal(y: Entry, mu: Entry, sigma: Entry) -> tuple[Entry, dict[str, Callable[[], Entry]]]:
    """Build the log density of each element of the normal distribution.

    Operands are floats of one dtype, which broadcast.

    Returns: The log density, and for each argument by name a function that builds the derivative.
    """
    inverse = 1 / sigma  # one division, as in Stan Math
    z = (y - mu) * inverse
    by_mu = z * inverse
    terms = -0.5 * z * z - ops.log(sigma) - HALF_LOG_TWO_PI
    return terms, {
        "y": lambda: -by_mu,
        "mu": lambda: by_mu,
        "sigma": lambda: (z * z - 1) * inverse,
    }


def _bernoulli_logit(y: Entry, theta: Entry) -> tuple[Entry, dict[str, Callable[[], Entry]]]:
    """Build the log probability of each element, by the logit of the probability of 1 (Bernoulli).

    Operands are floats of one dtype, which broadcast.

    Returns: The log probability, and by the name "theta" a function that builds the derivative.
    """
    sign = 2 * y - 1
    signed = sign * theta
    # log_expit(signed) and expit(-signed), of one exponential
    power = ops.exp(-ops.abs(signed))
    failure = ops.where(ops.less(signed, 0), ops.ones_like(power), power) / (1 + power)
    return ops.minimum(signed, 0) - ops.log1p(power), {"theta": lambda: sign * failure}


def _poisson_log(y: Entry, alpha: Entry) -> tuple[Entry, dict[str, Callable[[], Entry]]]:
    """Build the log probability of each element, by the logarithm of the rate (Poisson).

    Operands are floats of one dtype, which broadcast.

    Returns: The log probability, and by the name "alpha" a function that builds the derivative.
    """
    rate = ops.exp(alpha)
    product = ops.where(ops.equal(y, 0), ops.zeros_like(alpha), y * alpha)  # also of -infinity
    return product - rate - ops.gammaln(y + 1), {"alpha": lambda: y - rate}


def _neg_binomial_2_log(
    y: Entry, eta: Entry, phi: Entry
) -> tuple[Entry, dict[str, Callable[[], Entry]]]:
    """Build the log probability of each element, by log mean and precision (negative binomial).

    Operands are floats of one dtype, which broadcast.

    Returns: The log probability, and by the names "eta" and "phi" functions that build derivatives.
    """
    log_phi = ops.log(phi)
    log_sum = ops.logaddexp(eta, log_phi)
    total = y + phi
    terms = (
        phi * log_phi
        - ops.gammaln(phi)
        - total * log_sum
        + y * eta
        + ops.gammaln(total)
        - ops.gammaln(y + 1)
    )
    return terms, {
        "eta": lambda: y - total * ops.exp(eta - log_sum),
        "phi": lambda: (
            1 - total * ops.exp(-log_sum) + log_phi - log_sum + ops.psi(total) - ops.psi(phi)
        ),
    }


_Y = Argument("y", "Random variable", "not NaN")
_COUNT = Argument("y", "Random variable", "nonnegative", is_discrete=True)
_FAILURES = Argument("y", "Failures variable", "nonnegative", is_discrete=True)
_OUTCOME = Argument("y", "n", "in the interval [0, 1]", is_discrete=True)
_DEPENDENT = "Vector of dependent variables"
_LINEAR = (
    Argument("x", "Matrix of independent variables", "finite"),
    Argument("alpha", "Intercept", "finite"),
    Argument("beta", "Weight vector", "finite"),
)

DENSITIES = {
    density.name: density
    for density in (
        Density(
            "normal_lpdf",
            (
                _Y,
                Argument("mu", "Location parameter", "finite"),
                Argument("sigma", "Scale parameter", "positive"),
            ),
            _normal,
        ),
        Density(
            "bernoulli_logit_lpmf",
            (
                _OUTCOME,
                Argument("theta", "Logit transformed probability parameter", "not NaN"),
            ),
            _bernoulli_logit,
        ),
        Density(
            "poisson_log_lpmf",
            (_COUNT, Argument("alpha", "Log rate parameter", "not NaN")),
            _poisson_log,
        ),
        Density(
            "neg_binomial_2_log_lpmf",
            (
                _FAILURES,
                Argument("eta", "Log location parameter", "finite"),
                Argument("phi", "Precision parameter", "positive finite"),
            ),
            _neg_binomial_2_log,
        ),
        Density(
            "normal_id_glm_lpdf",
            (
                Argument("y", _DEPENDENT, "finite"),
                *_LINEAR,
                Argument("sigma", "Scale vector", "positive finite"),
            ),
            _normal,
            location="mu",
        ),
        Density(
            "bernoulli_logit_glm_lpmf",
            (Argument("y", _DEPENDENT, "in the interval [0, 1]", is_discrete=True), *_LINEAR),
            _bernoulli_logit,
            location="theta",
        ),
        Density(
            "poisson_log_glm_lpmf",
            (Argument("y", _DEPENDENT, "nonnegative", is_discrete=True), *_LINEAR),
            _poisson_log,
            location="alpha",
        ),
        Density(
            "neg_binomial_2_log_glm_lpmf",
            (
                Argument("y", _DEPENDENT, "nonnegative", is_discrete=True),
                *_LINEAR,
                Argument("phi", "Precision parameter", "positive finite"),
            ),
            _neg_binomial_2_log,
            location="eta",
        ),
    )
}
"""All densities by name."""

LINEAR = frozenset(a.name for a in _LINEAR)
"""The arguments of a generalized linear model of which its location is computed."""


# Broadcasting, and sums over what was broadcast.


def _common_shape(shapes: Sequence[Shape]) -> Shape:
    """Return the shape to which arrays are broadcast; that they fit was checked before.

    There is one shape at least; an extent may be unknown.
    """
    rank = max(map(len, shapes))
    extents: list[Extent] = []
    for axis in range(-rank, 0):
        candidates = [s[axis] for s in shapes if len(s) >= -axis]
        extents.append(next((n for n in candidates if n != 1), 1))
    return tuple(extents)


def _broadcast(x: Entry, shape: Shape) -> Entry:
    """Build an array broadcast to a shape; one that has it is returned itself."""
    return x if known_shape(x) == shape else ops.broadcast_to(x, shape=shape)


def _summed_to(x: Entry, shape: Shape) -> Entry:
    """Build the sums of an array over the axes along which an argument of ``shape`` was broadcast.

    The result has that shape; it is the array itself if nothing was broadcast.
    """
    extents = known_shape(x)
    excess = len(extents) - len(shape)
    leading = tuple(range(excess))
    x = ops.reduce_sum(x, axis=leading) if leading else x
    stretched = tuple(k for k, n in enumerate(shape) if n == 1 and extents[k + excess] != 1)
    return ops.reduce_sum(x, axis=stretched, keepdims=True) if stretched else x


# Operations.


def float_dtype(dtypes: Sequence[DType]) -> DType:
    """Return the dtype to compute a density in: the common one of its floats, or float64."""
    floats = [d for d in dtypes if d.is_float]
    return reduce(promote, floats) if floats else float64


def _build(density: Density, *operands: Entry, wrt: tuple[str, ...]) -> tuple[Entry, ...]:
    """Build the sum of a log density, its derivatives, and the code of the first failure.

    Operands are real numbers, not booleans, of the density's arguments in order; derivatives are
    those by the arguments named in ``wrt``, in the shapes of these; the code is an int64, see
    `checks`.
    """
    dtype = float_dtype([e.dtype for e in operands if e.dtype is not None])
    given = {a.name: e for a, e in zip(density.arguments, operands, strict=True)}
    values = {name: cast(e, dtype) for name, e in given.items()}
    direct = [a for a in density.arguments if not (density.location and a.name in LINEAR)]
    conditions = [PREDICATES[a.must_be](given[a.name]) for a in direct]
    parameters = [values[a.name] for a in direct]
    if density.location:
        location = ops.matvec(values["x"], values["beta"]) + values["alpha"]
        parameters.insert(1, location)
        conditions.append(ops.isfinite(location))
    shape = _common_shape([known_shape(p) for p in parameters])
    terms, derivatives = density.terms(*parameters)
    results = [ops.reduce_sum(_broadcast(terms, shape), axis=None)]
    for name in wrt:
        if density.location and name in LINEAR:
            by_location = _broadcast(derivatives[density.location](), shape)
            results.append(_linear_derivative(name, values, by_location))
        else:
            partial = _broadcast(derivatives[name](), shape)
            results.append(_summed_to(partial, known_shape(values[name])))
    return (*results, build_first_failure(*conditions))


def _linear_derivative(name: str, values: Mapping[str, Entry], by_location: Entry) -> Entry:
    """Build the derivative by an argument of ``x @ beta + alpha`` from that by the result.

    ``name`` is "x", "alpha" or "beta", ``values`` has these three, and ``by_location`` is the
    derivative by each element of the result, of shape (n,).
    """
    if name == "alpha":
        return _summed_to(by_location, known_shape(values["alpha"]))
    if name == "beta":
        return ops.vecmat(by_location, values["x"])
    return ops.expand_dims(by_location, axis=1) * ops.expand_dims(values["beta"], axis=0)


def _define(density: Density) -> None:
    """Define the operation of a density, ``stats.`` and its name, with a parameter ``wrt``."""

    def build(*operands: Entry, wrt: tuple[str, ...]) -> tuple[Entry, ...]:
        return _build(density, *operands, wrt=wrt)

    OPERATIONS.define(f"stats.{density.name}", build)


for _density in DENSITIES.values():
    _define(_density)
