"""Operators on one or two tensors, element by element: a row for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.frontends.tinyflow.deferring import needs_ranks
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.shapes import shown
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    both,
    convert_to_tensor,
    made,
    named,
    read,
    wrapped,
)
from passkit.frontends.tinyflow.types import as_dtype
from passkit.graph.call import promote_operands
from passkit.graph.op import get_op

Function = Callable[..., Tensor]


def of_x(op: str, default: str) -> Function:
    """A function of one tensor, ``x``."""

    def function(x: Any, name: str | None = None) -> Tensor:
        return made(op, default, name, read(x))

    return _documented(function, op)


def of_features(op: str, default: str) -> Function:
    """A function of one tensor, ``features``."""

    def function(features: Any, name: str | None = None) -> Tensor:
        return made(op, default, name, read(features))

    return _documented(function, op)


def of_both(op: str, default: str) -> Function:
    """A function of two tensors, which broadcast; numbers take the dtype of a tensor."""

    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        return made(op, default, name, *promote_operands(op, both(x, y)))

    return _documented(function, op)


def _documented(function: Function, op: str) -> Function:
    doc = get_op(op).doc
    function.__doc__ = f"{doc}." if doc[1:2] == " " else f"{doc[:1].upper()}{doc[1:]}."
    function.__name__ = function.__qualname__ = op
    return function


UNARY = {
    **{"abs": ("abs", "Abs"), "negative": ("neg", "Neg"), "square": ("square", "Square")},
    **{"sqrt": ("sqrt", "Sqrt"), "rsqrt": ("rsqrt", "Rsqrt"), "exp": ("exp", "Exp")},
    **{"expm1": ("expm1", "Expm1"), "log": ("log", "Log"), "log1p": ("log1p", "Log1p")},
    **{"sign": ("sign", "Sign"), "floor": ("floor", "Floor"), "ceil": ("ceil", "Ceil")},
    **{"round": ("rint", "Round"), "sin": ("sin", "Sin"), "cos": ("cos", "Cos")},
    **{"tan": ("tan", "Tan"), "asin": ("asin", "Asin"), "acos": ("acos", "Acos")},
    **{"atan": ("atan", "Atan"), "tanh": ("tanh", "Tanh"), "sigmoid": ("sigmoid", "Sigmoid")},
    **{"erf": ("erf", "Erf"), "erfc": ("erfc", "Erfc"), "lgamma": ("lgamma", "Lgamma")},
    **{"reciprocal": ("reciprocal", "Reciprocal"), "is_nan": ("isnan", "IsNan")},
    **{"is_finite": ("isfinite", "IsFinite"), "is_inf": ("isinf", "IsInf")},
    "logical_not": ("logical_not", "LogicalNot"),
}
"""TensorFlow's name: the operator, and what a tensor is called by default."""

BINARY = {
    **{"add": ("add", "Add"), "subtract": ("sub", "Sub"), "multiply": ("mul", "Mul")},
    **{"maximum": ("maximum", "Maximum"), "minimum": ("minimum", "Minimum")},
    **{"floordiv": ("floor_div", "FloorDiv"), "mod": ("mod", "FloorMod"), "pow": ("pow", "Pow")},
    **{"squared_difference": ("squared_difference", "SquaredDifference")},
    **{"equal": ("equal", "Equal"), "not_equal": ("not_equal", "NotEqual")},
    **{"less": ("less", "Less"), "less_equal": ("less_equal", "LessEqual")},
    **{"greater": ("greater", "Greater"), "greater_equal": ("greater_equal", "GreaterEqual")},
    **{"logical_and": ("logical_and", "LogicalAnd"), "logical_or": ("logical_or", "LogicalOr")},
    **{"logical_xor": ("logical_xor", "LogicalXor"), "atan2": ("atan2", "Atan2")},
}

FEATURES = {
    **{"relu": ("relu", "Relu"), "relu6": ("relu6", "Relu6"), "elu": ("elu", "Elu")},
    **{"selu": ("selu", "Selu"), "softplus": ("log1p_exp", "Softplus")},
    **{"softsign": ("softsign", "Softsign")},
}
"""Those of tf.nn."""

FUNCTIONS: dict[str, Function] = {
    **{name: of_x(*row) for name, row in UNARY.items()},
    **{name: of_both(*row) for name, row in BINARY.items()},
}
ACTIVATIONS: dict[str, Function] = {name: of_features(*row) for name, row in FEATURES.items()}


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y; of whole numbers in float64, as in Python."""
    sides = promote_operands("truediv", both(x, y))
    if sides[0].dtype is not None and sides[0].dtype.is_integer:
        sides = [get_op("cast")(s, dtype="float64") for s in sides]
    return made("div", "truediv", name, *sides)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y; of whole numbers in float64, as in Python."""
    return truediv(x, y, name or "truediv")


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y; of whole numbers rounded down, as in Python 2."""
    sides = promote_operands("div", both(x, y))
    whole = sides[0].dtype is not None and sides[0].dtype.is_integer
    return made("floor_div" if whole else "div", "div", name, *sides)


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """``x`` converted to ``dtype``; floats become integers by leaving out the fraction."""
    tensor = convert_to_tensor(x)
    wanted = as_dtype(dtype)
    out = made("cast", "Cast", name, tensor.entry, dtype=wanted.name)
    if tensor.known is not None and wanted.is_integer:
        return Tensor(out.entry, out._name, out.graph, tensor.known)
    return out


def to_float(x: Any, name: str = "ToFloat") -> Tensor:
    """``x`` as float32."""
    return cast(x, "float32", name)


def to_int32(x: Any, name: str = "ToInt32") -> Tensor:
    """``x`` as int32."""
    return cast(x, "int32", name)


def identity(input: Any, name: str | None = None) -> Tensor:
    """``input`` under a name of its own, after what control_dependencies asks for."""
    return made("identity", "Identity", name, convert_to_tensor(input).entry)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """``input``, through which no gradient flows; a list of tensors is stacked."""
    return made("stop_gradient", "StopGradient", name, convert_to_tensor(input).entry)


@needs_ranks("AddN")
def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and dtype. Raises: ShapeError where they differ."""
    from passkit.errors import ShapeError
    from passkit.graph.adjoint import added

    terms = [read(x) for x in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
    if not terms:
        raise ShapeError("add_n needs at least one tensor, got none")
    for term in terms[1:]:
        if known_shape(term) != known_shape(terms[0]):
            raise ShapeError(
                f"add_n needs tensors of one shape, got {shown(known_shape(terms[0]))} and "
                f"{shown(known_shape(term))}; tf.add broadcasts"
            )
    if len(terms) == 1:
        return made("identity", "AddN", name, terms[0])
    return wrapped(added(terms), named(name, "AddN"))


@needs_ranks("Select", like="x")
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """``x`` where the condition holds, else ``y``; a vector condition chooses rows.

    Raises: GraphError without ``x`` and ``y``: how many places there are is known only in a run.
    """
    from passkit.errors import GraphError

    if x is None or y is None:
        raise GraphError(
            f"where needs x and y, got {'neither' if x is y else 'one of them'}: the number of "
            f"places where a condition holds is no static shape; give both"
        )
    chosen = read(condition)
    sides = promote_operands("where", both(x, y))
    rank, own = len(known_shape(sides[0])), len(known_shape(chosen))
    if own == 1 and rank > 1:
        axes = tuple(n for n in range(1, rank))
        chosen = get_op("expand_dims")(chosen, axis=axes)
    return made("where", "Select", name, chosen, *sides)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """``tensor``; a run that needs it ends with a NumericsError if a number is not finite.

    The run is over by then: tf.Session(check_numerics=True) checks every operator, and puts the
    variables back.
    """
    out = made("identity", "CheckNumerics", name, read(tensor))
    out.graph.checks[out.entry.node] = message
    return out
