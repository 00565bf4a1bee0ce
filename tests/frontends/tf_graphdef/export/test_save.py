"""Saved models: names, symbolic sizes, state, fused graphs, user operators, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import ModelError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.internals import largest_model
from tests.frontends.tf_graphdef.models import GraphDef

MODELS = Path(__file__).resolve().parents[4] / "examples" / "models"


def saved_nodes(graph: pk.Graph) -> list[Any]:
    """Return the NodeDefs of the saved model."""
    return list(GraphDef.FromString(tf_graphdef.save(graph)).node)


def operators_of(graph: pk.Graph) -> list[str]:
    """Return the operators of the saved model, without constants."""
    return [n.op for n in saved_nodes(graph) if n.op != "Const"]


def reloaded(graph: pk.Graph, feeds: dict[str, Any]) -> pk.Graph:
    """Return the graph after saving and loading, checked to give the same results."""
    back = tf_graphdef.load(tf_graphdef.save(graph))
    expected, results = pk.interpret(graph, feeds), pk.interpret(back, feeds)
    for a, b in zip(results, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    return back


def test_the_digits_model_is_saved_without_additions(tmp_path: Path) -> None:
    """As bytes, file and text, the saved model has no more nodes than the original."""
    graph = tf_graphdef.load(MODELS / "digits.pb")
    images = np.load(MODELS / "digits.npz")["x"]

    back = reloaded(graph, {"x": images})
    for name in ("digits.pb", "digits.pbtxt"):
        data = tf_graphdef.save(graph, tmp_path / name)
        assert tf_graphdef.load(tmp_path / name).key == back.key
        assert tf_graphdef.load(data).key == back.key

    assert [n.op for n in back.nodes] == [n.op for n in graph.nodes]
    assert [n.name for n in back.inputs] == ["x"]
    assert [e.name for e in back.outputs] == ["probabilities"]


def test_inputs_and_outputs_keep_their_names() -> None:
    """Outputs that other nodes read, or that are returned twice, keep their names."""
    x = pk.var("x", ("n", 3))
    y = pk.ops.exp(x, name="layer/y")
    z = pk.ops.add(y, y, name="z")

    back = reloaded(pk.Graph([y, z, z]), {"x": np.ones((2, 3), "f")})

    assert [e.name for e in back.outputs] == ["layer/y", "z", "z_1"]


def test_names_that_tensorflow_does_not_allow_are_changed() -> None:
    """Invalid characters become _, and an invalid first one gets a prefix."""
    x = pk.var("_a b\n$(rm)", (2,))

    names = [n.name for n in saved_nodes(pk.Graph([pk.ops.neg(x, name="")]))]

    assert names == ["x_a_b___rm_", "neg/neg", "neg"]


def test_symbolic_sizes_become_shape_arithmetic() -> None:
    """Shapes such as n * m and n + 1 are computed from the shapes of inputs."""
    x, y = pk.var("x", ("n", "m")), pk.var("y", ("n", 4))
    n, m = x.shape or (0, 0)
    flat = pk.ops.reshape(x, shape=(n * m,))
    wide = pk.ops.broadcast_to(pk.ops.reduce_sum(y), shape=(n + 1, m, 2))
    graph = pk.Graph([flat, wide])
    feeds = {"x": np.arange(6, dtype="f").reshape(2, 3), "y": np.ones((2, 4), "f")}

    reloaded(graph, feeds)
    ops = operators_of(graph)

    assert {"Shape", "StridedSlice", "AddV2", "Pack"} <= set(ops)


def test_a_symbol_is_solved_from_a_linear_size() -> None:
    """If an input has 2 n + 1 elements, n is computed by subtracting 1 and halving."""
    n = pk.var("k", ("n",)).shape[0]  # type: ignore[index]
    x = pk.var("x", (2 * n + 1,))
    graph = pk.Graph([pk.ops.slice(x, begin=(1,), size=(n,))])

    back = tf_graphdef.load(tf_graphdef.save(graph))

    assert pk.interpret(back, {"x": np.arange(9, dtype="f")})[0].tolist() == [1, 2, 3, 4]
    assert {"Sub", "FloorDiv"} <= set(operators_of(graph))


def test_state_is_a_constant() -> None:
    """A state variable is written as a constant of its initial value."""
    w = pk.state("w", np.array([2.0, 3.0], "f"))
    graph = pk.Graph([pk.var("x", (2,)) * w])

    back = tf_graphdef.load(tf_graphdef.save(graph))

    assert pk.interpret(back, {"x": np.ones(2, "f")})[0].tolist() == [2, 3]


def test_fused_groups_are_flattened() -> None:
    """Groups of Fusion are written operator by operator."""
    x = pk.var("x", (3, 4))
    plain = pk.Graph([pk.ops.tanh(pk.ops.exp(x) + 1)])
    fused = pk.ApplyPasses(plain, ["Fusion"])

    assert operators_of(fused) == ["Placeholder", "Exp", "AddV2", "Tanh", "Identity"]


def test_user_operators_are_written_by_their_expression() -> None:
    """A registered operator is written by its kernel expression, without a TensorFlow exporter."""
    swish = pk.register_op("swish_to_save", num_inputs=1)
    swish.set_attr("FCodeGen", lambda node, x: x / (1.0 + pk.ast.exp(-x)))
    swish.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    graph = pk.Graph([swish(pk.var("x", ("n",)), name="y")])

    reloaded(graph, {"x": np.linspace(-3, 3, 7, dtype="f")})

    assert operators_of(graph) == ["Placeholder", "Neg", "Exp", "AddV2", "RealDiv", "Identity"]


def test_missing_kernels_are_replaced_by_wider_types() -> None:
    """Comparisons of booleans and roundings of 16-bit floats are computed between casts."""
    a, b = pk.var("a", (2,), "bool"), pk.var("b", (2,), "bool")

    assert operators_of(pk.Graph([pk.ops.less(a, b)]))[2:] == ["Cast", "Cast", "Less", "Identity"]
    half = pk.Graph([pk.ops.rint(pk.var("x", (2,), "float16"))])
    assert operators_of(half)[1:] == ["Cast", "Rint", "Cast", "Identity"]


def test_casts_to_integers_saturate() -> None:
    """NaN becomes 0 and too large floats the limit, which TensorFlow's Cast leaves undefined."""
    x = pk.var("x", (5,))
    feed = np.array([np.nan, np.inf, -1e30, 2.7, -2.7], "f")

    reloaded(pk.Graph([pk.ops.cast(x, dtype="int32"), pk.ops.cast(x, dtype="uint8")]), {"x": feed})


def test_all_that_cannot_be_written_is_in_one_error() -> None:
    """The error lists each operator with its nodes and the reason."""
    a, b = pk.var("a", (3,), "int32"), pk.var("b", (3,), "int32")
    results = [pk.ops.gcd(a, b, name=f"g{k}") for k in range(4)]
    many = pk.ops.unique(a, size=2, name="u")

    with pytest.raises(ModelError) as caught:
        tf_graphdef.save(pk.Graph([*results, many[0], pk.ops.exp(pk.ops.cast(results[0]))]))

    assert str(caught.value) == (
        "5 node(s) of 2 operator(s) cannot be written for TensorFlow: gcd × 4 ('g0', 'g1', 'g2', "
        "…): TensorFlow has no equivalent of the function gcd; unique × 1 ('u'): TensorFlow has "
        "no equivalent of the operator unique. Save a graph that ends before these nodes, or "
        "begins after them"
    )


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda x: pk.ops.gcd(x, x), "TensorFlow has no equivalent of the function gcd"),
        (
            lambda x: pk.ops.unique(x, size=2)[0],
            "TensorFlow has no equivalent of the operator unique",
        ),
    ],
)
def test_the_first_reason_is_the_cause(build: Any, reason: str) -> None:
    """The first operator's error is the cause of the collective error."""
    with pytest.raises(ModelError, match=reason) as caught:
        tf_graphdef.save(pk.Graph([build(pk.var("x", (3,), "int32"))]))

    assert str(caught.value.__cause__) == reason


def test_a_graph_that_assigns_is_refused() -> None:
    """A graph that updates state cannot be frozen."""
    w = pk.state("weights", np.zeros(2, "f"))

    with pytest.raises(ModelError, match="updates 1 state variable.*'weights'"):
        tf_graphdef.save(pk.Graph([pk.ops.assign(w, w + 1)]))


def test_state_without_a_value_is_refused() -> None:
    """State without an initial value is refused."""
    w = pk.state("w", ((2,), "float32"))

    with pytest.raises(ModelError, match=r"state × 1 \('w'\): it has no initial value"):
        tf_graphdef.save(pk.Graph([w + 1]))


def test_a_size_that_no_input_has_is_refused() -> None:
    """A symbolic size that no input dimension gives is refused."""
    n = pk.var("k", ("n",)).shape[0]  # type: ignore[index]
    graph = pk.Graph([pk.ops.broadcast_to(pk.var("x", ()), shape=(n,))])

    with pytest.raises(ModelError, match="the size 'n' needs an input with a dimension that"):
        tf_graphdef.save(graph)


def test_errors_of_composites_name_the_unknown_size() -> None:
    """A pseudoinverse needs a known number of singular values."""
    graph = pk.Graph([pk.ops.pinv(pk.var("x", ("n", 3)), name="p")])

    with pytest.raises(ModelError, match=r"pinv × 1 \('p'\): svd needs to know which of n rows"):
        tf_graphdef.save(graph)


@pytest.mark.parametrize("name", ["pinv", "matrix_rank"])
def test_a_tolerance_needs_known_sides(name: str) -> None:
    """The default tolerance is refused for symbolic sides; a given one is written."""
    x = pk.var("x", ("n", "n"))

    with pytest.raises(ModelError, match=rf"{name} needs known numbers of .* got \(n, n\)"):
        tf_graphdef.save(pk.Graph([getattr(pk.ops, name)(x)]))

    assert any(n.op == "Svd" for n in saved_nodes(pk.Graph([getattr(pk.ops, name)(x, rtol=0.1)])))


def test_an_expansion_that_declines_is_refused() -> None:
    """A search of unknown length has no expansion, and rows of unknown number no equivalent."""
    position = pk.ops.searchsorted(pk.var("a", ("n", "m")), pk.var("v", ("n", "k")), name="s")

    with pytest.raises(ModelError, match=r"searchsorted × 1 \('s'\): TensorFlow has no equivalent"):
        tf_graphdef.save(pk.Graph([position]))


def test_signs_without_an_operator_are_refused() -> None:
    """A user operator whose expression has a sign that TensorFlow lacks is refused."""
    shift = pk.register_op("shift_to_save", num_inputs=1)
    shift.set_attr("FCodeGen", lambda node, x: pk.ast.Binary("<<", x, x, x.dtype))
    shift.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)

    with pytest.raises(ModelError, match="TensorFlow has no equivalent of << in expressions"):
        tf_graphdef.save(pk.Graph([shift(pk.var("x", (3,), "int32"))]))


def test_a_type_without_a_kernel_is_refused() -> None:
    """A user operator on a dtype without any TensorFlow kernel is refused."""
    root = pk.register_op("root_to_save", num_inputs=1)
    root.set_attr("FCodeGen", lambda node, x: pk.ast.sqrt(x))
    root.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)

    with pytest.raises(ModelError, match="TensorFlow has no kernel of Sqrt for uint64, nor"):
        tf_graphdef.save(pk.Graph([root(pk.var("x", (3,), "uint64"))]))


@pytest.mark.parametrize(
    "build",
    [
        lambda x: pk.ops.sort(x, descending=True),
        lambda x: pk.ops.argsort(x, descending=True),
        lambda x: pk.ops.argsort(x),
        lambda x: pk.ops.top_k(x, k=2)[0],
    ],
)
def test_sorting_complex_numbers_is_refused(build: Any) -> None:
    """TensorFlow has no TopKV2 of complex numbers, in either order."""
    with pytest.raises(ModelError, match="TensorFlow has no kernel of TopKV2 for complex64"):
        tf_graphdef.save(pk.Graph([build(pk.var("x", (3,), "complex64"))]))


def test_expressions_with_unknown_variables_are_refused() -> None:
    """A user operator whose expression refers to an unknown variable is refused."""
    lost = pk.register_op("lost_to_save", num_inputs=1)
    lost.set_attr("FCodeGen", lambda node, x: x + pk.ast.Var("y", x.dtype))
    lost.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)

    with pytest.raises(ModelError, match="TensorFlow has no equivalent of Var of float32"):
        tf_graphdef.save(pk.Graph([lost(pk.var("x", (3,)))]))


def test_a_model_too_large_is_refused() -> None:
    """A GraphDef above the limit of protobuf messages is refused by its size."""
    with largest_model(100), pytest.raises(ModelError, match=r"would have 73,\d+ bytes"):
        tf_graphdef.save(tf_graphdef.load(MODELS / "digits.pb"))


def test_long_chains_are_written() -> None:
    """Long chains of nodes are written without recursion."""
    x = pk.var("x", (2,))
    for _ in range(20_000):
        x = pk.ops.neg(x)

    assert len(saved_nodes(pk.Graph([x]))) == 20_002
