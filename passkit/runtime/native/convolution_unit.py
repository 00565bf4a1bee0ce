"""The compiled unit of convolution kernels: sources, shared constants, and direct calls.

The sources are in the folder ``convolution``. They are compiled as one unit when a program first
contains a convolution, and kept in the kernel cache. ``convolution/shape.h`` describes the operands
and size arguments of a launch.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from enum import IntEnum
from functools import cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.errors import CompilerError
from passkit.runtime.native.build import KernelText, build, kernel_digest, start_unit, stats
from passkit.runtime.native.cache import open_cache
from passkit.runtime.native.compiler import find_compiler
from passkit.runtime.native.register_tiles import FEW_CHANNELS, MAX_TAPS

if TYPE_CHECKING:
    from passkit.runtime.native.compilation import Compilation
    from passkit.runtime.native.work_folders import WorkFolder

SYMBOL = "convolve"
FLAGS = ("-fwrapv", "-ffp-contract=fast", "-O2")
"""Products and sums are contracted to fma, as in all kernels. The unit unrolls and vectorizes by
hand: -O3 takes longer to compile and gains nothing."""

FILES = (
    "shape",
    "im2col",
    "depthwise",
    "small_images",
    "onednn",
    "filter_gradient",
    "direct",
    "entry",
)
"""The headers of the unit in the folder ``convolution``, in order of inclusion."""


class UnitTask(IntEnum):
    """The task of a launch: its first size argument. The sources use the same names."""

    REORDER_FILTER = 0
    ONEDNN = 1
    IM2COL = 2
    DEPTHWISE = 3
    SMALL_IMAGES = 4
    DEPTHWISE_STREAMED = 5
    FILTER_GRADIENT = 6
    SUM_GRADIENT_PARTS = 7
    ZERO_RESULT = 8
    WIDEN_FILTER = 9
    SIGNAL_FILTERS = 10
    PACK_FILTER = 11
    DIRECT = 12
    QUERY_PANEL_WIDTH = 13


MAX_EPILOGUE_ARRAYS = 32
"""The most arrays of a kernel that can be an epilogue of a convolution."""
MAX_EPILOGUE_SIZES = 32
"""The most size arguments of such a kernel."""
SUM_BLOCK = 2048
"""Elements of a tile of `UnitTask.SUM_GRADIENT_PARTS`."""


@cache
def unit_kernel() -> KernelText:
    """Return the sources of the unit, with the constants that they share with this package.

    They are read once. Raises: OSError where a file of the package is missing.
    """
    folder = Path(__file__).with_name("convolution")
    parts = [(folder / f"{name}.h").read_text(encoding="utf-8") for name in FILES]
    return KernelText(SYMBOL, SYMBOL, "\n".join([constants_text(), *parts]))


def constants_text() -> str:
    """Return C++ enumerations of the constants that the unit shares with Python."""
    constants = {
        **{task.name: task.value for task in UnitTask},
        "FEW_CHANNELS": FEW_CHANNELS,
        "MAX_TAPS": MAX_TAPS,
        "MAX_EPILOGUE_ARRAYS": MAX_EPILOGUE_ARRAYS,
        "MAX_EPILOGUE_SIZES": MAX_EPILOGUE_SIZES,
        "SUM_BLOCK": SUM_BLOCK,
    }
    lines = "".join(f"  {name} = {value},\n" for name, value in constants.items())
    return f"namespace convolution {{\nenum {{\n{lines}}};\n}}\n"


@cache
def digest() -> str:
    """Return the key of the unit in the kernel cache."""
    return kernel_digest(unit_kernel(), FLAGS)


_lock = RLock()
_pending: list[tuple[WorkFolder, Compilation]] = []
"""The folder and the compiler of the unit that `prefetch` started, if it did."""


def forget_pending() -> None:
    """Leave a compilation that `prefetch` started to the process that started it; renew the lock.

    A forked process cannot wait for the compiler, and has a lock that nobody in it releases.
    """
    global _lock
    _lock = RLock()
    _pending.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_pending)


def prefetch() -> None:
    """Start to compile the unit if it is not in the cache; do not wait for it.

    It takes as long as planning a network, beside which it is compiled. Errors of the compiler are
    ignored here; `entry` raises them. Raises: CacheError where others can write to the cache
    folder.
    """
    with _lock:
        compiler, cache = find_compiler(), open_cache()
        if _pending or compiler is None or cache.find(digest(), compiler.fingerprint) is not None:
            return
        from passkit.runtime.native.work_folders import work_folder

        with suppress(CompilerError, OSError):
            folder = work_folder(cache.name)
            source = Path(folder.name, "convolution.cpp")
            _pending.append((folder, start_unit([unit_kernel()], compiler, FLAGS, source)))


def entry() -> int:
    """Return the address of the unit's kernel, compiled and loaded at the first call.

    Raises:
        CompilerError: The unit is not in the cache and cannot be compiled.
        CacheError: Others can write to the cache folder.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    with _lock:
        while _pending:
            folder, compilation = _pending.pop()
            with folder:
                library = compilation.finish()
                symbols = {digest(): SYMBOL}
                open_cache().keep(library, symbols, compilation.compiler.fingerprint)
                stats.compiled, stats.processes = stats.compiled + 1, stats.processes + 1
    return build([unit_kernel()], FLAGS)[SYMBOL]


def run_unit(
    entry: int, sizes: tuple[int, ...], pointers: tuple[int, ...], result: Any, tiles: int = 1
) -> Any:
    """Call the unit's kernel on the calling thread.

    Args:
        entry: the address of the kernel.
        sizes: the size arguments, of which the first is a `UnitTask`.
        pointers: the addresses of all operands except the last one.
        result: the last operand, an array, which is filled.
        tiles: the number of tiles.

    Returns:
        ``result``.
    """
    kernel = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
    )(entry)
    numbers = np.array(sizes, np.int64)
    addresses = np.array((*pointers, result.ctypes.data), np.uint64)
    kernel(addresses.ctypes.data, numbers.ctypes.data, 0, tiles, None)
    return result
