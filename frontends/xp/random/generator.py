"""`Generator`: random numbers with the method names of NumPy's generators, built on keys."""

from __future__ import annotations

import secrets
import threading
from typing import Any

import numpy as np

from passkit.errors import ArgumentError
from passkit.frontends.xp.array import Array, array_of
from passkit.frontends.xp.elementwise import exp, multiply, subtract
from passkit.frontends.xp.manipulation import broadcast_shapes
from passkit.frontends.xp.random import choices, distributions, samplers
from passkit.frontends.xp.random.keys import checked_key, fold_in, key, split
from passkit.values.arguments import shown

DrawSize = int | tuple[int, ...] | None


class Generator:
    """A source of random numbers with the methods of `numpy.random.Generator`.

    It holds a key and counts draws: draw n uses ``fold_in(key, n)``, so the numbers depend on the
    seed and on how many draws came before. Threads may share a generator: each draw gets a number
    of its own. The numbers are not those of NumPy's generators.

    `default_rng` makes one of a seed.

    Args:
        key: a key, see `passkit.xp.random.key`.

    Raises: ArgumentError, DTypeError, ShapeError if it is no key.
    """

    def __init__(self, key: Array) -> None:
        checked_key("Generator", key)
        self._key = key
        self._draws = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Generator(draws={self._draws})"

    def key(self) -> Array:
        """Return the key of the next draw, which counts as one."""
        with self._lock:
            number = self._draws
            self._draws += 1
        return fold_in(self._key, number)

    def spawn(self, n_children: int) -> list[Generator]:
        """Return independent generators. Raises: ArgumentError, ShapeError if ``n`` is no count."""
        return [Generator(k) for k in split(self.key(), n_children)]

    # Uniform numbers, integers and bits

    def random(self, size: DrawSize = None, dtype: Any = np.float64) -> Array:
        """Return uniformly distributed numbers from 0 to below 1; see `samplers.uniform`."""
        return samplers.uniform(self.key(), _shape(size), dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: DrawSize = None) -> Array:
        """Return uniformly distributed numbers from ``low`` to below ``high``, as float64."""
        return samplers.uniform(self.key(), size, np.float64, low, high)

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: DrawSize = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
    ) -> Array:
        """Return integers from ``low`` to below ``high``; with ``endpoint`` up to ``high``.

        Without ``high`` they are from 0 to below ``low``. Raises as `samplers.randint`.
        """
        if high is None:
            low, high = 0, low
        return samplers.randint(self.key(), size, low, high + 1 if endpoint else high, dtype)

    # Distributions

    def standard_normal(self, size: DrawSize = None, dtype: Any = np.float64) -> Array:
        """Return normally distributed numbers of mean 0 and variance 1."""
        return samplers.normal(self.key(), _shape(size), dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return normally distributed numbers of a mean and a standard deviation, as float64."""
        return samplers.normal(self.key(), _shape(size, loc, scale), None, loc, scale)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: DrawSize = None) -> Array:
        """Return numbers whose logarithm is normally distributed, as float64."""
        return exp(self.normal(mean, sigma, size))

    def multivariate_normal(self, mean: Any, cov: Any, size: DrawSize = None) -> Array:
        """Return normally distributed vectors; see `samplers.multivariate_normal`."""
        return samplers.multivariate_normal(self.key(), mean, cov, size)

    def standard_exponential(self, size: DrawSize = None, dtype: Any = np.float64) -> Array:
        """Return exponentially distributed numbers of mean 1."""
        return distributions.exponential(self.key(), _shape(size), dtype)

    def exponential(self, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return exponentially distributed numbers of mean ``scale``, as float64."""
        return distributions.exponential(self.key(), _shape(size, scale), None, scale)

    def standard_cauchy(self, size: DrawSize = None) -> Array:
        """Return Cauchy-distributed numbers, as float64."""
        return distributions.cauchy(self.key(), _shape(size))

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return Gumbel-distributed numbers, as float64."""
        return distributions.gumbel(self.key(), _shape(size, loc, scale), None, loc, scale)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return Laplace-distributed numbers, as float64."""
        return distributions.laplace(self.key(), _shape(size, loc, scale), None, loc, scale)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return logistically distributed numbers, as float64."""
        return distributions.logistic(self.key(), _shape(size, loc, scale), None, loc, scale)

    def rayleigh(self, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return Rayleigh-distributed numbers, as float64."""
        return distributions.rayleigh(self.key(), scale, _shape(size, scale))

    def weibull(self, a: Any, size: DrawSize = None) -> Array:
        """Return Weibull-distributed numbers of scale 1 and concentration ``a``, as float64."""
        return distributions.weibull_min(self.key(), 1, a, _shape(size, a))

    def pareto(self, a: Any, size: DrawSize = None) -> Array:
        """Return numbers of Lomax's distribution, those of `distributions.pareto` minus 1."""
        return subtract(distributions.pareto(self.key(), a, _shape(size, a)), 1)

    def geometric(self, p: Any, size: DrawSize = None) -> Array:
        """Return the numbers of tries until the first success, as int64."""
        return distributions.geometric(self.key(), p, _shape(size, p))

    def standard_gamma(self, shape: Any, size: DrawSize = None, dtype: Any = np.float64) -> Array:
        """Return gamma-distributed numbers of scale 1; ``shape`` is that of the distribution."""
        return distributions.gamma(self.key(), shape, size, dtype)

    def gamma(self, shape: Any, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return gamma-distributed numbers; ``shape`` is that of the distribution."""
        return multiply(distributions.gamma(self.key(), shape, _shape(size, shape, scale)), scale)

    def chisquare(self, df: Any, size: DrawSize = None) -> Array:
        """Return sums of squares of ``df`` normal numbers."""
        return distributions.chisquare(self.key(), df, size)

    def standard_t(self, df: Any, size: DrawSize = None) -> Array:
        """Return numbers of Student's distribution."""
        return distributions.t(self.key(), df, size)

    def beta(self, a: Any, b: Any, size: DrawSize = None) -> Array:
        """Return beta-distributed numbers."""
        return distributions.beta(self.key(), a, b, size)

    def dirichlet(self, alpha: Any, size: DrawSize = None) -> Array:
        """Return vectors of positive numbers whose sum is 1."""
        return distributions.dirichlet(self.key(), array_of(np.asarray(alpha)), size)

    def poisson(self, lam: Any = 1.0, size: DrawSize = None) -> Array:
        """Return Poisson-distributed numbers, as int64."""
        return distributions.poisson(self.key(), lam, size)

    # Choices and permutations

    def choice(
        self, a: Any, size: DrawSize = None, replace: bool = True, p: Any = None, axis: int = 0
    ) -> Array:
        """Return elements drawn at random; see `choices.choice`."""
        return choices.choice(self.key(), a, _shape(size), replace, p, axis)

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """Return slices, or the integers below a number, in random order."""
        return choices.permutation(self.key(), x, axis)

    def shuffle(self, x: Array, axis: int = 0) -> None:
        """Give an array its slices in random order, as an in-place operator does.

        Raises: ArgumentError if it is no `Array`.
        """
        if not isinstance(x, Array):
            raise ArgumentError(
                f"shuffle changes an xp array, got {shown(x)}; permutation returns a new one"
            )
        x[...] = self.permutation(x, axis)


def _shape(size: Any, *params: Any) -> Any:
    """Return ``size``; None stands for the common shape of parameters that are arrays."""
    if size is not None:
        return size
    return broadcast_shapes(*[p.shape for p in params if hasattr(p, "shape")])


def default_rng(seed: Any = None) -> Generator:
    """Return a generator for a seed.

    Args:
        seed: an int of up to 64 bits; None: random bits of the operating system; or a `Generator`,
            which is returned.

    Raises:
        ArgumentError: the seed is nothing of these.
        FeedError: it has more than 64 bits.

    >>> from passkit import xp
    >>> rng = xp.random.default_rng(1)
    >>> rng.integers(10, size=3).shape
    (3,)
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(key(secrets.randbits(64) if seed is None else seed))
