"""Log densities: their values, derivatives, checks and kernels."""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import xp

RNG = np.random.default_rng(7)
N, K = 40, 3
lgammas = np.vectorize(lgamma, otypes=[float])


def normal(y: Any, mu: Any, sigma: Any) -> Any:
    """Return the log density of each element by NumPy."""
    return -0.5 * ((y - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)


def bernoulli_logit(y: Any, theta: Any) -> Any:
    """Return the log probability of each element by NumPy."""
    p = 1 / (1 + np.exp(-theta))
    return y * np.log(p) + (1 - y) * np.log1p(-p)


def poisson_log(y: Any, alpha: Any) -> Any:
    """Return the log probability of each element by NumPy."""
    return y * alpha - np.exp(alpha) - lgammas(y + 1.0)


def neg_binomial_2_log(y: Any, eta: Any, phi: Any) -> Any:
    """Return the log probability of each element by NumPy: scipy.stats.nbinom(phi, p)."""
    mean = np.exp(eta)
    p = phi / (phi + mean)
    coefficient = lgammas(y + phi) - lgammas(phi + 0.0 * y) - lgammas(y + 1.0)
    return coefficient + phi * np.log(p) + y * np.log1p(-p)


def linear(density: Callable[..., Any]) -> Callable[..., Any]:
    """Return the generalized linear model of a density."""
    return lambda y, x, alpha, beta, *rest: density(y, x @ beta + alpha, *rest)


def vector(low: float = -1.0, high: float = 1.0) -> Any:
    """Return random numbers."""
    return RNG.uniform(low, high, N)


COUNTS = RNG.integers(0, 6, N)
OUTCOMES = RNG.integers(0, 2, N)
X, BETA = RNG.normal(size=(N, K)), RNG.normal(size=K)
CASES: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("normal_lpdf", normal, (vector(), vector(), vector(0.5, 2))),
    ("normal_lpdf", normal, (vector(), 0.3, 1.7)),
    ("normal_lpdf", normal, (0.5, vector(), vector(0.5, 2))),
    ("normal_lpdf", normal, (vector().reshape(5, 8), vector()[:8], 1.7)),
    ("normal_lpdf", normal, (vector().reshape(5, 8), vector()[:5, None], vector(1, 2)[:8])),
    ("bernoulli_logit_lpmf", bernoulli_logit, (OUTCOMES, vector(-3, 3))),
    ("bernoulli_logit_lpmf", bernoulli_logit, (1, vector(-3, 3))),
    ("poisson_log_lpmf", poisson_log, (COUNTS, vector(-1, 2))),
    ("poisson_log_lpmf", poisson_log, (COUNTS, 0.4)),
    ("neg_binomial_2_log_lpmf", neg_binomial_2_log, (COUNTS, vector(), vector(0.5, 9))),
    ("neg_binomial_2_log_lpmf", neg_binomial_2_log, (COUNTS, 0.2, 3.5)),
    ("normal_id_glm_lpdf", linear(normal), (vector(), X, 0.3, BETA, 1.4)),
    ("normal_id_glm_lpdf", linear(normal), (vector(), X, vector(), BETA, vector(1, 2))),
    ("bernoulli_logit_glm_lpmf", linear(bernoulli_logit), (OUTCOMES, X, 0.3, BETA)),
    ("poisson_log_glm_lpmf", linear(poisson_log), (COUNTS, X, -0.3, BETA)),
    (
        "neg_binomial_2_log_glm_lpmf",
        linear(neg_binomial_2_log),
        (COUNTS, X, 0.3, BETA, 2.5),
    ),
]


def slope(function: Callable[..., Any], arguments: tuple[Any, ...], k: int) -> Any:
    """Return the derivative of a sum by an argument, by central differences."""
    base = np.asarray(arguments[k], float)
    result = np.zeros(base.shape)
    step = 1e-6
    for index in np.ndindex(base.shape):
        totals = []
        for sign in (1, -1):
            moved = base.copy()
            moved[index] += sign * step
            totals.append(np.sum(function(*arguments[:k], moved, *arguments[k + 1 :])))
        result[index] = (totals[0] - totals[1]) / (2 * step)
    return result


def as_arrays(arguments: tuple[Any, ...]) -> list[Any]:
    """Return arguments for a density: arrays of `passkit.xp`, and numbers as they are."""
    return [xp.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]


@pytest.mark.parametrize("is_queued", [False, True])
def test_densities_have_the_values_and_derivatives_of_their_formulas(is_queued: bool) -> None:
    """Values equal NumPy's, and derivatives by all continuous arguments equal differences."""
    with xp.config(small=0 if is_queued else 256):
        results = []
        for name, _, arguments in CASES:
            density = getattr(xp.stats, name)
            results.append(xp.stats.with_derivatives(density, *as_arrays(arguments)))
        xp.eval(*[r.value for r in results], *[d for r in results for d in r[1].values()])
    for (name, function, arguments), result in zip(CASES, results, strict=True):
        expected = np.sum(function(*arguments))
        np.testing.assert_allclose(np.asarray(result.value), expected, rtol=1e-12, err_msg=name)
        names = [n for n in ("y", "x", "alpha", "beta") if "glm" in name]
        if "normal" not in name and names:
            assert "y" not in result.derivatives
        for k, (argument, derivative) in enumerate(result.derivatives.items()):
            position = k + len(arguments) - len(result.derivatives)
            difference = slope(function, arguments, position)
            assert derivative.shape == np.shape(arguments[position]), (name, argument)
            np.testing.assert_allclose(
                np.asarray(derivative),
                difference,
                rtol=2e-7,
                atol=2e-7,
                err_msg=f"{name} by {argument}",
            )


def test_densities_at_the_limits_of_their_arguments() -> None:
    """Large logits do not overflow, and a rate of 0 allows no events but no others."""
    theta = xp.asarray([800.0, -800.0, 0.0])
    value, by = xp.stats.with_derivatives(
        xp.stats.bernoulli_logit_lpmf, xp.asarray([1, 1, 0]), theta
    )
    np.testing.assert_allclose(float(value), -800 - np.log(2))
    np.testing.assert_allclose(np.asarray(by["theta"]), [0, 1, -0.5])
    assert float(xp.stats.poisson_log_lpmf(0, -xp.inf * xp.ones(1))) == 0
    assert float(xp.stats.poisson_log_lpmf(1, -xp.inf * xp.ones(1))) == -np.inf
    assert xp.stats.normal_lpdf(xp.ones(2, dtype=xp.float32), 0, 1).dtype == xp.float32
    assert float(xp.stats.normal_lpdf(xp.ones(0), 0, 1)) == 0


def test_outcomes_may_be_booleans() -> None:
    """Booleans count as 0 and 1, in arrays and as Python numbers."""
    outcomes = xp.asarray([True, False, True])
    theta = xp.asarray([0.5, -1.0, 2.0])
    expected = xp.stats.bernoulli_logit_lpmf(xp.asarray([1, 0, 1]), theta)
    assert float(xp.stats.bernoulli_logit_lpmf(outcomes, theta)) == float(expected)
    ones = xp.stats.bernoulli_logit_lpmf(1, theta)
    assert float(xp.stats.bernoulli_logit_lpmf(True, theta)) == float(ones)


@pytest.mark.usefixtures("xp_queue")
def test_a_density_with_derivatives_and_checks_is_one_kernel() -> None:
    """The value, three derivatives and three checks read each argument once."""
    y, mu, sigma = (xp.asarray(a) for a in (vector(), vector(), vector(0.5, 2)))
    with xp.inspect() as runs:
        value, by = xp.stats.with_derivatives(xp.stats.normal_lpdf, y, mu, sigma)
        xp.eval(value, *by.values())
    kernels = runs[0].kernels
    # Sums of the sums of tiles follow.
    assert all(kernel.ops == ("combine_partials",) for kernel in kernels[1:])
    text = str(kernels[0])
    assert text.count("= load(") == 3
    assert text.count("log(") == 1
    assert text.count(" / ") == 1  # 1 / sigma
    assert text.count("store(") == 3


@pytest.mark.usefixtures("xp_queue")
def test_derivatives_that_nobody_reads_are_not_computed() -> None:
    """Without the derivatives by y and sigma, they are not in the kernel."""
    y, mu, sigma = (xp.asarray(a) for a in (vector(), vector(), vector(0.5, 2)))
    with xp.inspect() as runs:
        result = xp.stats.with_derivatives(xp.stats.normal_lpdf, y, mu, sigma)
        xp.eval(result.value, result.derivatives["mu"])
    assert str(runs[0].kernels[0]).count("store(") == 1


@pytest.mark.usefixtures("xp_queue")
def test_a_linear_model_is_one_kernel_beside_its_products() -> None:
    """All but the products with x and sums of sums is one kernel."""
    arguments = as_arrays(CASES[12][2])
    with xp.inspect() as runs:
        value, by = xp.stats.with_derivatives(xp.stats.normal_id_glm_lpdf, *arguments)
        xp.eval(value, by["alpha"], by["beta"], by["sigma"])
    fused = [k for k in runs[0].kernels if "log" in k.ops]
    others = [k.ops for k in runs[0].kernels if k not in fused]
    assert len(fused) == 1
    assert all(set(ops) <= {"combine_partials", "matvec", "vecmat"} for ops in others)


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("normal_lpdf", {"y": np.nan}, "Random variable[3] = nan, but it must be not NaN!"),
    ("normal_lpdf", {"mu": np.inf}, "Location parameter[3] = inf, but it must be finite!"),
    ("normal_lpdf", {"sigma": -1.0}, "Scale parameter[3] = -1.0, but it must be positive!"),
    ("bernoulli_logit_lpmf", {"y": 2}, "n[3] = 2, but it must be in the interval [0, 1]!"),
    (
        "bernoulli_logit_lpmf",
        {"theta": np.nan},
        "Logit transformed probability parameter[3] = nan, but it must be not NaN!",
    ),
    ("poisson_log_lpmf", {"y": -1}, "Random variable[3] = -1, but it must be nonnegative!"),
    (
        "neg_binomial_2_log_lpmf",
        {"phi": np.inf, "eta": 1.0},
        "Precision parameter[3] = inf, but it must be positive finite!",
    ),
    (
        "normal_id_glm_lpdf",
        {"sigma": 0.0},
        "Scale vector[3] = 0.0, but it must be positive finite!",
    ),
    (
        "normal_id_glm_lpdf",
        {"x": np.inf},
        "Matrix of independent variables[1, 2] = inf, but it must be finite!",
    ),
    (
        "poisson_log_glm_lpmf",
        {"beta": np.nan},
        "Weight vector[2] = nan, but it must be finite!",
    ),
    (
        "poisson_log_glm_lpmf",
        {"y": -3},
        "Vector of dependent variables[3] = -3, but it must be nonnegative!",
    ),
    (
        "bernoulli_logit_glm_lpmf",
        {"beta": 1e300, "x": 1e300},
        "Linear predictor[1] = inf, but it must be finite!",
    ),
]


@pytest.mark.parametrize("is_queued", [False, True])
def test_densities_refuse_arguments_that_they_do_not_allow(is_queued: bool) -> None:
    """The message is Stan's: the function, the argument, its first wrong element and the rule."""
    names = {
        "normal_lpdf": "y mu sigma",
        "bernoulli_logit_lpmf": "y theta",
        "poisson_log_lpmf": "y alpha",
        "neg_binomial_2_log_lpmf": "y eta phi",
        "normal_id_glm_lpdf": "y x alpha beta sigma",
        "poisson_log_glm_lpmf": "y x alpha beta",
        "bernoulli_logit_glm_lpmf": "y x alpha beta",
    }
    with xp.config(small=0 if is_queued else 256):
        for name, changes, text in MISTAKES:
            case = next(c for c in CASES if c[0] == name)
            arguments = dict(zip(names[name].split(), map(np.asarray, case[2]), strict=True))
            for argument, element in changes.items():
                array = np.array(arguments[argument])
                if argument not in ("x", "beta"):
                    array = np.array(np.broadcast_to(array, (N,)))
                array.reshape(-1)[{"x": 5, "beta": 2}.get(argument, 3)] = element
                arguments[argument] = array
            density = getattr(xp.stats, name)
            with pytest.raises(pk.errors.CheckError, match="must be") as raised:
                float(density(*as_arrays(tuple(arguments.values()))))
            assert str(raised.value) == f"{name}: {text}"


def test_densities_refuse_shapes_and_kinds_that_do_not_fit() -> None:
    """Errors in shapes and dtypes are raised by the call."""
    ones = xp.ones(4)
    with pytest.raises(pk.ShapeError, match=r"shapes \(4,\), \(3,\), \(\) cannot be broadcast"):
        xp.stats.normal_lpdf(ones, xp.ones(3), 1.0)
    with pytest.raises(
        pk.ShapeError, match=r"needs x of shape \(n, k\) .* got \(4, 2\) and \(3,\)"
    ):
        xp.stats.poisson_log_glm_lpmf(1, xp.ones((4, 2)), 0.0, xp.ones(3))
    with pytest.raises(pk.ShapeError, match=r"sigma needs shape \(\) or \(4,\), got \(2,\)"):
        xp.stats.normal_id_glm_lpdf(ones, xp.ones((4, 2)), 0.0, xp.ones(2), xp.ones(2))
    with pytest.raises(pk.DTypeError, match="normal_lpdf: mu needs real numbers, got complex128"):
        xp.stats.normal_lpdf(ones, ones * 1j, 1.0)
    with pytest.raises(pk.DTypeError, match="an argument of a density: int too large"):
        xp.stats.normal_lpdf(ones, 10**400, 1.0)
    with pytest.raises(pk.ArgumentError, match="is no density of xp.stats; known: bernoulli"):
        xp.stats.with_derivatives(xp.sum, ones)
    with pytest.raises(pk.ArgumentError, match="normal_lpdf takes y, mu, sigma, got 2 arguments"):
        xp.stats.with_derivatives(xp.stats.normal_lpdf, ones, ones)


def test_counters_and_densities_share_a_name() -> None:
    """``xp.stats()`` returns counters."""
    assert xp.stats()["recorded"] >= 0
    assert "explorations" in str(xp.stats.__doc__)


def test_densities_are_differentiated_as_parts_of_functions() -> None:
    """`pk.grad` goes through a density, whose derivatives equal its own; nothing is checked."""
    y, mu = xp.asarray(vector()), xp.asarray(vector())

    def loss(mu: xp.Array, sigma: xp.Array) -> xp.Array:
        return -xp.stats.normal_lpdf(y, mu * 2, sigma)

    gradient = pk.grad(loss)(mu, xp.asarray(1.5))
    _, by = xp.stats.with_derivatives(xp.stats.normal_lpdf, y, mu * 2, 1.5)
    np.testing.assert_allclose(np.asarray(gradient), -2 * np.asarray(by["mu"]), rtol=1e-12)
    assert np.isnan(float(pk.jit(loss)(mu, xp.asarray(-1.5))))
