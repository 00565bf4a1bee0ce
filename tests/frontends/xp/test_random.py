"""Random numbers: distributions, equal bits everywhere, plans, generators, and refusals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import passkit as pk
from passkit import xp
from passkit.errors import ArgumentError, AxisError, DTypeError, FeedError, ShapeError

random = xp.random
SHAPE = (200, 150)

CONTINUOUS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "uniform": (lambda k: random.uniform(k, SHAPE), stats.uniform()),
    "uniform between": (
        lambda k: random.uniform(k, SHAPE, xp.float32, -2, 6.0),
        stats.uniform(-2, 8),
    ),
    "normal": (lambda k: random.normal(k, SHAPE), stats.norm()),
    "normal scaled": (
        lambda k: random.normal(k, SHAPE, xp.float32, loc=3, scale=0.5),
        stats.norm(3, 0.5),
    ),
    "lognormal": (lambda k: random.lognormal(k, 0.5, SHAPE), stats.lognorm(0.5)),
    "truncated": (lambda k: random.truncated_normal(k, shape=SHAPE), stats.truncnorm(-2, 2)),
    "truncated tail": (
        lambda k: random.truncated_normal(k, 1.5, xp.asarray(4.0), SHAPE),
        stats.truncnorm(1.5, 4),
    ),
    "exponential": (lambda k: random.exponential(k, SHAPE, scale=2.0), stats.expon(scale=2)),
    "gumbel": (lambda k: random.gumbel(k, SHAPE, xp.float32), stats.gumbel_r()),
    "laplace": (lambda k: random.laplace(k, SHAPE, loc=1), stats.laplace(1)),
    "logistic": (lambda k: random.logistic(k, SHAPE), stats.logistic()),
    "cauchy": (lambda k: random.cauchy(k, SHAPE), stats.cauchy()),
    "rayleigh": (lambda k: random.rayleigh(k, 2.0, SHAPE), stats.rayleigh(scale=2)),
    "weibull": (lambda k: random.weibull_min(k, 2.0, 1.5, SHAPE), stats.weibull_min(1.5, scale=2)),
    "pareto": (lambda k: random.pareto(k, 3.0, SHAPE), stats.pareto(3)),
    "gamma": (lambda k: random.gamma(k, 2.5, SHAPE, xp.float32), stats.gamma(2.5)),
    "gamma below 1": (lambda k: random.gamma(k, xp.full((150,), 0.3), SHAPE), stats.gamma(0.3)),
    "loggamma": (lambda k: random.loggamma(k, 0.5, SHAPE), stats.loggamma(0.5)),
    "chisquare": (lambda k: random.chisquare(k, 3, SHAPE), stats.chi2(3)),
    "t": (lambda k: random.t(k, 4.0, SHAPE), stats.t(4)),
    "beta": (lambda k: random.beta(k, 0.5, 2.0, SHAPE), stats.beta(0.5, 2)),
    "dirichlet": (
        lambda k: random.dirichlet(k, xp.asarray([1.0, 2.0, 4.0]), SHAPE)[..., 1],
        stats.beta(2, 5),
    ),
}
"""Draws of 30,000 numbers with their distributions."""

DISCRETE: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "bernoulli": (
        lambda k: xp.astype(random.bernoulli(k, 0.3, SHAPE), xp.int64),
        stats.binom(1, 0.3),
    ),
    "rademacher": (lambda k: (random.rademacher(k, SHAPE) + 1) // 2, stats.binom(1, 0.5)),
    "randint": (lambda k: random.randint(k, SHAPE, 3, 13), stats.randint(3, 13)),
    "geometric": (lambda k: random.geometric(k, 0.25, SHAPE), stats.geom(0.25)),
    "poisson": (lambda k: random.poisson(k, 2.5, SHAPE), stats.poisson(2.5)),
    "poisson large": (lambda k: random.poisson(k, xp.asarray(12.0), SHAPE), stats.poisson(12)),
    "categorical": (
        lambda k: random.categorical(k, xp.log(xp.asarray([0.2, 0.5, 0.3])), shape=SHAPE),
        stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3])),
    ),
    "choice": (
        lambda k: random.choice(k, xp.asarray([4, 1, 7]), SHAPE, p=xp.asarray([2.0, 5, 3])),
        stats.rv_discrete(values=([1, 4, 7], [0.5, 0.2, 0.3])),
    ),
}
"""Draws of 30,000 integers with their distributions."""


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_draws_have_their_distribution(name: str) -> None:
    """Kolmogorov and Smirnov find no difference, and neighbours are not correlated."""
    draw, distribution = CONTINUOUS[name]
    with xp.config(small=1 << 30):
        numbers = np.asarray(draw(random.key(11))).astype(np.float64).ravel()
    assert stats.kstest(numbers, distribution.cdf).pvalue > 1e-3
    ranks = stats.rankdata(numbers)
    assert abs(np.corrcoef(ranks[1:], ranks[:-1])[0, 1]) < 0.02


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_draws_have_their_distribution(name: str) -> None:
    """The numbers of each value agree with their expectations by a chi-squared test."""
    draw, distribution = DISCRETE[name]
    with xp.config(small=1 << 30):
        numbers = np.asarray(draw(random.key(12))).ravel()
    values, counts = np.unique(numbers, return_counts=True)
    expected = distribution.pmf(values) * numbers.size
    often = expected > 20
    rest = numbers.size - expected[often].sum()
    observed = np.append(counts[often], numbers.size - counts[often].sum())
    statistic = ((observed - np.append(expected[often], rest)) ** 2)[:-1] / expected[often]
    assert stats.chi2.sf(statistic.sum(), often.sum() - 1) > 1e-3


def test_large_rates_have_the_moments_of_poisson() -> None:
    """Mean and variance are the rate, up to large ones."""
    with xp.config(small=1 << 30):
        for rate in (9.9, 10.0, 1e3, 1e9):
            numbers = np.asarray(random.poisson(random.key(3), rate, (20000,)))
            assert abs(numbers.mean() - rate) < 5 * (rate / 20000) ** 0.5
            assert abs(numbers.var() / rate - 1) < 0.06


def _draws(key: Any, rows: int) -> list[Any]:
    """Return a draw of each formula; ``rows`` is the extent of the first axis."""
    shape = (rows, 100)
    f32, f64 = xp.float32, xp.float64
    return [
        random.bits(key, shape),
        random.uniform(key, shape, f32, -1, 2),
        random.uniform(key, shape, xp.float16, 0, 3),
        random.uniform(key, shape, xp.bfloat16),
        random.normal(key, shape, f32),
        random.normal(key, shape, f64, loc=2.0, scale=3.0),
        random.exponential(key, shape, f32),
        random.gumbel(key, shape, f32),
        random.gumbel(key, shape, f64),
        random.laplace(key, shape, f32),
        random.logistic(key, shape, f32),
        random.truncated_normal(key, -1, 3, shape, f32),
        random.randint(key, shape, -5, 100),
        random.bernoulli(key, 0.7, shape),
        random.split(key, rows),
        random.loggamma(key, 0.8, shape, f32),
        random.poisson(key, 20.0, shape),
    ]


def test_bits_are_equal_in_kernels_and_in_numpy() -> None:
    """A draw has the same bits in a compiled kernel and computed at once, for any size."""
    key = random.key(2**63 + 5)
    with xp.config(small=0, compile_at=0):
        queued = _draws(key, 7)
        assert all("pending" in repr(x) for x in queued)
        xp.eval(*queued)
        longer = _draws(key, 20)
        xp.eval(*longer)
    with xp.config(small=1 << 30):
        small = _draws(key, 7)
    for k, (a, b, c) in enumerate(zip(queued, small, longer, strict=True)):
        array = np.asarray(a)
        assert array.tobytes() == np.asarray(b).tobytes(), k
        assert array.tobytes() == np.asarray(c)[:7].tobytes(), k


GOLDEN_KEY = 1249914617651071676
GOLDEN_SPLIT = [8576511520805963401, 2364899547402808741]
GOLDEN_FOLD = 8378648765613223545
GOLDEN_BITS = [3685140159, 2393581307, 129403708]
GOLDEN_UNIFORM = ["0x1.791e6dba6c6bfp-1", "0x1.7e3ac755937d8p-4"]
GOLDEN_NORMAL = ["0x1.4019a6a6fb42cp-1", "0x1.8e5d3c2ce0143p+0"]
GOLDEN_SINGLE = ["-0x1.7789de0000000p-3", "0x1.0a6b640000000p+1"]
GOLDEN_PERMUTATION = [1, 5, 3, 0, 4, 2]
GOLDEN_INTEGERS = [99, 3, 96, 76, 90]
GOLDEN_LOG_GAMMA = ["0x1.f136129fe2e30p-5", "0x1.ee5227f5a5fb0p-4"]
GOLDEN_POISSON = [2, 2, 43, 4976]


def test_numbers_never_change() -> None:
    """These are the numbers of key 0 on every machine; programs rely on them."""
    key = random.key(0)
    assert int(key) == GOLDEN_KEY
    assert np.asarray(random.split(key, 2)).tolist() == GOLDEN_SPLIT
    assert int(random.fold_in(key, 1)) == GOLDEN_FOLD
    assert np.asarray(random.bits(key, 3)).tolist() == GOLDEN_BITS
    assert [x.hex() for x in np.asarray(random.uniform(key, 2)).tolist()] == GOLDEN_UNIFORM
    assert [x.hex() for x in np.asarray(random.normal(key, 2)).tolist()] == GOLDEN_NORMAL
    single = np.asarray(random.normal(key, 2, xp.float32)).tolist()
    assert [x.hex() for x in single] == GOLDEN_SINGLE
    assert np.asarray(random.permutation(key, 6)).tolist() == GOLDEN_PERMUTATION
    assert np.asarray(random.randint(key, 5, 0, 100)).tolist() == GOLDEN_INTEGERS
    gamma = np.asarray(random.loggamma(key, xp.asarray([0.5, 3.0]))).tolist()
    assert [x.hex() for x in gamma] == GOLDEN_LOG_GAMMA
    assert (
        np.asarray(random.poisson(key, xp.asarray([1.0, 5, 50, 5000]))).tolist() == GOLDEN_POISSON
    )


@pytest.mark.parametrize("small", [0, 1 << 30])
def test_gamma_numbers_of_shape_zero(small: int) -> None:
    """The logarithm is minus infinity for 0 of either sign, queued and computed at once."""
    for dtype in (xp.float32, xp.float64):
        with xp.config(small=small, compile_at=0):
            zeros = xp.asarray([0.0, -0.0], dtype=dtype)
            assert np.asarray(random.loggamma(KEY, zeros)).tolist() == [-np.inf, -np.inf]
            assert np.asarray(random.gamma(KEY, zeros)).tolist() == [0.0, 0.0]
            assert float(random.loggamma(KEY, -0.0, dtype=dtype)) == -np.inf


def test_keys_and_uniform_numbers_are_those_of_graphs() -> None:
    """Keys, uniform numbers, integers and permutations equal those of `passkit.ops`."""
    k = pk.var("key", (), "int64")
    graph = pk.Graph(
        [
            pk.ops.split_key(k, num=3),
            pk.ops.fold_in(k, 9),
            pk.ops.random_uniform(k, shape=(4,)),
            pk.ops.random_integers(k, shape=(4,), low=2, high=50),
            pk.ops.random_permutation(k, num=9),
            pk.ops.random_key(pk.ops.cast(k, "int32")),
        ]
    )
    key = random.key(4)
    results = pk.interpret(graph, {"key": np.asarray(key)})
    mine = [
        random.split(key, 3),
        random.fold_in(key, 9),
        random.uniform(key, 4, xp.float32),
        random.randint(key, 4, 2, 50),
        random.permutation(key, 9),
        random.key(xp.astype(key, xp.int32)),
    ]
    for result, reference in zip(mine, results, strict=True):
        assert np.asarray(result).tolist() == np.asarray(reference).tolist()


@pytest.mark.usefixtures("xp_queue")
def test_noise_fuses_with_what_reads_it() -> None:
    """Noise that is added to an array is one kernel, which reads the array and the key only."""
    x = xp.asarray(np.ones((64, 100), np.float32))
    key = random.key(1)
    xp.eval(key)
    with xp.inspect() as runs:
        y = xp.exp(x + random.normal(key, x.shape, xp.float32) * 0.1)
        xp.eval(y)
    assert len(runs) == 1 and len(runs[0].kernels) == 1
    assert runs[0].bytes_read <= x.nbytes + 64 and runs[0].bytes_written == y.nbytes


@pytest.mark.usefixtures("xp_queue")
def test_steps_with_different_keys_run_one_plan() -> None:
    """A hundred steps of different keys explore one plan."""
    x = xp.asarray(np.zeros((30, 20), np.float32))
    keys = [xp.asarray(np.int64(k)) for k in range(100)]
    xp.eval(x + random.uniform(keys[0], x.shape, xp.float32))
    xp.reset_stats()
    sums = []
    for key in keys:
        y = x + random.uniform(key, x.shape, xp.float32)
        xp.eval(y)
        sums.append(float(np.asarray(y).sum()))
    assert xp.stats()["explorations"] == 0
    assert len(set(sums)) == 100


def test_vectors_choices_and_permutations() -> None:
    """Vectors have their covariance; draws without replacement differ; slices move together."""
    key = random.key(6)
    cov = np.array([[2.0, 0.6], [0.6, 1.0]])
    with xp.config(small=1 << 30):
        vectors = np.asarray(
            random.multivariate_normal(key, xp.asarray([1.0, -1.0]), xp.asarray(cov), (20000,))
        )
    assert np.abs(np.cov(vectors.T) - cov).max() < 0.06
    assert np.abs(vectors.mean(0) - [1, -1]).max() < 0.05
    assert sorted(np.asarray(random.choice(key, 9, (3, 3), replace=False)).ravel()) == [*range(9)]
    weighted = random.choice(key, 4, (3,), replace=False, p=xp.asarray([0.0, 0.3, 0.3, 0.4]))
    assert sorted(np.asarray(weighted).tolist()) == [1, 2, 3]
    x = xp.reshape(xp.arange(12), (3, 4))
    columns = np.asarray(random.permutation(key, x, axis=1))
    assert sorted(columns[0].tolist()) == [0, 1, 2, 3]
    assert (columns[1] - columns[0] == 4).all()
    picked = random.choice(key, x, (5, 2), axis=1)
    assert picked.shape == (3, 5, 2)
    assert np.isin(np.asarray(picked)[2], [8, 9, 10, 11]).all()
    classes = random.categorical(key, xp.asarray(np.eye(3, 5) * 1e3), axis=0)
    assert classes.shape == (5,) and np.asarray(classes)[:3].tolist() == [0, 1, 2]
    more = random.categorical(key, xp.asarray(np.eye(3) * 1e3), axis=0, shape=(4, 3))
    assert np.asarray(more).tolist() == [[0, 1, 2]] * 4
    limits = random.randint(key, None, xp.asarray([0, 10]), xp.asarray([1, 11]), xp.int8)
    assert limits.dtype == xp.int8 and np.asarray(limits).tolist() == [0, 10]
    assert int(random.randint(key, (), 2**64 - 1, 2**64, xp.uint64)) == 2**64 - 1
    assert random.normal(key, (0, 3)).shape == (0, 3)


METHODS: dict[str, Callable[[Any], Any]] = {
    "random": lambda g: g.random(3),
    "uniform": lambda g: g.uniform(-1, 1, 3),
    "integers": lambda g: g.integers(5, size=3),
    "integers to the end": lambda g: g.integers(5, 6, 3, endpoint=True),
    "standard_normal": lambda g: g.standard_normal(3),
    "normal": lambda g: g.normal(1.0, 2.0, 3),
    "lognormal": lambda g: g.lognormal(size=3),
    "multivariate_normal": lambda g: g.multivariate_normal(np.zeros(3), np.eye(3)),
    "standard_exponential": lambda g: g.standard_exponential(3),
    "exponential": lambda g: g.exponential(2.0, 3),
    "standard_cauchy": lambda g: g.standard_cauchy(3),
    "gumbel": lambda g: g.gumbel(size=3),
    "laplace": lambda g: g.laplace(size=3),
    "logistic": lambda g: g.logistic(size=3),
    "rayleigh": lambda g: g.rayleigh(size=3),
    "weibull": lambda g: g.weibull(2.0, 3),
    "pareto": lambda g: g.pareto(2.0, 3),
    "geometric": lambda g: g.geometric(0.5, 3),
    "standard_gamma": lambda g: g.standard_gamma(2.0, 3),
    "gamma": lambda g: g.gamma(np.array([1.0, 2, 3]), 2.0),
    "chisquare": lambda g: g.chisquare(2.0, 3),
    "standard_t": lambda g: g.standard_t(5.0, 3),
    "beta": lambda g: g.beta(1.0, np.array([1.0, 2, 3])),
    "dirichlet": lambda g: g.dirichlet([1.0, 2, 3]),
    "poisson": lambda g: g.poisson(4.0, 3),
    "choice": lambda g: g.choice(5, 3),
    "permutation": lambda g: g.permutation(3),
}


@pytest.mark.parametrize("name", METHODS)
def test_generators_have_the_methods_of_numpy(name: str) -> None:
    """Each method gives NumPy's shape and dtype, other numbers each time, and the same by seed."""
    draw = METHODS[name]
    first, second = random.default_rng(5), random.default_rng(5)
    x = draw(first)
    reference = draw(np.random.default_rng(0))
    assert (x.shape, x.dtype) == (reference.shape, reference.dtype)
    assert np.array_equal(np.asarray(x), np.asarray(draw(second)))
    if x.dtype == xp.float64:
        assert not np.array_equal(np.asarray(x), np.asarray(draw(first)))


def test_generators_shuffle_spawn_and_serve_threads() -> None:
    """shuffle rebinds the array; children are independent; no two threads get one key."""
    rng = random.default_rng(8)
    x = xp.arange(20)
    y = x + 0
    rng.shuffle(x)
    assert sorted(np.asarray(x).tolist()) == np.asarray(y).tolist() != np.asarray(x).tolist()
    assert random.default_rng(rng) is rng and "draws=1" in repr(rng)
    children = [float(g.random()) for g in rng.spawn(3)]
    assert len(set(children)) == 3
    assert float(random.default_rng().random()) != float(random.default_rng().random())
    keys: list[int] = []
    threads = [
        threading.Thread(target=lambda: keys.extend(int(rng.key()) for _ in range(50)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(keys)) == 200


KEY = random.key(0)
NAN = float("nan")

REFUSALS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: random.uniform(3), ArgumentError, r"uniform needs a key, got 3"),
    (lambda: random.normal(xp.asarray(1.0)), DTypeError, r"key of int64, got float64"),
    (lambda: random.bits(random.split(KEY)), ShapeError, r"0-dimensional array, got shape \(2,\)"),
    (lambda: random.key(1.5), ArgumentError, r"key: seed must be .* got 1\.5"),
    (lambda: random.key(xp.asarray(1.5)), DTypeError, r"seed must be integers, got float64"),
    (lambda: random.fold_in(KEY, 2**64), FeedError, r"at most 64 bits, got 18446744073709551616"),
    (lambda: random.normal(KEY, 3, xp.int32), DTypeError, r"normal draws floats, got dtype int32"),
    (lambda: random.normal(KEY, (-1,)), ShapeError, r"got shape \(-1,\)"),
    (
        lambda: random.bits(KEY, 3, xp.float32),
        DTypeError,
        r"bits draws integers, got dtype float32",
    ),
    (lambda: random.uniform(KEY, 3, None, "a"), ArgumentError, r"minval must be .* got 'a'"),
    (lambda: random.uniform(KEY, 3, None, 2, 1), FeedError, r"minval < maxval, got 2 and 1"),
    (
        lambda: random.uniform(KEY, 3, None, xp.asarray([1j])),
        DTypeError,
        r"minval must be real, got complex128",
    ),
    (
        lambda: random.uniform(KEY, 3, None, xp.zeros((2,))),
        ShapeError,
        r"parameters of shape \(2,\) do not broadcast to \(3,\)",
    ),
    (
        lambda: random.uniform(KEY, (), None, xp.zeros((2,))),
        ShapeError,
        r"parameters of shape \(2,\) do not broadcast to \(\)",
    ),
    (lambda: random.randint(KEY, 3, 0.5, 4), ArgumentError, r"minval must be .* got 0\.5"),
    (
        lambda: random.randint(KEY, 3, 0, xp.asarray([2.0])),
        DTypeError,
        r"maxval must be integers, got float64",
    ),
    (lambda: random.randint(KEY, 3, 0, 300, xp.uint8), FeedError, r"0 to 256 for uint8, got 300"),
    (lambda: random.randint(KEY, 3, xp.asarray([0]), 129, xp.int8), FeedError, r"int8, got 129"),
    (lambda: random.randint(KEY, 3, 5, 2), FeedError, r"minval < maxval, got 5 and 2"),
    (lambda: random.randint(KEY, 3, -1, 2**63), FeedError, r"got 9223372036854775809"),
    (lambda: random.bernoulli(KEY, 1.5), FeedError, r"p must be from 0 to 1, got 1\.5"),
    (lambda: random.geometric(KEY, -0.5), FeedError, r"p must be from 0 to 1, got -0\.5"),
    (lambda: random.gamma(KEY, -2.0), FeedError, r"a must be from 0 to inf, got -2\.0"),
    (lambda: random.chisquare(KEY, -1), FeedError, r"df must be from 0 to inf, got -1"),
    (lambda: random.poisson(KEY, 1e15), FeedError, r"lam must be .* got 1000000000000000\.0"),
    (lambda: random.truncated_normal(KEY, 2, 1), FeedError, r"lower < upper, got 2 and 1"),
    (
        lambda: random.multivariate_normal(KEY, xp.zeros(3), xp.eye(2)),
        ShapeError,
        r"got shapes \(3,\) and \(2, 2\)",
    ),
    (lambda: random.dirichlet(KEY, 2.0), ShapeError, r"alpha of shape \(…, n\)"),
    (
        lambda: random.categorical(KEY, xp.zeros((2, 3)), shape=(3,)),
        ShapeError,
        r"categorical: parameters of shape \(2,\) do not broadcast to \(3,\)",
    ),
    (
        lambda: random.categorical(KEY, xp.zeros((2, 3)), shape=()),
        ShapeError,
        r"categorical: parameters of shape \(2,\) do not broadcast to \(\)",
    ),
    (lambda: random.permutation(KEY, xp.zeros(3), axis=1), AxisError, r"axis 1 is out of range"),
    (lambda: random.choice(KEY, 0, 2), FeedError, r"an element to draw, got 0"),
    (lambda: random.choice(KEY, 3, 4, replace=False), FeedError, r"at most 3 of 3 .* shape \(4,\)"),
    (
        lambda: random.choice(KEY, 3, p=xp.zeros(2)),
        ShapeError,
        r"p of shape \(3,\), got \(2,\)",
    ),
    (lambda: random.default_rng(1).shuffle([1, 2]), ArgumentError, r"got \[1, 2\]"),
    (lambda: random.Generator(7), ArgumentError, r"Generator needs a key, got 7"),
    (lambda: random.default_rng("a"), ArgumentError, r"seed must be .* got 'a'"),
    (lambda: random.geometric(KEY, 0), FeedError, r"geometric: p must be above 0, got 0"),
    (lambda: random.choice(KEY, 0, 0), FeedError, r"an element to draw, got 0"),
    (lambda: random.gamma(KEY, 10**400), DTypeError, r"gamma: a is too large for a float: 1000"),
    (lambda: random.normal(KEY, 10**400), ShapeError, r"normal: an array has at most 5764607523"),
    (
        lambda: random.weibull_min(KEY, 1.0, 0),
        FeedError,
        r"weibull_min needs a concentration above 0, got 0",
    ),
    (lambda: random.weibull_min(KEY, 1.0, np.array(["a"])), DTypeError, r"'str32' is not an"),
    (lambda: random.pareto(KEY, "a"), ArgumentError, r"pareto: b must be a real .* got 'a'"),
    (lambda: random.normal(KEY, 3, None, 1j), ArgumentError, r"normal: loc must be .* got 1j"),
    (
        lambda: random.normal(KEY, 3, None, 0, xp.asarray(1j)),
        DTypeError,
        r"normal: scale must be real, got complex128",
    ),
    (lambda: random.default_rng(1).integers(0, "a", endpoint=True), ArgumentError, r"got 'a'"),
    (lambda: random.default_rng(1).spawn((2, 2)), ArgumentError, r"must be an int, got \(2, 2\)"),
    (lambda: random.default_rng(1).dirichlet(["a"]), ArgumentError, r"alpha must be .* got \['a'"),
    (lambda: random.chisquare(KEY, 10**400), DTypeError, r"chisquare: df is too large .* 1000"),
    (lambda: random.t(KEY, 10**400), DTypeError, r"t: df is too large for a float: 1000"),
    (lambda: random.truncated_normal(KEY, 10**400), DTypeError, r"lower is too large .* 1000"),
    (lambda: random.truncated_normal(KEY, NAN, 1), FeedError, r"lower < upper, got nan and 1"),
    (lambda: random.uniform(KEY, 3, None, NAN, 1), FeedError, r"minval < maxval, got nan and 1"),
    (lambda: random.uniform(KEY, 3, None, np.float32(2), 1), FeedError, r"got 2\.0 and 1"),
    (lambda: random.bernoulli(KEY, np.float32(2)), FeedError, r"p must be .*float32\(2\.0\)"),
    (lambda: random.beta(KEY, 1, "a"), ArgumentError, r"beta: b must be .* got 'a'"),
    (
        lambda: random.choice(KEY, 2, 2, False, xp.asarray([1j, 1])),
        DTypeError,
        r"choice: p must be real, got complex128",
    ),
    (
        lambda: random.multivariate_normal(KEY, xp.zeros(2), xp.eye(2, dtype=xp.complex64)),
        DTypeError,
        r"multivariate_normal: cov must be real, got complex64",
    ),
    (
        lambda: random.multivariate_normal(KEY, xp.zeros((3, 2)), xp.eye(2), 1),
        ShapeError,
        r"multivariate_normal: parameters of shape \(3,\) do not broadcast to \(1,\)",
    ),
    (
        lambda: random.default_rng(1).multivariate_normal(xp.zeros((3, 2)), xp.eye(2), ()),
        ShapeError,
        r"parameters of shape \(3,\) do not broadcast to \(\)",
    ),
    (
        lambda: random.default_rng(1).normal(xp.zeros(3), 1, 1),
        ShapeError,
        r"normal: parameters of shape \(3,\) do not broadcast to \(1,\)",
    ),
    (
        lambda: random.default_rng(1).gamma(1, xp.ones(3), (2, 1)),
        ShapeError,
        r"gamma: parameters of shape \(3,\) do not broadcast to \(2, 1\)",
    ),
]


def test_results_have_the_dtype_that_is_asked_for() -> None:
    """Parameters of a wider dtype do not widen draws of t and of the truncated normal."""
    wide = xp.asarray([1.0, 2.0])
    assert random.t(KEY, wide, dtype=xp.float32).dtype == xp.float32
    assert random.truncated_normal(KEY, -wide, wide, dtype=xp.float32).dtype == xp.float32


def test_limits_of_narrow_dtypes_are_included() -> None:
    """The integer after the largest of a dtype is no overflow."""
    largest = xp.asarray([127], dtype=xp.int8)
    numbers = random.default_rng(1).integers(126, largest, 64, xp.int8, endpoint=True)
    assert set(numbers.numpy().tolist()) == {126, 127}


def test_choices_of_probability_0_are_in_range() -> None:
    """If all probabilities are 0, the last element is drawn."""
    assert random.choice(KEY, xp.asarray([4, 5]), 3, p=xp.zeros(2)).numpy().tolist() == [5, 5, 5]


def test_numpy_integers_stand_for_the_integers_below_them() -> None:
    """`choice` and `permutation` take NumPy's integers as Python's."""
    assert random.choice(KEY, np.int64(4)).shape == ()
    assert sorted(random.permutation(KEY, np.int32(4)).numpy().tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("number", range(len(REFUSALS)))
def test_wrong_arguments_are_refused(number: int) -> None:
    """Messages name the function and what was given."""
    call, error, text = REFUSALS[number]
    with pytest.raises(error, match=text):
        call()
