"""The printer of scalar expressions in C: literals with their exact bits, operators, calls.

Parentheses are printed only where precedence requires them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Self

import numpy as np
from attrs import evolve, field, frozen

from passkit.ast import Binary, Call, Cast, Const, Expr, Load, Select, SizeOf, Unary, Var, const
from passkit.ast.expr import rounding
from passkit.ast.walk import walk
from passkit.dialects.base import Dialect
from passkit.errors import CodeGenError
from passkit.ir.reciprocal import has_divisor, is_known_divisor, is_quotient, parts_of
from passkit.ir.vector import Prepared
from passkit.values import dtype as dt
from passkit.values.dtype import DType
from passkit.values.size import Extent

PRECEDENCE = {
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    "<=": 7,
    ">": 7,
    ">=": 7,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
TERNARY, UNARY, ATOM = 1, 11, 13
WRAPPED = {"+": "wrapped_add", "-": "wrapped_sub", "*": "wrapped_mul"}
"""The functions for signed integers that may overflow, for languages with `Dialect.wraps`."""


def literal(x: Const, dialect: Dialect) -> str:
    """Return a literal with the exact bits of its value."""
    dtype = x.dtype
    if dtype is dt.bool_:
        return "true" if x.integer else "false"
    if dtype.is_integer:
        return _integer(x.integer, dtype, dialect.wide)
    value = x.value
    if np.isnan(value) or dtype not in (dt.float32, dt.float64):
        bits = int.from_bytes(x.bits, "little")
        suffix = f"u{dialect.wide}" if dtype.nbytes == 8 else "u"
        unsigned = "uint64_t" if dtype.nbytes == 8 else "uint32_t"
        kind = dialect.type_of(dtype)
        return dialect.bits.format(
            type=kind, bits=f"0x{bits:x}{suffix}", unsigned=unsigned, short=dtype.short
        )
    if np.isinf(value):
        suffix = "f" if dtype is dt.float32 else ""
        return ("-" if value < 0 else "") + dialect.infinity.format(suffix=suffix)
    text = np.format_float_positional(value, unique=True, trim="0")
    if len(text) > 12:
        text = np.format_float_scientific(value, unique=True, trim="0")
    return text + ("f" if dtype is dt.float32 else "")


def _integer(value: int, dtype: DType, wide: str) -> str:
    """Return an integer literal; ``wide`` is the suffix of those of 64 bits."""
    if dtype.kind == "i" and dtype.nbytes >= 4 and value == -(1 << (8 * dtype.nbytes - 1)):
        return f"({_integer(value + 1, dtype, wide)} - 1)"
    suffix = "u" if dtype.kind == "u" and dtype.nbytes >= 4 else ""
    long = wide if dtype.nbytes == 8 and abs(value) > 0x7FFFFFFF else ""
    return f"{value}{suffix}{long}"


def operator(x: Binary) -> tuple[str, int, int]:
    """Return the text of an operator, its precedence, and that of its right operand at least."""
    op = "/" if x.op == "//" else x.op
    level = PRECEDENCE[op]
    # a * (b / 4) is not a * b / 4
    quotient = isinstance(x.b, Binary) and x.b.op in ("/", "//", "%")
    regroups = op in "+*&|^" and not x.dtype.is_float and not quotient
    return op, level, level if regroups else level + 1


def division(x: Binary, dialect: Dialect) -> str | None:
    """Return the function for a quotient or remainder of integers; None for other operators."""
    if x.op not in ("/", "//", "%") or not x.a.dtype.is_integer:
        return None
    return dialect.call_of("fmod" if x.op == "%" else "cut_divide", x.dtype)


def converted(x: Cast, text: Callable[[Expr], str], dialect: Dialect) -> str:
    """Return a conversion; one to 16 bits and back is one function.

    Args:
        x: the conversion.
        text: prints its operand.
        dialect: the language.
    """
    rounded = rounding(x) if dialect.rounded else None
    if rounded is not None:
        value, dtype = rounded
        return dialect.rounded_of(dtype, text(value))
    return dialect.cast_of(x.x.dtype, x.dtype, text(x.x))


def enclosed(text: str, level: int, outer: int) -> str:
    """Return an operand of precedence ``level``, in parentheses if ``outer`` binds closer."""
    return f"({text})" if level < outer else text


@frozen
class Scalars:
    """The printer of the scalar expressions of one kernel.

    Attributes:
        dialect: the language.
        sizes: the names of size arguments.
        registers: the names of arrays of vectors, which are indexed by ``k``.
        scratch: the extents of scratch arrays.
        inside: whether the expression is part of an index, which does not overflow.
        positions: the variables so far that are loop counters or computed from such.
        extents: the variables so far that are above 0 wherever they divide.
    """

    dialect: Dialect
    sizes: tuple[str, ...]
    registers: frozenset[str]
    scratch: Mapping[str, Extent]
    inside: bool = False
    positions: set[str] = field(factory=set, eq=False, repr=False)
    extents: set[str] = field(factory=set, eq=False, repr=False)

    @cached_property
    def of_indices(self) -> Self:
        """Return the printer of expressions inside an index, which do not overflow."""
        return evolve(self, inside=True)

    def expr(self, x: Expr, outer: int = 0) -> str:
        """Return the text of an expression inside one of precedence ``outer``."""
        return enclosed(*self.leveled(x), outer)

    def leveled(self, x: Expr) -> tuple[str, int]:
        """Return the text of an expression and its precedence.

        Raises: CodeGenError for an expression that is not lowered.
        """
        match x:
            case Const():
                text = literal(x, self.dialect)
                return text, UNARY if text.startswith("-") else ATOM
            case Var(name):
                return name, ATOM
            case Binary():
                return self._narrow(x, *self._binary(x))
            case SizeOf(size):
                return str(size), ATOM
            case Load(buffer, index):
                return self.element(buffer, index), ATOM
            case Unary(op, a):
                if op == "-" and self._overflows(x):
                    return self._wrapped("-", const(0, x.dtype), a), ATOM
                op = "!" if op == "~" and x.dtype is dt.bool_ else op
                return self._narrow(x, op + self.expr(a, UNARY + 1), UNARY)
            case Call(name, args):
                quotient = self._short_quotient(x)
                if quotient is not None:
                    return quotient, ATOM
                texts = ", ".join(map(self._typed, args))
                return f"{self.dialect.call_of(name, x.dtype)}({texts})", ATOM
            case Cast():
                return converted(x, self.expr, self.dialect), UNARY
            case Select(condition, a, b):
                c, other = self.expr(condition, TERNARY + 1), self.expr(b, TERNARY)
                chosen = self.expr(a, TERNARY + isinstance(a, Select))
                return f"{c} ? {chosen} : {other}", TERNARY
        raise CodeGenError(f"the C printer does not know {type(x).__name__}")

    def element(self, buffer: str, index: Expr) -> str:
        """Return an element of a buffer, to load or to store."""
        return f"{buffer}[{'k' if buffer in self.registers else self._index(index)}]"

    def address(self, buffer: str, index: Expr) -> str:
        """Return a pointer to an element of a buffer."""
        text = self._index(index)
        return buffer if text == "0" else f"{buffer} + {text}"

    def is_position(self, x: Expr) -> bool:
        """Return whether a value is computed from loop counters and sizes alone."""
        operations = (Const, SizeOf, Binary, Unary, Select, Cast)
        return all(
            isinstance(part, operations)
            or (isinstance(part, Var) and (part.name in self.positions or part.name in self.sizes))
            for part in walk(x)
        )

    def _index(self, x: Expr) -> str:
        """Return the text of an index."""
        return (self.of_indices if self.dialect.wraps else self).expr(x)

    def _overflows(self, x: Expr) -> bool:
        """Return whether a sum, difference or product may overflow, which is undefined.

        C computes narrower integers with int, in which only a product of uint16 overflows.
        """
        if not self.dialect.wraps or self.inside:
            return False
        if x.dtype is dt.uint16:
            return isinstance(x, Binary) and x.op == "*"
        if x.dtype is dt.int64:
            return not self.is_position(x)
        return x.dtype is dt.int32

    def _wrapped(self, op: str, a: Expr, b: Expr) -> str:
        """Return the call of a function that wraps."""
        name = self.dialect.call_of(WRAPPED[op], a.dtype)
        return f"{name}({self._typed(a)}, {self._typed(b)})"

    def _binary(self, x: Binary) -> tuple[str, int]:
        """Return the text and the precedence of a binary operation."""
        name = division(x, self.dialect)
        if name is not None and not self._divides_by_extent(x):
            return f"{name}({self._typed(x.a)}, {self._typed(x.b)})", ATOM
        if x.op in WRAPPED and self._overflows(x):
            return self._wrapped(x.op, x.a, x.b), ATOM
        quotient = self._quotient(x)
        if quotient is not None:
            return quotient, ATOM
        op, level, right = operator(x)
        return f"{self.expr(x.a, level)} {op} {self.expr(x.b, right)}", level

    def literal_divisor(self, c: Const) -> str:
        """Return a literal for which `has_divisor` holds as a divisor."""
        templates = self.dialect.quotients
        assert templates is not None
        if not is_known_divisor(c):
            return templates.measured.format(value=literal(c, self.dialect))
        high, low = (literal(const(v, c.dtype), self.dialect) for v in parts_of(c))
        return templates.known_divisor.format(value=literal(c, self.dialect), high=high, low=low)

    def _quotient(self, x: Binary) -> str | None:
        """Return a quotient without a division; None for one with a division."""
        templates = self.dialect.quotients
        if templates is None or not is_quotient(x):
            return None
        match x.b:
            case Prepared(name):
                divisor = name
            case Const() as c if has_divisor(c):
                divisor = self.literal_divisor(c)
            case _:
                return None
        return templates.over.format(x=self._typed(x.a), divisor=divisor)

    def _short_quotient(self, x: Call) -> str | None:
        """Return a call that stands for a shorter form of a quotient; None for another call."""
        templates = self.dialect.quotients
        if templates is None:
            return None
        match x:
            case Call("near_quotient", (a, Const() as b)):
                divisor = self.literal_divisor(b)
                return templates.near_over.format(x=self._typed(a), divisor=divisor)
            case Call("near_reciprocal", (a,)):
                return templates.near_reciprocal.format(x=self.expr(a))
            case Call("reciprocal", (a,)):
                return templates.reciprocal.format(x=self.expr(a))
        return None

    def _divides_by_extent(self, x: Binary) -> bool:
        """Return whether the divisor is an extent, and so never 0 or -1."""
        b = x.b
        is_extent = (isinstance(b, Const) and b.value > 0) or isinstance(b, SizeOf)
        is_extent |= isinstance(b, Var) and (b.name in self.sizes or b.name in self.extents)
        return is_extent and b.dtype is dt.int64

    def _narrow(self, x: Expr, text: str, level: int) -> tuple[str, int]:
        """Return an operation on integers of 8 or 16 bits, which C computes with 32, wrapped."""
        if not _is_narrow(x):
            return text, level
        return self.dialect.cast.format(type=self.dialect.type_of(x.dtype), value=text), UNARY

    def _typed(self, x: Expr) -> str:
        """Return an expression with the type that it has in the AST."""
        text = self.expr(x)
        return text if _has_own_type(x) else self.dialect.cast_of(x.dtype, x.dtype, text)


def _has_own_type(x: Expr) -> bool:
    """Return whether an expression has its type in C, where narrow integers become int."""
    match x:
        case Const():
            is_plain = not x.dtype.is_integer or x.dtype is dt.int32
            return is_plain and not (x.dtype.is_float and bool(np.isinf(x.value)))
        case Binary(_, a, b) if x.dtype is not dt.bool_:
            return not _is_narrow(x) and _have_own_type(a, b)
        case Select(_, a, b):
            return not _is_narrow(x) and _have_own_type(a, b)
        case Unary(_, a):
            return not _is_narrow(x) and _has_own_type(a)
    return True


def _have_own_type(a: Expr, b: Expr) -> bool:
    """Return whether an operation has the type of its operands in C: not with long literals."""
    if not (_has_own_type(a) or _has_own_type(b)):
        return False
    return a.dtype.nbytes < 8 or not any(_is_long_long(x) for side in (a, b) for x in walk(side))


def _is_long_long(x: Expr) -> bool:
    """Return whether an expression is a literal whose type in C has 64 bits."""
    return isinstance(x, Const) and x.dtype.is_integer and abs(x.integer) > 0x7FFFFFFF


def _is_narrow(x: Expr) -> bool:
    """Return whether an expression is an integer of 8 or 16 bits."""
    return x.dtype.is_integer and x.dtype.nbytes < 4
