"""Convolutions of a program: by kernels of our own, by oneDNN, or by windows in BLAS.

Images are channels last everywhere, so that no layout changes between layers. `steps` chooses by
the shape: a kernel for a filter of each channel, one for small images with few filters, the direct
kernel by register tiles, and oneDNN, where it is installed, for what that does quicker.

A long window along one axis of one channel is the filter of a signal. It is made to cancel most of
its terms: those of a stop band, or of other frequencies than its own. A sum in float32 has errors
in proportion to its partial sums, which exceed a result that is orders smaller, and a spectrogram
takes the logarithm of that. So these sums are in float64 and rounded once.

The unit in the folder convolution runs them; it is compiled when a program first has one.
"""

from __future__ import annotations

import ctypes
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from passkit.runtime.native.blas import blas
from passkit.runtime.native.build import KernelText, build, kernel_digest
from passkit.runtime.native.onednn import (
    MOST_PARTS,
    Geometry,
    Primitives,
    parts_of,
    primitives,
)
from passkit.runtime.native.register_tiles import FEW_CHANNELS, cut

SYMBOL = "convolve"
FLAGS = ("-fwrapv", "-ffp-contract=fast", "-O2")
"""Sums of products take fma, as everywhere. The unit unrolls and vectorizes by itself: -O3 takes
longer to compile and gains nothing."""

FILES = (
    "shape",
    "windows",
    "channels",
    "few",
    "library",
    "filters",
    "direct",
    "run",
)
REORDER, LIBRARY, WINDOWS, CHANNELS, FEW, CHANNELS_STREAMED = range(6)
WINDOW_PRODUCTS, SUM_OF_PARTS, ZEROS = 6, 7, 8
WIDEN, SIGNALS = 9, 10
PACK, DIRECT, PANEL_FILTERS = 11, 12, 13
SIGNAL_TAPS, SIGNAL_WORK = 64, 1 << 13
"""Taps of a window along one axis of one channel from which on it filters a signal, and the most
multiplications for each sample of it that are done in float64, which takes twice the time."""
PATCH_NBYTES = 1 << 18
"""The windows that a tile multiplies at a time stay in a core's cache."""

SECONDS = 5e-12
"""Of one multiplication and addition on one thread."""

LIBRARY_ROWS = 14
"""Rows of results from which on the library is quicker where windows have several taps."""

WIDEST = 4
CALL, TERM, COPY = 2.6e-6, 3.8e-10, 2e10
"""Seconds around a call of oneDNN, seconds of a vector's product and sum, bytes copied a second."""


@cache
def _text() -> KernelText:
    folder = Path(__file__).with_name("convolution")
    parts = [(folder / f"{name}.h").read_text(encoding="utf-8") for name in FILES]
    return KernelText(SYMBOL, SYMBOL, "\n".join(parts))


@cache
def digest() -> str:
    """The unit's name in the kernel cache."""
    return kernel_digest(_text(), FLAGS)


def entry() -> int:
    """The address of the unit's kernel. Raises: CompilerError when it cannot be compiled."""
    return build([_text()], FLAGS)[SYMBOL]


class Step(NamedTuple):
    """One launch of the unit: ``scratch`` bytes a thread, ``seconds`` on one thread."""

    table: Any
    sizes: tuple[int, ...]
    tiles: int
    scratch: int
    seconds: float


class Steps(NamedTuple):
    """The launches of a convolution; ``layout`` lays the filter out, in ``nbytes``, if need be.

    Where it stores ``by_rows`` it can run an epilogue on rows of results, all filters of each.
    """

    product: int
    layout: Step | None
    nbytes: int
    run: Step
    by_rows: bool = False


def steps(c: Geometry, itemsize: int, stream: int = 0) -> Steps | None:
    """What runs a convolution of this shape; None where its result is empty.

    A result of ``stream`` bytes or more had better go past the caches, unless that is 0.
    """
    if min(c.batch, *c.result, c.filters) < 1:
        return None
    library = blas()
    product = library.sgemm if itemsize == 4 else library.dgemm
    length = prod(c.window) * (c.channels // c.groups)
    if length == 0:  # sums of nothing, which libraries do not take
        run = Step(None, _sizes(ZEROS, itemsize, 1, c), c.batch, 0, 0.0)
        return Steps(product, None, 0, run)
    if itemsize == 4 and filters_signals(c):
        return _signals(c)
    if c.groups == c.channels == c.filters:  # one for each channel: no product of matrices
        return _channels(c, itemsize, stream)
    scratch_and_seconds = few(c, itemsize)
    if scratch_and_seconds is not None:
        run = Step(None, _sizes(FEW, itemsize, 1, c), c.batch, *scratch_and_seconds)
        return Steps(product, None, 0, run, by_rows=True)
    panel = panel_filters() if itemsize == 4 else 0
    found = None
    if itemsize == 4 and (not panel or suits_library(c)):
        found = primitives(c)
    if panel and found is None:
        return _direct(c, panel)
    seconds = SECONDS * prod(c.result) * length * c.filters * c.batch
    height, tiles, patches = _tiles(c, length * itemsize)
    if found is not None:
        scratch = max(found.scratch_nbytes, patches)
        sizes = _sizes(LIBRARY, itemsize, height, c)
        run = Step(found.table, sizes, found.parts * c.batch, scratch, seconds)
        return Steps(product, _reorder(found, c), found.filter_nbytes, run, by_rows=True)
    run = Step(None, _sizes(WINDOWS, itemsize, height, lined_up(c)), tiles, patches, seconds)
    return Steps(product, None, 0, run, by_rows=True)


def suits_library(c: Geometry) -> bool:
    """Whether oneDNN is quicker than the direct kernel.

    It is where channels are so few that windows had to be copied, and by a twentieth for large
    images with windows, which it cuts into as many parts as it may. It is slower, up to twice, for
    products (windows of one tap) and for small images.
    """
    if c.channels // c.groups < FEW_CHANNELS:
        return True
    image = c._replace(batch=1)  # an image has the same bits in a batch of any size
    rows = max(image.result[:-1])
    return prod(c.window) > 1 and rows >= LIBRARY_ROWS and len(parts_of(image)) == MOST_PARTS


def _channels(c: Geometry, itemsize: int, stream: int) -> Steps:
    """The launch for one filter for each channel: a tile is a row of results."""
    lines = c.result[0] * c.result[1] * c.batch
    streamed = 0 < stream <= lines * c.result[2] * c.filters * itemsize
    kind = CHANNELS_STREAMED if streamed else CHANNELS
    seconds = 8 * SECONDS * lines * c.result[2] * prod(c.window) * c.filters
    run = Step(None, _sizes(kind, itemsize, 1, c), lines, 0, seconds)
    return Steps(0, None, 0, run, by_rows=True)


def _sizes(
    kind: int, itemsize: int, height: int, c: Geometry, extras: tuple[int, int] = (0, 0)
) -> tuple[int, ...]:
    """The size arguments of a launch of the unit; ``extras`` are of direct convolutions."""
    return (kind, itemsize, blas().ilp64, height, *_numbers(c), *extras, 0)


@cache
def panel_filters() -> int:
    """The filters of a panel of the direct kernel on this machine; 0 where it has no use."""
    return int(_run(entry(), (PANEL_FILTERS,), (0, 0, 0, 0, 0), np.zeros(1, np.int64))[0])


def _numbers(c: Geometry) -> tuple[int, ...]:
    """A convolution as the unit reads it."""
    shape = [c.batch, *c.size, c.channels, c.filters, *c.window, *c.result, *c.stride, *c.before]
    return (*shape, *c.dilation, c.groups)


def lined_up(c: Geometry) -> Geometry:
    """The same convolution with axes of length 1 in front, so that taps lie in lines of memory."""
    axes = zip(c.size, c.window, c.result, c.before, strict=True)
    alone = [(n, w, m, b) == (1, 1, 1, 0) for n, w, m, b in axes]
    order = sorted(range(3), key=lambda k: not alone[k])
    names = ("size", "window", "result", "stride", "before", "dilation")
    moved: dict[str, Any] = {name: tuple(getattr(c, name)[k] for k in order) for name in names}
    return c._replace(**moved)


def _tiles(c: Geometry, window_nbytes: int) -> tuple[int, int, int]:
    """Results whose windows are multiplied at a time, how many such tiles, and bytes of windows."""
    results = prod(c.result)
    height = max(1, min(results, PATCH_NBYTES // window_nbytes))
    return height, -(-results // height) * c.batch, height * window_nbytes


def filters_signals(c: Geometry) -> bool:
    """Whether these are filters of a signal, few or far enough apart to be summed in float64."""
    taps = prod(c.window)
    long = c.channels == 1 and taps == max(c.window) >= SIGNAL_TAPS
    return long and c.filters * taps <= SIGNAL_WORK * prod(c.stride)


def _signals(c: Geometry) -> Steps:
    """The launches for the filters of a signal: products of windows in float64."""
    library = blas()
    taps = prod(c.window)
    nbytes = 8 * taps * c.filters
    height, tiles, patches = _tiles(c, 8 * taps)
    widen = Step(None, _sizes(WIDEN, 4, 1, lined_up(c)), 1, 0, nbytes / COPY)
    seconds = 2 * SECONDS * prod(c.result) * taps * c.filters * c.batch
    scratch = patches + 8 * height * c.filters
    run = Step(None, _sizes(SIGNALS, 4, height, lined_up(c)), tiles, scratch, seconds)
    return Steps(library.dgemm, widen, nbytes, run)


def _direct(c: Geometry, panel: int) -> Steps:
    """The launches of a direct convolution by register tiles."""
    work = cut(c, panel)
    products = prod(c.result) * prod(c.window) * (c.channels // c.groups) * c.filters * c.batch
    extras = work.tile_panels, work.depth
    pack = Step(
        None,
        _sizes(PACK, 4, 1, c),
        work.panels,
        0,
        2 * work.packed_nbytes / COPY,
    )
    run = Step(
        None,
        _sizes(DIRECT, 4, work.range_results, c, extras),
        work.tiles,
        work.scratch_nbytes,
        SECONDS * products,
    )
    return Steps(0, pack, work.packed_nbytes, run, work.tile_panels == work.panels)


def few(c: Geometry, itemsize: int) -> tuple[int, float] | None:
    """Scratch bytes and seconds of a convolution whose filters are lanes; None where it is slower.

    An image is a tile: for small ones what a library does around each weighs more than its work.
    """
    lanes = 64 // itemsize
    wide, length = -(-c.filters // lanes), prod(c.window) * c.channels
    sides = zip(c.result, c.stride, c.window, c.dilation, strict=True)
    reach = [(n - 1) * step + (taps - 1) * apart + 1 for n, step, taps, apart in sides]
    image = prod(reach) * c.channels * itemsize
    scratch = 8 * (prod(c.result) + prod(c.window)) + length * wide * 64 + image
    seconds = prod(c.result) * length * wide * TERM + image / COPY
    if c.groups > 1 or wide > WIDEST or scratch > PATCH_NBYTES or seconds > call_seconds(c):
        return None
    return scratch, seconds * c.batch


def call_seconds(c: Geometry) -> float:
    """About what oneDNN needs for an image, on one thread."""
    return CALL + SECONDS * 2 * prod(c.result) * prod(c.window) * c.channels * c.filters


def _reorder(found: Primitives, c: Geometry) -> Step:
    seconds = 2.0 * found.filter_nbytes / 20e9
    return Step(found.table, _sizes(REORDER, 4, 1, c), found.reorders, 0, seconds)


def laid_out(entry: int, step: Step, filters: Any, nbytes: int) -> Any:
    """A constant filter as a kernel wants it, as an array of bytes that begins at a cache line."""
    made = np.empty(nbytes + 63, np.uint8)
    made = made[-made.ctypes.data % 64 :][:nbytes]
    table = 0 if step.table is None else step.table.ctypes.data
    pointers = (table, 0, 0, filters.ctypes.data, made.ctypes.data)
    _run(entry, step.sizes, pointers, np.zeros(1, np.int64), step.tiles)
    return made


def _run(
    entry: int, sizes: tuple[int, ...], pointers: tuple[int, ...], result: Any, tiles: int = 1
) -> Any:
    """Call the unit's kernel on this thread; the result is its last operand."""
    kernel = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
    )(entry)
    numbers = np.array(sizes, np.int64)
    addresses = np.array((*pointers, result.ctypes.data), np.uint64)
    kernel(addresses.ctypes.data, numbers.ctypes.data, 0, tiles, None)
    return result
