"""Specimens of random numbers: references are written out from Philox's words in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from passkit.ast import dt
from tests.ops.specimens import call, calls, unit

Array = Any
KEY = np.array(-0x123456789ABCDEF, np.int64)
BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def philox(counter: Array, stream: Array, key: Array, half: int = 0) -> Array:
    """Return half a Philox4x32-10 block, by Python ints, one block at a time."""

    def one(n: int, s: int, k: int) -> int:
        low, word = (1 << 32) - 1, [n, n >> 32, s, s >> 32]
        a, b, c, d = (w & ((1 << 32) - 1) for w in word)
        x, y = k & low, k >> 32 & low
        for _ in range(10):
            p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
            a, b, c, d = q >> 32 ^ b ^ x, q & low, p >> 32 ^ d ^ y, p & low
            x, y = x + 0x9E3779B9 & low, y + 0xBB67AE85 & low
        block = c | d << 32 if half else a | b << 32
        return block - (1 << 64) if block >> 63 else block

    blocks = np.frompyfunc(lambda *v: one(*map(int, v)), 3, 1)(counter, stream, key)
    return np.asarray(blocks).astype(np.int64)


def words(key: Array, shape: Any, half: int = 0, stream: int = 0) -> Array:
    """Return a word for each position."""
    shape = shape if isinstance(shape, tuple) else (shape,)
    count = np.arange(int(np.prod(shape))).reshape(shape)
    return philox(count, stream, key, half)


def whole(word: Array, bits: int) -> Array:
    """Return the lowest bits as floats."""
    return (word & ((1 << bits) - 1)).astype(np.float64)


def even(key: Array, shape: Any, dtype: str = "float32", half: int = 0) -> Array:
    """Return numbers from 0 to below 1."""
    return whole(words(key, shape, half), BITS[dtype]) * 2.0 ** -BITS[dtype]


def fine(key: Array, shape: Any, dtype: str) -> Array:
    """Return numbers above 0 up to 1, as the dtype rounds them."""
    bits, work = (53, np.float64) if dtype == "float64" else (31, np.float32)
    numbers = (whole(words(key, shape), bits).astype(work) + work(0.5)) * work(2.0**-bits)
    return np.asarray(numbers).astype(float)


def middle(key: Array, shape: Any, dtype: str) -> Array:
    """Return numbers between 0 and 1."""
    bits = 52 if dtype == "float64" else 23
    return (whole(words(key, shape), bits) + 0.5) * 2.0**-bits


def drawn(draw: Any) -> Any:
    """Return a reference that rounds to the requested dtype, through float32 for 16 bits."""

    def reference(key: Array, shape: Any = (), dtype: str = "float32", **params: Any) -> Array:
        numbers = np.asarray(draw(key, shape, dtype, **params))
        narrow = dtype in ("float16", "bfloat16")
        return (numbers.astype(np.float32) if narrow else numbers).astype(dt.dtype_of(dtype).numpy)

    return reference


def integers(key: Array, shape: Any, dtype: str = "int32", low: int = 0, high: int = 0) -> Array:
    """Return the remainder of 63 bits."""
    rest = (words(key, shape) & ((1 << 63) - 1)) % (high - low)
    return (rest + low).astype(dt.dtype_of(dtype).numpy)


calls(
    "philox",
    philox,
    [
        call(np.arange(-3, 6), np.array(3), np.array([[7], [-1]])),
        call(np.array(5), np.array(0), KEY, half=1),
    ],
    kinds="b",
)
calls(
    "random_words",
    words,
    [
        call(KEY, shape=(3, 5)),
        call(KEY, shape=(), half=1),
        call(KEY, shape=(0, 3)),
        call(KEY, shape=(7,), stream=5),
    ],
    kinds="b",
)
calls(
    "random_key",
    lambda seed: philox(seed, 3, 0),
    [call(np.array(5, np.int64)), call(np.array([1, -2], np.int32))],
    kinds="b",
)
calls(
    "fold_in",
    lambda key, data: philox(data, 1, key),
    [call(KEY, np.array(9, np.int64)), call(KEY, np.arange(4, dtype=np.int32))],
    kinds="b",
)
calls(
    "split_key",
    lambda key, num=2: words(key, num, stream=2),
    [call(KEY), call(KEY, num=5)],
    kinds="b",
)
calls(
    "random_bits",
    lambda key, shape, dtype: words(key, shape).astype(dtype),
    [call(KEY, shape=(3, 5), dtype=d) for d in ("int32", "int64")],
    kinds="b",
)
calls(
    "random_integers",
    integers,
    [
        call(KEY, shape=(3, 5), low=-3, high=8),
        call(KEY, shape=(7,), low=16, high=32),
        call(KEY, shape=(7,), low=-(2**40), high=2**41, dtype="int64"),
    ],
    kinds="b",
)
calls(
    "random_uniform",
    drawn(
        lambda key, shape, dtype, low=0.0, high=1.0: low + (high - low) * even(key, shape, dtype)
    ),
    [call(KEY, shape=s, dtype=d) for s in ((), (3, 5)) for d in ("float32", "float64")]
    + [call(KEY, shape=(5, 9), low=-2.0, high=6.0)],
    kinds="b",
)


def box_muller(key: Array, shape: Any, dtype: str, mean: float = 0.0, stddev: float = 1.0) -> Array:
    """Source: Box and Muller."""
    work = "float64" if dtype == "float64" else "float32"
    turn = 2 * np.pi * even(key, shape, work, 1)
    return mean + stddev * np.sqrt(-2 * np.log(fine(key, shape, dtype))) * np.cos(turn)


def truncated(key: Array, shape: Any, dtype: str, mean: float = 0.0, stddev: float = 1.0) -> Array:
    """Return truncated normal draws by the inverse of the distribution function."""
    width = special.erf(np.sqrt(2))
    return mean + stddev * np.sqrt(2) * special.erfinv(width * (2 * middle(key, shape, dtype) - 1))


def laplace(key: Array, shape: Any, dtype: str) -> Array:
    """Return exponential draws of either sign."""
    e = np.log(fine(key, shape, dtype))
    return np.where(words(key, shape, 1) < 0, e, -e)


for _name, _reference in (
    ("random_normal", box_muller),
    ("random_truncated_normal", truncated),
    ("random_exponential", lambda *a: -np.log(fine(*a))),
    ("random_gumbel", lambda *a: -np.log(-np.log(middle(*a)))),
    ("random_logistic", lambda *a: special.logit(middle(*a))),
    ("random_laplace", laplace),
):
    calls(
        _name,
        drawn(_reference),
        [call(KEY, shape=s, dtype=d) for s in ((1,), (33, 5)) for d in ("float32", "float64")],
        kinds="b",
        slack=64 if _name == "random_truncated_normal" else 16,
    )
for _name, _reference in (("random_normal", box_muller), ("random_truncated_normal", truncated)):
    calls(
        _name, drawn(_reference), [call(KEY, shape=(9,), mean=3.0, stddev=0.5)], kinds="b", slack=16
    )


def key_of_dtype(rng: Any, dtype: Any) -> Array:
    """Return a key by which the reference, which gets float64 only, knows the dtype drawn."""
    return KEY + (dtype.name == "float64")


def noise(key: Array, shape: Any) -> Array:
    """Return Gumbel noise."""
    return -np.log(-np.log(middle(key, shape, "float32" if key == KEY else "float64")))


def dropout(x: Array, key: Array, rate: float = 0.5, noise_shape: Any = None) -> Array:
    """Keep elements with probability 1 - rate."""
    kept = even(key, x.shape if noise_shape is None else noise_shape) >= np.float32(rate)
    return np.where(kept, x / (1 - rate), 0) if rate else x


def gumbel_softmax(x: Array, key: Array, temperature: float = 1.0, axis: int = -1) -> Array:
    """Source: Jang, Gu and Poole, equation 2."""
    return special.softmax((x + noise(key, x.shape)) / temperature, axis)


def probabilities(*shape: int) -> Any:
    """Return a function that draws numbers between 0.02 and 0.98."""
    return lambda rng, dtype: unit(rng, shape).astype(dtype.numpy)


def bernoulli(p: Array, key: Array, shape: Any = None) -> Array:
    """Return whether uniform numbers are below p."""
    return even(key, p.shape if shape is None else shape) < p.astype(np.float32)


calls(
    "dropout",
    dropout,
    [
        call((5, 7), KEY),
        call((5, 7), KEY, rate=0.1),
        call((5, 7), KEY, rate=0.0),
        call((2, 3, 4), KEY, noise_shape=(2, 1, 4)),
    ],
    ulps=2,
)
calls(
    "gumbel_softmax",
    gumbel_softmax,
    [call((5, 7), key_of_dtype), call((3, 4), key_of_dtype, temperature=0.5, axis=0)],
    slack=60,
)
calls(
    "random_bernoulli",
    bernoulli,
    [call(probabilities(5, 7), KEY), call(probabilities(), KEY, shape=(40,))],
)
calls(
    "random_categorical",
    lambda x, key, axis=-1: np.argmax(x + noise(key, x.shape), axis),
    [call((5, 7), key_of_dtype), call((3, 4, 5), key_of_dtype, axis=1)],
)
calls(
    "random_permutation",
    lambda key, num: np.argsort(words(key, num), kind="stable"),
    [call(KEY, num=9), call(KEY, num=1)],
    kinds="b",
)
calls(
    "shuffle",
    lambda x, key, axis=0: np.take(x, np.argsort(words(key, x.shape[axis]), kind="stable"), axis),
    [call((5, 7), KEY), call((3, 8), KEY, axis=1)],
    kinds="fi",
)
