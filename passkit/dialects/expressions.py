"""Expressions in C where one value is one number: literals with their exact bits, operators, calls.

Parentheses are printed only where precedence needs them.
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
"""The functions for signed integers that may overflow, where a language asks for them."""


def literal(x: Const, dialect: Dialect) -> str:
    """A literal with the exact bits of its value."""
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
    if dtype.kind == "i" and dtype.nbytes >= 4 and value == -(1 << (8 * dtype.nbytes - 1)):
        return f"({_integer(value + 1, dtype, wide)} - 1)"
    suffix = "u" if dtype.kind == "u" and dtype.nbytes >= 4 else ""
    long = wide if dtype.nbytes == 8 and abs(value) > 0x7FFFFFFF else ""
    return f"{value}{suffix}{long}"


def operator(x: Binary) -> tuple[str, int, int]:
    """The spelling of an operator, its precedence, and what its right operand must bind by."""
    op = "/" if x.op == "//" else x.op
    level = PRECEDENCE[op]
    # a * (b / 4) is not a * b / 4
    quotient = isinstance(x.b, Binary) and x.b.op in ("/", "//", "%")
    regroups = op in "+*&|^" and not x.dtype.is_float and not quotient
    return op, level, level if regroups else level + 1


def division(x: Binary, dialect: Dialect) -> str | None:
    """The function that divides integers, or takes their rest; None for every other operator."""
    if x.op not in ("/", "//", "%") or not x.a.dtype.is_integer:
        return None
    return dialect.call_of("fmod" if x.op == "%" else "cut_divide", x.dtype)


def converted(x: Cast, text: Callable[[Expr], str], dialect: Dialect) -> str:
    """A conversion of what ``text`` prints; to 16 bits and back is one step."""
    found = rounding(x) if dialect.rounded else None
    if found is not None:
        value, dtype = found
        return dialect.rounded_of(dtype, text(value))
    return dialect.cast_of(x.x.dtype, x.dtype, text(x.x))


def enclosed(text: str, level: int, outer: int) -> str:
    """A text of precedence ``level`` as an operand inside one of precedence ``outer``."""
    return f"({text})" if level < outer else text


@frozen
class Scalars:
    """Expressions of one kernel in one language, each a single number.

    ``sizes`` are the kernel's size arguments; ``registers`` are its arrays of vectors, which are
    numbered by k; ``scratch`` are the extents of its scratch arrays. Under a ``guard``, a mask of
    lanes, nothing is loaded that no lane asks for. ``positions`` are the variables so far that
    count loops, and those made of such: they are ``inside`` of arrays, and do not overflow;
    ``extents`` are those that are above 0 wherever something is divided by them.
    """

    dialect: Dialect
    sizes: tuple[str, ...]
    registers: frozenset[str]
    scratch: Mapping[str, Extent]
    guard: str = ""
    inside: bool = False
    positions: set[str] = field(factory=set, eq=False, repr=False)
    extents: set[str] = field(factory=set, eq=False, repr=False)

    @cached_property
    def of_indices(self) -> Self:
        """Return the printer of expressions inside an index, which do not overflow."""
        return evolve(self, inside=True)

    def expr(self, x: Expr, outer: int = 0) -> str:
        """The text of an expression inside one of precedence ``outer``."""
        return enclosed(*self.leveled(x), outer)

    def leveled(self, x: Expr) -> tuple[str, int]:
        """The text of an expression, and its precedence."""
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
                if self.guard and self.dialect.vectors is not None:
                    at, template = self.address(buffer, index), self.dialect.vectors.load_one
                    return template.format(at=at, mask=self.guard), ATOM
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
        """An element of a buffer, to read or to assign."""
        return f"{buffer}[{'k' if buffer in self.registers else self._index(index)}]"

    def address(self, buffer: str, index: Expr) -> str:
        """A pointer to an element of a buffer."""
        text = self._index(index)
        return buffer if text == "0" else f"{buffer} + {text}"

    def is_position(self, x: Expr) -> bool:
        """Whether a value is made of loops' variables and sizes alone."""
        known = (Const, SizeOf, Binary, Unary, Select, Cast)
        return all(
            isinstance(part, known)
            or (isinstance(part, Var) and (part.name in self.positions or part.name in self.sizes))
            for part in walk(x)
        )

    def _index(self, x: Expr) -> str:
        return (self.of_indices if self.dialect.wraps else self).expr(x)

    def _overflows(self, x: Expr) -> bool:
        """Whether a sum, difference or product may leave its type, which the language forbids.

        C computes in int what is narrower: there it is only a product of 16 bits without sign.
        """
        if not self.dialect.wraps or self.inside:
            return False
        if x.dtype is dt.uint16:
            return isinstance(x, Binary) and x.op == "*"
        if x.dtype is dt.int64:
            return not self.is_position(x)
        return x.dtype is dt.int32

    def _wrapped(self, op: str, a: Expr, b: Expr) -> str:
        name = self.dialect.call_of(WRAPPED[op], a.dtype)
        return f"{name}({self._typed(a)}, {self._typed(b)})"

    def _binary(self, x: Binary) -> tuple[str, int]:
        name = division(x, self.dialect)
        if name is not None and not self._is_position(x):
            return f"{name}({self._typed(x.a)}, {self._typed(x.b)})", ATOM
        if x.op in WRAPPED and self._overflows(x):
            return self._wrapped(x.op, x.a, x.b), ATOM
        quotient = self._quotient(x)
        if quotient is not None:
            return quotient, ATOM
        op, level, right = operator(x)
        return f"{self.expr(x.a, level)} {op} {self.expr(x.b, right)}", level

    def literal_divisor(self, c: Const) -> str:
        """A literal as a divisor, of which `has_divisor` holds."""
        templates = self.dialect.quotients
        assert templates is not None
        if not is_known_divisor(c):
            return templates.measured.format(value=literal(c, self.dialect))
        high, low = (literal(const(v, c.dtype), self.dialect) for v in parts_of(c))
        return templates.known_divisor.format(value=literal(c, self.dialect), high=high, low=low)

    def _quotient(self, x: Binary) -> str | None:
        """A quotient without a division; None where the language divides."""
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
        """A quotient of which a pass has shown that a shorter form does; None for another call."""
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

    def _is_position(self, x: Binary) -> bool:
        """Whether a quotient is a part of an index: its divisor is an extent, so never 0 or -1."""
        b = x.b
        extent = (isinstance(b, Const) and b.value > 0) or isinstance(b, SizeOf)
        extent |= isinstance(b, Var) and (b.name in self.sizes or b.name in self.extents)
        return extent and b.dtype is dt.int64

    def _narrow(self, x: Expr, text: str, level: int) -> tuple[str, int]:
        """Arithmetic on integers of 8 and 16 bits, which C does in 32, wrapped again."""
        if not _is_narrow(x):
            return text, level
        return self.dialect.cast.format(type=self.dialect.type_of(x.dtype), value=text), UNARY

    def _typed(self, x: Expr) -> str:
        """An expression whose type the language cannot mistake: a literal says its own."""
        text = self.expr(x)
        return text if _says_its_type(x) else self.dialect.cast_of(x.dtype, x.dtype, text)


def _says_its_type(x: Expr) -> bool:
    """Whether C gives an expression its own type: literals are int, narrow integers become int."""
    match x:
        case Const():
            plain = not x.dtype.is_integer or x.dtype is dt.int32
            return plain and not (x.dtype.is_float and bool(np.isinf(x.value)))
        case Binary(_, a, b) if x.dtype is not dt.bool_:
            return not _is_narrow(x) and _say_their_type(a, b)
        case Select(_, a, b):
            return not _is_narrow(x) and _say_their_type(a, b)
        case Unary(_, a):
            return not _is_narrow(x) and _says_its_type(a)
    return True


def _say_their_type(a: Expr, b: Expr) -> bool:
    """Whether C gives both together their own type, which a literal that is long long changes."""
    if not (_says_its_type(a) or _says_its_type(b)):
        return False
    return a.dtype.nbytes < 8 or not any(_is_long_long(x) for side in (a, b) for x in walk(side))


def _is_long_long(x: Expr) -> bool:
    return isinstance(x, Const) and x.dtype.is_integer and abs(x.integer) > 0x7FFFFFFF


def _is_narrow(x: Expr) -> bool:
    return x.dtype.is_integer and x.dtype.nbytes < 4
