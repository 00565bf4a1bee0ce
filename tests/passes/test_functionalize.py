"""Functionalize: reads and writes of state become values, in program order."""

from __future__ import annotations

import numpy as np
import pytest

import passkit as pk

ops = pk.ops


def counter(value: float = 1.0) -> pk.Entry:
    """A state variable of three floats."""
    return pk.state("a", np.full(3, value, "float32"))


def run(graph: pk.Graph) -> tuple[list[float], float]:
    """The first element of every output, and of the state afterwards."""
    state: dict[str, np.ndarray] = {}
    outs = pk.interpret(graph, {}, state)
    return [float(o[0]) for o in outs], float(state["a"][0]) if "a" in state else float("nan")


def check(graph: pk.Graph) -> pk.Graph:
    """The functional graph, after checking that it means the same and has no writes left."""
    out = pk.ApplyPasses(graph, "Functionalize")
    assert run(out) == run(graph)
    assert not any(v.op is ops.assign for v in out.nodes)
    return out


def test_a_graph_without_writes_is_unchanged() -> None:
    """A graph without writes keeps its nodes."""
    graph = pk.Graph([ops.exp(pk.var("x", (3,)))])

    assert pk.ApplyPasses(graph, "Functionalize").outputs == graph.outputs


def test_a_write_becomes_an_update() -> None:
    """The result of a write is the new value, and the variable is updated with it."""
    a = counter()
    out = check(pk.Graph([ops.assign(a, a + 1.0)]))

    assert run(out) == ([2.0], 2.0)
    assert out.updates == ((a.node, out.outputs[0]),)


def test_a_write_becomes_an_update_and_its_control_edge_goes() -> None:
    """The text shows an update in place of a write, and no control dependency."""
    before = pk.parse(
        "state a: f32[2] = [1, 2]; zero: f32[2] = [0, 0]; e = exp(a); w = assign(a, zero)\n"
        "y = add(e, zero) after(w); return y"
    )

    assert pk.to_text(pk.ApplyPasses(before, "Functionalize")).splitlines() == [
        "state a: f32[2] = [1.0, 2.0]",
        "e = exp(a)",
        "zero: f32[2] = [0.0, 0.0]",
        "y = add(e, zero)",
        "update a = zero",
        "return y",
    ]


def test_a_read_before_a_write_keeps_the_old_value() -> None:
    """exp(a) before assign(a, 0), with a control edge to the write: exp of the old a (D3)."""
    a = counter(2.0)
    w = ops.assign(a, ops.mul(a, 0.0))
    y = ops.add(ops.exp(a), 1.0, control=[w.node])
    out = check(pk.Graph([y]))

    values, after = run(out)
    np.testing.assert_allclose(values, np.exp(2.0) + 1)
    assert after == 0.0


def test_a_read_after_a_write_sees_it() -> None:
    """A variable that is read by a node after the write has the new value."""
    a = counter()
    w = ops.assign(a, a + 1.0)
    y = ops.mul(ops.identity(w), a)

    assert run(check(pk.Graph([y]))) == ([4.0], 2.0)


def test_each_write_sees_the_one_before() -> None:
    """Each write sees the one before; the last one stays."""
    a = counter()
    first = ops.assign(a, a + 1.0)
    second = ops.assign(a, a * 10.0, control=[first.node])

    assert run(check(pk.Graph([second]))) == ([10.0], 10.0)
    assert run(check(pk.Graph([first, ops.assign(a, first * 10.0)]))) == ([2.0, 20.0], 20.0)


def test_outputs_are_read_in_their_order() -> None:
    """A variable that is an output is read when the outputs in front of it are done."""
    a = counter()
    w = ops.assign(a, a + 1.0)

    assert run(check(pk.Graph([a, w]))) == ([1.0, 2.0], 2.0)
    b = counter()
    w = ops.assign(b, b + 1.0)
    assert run(check(pk.Graph([w, b]))) == ([2.0, 2.0], 2.0)


def test_control_edges_to_other_nodes_are_kept() -> None:
    """Only edges to writes go, and what a write waited for is waited for instead."""
    a, x = counter(), pk.var("x", (3,))
    e = ops.exp(x, name="e")
    w = ops.assign(a, x, control=[e.node])
    y = ops.tanh(x, name="y", control=[w.node, e.node])
    out = pk.ApplyPasses(pk.Graph([y]), "Functionalize")

    assert out.outputs[0].node.control == (e.node,)


def test_updates_of_the_graph_come_last() -> None:
    """A graph that has updates already keeps them; they win over writes."""
    a = counter()
    w = ops.assign(a, a + 1.0)
    graph = pk.Graph([w], [(a.node, w * 5.0)])

    assert run(check(graph)) == ([2.0], 10.0)


def test_functionalizing_twice_changes_nothing() -> None:
    """The result is a functional graph."""
    a = counter()
    once = check(pk.Graph([ops.assign(a, a + 1.0)]))
    twice = check(once)

    assert (twice.outputs, twice.updates) == (once.outputs, once.updates)


def test_a_write_of_the_same_value_is_no_update() -> None:
    """assign(a, a) leaves no update."""
    a = counter()

    assert pk.ApplyPasses(pk.Graph([ops.assign(a, a)]), "Functionalize").updates == ()


def test_only_state_can_be_written() -> None:
    """An operator of the user's that writes an input or a result is refused."""
    poke = pk.register_op("test_poke")
    poke.set_attr("TStateful", True)
    poke.set_attr("FExpand", lambda node, x: ops.neg(x))
    x = pk.var("x", (3,))

    with pytest.raises(pk.GraphError, match="test_poke 'p' must write a state .* 'x' is an input"):
        pk.ApplyPasses(pk.Graph([poke(x, name="p")]), "Functionalize")
    with pytest.raises(pk.GraphError, match="'e' is the result of exp 'e'; pk.state"):
        pk.ApplyPasses(pk.Graph([poke(ops.exp(x, name="e"))]), "Functionalize")


def test_a_write_needs_a_variable_and_a_value() -> None:
    """An operator that writes state without an input, or that expands to nothing, is refused."""
    nowhere = pk.register_op("test_writes_nowhere", num_inputs=0)
    nothing = pk.register_op("test_writes_nothing", num_inputs=1)
    for op in (nowhere, nothing):
        op.set_attr("TStateful", True)
        op.set_attr("FExpand", lambda node, *x: None)

    with pytest.raises(pk.GraphError, match="test_writes_nowhere 'w' must write .* has no inputs"):
        pk.ApplyPasses(pk.Graph([nowhere(name="w")]), "Functionalize")
    with pytest.raises(pk.GraphError, match="nothing writes state.* the new value of 'a'"):
        pk.ApplyPasses(pk.Graph([nothing(counter(3.0))]), "Functionalize")


def test_a_user_operator_writes_its_expansion() -> None:
    """Any operator with TStateful and FExpand writes the value of its expansion."""
    double = pk.register_op("test_double_in_place")
    double.set_attr("TStateful", True)
    double.set_attr("FInferShape", lambda node, s: s)
    double.set_attr("FExpand", lambda node, x: ops.add(x, x))
    double.set_attr("FCompute", lambda node, x: x + x)
    a = counter(3.0)
    out = pk.ApplyPasses(pk.Graph([double(a)]), "Functionalize")

    assert run(out) == ([6.0], 6.0)


def test_random_programs_keep_their_meaning(rng: np.random.Generator) -> None:
    """Reads and writes in any order, with control edges, give what running them gives."""
    written = 0
    for _ in range(60):
        a, b = counter(), pk.state("b", np.full(3, 2.0, "float32"))
        values = [a, b]
        for _ in range(int(rng.integers(1, 12))):
            x, y = (values[int(k)] for k in rng.integers(0, len(values), 2))
            control = [values[int(rng.integers(2, len(values)))].node] if len(values) > 2 else []
            control = control if rng.random() < 0.3 else []
            if rng.random() < 0.4:
                values.append(ops.assign((a, b)[int(rng.integers(2))], x, control=control))
                written += 1
            else:
                values.append(ops.sub(x, ops.mul(y, 0.5), control=control))
        outputs = [values[int(k)] for k in rng.integers(0, len(values), 3)]
        graph = pk.Graph([*outputs, values[-1]])
        out = pk.ApplyPasses(graph, ["Functionalize", "Simplify"])
        left: dict[str, np.ndarray] = {}
        right: dict[str, np.ndarray] = {}
        for got, expected in zip(
            pk.interpret(out, {}, left), pk.interpret(graph, {}, right), strict=True
        ):
            np.testing.assert_array_equal(got, expected)
        for name in {*left, *right} & {v.name for v, _ in out.updates}:
            np.testing.assert_array_equal(left[name], right[name])
    assert written > 60
