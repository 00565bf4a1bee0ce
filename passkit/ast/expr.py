"""Kernel expressions: typed, frozen trees; Python's operators build them.

Public face: `passkit.ast`.
"""

from __future__ import annotations

from enum import Enum
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
    """A typed value; arithmetic on it builds a larger one.

    Python scalars are weak. Both sides must have one dtype: `cast` converts.
    """

    __slots__ = ()
    dtype: DType

    def __add__(self, other: Operand) -> Expr:
        return binary("+", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return binary("+", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return binary("-", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return binary("-", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return binary("*", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return binary("*", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return binary("/", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return binary("/", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return binary("//", self, other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return binary("//", other, self)

    def __mod__(self, other: Operand) -> Expr:
        return binary("%", self, other)

    def __rmod__(self, other: Operand) -> Expr:
        return binary("%", other, self)

    def __pos__(self) -> Expr:
        return self

    def __neg__(self) -> Expr:
        return Unary("-", self, self.dtype)

    def __pow__(self, other: Operand) -> Expr:
        return call("pow", self, other)

    def __rpow__(self, other: Operand) -> Expr:
        return call("pow", other, self)

    def __abs__(self) -> Expr:
        return call("abs", self)

    def __lt__(self, other: Operand) -> Expr:
        return compare("<", self, other)

    def __le__(self, other: Operand) -> Expr:
        return compare("<=", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return compare(">", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return compare(">=", self, other)

    def __and__(self, other: Operand) -> Expr:
        return binary("&", self, other)

    def __rand__(self, other: Operand) -> Expr:
        return binary("&", other, self)

    def __or__(self, other: Operand) -> Expr:
        return binary("|", self, other)

    def __ror__(self, other: Operand) -> Expr:
        return binary("|", other, self)

    def __xor__(self, other: Operand) -> Expr:
        return binary("^", self, other)

    def __rxor__(self, other: Operand) -> Expr:
        return binary("^", other, self)

    def __invert__(self) -> Expr:
        return Unary("~", self, self.dtype)

    def __bool__(self) -> bool:
        raise DTypeError(
            f"an expression ({type(self).__name__} of {self.dtype}) has no truth value before "
            f"the kernel runs; use ast.where(condition, a, b)"
        )

    # What follows asks for a value, which there is none of yet: each names what to write instead.

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **given: Any) -> Any:
        return foreign.ufunc(function, method, inputs, given)

    def __array_function__(self, function: Any, *_: object) -> NoReturn:
        foreign.refuse(f"np.{function.__name__}", function.__name__)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        foreign.needs_value("np.asarray", "use pk.ast's functions and operators on it")

    def __float__(self) -> NoReturn:
        foreign.needs_value(
            "float(…), or a function of Python's math module,",
            "for math.exp(x) write pk.ast.exp(x), for float(x) pk.ast.cast(x, 'float32')",
        )

    def __int__(self) -> NoReturn:
        foreign.needs_value("int(…)", "write pk.ast.cast(x, 'int64')")

    def __index__(self) -> NoReturn:
        foreign.needs_value("an index of Python's", "FElement reads inputs at expressions")

    def __round__(self, digits: int | None = None) -> NoReturn:
        foreign.needs_value("round(…)", "write pk.ast.rint(x)")

    def __floor__(self) -> NoReturn:
        foreign.needs_value("math.floor", "write pk.ast.floor(x)")

    def __ceil__(self) -> NoReturn:
        foreign.needs_value("math.ceil", "write pk.ast.ceil(x)")

    def __trunc__(self) -> NoReturn:
        foreign.needs_value("math.trunc", "write pk.ast.trunc(x)")

    def __getitem__(self, key: object) -> NoReturn:
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
    """A literal. Its bits survive printing: 1e-8, inf, nan and -0.0 are exact.

    ``bits`` is the value as bytes, so that equality and hashing tell -0.0 from 0.0.
    """

    bits: bytes
    dtype: DType

    @property
    def value(self) -> Any:
        """The literal as a NumPy scalar."""
        return np.frombuffer(self.bits, self.dtype.numpy)[0]


def const(value: Any, dtype: DType) -> Const:
    """A literal of ``dtype``."""
    if not isinstance(value, _NUMBER) or np.ndim(value):
        arguments.refuse("ast.const: value", value, "a number")
    if not isinstance(dtype, DType):
        arguments.refuse("ast.const: dtype", dtype, "a DType, such as pk.ast.dt.float32")
    return Const(np.asarray(value).astype(dtype.numpy).tobytes(), dtype)


def is_const(x: Expr, value: Any) -> bool:
    """Whether ``x`` is the literal ``value`` (0.0 is not -0.0)."""
    return isinstance(x, Const) and x.bits == const(value, x.dtype).bits


@frozen(order=False, cache_hash=True)
class Var(Expr):
    """A local, a loop index or an accumulator, by name."""

    name: str
    dtype: DType


class Fixed(Enum):
    """How an extent reaches a kernel: as a number in its text, or as an argument."""

    AUTO = "auto"
    LITERAL = "literal"
    ARGUMENT = "argument"


@frozen(order=False, cache_hash=True)
class SizeOf(Expr):
    """An extent as an int64 value: written into the kernel, or an argument of it, as `Fixed` says.

    AUTO lets CodeGen decide: small extents are written, larger or unknown ones are arguments.
    """

    size: Extent
    fixed: Fixed = Fixed.AUTO
    dtype: DType = dt.int64


def size_of(extent: Extent, fixed: Fixed = Fixed.AUTO) -> Expr:
    """An extent as an index expression."""
    if not isinstance(extent, (int, np.integer, Size)) or isinstance(extent, bool):
        arguments.refuse("ast.size_of: extent", extent, "a whole number or a Size")
    return SizeOf(extent, fixed)


@frozen(order=False, cache_hash=True)
class Load(Expr):
    """One element of a buffer, by linear index; touched only where the statement is active."""

    buffer: str
    index: Expr
    dtype: DType


@frozen(order=False, cache_hash=True)
class Read(Expr):
    """What a source has at an index, while a kernel is planned: part of a data-dependent index.

    Lowering puts the value itself in its place. Two of one source and index are equal.
    """

    source: object
    index: tuple[Expr, ...]
    dtype: DType


@frozen(order=False, cache_hash=True)
class Unary(Expr):
    """``-x`` or ``~x`` (not, for bool)."""

    op: str
    x: Expr
    dtype: DType


@frozen(order=False, cache_hash=True)
class Binary(Expr):
    """Arithmetic, bit operation or comparison of two values of one dtype."""

    op: str
    a: Expr
    b: Expr
    dtype: DType


@frozen(order=False, cache_hash=True)
class Call(Expr):
    """A named function of the dialect; `passkit.ast.FUNCTIONS` has those of every dialect."""

    name: str
    args: tuple[Expr, ...]
    dtype: DType


@frozen(order=False, cache_hash=True)
class Cast(Expr):
    """Conversion: out-of-range float to integer saturates, NaN gives 0."""

    x: Expr
    dtype: DType


@frozen(order=False, cache_hash=True)
class Select(Expr):
    """``a`` where the condition holds, else ``b``; only the chosen arm's loads happen."""

    condition: Expr
    a: Expr
    b: Expr
    dtype: DType


def lift(value: Operand, dtype: DType) -> Expr:
    """An expression for ``value``: a Python scalar becomes a literal of ``dtype``."""
    return value if isinstance(value, Expr) else const(value, dtype)


def _check_operator(where: str, op: Any, known: frozenset[str]) -> None:
    """Raises: ArgumentError for an operator that is not known."""
    if not isinstance(op, str) or op not in known:
        arguments.refuse(f"{where}: op", op, f"one of {', '.join(sorted(known))}")


def _both(op: str, a: Operand, b: Operand) -> tuple[Expr, Expr]:
    if isinstance(a, Expr):
        like = a.dtype
    elif isinstance(b, Expr):
        like = b.dtype
    else:
        raise DTypeError(f"'{op}' needs an expression, got {a!r} and {b!r}")
    a, b = _weak(op, a), _weak(op, b)
    for value in (a, b):
        if not isinstance(value, Expr):
            wanted = weak_scalar(value, like)
            if wanted is not like:
                raise DTypeError(
                    f"'{op}' of {like} and {value!r} would be {wanted}; "
                    f"write ast.cast(x, '{wanted}') first"
                )
    x, y = lift(a, like), lift(b, like)
    if x.dtype is not y.dtype:
        raise DTypeError(
            f"'{op}' needs two operands of one dtype, got {x.dtype} and {y.dtype}; "
            f"write ast.cast(x, '{promote(x.dtype, y.dtype)}')"
        )
    return x, y


def _weak(op: str, value: Any) -> Operand:
    """An operand: an expression, or a number, which one of NumPy's is as Python's.

    Raises: ArgumentError for anything else.
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
    """``a op b`` for + - * / // % & | ^ (integers wrap; / needs floats).

    As in C, // and % of integers round toward zero; operators with other needs correct that. They
    are 0 where the divisor is 0, and wrap.
    """
    _check_operator("ast.binary", op, _BINARY)
    x, y = _both(op, a, b)
    if op == "/" and x.dtype.kind not in "fc":
        raise DTypeError(f"'/' needs floats, got {x.dtype}; cast first")
    return Binary(op, x, y, x.dtype)


def compare(op: str, a: Operand, b: Operand) -> Expr:
    """``a op b`` for < <= > >= == !=: a bool."""
    _check_operator("ast.compare", op, _COMPARE)
    x, y = _both(op, a, b)
    return Binary(op, x, y, dt.bool_)


def equal(a: Operand, b: Operand) -> Expr:
    """Whether two values are equal; ``==`` on expressions compares the trees themselves."""
    return compare("==", a, b)


def not_equal(a: Operand, b: Operand) -> Expr:
    """Whether two values differ."""
    return compare("!=", a, b)


def call(name: str, *args: Operand) -> Expr:
    """A dialect function of arguments of one dtype, such as ``call("exp", x)``."""
    arguments.text("ast.call: name", name)
    if len(args) == 2:
        args = _both(name, *args)
    first = args[0] if args else None
    if not isinstance(first, Expr):
        hint = f"; of entries it is pk.ops.{name}" if foreign.is_entry(first) else ""
        raise DTypeError(f"'{name}' needs an expression, got {arguments.shown(first)}{hint}")
    return Call(name, tuple(lift(a, first.dtype) for a in args), first.dtype)


def cast(x: Expr, dtype: Any) -> Expr:
    """``x`` converted to ``dtype``; itself if it has that dtype, a literal if it is a whole one."""
    arguments.instance("ast.cast: x", x, Expr, "an expression")
    wanted = dtype_of(dtype)
    if isinstance(x, Const) and x.dtype.is_integer and wanted.is_float:
        return const(x.value, wanted)
    return x if x.dtype is wanted else Cast(x, wanted)


def rounding(x: Expr) -> tuple[Expr, DType] | None:
    """What is rounded, and to which dtype, where ``x`` is a cast to 16 bits and back."""
    match x:
        case Cast(Cast(value, dtype), wide) if is_narrow(dtype) and value.dtype is wide:
            return value, dtype
    return None


def where(condition: Expr, a: Operand, b: Operand) -> Expr:
    """``a`` where ``condition`` holds, else ``b``; the arms are lazy."""
    need = "an expression (pk.ast.equal(a, b) for ==, pk.ast.not_equal(a, b) for !=)"
    arguments.instance("ast.where: condition", condition, Expr, need)
    if condition.dtype is not dt.bool_:
        raise DTypeError(f"the condition of where must be bool, got {condition.dtype}")
    x, y = _both("where", a, b)
    return Select(condition, x, y, x.dtype)
