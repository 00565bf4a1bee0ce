"""Dtypes in both directions: the one that fits."""

from __future__ import annotations

import pytest

import passkit as pk


def dtypes(*outputs: pk.Entry) -> dict[str, str]:
    """The inferred dtype of every named node's first entry."""
    graph = pk.ApplyPasses(pk.Graph(outputs), "InferType")
    return {v.name: str(graph.attrs["dtype"][v.entries[0]]) for v in graph.nodes if v.name}


def test_operators_share_one_dtype() -> None:
    """An unknown input has the dtype of the one it meets."""
    x, y = pk.var("x", (3,), None), pk.var("y", (3,), "float64")

    assert dtypes(pk.ops.add(pk.ops.exp(x, name="e"), y, name="z")) == dict.fromkeys(
        "xeyz", "float64"
    )


def test_a_choice_knows_its_condition() -> None:
    """where(c, x, y) needs a bool and two of one dtype."""
    c, x = pk.var("c", (3,), None), pk.var("x", (3,), "int32")
    y = pk.ops.where(pk.ops.less(x, x), c, x)

    assert dtypes(y)["c"] == "int32"


def test_what_fits_several_stays_unknown() -> None:
    """The result of a comparison or a cast says nothing of what was compared or cast."""
    x = pk.var("x", (3,), None)
    graph = pk.Graph([pk.ops.less(x, x), pk.ops.cast(x, dtype="float32")])
    out = pk.ApplyPasses(graph, "InferType")

    assert out.attrs["dtype"][x] is None
    assert out.attrs["dtype_num_unknown"] >= 1


def test_known_dtypes_are_taken_as_they_are() -> None:
    """Where nothing is unknown nothing is asked."""
    x = pk.var("x", (3,), "float16")

    assert dtypes(pk.ops.exp(x, name="e")) == {"x": "float16", "e": "float16"}


def test_conclusions_must_agree() -> None:
    """An unknown dtype that two operators want differently is an error with both."""
    x = pk.var("x", (3,), None)
    a = pk.ops.add(x, pk.var("a", (3,), "float32"), name="p")
    b = pk.ops.add(x, pk.var("b", (3,), "float64"), name="q")

    with pytest.raises(pk.DTypeError, match=r"add 'q' .*float"):
        dtypes(a, b)


def test_a_result_cannot_have_two_dtypes() -> None:
    """What a rule gives is compared with what the uses concluded."""
    lone = pk.register_op("test_only_f32", num_inputs=2)
    lone.set_attr("FInferType", lambda node, a, b: pk.ops.exp(pk.var("v", (), "float32")).dtype)
    x = pk.var("x", (3,), None)
    y = lone(x, x, name="l")
    z = pk.ops.add(y, pk.var("z", (3,), "float64"), name="q")

    with pytest.raises(
        pk.DTypeError, match="test_only_f32 'l' gives float32 by its .* need float64"
    ):
        dtypes(z, pk.ops.add(x, pk.var("w", (3,), "int32")))
