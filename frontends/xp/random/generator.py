"""`Generator`: random numbers with the method names of NumPy's generators, built on keys."""

from __future__ import annotations

import secrets
import threading
from typing import Any

import numpy as np

from passkit.errors import ArgumentError
from passkit.frontends.xp.array import Array, array_of
from passkit.frontends.xp.conversion import astype
from passkit.frontends.xp.creation import checked_shape
from passkit.frontends.xp.elementwise import exp, multiply, subtract
from passkit.frontends.xp.manipulation import broadcast_shapes
from passkit.frontends.xp.random import choices, distributions, samplers
from passkit.frontends.xp.random.drawing import check_real, size_for
from passkit.frontends.xp.random.keys import checked_key, fold_in, key, split
from passkit.frontends.xp.reductions import truth
from passkit.values.arguments import instance, numbers, shown

DrawSize = int | tuple[int, ...] | None


class Generator:
    """A source of random numbers with the methods of `numpy.random.Generator`.

    It holds a key and counts draws: draw n uses ``fold_in(key, n)``, so the numbers depend on the
    seed and on how many draws came before, also ones that raised an error. Threads may share a
    generator: each draw gets a number of its own. The numbers are not those of NumPy's generators.

    `default_rng` makes one of a seed.

    Args:
        key: a key, see `passkit.xp.random.key`: a 0-dimensional `Array` of int64.

    Raises:
        ArgumentError: it is no `Array`.
        DTypeError: it is not of int64.
        ShapeError: it is not 0-dimensional.
    """

    def __init__(self, key: Array) -> None:
        checked_key("Generator", key)
        self._key = key
        self._draws = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Generator(draws={self._draws})"

    def key(self) -> Array:
        """Return the key of the next draw, and count that as made."""
        with self._lock:
            number = self._draws
            self._draws += 1
        return fold_in(self._key, number)

    def spawn(self, n_children: int) -> list[Generator]:
        """Return ``n_children`` independent generators; this counts as one draw.

        Raises: ArgumentError if the number is no int, ShapeError if it is negative or too large.
        """
        count = instance("spawn: n_children", n_children, (int, np.integer), "an int")
        return [Generator(k) for k in split(self.key(), count)]

    # Uniform numbers, integers and bits

    def random(self, size: DrawSize = None, dtype: Any = np.float64) -> Array:
        """Return uniformly distributed numbers from 0 to below 1.

        A ``size`` of None gives a 0-dimensional array, a ``dtype`` of None float64. Raises
        ArgumentError for a size that is no int or tuple of ints, ShapeError for a negative or too
        large extent, and DTypeError for a dtype not of floats.
        """
        return samplers.uniform(self.key(), _shape("random", size), dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: DrawSize = None) -> Array:
        """Return uniformly distributed numbers from ``low`` to below ``high``, as float64.

        A ``size`` of None is the common shape of the limits.

        Raises:
            ArgumentError: a limit is no array or real number, or the size no int or tuple of ints.
            DTypeError: a limit is complex or an int too large for a float64.
            FeedError: both limits are numbers and ``low`` is not below ``high``, or one is NaN.
            ShapeError: the limits do not broadcast to the size or with each other, or an extent is
                negative or too large.
        """
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

        If ``high`` is None, they are from 0 to below ``low``, or up to it. The limits are ints or
        arrays of integers, of which elements are not compared, and may not be 2**63 - 1 with
        ``endpoint``; a ``size`` of None is their common shape.

        Raises:
            ArgumentError: a limit is no int or array, or the size no int or tuple of ints.
            DTypeError: an array of limits or the dtype is not of integers.
            FeedError: an int does not fit the dtype, or both limits are ints and not in order, or
                more than 2**63 - 1 apart.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
        """
        if high is None:
            low, high = 0, low
        endpoint = truth("integers: endpoint", endpoint)
        if endpoint and isinstance(high, (int, np.integer)):
            high = int(high) + 1
        elif endpoint and isinstance(high, (Array, np.ndarray)):
            high = astype(array_of(high), np.int64) + 1 if high.dtype.kind in "iu" else high
        return samplers.randint(self.key(), size, low, high, dtype)

    # Distributions

    def standard_normal(self, size: DrawSize = None, dtype: Any = np.float64) -> Array:
        """Return normally distributed numbers of mean 0 and variance 1.

        A ``size`` of None gives a 0-dimensional array, a ``dtype`` of None float64. Raises
        ArgumentError for a size that is no int or tuple of ints, ShapeError for a negative or too
        large extent, and DTypeError for a dtype not of floats.
        """
        return samplers.normal(self.key(), _shape("standard_normal", size), dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return normally distributed numbers of a mean and a standard deviation, as float64.

        A ``size`` of None is the common shape of the parameters, which are numbers or arrays.

        Raises:
            ArgumentError: a parameter is no array or real number, or the size no int or tuple of
                ints.
            DTypeError: a parameter is complex or an int too large for a float64.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
            DeviceError: the arrays are on several devices.
        """
        return samplers.normal(self.key(), _shape("normal", size, loc, scale), None, loc, scale)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: DrawSize = None) -> Array:
        """Return numbers whose logarithm is normally distributed, as float64.

        ``mean`` and ``sigma`` are those of the logarithm; a ``size`` of None is their common shape.

        Raises:
            ArgumentError: a parameter is no array or real number, or the size no int or tuple of
                ints.
            DTypeError: a parameter is complex or an int too large for a float64.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
            DeviceError: the arrays are on several devices.
        """
        return exp(self.normal(mean, sigma, size))

    def multivariate_normal(self, mean: Any, cov: Any, size: DrawSize = None) -> Array:
        """Return normally distributed vectors of mean (…, n) and covariance (…, n, n).

        ``size`` is the shape of the array of vectors; None: the common one of the axes before n.
        The result has that shape followed by n, and the common dtype of mean and covariance as far
        as they have floats, else float64.

        Raises:
            ArgumentError: mean or covariance is no array, or the size no int or tuple of ints.
            DTypeError: one of them is complex.
            FeedError: a covariance is not positive definite. It is raised at the call for computed
                covariances of at most `xp.config.small` elements, else when the result is computed.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
            DeviceError: the arrays are on several devices.
        """
        return samplers.multivariate_normal(self.key(), mean, cov, size)

    def standard_exponential(self, size: DrawSize = None, dtype: Any = np.float64) -> Array:
        """Return exponentially distributed numbers of mean 1.

        A ``size`` of None gives a 0-dimensional array, a ``dtype`` of None float64. Raises
        ArgumentError for a size that is no int or tuple of ints, ShapeError for a negative or too
        large extent, and DTypeError for a dtype not of floats.
        """
        return distributions.exponential(self.key(), _shape("standard_exponential", size), dtype)

    def exponential(self, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return exponentially distributed numbers of mean ``scale``, as float64.

        A ``size`` of None is the shape of ``scale``.

        Raises:
            ArgumentError: a parameter is no array or real number, or the size no int or tuple of
                ints.
            DTypeError: a parameter is complex or an int too large for a float64.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
            DeviceError: the arrays are on several devices.
        """
        return distributions.exponential(
            self.key(), _shape("exponential", size, scale), None, scale
        )

    def standard_cauchy(self, size: DrawSize = None) -> Array:
        """Return Cauchy-distributed numbers of median 0, as float64.

        A ``size`` of None gives a 0-dimensional array. Raises: ArgumentError if the size is no int
        or tuple of ints, ShapeError for a negative or too large extent.
        """
        return distributions.cauchy(self.key(), _shape("standard_cauchy", size))

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return Gumbel-distributed numbers of a location and a scale, as float64.

        A ``size`` of None is the common shape of the parameters.

        Raises:
            ArgumentError: a parameter is no array or real number, or the size no int or tuple of
                ints.
            DTypeError: a parameter is complex or an int too large for a float64.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
            DeviceError: the arrays are on several devices.
        """
        return distributions.gumbel(
            self.key(), _shape("gumbel", size, loc, scale), None, loc, scale
        )

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return Laplace-distributed numbers of a location and a scale, as float64.

        A ``size`` of None is the common shape of the parameters.

        Raises:
            ArgumentError: a parameter is no array or real number, or the size no int or tuple of
                ints.
            DTypeError: a parameter is complex or an int too large for a float64.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
            DeviceError: the arrays are on several devices.
        """
        return distributions.laplace(
            self.key(), _shape("laplace", size, loc, scale), None, loc, scale
        )

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return logistically distributed numbers of a location and a scale, as float64.

        A ``size`` of None is the common shape of the parameters.

        Raises:
            ArgumentError: a parameter is no array or real number, or the size no int or tuple of
                ints.
            DTypeError: a parameter is complex or an int too large for a float64.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
            DeviceError: the arrays are on several devices.
        """
        return distributions.logistic(
            self.key(), _shape("logistic", size, loc, scale), None, loc, scale
        )

    def rayleigh(self, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return Rayleigh-distributed numbers of a scale, see `distributions.rayleigh`, as float64.

        A ``size`` of None is the shape of ``scale``.

        Raises:
            ArgumentError: a parameter is no array or real number, or the size no int or tuple of
                ints.
            DTypeError: a parameter is complex or an int too large for a float64.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
            DeviceError: the arrays are on several devices.
        """
        return distributions.rayleigh(self.key(), scale, _shape("rayleigh", size, scale))

    def weibull(self, a: Any, size: DrawSize = None) -> Array:
        """Return Weibull-distributed numbers of scale 1 and concentration ``a``, as float64.

        A ``size`` of None is the shape of ``a``.

        Raises:
            ArgumentError: ``a`` is no array or real number, or the size no int or tuple of ints.
            DTypeError: ``a`` is complex.
            FeedError: ``a`` is the number 0.
            ShapeError: ``a`` does not broadcast to the size, or an extent is negative or too large.
            DeviceError: the arrays are on several devices.
        """
        return distributions.weibull_min(self.key(), 1, a, _shape("weibull", size, a))

    def pareto(self, a: Any, size: DrawSize = None) -> Array:
        """Return numbers of Lomax's distribution, those of `distributions.pareto` minus 1.

        ``a`` is the exponent of their tail; a ``size`` of None is its shape.

        Raises:
            ArgumentError: ``a`` is no array or real number, or the size no int or tuple of ints.
            DTypeError: ``a`` is complex or an int too large for a float64.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
            DeviceError: the arrays are on several devices.
        """
        return subtract(distributions.pareto(self.key(), a, _shape("pareto", size, a)), 1)

    def geometric(self, p: Any, size: DrawSize = None) -> Array:
        """Return the numbers of tries until the first success of probability ``p``, as int64.

        A ``size`` of None is the shape of ``p``.

        Raises:
            ArgumentError: a parameter is no array or real number, or the size no int or tuple of
                ints.
            DTypeError: a parameter is complex or an int too large for a float64.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
            FeedError: ``p`` is a number, but no array, that is not above 0 and up to 1.
            DeviceError: the arrays are on several devices.
        """
        return distributions.geometric(self.key(), p, _shape("geometric", size, p))

    def standard_gamma(self, shape: Any, size: DrawSize = None, dtype: Any = np.float64) -> Array:
        """Return gamma-distributed numbers of scale 1; ``shape`` is that of the distribution.

        A ``size`` of None is the extents of ``shape``. The result has ``dtype``; None is that of
        ``shape`` if it is an array of floats, else float64.

        Raises:
            ArgumentError: a parameter is no array or real number, or the size no int or tuple of
                ints.
            DTypeError: a parameter is complex or an int too large for a float64, or the dtype not
                of floats.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
            FeedError: ``shape`` is a negative number or NaN, but no array.
        """
        return distributions.gamma(self.key(), shape, size, dtype)

    def gamma(self, shape: Any, scale: Any = 1.0, size: DrawSize = None) -> Array:
        """Return gamma-distributed numbers; ``shape`` is that of the distribution.

        A ``size`` of None is the common shape of the parameters. They are drawn in the dtype of
        ``shape`` if it is an array of floats, else in float64, and multiplied by ``scale``, whose
        sign is not checked.

        Raises:
            ArgumentError: a parameter is no array or real number, or the size no int or tuple of
                ints.
            DTypeError: a parameter is complex or an int too large for a float64.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
            FeedError: ``shape`` is a negative number or NaN, but no array.
            DeviceError: the arrays are on several devices.
        """
        check_real("gamma", "scale", scale)
        return multiply(
            distributions.gamma(self.key(), shape, _shape("gamma", size, shape, scale)), scale
        )

    def chisquare(self, df: Any, size: DrawSize = None) -> Array:
        """Return sums of squares of ``df`` normal numbers.

        A ``size`` of None is the shape of ``df``, whose dtype the result has if it is an array of
        floats, else float64. ``df`` need not be whole; negative elements of arrays give NaN.

        Raises:
            ArgumentError: ``df`` is no array or real number, or the size no int or tuple of ints.
            DTypeError: ``df`` is complex or an int too large for a float64.
            ShapeError: ``df`` does not broadcast to the size, or an extent is negative or too
                large.
            FeedError: ``df`` is a negative number or NaN, but no array.
        """
        return distributions.chisquare(self.key(), df, size)

    def standard_t(self, df: Any, size: DrawSize = None) -> Array:
        """Return numbers of Student's distribution of ``df`` degrees of freedom.

        A ``size`` of None is the shape of ``df``, whose dtype the result has if it is an array of
        floats, else float64. 0, and negative elements of arrays, give NaN.

        Raises:
            ArgumentError: ``df`` is no array or real number, or the size no int or tuple of ints.
            DTypeError: ``df`` is complex or an int too large for a float64.
            ShapeError: ``df`` does not broadcast to the size, or an extent is negative or too
                large.
            FeedError: ``df`` is a negative number or NaN, but no array.
            DeviceError: the arrays are on several devices.
        """
        return distributions.t(self.key(), df, size)

    def beta(self, a: Any, b: Any, size: DrawSize = None) -> Array:
        """Return beta-distributed numbers from 0 to 1.

        A ``size`` of None is the common shape of the parameters. The result has the common dtype of
        those that are arrays of floats, else float64. Negative elements of arrays, and two
        parameters 0, give NaN.

        Raises:
            ArgumentError: a parameter is no array or real number, or the size no int or tuple of
                ints.
            DTypeError: a parameter is complex or an int too large for a float64.
            ShapeError: the parameters do not broadcast to the size or with each other, or an extent
                is negative or too large.
            FeedError: a parameter is a negative number or NaN, but no array.
            DeviceError: the arrays are on several devices.
        """
        return distributions.beta(self.key(), a, b, size)

    def dirichlet(self, alpha: Any, size: DrawSize = None) -> Array:
        """Return Dirichlet-distributed vectors: numbers from 0 to 1 whose sum is 1.

        ``alpha`` holds the concentrations (…, n), an array or nested lists; ``size`` is the shape
        of the array of vectors, None that of ``alpha`` without n. The result has the dtype of
        ``alpha`` if it has floats, else float64.

        Raises:
            ArgumentError: ``alpha`` holds no numbers, or the size is no int or tuple of ints.
            DTypeError: ``alpha`` is complex.
            ShapeError: ``alpha`` has no axis or does not broadcast to the size, or an extent is
                negative or too large.
        """
        if not isinstance(alpha, Array):
            alpha = array_of(numbers("dirichlet: alpha", alpha))
        return distributions.dirichlet(self.key(), alpha, size)

    def poisson(self, lam: Any = 1.0, size: DrawSize = None) -> Array:
        """Return Poisson-distributed numbers of rate ``lam``, as int64.

        A ``size`` of None is the shape of ``lam``.

        Raises:
            ArgumentError: a parameter is no array or real number, or the size no int or tuple of
                ints.
            DTypeError: a parameter is complex or an int too large for a float64.
            ShapeError: the parameters do not broadcast to the size or with each other, or an
                extent is negative or too large.
            FeedError: ``lam`` is a number, but no array, that is negative, NaN or above 2**40.
        """
        return distributions.poisson(self.key(), lam, size)

    # Choices and permutations

    def choice(
        self, a: Any, size: DrawSize = None, replace: bool = True, p: Any = None, axis: int = 0
    ) -> Array:
        """Return elements of an array, or integers below an int, drawn at random.

        A ``size`` of None draws one; without ``replace`` no element is drawn twice; ``p`` holds the
        probabilities, None for equal ones; ``axis`` is that of the elements of an array, which
        ``size`` replaces in the result. Details are in `choices.choice`.

        Raises:
            ArgumentError: ``a`` or ``p`` is no array or number, the axis no int, or the size no int
                or tuple of ints.
            DTypeError: ``p`` is complex.
            FeedError: there are no elements, or fewer than are drawn without replacement, or ``a``
                is an int above 2**63 - 1.
            ShapeError: ``a`` is an array without axes or a float, there is no such axis, ``p`` has
                another shape than the number of elements, or an extent is negative or too large.
            DeviceError: the arrays are on several devices.
        """
        return choices.choice(self.key(), a, _shape("choice", size), replace, p, axis)

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """Return a new array: slices of an array along an axis, or the integers below an int.

        They are in random order. The axis is not read for an int.

        Raises:
            ArgumentError: ``x`` is no array or number, or the axis no int.
            ShapeError: ``x`` is a negative or too large int, an array without axes or a float, or
                there is no such axis.
        """
        return choices.permutation(self.key(), x, axis)

    def shuffle(self, x: Array, axis: int = 0) -> None:
        """Give an array its slices along an axis in random order, as ``x[...] = y`` does.

        Slices move together.

        Raises:
            ArgumentError: it is no `Array`, or the axis no int.
            ShapeError: it is 0-dimensional, or there is no such axis.
        """
        if not isinstance(x, Array):
            raise ArgumentError(
                f"shuffle changes an xp array, got {shown(x)}; permutation returns a new one"
            )
        x[...] = self.permutation(x, axis)


def _shape(where: str, size: Any, *params: Any) -> tuple[int, ...]:
    """Return ``size`` as a shape; None stands for the common shape of parameters that are arrays.

    That is ``()`` if none is. ``where`` is the function, for messages.

    Raises:
        ArgumentError: the size is neither None nor an int nor a tuple or list of ints.
        ShapeError: the parameters do not broadcast to it or with each other, or an extent is
            negative or too large.
    """
    common = broadcast_shapes(*[p.shape for p in params if hasattr(p, "shape")])
    return common if size is None else size_for(where, checked_shape(where, size), common)


def default_rng(seed: Any = None) -> Generator:
    """Return a generator for a seed.

    Args:
        seed: an int from -2**63 to below 2**64, or a 0-dimensional `Array` of integers; None:
            random bits of the operating system; or a `Generator`, which is returned itself.

    Raises:
        ArgumentError: the seed is nothing of these.
        DTypeError, ShapeError: it is an array, but not of one integer.
        FeedError: an int is out of range.

    >>> from passkit import xp
    >>> rng = xp.random.default_rng(1)
    >>> rng.integers(10, size=3).shape
    (3,)
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(key(secrets.randbits(64) if seed is None else seed))
