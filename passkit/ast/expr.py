"""Kernel expressions: typed, immutable trees that Python's operators build.

`passkit.ast` exports them. ``==`` on expressions compares trees; `equal` builds a comparison.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from sys import byteorder
from typing import Any, NoReturn

import numpy as np
from attrs import frozen

from passkit.ast import foreign
from passkit.errors import DTypeError
from passkit.values import arguments
from passkit.values import dtype as dt
from passkit.values.dtype import DType, dtype_of, is_narrow, promote, weak_scalar
from passkit.values.size import Extent, Size


class Expr:
    """The base class of expressions; Python's operators on them build larger ones.

    Both operands must have the same dtype (`cast` converts), except that a Python scalar takes the
    dtype of the other operand. Operations that need a value, such as ``float(x)``, NumPy functions
    or ``if x:``, raise a DTypeError that says what to write instead.

    Attributes:
        dtype: the element type of the value.
    """

    __slots__ = ()
    dtype: DType

    def __add__(self, other: Operand) -> Expr:
        """Return ``self + other``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("+", self, other)

    def __radd__(self, other: Operand) -> Expr:
        """Return ``other + self``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("+", other, self)

    def __sub__(self, other: Operand) -> Expr:
        """Return ``self - other``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("-", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        """Return ``other - self``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("-", other, self)

    def __mul__(self, other: Operand) -> Expr:
        """Return ``self * other``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("*", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        """Return ``other * self``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("*", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        """Return ``self / other``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("/", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        """Return ``other / self``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("/", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        """Return ``self // other``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("//", self, other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        """Return ``other // self``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("//", other, self)

    def __mod__(self, other: Operand) -> Expr:
        """Return ``self % other``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("%", self, other)

    def __rmod__(self, other: Operand) -> Expr:
        """Return ``other % self``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("%", other, self)

    def __pos__(self) -> Expr:
        """Return this expression itself."""
        return self

    def __neg__(self) -> Expr:
        """Return ``-self``, of the same dtype, which is not checked."""
        return Unary("-", self, self.dtype)

    def __pow__(self, other: Operand) -> Expr:
        """Return ``pow(self, other)``. Raises: DTypeError or ArgumentError, see `call`."""
        return call("pow", self, other)

    def __rpow__(self, other: Operand) -> Expr:
        """Return ``pow(other, self)``. Raises: DTypeError or ArgumentError, see `call`."""
        return call("pow", other, self)

    def __abs__(self) -> Expr:
        """Return the absolute value, a call of ``abs``; the dtype is not checked."""
        return call("abs", self)

    def __lt__(self, other: Operand) -> Expr:
        """Return ``self < other``, a bool. Raises: DTypeError or ArgumentError, see `compare`."""
        return compare("<", self, other)

    def __le__(self, other: Operand) -> Expr:
        """Return ``self <= other``, a bool. Raises: DTypeError or ArgumentError, see `compare`."""
        return compare("<=", self, other)

    def __gt__(self, other: Operand) -> Expr:
        """Return ``self > other``, a bool. Raises: DTypeError or ArgumentError, see `compare`."""
        return compare(">", self, other)

    def __ge__(self, other: Operand) -> Expr:
        """Return ``self >= other``, a bool. Raises: DTypeError or ArgumentError, see `compare`."""
        return compare(">=", self, other)

    def __and__(self, other: Operand) -> Expr:
        """Return ``self & other``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("&", self, other)

    def __rand__(self, other: Operand) -> Expr:
        """Return ``other & self``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("&", other, self)

    def __or__(self, other: Operand) -> Expr:
        """Return ``self | other``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("|", self, other)

    def __ror__(self, other: Operand) -> Expr:
        """Return ``other | self``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("|", other, self)

    def __xor__(self, other: Operand) -> Expr:
        """Return ``self ^ other``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("^", self, other)

    def __rxor__(self, other: Operand) -> Expr:
        """Return ``other ^ self``. Raises: DTypeError or ArgumentError, see `binary`."""
        return binary("^", other, self)

    def __invert__(self) -> Expr:
        """Return ``~self``, "not" for bool. Raises: DTypeError for floats and complex numbers."""
        _check_bits("~", self.dtype)
        return Unary("~", self, self.dtype)

    def __bool__(self) -> bool:
        """Raise DTypeError: an expression has no truth value before the kernel runs."""
        raise DTypeError(
            f"an expression ({type(self).__name__} of {self.dtype}) has no truth value before "
            f"the kernel runs; use ast.where(condition, a, b)"
        )

    # The following operations need a value; their errors say what to write instead.

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **given: Any) -> Any:
        """Apply a ufunc of NumPy that is an operator; raise DTypeError for any other."""
        return foreign.ufunc(function, method, inputs, given)

    def __array_function__(self, function: Any, *_: object) -> NoReturn:
        """Raise DTypeError for a function of NumPy, with what to write instead."""
        foreign.refuse(f"np.{function.__name__}", function.__name__)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        """Raise DTypeError: an expression cannot become an array."""
        foreign.needs_value("np.asarray", "use pk.ast's functions and operators on it")

    def __float__(self) -> NoReturn:
        """Raise DTypeError: the value is not known; `cast` converts it."""
        foreign.needs_value(
            "float(…), or a function of Python's math module,",
            "for math.exp(x) write pk.ast.exp(x), for float(x) pk.ast.cast(x, 'float32')",
        )

    def __int__(self) -> NoReturn:
        """Raise DTypeError: the value is not known; `cast` converts it."""
        foreign.needs_value("int(…)", "write pk.ast.cast(x, 'int64')")

    def __index__(self) -> NoReturn:
        """Raise DTypeError: the value is not known, so it is no index of Python's."""
        foreign.needs_value("an index of Python's", "FElement reads inputs at expressions")

    def __round__(self, digits: int | None = None) -> NoReturn:
        """Raise DTypeError, which names ``rint``; ``digits`` has no effect."""
        foreign.needs_value("round(…)", "write pk.ast.rint(x)")

    def __floor__(self) -> NoReturn:
        """Raise DTypeError, which names ``floor``."""
        foreign.needs_value("math.floor", "write pk.ast.floor(x)")

    def __ceil__(self) -> NoReturn:
        """Raise DTypeError, which names ``ceil``."""
        foreign.needs_value("math.ceil", "write pk.ast.ceil(x)")

    def __trunc__(self) -> NoReturn:
        """Raise DTypeError, which names ``trunc``."""
        foreign.needs_value("math.trunc", "write pk.ast.trunc(x)")

    def __getitem__(self, key: object) -> NoReturn:
        """Raise DTypeError: an expression is one element and has no parts."""
        raise DTypeError(
            f"an expression ({type(self).__name__} of {self.dtype}) is one element and has no "
            f"parts; FElement gets a reader for each input: read(*index)"
        )


Operand = Expr | bool | int | float
_NUMBER = (bool, int, float, complex, np.generic, np.ndarray)
_BINARY = frozenset(["+", "-", "*", "/", "//", "%", "&", "|", "^"])
_COMPARE = frozenset(["<", "<=", ">", ">=", "==", "!="])


@frozen(order=False, cache_hash=True)
class Const(Expr):
    """A literal, whose bits kernels preserve: 1e-8, inf, nan and -0.0 are exact.

    ``bits`` is the value as bytes, so that ``==`` and ``hash`` distinguish -0.0 from 0.0.
    """

    bits: bytes
    dtype: DType

    @property
    def value(self) -> Any:
        """Return the literal as a NumPy scalar."""
        return _number(self.bits, self.dtype)

    @property
    def integer(self) -> int:
        """Return a literal of an integer dtype, or of bool, as a Python integer."""
        return int.from_bytes(self.bits, byteorder, signed=self.dtype.kind == "i")


@lru_cache(maxsize=1024)
def _number(bits: bytes, dtype: DType) -> Any:
    """Return the NumPy scalar that ``bits`` represent, which is immutable."""
    return np.frombuffer(bits, dtype.numpy)[0]


def const(value: Any, dtype: DType) -> Const:
    """Return a literal.

    Args:
        value: a number.
        dtype: the dtype to convert it to, as NumPy casts: fractions and imaginary parts are lost,
            integers wrap.

    Raises:
        ArgumentError: ``value`` is no number, an integer of more than 64 bits for an integer dtype,
            or one beyond the range of float64 for a float or complex dtype; or ``dtype`` is no
            DType.
    """
    if type(value) is int and dtype is dt.int64 and -(2**63) <= value < 2**63:
        return Const(value.to_bytes(8, byteorder, signed=True), dtype)  # most are indices
    if not isinstance(value, _NUMBER) or np.ndim(value) or _is_no_number(value):
        arguments.refuse("ast.const: value", value, "a number")
    if not isinstance(dtype, DType):
        arguments.refuse("ast.const: dtype", dtype, "a DType, such as pk.ast.dt.float32")
    try:
        if isinstance(value, int) and dtype.is_float and not -(2**63) <= value < 2**64:
            value = float(value)  # NumPy would make an object of it, which bfloat16 refuses
        return Const(np.asarray(value).astype(dtype.numpy).tobytes(), dtype)
    except OverflowError:
        arguments.refuse("ast.const: value", value, f"an integer of 64 bits for {dtype}")


def _is_no_number(value: Any) -> bool:
    """Return whether a value is a NumPy scalar or array of something else than numbers and bools.

    These are texts, dates, durations, objects, raw bytes and records. Types of ml_dtypes, such as
    bfloat16, are numbers.
    """
    if not isinstance(value, (np.generic, np.ndarray)):
        return False
    # ml_dtypes' types have kind V, too.
    return value.dtype.kind in "OSUTMm" or issubclass(value.dtype.type, np.void)


def is_const(x: Expr, value: Any) -> bool:
    """Return whether ``x`` is a literal of the same bits as ``value``, converted to its dtype.

    So 0.0 and -0.0 differ, and the int64 literal 1 is 1.5, too. Raises: ArgumentError if ``x`` is a
    literal and ``value`` no number.
    """
    return isinstance(x, Const) and x.bits == const(value, x.dtype).bits


@frozen(order=False, cache_hash=True)
class Var(Expr):
    """A local variable, a loop index or an accumulator, by name."""

    name: str
    dtype: DType


class Fixed(Enum):
    """Whether an extent is a literal in the kernel's source or an argument of the kernel."""

    AUTO = "auto"
    LITERAL = "literal"
    ARGUMENT = "argument"


@frozen(order=False, cache_hash=True)
class SizeOf(Expr):
    """An extent as an int64 value: a literal in the kernel's source, or an argument.

    With `Fixed.AUTO` CodeGen decides: small extents are literals, larger or symbolic ones not.
    """

    size: Extent
    fixed: Fixed = Fixed.AUTO
    dtype: DType = dt.int64


def size_of(extent: Extent, fixed: Fixed = Fixed.AUTO) -> Expr:
    """Return an extent as an index expression.

    Args:
        extent: an integer of Python or NumPy, or a symbolic size.
        fixed: whether it is a literal or an argument of the kernel.

    Raises:
        ArgumentError: ``extent`` is neither, or a bool.
    """
    if type(extent) is int and fixed is Fixed.AUTO:
        return _known_size(extent)
    if not isinstance(extent, (int, np.integer, Size)) or isinstance(extent, bool):
        arguments.refuse("ast.size_of: extent", extent, "a whole number or a Size")
    return SizeOf(extent if isinstance(extent, Size) else int(extent), fixed)


@lru_cache(maxsize=1024)
def _known_size(extent: int) -> SizeOf:
    """Return a known extent, which CodeGen may make a literal."""
    return SizeOf(extent)


@frozen(order=False, cache_hash=True)
class Load(Expr):
    """One element of a buffer, by linear index; read only where the statement is active."""

    buffer: str
    index: Expr
    dtype: DType


@frozen(order=False, cache_hash=True)
class Read(Expr):
    """The element of a source at an index, as part of a data-dependent index during planning.

    Lowering replaces it by the value. Two reads of the same source and index are equal.
    """

    source: object
    index: tuple[Expr, ...]
    dtype: DType


@frozen(order=False, cache_hash=True)
class Unary(Expr):
    """``-x``, or ``~x``, which is "not" for bool."""

    op: str
    x: Expr
    dtype: DType


@frozen(order=False, cache_hash=True)
class Binary(Expr):
    """An arithmetic or bit operation, or a comparison, of two values of one dtype."""

    op: str
    a: Expr
    b: Expr
    dtype: DType


@frozen(order=False, cache_hash=True)
class Call(Expr):
    """A call of a named function; `passkit.ast.FUNCTIONS` lists those of all dialects."""

    name: str
    args: tuple[Expr, ...]
    dtype: DType


@frozen(order=False, cache_hash=True)
class Cast(Expr):
    """A conversion. Floats out of range of an integer dtype saturate; NaN becomes 0."""

    x: Expr
    dtype: DType


@frozen(order=False, cache_hash=True)
class Select(Expr):
    """``a`` where the condition holds, else ``b``; only the chosen arm's loads are executed."""

    condition: Expr
    a: Expr
    b: Expr
    dtype: DType


def lift(value: Operand, dtype: DType) -> Expr:
    """Return ``value`` itself if it is an expression, of any dtype, else a literal of ``dtype``.

    A number is converted by `const`, which may round or truncate it. Raises: ArgumentError if
    ``value`` is neither an expression nor a number, or an integer that is too large for `const`.
    """
    return value if isinstance(value, Expr) else const(value, dtype)


def _check_operator(where: str, op: Any, operators: frozenset[str]) -> None:
    """Raise an ArgumentError, naming ``where``, unless ``op`` is one of ``operators``."""
    if not isinstance(op, str) or op not in operators:
        arguments.refuse(f"{where}: op", op, f"one of {', '.join(sorted(operators))}")


def _same_dtype(op: str, a: Operand, b: Operand) -> tuple[Expr, Expr]:
    """Return the operands of ``op`` as expressions of one dtype; a number takes that of the other.

    Raises: DTypeError where they differ, neither is an expression, or a number does not fit the
    dtype; ArgumentError for an operand beside an expression that is neither an expression nor a
    number, or an integer beyond the range of floats beside a float.
    """
    if isinstance(a, Expr):
        like = a.dtype
    elif isinstance(b, Expr):
        like = b.dtype
    else:
        raise DTypeError(f"'{op}' needs an expression, got {a!r} and {b!r}")
    a, b = _check_operand(op, a), _check_operand(op, b)
    for value in (a, b):
        if not isinstance(value, Expr):
            result = weak_scalar(value, like)
            if result is not like:
                raise DTypeError(
                    f"'{op}' of {like} and {value!r} would be {result}; "
                    f"write ast.cast(x, '{result}') first"
                )
    x, y = lift(a, like), lift(b, like)
    if x.dtype is not y.dtype:
        raise DTypeError(
            f"'{op}' needs two operands of one dtype, got {x.dtype} and {y.dtype}; "
            f"write ast.cast(x, '{promote(x.dtype, y.dtype)}')"
        )
    return x, y


def _check_operand(op: str, value: Any) -> Operand:
    """Return an operand: an expression or Python number itself, or a NumPy scalar's Python number.

    Raises: ArgumentError, naming the operator ``op``, for anything else, also for arrays.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    need = "an expression or a Python number"
    if foreign.is_entry(value):
        need += " (entries are computed with by pk.ops, in FExpand)"
    return arguments.instance(  # type: ignore[no-any-return]
        f"an operand of '{op}'", value, (int, float, complex), need
    )


def binary(op: str, a: Operand, b: Operand) -> Expr:
    """Return ``a op b`` for an arithmetic or bit operator.

    Integers wrap. As in C, ``//`` and ``%`` of integers round toward zero; they are 0 where the
    divisor is 0. Whether a dialect has ``//`` and ``%`` of floats, or ``//`` of complex numbers, is
    not checked here.

    Args:
        op: one of ``+ - * / // % & | ^``; ``/`` needs real or complex floats, ``& | ^`` integers
            or bools.
        a: an expression or a number.
        b: an expression or a number; at least one of both is an expression.

    Raises:
        ArgumentError: There is no such operator, or one operand is an expression, and the other
            neither an expression nor a number that `const` takes.
        DTypeError: The dtypes differ, a number does not fit the other operand's dtype, neither is
            an expression, or the operator does not take the dtype.
    """
    _check_operator("ast.binary", op, _BINARY)
    x, y = _same_dtype(op, a, b)
    if op == "/" and x.dtype.kind not in "fc":
        raise DTypeError(f"'/' needs floats, got {x.dtype}; cast first")
    if op in "&|^":
        _check_bits(op, x.dtype)
    return Binary(op, x, y, x.dtype)


def _check_bits(op: str, dtype: DType) -> None:
    """Raise a DTypeError unless the bit operator ``op`` takes ``dtype``, of integers or bools."""
    if dtype.kind not in "biu":
        raise DTypeError(f"'{op}' needs integers or bools, got {dtype}; cast first")


def compare(op: str, a: Operand, b: Operand) -> Expr:
    """Return the comparison ``a op b`` for ``< <= > >= == !=``, a bool.

    ``a`` and ``b`` are expressions of one dtype, or one of them is a number.

    Raises:
        ArgumentError: There is no such operator, or one operand is an expression, and the other
            neither an expression nor a number.
        DTypeError: The dtypes differ, a number does not fit the other's, or neither is an
            expression.
    """
    _check_operator("ast.compare", op, _COMPARE)
    x, y = _same_dtype(op, a, b)
    return Binary(op, x, y, dt.bool_)


def equal(a: Operand, b: Operand) -> Expr:
    """Return the comparison ``a == b`` of two values; ``==`` itself compares trees.

    Raises: DTypeError if their dtypes differ, a number does not fit the other's, or neither is an
    expression; ArgumentError if one is an expression, and the other no expression or number.
    """
    return compare("==", a, b)


def not_equal(a: Operand, b: Operand) -> Expr:
    """Return the comparison ``a != b`` of two values, of which at least one is an expression.

    Raises: DTypeError if their dtypes differ, a number does not fit the other's, or neither is an
    expression; ArgumentError if one is an expression, and the other no expression or number.
    """
    return compare("!=", a, b)


def call(name: str, *args: Operand) -> Expr:
    """Return a call of a dialect function, such as ``call("exp", x)``.

    Neither the name nor the number of arguments is checked against the functions of dialects.

    Args:
        name: the name of the function.
        *args: expressions of one dtype; the result has that of the first expression. Of two
            arguments one may be a number; of more, all but the first. The dtypes of more than two
            are not compared.

    Raises:
        ArgumentError: ``name`` is no string, or an argument beside an expression is neither an
            expression nor a number.
        DTypeError: There is no argument, the first of one or more than two is no expression, or of
            exactly two the dtypes differ, a number does not fit the other's, or neither is an
            expression.
    """
    arguments.text("ast.call: name", name)
    if len(args) == 2:
        args = _same_dtype(name, *args)
    first = args[0] if args else None
    if not isinstance(first, Expr):
        hint = f"; of entries it is pk.ops.{name}" if foreign.is_entry(first) else ""
        raise DTypeError(f"'{name}' needs an expression, got {arguments.shown(first)}{hint}")
    return Call(name, tuple(lift(a, first.dtype) for a in args), first.dtype)


def cast(x: Expr, dtype: Any) -> Expr:
    """Return ``x`` converted to ``dtype``, or ``x`` itself if it has that dtype.

    An integer literal that is converted to a real float dtype becomes a literal.

    Raises: ArgumentError where ``x`` is no expression; DTypeError where there is no such dtype.
    """
    arguments.instance("ast.cast: x", x, Expr, "an expression")
    target = dtype_of(dtype)
    if isinstance(x, Const) and x.dtype.is_integer and target.is_float:
        return const(x.value, target)
    return x if x.dtype is target else Cast(x, target)


def rounding(x: Expr) -> tuple[Expr, DType] | None:
    """Return the value that ``x`` rounds to 16 bits, and the 16-bit dtype.

    Returns: None unless ``x`` casts a value to that dtype and back to its own.
    """
    match x:
        case Cast(Cast(value, dtype), wide) if is_narrow(dtype) and value.dtype is wide:
            return value, dtype
    return None


def where(condition: Expr, a: Operand, b: Operand) -> Expr:
    """Return an expression that is ``a`` where ``condition`` holds, else ``b``.

    Only the loads of the chosen arm are executed. At least one of ``a`` and ``b`` is an expression.

    Raises: ArgumentError where the condition is no expression, or one arm is an expression, and the
    other neither an expression nor a number; DTypeError where the condition is not of dtype bool,
    the dtypes of the arms differ, a number does not fit the other's, or neither is an expression.
    """
    need = "an expression (pk.ast.equal(a, b) for ==, pk.ast.not_equal(a, b) for !=)"
    arguments.instance("ast.where: condition", condition, Expr, need)
    if condition.dtype is not dt.bool_:
        raise DTypeError(f"the condition of where must be bool, got {condition.dtype}")
    x, y = _same_dtype("where", a, b)
    return Select(condition, x, y, x.dtype)
