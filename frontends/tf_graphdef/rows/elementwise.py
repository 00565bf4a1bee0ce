"""Operators that work element by element."""

from __future__ import annotations

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.table import Result, row, same_inputs
from passkit.frontends.tf_graphdef.value import Call, Value

ELEMENTWISE = {
    "Abs": "abs",
    "Add": "add",
    "AddV2": "add",
    "Ceil": "ceil",
    "Cos": "cos",
    "Equal": "equal",
    "Erf": "erf",
    "Exp": "exp",
    "Expm1": "expm1",
    "Floor": "floor",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "Less": "less",
    "LessEqual": "less_equal",
    "Log": "log",
    "Log1p": "log1p",
    "LogicalAnd": "logical_and",
    "LogicalNot": "logical_not",
    "LogicalOr": "logical_or",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Mul": "mul",
    "Neg": "neg",
    "NotEqual": "not_equal",
    "OnesLike": "ones_like",
    "Pow": "pow",
    "RealDiv": "div",
    "Reciprocal": "reciprocal",
    "Relu": "relu",
    "Rint": "rint",
    "Rsqrt": "rsqrt",
    "SelectV2": "where",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sqrt": "sqrt",
    "Square": "square",
    "Sub": "sub",
    "Tanh": "tanh",
    "ZerosLike": "zeros_like",
}
"""TensorFlow operators that passkit has under another name, with the same inputs."""


same_inputs(ELEMENTWISE)


@row("Div")
def _div(call: Call, x: Value, y: Value) -> Result:
    """For integers it rounds toward zero, which passkit's division does not."""
    if not x.dtype.is_float:
        raise ModelError(f"{call.where} needs floats, got {x.dtype}; use FloorDiv for integers")
    return ops.div(x.entry, y.entry, name=call.name)


@row("FloorDiv")
def _floor_div(call: Call, x: Value, y: Value) -> Result:
    if x.dtype.is_float:
        return ops.floor(ops.div(x.entry, y.entry), name=call.name)
    return ops.floor_div(x.entry, y.entry, name=call.name)


@row("SquaredDifference")
def _squared_difference(call: Call, x: Value, y: Value) -> Result:
    return ops.square(ops.sub(x.entry, y.entry), name=call.name)


@row("Relu6")
def _relu6(call: Call, x: Value) -> Result:
    return ops.minimum(ops.relu(x.entry), 6, name=call.name)


@row("Cast")
def _cast(call: Call, x: Value) -> Result:
    return ops.cast(x.entry, dtype=call.dtype("DstT").name, name=call.name)


@row("Select")
def _select(call: Call, condition: Value, x: Value, y: Value) -> Result:
    """A condition of rank 1 chooses rows: it is aligned at the front, unlike in broadcasting."""
    chosen, rank = condition.entry, len(call.shape(x))
    if len(call.shape(condition)) == 1 and rank > 1:
        chosen = ops.expand_dims(chosen, axis=tuple(range(1, rank)))
    return ops.where(chosen, x.entry, y.entry, name=call.name)
