"""Operators that work element by element."""

from __future__ import annotations

import numpy as np

from passkit import ops
from passkit.frontends.tf_graphdef.table import NODE_NBYTES, Result, row, same_inputs
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.node import constant
from passkit.values.dtype import dtype_of

ONE_INPUT = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "BesselI0": "bessel_i0",
    "BesselI0e": "bessel_i0e",
    "BesselI1": "bessel_i1",
    "BesselI1e": "bessel_i1e",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Elu": "elu",
    "Erf": "erf",
    "Erfc": "erfc",
    "Erfinv": "erfinv",
    "Exp": "exp",
    "Expm1": "expm1",
    "Floor": "floor",
    "Inv": "reciprocal",
    "Invert": "bitwise_not",
    "IsFinite": "isfinite",
    "IsInf": "isinf",
    "IsNan": "isnan",
    "Lgamma": "lgamma",
    "Log": "log",
    "Log1p": "log1p",
    "LogicalNot": "logical_not",
    "Ndtri": "inv_Phi",
    "Neg": "neg",
    "OnesLike": "ones_like",
    "PopulationCount": "population_count",
    "Reciprocal": "reciprocal",
    "Relu": "relu",
    "Rint": "rint",
    "Round": "rint",
    "Rsqrt": "rsqrt",
    "Selu": "selu",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Softplus": "log1p_exp",
    "Softsign": "softsign",
    "Sqrt": "sqrt",
    "Square": "square",
    "Tan": "tan",
    "Tanh": "tanh",
    "ZerosLike": "zeros_like",
}
"""TensorFlow operators of one input that passkit has under another name."""

TWO_INPUTS = {
    "Add": "add",
    "AddV2": "add",
    "Atan2": "atan2",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "DivNoNan": "div_no_nan",
    "Equal": "equal",
    "FloorMod": "mod",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "Igamma": "igamma",
    "Igammac": "igammac",
    "Less": "less",
    "LessEqual": "less_equal",
    "LogicalAnd": "logical_and",
    "LogicalOr": "logical_or",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Mod": "fmod",
    "Mul": "mul",
    "MulNoNan": "mul_no_nan",
    "NextAfter": "nextafter",
    "NotEqual": "not_equal",
    "Pow": "pow",
    "RealDiv": "div",
    "SquaredDifference": "squared_difference",
    "Sub": "sub",
    "TruncateDiv": "trunc_div",
    "TruncateMod": "fmod",
    "Xdivy": "xdivy",
    "Xlog1py": "xlog1py",
    "Xlogy": "xlogy",
    "Zeta": "zeta",
}
"""TensorFlow operators of two inputs that passkit has under another name."""

same_inputs(1, ONE_INPUT)
same_inputs(2, TWO_INPUTS)
same_inputs(3, {"Betainc": "betainc", "SelectV2": "where"})


@row("Div")
def _div(call: Call, x: Value, y: Value) -> Result:
    """For integers it rounds toward zero."""
    op = ops.trunc_div if x.dtype.is_integer else ops.div
    return op(x.entry, y.entry, name=call.name)


@row("LeftShift", "RightShift")
def _shift(call: Call, x: Value, n: Value) -> Result:
    """Counts stop at 0 and at one less than the width, where passkit's move all bits out."""
    shift = ops.left_shift if call.node.op == "LeftShift" else ops.right_shift
    return shift(x.entry, ops.clip(n.entry, 0, 8 * x.dtype.nbytes - 1), name=call.name)


@row("FloorDiv")
def _floor_div(call: Call, x: Value, y: Value) -> Result:
    if x.dtype.is_float:
        return ops.floor(ops.div(x.entry, y.entry), name=call.name)
    return ops.floor_div(x.entry, y.entry, name=call.name)


@row("Digamma")
def _digamma(call: Call, x: Value) -> Result:
    """NaN at 0 as at all poles, where passkit knows the side."""
    return ops.where(ops.equal(x.entry, 0), np.nan, ops.digamma(x.entry), name=call.name)


@row("Relu6")
def _relu6(call: Call, x: Value) -> Result:
    return ops.minimum(ops.relu(x.entry), 6, name=call.name)


@row("LeakyRelu")
def _leaky_relu(call: Call, x: Value) -> Result:
    return ops.leaky_relu(x.entry, alpha=call.attr("alpha", "f", 0.2), name=call.name)


@row("ApproximateEqual")
def _approximate_equal(call: Call, x: Value, y: Value) -> Result:
    tolerance = call.attr("tolerance", "f", 1e-5)
    return ops.less(ops.abs(x.entry - y.entry), tolerance, name=call.name)


@row("Polygamma")
def _polygamma(call: Call, a: Value, x: Value) -> Result:
    """By the function itself for one known order up to 20, else by Hurwitz' zeta function."""
    known = a.known if a.dtype.is_float else None
    order = float(known.ravel()[0]) if known is not None and known.size == 1 else -1.0
    if order in range(21):
        return ops.polygamma(x.entry, n=int(order), name=call.name)
    n = a.entry
    odd = ops.equal(ops.mod(n, 2), 1)
    size = ops.exp(ops.lgamma(n + 1)) * ops.zeta(n + 1, x.entry)
    whole = ops.logical_and(ops.equal(n, ops.floor(n)), n >= 0)
    found = ops.where(whole, ops.where(odd, size, -size), np.nan)
    zero = ops.where(ops.equal(x.entry, 0), np.nan, ops.digamma(x.entry))
    return ops.where(ops.equal(n, 0), zero, found, name=call.name)


@row("ClipByValue")
def _clip(call: Call, x: Value, low: Value, high: Value) -> Result:
    return ops.maximum(ops.minimum(x.entry, high.entry), low.entry, name=call.name)


@row("AddN", "AccumulateNV2")
def _add_n(call: Call, *values: Value) -> Result:
    call.budget.take(NODE_NBYTES * len(values), call.where)
    total = values[0].entry
    for value in values[1:]:
        total = ops.add(total, value.entry)
    return total


@row("Select")
def _select(call: Call, condition: Value, x: Value, y: Value) -> Result:
    """A condition of rank 1 chooses rows: it is aligned at the front, unlike in broadcasting."""
    chosen, rank = condition.entry, len(call.shape(x))
    if len(call.shape(condition)) == 1 and rank > 1:
        chosen = ops.expand_dims(chosen, axis=tuple(range(1, rank)))
    return ops.where(chosen, x.entry, y.entry, name=call.name)


@row("Bucketize")
def _bucketize(call: Call, x: Value) -> Result:
    """How many of the boundaries, which are float32, are at most x."""
    bounds = call.floats("boundaries")
    wide = dtype_of("float64" if x.dtype.name == "float64" else "float32")
    entry = x.entry if x.dtype is wide else ops.cast(x.entry, dtype=wide.name)
    found = ops.digitize(entry, constant(bounds, wide))
    return ops.cast(found, dtype="int32", name=call.name)
