"""Executables on disk: the graph, its options, its state, and the compiled kernels."""

from __future__ import annotations

import json
import os
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
from passkit.serial.json import from_json, to_json

FORMAT = 2
SAVED = "saved"
"""The device and compiler of records in a folder: they were measured wherever it comes from."""


def save(executable: Executable, folder: str | Path) -> None:
    """Write an executable into a folder: `load` makes an equal one, without a compiler.

    The kernels in it serve machines with the same instruction set; others compile them again. The
    launcher, which every program shares, is not in it: it is this user's own on each machine.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.json").write_text(to_json(executable.source_graph), encoding="utf-8")
    context = executable.context
    options: dict[str, Any] = {
        "format": FORMAT,
        "target": context.target.name,
        "fusion": context.fusion,
        "numerics": context.numerics,
    }
    options |= named(context)
    evaluator = context.evaluator
    if isinstance(evaluator, Evaluator):
        asked = [r for r in evaluator.records if r.group in evaluator.asked]
        text = "".join(f"{written(r, SAVED, SAVED)}\n" for r in asked)
        (folder / "tuned.jsonl").write_text(text, encoding="utf-8")
    if context.disabled:
        options["disabled"] = list(context.disabled)
    if not context.passes.is_default:
        options["passes"] = context.passes.written()
    if context.templates:
        options["templates"] = {name: str(template) for name, template in context.templates}
    (folder / "options.json").write_text(json.dumps(options), encoding="utf-8")
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
    folder = Path(folder)
    try:
        for name in ("options.json", "graph.json", "tuned.jsonl", "state.npz"):
            if (folder / name).exists() and not (folder / name).is_file():
                raise OSError(f"{name} is not a regular file")
        options: dict[str, Any] = json.loads((folder / "options.json").read_text(encoding="utf-8"))
        text = (folder / "graph.json").read_text(encoding="utf-8")
        measured = (folder / "tuned.jsonl").read_bytes().split(b"\n")
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{folder} holds no saved executable ({error}); exe.save(folder) writes one"
        ) from None
    if options.pop("format", None) != FORMAT:
        raise ModelError(f"{folder} was saved by another version of passkit; save it again")
    graph = from_json(text)
    state = State().holding(graph)
    state.load(folder / "state.npz")
    kernels = folder / "cache"
    saved = KernelCache(trusted_folder(kernels)) if os.path.lexists(kernels) else None
    evaluator = Evaluator(read(measured, SAVED, SAVED))  # so that it is planned as it was saved
    with reading_from(saved):
        return compile(graph, state=state, evaluator=evaluator, **options)
