"""Log densities of probability distributions, with derivatives and checks of their arguments.

Each function returns the log density of all elements together: the sum over the elements of its
arguments, which are broadcast. `with_derivatives` also returns the derivatives by all continuous
arguments. Values, derivatives and checks come from one kernel, with the products of matrices
beside it for the linear models.

Arguments that no density allows raise a `CheckError` when the result is computed, such as
``normal_lpdf: Scale parameter[2] = -1.0, but it must be positive!``. That is never at the call. If
an argument has no elements, none is checked, and the result is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from passkit.errors import ArgumentError, CheckError, DTypeError, ShapeError, nearest
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.checks import (
    PASSED,
    STRIDE,
    CheckedValue,
    Subject,
    raise_failure,
    when_computed,
)
from passkit.frontends.xp.conversion import astype
from passkit.frontends.xp.density_operations import (
    DENSITIES,
    LINEAR,
    Argument,
    Density,
    float_dtype,
)
from passkit.frontends.xp.manipulation import broadcast_shapes
from passkit.frontends.xp.runtime import apply_several, from_numpy, operation
from passkit.values.arguments import shown
from passkit.values.dtype import dtype_of

__all__ = [
    "LogDensity",
    "bernoulli_logit_glm_lpmf",
    "bernoulli_logit_lpmf",
    "neg_binomial_2_log_glm_lpmf",
    "neg_binomial_2_log_lpmf",
    "normal_id_glm_lpdf",
    "normal_lpdf",
    "poisson_log_glm_lpmf",
    "poisson_log_lpmf",
    "with_derivatives",
]


class LogDensity(NamedTuple):
    """The result of `with_derivatives`.

    Attributes:
        value: the log density of all elements together, an array without axes.
        derivatives: by the name of the argument, in its shape.
    """

    value: Array
    derivatives: dict[str, Array]


def with_derivatives(density: Callable[..., Array], /, *arguments: Any) -> LogDensity:
    """Return a log density with its derivatives by all continuous arguments.

    What nobody reads of them is not computed.

    Args:
        density: a function of this namespace.
        *arguments: its arguments.

    Returns: The value, and the derivatives by the names of the arguments.

    Raises:
        ArgumentError: ``density`` is no function of this namespace or takes another number of
            arguments, or an argument is no array or number.
        ShapeError: The shapes of the arguments do not fit.
        DTypeError: An argument is complex or of a dtype that passkit does not have, or an int too
            large for a float.
        CheckError: When the result is computed, an element is one that the density does not allow.
        DeviceError: The arrays are on several devices.

    >>> from passkit import xp
    >>> y = xp.asarray([1.0, 2.0, 4.0])
    >>> value, by = xp.stats.with_derivatives(xp.stats.normal_lpdf, y, 2.0, 1.0)
    >>> float(by["mu"])
    1.0
    """
    name = getattr(density, "__name__", "")
    if name not in DENSITIES:
        names = nearest(str(name), DENSITIES)
        raise ArgumentError(
            f"with_derivatives: {shown(density)} is no density of xp.stats; {names}"
        )
    family = DENSITIES[name]
    if len(arguments) != len(family.arguments):
        listed = ", ".join(a.name for a in family.arguments)
        raise ArgumentError(f"{name} takes {listed}, got {len(arguments)} arguments")
    value, *derivatives = _applied(family, arguments, family.continuous)
    return LogDensity(value, dict(zip(family.continuous, derivatives, strict=True)))


def _log_density(name: str, *arguments: Any) -> Array:
    """Return the log density of the family ``name``, one number for all elements.

    Raises: ArgumentError, ShapeError, DTypeError, DeviceError or CheckError, as `with_derivatives`.
    """
    (value,) = _applied(DENSITIES[name], arguments, ())
    return value


def _applied(density: Density, arguments: Any, wrt: tuple[str, ...]) -> list[Array]:
    """Apply the operation of a density; its checks run when it is executed.

    Arguments without elements are not checked, nor are the others then.

    Returns: The value, and the derivatives by the arguments named in ``wrt``, in its order.

    Raises:
        ArgumentError: An argument is no array or number.
        ShapeError: The shapes do not fit.
        DTypeError: An argument is complex or of a dtype that passkit does not have, or an int too
            large for a float.
        CheckError: The result is computed at once, and an element is not allowed.
        DeviceError: The arrays are on several devices.
    """
    arrays = _arrays(arguments)
    for argument, array in zip(density.arguments, arrays, strict=True):
        if array.dtype.kind == "c":
            raise DTypeError(
                f"{density.name}: {argument.name} needs real numbers, got {array.dtype}"
            )
    by_name = {a.name: x for a, x in zip(density.arguments, arrays, strict=True)}
    _check_shapes(density, by_name)
    values = apply_several(operation(f"stats.{density.name}", wrt=wrt), *[a._value for a in arrays])
    *results, code = [wrap(v) for v in values]
    if all(x.size for x in arrays):
        _check(density, by_name, code)
    return results


def _arrays(arguments: Any) -> list[Array]:
    """Return arguments as arrays; Python numbers take the float dtype of the others.

    That is float64 if there is none. Booleans become int8.

    Raises:
        ArgumentError: one is neither an array nor a number.
        DTypeError: one is an int too large for a float.
    """
    given = [a if type(a) in (int, float) else array_of(a) for a in arguments]
    dtype = float_dtype([dtype_of(a.dtype) for a in given if isinstance(a, Array)]).numpy
    try:
        arrays = [
            a if isinstance(a, Array) else wrap(from_numpy(np.asarray(a, dtype), is_owned=True))
            for a in given
        ]
    except OverflowError as error:
        raise DTypeError(f"an argument of a density: {error}") from None
    return [astype(a, np.int8) if a.dtype.kind == "b" else a for a in arrays]


def _check_shapes(density: Density, by_name: dict[str, Array]) -> None:
    """Check the shapes of the arguments of a density, by their names.

    Raises: ShapeError if they do not broadcast; or, for a linear model, if ``x`` and ``beta`` do
    not fit, or another argument has neither one element for each row nor the shape ().
    """
    shapes = {name: x.shape for name, x in by_name.items()}
    if density.location:
        rows = shapes.pop("x")
        columns = shapes.pop("beta")
        if len(rows) != 2 or len(columns) != 1 or rows[1] != columns[0]:
            raise ShapeError(
                f"{density.name} needs x of shape (n, k) and beta of shape (k,), got {rows} and "
                f"{columns}"
            )
        for name, shape in shapes.items():
            if shape not in ((), (rows[0],)):
                raise ShapeError(
                    f"{density.name}: {name} needs shape () or ({rows[0]},), got {shape}"
                )
        return
    broadcast_shapes(*shapes.values())


def _check(density: Density, by_name: dict[str, Array], code: Array) -> None:
    """Raise an error for an argument that the density does not allow, now or when it is executed.

    Args:
        density: the density.
        by_name: its arguments.
        code: that of the first failure, a result of the density's operation.

    Raises: CheckError if the code is computed already, and says so.
    """
    direct = [a for a in density.arguments if not (density.location and a.name in LINEAR)]
    subjects = [_subject(density, a, by_name[a.name]) for a in direct]
    snapshots = {name: CheckedValue(x) for name, x in by_name.items()}
    raise_error = partial(raise_failure, code, subjects, [snapshots[a.name] for a in direct])
    if density.location:
        raise_error = partial(_raise_linear, density, code, len(direct), snapshots, raise_error)
    when_computed(code, list(snapshots.values()), raise_error)


def _subject(density: Density, argument: Argument, x: Array) -> Subject:
    """Return the subject of the check of an argument ``x``, for messages."""
    return Subject(density.name, argument.description, argument.must_be, x.shape)


def _raise_linear(
    density: Density,
    code: Array,
    location: int,
    snapshots: dict[str, CheckedValue],
    raise_error: Callable[[], None],
) -> None:
    """Raise a CheckError if the code of a linear model says so.

    Only x @ beta + alpha is checked each time. If it is not finite, an argument is the cause.

    Args:
        density: the linear model.
        code: the code, computed.
        location: the number of the condition on x @ beta + alpha.
        snapshots: the arguments.
        raise_error: raises an error for the array that another condition is about.
    """
    number = int(code)  # read once: an array on a device is copied for it
    if number == PASSED:
        return
    if number // STRIDE != location:
        raise_error()
        return
    arrays = {name: snapshots[name].numpy() for name in LINEAR}
    for argument in density.arguments:
        array = arrays.get(argument.name)
        if array is not None and not np.isfinite(array).all():
            position = int(np.argmin(np.isfinite(array)))
            subject = Subject(density.name, argument.description, argument.must_be, array.shape)
            raise CheckError(subject.message(position, array.reshape(-1)[position]))
    position = number % STRIDE
    with np.errstate(all="ignore"):
        predictor = arrays["x"] @ arrays["beta"] + arrays["alpha"]
    subject = Subject(density.name, "Linear predictor", "finite", predictor.shape)
    raise CheckError(subject.message(position, predictor[position]))


# Distributions.


def normal_lpdf(y: Any, mu: Any, sigma: Any, /) -> Array:
    """Return the log density of normal distributions.

    Args:
        y: the random variable, an array or a number.
        mu: the mean, an array or a number.
        sigma: the standard deviation, an array or a number.

    Raises:
        ArgumentError: An argument is no array or number.
        ShapeError: The shapes do not broadcast, or to too many elements.
        DTypeError: An argument is complex or of a dtype that passkit does not have, or an int too
            large for a float.
        CheckError: When the result is computed: ``y`` is NaN, ``mu`` is not finite, or ``sigma``
            not positive.
        DeviceError: The arrays are on several devices.

    >>> from passkit import xp
    >>> round(float(xp.stats.normal_lpdf(xp.asarray([0.0, 1.0]), 0, 1)), 6)
    -2.337877
    """
    return _log_density("normal_lpdf", y, mu, sigma)


def bernoulli_logit_lpmf(y: Any, theta: Any, /) -> Array:
    """Return the log probability of truth values, by the logit of the probability.

    Args:
        y: the outcomes, 0 or 1, or booleans: an array or a number. Numbers between are not refused.
        theta: the logit of the probability of 1, an array or a number.

    Raises:
        ArgumentError: An argument is no array or number.
        ShapeError: The shapes do not broadcast, or to too many elements.
        DTypeError: An argument is complex or of a dtype that passkit does not have, or an int too
            large for a float.
        CheckError: When the result is computed: ``y`` is not from 0 to 1, or ``theta`` is NaN.
        DeviceError: The arrays are on several devices.
    """
    return _log_density("bernoulli_logit_lpmf", y, theta)


def poisson_log_lpmf(y: Any, alpha: Any, /) -> Array:
    """Return the log probability of Poisson distributed counts, by the logarithm of the rate.

    Args:
        y: the counts, an array or a number; that they are whole is not checked.
        alpha: the logarithm of the rate, an array or a number.

    Raises:
        ArgumentError: An argument is no array or number.
        ShapeError: The shapes do not broadcast, or to too many elements.
        DTypeError: An argument is complex or of a dtype that passkit does not have, or an int too
            large for a float.
        CheckError: When the result is computed: ``y`` is negative, or ``alpha`` is NaN.
        DeviceError: The arrays are on several devices.
    """
    return _log_density("poisson_log_lpmf", y, alpha)


def neg_binomial_2_log_lpmf(y: Any, eta: Any, phi: Any, /) -> Array:
    """Return the log probability of counts with a negative binomial distribution.

    The variance is ``m + m**2 / phi`` for the mean ``m = exp(eta)``.

    Args:
        y: the counts, an array or a number; that they are whole is not checked.
        eta: the logarithm of the mean, an array or a number.
        phi: the precision, an array or a number.

    Raises:
        ArgumentError: An argument is no array or number.
        ShapeError: The shapes do not broadcast, or to too many elements.
        DTypeError: An argument is complex or of a dtype that passkit does not have, or an int too
            large for a float.
        CheckError: When the result is computed: ``y`` is negative, ``eta`` is not finite, or
            ``phi`` not positive and finite.
        DeviceError: The arrays are on several devices.
    """
    return _log_density("neg_binomial_2_log_lpmf", y, eta, phi)


# Generalized linear models.


def normal_id_glm_lpdf(y: Any, x: Any, alpha: Any, beta: Any, sigma: Any, /) -> Array:
    """Return the log density of a linear regression: that of ``y`` with the mean x @ beta + alpha.

    Args:
        y: the dependent variables, of shape (n,) or ().
        x: the independent variables, of shape (n, k).
        alpha: the intercepts, of shape (n,) or ().
        beta: the weights, of shape (k,).
        sigma: the standard deviations, of shape (n,) or ().

    Raises:
        ArgumentError: An argument is no array or number.
        ShapeError: The shapes do not fit.
        DTypeError: An argument is complex or of a dtype that passkit does not have, or an int too
            large for a float.
        CheckError: When the result is computed: an argument, or x @ beta + alpha, is not finite, or
            ``sigma`` not positive.
        DeviceError: The arrays are on several devices.
    """
    return _log_density("normal_id_glm_lpdf", y, x, alpha, beta, sigma)


def bernoulli_logit_glm_lpmf(y: Any, x: Any, alpha: Any, beta: Any, /) -> Array:
    """Return the log probability of a logistic regression, with the logit x @ beta + alpha.

    Args:
        y: the outcomes, 0 or 1, or booleans, of shape (n,) or (). Numbers between are not refused.
        x: the independent variables, of shape (n, k).
        alpha: the intercepts, of shape (n,) or ().
        beta: the weights, of shape (k,).

    Raises:
        ArgumentError: An argument is no array or number.
        ShapeError: The shapes do not fit.
        DTypeError: An argument is complex or of a dtype that passkit does not have, or an int too
            large for a float.
        CheckError: When the result is computed: ``y`` is not from 0 to 1, or another argument is
            not finite.
        DeviceError: The arrays are on several devices.
    """
    return _log_density("bernoulli_logit_glm_lpmf", y, x, alpha, beta)


def poisson_log_glm_lpmf(y: Any, x: Any, alpha: Any, beta: Any, /) -> Array:
    """Return the log probability of a Poisson regression, with the log rate x @ beta + alpha.

    Args:
        y: the counts, of shape (n,) or (); that they are whole is not checked.
        x: the independent variables, of shape (n, k).
        alpha: the intercepts, of shape (n,) or ().
        beta: the weights, of shape (k,).

    Raises:
        ArgumentError: An argument is no array or number.
        ShapeError: The shapes do not fit.
        DTypeError: An argument is complex or of a dtype that passkit does not have, or an int too
            large for a float.
        CheckError: When the result is computed: ``y`` is negative, or another argument is not
            finite.
        DeviceError: The arrays are on several devices.
    """
    return _log_density("poisson_log_glm_lpmf", y, x, alpha, beta)


def neg_binomial_2_log_glm_lpmf(y: Any, x: Any, alpha: Any, beta: Any, phi: Any, /) -> Array:
    """Return the log probability of a negative binomial regression.

    The logarithm of the mean is x @ beta + alpha; see `neg_binomial_2_log_lpmf`.

    Args:
        y: the counts, of shape (n,) or (); that they are whole is not checked.
        x: the independent variables, of shape (n, k).
        alpha: the intercepts, of shape (n,) or ().
        beta: the weights, of shape (k,).
        phi: the precisions, of shape (n,) or ().

    Raises:
        ArgumentError: An argument is no array or number.
        ShapeError: The shapes do not fit.
        DTypeError: An argument is complex or of a dtype that passkit does not have, or an int too
            large for a float.
        CheckError: When the result is computed: ``y`` is negative, ``phi`` is not positive and
            finite, or another argument is not finite.
        DeviceError: The arrays are on several devices.
    """
    return _log_density("neg_binomial_2_log_glm_lpmf", y, x, alpha, beta, phi)
