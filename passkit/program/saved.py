"""Executables on disk: the graph, its options, its state, and the compiled kernels."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from passkit.ast.folds import Convolution
from passkit.dialects.base import dialect_of
from passkit.errors import ModelError
from passkit.library.evaluator import Evaluator
from passkit.library.record_lines import read_records, record_line
from passkit.passes.fusion_hints import hint_options
from passkit.passes.rtcgen import FLAGS, kernel_text
from passkit.program.compiler import compile
from passkit.program.executable import Executable
from passkit.runtime.native import convolution_unit
from passkit.runtime.native.build import compile_into, kernel_digest, library_of, reading_from
from passkit.runtime.native.cache import KernelCache, trusted_folder
from passkit.runtime.native.convolution import possible_units
from passkit.runtime.native.convolution_unit import ConvolutionUnit
from passkit.runtime.native.units import KernelText
from passkit.runtime.program import LibraryCall
from passkit.runtime.state import State
from passkit.serial.json import to_json
from passkit.values import arguments
from passkit.values.arguments import shown
from passkit.values.lazy import Lazy

FORMAT = 2
"""The version of the folder's format; executables saved in another one are refused."""
_root: Any = Lazy("passkit")
"""The package's root: its `from_json` registers the standard operators first."""
SAVED = "saved"
"""The device and compiler in saved measurements: they apply wherever the executable is loaded."""

_TEXT_FILES = ("options.json", "graph.json", "tuned.jsonl")
_NAME_OPTIONS = ("target", "fusion", "numerics")
_LIST_OPTIONS = ("disabled", "no_fuse")
_GROUP_OPTIONS = ("keep_together", "keep_apart")


def describe(executable: Executable) -> dict[str, str]:
    """Return graph, options and measurements of an executable, as texts by the names of files.

    Raises: PassError if a pass of the executable is not registered, so that no file can name it;
    GraphError if the graph has a parameter that JSON cannot hold; DTypeError if a parameter is an
    array of a dtype that passkit does not have. For an executable from a warm start, which is
    planned here, what the passes raise.
    """
    context = executable.context
    options: dict[str, Any] = {
        "format": FORMAT,
        "target": context.target.name,
        "fusion": context.fusion,
        "numerics": context.numerics,
    }
    options |= hint_options(context)
    if context.disabled:
        options["disabled"] = list(context.disabled)
    if not context.passes.is_default:
        options["passes"] = context.passes.as_option()
    if context.templates:
        options["templates"] = {name: str(template) for name, template in context.templates}
    measured = ""
    evaluator = context.evaluator
    if isinstance(evaluator, Evaluator):
        used = [r for r in evaluator.records if r.group in evaluator.used_groups]
        measured = "".join(f"{record_line(r, SAVED, SAVED)}\n" for r in used)
    return {
        "graph.json": to_json(executable.source_graph),
        "options.json": json.dumps(options),
        "tuned.jsonl": measured,
    }


def restore(texts: Mapping[str, str], origin: str, state: State | None = None) -> Executable:
    """Compile the executable that `describe` returned texts of, with the options in them.

    Args:
        texts: The result of `describe`.
        origin: The name of the source in error messages, such as a folder.
        state: The values of the variables, by default a new `State`.

    Raises:
        ModelError: The options are not such as `describe` writes.
        ParseError: The graph cannot be read.
        PasskitError: An operator refuses its inputs, or what `passkit.compile` raises.
    """
    options = read_options(texts["options.json"], origin)
    measured = texts["tuned.jsonl"].encode().split(b"\n")
    evaluator = Evaluator(read_records(measured, SAVED, SAVED))  # to plan it as it was saved
    graph = _root.from_json(texts["graph.json"])
    return compile(graph, evaluator=evaluator, state=state, **options)


def read_options(text: str, origin: str) -> dict[str, Any]:
    """Return the options in a JSON text, without its format, after a check of names and types.

    Raises: ModelError, naming ``origin``, if the text is no JSON, has another format, or has an
    option that is unknown or of another type.
    """
    try:
        options = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_saved(origin, error) from None
    version = options.pop("format", None) if isinstance(options, dict) else None
    if version != FORMAT:
        raise ModelError(
            f"{origin} was saved by another version of passkit, in format {shown(version)} and not "
            f"{FORMAT}; save it again"
        )
    for key, value in options.items():
        if not _is_option(key, value):
            raise ModelError(
                f"the options of {origin} must be those that Executable.save writes, got "
                f"{shown(key)}: {shown(value)}"
            )
    return options  # type: ignore[no-any-return]


def _not_saved(origin: str, error: Exception) -> ModelError:
    """Return the error for a folder, named by ``origin``, that holds no saved executable."""
    return ModelError(f"{origin} holds no saved executable ({error}); exe.save(folder) writes one")


def _is_option(key: str, value: Any) -> bool:
    """Return whether ``key`` is an option that `describe` writes, and ``value`` of its JSON type.

    Names in the value are not checked.
    """
    if key in _NAME_OPTIONS:
        return isinstance(value, str)
    if key in _LIST_OPTIONS:
        return _is_list_of_names(value)
    if key in _GROUP_OPTIONS:
        return isinstance(value, list) and all(map(_is_list_of_names, value))
    if key == "passes":
        return _is_list_of_names(value) or (
            isinstance(value, dict) and all(map(_is_list_of_names, value.values()))
        )
    if key == "templates":
        return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
    return False


def _is_list_of_names(value: Any) -> bool:
    """Return whether a value is a list of strings."""
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def save(executable: Executable, folder: str | Path) -> None:
    """Write an executable into a folder; `load` restores it without a compiler.

    The kernels serve machines with the same instruction set; others compile them again. The
    launcher, which all programs share, is not saved: each machine has its user's own.

    Args:
        executable: The executable.
        folder: Where to write; created if it is missing.

    Raises: PassError if a pass of the executable is not registered, so that no file can name it;
    ArgumentError if ``folder`` is no path; GraphError if the graph has a parameter that JSON cannot
    hold, DTypeError for one of a dtype that passkit does not have; FeedError if the state cannot be
    written; CacheError if others may write to its kernels; CompilerError if machine code is gone
    from the cache and cannot be compiled again; OSError if another file cannot be written.
    """
    folder = arguments.path("Executable.save: folder", folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in describe(executable).items():
        (folder / name).write_text(text, encoding="utf-8")
    executable.state.save(folder / "state.npz")
    if not dialect_of(executable.target.dialect).compiled_here:
        return  # a device's kernels are built where it is loaded
    target = KernelCache(trusted_folder(folder / "cache"))
    _save_kernels(target, list(map(kernel_text, executable.kernels)), FLAGS)
    library_calls = [s for s in executable.steps if isinstance(s, LibraryCall)]
    units: set[ConvolutionUnit] = set()
    for call in library_calls:
        if call.table_entry[0] in ("convolution", "window_products"):
            units |= {unit for unit in ConvolutionUnit if call.table_entry[1][unit]}
        if isinstance(call.operation, Convolution):  # it may be loaded where oneDNN is missing
            units |= possible_units(call.operation, call.table_entry[2], has_onednn=False)
    if units:
        convolution_unit.entries(units)
        kernels = [convolution_unit.unit_kernel(unit) for unit in sorted(units)]
        _save_kernels(target, kernels, convolution_unit.FLAGS)


def _save_kernels(
    target: KernelCache, kernels: Sequence[KernelText], flags: tuple[str, ...]
) -> None:
    """Write the machine code of those of some kernels that are loaded into a cache.

    It is compiled again where the cache that it was loaded from is gone.

    Raises: CompilerError if that is not possible; CacheError if others may write to a cache.
    """
    loaded: list[KernelText] = []
    for kernel in kernels:
        key = kernel_digest(kernel, flags)
        library = library_of(key)
        if library is not None:
            # Entries stand beside the libraries, in the cache that this process loaded them from.
            KernelCache(Path(library).parents[1]).copy_to(target, [key])
            loaded.append(kernel)
    compile_into(target, loaded, flags)


def load(folder: str | Path) -> Executable:
    """Return the executable that was saved in a folder, with its state.

    The folder holds machine code, so load only what you trust. The code is mapped into this process
    once the graph and the state have been read, and only for kernels that the graph needs. It is
    never copied into this user's kernel cache, where later processes would run it.

    Args:
        folder: A folder that `Executable.save` wrote.

    Raises:
        ModelError: The folder holds no saved executable, or one of another version's format.
        ParseError: Its graph cannot be read.
        FeedError: Its state does not fit the graph.
        CacheError: Other users may write to its kernels.
        ArgumentError: ``folder`` is no path.
        PasskitError: What `passkit.compile` raises, such as RegistryError for a pass that is not
            registered here.
    """
    folder = arguments.path("load: folder", folder)
    texts: dict[str, str] = {}
    for name in (*_TEXT_FILES, "state.npz"):
        try:
            if (folder / name).exists() and not (folder / name).is_file():
                raise OSError(f"{name} is not a regular file")
            if name in _TEXT_FILES:
                texts[name] = (folder / name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise _not_saved(str(folder), error) from error
        if name == "options.json":
            read_options(texts[name], str(folder))
    state = State().holding(_root.from_json(texts["graph.json"]))
    state.load(folder / "state.npz")
    kernels = folder / "cache"
    saved = KernelCache(trusted_folder(kernels)) if os.path.lexists(kernels) else None
    with reading_from(saved):
        return restore(texts, str(folder), state)
