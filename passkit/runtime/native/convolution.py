"""Convolutions on the CPU: which kernel computes a shape, and the launches that run it.

Images are channels last everywhere, so that no layout changes between layers.
`convolution_launches` selects one of these by the shape:

- depthwise kernels, for one filter per channel
- a kernel for small images with few filters
- the direct kernel by register tiles, see `register_tiles`
- oneDNN, where it is installed and faster
- im2col: windows are copied and multiplied by BLAS

A long window along one axis of one channel is a signal filter. Such filters cancel most of their
terms: those of a stop band, or of frequencies other than their own. The error of a float32 sum is
proportional to its partial sums, which are orders of magnitude larger than the result, and a
spectrogram takes the logarithm of it. These sums are therefore in float64 and rounded once.

`convolution_unit` has the kernels, in units that are compiled when a program first needs them.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from passkit.runtime.native.blas import blas
from passkit.runtime.native.convolution_unit import (
    ConvolutionUnit,
    UnitTask,
    entry,
    run_unit,
)
from passkit.runtime.native.onednn import (
    MAX_PARTS,
    ConvolutionPrimitives,
    Geometry,
    convolution_primitives,
    load_library,
    parts_of,
)
from passkit.runtime.native.register_tiles import FEW_CHANNELS, register_tiling

if TYPE_CHECKING:
    from passkit.ast.folds import Convolution

MIN_SIGNAL_TAPS = 64
"""Taps of a window along one axis of one channel from which on it is a signal filter."""
MAX_SIGNAL_PRODUCTS = 1 << 13
"""The most multiplications per sample of a signal that are done in float64, at half the speed."""
PATCH_NBYTES = 1 << 18
"""The most bytes of windows that an im2col tile copies at a time: they stay in a core's cache."""

SECONDS = 5e-12
"""Estimated time of one multiplication and addition on one thread."""

ONEDNN_MIN_ROWS = 14
"""Rows of results from which on oneDNN is faster where windows have several taps."""

MAX_FILTER_VECTORS = 4
"""The most vectors of filters of the kernel for small images."""
ONEDNN_CALL_SECONDS = 2.6e-6
"""Overhead of a oneDNN call."""
VECTOR_FMA_SECONDS = 3.8e-10
"""Time of a vector multiplication and addition of the kernel for small images."""
COPY_RATE = 2e10
"""Bytes copied per second."""


class ConvolutionLaunch(NamedTuple):
    """One launch of a unit.

    Attributes:
        table: an int64 array of library functions and primitives, None if not needed.
        sizes: the size arguments.
        tiles: the number of tiles.
        scratch: scratch memory per thread in bytes.
        seconds: the estimated time on one thread.
    """

    table: Any
    sizes: tuple[int, ...]
    tiles: int
    scratch: int
    seconds: float

    @property
    def unit(self) -> ConvolutionUnit:
        """The unit whose function is launched."""
        return UnitTask(self.sizes[0]).unit


class ConvolutionLaunches(NamedTuple):
    """The launches of a convolution.

    Attributes:
        product: the address of the BLAS function for matrix products, 0 if there is none.
        pack: the launch that converts the filter to the layout of ``run``, None if not needed.
        packed_nbytes: the size of the converted filter.
        run: the convolution.
        by_rows: whether tiles store all filters of a result, so that epilogues can run on them.
    """

    product: int
    pack: ConvolutionLaunch | None
    packed_nbytes: int
    run: ConvolutionLaunch
    by_rows: bool = False


def convolution_launches(c: Geometry, itemsize: int, stream: int = 0) -> ConvolutionLaunches | None:
    """Select the kernel for a convolution.

    Args:
        c: the shape.
        itemsize: 4 for float32, 8 for float64.
        stream: a result of at least this many bytes is written past the caches (non-temporal
            stores), where the kernel supports it; 0 for never.

    Returns:
        The launches; None where the result has no elements.

    Raises:
        CompilerError: The unit that calls libraries, which is asked for its vector registers,
            cannot be compiled.
        CacheError: Others can write to the cache folder.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    if min(c.batch, *c.result, c.filters) < 1:
        return None
    library = blas()
    product = library.sgemm if itemsize == 4 else library.dgemm
    length = prod(c.window) * (c.channels // c.groups)
    if length == 0:  # empty sums, which libraries reject
        sizes = _sizes(UnitTask.ZERO_RESULT, itemsize, 1, c)
        return ConvolutionLaunches(
            product, None, 0, ConvolutionLaunch(None, sizes, c.batch, 0, 0.0)
        )
    if itemsize == 4 and is_signal_filter(c):
        return _signal_filters(c)
    if c.groups == c.channels == c.filters:  # one filter per channel is no matrix product
        return _depthwise(c, itemsize, stream)
    cost = small_images_cost(c, itemsize)
    if cost is not None:
        sizes = _sizes(UnitTask.SMALL_IMAGES, itemsize, 1, c)
        run = ConvolutionLaunch(None, sizes, c.batch, *cost)
        return ConvolutionLaunches(product, None, 0, run, by_rows=True)
    panel = panel_width() if itemsize == 4 else 0
    primitives = None
    if itemsize == 4 and (not panel or prefers_onednn(c)):
        primitives = convolution_primitives(c)
    if panel and primitives is None:
        return _direct(c, panel)
    seconds = SECONDS * prod(c.result) * length * c.filters * c.batch
    height, tiles, patch_nbytes = _im2col_tiles(c, length * itemsize)
    if primitives is not None:
        run = ConvolutionLaunch(
            table=primitives.table,
            sizes=_sizes(UnitTask.ONEDNN, itemsize, height, c),
            tiles=primitives.parts * c.batch,
            scratch=max(primitives.scratch_nbytes, patch_nbytes),
            seconds=seconds,
        )
        pack = _reorder_filter(primitives, c)
        return ConvolutionLaunches(product, pack, primitives.filter_nbytes, run, by_rows=True)
    sizes = _sizes(UnitTask.IM2COL, itemsize, height, unit_axes_first(c))
    run = ConvolutionLaunch(None, sizes, tiles, patch_nbytes, seconds)
    return ConvolutionLaunches(product, None, 0, run, by_rows=True)


def possible_units(c: Convolution, itemsize: int, has_onednn: bool = True) -> set[ConvolutionUnit]:
    """Return the units of which `convolution_launches` can select a kernel.

    Args:
        c: the convolution, whose batch, size and result may be symbolic.
        itemsize: 4 for float32, 8 for float64.
        has_onednn: whether oneDNN may be used, where it is installed.

    Returns:
        One unit beside `ConvolutionUnit.LIBRARIES`, more where the choice depends on symbolic
        sizes. It assumes that oneDNN, where it is installed, has primitives for the shape.
    """
    units = {ConvolutionUnit.LIBRARIES}
    if c.groups == c.channels == c.filters:
        return units | {ConvolutionUnit.DEPTHWISE}
    extents = (*c.size, *c.result)
    if not all(isinstance(n, int) for n in extents):
        units.add(ConvolutionUnit.DIRECT)
        if may_be_small_images(c, itemsize):
            units.add(ConvolutionUnit.SMALL_IMAGES)
        return units
    fields: tuple[Any, ...] = c
    image = Geometry(*fields)._replace(batch=1)
    if small_images_cost(image, itemsize) is not None:
        units.add(ConvolutionUnit.SMALL_IMAGES)
    elif itemsize == 4 and not (has_onednn and load_library() and prefers_onednn(image)):
        units.add(ConvolutionUnit.DIRECT)
    return units


def prefers_onednn(c: Geometry) -> bool:
    """Return whether oneDNN is faster than the direct kernel for a float32 convolution.

    It is where channels are so few that windows would have to be copied, and by a twentieth for
    large images with windows, which it divides into the largest number of parts. It is slower, by
    up to a factor of two, for windows of one tap and for small images.
    """
    if c.channels // c.groups < FEW_CHANNELS:
        return True
    image = c._replace(batch=1)  # an image has the same bits in a batch of any size
    rows = max(image.result[:-1])
    return prod(c.window) > 1 and rows >= ONEDNN_MIN_ROWS and len(parts_of(image)) == MAX_PARTS


def _depthwise(c: Geometry, itemsize: int, stream: int) -> ConvolutionLaunches:
    """Return the launch for one filter per channel: a tile is a row of results.

    Args:
        c: the convolution.
        itemsize: the bytes of an element.
        stream: results of at least this many bytes are written past the caches; 0 for never.
    """
    rows = c.result[0] * c.result[1] * c.batch
    streamed = 0 < stream <= rows * c.result[2] * c.filters * itemsize
    task = UnitTask.DEPTHWISE_STREAMED if streamed else UnitTask.DEPTHWISE
    seconds = 8 * SECONDS * rows * c.result[2] * prod(c.window) * c.filters
    run = ConvolutionLaunch(None, _sizes(task, itemsize, 1, c), rows, 0, seconds)
    return ConvolutionLaunches(0, None, 0, run, by_rows=True)


def _sizes(
    task: UnitTask, itemsize: int, height: int, c: Geometry, tiling: tuple[int, int] = (0, 0)
) -> tuple[int, ...]:
    """Return the size arguments of a launch, with no epilogue; shape.h describes them.

    Args:
        task: the task of the launch.
        itemsize: the bytes of an element.
        height: the number of results of a tile.
        c: the convolution.
        tiling: the panels of a tile and the terms of a block, for direct convolutions.
    """
    return (int(task), itemsize, blas().ilp64, height, *geometry_numbers(c), *tiling, 0)


@cache
def panel_width() -> int:
    """Return the number of filters of a panel of the direct kernel, by asking a compiled unit.

    It is 0 where the CPU has too few vector registers. The answer is remembered.

    Raises: CompilerError where that unit cannot be compiled, CacheError where others can write to
    the cache folder, SettingError where PASSKIT_THREADS is no number of threads.
    """
    sizes = (int(UnitTask.QUERY_PANEL_WIDTH),)
    function = entry(ConvolutionUnit.LIBRARIES)
    return int(run_unit(function, sizes, (0, 0, 0, 0, 0), np.zeros(1, np.int64))[0])


def geometry_numbers(c: Geometry) -> tuple[int, ...]:
    """Return the numbers of a convolution in the order of the fields of ``Shape`` in shape.h.

    They are batch, size, channels, filters, window, result, stride, before, dilation and groups.
    """
    shape = (c.batch, *c.size, c.channels, c.filters, *c.window, *c.result, *c.stride, *c.before)
    return (*shape, *c.dilation, c.groups)


def unit_axes_first(c: Geometry) -> Geometry:
    """Return the same convolution with axes first whose size, window and result are 1, unpadded.

    The taps of a window are then contiguous in memory.
    """
    axes = zip(c.size, c.window, c.result, c.before, strict=True)
    is_unit = [(n, w, m, b) == (1, 1, 1, 0) for n, w, m, b in axes]
    order = sorted(range(3), key=lambda k: not is_unit[k])
    names = ("size", "window", "result", "stride", "before", "dilation")
    moved: dict[str, Any] = {name: tuple(getattr(c, name)[k] for k in order) for name in names}
    return c._replace(**moved)


def _im2col_tiles(c: Geometry, window_nbytes: int) -> tuple[int, int, int]:
    """Return the results of a tile, the number of tiles, and the bytes of a tile's windows.

    ``c`` is the convolution, ``window_nbytes`` the size of one window of the input. A tile has at
    least one result; its windows have at most `PATCH_NBYTES` otherwise.
    """
    results = prod(c.result)
    height = max(1, min(results, PATCH_NBYTES // window_nbytes))
    return height, -(-results // height) * c.batch, height * window_nbytes


def is_signal_filter(c: Geometry) -> bool:
    """Return whether a convolution is a signal filter that is cheap enough for float64 sums.

    A signal filter has one channel, and at least `MIN_SIGNAL_TAPS` taps along one axis.
    """
    taps = prod(c.window)
    is_long = c.channels == 1 and taps == max(c.window) >= MIN_SIGNAL_TAPS
    return is_long and c.filters * taps <= MAX_SIGNAL_PRODUCTS * prod(c.stride)


def _signal_filters(c: Geometry) -> ConvolutionLaunches:
    """Return the launches for signal filters: widen the filter, then im2col in float64."""
    taps = prod(c.window)
    nbytes = 8 * taps * c.filters
    height, tiles, patch_nbytes = _im2col_tiles(c, 8 * taps)
    widen = ConvolutionLaunch(
        table=None,
        sizes=_sizes(UnitTask.WIDEN_FILTER, 4, 1, unit_axes_first(c)),
        tiles=1,
        scratch=0,
        seconds=nbytes / COPY_RATE,
    )
    run = ConvolutionLaunch(
        table=None,
        sizes=_sizes(UnitTask.SIGNAL_FILTERS, 4, height, unit_axes_first(c)),
        tiles=tiles,
        scratch=patch_nbytes + 8 * height * c.filters,
        seconds=2 * SECONDS * prod(c.result) * taps * c.filters * c.batch,
    )
    return ConvolutionLaunches(blas().dgemm, widen, nbytes, run)


def _direct(c: Geometry, panel: int) -> ConvolutionLaunches:
    """Return the launches of a direct convolution by register tiles of ``panel`` filters."""
    tiling = register_tiling(c, panel)
    products = prod(c.result) * prod(c.window) * (c.channels // c.groups) * c.filters * c.batch
    pack = ConvolutionLaunch(
        table=None,
        sizes=_sizes(UnitTask.PACK_FILTER, 4, 1, c),
        tiles=tiling.panels,
        scratch=0,
        seconds=2 * tiling.packed_nbytes / COPY_RATE,
    )
    sizes = _sizes(UnitTask.DIRECT, 4, tiling.range_results, c, (tiling.tile_panels, tiling.depth))
    run = ConvolutionLaunch(
        table=None,
        sizes=sizes,
        tiles=tiling.tiles,
        scratch=tiling.scratch_nbytes,
        seconds=SECONDS * products,
    )
    by_rows = tiling.tile_panels == tiling.panels
    return ConvolutionLaunches(0, pack, tiling.packed_nbytes, run, by_rows)


def small_images_cost(c: Geometry, itemsize: int) -> tuple[int, float] | None:
    """Return the cost of the kernel for small images; None where another one is faster.

    ``itemsize`` is the bytes of an element. The cost is the scratch bytes of a thread, and the
    estimated seconds of all images on one thread. The kernel vectorizes over filters, and its tile
    is an image. For small images the overhead of a library call exceeds the time to compute. None
    also for several groups, and where filters or scratch exceed the limits of the kernel.
    """
    if not may_be_small_images(c, itemsize):
        return None
    vectors = _filter_vectors(c, itemsize)
    length = prod(c.window) * c.channels
    sides = zip(c.result, c.stride, c.window, c.dilation, strict=True)
    reach = [(n - 1) * step + (taps - 1) * apart + 1 for n, step, taps, apart in sides]
    image_nbytes = prod(reach) * c.channels * itemsize
    offsets_nbytes = 8 * (prod(c.result) + prod(c.window))
    scratch = offsets_nbytes + length * vectors * 64 + image_nbytes
    seconds = prod(c.result) * length * vectors * VECTOR_FMA_SECONDS + image_nbytes / COPY_RATE
    if scratch > PATCH_NBYTES:
        return None
    return None if seconds > onednn_seconds(c) else (scratch, seconds * c.batch)


def may_be_small_images(c: Convolution | Geometry, itemsize: int) -> bool:
    """Return whether the kernel for small images has so few filters, of ``itemsize`` bytes each."""
    return c.groups == 1 and _filter_vectors(c, itemsize) <= MAX_FILTER_VECTORS


def _filter_vectors(c: Convolution | Geometry, itemsize: int) -> int:
    """Return the vectors of 64 bytes that hold an element of ``itemsize`` bytes of each filter."""
    return -(-c.filters // (64 // itemsize))


def onednn_seconds(c: Geometry) -> float:
    """Return an estimate of oneDNN's seconds for one image on one thread, as if of one group."""
    products = prod(c.result) * prod(c.window) * c.channels * c.filters
    return ONEDNN_CALL_SECONDS + SECONDS * 2 * products


def _reorder_filter(primitives: ConvolutionPrimitives, c: Geometry) -> ConvolutionLaunch:
    """Return the launch that converts a filter to the layout of oneDNN's ``primitives``."""
    return ConvolutionLaunch(
        table=primitives.table,
        sizes=_sizes(UnitTask.REORDER_FILTER, 4, 1, c),
        tiles=primitives.reorders,
        scratch=0,
        seconds=2.0 * primitives.filter_nbytes / COPY_RATE,
    )


def packed_filter(entry: int, pack: ConvolutionLaunch, filters: Any, nbytes: int) -> Any:
    """Convert a constant filter to the layout of a kernel, on the calling thread.

    Args:
        entry: the address of the function of the launch's unit.
        pack: the launch that converts the filter.
        filters: the filter as an array.
        nbytes: the size of the result.

    Returns:
        An array of bytes that begins at a cache line.
    """
    packed = np.empty(nbytes + 63, np.uint8)
    packed = packed[-packed.ctypes.data % 64 :][:nbytes]
    table = 0 if pack.table is None else pack.table.ctypes.data
    pointers = (table, 0, 0, filters.ctypes.data, packed.ctypes.data)
    run_unit(entry, pack.sizes, pointers, np.zeros(1, np.int64), pack.tiles)
    return packed
