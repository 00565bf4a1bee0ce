"""Complete: entries carry inferred shapes and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import passkit as pk


def test_entries_get_their_shapes_and_dtypes() -> None:
    """Entries carry the inferred shapes and dtypes, which rules of operators read."""
    y = pk.ops.exp(pk.var("x", None, None)) + pk.var("y", (2, 3), "float64")
    out = pk.ApplyPasses(pk.Graph([y]), "Complete")

    assert {(str(e.shape), str(e.dtype)) for v in out.nodes for e in v.entries} == {
        ("(2, 3)", "float64")
    }
    assert [v.name for v in out.inputs] == ["x", "y"]


def test_an_input_of_any_rank_gets_the_rank_of_its_use() -> None:
    """An input of unknown rank gets the shape that its user implies."""
    before = pk.parse("x: f32[...]; y: f32[2, 3]; e = exp(x); z = add(e, y); return z")

    assert pk.to_text(pk.ApplyPasses(before, "Complete")).splitlines() == [
        "x: f32[2, 3]",
        "e = exp(x)",
        "y: f32[2, 3]",
        "z = add(e, y)",
        "return z",
    ]


def test_a_complete_graph_is_kept() -> None:
    """If entries have shapes and dtypes, nodes and annotations stay."""
    graph = pk.Graph([pk.ops.exp(pk.var("x", ("n", 3)))]).with_attrs(mine=1)
    out = pk.ApplyPasses(graph, "Complete")

    assert out.outputs == graph.outputs
    assert out.attrs["mine"] == 1


def test_solved_sizes_leave_no_guard() -> None:
    """A size that must be 8 is 8 in the variable; unsolved equalities stay guards."""
    n, m = pk.Size.symbol("n"), pk.Size.symbol("m")
    x, y, z = pk.var("x", ("n",)), pk.var("y", (8,)), pk.var("z", (m * 2,))
    out = pk.ApplyPasses(pk.Graph([x + y, z + pk.var("w", (n * 3,))]), "Complete")

    assert out.inputs[0].entries[0].shape == (8,)
    assert [(a, b) for a, b, _ in out.attrs["shape_guards"]] == []
    assert out.inputs[2].entries[0].shape == (24,)


def test_solved_sizes_replace_symbols_in_parameters() -> None:
    """A parameter with a symbol gets its value."""
    x = pk.var("x", ("n", 3))
    flat = pk.ops.reshape(x, shape=(pk.Size.symbol("n") * 3,))
    out = pk.ApplyPasses(pk.Graph([flat, x + pk.var("y", (8, 3))]), "Complete")

    assert out.outputs[0].node.params["shape"] == (24,)
    assert out.outputs[0].shape == (24,)
    assert out.attrs["shape_guards"] == ()


def test_an_operator_without_a_rule_stays_incomplete() -> None:
    """A shape that only users imply does not replace a missing rule."""
    op = pk.register_op("test_no_rule_either")
    y = op(pk.var("x", (2, 3)), name="o")

    with pytest.raises(pk.ShapeError, match="the shape of test_no_rule_either 'o' does not follow"):
        pk.ApplyPasses(pk.Graph([y + pk.var("z", (2, 3))]), "Complete")


def test_control_dependencies_refer_to_completed_nodes() -> None:
    """A control dependency refers to the completed node, so that no old node stays in the graph."""
    x, y = pk.var("x", None), pk.var("y", (2, 3))
    e = pk.ops.exp(x, name="e")
    z = pk.ops.reshape(pk.ops.tanh(x) + y, shape=(6,), control=[e.node])
    out = pk.ApplyPasses(pk.Graph([z]), "Complete")

    assert [c.entries[0].shape for c in out.outputs[0].node.control] == [(2, 3)]
    assert len(out.inputs) == 2


def test_completing_changes_no_value() -> None:
    """The completed graph computes the same values."""
    x, y = pk.var("x", None), pk.var("y", (2, 3))
    graph = pk.Graph([pk.ops.exp(x) + y])
    feeds = {"x": np.ones((2, 3), "float32"), "y": np.ones((2, 3), "float32")}

    (out,) = pk.interpret(pk.ApplyPasses(graph, "Complete"), feeds)

    np.testing.assert_array_equal(out, pk.interpret(graph, feeds)[0])


def test_variables_without_a_shape_are_named() -> None:
    """The error names the variables whose shape must be given."""
    y = pk.ops.exp(pk.var("x", None)) + pk.ops.exp(pk.var("w", None))

    with pytest.raises(
        pk.ShapeError, match=r"5 value\(s\) have no shape; .* 'x', 'w': pk.var\('x'"
    ):
        pk.ApplyPasses(pk.Graph([y]), "Complete")


def test_variables_without_a_dtype_are_named() -> None:
    """The error names the variables whose dtype must be given."""
    with pytest.raises(pk.DTypeError, match=r"2 value\(s\) have no dtype; .* variable\(s\) 'x'"):
        pk.ApplyPasses(pk.Graph([pk.ops.exp(pk.var("x", (3,), None))]), "Complete")


def test_an_operator_without_a_rule_is_named() -> None:
    """If all variables have shapes, the error names the operator without a rule."""
    op = pk.register_op("test_no_shape_rule")

    with pytest.raises(pk.ShapeError, match=r"shape of test_no_shape_rule 'o' .*\('FInferShape'"):
        pk.ApplyPasses(pk.Graph([op(pk.var("x", (3,)), name="o")]), "Complete")
