"""Elementwise operators: element i of the result depends on element i of each input.

Inputs broadcast as in NumPy and must share one dtype; `where` and `cast` say otherwise. A row of
the table has the name, the kinds of dtype that it takes (b bool, i signed, u unsigned, f float, c
complex, which runs in NumPy only), one element of the result, and what it means in words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import DTypeError
from passkit.graph.call import convert, promote_operands
from passkit.graph.infer import same_dtype_rule
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.op import OpPattern, get_op, register_op
from passkit.ops.helpers import (
    add_aliases,
    as_replacement,
    check_kinds,
    is_constant,
    scalar_constant,
)
from passkit.ops.pointwise import elementwise
from passkit.values.dtype import DType, bool_, dtype_of, float32, is_lossless

if TYPE_CHECKING:
    from passkit.ast import Expr

ZERO_PRESERVING = (
    *("neg", "abs", "square", "sign", "sqrt", "sin", "tanh", "erf", "expm1", "log1p", "relu"),
    *("floor", "ceil", "trunc", "rint", "identity", "stop_gradient"),
)


# Each rewriting is exact: the same bits for every input, NaN, inf and -0 among them.


def _simplify_add(node: Node, x: Entry, y: Entry) -> Entry | None:
    """``x + -0.0 -> x``, and for integers ``x + 0 -> x``; ``-0.0 + 0.0`` is 0.0, so no more."""
    for kept, other in ((x, y), (y, x)):
        value = scalar_constant(other)
        if value is not None and value == 0 and (value.dtype.kind in "iu" or np.signbit(value)):
            return as_replacement(node, kept)
    return None


def _simplify_sub(node: Node, x: Entry, y: Entry) -> Entry | None:
    """``x - 0 -> x``."""
    return as_replacement(node, x) if is_constant(y, 0) else None


def _simplify_mul(node: Node, x: Entry, y: Entry) -> Entry | None:
    """``x * 1 -> x``."""
    if is_constant(y, 1):
        return as_replacement(node, x)
    return as_replacement(node, y) if is_constant(x, 1) else None


def _simplify_div(node: Node, x: Entry, y: Entry) -> Entry | None:
    """``x / 1 -> x``, and ``x / c -> x * (1/c)`` for a power of two."""
    value = scalar_constant(y)
    if value is None:
        return None
    if value == 1:
        return as_replacement(node, x)
    if y.node.op is not CONSTANT:  # one that is spread out
        return None
    mantissa, exponent = np.frexp(np.float64(value))
    if abs(mantissa) == 0.5 and abs(int(exponent)) < 14:  # the inverse is exact in 16 bits too
        inverse = np.full(y.node.params["value"].shape, 1.0 / float(value), value.dtype)
        return get_op("mul")(x, inverse)  # type: ignore[no-any-return]
    return None


def _simplify_pow(node: Node, x: Entry, y: Entry) -> Entry | None:
    """``x**1 -> x``, ``x**2 -> x*x``, ``x**-1 -> 1/x``: correctly rounded, as pow need not be.

    Not ``x**0.5 -> sqrt(x)``, which differs at -inf and -0; and integers have no reciprocal.
    """
    if x.dtype is None or as_replacement(node, x) is None:
        return None
    for value, name in ((1, "identity"), (2, "square"), (-1, "reciprocal")):
        if is_constant(y, value) and (value > 0 or x.dtype.is_float):
            return get_op(name)(x)  # type: ignore[no-any-return]
    return None


def _simplify_twice(node: Node, x: Entry) -> Entry | None:
    """``f(f(x)) -> x``."""
    return x.node.inputs[0] if x.node.op is node.op else None


def _simplify_again(node: Node, x: Entry) -> Entry | None:
    """``f(f(x)) -> f(x)``."""
    return x if x.node.op is node.op else None


def _simplify_abs(node: Node, x: Entry) -> Entry | None:
    """``abs(-x) -> abs(x)``, ``abs(abs(x)) -> abs(x)``."""
    if x.node.op is get_op("neg"):
        return get_op("abs")(x.node.inputs[0])  # type: ignore[no-any-return]
    return _simplify_again(node, x)


def _simplify_equal_sides(node: Node, x: Entry, y: Entry) -> Entry | None:
    """``f(x, x) -> x``."""
    return as_replacement(node, x) if x is y else None


def _simplify_where(node: Node, condition: Entry, x: Entry, y: Entry) -> Entry | None:
    """``where(True, x, y) -> x``, ``where(c, x, x) -> x``."""
    value = scalar_constant(condition)
    if value is not None:
        return as_replacement(node, x if value else y)
    return as_replacement(node, x) if x is y else None


def _simplify_cast(node: Node) -> Entry | None:
    """Remove a cast to the same dtype, and merge a cast with one before it that loses nothing.

    An integer that becomes an integer wraps, and a float that becomes one saturates. So an integer
    may skip a float on its way to another integer type only where that holds all its values:
    ``cast(cast(x: int8, "float32"), "uint8")`` is 0 for -1, and ``cast(x, "uint8")`` is 255.
    """
    x = node.inputs[0]
    target = node.entries[0].dtype
    if x.dtype is target:
        return x if target is not None else None
    if x.node.op is not node.op:
        return None
    first = x.node.inputs[0]
    if first.dtype is None or x.dtype is None or target is None:
        return None
    if not is_lossless(first.dtype, x.dtype):
        return None
    wraps_or_saturates_alike = first.dtype.is_float == x.dtype.is_float or not target.is_integer
    if wraps_or_saturates_alike or is_lossless(first.dtype, target):
        return convert(first, target)
    return None


def _float_floor_div(x: Expr, y: Expr) -> Expr:
    """By the remainder, as in NumPy: floor(x / y) may be 1 too large, where x / y is rounded up."""
    rest = ast.fmod(x, y)
    quotient = (x - rest) / y
    quotient = ast.where(ast.not_equal(rest, 0) & _opposite(rest, y), quotient - 1.0, quotient)
    whole = ast.floor(quotient)
    whole = ast.where(quotient - whole > 0.5, whole + 1.0, whole)
    whole = ast.where(ast.equal(quotient, 0), ast.copysign(quotient, x / y), whole)
    return ast.where(ast.equal(y, 0), x / y, whole)


def _opposite(x: Expr, y: Expr) -> Expr:
    return (x < 0) ^ (y < 0)


def _float_mod(x: Expr, y: Expr) -> Expr:
    """As NumPy: a rest of 0 has the sign of y; NaN where y is 0."""
    rest = ast.fmod(x, y)
    moved = ast.where(_opposite(rest, y), rest + y, rest)
    moved = ast.where(ast.equal(rest, 0), ast.copysign(rest, y), moved)
    return ast.where(ast.equal(y, 0), rest, moved)


def _floor_div(x: Expr, y: Expr) -> Expr:
    if x.dtype.is_float:
        return _float_floor_div(x, y)
    quotient = x // y  # toward zero; 0 where y is 0
    if x.dtype.kind != "i":
        return quotient
    rest = x - quotient * y
    opposite = (rest ^ y) < 0
    return ast.where(
        opposite & ast.not_equal(rest, 0) & ast.not_equal(y, 0), quotient - 1, quotient
    )


def _mod(x: Expr, y: Expr) -> Expr:
    if x.dtype.is_float:
        return _float_mod(x, y)
    rest = x % y  # with the sign of x; 0 where y is 0
    if x.dtype.kind != "i":
        return rest
    return ast.where(((rest ^ y) < 0) & ast.not_equal(rest, 0), rest + y, rest)


def _abs_type(node: Node, dtype: DType) -> DType:
    """The magnitude of a complex number is a float."""
    check_kinds(node, "iufc", dtype)
    return dtype_of(f"float{4 * dtype.nbytes}") if dtype.kind == "c" else dtype


def _where_type(node: Node, condition: DType, x: DType, y: DType) -> DType:
    if condition is not bool_:
        raise DTypeError(
            f"{node.where} needs a bool condition, got {condition}; pk.ops.not_equal(x, 0)"
        )
    return same_dtype_rule(node, x, y)


def _sign(x: Expr) -> Expr:
    if x.dtype.kind == "u":
        return ast.where(x > 0, ast.const(1, x.dtype), 0)
    return ast.where(
        x > 0, ast.const(1, x.dtype), ast.where(x < 0, -1, ast.where(ast.equal(x, 0), 0, x))
    )


def _where(condition: Expr, x: Expr, y: Expr) -> Expr:
    return ast.where(condition, x, y)


def _rounded(name: str) -> Callable[[Expr], Expr]:
    """Integers are whole as they are."""

    def code(x: Expr) -> Expr:
        return ast.call(name, x) if x.dtype.is_float else x

    return code


def _pow(x: Expr, y: Expr) -> Expr:
    return ast.pow(x, y) if x.dtype.is_float else ast.whole_power(x, y)


def _clip(x: Expr, low: Expr, high: Expr) -> Expr:
    return ast.minimum(ast.maximum(x, low), high)


# name, kinds, one element of the result, meaning; see the header
elementwise("add", "iufc", lambda x, y: x + y, "x + y")
elementwise("sub", "iufc", lambda x, y: x - y, "x - y")
elementwise("mul", "iufc", lambda x, y: x * y, "x * y")
elementwise("div", "fc", lambda x, y: x / y, "x / y")
elementwise(
    "floor_div",
    *("iuf", _floor_div, "x / y rounded down; for integers x // 0 = 0"),
    least=float32,
)
elementwise(
    "mod",
    *("iuf", _mod, "x - (x // y) * y, with the sign of y; for integers x % 0 = 0"),
    least=float32,
)
elementwise(
    "pow",
    "iuf",
    _pow,
    "x to the power y, as C's pow for constant and computed y alike (pow(-inf, 0.5) is inf); "
    "for integers 1 / x^n is cut to a whole number",
)
elementwise("neg", "iufc", lambda x: -x, "-x")
elementwise("abs", "iufc", lambda x: ast.abs(x), "the magnitude of x", _abs_type)
elementwise("sign", "iuf", _sign, "-1, 0 or 1; NaN stays")
elementwise("square", "iufc", lambda x: x * x, "x * x")
elementwise("reciprocal", "fc", lambda x: 1.0 / x, "1 / x")
elementwise("sqrt", "f", lambda x: ast.sqrt(x), "the square root of x")
elementwise("rsqrt", "f", lambda x: ast.rsqrt(x), "1 / sqrt(x)")
elementwise("exp", "f", lambda x: ast.exp(x), "e to the power x")
elementwise("expm1", "f", lambda x: ast.expm1(x), "exp(x) - 1, exact near 0")
elementwise("log", "f", lambda x: ast.log(x), "the natural logarithm of x")
elementwise("log1p", "f", lambda x: ast.log1p(x), "log(1 + x), exact near 0")
elementwise("sin", "f", lambda x: ast.sin(x), "the sine of x in radians")
elementwise("cos", "f", lambda x: ast.cos(x), "the cosine of x in radians")
elementwise("tanh", "f", lambda x: ast.tanh(x), "the hyperbolic tangent of x")
elementwise("erf", "f", lambda x: ast.erf(x), "the error function")
elementwise("sigmoid", "f", lambda x: ast.sigmoid(x), "1 / (1 + exp(-x))")
elementwise(
    "relu",
    "iuf",
    lambda x: ast.where(x <= 0, 0, x),
    "x if positive, else 0, also of -0.0; NaN stays",
)
elementwise("floor", "iuf", _rounded("floor"), "x rounded down")
elementwise("ceil", "iuf", _rounded("ceil"), "x rounded up")
elementwise("trunc", "iuf", _rounded("trunc"), "x rounded toward 0")
elementwise("rint", "iuf", _rounded("rint"), "the nearest integer, ties to even")
elementwise(
    "maximum",
    "iuf",
    lambda x, y: ast.maximum(x, y),
    "the larger; NaN if either is; of zeros of both signs y, in float16 x, as NumPy on x86-64",
)
elementwise(
    "minimum",
    "iuf",
    lambda x, y: ast.minimum(x, y),
    "the smaller; NaN if either is; of zeros of both signs y, in float16 x, as NumPy on x86-64",
)
elementwise("clip", "iuf", _clip, "minimum(maximum(x, low), high)")
elementwise("where", "", _where, "x where the condition holds, else y", _where_type)
elementwise("equal", "biufc", lambda x, y: ast.equal(x, y), "x == y, as bool")
elementwise("not_equal", "biufc", lambda x, y: ast.not_equal(x, y), "x != y, as bool")
elementwise("less", "biuf", lambda x, y: x < y, "x < y, as bool")
elementwise("less_equal", "biuf", lambda x, y: x <= y, "x <= y, as bool")
elementwise("greater", "biuf", lambda x, y: x > y, "x > y, as bool")
elementwise("greater_equal", "biuf", lambda x, y: x >= y, "x >= y, as bool")
elementwise("isnan", "iuf", lambda x: ast.not_equal(x, x), "whether x is NaN")
elementwise("bitwise_and", "biu", lambda x, y: x & y, "both bits")
elementwise("bitwise_or", "biu", lambda x, y: x | y, "either bit")
elementwise("bitwise_xor", "biu", lambda x, y: x ^ y, "bits that differ")
elementwise("bitwise_not", "biu", lambda x: ~x, "bits inverted")
elementwise("logical_and", "b", lambda x, y: x & y, "both hold")
elementwise("logical_or", "b", lambda x, y: x | y, "either holds")
elementwise("logical_xor", "b", lambda x, y: x ^ y, "exactly one holds")
elementwise("logical_not", "b", lambda x: ~x, "it does not hold")
elementwise("zeros_like", "biufc", lambda x: ast.const(0, x.dtype), "zeros like x")
elementwise("ones_like", "biufc", lambda x: ast.const(1, x.dtype), "ones like x")
elementwise("identity", "biufc", lambda x: x, "x")
elementwise("stop_gradient", "biufc", lambda x: x, "x, through which no gradient flows")

OPERATORS = {
    **{"+": "add", "-": "sub", "*": "mul", "//": "floor_div", "%": "mod", "neg": "neg"},
    **{"abs": "abs", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"},
    **{"&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "~": "bitwise_not"},
    **{"==": "equal", "!=": "not_equal", "where": "where"},  # what gradients are made of
    **{"zeros_like": "zeros_like", "ones_like": "ones_like", "identity": "identity"},
}
ALIASES = {
    **{"sub": "subtract", "mul": "multiply", "div": "divide true_divide", "pow": "power"},
    **{"neg": "negative", "abs": "absolute", "floor_div": "floor_divide", "mod": "remainder"},
    **{"rint": "round", "clip": "clip_by_value", "where": "select", "isnan": "is_nan"},
    **{"bitwise_not": "invert bitwise_invert", "sigmoid": "expit inv_logit"},
}
SIMPLIFY: dict[str, Callable[..., Entry | None]] = {
    **{"add": _simplify_add, "sub": _simplify_sub, "mul": _simplify_mul, "div": _simplify_div},
    **{"pow": _simplify_pow, "abs": _simplify_abs, "where": _simplify_where},
    **dict.fromkeys(["neg", "bitwise_not", "logical_not"], _simplify_twice),
    **dict.fromkeys(["sign", "relu", "floor", "ceil", "trunc", "rint"], _simplify_again),
    **dict.fromkeys(["maximum", "minimum"], _simplify_equal_sides),
    **dict.fromkeys(["bitwise_and", "bitwise_or"], _simplify_equal_sides),
    **dict.fromkeys(["logical_and", "logical_or"], _simplify_equal_sides),
    **dict.fromkeys(["identity", "stop_gradient"], as_replacement),
}


def _on_inputs(rule: Callable[..., Entry | None]) -> Callable[[Node], Entry | None]:
    return lambda node: rule(node, *node.inputs)


for _symbol, _name in OPERATORS.items():
    get_op(_name).set_attr("TOperator", _symbol)
for _name, _other in ALIASES.items():
    add_aliases(get_op(_name), _other)
for _name, _rule in SIMPLIFY.items():
    get_op(_name).set_attr("FSimplify", _on_inputs(_rule))
for _name in ZERO_PRESERVING:
    get_op(_name).set_attr("TZeroPreserving", True)
for _name in ("identity", "stop_gradient"):
    get_op(_name).set_attr("FInplaceIdentity", lambda node: [True])
get_op("stop_gradient").set_attr("FGradient", lambda node, dy: [None])

cast = register_op(
    "cast",
    num_inputs=1,
    params={"dtype": "float32"},
    doc="x converted to dtype: float to integer saturates and NaN gives 0; integers wrap",
).include("elementwise")
cast.set_attr("FCodeGen", lambda node, x: ast.cast(x, node.params["dtype"]))
cast.set_attr("TOpPattern", OpPattern.ELEMWISE)
cast.set_attr("TOpCost", "light")
cast.set_attr("TOperator", "cast")
cast.set_attr("FSimplify", _simplify_cast)
add_aliases(cast, "astype")


def _cast_type(node: Node, dtype: DType) -> DType:
    check_kinds(node, "biuf", dtype, wanted := dtype_of(node.params["dtype"]))
    return wanted


cast.set_attr("FInferType", _cast_type)


def _divide(x: Any, y: Any) -> Entry:
    """``x / y`` in Python: integers and bools are divided as float64, as in NumPy."""
    a, b = promote_operands("/", (x, y))
    if a.dtype is not None and a.dtype.kind not in "fc":
        wider = dtype_of(float)
        a, b = convert(a, wider), convert(b, wider)
    return get_op("div")(a, b)  # type: ignore[no-any-return]


def _power(x: Any, y: Any) -> Entry:
    """``x ** y`` in Python; an integer to a small Python int is multiplied out."""
    integer = isinstance(x, Entry) and x.dtype is not None and x.dtype.is_integer
    if integer and isinstance(y, int) and not isinstance(y, bool):
        if not 0 <= y <= 64:
            raise DTypeError(
                f"an integer to the power {y} needs floats; pk.ops.cast(x, 'float64') ** {y}"
            )
        factor, out = x, None
        for bit in reversed(bin(y)[2:]):
            if bit == "1":
                out = factor if out is None else out * factor
            factor = factor * factor
        return get_op("ones_like")(x) if out is None else out  # type: ignore[no-any-return]
    a, b = promote_operands("**", (x, y))
    return get_op("pow")(a, b)  # type: ignore[no-any-return]


get_op("div").set_attr("TOperator", "/").set_attr("FOperator", _divide)
get_op("pow").set_attr("TOperator", "**").set_attr("FOperator", _power)
