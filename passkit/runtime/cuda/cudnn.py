"""Bindings of cuDNN: descriptors of convolutions, and the choice of their algorithms.

Source: cuDNN documentation, convolution API (deprecated there in favour of graphs, and shipped).
Arrays have channels last; cuDNN's filters are (filters, *window, channels), as `filters_of` lays
them out. float32 is multiplied as float32, not as TF32; 16-bit floats are summed in float32;
algorithms whose bits are not reproducible are left out. cuDNN pads both ends of an axis equally;
for other padding `passkit.runtime.cuda.convolution` pads the images first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_double, c_float, c_int, c_size_t, c_void_p
from functools import cache
from math import prod
from typing import Any
from weakref import finalize

import numpy as np

from passkit.runtime.cuda.device import CudaDevice
from passkit.runtime.cuda.driver import DriverError
from passkit.runtime.cuda.libraries import (
    CUDNN,
    UnsupportedError,
    call_library,
    library_or_error,
    load_library,
)
from passkit.runtime.native.onednn import Geometry
from passkit.values.dtype import DType, is_narrow

DATA_TYPES = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "bfloat16": 9,
}
"""cudnnDataType_t."""
CHANNELS_LAST = 1
"""CUDNN_TENSOR_NHWC of cudnnTensorFormat_t."""
CROSS_CORRELATION = 1
"""Of cudnnConvolutionMode_t."""
DETERMINISTIC = 1
"""Of cudnnDeterminism_t."""
DEFAULT_MATH = 0
TENSOR_OP_MATH = 1
FMA_MATH = 3
"""cudnnMathType_t: tensor cores multiply 16-bit floats exactly, and are used for them alone."""
MAX_ALGORITHMS = 8
"""How many algorithms cuDNN may report."""
DESCRIPTOR_KINDS = ("Tensor", "Filter", "Convolution")


class AlgorithmPerformance(ctypes.Structure):
    """cudnnConvolutionFwdAlgoPerf_t and cudnnConvolutionBwdFilterAlgoPerf_t."""

    _fields_ = (
        ("algorithm", c_int),
        ("status", c_int),
        ("time", c_float),
        ("memory", c_size_t),
        ("determinism", c_int),
        ("math", c_int),
        ("reserved", c_int * 3),
    )


class Cudnn:
    """The library on a device, whose context must be current in all methods.

    Raises:
        UnsupportedError: where the library is not installed.
        DriverError: where it does not start.
    """

    def __init__(self) -> None:
        self.dll = load_library(CUDNN)
        self.handle = c_void_p()
        self("cudnnCreate", byref(self.handle))

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call the function ``name`` of the library. Raises: DriverError where it fails."""
        call_library(self.dll, name, *arguments)

    def convolution(
        self, geometry: Geometry, dtype: DType, kind: type[CudnnConvolution] | None = None
    ) -> CudnnConvolution:
        """Return a convolution with the first algorithm that fits.

        Args:
            geometry: Its shapes; both ends of an axis must have the same padding.
            dtype: The type of an element.
            kind: `CudnnConvolution`, the default, or `CudnnFilterGradient`.

        Raises:
            UnsupportedError: where the library has no such dtype, padding or algorithm.
        """
        if dtype.name not in DATA_TYPES:
            raise UnsupportedError(
                f"cuDNN convolves {', '.join(DATA_TYPES)}, and this convolution is of {dtype}"
            )
        needed, padded = tuple(geometry.result), padded_result(geometry)
        if needed != padded:
            raise UnsupportedError(
                f"cuDNN pads both ends of an axis equally, which gives results of shape {padded}, "
                f"and this convolution needs {needed}"
            )
        performances = (AlgorithmPerformance * MAX_ALGORITHMS)()
        count = c_int(0)
        try:
            convolution = (kind or CudnnConvolution)(self, geometry, dtype)
            self(
                convolution.algorithm_getter,
                self.handle,
                *convolution.descriptors,
                c_int(MAX_ALGORITHMS),
                byref(count),
                performances,
            )
        except DriverError as error:
            raise UnsupportedError(f"cuDNN has no convolution for {geometry}: {error}") from error
        usable = [p for p in performances[: count.value] if _is_usable(p, dtype)]
        if not usable:
            raise UnsupportedError(
                f"cuDNN has no algorithm with reproducible results for {geometry}"
            )
        convolution.algorithm = usable[0].algorithm
        convolution.workspace = int(usable[0].memory)
        return convolution


def _is_usable(performance: AlgorithmPerformance, dtype: DType) -> bool:
    """Return whether an algorithm works, deterministically and in the precision of ``dtype``.

    ``performance`` is cuDNN's report of the algorithm.
    """
    return (
        performance.status == 0
        and performance.determinism == DETERMINISTIC
        and performance.math in (DEFAULT_MATH, _math(dtype))
    )


def _math(dtype: DType) -> int:
    """Return the cudnnMathType_t for a dtype: tensor cores for 16-bit floats only."""
    return TENSOR_OP_MATH if is_narrow(dtype) else FMA_MATH


def padded_result(geometry: Geometry) -> tuple[int, ...]:
    """Return the result's extents if the end of each axis were padded like its beginning."""
    axes = zip(
        geometry.size,
        geometry.before,
        geometry.window,
        geometry.dilation,
        geometry.stride,
        strict=True,
    )
    return tuple((n + 2 * p - (w - 1) * d - 1) // s + 1 for n, p, w, d, s in axes)


def unpadded_geometry(geometry: Geometry) -> Geometry:
    """Return the same convolution for images that are padded already.

    Its ``size`` is that of the padded images, and its ``before`` is 0.
    """
    axes = zip(geometry.result, geometry.stride, geometry.window, geometry.dilation, strict=True)
    size = tuple((r - 1) * s + (w - 1) * d + 1 for r, s, w, d in axes)
    return geometry._replace(size=size, before=(0,) * len(size))


def filters_of(array: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Return the filters ``array`` of a convolution in cuDNN's layout, as a C-contiguous array.

    Shapes: (*window, channels / groups, filters) -> (filters, *window, channels / groups)
    """
    channels = geometry.channels // geometry.groups
    filters = array.reshape(*geometry.window, channels, geometry.filters)
    return np.ascontiguousarray(np.moveaxis(filters, -1, 0))


def axes_of(geometry: Geometry) -> list[int]:
    """Return the indices, of 0 to 2, of the spatial axes that cuDNN needs.

    The first axis is left out where its extents are 1 and it is not padded.
    """
    extents = (geometry.size[0], geometry.window[0], geometry.result[0])
    is_trivial = extents == (1, 1, 1) and not geometry.before[0]
    return [1, 2] if is_trivial else [0, 1, 2]


class CudnnConvolution:
    """The descriptors of convolutions of one shape, destroyed when nothing refers to it.

    Args:
        library: The library.
        geometry: The shapes.
        dtype: The type of an element.

    Attributes:
        algorithm: The number of cuDNN's algorithm, which `Cudnn.convolution` sets.
        workspace: How many bytes of workspace a call needs; set there, too.
        descriptors: Those of both operands, the convolution and the output, in the order of the
            function's parameters.
        created: All descriptors by kind, for their destruction.
    """

    algorithm_getter = "cudnnGetConvolutionForwardAlgorithm_v7"
    function = "cudnnConvolutionForward"

    def __init__(self, library: Cudnn, geometry: Geometry, dtype: DType) -> None:
        self.library = library
        self.algorithm = 0
        self.workspace = 0
        data_type = c_int(DATA_TYPES[dtype.name])
        scalar = c_double if dtype.name == "float64" else c_float
        self.alpha = scalar(1)
        self.beta = scalar(0)
        self.created: dict[str, list[c_void_p]] = {kind: [] for kind in DESCRIPTOR_KINDS}
        finalize(self, _destroy, library.dll, self.created).atexit = False
        axes = axes_of(geometry)
        source = self._tensor(data_type, geometry.batch, geometry.channels, geometry.size, axes)
        filters = self._filters(data_type, geometry, axes)
        convolution = self._convolution(data_type, dtype, geometry, axes)
        result = self._tensor(data_type, geometry.batch, geometry.filters, geometry.result, axes)
        self.descriptors = self.arguments(source, filters, convolution, result)

    def arguments(
        self, source: Any, filters: Any, convolution: Any, result: Any
    ) -> tuple[Any, ...]:
        """Return the descriptors in the order in which the forward function takes them.

        That is: ``source``, the images; ``filters``; ``convolution``; ``result``, the output.
        """
        return source, filters, convolution, result

    def _new(self, kind: str) -> c_void_p:
        """Create a descriptor of ``kind``, such as "Tensor", and record it for its destruction.

        Raises: DriverError where cuDNN refuses it.
        """
        descriptor = c_void_p()
        self.library(f"cudnnCreate{kind}Descriptor", byref(descriptor))
        self.created[kind].append(descriptor)
        return descriptor

    def _tensor(
        self,
        data_type: c_int,
        batch: int,
        channels: int,
        size: Sequence[int],
        axes: Sequence[int],
    ) -> c_void_p:
        """Return the descriptor of an array with channels last; cuDNN lists the channels second.

        Raises: DriverError where cuDNN refuses the shape.

        Args:
            data_type: its cudnnDataType_t.
            batch: the number of images.
            channels: the number of channels.
            size: the extents of the spatial axes.
            axes: the order in which cuDNN gets these axes.
        """
        descriptor = self._new("Tensor")
        extents = [size[k] for k in axes]
        strides = [channels * prod(extents[k + 1 :]) for k in range(len(extents))]
        self.library(
            "cudnnSetTensorNdDescriptor",
            descriptor,
            data_type,
            c_int(len(extents) + 2),
            _ints([batch, channels, *extents]),
            _ints([channels * prod(extents), 1, *strides]),
        )
        return descriptor

    def _filters(self, data_type: c_int, geometry: Geometry, axes: Sequence[int]) -> c_void_p:
        """Return the descriptor of the filters, with their spatial axes in the order ``axes``.

        ``data_type`` is their cudnnDataType_t. Raises: DriverError where cuDNN refuses the shape.
        """
        descriptor = self._new("Filter")
        window = [geometry.window[k] for k in axes]
        extents = _ints([geometry.filters, geometry.channels // geometry.groups, *window])
        self.library(
            "cudnnSetFilterNdDescriptor",
            descriptor,
            data_type,
            c_int(CHANNELS_LAST),
            c_int(len(extents)),
            extents,
        )
        return descriptor

    def _convolution(
        self, data_type: c_int, dtype: DType, geometry: Geometry, axes: Sequence[int]
    ) -> c_void_p:
        """Return the descriptor of padding, strides, dilation, groups and precision.

        Raises: DriverError where cuDNN refuses the convolution.

        Args:
            data_type: the cudnnDataType_t of ``dtype``.
            dtype: the type of an element; 16-bit floats are summed in float32.
            geometry: the convolution.
            axes: the spatial axes, in the order in which cuDNN gets them.
        """
        descriptor = self._new("Convolution")
        compute_type = data_type if dtype.nbytes > 2 else c_int(DATA_TYPES["float32"])
        self.library(
            "cudnnSetConvolutionNdDescriptor",
            descriptor,
            c_int(len(axes)),
            _ints([geometry.before[k] for k in axes]),
            _ints([geometry.stride[k] for k in axes]),
            _ints([geometry.dilation[k] for k in axes]),
            c_int(CROSS_CORRELATION),
            compute_type,
        )
        self.library("cudnnSetConvolutionGroupCount", descriptor, c_int(geometry.groups))
        self.library("cudnnSetConvolutionMathType", descriptor, c_int(_math(dtype)))
        return descriptor

    def enqueue(self, a: int, b: int, c: int, workspace: int, stream: int) -> None:
        """Enqueue the cuDNN convolution, or in a subclass the gradient of its filters.

        Args:
            a: The address of the first operand.
            b: The address of the second operand.
            c: The address of the output.
            workspace: The address of the workspace.
            stream: The handle of the stream.

        Raises:
            DriverError: where the library fails.
        """
        library = self.library
        library("cudnnSetStream", library.handle, c_void_p(stream))
        descriptor_a, descriptor_b, convolution, descriptor_c = self.descriptors
        library(
            self.function,
            library.handle,
            byref(self.alpha),
            descriptor_a,
            c_void_p(a),
            descriptor_b,
            c_void_p(b),
            convolution,
            c_int(self.algorithm),
            c_void_p(workspace),
            c_size_t(self.workspace),
            byref(self.beta),
            descriptor_c,
            c_void_p(c),
        )


class CudnnFilterGradient(CudnnConvolution):
    """The gradient of filters, from images and the gradient of the result."""

    algorithm_getter = "cudnnGetConvolutionBackwardFilterAlgorithm_v7"
    function = "cudnnConvolutionBackwardFilter"

    def arguments(
        self, source: Any, filters: Any, convolution: Any, result: Any
    ) -> tuple[Any, ...]:
        """Return the descriptors in the order in which the backward-filter function takes them.

        That is: ``source``, the images; ``result``, whose gradient is the second operand;
        ``convolution``; ``filters``, whose gradient is the output.
        """
        return source, result, convolution, filters


def _ints(values: Sequence[int]) -> Any:
    """Return integers as an array of C's int."""
    return (c_int * len(values))(*values)


def _destroy(dll: Any, created: dict[str, list[c_void_p]]) -> None:
    """Destroy the descriptors ``created``, which are listed by kind; failures are ignored.

    ``dll`` is cuDNN as a `ctypes.CDLL`.
    """
    for kind, descriptors in created.items():
        for descriptor in descriptors:
            getattr(dll, f"cudnnDestroy{kind}Descriptor")(descriptor)


@cache
def cudnn(device: CudaDevice) -> Cudnn | UnsupportedError:
    """Return the library on a device, or the error that says why it is not available.

    The device's context must be current. The error is returned, not raised, and both are remembered
    for each device.
    """
    return library_or_error(Cudnn)
