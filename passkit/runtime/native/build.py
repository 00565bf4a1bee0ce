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
_addresses: dict[str, int] = {}
_homes: dict[str, str] = {}
_saved: ContextVar[KernelCache | None] = ContextVar("_saved", default=None)
"""A read-only cache beside this user's own: the kernels of a saved program."""


def build(
    kernels: Iterable[tuple[str, str, str, Sequence[str]]],
    flags: tuple[str, ...] = (),
    cache: KernelCache | None = None,
) -> dict[str, int]:
    """The address of each kernel's function, by its key.

    ``flags`` are added to the compiler's. Nothing is compiled twice: not in this process, and not
    on this machine while the cache keeps it.

    Raises: CompilerError when the compiler refuses a kernel, or when one is needed and none found.
    """
    start = time.perf_counter()
    wanted = {k[0]: KernelText(k[0], k[1], k[2], tuple(k[3])) for k in kernels}
    digests = {key: kernel_digest(kernel, flags) for key, kernel in wanted.items()}
    with _lock:
        missing = {digests[key]: k for key, k in wanted.items() if digests[key] not in _addresses}
        stats.reused += len(wanted) - sum(digests[key] in missing for key in wanted)
        if missing:
            cache = cache or open_cache()
            compiler = find_compiler()
            missing = _load_known(missing, cache, compiler)
        if missing and cache:
            _compile(missing, cache, compiler, flags)
        stats.seconds += time.perf_counter() - start
        return {key: _addresses[digest] for key, digest in digests.items()}


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
    return _homes.get(digest)


def recall(names: Iterable[str]) -> dict[str, int] | None:
    """The addresses of kernels by their `kernel_digest`; None where one is not at hand."""
    cache, compiler = open_cache(), find_compiler()
    fingerprint = compiler.fingerprint if compiler else None
    found = {}
    with _lock:
        for name in names:
            if name not in _addresses and not _load(name, cache, fingerprint):
                return None
            found[name] = _addresses[name]
    return found


def kernel_digest(kernel: KernelText, flags: tuple[str, ...] = ()) -> str:
    """What a kernel's machine code depends on, but for the compiler: its name in the cache."""
    parts = [str(FORMAT), kernel.symbol, kernel.source, instruction_set()]
    parts += [*kernel_flags(), *flags, *(_text_digest(text) for text in kernel.sections)]
    return sha256("\0".join(parts).encode()).hexdigest()


@lru_cache(maxsize=256)
def _text_digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _load_known(
    missing: dict[str, KernelText], cache: KernelCache, compiler: Compiler | None
) -> dict[str, KernelText]:
    """Load what the cache has; what it does not have is returned."""
    fingerprint = compiler.fingerprint if compiler else None
    return {d: k for d, k in missing.items() if not _load(d, cache, fingerprint)}


def _load(digest: str, cache: KernelCache, fingerprint: str | None) -> bool:
    """Take a kernel from the cache, if it is there."""
    entry = cache.find(digest, fingerprint)
    saved = _saved.get()
    if entry is None and saved is not None:
        entry, cache = saved.find(digest, fingerprint), saved
    if entry is None:
        return False
    try:
        handle = _open_copy(cache, entry) if cache is saved else launcher.open_library(entry.path)
        _addresses[digest] = launcher.find_symbol(handle, entry.symbol)
        _homes[digest] = entry.path
    except (OSError, LookupError):  # an entry that does not hold what it says is no entry
        return False
    stats.loaded += 1
    return True


def _open_copy(cache: KernelCache, entry: Entry) -> int:
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
        return launcher.open_library(path)


def _compile(
    missing: dict[str, KernelText],
    cache: KernelCache,
    compiler: Compiler | None,
    flags: tuple[str, ...],
) -> None:
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
                arguments = [*kernel_flags(), *flags, str(source), *compiler.libraries]
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
        for unit, library in zip(units, libraries, strict=True):
            digests = [digest for digest, kernel in missing.items() if kernel in unit]
            _keep({d: missing[d].symbol for d in digests}, library, cache, compiler)


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


def _keep(symbols: dict[str, str], library: Path, cache: KernelCache, compiler: Compiler) -> None:
    """Put a compiled library into the cache, or use it where it is, and load its kernels."""
    library = cache.keep(library, symbols, compiler.fingerprint)
    handle = launcher.open_library(str(library))
    for digest, symbol in symbols.items():
        _addresses[digest] = launcher.find_symbol(handle, symbol)
        _homes[digest] = str(library)
    stats.compiled += len(symbols)
