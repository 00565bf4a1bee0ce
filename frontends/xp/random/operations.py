"""The operations that draw random numbers: each formula once, for entries and for NumPy arrays.

Element n of a draw is computed from block n of Philox4x32-10 under the key, with functions that
have equal bits everywhere (`portable_math`). So a draw has the same elements on every target, fused
with others or not, and a longer draw begins with a shorter one.

The first parameter ``m`` of the formulas holds the functions to compute with: `passkit.ops` for
entries, or `ARRAYS` for NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log as log_of_number
from math import nan, pi
from typing import Any

import numpy as np

import passkit.ops as ops
from passkit.frontends.xp.extents import with_inputs
from passkit.frontends.xp.random.portable_math import (
    ARRAYS,
    cos_of_turns,
    exp,
    inverse_normal,
    log,
)
from passkit.frontends.xp.runtime import OPERATIONS
from passkit.graph.node import Entry
from passkit.ops.random import (
    DRAW_STREAM,
    FOLD_STREAM,
    SEED_STREAM,
    SIGNIFICAND_BITS,
    SPLIT_STREAM,
)
from passkit.values.dtype import DType, dtype_of, float32
from passkit.values.size import numel

INT64 = np.dtype(np.int64)
"""The dtype of keys."""

TRY_STREAM = 4
"""The upper word of Philox's counter for the first try of a rejection method."""


# Keys.


def _key_of_seed(m: Any, seed: Any) -> Any:
    """Return the keys of integers, by the functions ``m`` (`passkit.ops` or `ARRAYS`)."""
    return m.philox(m.cast(seed, dtype="int64"), np.int64(SEED_STREAM), np.int64(0), half=0)


def _folded(m: Any, key: Any, data: Any) -> Any:
    """Return keys made of one key and of integers of any shape.

    ``m`` holds the functions to compute with: `passkit.ops` or `ARRAYS`.
    """
    return m.philox(m.cast(data, dtype="int64"), np.int64(FOLD_STREAM), key, half=0)


def _split(m: Any, key: Any, shape: Any) -> Any:
    """Return an array of keys of a shape, made of one key.

    ``m`` holds the functions to compute with: `passkit.ops` or `ARRAYS`.
    """
    return m.random_words(key, shape=shape, stream=SPLIT_STREAM, half=0)


# Uniform numbers from random bits.


def _words(m: Any, key: Any, shape: Any, half: int = 0) -> Any:
    """Return 64 random bits for each element of a draw of a shape, as int64.

    ``half`` 0 or 1 selects independent bits; ``m`` is `passkit.ops` or `ARRAYS`.
    """
    return m.random_words(key, shape=shape, stream=DRAW_STREAM, half=half)


def _low_bits(m: Any, word: Any, count: int, dtype: DType) -> Any:
    """Return the lowest ``count`` bits of int64 words, as whole numbers of a float dtype.

    They are exact if its significand has so many; ``m`` is `passkit.ops` or `ARRAYS`.
    """
    narrow = m.cast(word, dtype="int32") if count < 32 else word
    return m.cast(narrow & (2**count - 1), dtype=dtype)


def _unit_interval(m: Any, word: Any, dtype: DType, count: int) -> Any:
    """Return uniform numbers from 0 to below 1, the lowest ``count`` bits of words times 2**-count.

    ``dtype`` is that of the floats; ``m`` is `passkit.ops` or `ARRAYS`.
    """
    return _low_bits(m, word, count, dtype) * 2.0**-count


def _open_unit_interval(m: Any, word: Any, dtype: DType) -> Any:
    """Return uniform numbers strictly between 0 and 1, made of the lowest bits of int64 words.

    They are the middles of equal steps, as many as half of what the significand of the float
    ``dtype`` tells apart. ``m`` is `passkit.ops` or `ARRAYS`.
    """
    count = SIGNIFICAND_BITS[dtype.name] - 1
    return (_low_bits(m, word, count, dtype) + 0.5) * 2.0**-count


def _fine_unit_interval(m: Any, word: Any, dtype: DType) -> Any:
    """Return uniform numbers above 0 and up to 1, in steps of 2**-31, of 2**-53 in float64.

    They are made of the lowest bits of int64 words, rounded to the float ``dtype``. ``m`` is
    `passkit.ops` or `ARRAYS`.
    """
    count = 53 if dtype.nbytes == 8 else 31
    return (_low_bits(m, word, count, dtype) + 0.5) * 2.0**-count


# Distributions without parameters: functions of a key, a shape and a dtype of 32 or 64 bits.


def _normal_of_words(m: Any, low: Any, high: Any, dtype: DType) -> Any:
    """Return a normally distributed number for each pair of independent int64 words, low and high.

    ``dtype`` is float32 or float64; ``m`` is `passkit.ops` or `ARRAYS`.

    Source: Box and Muller, A Note on the Generation of Random Normal Deviates.
    """
    radius = m.sqrt(log(m, _fine_unit_interval(m, low, dtype)) * -2.0)
    return radius * cos_of_turns(m, _unit_interval(m, high, dtype, SIGNIFICAND_BITS[dtype.name]))


def _normal(m: Any, key: Any, shape: Any, dtype: DType) -> Any:
    """Return normally distributed numbers of mean 0 and variance 1, of a shape.

    ``dtype``, that of the result, is float32 or float64; ``key`` is the random key, ``m``
    `passkit.ops` or `ARRAYS`.
    """
    return _normal_of_words(m, _words(m, key, shape), _words(m, key, shape, 1), dtype)


def _exponential(m: Any, key: Any, shape: Any, dtype: DType) -> Any:
    """Return exponentially distributed numbers of rate 1, of a shape.

    ``dtype``, that of the result, is float32 or float64; ``key`` is the random key, ``m``
    `passkit.ops` or `ARRAYS`.
    """
    return -log(m, _fine_unit_interval(m, _words(m, key, shape), dtype))


def _gumbel(m: Any, key: Any, shape: Any, dtype: DType) -> Any:
    """Return Gumbel-distributed numbers of location 0 and scale 1, of a shape.

    ``dtype``, that of the result, is float32 or float64; ``key`` is the random key, ``m``
    `passkit.ops` or `ARRAYS`.
    """
    return -log(m, -log(m, _open_unit_interval(m, _words(m, key, shape), dtype)), up=6)


def _logistic(m: Any, key: Any, shape: Any, dtype: DType) -> Any:
    """Return logistically distributed numbers of location 0 and scale 1, of a shape.

    ``dtype``, that of the result, is float32 or float64; ``key`` is the random key, ``m``
    `passkit.ops` or `ARRAYS`.
    """
    u = _open_unit_interval(m, _words(m, key, shape), dtype)
    return log(m, u) - log(m, 1.0 - u)


def _laplace(m: Any, key: Any, shape: Any, dtype: DType) -> Any:
    """Return Laplace-distributed numbers, exponential ones of random sign, of a shape.

    ``dtype``, that of the result, is float32 or float64; ``key`` is the random key, ``m``
    `passkit.ops` or `ARRAYS`.
    """
    x = log(m, _fine_unit_interval(m, _words(m, key, shape), dtype))
    return m.where(m.less(_words(m, key, shape, 1), 0), x, -x)


# Distributions with parameters, which broadcast to the shape.


def _uniform(m: Any, key: Any, low: Any, high: Any, shape: Any, dtype: DType) -> Any:
    """Return uniform numbers of a dtype from ``low`` to below ``high``.

    There are as many as the significand has bits for; where they round to high, they are the
    number before it. The limits broadcast to the shape; 16-bit floats are computed in float32.
    ``m`` is `passkit.ops` or `ARRAYS`.
    """
    computed = _computed_dtype(dtype)
    u = _unit_interval(m, _words(m, key, shape), computed, SIGNIFICAND_BITS[dtype.name])
    low, high = (m.cast(x, dtype=computed) for x in (low, high))
    numbers = m.cast(u * (high - low) + low, dtype=dtype)
    last = m.nextafter(m.cast(high, dtype=dtype), m.cast(low, dtype=dtype))
    return m.minimum(numbers, last)


def _truncated_normal(m: Any, key: Any, low: Any, high: Any, shape: Any, dtype: DType) -> Any:
    """Return normally distributed numbers whose distribution function is from low to high.

    These are numbers from 0 to 1 that broadcast to the shape; ``dtype`` is float32 or float64, and
    ``m`` `passkit.ops` or `ARRAYS`.
    """
    u = _open_unit_interval(m, _words(m, key, shape), dtype)
    return inverse_normal(m, u * (high - low) + low)


def _integers(m: Any, key: Any, low: Any, high: Any, shape: Any, dtype: DType) -> Any:
    """Return ``low`` plus 63 random bits modulo high - low, as int64, of which the limits are.

    ``dtype`` is not read; ``m`` is `passkit.ops` or `ARRAYS`.
    """
    return (_words(m, key, shape) & (2**63 - 1)) % (high - low) + low


def _bernoulli(m: Any, key: Any, p: Any, shape: Any, dtype: DType) -> Any:
    """Return whether a uniform number of a float dtype is below ``p``, for each element of a shape.

    These are the numbers of `passkit.ops.random_bernoulli`; ``m`` is `passkit.ops` or `ARRAYS`.
    """
    count = SIGNIFICAND_BITS[dtype.name]
    return m.less(_unit_interval(m, _words(m, key, shape), dtype, count), p)


# Rejection methods: the first of a few tries that is accepted.


def _first_accepted(
    m: Any, key: Any, shape: Any, count: int, candidate: Callable[..., Any], *params: Any
) -> Any:
    """Return for each element the candidate of the first try that is accepted, or of the last try.

    Args:
        m: the functions to compute with, `passkit.ops` or `ARRAYS`.
        key: the random key.
        shape: the shape of the draw.
        count: the number of tries.
        candidate: ``candidate(words, *params)`` returns candidates, and whether they are accepted,
            from three independent words.
        *params: arrays that broadcast to the shape.
    """
    position = m.reshape(m.arange(0, numel(shape), 1, dtype="int64"), shape=shape)
    tries = m.arange(0, count, 1, dtype="int64")
    columns = [m.expand_dims(p, axis=-1) for p in params]
    words = _words_of_try(m, key, m.expand_dims(position, axis=-1), tries)
    _, is_accepted = candidate(words, *columns)
    first = m.reduce_min(m.where(is_accepted, tries, count - 1), axis=-1)
    return candidate(_words_of_try(m, key, position, first), *params)[0]


def _words_of_try(m: Any, key: Any, position: Any, number: Any) -> tuple[Any, Any, Any]:
    """Return three independent int64 words for try ``number`` of the elements at positions.

    Positions, in row-major order, and numbers of tries are integers that broadcast; ``m`` is
    `passkit.ops` or `ARRAYS`.
    """
    stream = number * 2 + TRY_STREAM
    low, high = (m.philox(position, stream, key, half=half) for half in (0, 1))
    return low, high, m.philox(position, stream + 1, key, half=0)


def _log_gamma(m: Any, key: Any, a: Any, shape: Any, dtype: DType) -> Any:
    """Return logarithms of gamma-distributed numbers of shape ``a`` and scale 1; NaN for a < 0.

    They are minus infinity for 0 and -0.0. Below a = 1, a number of shape a + 1 is multiplied by a
    power of a uniform one. A try is accepted with a probability of 0.95 or more. ``a`` is of
    ``dtype``, float32 or float64, and broadcasts to the shape; ``m`` is `passkit.ops` or `ARRAYS`.

    Source: Marsaglia and Tsang, A Simple Method for Generating Gamma Variables.
    """

    def candidate(words: Any, d: Any, c: Any) -> tuple[Any, Any]:
        """Return log(d v) for a candidate v = (1 + c x)**3, and whether it is accepted.

        ``words`` are three independent words, of which two give the normal x and one decides.
        """
        low, high, word = words
        x = _normal_of_words(m, low, high, dtype)
        root = x * c + 1.0
        log_v = log(m, m.maximum(root, 2.0**-20), up=4) * 3.0
        v = root * root * root
        bound = x * x * 0.5 + d * (1.0 - v + log_v)
        is_accepted = log(m, _fine_unit_interval(m, word, dtype)) < bound
        return log(m, d, up=60 if dtype.nbytes == 8 else 30) + log_v, m.logical_and(
            m.greater(root, 0.0), is_accepted
        )

    is_below = m.less(a, 1.0)
    d = m.where(is_below, a + 1.0, a) - 1.0 / 3.0
    c = 1.0 / (m.sqrt(d) * 3.0)
    result = _first_accepted(m, key, shape, 8 if dtype.nbytes == 8 else 6, candidate, d, c)
    result = m.where(is_below, result - _exponential(m, key, shape, dtype) / m.abs(a), result)
    return m.where(m.less(a, 0.0), nan, result)


def _poisson(m: Any, key: Any, rate: Any, shape: Any, dtype: DType) -> Any:
    """Return Poisson-distributed numbers as float64: by inversion below a rate of 10, else PTRS.

    ``rate`` has float64 numbers from 0 to 2**40 that broadcast to the shape; ``dtype`` is float64;
    ``m`` is `passkit.ops` or `ARRAYS`.

    Source: Hörmann, The Transformed Rejection Method for Generating Poisson Random Variables.
    """

    def candidate(words: Any, mu: Any) -> tuple[Any, Any]:
        """Return a candidate, a whole number as a float, and whether it is accepted.

        ``words`` are independent words, of which two are read; ``mu`` is the rate.
        """
        u = _open_unit_interval(m, words[0], dtype) - 0.5
        v = _open_unit_interval(m, words[1], dtype)
        b = m.sqrt(mu) * 2.53 + 0.931
        a = b * 0.02483 - 0.059
        margin = m.maximum(0.5 - m.abs(u), 2.0**-16)
        k = m.floor((a * 2.0 / margin + b) * u + mu + 0.43)
        ratio = v * (1.1328 / (b - 3.4) + 1.1239) / (a / (margin * margin) + b)
        log_p = k * log(m, mu, up=60) - mu - _log_factorial(m, m.maximum(k, 0.0))
        is_accepted = m.logical_and(m.greater(k, -1.0), m.less(log(m, ratio, up=2), log_p))
        return m.maximum(k, 0.0), is_accepted

    large = m.maximum(rate, 10.0)
    by_rejection = _first_accepted(m, key, shape, 16, candidate, large)
    small = m.minimum(rate, 10.0)
    u = _unit_interval(m, _words(m, key, shape), dtype, SIGNIFICAND_BITS[dtype.name])
    p = exp(m, -small)
    below, number = p, m.zeros_like(u)
    for k in range(1, 41):
        number = m.where(m.less(u, below), number, float(k))
        p = p * small * (1.0 / k)
        below = below + p
    return m.where(m.less(rate, 10.0), number, by_rejection)


def _log_factorial(m: Any, k: Any) -> Any:
    """Return log(k!) for whole numbers from 0 on, as float64, by Stirling's series of k or k + 8.

    ``m`` is `passkit.ops` or `ARRAYS`.
    """
    is_small = m.less(k, 16.0)
    n = m.where(is_small, k + 8.0, k)
    small = m.minimum(k, 16.0)
    product = small + 1.0
    for step in range(2, 9):
        product = product * (small + float(step))
    r = 1.0 / n
    series = r * (1.0 / 12 - r * r * (1.0 / 360 - r * r * (1.0 / 1260)))
    result = (n + 0.5) * log(m, n, up=60) - n + 0.5 * log_of_number(2 * pi) + series
    return m.where(is_small, result - log(m, product, up=40), result)


# Definitions.


def _computed_dtype(dtype: DType) -> DType:
    """Return the dtype to draw in: float32 for 16-bit floats, which are rounded; else ``dtype``."""
    return float32 if dtype.kind == "f" and dtype.nbytes == 2 else dtype


def _define(
    name: str, formula: Callable[..., Any], operand_dtype: str = "", compute: str = ""
) -> None:
    """Define the operation of a draw, ``random.`` and its name.

    Its operands are a key, parameters of the distribution, and the input of `extents_input`; its
    parameters are the ``shape`` and ``dtype`` of the result.

    Args:
        name: its name.
        formula: ``formula(m, key, *operands, shape, dtype)`` returns the numbers.
        operand_dtype: what parameters are converted to; "": the dtype that is computed in.
        compute: the dtype to compute in; "": that of the result, of floats at least 32 bits;
            "result": that of the result.

    Raises: PasskitError if there is an operation of this name.
    """

    def draw(m: Any, key: Any, operands: Any, shape: Any, dtype: str) -> Any:
        target = dtype_of(dtype)
        computed = _computed_dtype(target) if not compute else target
        if compute not in ("", "result"):
            computed = dtype_of(compute)
        params = [m.cast(p, dtype=operand_dtype or _computed_dtype(computed)) for p in operands]
        return m.cast(formula(m, key, *params, shape, computed), dtype=target)

    def build(key: Entry, *operands: Entry, shape: Any, dtype: str) -> Entry:
        return with_inputs(draw(ops, key, operands[:-1], shape, dtype), operands[-1:])

    def on_arrays(key: Any, *operands: Any, shape: Any, dtype: str) -> Any:
        return draw(ARRAYS, key, operands[:-1], shape, dtype)

    OPERATIONS.define(f"random.{name}", build, on_arrays)


def _bits(m: Any, key: Any, shape: Any, dtype: DType) -> Any:
    """Return 64 random bits for each element of a shape, as int64; ``dtype`` is not read.

    The cast to a narrower dtype keeps the lowest. ``m`` is `passkit.ops` or `ARRAYS`.
    """
    return _words(m, key, shape)


_define("bits", _bits)
_define("bernoulli", _bernoulli, compute="float32")
_define("exponential", _exponential)
_define("gumbel", _gumbel)
_define("integers", _integers, operand_dtype="int64")
_define("laplace", _laplace)
_define("log_gamma", _log_gamma)
_define("logistic", _logistic)
_define("normal", _normal)
_define("poisson", _poisson, compute="float64")
_define("truncated_normal", _truncated_normal)
_define("uniform", _uniform, compute="result")


def _build_split(key: Entry, extents: Entry, shape: Any) -> Entry:
    """Build an array of keys of a shape; ``extents``, whose shape gives it, becomes an input."""
    return with_inputs(_split(ops, key, shape), [extents])


def _build_permutation(key: Entry, extents: Entry, shape: Any) -> Entry:
    """Build the order of random words, one for each position in ``shape``, that of a vector.

    ``extents``, whose shape gives it, becomes an input.
    """
    words = _words(ops, key, shape)
    return with_inputs(ops.cast(ops.argsort(words), dtype="int64"), [extents])


def _permutation(key: Any, extents: Any, shape: Any) -> Any:
    """Return the order of random words in NumPy, one for each position in ``shape``, as int64.

    ``extents`` is not read. Equal words, which are very unlikely, stay in their order.
    """
    return np.argsort(_words(ARRAYS, key, shape), kind="stable")


OPERATIONS.define(
    "random.key", lambda seed: _key_of_seed(ops, seed), lambda seed: _key_of_seed(ARRAYS, seed)
)
OPERATIONS.define(
    "random.fold_in",
    lambda key, data: _folded(ops, key, data),
    lambda key, data: _folded(ARRAYS, key, data),
)
OPERATIONS.define(
    "random.split", _build_split, lambda key, extents, shape: _split(ARRAYS, key, shape)
)
OPERATIONS.define("random.permutation", _build_permutation, _permutation)
