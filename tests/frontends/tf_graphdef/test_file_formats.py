"""Files of other formats are named in the error, with advice."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import pickle
import shutil
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import ModelError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.checkpoints import varint
from tests.frontends.tf_graphdef.models import DIGITS, message, model, node, placeholder
from tests.frontends.tf_graphdef.test_saved_model import SAVED

POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    b"size 102400\n"
)


def archive(*names: str) -> bytes:
    """Return a zip file of empty files."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as result:
        for name in names:
            result.writestr(name, b"")
    return out.getvalue()


def tarred() -> bytes:
    """Return a tar archive of a file."""
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w") as result:
        result.addfile(tarfile.TarInfo("saved_model.pb"))
    return out.getvalue()


def npy() -> bytes:
    """Return an array as numpy.save writes it."""
    out = BytesIO()
    np.save(out, np.zeros(2))
    return out.getvalue()


def field(number: int, content: bytes | int) -> bytes:
    """Return an encoded message field."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


ONNX = (
    field(1, 8) + field(2, b"pytorch") + field(7, field(2, b"main_graph")) + field(8, field(2, 17))
)
SAFE = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
FOREIGN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "an empty file of 0 bytes; .*fetch the file again"),
    "pointer": (POINTER, "a Git LFS pointer to a file of 102,400 bytes; run `git lfs pull`"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(90), r"an HDF5 file.*\.h5; load it in Keras"),
    "keras": (
        archive("metadata.json", "config.json", "model.weights.h5"),
        r"a Keras model \(\.keras\); load it in Keras.*model\.export\(folder\)",
    ),
    "torch": (archive("m/data.pkl", "m/data/0"), "a PyTorch file, from torch.save or TorchScript"),
    "old torch": (
        b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M",
        "a PyTorch file, from torch.save; export the model",
    ),
    "npz": (archive("a.npy", "b.npy"), r"NumPy arrays \(\.npz\); numpy.load reads them"),
    "npy": (npy(), r"a NumPy array \(\.npy\)"),
    "zipped": (archive("m/saved_model.pb"), "a zip archive of a SavedModel; unzip it"),
    "zip": (archive("read.me", "b"), r"a zip archive of 2 files \('read.me', 'b'\); unpack it"),
    "empty zip": (archive(), r"a zip archive of 0 files \(none\)"),
    "cut zip": (archive("a", "b")[:40], "a damaged zip archive; fetch the file again"),
    "gzip": (gzip.compress(b"x"), "a gzip file; unpack it first: gunzip"),
    "bzip2": (bz2.compress(b"x"), "a bzip2 file; unpack it first"),
    "xz": (lzma.compress(b"x"), "an xz file; unpack it first"),
    "zstd": (b"\x28\xb5\x2f\xfd\0", "a Zstandard file; unpack it"),
    "tar": (tarred(), "a tar archive; unpack it first: tar -xf"),
    "tflite": (
        b"\x1c\0\0\0TFL3\0\0\x12\0",
        r"a TensorFlow Lite model \(\.tflite\); give load the SavedModel",
    ),
    "page": (
        b"\n<!DOCTYPE html><html><head>\n<title> Sign in </title>",
        "a web page, titled 'Sign in'; the download ended .* fetch the file again",
    ),
    "xml": (
        b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>",
        "a web page; the download ended",
    ),
    "pickle": (pickle.dumps({"w": 1}), "a Python pickle; load runs no code of files"),
    "safetensors": (
        len(SAFE).to_bytes(8, "little") + SAFE + bytes(4),
        r"a file of weights \(\.safetensors\)",
    ),
    "gguf": (b"GGUF\3\0\0\0", "a GGUF file of language-model weights"),
    "tfjs": (
        b'{"format": "layers-model", "modelTopology": {}}',
        "a TensorFlow.js model; give load the model",
    ),
    "config": (b'{"class_name": "Sequential"}', "a JSON text; it may describe layers"),
    "passkit": (
        pk.to_json(pk.parse("x: f32[2]; return exp(x)")).encode(),
        r"a passkit graph .*; pk\.from_json\(text",
    ),
    "index": (
        (SAVED / "dense/variables/variables.index").read_bytes(),
        "the index of a checkpoint; it holds no graph",
    ),
    "onnx": (ONNX, "an ONNX model; give load the model"),
    "renamed": (
        (SAVED / "dense/saved_model.pb").read_bytes(),
        r"the saved_model\.pb of a SavedModel under another name.*give load the folder",
    ),
    "text": (b"# a graph\nnode {\n name: 'x' }", "a GraphDef in text form.*ends in .pbtxt"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_formats_are_named(name: str, tmp_path: Path) -> None:
    """The error for a file, or its bytes, names the format."""
    data, message_text = FOREIGN[name]
    (tmp_path / "model.pb").write_bytes(data)

    with pytest.raises(ModelError, match=rf"model\.pb': expected a .*, found {message_text}"):
        tf_graphdef.load(tmp_path / "model.pb")
    with pytest.raises(ModelError, match=f"the GraphDef: expected a .*, found {message_text}"):
        tf_graphdef.load(data)


def test_git_lfs_pointers_in_a_saved_model_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git LFS pointers are recognized at each position in a SavedModel folder."""
    monkeypatch.chdir(tmp_path)
    for name, message_text in (
        (
            "saved_model.pb",
            "'m/saved_model.pb': expected a TensorFlow model, found a Git LFS pointer",
        ),
        (
            "variables/variables.index",
            "index': expected the index of a checkpoint, found a Git LFS pointer",
        ),
        (
            "variables/variables.data-00000-of-00001",
            "shard 0, which holds .*: expected part of a checkpoint, found a Git LFS pointer",
        ),
    ):
        shutil.copytree(SAVED / "dense", "m", dirs_exist_ok=True)
        Path("m", name).write_bytes(POINTER)
        with pytest.raises(ModelError, match=message_text):
            tf_graphdef.load("m")


def test_a_frozen_graph_called_saved_model_pb_is_refused(tmp_path: Path) -> None:
    """A frozen graph called saved_model.pb is refused with advice to rename it."""
    shutil.copy(DIGITS, tmp_path / "saved_model.pb")
    with pytest.raises(
        ModelError, match=r"expected a SavedModel, found a GraphDef; .* to frozen\.pb"
    ):
        tf_graphdef.load(tmp_path)


def test_the_graph_of_a_meta_file_is_loaded(tmp_path: Path) -> None:
    """The GraphDef of a TensorFlow 1 MetaGraphDef (.meta) is loaded."""
    graph = model(placeholder("x", 2), node("Neg", "y", "x"))
    meta: Any = message("MetaGraphDef")(graph_def=graph)
    meta.meta_info_def.tags.append("train")
    (tmp_path / "model.ckpt.meta").write_bytes(meta.SerializeToString())

    loaded = tf_graphdef.load(tmp_path / "model.ckpt.meta")
    assert [n.name for n in loaded.nodes] == ["x", "y"]


def test_a_graph_whose_first_byte_is_a_brace_is_no_json() -> None:
    """A first node of 123 bytes begins with a brace, as JSON does, and is read all the same."""
    name = "n" * (123 - len(node("NoOp", "").SerializeToString()) - 2)
    graph = model(node("NoOp", name), placeholder("x", 2), node("Neg", "y", "x"))
    assert graph.SerializeToString().startswith(b"\n{")

    assert tf_graphdef.load(graph.SerializeToString(), "y").outputs[0].shape == (2,)


def test_node_names_are_not_mistaken_for_formats() -> None:
    """A model is loaded whatever its first node is called."""
    for name in ("TFL3", "GGUF", "version", "PK", "ustar", "x" * 253 + "ustar"):
        loaded = tf_graphdef.load(model(placeholder(name, 2), node("Neg", "y", name)))
        data = model(placeholder(name, 2), node("Neg", "y", name)).SerializeToString()
        assert tf_graphdef.load(data).key == loaded.key
