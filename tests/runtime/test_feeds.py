"""Feeds of interpreted and of native programs: matches, conversions, and errors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import passkit as pk
from passkit.errors import FeedError
from passkit.program.planning import with_shapes
from passkit.runtime.feeds import bind_sizes, check_feed, check_feeds
from passkit.runtime.native.feeds import FeedChecker, InputSpec, spec_array
from passkit.values import dtype as dt

n, m = pk.Size.symbol("n"), pk.Size.symbol("x.0")
SHAPE = (m, 784)


def test_matching_arrays_are_not_copied() -> None:
    """An array of the right dtype and shape is used as it is, strided or not."""
    x = np.zeros((16, 784), np.float32)[::2]

    assert check_feed("x", dt.float32, SHAPE, x) is x


def test_foreign_byte_order_is_converted() -> None:
    """Arrays of the other byte order are converted."""
    actual = check_feed("x", dt.float32, None, np.array([1, 2], ">f4"))

    assert actual.dtype == np.float32 and actual.dtype.isnative
    assert actual.tolist() == [1, 2]


@pytest.mark.parametrize("value", [3, 2.5, [1, 2], [[True]], [], np.float32(1)])
def test_python_numbers_are_weak(value: Any) -> None:
    """Numbers and lists take the input's dtype where no information is lost."""
    assert check_feed("x", dt.float32, None, value).dtype == np.float32


BAD: list[tuple[Any, Any, Any, str]] = [
    (
        dt.float32,
        SHAPE,
        np.zeros((8, 784)),
        r"input 'x' needs float32\[\?, 784\], got float64\[8, 784\]; x.astype\('float32'\)",
    ),
    (
        dt.float32,
        SHAPE,
        np.zeros(8, np.float32),
        r"needs float32\[\?, 784\], got float32\[8\]; reshape it to rank 2",
    ),
    (
        dt.float32,
        (n, 4),
        np.zeros((8, 5), np.float32),
        r"needs float32\[n, 4\], got float32\[8, 5\]; axis 1 must be 4 long",
    ),
    (dt.int32, (), 2.5, r"needs int32\[\], got float64\[\]; x.astype\('int32'\)"),
    (dt.uint8, (), 300, r"needs uint8\[\], got int64\[\]"),
    (dt.bool_, (), 1, r"needs bool\[\], got int64\[\]"),
    (dt.float32, None, np.zeros(2), r"needs float32\[…\], got float64\[2\]"),
    (dt.float32, (), "text", r"input 'x' needs float32\[\], got elements of <U4"),
    (dt.float32, (), None, r"input 'x' needs float32\[\], got elements of object"),
]


@pytest.mark.parametrize("dtype, shape, value, message", BAD)
def test_mismatching_feeds_raise(dtype: Any, shape: Any, value: Any, message: str) -> None:
    """The message says what is needed, what was passed, and how to convert it."""
    with pytest.raises(FeedError, match=message):
        check_feed("x", dtype, shape, value)


INPUTS: list[tuple[str, Any, Any]] = [("image", dt.float32, (2,)), ("label", dt.int32, ())]


@pytest.mark.parametrize(
    "feeds, message",
    [
        ({"imag": 0, "label": 1}, "there is no input 'imag'; did you mean 'image'"),
        ({"image": [1, 2]}, r"input 'label' is missing: it needs int32\[\]; got 'image'"),
        ({}, r"input 'image' is missing: it needs float32\[2\]; got no feeds"),
        ([1], "feeds must map names to arrays, got list"),
    ],
)
def test_missing_and_unknown_feeds_are_named(feeds: Any, message: str) -> None:
    """A missing or unknown feed is named, with the most similar input."""
    with pytest.raises(FeedError, match=message):
        check_feeds(INPUTS, feeds)


def test_a_graph_without_inputs() -> None:
    """A graph without inputs needs no feeds and rejects any."""
    with pytest.raises(FeedError, match="there is no input 'x'; the graph has no inputs"):
        check_feeds([], {"x": 1})


def test_sizes_have_the_values_of_the_first_input() -> None:
    """Every symbol has the value of the first input with it; expressions are checked."""
    assert bind_sizes([("x", (n, 4), (3, 4)), ("y", (n * 2,), (6,)), ("z", None, (1,))]) == {"n": 3}


def test_sizes_are_solved_from_expressions() -> None:
    """A size that is no extent by itself is solved from an expression, if one determines it."""
    m = pk.Size.symbol("m")
    assert bind_sizes([("x", (n + m, n // 2, n * n), (7, 4, 9))]) == {}
    assert bind_sizes([("x", (n * m,), (0,)), ("y", (n,), (0,))]) == {"n": 0}
    assert bind_sizes([("x", (n + m, 2 * m), (7, 4))]) == {"m": 2, "n": 5}
    assert bind_sizes([("x", (n // 2,), (4,))], known_sizes={"n": 9}) == {}

    x = pk.var("x", (7, 2 * m))
    graph = pk.Graph([pk.ops.reshape(x, shape=(7, 2 * m)), pk.ops.reshape(x, shape=(14, m))])
    feeds = {"x": np.arange(28, dtype=np.float32).reshape(7, 4)}
    for actual, expected in zip(pk.compile(graph)(feeds), pk.interpret(graph, feeds), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("size", [n + m, n // 2, n * n, n // (m + 1)])
def test_undetermined_sizes_raise(size: pk.Size) -> None:
    """Executables and the interpreter reject inputs that leave a size open."""
    graph = pk.Graph([-pk.var("x", (size,))])
    for run in (pk.compile(graph), lambda x: pk.interpret(graph, {"x": x})):
        with pytest.raises(FeedError, match="has 4 at axis 0, .* does not determine n( and x.0)?,"):
            run(x=np.ones(4, np.float32))


def test_bind_sizes_solves_only_determined_sizes() -> None:
    """A sum of two sizes determines neither, until another input has one of them."""
    m = pk.Size.symbol("m")
    graph = pk.Graph([pk.ops.zeros((n, 2)) + pk.var("y", (n, 2)), -pk.var("x", (n + m,))])

    assert bind_sizes([("x", (n + m,), (7,)), ("y", (n, 2), (3, 2))]) == {"n": 3, "m": 4}
    assert [e.shape for e in with_shapes(graph, {"x": (7,)}).outputs] == [(n, 2), (7,)]
    assert [e.shape for e in with_shapes(graph, {"y": (3, 2)}).outputs] == [(3, 2), (n + m,)]


@pytest.mark.parametrize(
    "shapes, message",
    [
        ([("x", (n * 2,), (7,))], r"input 'x' needs 6 at axis 0, where .* 2\*n stands, got 7"),
        ([("x", (5 - n,), (7,))], r"input 'x' needs 5 at axis 0, .* got 7"),
        (
            [("x", (n,), (3,)), ("y", (4, n), (4, 5))],
            "input 'y' needs 3 at axis 1, where the size n stands, as input 'x' has it; got 5",
        ),
        (
            [("x", (n,), (3,)), ("y", (n * 2,), (7,))],
            r"input 'y' needs 6 at axis 0, where the size 2\*n stands, got 7",
        ),
    ],
)
def test_inputs_that_disagree_about_a_size_raise(shapes: Any, message: str) -> None:
    """Two inputs that share a size must agree on it; both are named."""
    with pytest.raises(FeedError, match=message):
        bind_sizes(shapes)


# Feeds of native programs.

F32 = dt.float32.numpy
X = InputSpec("x", F32, (None, 784))


def repaired(feeds: Any = None, **named: Any) -> tuple[Any, ...]:
    """Feeds of two inputs x and mask, repaired."""
    return FeedChecker((X, InputSpec("mask", np.dtype(bool), ()))).repair(feeds, named)


def test_types_of_native_inputs_are_printed_as_in_messages() -> None:
    """An unknown size is a question mark, a named one its name."""
    assert str(X) == "float32[?, 784]"
    assert str(InputSpec("s", F32, ("n", 3))) == "float32[n, 3]"


def test_wrong_native_arrays_raise_with_a_conversion() -> None:
    """The message has the needed and the actual type and rank, and how to convert."""
    with pytest.raises(
        FeedError,
        match=r"^input 'x' needs float32\[\?, 784\], got float64\[8, 784\]; "
        r"x\.astype\('float32'\)$",
    ):
        spec_array(X, np.zeros((8, 784)))
    with pytest.raises(FeedError, match=r"got float32\[784\]; reshape it to 2 dimensions"):
        spec_array(X, np.zeros(784, "f4"))
    with pytest.raises(FeedError, match=r"'a/b' .* got a str.*; pass an array of numbers"):
        spec_array(InputSpec("a/b", F32, ()), "text")
    with pytest.raises(FeedError, match=r"got float64\[\]"):
        spec_array(InputSpec("s", F32, ()), np.float64(1))


def test_feeds_that_do_not_match_the_names_raise() -> None:
    """Unknown, missing, repeated and unnamed feeds each have their own message."""
    x, mask = np.zeros((1, 784), "f4"), True
    with pytest.raises(FeedError, match="no input 'msk'; did you mean 'mask'"):
        repaired(x=x, msk=mask)
    with pytest.raises(FeedError, match=r"input 'mask' is missing; it needs bool\[\]"):
        repaired(x=x)
    with pytest.raises(FeedError, match="input 'x' is given twice"):
        repaired({"x": x, "mask": mask}, x=x)
    with pytest.raises(FeedError, match=r"needs 2 feeds \(x, mask\), got 1 in a list and 0"):
        repaired([x])
    with pytest.raises(FeedError, match=r"got float32\[1, 784\]; name it, as in x="):
        repaired(x)
    assert repaired([x, mask])[1].dtype == bool


def test_wrong_sizes_of_native_feeds_raise() -> None:
    """A size that differs from a number or from another input's is named."""
    feeds = FeedChecker((InputSpec("a", F32, ("n", 3)), InputSpec("b", F32, ("n",))))
    feeds.check_shapes(((7, 3), (7,)))
    with pytest.raises(FeedError, match=r"needs float32\[n, 3\], got float32\[7, 4\]; axis 1 must"):
        feeds.check_shapes(((7, 4), (7,)))
    with pytest.raises(FeedError, match=r"'b' needs float32\[n\], got float32\[8\]; n is 7 in 'a'"):
        feeds.check_shapes(((7, 3), (8,)))


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("float32", 3, 3.0),
        ("float32", 0.1, np.float32(0.1)),
        ("float32", True, 1.0),
        ("int32", 3, 3),
        ("int8", -128, -128),
        ("bool", False, False),
        ("complex64", 1j, 1j),
        ("float64", 2, 2.0),
        ("int64", 2**62, 2**62),
    ],
)
def test_native_programs_convert_python_numbers(dtype: str, value: Any, expected: Any) -> None:
    """Python numbers take the input's dtype, as in NumPy."""
    array = spec_array(InputSpec("s", np.dtype(dtype), ()), value)

    assert array.dtype == dtype and array.shape == () and array[()] == expected


def test_python_numbers_become_bfloat16() -> None:
    """Dtypes of other packages accept Python numbers, too."""
    spec = InputSpec("s", np.dtype(ml_dtypes.bfloat16), (2,))

    assert spec_array(spec, [1, 2.5]).tolist() == [1, 2.5]


def test_lossy_python_values_raise() -> None:
    """Floats for integers, integers out of range, ragged lists and other ranks are refused."""
    with pytest.raises(FeedError, match=r"needs int32\[\], got a float \(float64\[\]\)"):
        spec_array(InputSpec("k", np.dtype("int32"), ()), 1.5)
    with pytest.raises(FeedError, match=r"needs int8\[\], got a int that cannot be con.*300"):
        spec_array(InputSpec("k", np.dtype("int8"), ()), 300)
    with pytest.raises(FeedError, match=r"got a list that cannot be converted: .*inhomogeneous"):
        spec_array(X, [[1], [2, 3]])
    with pytest.raises(FeedError, match=r"needs bool\[\], got a int"):
        spec_array(InputSpec("k", np.dtype(bool), ()), 1)
    with pytest.raises(FeedError, match=r"got a list \(.*\[1\]\); reshape|got a list .*astype"):
        spec_array(X, [1.0])
