"""Products of matrices by cuBLASLt, in the stream of everything else.

Source: cuBLAS documentation, cuBLASLt; its matrices lie by columns. A product by rows is that of
the transposed operands the other way round: (n, k) x (k, m), whose columns are our rows. float32 is
multiplied as float32, not as TF32; 16-bit floats are summed in float32, also between blocks of k.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_double, c_float, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from enum import IntEnum
from typing import Any
from weakref import finalize

from attrs import frozen

from passkit.plan.target import MIB
from passkit.runtime.cuda.driver import DriverError
from passkit.runtime.cuda.shared import CUBLASLT, MissingError, asked, opened
from passkit.values.dtype import DType


class Kind(IntEnum):
    """cudaDataType_t."""

    FLOAT32 = 0
    FLOAT64 = 1
    FLOAT16 = 2
    BFLOAT16 = 14


class Compute(IntEnum):
    """cublasComputeType_t."""

    FLOAT32 = 68
    FLOAT64 = 70


class Describe(IntEnum):
    """cublasLtMatmulDescAttributes_t."""

    TRANSPOSE_A = 3
    TRANSPOSE_B = 4
    EPILOGUE = 7
    BIAS_POINTER = 8


class Layout(IntEnum):
    """cublasLtMatrixLayoutAttribute_t."""

    BATCH_COUNT = 5
    BATCH_STRIDE = 6


class Prefer(IntEnum):
    """cublasLtMatmulPreferenceAttributes_t."""

    WORKSPACE = 1
    REDUCTIONS = 3
    ALIGNMENT_A = 5
    ALIGNMENT_B = 6
    ALIGNMENT_C = 7
    ALIGNMENT_D = 8


class Epilogue(IntEnum):
    """cublasLtEpilogue_t: what is done to a product. A bias has an element for each column."""

    NONE = 1
    BIAS = 4


SIDES = (Prefer.ALIGNMENT_A, Prefer.ALIGNMENT_B, Prefer.ALIGNMENT_C, Prefer.ALIGNMENT_D)
KINDS = {k.name.lower(): k for k in Kind}
REDUCTIONS = 2
"""Parts of a sum are joined as they are computed, never as 16-bit results are stored."""
ALIGNED = 16
"""Bytes: where an operand lies on such an address, faster ways are there."""


class Algorithm(ctypes.Structure):
    """cublasLtMatmulAlgo_t."""

    _fields_ = (("data", c_uint64 * 8),)


class Found(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", Algorithm), ("workspace", c_size_t), ("state", c_int), ("waves", c_float),
        ("reserved", c_int * 4),
    )  # fmt: skip


@frozen
class Numbers:
    """Products of one shape: ``batch`` times (m, k) x (k, n), with steps from one to the next.

    Units of ``steps``, of a, b and c: elements. What ``adds`` is added to what the result holds.
    """

    dtype: DType
    m: int
    n: int
    k: int
    transpose_a: bool
    transpose_b: bool
    batch: int = 1
    steps: tuple[int, int, int] = (0, 0, 0)
    epilogue: Epilogue = Epilogue.NONE
    adds: bool = False


class CublasLt:
    """The library on a device. Its context must be this thread's in all methods."""

    def __init__(self, major: int) -> None:
        self.dll = opened(CUBLASLT)
        self.handle = c_void_p()
        self.most = (32 if major >= 9 else 4) * MIB
        self("cublasLtCreate", byref(self.handle))

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call a function. Raises: DriverError."""
        asked(self.dll, name, *arguments)

    def prepared(self, x: Numbers, alignment: int) -> Multiply:
        """What multiplies matrices of a shape at addresses of an alignment.

        Raises: MissingError where the library has no way to do it.
        """
        made = Multiply(self, x)
        preference = c_void_p()
        self("cublasLtMatmulPreferenceCreate", byref(preference))
        try:
            wanted: dict[Prefer, Any] = {s: c_uint32(alignment) for s in SIDES}
            wanted[Prefer.WORKSPACE] = c_uint64(self.most)
            wanted[Prefer.REDUCTIONS] = c_uint32(REDUCTIONS)
            for key, value in wanted.items():
                self("cublasLtMatmulPreferenceSetAttribute", preference, c_int(key), byref(value),
                     c_size_t(ctypes.sizeof(value)))  # fmt: skip
            count = c_int(0)
            try:
                self(
                    "cublasLtMatmulAlgoGetHeuristic", self.handle, made.description, *made.layouts,
                    made.layouts[2], preference, c_int(1), byref(made.found), byref(count),
                )  # fmt: skip
            except DriverError as error:
                raise MissingError(f"cuBLASLt has no product for {x}: {error}") from error
        finally:
            self("cublasLtMatmulPreferenceDestroy", preference)
        if count.value < 1 or made.found.state:
            raise MissingError(f"cuBLASLt has no product for {x}")
        return made


class Multiply:
    """Products of one shape. ``workspace`` is how many bytes it needs besides."""

    def __init__(self, library: CublasLt, x: Numbers) -> None:
        self.library, self.numbers = library, x
        self.found = Found()
        double = x.dtype.name == "float64"
        self.one, self.old = (c_double(v) if double else c_float(v) for v in (1, x.adds))
        kind = KINDS[x.dtype.name]
        compute, scale = (Compute.FLOAT64, Kind.FLOAT64) if double else (
            Compute.FLOAT32, Kind.FLOAT32)  # fmt: skip
        self.description = c_void_p()
        library("cublasLtMatmulDescCreate", byref(self.description), c_int(compute), c_int(scale))
        self.layouts: list[c_void_p] = []
        finalize(self, _destroyed, library.dll, self.description, self.layouts).atexit = False
        self._describe(Describe.TRANSPOSE_A, c_int(x.transpose_b))
        self._describe(Describe.TRANSPOSE_B, c_int(x.transpose_a))
        self._describe(Describe.EPILOGUE, c_int(x.epilogue))
        a, b, c = x.steps
        self._layout(kind, *((x.k, x.n) if x.transpose_b else (x.n, x.k)), b)
        self._layout(kind, *((x.m, x.k) if x.transpose_a else (x.k, x.m)), a)
        self._layout(kind, x.n, x.m, c)

    @property
    def workspace(self) -> int:
        """Bytes of memory that a call needs besides its operands."""
        return int(self.found.workspace)

    def _describe(self, key: Describe, value: Any) -> None:
        self.library("cublasLtMatmulDescSetAttribute", self.description, c_int(key), byref(value),
                     c_size_t(ctypes.sizeof(value)))  # fmt: skip

    def _layout(self, kind: Kind, rows: int, columns: int, step: int) -> None:
        """A matrix whose columns, of ``rows`` elements each, follow each other."""
        made = c_void_p()
        library = self.library
        library("cublasLtMatrixLayoutCreate", byref(made), c_int(kind), c_uint64(rows),
                c_uint64(columns), c_int64(rows))  # fmt: skip
        self.layouts.append(made)
        for key, value in ((Layout.BATCH_COUNT, c_int(self.numbers.batch)),
                           (Layout.BATCH_STRIDE, c_int64(step))):  # fmt: skip
            library("cublasLtMatrixLayoutSetAttribute", made, c_int(key), byref(value),
                    c_size_t(ctypes.sizeof(value)))  # fmt: skip

    def enqueue(
        self, a: int, b: int, c: int, workspace: int, stream: int, bias: int = 0
    ) -> None:
        """Let a stream multiply what lies at addresses. Raises: DriverError."""
        if bias:
            self._describe(Describe.BIAS_POINTER, c_void_p(bias))
        first, second, result = self.layouts
        self.library(
            "cublasLtMatmul", self.library.handle, self.description, byref(self.one),
            c_void_p(b), first, c_void_p(a), second, byref(self.old), c_void_p(c), result,
            c_void_p(c), result, byref(self.found.algorithm), c_void_p(workspace),
            c_size_t(self.workspace), c_void_p(stream),
        )  # fmt: skip


def _destroyed(dll: Any, description: c_void_p, layouts: Sequence[c_void_p]) -> None:
    """Give back what describes products."""
    destroy: Callable[..., Any] = dll.cublasLtMatrixLayoutDestroy
    for layout in layouts:
        destroy(layout)
    dll.cublasLtMatmulDescDestroy(description)
