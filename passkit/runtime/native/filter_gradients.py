"""Gradients of convolution filters on the CPU: by oneDNN, or by im2col and BLAS.

The work is divided by the shape only: by images, or by lines of each image where there are few.
Each part computes an array of the filter's shape, and these are added in the order of the parts, so
that the bits of a result do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_int, c_void_p
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from passkit.runtime.native.blas import blas
from passkit.runtime.native.convolution import (
    PATCH_NBYTES,
    SECONDS,
    ConvolutionLaunch,
    geometry_numbers,
)
from passkit.runtime.native.convolution_unit import SUM_BLOCK, UnitTask
from passkit.runtime.native.onednn import (
    DIRECT_ALGORITHM,
    SCRATCHPAD_QUERY,
    Geometry,
    OneDnn,
    OneDnnError,
    PrimitiveBuilder,
    load_library,
    split_axis,
)

# Enumerators of dnnl_types.h.
FORWARD_TRAINING = 64
DIFF_WEIGHTS_QUERY = 132

MIN_PART_FLOP = 1.5e6
"""The least work of a part, in floating-point operations: some 20 microseconds."""
MIN_LINES_FLOP = 20e6
"""The least work of a part of an image, whose borders cost more."""
MAX_PARTS = 8
"""The most parts."""


class GradientPart(NamedTuple):
    """A range of lines of results of a range of images.

    Attributes:
        image: the first image.
        images: the number of images.
        first: the first line of results.
        last: one past the last line.
    """

    image: int
    images: int
    first: int
    last: int


class FilterGradientLaunches(NamedTuple):
    """The launches of a filter gradient.

    Attributes:
        product: the address of BLAS's sgemm, 0 if there is none.
        table: an int64 array of library functions and parts.
        nbytes: the size of the partial gradients; 0 if there is one part, which is the result.
        launches: the parts, then their sum where there are several.
    """

    product: int
    table: Any
    nbytes: int
    launches: tuple[ConvolutionLaunch, ...]


def filter_gradient_launches(c: Geometry) -> FilterGradientLaunches:
    """Return the launches for the gradient of the filters of a float32 convolution of one group.

    The table and the parts come from `parts_of` and, where oneDNN has fast primitives, from it;
    they are remembered for each shape. Raises: CompilerError, CacheError or SettingError where the
    launcher, which loads BLAS, cannot be compiled or loaded.
    """
    library, parts = blas(), parts_of(c)
    table, scratch = _table(c)
    length, count = prod(c.window) * c.channels, prod(c.window) * c.channels * c.filters
    line_nbytes = max(1, c.result[2] * length * 4)
    height = max(1, min(c.result[0] * c.result[1], PATCH_NBYTES // line_nbytes))
    numbers = geometry_numbers(c)
    gradient = ConvolutionLaunch(
        table=table,
        sizes=(int(UnitTask.FILTER_GRADIENT), 4, library.ilp64, height, *numbers),
        tiles=len(parts),
        scratch=max(scratch, line_nbytes * height),
        seconds=SECONDS * count * prod(c.result) * c.batch,
    )
    if len(parts) == 1:
        return FilterGradientLaunches(library.sgemm, table, 0, (gradient,))
    total = ConvolutionLaunch(
        table=table,
        sizes=(int(UnitTask.SUM_GRADIENT_PARTS), 4, library.ilp64, len(parts), *numbers),
        tiles=-(-count // SUM_BLOCK),
        scratch=0,
        seconds=count * (len(parts) + 1) * 1e-10,
    )
    nbytes = 4 * count * len(parts)
    return FilterGradientLaunches(library.sgemm, table, nbytes, (gradient, total))


def parts_of(c: Geometry) -> list[GradientPart]:
    """Divide the work into at most `MAX_PARTS` parts, by the shape only.

    Parts are ranges of images, or ranges of lines of single images where images are few.
    """
    length = c.result[split_axis(c)]
    image_flop = 2.0 * prod(c.window) * c.channels * c.filters * prod(c.result)
    most = _power_of_two(min(MAX_PARTS, image_flop * c.batch / MIN_PART_FLOP))
    ranges = _power_of_two(min(image_flop / MIN_LINES_FLOP, most / max(1, c.batch), length))
    chunks = c.batch if ranges > 1 else max(1, min(c.batch, most))
    line_bounds = [length * k // ranges for k in range(ranges + 1)]
    image_bounds = [c.batch * k // chunks for k in range(chunks + 1)]
    return [
        GradientPart(a, b - a, first, last)
        for a, b in pairwise(image_bounds)
        for first, last in pairwise(line_bounds)
    ]


def _power_of_two(most: float) -> int:
    """Return the greatest power of two up to ``most``, at least 1, so that threads share evenly."""
    power = 1
    while power * 2 <= most:
        power *= 2
    return power


@lru_cache(maxsize=512)
def _table(c: Geometry) -> tuple[Any, int]:
    """Return the table that ``convolution/filter_gradient.h`` reads, and oneDNN's scratch bytes.

    The table is an int64 array of functions and parts, with primitives where oneDNN has fast ones,
    else zeros. The scratch bytes are those of a thread, a filter in oneDNN's layout included.
    """
    parts = parts_of(c)
    without_library = [[0] * 9] * len(parts), [0] * 8 + [len(parts)], 0
    records, head, filter_nbytes = _library_records(c, parts) or without_library
    line_results = prod(c.result[split_axis(c) + 1 : -1])
    rows = [
        [
            *record,
            part.image,
            part.images,
            part.first * line_results,
            (part.last - part.first) * line_results,
        ]
        for record, part in zip(records, parts, strict=True)
    ]
    scratch = max((record[8] for record in records), default=0)
    table = np.array([*head, *(n for row in rows for n in row)], np.int64)
    return table, scratch + filter_nbytes


def _library_records(
    c: Geometry, parts: Sequence[GradientPart]
) -> tuple[list[list[int]], list[int], int] | None:
    """Return a record of each part, the head of the table, and the bytes of a filter.

    The bytes are those of a filter in the library's layout. Returns None where oneDNN is not
    installed or has no fast primitive for the shape, or a part reads padding only.
    """
    library = load_library()
    if library is None or min(c.batch, *c.result, c.channels, c.filters, *c.window) < 1:
        return None
    try:
        with library.single_threaded():
            builder = FilterGradientBuilder(library, c)
            if any(a >= b for a, b in (builder.source_range(p.first, p.last) for p in parts)):
                return None
            records = [builder.record(part) for part in parts]
        head = _table_head(library, builder.plain_filter(), len(parts))
    except OneDnnError:
        return None
    return records, head, builder.filter_nbytes


def _table_head(library: OneDnn, plain_filter: c_void_p, parts: int) -> list[int]:
    """Return the first nine numbers of the table that C reads.

    They are five functions of the library, its engine and stream, the memory descriptor
    ``plain_filter`` of a filter in passkit's layout, and the number of parts.
    """
    functions = (
        "dnnl_memory_create",
        "dnnl_memory_destroy",
        "dnnl_primitive_execute",
        "omp_get_max_threads",
        "omp_set_num_threads",
    )
    handles = (library.engine, library.stream, plain_filter)
    return [*map(library.address, functions), *(h.value or 0 for h in handles), parts]


class FilterGradientBuilder(PrimitiveBuilder):
    """Creates primitives for the gradient of a filter.

    Attributes:
        filter_nbytes: the most bytes of a filter in the library's layout, over all parts so far.
    """

    filter_nbytes = 0

    def record(self, part: GradientPart) -> list[int]:
        """Return the nine numbers of a part's record, and create its primitives.

        They are six handles (primitive, memory descriptors of images, results, filter and scratch,
        and the conversion of the filter), two offsets in elements, and the scratch bytes.

        Raises:
            OneDnnError: The library has no fast primitive for the shape.
        """
        c, library = self.c, self.library
        start, stop = self.source_range(part.first, part.last)
        arrays = self.part_descriptors(part.first, part.last, start, stop, part.images)
        filters = library.memory_descriptor(self.filter_dims())
        forward, description = c_void_p(), c_void_p()
        library(
            "dnnl_convolution_forward_primitive_desc_create",
            byref(forward),
            library.engine,
            c_int(FORWARD_TRAINING),
            c_int(DIRECT_ALGORITHM),
            arrays.source,
            filters,
            None,
            arrays.target,
            *arrays.geometry,
            None,
        )
        library(
            "dnnl_convolution_backward_weights_primitive_desc_create",
            byref(description),
            library.engine,
            c_int(DIRECT_ALGORITHM),
            arrays.source,
            filters,
            None,
            arrays.target,
            *arrays.geometry,
            forward,
            self.attributes(),
        )
        primitive = self.primitive(description)
        gradient = library.queried_memory(description, DIFF_WEIGHTS_QUERY)
        scratch = library.queried_memory(description, SCRATCHPAD_QUERY)
        scratch_nbytes = -(-library.nbytes(scratch) // 64) * 64
        self.filter_nbytes = max(self.filter_nbytes, library.nbytes(gradient))
        reorder = self.reorder(gradient, self.plain_filter())
        handles = (primitive, arrays.source, arrays.target, gradient, scratch, reorder)
        image_elements = (prod(c.size) * c.channels, prod(c.result) * c.filters)
        offsets = [
            part.image * elements + offset
            for elements, offset in zip(image_elements, arrays.offsets, strict=True)
        ]
        return [*(int(h.value or 0) for h in handles), *offsets, scratch_nbytes]
