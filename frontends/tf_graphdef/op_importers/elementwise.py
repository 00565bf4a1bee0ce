"""Importers of elementwise operators."""

from __future__ import annotations

import numpy as np

from passkit import ops
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.registry import (
    NODE_NBYTES,
    ImportResult,
    op_importer,
    register_renamed,
)
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
"""passkit's names of TensorFlow operators of one input."""

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
"""passkit's names of TensorFlow operators of two inputs."""

register_renamed(1, ONE_INPUT)
register_renamed(2, TWO_INPUTS)
register_renamed(3, {"Betainc": "betainc", "SelectV2": "where"})


@op_importer("Div")
def _div(call: ImportCall, x: ImportedValue, y: ImportedValue) -> ImportResult:
    """Import Div: ``x / y``, which truncates toward zero for integers.

    ``call`` is the node.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If the dtypes differ, or are bool.
    """
    op = ops.trunc_div if x.dtype.is_integer else ops.div
    return op(x.entry, y.entry, name=call.name)


@op_importer("LeftShift", "RightShift")
def _shift(call: ImportCall, x: ImportedValue, n: ImportedValue) -> ImportResult:
    """Import LeftShift and RightShift of ``x`` by ``n`` bits.

    Counts are clamped to the width - 1 as in TensorFlow; passkit shifts all bits out. ``call`` is
    the node.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If the dtypes differ, or are not integers.
    """
    shift = ops.left_shift if call.node.op == "LeftShift" else ops.right_shift
    return shift(x.entry, ops.clip(n.entry, 0, 8 * x.dtype.nbytes - 1), name=call.name)


@op_importer("FloorDiv")
def _floor_div(call: ImportCall, x: ImportedValue, y: ImportedValue) -> ImportResult:
    """Import FloorDiv: the quotient of ``x`` and ``y`` rounded down.

    Floats are divided, with rounding, before they are rounded down. ``call`` is the node.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If the dtypes differ, or are bool or complex.
    """
    if x.dtype.is_float:
        return ops.floor(ops.div(x.entry, y.entry), name=call.name)
    return ops.floor_div(x.entry, y.entry, name=call.name)


@op_importer("Digamma")
def _digamma(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Digamma, with NaN at 0 as in TensorFlow.

    ``call`` is the node.

    Raises:
        DTypeError: If ``x`` is not of floats.
    """
    return ops.where(ops.equal(x.entry, 0), np.nan, ops.digamma(x.entry), name=call.name)


@op_importer("Relu6")
def _relu6(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Relu6: ``min(max(x, 0), 6)``.

    ``call`` is the node.

    Raises:
        DTypeError: If ``x`` is of bools or complex.
    """
    return ops.minimum(ops.relu(x.entry), 6, name=call.name)


@op_importer("LeakyRelu")
def _leaky_relu(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import LeakyRelu: negative elements are multiplied by the attribute ``alpha`` (0.2).

    ``call`` is the node.

    Raises:
        ModelError: If an attribute is of another kind.
        DTypeError: If ``x`` is not of floats.
    """
    return ops.leaky_relu(x.entry, alpha=call.attr("alpha", "f", 0.2), name=call.name)


@op_importer("ApproximateEqual")
def _approximate_equal(call: ImportCall, x: ImportedValue, y: ImportedValue) -> ImportResult:
    """Import ApproximateEqual: whether ``|x - y|`` is below the attribute ``tolerance`` (1e-5).

    ``call`` is the node.

    Raises:
        ModelError: If an attribute is of another kind.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If an input is complex, or neither is of floats.
    """
    tolerance = call.attr("tolerance", "f", 1e-5)
    return ops.less(ops.abs(x.entry - y.entry), tolerance, name=call.name)


@op_importer("Polygamma")
def _polygamma(call: ImportCall, a: ImportedValue, x: ImportedValue) -> ImportResult:
    """Import Polygamma of order ``a`` at ``x``.

    A known order of one number from 0 to 20 uses passkit's operator. Other orders use Hurwitz' zeta
    function; negative and fractional ones give NaN. ``call`` is the node.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If ``x`` is not of floats, or ``a`` has another dtype and is no known scalar of
            floats from 0 to 20.
    """
    order_array = a.array if a.dtype.is_float else None
    order = (
        float(order_array.ravel()[0]) if order_array is not None and order_array.size == 1 else -1.0
    )
    if order in range(21):
        return ops.polygamma(x.entry, n=int(order), name=call.name)
    n = a.entry
    odd = ops.equal(ops.mod(n, 2), 1)
    magnitude = ops.exp(ops.lgamma(n + 1)) * ops.zeta(n + 1, x.entry)
    is_whole = ops.logical_and(ops.equal(n, ops.floor(n)), n >= 0)
    higher_order = ops.where(is_whole, ops.where(odd, magnitude, -magnitude), np.nan)
    digamma = ops.where(ops.equal(x.entry, 0), np.nan, ops.digamma(x.entry))
    return ops.where(ops.equal(n, 0), digamma, higher_order, name=call.name)


@op_importer("ClipByValue")
def _clip(
    call: ImportCall, x: ImportedValue, low: ImportedValue, high: ImportedValue
) -> ImportResult:
    """Import ClipByValue: ``max(min(x, high), low)``; limits may be arrays that broadcast.

    ``call`` is the node.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If the dtypes differ, or are bool or complex.
    """
    return ops.maximum(ops.minimum(x.entry, high.entry), low.entry, name=call.name)


@op_importer("AddN", "AccumulateNV2")
def _add_n(call: ImportCall, *values: ImportedValue) -> ImportResult:
    """Import AddN and AccumulateNV2: the sum of all inputs, from left to right.

    ``call`` is the node, and ``values`` are its inputs.

    Raises:
        ModelError: If the nodes of the sum exceed the memory budget of the import.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If the dtypes differ, or are bool.
    """
    call.budget.take(NODE_NBYTES * len(values), call.where)
    total = values[0].entry
    for value in values[1:]:
        total = ops.add(total, value.entry)
    return total


@op_importer("Select")
def _select(
    call: ImportCall, condition: ImportedValue, x: ImportedValue, y: ImportedValue
) -> ImportResult:
    """Import Select: ``x`` where the condition is true, else ``y``.

    A condition of rank 1 selects along the first axis of ``x``, not the last as in broadcasting.
    ``call`` is the node.

    Raises:
        ModelError: If the rank of the condition or of ``x`` is unknown.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If the condition is not of bools, or the dtypes of ``x`` and ``y`` differ.
    """
    condition_entry, rank = condition.entry, len(call.shape(x))
    if len(call.shape(condition)) == 1 and rank > 1:
        condition_entry = ops.expand_dims(condition_entry, axis=tuple(range(1, rank)))
    return ops.where(condition_entry, x.entry, y.entry, name=call.name)


@op_importer("Bucketize")
def _bucketize(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Bucketize: the number of boundaries that are at most x, as int32.

    The boundaries are float32 attributes; x is compared in float32, or float64 if it has that
    dtype. ``call`` is the node.

    Raises:
        ModelError: If the attribute ``boundaries`` is no list; a missing one is empty.
        DTypeError: If ``x`` is complex.
    """
    bounds = call.floats("boundaries")
    compare_dtype = dtype_of("float64" if x.dtype.name == "float64" else "float32")
    entry = x.entry if x.dtype is compare_dtype else ops.cast(x.entry, dtype=compare_dtype.name)
    buckets = ops.digitize(entry, constant(bounds, compare_dtype))
    return ops.cast(buckets, dtype="int32", name=call.name)
