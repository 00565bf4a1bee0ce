"""Small kernels written by hand, and programs of them, for the tests of the launcher.

The memory pool of the launcher, its log of the threads' shares and the table of loaded kernels have
no public functions, so that tests reach them here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest

from passkit.runtime.native import build as build_module
from passkit.runtime.native import shared_objects
from passkit.runtime.native.build import build, forget, stats
from passkit.runtime.native.feeds import InputSpec, make_program
from passkit.runtime.native.launcher import launcher, pool_limit, pool_stats, set_pool_limit
from passkit.runtime.native.units import KernelText

__all__ = [
    "F32",
    "HEAD",
    "KERNELS",
    "TILE",
    "InputSpec",
    "addresses",
    "binary_program",
    "build",
    "build_counts",
    "forget",
    "keeping_unused",
    "launch",
    "launcher_path",
    "note_shares",
    "pool_limit",
    "pool_stats",
    "program",
    "set_pool_limit",
    "text",
]
F32 = np.dtype("float32")
TILE = 256
HEAD = "#include <stdint.h>\n#include <string.h>\n"
ABI = "(void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch)"


def text(symbol: str, body: str, key: str = "", sections: Sequence[str] = (HEAD,)) -> KernelText:
    """A kernel of that name and body."""
    source = f'extern "C" void {symbol}{ABI} {{\n{body}\n}}\n'
    return KernelText(key or symbol, symbol, source, tuple(sections))


def elementwise(symbol: str, expression: str) -> KernelText:
    """z[i] = expression of x[i], y[i] over tiles of `TILE`."""
    return text(
        symbol,
        "    const float *x = (const float *)buf[0], *y = (const float *)buf[1];\n"
        "    float *z = (float *)buf[2];\n"
        f"    int64_t last = end * {TILE} < size[0] ? end * {TILE} : size[0];\n"
        f"    for (int64_t i = begin * {TILE}; i < last; i++) z[i] = {expression};",
    )


KERNELS = (
    elementwise("axpy", "2.0f * x[i] + y[i]"),
    elementwise("product", "x[i] * y[i]"),
    text("nothing", ""),
    text(
        "scratch_address",
        "    for (int64_t i = begin; i < end; i++) {\n"
        "        memset(scratch, 7, size[0]);\n"
        "        ((int64_t *)buf[0])[i] = (int64_t)scratch;\n    }",
    ),
    text(
        "spend",
        "    for (int64_t i = begin; i < end; i++) {\n"
        "        for (volatile int64_t n = 0; n < size[0]; n = n + 1);\n"
        "        ((int64_t *)buf[0])[i] += 1;\n    }",
    ),
    text("control_word", "    *(int64_t *)buf[0] = __builtin_ia32_stmxcsr();"),
)


@cache
def addresses() -> dict[str, int]:
    """The sample kernels, compiled together once."""
    return build(KERNELS)


def launch(
    symbol: str, tiles: int, refs: Sequence[Any], *sizes: int, parallel: bool = False
) -> Any:
    """A step that launches a sample kernel."""
    return ("launch", addresses()[symbol], tiles, parallel, list(refs), sizes)


def x_y_z() -> list[tuple[str, int]]:
    """The pointers of an elementwise program: two inputs and a result."""
    return [("input", 0), ("input", 1), ("output", 0)]


def binary_program(symbol: str = "axpy", parallel: bool = False, **bound: Any) -> Any:
    """A program of one elementwise kernel over two vectors x and y of equal length."""

    def bind(shapes: tuple[tuple[int, ...], ...]) -> Any:
        (n,) = shapes[0]
        step = launch(symbol, -(-n // TILE), x_y_z(), n, parallel=parallel)
        return launcher().Bound(shapes, [(F32.num, (n,))], 0, 0, [step], **bound)

    return make_program([InputSpec("x", F32, ("n",)), InputSpec("y", F32, ("n",))], 1, bind)


def program(
    steps: Sequence[Any],
    outputs: Sequence[Any],
    inputs: Sequence[InputSpec] = (),
    arena: int = 0,
    scratch: int = 0,
    **bound: Any,
) -> Any:
    """A program whose steps do not depend on shapes."""

    def bind(shapes: tuple[tuple[int, ...], ...]) -> Any:
        return launcher().Bound(shapes, outputs, arena, scratch, steps, **bound)

    return make_program(inputs, len(outputs), bind)


def note_shares(capacity: int) -> list[Any]:
    """Log the next shares of threads, at most ``capacity``; return those logged so far.

    A share is (thread, begin, end, first tile, behind the last tile), with times in nanoseconds.
    """
    shares: list[Any] = launcher().note_shares(capacity)
    return shares


def build_counts() -> dict[str, Any]:
    """Return how many kernels this process has compiled, reused and loaded, and how."""
    return stats.as_dict()


def launcher_path() -> str:
    """Return the path of the launcher's extension module, which is in the cache of kernels."""
    return str(launcher().__file__)


@contextmanager
def keeping_unused(count: int) -> Iterator[None]:
    """Start with no loaded kernel, and keep ``count`` unused shared objects, inside the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_objects, "MAX_UNUSED", count)
        patch.setattr(build_module, "_loaded", shared_objects.LoadedKernels())
        yield
        forget()
