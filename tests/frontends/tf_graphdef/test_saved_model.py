"""SavedModels equal TensorFlow's results, and damaged or unsuitable folders are refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import passkit as pk
from passkit.errors import ModelError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import message

SAVED = Path(__file__).parent / "saved"
ROOT = SAVED.parents[3]
CASES = sorted(p for p in SAVED.glob("*/*.npz") if p.parent.name != "stateful")
STATEFUL = sorted(SAVED.glob("stateful/*.npz"))


def case(path: Path) -> tuple[pk.Graph, dict[str, Any], dict[str, Any]]:
    """Return the graph of a case, its feeds and TensorFlow's results."""
    signature = None if path.stem == "case" else path.stem
    arrays = dict(np.load(path))
    feeds = {k[3:]: v for k, v in arrays.items() if k.startswith("in.")}
    results = {k[4:]: v for k, v in arrays.items() if k.startswith("out.")}
    return tf_graphdef.load(path.parent, signature=signature), feeds, results


def close(graph: pk.Graph, actual: list[Any], results: dict[str, Any]) -> None:
    """Check that names, dtypes and values equal TensorFlow's."""
    assert sorted(e.name for e in graph.outputs) == sorted(results)
    for entry, array in zip(graph.outputs, actual, strict=True):
        expected = results[entry.name]
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
        limit = 1e-5 * np.abs(expected).max() if expected.dtype.kind == "f" else 0
        np.testing.assert_allclose(array, expected, rtol=0, atol=limit)


@pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_saved_models_equal_tensorflow(path: Path) -> None:
    """Variables, calls, branches, loops and lists equal TensorFlow."""
    graph, feeds, results = case(path)

    assert {n.name for n in graph.inputs} <= set(feeds)
    close(graph, pk.interpret(graph, {n.name: feeds[n.name] for n in graph.inputs}), results)


@pytest.mark.parametrize("name", ["lstm_any/case", "functions/some_rounds", "functions/running"])
def test_runtime_loops_are_compiled(name: str) -> None:
    """A runtime loop is one step of the program, and its body a program of its own."""
    graph, feeds, results = case(SAVED / f"{name}.npz")
    exe = pk.compile(graph)

    assert exe.stats["python_calls"] == 1
    close(graph, exe(feeds), results)


def test_runtime_loops_serve_any_number_of_iterations() -> None:
    """One compiled loop serves any number of iterations and rows."""
    graph, feeds, _ = case(SAVED / "functions" / "running.npz")
    exe = pk.compile(graph)
    x = np.concatenate([feeds["x"], feeds["x"]])

    results, total = exe(x=x)[0], np.zeros(3, np.float32)
    for row, got in zip(x, results, strict=True):
        total = total * np.float32(0.5) + row
        np.testing.assert_array_equal(got, total)


def test_loops_of_known_length_are_unrolled() -> None:
    """A network exported with a loop of known length becomes a chain of operators."""
    graph, _, _ = case(SAVED / "lstm" / "case.npz")

    names = [n.op.name for n in graph.nodes if n.op]
    assert "while_loop" not in names
    assert names.count("matmul") >= 12
    longer = tf_graphdef.load(SAVED / "lstm", max_rounds=3)
    assert [n.op.name for n in longer.nodes if n.op].count("while_loop") == 1


def test_graphs_that_hold_loops_can_be_stored() -> None:
    """JSON and text keep the condition and body of a loop."""
    graph, feeds, results = case(SAVED / "functions" / "some_rounds.npz")

    close(graph, pk.interpret(pk.from_json(pk.to_json(graph)), feeds), results)
    close(graph, pk.interpret(pk.parse(pk.to_text(graph)), feeds), results)
    program = "import sys, passkit; print(passkit.from_json(sys.stdin.read()).nodes)"
    asked = [sys.executable, "-c", program]
    done = subprocess.run(asked, input=pk.to_json(graph), capture_output=True, text=True, cwd=ROOT)
    assert "while_loop" in done.stdout


def test_runtime_conditions_select_results_and_variables() -> None:
    """A condition that is an input selects results and assigned variables in each call."""
    graph, feeds, _ = case(SAVED / "functions" / "assign_one.npz")

    for p, factor in ((True, 3.0), (False, 1.0)):
        results = pk.interpret(graph, {"x": feeds["x"], "p": np.array(p)})[0]
        np.testing.assert_array_equal(results, feeds["x"] * np.float32(factor))


@pytest.mark.parametrize(("k", "function"), [(-1, np.exp), (0, lambda x: x + 1), (2, np.exp)])
def test_branch_indices_out_of_range_take_the_last_branch(k: int, function: Any) -> None:
    """A branch index out of range takes the last branch."""
    graph, feeds, _ = case(SAVED / "functions" / "switch.npz")

    results = pk.interpret(graph, {"x": feeds["x"], "k": np.int32(k)})[0]
    np.testing.assert_allclose(results, function(feeds["x"]), rtol=1e-6)


def test_sizes_and_outputs_of_a_signature() -> None:
    """Callers use the names of the signature."""
    graph = tf_graphdef.load(
        SAVED / "functions", "output_0", {"x": ("rows", 3)}, signature="product"
    )

    assert [str(e.shape) for e in graph.outputs] == ["(rows, 2)"]
    nodes = tf_graphdef.load(SAVED / "functions", "PartitionedCall_3:0", signature="product")
    assert len(nodes.outputs) == 1


def test_functions_and_methods_are_loaded_by_name() -> None:
    """Without a signature, a method of the object or a function is loaded by name."""
    feeds = dict(np.load(SAVED / "functions" / "product.npz"))
    graph = tf_graphdef.load(SAVED / "functions", signature="product")
    saved = message("SavedModel").FromString((SAVED / "functions/saved_model.pb").read_bytes())
    (name,) = [
        f.signature.name
        for f in saved.meta_graphs[0].graph_def.library.function
        if f.signature.name.startswith("__inference_product")
    ]

    again = tf_graphdef.load(SAVED / "functions", signature=name)

    assert [n.name for n in again.inputs] == ["x"]
    results = pk.interpret(again, {"x": feeds["in.x"]})[0]
    np.testing.assert_array_equal(results, pk.interpret(graph, {"x": feeds["in.x"]})[0])


@pytest.mark.parametrize("path", STATEFUL, ids=lambda p: p.stem)
def test_variables_keep_what_a_call_leaves_in_them(path: Path) -> None:
    """Assigned variables keep their values between calls, as in TensorFlow.

    Each state starts anew.
    """
    graph, feeds, results = case(path)
    state: dict[str, Any] = {}

    for k in range(3):
        now = {name: array[k] for name, array in feeds.items()}
        actual = pk.interpret(graph, {n.name: now[n.name] for n in graph.inputs}, state)
        close(graph, actual, {name: array[k] for name, array in results.items()})
    first = {n.name: feeds[n.name][0] for n in graph.inputs}
    close(graph, pk.interpret(graph, first), {name: a[0] for name, a in results.items()})


@pytest.mark.usefixtures("quick_kernels")
def test_compiled_programs_keep_state_and_share_it(tmp_path: Path) -> None:
    """An executable has its own state; signatures compiled with the same state share it."""
    graph, feeds, results = case(SAVED / "stateful" / "train.npz")
    exe = pk.compile(graph)
    for k in range(3):
        actual = exe(x=feeds["x"][k])
        close(graph, actual, {name: array[k] for name, array in results.items()})
    np.testing.assert_array_equal(
        exe.state["w"], actual[[e.name for e in graph.outputs].index("w")]
    )
    assert [v.name for v, _ in graph.updates] == ["w", "b"]
    exe.save(tmp_path / "saved")
    again = pk.load(tmp_path / "saved")
    np.testing.assert_array_equal(again.state["w"], exe.state["w"])

    served = SAVED / "served"
    add = pk.compile(tf_graphdef.load(served, signature="add"))
    get = pk.compile(tf_graphdef.load(served, signature="get", targets=()), state=add.state)
    reset = pk.compile(tf_graphdef.load(served, signature="reset"), state=add.state)
    counts = [float(run()[0]) for run in (get, get, reset, get)]
    steps = [float(add(step=np.float32(n))[0]) for n in (3.5, 9, 27)]
    assert (counts, steps) == ([0.0] * 4, [3.5, 12.5, 39.5])
    assert [float(run()[0]) for run in (get, reset, get)] == [39.5, 0.0, 0.0]


def test_only_variables_that_are_assigned_are_state() -> None:
    """Variables that are not assigned are constants."""
    names = {}
    for signature in ("count", "sometimes", "train", "peek", "reset", "drop"):
        graph = tf_graphdef.load(SAVED / "stateful", signature=signature)
        names[signature] = sorted(n.name for n in graph.states)

    assert names["count"] == names["reset"] == ["n"]
    assert (names["sometimes"], names["train"]) == (["b", "n"], ["b", "w"])
    assert (names["peek"], names["drop"]) == ([], ["run_number"])
    dense = tf_graphdef.load(SAVED / "dense")
    assert dense.states == () and dense.updates == ()


@pytest.mark.parametrize(("folder", "signature"), [("stateful", "drop"), ("served", "dropout")])
def test_dropout_draws_anew_in_each_call(folder: str, signature: str) -> None:
    """Draws differ between calls, by a call counter in state, and are reproducible."""
    graph = tf_graphdef.load(SAVED / folder, signature=signature)
    (name,) = (n.name for n in graph.inputs)
    x = np.ones((2, 3) if folder == "stateful" else (64, 1), np.float32)
    state: dict[str, Any] = {}

    first, second = (pk.interpret(graph, {name: x}, state)[0] for _ in range(2))
    assert state["run_number"] == 2
    assert set(np.unique(first)) == set(np.unique(second)) == {0.0, first.max()}
    assert not np.array_equal(first, second)
    again = pk.interpret(graph, {name: x}, {"run_number": np.int64(1)})[0]
    np.testing.assert_array_equal(again, second)


def test_a_graph_is_cut_where_a_signature_feeds_it() -> None:
    """Nodes in front of a fed node, such as string parsing, are not needed and are no inputs."""
    graph = tf_graphdef.load(SAVED / "served", shapes={"x": ("n", 1)})
    assert [(n.name, str(n.entries[0].shape)) for n in graph.inputs] == [("x", "(n, 1)")]
    with pytest.raises(ModelError, match=r"Identity 'x' needs the shape \(\?, 1\), got \(2, 3\)"):
        tf_graphdef.load(SAVED / "served", shapes={"x": (2, 3)})
    with pytest.raises(ModelError, match="ParseExampleV2'.* got 'inputs', an input of strings"):
        tf_graphdef.load(SAVED / "served", signature="serialized")
    with pytest.raises(ModelError, match="'add_2' needs an array, got .* because another result"):
        tf_graphdef.load(SAVED / "served", signature="one_of_two")


def far_result(saved: Any) -> None:
    """Return a model whose input is a result beyond all that a node can have."""
    saved.meta_graphs[0].signature_def["serving_default"].inputs["x"].name = "x:99999"


def unknown_shape(saved: Any) -> None:
    """Return a model with an input whose shape the signature leaves out."""
    info = saved.meta_graphs[0].signature_def["serving_default"].inputs["x"]
    info.ClearField("tensor_shape")


def test_inputs_as_signatures_describe_them(tmp_path: Path) -> None:
    """The signature gives the shape of an input that is no placeholder, or leaves it unknown."""
    folder = shutil.copytree(SAVED / "served", tmp_path / "m")
    rewritten(folder, unknown_shape)
    assert tf_graphdef.load(folder).inputs[0].entries[0].shape is None
    rewritten(folder, far_result)
    with pytest.raises(ModelError, match="has result 99999 of Identity 'x' as its input 'x'"):
        tf_graphdef.load(folder)


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of a model to be damaged; messages call it 'm'."""
    shutil.copytree(SAVED / "dense", tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "m"


def rewritten(folder: Path, change: Any) -> None:
    """Change the message of a SavedModel."""
    file = folder / "saved_model.pb"
    saved = message("SavedModel").FromString(file.read_bytes())
    change(saved)
    file.write_bytes(saved.SerializeToString())


def test_the_text_form_gives_the_same_model(copied: Path) -> None:
    """saved_model.pbtxt gives the same model."""
    feeds = dict(np.load(copied / "case.npz"))
    saved = message("SavedModel").FromString((copied / "saved_model.pb").read_bytes())
    (copied / "saved_model.pbtxt").write_text(text_format.MessageToString(saved))
    (copied / "saved_model.pb").unlink()

    for source in ("m", "m/saved_model.pbtxt"):
        graph = tf_graphdef.load(source)
        (array,) = (v for k, v in feeds.items() if k.startswith("in."))
        (expected,) = (v for k, v in feeds.items() if k.startswith("out."))
        results = pk.interpret(graph, {graph.inputs[0].name: array})[0]
        np.testing.assert_allclose(results, expected, rtol=0, atol=1e-6)


def test_variables_are_found_by_name_too(tmp_path: Path) -> None:
    """Without a restore function, variables are found by the object graph or by their names."""
    for name in ("functions", "tf1"):
        copy = shutil.copytree(SAVED / name, tmp_path / name)
        rewritten(copy, lambda s: s.meta_graphs[0].saver_def.Clear())
        signature = "product" if name == "functions" else None

        graph, same = (tf_graphdef.load(f, signature=signature) for f in (copy, SAVED / name))
        assert graph.key == same.key


def renamed(saved: Any) -> None:
    """Return a model whose variables the checkpoint does not have."""
    saved.meta_graphs[0].saver_def.Clear()
    for node in saved.meta_graphs[0].graph_def.node:
        if node.op == "VarHandleOp":
            node.attr["shared_name"].s = b"elsewhere"


def reshaped(saved: Any) -> None:
    """Return a model whose variables have other shapes than in the checkpoint."""
    for node in saved.meta_graphs[0].graph_def.node:
        if node.op == "VarHandleOp":
            node.attr["shape"].shape.dim[0].size = 77


def twice(saved: Any) -> None:
    """Return a model with two different graphs of the same tags."""
    saved.meta_graphs.add().CopyFrom(saved.meta_graphs[0])
    saved.meta_graphs[1].graph_def.node[0].name = "other"


def unsigned(saved: Any) -> None:
    """Return a model without signature and methods."""
    saved.meta_graphs[0].signature_def.clear()
    saved.meta_graphs[0].object_graph_def.Clear()


def sparse(saved: Any) -> None:
    """Return a model with a sparse output."""
    for info in saved.meta_graphs[0].signature_def["serving_default"].outputs.values():
        info.name = ""


def dangling(saved: Any) -> None:
    """Return a model with an input that is no node of the graph."""
    for info in saved.meta_graphs[0].signature_def["serving_default"].inputs.values():
        info.name = "nowhere:0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (renamed, "'m' has no value for its variable 'elsewhere'"),
        (reshaped, r"'m': .* needs .*77.* checkpoint has float32\(\d+.* as '.*VARIABLE_VALUE'"),
        (twice, "'m' needs one graph with the tags serve, and has 2; .*: serve; serve"),
        (unsigned, "'m' has 0 signatures and 0 methods, and needs"),
        (sparse, "needs a dense tensor as the output 'output_0' .*DT_FLOAT"),
        (dangling, "'m' needs the node 'nowhere:0' for its input 'keras"),
    ],
)
def test_inconsistent_models_are_refused(copied: Path, change: Any, message: str) -> None:
    """The error names what the folder lacks."""
    rewritten(copied, change)

    with pytest.raises(ModelError, match=message):
        tf_graphdef.load("m")


def test_unknown_signatures_and_tags_list_the_available_ones() -> None:
    """An unknown name is refused with the available ones."""
    with pytest.raises(ModelError, match="needs one called 'serving_defalt'; .*'serving_default'"):
        tf_graphdef.load(SAVED / "dense", signature="serving_defalt")
    with pytest.raises(ModelError, match="one graph with the tags gpu, and has 0; .* among: serve"):
        tf_graphdef.load(SAVED / "dense", tags=["gpu"])


def test_unreadable_files_are_refused(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's error is part of the message."""

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ModelError, match="'m' cannot be read: Permission denied"):
        tf_graphdef.load("m")


def test_incomplete_folders_are_refused(copied: Path) -> None:
    """A folder without graph or weights is refused."""
    shutil.rmtree(copied / "variables")
    with pytest.raises(ModelError, match="'m/variables/variables.index', .*: No such file"):
        tf_graphdef.load("m")
    (copied / "saved_model.pb").write_bytes(b"\x0a\x7f")
    with pytest.raises(
        ModelError, match=r"'m/saved_model.pb': expected a SavedModel, found 2 bytes"
    ):
        tf_graphdef.load("m")
    (copied / "saved_model.pb").unlink()
    with pytest.raises(
        ModelError, match="'m': expected a SavedModel, found a folder without saved_model.pb"
    ):
        tf_graphdef.load("m")


def test_methods_bind_only_variables(copied: Path) -> None:
    """A function that captured another object is refused with advice to use a signature."""

    def add(saved: Any) -> None:
        meta = saved.meta_graphs[0]
        function = meta.graph_def.library.function[0].signature.name
        objects = meta.object_graph_def
        objects.Clear()
        objects.nodes.add().children.add(node_id=1, local_name="go")
        objects.nodes.add().function.concrete_functions.append(function)
        objects.concrete_functions[function].bound_inputs.append(1)

    rewritten(copied, add)
    with pytest.raises(ModelError, match="captured variable, got object 1 of kind function"):
        tf_graphdef.load("m", signature="go")

    def more(saved: Any) -> None:
        objects = saved.meta_graphs[0].object_graph_def
        for declared in objects.concrete_functions.values():
            declared.bound_inputs.extend([1] * 50)

    rewritten(copied, more)
    with pytest.raises(ModelError, match="takes . arguments, and is bound to 51 captured"):
        tf_graphdef.load("m", signature="go")
