"""Models and inputs on the command line: formats, shapes, stored and random arrays, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.command import json_of, raise_error_of

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/models/digits.pb"


def graph_of(*arguments: object) -> pk.Graph:
    """Return the graph of the model that ``passkit show --unfused`` reads."""
    graph = json_of("show", *arguments, "--unfused")["graph"]
    return pk.from_json(graph if isinstance(graph, str) else json.dumps(graph))


def run(*arguments: object) -> Any:
    """Return the JSON of a run in the interpreter."""
    return json_of("run", *arguments, "--target", "interpret")


@pytest.fixture(autouse=True)
def _time_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passkit.cli.run.TIMING_SECONDS", 0.001)


@pytest.fixture
def sum_model(tmp_path: Path) -> Path:
    """Return the path of a model with two inputs that have a size or a dtype of their own."""
    path = tmp_path / "m.txt"
    path.write_text("a: f32[n, 4]; b: f32[4]; return add(a, b)")
    return path


def test_models_are_read_in_three_formats(tmp_path: Path) -> None:
    """A model is a file of TensorFlow, or passkit's own text or JSON."""
    text, data = tmp_path / "m.txt", tmp_path / "m.json"
    text.write_text("x: f32[n, 8]; e = exp(x); y = add(e, x); return y")
    graph = graph_of(text)
    data.write_text(pk.to_json(graph))

    assert graph.key == pk.parse(text.read_text()).key
    assert graph_of(data).key == graph.key
    assert [n.name for n in graph_of(DIGITS).inputs] == ["x"]


def test_options_select_outputs_and_shapes_of_a_tensorflow_model() -> None:
    """`--outputs` selects an inner value, and `--shape` replaces an unknown shape."""
    inner = graph_of(DIGITS, "--outputs", "hidden/BiasAdd", "--shape", "x=5,8,8")

    assert [e.shape for e in inner.outputs] == [(5, 128)]


def test_a_missing_model_is_an_error_with_a_near_name(tmp_path: Path) -> None:
    """The message has the path, and a file in its folder with a similar name."""
    (tmp_path / "digits.pb").touch()

    with pytest.raises(pk.ModelError, match=r"model at '.*digit.pb'; did you mean '.*digits.pb'"):
        raise_error_of("show", tmp_path / "digit.pb")
    with pytest.raises(pk.ModelError, match=r"no model at 'nowhere/at/all.pb'$"):
        raise_error_of("show", "nowhere/at/all.pb")


def test_shapes_are_a_name_and_whole_numbers(tmp_path: Path) -> None:
    """`x=8,64` is a shape and `y=` that of a scalar; other settings are errors."""
    path = tmp_path / "m.json"
    scalar = pk.ops.reduce_sum(pk.var("x", ("n", "m"))) + pk.var("y", ())
    path.write_text(pk.to_json(pk.Graph([scalar])))
    inputs = run(path, "--shape", "x=8,64", "--shape", "y=")["inputs"]

    assert inputs == {"x": "float32[8, 64]", "y": "float32[]"}
    for wrong in ("x", "=3", "x=3,a", "x=-1", "x=3,²"):
        with pytest.raises(pk.SettingError, match=f"like x=8,64, got '{wrong}'"):
            raise_error_of("run", path, "--shape", wrong)


def test_feeds_are_read_from_files(tmp_path: Path, sum_model: Path) -> None:
    """Each setting of `--feed` names an input and a file of one array."""
    np.save(tmp_path / "a.npy", np.ones((2, 4), "float32"))
    (tmp_path / "bad.npy").write_text("no array")

    inputs = run(sum_model, "--feed", f"a={tmp_path}/a.npy")["inputs"]
    assert inputs["a"] == "float32[2, 4]"
    with pytest.raises(pk.FeedError, match="no input is called 'aa'; did you mean 'a'"):
        raise_error_of("run", sum_model, "--feed", "aa=a.npy")
    with pytest.raises(pk.FeedError, match=r"'.*bad.npy' cannot be read as an array: "):
        raise_error_of("run", sum_model, "--feed", f"a={tmp_path}/bad.npy")
    with pytest.raises(pk.FeedError, match=r"--feed a=no.npy: 'no.npy' cannot be read as an array"):
        raise_error_of("run", sum_model, "--feed", "a=no.npy")
    (tmp_path / "empty.npy").write_bytes(b"")
    with pytest.raises(pk.FeedError, match=r"'.*empty.npy' cannot be read as an array: No data"):
        raise_error_of("run", sum_model, "--feed", f"a={tmp_path}/empty.npy")
    np.savez(tmp_path / "several.npz", a=np.ones((2, 4), "float32"))
    with pytest.raises(pk.FeedError, match=r"several.npz' cannot be .*: it is an archive of sev"):
        raise_error_of("run", sum_model, "--feed", f"a={tmp_path}/several.npz")


def test_arrays_next_to_a_model_are_its_inputs(tmp_path: Path, sum_model: Path) -> None:
    """Inputs come from the file of the model's name with the ending .npz; else they are random."""
    assert run(DIGITS)["data"] == "stored"
    assert run(sum_model)["data"] == "random"

    np.savez(tmp_path / "m.npz", a=np.ones((7, 4), "float32"))
    data = run(sum_model)
    assert data["data"] == "stored" and data["inputs"]["a"] == "float32[7, 4]"
    np.save(tmp_path / "single.npy", np.ones(3))
    single = (tmp_path / "single.npy").read_bytes()
    for damaged in (b"no zip", b"", b"PK\x03\x04damaged", single):
        (tmp_path / "m.npz").write_bytes(damaged)
        with pytest.raises(pk.ModelError, match=r"m\.npz' cannot be read as a file of arrays: "):
            raise_error_of("run", sum_model)


def test_the_folder_of_a_model_may_be_the_present_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A SavedModel is read from ".", next to which no arrays are stored."""
    monkeypatch.chdir(ROOT / "tests/frontends/tf_graphdef/saved/dense")

    assert run(".")["data"] == "random"


def test_a_model_without_outputs_has_no_accuracy(tmp_path: Path) -> None:
    """A graph of updates alone runs, and labels next to it are of no output."""
    path = tmp_path / "update.json"
    write = pk.ops.assign(pk.state("a", np.zeros(2)), np.ones(2))
    functional = pk.ApplyPasses(pk.Graph([write]), "Functionalize")
    path.write_text(pk.to_json(pk.Graph([], functional.updates)))
    np.savez(tmp_path / "update.npz", labels=np.zeros(1, "int64"))

    assert run(path)["accuracy"] is None


def test_models_in_another_encoding_are_refused(tmp_path: Path) -> None:
    """A model in JSON or text form has to be in UTF-8; the error has the position of the byte."""
    for name, content in (("m.json", b'{"\xff": 1}'), ("m.txt", b"x: f32[3]; \xff")):
        (tmp_path / name).write_bytes(content)
        position = content.index(b"\xff")
        with pytest.raises(pk.ModelError, match=rf"{name}' needs .* at position {position};"):
            raise_error_of("show", tmp_path / name, "--unfused")


def test_random_inputs_share_sizes_of_one_name(tmp_path: Path) -> None:
    """A symbolic size is that of stored data, else of `--shape`, else 32."""
    path = tmp_path / "m.json"
    total = pk.ops.cast(pk.var("i", ("n",), "int64"), dtype="float32") + pk.var("x", ("n",))
    graph = pk.Graph([pk.ops.where(pk.var("m", ("n",), "bool"), total, 0.0)])
    path.write_text(pk.to_json(graph))

    def inputs_with(size: int) -> dict[str, str]:
        return {"i": f"int64[{size}]", "x": f"float32[{size}]", "m": f"bool[{size}]"}

    assert run(path)["inputs"] == inputs_with(32)
    assert run(path, "--shape", "i=7")["inputs"] == inputs_with(7)
    np.savez(tmp_path / "m.npz", x=np.zeros(5, "float32"))
    assert run(path)["inputs"] == inputs_with(5)


def test_an_input_of_unknown_rank_needs_a_shape(tmp_path: Path) -> None:
    """There are no random values for an input of unknown rank; the message has the option."""
    path = tmp_path / "m.pbtxt"
    path.write_text(
        'node { name: "open" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }\n'
        'node { name: "y" op: "Exp" input: "open" '
        'attr { key: "T" value { type: DT_FLOAT } } }\n'
    )

    with pytest.raises(pk.FeedError, match="input 'open' needs a shape, .*; give --shape open=N,M"):
        raise_error_of("run", path, "--target", "interpret")
    assert run(path, "--shape", "open=2,3")["inputs"] == {"open": "float32[2, 3]"}
