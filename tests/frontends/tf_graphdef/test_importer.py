"""Loading of models: sources, names, edges, outputs, shapes, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import passkit as pk
from passkit.errors import FeedError, ModelError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import const, model, node, placeholder

X = placeholder("x", None, 3)
SAVED = Path(__file__).parent / "saved"
SMALL = model(X, const("c", [1.0, 2.0, 3.0]), node("Mul", "y", "x", "c"))
FEED = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


def result(graph: pk.Graph) -> list[Any]:
    """Return the first result for a feed, as a list."""
    return pk.interpret(graph, {"x": FEED})[0].tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", ["pb", "pbtxt", "str", "bytes", "bytearray", "message"])
def test_every_source_gives_the_same_graph(kind: str, tmp_path: Path) -> None:
    """Files, bytes and messages of a model give the same graph."""
    file = tmp_path / ("m.pbtxt" if kind == "pbtxt" else "m.pb")
    data = SMALL.SerializeToString()
    file.write_bytes(text_format.MessageToString(SMALL).encode() if kind == "pbtxt" else data)
    source = {"str": str(file), "bytes": data, "bytearray": bytearray(data), "message": SMALL}

    graph = tf_graphdef.load(source.get(kind, file))

    assert result(graph) == [[1, 4, 9], [4, 10, 18]]


class GraphDef:
    """A GraphDef of another protobuf package, such as TensorFlow's own."""

    class DESCRIPTOR:
        """Descriptor with the full name of the message."""

        full_name = "tensorflow.GraphDef"

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """Return the message as bytes."""
        data: bytes = SMALL.SerializeToString()
        return data


def test_graphdefs_of_other_packages_are_read() -> None:
    """A GraphDef of another package is read through its bytes."""
    assert result(tf_graphdef.load(GraphDef())) == [[1, 4, 9], [4, 10, 18]]


@pytest.mark.parametrize(("source", "type_name"), [(3, "int"), (None, "NoneType"), ([b""], "list")])
def test_sources_that_are_no_model_are_refused(source: Any, type_name: str) -> None:
    """The type of a source that is no model is named."""
    with pytest.raises(ModelError, match=f"Keras model of TensorFlow, got {type_name}"):
        tf_graphdef.load(source)


def test_unreadable_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing file, a SavedModel folder without model, and an overlong name are refused."""
    monkeypatch.chdir(tmp_path)  # messages cut long names short
    with pytest.raises(ModelError, match=r"or folder exists at 'nothing\.pb'"):
        tf_graphdef.load("nothing.pb")
    with pytest.raises(ModelError, match=r"'\.': .* found a folder without saved_model"):
        tf_graphdef.load(".")
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\1")
    with pytest.raises(ModelError, match=r"'\.' needs one graph with the tags serve, and has 0"):
        tf_graphdef.load("saved_model.pb")
    with pytest.raises(ModelError, match="x…x*' cannot be read: File name too long"):
        tf_graphdef.load("x" * 5000)


def test_names_are_kept() -> None:
    """Nodes, inputs and outputs keep their names."""
    graph = tf_graphdef.load(model(X, node("Neg", "scope/neg", "x"), node("Exp", "e", "scope/neg")))

    assert [n.name for n in graph.nodes] == ["x", "scope/neg", "e"]
    assert graph.outputs[0].name == "e"


def test_a_batch_size_stays_free() -> None:
    """An unknown dimension becomes a symbolic size."""
    graph = tf_graphdef.load(SMALL)

    assert str(graph.inputs[0].entries[0].shape) == "(x.0, 3)"
    assert str(graph.outputs[0].shape) == "(x.0, 3)"


@pytest.mark.parametrize(
    ("shape", "shown_shape"), [((8, 3), "(8, 3)"), (("n", None), "(n, 3)"), ((None, 3), "(x.0, 3)")]
)
def test_shapes_make_inputs_more_precise(shape: Any, shown_shape: str) -> None:
    """``shapes=`` refines unknown dimensions of the model."""
    graph = tf_graphdef.load(SMALL, shapes={"x:0": shape})

    assert str(graph.outputs[0].shape) == shown_shape


@pytest.mark.parametrize(
    ("shape", "shown"),
    [((2, 4), r"\(2, 4\)"), ((2, np.int64(4)), r"\(2, 4\)"), ((None,), r"\(\?\)")],
)
def test_shapes_cannot_contradict_the_model(shape: Any, shown: str) -> None:
    """``shapes=`` cannot change known dimensions."""
    with pytest.raises(ModelError, match=rf"'x' needs the shape \(\?, 3\), got {shown} in shapes="):
        tf_graphdef.load(SMALL, shapes={"x": shape})


def test_shapes_of_unknown_inputs_suggest_the_nearest() -> None:
    """``shapes=`` for an unknown name is refused with the nearest input."""
    with pytest.raises(
        ModelError, match=r"no input 'xx', for which shapes= has \(2,\); did you .*'x'"
    ):
        tf_graphdef.load(SMALL, shapes={"xx": (2,)})
    with pytest.raises(ModelError, match=r"no input 'y', for which shapes= has \(2,\)"):
        tf_graphdef.load(SMALL, shapes={"y": (2,)})


def test_a_default_becomes_an_input_when_it_gets_a_shape() -> None:
    """PlaceholderWithDefault is its default, or an input if ``shapes=`` names it."""
    nodes = [
        const("d", [[1.0, 2.0, 3.0]]),
        node("PlaceholderWithDefault", "p", "d", shape=(None, 3)),
        node("Neg", "y", "p"),
    ]

    assert not tf_graphdef.load(model(*nodes)).inputs
    assert tf_graphdef.load(model(*nodes), shapes={"p": (4, 3)}).outputs[0].shape == (4, 3)


def test_old_scalar_placeholders_have_an_unknown_rank() -> None:
    """Before producer 24, a scalar placeholder has an unknown rank."""
    old = model(placeholder("x"), node("Neg", "y", "x"))
    assert tf_graphdef.load(old).outputs[0].shape == ()
    old.versions.producer = 23

    assert tf_graphdef.load(old).outputs[0].shape is None
    assert tf_graphdef.load(old, shapes={"x": (2, 3)}).outputs[0].shape == (2, 3)


def test_default_outputs_are_the_nodes_that_are_not_read() -> None:
    """Constants, inputs and NoOps that are not read are no default outputs."""
    idle = [const("c", 1.0), node("NoOp", "init"), node("Exp", "b", "x"), node("Neg", "a", "x")]

    assert [e.name for e in tf_graphdef.load(model(X, *idle)).outputs] == ["b", "a"]


def test_outputs_by_name() -> None:
    """Any node can be an output, in any order, with or without an index."""
    nodes = [node("Exp", "a", "x"), node("Neg", "b", "a")]

    graph = tf_graphdef.load(model(X, *nodes), outputs=["b:0", "a"])

    assert [e.name for e in graph.outputs] == ["b", "a"]
    assert tf_graphdef.load(model(X, *nodes), outputs="a").outputs[0].name == "a"


def test_names_may_come_from_any_iterable_or_be_a_string() -> None:
    """Outputs, targets and tags are taken from generators, and a string is one name."""
    assert tf_graphdef.load(SMALL, (name for name in ["y"]), targets="c").outputs[0].name == "y"
    assert tf_graphdef.load(SAVED / "lstm", tags="serve").outputs[0].dtype is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outputs": 3}, "outputs must be a name or a sequence of names, got 3"),
        ({"outputs": np.array("y")}, r"outputs must be a name .*, got an array <U1\[\]"),
        ({"targets": [3]}, "targets must be a name or a sequence of names, got 3 at index 0"),
        ({"tags": 3}, "tags must be a name or a sequence of names, got 3"),
        ({"signature": 3}, "signature must be a string, got 3"),
        ({"shapes": 3}, "shapes must be a mapping of inputs to shapes, got 3"),
        ({"allow_host_ops": 3}, "must be a mapping of operators to functions, got 3"),
        ({"max_nbytes": 1e9}, r"max_nbytes must be a whole number of at least 0, got 1000000000\."),
        ({"max_rounds": -1}, "max_rounds must be a whole number of at least 0, got -1"),
    ],
)
def test_arguments_of_wrong_types_are_refused(arguments: dict[str, Any], message: str) -> None:
    """The error names the argument and shows its value."""
    with pytest.raises((pk.ArgumentError, pk.SettingError), match=message):
        tf_graphdef.load(SMALL, **arguments)


def test_an_output_that_only_passes_on_gives_its_name() -> None:
    """The operator behind an output Identity takes over its name, so that no copy is made."""
    nodes = [node("Exp", "e", "x"), node("Identity", "i", "e"), node("Identity", "Identity", "i")]

    graph = tf_graphdef.load(model(X, *nodes))

    assert [(n.op.name, n.name) for n in graph.nodes if n.op] == [("exp", "Identity")]


def test_two_names_for_one_result() -> None:
    """Outputs that are the same value, or an input, keep their names."""
    nodes = [node("Exp", "e", "x"), node("Identity", "i", "e"), node("Identity", "j", "x")]

    graph = tf_graphdef.load(model(X, *nodes), outputs=["e", "i", "j"])

    assert [e.name for e in graph.outputs] == ["e", "i", "j"]
    assert [n.name for n in graph.inputs] == ["x"]


def test_unused_outputs_are_not_needed() -> None:
    """Unsupported operators that no output depends on are ignored."""
    nodes = [node("Neg", "y", "x"), node("Unheard", "z", "x")]

    assert tf_graphdef.load(model(X, *nodes), outputs="y").outputs[0].name == "y"


def test_control_inputs_order_nothing_here() -> None:
    """NoOp, Assert and the nodes they need are dropped, since inference has no side effects."""
    nodes = [
        node("Assert", "check", "x"),
        node("NoOp", "group", "^check"),
        node("Neg", "y", "x", "^group"),
    ]

    graph = tf_graphdef.load(model(X, *nodes))

    assert [n.op.name for n in graph.nodes if n.op] == ["neg"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("", "''"),
        ('a"b', "'a\"b'"),
        ("a\nb", r"'a\\nb'"),
        ("$(rm -rf ~)", r"'\$\(rm -rf ~\)'"),
        ("a:0", "'a:0'"),
        ("^a", r"'\^a'"),
        ("-a", "'-a'"),
        ("ä", "'ä'"),
    ],
)
def test_names_that_tensorflow_does_not_allow(name: str, shown: str) -> None:
    """An invalid name is refused and shown on one line."""
    with pytest.raises(ModelError, match=f"node 1 of the GraphDef needs .*, got {shown}") as e:
        tf_graphdef.load(model(X, node("Neg", name, "x")))
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("Neg", "x", "x")], "of nodes, and nodes 0 and 1 are both called 'x'"),
        ([node("Neg", "y", "z")], "Neg 'y' of the GraphDef reads 'z', and no node"),
        ([node("Neg", "y", "x", "^z")], r"of the GraphDef reads '\^z', and no node"),
        ([node("Neg", "y", "")], "reads '', and"),
        ([node("Neg", "y", "x:-1")], "reads 'x:-1', and"),
        ([node("Neg", "y", "x:99999999999")], "reads 'x:99999999999', and"),
        ([node("Neg", "y", "x:1")], r"Placeholder 'x' of the GraphDef has 1 output.* output 1 is"),
        ([node("Neg", "y", "x:999999999")], "and output 999999999 is requested"),
    ],
)
def test_dangling_edges_and_duplicate_names_are_refused(nodes: list[Any], message: str) -> None:
    """Each edge must start at a node, and each name be unique."""
    with pytest.raises(ModelError, match=message):
        tf_graphdef.load(model(X, *nodes))


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Neg", "a", "b"), node("Neg", "b", "a")],
        [node("Identity", "b", "b")],
        [node("Identity", "a", "b"), node("Identity", "b", "a")],
        [node("Neg", "b", "x", "^a"), node("NoOp", "a", "^b")],
    ],
)
def test_cycles_are_an_error(nodes: list[Any]) -> None:
    """Cycles of data or control edges are refused."""
    with pytest.raises(ModelError, match="its node '[ab]' reads '[ab]', which depends on it"):
        tf_graphdef.load(model(X, *nodes), outputs="b")


def test_models_without_results_are_refused() -> None:
    """An empty file and a graph without outputs are refused."""
    with pytest.raises(
        ModelError, match="the GraphDef needs at least one node .*; it may hold another"
    ):
        tf_graphdef.load(model())
    circle = model(node("Neg", "a", "b"), node("Neg", "b", "a"))
    with pytest.raises(ModelError, match="has 2 nodes, and none has a result that no other"):
        tf_graphdef.load(circle)
    with pytest.raises(ModelError, match=r"outputs= needs at least one name .*, got \[\]"):
        tf_graphdef.load(SMALL, outputs=[])


def test_unknown_outputs_offer_the_nearest() -> None:
    """An unknown output is refused with the nearest name."""
    graph = model(X, node("Softmax", "probabilities", "x"))

    with pytest.raises(ModelError, match=r"no node 'probabilites:0' .* 'probabilities'"):
        tf_graphdef.load(graph, outputs=["probabilites:0"])


def test_all_unsupported_operators_come_in_one_error() -> None:
    """The error counts unsupported operators and names some of their nodes."""
    nodes = [node("Conv9D", f"c{k}", "x") for k in range(5)] + [node("Warp", "w", "c0")]
    total = node("Pack", "y", "w", *(f"c{k}" for k in range(5)))

    with pytest.raises(ModelError, match=r"6 node\(s\) of 2 operator") as caught:
        tf_graphdef.load(model(X, *nodes, total))
    assert "Conv9D × 5 ('c0', 'c1', 'c2', …); Warp × 1 ('w')" in str(caught.value)


def test_very_many_unsupported_operators_make_a_short_message() -> None:
    """The error stays short for any number of unsupported operators."""
    nodes = [node("No" + "o" * 500 + str(k), f"n{k}", "x") for k in range(99)]

    with pytest.raises(ModelError, match="99 node.s. of 99 .* and 49 more operators") as caught:
        tf_graphdef.load(model(X, *nodes))
    assert len(str(caught.value)) < 10_000


def test_long_chains_are_ordinary() -> None:
    """Long chains of nodes load without recursion."""
    nodes = [node("Neg", f"n{k}", f"n{k - 1}" if k else "x") for k in range(20_000)]

    assert len(tf_graphdef.load(model(X, *nodes)).nodes) == 20_001


def test_order_in_the_file_does_not_matter() -> None:
    """A node may precede the nodes that it reads."""
    graph = tf_graphdef.load(model(node("Neg", "b", "a"), node("Neg", "a", "x"), X))

    assert [n.name for n in graph.nodes] == ["x", "a", "b"]


def test_max_nbytes_raises_the_memory_limit() -> None:
    """A constant that repeats one element a million times needs a higher ``max_nbytes``."""
    zeros = const("c", 0.0)
    for size in (1 << 10, 1 << 15):
        zeros.attr["value"].tensor.tensor_shape.dim.add(size=size)
    zeros.attr["value"].tensor.tensor_content = b""
    large = model(zeros, node("Neg", "y", "c")).SerializeToString()

    with pytest.raises(ModelError, match=r"Const 'c' of shape \(1024, 32768\) needs 134,217,728"):
        tf_graphdef.load(large)
    assert tf_graphdef.load(large, max_nbytes=1 << 28).outputs[0].shape == (1 << 10, 1 << 15)


def test_very_many_edges_are_refused() -> None:
    """A node with a million inputs is refused before they are resolved."""
    wide = model(const("c", 1.0), node("Pack", "y", *["c"] * 1_000_000)).SerializeToString()

    with pytest.raises(ModelError, match=r"(inputs of Pack 'y'|Pack 'y') needs [\d,]+ bytes"):
        tf_graphdef.load(wide)


def test_an_edge_of_a_missing_operator_may_have_any_index() -> None:
    """An unsupported operator is reported before the index of its result is checked."""
    with pytest.raises(ModelError, match=r"not supported: Odd × 1 \('o'\)"):
        tf_graphdef.load(model(X, node("Odd", "o", "x"), node("Neg", "y", "o:5")))


def test_placeholders_that_no_output_needs_may_be_fed(tmp_path: Path) -> None:
    """As in TensorFlow, unused placeholders may be fed.

    They are no inputs, and unknown names are refused.
    """
    graph = tf_graphdef.load(
        model(
            placeholder("x", 2),
            placeholder("labels", None, dtype="int32"),
            node("PlaceholderWithDefault", "rate", "half", shape=()),
            const("half", 0.5),
            node("Neg", "y", "x"),
            node("Mul", "loss", "y", "rate"),
            node("Cast", "z", "labels", DstT=np.dtype("float32"), SrcT=np.dtype("int32")),
        ),
        "y",
    )
    x = np.array([1, -2], np.float32)
    feeds = {"x": x, "labels": [3, 4, 5], "rate": 0.1}

    assert [n.name for n in graph.inputs] == ["x"]
    assert graph.unread == ("labels", "rate")
    pk.compile(graph, target="interpret").save(tmp_path / "saved")
    for built in (graph, graph.rebuild(lambda node, inputs: None), pk.from_json(pk.to_json(graph))):
        np.testing.assert_array_equal(pk.interpret(built, feeds)[0], -x)
    planned = pk.ApplyPasses(graph, ["Simplify", "Fusion", "CodeGen"])
    np.testing.assert_array_equal(pk.interpret(planned, feeds)[0], -x)
    for run in (
        pk.compile(graph),
        pk.compile(graph, target="interpret"),
        pk.compile(graph, target="blocks"),
        pk.load(tmp_path / "saved"),
    ):
        np.testing.assert_array_equal(run(feeds)[0], -x)
        np.testing.assert_array_equal(run(x=x, labels=None)[0], -x)
        np.testing.assert_array_equal(run(x=x)[0], -x)
        np.testing.assert_array_equal(run([x])[0], -x)
        with pytest.raises(FeedError, match="there is no input 'label'"):
            run(x=x, label=1)
    with pytest.raises(FeedError, match="there is no input 'label'"):
        pk.interpret(graph, {"x": x, "label": 1})
