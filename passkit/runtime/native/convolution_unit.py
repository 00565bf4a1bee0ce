"""The compiled units of convolution kernels: sources, shared constants, and direct calls.

The sources are in the folder ``convolution``. Each of the `ConvolutionUnit` is compiled when a
program first needs it, and kept in the kernel cache. ``convolution/shape.h`` describes the operands
and size arguments of a launch.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from contextlib import suppress
from enum import IntEnum
from functools import cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.errors import CompilerError
from passkit.runtime.native.build import build, kernel_digest, stats
from passkit.runtime.native.cache import open_cache
from passkit.runtime.native.compiler import find_compiler
from passkit.runtime.native.register_tiles import FEW_CHANNELS, MAX_TAPS
from passkit.runtime.native.units import KernelText, start_unit

if TYPE_CHECKING:
    from passkit.runtime.native.compilation import Compilation
    from passkit.runtime.native.work_folders import WorkFolder

FLAGS = ("-fwrapv", "-ffp-contract=fast", "-O2")
"""Products and sums are contracted to fma, as in all kernels. The units unroll and vectorize
by hand: -O3 takes longer to compile and gains nothing."""


class ConvolutionUnit(IntEnum):
    """A compiled unit: kernels that are needed together."""

    LIBRARIES = 0
    """Calls of BLAS and oneDNN, gradients of filters, and empty sums."""
    DEPTHWISE = 1
    SMALL_IMAGES = 2
    DIRECT = 3

    @property
    def symbol(self) -> str:
        """The name of the unit's function."""
        return f"convolve_{self.name.lower()}"


FILES = {
    ConvolutionUnit.LIBRARIES: ("windows", "im2col", "onednn", "filter_gradient", "libraries"),
    ConvolutionUnit.DEPTHWISE: ("depthwise",),
    ConvolutionUnit.SMALL_IMAGES: ("small_images",),
    ConvolutionUnit.DIRECT: ("windows", "direct"),
}
"""The headers of each unit in the folder ``convolution`` after ``shape``, in order of inclusion."""


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

    @property
    def unit(self) -> ConvolutionUnit:
        """The unit that has the kernel of the task."""
        return _UNITS.get(self, ConvolutionUnit.LIBRARIES)


_UNITS = {
    UnitTask.DEPTHWISE: ConvolutionUnit.DEPTHWISE,
    UnitTask.DEPTHWISE_STREAMED: ConvolutionUnit.DEPTHWISE,
    UnitTask.SMALL_IMAGES: ConvolutionUnit.SMALL_IMAGES,
    UnitTask.PACK_FILTER: ConvolutionUnit.DIRECT,
    UnitTask.DIRECT: ConvolutionUnit.DIRECT,
}
"""The units of tasks; those of other tasks is `ConvolutionUnit.LIBRARIES`."""

MAX_EPILOGUE_ARRAYS = 32
"""The most arrays of a kernel that can be an epilogue of a convolution."""
MAX_EPILOGUE_SIZES = 32
"""The most size arguments of such a kernel."""
SUM_BLOCK = 2048
"""Elements of a tile of `UnitTask.SUM_GRADIENT_PARTS`."""


@cache
def unit_kernel(unit: ConvolutionUnit) -> KernelText:
    """Return the sources of a unit, with the constants that they share with this package.

    They are read once. Raises: OSError where a file of the package is missing.
    """
    folder = Path(__file__).with_name("convolution")
    names = ("shape", *FILES[unit])
    parts = [(folder / f"{name}.h").read_text(encoding="utf-8") for name in names]
    return KernelText(unit.symbol, unit.symbol, "\n".join([constants_text(), *parts]))


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
def digest(unit: ConvolutionUnit) -> str:
    """Return the key of a unit in the kernel cache."""
    return kernel_digest(unit_kernel(unit), FLAGS)


_lock = RLock()
_pending: dict[ConvolutionUnit, tuple[WorkFolder, Compilation]] = {}
"""The folder and the compiler of each unit that `prefetch` started and nobody waited for."""


def forget_pending() -> None:
    """Leave compilations that `prefetch` started to the process that started it; renew the lock.

    A forked process cannot wait for the compiler, and has a lock that nobody in it releases.
    """
    global _lock
    _lock = RLock()
    _pending.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_pending)


def prefetch(units: Iterable[ConvolutionUnit]) -> None:
    """Start to compile the units that are not in the cache; do not wait for them.

    They take as long as planning a network, beside which they are compiled. Errors of the compiler
    are ignored here; `entry` raises them. Raises: CacheError where others can write to the cache
    folder.
    """
    with _lock:
        compiler, cache = find_compiler(), open_cache()
        if compiler is None:
            return
        for unit in units:
            if unit in _pending or cache.find(digest(unit), compiler.fingerprint) is not None:
                continue
            from passkit.runtime.native.work_folders import work_folder

            with suppress(CompilerError, OSError):
                folder = work_folder(cache.name)
                source = Path(folder.name, f"{unit.symbol}.cpp")
                started = start_unit([unit_kernel(unit)], compiler, FLAGS, source)
                _pending[unit] = folder, started


def entry(unit: ConvolutionUnit) -> int:
    """Return the address of a unit's function, compiled and loaded at the first call.

    Raises:
        CompilerError: The unit is not in the cache and cannot be compiled.
        CacheError: Others can write to the cache folder.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    with _lock:
        if unit in _pending:
            folder, compilation = _pending.pop(unit)
            with folder:
                library = compilation.finish()
                symbols = {digest(unit): unit.symbol}
                open_cache().keep(library, symbols, compilation.compiler.fingerprint)
                stats.compiled, stats.processes = stats.compiled + 1, stats.processes + 1
    return build([unit_kernel(unit)], FLAGS)[unit.symbol]


def entries(units: Iterable[ConvolutionUnit]) -> tuple[int, ...]:
    """Return the address of each unit's function, in order; 0 for one that is not in ``units``.

    Those that are not in the cache are compiled side by side. Raises: what `entry` raises.
    """
    needed = set(units)
    prefetch(sorted(needed))
    return tuple(entry(unit) if unit in needed else 0 for unit in ConvolutionUnit)


def run_unit(
    entry: int, sizes: tuple[int, ...], pointers: tuple[int, ...], result: Any, tiles: int = 1
) -> Any:
    """Call the function of a unit on the calling thread.

    Args:
        entry: the address of the function.
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
