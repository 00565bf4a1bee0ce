"""Operators that work element by element, under their names in TensorFlow."""

from __future__ import annotations

import numpy as np

from passkit.frontends.tf_graphdef.export.expressions import converted, whole
from passkit.frontends.tf_graphdef.export.functions import FUNCTIONS, magnitude
from passkit.frontends.tf_graphdef.export.table import Call, Result, row, same_inputs
from passkit.frontends.tf_graphdef.export.writer import Tensor
from passkit.frontends.tf_graphdef.op_importers.elementwise import ONE_INPUT, TWO_INPUTS
from passkit.values.dtype import bool_, dtype_of

_OLD = ("Add", "Inv", "Mod", "Round")
"""Names of which TensorFlow has a newer one."""

_SPELLED = (
    *("maximum", "minimum", "pow", "fmod", "trunc_div", "left_shift", "right_shift"),
    *("mul_no_nan", "xdivy", "xlogy", "xlog1py", "erf", "nextafter"),
)
"""Operators that mean the same in TensorFlow for some element types or values only."""

same_inputs(
    {
        ours: theirs
        for theirs, ours in {**ONE_INPUT, **TWO_INPUTS}.items()
        if theirs not in _OLD and ours not in _SPELLED
    }
)
# The rows below win over these.
same_inputs({"stop_gradient": "StopGradient", "identity": "Identity"})


@row("where")
def _where(call: Call, condition: Tensor, x: Tensor, y: Tensor) -> Result:
    return call.result("SelectV2", condition, x, y, T=x.dtype, out=x.dtype)


@row("abs")
def _abs(call: Call, x: Tensor) -> Result:
    if x.dtype.kind == "c":
        return call.result("ComplexAbs", x, out=call.dtype, Tout=call.dtype)
    return magnitude(call.scope, x, last=True)


@row("cast")
def _cast(call: Call, x: Tensor) -> Result:
    return converted(call.scope, x, call.dtype, last=True)


@row("floor_div", "mod")
def _floor_division(call: Call, x: Tensor, y: Tensor) -> Result:
    """Of integers; TensorFlow fails where a divisor is 0, and of floats it rounds the quotient."""
    if not x.dtype.is_integer:
        return None
    op = "FloorDiv" if call.name == "floor_div" else "FloorMod"
    return whole(call.scope, op, x, y, last=True)


@row("bitwise_and", "bitwise_or", "bitwise_xor")
def _bits(call: Call, x: Tensor, y: Tensor) -> Result:
    name = call.name
    if x.dtype is not bool_:
        op = {"bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor"}
        return call.result(op[name], x, y)
    return None


@row("bitwise_not")
def _inverted(call: Call, x: Tensor) -> Result:
    return call.result("Invert", x) if x.dtype is not bool_ else None


@row("bitcast")
def _bitcast(call: Call, x: Tensor) -> Result:
    return call.result("Bitcast", x, out=call.dtype, type=call.dtype)


@row("population_count")
def _count(call: Call, x: Tensor) -> Result:
    """TensorFlow gives a uint8."""
    byte = dtype_of("uint8")
    found = call.op("PopulationCount", x, out=byte)
    return call.scope.cast(found, call.dtype, last=True)


@row("squared_difference")
def _squared_difference(call: Call, x: Tensor, y: Tensor) -> Result:
    return call.result("SquaredDifference", x, y)


_OF_FLOATS = {
    **{"relu": "Relu", "relu6": "Relu6", "elu": "Elu", "selu": "Selu", "leaky_relu": "LeakyRelu"},
    **{"softsign": "Softsign", "reciprocal": "Reciprocal", "div_no_nan": "DivNoNan"},
    **{"isnan": "IsNan", "isinf": "IsInf", "isfinite": "IsFinite"},
}


@row(*_OF_FLOATS)
def _of_floats(call: Call, *x: Tensor) -> Result:
    """Those that mean the same for floats; slopes are float32 numbers in TensorFlow."""
    name, slope = call.name, call.params.get("alpha", 1.0)
    rounded = x[0].dtype.nbytes == 8 and float(np.float32(slope)) != slope
    if not x[0].dtype.is_float or rounded or (name == "elu" and slope != 1.0):
        return None
    more = {"alpha": float(slope)} if name == "leaky_relu" else {}
    return call.result(_OF_FLOATS[name], *x, **more)


@row("erf", "digamma")
def _function(call: Call, x: Tensor) -> Result:
    return FUNCTIONS[call.name](call.scope, x, last=True)


@row("neg", "sign")
def _signed(call: Call, x: Tensor) -> Result:
    if x.dtype.kind == "u":
        return None
    return call.result("Neg" if call.name == "neg" else "Sign", x)


@row("floor", "ceil", "rint")
def _rounded(call: Call, x: Tensor) -> Result:
    """Integers are whole as they are."""
    op = {"floor": "Floor", "ceil": "Ceil", "rint": "Rint"}[call.name]
    return call.result(op if x.dtype.is_float else "Identity", x)


@row("complex")
def _complex(call: Call, real: Tensor, imaginary: Tensor) -> Result:
    return call.result("Complex", real, imaginary, out=call.dtype, Tout=call.dtype)


@row("real", "imag", "angle", "conj")
def _part(call: Call, x: Tensor) -> Result:
    if x.dtype.kind != "c":
        return None
    op = {"real": "Real", "imag": "Imag", "angle": "Angle", "conj": "Conj"}[call.name]
    more = {} if op == "Conj" else {"Tout": call.dtype}
    return call.result(op, x, out=call.dtype, **more)
