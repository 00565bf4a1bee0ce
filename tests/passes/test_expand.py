"""Expand: composite operators become primitives."""

from __future__ import annotations

import numpy as np
import pytest

import passkit as pk

ops = pk.ops


def names(graph: pk.Graph) -> list[str]:
    """The operators of a graph, in order, without constants."""
    return [v.op.name for v in graph.nodes if v.op is not None and v.op.name != "constant"]


def test_a_softmax_is_made_of_primitives() -> None:
    """A softmax becomes five operators that compute the same values."""
    graph = pk.Graph([ops.softmax(pk.var("x", (2, 5)), name="s")])
    out = pk.ApplyPasses(graph, "Expand")
    x = np.linspace(-3, 3, 10, dtype="float32").reshape(2, 5)

    assert names(out) == ["reduce_max", "sub", "exp", "reduce_sum", "div"]
    assert out.outputs[0].node.name == "s"
    np.testing.assert_allclose(
        pk.interpret(out, {"x": x})[0], pk.interpret(graph, {"x": x})[0], rtol=1e-6
    )


def test_the_last_primitive_has_the_name_of_the_composite() -> None:
    """The text shows the expansion, whose last node has the composite's name."""
    before = pk.parse("x: f32[2, 3]; y = softmax(x); return y")

    assert pk.to_text(pk.ApplyPasses(before, "Expand")).splitlines() == [
        "x: f32[2, 3]",
        "reduce_max = reduce_max(x, axis=-1, keepdims=true)",
        "sub = sub(x, reduce_max)",
        "exp = exp(sub)",
        "reduce_sum = reduce_sum(exp, axis=-1, keepdims=true)",
        "y = div(exp, reduce_sum)",
        "return y",
    ]


def test_composites_of_composites() -> None:
    """Expanding goes on until only primitives are left."""
    inner = pk.register_op("test_twice")
    inner.set_attr("FInferShape", lambda node, s: s)
    inner.set_attr("FExpand", lambda node, x: ops.add(x, x))
    outer = pk.register_op("test_four_times")
    outer.set_attr("FInferShape", lambda node, s: s)
    outer.set_attr("FExpand", lambda node, x: inner(inner(x)))

    assert names(pk.ApplyPasses(pk.Graph([outer(pk.var("x", (3,)))]), "Expand")) == ["add", "add"]


def test_strategy_nnvm_keeps_composites() -> None:
    """With fusion="nnvm" only composites that cannot run otherwise are expanded."""
    graph = pk.Graph([ops.softmax(ops.linear(pk.var("x", (2, 5)), num_hidden=3))])
    runs = pk.register_op("test_runs_itself")
    runs.set_attr("FInferShape", lambda node, s: s)
    runs.set_attr("FExpand", lambda node, x: ops.add(x, x))
    runs.set_attr("FCompute", lambda node, x: x + x)
    local = pk.Graph([runs(pk.var("x", (3,)))])

    assert "linear" not in names(pk.ApplyPasses(graph, "Expand", fusion="nnvm"))
    assert names(pk.ApplyPasses(local, "Expand", fusion="nnvm")) == ["test_runs_itself"]
    assert names(pk.ApplyPasses(local, "Expand")) == ["add"]


def test_a_graph_of_primitives_stays_as_it_is() -> None:
    """A graph without composites keeps its nodes."""
    graph = pk.Graph([ops.exp(pk.var("x", (3,)))])

    assert pk.ApplyPasses(graph, "Expand").outputs == graph.outputs


def test_the_last_primitive_has_the_control_dependencies() -> None:
    """The last node of the expansion has the composite's control dependencies (D3)."""
    x = pk.var("x", (2, 5))
    e = ops.exp(x, name="e")
    out = pk.ApplyPasses(pk.Graph([ops.softmax(x, control=[e.node])]), "Expand")

    assert out.outputs[0].node.control == (e.node,)


def test_control_dependencies_refer_to_expanded_nodes() -> None:
    """A control dependency on a composite becomes one on its expansion."""
    x = pk.var("x", (2, 5))
    before = ops.softmax(x, name="before")
    after = ops.gelu(x, control=[before.node])
    out = pk.ApplyPasses(pk.Graph([after]), "Expand")

    assert not {"softmax", "gelu"} & set(names(out))
    assert [c.name for c in out.outputs[0].node.control] == ["before"]


def test_a_composite_stays_if_control_dependencies_would_be_lost() -> None:
    """A composite that is its input stays if it has control dependencies."""
    same = pk.register_op("test_same")
    same.set_attr("FInferShape", lambda node, s: s)
    same.set_attr("FExpand", lambda node, x: x)
    x = pk.var("x", (3,))
    e = ops.exp(x)

    assert names(pk.ApplyPasses(pk.Graph([same(ops.tanh(x))]), "Expand")) == ["tanh"]
    kept = pk.ApplyPasses(pk.Graph([same(x, control=[e.node])]), "Expand")
    assert names(kept) == ["exp", "test_same"]


def test_outputs_that_share_nodes_are_expanded_once() -> None:
    """Outputs of one composite may depend on each other; no node is duplicated."""
    pair = pk.register_op("test_pair", num_outputs=2)
    pair.set_attr("FInferShape", lambda node, s: (s, s))

    def expand(node: pk.Node, x: pk.Entry) -> tuple[pk.Entry, pk.Entry]:
        first = ops.exp(x)
        return first, ops.tanh(first)

    pair.set_attr("FExpand", expand)
    a, b = pair(pk.var("x", (3,)), name="p")
    e = ops.sin(pk.var("x", (3,)))
    for control in ([], [e.node]):
        a, b = pair(pk.var("x", (3,)), name="p", control=control)
        out = pk.ApplyPasses(pk.Graph([a, b]), "Expand")

        assert names(out)[-2:] == ["exp", "tanh"]
        assert out.outputs[1].node.inputs == (out.outputs[0],)
        assert [v.name for v in out.nodes][-2:] == ["p", "p"]


def test_writes_of_state_are_not_expanded() -> None:
    """Operators that write state are left to Functionalize; expanding would lose the write."""
    a = pk.state("a", np.ones(3, "float32"))

    assert names(pk.ApplyPasses(pk.Graph([ops.assign(a, ops.exp(a))]), "Expand")) == [
        "exp",
        "assign",
    ]


def test_shapes_are_known_before_expanding() -> None:
    """FExpand reads shapes from entries, including inferred ones."""
    x = pk.var("x", None)
    graph = pk.Graph([ops.softmax(ops.exp(x) + pk.var("y", (2, 5)))])

    assert "softmax" not in names(pk.ApplyPasses(graph, "Expand"))


def test_an_expansion_must_have_the_declared_outputs() -> None:
    """Number, shapes and dtypes of outputs are compared with those the operator declares."""
    x = pk.var("x", (3, 1))
    many = pk.register_op("test_expands_to_two")
    many.set_attr("FInferShape", lambda node, s: s)
    many.set_attr("FExpand", lambda node, x: (x, x))
    with pytest.raises(
        pk.RuleError, match="FExpand of test_expands_to_two 'm' must give an entry, .*; it gave 2"
    ):
        pk.ApplyPasses(pk.Graph([many(x, name="m")]), "Expand")

    flat = pk.register_op("test_expands_flat")
    flat.set_attr("FInferShape", lambda node, s: s)
    flat.set_attr("FExpand", lambda node, x: ops.reshape(x, shape=(3,)))
    with pytest.raises(
        pk.PassError, match=r"flat must keep .*, float32\(3, 1\), got float32\(3,\); insert"
    ):
        pk.ApplyPasses(pk.Graph([flat(x)]), "Expand")


def test_an_endless_expansion_is_an_error() -> None:
    """The error names an operator that expands to itself."""
    forever = pk.register_op("test_forever")
    forever.set_attr("FInferShape", lambda node, s: s)
    forever.set_attr("FExpand", lambda node, x: ops.neg(forever(x)))
    with pytest.raises(pk.PassError, match="after 64 iterations: test_forever; the FExpand"):
        pk.ApplyPasses(pk.Graph([forever(pk.var("x", (3,)))]), "Expand")


@pytest.mark.parametrize("fusion", ["stitch", "nnvm"])
def test_products_of_16_bits_are_float32(fusion: str) -> None:
    """A contraction of 16-bit floats becomes one of float32 between casts, rounded once."""
    x, y = pk.var("x", ("n", 5), "bfloat16"), pk.var("y", (7, 5), "bfloat16")
    e = ops.exp(pk.var("z", ()))
    product = ops.matmul(x, y, transpose_b=True, name="p", control=[e.node])
    out = pk.ApplyPasses(pk.Graph([product]), "Expand", fusion=fusion)

    assert sorted(names(out)) == ["cast", "cast", "cast", "exp", "matmul"]
    (last,) = (entry.node for entry in out.outputs)
    assert (last.name, [n.name for n in last.control]) == ("p", [e.node.name])
    assert last.inputs[0].dtype.name == "float32"
    assert last.inputs[0].node.params == product.node.params
