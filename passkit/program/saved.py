"""Executables on disk: the graph, its options, its state, and the compiled kernels."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from passkit.errors import ModelError
from passkit.library.lines import read, written
from passkit.passes.hints import named
from passkit.passes.rtcgen import FLAGS, kernel_text
from passkit.plan.evaluator import Evaluator
from passkit.program.compiler import compile
from passkit.program.executable import Executable
from passkit.runtime.native.build import kernel_digest, library_of, reading_from
from passkit.runtime.native.cache import KernelCache, trusted_folder
from passkit.runtime.program import Library
from passkit.runtime.state import State
from passkit.serial.json import to_json
from passkit.values import arguments
from passkit.values.arguments import shown
from passkit.values.lazy import Lazy

FORMAT = 2
_root: Any = Lazy("passkit")
"""The package's root, which has the standard operators imported with what it gives."""
SAVED = "saved"
"""The device and compiler of records in a folder: they were measured wherever it comes from."""


_TEXTS = ("options.json", "graph.json", "tuned.jsonl")
_NAMES = ("disabled", "no_fuse")
_GROUPS = ("keep_together", "keep_apart")
_WORDS = ("target", "fusion", "numerics")


def described(executable: Executable) -> dict[str, str]:
    """Graph, options and measurements of an executable, as texts by the names of their files."""
    context = executable.context
    options: dict[str, Any] = {
        "format": FORMAT,
        "target": context.target.name,
        "fusion": context.fusion,
        "numerics": context.numerics,
    }
    options |= named(context)
    if context.disabled:
        options["disabled"] = list(context.disabled)
    if not context.passes.is_default:
        options["passes"] = context.passes.written()
    if context.templates:
        options["templates"] = {name: str(template) for name, template in context.templates}
    measured = ""
    evaluator = context.evaluator
    if isinstance(evaluator, Evaluator):
        asked = [r for r in evaluator.records if r.group in evaluator.asked]
        measured = "".join(f"{written(r, SAVED, SAVED)}\n" for r in asked)
    return {
        "graph.json": to_json(executable.source_graph),
        "options.json": json.dumps(options),
        "tuned.jsonl": measured,
    }


def remade(texts: Mapping[str, str], where: str, state: State | None = None) -> Executable:
    """The executable that `described` gave texts of; ``where`` is what errors call their origin.

    Raises: ModelError for options that `described` does not write; ParseError for another graph.
    """
    options = read_options(texts["options.json"], where)
    measured = texts["tuned.jsonl"].encode().split(b"\n")
    evaluator = Evaluator(read(measured, SAVED, SAVED))  # so that it is planned as it was saved
    graph = _root.from_json(texts["graph.json"])
    return compile(graph, evaluator=evaluator, state=state, **options)


def read_options(text: str, where: str) -> dict[str, Any]:
    """The options that JSON text holds, each of its type.

    Raises: ModelError naming an option that is unknown or of another type.
    """
    try:
        options = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _none(where, error) from None
    found = options.pop("format", None) if isinstance(options, dict) else None
    if found != FORMAT:
        raise ModelError(
            f"{where} was saved by another version of passkit, in format {shown(found)} and not "
            f"{FORMAT}; save it again"
        )
    for key, value in options.items():
        if not _is_option(key, value):
            raise ModelError(
                f"the options of {where} must be those that Executable.save writes, got "
                f"{shown(key)}: {shown(value)}"
            )
    return options  # type: ignore[no-any-return]


def _none(where: str, error: Exception) -> ModelError:
    return ModelError(f"{where} holds no saved executable ({error}); exe.save(folder) writes one")


def _is_option(key: str, value: Any) -> bool:
    """Whether an option of a saved executable is known, and of its type."""
    if key in _WORDS:
        return isinstance(value, str)
    if key == "passes":
        return _is_option("no_fuse", value) or (
            isinstance(value, dict) and all(_is_option("no_fuse", v) for v in value.values())
        )
    if key == "templates":
        return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
    if key in _GROUPS:
        return isinstance(value, list) and all(_is_option("no_fuse", group) for group in value)
    return (
        key in _NAMES and isinstance(value, list) and all(isinstance(name, str) for name in value)
    )


def save(executable: Executable, folder: str | Path) -> None:
    """Write an executable into a folder: `load` makes an equal one, without a compiler.

    The kernels in it serve machines with the same instruction set; others compile them again. The
    launcher, which every program shares, is not in it: it is this user's own on each machine.
    """
    folder = arguments.path("Executable.save: folder", folder)
    folder.mkdir(parents=True, exist_ok=True)
    context = executable.context
    for name, text in described(executable).items():
        (folder / name).write_text(text, encoding="utf-8")
    executable.state.save(folder / "state.npz")
    if context.target.dialect != "cxx":  # a device's kernels are built where it is loaded
        return
    kernels = [kernel_digest(kernel_text(k), FLAGS) for k in executable.kernels]
    if any(isinstance(s, Library) and s.row[0] == "convolution" for s in executable.steps):
        from passkit.runtime.native import convolution

        kernels.append(convolution.digest())
    target = KernelCache(trusted_folder(folder / "cache"))
    for key in kernels:
        library = library_of(key)
        if library is not None:
            # Entries stand beside the libraries, in the cache that this process loaded them from.
            KernelCache(Path(library).parents[1]).copy_to(target, [key])


def load(folder: str | Path) -> Executable:
    """Make the executable that was saved in a folder, with its state.

    The folder holds machine code, so load only what you trust. The code is mapped into this process
    once the graph and the state have been read, and only for kernels that the graph needs. It never
    enters this user's kernel cache, where later processes would run it.

    Raises:
        ModelError: The folder holds no saved executable.
        ParseError: Its graph cannot be read.
        FeedError: Its state does not fit the graph.
        CacheError: Others may write to its kernels.
    """
    folder = arguments.path("load: folder", folder)
    texts: dict[str, str] = {}
    for name in (*_TEXTS, "state.npz"):
        try:
            if (folder / name).exists() and not (folder / name).is_file():
                raise OSError(f"{name} is not a regular file")
            if name in _TEXTS:
                texts[name] = (folder / name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise _none(str(folder), error) from error
        if name == "options.json":
            read_options(texts[name], str(folder))
    state = State().holding(_root.from_json(texts["graph.json"]))
    state.load(folder / "state.npz")
    kernels = folder / "cache"
    saved = KernelCache(trusted_folder(kernels)) if os.path.lexists(kernels) else None
    with reading_from(saved):
        return remade(texts, str(folder), state)
