"""Element types for which TensorFlow has CPU kernels of the operators that are written.

Source: TensorFlow 2.21's kernel registry, as its tests run them. Where a kernel is missing, the
operator is computed in a wider type, between casts.
"""

from __future__ import annotations

from passkit.values.dtype import DType, dtype_of

_INTS = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_WIDE = ("float32", "float64")
_FLOATS = ("float16", "bfloat16", *_WIDE)
_COMPLEX = ("complex64", "complex128")
_SIGNED = (*_INTS, *_FLOATS, *_COMPLEX)
_REAL = (*_INTS, *_UNSIGNED, *_FLOATS)
_NUMBERS = (*_REAL, *_COMPLEX)
_ANY = ("bool", *_NUMBERS)

_KERNEL_TYPES = {
    "Abs": (*_INTS, *_FLOATS),
    "Acos": (*_FLOATS, *_COMPLEX),
    "Acosh": (*_FLOATS, *_COMPLEX),
    "AddV2": _NUMBERS,
    "Angle": _COMPLEX,
    "ArgMax": ("bool", *_REAL),
    "ArgMin": ("bool", *_REAL),
    "Asin": (*_FLOATS, *_COMPLEX),
    "Asinh": (*_FLOATS, *_COMPLEX),
    "Atan": (*_FLOATS, *_COMPLEX),
    "Atan2": _FLOATS,
    "Atanh": (*_FLOATS, *_COMPLEX),
    "AvgPool": _FLOATS,
    "BatchMatMulV2": ("int32", "int64", *_FLOATS, *_COMPLEX),
    "BatchToSpaceND": _REAL,
    "BesselI0": _WIDE,
    "BesselI0e": _WIDE,
    "BesselI1": _WIDE,
    "BesselI1e": _WIDE,
    "Betainc": ("float64",),  # in float32 it is off by some 1e-5
    "BiasAdd": _NUMBERS,
    "BitwiseAnd": (*_INTS, *_UNSIGNED),
    "BitwiseOr": (*_INTS, *_UNSIGNED),
    "BitwiseXor": (*_INTS, *_UNSIGNED),
    "Ceil": _FLOATS,
    "Cholesky": (*_WIDE, *_COMPLEX),
    "Complex": _WIDE,
    "ComplexAbs": _COMPLEX,
    "Conj": _COMPLEX,
    "Conv2D": _FLOATS,
    "Conv3D": _FLOATS,
    "Cos": (*_FLOATS, *_COMPLEX),
    "Cosh": (*_FLOATS, *_COMPLEX),
    "Cumprod": _NUMBERS,
    "Cumsum": _NUMBERS,
    "CumulativeLogsumexp": _FLOATS,
    "DepthwiseConv2dNative": _FLOATS,
    "Digamma": ("float16", *_WIDE),
    "DivNoNan": (*_FLOATS, *_COMPLEX),
    "Einsum": ("int32", "int64", *_FLOATS, *_COMPLEX),
    "Elu": _FLOATS,
    "Erf": _FLOATS,
    "Erfc": _FLOATS,
    "Erfinv": _WIDE,
    "Exp": (*_FLOATS, *_COMPLEX),
    "Expm1": (*_FLOATS, *_COMPLEX),
    "Floor": _FLOATS,
    "FloorDiv": _REAL,
    "FloorMod": _REAL,
    "FusedBatchNormV3": ("float16", "bfloat16", "float32"),
    "Greater": _REAL,
    "GreaterEqual": _REAL,
    "Igamma": _WIDE,
    "Igammac": _WIDE,
    "Imag": _COMPLEX,
    "Invert": (*_INTS, *_UNSIGNED),
    "IsFinite": _FLOATS,
    "IsInf": _FLOATS,
    "IsNan": _FLOATS,
    "LeakyRelu": _REAL,
    "LeftShift": (*_INTS, *_UNSIGNED),
    "Less": _REAL,
    "LessEqual": _REAL,
    "Lgamma": ("float16", *_WIDE),
    "Log": (*_FLOATS, *_COMPLEX),
    "Log1p": (*_FLOATS, *_COMPLEX),
    "LogMatrixDeterminant": (*_WIDE, *_COMPLEX),
    "LogSoftmax": _FLOATS,
    "LowerBound": _REAL,
    "MatMul": ("int32", "int64", *_FLOATS, *_COMPLEX),
    "MatrixDeterminant": (*_WIDE, *_COMPLEX),
    "MatrixExponential": (*_WIDE, *_COMPLEX),
    "MatrixInverse": (*_WIDE, *_COMPLEX),
    "MatrixSolve": (*_WIDE, *_COMPLEX),
    "MatrixTriangularSolve": (*_WIDE, *_COMPLEX),
    "Max": _REAL,
    "MaxPool": (*_INTS, "uint8", "uint16", *_FLOATS),
    "Maximum": _REAL,
    "Mean": _NUMBERS,
    "Min": _REAL,
    "Minimum": _REAL,
    "Mul": _NUMBERS,
    "MulNoNan": (*_FLOATS, *_COMPLEX),
    "Ndtri": _WIDE,
    "Neg": _SIGNED,
    "NextAfter": _WIDE,
    "Polygamma": _WIDE,
    "PopulationCount": (*_INTS, *_UNSIGNED),
    "Pow": _SIGNED,
    "Prod": _NUMBERS,
    "Qr": (*_WIDE, *_COMPLEX),
    "Range": ("int32", "int64", *_WIDE),
    "Real": _COMPLEX,
    "RealDiv": (*_FLOATS, *_COMPLEX),
    "Reciprocal": (*_FLOATS, *_COMPLEX),
    "Relu": _REAL,
    "Relu6": _REAL,
    "ResizeBilinear": _REAL,
    "ResizeNearestNeighbor": (*_INTS, "uint8", "uint16", *_FLOATS),
    "RightShift": (*_INTS, *_UNSIGNED),
    "Rint": _WIDE,
    "Rsqrt": (*_FLOATS, *_COMPLEX),
    "SelfAdjointEigV2": (*_WIDE, *_COMPLEX),
    "Selu": _FLOATS,
    "Sigmoid": (*_FLOATS, *_COMPLEX),
    "Sign": _SIGNED,
    "Sin": (*_FLOATS, *_COMPLEX),
    "Sinh": (*_FLOATS, *_COMPLEX),
    "Softmax": _FLOATS,
    "Softplus": _FLOATS,
    "Softsign": _FLOATS,
    "SpaceToBatchND": _REAL,
    "Sqrt": (*_FLOATS, *_COMPLEX),
    "Square": _NUMBERS,
    "SquaredDifference": ("int32", "int64", *_FLOATS, *_COMPLEX),
    "Sub": _NUMBERS,
    "Sum": _NUMBERS,
    "Svd": (*_WIDE, *_COMPLEX),
    "Tan": (*_FLOATS, *_COMPLEX),
    "Tanh": (*_FLOATS, *_COMPLEX),
    "TensorScatterAdd": _NUMBERS,
    "TensorScatterMax": _REAL,
    "TensorScatterMin": _REAL,
    "TensorScatterSub": _NUMBERS,
    "Tile": ("bool", *_INTS, "uint8", *_FLOATS, *_COMPLEX),
    "TopKV2": _REAL,
    "TruncateDiv": _REAL,
    "TruncateMod": ("int32", "int64", *_WIDE),
    "UpperBound": _REAL,
    "Xdivy": (*_FLOATS, *_COMPLEX),
    "Xlog1py": (*_FLOATS, *_COMPLEX),
    "Xlogy": (*_FLOATS, *_COMPLEX),
    "Zeta": _WIDE,
}
"""For each operator, the types of its kernels; operators that are not listed have all types."""

_WIDER = {
    "bool": ("uint8", "int32"),
    "uint8": ("int16", "int32", "int64"),
    "uint16": ("int32", "int64"),
    "uint32": ("int64",),
    "int8": ("int16", "int32", "int64"),
    "int16": ("int32", "int64"),
    "int32": ("int64",),
    "float16": ("float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "float32": ("float64",),
    "complex64": ("complex128",),
}
"""Types that hold all values of a type; integers wrap correctly when they are cast back."""

_WRAPPING = ("MatMul", "BatchMatMulV2", "Einsum", "SquaredDifference", "Tile")
"""Operators for which uint64 may be computed in int64, since the bits are the same."""

UNTYPED = ("LogicalAnd", "LogicalOr", "LogicalNot", "Any", "All")
"""Operators on booleans, which have no attribute for the element type."""

TRUTHS = (
    "Less",
    "LessEqual",
    "Greater",
    "GreaterEqual",
    "Equal",
    "NotEqual",
    "IsNan",
    "IsInf",
    "IsFinite",
)
"""Other operators whose result is boolean for any input type."""


def kernel_dtype(op: str, dtype: DType) -> DType | None:
    """Return the dtype in which TensorFlow computes ``op`` on ``dtype``.

    It is ``dtype`` if there is a kernel, else the narrowest type with a kernel that holds all its
    values, else None. uint64 is int64 where the bits of the result are the same, as in MatMul.
    Operators without an entry in the table have kernels of all types.
    """
    types = _KERNEL_TYPES.get(op, _ANY)
    for name in (dtype.name, *_WIDER.get(dtype.name, ())):
        if name in types:
            return dtype_of(name)
    if dtype.name == "uint64" and op in _WRAPPING:
        return dtype_of("int64")
    return None
