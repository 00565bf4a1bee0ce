"""Shapes in both directions, with unknown ranks and sizes, and guards for a call to check."""

from __future__ import annotations

from typing import Any

import pytest

import passkit as pk

n, m = pk.Size.symbol("n"), pk.Size.symbol("m")


def shapes(*outputs: pk.Entry) -> dict[str, object]:
    """The inferred shape of every named node's first entry."""
    graph = pk.ApplyPasses(pk.Graph(outputs), "InferShape")
    return {v.name: graph.attrs["shape"][v.entries[0]] for v in graph.nodes if v.name}


def test_shapes_flow_backward() -> None:
    """exp(x) + y with only y known gives all four entries a shape (NNVM)."""
    x, y = pk.var("x", None), pk.var("y", (2, 3))
    e = pk.ops.exp(x, name="e")

    assert shapes(pk.ops.add(e, y, name="z")) == dict.fromkeys("xyez", (2, 3))


def annotations(text: str, *names: str) -> list[str]:
    """The shapes that InferShape infers for some names of a graph in text, as text."""
    graph = pk.ApplyPasses(pk.parse(text), "InferShape")
    result = {graph.names[e.node]: str(s) for e, s in graph.attrs["shape"].items()}
    return [result[name] for name in names]


def test_shapes_flow_forward_and_backward() -> None:
    """Shapes follow forward through a product and a reduction, backward through a sum."""
    text = "x: f32[n, 4]; w: f32[4, 8]; b: f32[...]; m = matmul(x, w); r = reduce_sum(m, axis=1)"
    result = annotations(f"{text}; y = add(r, b); return y", "m", "r", "b", "y")

    assert result == ["(n, 8)", "(n,)", "(n,)", "(n,)"]


def test_an_output_implies_the_shape_of_a_single_input() -> None:
    """Shapes follow backward through a chain of elementwise operators."""
    x = pk.var("x", None)
    y = pk.ops.exp(pk.ops.tanh(x)) + pk.var("y", ("n", 4))

    assert shapes(y)["x"] == (n, 4)


def test_a_layer_implies_the_shapes_of_its_weights() -> None:
    """linear(num_hidden) implies the shapes of an undeclared weight and bias (NNVM)."""
    y = pk.ops.linear(pk.var("x", (8, 20)), num_hidden=5, no_bias=False, name="fc")

    result = shapes(y)

    assert (result["fc_weight"], result["fc_bias"], result["fc"]) == ((5, 20), (5,), (8, 5))


def test_unknown_shapes_are_counted() -> None:
    """A shape that does not follow stays None, and is counted."""
    x, y = pk.var("x", None), pk.var("y", (2,))
    graph = pk.ApplyPasses(pk.Graph([pk.ops.exp(x), pk.ops.exp(y)]), "InferShape")

    assert graph.attrs["shape_num_unknown"] == 2
    assert list(graph.attrs["shape"].values()) == [None, None, (2,), (2,)]


def test_equal_sizes_are_unified() -> None:
    """n + 8 gives n the value 8 everywhere, and keeps the guard."""
    x = pk.var("x", ("n", 3))
    e = pk.ops.exp(x, name="e")
    graph = pk.ApplyPasses(pk.Graph([e, x + pk.var("y", (8, 3))]), "InferShape")

    assert [graph.attrs["shape"][v] for v in (x, e)] == [(8, 3), (8, 3)]
    assert graph.attrs["shape_guards"] == ((n, 8, "add: dimension 0"),)


def test_equal_symbols_are_unified() -> None:
    """One of two equal unknown sizes replaces the other."""
    x, y = pk.var("x", ("n",)), pk.var("y", ("m",))

    result = shapes(pk.ops.add(x, y, name="z"))

    assert result["x"] == result["y"] == result["z"] == (m,)


def test_unification_goes_on_until_nothing_changes() -> None:
    """A size that becomes known makes others known."""
    x, y, z = (pk.var(v, (s,)) for v, s in (("x", "n"), ("y", "m"), ("z", 5)))

    assert shapes(x + y, y + z) == {"x": (5,), "y": (5,), "z": (5,)}


def test_static_graphs_have_no_guards() -> None:
    """A graph of known sizes leaves nothing for a call to check."""
    graph = pk.ApplyPasses(pk.Graph([pk.var("x", (3,)) + pk.var("y", (3,))]), "InferShape")

    assert graph.attrs["shape_guards"] == ()


def test_guards_outlive_changes_of_the_graph() -> None:
    """A guard of a node that is rewritten or fused away must still be checked by a call."""
    x, y = pk.var("x", (pk.Size.symbol("n") * 2,)), pk.var("y", (pk.Size.symbol("m") * 3,))
    graph = pk.ApplyPasses(pk.Graph([x + y]), ["InferShape", "Simplify", "InferShape"])

    assert [(a, b) for a, b, _ in graph.attrs["shape_guards"]] == [(n * 2, m * 3)]


def test_shapes_of_both_directions_must_agree() -> None:
    """The message has operator, node and both shapes."""
    hidden = pk.register_op("test_wants_rank_2")
    hidden.set_attr("FInferShape", lambda node, shape: shape)
    hidden.set_attr("FInferShapeBack", lambda node, shapes, outs: [(2, 3)])
    x = pk.var("x", None)
    y = hidden(pk.ops.exp(x, name="e"), name="h")

    with pytest.raises(pk.ShapeError, match=r"add 's'.*, got \(2, 3\) and \(4,\)"):
        shapes(y, pk.ops.add(x, pk.var("z", (4,)), name="s"))


def test_a_conflict_of_inputs_and_uses_is_an_error() -> None:
    """The error has the shape implied by inputs and that implied by uses."""
    odd = pk.register_op("test_halves")
    odd.set_attr("FInferShape", lambda node, s: None if s is None else (s[0] // 2, *s[1:]))
    odd.set_attr("FInferShapeBack", lambda node, shapes, outs: [(4, 3)])
    x = pk.var("x", None)
    y = odd(x, name="h")
    user = pk.register_op("test_wants_3_3")
    user.set_attr("FInferShape", lambda node, s: s)
    user.set_attr("FInferShapeBack", lambda node, shapes, outs: [(3, 3)])

    with pytest.raises(
        pk.ShapeError, match=r"test_halves 'h' has shape \(2, 3\) by its inputs and \(3"
    ):
        shapes(user(y))


def test_a_backward_rule_must_return_a_shape_for_each_input() -> None:
    """FInferShapeBack with a wrong number of shapes is an error."""
    bad = pk.register_op("test_bad_back")
    bad.set_attr("FInferShapeBack", lambda node, shapes, outs: [(2,), (2,)])

    with pytest.raises(
        pk.RuleError, match="FInferShapeBack of test_bad_back 'b' must give a sequence of 1, .*got"
    ):
        shapes(bad(pk.var("x", None), name="b"))


def solved(guards: list[tuple[Any, Any]]) -> dict[str, Any]:
    """Return the values that InferShape infers for n and m where sums require equal sizes.

    A size that stays unknown is left out. No operand broadcasts, as all have a second dimension.
    """
    sizes = [pk.var(s, (pk.Size.symbol(s), 2)) for s in "nm"]
    sums = [pk.var("a", (a, 2)) + pk.var("b", (b, 2)) for a, b in guards]
    graph = pk.ApplyPasses(pk.Graph([*sizes, *sums]), "InferShape")
    extents = {e.node.name: graph.attrs["shape"][e][0] for e in sizes}
    return {s: extent for s, extent in extents.items() if extent != pk.Size.symbol(s)}


@pytest.mark.parametrize(
    ("guards", "result"),
    [
        ([(n, 8)], {"n": 8}),
        ([(n, m)], {"n": m}),
        ([(n, m), (m, 4)], {"n": 4, "m": 4}),
        ([(n * 2 + 1, 9)], {"n": 4}),
        ([(n * m, 12), (m, 3)], {"m": 3, "n": 4}),
        ([(m, 3), (n * m, 12)], {"m": 3, "n": 4}),
        ([(n * 2, m * 2)], {"n": m}),
        ([(n * 2, m * 3)], {}),
        ([(n // m, 4)], {}),
        ([(n + m, n + 2)], {"m": 2}),
    ],
)
def test_equalities_are_solved(guards: list[tuple[Any, Any]], result: dict[str, Any]) -> None:
    """Symbols that occur linearly in an equality get a value; products and quotients do not."""
    assert solved(guards) == result


@pytest.mark.parametrize(
    ("guards", "message"),
    [
        ([(n, 8), (n, 9)], r"dimension 0 must agree, got n \(= 8\) and 9"),
        ([(n * 2, 9)], r"dimension 0 must agree, which needs n = 9/2, and a size is a whole"),
        ([(n + 9, 2)], r"dimension 0 must agree, which needs n = -7/1, and a size is a whole"),
    ],
)
def test_a_contradiction_is_an_error(guards: list[tuple[Any, Any]], message: str) -> None:
    """An equality that can never hold is an error before any call."""
    with pytest.raises(pk.ShapeError, match=message):
        solved(guards)


@pytest.mark.parametrize("shape", [(4, 8), ("n", 8), None])
def test_inference_is_linear(shape: tuple[int | str, ...] | None) -> None:
    """Each operator's rule is called a few times at most, in a long chain as well."""
    calls = 0

    def count(result: Any) -> Any:
        nonlocal calls
        calls += 1
        return result

    counted = pk.register_op("test_infer_shape_counted")
    counted.set_attr("FInferShape", lambda node, shape: count(shape))
    counted.set_attr("FInferShapeBack", lambda node, shapes, outs: count(list(outs)))
    y = x = pk.var("x", shape)
    for _ in range(1500):
        y = counted(y) + x
    calls = 0
    graph = pk.ApplyPasses(pk.Graph([y + pk.var("z", (4, 8))]), "InferShape")

    assert set(graph.attrs["shape"].values()) == {(4, 8)}
    assert calls <= 4 * 1500
    assert (calls >= 1500) is (shape != (4, 8))  # nothing is left to infer where all is known
