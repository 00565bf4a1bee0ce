"""Executables on disk: the graph, its options, its state, and the compiled kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from passkit.errors import ModelError
from passkit.library.lines import read, written
from passkit.passes.hints import named
from passkit.passes.rtcgen import FLAGS, kernel_text
from passkit.plan.evaluator import Evaluator
from passkit.program.compiler import compile
from passkit.program.executable import Executable
from passkit.runtime.native.build import kernel_digest, library_of
from passkit.runtime.native.cache import KernelCache, open_cache, trusted_folder
from passkit.runtime.native.launcher import cache_key, launcher
from passkit.runtime.program import Library
from passkit.serial.json import from_json, to_json

FORMAT = 2
SAVED = "saved"
"""The device and compiler of records in a folder: they were measured wherever it comes from."""


def save(executable: Executable, folder: str | Path) -> None:
    """Write an executable into a folder: `load` makes an equal one, without a compiler.

    The kernels and the launcher in it serve machines with the same instruction set and Python;
    others compile them again.
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
    for key, library in [
        *((k, library_of(k)) for k in kernels),
        (cache_key(), launcher().__file__),
    ]:
        if library is not None:
            # Entries stand beside the libraries, in the cache that this process loaded them from.
            KernelCache(Path(library).parents[1]).copy_to(target, [key])


def load(folder: str | Path) -> Executable:
    """The executable that was saved in a folder, with its state.

    The folder holds machine code, so load only what you trust.

    Raises: ModelError when the folder holds none; CacheError when others may write to it.
    """
    folder = Path(folder)
    try:
        options: dict[str, Any] = json.loads((folder / "options.json").read_text(encoding="utf-8"))
        text = (folder / "graph.json").read_text(encoding="utf-8")
        measured = (folder / "tuned.jsonl").read_bytes().split(b"\n")
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{folder} holds no saved executable ({error}); exe.save(folder) writes one"
        ) from None
    if options.pop("format", None) != FORMAT:
        raise ModelError(f"{folder} was saved by another version of passkit; save it again")
    KernelCache(folder / "cache").copy_to(open_cache())
    evaluator = Evaluator(read(measured, SAVED, SAVED))  # so that it is planned as it was saved
    executable = compile(from_json(text), evaluator=evaluator, **options)
    executable.state.load(folder / "state.npz")
    return executable
