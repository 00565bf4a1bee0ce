"""Dtypes in both directions: the one that fits."""

from __future__ import annotations

import pytest

import passkit as pk


def dtypes(*outputs: pk.Entry) -> dict[str, str]:
    """The inferred dtype of every named node's first entry."""
    graph = pk.ApplyPasses(pk.Graph(outputs), "InferType")
    return {v.name: str(graph.attrs["dtype"][v.entries[0]]) for v in graph.nodes if v.name}


def test_an_unknown_operand_has_the_dtype_of_the_others() -> None:
    """An unknown operand has the dtype of the known one."""
    x, y = pk.var("x", (3,), None), pk.var("y", (3,), "float64")

    assert dtypes(pk.ops.add(pk.ops.exp(x, name="e"), y, name="z")) == dict.fromkeys(
        "xeyz", "float64"
    )


def test_where_needs_a_bool_condition() -> None:
    """where(c, x, y) implies a bool, and two operands of one dtype."""
    c, x = pk.var("c", (3,), None), pk.var("x", (3,), "int32")
    y = pk.ops.where(pk.ops.less(x, x), c, x)

    assert dtypes(y)["c"] == "int32"


def test_an_ambiguous_dtype_stays_unknown() -> None:
    """The result of a comparison or a cast does not imply the dtype of its operands."""
    x = pk.var("x", (3,), None)
    graph = pk.Graph([pk.ops.less(x, x), pk.ops.cast(x, dtype="float32")])
    out = pk.ApplyPasses(graph, "InferType")

    assert out.attrs["dtype"][x] is None
    assert out.attrs["dtype_num_unknown"] >= 1


def test_rules_are_not_called_for_known_dtypes() -> None:
    """If no dtype is unknown, no rule is called."""
    x = pk.var("x", (3,), "float16")

    assert dtypes(pk.ops.exp(x, name="e")) == {"x": "float16", "e": "float16"}


def test_conflicting_uses_are_an_error() -> None:
    """The error has both dtypes that two users require."""
    x = pk.var("x", (3,), None)
    a = pk.ops.add(x, pk.var("a", (3,), "float32"), name="p")
    b = pk.ops.add(x, pk.var("b", (3,), "float64"), name="q")

    with pytest.raises(pk.DTypeError, match=r"add 'q' .*float"):
        dtypes(a, b)


def test_a_conflict_of_rule_and_uses_is_an_error() -> None:
    """The dtype of a rule is compared with that implied by the uses."""
    lone = pk.register_op("test_only_f32", num_inputs=2)
    lone.set_attr("FInferType", lambda node, a, b: pk.ops.exp(pk.var("v", (), "float32")).dtype)
    x = pk.var("x", (3,), None)
    y = lone(x, x, name="l")
    z = pk.ops.add(y, pk.var("z", (3,), "float64"), name="q")

    with pytest.raises(
        pk.DTypeError, match="test_only_f32 'l' has dtype float32 by its .* float64 by its uses"
    ):
        dtypes(z, pk.ops.add(x, pk.var("w", (3,), "int32")))
