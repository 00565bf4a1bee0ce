"""Convolutions of a program: small ones directly, others by oneDNN or by windows in BLAS.

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
from passkit.runtime.native.onednn import Geometry, Primitives, primitives

SYMBOL = "convolve"
FLAGS = ("-fwrapv", "-ffp-contract=fast")
"""Sums of products take fma, as everywhere."""

FILES = ("shape", "windows", "channels", "few", "library", "filters", "run")
REORDER, LIBRARY, WINDOWS, CHANNELS, FEW, CHANNELS_STREAMED = range(6)
WINDOW_PRODUCTS, SUM_OF_PARTS, ZEROS = 6, 7, 8
WIDEN, SIGNALS = 9, 10
SIGNAL_TAPS, SIGNAL_WORK = 64, 1 << 13
"""Taps of a window along one axis of one channel from which on it filters a signal, and the most
multiplications for each sample of it that are done in float64, which takes twice the time."""
PATCH_NBYTES = 1 << 18
"""The windows that a tile multiplies at a time stay in a core's cache."""

SECONDS = 5e-12
"""Of one multiplication and addition on one thread."""

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
    """The launches of a convolution; ``layout`` lays the filter out, in ``nbytes``, if need be."""

    product: int
    layout: Step | None
    nbytes: int
    run: Step


def steps(c: Geometry, itemsize: int, stream: int = 0) -> Steps | None:
    """What runs a convolution of this shape; None where its result is empty.

    A result of ``stream`` bytes or more had better go past the caches, unless that is 0.
    """
    if min(c.batch, *c.result, c.filters) < 1:
        return None
    library = blas()
    product = library.sgemm if itemsize == 4 else library.dgemm
    head = (itemsize, library.ilp64)
    numbers = _numbers(c)
    length = prod(c.window) * (c.channels // c.groups)
    if length == 0:  # sums of nothing, which libraries do not take
        return Steps(product, None, 0, Step(None, (ZEROS, *head, 1, *numbers), c.batch, 0, 0.0))
    each = c.groups == c.channels == c.filters  # a filter for each channel: no product of matrices
    if itemsize == 4 and filters_signals(c):
        return _signals(c)
    direct = None if each else few(c, itemsize)
    found = primitives(c) if itemsize == 4 and not each and direct is None else None
    seconds = SECONDS * prod(c.result) * length * c.filters * c.batch
    height, tiles, patches = _tiles(c, length * itemsize)
    if direct is not None:
        run = Step(None, (FEW, *head, 1, *numbers), c.batch, *direct)
        return Steps(product, None, 0, run)
    if found is not None:
        reorder = _reorder(found, head, numbers)
        scratch = max(found.scratch_nbytes, patches)
        sizes = (LIBRARY, *head, height, *numbers)
        run = Step(found.table, sizes, found.parts * c.batch, scratch, seconds)
        return Steps(product, reorder, found.filter_nbytes, run)
    lines = c.result[0] * c.result[1]
    if each:
        streamed = 0 < stream <= lines * c.result[2] * c.filters * c.batch * itemsize
        kind = CHANNELS_STREAMED if streamed else CHANNELS
        run = Step(None, (kind, *head, 1, *numbers), lines * c.batch, 0, 8 * seconds)
        return Steps(product, None, 0, run)
    sizes = (WINDOWS, *head, height, *_numbers(lined_up(c)))
    return Steps(product, None, 0, Step(None, sizes, tiles, patches, seconds))


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
    library, numbers = blas(), _numbers(lined_up(c))
    taps = prod(c.window)
    nbytes = 8 * taps * c.filters
    height, tiles, patches = _tiles(c, 8 * taps)
    head = (4, library.ilp64)
    widen = Step(None, (WIDEN, *head, 1, *numbers), 1, 0, nbytes / COPY)
    seconds = 2 * SECONDS * prod(c.result) * taps * c.filters * c.batch
    scratch = patches + 8 * height * c.filters
    run = Step(None, (SIGNALS, *head, height, *numbers), tiles, scratch, seconds)
    return Steps(library.dgemm, widen, nbytes, run)


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


def _reorder(found: Primitives, head: tuple[int, ...], numbers: tuple[int, ...]) -> Step:
    seconds = 2.0 * found.filter_nbytes / 20e9
    return Step(found.table, (REORDER, *head, 1, *numbers), found.reorders, 0, seconds)


def laid_out(entry: int, step: Step, filters: Any, nbytes: int) -> Any:
    """A constant filter as the library wants it, as an array of bytes."""
    made = np.empty(nbytes + 63, np.uint8)
    made = made[-made.ctypes.data % 64 :][:nbytes]
    table = 0 if step.table is None else step.table.ctypes.data
    pointers = (table, 0, 0, filters.ctypes.data, made.ctypes.data, 0)
    kernel = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
    )(entry)
    sizes = np.array(step.sizes, np.int64)
    addresses = np.array(pointers, np.uint64)
    kernel(addresses.ctypes.data, sizes.ctypes.data, 0, step.tiles, None)
    return made
