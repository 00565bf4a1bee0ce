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
    static_value_fits,
    unique_name,
)
from passkit.graph.adjoint import add_all
from passkit.graph.call import promote_operands
from passkit.graph.op import get_op

ElementwiseFunction = Callable[..., Tensor]


@frozen
class FunctionSpec:
    """One elementwise function of TensorFlow: a table entry from which it is generated."""

    name: str
    """TensorFlow's name of the function."""
    op: str
    """passkit's name of the operator."""
    tensor_name: str
    """The default name of the result."""
    summary: str
    """The first line of the docstring."""
    takes: str
    """The dtypes that the function takes, in words, such as "integers or floats"."""
    returns: str = ""
    """The dtype of the result; empty for that of the arguments."""


UNARY = (
    FunctionSpec(
        name="abs",
        op="abs",
        tensor_name="Abs",
        summary="Return the absolute value of each element.",
        takes="numbers",
        returns="the dtype of ``x``; of complex numbers, that of their parts",
    ),
    FunctionSpec(
        name="negative",
        op="neg",
        tensor_name="Neg",
        summary="Return -x.",
        takes="numbers",
    ),
    FunctionSpec(
        name="square",
        op="square",
        tensor_name="Square",
        summary="Return x * x.",
        takes="numbers",
    ),
    FunctionSpec(
        name="sqrt",
        op="sqrt",
        tensor_name="Sqrt",
        summary="Return the square root; NaN for negative numbers.",
        takes="floats",
    ),
    FunctionSpec(
        name="rsqrt",
        op="rsqrt",
        tensor_name="Rsqrt",
        summary="Return 1 / sqrt(x).",
        takes="floats",
    ),
    FunctionSpec(
        name="exp",
        op="exp",
        tensor_name="Exp",
        summary="Return e to the power x.",
        takes="floats",
    ),
    FunctionSpec(
        name="expm1",
        op="expm1",
        tensor_name="Expm1",
        summary="Return exp(x) - 1, accurate near 0.",
        takes="floats",
    ),
    FunctionSpec(
        name="log",
        op="log",
        tensor_name="Log",
        summary="Return the natural logarithm; -inf for 0, NaN for negative numbers.",
        takes="floats",
    ),
    FunctionSpec(
        name="log1p",
        op="log1p",
        tensor_name="Log1p",
        summary="Return log(1 + x), accurate near 0.",
        takes="floats",
    ),
    FunctionSpec(
        name="sign",
        op="sign",
        tensor_name="Sign",
        summary="Return -1, 0 or 1 by the sign of each element; NaN stays NaN.",
        takes="integers or floats",
    ),
    FunctionSpec(
        name="floor",
        op="floor",
        tensor_name="Floor",
        summary="Round down to an integer, in the dtype of x.",
        takes="integers or floats",
    ),
    FunctionSpec(
        name="ceil",
        op="ceil",
        tensor_name="Ceil",
        summary="Round up to an integer, in the dtype of x.",
        takes="integers or floats",
    ),
    FunctionSpec(
        name="round",
        op="rint",
        tensor_name="Round",
        summary="Round to the nearest integer, ties to even, in the dtype of x.",
        takes="integers or floats",
    ),
    FunctionSpec(
        name="sin",
        op="sin",
        tensor_name="Sin",
        summary="Return the sine of angles in radians.",
        takes="floats",
    ),
    FunctionSpec(
        name="cos",
        op="cos",
        tensor_name="Cos",
        summary="Return the cosine of angles in radians.",
        takes="floats",
    ),
    FunctionSpec(
        name="tan",
        op="tan",
        tensor_name="Tan",
        summary="Return the tangent of angles in radians.",
        takes="floats",
    ),
    FunctionSpec(
        name="asin",
        op="asin",
        tensor_name="Asin",
        summary="Return the angle in radians whose sine is x, from -pi/2 to pi/2.",
        takes="floats",
    ),
    FunctionSpec(
        name="acos",
        op="acos",
        tensor_name="Acos",
        summary="Return the angle in radians whose cosine is x, from 0 to pi.",
        takes="floats",
    ),
    FunctionSpec(
        name="atan",
        op="atan",
        tensor_name="Atan",
        summary="Return the angle in radians whose tangent is x, from -pi/2 to pi/2.",
        takes="floats",
    ),
    FunctionSpec(
        name="tanh",
        op="tanh",
        tensor_name="Tanh",
        summary="Return the hyperbolic tangent.",
        takes="floats",
    ),
    FunctionSpec(
        name="sigmoid",
        op="sigmoid",
        tensor_name="Sigmoid",
        summary="Return 1 / (1 + exp(-x)).",
        takes="floats",
    ),
    FunctionSpec(
        name="erf",
        op="erf",
        tensor_name="Erf",
        summary="Return the error function of each element.",
        takes="floats",
    ),
    FunctionSpec(
        name="erfc",
        op="erfc",
        tensor_name="Erfc",
        summary="Return 1 - erf(x), accurate for large x.",
        takes="floats",
    ),
    FunctionSpec(
        name="lgamma",
        op="lgamma",
        tensor_name="Lgamma",
        summary="Return the logarithm of the absolute value of the gamma function.",
        takes="floats",
    ),
    FunctionSpec(
        name="reciprocal",
        op="reciprocal",
        tensor_name="Reciprocal",
        summary="Return 1 / x.",
        takes="floats or complex numbers",
    ),
    FunctionSpec(
        name="is_nan",
        op="isnan",
        tensor_name="IsNan",
        summary="Return whether each element is NaN.",
        takes="integers or floats",
        returns="bool",
    ),
    FunctionSpec(
        name="is_finite",
        op="isfinite",
        tensor_name="IsFinite",
        summary="Return whether each element is neither NaN nor infinite.",
        takes="integers or floats",
        returns="bool",
    ),
    FunctionSpec(
        name="is_inf",
        op="isinf",
        tensor_name="IsInf",
        summary="Return whether each element is infinite.",
        takes="integers or floats",
        returns="bool",
    ),
    FunctionSpec(
        name="logical_not",
        op="logical_not",
        tensor_name="LogicalNot",
        summary="Return whether each element is false.",
        takes="bools",
    ),
)
"""Functions of one tensor, ``x``."""

BINARY = (
    FunctionSpec(
        name="add",
        op="add",
        tensor_name="Add",
        summary="Return x + y.",
        takes="numbers",
    ),
    FunctionSpec(
        name="subtract",
        op="sub",
        tensor_name="Sub",
        summary="Return x - y.",
        takes="numbers",
    ),
    FunctionSpec(
        name="multiply",
        op="mul",
        tensor_name="Mul",
        summary="Return x * y.",
        takes="numbers",
    ),
    FunctionSpec(
        name="maximum",
        op="maximum",
        tensor_name="Maximum",
        summary="Return the larger of two elements; NaN if either is NaN.",
        takes="integers or floats",
    ),
    FunctionSpec(
        name="minimum",
        op="minimum",
        tensor_name="Minimum",
        summary="Return the smaller of two elements; NaN if either is NaN.",
        takes="integers or floats",
    ),
    FunctionSpec(
        name="floordiv",
        op="floor_div",
        tensor_name="FloorDiv",
        summary="Return x / y rounded down; an integer divided by 0 is 0.",
        takes="integers or floats",
    ),
    FunctionSpec(
        name="mod",
        op="mod",
        tensor_name="FloorMod",
        summary="Return x - floor(x / y) * y, with the sign of y; an integer modulo 0 is 0.",
        takes="integers or floats",
    ),
    FunctionSpec(
        name="pow",
        op="pow",
        tensor_name="Pow",
        summary="Return x to the power y; negative powers of integers are truncated to integers.",
        takes="integers or floats",
    ),
    FunctionSpec(
        name="squared_difference",
        op="squared_difference",
        tensor_name="SquaredDifference",
        summary="Return (x - y) * (x - y).",
        takes="integers or floats",
    ),
    FunctionSpec(
        name="equal",
        op="equal",
        tensor_name="Equal",
        summary="Return whether x == y.",
        takes="bools or numbers",
        returns="bool",
    ),
    FunctionSpec(
        name="not_equal",
        op="not_equal",
        tensor_name="NotEqual",
        summary="Return whether x != y.",
        takes="bools or numbers",
        returns="bool",
    ),
    FunctionSpec(
        name="less",
        op="less",
        tensor_name="Less",
        summary="Return whether x < y.",
        takes="bools, integers or floats",
        returns="bool",
    ),
    FunctionSpec(
        name="less_equal",
        op="less_equal",
        tensor_name="LessEqual",
        summary="Return whether x <= y.",
        takes="bools, integers or floats",
        returns="bool",
    ),
    FunctionSpec(
        name="greater",
        op="greater",
        tensor_name="Greater",
        summary="Return whether x > y.",
        takes="bools, integers or floats",
        returns="bool",
    ),
    FunctionSpec(
        name="greater_equal",
        op="greater_equal",
        tensor_name="GreaterEqual",
        summary="Return whether x >= y.",
        takes="bools, integers or floats",
        returns="bool",
    ),
    FunctionSpec(
        name="logical_and",
        op="logical_and",
        tensor_name="LogicalAnd",
        summary="Return whether both elements are true.",
        takes="bools",
    ),
    FunctionSpec(
        name="logical_or",
        op="logical_or",
        tensor_name="LogicalOr",
        summary="Return whether at least one of two elements is true.",
        takes="bools",
    ),
    FunctionSpec(
        name="logical_xor",
        op="logical_xor",
        tensor_name="LogicalXor",
        summary="Return whether exactly one of two elements is true.",
        takes="bools",
    ),
)
"""Functions of two tensors, ``x`` and ``y``, which broadcast."""

ACTIVATION_SPECS = (
    FunctionSpec(
        name="relu",
        op="relu",
        tensor_name="Relu",
        summary="Return features where they are positive, else 0; NaN stays NaN.",
        takes="integers or floats",
    ),
    FunctionSpec(
        name="relu6",
        op="relu6",
        tensor_name="Relu6",
        summary="Limit features to the range from 0 to 6.",
        takes="floats",
    ),
    FunctionSpec(
        name="elu",
        op="elu",
        tensor_name="Elu",
        summary="Return features where they are positive, else exp(features) - 1.",
        takes="floats",
    ),
    FunctionSpec(
        name="selu",
        op="selu",
        tensor_name="Selu",
        summary="Return the elu activation, scaled so that layers keep mean 0 and variance 1.",
        takes="floats",
    ),
    FunctionSpec(
        name="softplus",
        op="log1p_exp",
        tensor_name="Softplus",
        summary="Return log(1 + exp(features)).",
        takes="floats",
    ),
    FunctionSpec(
        name="softsign",
        op="softsign",
        tensor_name="Softsign",
        summary="Return features / (1 + abs(features)).",
        takes="floats",
    ),
)
"""Functions of `tf.nn`, of one tensor, ``features``."""


COMMON_DTYPE = (
    "Numbers and arrays beside a tensor take its dtype if NumPy casts them to it by the rule "
    '"same_kind"; else, and for two tensors or two arrays, the dtype is NumPy\'s for both.'
)
"""The dtype of the result of two arguments, for docstrings."""
COMPLEX_AND_REAL = (
    "complex numbers meet real ones, but for real numbers or arrays beside a complex tensor, and "
    "Python's numbers beside complex ones"
)
"""The pairs of complex and real arguments that are refused, for docstrings."""


def _unary_function(spec: FunctionSpec) -> ElementwiseFunction:
    """Create TensorFlow's function of one tensor, ``x``, from its table entry."""

    def function(x: Any, name: str | None = None) -> Tensor:
        return call_operator(spec.op, spec.tensor_name, name, as_entry(x))

    return _document(function, spec, {"x": f"A tensor or numbers of any shape: {spec.takes}."})


def _activation_function(spec: FunctionSpec) -> ElementwiseFunction:
    """Create a function of `tf.nn` of one tensor, ``features``, from its table entry."""

    def function(features: Any, name: str | None = None) -> Tensor:
        return call_operator(spec.op, spec.tensor_name, name, as_entry(features))

    return _document(
        function, spec, {"features": f"A tensor or numbers of any shape: {spec.takes}."}
    )


def _binary_function(spec: FunctionSpec) -> ElementwiseFunction:
    """Create a function of two tensors, which broadcast, from its table entry."""

    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        operands = promote_operands(spec.op, as_operands(x, y))
        return call_operator(spec.op, spec.tensor_name, name, *operands)

    arguments = {
        "x": f"A tensor or numbers: {spec.takes}.",
        "y": "A tensor or numbers, of a shape that broadcasts with that of ``x``.",
    }
    return _document(function, spec, arguments)


def _document(
    function: ElementwiseFunction, spec: FunctionSpec, arguments: dict[str, str]
) -> ElementwiseFunction:
    """Set the name and the docstring of a generated function to those of TensorFlow's function.

    Args:
        function: The function, which is changed in place.
        spec: Its table entry.
        arguments: The description of each tensor argument, by name.

    Returns:
        The same function.
    """
    first, *others = arguments
    if others:
        dtype = f"Its dtype is {spec.returns}." if spec.returns else COMMON_DTYPE
        result = f"A tensor of the broadcast shape. {dtype}"
    elif spec.returns:
        result = f"A tensor of the shape of ``{first}``. Its dtype is {spec.returns}."
    else:
        result = f"A tensor of the shape and dtype of ``{first}``."
    lines = [spec.summary, "", "Args:"]
    lines += [f"    {name}: {text}" for name, text in arguments.items()]
    lines += [f'    name: The name of the result; "{spec.tensor_name}" by default.']
    lines += ["", "Returns:", f"    {result}"]
    lines += ["", "Raises:"]
    lines += ["    ShapeError: If the shapes do not broadcast."] if others else []
    subject = "the common dtype is not one of" if others else "the elements are not"
    mixes = f", or {COMPLEX_AND_REAL}" if others and spec.takes.endswith("numbers") else ""
    lines += [
        f"    DTypeError: If {subject} {spec.takes}{mixes}.",
        "    ArgumentError: For a value that is neither a tensor nor numbers.",
    ]
    function.__doc__ = "\n".join(lines)
    function.__name__ = function.__qualname__ = spec.name
    return function


def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """Return the angle of the point (x, y) from the positive x axis, from -pi to pi.

    Args:
        y: A tensor or numbers.
        x: A tensor or numbers, of a shape that broadcasts with that of ``y``.
        name: The name of the result; "Atan2" by default.

    Returns:
        A tensor of the broadcast shape. Numbers and arrays beside a tensor take its dtype if NumPy
        casts them to it by the rule "same_kind"; else, and for two tensors or two arrays, the dtype
        is NumPy's for both. It must have floats.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If the dtype of the result is not one of floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
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
        y: A tensor or numbers, of a shape that broadcasts with that of ``x``.
        name: The name of the result; "truediv" by default.

    Returns:
        A tensor of the broadcast shape. Numbers and arrays beside a tensor take its dtype if NumPy
        casts them to it by the rule "same_kind"; else, and for two tensors or two arrays, the dtype
        is NumPy's for both. If that has integers, the result is float64.

    Raises:
        ShapeError: If the shapes do not broadcast.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: If both arguments are bools, one is text, or complex numbers meet real ones, but
            for real numbers or arrays beside a complex tensor, and Python's numbers beside complex
            ones.
    """
    operands = promote_operands("truediv", as_operands(x, y))
    if operands[0].dtype is not None and operands[0].dtype.is_integer:
        operands = [get_op("cast")(s, dtype="float64") for s in operands]
    return call_operator("div", "truediv", name, *operands)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x / y; integers are divided in float64, as in Python 3.

    Args:
        x: A tensor or numbers.
        y: A tensor or numbers, of a shape that broadcasts with that of ``x``.
        name: The name of the result; "truediv" by default.

    Returns:
        A tensor of the broadcast shape. Numbers and arrays beside a tensor take its dtype if NumPy
        casts them to it by the rule "same_kind"; else, and for two tensors or two arrays, the dtype
        is NumPy's for both. If that has integers, the result is float64.

    Raises:
        ShapeError: If the shapes do not broadcast.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: If both arguments are bools, one is text, or complex numbers meet real ones, but
            for real numbers or arrays beside a complex tensor, and Python's numbers beside complex
            ones.
    """
    return truediv(x, y, name or "truediv")


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x / y; quotients of integers are rounded down, as in Python 2.

    Args:
        x: A tensor or numbers.
        y: A tensor or numbers, of a shape that broadcasts with that of ``x``.
        name: The name of the result; "div" by default.

    Returns:
        A tensor of the broadcast shape. Numbers and arrays beside a tensor take its dtype if NumPy
        casts them to it by the rule "same_kind"; else, and for two tensors or two arrays, the dtype
        is NumPy's for both. An integer divided by 0 is 0.

    Raises:
        ShapeError: If the shapes do not broadcast.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: If both arguments are bools, one is text, or complex numbers meet real ones, but
            for real numbers or arrays beside a complex tensor, and Python's numbers beside complex
            ones.
    """
    operands = promote_operands("div", as_operands(x, y))
    is_integer = operands[0].dtype is not None and operands[0].dtype.is_integer
    return call_operator("floor_div" if is_integer else "div", "div", name, *operands)


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Convert a tensor to another dtype.

    Floats are truncated to integers; out of range they become the smallest or largest one, and NaN
    becomes 0. Integers out of range wrap. Bools are whether a number is not 0.

    Args:
        x: A tensor or numbers of any shape.
        dtype: The dtype of the result, such as tf.int32 or "int32".
        name: The name of the result; "Cast" by default.

    Returns:
        A tensor of the shape of ``x``.

    Raises:
        DTypeError: If ``dtype`` is no element type, or differs from that of ``x`` where one of them
            is complex; for a tensor of text.
        ArgumentError: For a value that is neither a tensor nor numbers.
        ShapeError: If listed tensors differ in shape.
    """
    tensor = convert_to_tensor(x)
    target_dtype = as_dtype(dtype)
    if target_dtype is tensor.dtype and target_dtype.kind == "c":
        return call_operator("identity", "Cast", name, tensor.entry)
    converted = call_operator("cast", "Cast", name, tensor.entry, dtype=target_dtype.name)
    value = tensor.static_value
    if value is not None and target_dtype.is_integer and static_value_fits(value, target_dtype):
        return Tensor(converted.entry, converted._name, converted.graph, value)
    return converted


def to_float(x: Any, name: str = "ToFloat") -> Tensor:
    """Convert a tensor to float32.

    Args:
        x: A tensor or numbers.
        name: The name of the result.

    Returns:
        A float32 tensor of the shape of ``x``.

    Raises:
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: If ``x`` holds complex numbers or is text.
    """
    return cast(x, "float32", name)


def to_int32(x: Any, name: str = "ToInt32") -> Tensor:
    """Convert a tensor to int32.

    Args:
        x: A tensor or numbers.
        name: The name of the result.

    Returns:
        An int32 tensor of the shape of ``x``, converted as by `cast`.

    Raises:
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: If ``x`` holds complex numbers or is text.
    """
    return cast(x, "int32", name)


def identity(input: Any, name: str | None = None) -> Tensor:
    """Return a copy of a tensor, which runs after the current `tf.control_dependencies`.

    Args:
        input: A tensor, numbers, or a list of tensors, which is stacked.
        name: The name of the result; "Identity" by default.

    Returns:
        A tensor with the shape, dtype and value of ``input``.

    Raises:
        ShapeError: If listed tensors differ in shape.
        DTypeError: If they differ in dtype, or for a tensor of text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    return call_operator("identity", "Identity", name, convert_to_tensor(input).entry)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """Return a tensor through which no gradient flows.

    Args:
        input: A tensor, numbers, or a list of tensors, which is stacked.
        name: The name of the result; "StopGradient" by default.

    Returns:
        A tensor with the shape, dtype and value of ``input``.

    Raises:
        ShapeError: If listed tensors differ in shape.
        DTypeError: If they differ in dtype, or for a tensor of text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    return call_operator("stop_gradient", "StopGradient", name, convert_to_tensor(input).entry)


@defer_if_unranked("AddN")
def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """Return the sum of tensors.

    Args:
        inputs: A list of tensors or numbers of one shape and dtype; or a single one, which is
            returned as a copy.
        name: The name of the result; "AddN" by default.

    Returns:
        A tensor of their shape and dtype.

    Raises:
        ShapeError: If the shapes differ, also a known extent from a symbolic one, or there are no
            tensors.
        DTypeError: If the dtypes differ, several tensors are of bools, or one is text.
        ArgumentError: For a value that is neither a tensor nor numbers.
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
        condition: A tensor of bools, of a shape that broadcasts with those of ``x`` and ``y``. If
            it is a vector and ``x`` has more axes, it selects slices along the first axis.
        x: A tensor or numbers; required.
        y: A tensor or numbers, of a shape that broadcasts with that of ``x``; required.
        name: The name of the result; "Select" by default.

    Returns:
        A tensor of the broadcast shape. Numbers and arrays beside a tensor take its dtype if NumPy
        casts them to it by the rule "same_kind"; else, and for two tensors or two arrays, the dtype
        is NumPy's for both.

    Raises:
        GraphError: Without ``x`` or ``y``: the number of true elements is no static shape.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If ``condition`` is not bool, or complex numbers meet real ones, but for real
            numbers or arrays beside a complex tensor, and Python's numbers beside complex ones.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    if x is None or y is None:
        raise GraphError(
            f"where needs x and y, got {'neither' if x is y else 'one of them'}: the number of "
            f"true elements of the condition is no static shape; pass both"
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
        tensor: A tensor of any shape and dtype; integers and bools are always finite.
        message: Text of the error message, after the name of the result.
        name: The name of the result; "CheckNumerics" by default.

    Returns:
        A tensor with the shape, dtype and value of ``tensor``.

    Raises:
        NumericsError: In a run that computes the result, if an element is NaN or infinite.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    out = call_operator("identity", "CheckNumerics", name, as_entry(tensor))
    out.graph.checks[out.entry.node] = message
    return out
