"""The kernels of `hand/gpu` by workload: their text for given sizes, and how they are launched."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import ceil, prod
from pathlib import Path

import numpy as np
from attrs import field, frozen

HERE = Path(__file__).resolve().parent / "gpu"
MULTIPROCESSORS = 132
"""Those of an H100 or H200, by which grids of sums are chosen."""
PARTIAL_SUMS = 1 << 22
"""The most partial sums, in floats, of the sums in one launch."""
ArrayShape = tuple[int, ...]


@frozen
class HandLaunch:
    """A kernel written by hand for given sizes, and its launch.

    Attributes:
        text: all that is compiled, with the sizes as macros.
        name: the kernel.
        arrays: the number of floats of each array argument: inputs, scratch, results.
        results: the shapes of its results, which are the last arrays.
        numbers: the int arguments behind the arrays.
        grid, threads: the blocks, and the threads of a block.
    """

    text: str = field(repr=False)
    name: str
    arrays: tuple[int, ...]
    results: tuple[ArrayShape, ...]
    numbers: tuple[int, ...]
    grid: int
    threads: int

    @property
    def number_bytes(self) -> bytes:
        """The int arguments as the kernel's parameter space has them."""
        return b"".join(struct.pack("<i", n) for n in self.numbers)


def hand_launch(name: str, shapes: Sequence[ArrayShape]) -> HandLaunch | None:
    """Return the launch of a workload's kernel.

    Args:
        name: the name of the workload, such as "softmax".
        shapes: the shapes of its inputs.

    Returns:
        None if no kernel was written for the workload or for these sizes.
    """
    build = KERNELS.get(name)
    return None if build is None else build(shapes)


@cache
def hand_text(file: str, **defines: int) -> str:
    """Return a file of `hand/gpu`, named without its suffix, behind macros and its header."""
    macros = [f"#define {name} {value}" for name, value in defines.items()]
    header = (HERE / "prelude.h").read_text().replace("#pragma once", "")
    return "\n".join([*macros, header, (HERE / f"{file}.cu").read_text()])


def _elementwise(kernel: str) -> Callable[[Sequence[ArrayShape]], HandLaunch | None]:
    """Return the builder of a kernel of one flat array, 1024 elements a block."""

    def build(shapes: Sequence[ArrayShape]) -> HandLaunch | None:
        ((n,),) = shapes
        text = hand_text("elementwise", V=2, THREADS=128)
        return HandLaunch(text, kernel, (n, n), ((n,),), (n,), ceil(n / 1024), 128)

    return build


def _bias_gelu(shapes: Sequence[ArrayShape]) -> HandLaunch | None:
    (rows, columns), _ = shapes
    if columns != 1024:
        return None
    arrays = (rows * columns, columns, rows * columns)
    text = hand_text("elementwise", R=4)
    return HandLaunch(text, "bias_gelu", arrays, shapes[:1], (rows,), ceil(rows / 4), 256)


def _softmax(shapes: Sequence[ArrayShape]) -> HandLaunch | None:
    ((rows, columns),) = shapes
    arrays, results = (rows * columns,) * 2, tuple(shapes)
    if columns == 40:
        text = hand_text("rows", SHORT=40, SHARE=2)
        return HandLaunch(text, "softmax_short", arrays, results, (rows,), ceil(rows / 64), 128)
    if columns <= 1024 and columns % 128 == 0:
        text = hand_text("rows", COLS=columns, LANES=32)
        return HandLaunch(text, "softmax", arrays, results, (rows,), ceil(rows / 4), 128)
    if 4096 <= columns <= 16384 and columns % 2048 == 0:
        text = hand_text("rows", LONG=columns, BLOCK=512)
        return HandLaunch(text, "softmax_block", arrays, results, (rows,), rows, 512)
    return None


def _norm(kernel: str) -> Callable[[Sequence[ArrayShape]], HandLaunch | None]:
    """Return the builder of a norm over rows that a warp keeps in registers."""

    def build(shapes: Sequence[ArrayShape]) -> HandLaunch | None:
        rows, columns = shapes[0]
        if columns > 1024 or columns % 128:
            return None
        # rms_norm has no shift; both kernels take one.
        arrays = (rows * columns, columns, columns, rows * columns)
        text = hand_text("rows", COLS=columns, LANES=32)
        return HandLaunch(text, kernel, arrays, (shapes[0],), (rows,), ceil(rows / 4), 128)

    return build


def _colsum(shapes: Sequence[ArrayShape]) -> HandLaunch | None:
    rows, columns = shapes[0]
    if columns % 128:
        return None
    text = hand_text("columns", COLS=columns, U=4)
    parts = columns // 128
    grid = max(1, 4 * MULTIPROCESSORS // parts) * parts
    arrays = (rows * columns, rows * columns, PARTIAL_SUMS, columns)
    return HandLaunch(text, "colsum", arrays, ((columns,),), (rows,), grid, 256)


def _fullsum(shapes: Sequence[ArrayShape]) -> HandLaunch | None:
    ((n,), _) = shapes
    if n % 4:
        return None
    arrays = (n, n, PARTIAL_SUMS, 1)
    text, grid = hand_text("columns", U=4), 5 * MULTIPROCESSORS
    return HandLaunch(text, "fullsum", arrays, ((),), (n // 4,), grid, 256)


def _transpose_add(shapes: Sequence[ArrayShape]) -> HandLaunch | None:
    rows, columns = shapes[0]
    if rows != columns or rows % 64:
        return None
    text = hand_text("columns", SIDE=rows)
    arrays = (rows * columns,) * 3
    return HandLaunch(text, "transpose_add", arrays, (shapes[0],), (), (rows // 64) ** 2, 256)


def _figure1(shapes: Sequence[ArrayShape]) -> HandLaunch | None:
    batch, rows, inner = shapes[0]
    width = shapes[2][2]
    column = (batch, rows, 1)
    results = ((batch, rows, width), column, column, column)
    arrays = tuple(prod(shape) for shape in (*shapes, *results))
    if (rows, inner, width) == (94, 1, 8):
        text = hand_text("attention")
        return HandLaunch(text, "figure1_thin", arrays, results, (batch,), ceil(batch / 4), 128)
    if (rows, inner, width) == (94, 32, 32):
        text = hand_text("attention", ROWS=3)
        return HandLaunch(text, "figure1_wide", arrays, results, (), batch, 32)
    return None


def adam_launch(n: int) -> HandLaunch:
    """Return the launch of a step of Adam in place: moments, parameter and gradient of ``n``."""
    text = hand_text("elementwise")
    return HandLaunch(text, "adam", (n,) * 4, (), (n,), ceil(n / 1024), 256)


def adam_packed_launch(sizes: Sequence[int]) -> HandLaunch:
    """Return the launch of a step of Adam of several tensors, whose arrays are `tensor_tables`."""
    count, blocks = len(sizes), sum(ceil(n / 1024) for n in sizes)
    arrays = (8 * count, count + 1, count)
    text = hand_text("elementwise")
    return HandLaunch(text, "adam_packed", arrays, (), (count,), blocks, 256)


def tensor_tables(
    addresses: Sequence[Sequence[int]], sizes: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the tables of ``adam_packed``: addresses, first block of each tensor, sizes.

    Args:
        addresses: those of the moments, the parameter and the gradient of each tensor.
        sizes: its number of elements.
    """
    blocks = np.cumsum([0, *(ceil(n / 1024) for n in sizes)])
    return np.array(addresses, np.uint64), blocks.astype(np.int32), np.array(sizes, np.int32)


KERNELS: Mapping[str, Callable[[Sequence[ArrayShape]], HandLaunch | None]] = {
    "gelu_erf": _elementwise("gelu"),
    "gelu_custom_ref": _elementwise("gelu"),
    "gelu_custom_erf": _elementwise("gelu_custom"),
    "bias_gelu": _bias_gelu,
    "softmax": _softmax,
    "layer_norm": _norm("layer_norm"),
    "rms_norm": _norm("rms_norm"),
    "colsum": _colsum,
    "fullsum": _fullsum,
    "transpose_add": _transpose_add,
    "figure1": _figure1,
}
