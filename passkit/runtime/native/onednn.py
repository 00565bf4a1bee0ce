"""oneDNN of the wheel onednn-cpu-gomp, opened at run time: convolutions as tables of primitives.

Primitives are made for one thread: our own threads share the parts of a convolution out, so that
there is one team, and the bits of a result do not depend on its size.
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

FLOAT = 3
CPU, IN_ORDER, ANY, INFERENCE, DIRECT, USER = 1, 1, 1, 96, 1, 1
WEIGHTS, SCRATCH, IMPLEMENTATION = 131, 136, 8
INSTALL_HINT = "pip install onednn-cpu-gomp"
"""The command that installs the library, on Linux on x86-64."""
PARTS_FLOP = 5e6
"""The work of a part of an image, at least: below it the ends of a part weigh too much."""
MOST_PARTS = 8
Dims = c_int64 * 12


class Geometry(NamedTuple):
    """A `passkit.ast.folds.Convolution` whose sizes are numbers; names are explained there."""

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
class Primitives:
    """What the unit in the folder convolution needs of the library for convolutions of one shape.

    ``table`` is what the unit reads; ``layout`` names the order of ``filter_nbytes`` of filter.
    """

    table: Any = field(repr=False)
    parts: int
    reorders: int
    filter_nbytes: int
    scratch_nbytes: int
    rows: int


class Placed(NamedTuple):
    """A part of a convolution: descriptions of its arrays, strides, dilations and paddings.

    ``offsets`` are those of its source and its result in elements of an image.
    """

    source: c_void_p
    target: c_void_p
    geometry: tuple[Any, ...]
    offsets: tuple[int, int]


class FailedError(Exception):
    """The library has no primitive for this."""


def demand_fast(implementation: bytes) -> None:
    """Make sure that an implementation is no reference, which serves tests and is slow.

    Raises: FailedError.
    """
    if implementation.startswith(b"ref"):
        raise FailedError(f"only {implementation.decode()}, a reference, is there")


class Library:
    """The functions of a libdnnl, version 3, and an engine and a stream of it.

    Raises: OSError or AttributeError where the file is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dll = ctypes.CDLL(str(path))
        self.engine, self.stream = c_void_p(), c_void_p()
        self("dnnl_engine_create", byref(self.engine), c_int(CPU), c_size_t(0))
        self("dnnl_stream_create", byref(self.stream), self.engine, c_int(IN_ORDER))

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call a function. Raises: FailedError where it answers with an error."""
        if getattr(self.dll, name)(*arguments):
            raise FailedError(f"{name} answers with an error")

    def address(self, name: str) -> int:
        """The address of a function; OpenMP's are found among what the library links."""
        return ctypes.cast(getattr(self.dll, name), c_void_p).value or 0

    def kind(self, dims: tuple[int, ...], strides: tuple[int, ...] | None = None) -> c_void_p:
        """A description of float32 arrays, of any layout where no strides are given."""
        made = c_void_p()
        if strides is None:
            self("dnnl_memory_desc_create_with_tag", byref(made), c_int(len(dims)), Dims(*dims),
                 c_int(FLOAT), c_int(ANY))  # fmt: skip
        else:
            self("dnnl_memory_desc_create_with_strides", byref(made), c_int(len(dims)), Dims(*dims),
                 c_int(FLOAT), Dims(*strides))  # fmt: skip
        return made

    def queried(self, description: c_void_p, what: int) -> c_void_p:
        """A memory description that a primitive's description holds."""
        query = self.dll.dnnl_primitive_desc_query_md
        query.restype = c_void_p
        return c_void_p(query(description, c_int(what), c_int(0)))

    @contextmanager
    def single(self) -> Iterator[None]:
        """Primitives are made for one thread here: one has as many as it was made for."""
        threads = self.dll.omp_get_max_threads()
        self.dll.omp_set_num_threads(c_int(1))
        try:
            yield
        finally:
            self.dll.omp_set_num_threads(c_int(threads))

    def nbytes(self, kind: c_void_p) -> int:
        """The bytes of an array."""
        self.dll.dnnl_memory_desc_get_size.restype = c_size_t
        return int(self.dll.dnnl_memory_desc_get_size(kind))


@lru_cache(maxsize=1)
def library() -> Library | None:
    """The library of the wheel onednn-cpu-gomp; None where it is not installed or does not load."""
    path = installed()
    try:
        return None if path is None else Library(path)
    except (OSError, AttributeError, FailedError):
        return None


def installed() -> Path | None:
    """Return the path of the shared library in the wheel; None where it is not installed."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        listed = files("onednn-cpu-gomp") or []
    except PackageNotFoundError:
        return None
    for file in listed:
        if file.name.startswith("libdnnl.so.3"):
            return Path(str(file.locate())).resolve()
    return None


@lru_cache(maxsize=512)
def primitives(c: Geometry) -> Primitives | None:
    """What runs convolutions of this shape; None where the library has nothing fast for it."""
    found = library()
    if found is None or min(c.batch, *c.result, c.channels, c.filters, *c.window) < 1:
        return None
    try:
        with found.single():
            return Making(found, c).made()
    except FailedError:
        return None


class Making:
    """Makes primitives of a library for a convolution, which is cut along one axis."""

    def __init__(self, found: Library, c: Geometry) -> None:
        self.lib, self.c = found, c
        self.axis = cut_axis(c)

    def made(self) -> Primitives | None:
        """Those of the convolution itself; None where a part sees padding only."""
        c, lib = self.c, self.lib
        cuts = parts_of(c)
        records: list[int] = []
        kept: tuple[c_void_p, ...] = ()
        scratch = 0
        for first, last in cuts:
            start, stop = self.needed(first, last)
            if stop <= start:  # a part that sees padding only
                return None
            record, filters, nbytes = self.part(first, last, start, stop)
            if kept and not lib.dll.dnnl_memory_desc_equal(kept[0], filters):
                return None
            kept, scratch = kept or (filters,), max(scratch, nbytes)
            records += record
        (filters,) = kept
        reorder = self.reorder(filters)
        head = [
            *map(lib.address, ("dnnl_memory_create", "dnnl_memory_destroy")),
            *map(lib.address, ("dnnl_primitive_execute", "omp_get_max_threads")),
            *(lib.address("omp_set_num_threads"), lib.engine.value, lib.stream.value),
            *(filters.value, len(cuts)),
        ]
        table = np.array([*head, *records, *reorder], np.int64)
        rows = max((b - a) for a, b in cuts)
        return Primitives(table, len(cuts), 1, lib.nbytes(filters), scratch, rows)

    def needed(self, first: int, last: int) -> tuple[int, int]:
        """The elements of the source that results first to last read, along the cut axis."""
        c, k = self.c, self.axis
        reach = (c.window[k] - 1) * c.dilation[k] + 1
        start = first * c.stride[k] - c.before[k]
        stop = (last - 1) * c.stride[k] - c.before[k] + reach
        return max(start, 0), min(stop, c.size[k])

    def part(self, first: int, last: int, start: int, stop: int) -> tuple[list[int], c_void_p, int]:
        """The record of results first to last, how it wants the filter, and bytes of scratch."""
        c, lib, k = self.c, self.lib, self.axis
        at = self.placed(first, last, start, stop, 1)
        description, attributes = c_void_p(), self.attributes()
        lib(
            "dnnl_convolution_forward_primitive_desc_create", byref(description), lib.engine,
            c_int(INFERENCE), c_int(DIRECT), at.source, lib.kind(self.filter_dims()), None,
            at.target, *at.geometry, attributes,
        )  # fmt: skip
        primitive = self.primitive(description)
        scratch = lib.queried(description, SCRATCH)
        lines = prod(c.result[k + 1 : -1])
        record = [primitive.value, at.source.value, at.target.value, scratch.value, *at.offsets]
        record += [first * lines, (last - first) * lines]
        return [int(n or 0) for n in record], lib.queried(description, WEIGHTS), lib.nbytes(scratch)

    def attributes(self) -> c_void_p:
        """Attributes that leave the scratch memory to us."""
        made = c_void_p()
        self.lib("dnnl_primitive_attr_create", byref(made))
        self.lib("dnnl_primitive_attr_set_scratchpad_mode", made, c_int(USER))
        return made

    def primitive(self, description: c_void_p) -> c_void_p:
        """What was described. Raises: FailedError where that is a reference."""
        name, made = c_char_p(), c_void_p()
        self.lib("dnnl_primitive_desc_query", description, c_int(IMPLEMENTATION), c_int(0),
                 byref(name))  # fmt: skip
        demand_fast(name.value or b"")
        self.lib("dnnl_primitive_create", byref(made), description)
        return made

    def placed(self, first: int, last: int, start: int, stop: int, images: int) -> Placed:
        """Where results first to last of some images lie, and what they read, start to stop."""
        c, lib, k = self.c, self.lib, self.axis
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
        steps = _last(source), _last(target)
        if images > 1:  # for one image no step tells of a gap, which costs the fast primitives
            whole = prod(c.size[k:]) * c.channels, prod(c.result[k:]) * c.filters
            steps = (whole[0], *steps[0][1:]), (whole[1], *steps[1][1:])
        return Placed(
            lib.kind(source, steps[0]),
            lib.kind(target, steps[1]),
            (Dims(*c.stride[k:]), Dims(*(d - 1 for d in c.dilation[k:])), Dims(*before),
             Dims(*after)),
            (start * prod(c.size[k + 1 :]) * c.channels,
             first * prod(c.result[k + 1 :]) * c.filters),
        )  # fmt: skip

    def filter_dims(self) -> tuple[int, ...]:
        """Groups, filters, channels, window: the library's order."""
        c = self.c
        window = c.window[self.axis :]
        if c.groups == 1:
            return c.filters, c.channels, *window
        return c.groups, c.filters // c.groups, c.channels // c.groups, *window

    def plain(self) -> c_void_p:
        """A filter (*window, channels / groups, filters)."""
        c = self.c
        dims = self.filter_dims()
        own, each = c.channels // c.groups, c.filters // c.groups
        steps = [own * c.filters]
        for n in reversed(c.window[self.axis + 1 :]):
            steps.insert(0, steps[0] * n)
        strides = (1, c.filters, *steps) if c.groups == 1 else (each, 1, c.filters, *steps)
        return self.lib.kind(dims, strides)

    def reorder(self, wanted: c_void_p) -> list[int]:
        """The primitive that lays a plain filter out, and both layouts."""
        plain = self.plain()
        return [int(p.value or 0) for p in (self.reordering(plain, wanted), plain, wanted)]

    def reordering(self, source: c_void_p, target: c_void_p) -> c_void_p:
        """The primitive that makes one layout of another."""
        lib, description, primitive = self.lib, c_void_p(), c_void_p()
        lib("dnnl_reorder_primitive_desc_create", byref(description), source, lib.engine, target,
            lib.engine, None)  # fmt: skip
        lib("dnnl_primitive_create", byref(primitive), description)
        return primitive


def _last(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of (batch, channels, *rest) where channels lie innermost."""
    strides = [dims[1]]
    for n in reversed(dims[3:]):
        strides.insert(0, strides[0] * n)
    return strides[0] * dims[2], 1, *strides


def cut_axis(c: Geometry) -> int:
    """The axis that is cut; axes before it have length 1, and the library is not told of them."""
    return 0 if c.result[0] > 1 or c.size[0] > 1 or c.window[0] > 1 else 1


def parts_of(c: Geometry) -> list[tuple[int, int]]:
    """Parts of an image along the cut axis: by the work there is, and by nothing else."""
    window = prod(c.window) * c.channels // c.groups
    image = 2.0 * window * c.filters * prod(c.result)
    length = c.result[cut_axis(c)]
    wanted = min(image / PARTS_FLOP, MOST_PARTS, max(1, 16 // c.batch), length)
    parts = 1
    while parts * 2 <= wanted:
        parts *= 2
    return [(length * k // parts, length * (k + 1) // parts) for k in range(parts)]
