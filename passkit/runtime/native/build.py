"""Kernel texts to addresses: look each one up, compile what is missing in few processes, load."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from passkit.errors import CompilerError
from passkit.runtime.native import launcher
from passkit.runtime.native.cache import FORMAT, Entry, KernelCache, open_cache
from passkit.runtime.native.compiler import (
    INSTALL_HINT,
    Compiler,
    find_compiler,
    instruction_set,
    kernel_flags,
)
from passkit.runtime.native.shared_objects import Address, LoadedKernels, SharedObject

if TYPE_CHECKING:
    from pathlib import Path

FEW = 4  # kernels that are not worth a second process
MANY = 120  # kernels in one unit, at most: the sections before them take a third of a second


class KernelText(NamedTuple):
    """One function to compile.

    ``key`` is the caller's name for it, ``symbol`` the function that ``source`` defines as
    ``extern "C"``; ``sections`` are the texts before it, each after those that it needs.
    """

    key: str
    symbol: str
    source: str
    sections: tuple[str, ...] = ()


class BuildStats:
    """What was done since the process began: kernels by where they came from, and compilers run."""

    def __init__(self) -> None:
        self.compiled = self.loaded = self.reused = self.processes = 0
        self.seconds = 0.0

    def as_dict(self) -> dict[str, float]:
        """The counts by name."""
        return dict(vars(self))


stats = BuildStats()
_lock = threading.Lock()
_loaded = LoadedKernels()
_saved: ContextVar[KernelCache | None] = ContextVar("_saved", default=None)
"""A read-only cache beside this user's own: the kernels of a saved program."""


def build(
    kernels: Iterable[tuple[str, str, str, Sequence[str]]],
    flags: tuple[str, ...] = (),
    cache: KernelCache | None = None,
) -> dict[str, Address]:
    """The address of each kernel's function, by its key; it stays loaded while that is held.

    ``flags`` are added to the compiler's. Nothing is compiled twice on this machine while the cache
    keeps it.

    Raises: CompilerError when the compiler refuses a kernel, or when one is needed and none found.
    """
    start = time.perf_counter()
    wanted = {k[0]: KernelText(k[0], k[1], k[2], tuple(k[3])) for k in kernels}
    digests = {key: kernel_digest(kernel, flags) for key, kernel in wanted.items()}
    _loaded.collect_garbage()
    with _lock:
        found = {d: _loaded.find(d) for d in digests.values()}
        addresses = {d: address for d, address in found.items() if address is not None}
        stats.reused += sum(digest in addresses for digest in digests.values())
        missing = {digests[key]: k for key, k in wanted.items() if digests[key] not in addresses}
        if missing:
            cache = cache or open_cache()
            compiler = find_compiler()
            addresses |= _load_known(missing, cache, compiler)
            missing = {d: k for d, k in missing.items() if d not in addresses}
            if missing:
                addresses |= _compile(missing, cache, compiler, flags)
        stats.seconds += time.perf_counter() - start
        return {key: addresses[digest] for key, digest in digests.items()}


def forget() -> None:
    """Look kernels up in the cache again, as a new process does."""
    with _lock:
        _loaded.clear()


@contextmanager
def reading_from(saved: KernelCache | None) -> Iterator[None]:
    """Within the block, kernels that this user's cache lacks are read from another one, if given.

    Their machine code is mapped into this process only. It never enters this user's cache.
    """
    token = _saved.set(saved)
    try:
        yield
    finally:
        _saved.reset(token)


def library_of(digest: str) -> str | None:
    """The path of the library that a kernel of this process was loaded from."""
    return _loaded.home(digest)


def recall(names: Iterable[str]) -> dict[str, Address] | None:
    """The addresses of kernels by their `kernel_digest`; None where one is not at hand."""
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
    """What a kernel's machine code depends on, but for the compiler: its name in the cache."""
    parts = [str(FORMAT), kernel.symbol, kernel.source, instruction_set()]
    parts += [*kernel_flags(), *flags, *(_text_digest(text) for text in kernel.sections)]
    return sha256("\0".join(parts).encode()).hexdigest()


@lru_cache(maxsize=256)
def _text_digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _load_known(
    missing: Iterable[str], cache: KernelCache, compiler: Compiler | None
) -> dict[str, Address]:
    """Load the kernels of these digests that the cache has."""
    fingerprint = compiler.fingerprint if compiler else None
    found = {digest: _load(digest, cache, fingerprint) for digest in missing}
    return {digest: address for digest, address in found.items() if address is not None}


def _load(digest: str, cache: KernelCache, fingerprint: str | None) -> Address | None:
    """Take a kernel from the cache, if it is there."""
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
    except (OSError, LookupError):  # an entry that does not hold what it says is no entry
        return None
    stats.loaded += 1
    return address


def _open_copy(cache: KernelCache, entry: Entry) -> SharedObject:
    """Load a library of a saved program from a private copy, which nobody can exchange meanwhile.

    Raises: OSError when it is not the library that its name promises, or cannot be loaded.
    """
    from passkit.runtime.native.scratch import work_folder  # a warm start needs no copies

    data = cache.machine_code(entry)
    if data is None:
        raise OSError(f"{entry.path} changed while it was read")
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
) -> dict[str, Address]:
    """Compile and load kernels, as many units at a time as there are cores.

    Raises: CompilerError when there is no compiler, or it refuses a kernel.
    """
    if compiler is None:
        first = next(iter(missing.values()))
        raise CompilerError(
            f"kernel {first.symbol} is not in the cache {cache.folder}, and no C++ compiler was "
            f"found; {INSTALL_HINT}"
        )
    from pathlib import Path

    # A warm start needs neither folders nor processes.
    from passkit.runtime.native.process import Compilation, begin
    from passkit.runtime.native.scratch import work_folder
    from passkit.values.progress import progress

    launcher.prefetch(compiler)
    units, cores = _share_out(missing), len(os.sched_getaffinity(0))
    running: list[Compilation] = []
    watched = progress("compiling kernels", len(units))
    with watched as step, work_folder(cache.name) as name:
        try:
            for number, unit in enumerate(units):
                if number >= cores:
                    running[number - cores].finish()
                    step()
                source = Path(name, f"{number}.cpp")
                source.write_text(unit_text(unit))
                arguments = [*kernel_flags(), *compiler.parameters, *flags, str(source)]
                arguments += compiler.libraries
                what = ", ".join(kernel.symbol for kernel in unit)
                output = source.with_suffix(".so")
                running.append(begin(compiler, arguments, output, what, _kernel_text(unit)))
                stats.processes += 1
            libraries = []
            for number, compilation in enumerate(running):
                libraries.append(compilation.finish())
                if number >= len(running) - cores:
                    step()
        except OSError as error:
            raise CompilerError(
                f"cannot write the compiler's files to {name} ({error}); set TMPDIR to a folder "
                "with room, or raise the limit of file sizes (ulimit -f)"
            ) from None
        finally:
            for compilation in running:
                compilation.stop()
        addresses: dict[str, Address] = {}
        for unit, library in zip(units, libraries, strict=True):
            digests = [digest for digest, kernel in missing.items() if kernel in unit]
            addresses |= _keep({d: missing[d].symbol for d in digests}, library, cache, compiler)
        return addresses


def _share_out(missing: dict[str, KernelText]) -> list[list[KernelText]]:
    """Units of about equal length: one for a few kernels, else one for each core, or more."""
    count = len(missing)
    number = max(1, min(len(os.sched_getaffinity(0)), count // FEW), -(-count // MANY))
    units: list[list[KernelText]] = [[] for _ in range(number)]
    for kernel in sorted(missing.values(), key=lambda k: (-len(k.source), k.symbol)):
        room = [u for u in units if len(u) < MANY and all(k.symbol != kernel.symbol for k in u)]
        if room:
            min(room, key=lambda u: sum(len(k.source) for k in u)).append(kernel)
        else:
            units.append([kernel])
    return [unit for unit in units if unit]


def unit_text(kernels: Sequence[KernelText]) -> str:
    """The text of a translation unit: every section once, each after those before it, then kernels.

    The compiler's messages count lines from the first kernel.
    """
    sections = dict.fromkeys(text for kernel in kernels for text in kernel.sections)
    head = "".join(f'#line 1 "section{number}.h"\n{text}\n' for number, text in enumerate(sections))
    return f'{head}#line 1 "kernels.cpp"\n{_kernel_text(kernels)}'


def _kernel_text(kernels: Sequence[KernelText]) -> str:
    return "\n".join(kernel.source.rstrip("\n") + "\n" for kernel in kernels)


def _keep(
    symbols: dict[str, str], library: Path, cache: KernelCache, compiler: Compiler
) -> dict[str, Address]:
    """Put a compiled library into the cache, or use it where it is, and load its kernels."""
    shared_object = SharedObject(str(cache.keep(library, symbols, compiler.fingerprint)))
    stats.compiled += len(symbols)
    return {d: _loaded.add(d, symbol, shared_object) for d, symbol in symbols.items()}
