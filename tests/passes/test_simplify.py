"""Common subexpressions, constants, exact algebra."""

from __future__ import annotations

import numpy as np
import pytest

import passkit as pk

ops = pk.ops


def simplify(*outputs: pk.Entry, **options: object) -> pk.Graph:
    """The simplified graph of some outputs."""
    return pk.ApplyPasses(pk.Graph(outputs), "Simplify", **options)


def names(graph: pk.Graph) -> list[str]:
    """The operators of a graph, in order."""
    return [v.op.name for v in graph.nodes if v.op is not None]


def test_equal_nodes_are_merged() -> None:
    """Two exps of one value are one, and so are their users (D9)."""
    x = pk.var("x", (3,))
    a, b = (ops.tanh(ops.exp(x)) for _ in range(2))
    out = simplify(a, b)

    assert names(out) == ["exp", "tanh"]
    assert out.outputs[0] is out.outputs[1]


def test_inputs_of_commutative_operators_have_no_order() -> None:
    """The product of x and y is that of y and x; differences, and x * x and y * y, stay apart."""
    x, y = pk.var("x", (3,)), pk.var("y", (3,))

    assert names(simplify(ops.exp(x * y), ops.exp(y * x))) == ["mul", "exp"]
    assert names(simplify(x - y, y - x, x * x, y * y)) == ["sub", "sub", "mul", "mul"]


def test_equal_nodes_constants_and_transposes_are_simplified() -> None:
    """The text shows equal subexpressions, a constant and two transposes simplified."""
    before = pk.parse(
        "x: f32[2, 3]; c: f32[2] = [1, 2]; d = add(c, c); u = transpose(x); t = transpose(u)\n"
        "a = exp(x); b = exp(t); y = add(a, b); return y, d"
    )

    assert pk.to_text(pk.ApplyPasses(before, "Simplify")).splitlines() == [
        "x: f32[2, 3]",
        "a = exp(x)",
        "y = add(a, a)",
        "d: f32[2] = [2.0, 4.0]",
        "return y, d",
    ]


def test_different_parameters_stay_apart() -> None:
    """A sum over rows is not a sum over columns."""
    x = pk.var("x", (3, 3))

    assert len(names(simplify(ops.reduce_sum(x, axis=0), ops.reduce_sum(x, axis=1)))) == 2


def test_different_control_dependencies_stay_apart() -> None:
    """Nodes with different control dependencies are not merged."""
    x = pk.var("x", (3,))
    t = ops.tanh(x)
    out = simplify(ops.exp(x), ops.exp(x, control=[t.node]))

    assert sorted(names(out)) == ["exp", "exp", "tanh"]


def test_writes_of_state_are_never_merged() -> None:
    """Two equal writes are two writes."""
    a, x = pk.state("a", np.ones(3, "float32")), pk.var("x", (3,))
    out = simplify(ops.assign(a, x), ops.assign(a, x))

    assert names(out) == ["assign", "assign"]


def test_equal_constants_are_merged() -> None:
    """By dtype, shape and bits: 0.0 and -0.0, and 1 and 1.0, stay apart."""
    x = pk.var("x", (2,))
    zero, minus, also = (pk.constant(np.full(2, v, "float32")) for v in (0.0, -0.0, 0.0))
    out = simplify(ops.add(x, zero), ops.add(x, minus), ops.add(x, also))

    assert names(out).count("constant") == 2
    assert out.outputs[0] is out.outputs[2] and out.outputs[0] is not out.outputs[1]


def test_constant_expressions_are_folded() -> None:
    """An operator of constants becomes a constant with the value of running it."""
    c = pk.constant(np.array([1.0, 2.0], "float32"), name="c")
    y = ops.exp(c + c, name="y")
    out = simplify(y)

    assert names(out) == ["constant"]
    assert out.outputs[0].node.name == "y"
    np.testing.assert_array_equal(
        out.outputs[0].node.params["value"], pk.interpret(pk.Graph([y]))[0]
    )


def test_several_results_are_folded() -> None:
    """Each result of an operator becomes a constant of its own."""
    both = pk.register_op("test_sum_difference", num_inputs=2, num_outputs=2)
    both.set_attr("FCodeGen", lambda node, a, b: (a + b, a - b))
    both.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    a, b = both(pk.constant(np.ones(2, "float32")), pk.constant(np.ones(2, "float32")), name="p")
    out = simplify(a, b)

    assert names(out) == ["constant", "constant"]
    assert [e.node.name for e in out.outputs] == ["p_0", "p_1"]
    assert [float(e.node.params["value"][0]) for e in out.outputs] == [2.0, 0.0]


def test_a_broadcast_of_a_constant_is_not_folded() -> None:
    """A broadcast of a scalar does not become an array that must be read from memory."""
    c = pk.constant(np.float32(2.0))
    big = ops.broadcast_to(c, shape=(64, 1024))
    small = ops.broadcast_to(c, shape=(8,))

    assert names(simplify(ops.add(big, pk.var("x", (64, 1024))))) == [
        "constant",
        "broadcast_to",
        "add",
    ]
    assert names(simplify(small)) == ["constant"]


def test_large_values_are_not_folded() -> None:
    """A value beyond 64 MiB is computed when the graph runs."""
    c = pk.constant(np.ones((9000, 1), "float32"))
    big = ops.matmul(c, ops.transpose(c))  # 324 MB

    assert "matmul" in names(simplify(big))


def test_transposed_weights_are_folded() -> None:
    """A transposed constant is transposed once."""
    w = pk.constant(np.arange(6, dtype="float32").reshape(2, 3))
    out = simplify(ops.matmul(pk.var("x", (4, 3)), ops.transpose(w)))

    assert names(out) == ["constant", "matmul"]


def test_values_of_unknown_size_are_not_folded() -> None:
    """A value with a size that only a call knows stays."""
    c = pk.constant(np.float32(2.0))
    x = pk.var("x", ("n",))
    y = ops.broadcast_to(c, shape=x.shape) + x

    assert "broadcast_to" in names(simplify(y))


def test_rewrites_repeat_until_nothing_changes() -> None:
    """Rewriting one node lets its users be rewritten, and new nodes too."""
    x = pk.var("x", (2, 3, 4))
    y = x
    for _ in range(6):
        y = ops.transpose(y, axes=(2, 0, 1))
    z = ops.reshape(ops.reshape(y, shape=(6, 4)), shape=(2, 3, 4))
    out = simplify(z)

    assert out.outputs == (x,)


def test_inexact_rewrites_are_not_applied() -> None:
    """x + 0 is not x (-0.0), and x * 0 is not 0 (NaN)."""
    x = pk.var("x", (3,))
    out = simplify(x + 0.0, x * 0.0, x - x)

    assert [e.node.op and e.node.op.name for e in out.outputs] == ["add", "mul", "sub"]


def test_a_simplified_graph_is_a_fixed_point() -> None:
    """Running the pass again changes nothing, and keeps all nodes."""
    x = pk.var("x", (2, 3))
    once = simplify(ops.softmax(ops.exp(x) + ops.exp(x)))
    twice = pk.ApplyPasses(once, "Simplify")

    assert twice.outputs == once.outputs


def test_updates_are_simplified_too() -> None:
    """New values of state are heads like outputs."""
    a = pk.state("a", np.ones(3, "float32"))
    x = pk.var("x", (3,))
    graph = pk.Graph([ops.exp(x)], [(a.node, ops.exp(x))])
    out = pk.ApplyPasses(graph, "Simplify")

    assert out.updates == ((a.node, out.outputs[0]),)


def test_fuel_limits_rewrites() -> None:
    """With fuel 1 one rewrite is done and recorded; with 0 none."""
    x = pk.var("x", (3,))
    graph = pk.Graph([ops.exp(x, name="a"), ops.exp(x, name="b"), ops.exp(x, name="c")])
    with pk.PassContext(fuel=1) as context:
        once = pk.ApplyPasses(graph, "Simplify")

    assert names(once) == ["exp", "exp"]
    assert context.fuel.spent == ["Simplify: merge exp 'b'"]
    assert names(pk.ApplyPasses(graph, "Simplify", fuel=0)) == ["exp"] * 3
    c = pk.constant(np.ones(2, "float32"))
    assert names(simplify(ops.exp(c), fuel=0)) == ["constant", "exp"]
    t = ops.transpose(ops.transpose(pk.var("m", (2, 3))))
    assert names(simplify(t, fuel=0)) == ["transpose", "transpose"]


def test_nodes_with_control_dependencies_are_not_rewritten() -> None:
    """A node that must wait for another is not replaced by something that does not."""
    x = pk.var("x", (2, 3))
    e = ops.exp(x)
    t = ops.transpose(ops.transpose(x), control=[e.node])
    folded = ops.exp(pk.constant(np.ones(2, "float32")), control=[e.node])

    assert names(simplify(t)) == ["transpose", "exp", "transpose"]
    assert "exp" in names(simplify(folded))


def flip(name: str, to: str) -> pk.Op:
    """An operator that FSimplify turns into another one."""
    op = pk.register_op(name)
    op.set_attr("FInferShape", lambda node, s: s)
    op.set_attr("FSimplify", lambda node: getattr(ops, to)(*node.inputs))
    return op


def test_rewrites_that_return_to_a_node_end() -> None:
    """a -> b -> a ends at an a, and the graph stays right."""
    a, _ = flip("test_heads", "test_tails"), flip("test_tails", "test_heads")
    out = simplify(a(a(pk.var("x", (3,)))))

    assert len(names(out)) == 2
    assert set(names(out)) <= {"test_heads", "test_tails"}


def test_endless_rewrites_are_an_error() -> None:
    """The error names an operator whose FSimplify gives ever new nodes."""
    grow = pk.register_op("test_grow", params={"n": 0})
    grow.set_attr("FInferShape", lambda node, s: s)
    grow.set_attr("FSimplify", lambda node: grow(node.inputs[0], n=node.params["n"] + 1))

    with pytest.raises(
        pk.PassError, match="test_grow still rewrites its own results after 1000 rewrites"
    ):
        simplify(grow(pk.var("x", (3,))))


def test_a_rewrite_that_uses_the_node_itself_is_an_error() -> None:
    """y -> neg(y) is an error."""
    selfish = pk.register_op("test_selfish")
    selfish.set_attr("FInferShape", lambda node, s: s)
    selfish.set_attr("FSimplify", lambda node: ops.neg(node.entries[0]))

    with pytest.raises(
        pk.PassError,
        match="FSimplify of test_selfish 's' returns an entry that is computed from test_self",
    ):
        simplify(selfish(pk.var("x", (3,)), name="s"))


def test_a_rewrite_must_keep_shape_and_dtype() -> None:
    """An FSimplify that changes shape or dtype is an error with both."""
    squash = pk.register_op("test_squash")
    squash.set_attr("FInferShape", lambda node, s: s)
    squash.set_attr("FSimplify", lambda node: ops.reshape(node.inputs[0], shape=(6,)))

    with pytest.raises(
        pk.PassError,
        match=r"test_squash 's' must keep .*, float32\(2, 3\), got float32\(6,\); insert",
    ):
        simplify(squash(pk.var("x", (2, 3)), name="s"))


def test_simplifying_is_deterministic_and_deep() -> None:
    """A chain of 20,000 operators with equal halves is halved, without recursion."""
    x = pk.var("x", (3,))
    a = b = x
    for k in range(10_000):
        op = (ops.exp, ops.tanh)[k % 2]
        a, b = op(a), op(b)
    out = simplify(a, b)

    assert len(out.nodes) == 10_001
    assert out.key == simplify(b, a).key


def test_random_graphs_keep_every_bit(rng: np.random.Generator) -> None:
    """Simplified graphs compute the same bits, with less work."""
    before = after = 0
    for _ in range(40):
        x = pk.var("x", (2, 3))
        values = [
            x,
            pk.constant(rng.normal(size=(2, 3)).astype("float32")),
            pk.constant(np.float32(2)),
        ]
        for _ in range(15):
            a, b = (values[int(k)] for k in rng.integers(0, len(values), 2))
            kind = int(rng.integers(5))
            if kind == 0:
                values.append(ops.add(a, b))
            elif kind == 1:
                values.append(ops.neg(a))
            elif kind == 2 and a.shape == (2, 3):
                values.append(ops.transpose(ops.transpose(a)))
            elif kind == 3:
                values.append(ops.mul(a, 1.0))
            else:
                values.append(ops.maximum(b, a))
        graph = pk.Graph(values[-3:])
        out = pk.ApplyPasses(graph, "Simplify")
        feeds = {"x": rng.normal(size=(2, 3)).astype("float32")} if graph.inputs else {}
        kept = feeds if out.inputs else {}
        for got, expected in zip(pk.interpret(out, kept), pk.interpret(graph, feeds), strict=True):
            assert got.tobytes() == expected.tobytes()
        before, after = before + len(graph.nodes), after + len(out.nodes)
    assert after < 0.9 * before
