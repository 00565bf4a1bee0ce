"""Random numbers: Philox's published answers, distributions, independence, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import passkit as pk

pytestmark = pytest.mark.usefixtures("quick_kernels")

ops = pk.ops
KEY = np.array(11)
MANY = (400, 500)

ANSWERS = [
    ("0 0 0 0", "0 0", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (
        "ffffffff ffffffff ffffffff ffffffff",
        "ffffffff ffffffff",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
    ),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]
"""Counter, key and block. Source: Random123's kat_vectors, the lines philox4x32 10."""


def pairs(text: str) -> list[int]:
    """Words as int64, the first the lower half."""
    words = [int(w, 16) for w in text.split()]
    both = [a | b << 32 for a, b in zip(words[::2], words[1::2], strict=True)]
    return [v - (1 << 64) if v >> 63 else v for v in both]


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_known_answers(target: str) -> None:
    """Philox4x32-10 gives its authors' answers, as scalars and as lanes of a vector."""
    names = ("n", "stream", "key")
    blocks = [
        [pk.var(f"{name}{suffix}", shape, "int64") for name in names]
        for suffix, shape in (("", ()), ("s", (20,)))
    ]
    outs = [ops.philox(*block, half=half) for block in blocks for half in (0, 1)]
    exe = pk.compile(pk.Graph(outs), target=target)
    for counter, key, block in ANSWERS:
        block_inputs = dict(zip(names, (*pairs(counter), *pairs(key)), strict=True))
        feeds = {k: np.array(v) for k, v in block_inputs.items()}
        feeds |= {f"{k}s": np.full(20, v) for k, v in block_inputs.items()}
        low, high = pairs(block)
        words = exe(feeds)
        assert [int(words[0]), int(words[1])] == [low, high]
        assert (words[2] == low).all() and (words[3] == high).all()


KEY_VARIABLE = pk.var("key", (), "int64")


def key() -> Any:
    """Return the variable of the key, which each call feeds."""
    return KEY_VARIABLE


DISTRIBUTIONS: dict[str, tuple[Callable[[], Any], Any]] = {
    "uniform": (lambda: ops.random_uniform(key(), MANY), stats.uniform()),
    "from -2 to 6": (
        lambda: ops.random_uniform(key(), MANY, low=-2.0, high=6.0),
        stats.uniform(-2, 8),
    ),
    "double": (lambda: ops.random_uniform(key(), MANY, dtype="float64"), stats.uniform()),
    "normal": (lambda: ops.random_normal(key(), MANY), stats.norm()),
    "normal double": (lambda: ops.random_normal(key(), MANY, dtype="float64"), stats.norm()),
    "scaled": (lambda: ops.random_normal(key(), MANY, mean=3.0, stddev=0.5), stats.norm(3, 0.5)),
    "truncated": (lambda: ops.truncated_normal(key(), MANY), stats.truncnorm(-2, 2)),
    "exponential": (lambda: ops.random_exponential(key(), MANY), stats.expon()),
    "gumbel": (lambda: ops.random_gumbel(key(), MANY), stats.gumbel_r()),
    "logistic": (lambda: ops.random_logistic(key(), MANY), stats.logistic()),
    "laplace": (lambda: ops.random_laplace(key(), MANY), stats.laplace()),
}


@pytest.fixture(scope="module")
def draws() -> dict[str, Any]:
    """200,000 numbers of each distribution, by one compiled graph."""
    exe = pk.compile(pk.Graph([build() for build, _ in DISTRIBUTIONS.values()]))
    return dict(zip(DISTRIBUTIONS, exe(key=KEY), strict=True))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(name: str, draws: dict[str, Any]) -> None:
    """Kolmogorov and Smirnov's distance and the first two moments fit the distribution.

    The bounds are those that 1 in 100,000 keys would miss; the key is fixed.
    """
    numbers, distribution = draws[name].astype(np.float64).reshape(-1), DISTRIBUTIONS[name][1]

    assert stats.kstest(numbers, distribution.cdf).pvalue > 1e-5
    assert abs(numbers.mean() - distribution.mean()) < 4.5 * distribution.std() / np.sqrt(
        numbers.size
    )
    assert abs(numbers.std() / distribution.std() - 1) < 0.02


def test_the_statistics_detect_a_narrow_draw() -> None:
    """The test of distributions rejects a uniform draw that is a hundredth too narrow."""
    narrow = pk.interpret(pk.Graph([ops.random_uniform(key(), MANY, high=0.99)]), {"key": KEY})[0]

    assert stats.kstest(narrow.reshape(-1).astype(np.float64), stats.uniform().cdf).pvalue < 1e-5


def test_bits_are_even_and_independent() -> None:
    """Each bit is 1 half of the time; bytes, pairs of neighbours and both halves are even."""
    low, high = pk.interpret(
        pk.Graph([ops.random_words(key(), shape=(100000,), half=h) for h in (0, 1)]), {"key": KEY}
    )
    for words in (low, high):
        data = words.view(np.uint8)
        ones = np.unpackbits(data.reshape(-1, 8), axis=1).sum(axis=0, dtype=int)
        assert (np.abs(ones - 50000) < 5 * np.sqrt(25000)).all()
        assert stats.chisquare(np.bincount(data, minlength=256)).pvalue > 1e-5
        nibbles = data[:-1].astype(int) % 16 * 16 + data[1:] % 16
        assert stats.chisquare(np.bincount(nibbles[::2], minlength=256)).pvalue > 1e-5
    assert abs(np.corrcoef(low, high)[0, 1]) < 0.02


def test_integers_are_even() -> None:
    """All numbers of a range are equally likely, and none lies outside."""
    (numbers,) = pk.interpret(
        pk.Graph([ops.random_integers(key(), MANY, low=-3, high=10)]), {"key": KEY}
    )

    assert numbers.min() == -3 and numbers.max() == 9
    assert stats.chisquare(np.bincount(numbers.reshape(-1) + 3)).pvalue > 1e-5


def test_classes_have_their_probabilities() -> None:
    """Categorical draws have the probabilities softmax(logits); Bernoulli's come up with p."""
    logits = np.log(np.array([1, 2, 3, 4], np.float32)) + np.zeros((50000, 1), np.float32)
    classes, truths = pk.interpret(
        pk.Graph(
            [
                ops.random_categorical(logits, key()),
                ops.bernoulli(np.float32(0.3), key(), shape=(50000,)),
            ]
        ),
        {"key": KEY},
    )
    expected_counts = np.array([1, 2, 3, 4]) * 5000

    assert stats.chisquare(np.bincount(classes), expected_counts).pvalue > 1e-5
    assert stats.binomtest(int(truths.sum()), 50000, 0.3).pvalue > 1e-5


def test_permutations_are_equally_likely() -> None:
    """Each number occurs once; the six orders of three are equally likely; rows move together."""
    rows = np.arange(12).reshape(6, 2)
    moved, *orders = pk.interpret(
        pk.Graph(
            [
                ops.shuffle(rows, key()),
                *(ops.permutation(ops.fold_in(key(), k), num=3) for k in range(600)),
            ]
        ),
        {"key": KEY},
    )
    counts = np.unique(np.stack(orders), axis=0, return_counts=True)[1]

    assert sorted(map(tuple, moved)) == [tuple(r) for r in rows]
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-5


def test_keys_differ() -> None:
    """Keys of near seeds, of splitting and of folding in are all different, and so are draws."""
    keys_apart = [ops.random_key(s) for s in range(50)]
    keys_apart += [ops.fold_in(key(), s) for s in range(50)]
    split = ops.split_key(key(), num=50)
    *single, many = pk.interpret(pk.Graph([*keys_apart, split]), {"key": KEY})
    keys = {int(k) for k in (*single, *many, KEY)}
    first, second = (
        pk.interpret(pk.Graph([ops.random_normal(key(), MANY)]), {"key": np.array(k)})[0]
        for k in (11, 12)
    )

    assert len(keys) == 151
    assert abs(np.corrcoef(first.reshape(-1), second.reshape(-1))[0, 1]) < 0.01


def test_longer_draws_begin_with_shorter_ones() -> None:
    """An element depends on the key and its position only."""
    short, long, square = pk.interpret(
        pk.Graph([ops.random_normal(key(), s) for s in ((5,), (64,), (8, 8))]), {"key": KEY}
    )

    np.testing.assert_array_equal(short, long[:5])
    np.testing.assert_array_equal(square.reshape(-1), long)


def test_fused_draws_have_the_same_bits() -> None:
    """A draw that fuses with its consumer has the bits of the draw alone, in one kernel."""
    x = pk.var("x", ("n", 96))
    dropped = ops.dropout(x * 2.0, key(), rate=0.3)
    exe = pk.compile(pk.Graph([dropped]))
    data = np.ones((300, 96), np.float32)
    (result,) = exe(x=data, key=KEY)
    (u,) = pk.interpret(pk.Graph([ops.random_uniform(key(), (300, 96))]), {"key": KEY})

    assert len(exe.kernels) == 1
    expected = np.where(u >= np.float32(0.3), np.float32(2) * np.float32(1 / 0.7), 0)
    np.testing.assert_array_equal(result, expected)


def test_dropout_keeps_the_mean() -> None:
    """A share of ``rate`` is dropped, the others are scaled up; noise_shape drops entire rows."""
    ones = np.ones(MANY, np.float32)
    plain, rows = pk.interpret(
        pk.Graph(
            [
                ops.dropout(ones, key(), rate=0.25),
                ops.dropout(ones, key(), rate=0.25, noise_shape=(400, 1)),
            ]
        ),
        {"key": KEY},
    )

    assert abs((plain == 0).mean() - 0.25) < 0.005
    assert abs(plain.mean() - 1) < 0.01
    assert set(np.unique(rows.mean(axis=1)).round(4)) == {0, np.float32(1.3333)}


def test_uniform_stays_below_high() -> None:
    """Where rounding would reach ``high``, the value below it is taken."""
    (numbers,) = pk.interpret(
        pk.Graph([ops.random_uniform(key(), MANY, low=1.0, high=1.0000005)]), {"key": KEY}
    )

    assert numbers.min() == 1 and numbers.max() < np.float32(1.0000005)


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ops.random_uniform(pk.var("k", (2,), "int64")), pk.ShapeError, r"scalar, got \(2,\)"),
    (lambda: ops.random_uniform(pk.var("k", (), "int32")), pk.DTypeError, "int64, got int32"),
    (lambda: ops.random_uniform(key(), (2, -1)), pk.ShapeError, r">= 0, got \(2, -1\)"),
    (lambda: ops.random_uniform(key(), (2,), low=1.0, high=1.0), pk.GraphError, "got 1.0 and 1.0"),
    (lambda: ops.random_words(key(), half=2), pk.GraphError, "0 or 1 as half, got 2"),
    (lambda: ops.philox(key(), key(), 1.5), pk.DTypeError, "philox needs int64, got float64"),
    (lambda: ops.split_key(key(), num=0), pk.GraphError, "1 or more as num, got 0"),
    (lambda: ops.random_integers(key(), high=2.5), pk.GraphError, "an int as high, got 2.5"),
    (lambda: ops.random_integers(key(), low=3, high=3), pk.GraphError, "int32, got 3 and 3"),
    (
        lambda: ops.random_integers(key(), low=-(2**62), high=2**62, dtype="int64"),
        pk.GraphError,
        "at most 2.*63 - 1 numbers, got 9223372036854775808",
    ),
    (lambda: ops.dropout(pk.var("x", (2,)), key(), rate=1.0), pk.GraphError, "below 1, got 1.0"),
    (
        lambda: ops.dropout(pk.var("x", (2, 3)), key(), noise_shape=(4, 2, 3)),
        pk.ShapeError,
        r"cannot stretch noise_shape \(4, 2, 3\) to \(2, 3\)",
    ),
    (
        lambda: ops.random_bernoulli(pk.var("p", (2, 3)), key(), shape=(3,)),
        pk.ShapeError,
        r"cannot stretch p \(2, 3\) to \(3,\)",
    ),
    (
        lambda: ops.gumbel_softmax(pk.var("x", (2,)), key(), temperature=0.0),
        pk.GraphError,
        "above 0, got 0.0",
    ),
]


@pytest.mark.parametrize("build, error, message", BAD)
def test_invalid_keys_and_parameters_are_refused(
    build: Callable[[], Any], error: type[Exception], message: str
) -> None:
    """Parameters and keys that do not fit are refused when the node is made."""
    with pytest.raises(error, match=message):
        build()


def test_ranges_of_integers_are_checked_where_the_key_has_no_known_rank() -> None:
    """Bounds that are no ints are refused when the draw is expanded, if not before."""
    key = pk.var("key", None, "int64")
    draws = ops.random_integers(key, shape=(2,), low=0, high=1.5)
    expand = pk.get_op("random_integers").get_attr("FExpand")

    with pytest.raises(pk.GraphError, match="needs an int as high, got 1.5"):
        expand(draws.node, key)
