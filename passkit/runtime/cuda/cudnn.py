"""Convolutions by cuDNN, in the stream of everything else.

Source: cuDNN documentation, convolution API (deprecated there in favour of graphs, and shipped).
Arrays have channels last; cuDNN wants filters the other way round, (filters, *window, channels), as
`filters_of` lays them out. float32 is multiplied as float32, not as TF32; 16-bit floats are added
in float32; ways whose bits do not repeat are left out. Both ends of an axis have the same padding
there: where they do not, `passkit.runtime.cuda.arranging` makes the border.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_double, c_float, c_int, c_size_t, c_void_p
from math import prod
from typing import Any
from weakref import finalize

import numpy as np

from passkit.runtime.cuda.driver import DriverError
from passkit.runtime.cuda.shared import CUDNN, MissingError, asked, opened
from passkit.runtime.native.onednn import Geometry
from passkit.values.dtype import DType, is_narrow

KINDS = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}
"""cudnnDataType_t."""
CHANNELS_LAST, CROSS_CORRELATION, DETERMINISTIC, MOST = 1, 1, 1, 8
"""cudnnTensorFormat_t, cudnnConvolutionMode_t, cudnnDeterminism_t; and how many ways are asked
for."""
TENSOR_CORES, FMA = 1, 3
"""cudnnMathType_t: the first multiplies 16-bit floats exactly, and is for them alone."""
DESCRIPTORS = ("Tensor", "Filter", "Convolution")


class Way(ctypes.Structure):
    """cudnnConvolutionFwdAlgoPerf_t and cudnnConvolutionBwdFilterAlgoPerf_t."""

    _fields_ = (
        ("algorithm", c_int), ("status", c_int), ("time", c_float), ("memory", c_size_t),
        ("determinism", c_int), ("math", c_int), ("reserved", c_int * 3),
    )  # fmt: skip


class Cudnn:
    """The library on a device. Its context must be this thread's in all methods."""

    def __init__(self) -> None:
        self.dll = opened(CUDNN)
        self.handle = c_void_p()
        self("cudnnCreate", byref(self.handle))

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call a function. Raises: DriverError."""
        asked(self.dll, name, *arguments)

    def prepared(
        self, c: Geometry, dtype: DType, kind: type[Convolve] | None = None
    ) -> Convolve:
        """What convolves arrays of a shape, or what ``kind`` does with them.

        Raises: MissingError where the library has no way.
        """
        if dtype.name not in KINDS:
            raise MissingError(f"cuDNN is asked for {', '.join(KINDS)}, not for {dtype}")
        wanted, found = tuple(c.result), padded_result(c)
        if wanted != found:
            raise MissingError(
                f"cuDNN pads both ends alike: results of {found} in place of {wanted}"
            )
        ways, count = (Way * MOST)(), c_int(0)
        try:
            made = (kind or Convolve)(self, c, dtype)
            self(made.ways, self.handle, *made.descriptors, c_int(MOST), byref(count), ways)
        except DriverError as error:
            raise MissingError(f"cuDNN has no convolution for {c}: {error}") from error
        good = [w for w in ways[: count.value] if _serves(w, dtype)]
        if not good:
            raise MissingError(f"cuDNN has no convolution for {c} whose bits repeat")
        made.algorithm, made.workspace = good[0].algorithm, int(good[0].memory)
        return made


def _serves(way: Way, dtype: DType) -> bool:
    return way.status == 0 and way.determinism == DETERMINISTIC and way.math in (0, _math(dtype))


def _math(dtype: DType) -> int:
    """How elements of a dtype are multiplied."""
    return TENSOR_CORES if is_narrow(dtype) else FMA


def padded_result(c: Geometry) -> tuple[int, ...]:
    """The extents of a result where the end of each axis is padded as its begin is."""
    return tuple(
        (n + 2 * p - (w - 1) * d - 1) // s + 1
        for n, p, w, d, s in zip(c.size, c.before, c.window, c.dilation, c.stride, strict=True)
    )


def filters_of(array: np.ndarray, c: Geometry) -> np.ndarray:
    """Filters as cuDNN wants them.

    Shapes: (*window, channels / groups, filters) -> (filters, *window, channels / groups)
    """
    whole = array.reshape(*c.window, c.channels // c.groups, c.filters)
    return np.ascontiguousarray(np.moveaxis(whole, -1, 0))


def axes_of(c: Geometry) -> list[int]:
    """The spatial axes that cuDNN is told of: two, unless the first one has an extent."""
    trivial = c.size[0] == c.window[0] == c.result[0] == 1 and not c.before[0]
    return [1, 2] if trivial else [0, 1, 2]


class Convolve:
    """Convolutions of one shape. ``workspace`` is how many bytes it needs besides."""

    ways = "cudnnGetConvolutionForwardAlgorithm_v7"
    function = "cudnnConvolutionForward"

    def __init__(self, library: Cudnn, c: Geometry, dtype: DType) -> None:
        self.library, self.algorithm, self.workspace = library, 0, 0
        kind = c_int(KINDS[dtype.name])
        added = kind if dtype.nbytes > 2 else c_int(KINDS["float32"])
        scalar = c_double if dtype.name == "float64" else c_float
        self.one, self.zero = scalar(1), scalar(0)
        axes = axes_of(c)
        self.made: dict[str, list[c_void_p]] = {name: [] for name in DESCRIPTORS}
        finalize(self, _destroyed, library.dll, self.made).atexit = False

        def along(of: Sequence[int]) -> list[int]:
            return [of[k] for k in axes]

        source = self._tensor(kind, c.batch, c.channels, along(c.size))
        filters = self._new("Filter")
        dims = _ints([c.filters, c.channels // c.groups, *along(c.window)])
        library("cudnnSetFilterNdDescriptor", filters, kind, c_int(CHANNELS_LAST),
                c_int(len(dims)), dims)  # fmt: skip
        how = self._new("Convolution")
        library("cudnnSetConvolutionNdDescriptor", how, c_int(len(axes)), _ints(along(c.before)),
                _ints(along(c.stride)), _ints(along(c.dilation)), c_int(CROSS_CORRELATION),
                added)  # fmt: skip
        library("cudnnSetConvolutionGroupCount", how, c_int(c.groups))
        library("cudnnSetConvolutionMathType", how, c_int(_math(dtype)))
        result = self._tensor(kind, c.batch, c.filters, along(c.result))
        self.descriptors = self.ordered(source, filters, how, result)

    def ordered(self, source: Any, filters: Any, how: Any, result: Any) -> tuple[Any, ...]:
        """Descriptors as the function wants them: of both operands, how, and of what it writes."""
        return source, filters, how, result

    def _new(self, what: str) -> c_void_p:
        made = c_void_p()
        self.library(f"cudnnCreate{what}Descriptor", byref(made))
        self.made[what].append(made)
        return made

    def _tensor(self, kind: c_int, batch: int, channels: int, size: Sequence[int]) -> c_void_p:
        """An array with channels last, whose extents cuDNN wants with channels second."""
        made = self._new("Tensor")
        steps = [channels * prod(size[k + 1 :]) for k in range(len(size))]
        self.library(
            "cudnnSetTensorNdDescriptor", made, kind, c_int(len(size) + 2),
            _ints([batch, channels, *size]), _ints([channels * prod(size), 1, *steps]),
        )  # fmt: skip
        return made

    def enqueue(self, a: int, b: int, c: int, workspace: int, stream: int) -> None:
        """Let a stream make c of a and b, which lie at addresses. Raises: DriverError."""
        library = self.library
        library("cudnnSetStream", library.handle, c_void_p(stream))
        of_a, of_b, how, of_c = self.descriptors
        library(
            self.function, library.handle, byref(self.one), of_a, c_void_p(a),
            of_b, c_void_p(b), how, c_int(self.algorithm), c_void_p(workspace),
            c_size_t(self.workspace), byref(self.zero), of_c, c_void_p(c),
        )  # fmt: skip


class ConvolveBack(Convolve):
    """Gradients of filters: of images and of the gradients of results."""

    ways = "cudnnGetConvolutionBackwardFilterAlgorithm_v7"
    function = "cudnnConvolutionBackwardFilter"

    def ordered(self, source: Any, filters: Any, how: Any, result: Any) -> tuple[Any, ...]:
        """The filters are what it writes."""
        return source, result, how, filters


def _ints(values: Sequence[int]) -> Any:
    return (c_int * len(values))(*values)


def _destroyed(dll: Any, made: dict[str, list[c_void_p]]) -> None:
    """Give back descriptors."""
    for what, descriptors in made.items():
        for descriptor in descriptors:
            getattr(dll, f"cudnnDestroy{what}Descriptor")(descriptor)
