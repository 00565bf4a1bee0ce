"""Kernel expressions in NumPy: what each one means, on whole arrays at once.

Every operation rounds to its dtype. Transcendental functions of floats below 64 bits are computed
in float64 and rounded once, so that they are nearly always correctly rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.ast import VARIANTS, Binary, Call, Cast, Const, Expr, Load, Select, SizeOf, Unary, Var
from passkit.errors import CodeGenError, nearest
from passkit.runtime.philox import philox
from passkit.values.dtype import DType, dtype_of
from passkit.values.lazy import Lazy
from passkit.values.size import evaluate as evaluate_size

if TYPE_CHECKING:
    from passkit.runtime import incomplete, special
else:
    incomplete = Lazy("passkit.runtime.incomplete")
    special = Lazy("passkit.runtime.special")

Array = Any


def cast_array(x: Array, dtype: DType) -> Array:
    """``x`` converted: float to integer saturates, NaN gives 0, to bool is ``!= 0``."""
    x = np.asarray(x)
    if x.dtype == dtype.numpy:
        return x
    if dtype.kind not in "iu" or x.dtype.kind in "biu":
        return x.astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    whole = np.trunc(x.astype(np.float64))
    top = math.ldexp(1.0, limits.max.bit_length())  # one above the largest, and exact
    inside = (whole > limits.min) & (whole < top)
    out = np.where(inside, whole, 0).astype(dtype.numpy)
    out = np.where(whole >= top, limits.max, out)
    return np.where(whole <= limits.min, limits.min, out).astype(dtype.numpy)


def _each(f: Callable[[float], float]) -> Callable[[Array], Array]:
    """``f`` of every element, for functions that NumPy lacks."""

    def apply(x: Array) -> Array:
        flat = np.ascontiguousarray(x, np.float64).reshape(-1)
        return np.fromiter(map(f, flat.tolist()), np.float64, flat.size).reshape(np.shape(x))

    return apply


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


def _rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def _neighbour(short: str, *x: Array) -> Array:
    """The next float of 16 bits, of numbers that are held in wider ones."""
    wide, narrow = np.asarray(x[0]).dtype, dtype_of(short).numpy
    return np.asarray(np.nextafter(*(np.asarray(v).astype(narrow) for v in x))).astype(wide)


def _ldexp(x: Array, n: Array) -> Array:
    return np.ldexp(x, np.clip(np.asarray(n, np.float64), -9999, 9999).astype(np.int32))


def _pow(x: Array, y: Array) -> Array:
    """C's ``pow``, also for an exponent that all elements share.

    NumPy computes ``power(x, 0.5)`` as a square root where one exponent is spread over an array:
    then -inf gives NaN instead of inf, and -0 gives -0 instead of 0. It squares and divides for the
    exponents 2 and -1, whose last bit differs. So each element gets an exponent of its own here,
    and there are at least two, as one element counts as spread out.
    """
    x, y = np.broadcast_arrays(x, y)
    count = max(x.size, 2)
    out = np.power(np.resize(x, count), np.resize(y, count))
    return out[: x.size].reshape(x.shape)


def _whole_power(x: Array, n: Array) -> Array:
    """Wraps; 1 and -1 to a negative power are whole, all else is 0 then."""
    positive = np.power(x, np.maximum(n, 0))
    if np.asarray(x).dtype.kind == "u":
        return positive
    sign = np.where(n & 1, x, np.ones_like(x))
    return np.where(n < 0, np.where(np.abs(x) == 1, sign, 0), positive).astype(positive.dtype)


SPECIAL = ("lgamma", "tgamma", "digamma", "trigamma", "erfinv", "erfcinv")
"""Functions that NumPy lacks, in a module of their own."""


def _special(name: str) -> Callable[..., Array]:
    return lambda *args: getattr(special, name)(*args)


INCOMPLETE = ("igamma", "igammac", "betainc", "zeta")
"""Functions that are sums of as many terms as their arguments ask for, in another module."""


def _incomplete(name: str) -> Callable[..., Array]:
    return lambda *args: getattr(incomplete, name)(*args)


# name: the function of float64 arrays
IN_DOUBLE: dict[str, Callable[..., Array]] = {
    **{
        name: getattr(np, name)
        for name in [
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
        ]
    },
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "sigmoid": _sigmoid,
    "rsqrt": _rsqrt,
    "cbrt": np.cbrt,
    "pow": _pow,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    **{name: _special(name) for name in SPECIAL},
    **{name: _incomplete(name) for name in INCOMPLETE},
}
# name: the function that is exact in every dtype
EXACT: dict[str, Callable[..., Array]] = {
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "abs": np.abs,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmod": np.fmod,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "nextafter_f16": lambda *x: _neighbour("f16", *x),
    "nextafter_bf16": lambda *x: _neighbour("bf16", *x),
    "ldexp": _ldexp,
    "fma": _special("fma"),
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
    "gcd": np.gcd,
    "whole_power": _whole_power,
    "philox_low": lambda *x: philox(*x)[0],
    "philox_high": lambda *x: philox(*x)[1],
}


def _quotient(a: Array, b: Array) -> Array:
    """Integer division toward zero; by zero it is 0, and the lowest by -1 wraps."""
    floor = np.floor_divide(a, b)
    if np.asarray(a).dtype.kind != "i":
        return floor
    inexact = (b != 0) & (floor * b != a) & ((a < 0) != (b < 0))
    return np.where(inexact, floor + np.asarray(1, floor.dtype), floor)


def _remainder(a: Array, b: Array) -> Array:
    return np.where(b == 0, np.zeros_like(a), a - _quotient(a, b) * b)


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": _quotient,
    "%": _remainder,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
UNARY: dict[str, Callable[[Array], Array]] = {"-": np.negative, "~": np.invert}


def call_array(name: str, dtype: DType, *args: Array) -> Array:
    """The dialect function ``name`` of arrays of ``dtype``.

    Raises: CodeGenError for a name that has no meaning here.
    """
    exact = EXACT.get(name)
    if exact is not None:
        return exact(*args)
    function = IN_DOUBLE.get(VARIANTS.get(name, name))
    if function is None:
        raise CodeGenError(f"function {name!r} is not known; {nearest(name, [*EXACT, *IN_DOUBLE])}")
    wide = [np.asarray(a, np.float64) for a in args]
    return np.asarray(function(*wide)).astype(dtype.numpy)


def evaluate(
    expr: Expr,
    values: Mapping[str, Array] | None = None,
    buffers: Mapping[str, Array] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Array:
    """The value of an expression: an array of whatever shape its variables broadcast to.

    ``values`` are the variables, ``buffers`` what loads read (one-dimensional), ``sizes`` the
    symbols of extents. The arms of a Select load only where they are chosen.

    Raises: CodeGenError for a load outside of its buffer or an unknown name.
    """
    with np.errstate(all="ignore"):
        return Evaluation(values or {}, buffers or {}, sizes or {}).run(expr)


class Evaluation:
    """Evaluates expressions by a stack of what is to do, so that their depth does not matter."""

    def __init__(
        self, values: Mapping[str, Array], buffers: Mapping[str, Array], sizes: Mapping[str, int]
    ) -> None:
        self.values, self.buffers, self.sizes = values, buffers, sizes
        self.done: list[Array] = []
        self.todo: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def run(self, expr: Expr, active: Array = None) -> Array:
        """The value where ``active`` holds (None: everywhere), elsewhere anything."""
        self.todo.append((self.visit, (expr, active)))
        while self.todo:
            step, args = self.todo.pop()
            step(*args)
        return self.done.pop()

    def visit(self, x: Expr, active: Array) -> None:
        """Plan the evaluation of ``x`` where ``active`` holds (None: everywhere)."""
        match x:
            case Const():
                self.done.append(x.value)
            case Var(name):
                if name not in self.values:
                    raise CodeGenError(
                        f"variable {name!r} has no value; {nearest(name, self.values)}"
                    )
                self.done.append(self.values[name])
            case SizeOf(size):
                self.done.append(np.int64(evaluate_size(size, self.sizes)))
            case Select(condition, a, b):
                self.todo.append((self.choose, (a, b, active)))
                self.todo.append((self.visit, (condition, active)))
            case Load(buffer, at, _):
                self.plan((at,), active, self.load(buffer, active))
            case Unary(op, a):
                self.plan((a,), active, UNARY[op])
            case Binary(op, a, b):
                self.plan((a, b), active, BINARY[op])
            case Cast(a, dtype):
                self.plan((a,), active, lambda v: cast_array(v, dtype))
            case Call(name, args, dtype):
                self.plan(args, active, lambda *v: call_array(name, dtype, *v))
            case _:
                raise CodeGenError(f"{type(x).__name__} is no expression that can be evaluated")

    def plan(self, args: tuple[Expr, ...], active: Array, function: Callable[..., Array]) -> None:
        """Plan a function of the values of ``args``."""
        self.todo.append((self.apply, (function, len(args))))
        self.todo.extend((self.visit, (a, active)) for a in reversed(args))

    def apply(self, function: Callable[..., Array], count: int) -> None:
        """Put the function's value in the place of its arguments', which are done."""
        args = self.done[len(self.done) - count :]
        del self.done[len(self.done) - count :]
        self.done.append(function(*args))

    def choose(self, a: Expr, b: Expr, active: Array) -> None:
        """Plan the arms of a Select whose condition is done."""
        condition = np.asarray(self.done.pop())
        self.todo.append((self.apply, (lambda x, y: np.where(condition, x, y), 2)))
        for arm, chosen in ((b, ~condition), (a, condition)):
            self.todo.append((self.visit, (arm, chosen if active is None else chosen & active)))

    def load(self, buffer: str, active: Array) -> Callable[[Array], Array]:
        """A function that fetches the elements at an index, those that are ``active``."""
        if buffer not in self.buffers:
            raise CodeGenError(f"buffer {buffer!r} does not exist; {nearest(buffer, self.buffers)}")
        data = self.buffers[buffer]

        def gather(index: Array) -> Array:
            index = np.asarray(index)
            if active is not None:
                index = np.where(active, index, 0)
            needed = index if active is None else index[np.broadcast_to(active, index.shape)]
            outside = needed[(needed < 0) | (needed >= data.size)]
            if outside.size:
                raise CodeGenError(
                    f"a load reads element {outside.flat[0]} of '{buffer}', which has {data.size}"
                )
            if data.size == 0:
                return np.zeros(index.shape, data.dtype)
            return data[index]

        return gather
