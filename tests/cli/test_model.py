"""Models and feeds on the command line: what is read, what is made up, what is refused."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np
import pytest

import passkit as pk
from passkit.cli import model

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/models/digits.pb"


def options(*arguments: str) -> Namespace:
    """The options of a command that reads a model."""
    parser = ArgumentParser()
    model.add_model_arguments(parser)
    return parser.parse_args(arguments)


def test_models_of_three_kinds(tmp_path: Path) -> None:
    """TensorFlow's files, and passkit's own text and JSON."""
    text, data = tmp_path / "m.txt", tmp_path / "m.json"
    text.write_text("x: f32[n, 8]; e = exp(x); y = add(e, x); return y")
    graph = model.load(options(str(text)))
    data.write_text(pk.to_json(graph))

    assert model.load(options(str(data))).key == graph.key
    assert [n.name for n in model.load(options(str(DIGITS))).inputs] == ["x"]


def test_outputs_and_shapes_of_a_tensorflow_model() -> None:
    """An inner value can be asked for, and an open shape be settled."""
    inner = model.load(options(str(DIGITS), "--outputs", "hidden/BiasAdd", "--shape", "x=5,8,8"))

    assert [e.shape for e in inner.outputs] == [(5, 128)]


def test_no_such_model(tmp_path: Path) -> None:
    """The path is named, and a file whose name is like it."""
    (tmp_path / "digits.pb").touch()

    with pytest.raises(pk.ModelError, match=r"model at '.*digit.pb'; did you mean '.*digits.pb'"):
        model.load(options(str(tmp_path / "digit.pb")))
    with pytest.raises(pk.ModelError, match=r"no model at 'nowhere/at/all.pb'$"):
        model.load(options("nowhere/at/all.pb"))


def test_shapes() -> None:
    """`x=8,64` is a shape, `x=` the shape of a scalar; anything else is refused."""
    assert model.read_shapes(["x=8,64", "y="]) == {"x": (8, 64), "y": ()}
    for wrong in ("x", "=3", "x=3,a", "x=-1"):
        with pytest.raises(pk.SettingError, match=f"like x=8,64, got '{wrong}'"):
            model.read_shapes([wrong])


def graph_of_two() -> pk.Graph:
    """Two inputs that share a size."""
    return pk.Graph([pk.var("a", ("n", 4)) + pk.var("b", (4,), "float64")])


def test_feeds_from_files(tmp_path: Path) -> None:
    """Each names an input and a file of one array."""
    np.save(tmp_path / "a.npy", np.ones((2, 4), "float32"))
    (tmp_path / "bad.npy").write_text("no array")
    graph = graph_of_two()

    assert model.read_feeds([f"a={tmp_path}/a.npy"], graph)["a"].shape == (2, 4)
    with pytest.raises(pk.FeedError, match="no input is called 'aa'; did you mean 'a'"):
        model.read_feeds(["aa=a.npy"], graph)
    with pytest.raises(pk.FeedError, match=r"'.*bad.npy' cannot be read as an array: "):
        model.read_feeds([f"a={tmp_path}/bad.npy"], graph)
    with pytest.raises(pk.FeedError, match=r"--feed a=no.npy: 'no.npy' cannot be read as an array"):
        model.read_feeds(["a=no.npy"], graph)


def test_data_beside_a_model(tmp_path: Path) -> None:
    """Arrays of the same name with the ending .npz; a broken file is named."""
    assert sorted(model.companion_arrays(DIGITS)) == ["labels", "probabilities", "x"]
    assert model.companion_arrays(tmp_path / "m.pb") == {}

    (tmp_path / "m.npz").write_bytes(b"no zip")
    with pytest.raises(pk.ModelError, match=r"m\.npz' cannot be read as a file of arrays: "):
        model.companion_arrays(tmp_path / "m.pb")


def test_random_feeds_agree_on_sizes() -> None:
    """Sizes of one name are one number: that of data, of ``--shape``, else 32."""
    total = pk.ops.cast(pk.var("i", ("n",), "int64"), dtype="float32") + pk.var("x", ("n",))
    graph = pk.Graph([pk.ops.where(pk.var("m", ("n",), "bool"), total, 0.0)])
    arrays = {"x": np.zeros(5, "float32")}

    free = model.complete_feeds(graph, {}, {})
    from_data = model.complete_feeds(graph, arrays, {})
    from_shape = model.complete_feeds(graph, {}, {"i": (7,)})

    assert {k: v.dtype.name for k, v in free.items()} == {
        "i": "int64",
        "x": "float32",
        "m": "bool",
    }
    assert {v.shape for v in free.values()} == {(model.DEFAULT_SIZE,)}
    assert {v.shape for v in from_data.values()} == {(5,)}
    assert from_data["x"] is arrays["x"]
    assert {v.shape for v in from_shape.values()} == {(7,)}


def test_an_input_without_a_rank(rng: np.random.Generator) -> None:
    """Nothing can be made up for an input whose rank is open; the message has the option."""
    with pytest.raises(pk.FeedError, match="of input 'open' is unknown; give --shape open=N,M"):
        model.random_array(rng, pk.var("open").node, None, {})
    assert model.random_array(rng, pk.var("open").node, (2, 3), {}).shape == (2, 3)
