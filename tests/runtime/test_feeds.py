"""Feeds of interpreted and of native programs: matches, conversions, and errors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import passkit as pk
from passkit.errors import FeedError
from tests.planned import with_known_shapes

n, m = pk.Size.symbol("n"), pk.Size.symbol("m")
SHAPE = (None, 784)


def interpreted(dtype: str, shape: Any, value: Any) -> Any:
    """Return an input called "x" as the interpreter passes it on."""
    (result,) = pk.interpret(pk.Graph([pk.var("x", shape, dtype)]), {"x": value})
    return result


def test_matching_arrays_are_not_copied() -> None:
    """An array of the right dtype and shape is used as it is, strided or not."""
    operands: list[Any] = []

    def record(node: pk.Node, x: Any) -> Any:
        operands.append(x)
        return x

    op = pk.register_op("test_feeds_record", num_inputs=1).set_attr("FCompute", record)
    op.set_attr("FInferShape", lambda node, shape: shape)
    op.set_attr("FInferType", lambda node, dtype: dtype)
    x = np.zeros((16, 784), np.float32)[::2]
    pk.interpret(pk.Graph([op(pk.var("x", SHAPE))]), {"x": x})

    assert operands[0] is x


def test_foreign_byte_order_is_converted() -> None:
    """Arrays of the other byte order are converted."""
    actual = interpreted("float32", None, np.array([1, 2], ">f4"))

    assert actual.dtype == np.float32 and actual.dtype.isnative
    assert actual.tolist() == [1, 2]


@pytest.mark.parametrize("value", [3, 2.5, [1, 2], [[True]], [], np.float32(1)])
def test_python_numbers_are_weak(value: Any) -> None:
    """Numbers and lists take the input's dtype where no information is lost."""
    assert interpreted("float32", None, value).dtype == np.float32


@pytest.mark.parametrize("value", [[1, 2j], [True, 2.5], []])
def test_python_numbers_become_complex(value: Any) -> None:
    """Numbers of every kind take a complex dtype, in the interpreter and in native programs."""
    expected = np.array(value, np.complex64)
    for actual in (
        interpreted("complex64", None, value),
        *native(x=("complex64", (None,)))(x=value),
    ):
        assert actual.dtype == np.complex64 and actual.tolist() == expected.tolist()


class UnreadableArray:
    """An array of another library that refuses its conversion, as a tensor with a gradient does."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("use detach()")


def test_arrays_that_cannot_be_converted_raise() -> None:
    """The error of another library's array is in the message that names the input."""
    with pytest.raises(FeedError, match=r"input 'x' needs float32\[2\], got .*: use detach\(\); "):
        interpreted("float32", (2,), UnreadableArray())
    with pytest.raises(FeedError, match=r"'x' needs float32\[2\], got .*Unreadable.*: use detach"):
        native(x=("float32", (2,)))(x=UnreadableArray())


def test_integers_in_lists_of_arrays_do_not_wrap() -> None:
    """An integer that the input's dtype cannot hold raises, also as an array within a list."""
    with pytest.raises(FeedError, match=r"needs int8\[1\], got a list .*out of bounds for int8"):
        native(x=("int8", (1,)))(x=[np.array(300)])


BAD: list[tuple[str, Any, Any, str]] = [
    (
        "float32",
        SHAPE,
        np.zeros((8, 784)),
        r"input 'x' needs float32\[\?, 784\], got float64\[8, 784\]; x.astype\('float32'\)",
    ),
    (
        "float32",
        SHAPE,
        np.zeros(8, np.float32),
        r"needs float32\[\?, 784\], got float32\[8\]; reshape it to rank 2",
    ),
    (
        "float32",
        ("n", 4),
        np.zeros((8, 5), np.float32),
        r"needs float32\[n, 4\], got float32\[8, 5\]; axis 1 must be 4 long",
    ),
    ("int32", (), 2.5, r"needs int32\[\], got float64\[\]; x.astype\('int32'\)"),
    ("uint8", (), 300, r"needs uint8\[\], got int64\[\]"),
    ("bool", (), 1, r"needs bool\[\], got int64\[\]"),
    ("float32", None, np.zeros(2), r"needs float32\[…\], got float64\[2\]"),
    ("float32", (), "text", r"input 'x' needs float32\[\], got elements of <U4"),
    ("float32", (), None, r"input 'x' needs float32\[\], got elements of object"),
]


@pytest.mark.parametrize("dtype, shape, value, message", BAD)
def test_mismatching_feeds_raise(dtype: str, shape: Any, value: Any, message: str) -> None:
    """The message says what is needed, what was passed, and how to convert it."""
    with pytest.raises(FeedError, match=message):
        interpreted(dtype, shape, value)


@pytest.mark.parametrize(
    "feeds, message",
    [
        ({"imag": 0, "label": 1}, "there is no input 'imag'; did you mean 'image'"),
        ({"image": [1, 2]}, r"input 'label' is missing: it needs int32\[\]; got 'image'"),
        ({}, r"input 'image' is missing: it needs float32\[2\]; got no feeds"),
        ([1], "feeds must be a dict of arrays by input name, got a list"),
    ],
)
def test_missing_and_unknown_feeds_are_named(feeds: Any, message: str) -> None:
    """A missing or unknown feed is named, with the most similar input."""
    graph = pk.Graph([pk.var("image", (2,)), pk.var("label", (), "int32")])

    with pytest.raises(FeedError, match=message):
        pk.interpret(graph, feeds)


def test_a_graph_without_inputs_rejects_feeds() -> None:
    """A graph without inputs needs no feeds and rejects any."""
    graph = pk.Graph([pk.constant(1.0)])

    assert pk.interpret(graph, {}) == [1.0]
    with pytest.raises(FeedError, match="there is no input 'x'; the graph has no inputs"):
        pk.interpret(graph, {"x": 1})


Inputs = dict[str, tuple[Any, tuple[int, ...]]]
"""The declared shape of each input, and the shape of its array."""


def sizes_in_calls(inputs: Inputs, *symbols: str) -> list[dict[str, int]]:
    """Return the values of symbols in a call of the interpreter, and in one of an executable."""
    entries = [pk.var(name, shape) for name, (shape, _) in inputs.items()]
    outputs = [pk.ops.zeros((pk.Size.symbol(symbol), 1)) for symbol in symbols]
    graph = pk.Graph([*outputs, *(-e for e in entries)])
    feeds = {name: np.zeros(shape, np.float32) for name, (_, shape) in inputs.items()}
    return [
        {symbol: len(result) for symbol, result in zip(symbols, results, strict=False)}
        for results in (pk.interpret(graph, feeds), pk.compile(graph)(feeds))
    ]


@pytest.mark.parametrize(
    ("inputs", "sizes"),
    [
        ({"x": ((n, 4), (3, 4)), "y": ((n * 2,), (6,))}, {"n": 3}),
        ({"x": ((n + m, 2 * m), (7, 4))}, {"m": 2, "n": 5}),
        ({"x": ((n + m,), (7,)), "y": ((n, 2), (3, 2))}, {"n": 3, "m": 4}),
        ({"x": ((n // 2,), (4,)), "y": ((n,), (9,))}, {"n": 9}),
    ],
)
def test_sizes_are_solved_from_expressions(inputs: Inputs, sizes: dict[str, int]) -> None:
    """A symbol has the value that the extents of one or several inputs determine."""
    assert sizes_in_calls(inputs, *sizes) == [sizes, sizes]


def test_graphs_with_multiples_of_a_size_are_computed() -> None:
    """An input whose extent is twice a size can be reshaped to that size."""
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
        with pytest.raises(
            FeedError, match="has extent 4 at axis 0, .* not determine [mn]( and n)?,"
        ):
            run(x=np.ones(4, np.float32))


def test_extents_that_determine_no_size_raise() -> None:
    """Sums, quotients and squares are not solved for a size; a product of 0 leaves one open."""
    for inputs, open_size in (
        ({"x": ((n + m, n // 2, n * n), (7, 4, 9))}, "[mn]"),
        ({"x": ((n * m,), (0,)), "y": ((n,), (0,))}, "m"),
    ):
        with pytest.raises(FeedError, match=f"does not determine {open_size}"):
            sizes_in_calls(inputs, "n", "m")


def test_planned_shapes_replace_determined_sizes_only() -> None:
    """The shape of an input replaces its own extents, and no symbols of other inputs."""
    graph = pk.Graph([pk.ops.zeros((n, 2)) + pk.var("y", (n, 2)), -pk.var("x", (n + m,))])

    assert [e.shape for e in with_known_shapes(graph, {"x": (7,)}).outputs] == [(n, 2), (7,)]
    assert [e.shape for e in with_known_shapes(graph, {"y": (3, 2)}).outputs] == [(3, 2), (n + m,)]


@pytest.mark.parametrize(
    "inputs, message",
    [
        ({"x": ((n * 2,), (7,))}, r"input 'x' needs extent 6 at axis 0, got 7: size 2\*n has"),
        ({"x": ((5 - n,), (7,))}, r"input 'x' needs extent 5 at axis 0, got 7"),
        (
            {"x": ((n,), (3,)), "y": ((4, n), (4, 5))},
            "input 'y' needs extent 3 at axis 1, got 5: size n is 3 in input 'x'",
        ),
        (
            {"x": ((n,), (3,)), "y": ((n * 2,), (7,))},
            r"input 'y' needs extent 6 at axis 0, got 7: size 2\*n has",
        ),
    ],
)
def test_inputs_that_disagree_about_a_size_raise(inputs: Inputs, message: str) -> None:
    """Two inputs that share a size must agree on it; both are named."""
    with pytest.raises(FeedError, match=message):
        sizes_in_calls(inputs)


# Feeds of native programs.


def native(**inputs: tuple[str, Any]) -> Any:
    """Return an executable that negates inputs, given by name with their dtypes and shapes."""
    entries = [pk.var(name, shape, dtype) for name, (dtype, shape) in inputs.items()]
    return pk.compile(pk.Graph([pk.ops.identity(e) for e in entries]))


@pytest.fixture(scope="module")
def masked() -> Any:
    """Return an executable of two inputs: x, float32[?, 784], and mask, bool[]."""
    return native(x=("float32", SHAPE), mask=("bool", ()))


def test_wrong_native_arrays_raise_with_a_conversion(masked: Any) -> None:
    """The message has the needed and the actual type and rank, and how to convert."""
    with pytest.raises(
        FeedError,
        match=r"^input 'x' needs float32\[\?, 784\], got float64\[8, 784\]; "
        r"x\.astype\('float32'\)$",
    ):
        masked(x=np.zeros((8, 784)), mask=True)
    with pytest.raises(FeedError, match=r"got float32\[784\]; reshape it to 2 dimensions"):
        masked(x=np.zeros(784, "f4"), mask=True)
    scalar = native(**{"a/b": ("float32", ())})
    with pytest.raises(FeedError, match=r"'a/b' .* got a str.*; pass an array of numbers"):
        scalar({"a/b": "text"})
    with pytest.raises(FeedError, match=r"got float64\[\]"):
        scalar({"a/b": np.float64(1)})


def test_feeds_that_do_not_match_the_names_raise(masked: Any) -> None:
    """Unknown, missing, repeated and unnamed feeds each have their own message."""
    x, mask = np.zeros((1, 784), "f4"), True
    with pytest.raises(FeedError, match="no input 'msk'; did you mean 'mask'"):
        masked(x=x, msk=mask)
    with pytest.raises(FeedError, match=r"input 'mask' is missing; it needs bool\[\]"):
        masked(x=x)
    with pytest.raises(FeedError, match="input 'x' is passed twice"):
        masked({"x": x, "mask": mask}, x=x)
    with pytest.raises(FeedError, match=r"needs 2 feeds \(x, mask\), got 1 in a list and 0"):
        masked([x])
    with pytest.raises(FeedError, match=r"got float32\[1, 784\]; pass it by name, as in x="):
        masked(x)
    assert masked([x, mask])[1].dtype == bool


def test_wrong_sizes_of_native_feeds_raise() -> None:
    """A size that differs from a number or from another input's is named."""
    run = native(a=("float32", ("n", 3)), b=("float32", ("n",)))
    wide, narrow = np.zeros((7, 3), "f4"), np.zeros(7, "f4")
    assert [r.shape for r in run(a=wide, b=narrow)] == [(7, 3), (7,)]
    with pytest.raises(FeedError, match=r"needs float32\[n, 3\], got float32\[7, 4\]; axis 1 must"):
        run(a=np.zeros((7, 4), "f4"), b=narrow)
    with pytest.raises(FeedError, match=r"'b' needs float32\[n\], got float32\[8\]; n is 7 in 'a'"):
        run(a=wide, b=np.zeros(8, "f4"))


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
    (array,) = native(s=(dtype, ()))(s=value)

    assert array.dtype == dtype and array.shape == () and array[()] == expected


def test_python_numbers_become_bfloat16() -> None:
    """Dtypes of other packages accept Python numbers, too."""
    (array,) = native(s=("bfloat16", (2,)))(s=[1, 2.5])

    assert array.dtype == ml_dtypes.bfloat16 and array.tolist() == [1, 2.5]


def test_lossy_python_values_raise(masked: Any) -> None:
    """Floats for integers, integers out of range, ragged lists and other ranks are refused."""
    with pytest.raises(FeedError, match=r"needs int32\[\], got a float \(float64\[\]\)"):
        native(k=("int32", ()))(k=1.5)
    with pytest.raises(FeedError, match=r"needs int8\[\], got a int that cannot be con.*300"):
        native(k=("int8", ()))(k=300)
    with pytest.raises(FeedError, match=r"got a list that cannot be converted: .*inhomogeneous"):
        masked(x=[[1], [2, 3]], mask=True)
    with pytest.raises(FeedError, match=r"needs bool\[\], got a int"):
        native(k=("bool", ()))(k=1)
    for numbers in ([1.0], [1]):
        with pytest.raises(FeedError, match=r"got a list \(.*\[1\]\); reshape it to 2 dimensions"):
            masked(x=numbers, mask=True)
