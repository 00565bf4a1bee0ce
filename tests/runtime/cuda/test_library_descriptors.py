"""The libraries' own view of our descriptors, which needs no device.

Run where they are installed: pip install nvidia-cublas nvidia-cudnn-cu13.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

import pytest

from passkit.runtime.cuda.cublaslt import (
    ALIGNMENT_ATTRIBUTES,
    LtEpilogue,
    LtMatmul,
    MatmulAttribute,
    MatmulShape,
    PreferenceAttribute,
)
from passkit.runtime.cuda.cudnn import CudnnConvolution, axes_of
from passkit.runtime.cuda.libraries import (
    CUBLASLT,
    CUDNN,
    SharedLibrary,
    UnsupportedError,
    call_library,
    load_library,
)
from passkit.runtime.native.onednn import Geometry
from passkit.values.dtype import dtype_of


class RealLibrary:
    """A library without a handle, which only a device has."""

    def __init__(self, library: SharedLibrary) -> None:
        try:
            self.dll = load_library(library)
        except UnsupportedError as error:
            pytest.skip(str(error))
        self.handle = c_void_p()

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call a function."""
        call_library(self.dll, name, *arguments)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_cublaslt_reads_our_descriptors(dtype: str) -> None:
    """cuBLASLt reads extents, leading dimensions, strides and epilogue as they were meant."""
    library = RealLibrary(CUBLASLT)
    numbers = MatmulShape(dtype_of(dtype), 3, 5, 4, True, False, 2, (12, 20, 15), LtEpilogue.BIAS)
    product = LtMatmul(library, numbers)  # type: ignore[arg-type]
    product.set(MatmulAttribute.BIAS_POINTER, c_void_p(4096))

    def attribute(what: str, of: Any, key: int, kind: Any) -> Any:
        result, size = kind(), c_size_t()
        library(
            f"cublasLt{what}GetAttribute",
            of,
            c_int(key),
            byref(result),
            c_size_t(ctypes.sizeof(result)),
            byref(size),
        )
        assert size.value == ctypes.sizeof(result)
        return result.value

    kinds = {
        MatmulAttribute.TRANSPOSE_A: c_int,
        MatmulAttribute.TRANSPOSE_B: c_int,
        MatmulAttribute.EPILOGUE: c_int,
        MatmulAttribute.BIAS_POINTER: c_void_p,
    }
    message = [attribute("MatmulDesc", product.description, k, kind) for k, kind in kinds.items()]
    assert message == [0, 1, LtEpilogue.BIAS, 4096]
    rows = c_uint64, c_uint64, c_int64, c_int, c_int64
    layouts = [
        tuple(attribute("MatrixLayout", x, k, kind) for k, kind in enumerate(rows, 2))
        for x in product.layouts
    ]
    assert layouts == [(5, 4, 5, 2, 20), (3, 4, 3, 2, 12), (5, 3, 5, 2, 15)]
    preference = c_void_p()
    library("cublasLtMatmulPreferenceCreate", byref(preference))
    values = {
        PreferenceAttribute.WORKSPACE: c_uint64(1),
        PreferenceAttribute.REDUCTIONS: c_uint32(2),
    }
    for key, value in {**values, **{s: c_uint32(16) for s in ALIGNMENT_ATTRIBUTES}}.items():
        library(
            "cublasLtMatmulPreferenceSetAttribute",
            preference,
            c_int(key),
            byref(value),
            c_size_t(ctypes.sizeof(value)),
        )
    library("cublasLtMatmulPreferenceDestroy", preference)


SAME = Geometry(2, (1, 9, 8), 4, 6, (1, 3, 3), (1, 9, 8), (1, 1, 1), (0, 1, 1), (1, 1, 1), 1)
GROUPED = Geometry(2, (1, 9, 8), 4, 6, (1, 3, 2), (1, 4, 4), (1, 2, 2), (0, 0, 0), (1, 1, 1), 2)
SOLID = Geometry(1, (4, 5, 6), 4, 3, (2, 2, 2), (3, 4, 5), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1)
WIDE = Geometry(2, (1, 1, 11), 4, 5, (1, 1, 3), (1, 1, 7), (1, 1, 1), (0, 0, 0), (1, 1, 2), 1)


@pytest.mark.parametrize("c", [SAME, GROUPED, SOLID, WIDE])
def test_cudnn_reads_our_descriptors(c: Geometry) -> None:
    """cuDNN computes the planned extents of the result, with channels last in memory."""
    library = RealLibrary(CUDNN)
    convolution = CudnnConvolution(library, c, dtype_of("float32"))  # type: ignore[arg-type]
    source, filters, how, result = convolution.descriptors
    axes = axes_of(c)
    dims = (c_int * (len(axes) + 2))()
    library("cudnnGetConvolutionNdForwardOutputDim", how, source, filters, c_int(len(dims)), dims)

    assert list(dims) == [c.batch, c.filters, *(c.result[k] for k in axes)]
    kind, rank, extents, strides = c_int(), c_int(), (c_int * 8)(), (c_int * 8)()
    library(
        "cudnnGetTensorNdDescriptor", result, c_int(8), byref(kind), byref(rank), extents, strides
    )
    assert (kind.value, rank.value) == (0, len(dims)) and strides[1] == 1
    assert list(extents)[: len(dims)] == list(dims) and strides[len(dims) - 1] == c.filters
