"""Operators on complex numbers, which run in NumPy only: parts, and numbers from two parts.

Complex numbers are computed in NumPy only. Real inputs run in kernels: their imaginary part is 0,
and they are their own conjugate.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from passkit import ast
from passkit.ast import Expr
from passkit.errors import DTypeError
from passkit.graph import attribute_calls
from passkit.graph.infer import same_dtype_rule
from passkit.graph.node import Node
from passkit.graph.op import OpPattern, register_op
from passkit.ops.elementwise_definition import elementwise
from passkit.ops.helpers import check_kinds, real_dtype
from passkit.values.dtype import DType, dtype_of


def _infer_part_type(node: Node, dtype: DType) -> DType:
    """Infer the dtype of the real or imaginary part: float for complex, else ``dtype`` itself.

    It is float32 for complex64, float64 for complex128.

    Raises: DTypeError, naming ``node``, for bools.
    """
    check_kinds(node, "iufc", dtype)
    return real_dtype(dtype)


def _infer_angle_type(node: Node, dtype: DType) -> DType:
    """Infer the dtype of an angle: float32 for complex64, float64 for complex128, floats' own.

    Raises: DTypeError, naming ``node``, if ``dtype`` is of integers or bools.
    """
    check_kinds(node, "fc", dtype)
    return real_dtype(dtype)


def _infer_complex_type(node: Node, *dtypes: DType) -> DType:
    """Infer the complex dtype of two parts: complex64 of float32, complex128 of float64.

    Errors name ``node``.

    Raises:
        DTypeError: If the parts differ, or are neither float32 nor float64; a GraphError for no
            parts.
    """
    part = same_dtype_rule(node, *dtypes)
    if part.name not in ("float32", "float64"):
        raise DTypeError(
            f"{node.where} needs float32 or float64 as parts, got {part}; pk.ops.cast(x, 'float32')"
        )
    return dtype_of(f"complex{16 * part.nbytes}")


def _cast_result(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an FCompute that casts the result of ``function(*arrays)`` to the inferred dtype.

    The FCompute returns a new array.
    """

    def compute(node: Node, *x: Any) -> Any:
        """Compute with NumPy, and cast the result to the dtype that FInferType of ``node`` gives.

        ``x`` are the arrays of the inputs.

        Raises: DTypeError if FInferType refuses their dtypes.
        """
        (result_dtype,) = attribute_calls.call_infer_type(node, [dtype_of(v.dtype) for v in x])
        return np.asarray(function(*x)).astype(result_dtype.numpy)

    return compute


def _complex_of_parts(real: Any, imag: Any) -> Any:
    """Return the complex array of two arrays of parts, ``real`` and ``imag``, which are broadcast.

    It is a new array, complex64 where ``real`` is float32, complex128 where it is float64. The
    parts are stored one by one: a product with the imaginary unit would turn infinities to NaN.
    """
    real, imag = np.broadcast_arrays(real, imag)
    out = np.empty(real.shape, np.result_type(real, np.complex64))
    out.real, out.imag = real, imag
    return out


def _angle(x: Expr) -> Expr:
    """Return the angle of a real number: pi where its sign bit is set, as of -0, else 0.

    That of NaN is NaN.
    """
    negative = ast.copysign(ast.const(1, x.dtype), x) < 0
    return ast.where(ast.equal(x, x), ast.where(negative, ast.const(pi, x.dtype), 0), x)


elementwise(
    name="real",
    infer_type=_infer_part_type,
    code=lambda x: x,
    compute=_cast_result(np.real),
    doc="the real part of x",
)
elementwise(
    name="imag",
    infer_type=_infer_part_type,
    code=lambda x: ast.const(0, x.dtype),
    compute=_cast_result(np.imag),
    doc="the imaginary part of x",
)
elementwise(
    name="conj",
    aliases="conjugate",
    kinds="iufc",
    code=lambda x: x,
    compute=_cast_result(np.conj),
    doc="the complex conjugate: x with the opposite imaginary part",
)
elementwise(
    name="angle",
    infer_type=_infer_angle_type,
    code=_angle,
    compute=_cast_result(np.angle),
    doc="the angle of x in the complex plane, in radians; of a real number 0 or pi",
)

complex_ = register_op(
    "complex", num_inputs=2, doc="the complex numbers of real parts x and imaginary parts y"
).include("elementwise")
complex_.set_attr("FCompute", _cast_result(_complex_of_parts))
complex_.set_attr("FInferType", _infer_complex_type)
complex_.set_attr("TOpPattern", OpPattern.BROADCAST)
complex_.set_attr("TOpCost", "expensive")
