"""oneDNN from the wheel onednn-cpu-gomp, loaded at run time: tables of convolution primitives.

Primitives are created for one thread. passkit's own threads share the parts of a convolution, so
that there is one team of threads and the bits of a result do not depend on its size.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from attrs import field, frozen

# Enumerators of dnnl_types.h: data types, engines, streams, layouts, kinds and queries.
F32 = 3
CPU = 1
IN_ORDER = 1
FORMAT_ANY = 1
FORWARD_INFERENCE = 96
DIRECT_ALGORITHM = 1
SCRATCHPAD_USER = 1
WEIGHTS_QUERY = 131
SCRATCHPAD_QUERY = 136
IMPLEMENTATION_QUERY = 8

INSTALL_HINT = "pip install onednn-cpu-gomp"
"""The command that installs the library, on Linux on x86-64."""
MIN_PART_FLOP = 5e6
"""The least work of a part of an image, in floating-point operations: smaller parts are slow."""
MAX_PARTS = 8
"""The most parts of an image."""
DnnlDims = c_int64 * 12


class Geometry(NamedTuple):
    """A `passkit.ast.folds.Convolution` whose sizes are numbers; the fields are explained there."""

    batch: int
    size: tuple[int, ...]
    channels: int
    filters: int
    window: tuple[int, ...]
    result: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


@frozen(eq=False)
class ConvolutionPrimitives:
    """The primitives for convolutions of one shape.

    Attributes:
        table: int64 numbers that ``convolution/onednn.h`` reads: functions, parts and reorders.
        parts: the parts of an image.
        reorders: the primitives that convert a filter to the library's layout.
        filter_nbytes: the size of a filter in that layout.
        scratch_nbytes: scratch memory of a thread.
        rows: the most rows of results of a part.
    """

    table: Any = field(repr=False)
    parts: int
    reorders: int
    filter_nbytes: int
    scratch_nbytes: int
    rows: int


class PartDescriptors(NamedTuple):
    """The arrays of a part of a convolution.

    Attributes:
        source: the memory descriptor of what the part reads.
        target: the memory descriptor of its results.
        geometry: strides, dilations, padding before and padding after, as `DnnlDims`.
        offsets: where source and target begin, in elements of an image.
    """

    source: c_void_p
    target: c_void_p
    geometry: tuple[Any, ...]
    offsets: tuple[int, int]


class OneDnnError(Exception):
    """The library returned an error, or has no fast primitive."""


def require_optimized(implementation: bytes) -> None:
    """Raise OneDnnError for a reference implementation, which is correct and slow.

    ``implementation`` is the name that the library reports.
    """
    if implementation.startswith(b"ref"):
        raise OneDnnError(
            f"oneDNN has only {implementation.decode()}, a slow reference implementation"
        )


class OneDnn:
    """A loaded libdnnl, version 3, with an engine and a stream.

    Args:
        path: the shared object.

    Raises:
        OSError: The file is no shared object.
        AttributeError: The shared object is not oneDNN.
        OneDnnError: Its engine or stream cannot be created.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dll = ctypes.CDLL(str(path))
        self.engine, self.stream = c_void_p(), c_void_p()
        self("dnnl_engine_create", byref(self.engine), c_int(CPU), c_size_t(0))
        self("dnnl_stream_create", byref(self.stream), self.engine, c_int(IN_ORDER))

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call a function of the library, which returns a status, by name.

        Raises:
            OneDnnError: The function returns a status other than success.
            AttributeError: The library has no such function.
        """
        if getattr(self.dll, name)(*arguments):
            raise OneDnnError(f"oneDNN's function {name} returned an error")

    def address(self, name: str) -> int:
        """Return the address of a function of the library, or of OpenMP, which it links.

        Raises: AttributeError where there is no such function.
        """
        return ctypes.cast(getattr(self.dll, name), c_void_p).value or 0

    def memory_descriptor(
        self, dims: tuple[int, ...], strides: tuple[int, ...] | None = None
    ) -> c_void_p:
        """Create a descriptor of float32 arrays of extents ``dims``.

        ``strides`` are in elements; without them the library chooses the layout. Raises:
        OneDnnError where the library refuses it.
        """
        descriptor = c_void_p()
        rank, sizes = c_int(len(dims)), DnnlDims(*dims)
        if strides is None:
            create = "dnnl_memory_desc_create_with_tag"
            self(create, byref(descriptor), rank, sizes, c_int(F32), c_int(FORMAT_ANY))
        else:
            create = "dnnl_memory_desc_create_with_strides"
            self(create, byref(descriptor), rank, sizes, c_int(F32), DnnlDims(*strides))
        return descriptor

    def queried_memory(self, primitive_descriptor: c_void_p, query: int) -> c_void_p:
        """Return a memory descriptor that a primitive descriptor owns.

        ``query`` is a dnnl_query_t, such as `WEIGHTS_QUERY` or `SCRATCHPAD_QUERY`.
        """
        function = self.dll.dnnl_primitive_desc_query_md
        function.restype = c_void_p
        return c_void_p(function(primitive_descriptor, c_int(query), c_int(0)))

    @contextmanager
    def single_threaded(self) -> Iterator[None]:
        """Create primitives for one thread inside the block.

        oneDNN creates a primitive for OpenMP's current number of threads.
        """
        threads = self.dll.omp_get_max_threads()
        self.dll.omp_set_num_threads(c_int(1))
        try:
            yield
        finally:
            self.dll.omp_set_num_threads(c_int(threads))

    def nbytes(self, descriptor: c_void_p) -> int:
        """Return the size in bytes of an array that a memory descriptor describes."""
        self.dll.dnnl_memory_desc_get_size.restype = c_size_t
        return int(self.dll.dnnl_memory_desc_get_size(descriptor))


@lru_cache(maxsize=1)
def load_library() -> OneDnn | None:
    """Return the library of the wheel, loaded once; None if it is missing or cannot be loaded."""
    path = find_library()
    try:
        return None if path is None else OneDnn(path)
    except (OSError, AttributeError, OneDnnError):
        return None


def find_library() -> Path | None:
    """Return the path of the shared library in the wheel; None where it is not installed."""
    from importlib.metadata import PackageNotFoundError, files  # 15 ms, only for these programs

    try:
        listed = files("onednn-cpu-gomp") or []
    except PackageNotFoundError:
        return None
    for file in listed:
        if file.name.startswith("libdnnl.so.3"):
            return Path(str(file.locate())).resolve()
    return None


@lru_cache(maxsize=512)
def convolution_primitives(c: Geometry) -> ConvolutionPrimitives | None:
    """Create the primitives for the convolutions of a shape, in float32.

    Returns None where the library is not installed, the result is empty, or the library has no fast
    primitive for the shape.
    """
    library = load_library()
    if library is None or min(c.batch, *c.result, c.channels, c.filters, *c.window) < 1:
        return None
    try:
        with library.single_threaded():
            return PrimitiveBuilder(library, c).build()
    except OneDnnError:
        return None


class PrimitiveBuilder:
    """Creates primitives for a convolution ``c``, which is divided along one axis of the image."""

    def __init__(self, library: OneDnn, c: Geometry) -> None:
        self.library, self.c = library, c
        self.axis = split_axis(c)

    def build(self) -> ConvolutionPrimitives | None:
        """Create the primitives of all parts of the convolution.

        Returns:
            None where a part reads padding only, or parts need filters in different layouts.

        Raises:
            OneDnnError: The library has no fast primitive for the shape.
        """
        library, parts = self.library, parts_of(self.c)
        records: list[int] = []
        filters: c_void_p | None = None
        scratch = 0
        for first, last in parts:
            start, stop = self.source_range(first, last)
            if stop <= start:
                return None
            record, part_filters, nbytes = self._part_record(first, last, start, stop)
            if filters and not library.dll.dnnl_memory_desc_equal(filters, part_filters):
                return None
            filters, scratch = filters or part_filters, max(scratch, nbytes)
            records += record
        assert filters is not None
        functions = (
            "dnnl_memory_create",
            "dnnl_memory_destroy",
            "dnnl_primitive_execute",
            "omp_get_max_threads",
            "omp_set_num_threads",
        )
        handles = (library.engine.value, library.stream.value, filters.value)
        head = [*map(library.address, functions), *handles, len(parts)]
        table = np.array([*head, *records, *self._filter_reorder(filters)], np.int64)
        return ConvolutionPrimitives(
            table=table,
            parts=len(parts),
            reorders=1,
            filter_nbytes=library.nbytes(filters),
            scratch_nbytes=scratch,
            rows=max((b - a) for a, b in parts),
        )

    def source_range(self, first: int, last: int) -> tuple[int, int]:
        """Return the range (start, stop) of the source that results ``first`` to ``last`` read.

        Both ranges are along the split axis, without their ends. Where only padding is read, stop
        is not after start.
        """
        c, k = self.c, self.axis
        reach = (c.window[k] - 1) * c.dilation[k] + 1
        start = first * c.stride[k] - c.before[k]
        stop = (last - 1) * c.stride[k] - c.before[k] + reach
        return max(start, 0), min(stop, c.size[k])

    def _part_record(
        self, first: int, last: int, start: int, stop: int
    ) -> tuple[list[int], c_void_p, int]:
        """Create the primitive of results ``first`` to ``last``, which read ``start`` to ``stop``.

        All are positions along the split axis, the ends excluded.

        Returns: The numbers of its entry in the table, the memory descriptor of the filter's
        layout, and its scratch bytes.

        Raises: OneDnnError where the library has no fast primitive.
        """
        c, library, k = self.c, self.library, self.axis
        part = self.part_descriptors(first, last, start, stop, 1)
        description = c_void_p()
        library(
            "dnnl_convolution_forward_primitive_desc_create",
            byref(description),
            library.engine,
            c_int(FORWARD_INFERENCE),
            c_int(DIRECT_ALGORITHM),
            part.source,
            library.memory_descriptor(self.filter_dims()),
            None,
            part.target,
            *part.geometry,
            self.attributes(),
        )
        primitive = self.primitive(description)
        scratch = library.queried_memory(description, SCRATCHPAD_QUERY)
        row_results = prod(c.result[k + 1 : -1])
        handles = (primitive, part.source, part.target, scratch)
        rows = (first * row_results, (last - first) * row_results)
        record = [*(int(h.value or 0) for h in handles), *part.offsets, *rows]
        weights = library.queried_memory(description, WEIGHTS_QUERY)
        return record, weights, library.nbytes(scratch)

    def attributes(self) -> c_void_p:
        """Create attributes by which the caller provides the scratch memory.

        Raises: OneDnnError where the library refuses.
        """
        attributes = c_void_p()
        self.library("dnnl_primitive_attr_create", byref(attributes))
        mode = c_int(SCRATCHPAD_USER)
        self.library("dnnl_primitive_attr_set_scratchpad_mode", attributes, mode)
        return attributes

    def primitive(self, description: c_void_p) -> c_void_p:
        """Create the primitive that a primitive descriptor describes.

        Raises:
            OneDnnError: It is a slow reference implementation, or cannot be created.
        """
        name, primitive = c_char_p(), c_void_p()
        query = "dnnl_primitive_desc_query"
        self.library(query, description, c_int(IMPLEMENTATION_QUERY), c_int(0), byref(name))
        require_optimized(name.value or b"")
        self.library("dnnl_primitive_create", byref(primitive), description)
        return primitive

    def part_descriptors(
        self, first: int, last: int, start: int, stop: int, images: int
    ) -> PartDescriptors:
        """Return the descriptors for results ``first`` to ``last`` of ``images`` images.

        They read the source from ``start`` to ``stop``; all are positions along the split axis, the
        ends excluded. Raises: OneDnnError where the library refuses a descriptor.
        """
        c, library, k = self.c, self.library, self.axis
        size, result = list(c.size[k:]), list(c.result[k:])
        size[0], result[0] = stop - start, last - first
        reach = [(w - 1) * d + 1 for w, d in zip(c.window[k:], c.dilation[k:], strict=True)]
        before = list(c.before[k:])
        before[0] = max(0, c.before[k] - first * c.stride[k])
        after = [
            max(0, (o - 1) * s + r - p - n)
            for o, s, r, p, n in zip(result, c.stride[k:], reach, before, size, strict=True)
        ]
        source, target = (images, c.channels, *size), (images, c.filters, *result)
        source_strides, target_strides = _channels_last(source), _channels_last(target)
        if images > 1:  # a stride that shows a gap would exclude the fast primitives for one image
            source_strides = (prod(c.size[k:]) * c.channels, *source_strides[1:])
            target_strides = (prod(c.result[k:]) * c.filters, *target_strides[1:])
        return PartDescriptors(
            source=library.memory_descriptor(source, source_strides),
            target=library.memory_descriptor(target, target_strides),
            geometry=(
                DnnlDims(*c.stride[k:]),
                DnnlDims(*(d - 1 for d in c.dilation[k:])),
                DnnlDims(*before),
                DnnlDims(*after),
            ),
            offsets=(
                start * prod(c.size[k + 1 :]) * c.channels,
                first * prod(c.result[k + 1 :]) * c.filters,
            ),
        )

    def filter_dims(self) -> tuple[int, ...]:
        """Return the filter's dimensions as the library orders them: filters before channels."""
        c = self.c
        window = c.window[self.axis :]
        if c.groups == 1:
            return c.filters, c.channels, *window
        return c.groups, c.filters // c.groups, c.channels // c.groups, *window

    def plain_filter(self) -> c_void_p:
        """Return the memory descriptor of a filter in passkit's layout.

        That is an array of shape (*window, channels / groups, filters). Raises: OneDnnError where
        the library refuses it.
        """
        c = self.c
        group_channels, group_filters = c.channels // c.groups, c.filters // c.groups
        window_strides = [group_channels * c.filters]
        for n in reversed(c.window[self.axis + 1 :]):
            window_strides.insert(0, window_strides[0] * n)
        strides = (1, c.filters, *window_strides)
        if c.groups > 1:
            strides = (group_filters, *strides)
        return self.library.memory_descriptor(self.filter_dims(), strides)

    def _filter_reorder(self, layout: c_void_p) -> list[int]:
        """Create the primitive that converts a filter from passkit's layout to ``layout``.

        Returns its handle and those of both memory descriptors. Raises: OneDnnError where the
        library has no such conversion.
        """
        plain = self.plain_filter()
        return [int(p.value or 0) for p in (self.reorder(plain, layout), plain, layout)]

    def reorder(self, source: c_void_p, target: c_void_p) -> c_void_p:
        """Create the primitive that converts the layout ``source`` to ``target``.

        Both are memory descriptors. Raises: OneDnnError where the library has no such conversion.
        """
        library, description, primitive = self.library, c_void_p(), c_void_p()
        library(
            "dnnl_reorder_primitive_desc_create",
            byref(description),
            source,
            library.engine,
            target,
            library.engine,
            None,
        )
        library("dnnl_primitive_create", byref(primitive), description)
        return primitive


def _channels_last(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of dense (batch, channels, *spatial) arrays with channels innermost."""
    strides = [dims[1]]
    for n in reversed(dims[3:]):
        strides.insert(0, strides[0] * n)
    return strides[0] * dims[2], 1, *strides


def split_axis(c: Geometry) -> int:
    """Return the axis along which images are divided, 0 or 1.

    It is 1 where images, results and the window all have length 1 along the first axis, which is
    then left out of the descriptors.
    """
    return 0 if c.result[0] > 1 or c.size[0] > 1 or c.window[0] > 1 else 1


def parts_of(c: Geometry) -> list[tuple[int, int]]:
    """Divide the results of an image along the split axis, by the shape only.

    There are at most `MAX_PARTS` parts, a power of two, fewer in a larger batch.

    Returns:
        The first result and one past the last result of each part.
    """
    terms = prod(c.window) * c.channels // c.groups
    image_flop = 2.0 * terms * c.filters * prod(c.result)
    length = c.result[split_axis(c)]
    most = min(image_flop / MIN_PART_FLOP, MAX_PARTS, max(1, 16 // c.batch), length)
    parts = 1
    while parts * 2 <= most:
        parts *= 2
    return [(length * k // parts, length * (k + 1) // parts) for k in range(parts)]
