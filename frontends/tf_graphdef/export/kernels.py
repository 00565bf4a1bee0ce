"""For which element types TensorFlow has CPU kernels of the operators that are written.

Source: its kernel registry, release 2.21, as its tests run them. Where one is missing the operator
is computed in a wider type, between casts.
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

_OPS = {
    "Abs": (*_INTS, *_FLOATS),
    "Neg Sign Pow": _SIGNED,
    "AddV2 Sub Mul Square Sum Mean Prod Cumsum Cumprod BiasAdd": _NUMBERS,
    "FloorDiv FloorMod TruncateDiv Maximum Minimum Less LessEqual Greater GreaterEqual": _REAL,
    "Max Min TopKV2 LowerBound UpperBound ResizeBilinear": _REAL,
    "Relu Relu6 LeakyRelu": _REAL,
    "TensorScatterMin TensorScatterMax SpaceToBatchND BatchToSpaceND": _REAL,
    "TensorScatterAdd TensorScatterSub": _NUMBERS,
    "BitwiseAnd BitwiseOr BitwiseXor Invert LeftShift RightShift": (*_INTS, *_UNSIGNED),
    "PopulationCount": (*_INTS, *_UNSIGNED),
    "TruncateMod": ("int32", "int64", *_WIDE),
    "SquaredDifference": ("int32", "int64", *_FLOATS, *_COMPLEX),
    "RealDiv Reciprocal Sqrt Rsqrt Exp Expm1 Log Log1p Sin Cos Tan Sinh Cosh": (
        *_FLOATS,
        *_COMPLEX,
    ),
    "Tanh Asin Acos Atan Asinh Acosh Atanh Sigmoid DivNoNan MulNoNan": (*_FLOATS, *_COMPLEX),
    "Xdivy Xlogy Xlog1py": (*_FLOATS, *_COMPLEX),
    "Erf Erfc Elu Selu Softplus Softsign Floor Ceil IsNan IsInf IsFinite Atan2": _FLOATS,
    "CumulativeLogsumexp Softmax LogSoftmax Conv3D DepthwiseConv2dNative AvgPool": _FLOATS,
    "Conv2D": _FLOATS,
    "Erfinv Ndtri Rint Polygamma Zeta NextAfter Igamma Igammac": _WIDE,
    "Betainc": ("float64",),  # in float32 it is off by some 1e-5
    "BesselI0 BesselI0e BesselI1 BesselI1e": _WIDE,
    "Lgamma Digamma": ("float16", *_WIDE),
    "MatMul BatchMatMulV2": ("int32", "int64", *_FLOATS, *_COMPLEX),
    "Tile": ("bool", *_INTS, "uint8", *_FLOATS, *_COMPLEX),
    "MaxPool ResizeNearestNeighbor": (*_INTS, "uint8", "uint16", *_FLOATS),
    "Einsum": ("int32", "int64", *_FLOATS, *_COMPLEX),
    "Cholesky MatrixDeterminant LogMatrixDeterminant MatrixSolve": (*_WIDE, *_COMPLEX),
    "MatrixTriangularSolve Svd SelfAdjointEigV2 MatrixExponential": (*_WIDE, *_COMPLEX),
    "MatrixInverse Qr": (*_WIDE, *_COMPLEX),
    "FusedBatchNormV3": ("float16", "bfloat16", "float32"),
    "Range": ("int32", "int64", *_WIDE),
    "ArgMax ArgMin": ("bool", *_REAL),
    "Conj ComplexAbs Angle Real Imag": _COMPLEX,
    "Complex": _WIDE,
}
_TYPES = {op: types for ops, types in _OPS.items() for op in ops.split()}

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
"""Types that hold all values of a type; integers cut off again have wrapped as they should."""

_WRAPPING = ("MatMul", "BatchMatMulV2", "Einsum", "SquaredDifference", "Tile")
"""Operators of which uint64 may be computed in int64: the bits are the same."""

UNTYPED = ("LogicalAnd", "LogicalOr", "LogicalNot", "Any", "All")
"""Operators of bools, which have no attribute for the element type."""

TRUTHS = (
    *("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"),
    *("IsNan", "IsInf", "IsFinite"),
)
"""Other operators whose result is a bool, whatever they are given."""


def computed_as(op: str, dtype: DType) -> DType | None:
    """The type in which TensorFlow computes ``op`` of ``dtype``; None where there is none."""
    types = _TYPES.get(op, _ANY)
    for name in (dtype.name, *_WIDER.get(dtype.name, ())):
        if name in types:
            return dtype_of(name)
    if dtype.name == "uint64" and op in _WRAPPING:
        return dtype_of("int64")
    return None
