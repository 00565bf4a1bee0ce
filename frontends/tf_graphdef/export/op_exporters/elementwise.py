"""Exporters of elementwise operators."""

from __future__ import annotations

import numpy as np

from passkit.frontends.tf_graphdef.export.expressions import cast_saturating, divide_integers
from passkit.frontends.tf_graphdef.export.functions import FUNCTIONS, absolute
from passkit.frontends.tf_graphdef.export.graphdef_writer import NodeOutput
from passkit.frontends.tf_graphdef.export.registry import (
    ExportCall,
    ExportResult,
    op_exporter,
    register_renamed,
)
from passkit.frontends.tf_graphdef.op_importers.elementwise import ONE_INPUT, TWO_INPUTS
from passkit.values.dtype import bool_, dtype_of

_OLD = ("Add", "Inv", "Mod", "Round")
"""TensorFlow names that newer ones replace."""

_EXPANDED = (
    "maximum",
    "minimum",
    "pow",
    "fmod",
    "trunc_div",
    "left_shift",
    "right_shift",
    "mul_no_nan",
    "xdivy",
    "xlogy",
    "xlog1py",
    "erf",
    "nextafter",
)
"""Operators that TensorFlow's equal only for some element types or values."""

register_renamed(
    {
        ours: theirs
        for theirs, ours in {**ONE_INPUT, **TWO_INPUTS}.items()
        if theirs not in _OLD and ours not in _EXPANDED
    }
)
# The exporters below replace these.
register_renamed({"stop_gradient": "StopGradient", "identity": "Identity"})


@op_exporter("where")
def _where(call: ExportCall, condition: NodeOutput, x: NodeOutput, y: NodeOutput) -> ExportResult:
    """Write `where` as SelectV2: ``x`` where the bool tensor ``condition`` is true, else ``y``.

    ``call`` is the node to write.
    """
    return call.result("SelectV2", condition, x, y, T=x.dtype, out=x.dtype)


@op_exporter("abs")
def _abs(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `abs` as Abs, ComplexAbs for complex numbers, or Identity for unsigned integers.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    if x.dtype.kind == "c":
        return call.result("ComplexAbs", x, out=call.dtype, Tout=call.dtype)
    return absolute(call.scope, x, is_result=True)


@op_exporter("cast")
def _cast(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `cast` to the result's dtype by `cast_saturating`; equal dtypes give a Cast, too.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    return cast_saturating(call.scope, x, call.dtype, is_result=True)


@op_exporter("floor_div", "mod")
def _floor_division(call: ExportCall, x: NodeOutput, y: NodeOutput) -> ExportResult:
    """Write `floor_div` and `mod` of integers ``x`` by ``y``; None for other dtypes.

    TensorFlow rounds quotients of floats. A divisor 0, for which it fails, gives 0. ``call`` is the
    node to write.
    """
    if not x.dtype.is_integer:
        return None
    op = "FloorDiv" if call.name == "floor_div" else "FloorMod"
    return divide_integers(call.scope, op, x, y, is_result=True)


@op_exporter("bitwise_and", "bitwise_or", "bitwise_xor")
def _bits(call: ExportCall, x: NodeOutput, y: NodeOutput) -> ExportResult:
    """Write `bitwise_and`, `bitwise_or` and `bitwise_xor` of integers x and y; None for bools.

    ``call`` is the node to write.
    """
    name = call.name
    if x.dtype is not bool_:
        op = {"bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor"}
        return call.result(op[name], x, y)
    return None


@op_exporter("bitwise_not")
def _inverted(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `bitwise_not` of integers as Invert; None for bools.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    return call.result("Invert", x) if x.dtype is not bool_ else None


@op_exporter("bitcast")
def _bitcast(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `bitcast` as Bitcast to the dtype of the result.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    return call.result("Bitcast", x, out=call.dtype, type=call.dtype)


@op_exporter("population_count")
def _count(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `population_count` as PopulationCount, whose uint8 is cast to the result's dtype.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    byte = dtype_of("uint8")
    count = call.op("PopulationCount", x, out=byte)
    return call.scope.cast(count, call.dtype, is_result=True)


@op_exporter("squared_difference")
def _squared_difference(call: ExportCall, x: NodeOutput, y: NodeOutput) -> ExportResult:
    """Write `squared_difference` of ``x`` and ``y`` as SquaredDifference.

    ``call`` is the node to write.
    """
    return call.result("SquaredDifference", x, y)


_OF_FLOATS = {
    "relu": "Relu",
    "relu6": "Relu6",
    "elu": "Elu",
    "selu": "Selu",
    "leaky_relu": "LeakyRelu",
    "softsign": "Softsign",
    "reciprocal": "Reciprocal",
    "div_no_nan": "DivNoNan",
    "isnan": "IsNan",
    "isinf": "IsInf",
    "isfinite": "IsFinite",
}


@op_exporter(*_OF_FLOATS)
def _of_floats(call: ExportCall, *x: NodeOutput) -> ExportResult:
    """Write operators that equal TensorFlow's for floats; None for other dtypes of the first input.

    Also None for float64 with a slope ``alpha`` that float32, TensorFlow's attribute type, does not
    represent exactly, and for `elu` with a slope other than 1. ``call`` is the node to write, and
    ``x`` are the tensors of its inputs.
    """
    name, slope = call.name, call.params.get("alpha", 1.0)
    loses_precision = x[0].dtype.nbytes == 8 and float(np.float32(slope)) != slope
    if not x[0].dtype.is_float or loses_precision or (name == "elu" and slope != 1.0):
        return None
    attrs = {"alpha": float(slope)} if name == "leaky_relu" else {}
    return call.result(_OF_FLOATS[name], *x, **attrs)


@op_exporter("erf", "digamma")
def _function(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `erf` and `digamma` by their writers in `FUNCTIONS`.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    return FUNCTIONS[call.name](call.scope, x, is_result=True)


@op_exporter("neg", "sign")
def _signed(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `neg` and `sign` as Neg and Sign; None for unsigned integers.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    if x.dtype.kind == "u":
        return None
    return call.result("Neg" if call.name == "neg" else "Sign", x)


@op_exporter("floor", "ceil", "rint")
def _rounded(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `floor`, `ceil` and `rint`; other dtypes than floats are passed on by Identity.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    op = {"floor": "Floor", "ceil": "Ceil", "rint": "Rint"}[call.name]
    return call.result(op if x.dtype.is_float else "Identity", x)


@op_exporter("complex")
def _complex(call: ExportCall, real: NodeOutput, imaginary: NodeOutput) -> ExportResult:
    """Write `complex` as Complex of real and imaginary part.

    ``call`` is the node to write.
    """
    return call.result("Complex", real, imaginary, out=call.dtype, Tout=call.dtype)


@op_exporter("real", "imag", "angle", "conj")
def _part(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `real`, `imag`, `angle` and `conj` of complex numbers; None for real ones.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    if x.dtype.kind != "c":
        return None
    op = {"real": "Real", "imag": "Imag", "angle": "Angle", "conj": "Conj"}[call.name]
    attrs = {} if op == "Conj" else {"Tout": call.dtype}
    return call.result(op, x, out=call.dtype, **attrs)
