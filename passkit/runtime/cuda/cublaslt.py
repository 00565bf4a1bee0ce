"""Bindings of cuBLASLt: descriptors of matrix products, and the heuristic for their algorithms.

Source: cuBLAS documentation, cuBLASLt. Its matrices are stored by columns. A product of matrices
by rows is the product of the transposed operands in reverse order, (n, k) x (k, m), whose columns
are our rows. float32 is multiplied as float32, not as TF32; 16-bit floats are summed in float32,
also between blocks of k.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_double, c_float, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from enum import IntEnum
from functools import cache
from typing import Any
from weakref import finalize

from attrs import frozen

from passkit.runtime.cuda.device import CudaDevice
from passkit.runtime.cuda.driver import DriverError
from passkit.runtime.cuda.libraries import (
    CUBLASLT,
    UnsupportedError,
    call_library,
    library_or_error,
    load_library,
)
from passkit.target import MIB
from passkit.values.dtype import DType


class CudaDataType(IntEnum):
    """cudaDataType_t."""

    FLOAT32 = 0
    FLOAT64 = 1
    FLOAT16 = 2
    BFLOAT16 = 14


class ComputeType(IntEnum):
    """cublasComputeType_t."""

    FLOAT32 = 68
    FLOAT64 = 70


class MatmulAttribute(IntEnum):
    """cublasLtMatmulDescAttributes_t."""

    TRANSPOSE_A = 3
    TRANSPOSE_B = 4
    EPILOGUE = 7
    BIAS_POINTER = 8


class LayoutAttribute(IntEnum):
    """cublasLtMatrixLayoutAttribute_t."""

    BATCH_COUNT = 5
    BATCH_STRIDE = 6


class PreferenceAttribute(IntEnum):
    """cublasLtMatmulPreferenceAttributes_t."""

    WORKSPACE = 1
    REDUCTIONS = 3
    ALIGNMENT_A = 5
    ALIGNMENT_B = 6
    ALIGNMENT_C = 7
    ALIGNMENT_D = 8


class LtEpilogue(IntEnum):
    """cublasLtEpilogue_t: what is done to a product. A bias has an element for each column."""

    NONE = 1
    BIAS = 4


ALIGNMENT_ATTRIBUTES = (
    PreferenceAttribute.ALIGNMENT_A,
    PreferenceAttribute.ALIGNMENT_B,
    PreferenceAttribute.ALIGNMENT_C,
    PreferenceAttribute.ALIGNMENT_D,
)
DATA_TYPES = {data_type.name.lower(): data_type for data_type in CudaDataType}
REDUCTIONS = 2
"""CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE: partial sums are added in the compute type, never as
16-bit results."""
ALIGNMENT = 16
"""Bytes: operands at such addresses have faster algorithms."""


class LtAlgorithm(ctypes.Structure):
    """cublasLtMatmulAlgo_t."""

    _fields_ = (("data", c_uint64 * 8),)


class LtHeuristicResult(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", LtAlgorithm),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    )


@frozen
class MatmulShape:
    """A batch of products of one shape, (m, k) x (k, n).

    Attributes:
        dtype: The type of an element.
        m: Rows of the result.
        n: Columns of the result.
        k: Length of the sums.
        transpose_a: Whether the left operand is stored as (k, m).
        transpose_b: Whether the right operand is stored as (n, k).
        batch: The number of products.
        strides: Elements from one matrix of the batch to the next, of a, b and the result.
        epilogue: What the library does to the result.
        accumulates: Whether the products are added to the old value of the result.
    """

    dtype: DType
    m: int
    n: int
    k: int
    transpose_a: bool
    transpose_b: bool
    batch: int = 1
    strides: tuple[int, int, int] = (0, 0, 0)
    epilogue: LtEpilogue = LtEpilogue.NONE
    accumulates: bool = False


class CublasLt:
    """The library on a device, whose context must be current in all methods.

    Args:
        major: The device's major compute capability: from 9 on, products may use 32 MiB of
            workspace, before that 4 MiB.

    Raises:
        UnsupportedError: where the library is not installed.
        DriverError: where it does not start.
    """

    def __init__(self, major: int) -> None:
        self.dll = load_library(CUBLASLT)
        self.handle = c_void_p()
        self.max_workspace = (32 if major >= 9 else 4) * MIB
        self("cublasLtCreate", byref(self.handle))

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call the function ``name`` of the library. Raises: DriverError where it fails."""
        call_library(self.dll, name, *arguments)

    def matmul(self, shape: MatmulShape, alignment: int) -> LtMatmul:
        """Return a product of matrices of a shape, with the algorithm that the library prefers.

        Args:
            shape: The shape.
            alignment: Bytes that divide all addresses.

        Raises:
            UnsupportedError: where the library has no algorithm for the shape.
            DriverError: where the library fails otherwise.
        """
        matmul = LtMatmul(self, shape)
        preference = c_void_p()
        self("cublasLtMatmulPreferenceCreate", byref(preference))
        try:
            attributes: dict[PreferenceAttribute, Any] = {
                key: c_uint32(alignment) for key in ALIGNMENT_ATTRIBUTES
            }
            attributes[PreferenceAttribute.WORKSPACE] = c_uint64(self.max_workspace)
            attributes[PreferenceAttribute.REDUCTIONS] = c_uint32(REDUCTIONS)
            for key, value in attributes.items():
                set_attribute(self, "cublasLtMatmulPreferenceSetAttribute", preference, key, value)
            count = c_int(0)
            try:
                self(
                    "cublasLtMatmulAlgoGetHeuristic",
                    self.handle,
                    matmul.description,
                    *matmul.layouts,
                    matmul.layouts[2],
                    preference,
                    c_int(1),
                    byref(matmul.heuristic),
                    byref(count),
                )
            except DriverError as error:
                raise UnsupportedError(f"cuBLASLt has no product for {shape}: {error}") from error
        finally:
            self("cublasLtMatmulPreferenceDestroy", preference)
        if count.value < 1 or matmul.heuristic.state:
            raise UnsupportedError(f"cuBLASLt has no product for {shape}")
        return matmul


def set_attribute(
    library: CublasLt, function: str, target: c_void_p, key: IntEnum, value: Any
) -> None:
    """Set an attribute of a descriptor, layout or preference.

    Args:
        library: the library.
        function: the name of its function that sets attributes of such objects.
        target: the descriptor, layout or preference, which is changed.
        key: the attribute.
        value: its value, of the C type that the library documents.

    Raises: DriverError where the library refuses the value.
    """
    library(function, target, c_int(key), byref(value), c_size_t(ctypes.sizeof(value)))


class LtMatmul:
    """The descriptors of products of one shape, destroyed when nothing refers to it.

    Args:
        library: The library.
        shape: The shape.

    Attributes:
        heuristic: The algorithm and its workspace, which `CublasLt.matmul` fills in.
        description: The library's descriptor of the product.
        layouts: Those of the library's first operand, which is our right one, of its second one
            and of the result.
    """

    def __init__(self, library: CublasLt, shape: MatmulShape) -> None:
        self.library = library
        self.shape = shape
        self.heuristic = LtHeuristicResult()
        double = shape.dtype.name == "float64"
        scalar = c_double if double else c_float
        self.alpha = scalar(1)
        self.beta = scalar(shape.accumulates)
        data_type = DATA_TYPES[shape.dtype.name]
        compute = ComputeType.FLOAT64 if double else ComputeType.FLOAT32
        scale = CudaDataType.FLOAT64 if double else CudaDataType.FLOAT32
        self.description = c_void_p()
        library("cublasLtMatmulDescCreate", byref(self.description), c_int(compute), c_int(scale))
        self.layouts: list[c_void_p] = []
        finalize(self, _destroy, library.dll, self.description, self.layouts).atexit = False
        self.set(MatmulAttribute.TRANSPOSE_A, c_int(shape.transpose_b))
        self.set(MatmulAttribute.TRANSPOSE_B, c_int(shape.transpose_a))
        self.set(MatmulAttribute.EPILOGUE, c_int(shape.epilogue))
        m, n, k = shape.m, shape.n, shape.k
        stride_a, stride_b, stride_c = shape.strides
        self._add_layout(data_type, *((k, n) if shape.transpose_b else (n, k)), stride_b)
        self._add_layout(data_type, *((m, k) if shape.transpose_a else (k, m)), stride_a)
        self._add_layout(data_type, n, m, stride_c)

    @property
    def workspace(self) -> int:
        """Bytes of workspace that a call needs."""
        return int(self.heuristic.workspace)

    def set(self, key: MatmulAttribute, value: Any) -> None:
        """Set the attribute ``key`` of the product to ``value``, of the documented C type.

        Raises: DriverError where the library refuses it.
        """
        set_attribute(self.library, "cublasLtMatmulDescSetAttribute", self.description, key, value)

    def _add_layout(self, data_type: CudaDataType, rows: int, columns: int, stride: int) -> None:
        """Add the layout of a batch of matrices of ``rows`` x ``columns``, stored column by column.

        ``data_type`` is that of an element, ``stride`` the distance between matrices in elements; 0
        repeats one matrix. It is appended to ``layouts``. Raises: DriverError where the library
        refuses it.
        """
        library, layout = self.library, c_void_p()
        library(
            "cublasLtMatrixLayoutCreate",
            byref(layout),
            c_int(data_type),
            c_uint64(rows),
            c_uint64(columns),
            c_int64(rows),
        )
        self.layouts.append(layout)
        setter = "cublasLtMatrixLayoutSetAttribute"
        set_attribute(library, setter, layout, LayoutAttribute.BATCH_COUNT, c_int(self.shape.batch))
        set_attribute(library, setter, layout, LayoutAttribute.BATCH_STRIDE, c_int64(stride))

    def enqueue(self, a: int, b: int, c: int, workspace: int, stream: int, bias: int = 0) -> None:
        """Enqueue c = a x b, or c += a x b where the shape accumulates.

        Args:
            a: The address of the left operand.
            b: The address of the right operand.
            c: The address of the result.
            workspace: The address of the workspace, 0 where none is needed.
            stream: The handle of the stream.
            bias: The address of the bias, with `LtEpilogue.BIAS`; 0 otherwise.

        Raises:
            DriverError: where the library fails.
        """
        if bias:
            self.set(MatmulAttribute.BIAS_POINTER, c_void_p(bias))
        first, second, result = self.layouts
        self.library(
            "cublasLtMatmul",
            self.library.handle,
            self.description,
            byref(self.alpha),
            c_void_p(b),
            first,
            c_void_p(a),
            second,
            byref(self.beta),
            c_void_p(c),
            result,
            c_void_p(c),
            result,
            byref(self.heuristic.algorithm),
            c_void_p(workspace),
            c_size_t(self.workspace),
            c_void_p(stream),
        )


def _destroy(dll: Any, description: c_void_p, layouts: Sequence[c_void_p]) -> None:
    """Destroy the layouts and the descriptor of a product; failures are ignored.

    ``dll`` is the library as a `ctypes.CDLL`.
    """
    for layout in layouts:
        dll.cublasLtMatrixLayoutDestroy(layout)
    dll.cublasLtMatmulDescDestroy(description)


@cache
def cublaslt(device: CudaDevice) -> CublasLt | UnsupportedError:
    """Return the library on a device, or the error that says why it is not available.

    The device's context must be current. The error is returned, not raised, and both are remembered
    for each device.
    """
    return library_or_error(lambda: CublasLt(device.properties.capability[0]))
