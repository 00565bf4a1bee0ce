"""Methods of entries and NumPy's functions on them: NumPy's results, dtypes and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DTypeError, GraphError, ShapeError

rng = np.random.default_rng(5)
FEEDS = {
    "x": rng.standard_normal((3, 4), dtype=np.float32),
    "i": rng.integers(-5, 9, (3, 4)).astype(np.int32),
    "u": rng.integers(0, 9, (2, 3), dtype=np.uint8),
    "b": rng.random((3, 4)) > 0.5,
    "d": rng.standard_normal((2, 1, 4)),
}

METHODS: dict[str, Callable[[Any], list[Any]]] = {
    "reductions": lambda a: [
        a.sum(),
        a.sum(0),
        a.sum(axis=-1, keepdims=True),
        a.prod(axis=1),
        a.mean(),
        a.mean(-1),
        a.max(),
        a.min(axis=0),
        a.any(),
        a.all(axis=1),
        a.argmax(),
        a.argmin(-1),
    ],
    "dtypes": lambda a: [
        a.sum(dtype="float64"),
        a.mean(0, np.float32),
        a.astype(bool),
        a.astype("int8"),
        a.astype(np.float64),
        a.cumsum(0),
        a.cumprod(),
        a.cumsum(dtype=np.float64),
    ],
    "shapes": lambda a: [
        a.T,
        a.mT,
        a.reshape(-1),
        a.reshape((a.shape[-1], -1)),
        a.transpose(),
        a.transpose(None),
        a.transpose(*reversed(range(a.ndim))),
        a.transpose(tuple(range(a.ndim))),
        a.squeeze(),
        a.flatten(),
        a.ravel(),
        a.swapaxes(0, -1),
        a.repeat(2),
        a.repeat(2, axis=0),
        a.take([0, 2]),
        a.take(1),
        a.take(-1, axis=0),
        a.take([1, 0], axis=-1),
    ],
    "functions": lambda a: [
        np.sum(a, axis=0),
        np.mean(a, keepdims=True),
        np.max(a),
        np.any(a),
        np.reshape(a, (-1, 1)),
        np.transpose(a),
        np.expand_dims(a, 0),
        np.moveaxis(a, 0, -1),
        np.broadcast_to(a, (2, *a.shape)),
        np.flip(a, 0),
        np.roll(a, 1),
        np.tile(a, 2),
        np.concatenate([a, np.flip(a)], axis=-1),
        np.stack([a, np.ones(a.shape)], 1),
        np.where(a, 2, a),
        np.zeros_like(a),
        np.ones_like(a),
        np.tril(a),
        np.triu(a, 1),
    ],
    "ufuncs": lambda a: [
        np.exp(a),
        np.cos(a),
        np.arctan2(a, 2),
        np.maximum(a, 1),
        np.equal(a, a),
        np.logical_and(a, True),
        np.float32(2) * a,
        np.ones(a.shape[-1]) + a,
        np.divide(a, 2),
        np.cosh(a),
        np.degrees(a),
    ],
}
NUMBERS: dict[str, Callable[[Any], list[Any]]] = {
    "numbers": lambda a: [
        a.var(),
        a.var(0, ddof=1),
        a.std(axis=-1, keepdims=True),
        a.clip(0, 2),
        a.clip(max=2),
        a.clip(),
        a.round(),
        a.dot(a.T) if a.ndim < 3 else a,
        a.conj(),
        np.matmul(a, a.swapaxes(-1, -2)),
        np.matmul(a, a[(0,) * (a.ndim - 1)]),
        np.add(a, 1),
        np.remainder(a, 3),
        np.power(a, 2),
        np.floor(a),
    ],
    "decimals": lambda a: [a.round(1), np.round(a * 100, -1)],
}


@pytest.mark.parametrize("family", [*METHODS, *NUMBERS])
@pytest.mark.parametrize("name", FEEDS)
def test_results_are_those_of_numpy(family: str, name: str) -> None:
    """The same lines give the same values, dtypes and shapes for entries and for arrays."""
    if name == "b" and family in NUMBERS:
        pytest.skip("booleans are no numbers")
    array = FEEDS[name]
    lines = METHODS.get(family) or NUMBERS[family]
    x = pk.var("v", array.shape, array.dtype)

    entries, expected = lines(x), lines(array)
    results = pk.interpret(pk.Graph(entries), {"v": array})

    for k, (entry, result, value) in enumerate(zip(entries, results, expected, strict=True)):
        assert (entry.shape, entry.dtype.numpy) == (value.shape, value.dtype), (k, entry, value)
        np.testing.assert_allclose(result, value, rtol=2e-5, atol=1e-6, err_msg=str(k))


def test_sizes_may_be_unknown() -> None:
    """Sizes are expressions of the unknown ones; NumPy's functions of shapes return them."""
    n = pk.Size.symbol("n")
    x = pk.var("x", ("n", 3))

    assert x.size == 3 * n and np.size(x) == 3 * n
    assert np.shape(x) == (n, 3) and np.ndim(x) == 2
    assert x.reshape(-1).shape == (3 * n,) and x.T.shape == (3, n)
    with pytest.raises(ShapeError, match="the rank of y is not known"):
        _ = pk.var("y").size


def test_dtypes_may_be_unknown_or_foreign_to_numpy() -> None:
    """Operators decide where a dtype is not known; bfloat16 stays bfloat16."""
    unknown, narrow = pk.var("x", (3,), None), pk.var("y", (3,), "bfloat16")

    assert np.exp(unknown).dtype is None and unknown.sum().dtype is None
    assert np.concatenate([unknown, unknown]).shape == (6,)
    assert np.exp(narrow).dtype.name == (np.maximum(narrow, 0.5) * narrow).dtype.name == "bfloat16"
    x, i = pk.var("a", (3,)), pk.var("b", (3,), "int32")
    assert np.add(narrow, x).dtype.name == np.concatenate([narrow, x]).dtype.name == "float32"
    assert np.concatenate([narrow, i]).dtype.name == (narrow + i).dtype.name


def test_gradients_pass_through_methods() -> None:
    """Methods build operators, so that gradients go through them."""
    x = pk.var("x", (3,))
    gradient = pk.grad(lambda x: np.sum(np.exp(x)) + x.var() * 3)(x)
    (value,) = pk.interpret(pk.Graph([gradient]), {"x": np.array([1, 2, 3], np.float32)})

    np.testing.assert_allclose(value, np.exp([1, 2, 3]) + np.array([-2, 0, 2]), rtol=1e-6)


def test_functions_without_an_operator_are_refused() -> None:
    """The error names the operator to call, if there is one."""
    x = pk.var("x", (3, 3))
    refusals: dict[str, Callable[[], Any]] = {
        r"np.linalg.inv .*; call pk.ops.inv$": lambda: np.linalg.inv(x),
        r"np.sort .*; call pk.ops.sort$": lambda: np.sort(x),
        r"np.fft.fft .*docs/operators.md": lambda: np.fft.fft(x),
        r"np.add.reduce .*; call pk.ops.reduce_sum$": lambda: np.add.reduce(x),
        r"np.exp .*: it takes no argument 'where' here; call pk.ops.exp": lambda: np.exp(
            x, where=1
        ),
        r"np.sum .* keyword argument 'initial'; call pk.ops.": lambda: np.sum(x, initial=3),
        r"np.frexp .*docs/operators.md": lambda: np.frexp(x),
    }
    for message, call in refusals.items():
        with pytest.raises(GraphError, match=message):
            call()
    with pytest.raises(DTypeError, match="'nonsense' is not an element type"):
        x.astype("nonsense")


def test_numbers_of_decimals_beyond_the_range_of_floats() -> None:
    """Above 308 decimals nothing is rounded, below -308 everything."""
    x, i = pk.var("x", (2,)), pk.var("i", (2,), "int8")
    entries = [x.round(400), x.round(-400), i.round(400), i.round(-400)]

    results = pk.interpret(
        pk.Graph(entries), {"x": np.float32([1.25, -3e38]), "i": np.int8([5, -128])}
    )

    assert [r.tolist() for r in results] == [
        [1.25, np.float32(-3e38)],
        [0, 0],
        [5, -128],
        [0, 0],
    ]
    with pytest.raises(DTypeError, match="rint needs .*, got complex64"):
        pk.var("c", (2,), "complex64").round(400)


def test_limits_of_bfloat16_may_be_integers_beyond_64_bits() -> None:
    """A limit is rounded to the dtype, and refused beyond its range."""
    x = pk.var("x", (2,), "bfloat16")

    (clipped,) = pk.interpret(pk.Graph([x.clip(2**70)]), {"x": [1.0, 2e30]})

    assert clipped.tolist() == [2.0**70, float(np.array(2e30, clipped.dtype))]
    with pytest.raises(DTypeError, match="10000.* does not fit bfloat16; cast"):
        x.clip(10**400)


def test_axes_in_an_array_are_refused() -> None:
    """The order of a transpose is given as ints, a tuple or a list."""
    with pytest.raises(pk.ShapeError, match=r"needs an int as axes, got array\(\[1, 0\]\)"):
        pk.var("x", (2, 3)).transpose(np.array([1, 0]))


def test_operands_that_numpy_does_not_take_are_refused() -> None:
    """Dtypes without a loop of NumPy, numbers that do not fit and odd decimals are refused."""
    x, i = pk.var("x", (3,)), pk.var("i", (3,), "int32")
    with pytest.raises(DTypeError, match="np.invert does not take float32; x.astype"):
        np.invert(x)
    with pytest.raises(DTypeError, match="np.left_shift does not take float32 and int;"):
        np.left_shift(x, 1)
    with pytest.raises(DTypeError, match="1099511627776 does not fit int32"):
        i.clip(0, 2**40)
    with pytest.raises(pk.errors.ArgumentError, match="round: decimals must be an int, got 1.5"):
        x.round(1.5)
