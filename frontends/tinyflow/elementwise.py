"""Elementwise functions of one or two tensors, most of them generated from tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from passkit.errors import GraphError, ShapeError
from passkit.frontends.tinyflow.deferred_calls import defer_if_unranked
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.shapes import format_shape, require_shape
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    as_entry,
    as_operands,
    as_tensor,
    call_operator,
    convert_to_tensor,
    unique_name,
)
from passkit.graph.adjoint import add_all
from passkit.graph.call import promote_operands
from passkit.graph.op import get_op

ElementwiseFunction = Callable[..., Tensor]


@frozen
class FunctionSpec:
    """One elementwise function of TensorFlow."""

    name: str
    """TensorFlow's name of the function."""
    op: str
    """passkit's name of the operator."""
    tensor_name: str
    """The default name of the result."""


UNARY = (
    FunctionSpec(name="abs", op="abs", tensor_name="Abs"),
    FunctionSpec(name="negative", op="neg", tensor_name="Neg"),
    FunctionSpec(name="square", op="square", tensor_name="Square"),
    FunctionSpec(name="sqrt", op="sqrt", tensor_name="Sqrt"),
    FunctionSpec(name="rsqrt", op="rsqrt", tensor_name="Rsqrt"),
    FunctionSpec(name="exp", op="exp", tensor_name="Exp"),
    FunctionSpec(name="expm1", op="expm1", tensor_name="Expm1"),
    FunctionSpec(name="log", op="log", tensor_name="Log"),
    FunctionSpec(name="log1p", op="log1p", tensor_name="Log1p"),
    FunctionSpec(name="sign", op="sign", tensor_name="Sign"),
    FunctionSpec(name="floor", op="floor", tensor_name="Floor"),
    FunctionSpec(name="ceil", op="ceil", tensor_name="Ceil"),
    FunctionSpec(name="round", op="rint", tensor_name="Round"),
    FunctionSpec(name="sin", op="sin", tensor_name="Sin"),
    FunctionSpec(name="cos", op="cos", tensor_name="Cos"),
    FunctionSpec(name="tan", op="tan", tensor_name="Tan"),
    FunctionSpec(name="asin", op="asin", tensor_name="Asin"),
    FunctionSpec(name="acos", op="acos", tensor_name="Acos"),
    FunctionSpec(name="atan", op="atan", tensor_name="Atan"),
    FunctionSpec(name="tanh", op="tanh", tensor_name="Tanh"),
    FunctionSpec(name="sigmoid", op="sigmoid", tensor_name="Sigmoid"),
    FunctionSpec(name="erf", op="erf", tensor_name="Erf"),
    FunctionSpec(name="erfc", op="erfc", tensor_name="Erfc"),
    FunctionSpec(name="lgamma", op="lgamma", tensor_name="Lgamma"),
    FunctionSpec(name="reciprocal", op="reciprocal", tensor_name="Reciprocal"),
    FunctionSpec(name="is_nan", op="isnan", tensor_name="IsNan"),
    FunctionSpec(name="is_finite", op="isfinite", tensor_name="IsFinite"),
    FunctionSpec(name="is_inf", op="isinf", tensor_name="IsInf"),
    FunctionSpec(name="logical_not", op="logical_not", tensor_name="LogicalNot"),
)
"""Functions of one tensor, ``x``."""

BINARY = (
    FunctionSpec(name="add", op="add", tensor_name="Add"),
    FunctionSpec(name="subtract", op="sub", tensor_name="Sub"),
    FunctionSpec(name="multiply", op="mul", tensor_name="Mul"),
    FunctionSpec(name="maximum", op="maximum", tensor_name="Maximum"),
    FunctionSpec(name="minimum", op="minimum", tensor_name="Minimum"),
    FunctionSpec(name="floordiv", op="floor_div", tensor_name="FloorDiv"),
    FunctionSpec(name="mod", op="mod", tensor_name="FloorMod"),
    FunctionSpec(name="pow", op="pow", tensor_name="Pow"),
    FunctionSpec(
        name="squared_difference", op="squared_difference", tensor_name="SquaredDifference"
    ),
    FunctionSpec(name="equal", op="equal", tensor_name="Equal"),
    FunctionSpec(name="not_equal", op="not_equal", tensor_name="NotEqual"),
    FunctionSpec(name="less", op="less", tensor_name="Less"),
    FunctionSpec(name="less_equal", op="less_equal", tensor_name="LessEqual"),
    FunctionSpec(name="greater", op="greater", tensor_name="Greater"),
    FunctionSpec(name="greater_equal", op="greater_equal", tensor_name="GreaterEqual"),
    FunctionSpec(name="logical_and", op="logical_and", tensor_name="LogicalAnd"),
    FunctionSpec(name="logical_or", op="logical_or", tensor_name="LogicalOr"),
    FunctionSpec(name="logical_xor", op="logical_xor", tensor_name="LogicalXor"),
)
"""Functions of two tensors, ``x`` and ``y``, which broadcast."""

ACTIVATION_SPECS = (
    FunctionSpec(name="relu", op="relu", tensor_name="Relu"),
    FunctionSpec(name="relu6", op="relu6", tensor_name="Relu6"),
    FunctionSpec(name="elu", op="elu", tensor_name="Elu"),
    FunctionSpec(name="selu", op="selu", tensor_name="Selu"),
    FunctionSpec(name="softplus", op="log1p_exp", tensor_name="Softplus"),
    FunctionSpec(name="softsign", op="softsign", tensor_name="Softsign"),
)
"""Functions of `tf.nn`, of one tensor, ``features``."""


def _unary_function(spec: FunctionSpec) -> ElementwiseFunction:
    """Create a function of one tensor, ``x``."""

    def function(x: Any, name: str | None = None) -> Tensor:
        return call_operator(spec.op, spec.tensor_name, name, as_entry(x))

    return _document(function, spec, {"x": "A tensor or numbers."})


def _activation_function(spec: FunctionSpec) -> ElementwiseFunction:
    """Create a function of one tensor, ``features``."""

    def function(features: Any, name: str | None = None) -> Tensor:
        return call_operator(spec.op, spec.tensor_name, name, as_entry(features))

    return _document(function, spec, {"features": "A tensor or numbers."})


def _binary_function(spec: FunctionSpec) -> ElementwiseFunction:
    """Create a function of two tensors, which broadcast; numbers take the dtype of a tensor."""

    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        operands = promote_operands(spec.op, as_operands(x, y))
        return call_operator(spec.op, spec.tensor_name, name, *operands)

    arguments = {
        "x": "A tensor or numbers.",
        "y": "A tensor or numbers, of a shape that broadcasts with that of ``x``.",
    }
    return _document(function, spec, arguments)


def _document(
    function: ElementwiseFunction, spec: FunctionSpec, arguments: dict[str, str]
) -> ElementwiseFunction:
    """Set the name and the docstring of a function: the operator's description and arguments."""
    doc = get_op(spec.op).doc
    summary = f"{doc}." if doc[1:2] == " " else f"{doc[:1].upper()}{doc[1:]}."
    described = {**arguments, "name": f'The name of the result; "{spec.tensor_name}" by default.'}
    lines = [f"    {name}: {text}" for name, text in described.items()]
    function.__doc__ = "\n".join([summary, "", "Args:", *lines])
    function.__name__ = function.__qualname__ = spec.op
    return function


def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """Return the angle of the point (x, y) from the positive x axis, from -pi to pi.

    Args:
        y: A tensor or numbers.
        x: A tensor or numbers, of a shape that broadcasts with that of ``y``.
        name: The name of the result; "Atan2" by default.
    """
    operands = promote_operands("atan2", as_operands(y, x))
    return call_operator("atan2", "Atan2", name, *operands)


FUNCTIONS: dict[str, ElementwiseFunction] = {
    **{spec.name: _unary_function(spec) for spec in UNARY},
    **{spec.name: _binary_function(spec) for spec in BINARY},
    "atan2": atan2,
}
"""The functions of `tf.math`, by name."""
ACTIVATIONS: dict[str, ElementwiseFunction] = {
    spec.name: _activation_function(spec) for spec in ACTIVATION_SPECS
}
"""The elementwise functions of `tf.nn`, by name."""


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x / y; integers are divided in float64, as in Python 3.

    Args:
        x: A tensor or numbers.
        y: A tensor or numbers.
        name: The name of the result.
    """
    operands = promote_operands("truediv", as_operands(x, y))
    if operands[0].dtype is not None and operands[0].dtype.is_integer:
        operands = [get_op("cast")(s, dtype="float64") for s in operands]
    return call_operator("div", "truediv", name, *operands)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x / y; integers are divided in float64, as in Python 3.

    Args:
        x: A tensor or numbers.
        y: A tensor or numbers.
        name: The name of the result.
    """
    return truediv(x, y, name or "truediv")


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x / y; quotients of integers are rounded down, as in Python 2.

    Args:
        x: A tensor or numbers.
        y: A tensor or numbers.
        name: The name of the result.
    """
    operands = promote_operands("div", as_operands(x, y))
    is_integer = operands[0].dtype is not None and operands[0].dtype.is_integer
    return call_operator("floor_div" if is_integer else "div", "div", name, *operands)


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Convert a tensor to another dtype; floats are truncated to integers.

    Args:
        x: A tensor or numbers.
        dtype: The dtype of the result.
        name: The name of the result.
    """
    tensor = convert_to_tensor(x)
    target_dtype = as_dtype(dtype)
    converted = call_operator("cast", "Cast", name, tensor.entry, dtype=target_dtype.name)
    if tensor.static_value is not None and target_dtype.is_integer:
        return Tensor(converted.entry, converted._name, converted.graph, tensor.static_value)
    return converted


def to_float(x: Any, name: str = "ToFloat") -> Tensor:
    """Convert a tensor to float32.

    Args:
        x: A tensor or numbers.
        name: The name of the result.
    """
    return cast(x, "float32", name)


def to_int32(x: Any, name: str = "ToInt32") -> Tensor:
    """Convert a tensor to int32.

    Args:
        x: A tensor or numbers.
        name: The name of the result.
    """
    return cast(x, "int32", name)


def identity(input: Any, name: str | None = None) -> Tensor:
    """Return a copy of a tensor, which runs after the current `tf.control_dependencies`.

    Args:
        input: A tensor or numbers.
        name: The name of the result.
    """
    return call_operator("identity", "Identity", name, convert_to_tensor(input).entry)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """Return a tensor through which no gradient flows.

    Args:
        input: A tensor, numbers, or a list of tensors, which is stacked.
        name: The name of the result.
    """
    return call_operator("stop_gradient", "StopGradient", name, convert_to_tensor(input).entry)


@defer_if_unranked("AddN")
def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """Return the sum of tensors.

    Args:
        inputs: Tensors of one shape and dtype.
        name: The name of the result.

    Raises:
        ShapeError: If the shapes differ, or there are no tensors.
    """
    terms = [as_entry(x) for x in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
    if not terms:
        raise ShapeError("add_n needs at least one tensor, got none")
    for term in terms[1:]:
        if require_shape(term) != require_shape(terms[0]):
            raise ShapeError(
                f"add_n needs tensors of one shape, got {format_shape(require_shape(terms[0]))} "
                f"and {format_shape(require_shape(term))}; tf.add broadcasts"
            )
    if len(terms) == 1:
        return call_operator("identity", "AddN", name, terms[0])
    return as_tensor(add_all(terms), unique_name(name, "AddN"))


@defer_if_unranked("Select", like="x")
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Select elements of ``x`` where a condition holds, else of ``y``.

    Args:
        condition: A tensor of bools. A vector selects slices along the first axis.
        x: A tensor or numbers.
        y: A tensor or numbers.
        name: The name of the result.

    Raises:
        GraphError: Without ``x`` and ``y``: the number of true elements is no static shape.
    """
    if x is None or y is None:
        raise GraphError(
            f"where needs x and y, got {'neither' if x is y else 'one of them'}: the number of "
            f"places where a condition holds is no static shape; give both"
        )
    mask = as_entry(condition)
    operands = promote_operands("where", as_operands(x, y))
    rank, condition_rank = len(require_shape(operands[0])), len(require_shape(mask))
    if condition_rank == 1 and rank > 1:
        axes = tuple(n for n in range(1, rank))
        mask = get_op("expand_dims")(mask, axis=axes)
    return call_operator("where", "Select", name, mask, *operands)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """Return a tensor whose value must be finite.

    A run that needs it raises NumericsError if it is not. The variables are updated by then;
    `tf.Session(check_numerics=True)` checks every operator and restores the variables.

    Args:
        tensor: A tensor.
        message: The beginning of the error message.
        name: The name of the result.
    """
    out = call_operator("identity", "CheckNumerics", name, as_entry(tensor))
    out.graph.checks[out.entry.node] = message
    return out
