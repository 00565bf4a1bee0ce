"""Symbolic derivatives of kernel expressions, from which gradients of operators are derived.

A derivative is an expression of the same variables, or None if it is 0 everywhere. At jumps and
kinks it is the derivative of one side, as `RULES` defines it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi, sqrt
from types import EllipsisType

from passkit import ast
from passkit.ast import Binary, Call, Cast, Const, Expr, Select, Unary, Var, is_const
from passkit.errors import CodeGenError

Partials = tuple[Expr | EllipsisType | None, ...]
"""The partial derivative by each argument; None is 0, ``...`` is one that no function computes."""


def _pow(y: Expr, a: Expr, b: Expr) -> Partials:
    """Return the partial derivatives of y = a**b: ``b * a**(b - 1)`` and ``y * log(a)``.

    The latter is 0 where a <= 0. None is a derivative that is 0, as that by a literal b.
    """
    if isinstance(b, Const):
        value = float(b.value)
        if value in (0.0, 1.0, 2.0):
            return (None, _one(a), a * 2.0)[int(value)], None
        return b * ast.pow(a, value - 1.0), None
    by_base = ast.where(ast.equal(b, 0.0), 0.0, b * ast.pow(a, b - 1.0))
    return by_base, ast.where(a > 0.0, y * ast.log(a), 0.0)


def _one(x: Expr) -> Expr:
    """Return the literal 1 of the dtype of ``x``."""
    return ast.const(1, x.dtype)


def _step(condition: Expr, like: Expr) -> Expr:
    """Return 1 where the condition holds, else 0, in the dtype of ``like``."""
    return ast.where(condition, _one(like), 0.0)


def _sign(x: Expr) -> Expr:
    """Return -1, 0 or 1, the sign of x, in its dtype; 0 for NaN."""
    return ast.where(x > 0.0, _one(x), ast.where(x < 0.0, -_one(x), 0.0))


def _atan2(y: Expr, a: Expr, b: Expr) -> Partials:
    """Return the partial derivatives of atan2(a, b); ``y`` is its value."""
    square = a * a + b * b
    return b / square, -a / square


def _gamma_density(a: Expr, x: Expr) -> Expr:
    """Return x^(a - 1) exp(-x) / gamma(a), the integrand of the incomplete gamma function."""
    return ast.exp(_log_power(a, x) - x - ast.lgamma(a))


def _betainc(y: Expr, a: Expr, b: Expr, x: Expr) -> Partials:
    """Return the partial derivatives of betainc; only that by x is known, the integrand.

    It is x^(a - 1) (1 - x)^(b - 1) / beta(a, b). ``...`` stands for those that raise an error.
    """
    power = _log_power(a, x) + _log_power(b, 1.0 - x)
    return ..., ..., ast.exp(power + ast.lgamma(a + b) - ast.lgamma(a) - ast.lgamma(b))


def _log_power(a: Expr, x: Expr) -> Expr:
    """Return log(x^(a - 1)), which is 0 where a is 1, also at x = 0."""
    return ast.where(ast.equal(a, 1.0), 0.0, (a - 1.0) * ast.log(x))


# function: its partial derivatives, given its value and its arguments
RULES: dict[str, Callable[..., Partials]] = {
    "exp": lambda y, x: (y,),
    "exp2": lambda y, x: (y * log(2),),
    "expm1": lambda y, x: (y + 1.0,),
    "log": lambda y, x: (1.0 / x,),
    "log2": lambda y, x: (1.0 / (x * log(2)),),
    "log10": lambda y, x: (1.0 / (x * log(10)),),
    "log1p": lambda y, x: (1.0 / (x + 1.0),),
    "sin": lambda y, x: (ast.cos(x),),
    "cos": lambda y, x: (-ast.sin(x),),
    "tan": lambda y, x: (y * y + 1.0,),
    "sinh": lambda y, x: (ast.cosh(x),),
    "cosh": lambda y, x: (ast.sinh(x),),
    "tanh": lambda y, x: (1.0 - y * y,),
    "asin": lambda y, x: (ast.rsqrt((1.0 - x) * (1.0 + x)),),
    "acos": lambda y, x: (-ast.rsqrt((1.0 - x) * (1.0 + x)),),
    "atan": lambda y, x: (1.0 / (x * x + 1.0),),
    "asinh": lambda y, x: (ast.rsqrt(x * x + 1.0),),
    "acosh": lambda y, x: (ast.rsqrt((x - 1.0) * (x + 1.0)),),
    "atanh": lambda y, x: (1.0 / ((1.0 - x) * (1.0 + x)),),
    "erf": lambda y, x: (ast.exp(-(x * x)) * (2 / sqrt(pi)),),
    "erfc": lambda y, x: (ast.exp(-(x * x)) * (-2 / sqrt(pi)),),
    "sigmoid": lambda y, x: (y * (1.0 - y),),
    "sqrt": lambda y, x: (0.5 / y,),
    "rsqrt": lambda y, x: (y / x * -0.5,),
    "floor": lambda y, x: (None,),
    "ceil": lambda y, x: (None,),
    "trunc": lambda y, x: (None,),
    "rint": lambda y, x: (None,),
    "pow": _pow,
    "atan2": _atan2,
    "hypot": lambda y, a, b: (a / y, b / y),
    "fma": lambda y, a, b, c: (b, a, _one(a)),
    "fmod": lambda y, a, b: (_one(a), -ast.trunc(a / b)),
    "copysign": lambda y, a, b: (ast.copysign(_one(a), a) * ast.copysign(_one(b), b), None),
    "nextafter": lambda y, a, b: (_one(a), None),
    "ldexp": lambda y, a, b: (ast.exp2(b), None),  # the exponent is whole
    "cbrt": lambda y, x: (1.0 / (y * y * 3.0),),
    "lgamma": lambda y, x: (ast.digamma(x),),
    "tgamma": lambda y, x: (y * ast.digamma(x),),
    "digamma": lambda y, x: (ast.trigamma(x),),
    "igamma": lambda y, a, x: (..., _gamma_density(a, x)),
    "igammac": lambda y, a, x: (..., -_gamma_density(a, x)),
    "betainc": _betainc,
    "zeta": lambda y, s, q: (..., -s * ast.zeta(s + 1.0, q)),
    "erfinv": lambda y, x: (ast.exp(y * y) * (sqrt(pi) / 2),),
    "erfcinv": lambda y, x: (ast.exp(y * y) * (-sqrt(pi) / 2),),
    "abs": lambda y, x: (_sign(x),),  # 0 at 0
    # Where both are equal, all of it goes to the first, as in TensorFlow.
    "maximum": lambda y, a, b: (_step(a >= b, y), _step(a < b, y)),
    "minimum": lambda y, a, b: (_step(a <= b, y), _step(a > b, y)),
    "+": lambda y, a, b: (_one(a), _one(a)),
    "-": lambda y, a, b: (_one(a), -_one(a)),
    "*": lambda y, a, b: (b, a),
    "/": lambda y, a, b: (1.0 / b, -y / b),
    "//": lambda y, a, b: (None, None),
    "%": lambda y, a, b: (_one(a), -ast.trunc(a / b)),
}
"""Rules for every sign and every function of floats but trigamma, whose derivative is none."""


def derivative(x: Expr, by: Var) -> Expr | None:
    """Return the derivative of ``x`` by the variable ``by``, in the dtype of ``x``.

    It is None if it is 0 everywhere, as for integers; loads, reads and sizes count as constants.

    Raises: CodeGenError for a function without a rule, or one without a derivative by an argument,
    where that argument depends on the variable.
    """
    derivatives: dict[int, Expr | None] = {}

    def derivative_of(part: Expr) -> Expr | None:
        """Return the derivative of a subexpression, computed once; None if it is 0.

        Raises: CodeGenError for a function without derivative.
        """
        if id(part) not in derivatives:
            derivatives[id(part)] = _derivative(part, by, derivative_of)
        return derivatives[id(part)]

    return derivative_of(x)


def _derivative(x: Expr, by: Var, derivative_of: Callable[[Expr], Expr | None]) -> Expr | None:
    """Return the derivative of ``x`` by the variable ``by``.

    Args:
        x: the expression.
        by: the variable.
        derivative_of: returns the derivative of an operand, None if it is 0.

    Returns: None where it is 0, as for values that are no real floats.

    Raises: CodeGenError for a function without derivative.
    """
    if not x.dtype.is_float:
        return None
    match x:
        case Var():
            return _one(x) if x == by else None
        case Unary(_, a):
            return negative(derivative_of(a))
        case Cast(a):
            inner = derivative_of(a)
            return None if inner is None else ast.cast(inner, x.dtype)
        case Select(c, a, b):
            return _choice(c, derivative_of(a), derivative_of(b))
        case Binary(name, a, b):
            return _chain(x, name, (a, b), derivative_of)
        case Call(name, args):
            return _chain(x, name, args, derivative_of)
    return None


def _chain(
    x: Expr, name: str, args: tuple[Expr, ...], derivative_of: Callable[[Expr], Expr | None]
) -> Expr | None:
    """Apply the chain rule: sum partial derivative times derivative over the arguments.

    Args:
        x: the call.
        name: the function.
        args: its arguments.
        derivative_of: returns the derivative of an argument, None if it is 0.

    Returns: None where all derivatives are 0.

    Raises: CodeGenError where the function has no rule, or no derivative by an argument whose own
    derivative is not 0.
    """
    inner = [derivative_of(a) for a in args]
    if all(d is None for d in inner):
        return None
    rule = RULES.get(name)
    if rule is None:
        raise CodeGenError(
            f"the kernel function {name!r} has no derivative; add one to "
            f"passkit.ast.derivative.RULES, or set FGradient on the operator that uses it"
        )
    out: Expr | None = None
    for k, (partial, d) in enumerate(zip(rule(x, *args), inner, strict=True)):
        if not isinstance(partial, EllipsisType):
            out = _sum(out, product(partial, d))
        elif d is not None:
            raise CodeGenError(
                f"no kernel function is the derivative of {name!r} by its input {k}; "
                f"put stop_gradient in front of it, or set FGradient on the operator that uses it"
            )
    return out


def _sum(a: Expr | None, b: Expr | None) -> Expr | None:
    """Return ``a + b``, or ``a - x`` for a ``b`` of -x; None is 0, and returned if both are."""
    if a is None or b is None:
        return b if a is None else a
    return a - b.x if isinstance(b, Unary) else a + b


def negative(x: Expr | None) -> Expr | None:
    """Return ``-x`` of a float, simplified for literals and negations; None, which is 0, of None.

    A `Unary` must be a negation.
    """
    if isinstance(x, Const):
        return ast.const(-x.value, x.dtype)
    if isinstance(x, Unary):
        return x.x
    return None if x is None else -x


def product(a: Expr | None, b: Expr | None) -> Expr | None:
    """Return ``a * b``, simplified for factors 0, 1, -1, ``-c`` and ``1 / c``.

    None is 0: it is returned if a factor is None or the literal 0.

    A factor that selects such values becomes a selection: ``a * (c ? 1 : 0)`` is ``c ? a : 0``, so
    that infinities which are not selected do not turn into NaN.
    """
    if a is None or b is None:
        return None
    for one, other in ((a, b), (b, a)):
        if is_const(one, 1):
            return other
        if is_const(one, 0):
            return None
        if is_const(one, -1):
            return negative(other)
        if isinstance(one, Unary):
            return negative(product(one.x, other))
        if isinstance(one, Select) and (_trivial(one.a) or _trivial(one.b)):
            return _choice(one.condition, product(one.a, other), product(one.b, other))
        if isinstance(one, Binary) and one.op == "/" and is_const(one.a, 1):
            return other / one.b
    return a * b


def _choice(condition: Expr, a: Expr | None, b: Expr | None) -> Expr | None:
    """Return ``a`` where the condition holds, else ``b``; None, which is 0, if both are None."""
    if a is None:
        return None if b is None else ast.where(condition, 0.0, b)
    return ast.where(condition, a, 0.0 if b is None else b)


def _trivial(x: Expr) -> bool:
    """Return whether ``x`` is 0, 1 or -1, or selects such a value in an arm."""
    return any(is_const(x, v) for v in (0, 1, -1)) or (
        isinstance(x, Select) and (_trivial(x.a) or _trivial(x.b))
    )
