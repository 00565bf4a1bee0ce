"""Evaluation of kernel expressions in NumPy, on entire arrays at once.

Every operation rounds to its dtype. Transcendental functions of floats below 64 bits are computed
in float64 and rounded once, so that nearly all results are correctly rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from passkit.ast import VARIANTS, Binary, Call, Cast, Const, Expr, Load, Select, SizeOf, Unary, Var
from passkit.errors import CodeGenError, nearest
from passkit.runtime.philox import philox
from passkit.values.dtype import DType, dtype_of
from passkit.values.lazy import Lazy
from passkit.values.size import evaluate as evaluate_size

if TYPE_CHECKING:
    from passkit.runtime import incomplete_functions, special_functions
else:
    incomplete_functions = Lazy("passkit.runtime.incomplete_functions")
    special_functions = Lazy("passkit.runtime.special_functions")

Array = Any


def cast_array(x: Array, dtype: DType) -> Array:
    """Return ``x``, numbers, as an array of a dtype; ``x`` itself if it is an array of that dtype.

    Floats that become integers are truncated and saturate, and NaN becomes 0; integers wrap. A
    value becomes true where it is not 0. Complex numbers lose their imaginary part unless the dtype
    is complex or bool.
    """
    x = np.asarray(x)
    if x.dtype == dtype.numpy:
        return x
    if dtype.kind not in "iu" or x.dtype.kind in "biu":
        return x.astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    truncated = np.trunc(x.astype(np.float64))
    top = math.ldexp(1.0, limits.max.bit_length())  # the largest plus one, which is exact
    inside = (truncated > limits.min) & (truncated < top)
    out = np.where(inside, truncated, 0).astype(dtype.numpy)
    out = np.where(truncated >= top, limits.max, out)
    return np.where(truncated <= limits.min, limits.min, out).astype(dtype.numpy)


def _elementwise(f: Callable[[float], float]) -> Callable[[Array], Array]:
    """Return a function of an array that applies ``f`` to every element, in float64."""

    def apply(x: Array) -> Array:
        """Return a float64 array of ``f`` of every element of ``x``, of the same shape."""
        flat = np.ascontiguousarray(x, np.float64).reshape(-1)
        return np.fromiter(map(f, flat.tolist()), np.float64, flat.size).reshape(np.shape(x))

    return apply


def _sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


def _rsqrt(x: Array) -> Array:
    """Return 1 / sqrt(x)."""
    return 1.0 / np.sqrt(x)


def _neighbour(short: str, *x: Array) -> Array:
    """Return ``nextafter`` of floats of 16 bits, which are passed and returned in wider ones.

    ``short`` is the short name of the 16-bit dtype, "f16" or "bf16"; ``x`` are the two arguments.
    """
    wide, narrow = np.asarray(x[0]).dtype, dtype_of(short).numpy
    return np.asarray(np.nextafter(*(np.asarray(v).astype(narrow) for v in x))).astype(wide)


def _ldexp(x: Array, n: Array) -> Array:
    """Return x * 2^n for floats ``x`` and integers ``n``.

    Exponents are clipped to where the result is 0 or infinite anyway.
    """
    return np.ldexp(x, np.clip(np.asarray(n, np.float64), -9999, 9999).astype(np.int32))


def _pow(x: Array, y: Array) -> Array:
    """Return C's ``pow`` of floats, also where all elements have the same exponent.

    For an exponent that is broadcast NumPy computes ``power(x, 0.5)`` as a square root, which
    returns NaN instead of inf for -inf and -0 instead of 0 for -0; for the exponents 2 and -1 it
    multiplies and divides, which differs in the last bit. So the exponents are an array of the same
    size here, with at least two elements, since NumPy treats a single one as broadcast.
    """
    x, y = np.broadcast_arrays(x, y)
    count = max(x.size, 2)
    out = np.power(np.resize(x, count), np.resize(y, count))
    return out[: x.size].reshape(x.shape)


def _integer_power(x: Array, n: Array) -> Array:
    """Return x to the power n, for integers of one dtype, which wrap.

    Negative powers are 0, those of 0 included, except those of 1 and -1.
    """
    positive = np.power(x, np.maximum(n, 0))
    if np.asarray(x).dtype.kind == "u":
        return positive
    sign = np.where(n & 1, x, np.ones_like(x))
    return np.where(n < 0, np.where(np.abs(x) == 1, sign, 0), positive).astype(positive.dtype)


SPECIAL = ("lgamma", "tgamma", "digamma", "trigamma", "erfinv", "erfcinv")
"""Functions of `special_functions`, which is imported when one is called."""


def _special(name: str) -> Callable[..., Array]:
    """Return a function that calls the one called ``name`` in `special_functions`.

    That module is imported at the first call.
    """
    return lambda *args: getattr(special_functions, name)(*args)


INCOMPLETE = ("igamma", "igammac", "betainc", "zeta")
"""Functions of `incomplete_functions`, which is imported when one is called."""


def _incomplete(name: str) -> Callable[..., Array]:
    """Return a function that calls the one called ``name`` in `incomplete_functions`.

    That module is imported at the first call.
    """
    return lambda *args: getattr(incomplete_functions, name)(*args)


IN_DOUBLE: dict[str, Callable[..., Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _elementwise(math.erf),
    "erfc": _elementwise(math.erfc),
    "sigmoid": _sigmoid,
    "rsqrt": _rsqrt,
    "cbrt": np.cbrt,
    "pow": _pow,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    **{name: _special(name) for name in SPECIAL},
    **{name: _incomplete(name) for name in INCOMPLETE},
}
"""Functions that are computed in float64 and rounded once, by name."""
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
    "whole_power": _integer_power,
    "philox_low": lambda *x: philox(*x)[0],
    "philox_high": lambda *x: philox(*x)[1],
}
"""Functions that are exact in every dtype, by name."""


def _quotient(a: Array, b: Array) -> Array:
    """Divide integers a / b, rounding toward 0; x / 0 is 0, and the lowest integer / -1 wraps.

    Floats are divided by `numpy.floor_divide`, which rounds down.
    """
    floor = np.floor_divide(a, b)
    if np.asarray(a).dtype.kind != "i":
        return floor
    inexact = (b != 0) & (floor * b != a) & ((a < 0) != (b < 0))
    return np.where(inexact, floor + np.asarray(1, floor.dtype), floor)


def _remainder(a: Array, b: Array) -> Array:
    """Return the remainder of the integer division a / b toward zero; where b is 0, it is 0.

    For floats it is that of the division that rounds down.
    """
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
    """Call a function of the kernel language on arrays.

    Functions that are exact return what NumPy gives for the dtypes of the arguments, and ignore
    ``dtype``; others are computed in float64 and rounded to ``dtype``.

    Args:
        name: the name of the function.
        dtype: the dtype of the result.
        args: the arrays, which broadcast; as many as the function takes, and of real numbers for
            those computed in float64.

    Raises:
        CodeGenError: There is no function of that name.
    """
    exact = EXACT.get(name)
    if exact is not None:
        return exact(*args)
    function = IN_DOUBLE.get(VARIANTS.get(name, name))
    if function is None:
        raise CodeGenError(f"there is no function {name!r}; {nearest(name, [*EXACT, *IN_DOUBLE])}")
    wide = [np.asarray(a, np.float64) for a in args]
    return np.asarray(function(*wide)).astype(dtype.numpy)


def evaluate(
    expr: Expr,
    values: Mapping[str, Array] | None = None,
    buffers: Mapping[str, Array] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Array:
    """Evaluate an expression.

    Args:
        expr: the expression.
        values: the arrays of its variables, by name; None for none.
        buffers: the one-dimensional arrays that it loads from, by name; None for none.
        sizes: the values of symbolic sizes, by name; None for none.

    Returns:
        An array of the shape that the variables broadcast to; a NumPy scalar or an array without
            axes where that shape is (). An expression that is only a variable gives its array of
            ``values`` itself. The operands of a Select load only where they are selected.

    Raises:
        CodeGenError: A load is out of bounds, a variable, buffer or function does not exist, or
            NumPy cannot evaluate an expression of its type.
        ShapeError: A symbolic size has no value or divides by zero.
        KeyError: A `Unary` or `Binary` has an operator that kernels do not have.
    """
    with np.errstate(all="ignore"):
        return ExpressionEvaluator(values or {}, buffers or {}, sizes or {}).run(expr)


_LEAF, _APPLY, _CALL, _LOAD, _THEN, _ELSE, _CHOOSE = range(7)
"""The codes of steps, by how a step changes the stack of results.

- LEAF: push the value of a leaf.
- APPLY: push a function of leaves.
- CALL: replace operands by a function of them.
- LOAD: replace an index by the loaded elements.
- THEN: pop the condition of a Select, whose first operand follows.
- ELSE: begin the second operand of the Select.
- CHOOSE: replace both operands of the Select by their elements where they are selected.

They are integers, as looking up a member of an Enum takes as long as a step.
"""
_Step = tuple[int, Any, Any]
"""A step: its code; a leaf, function or name of a buffer; the operands of APPLY, the number of
those of CALL."""
_Program = list[_Step]
MAX_PROGRAMS = 2048
"""The most programs that a class of evaluators keeps."""


class ExpressionEvaluator:
    """Evaluates expressions by stack programs, so that their depth is not limited.

    Subclasses, which evaluate the expressions of a kernel for many tiles, keep the programs.

    Args:
        values: the arrays of variables, by name.
        buffers: the one-dimensional arrays that loads read, by name.
        sizes: the values of symbolic sizes, by name.
    """

    leaves: ClassVar[tuple[type[Expr], ...]] = (Var, Const, SizeOf)
    """The types of expressions without operands, whose values `leaf` returns."""
    _programs: ClassVar[dict[int, tuple[Expr, _Program]] | None] = None
    """By identity of an expression: the expression, which is kept alive, and its program.

    None where programs are not kept: `evaluate` mostly gets an expression that was made for it.
    """

    def __init_subclass__(cls) -> None:
        cls._programs = {}  # a subclass has leaves and functions of its own

    def __init__(
        self, values: Mapping[str, Array], buffers: Mapping[str, Array], sizes: Mapping[str, int]
    ) -> None:
        self.values, self.buffers, self.sizes = values, buffers, sizes

    def run(self, expr: Expr, active: Array = None) -> Array:
        """Return the value of an expression where the mask ``active`` holds, None for everywhere.

        Elsewhere the elements are unspecified. Raises: CodeGenError where a load is out of bounds,
        a variable, buffer or function does not exist, or the expression is of another type;
        ShapeError where a symbolic size has no value.
        """
        results: list[Array] = []
        selects: list[tuple[Array, Array]] = []  # the condition, and the mask around the Select
        for code, subject, operands in self._program(expr):
            if code == _APPLY:
                results.append(subject(*map(self.leaf, operands)))
            elif code == _LEAF:
                results.append(self.leaf(subject))
            elif code == _CALL:
                start = len(results) - operands
                results[start:] = [subject(*results[start:])]
            elif code == _LOAD:
                results.append(self.load(subject, active)(results.pop()))
            elif code == _THEN:
                condition = np.asarray(results.pop())
                selects.append((condition, active))
                active = condition if active is None else condition & active
            elif code == _ELSE:
                condition, outer = selects[-1]
                active = ~condition if outer is None else ~condition & outer
            else:
                condition, active = selects.pop()
                b, a = results.pop(), results.pop()
                results.append(np.where(condition, a, b))
        return results.pop()

    def leaf(self, x: Expr) -> Array:
        """Return the value of a variable, constant or size.

        Raises: CodeGenError for a variable without value; ShapeError for a symbolic size without
        value.
        """
        if isinstance(x, Const):
            return x.value
        if isinstance(x, SizeOf):
            return np.int64(evaluate_size(x.size, self.sizes))
        assert isinstance(x, Var)
        if x.name not in self.values:
            raise CodeGenError(f"variable {x.name!r} has no value; {nearest(x.name, self.values)}")
        return self.values[x.name]

    def function_of(self, x: Expr) -> tuple[Callable[..., Array], tuple[Expr, ...]]:
        """Return the function that an expression applies, and its operands.

        Raises: CodeGenError for an expression of another type; KeyError for an operator that
        kernels do not have.
        """
        if isinstance(x, Binary):
            return BINARY[x.op], (x.a, x.b)
        if isinstance(x, Call):
            return partial(call_array, x.name, x.dtype), x.args
        if isinstance(x, Cast):
            return partial(cast_array, dtype=x.dtype), (x.x,)
        if isinstance(x, Unary):
            return UNARY[x.op], (x.x,)
        raise CodeGenError(
            f"an expression of type {type(x).__name__} cannot be evaluated in NumPy; set "
            "FCompute on the operator"
        )

    def load(self, buffer: str, active: Array) -> Callable[[Array], Array]:
        """Return a function that loads the elements of a buffer at an array of indices.

        It raises a CodeGenError for an index out of bounds where the mask ``active`` (None for
        everywhere) holds. Elsewhere it loads element 0, or returns 0 if the buffer is empty.

        Raises: CodeGenError where there is no such buffer.
        """
        if buffer not in self.buffers:
            raise CodeGenError(f"buffer {buffer!r} does not exist; {nearest(buffer, self.buffers)}")
        data = self.buffers[buffer]

        def gather(index: Array) -> Array:
            """Return the elements at the indices; where ``active`` is false, element 0, or 0.

            Raises: CodeGenError for an active index outside of the buffer.
            """
            index = np.asarray(index)
            if active is not None:
                index = np.where(active, index, 0)
            checked = index if active is None else index[np.broadcast_to(active, index.shape)]
            outside = checked[(checked < 0) | (checked >= data.size)]
            if outside.size:
                raise CodeGenError(
                    f"a load reads element {outside.flat[0]} of buffer '{buffer}', which has "
                    f"{data.size} elements; keep its index within them, or select where it does"
                )
            if data.size == 0:
                return np.zeros(index.shape, data.dtype)
            return data[index]

        return gather

    def _program(self, expr: Expr) -> _Program:
        """Return the program of an expression, which is made once while it is kept.

        Raises: CodeGenError or KeyError for an expression that cannot be evaluated.
        """
        programs = self._programs
        if programs is None:
            return self._compiled(expr)
        kept = programs.get(id(expr))
        if kept is not None:
            return kept[1]
        if len(programs) >= MAX_PROGRAMS:
            programs.clear()
        program = self._compiled(expr)
        programs[id(expr)] = expr, program
        return program

    def _compiled(self, expr: Expr) -> _Program:
        """Return the program of an expression.

        Raises: CodeGenError or KeyError for an expression that cannot be evaluated.
        """
        steps: list[_Step] = []
        tasks: list[Expr | _Step] = [expr]
        while tasks:
            task = tasks.pop()
            if isinstance(task, tuple):
                steps.append(task)
            elif isinstance(task, self.leaves):
                steps.append((_LEAF, task, None))
            elif isinstance(task, Load):
                tasks += (_LOAD, task.buffer, None), task.index
            elif isinstance(task, Select):
                end, between = (_CHOOSE, None, None), (_ELSE, None, None)
                tasks += end, task.b, between, task.a, (_THEN, None, None), task.condition
            else:
                function, operands = self.function_of(task)
                if all([isinstance(x, self.leaves) for x in operands]):
                    steps.append((_APPLY, function, operands))
                else:
                    tasks.append((_CALL, function, len(operands)))
                    tasks += reversed(operands)
        return steps
