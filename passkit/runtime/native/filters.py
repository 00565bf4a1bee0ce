"""Gradients of filters, which are products of windows: by oneDNN, or by windows in BLAS.

The work is cut into parts, by the shape alone: images, or lines of each where there are few. Each
part makes an array of the filter's shape, and these are added up in the order of the parts, so that
the bits of a result do not depend on the number of threads.
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
    SUM_OF_PARTS,
    WINDOW_PRODUCTS,
    Step,
)
from passkit.runtime.native.onednn import (
    DIRECT,
    SCRATCH,
    FailedError,
    Geometry,
    Library,
    Making,
    library,
)

TRAINING, PRODUCTS = 64, 132
"""A kind of forward pass, and what to ask of a description."""
PART_FLOP, MOST_PARTS = 1.5e6, 8
"""The work of a part, at least: some 20 microseconds; and how many there are, at most."""
LINES_FLOP = 20e6
"""The same for a part of an image: its ends weigh more."""
BLOCK = 2048
"""The elements that a tile of the sum of parts has."""


class Part(NamedTuple):
    """Some lines of results of some images."""

    image: int
    images: int
    first: int
    last: int


class Steps(NamedTuple):
    """The launches; parts are made in ``nbytes``, or where the result lies if that is 0."""

    product: int
    table: Any
    nbytes: int
    steps: tuple[Step, ...]


def steps(c: Geometry) -> Steps:
    """What runs products of windows of this shape, in float32."""
    found, parts = blas(), parts_of(c)
    table, scratch = _table(c)
    shape = [c.batch, *c.size, c.channels, c.filters, *c.window, *c.result, *c.stride, *c.before]
    numbers = (*shape, *c.dilation, c.groups)
    length, count = prod(c.window) * c.channels, prod(c.window) * c.channels * c.filters
    row = max(1, c.result[2] * length * 4)
    height = max(1, min(c.result[0] * c.result[1], PATCH_NBYTES // row))
    seconds = SECONDS * count * prod(c.result) * c.batch
    sizes = (WINDOW_PRODUCTS, 4, found.ilp64, height, *numbers)
    first = Step(table, sizes, len(parts), max(scratch, row * height), seconds)
    if len(parts) == 1:
        return Steps(found.sgemm, table, 0, (first,))
    sizes = (SUM_OF_PARTS, 4, found.ilp64, len(parts), *numbers)
    second = Step(table, sizes, -(-count // BLOCK), 0, count * (len(parts) + 1) * 1e-10)
    return Steps(found.sgemm, table, 4 * count * len(parts), (first, second))


def parts_of(c: Geometry) -> list[Part]:
    """Parts of the work, by nothing but the shape: images, or of few images lines."""
    axis = _axis(c)
    length = c.result[axis]
    image = 2.0 * prod(c.window) * c.channels * c.filters * prod(c.result)
    wanted = _power_of_two(min(MOST_PARTS, image * c.batch / PART_FLOP))
    cuts = _power_of_two(min(image / LINES_FLOP, wanted / max(1, c.batch), length))
    chunks = c.batch if cuts > 1 else max(1, min(c.batch, wanted))
    ends = [length * k // cuts for k in range(cuts + 1)]
    images = [c.batch * k // chunks for k in range(chunks + 1)]
    return [Part(a, b - a, first, last)
            for a, b in pairwise(images)
            for first, last in pairwise(ends)]


def _power_of_two(most: float) -> int:
    """The greatest that is not above ``most``, or 1: threads share such a number out evenly."""
    found = 1
    while found * 2 <= most:
        found *= 2
    return found


def _axis(c: Geometry) -> int:
    """The axis of which lines are cut; axes before it have length 1."""
    return 0 if c.result[0] > 1 or c.size[0] > 1 or c.window[0] > 1 else 1


@lru_cache(maxsize=512)
def _table(c: Geometry) -> tuple[Any, int]:
    """What the unit reads: functions and parts, with primitives where the library has fast ones.

    And the bytes of scratch that these need.
    """
    parts = parts_of(c)
    records, head, most = _made(c, parts) or ([[0] * 9] * len(parts), [0] * 8 + [len(parts)], 0)
    lines = prod(c.result[_axis(c) + 1 : -1])
    rows = [[*own, part.image, part.images, part.first * lines, (part.last - part.first) * lines]
            for own, part in zip(records, parts, strict=True)]
    scratch = max((own[8] for own in records), default=0)
    table = np.array([*head, *(n for row in rows for n in row)], np.int64)
    return table, scratch + most


def _made(c: Geometry, parts: Sequence[Part]) -> tuple[list[list[int]], list[int], int] | None:
    """The records of parts, what is before them, and the bytes of a filter in the library's layout.

    None where there is no library, nothing fast in it, or a part that sees padding only.
    """
    found = library()
    if found is None or min(c.batch, *c.result, c.channels, c.filters, *c.window) < 1:
        return None
    try:
        with found.single():
            making = MakingProducts(found, c)
            if any(a >= b for a, b in (making.needed(p.first, p.last) for p in parts)):
                return None
            records = [making.record(part) for part in parts]
        return records, _head(found, making.plain(), len(parts)), making.most
    except FailedError:
        return None


def _head(found: Library, plain: c_void_p, parts: int) -> list[int]:
    names = ("dnnl_memory_create", "dnnl_memory_destroy", "dnnl_primitive_execute",
             "omp_get_max_threads", "omp_set_num_threads")  # fmt: skip
    kinds = (found.engine, found.stream, plain)
    return [*map(found.address, names), *(kind.value or 0 for kind in kinds), parts]


class MakingProducts(Making):
    """Primitives for the gradient of a filter, which has ``most`` bytes in the library's layout."""

    most = 0

    def record(self, part: Part) -> list[int]:
        """The record of a part. Raises: FailedError where the library has nothing fast for it."""
        c, lib = self.c, self.lib
        start, stop = self.needed(part.first, part.last)
        at = self.placed(part.first, part.last, start, stop, part.images)
        forward, description, filters = c_void_p(), c_void_p(), lib.kind(self.filter_dims())
        lib(
            "dnnl_convolution_forward_primitive_desc_create", byref(forward), lib.engine,
            c_int(TRAINING), c_int(DIRECT), at.source, filters, None, at.target, *at.geometry, None,
        )  # fmt: skip
        lib(
            "dnnl_convolution_backward_weights_primitive_desc_create", byref(description),
            lib.engine, c_int(DIRECT), at.source, filters, None, at.target, *at.geometry, forward,
            self.attributes(),
        )  # fmt: skip
        primitive = self.primitive(description)
        own, scratch = lib.queried(description, PRODUCTS), lib.queried(description, SCRATCH)
        nbytes = -(-lib.nbytes(scratch) // 64) * 64
        self.most = max(self.most, lib.nbytes(own))
        pointers = primitive, at.source, at.target, own, scratch
        reorder = self.reordering(own, self.plain())
        images = prod(c.size) * c.channels, prod(c.result) * c.filters
        offsets = [part.image * n + o for n, o in zip(images, at.offsets, strict=True)]
        return [*(int(p.value or 0) for p in (*pointers, reorder)), *offsets, nbytes]
