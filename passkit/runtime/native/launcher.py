"""The launcher: a C extension that runs programs, compiled at first use and then cached."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from passkit.errors import CompilerError, SettingError
from passkit.runtime.native.cache import FORMAT, KernelCache, open_cache
from passkit.runtime.native.compiler import INSTALL_HINT, Compiler, find_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from passkit.runtime.native.compilation import Compilation
    from passkit.runtime.native.work_folders import WorkFolder

NAME = "_passkit_launcher"
MAX_THREADS = 64
FLAGS = (
    "-x",
    "c",
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-shared",
    "-fPIC",
    "-fvisibility=hidden",
    # Compiles a fifth faster than -O1, with calls within 3 % once functions are inlined.
    "-Og",
    "-finline-functions-called-once",
)
_HERE = os.path.dirname(os.path.abspath(__file__))
_SOURCES = (
    "launcher.c",
    "gemm.h",
    "pool.h",
    "team.h",
    "team_python.h",
    "memory.h",
    "bound.h",
    "parse.h",
    "run.h",
)


_lock = threading.RLock()
_module: ModuleType | None = None
_pending: tuple[WorkFolder, Compilation] | None = None


def launcher() -> ModuleType:
    """Return the extension module, loaded at the first call, from the cache or by compiling it.

    It then has `requested_threads` threads.

    Raises:
        CompilerError: It is not in the cache and cannot be compiled.
        SettingError: PASSKIT_THREADS is not a number of threads.
        CacheError: Others can write to the cache folder.
    """
    global _module
    if _module is None:
        with _lock:
            if _module is None:
                threads = requested_threads()
                module = _load(open_cache())
                module.set_num_threads(threads)
                module.set_pool_limit(pool_limit())
                _module = module
    return _module


def prefetch(compiler: Compiler | None = None) -> None:
    """Start to compile the launcher if it is not in the cache; do not wait for it.

    The compiler is ``compiler``, or else the one that `find_compiler` finds; without one nothing
    happens, and so if the launcher is loaded or being compiled already. Compiler errors are ignored
    here; `launcher` raises them. Raises: CacheError where others can write to the cache folder.
    """
    global _pending
    with _lock:
        if _module is None and _pending is None:
            compiler, cache = compiler or find_compiler(), open_cache()
            if compiler and cache.find(cache_key(), None) is None:
                with suppress(CompilerError):
                    _pending = _start(compiler, cache)


def requested_threads(environ: Mapping[str, str] = os.environ) -> int:
    """Return the number of threads: PASSKIT_THREADS, else the CPUs of this process, at most 64.

    ``environ`` are the environment variables.

    Raises:
        SettingError: PASSKIT_THREADS is not a number from 1 to 64.
    """
    text = environ.get("PASSKIT_THREADS", "").strip()
    if not text:
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        return min(cpus, MAX_THREADS)
    if not text.isdecimal() or not 1 <= int(text) <= MAX_THREADS:
        raise SettingError(
            f"PASSKIT_THREADS needs a number from 1 to {MAX_THREADS}, got {text!r}; unset it for "
            "a thread on each CPU"
        )
    return int(text)


def pool_limit() -> int:
    """Return the most idle bytes of the pool of results: an eighth of the memory, at most 1 GiB."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(1 << 30, memory // 8)


def open_library(path: str) -> object:
    """Load the shared object at ``path`` with local symbols; return a handle to it.

    Its deallocation unloads the shared object.

    Raises:
        OSError: It cannot be loaded.
        CompilerError: The launcher, which loads it, cannot be compiled.
    """
    handle: object = launcher().open_library(path)
    return handle


def find_symbol(handle: object, name: str) -> int:
    """Return the address of the function ``name`` of a shared object, by its handle.

    The address is valid while the handle exists.

    Raises:
        LookupError: There is no such function.
    """
    address: int = launcher().find_symbol(handle, name)
    return address


def builtin(name: str) -> int:
    """Return the address of a built-in kernel.

    ``name`` is "gemm_f32", "gemm_f64", "gemm_f32_sum" or "gemm_f64_sum".

    Raises:
        LookupError: There is no such kernel.
        CompilerError: The launcher, which contains it, cannot be compiled.
    """
    address: int = launcher().builtin(name)
    return address


def set_num_threads(number: int) -> None:
    """Set the number of threads of this process's programs, from the next run on.

    The launcher is loaded if it is not yet.

    Raises:
        ValueError: The number is not from 1 to 64.
        CompilerError: The launcher cannot be compiled.
    """
    launcher().set_num_threads(number)


def num_threads() -> int:
    """Return the number of threads of programs.

    The launcher is loaded if it is not yet. Raises: CompilerError where it cannot be compiled.
    """
    number: int = launcher().num_threads()
    return number


def set_pool_limit(nbytes: int) -> None:
    """Set the most idle bytes that the pool of result arrays keeps.

    The launcher is loaded if it is not yet. Raises: CompilerError where it cannot be compiled.
    """
    launcher().set_pool_limit(nbytes)


def pool_stats() -> dict[str, int]:
    """Return the statistics of the pool of result arrays by name.

    They are the limit of idle bytes, the bytes and slabs that are idle and in use, and the slabs
    mapped and reused so far. The launcher is loaded if it is not yet. Raises: CompilerError where
    it cannot be compiled.
    """
    stats: dict[str, int] = launcher().pool_stats()
    return stats


def cache_key() -> str:
    """Return the launcher's key in the cache.

    It depends on its sources, Python's ABI and NumPy's major version, not on the compiler.
    """
    abi = (str(FORMAT), sysconfig.get_config_var("SOABI"), np.__version__.split(".")[0], *FLAGS)
    text = "\0".join([*abi, *(_text(name) for name in _SOURCES)])
    return sha256(text.encode()).hexdigest()


def _text(name: str) -> str:
    """Return the text of a source file in this folder."""
    with open(os.path.join(_HERE, name), encoding="utf-8") as file:
        return file.read()


def _load(cache: KernelCache) -> ModuleType:
    """Import the extension from the cache, or compile it, keep it in the cache and import it.

    A compilation that `prefetch` started is waited for. Raises: CompilerError where it cannot be
    compiled; CacheError where others can write to the cache folder.
    """
    global _pending
    key = cache_key()
    entry = cache.find(key, None)
    if entry is not None:
        try:
            return _import(entry.path)
        except ImportError:
            pass  # compiled for another system: it is compiled again
    (folder, compilation), _pending = _pending or _start(find_compiler(), cache), None
    with folder:
        library = compilation.finish()
        symbols = {key: f"PyInit_{NAME}"}
        return _import(cache.keep(library, symbols, compilation.compiler.fingerprint))


def _start(compiler: Compiler | None, cache: KernelCache) -> tuple[WorkFolder, Compilation]:
    """Start to compile the launcher; return the folder of its files and the running compiler.

    ``compiler`` is None where there is none; ``cache`` is the cache that lacks the launcher, in
    whose folder the files go where TMPDIR has no space.

    Raises:
        CompilerError: There is no compiler, Python's headers are missing, or the folder cannot be
            written.
    """
    if compiler is None:
        raise CompilerError(
            f"the launcher is not in the cache {cache.folder}, and there is no C++ compiler to "
            f"compile it; {INSTALL_HINT}"
        )
    include = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(include, "Python.h")):
        raise CompilerError(
            f"the launcher needs Python's headers, and {include} has no Python.h; install them "
            "(python3-dev or python3-devel), or use target='interpret'"
        )
    from pathlib import Path

    # A warm start needs neither folders nor processes.
    from passkit.runtime.native.compilation import start_compilation
    from passkit.runtime.native.work_folders import work_folder

    folder = work_folder(cache.name)
    source = os.path.join(_HERE, "launcher.c")
    arguments = [*FLAGS, f"-I{include}", f"-I{np.get_include()}", source]
    if compiler.kind == "gcc":  # without the C++ library, which would slow the linker down
        arguments += ["-nodefaultlibs", "-lc", "-lgcc"]
    output = Path(folder.name, f"{NAME}.so")
    try:
        return folder, start_compilation(compiler, arguments, output, "the launcher")
    except OSError as error:
        raise CompilerError(
            f"cannot write the launcher's files to {folder.name} ({error}); set TMPDIR to a folder "
            "with free space, or raise the limit of file sizes (ulimit -f)"
        ) from error


def _import(library: str | Path) -> ModuleType:
    """Import the compiled launcher from a path, and register it in ``sys.modules``.

    Raises: ImportError where the file is not an extension for this Python.
    """
    loader = ExtensionFileLoader(NAME, str(library))
    spec = ModuleSpec(NAME, loader, origin=str(library))
    module = module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[NAME] = module
    return module
