"""The launcher: a C extension that runs programs, compiled at first use and then cached."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType

from passkit.errors import SettingError
from passkit.runtime.native.extension import Extension

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
    "row_chain.h",
    "team_python.h",
    "memory.h",
    "bound.h",
    "parse.h",
    "run.h",
    "tensors.h",
)


def _prepare(module: ModuleType) -> None:
    """Set the numbers of threads and of pooled bytes.

    Raises: SettingError if PASSKIT_THREADS is not a number of threads.
    """
    module.set_num_threads(requested_threads())
    module.set_pool_limit(pool_limit())


EXTENSION = Extension(NAME, _HERE, _SOURCES, FLAGS, "the launcher", _prepare)
launcher = EXTENSION.module
prefetch = EXTENSION.prefetch
cache_key = EXTENSION.cache_key


def requested_threads(environ: Mapping[str, str] = os.environ) -> int:
    """Return the number of threads: PASSKIT_THREADS, else the CPUs of this process, at most 64.

    ``environ`` are the environment variables; one that is empty counts as missing. Where the system
    does not tell the CPUs of a process, it is 1.

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
    """Return the most idle bytes of the pool of results: an eighth of the memory, at most 4 GiB.

    A program whose arrays exceed the limit maps memory anew in each run, and the system clears the
    pages: an ocean model with arrays of 1.1 GB then took 1.3 to 3 times as long (Zen 4).
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(1 << 32, memory // 8)


def open_library(path: str) -> object:
    """Load the shared object at ``path`` with local symbols; return a handle to it.

    Its deallocation unloads the shared object.

    Raises:
        OSError: It cannot be loaded.
        CompilerError: The launcher, which loads it, cannot be compiled.
        CacheError: The launcher is not loaded yet, and others can write to the cache folder.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
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

    ``name`` is "gemm_f32" or "gemm_f64", also with "_sum", "_rows" or "_total" behind it, or
    "row_chain".

    Raises:
        LookupError: There is no such kernel.
        CompilerError: The launcher, which contains it, cannot be compiled.
        CacheError: The launcher is not loaded yet, and others can write to the cache folder.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    address: int = launcher().builtin(name)
    return address


def set_num_threads(number: int) -> None:
    """Set the number of threads of this process's programs, from the next run on.

    The launcher is loaded if it is not yet.

    Raises:
        ValueError: The number is not from 1 to 64.
        TypeError: It is no integer.
        OverflowError: It does not fit in 64 bits.
        CompilerError: The launcher cannot be compiled.
        CacheError: The launcher is not loaded yet, and others can write to the cache folder.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    launcher().set_num_threads(number)


def num_threads() -> int:
    """Return the number of threads of programs.

    The launcher is loaded if it is not yet. Raises: CompilerError where it cannot be compiled,
    CacheError where others can write to the cache folder, SettingError where PASSKIT_THREADS is no
    number of threads.
    """
    number: int = launcher().num_threads()
    return number


def set_pool_limit(nbytes: int) -> None:
    """Set the most idle bytes that the pool of result arrays keeps.

    The launcher is loaded if it is not yet. Raises: ValueError for a negative number; CompilerError
    where the launcher cannot be compiled, CacheError where others can write to the cache folder,
    SettingError where PASSKIT_THREADS is no number of threads.
    """
    launcher().set_pool_limit(nbytes)


def pool_stats() -> dict[str, int]:
    """Return the statistics of the pool of result arrays by name.

    They are the limit of idle bytes, the bytes and slabs that are idle and in use, and the slabs
    mapped and reused so far. The launcher is loaded if it is not yet. Raises: CompilerError where
    it cannot be compiled, CacheError where others can write to the cache folder, SettingError where
    PASSKIT_THREADS is no number of threads.
    """
    stats: dict[str, int] = launcher().pool_stats()
    return stats
