"""Random numbers as pure functions of a key: reproducible, lazy, with equal bits on every target.

>>> from passkit import xp
>>> key = xp.random.key(0)
>>> for step in range(2):
...     noise = xp.random.normal(xp.random.fold_in(key, step), (4,))
"""

from __future__ import annotations

from passkit.frontends.xp.random.choices import (
    categorical,
    choice,
    permutation,
)
from passkit.frontends.xp.random.distributions import (
    beta,
    cauchy,
    chisquare,
    dirichlet,
    exponential,
    gamma,
    geometric,
    gumbel,
    laplace,
    loggamma,
    logistic,
    pareto,
    poisson,
    rayleigh,
    t,
    weibull_min,
)
from passkit.frontends.xp.random.generator import (
    Generator,
    default_rng,
)
from passkit.frontends.xp.random.keys import (
    fold_in,
    key,
    split,
)
from passkit.frontends.xp.random.samplers import (
    bernoulli,
    bits,
    lognormal,
    multivariate_normal,
    normal,
    rademacher,
    randint,
    truncated_normal,
    uniform,
)

__all__ = [
    "Generator",
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "default_rng",
    "dirichlet",
    "exponential",
    "fold_in",
    "gamma",
    "geometric",
    "gumbel",
    "key",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "multivariate_normal",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "truncated_normal",
    "uniform",
    "weibull_min",
]
