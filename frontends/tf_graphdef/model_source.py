"""Dispatch on the kind of model source: file, folder, bytes, message, or TensorFlow object."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.file_formats import parse_file
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.proto import GraphDef, budget_for, short
from passkit.frontends.tf_graphdef.saved_model import from_folder
from passkit.frontends.tf_graphdef.tensorflow_objects import from_object

ModelSource: TypeAlias = str | PathLike[str] | bytes | Any

_TEXT = (".pbtxt", ".txt", ".prototxt")


def read_model(
    source: ModelSource, max_nbytes: int | None, signature: str | None, tags: Sequence[str]
) -> Model:
    """Read the model that ``source`` holds.

    ``signature`` and ``tags`` are ignored for an object of TensorFlow, ``tags`` also for a
    GraphDef.

    Args:
        source: A file name, a SavedModel folder, bytes, a GraphDef, or an object of TensorFlow.
        max_nbytes: Bound of the memory that reading takes, in bytes; None for the default.
        signature: Signature of a SavedModel or function of a GraphDef; None for the default.
        tags: Tags that select a graph of a SavedModel.

    Raises:
        ModelError: If the source holds no model or does not exist, the model is damaged or too
            large, or it has no such signature.
        DTypeError: If a function of TensorFlow captured a value of a dtype that passkit does not
            have.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        budget = budget_for(len(data), max_nbytes)
        graph = parse_file(data, "the GraphDef", budget)
        return Model(graph, "the GraphDef", budget).select_function(signature)
    if isinstance(source, str | PathLike):
        return _from_path(Path(fspath(source)), max_nbytes, signature, tags)
    if isinstance(source, GraphDef):
        budget = budget_for(source.ByteSize(), max_nbytes)
        return Model(source, "the GraphDef", budget).select_function(signature)
    type_name = getattr(getattr(source, "DESCRIPTOR", None), "full_name", type(source).__name__)
    if type_name.split(".")[-1] == "GraphDef" and hasattr(source, "SerializeToString"):
        return read_model(source.SerializeToString(), max_nbytes, signature, tags)
    model = from_object(source, max_nbytes)
    if model is None:
        raise ModelError(
            f"tf_graphdef.load needs a file name, a SavedModel folder, bytes, a GraphDef, or a "
            f"concrete function or Keras model of TensorFlow, got {type_name}; as_graph_def() of a "
            f"tf.Graph returns a GraphDef"
        )
    return model


def _from_path(
    path: Path, max_nbytes: int | None, signature: str | None, tags: Sequence[str]
) -> Model:
    """Read a file or a SavedModel folder.

    Args:
        path: The file or folder.
        max_nbytes: Memory that reading may take; None for the default.
        signature: Signature of a SavedModel; None for the default.
        tags: Tags of a SavedModel's graph.

    Raises:
        ModelError: If the file does not exist or cannot be read, the model is damaged or too large,
            or it has no such signature.
    """
    where = short(str(path))
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
        if path.stem == "saved_model" and is_file:
            return from_folder(path.parent, max_nbytes, signature, tags)
        data = path.read_bytes() if is_file else b""
    except OSError as error:
        raise ModelError(
            f"{where} cannot be read: {error.strerror}; load needs a readable .pb or .pbtxt file "
            f"or SavedModel folder"
        ) from None
    if is_folder:
        return from_folder(path, max_nbytes, signature, tags)
    if not is_file:
        raise ModelError(
            f"load needs a .pb or .pbtxt file or a SavedModel folder, and no file or folder exists "
            f"at {where}"
        )
    budget = budget_for(len(data), max_nbytes)
    graph = parse_file(data, where, budget, text=path.suffix in _TEXT)
    return Model(graph, where, budget).select_function(signature)
