"""The launcher extension: compiled at first use, then loaded from the cache."""

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

    from passkit.runtime.native.process import Compilation
    from passkit.runtime.native.scratch import WorkFolder

NAME = "_passkit_launcher"
MOST_THREADS = 64
FLAGS = (
    "-x", "c", "-std=gnu11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-fvisibility=hidden",
    # A fifth less to compile than -O1, and calls within 3 % of it once functions are inlined.
    "-Og", "-finline-functions-called-once",
)  # fmt: skip
_HERE = os.path.dirname(os.path.abspath(__file__))
_SOURCES = (
    "launcher.c", "gemm.h", "pool.h", "team.h", "team_python.h", "memory.h", "bound.h", "parse.h",
    "run.h"
)  # fmt: skip


_lock = threading.RLock()
_module: ModuleType | None = None
_pending: tuple[WorkFolder, Compilation] | None = None


def launcher() -> ModuleType:
    """The extension module, its team as large as PASSKIT_THREADS or the CPUs say.

    Raises: CompilerError when it is not in the cache and cannot be compiled.
    """
    global _module
    if _module is None:
        with _lock:
            if _module is None:
                threads = num_threads_wanted()
                made = _load(open_cache())
                made.set_num_threads(threads)
                made.set_pool_limit(pool_limit())
                _module = made
    return _module


def prefetch(compiler: Compiler | None = None) -> None:
    """Begin to compile the launcher, where that is needed, and do not wait for it."""
    global _pending
    with _lock:
        if _module is None and _pending is None:
            compiler, cache = compiler or find_compiler(), open_cache()
            if compiler and cache.find(cache_key(), None) is None:
                with suppress(CompilerError):  # whoever needs the launcher is told
                    _pending = _start(compiler, cache)


def num_threads_wanted(environ: Mapping[str, str] = os.environ) -> int:
    """The threads of PASSKIT_THREADS, else one for each CPU of this process, at most 64.

    Raises: SettingError when PASSKIT_THREADS is no number of threads.
    """
    text = environ.get("PASSKIT_THREADS", "").strip()
    if not text:
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        return min(cpus, MOST_THREADS)
    if not text.isdecimal() or not 1 <= int(text) <= MOST_THREADS:
        raise SettingError(
            f"PASSKIT_THREADS needs a number from 1 to {MOST_THREADS}, got {text!r}; unset it for "
            "a thread on each CPU"
        )
    return int(text)


def pool_limit() -> int:
    """The bytes that results given back may keep: an eighth of the memory, 1 GiB at most."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(1 << 30, memory // 8)


def open_library(path: str) -> object:
    """A handle of a shared object, its symbols its own. Deallocating it unloads the object.

    Raises: OSError when it cannot be loaded.
    """
    handle: object = launcher().open_library(path)
    return handle


def find_symbol(handle: object, name: str) -> int:
    """The address of a function in a library, valid while the handle exists.

    Raises: LookupError when there is no such function.
    """
    address: int = launcher().find_symbol(handle, name)
    return address


def builtin(name: str) -> int:
    """The address of a kernel that the launcher brings: "gemm_f32", "gemm_f64_sum", …."""
    address: int = launcher().builtin(name)
    return address


def set_num_threads(number: int) -> None:
    """Let programs run on so many threads, 1 to 64, from the next run on."""
    launcher().set_num_threads(number)


def num_threads() -> int:
    """The threads that programs run on."""
    number: int = launcher().num_threads()
    return number


def set_pool_limit(nbytes: int) -> None:
    """Keep at most so many bytes of results that were given back."""
    launcher().set_pool_limit(nbytes)


def pool_stats() -> dict[str, int]:
    """Bytes and slabs of the pool, idle and live; slabs mapped and reused since the start."""
    stats: dict[str, int] = launcher().pool_stats()
    return stats


def cache_key() -> str:
    """The launcher's name in the cache: its sources and the two ABIs, but not the compiler."""
    abi = (str(FORMAT), sysconfig.get_config_var("SOABI"), np.__version__.split(".")[0], *FLAGS)
    text = "\0".join([*abi, *(_text(name) for name in _SOURCES)])
    return sha256(text.encode()).hexdigest()


def _text(name: str) -> str:
    with open(os.path.join(_HERE, name), encoding="utf-8") as file:
        return file.read()


def _load(cache: KernelCache) -> ModuleType:
    global _pending
    key = cache_key()
    entry = cache.find(key, None)
    if entry is not None:
        try:
            return _import(entry.path)
        except ImportError:
            pass  # compiled for another system: made again below
    (folder, compilation), _pending = _pending or _start(find_compiler(), cache), None
    with folder:
        library = compilation.finish()
        symbols = {key: f"PyInit_{NAME}"}
        return _import(cache.keep(library, symbols, compilation.compiler.fingerprint))


def _start(
    compiler: Compiler | None, cache: KernelCache
) -> tuple[WorkFolder, Compilation]:
    """Begin to compile, in a folder that lasts as long as it is held.

    Raises: CompilerError when there is no compiler, or Python's headers are missing.
    """
    if compiler is None:
        raise CompilerError(
            f"the launcher is not in the cache {cache.folder}, and no C++ compiler was found; "
            f"{INSTALL_HINT}"
        )
    include = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(include, "Python.h")):
        raise CompilerError(
            f"the launcher needs Python's headers, and {include} has no Python.h; install them "
            "(python3-dev or python3-devel), or use target='interpret'"
        )
    from pathlib import Path

    # A warm start needs neither folders nor processes.
    from passkit.runtime.native.process import begin
    from passkit.runtime.native.scratch import work_folder

    folder = work_folder(cache.name)
    source = os.path.join(_HERE, "launcher.c")
    arguments = [*FLAGS, f"-I{include}", f"-I{np.get_include()}", source]
    if compiler.kind == "gcc":  # no C++ library, whose symbols the linker would read
        arguments += ["-nodefaultlibs", "-lc", "-lgcc"]
    output = Path(folder.name, f"{NAME}.so")
    try:
        return folder, begin(compiler, arguments, output, "the launcher")
    except OSError as error:
        raise CompilerError(
            f"cannot write the launcher's files to {folder.name} ({error}); set TMPDIR to a folder "
            "with room, or raise the limit of file sizes (ulimit -f)"
        ) from error


def _import(library: str | Path) -> ModuleType:
    loader = ExtensionFileLoader(NAME, str(library))
    spec = ModuleSpec(NAME, loader, origin=str(library))
    module = module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[NAME] = module
    return module
