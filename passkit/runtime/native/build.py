"""Building kernels: look each one up in the cache, compile what is missing, and load it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

from passkit.errors import CompilerError
from passkit.runtime.native import launcher
from passkit.runtime.native.cache import FORMAT, CachedKernel, KernelCache, open_cache
from passkit.runtime.native.compiler import (
    INSTALL_HINT,
    Compiler,
    find_compiler,
    instruction_set,
    kernel_flags,
)
from passkit.runtime.native.shared_objects import Address, LoadedKernels, SharedObject
from passkit.runtime.native.units import KernelText, compiled, divided, header_of

if TYPE_CHECKING:
    from pathlib import Path


class BuildStats:
    """Counts since the process began.

    Attributes:
        compiled: the number of kernels that were compiled.
        loaded: the number of kernels that were loaded from the cache.
        reused: the number of requested kernels that were loaded already.
        processes: the number of compiler processes.
        seconds: the time spent in `build`.
    """

    def __init__(self) -> None:
        self.compiled = self.loaded = self.reused = self.processes = 0
        self.seconds = 0.0

    def as_dict(self) -> dict[str, float]:
        """Return the counts by name, as a copy."""
        return dict(vars(self))


stats = BuildStats()
_lock = threading.Lock()
_loaded = LoadedKernels()
_saved: ContextVar[KernelCache | None] = ContextVar("_saved", default=None)
"""The kernels of a saved program, a read-only cache that is searched after the user's own."""


def build(
    kernels: Iterable[tuple[str, str, str, Sequence[str]]],
    flags: tuple[str, ...] = (),
    cache: KernelCache | None = None,
    header: Sequence[str] = (),
) -> dict[str, Address]:
    """Load kernels, from the cache or by compiling them; update `stats`.

    Args:
        kernels: for each kernel the fields of a `KernelText`: key, symbol, source and sections.
        flags: compiler flags in addition to `kernel_flags`.
        cache: the cache, by default that of the user.
        header: sections that are precompiled for kernels that begin with the first of them; they
            may have others behind it, and not all of them. They are not while the launcher is being
            compiled, which makes the first kernel of a machine slower than any other.

    Returns:
        The address of each kernel by its key; a reference to it keeps the kernel loaded.

    Raises:
        CompilerError: The compiler fails on a kernel, or is needed and there is none, its files
            cannot be written, or what it compiled cannot be loaded or lacks its function.
        CacheError: Others can write to the cache folder, or it is a file.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    start = time.perf_counter()
    texts = {k[0]: KernelText(k[0], k[1], k[2], tuple(k[3])) for k in kernels}
    digests = {key: kernel_digest(kernel, flags) for key, kernel in texts.items()}
    _loaded.collect_garbage()
    with _lock:
        loaded = {d: _loaded.find(d) for d in digests.values()}
        addresses = {d: address for d, address in loaded.items() if address is not None}
        stats.reused += sum(digest in addresses for digest in digests.values())
        missing = {digests[key]: k for key, k in texts.items() if digests[key] not in addresses}
        if missing:
            cache = cache or open_cache()
            compiler = find_compiler()
            addresses |= _load_cached(missing, cache, compiler)
            missing = {d: k for d, k in missing.items() if d not in addresses}
            if missing:
                addresses |= _compile(missing, cache, compiler, flags, header)
        stats.seconds += time.perf_counter() - start
        return {key: addresses[digest] for key, digest in digests.items()}


def compile_into(
    cache: KernelCache, kernels: Iterable[KernelText], flags: tuple[str, ...] = ()
) -> None:
    """Compile those of some kernels that a cache lacks, and add them to it.

    Args:
        cache: the cache.
        kernels: the kernels; they may be loaded, from a cache that is gone.
        flags: compiler flags in addition to `kernel_flags`.

    Raises:
        CompilerError: The compiler fails on a kernel, or is needed and there is none, its files
            cannot be written, or what it compiled cannot be loaded or lacks its function.
        CacheError: Others can write to the cache folder.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    texts = {kernel_digest(kernel, flags): kernel for kernel in kernels}
    with _lock:
        missing = {d: k for d, k in texts.items() if cache.find(d, None) is None}
        if missing:
            _compile(missing, cache, find_compiler(), flags)


def forget() -> None:
    """Forget loaded kernels, so that `build` looks them up in the cache as in a new process.

    Programs that use them still run.
    """
    with _lock:
        _loaded.clear()


@contextmanager
def reading_from(saved: KernelCache | None) -> Iterator[None]:
    """Inside the `with` block, let this thread search for kernels in another cache, too.

    It is searched after the user's own. Its machine code is loaded from private copies, and not
    copied to the user's cache.

    Args:
        saved: the other cache; None for none, also inside the block of another one.
    """
    token = _saved.set(saved)
    try:
        yield
    finally:
        _saved.reset(token)


def library_of(digest: str) -> str | None:
    """Return the path of the shared object that a kernel, given by its digest, was loaded from.

    Returns None if it is not loaded.
    """
    return _loaded.path_of(digest)


def recall(names: Iterable[str]) -> dict[str, Address] | None:
    """Load kernels by their `kernel_digest` without compiling.

    They must have been compiled by this machine's compiler; without one, those of any are loaded.

    Returns:
        The address of each by its digest; None if one of them is in no cache or cannot be loaded.

    Raises:
        CacheError: Others can write to the cache folder, or it is a file.
        CompilerError: The launcher, which loads them, cannot be compiled, or there is no folder for
            a copy of a saved program's machine code.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    cache, compiler = open_cache(), find_compiler()
    fingerprint = compiler.fingerprint if compiler else None
    addresses = {}
    _loaded.collect_garbage()
    with _lock:
        for name in names:
            address = _loaded.find(name) or _load(name, cache, fingerprint)
            if address is None:
                return None
            addresses[name] = address
    return addresses


def kernel_digest(kernel: KernelText, flags: tuple[str, ...] = ()) -> str:
    """Return the key of a kernel in the cache.

    It depends on everything that determines the machine code, except for the compiler. ``flags``
    are compiler flags in addition to `kernel_flags`.
    """
    parts = [str(FORMAT), kernel.symbol, kernel.source, instruction_set()]
    parts += [*kernel_flags(), *flags, *(_text_digest(text) for text in kernel.sections)]
    return sha256("\0".join(parts).encode()).hexdigest()


@lru_cache(maxsize=256)
def _text_digest(text: str) -> str:
    """Return the SHA-256 digest of a text in hexadecimal."""
    return sha256(text.encode()).hexdigest()


def _load_cached(
    missing: Iterable[str], cache: KernelCache, compiler: Compiler | None
) -> dict[str, Address]:
    """Return the addresses of those kernels that the cache has, by digest.

    Kernels that neither it nor the cache of a saved program has are left out.

    Args:
        missing: the digests of kernels that are not loaded.
        cache: the user's cache.
        compiler: the compiler that must have compiled them; None accepts any.

    Raises:
        CacheError: Others can write to the user's cache folder.
        CompilerError: The launcher, which loads them, cannot be compiled, or there is no folder for
            a copy of a saved program's machine code.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    fingerprint = compiler.fingerprint if compiler else None
    addresses = {digest: _load(digest, cache, fingerprint) for digest in missing}
    return {digest: address for digest, address in addresses.items() if address is not None}


def _load(digest: str, cache: KernelCache, fingerprint: str | None) -> Address | None:
    """Load a kernel from the user's cache or that of a saved program.

    Args:
        digest: the kernel's digest.
        cache: the user's cache.
        fingerprint: that of the compiler; None accepts any.

    Returns: Its address, None if neither cache has it or its library cannot be loaded.

    Raises:
        CacheError: A saved program has it, and others can write to the user's cache folder.
        CompilerError: The launcher, which loads it, cannot be compiled, or there is no folder for a
            copy of a saved program's machine code.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    entry = cache.find(digest, fingerprint)
    saved = _saved.get()
    if entry is None and saved is not None:
        entry, cache = saved.find(digest, fingerprint), saved
    if entry is None:
        return None
    try:
        shared_object = _loaded.opened(entry.path)
        if shared_object is None:
            copied = cache is saved
            shared_object = _open_copy(cache, entry) if copied else SharedObject(entry.path)
        address = _loaded.add(digest, entry.symbol, shared_object)
    except (OSError, LookupError):  # the entry is damaged: the kernel is compiled again
        return None
    stats.loaded += 1
    return address


def _open_copy(cache: KernelCache, entry: CachedKernel) -> SharedObject:
    """Load the library of an entry of a saved program's cache, from a private copy.

    No one can replace the copy while it is loaded.

    Raises:
        OSError: It does not have the digest of its name, or cannot be copied or loaded.
        CompilerError: There is no folder for the copy, or the launcher, which loads it, cannot be
            compiled.
        CacheError: Others can write to the user's cache folder.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    from passkit.runtime.native.work_folders import work_folder  # a warm start needs no copies

    data = cache.machine_code(entry)
    if data is None:
        raise OSError(f"{entry.path} changed after it was verified")
    with work_folder(open_cache().name) as folder:
        path = os.path.join(folder, os.path.basename(entry.path))
        with open(path, "wb") as file:
            file.write(data)
        return SharedObject(path, entry.path)


def _compile(
    missing: dict[str, KernelText],
    cache: KernelCache,
    compiler: Compiler | None,
    flags: tuple[str, ...],
    sections: Sequence[str] = (),
) -> dict[str, Address]:
    """Compile and load kernels, with one compiler process per core at a time.

    Args:
        missing: the kernels by digest.
        cache: the cache that keeps the results.
        compiler: the compiler, None if the machine has none.
        flags: its flags in addition to `kernel_flags`.
        sections: those of the precompiled header.

    Returns: The addresses by digest.

    Raises:
        CompilerError: There is no compiler, it fails on a kernel, its files cannot be written, or
            what it compiled cannot be loaded or lacks its function.
        CacheError: Others can write to the cache folder.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    if compiler is None:
        first = next(iter(missing.values()))
        raise CompilerError(
            f"kernel {first.symbol} is not in the cache {cache.folder}, and there is no C++ "
            f"compiler to compile it; {INSTALL_HINT}"
        )
    # A warm start needs neither folders nor processes.
    from passkit.runtime.native.work_folders import work_folder

    units = divided(list(missing.values()))
    header = None
    if not launcher.prefetch(compiler):  # two compilers are enough beside each other
        header = header_of(missing.values(), sections, flags, compiler, cache)
    with work_folder(cache.name) as folder:
        try:
            libraries, number = compiled(units, compiler, flags, header, folder)
        except OSError as error:
            raise CompilerError(
                f"cannot write the compiler's files to {folder} ({error}); set TMPDIR to a folder "
                "with free space, or raise the limit of file sizes (ulimit -f)"
            ) from None
        stats.processes += number
        addresses: dict[str, Address] = {}
        for unit, library in zip(units, libraries, strict=True):
            digests = [digest for digest, kernel in missing.items() if kernel in unit]
            addresses |= _keep({d: missing[d].symbol for d in digests}, library, cache, compiler)
        return addresses


def _keep(
    symbols: dict[str, str], library: Path, cache: KernelCache, compiler: Compiler
) -> dict[str, Address]:
    """Add a compiled library to the cache, load it, and return its kernels' addresses by digest.

    ``symbols`` has the name of each kernel's function by digest; ``compiler`` compiled the library.
    Where the cache cannot be written, the library is loaded from where it is.

    Raises: CacheError where others can write to the cache folder; CompilerError where the library
    cannot be loaded or lacks a function; SettingError where the launcher, which loads it, is not
    loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    path = str(cache.keep(library, symbols, compiler.fingerprint))
    try:
        shared_object = SharedObject(path)
        addresses = {d: _loaded.add(d, symbol, shared_object) for d, symbol in symbols.items()}
    except (OSError, LookupError) as error:
        raise CompilerError(f"cannot load the compiled library {path}: {error}") from None
    stats.compiled += len(symbols)
    return addresses
