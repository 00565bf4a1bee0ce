"""The named functions that every dialect has, as builders of kernel expressions.

`passkit.ast` exports the builders, so that an operator writes ``ast.exp(x)``. The tables give the
number of arguments of each function; all arguments and the result have one dtype.
"""

from __future__ import annotations

from collections.abc import Callable

from passkit.ast.expr import Expr, Operand, call
from passkit.errors import ArgumentError

FUNCTIONS = {
    "exp": 1,
    "exp2": 1,
    "expm1": 1,
    "log": 1,
    "log2": 1,
    "log10": 1,
    "log1p": 1,
    "sin": 1,
    "cos": 1,
    "tan": 1,
    "sinh": 1,
    "cosh": 1,
    "tanh": 1,
    "asin": 1,
    "acos": 1,
    "atan": 1,
    "asinh": 1,
    "acosh": 1,
    "atanh": 1,
    "erf": 1,
    "erfc": 1,
    "sigmoid": 1,
    "sqrt": 1,
    "rsqrt": 1,
    "floor": 1,
    "ceil": 1,
    "trunc": 1,
    "rint": 1,
    "cbrt": 1,
    "lgamma": 1,
    "tgamma": 1,
    "digamma": 1,
    "trigamma": 1,
    "erfinv": 1,
    "erfcinv": 1,
    "pow": 2,
    "atan2": 2,
    "hypot": 2,
    "fmod": 2,
    "copysign": 2,
    "nextafter": 2,
    "ldexp": 2,
    "igamma": 2,
    "igammac": 2,
    "zeta": 2,
    "betainc": 3,
    "fma": 3,
    "abs": 1,
    "maximum": 2,
    "minimum": 2,
}
"""Name and number of arguments of each function of floats.

``abs``, ``maximum`` and ``minimum`` take integers, too.
"""

INTEGER_FUNCTIONS = {
    "left_shift": 2,
    "right_shift": 2,
    "gcd": 2,
    "whole_power": 2,
}
"""Name and number of arguments of each function of integers.

Shifts are defined for every count: one below 0, or not below the number of bits of the dtype,
shifts all bits out.
"""

WORDS = {
    "philox_low": 3,
    "philox_high": 3,
}
"""Name and number of arguments of each function of int64 that has no public builder.

``philox_low`` and ``philox_high`` of (counter, stream, key) are the halves of the 128 random bits
that Philox 4x32-10 generates for that counter.
"""

VARIANTS = {
    "exp_nonpositive": "exp",
}
"""Functions restricted to a part of the domain, and the function that each one is a variant of.

Lowering chooses a variant where it can prove the restriction, such as that no argument is positive.
A variant returns the same bits as the general function, so a dialect may print the latter.
"""


Builder = Callable[..., Expr]

_NUMBERS = {
    1: "It is an expression.",
    2: "They are expressions of one dtype; one of them may be a number.",
    3: "The first is an expression; the others are expressions or numbers.",
}
"""By the number of arguments: which of them may be numbers."""
_DOC = """Return a call of the kernel function ``{name}`` with {count} argument(s).

    {numbers} The result has the dtype of the first expression.

    Raises:
        ArgumentError: There is another number of arguments, or, beside an expression, one that is
            neither an expression nor a number that `passkit.ast.const` takes.
        DTypeError: The first of one or three arguments is no expression, or of two the dtypes
            differ, a number does not fit the other's dtype, or neither is an expression.
    """
"""The docstring of a builder, with the name of its function filled in."""


def _builder(name: str) -> Builder:
    """Return a function that builds a call of the function ``name``.

    That is a key of `FUNCTIONS` or `INTEGER_FUNCTIONS`, else a KeyError is raised.
    """
    count = FUNCTIONS.get(name) or INTEGER_FUNCTIONS[name]

    def build(*args: Operand) -> Expr:
        """Return a call of the function ``name``; this text is replaced by `_DOC` with the name.

        Raises: ArgumentError for another number of arguments than ``count``, or an argument that is
        neither an expression nor a number; DTypeError where no expression gives the dtype, or two
        arguments differ in dtype.
        """
        if len(args) != count:
            raise ArgumentError(f"ast.{name} must get {count} argument(s), got {len(args)}")
        return call(name, *args)

    build.__name__ = name
    build.__doc__ = _DOC.format(name=name, count=count, numbers=_NUMBERS[count])
    return build


exp: Builder = _builder("exp")
exp2: Builder = _builder("exp2")
expm1: Builder = _builder("expm1")
log: Builder = _builder("log")
log2: Builder = _builder("log2")
log10: Builder = _builder("log10")
log1p: Builder = _builder("log1p")
sin: Builder = _builder("sin")
cos: Builder = _builder("cos")
tan: Builder = _builder("tan")
sinh: Builder = _builder("sinh")
cosh: Builder = _builder("cosh")
tanh: Builder = _builder("tanh")
asin: Builder = _builder("asin")
acos: Builder = _builder("acos")
atan: Builder = _builder("atan")
asinh: Builder = _builder("asinh")
acosh: Builder = _builder("acosh")
atanh: Builder = _builder("atanh")
erf: Builder = _builder("erf")
erfc: Builder = _builder("erfc")
sigmoid: Builder = _builder("sigmoid")
sqrt: Builder = _builder("sqrt")
rsqrt: Builder = _builder("rsqrt")
floor: Builder = _builder("floor")
ceil: Builder = _builder("ceil")
trunc: Builder = _builder("trunc")
rint: Builder = _builder("rint")
cbrt: Builder = _builder("cbrt")
lgamma: Builder = _builder("lgamma")
tgamma: Builder = _builder("tgamma")
digamma: Builder = _builder("digamma")
trigamma: Builder = _builder("trigamma")
erfinv: Builder = _builder("erfinv")
erfcinv: Builder = _builder("erfcinv")
pow: Builder = _builder("pow")
atan2: Builder = _builder("atan2")
hypot: Builder = _builder("hypot")
fmod: Builder = _builder("fmod")
copysign: Builder = _builder("copysign")
nextafter: Builder = _builder("nextafter")
ldexp: Builder = _builder("ldexp")
igamma: Builder = _builder("igamma")
igammac: Builder = _builder("igammac")
zeta: Builder = _builder("zeta")
betainc: Builder = _builder("betainc")
fma: Builder = _builder("fma")
abs: Builder = _builder("abs")
maximum: Builder = _builder("maximum")
minimum: Builder = _builder("minimum")
left_shift: Builder = _builder("left_shift")
right_shift: Builder = _builder("right_shift")
gcd: Builder = _builder("gcd")
whole_power: Builder = _builder("whole_power")
