"""The cache of compiled kernels on disk, and the compiler behind it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import passkit as pk
from passkit.passes.rtcgen import FLAGS, kernel_text
from passkit.runtime.native import build, launcher
from passkit.runtime.native.cache import KernelCache, open_cache
from passkit.runtime.native.compiler import find_compiler
from passkit.runtime.native.extension import Extension


def copy_launcher(folder: Path, *others: Extension) -> None:
    """Put the launcher and other extensions into an empty cache folder.

    Else a process that has this folder compiles each of them, for a second.
    """
    extensions = (launcher.EXTENSION, *others)
    for extension in extensions:
        extension.module()
    keys = [extension.cache_key() for extension in extensions]
    assert open_cache().copy_to(KernelCache(folder), keys) == len(keys)


def number_of_kernels(folder: Path | None = None) -> int:
    """Return how many kernels a cache folder has, the launcher included; by default the user's."""
    return (open_cache() if folder is None else KernelCache(folder)).info().kernels


def build_into(folder: Path, kernels: Iterable[pk.Kernel], *flags: str) -> set[str]:
    """Compile kernels with more flags into a cache folder; return the keys of those built."""
    texts = [kernel_text(k) for k in kernels]
    return set(build.build(texts, (*FLAGS, *flags), KernelCache(folder)))


def forget_loaded_kernels() -> None:
    """Load every kernel from the cache again, as a new process does."""
    build.forget()


def plant_library(folder: Path, source: Path, symbol: str) -> set[str]:
    """Replace the machine code of all kernels and of the launcher in a cache folder.

    Args:
        folder: The cache folder, such as ``cache`` of a saved program.
        source: A C++ file.
        symbol: The function of that file to run instead of each kernel.

    Returns: The keys that lead to the planted library.
    """
    compiler = find_compiler()
    assert compiler is not None
    library = source.with_suffix(".so")
    command = [*compiler.command, "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    cache = KernelCache(folder)
    keys = {*(path.stem for path in cache.kernels.iterdir()), launcher.cache_key(), "0" * 64}
    cache.store(library, dict.fromkeys(sorted(keys), symbol), compiler.fingerprint)
    return keys


def machine_code_of(key: str) -> bytes | None:
    """Return the shared library that the user's cache has for a key."""
    entry = open_cache().find(key, None)
    return None if entry is None else Path(entry.library).read_bytes()
