"""Elementwise operators: element i of the result depends on element i of each input.

Inputs broadcast as in NumPy and must share one dtype, except those of `where`.
`elementwise_definition` describes the fields of an operator, `elementwise_rewrites` holds the
simplifications.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import DTypeError
from passkit.graph.call import convert, promote_operands
from passkit.graph.infer import same_dtype_rule
from passkit.graph.node import Entry, Node
from passkit.graph.op import OpPattern, register_op
from passkit.ops.elementwise_definition import elementwise
from passkit.ops.elementwise_rewrites import (
    simplify_abs,
    simplify_add,
    simplify_cast,
    simplify_div,
    simplify_equal_operands,
    simplify_idempotent,
    simplify_involution,
    simplify_mul,
    simplify_pow,
    simplify_sub,
    simplify_where,
)
from passkit.ops.helpers import add_aliases, as_replacement, check_kinds, make, real_dtype
from passkit.values.dtype import DType, bool_, dtype_of, float32

if TYPE_CHECKING:
    from passkit.ast import Expr

# Expressions of one element.


def _floor_div(x: Expr, y: Expr) -> Expr:
    """Return x / y rounded down; for integers 0 where y is 0."""
    if x.dtype.is_float:
        return _floor_div_of_floats(x, y)
    quotient = x // y  # toward zero; 0 where y is 0
    if x.dtype.kind != "i":
        return quotient
    remainder = x - quotient * y
    opposite = (remainder ^ y) < 0
    return ast.where(
        opposite & ast.not_equal(remainder, 0) & ast.not_equal(y, 0), quotient - 1, quotient
    )


def _floor_div_of_floats(x: Expr, y: Expr) -> Expr:
    """Return x / y rounded down, by the remainder as NumPy does; x / y where y is 0.

    floor(x / y) may be 1 too large, where x / y is rounded up.
    """
    remainder = ast.fmod(x, y)
    quotient = (x - remainder) / y
    opposite = ast.not_equal(remainder, 0) & _signs_differ(remainder, y)
    quotient = ast.where(opposite, quotient - 1.0, quotient)
    floor = ast.floor(quotient)
    floor = ast.where(quotient - floor > 0.5, floor + 1.0, floor)
    floor = ast.where(ast.equal(quotient, 0), ast.copysign(quotient, x / y), floor)
    return ast.where(ast.equal(y, 0), x / y, floor)


def _mod(x: Expr, y: Expr) -> Expr:
    """Return the remainder of x / y rounded down, with the sign of y.

    For integers it is 0 where y is 0, for floats NaN.
    """
    if x.dtype.is_float:
        return _mod_of_floats(x, y)
    remainder = x % y  # with the sign of x; 0 where y is 0
    if x.dtype.kind != "i":
        return remainder
    opposite = (remainder ^ y) < 0
    return ast.where(opposite & ast.not_equal(remainder, 0), remainder + y, remainder)


def _mod_of_floats(x: Expr, y: Expr) -> Expr:
    """Return the remainder of x / y with the sign of y, also where it is 0, as NumPy.

    It is NaN where y is 0.
    """
    remainder = ast.fmod(x, y)
    signed = ast.where(_signs_differ(remainder, y), remainder + y, remainder)
    signed = ast.where(ast.equal(remainder, 0), ast.copysign(remainder, y), signed)
    return ast.where(ast.equal(y, 0), remainder, signed)


def _signs_differ(x: Expr, y: Expr) -> Expr:
    """Return whether one of x and y is negative and the other is not."""
    return (x < 0) ^ (y < 0)


def _sign(x: Expr) -> Expr:
    """Return -1, 0 or 1, by the sign of x; NaN stays."""
    if x.dtype.kind == "u":
        return ast.where(x > 0, ast.const(1, x.dtype), 0)
    return ast.where(
        x > 0, ast.const(1, x.dtype), ast.where(x < 0, -1, ast.where(ast.equal(x, 0), 0, x))
    )


def _rounding(function: str) -> Callable[[Expr], Expr]:
    """Return the code that rounds floats by ``function``, such as "floor"; integers stay."""

    def code(x: Expr) -> Expr:
        """Round an expression of floats; return integers unchanged."""
        return ast.call(function, x) if x.dtype.is_float else x

    return code


def _pow(x: Expr, y: Expr) -> Expr:
    """Return x to the power y, both floats or both integers, which wrap.

    A negative power of an integer is 0, except of 1 and -1.
    """
    return ast.pow(x, y) if x.dtype.is_float else ast.whole_power(x, y)


def _clip(x: Expr, low: Expr, high: Expr) -> Expr:
    """Return x limited to low and high; where low > high, high. NaN stays."""
    return ast.minimum(ast.maximum(x, low), high)


def _where(condition: Expr, x: Expr, y: Expr) -> Expr:
    """Return x where the bool ``condition`` is true, else y."""
    return ast.where(condition, x, y)


# Dtypes that are not simply those of the inputs.


def _infer_abs_type(node: Node, dtype: DType) -> DType:
    """Infer the dtype of magnitudes: that of the input, but floats for complex numbers.

    It is float32 for complex64, float64 for complex128.

    Raises: DTypeError, naming ``node``, for bools.
    """
    check_kinds(node, "iufc", dtype)
    return real_dtype(dtype)


def _infer_where_type(node: Node, condition: DType, x: DType, y: DType) -> DType:
    """Infer the common dtype of ``x`` and ``y``, the dtypes of the second and third input.

    Errors name ``node``.

    Raises:
        DTypeError: If ``condition`` is not bool, or ``x`` and ``y`` differ.
    """
    if condition is not bool_:
        raise DTypeError(
            f"{node.where} needs a bool condition, got {condition}; pk.ops.not_equal(x, 0)"
        )
    return same_dtype_rule(node, x, y)


def _infer_cast_type(node: Node, dtype: DType) -> DType:
    """Infer the dtype, the parameter ``dtype`` of ``node``.

    Raises: DTypeError for complex numbers, as input or result, or if there is no such dtype.
    """
    target = dtype_of(node.params["dtype"])
    check_kinds(node, "biuf", dtype, target)
    return target


# Python operators that do more than apply one operator.


def _divide(x: Any, y: Any) -> Entry:
    """Return ``x / y`` of Python: integers and bools are divided as float64, as in NumPy.

    Operands are entries, arrays or numbers, promoted to one dtype, which may be complex.

    Raises: ShapeError if they do not broadcast; DTypeError if both are Python scalars, a Python int
    does not fit the integers beside it, or a real entry or array stands beside a complex one;
    ArgumentError, GraphError or DTypeError for an operand that is neither an entry, an array nor a
    number.
    """
    a, b = promote_operands("/", (x, y))
    if a.dtype is not None and a.dtype.kind not in "fc":
        float_dtype = dtype_of(float)
        a, b = convert(a, float_dtype), convert(b, float_dtype)
    return make("div", a, b)


def _power(x: Any, y: Any) -> Entry:
    """Return ``x ** y`` of Python; an integer entry to a Python int is multiplied out.

    The power 1 is then ``x`` itself. Other operands, entries, arrays or numbers, are promoted to
    one dtype and given to ``pow``.

    Raises:
        DTypeError: If an integer entry is raised to a negative int, or to one above 64; if the
            promoted dtype is bool or complex, both operands are Python scalars, or a Python int
            does not fit the integers beside it.
        ShapeError: If the operands do not broadcast.
        ArgumentError: If an operand is neither an entry, an array nor a number; a GraphError for a
            tuple of entries.
    """
    integer = isinstance(x, Entry) and x.dtype is not None and x.dtype.is_integer
    if integer and isinstance(y, int) and not isinstance(y, bool):
        if not 0 <= y <= 64:
            raise DTypeError(
                f"an integer to the power {y} needs floats; pk.ops.cast(x, 'float64') ** {y}"
            )
        factor, power = x, None
        for bit in reversed(bin(y)[2:]):
            if bit == "1":
                power = factor if power is None else power * factor
            factor = factor * factor
        return make("ones_like", x) if power is None else power
    a, b = promote_operands("**", (x, y))
    return make("pow", a, b)


# The operators.

elementwise(
    name="add",
    operator="+",
    kinds="iufc",
    code=lambda x, y: x + y,
    commutative=True,
    simplify=simplify_add,
    doc="x + y",
)
elementwise(
    name="sub",
    aliases="subtract",
    operator="-",
    kinds="iufc",
    code=lambda x, y: x - y,
    simplify=simplify_sub,
    doc="x - y",
)
elementwise(
    name="mul",
    aliases="multiply",
    operator="*",
    kinds="iufc",
    code=lambda x, y: x * y,
    commutative=True,
    simplify=simplify_mul,
    doc="x * y",
)
elementwise(
    name="div",
    aliases="divide true_divide",
    operator="/",
    python_operator=_divide,
    kinds="fc",
    code=lambda x, y: x / y,
    cost="expensive",
    simplify=simplify_div,
    doc="x / y",
)
elementwise(
    name="floor_div",
    aliases="floor_divide",
    operator="//",
    kinds="iuf",
    code=_floor_div,
    compute_dtype=float32,
    cost="expensive",
    doc="x / y rounded down; an integer divided by 0 is 0",
)
elementwise(
    name="mod",
    aliases="remainder",
    operator="%",
    kinds="iuf",
    code=_mod,
    compute_dtype=float32,
    cost="expensive",
    doc="x - (x // y) * y, the remainder with the sign of y; an integer modulo 0 is 0",
)
elementwise(
    name="pow",
    aliases="power",
    operator="**",
    python_operator=_power,
    kinds="iuf",
    code=_pow,
    cost="expensive",
    simplify=simplify_pow,
    doc="x to the power y, as C's pow: pow(-inf, 0.5) is inf; negative powers of integers are cut "
    "to integers",
)
elementwise(
    name="neg",
    aliases="negative",
    operator="neg",
    kinds="iufc",
    code=lambda x: -x,
    zero_preserving=True,
    simplify=simplify_involution,
    doc="-x",
)
elementwise(
    name="abs",
    aliases="absolute",
    operator="abs",
    kinds="iufc",
    infer_type=_infer_abs_type,
    code=lambda x: ast.abs(x),
    zero_preserving=True,
    simplify=simplify_abs,
    doc="the magnitude of x",
)
elementwise(
    name="sign",
    kinds="iuf",
    code=_sign,
    zero_preserving=True,
    simplify=simplify_idempotent,
    doc="-1, 0 or 1 by the sign of x; NaN stays",
)
elementwise(
    name="square",
    kinds="iufc",
    code=lambda x: x * x,
    zero_preserving=True,
    doc="x * x",
)
elementwise(
    name="reciprocal",
    kinds="fc",
    code=lambda x: 1.0 / x,
    cost="expensive",
    doc="1 / x",
)
elementwise(
    name="sqrt",
    kinds="f",
    code=lambda x: ast.sqrt(x),
    cost="expensive",
    zero_preserving=True,
    doc="the square root of x",
)
elementwise(
    name="rsqrt",
    kinds="f",
    code=lambda x: ast.rsqrt(x),
    cost="expensive",
    doc="1 / sqrt(x)",
)
elementwise(
    name="exp",
    kinds="f",
    code=lambda x: ast.exp(x),
    cost="expensive",
    doc="e to the power x",
)
elementwise(
    name="expm1",
    kinds="f",
    code=lambda x: ast.expm1(x),
    cost="expensive",
    zero_preserving=True,
    doc="exp(x) - 1, accurate near 0",
)
elementwise(
    name="log",
    kinds="f",
    code=lambda x: ast.log(x),
    cost="expensive",
    doc="the natural logarithm of x",
)
elementwise(
    name="log1p",
    kinds="f",
    code=lambda x: ast.log1p(x),
    cost="expensive",
    zero_preserving=True,
    doc="log(1 + x), accurate near 0",
)
elementwise(
    name="sin",
    kinds="f",
    code=lambda x: ast.sin(x),
    cost="expensive",
    zero_preserving=True,
    doc="the sine of x in radians",
)
elementwise(
    name="cos",
    kinds="f",
    code=lambda x: ast.cos(x),
    cost="expensive",
    doc="the cosine of x in radians",
)
elementwise(
    name="tanh",
    kinds="f",
    code=lambda x: ast.tanh(x),
    cost="expensive",
    zero_preserving=True,
    doc="the hyperbolic tangent of x",
)
elementwise(
    name="erf",
    kinds="f",
    code=lambda x: ast.erf(x),
    cost="expensive",
    zero_preserving=True,
    doc="the error function",
)
elementwise(
    name="sigmoid",
    aliases="expit inv_logit",
    kinds="f",
    code=lambda x: ast.sigmoid(x),
    cost="expensive",
    doc="1 / (1 + exp(-x))",
)
elementwise(
    name="relu",
    kinds="iuf",
    code=lambda x: ast.where(x <= 0, 0, x),
    zero_preserving=True,
    simplify=simplify_idempotent,
    doc="x where it is positive, else 0, which is positive for -0.0 too; NaN stays",
)
elementwise(
    name="floor",
    kinds="iuf",
    code=_rounding("floor"),
    zero_preserving=True,
    simplify=simplify_idempotent,
    doc="x rounded down",
)
elementwise(
    name="ceil",
    kinds="iuf",
    code=_rounding("ceil"),
    zero_preserving=True,
    simplify=simplify_idempotent,
    doc="x rounded up",
)
elementwise(
    name="trunc",
    kinds="iuf",
    code=_rounding("trunc"),
    zero_preserving=True,
    simplify=simplify_idempotent,
    doc="x rounded toward 0",
)
elementwise(
    name="rint",
    aliases="round",
    kinds="iuf",
    code=_rounding("rint"),
    zero_preserving=True,
    simplify=simplify_idempotent,
    doc="x rounded to the nearest integer, ties to even, in the dtype of x",
)
elementwise(
    name="maximum",
    kinds="iuf",
    code=lambda x, y: ast.maximum(x, y),
    simplify=simplify_equal_operands,
    doc="the larger of x and y; NaN if either is NaN. Of zeros of both signs it is y, in float16 "
    "x, as in NumPy on x86-64",
)
elementwise(
    name="minimum",
    kinds="iuf",
    code=lambda x, y: ast.minimum(x, y),
    simplify=simplify_equal_operands,
    doc="the smaller of x and y; NaN if either is NaN. Of zeros of both signs it is y, in float16 "
    "x, as in NumPy on x86-64",
)
elementwise(
    name="clip",
    aliases="clip_by_value",
    kinds="iuf",
    code=_clip,
    doc="x limited to the range from low to high, minimum(maximum(x, low), high)",
)
elementwise(
    name="where",
    aliases="select",
    operator="where",
    infer_type=_infer_where_type,
    code=_where,
    simplify=simplify_where,
    doc="x where the condition is true, else y; all three broadcast",
)
elementwise(
    name="equal",
    operator="==",
    kinds="biufc",
    result_dtype=bool_,
    code=lambda x, y: ast.equal(x, y),
    commutative=True,
    doc="x == y, as bool",
)
elementwise(
    name="not_equal",
    operator="!=",
    kinds="biufc",
    result_dtype=bool_,
    code=lambda x, y: ast.not_equal(x, y),
    commutative=True,
    doc="x != y, as bool",
)
elementwise(
    name="less",
    operator="<",
    kinds="biuf",
    result_dtype=bool_,
    code=lambda x, y: x < y,
    doc="x < y, as bool",
)
elementwise(
    name="less_equal",
    operator="<=",
    kinds="biuf",
    result_dtype=bool_,
    code=lambda x, y: x <= y,
    doc="x <= y, as bool",
)
elementwise(
    name="greater",
    operator=">",
    kinds="biuf",
    result_dtype=bool_,
    code=lambda x, y: x > y,
    doc="x > y, as bool",
)
elementwise(
    name="greater_equal",
    operator=">=",
    kinds="biuf",
    result_dtype=bool_,
    code=lambda x, y: x >= y,
    doc="x >= y, as bool",
)
elementwise(
    name="isnan",
    aliases="is_nan",
    kinds="iuf",
    result_dtype=bool_,
    code=lambda x: ast.not_equal(x, x),
    doc="whether x is NaN, as bool",
)
elementwise(
    name="bitwise_and",
    operator="&",
    kinds="biu",
    code=lambda x, y: x & y,
    commutative=True,
    simplify=simplify_equal_operands,
    doc="the bits that are 1 in x and in y",
)
elementwise(
    name="bitwise_or",
    operator="|",
    kinds="biu",
    code=lambda x, y: x | y,
    commutative=True,
    simplify=simplify_equal_operands,
    doc="the bits that are 1 in x or in y",
)
elementwise(
    name="bitwise_xor",
    operator="^",
    kinds="biu",
    code=lambda x, y: x ^ y,
    commutative=True,
    doc="the bits that differ between x and y",
)
elementwise(
    name="bitwise_not",
    aliases="invert bitwise_invert",
    operator="~",
    kinds="biu",
    code=lambda x: ~x,
    simplify=simplify_involution,
    doc="x with all bits inverted",
)
elementwise(
    name="logical_and",
    kinds="b",
    code=lambda x, y: x & y,
    commutative=True,
    simplify=simplify_equal_operands,
    doc="whether x and y are both true",
)
elementwise(
    name="logical_or",
    kinds="b",
    code=lambda x, y: x | y,
    commutative=True,
    simplify=simplify_equal_operands,
    doc="whether x or y or both are true",
)
elementwise(
    name="logical_xor",
    kinds="b",
    code=lambda x, y: x ^ y,
    commutative=True,
    doc="whether exactly one of x and y is true",
)
elementwise(
    name="logical_not",
    kinds="b",
    code=lambda x: ~x,
    simplify=simplify_involution,
    doc="whether x is false",
)
elementwise(
    name="zeros_like",
    operator="zeros_like",
    kinds="biufc",
    code=lambda x: ast.const(0, x.dtype),
    doc="zeros in the shape and dtype of x",
)
elementwise(
    name="ones_like",
    operator="ones_like",
    kinds="biufc",
    code=lambda x: ast.const(1, x.dtype),
    doc="ones in the shape and dtype of x",
)
identity = elementwise(
    name="identity",
    operator="identity",
    kinds="biufc",
    code=lambda x: x,
    zero_preserving=True,
    simplify=as_replacement,
    doc="x",
)
stop_gradient = elementwise(
    name="stop_gradient",
    kinds="biufc",
    code=lambda x: x,
    zero_preserving=True,
    simplify=as_replacement,
    gradient=lambda node, dy: [None],
    doc="x, through which no gradient flows",
)

cast = register_op(
    "cast",
    num_inputs=1,
    params={"dtype": "float32"},
    doc="x converted to dtype: floats are cut to integers and limited to their range, NaN becomes "
    "0; integers keep their lowest bits",
).include("elementwise")
cast.set_attr("FCodeGen", lambda node, x: ast.cast(x, node.params["dtype"]))
cast.set_attr("FInferType", _infer_cast_type)
cast.set_attr("FSimplify", simplify_cast)
cast.set_attr("TOpPattern", OpPattern.ELEMWISE)
cast.set_attr("TOpCost", "light")
cast.set_attr("TOperator", "cast")
add_aliases(cast, "astype")

for _op in (identity, stop_gradient):
    _op.set_attr("FInplaceIdentity", lambda node: [True])
