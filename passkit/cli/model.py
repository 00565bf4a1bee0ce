"""Models on the command line: reading the file, its options, and values to feed it with."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

import passkit.ops  # noqa: F401  (a model names operators)
from passkit.errors import FeedError, ModelError, SettingError, nearest
from passkit.frontends import tf_graphdef
from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.passes.context import PassContext
from passkit.passes.pipeline import parse_passes_arguments
from passkit.plan.strategy import list_fusions
from passkit.serial import json
from passkit.serial.parser import parse
from passkit.values.size import Size, evaluate, symbols_of

Array = np.ndarray[Any, Any]
ROWS = 32
"""What an unknown size is when neither data nor ``--shape`` tell."""


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every command that reads a model."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        type=Path,
        help=".pb, .pbtxt, a SavedModel folder, .json of passkit, .txt in passkit's text form, or "
        "- for standard input",
    )
    parser.add_argument("--signature", metavar="NAME",
                        help="of a SavedModel; default: serving_default")  # fmt: skip
    parser.add_argument("--outputs", metavar="NAMES", help="comma-separated; default: all results")
    parser.add_argument("--shape", metavar="NAME=N,M", action="append", default=[],
                        help="the shape of an input, where the model leaves it open")  # fmt: skip
    parser.add_argument(
        "--target",
        default="cpu",
        metavar="NAME",
        help="cpu, blocks, cuda, opencl or interpret, or one that was registered; "
        "default: %(default)s",
    )
    parser.add_argument(
        "--fusion",
        default="stitch",
        metavar="NAME",
        help=f"one of {', '.join(list_fusions())}, or one that was registered; "
        "default: %(default)s",
    )
    parser.add_argument(
        "--passes",
        metavar="PASSES",
        action="append",
        default=[],
        help="the passes to run, as in Expand,Fusion,CodeGen,RTCGen, or where to add some to the "
        "default ones, as in 'after Simplify=Mine'",
    )
    parser.set_defaults(check=check_choices)


def check_choices(options: argparse.Namespace) -> None:
    """Check options whose values are names of a registry, once everything is registered.

    Raises: SettingError and RegistryError for a name that is not registered, with the nearest.
    """
    PassContext().with_options(target=options.target, fusion=options.fusion)


def plan_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return what the command line says of planning, as options of `compile` and `explain`."""
    return {
        "target": options.target,
        "fusion": options.fusion,
        "passes": parse_passes_arguments(options.passes),
    }


def add_template_argument(parser: argparse.ArgumentParser) -> None:
    """The option of commands that make kernels: how the loops of a group are dealt out."""
    parser.add_argument("--template", metavar="NAME=TEXT", action="append", default=[],
                        help="the template of the group that is called so, or has an operator "
                        "called so; `show --schedule` prints those there are")  # fmt: skip


def read_templates(settings: Iterable[str]) -> dict[str, str]:
    """The templates in ``name=text`` settings. Raises: SettingError where a name has two."""
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise SettingError(f"--template needs NAME=TEXT, got {setting!r}")
        if name in found:
            raise SettingError(f"--template has two for {name!r}; a group has one")
        found[name] = text
    return found


def add_feed_argument(parser: argparse.ArgumentParser) -> None:
    """The option of commands that run a model: what on."""
    parser.add_argument("--feed", metavar="NAME=FILE.npy", action="append", default=[],
                        help="an input's values; default: MODEL.npz beside the model, "
                        "else random")  # fmt: skip


def load(options: argparse.Namespace) -> Graph:
    """The graph of a model file.

    Raises: ModelError when there is no such file; ParseError and ModelError for its content.
    """
    path: Path = options.model
    names = options.outputs.split(",") if options.outputs else None
    shapes = given_shapes(options.shape) or None
    if str(path) == "-":
        return read_stream(sys.stdin.buffer.read(), names, shapes)
    if not path.exists():
        files = [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else []
        near = get_close_matches(path.name, files, n=1)
        hint = f"; did you mean '{path.parent / near[0]}'?" if near else ""
        raise ModelError(f"there is no model at '{path}'{hint}")
    if path.suffix == ".json":
        return json.from_json(path.read_text())
    if path.suffix == ".txt":
        return parse(path.read_text())
    return tf_graphdef.load(path, names, shapes, signature=options.signature)


def read_stream(
    data: bytes, outputs: list[str] | None, shapes: Mapping[str, tuple[int, ...]] | None
) -> Graph:
    """Return the graph in the bytes of a model file, whose form is told by its content.

    Args:
        data: A binary GraphDef, or text: JSON, a text GraphDef, or passkit's text form.
        outputs: The results of a GraphDef; None for all.
        shapes: The shapes of a GraphDef's inputs that it leaves open.

    Raises: ModelError and ParseError for content that is none of them.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if not text.strip():
        raise ModelError("standard input has no model: it is empty")
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
) -> tuple[dict[str, Array], dict[str, Array], str]:
    """Arrays for a model's inputs, what is stored beside it, and where the arrays come from.

    That is "given", "stored" or "random".
    """
    stored = companion(options.model)
    names = {n.name for n in graph.inputs}
    known = {k: v for k, v in stored.items() if k in names} | read_feeds(options.feed, graph)
    feeds = complete_feeds(graph, known, given_shapes(options.shape))
    return feeds, stored, "given" if options.feed else "stored" if known else "random"


def given_shapes(settings: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The shapes in ``x=8,64`` settings.

    Raises: SettingError for one that is no name and numbers.
    """
    found = {}
    for setting in settings:
        name, equals, sizes = setting.partition("=")
        parts = [s for s in sizes.split(",") if s]
        if not equals or not name or not all(p.isdigit() for p in parts):
            raise SettingError(f"--shape needs NAME=N,M like x=8,64, got {setting!r}")
        found[name] = tuple(int(p) for p in parts)
    return found


def companion(model: Path) -> dict[str, Array]:
    """The arrays in ``MODEL.npz`` beside a model; none where there is no such file."""
    path = model.with_suffix(".npz")
    if model.is_dir() or not path.is_file():
        return {}
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError) as error:
        raise ModelError(f"'{path}' is no file of arrays: {error}") from error


def read_feeds(settings: Iterable[str], graph: Graph) -> dict[str, Array]:
    """The arrays named in ``x=x.npy`` settings.

    Raises: FeedError for an input that the model does not have or a file that is no array.
    """
    names = [n.name for n in graph.inputs]
    found = {}
    for setting in settings:
        name, equals, file = setting.partition("=")
        if not equals or name not in names:
            raise FeedError(
                f"--feed needs INPUT=FILE.npy, got {setting!r}: no input is called {name!r}; "
                f"{nearest(name, names)}"
            )
        try:
            found[name] = np.load(file, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise FeedError(f"--feed {setting}: '{file}' is no array: {error}") from error
    return found


def complete_feeds(
    graph: Graph, known: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Array]:
    """Arrays for all inputs: those that are known, else random numbers of the right shape."""
    sizes: dict[str, int] = {}
    for node in graph.inputs:
        shape = known[node.name].shape if node.name in known else shapes.get(node.name)
        declared = node.entries[0].shape
        for extent, size in zip(declared or (), shape or (), strict=False):
            if isinstance(extent, Size) and len(extent.symbols) == 1:
                sizes.setdefault(str(extent), size)
    rng = np.random.default_rng(0)
    return {
        node.name: known[node.name]
        if node.name in known
        else random_array(rng, node, shapes.get(node.name), sizes)
        for node in graph.inputs
    }


def random_array(
    rng: np.random.Generator,
    node: Node,
    shape: tuple[int, ...] | None,
    sizes: Mapping[str, int],
) -> Array:
    """Random values for an input; sizes that nobody gave are `ROWS`.

    Raises: FeedError when not even the rank of the input is known.
    """
    entry = node.entries[0]
    if shape is None:
        if entry.shape is None:
            raise FeedError(
                f"the shape of input '{node.name}' is not known; give --shape {node.name}=N,M"
            )
        values = {s: sizes.get(s, ROWS) for s in symbols_of(entry.shape)}
        shape = tuple(evaluate(d, values) for d in entry.shape)
    dtype = entry.dtype.numpy if entry.dtype else np.dtype("float32")
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0, 10, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)
