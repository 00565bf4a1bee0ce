"""Shape arithmetic is folded during import, with symbolic sizes for unknown dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import ModelError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import const, model, node, placeholder

X = placeholder("x", None, 3, 5)
SHAPE = node("Shape", "shape", "x")


def reshaped(*nodes: Any, shape: str = "s") -> pk.Graph:
    """Return the graph that reshapes x to the shape that the nodes compute."""
    return tf_graphdef.load(model(X, SHAPE, *nodes, node("Reshape", "y", "x", shape)), "y")


def vector(name: str, *values: int) -> Any:
    """Return a known list."""
    return const(name, list(values))


FIRST = [
    vector("b", 0),
    vector("e", 1),
    vector("one", 1),
    node("StridedSlice", "first", "shape", "b", "e", "one", shrink_axis_mask=1),
]

SPELLINGS: dict[str, tuple[list[Any], str]] = {
    "pack": ([*FIRST, const("k", 15), node("Pack", "s", "first", "k")], "(x.0, 15)"),
    "pack -1": ([*FIRST, const("k", -1), node("Pack", "s", "first", "k")], "(x.0, 15)"),
    "product": (
        [
            *FIRST,
            const("k", 3),
            node("Mul", "m", "first", "k"),
            const("j", 5),
            node("Pack", "s", "m", "j"),
        ],
        "(3*x.0, 5)",
    ),
    "concat": (
        [
            vector("b", 0),
            vector("n", 1),
            node("Slice", "h", "shape", "b", "n"),
            vector("t", 15),
            const("k", 0),
            node("ConcatV2", "s", "h", "t", "k"),
        ],
        "(x.0, 15)",
    ),
    "reduce": (
        [
            vector("b", 1),
            vector("n", -1),
            node("Slice", "h", "shape", "b", "n"),
            vector("k", 0),
            node("Prod", "p", "h", "k"),
            const("m", -1),
            node("Pack", "s", "m", "p"),
        ],
        "(x.0, 15)",
    ),
    "gather": (
        [vector("i", 0, 2, 1), const("k", 0), node("GatherV2", "s", "shape", "i", "k")],
        "(x.0, 5, 3)",
    ),
    "size": (
        [
            node("Size", "n", "x"),
            const("k", 5),
            node("FloorDiv", "d", "n", "k"),
            node("Pack", "s", "d", "k"),
        ],
        "(3*x.0, 5)",
    ),
    "cast and reshape": (
        [
            node("Cast", "c", "shape", DstT=np.dtype("int64")),
            vector("one", 3),
            node("Reshape", "s", "c", "one"),
        ],
        "(x.0, 3, 5)",
    ),
    "there and back": (
        [
            vector("k", 1, 1, 1),
            node("Add", "a", "shape", "k"),
            node("Sub", "m", "a", "k"),
            node("Neg", "n", "m"),
            node("Neg", "s", "n"),
        ],
        "(x.0, 3, 5)",
    ),
    "split and joined": (
        [
            const("k", 0),
            node("Split", "p", "k", "shape", num_split=3),
            vector("n", 1, 2),
            node("SplitV", "v", "shape", "n", "k", num_split=2),
            node("Sum", "m", "v:1", "k"),
            vector("one", 1),
            const("seven", 7),
            node("Add", "all", "m", "seven"),
            node("Fill", "f", "one", "all"),
            node("Concat", "s", "k", "p", "f"),
        ],
        "(x.0, 15)",
    ),
    "unpacked": (
        [
            node("Unpack", "u", "shape", num=3),
            node("Add", "more", "u", "u:1"),
            node("Minimum", "least", "u", "more"),
            node("Square", "q", "u:1"),
            node("FloorMod", "r", "q", "u:2"),
            node("Sub", "five", "q", "r"),
            node("Add", "f", "five", "q"),
            const("one", 1),
            node("Add", "g", "f", "one"),
            node("Maximum", "m", "g", "u:2"),
            node("Pack", "s", "least", "m"),
        ],
        "(x.0, 15)",
    ),
    "tiled": (
        [
            vector("k", 1),
            vector("n", -1),
            vector("z", 0),
            node("Slice", "h", "shape", "z", "k"),
            node("Tile", "e", "h", "k"),
            node("ConcatV2", "s", "e", "n", "zero"),
            const("zero", 0),
        ],
        "(x.0, 15)",
    ),
    "expand and squeeze": (
        [
            const("k", 0),
            node("ExpandDims", "e", "shape", "k"),
            node("Squeeze", "s", "e", squeeze_dims=[0]),
        ],
        "(x.0, 3, 5)",
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_symbolic_sizes_are_folded_through_shape_operators(spelling: str) -> None:
    """Flattening keeps the batch size free, in whichever way it is expressed."""
    nodes, shape = SPELLINGS[spelling]

    graph = reshaped(*nodes)

    assert str(graph.outputs[0].shape).replace("'", "") == shape
    assert {n.op.name for n in graph.nodes if n.op} == {"reshape"}


@pytest.mark.parametrize(
    "nodes",
    [
        [const("k", 5), node("Size", "n", "x"), node("Maximum", "s", "n", "k")],
        [const("k", 0), const("d", 1), node("Size", "n", "x"), node("Range", "s", "k", "n", "d")],
        [const("k", 0), const("n", 10**9), const("d", 1), node("Range", "s", "k", "n", "d")],
    ],
)
def test_shapes_without_closed_form_are_computed_at_run_time(nodes: list[Any]) -> None:
    """The maximum of two symbolic sizes, and long ranges, are left to operators."""
    with pytest.raises(ModelError, match="'(n|s)' (consists of|depends on)"):
        reshaped(*nodes)


INDEXED: dict[str, list[Any]] = {
    "gather": [const("k", 0), node("GatherV2", "n", "c", "first", "k")],
    "slice": [
        vector("z", 0),
        node("Pack", "stop", "first"),
        node("StridedSlice", "t", "c", "z", "stop", "one"),
        node("Sum", "n", "t", "z"),
    ],
}


@pytest.mark.parametrize("nodes", INDEXED.values(), ids=INDEXED)
def test_known_lists_are_indexed_by_symbolic_sizes_at_run_time(nodes: list[Any]) -> None:
    """A constant list is indexed, or sliced, at a size that only a call determines."""
    source = model(
        X,
        SHAPE,
        *FIRST,
        vector("c", 0, 10, 20, 30),
        *nodes,
        node("Cast", "r", "n", SrcT=np.dtype("int32"), DstT=np.dtype("float32")),
        node("Mul", "y", "x", "r"),
    )
    graph = tf_graphdef.load(source, "y")
    feed = np.ones((2, 3, 5), np.float32)

    expected = 20 if nodes is INDEXED["gather"] else 10
    np.testing.assert_array_equal(pk.interpret(graph, {"x": feed})[0], feed * expected)


def test_ranges_of_ranks_are_axes() -> None:
    """TensorFlow 1 reduces over all axes by a range up to the rank."""
    axes = [const("a", 0), const("d", 1), node("Rank", "r", "x"), node("Range", "k", "a", "r", "d")]
    graph = tf_graphdef.load(model(X, *axes, node("Sum", "y", "x", "k")))

    assert graph.outputs[0].shape == ()


def test_known_shapes_become_constants() -> None:
    """A known shape that is used as data becomes a constant."""
    graph = tf_graphdef.load(model(X, SHAPE), outputs="shape", shapes={"x": (2, 3, 5)})

    assert pk.interpret(graph, {})[0].tolist() == [2, 3, 5]


def test_integers_wrap_as_their_dtype_does() -> None:
    """Folded integers wrap in the range of their dtype."""
    limits = [2**31 - 1, -(2**31)]
    nodes = [vector("a", *limits), vector("b", 1, -1), node("AddV2", "y", "a", "b")]
    (result,) = tf_graphdef.load(model(*nodes)).nodes

    assert result.op is pk.ops.constant
    assert result.params["value"].tolist() == limits[::-1]
    assert result.params["value"].dtype == np.int32


def test_large_arrays_are_data() -> None:
    """Only small values are folded; others are left to the compiler."""
    numbers = const("c", np.arange(1000))
    graph = tf_graphdef.load(model(numbers, node("Neg", "y", "c")))

    assert [n.op.name for n in graph.nodes if n.op] == ["constant", "neg"]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [vector("k", 1, 2), node("Add", "s", "shape", "k")],
            r"Add 's'.*got 'shape' = \[x\.0, 3, 5\], 'k' = \[1, 2\].*shapes \(3,\) \(2,\)",
        ),
        (
            [const("k", 0), node("FloorDiv", "s", "k", "k")],
            r"FloorDiv 's' needs shapes .*, got 'k' = \[0\], 'k' = \[0\]: .*zero",
        ),
        (
            [vector("i", 3), const("k", 0), node("GatherV2", "s", "shape", "i", "k")],
            r"needs indices within the shape \(3,\), got \[3\]",
        ),
        (
            [vector("b", 2), vector("n", 2), node("Slice", "s", "shape", "b", "n")],
            r"within the shape \(3,\), got begin \(2,\) and size \(2,\)",
        ),
        (
            [const("a", 0), const("n", 10**9), const("d", 1), node("Range", "s", "a", "n", "d")],
            "Reshape 'y' needs a shape that is known .*, and 's' depends",
        ),
        (
            [vector("b", 0), vector("e", 1, 2), node("StridedSlice", "s", "shape", "b", "e", "b")],
            "of one length, got 1, 2 and 1",
        ),
        (
            [vector("b", 1, 1), node("StridedSlice", "s", "shape", "b", "b", "b", ellipsis_mask=3)],
            "at most one ellipsis, got ellipsis_mask=3",
        ),
        (
            [
                vector("b", 7),
                vector("e", 8),
                node("StridedSlice", "s", "shape", "b", "e", "e", shrink_axis_mask=1),
            ],
            "StridedSlice 's' needs shapes .* index 7 is out of bounds",
        ),
    ],
)
def test_invalid_shapes_are_refused_with_their_values(nodes: list[Any], message: str) -> None:
    """Errors show the values that were computed with."""
    with pytest.raises(ModelError, match=message):
        reshaped(*nodes)


def test_symbolic_sizes_can_be_data() -> None:
    """A symbolic size used as data is computed in the call; the number of such sizes is limited."""
    nodes = [node("Cast", "f", "shape", DstT=np.dtype("float32")), node("Neg", "y", "f")]
    graph = tf_graphdef.load(model(X, SHAPE, *nodes, node("Neg", "z", "x")), outputs=["y", "z"])

    for rows in (2, 7):
        results = pk.interpret(graph, {"x": np.ones((rows, 3, 5), np.float32)})[0]
        assert results.tolist() == [-rows, -3, -5]
    shift = const("shift", [-4, 0, 0])
    nodes = [node("Add", "s", "shape", "shift"), shift, node("FloorDiv", "d", "s", "two")]
    nodes += [const("two", [2, 2, 2]), node("Cast", "y", "d", DstT=np.dtype("float32"))]
    graph = tf_graphdef.load(model(X, SHAPE, *nodes, node("Neg", "z", "x")), outputs=["y", "z"])
    assert pk.interpret(graph, {"x": np.ones((3, 3, 5), np.float32)})[0].tolist() == [-1, 1, 2]
    nodes = [node("Cast", "f", "shape", DstT=np.dtype("uint8")), node("Mul", "y", "f", "f")]
    graph = tf_graphdef.load(model(X, SHAPE, *nodes, node("Neg", "z", "x")), outputs=["y", "z"])
    results = pk.interpret(graph, {"x": np.ones((257, 3, 5), np.float32)})[0]
    assert results.tolist() == [1, 9, 25] and results.dtype == np.uint8
    many = [node("ConcatV2", "m", *["shape"] * 6, "axis"), const("axis", 0), node("Neg", "y", "m")]
    many.append(node("Cast", "g", "y", DstT=np.dtype("float32")))
    with pytest.raises(
        ModelError, match=r"'y' consists of 18 sizes, -x.0 and others, .* at most 16"
    ):
        tf_graphdef.load(model(X, SHAPE, *many), outputs="g")


def test_sizes_of_many_terms_are_refused() -> None:
    """A polynomial with many terms is refused as a shape."""
    nodes = [
        placeholder("x", *[None] * 7),
        SHAPE,
        vector("one", *[1] * 7),
        node("AddV2", "more", "shape", "one"),
        vector("axis", 0),
        node("Prod", "k", "more", "axis", keep_dims=True),
        node("Reshape", "y", "x", "k"),
    ]

    with pytest.raises(ModelError, match="'k' is a symbolic size of 128 terms, .* at most 64"):
        tf_graphdef.load(model(*nodes), "y")


def test_a_constant_has_the_shape_of_its_array() -> None:
    """The shape of a constant is folded before an entry is created for the constant."""
    graph = tf_graphdef.load(
        model(
            X,
            const("c", np.zeros((5, 3))),
            node("Shape", "k", "c"),
            node("Fill", "y", "k", "v"),
            const("v", 1.5),
        ),
        "y",
    )

    assert graph.outputs[0].shape == (5, 3)
    assert 0.0 not in [n.params["value"].max() for n in graph.nodes if n.op is pk.ops.constant]
