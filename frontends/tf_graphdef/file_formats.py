"""Recognition of files that are no TensorFlow model, by their first bytes.

The errors name the format and say how to proceed.
"""

from __future__ import annotations

import re
import zipfile
from contextlib import suppress
from io import BytesIO
from typing import Any

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.proto import Budget, parse, parse_text, short, varint

_KERAS = "load it in Keras, and give load the model, or the folder that model.export(folder) writes"
_TORCH = (
    "export the model from PyTorch in a form that TensorFlow reads, or write its computation with "
    "pk.ops; weights alone are read by torch.load"
)
_AGAIN = "fetch the file again, by the link that downloads it"
_BEGINNINGS: tuple[tuple[bytes, str, str], ...] = (
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, such as Keras writes as .h5", _KERAS),
    (b"\x1f\x8b", "a gzip file", "unpack it first: gunzip, or tar -xzf for a .tar.gz"),
    (b"BZh", "a bzip2 file", "unpack it first: bunzip2, or tar -xjf for a .tar.bz2"),
    (b"\xfd7zXZ\0", "an xz file", "unpack it first: unxz, or tar -xJf for a .tar.xz"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "unpack it first: unzstd"),
    (b"\x93NUMPY", "a NumPy array (.npy)", "numpy.load reads it; it may be fed to a model"),
    (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", "a PyTorch file, from torch.save", _TORCH),
    (b"GGUF", "a GGUF file of language-model weights", "load the model that TensorFlow exported"),
)
"""Leading bytes of a format, its description, and advice."""

_POINTER = re.compile(rb"version https://git-lfs[^\n]*\n(?:.*\n)*?size (\d+)")
_PAGE = re.compile(rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype html|html|head|\?xml)", re.I | re.S)
_TITLE = re.compile(rb"<title[^>]*>\s*(.*?)\s*</title>", re.I | re.S)
_TEXT = re.compile(rb"(?:\s|#[^\n]*\n)*(?:node|library|versions)\s*[:{<]")
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1f]")
_TABLE_END = (0xDB4775248B80FB57).to_bytes(8, "little")
_MOST_FIELDS = 10_000
_LOOKED_AT = 4096


def refuse_other_formats(data: bytes, where: str, needed: str = "a TensorFlow model") -> None:
    """Raise ModelError if data is in a known other format, such as HDF5 or a Git LFS pointer.

    Data of no known other format is accepted without a result.

    Args:
        data: The file's contents, or its first 4096 bytes.
        where: Name of the file in errors.
        needed: The expected contents in errors, with an article.

    Raises:
        ModelError: If the format is recognized; the message names it and says how to proceed.
    """
    description = describe_other_format(data)
    if description is not None:
        format_name, instead = description
        raise ModelError(f"{where}: expected {needed}, found {format_name}; {instead}")


def describe_other_format(data: bytes) -> tuple[str, str] | None:
    """Recognize data in a format other than a TensorFlow message, by its first and last bytes.

    Returns:
        The format with an article ("a tar archive") and advice ("unpack it first: tar -xf"); None
        if no such format is recognized.
    """
    if not data:
        return "an empty file of 0 bytes", "writing or copying it was cut off; " + _AGAIN
    head = data[:_LOOKED_AT]
    for magic, format_name, instead in _BEGINNINGS:
        if head.startswith(magic):
            return format_name, instead
    if (pointer := _POINTER.match(head)) is not None:
        return (
            f"a Git LFS pointer to a file of {int(pointer[1][:15]):,} bytes",
            "run `git lfs pull` in the repository, which fetches the file",
        )
    if _PAGE.match(head):
        title = _TITLE.search(head)
        shown_title = f", titled {short(title[1].decode('utf-8', 'replace'))}" if title else ""
        return (
            f"a web page{shown_title}",
            "the download ended at an error page or a login page; " + _AGAIN,
        )
    if head[4:8] == b"TFL3" and head[2:4] == b"\0\0":
        return (
            "a TensorFlow Lite model (.tflite)",
            "give load the SavedModel or the Keras model that it was converted from",
        )
    if head.startswith((b"PK\3\4", b"PK\5\6")):
        return _archive(data)
    if re.match(rb"\x80[\2-\5]", head):
        return "a Python pickle", "load runs no code of files; " + _TORCH
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < len(data):
        return "a file of weights (.safetensors)", "it holds no graph; " + _TORCH
    if head[257:262] == b"ustar":
        return "a tar archive", "unpack it first: tar -xf"
    if data.endswith(_TABLE_END):
        return (
            "the index of a checkpoint",
            "it holds no graph; tf_graphdef.ModelSession(graph).restore(prefix) reads it",
        )
    if head.lstrip().startswith(b"{") and not _CONTROL.search(head):
        return _json(head)  # a GraphDef may begin with "\n{", too
    return None


def _archive(data: bytes) -> tuple[str, str]:
    """Return the format and advice for a zip file, as a tuple, by the names of its members.

    The format has an article, such as "a Keras model (.keras)". A damaged archive has a format,
    too, and one of unknown contents is "a zip archive of" its number of files.

    ``data`` is the entire file.
    """
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return "a damaged zip archive", _AGAIN
    ends = {name.rpartition("/")[2] for name in names}
    if "config.json" in ends and any(n.endswith(".weights.h5") for n in ends):
        return "a Keras model (.keras)", _KERAS
    if "data.pkl" in ends:
        return "a PyTorch file, from torch.save or TorchScript", _TORCH
    if names and all(n.endswith(".npy") for n in ends):
        return "NumPy arrays (.npz)", "numpy.load reads them; they may be fed to a model"
    if ends & {"saved_model.pb", "saved_model.pbtxt"}:
        return "a zip archive of a SavedModel", "unzip it, and give load the folder"
    shown = ", ".join(short(n) for n in names[:3])
    return f"a zip archive of {len(names)} files ({shown or 'none'})", "unpack it first: unzip"


def _json(start: bytes) -> tuple[str, str]:
    """Return the format and advice for JSON text, as a tuple, by the keys in its first bytes.

    ``start`` are its first 4096 bytes. Text without a known key is "a JSON text".
    """
    if b'"modelTopology"' in start:
        return "a TensorFlow.js model", "give load the model that it was converted from"
    if b'"arg_nodes"' in start or b'"nodes"' in start:
        return "a passkit graph in JSON", "pk.from_json(text) reads it"
    return "a JSON text", "it may describe layers, without weights: " + _KERAS


def parse_file(
    data: bytes, where: str, budget: Budget, kind: str = "GraphDef", text: bool = False
) -> Any:
    """Parse the message in a file, in binary or text form.

    Where a binary GraphDef is needed, a MetaGraphDef that has nodes is accepted too, and gives its
    GraphDef: TensorFlow 1 writes ``.meta`` files.

    Args:
        data: Contents of the file.
        where: Name of the file in errors.
        budget: Memory that parsing may take.
        kind: Message type that is needed.
        text: Whether the file is in text form.

    Returns:
        The parsed message of type ``kind``.

    Raises:
        ModelError: If the file is of another format, damaged, or exceeds the budget.
    """
    refuse_other_formats(data, where)
    if text:
        return parse_text(data, where, budget, kind)
    if _TEXT.match(data[:_LOOKED_AT]):
        raise ModelError(
            f"{where}: expected a binary GraphDef, found a GraphDef in text form; rename the file "
            f"so that its name ends in .pbtxt"
        )
    fields = _top_fields(data)
    is_model = (1, 0) in fields and (7, 2) in fields
    if is_model and fields <= _ONNX:
        raise ModelError(
            f"{where}: expected a TensorFlow model, found an ONNX model; give load the model that "
            f"it was converted from, or convert it to a SavedModel"
        )
    if kind == "SavedModel":
        if (1, 2) in fields and _is_graph(data, where, budget):
            raise ModelError(
                f"{where}: expected a SavedModel, found a GraphDef; rename the file, for example "
                f"to frozen.pb, and give load that file"
            )
        return parse(data, where, budget, kind)
    if fields == {(1, 0), (2, 2)}:
        raise ModelError(
            f"{where}: expected a GraphDef, found the saved_model.pb of a SavedModel under another "
            f"name or without its folder; give load the folder that was exported, in which the "
            f"file is called saved_model.pb and has variables/ beside it"
        )
    try:
        return parse(data, where, budget, kind)
    except ModelError:
        if (2, 2) in fields and fields <= _META_GRAPH:
            with suppress(ModelError):
                graph = parse(data, where, budget, "MetaGraphDef").graph_def
                if len(graph.node):
                    return graph
        raise


def _is_graph(data: bytes, where: str, budget: Budget) -> bool:
    """Return whether ``data`` parses as a binary GraphDef that has nodes.

    Data that is damaged, or exceeds the memory ``budget``, gives False. ``where`` names its source.
    """
    try:
        return len(parse(data, where, budget).node) > 0
    except ModelError:
        return False


_ONNX = {(1, 0), (2, 2), (3, 2), (4, 2), (5, 0), (6, 2), (7, 2), (8, 2), (14, 2), (20, 2), (25, 2)}
"""Field numbers and wire types of ONNX's ModelProto."""
_META_GRAPH = {(number, 2) for number in range(1, 8)}


def _top_fields(data: bytes) -> set[tuple[int, int]]:
    """Return the field number and wire type of each top-level field of an encoded message.

    Reading stops at the first malformed field, and after 10,000 fields.

    ``data`` are the bytes of the message.
    """
    fields: set[tuple[int, int]] = set()
    at, end = 0, len(data)
    for _ in range(_MOST_FIELDS):
        if at >= end:
            break
        tag, at = varint(data, at, end)
        wire = tag & 7
        if wire not in (0, 1, 2, 5) or not tag >> 3:
            break
        fields.add((tag >> 3, wire))
        if wire == 0:
            _, at = varint(data, at, end)
        elif wire == 2:
            length, at = varint(data, at, end)
            at += length
        else:
            at += 8 if wire == 1 else 4
    return fields
