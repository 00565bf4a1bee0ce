"""Models on the command line: options, reading the model, and values for its inputs."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

import passkit.ops  # noqa: F401  (a model names operators)
from passkit.errors import FeedError, ModelError, SettingError, nearest
from passkit.frontends import tf_graphdef
from passkit.fusion.strategy import list_fusions
from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.passes.context import PassContext
from passkit.passes.pipeline import parse_passes_arguments
from passkit.serial import json
from passkit.serial.parser import parse
from passkit.values.size import Size, evaluate, symbols_of

DEFAULT_SIZE = 32
"""The value of a symbolic size that neither data nor ``--shape`` determine."""
UNREADABLE = (OSError, ValueError, EOFError, BadZipFile)
"""The errors that `numpy.load` raises for missing, empty and damaged files."""


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that reads a model."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        type=Path,
        help=".pb, .pbtxt, a SavedModel folder, .json of passkit, .txt in passkit's text form, or "
        "- for standard input",
    )
    parser.add_argument(
        "--signature",
        metavar="NAME",
        help="the signature of a SavedModel; default: serving_default",
    )
    parser.add_argument(
        "--outputs", metavar="NAMES", help="outputs, separated by commas; default: all"
    )
    parser.add_argument(
        "--shape",
        metavar="NAME=N,M",
        action="append",
        default=[],
        help="the shape of an input that has unknown sizes in the model",
    )
    parser.add_argument(
        "--target",
        default="cpu",
        metavar="NAME",
        help="cpu, blocks, cuda, opencl, interpret, or a registered target; default: %(default)s",
    )
    parser.add_argument(
        "--fusion",
        default="stitch",
        metavar="NAME",
        help=f"one of {', '.join(list_fusions())}, or a registered strategy; default: %(default)s",
    )
    parser.add_argument(
        "--passes",
        metavar="PASSES",
        action="append",
        default=[],
        help="the passes to run, such as Expand,Fusion,CodeGen,RTCGen, or passes to add to the "
        "default ones, such as 'after Simplify=Mine'",
    )
    parser.set_defaults(check=check_choices)


def check_choices(options: argparse.Namespace) -> None:
    """Check that the target and the fusion strategy are registered, after plug-ins are imported.

    Raises:
        SettingError: If the target or the fusion strategy is unknown; known names are listed.
        CacheError: If other users may write to the cache folder.
    """
    PassContext().with_options(target=options.target, fusion=options.fusion)


def plan_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the target, strategy and passes of the command line, as options of `compile`.

    Raises: SettingError for a mixture of passes to run and passes to add.
    """
    return {
        "target": options.target,
        "fusion": options.fusion,
        "passes": parse_passes_arguments(options.passes),
    }


def add_template_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option for the templates of groups, which determine their loops."""
    parser.add_argument(
        "--template",
        metavar="NAME=TEXT",
        action="append",
        default=[],
        help="the template of the group NAME, or of the group with an operator NAME; "
        "`show --schedule` prints templates",
    )


def read_templates(settings: Iterable[str]) -> dict[str, str]:
    """Return the templates in ``name=text`` settings, by name.

    Raises:
        SettingError: If a setting has another form, or a name has two templates.
    """
    templates: dict[str, str] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise SettingError(f"--template needs NAME=TEXT, got {setting!r}")
        if name in templates:
            raise SettingError(
                f"--template names {name!r} twice; a group has one template, so leave one out"
            )
        templates[name] = text
    return templates


def add_feed_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option for input values, for commands that run a model."""
    parser.add_argument(
        "--feed",
        metavar="NAME=FILE.npy",
        action="append",
        default=[],
        help="the values of an input; default: those in MODEL.npz next to the model, else random "
        "values",
    )


def load(options: argparse.Namespace) -> Graph:
    """Return the graph of the model that the options name; "-" is standard input.

    The ending of the file determines the format: ``.json``, ``.txt``, or else TensorFlow's. The
    options for outputs, shapes and a signature apply to TensorFlow's formats only.

    Raises:
        ModelError: If there is no such file, its content is damaged, or its text is not in UTF-8.
        ParseError: If text or JSON does not describe a graph.
        PasskitError: If an operator refuses the inputs or parameters that the model has.
        SettingError: If ``--shape`` is malformed.
        OSError: If the file cannot be read.
    """
    path: Path = options.model
    names = options.outputs.split(",") if options.outputs else None
    shapes = read_shapes(options.shape) or None
    if str(path) == "-":
        return read_stream(sys.stdin.buffer.read(), names, shapes)
    if not path.exists():
        files = [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else []
        near = get_close_matches(path.name, files, n=1)
        hint = f"; did you mean '{path.parent / near[0]}'?" if near else ""
        raise ModelError(f"there is no model at '{path}'{hint}")
    if path.suffix == ".json":
        return json.from_json(_text(path))
    if path.suffix == ".txt":
        return parse(_text(path))
    return tf_graphdef.load(path, names, shapes, signature=options.signature)


def _text(path: Path) -> str:
    """Return the text of a model file.

    Raises:
        ModelError: If it is not in UTF-8.
        OSError: If it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(
            f"the model '{path}' needs to be text in UTF-8, and has another byte at position "
            f"{error.start}; write it again, or give it the ending of its format"
        ) from error


def read_stream(
    data: bytes, outputs: list[str] | None, shapes: Mapping[str, tuple[int, ...]] | None
) -> Graph:
    """Return the graph in the bytes of a model file, whose format follows from its content.

    Args:
        data: A binary GraphDef, or text: JSON, a text GraphDef, or passkit's text form.
        outputs: The outputs of a GraphDef; None for all.
        shapes: The shapes of inputs that have unknown sizes in a GraphDef, by name; None for none.

    Raises:
        ModelError: If the data is empty, or a damaged GraphDef or graph.
        ParseError: If text is in none of these formats, or does not describe a graph.
        PasskitError: If an operator refuses the inputs or parameters that the model has.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if not text.strip():
        raise ModelError(
            "standard input needs to hold a model, and is empty; pipe a GraphDef, JSON or text "
            "into it"
        )
    if any(c < " " and c not in "\t\n\r" for c in text):
        return tf_graphdef.load(data, outputs, shapes)
    if text.lstrip().startswith("{"):
        return json.from_json(text)
    if re.match(r"\s*(#.*\s*)*(node|versions|library)\s*\{", text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stdin.pbtxt"
            path.write_text(text, encoding="utf-8")
            return tf_graphdef.load(path, outputs, shapes)
    return parse(text)


def model_feeds(
    options: argparse.Namespace, graph: Graph
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]], str]:
    """Return arrays for the inputs of ``graph``, the model that the options name.

    Returns:
        The arrays by input; the arrays stored next to the model, which may include results; and the
        source of the inputs: "given" by ``--feed``, "stored" or "random".

    Raises:
        FeedError: If ``--feed`` is malformed or its file cannot be read, or the rank of an input is
            unknown.
        ModelError: If the stored arrays cannot be read.
        SettingError: If ``--shape`` is malformed.
        ShapeError: If an extent of an input without an array divides by zero.
    """
    stored = companion_arrays(options.model)
    names = {n.name for n in graph.inputs}
    arrays = {k: v for k, v in stored.items() if k in names} | read_feeds(options.feed, graph)
    feeds = complete_feeds(graph, arrays, read_shapes(options.shape))
    return feeds, stored, "given" if options.feed else "stored" if arrays else "random"


def read_shapes(settings: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return the shapes in ``x=8,64`` settings, by name; "x=" is a scalar.

    Of two settings of one name the last counts.

    Raises:
        SettingError: If a setting is not a name and whole numbers.
    """
    shapes = {}
    for setting in settings:
        name, equals, sizes = setting.partition("=")
        parts = [s for s in sizes.split(",") if s]
        if not equals or not name or not all(p.isdecimal() for p in parts):
            raise SettingError(f"--shape needs NAME=N,M like x=8,64, got {setting!r}")
        shapes[name] = tuple(int(p) for p in parts)
    return shapes


def companion_arrays(model: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays in ``MODEL.npz`` next to a model, by name; empty if there is no such file.

    A model that is a folder has none.

    Raises:
        ModelError: If the file cannot be read, or is no archive of arrays.
    """
    if model.is_dir() or not (path := model.with_suffix(".npz")).is_file():
        return {}
    try:
        with open(path, "rb") as file:  # numpy.load would leave a damaged archive open
            arrays = np.load(file, allow_pickle=False)
            if not isinstance(arrays, np.ndarray):
                return dict(arrays)
            reason: object = "it is a single array without a name"
    except UNREADABLE as error:
        reason = error
    raise ModelError(
        f"'{path}' cannot be read as a file of arrays: {reason}; write it again by numpy.savez, or "
        f"remove it"
    )


def read_feeds(settings: Iterable[str], graph: Graph) -> dict[str, NDArray[Any]]:
    """Return the arrays that ``x=x.npy`` settings name, by input of the graph.

    Raises:
        FeedError: If a name is not an input of the graph, or a file cannot be read as one array.
    """
    names = [n.name for n in graph.inputs]
    arrays = {}
    for setting in settings:
        name, equals, file = setting.partition("=")
        if not equals or name not in names:
            raise FeedError(
                f"--feed needs INPUT=FILE.npy, got {setting!r}: no input is called {name!r}; "
                f"{nearest(name, names)}"
            )
        try:
            with open(file, "rb") as stream:  # numpy.load would leave a damaged archive open
                array = np.load(stream, allow_pickle=False)
            if isinstance(array, np.ndarray):
                arrays[name] = array
                continue
            reason: object = "it is an archive of several arrays"
        except UNREADABLE as error:
            reason = error
        raise FeedError(
            f"--feed {setting}: '{file}' cannot be read as an array: {reason}; write it by "
            f"numpy.save"
        )
    return arrays


def complete_feeds(
    graph: Graph, arrays: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, NDArray[Any]]:
    """Return an array for each input: the available one, or random values.

    Args:
        graph: The graph.
        arrays: The available arrays by input. They determine symbolic sizes of other inputs.
        shapes: The shapes of further inputs, by name, which determine such sizes, too.

    Returns: The arrays by input. Those available are not checked.

    Raises:
        FeedError: If the rank of an input without array and shape is unknown.
        ShapeError: If an extent of such an input divides by zero.
    """
    sizes: dict[str, int] = {}
    for node in graph.inputs:
        shape = arrays[node.name].shape if node.name in arrays else shapes.get(node.name)
        declared = node.entries[0].shape
        for extent, size in zip(declared or (), shape or (), strict=False):
            if isinstance(extent, Size) and len(extent.symbols) == 1:
                sizes.setdefault(str(extent), size)
    rng = np.random.default_rng(0)
    return {
        node.name: arrays[node.name]
        if node.name in arrays
        else random_array(rng, node, shapes.get(node.name), sizes)
        for node in graph.inputs
    }


def random_array(
    rng: np.random.Generator,
    node: Node,
    shape: tuple[int, ...] | None,
    sizes: Mapping[str, int],
) -> NDArray[Any]:
    """Return random values for an input: bools, integers from 0 to 9, or normal floats.

    Complex numbers are real ones; an unknown dtype is float32.

    Args:
        rng: The source of random numbers.
        node: The input.
        shape: Its shape; None for the one in the graph.
        sizes: Values of symbolic sizes, by name; others are DEFAULT_SIZE.

    Raises:
        FeedError: If neither ``shape`` nor the graph gives the rank of the input.
        ShapeError: If an extent in the graph divides by zero.
    """
    entry = node.entries[0]
    if shape is None:
        if entry.shape is None:
            raise FeedError(
                f"input '{node.name}' needs a shape, and the model has none for it; give --shape "
                f"{node.name}=N,M"
            )
        values = {s: sizes.get(s, DEFAULT_SIZE) for s in symbols_of(entry.shape)}
        shape = tuple(evaluate(d, values) for d in entry.shape)
    dtype = entry.dtype.numpy if entry.dtype else np.dtype("float32")
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0, 10, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)
