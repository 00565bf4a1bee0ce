"""The parser of expressions in the text form of loop IR."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from attrs import evolve

from passkit.ast.expr import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Fixed,
    Load,
    Select,
    SizeOf,
    Unary,
    Var,
    const,
)
from passkit.ir.loop import Bind, IsAligned, ThreadIndex
from passkit.ir.tokens import IRCursor, IRToken
from passkit.values.arguments import shown
from passkit.values.dtype import DType, bool_, int64

LEVELS = {
    "|": 1,
    "^": 2,
    "&": 3,
    "==": 4,
    "!=": 4,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "//": 6,
    "%": 6,
}
"""The precedence of each operator; operators of one precedence associate to the left."""
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
WORDS = ("cast", "select", "size", "aligned", "bits", "true", "false")
"""Words of expressions. A function of such a name is written in quotes."""


class ExprParser(IRCursor):
    """The parser of expressions.

    ``scope`` has the dtypes of the variables that are defined at the current statement, ``buffers``
    those of buffers.
    """

    def __init__(self, tokens: list[IRToken]) -> None:
        super().__init__(tokens)
        self.scope: dict[str, DType] = {}
        self.buffers: dict[str, DType] = {}

    def expr(self, outer: int = 1) -> Expr:
        """Read an expression of operators of at least the precedence ``outer``.

        Raises: ParseError where something else comes next.
        """
        x = self._primary()
        while self.next.kind == "mark" and LEVELS.get(self.next.text, 0) >= outer:
            op = self.expect(*LEVELS)
            b = self.expr(LEVELS[op] + 1)
            x = Binary(op, x, b, bool_ if op in COMPARISONS else x.dtype)
        return x

    def _typed(self, x: Expr) -> Expr:
        """Return ``x`` with the dtype behind a colon, if there is one."""
        return evolve(x, dtype=self.dtype()) if self.accept(":") else x  # type: ignore[misc]

    def _primary(self) -> Expr:
        """Read an operand. Raises: ParseError if none comes next."""
        if self.accept("("):
            x = self.expr()
            self.expect(")")
            return self._typed(x)
        if op := self.accept("-", "~"):
            if op == "-" and (self.next.kind == "number" or self.next.text == "@"):
                return self._literal("-")
            self.expect("(")
            x = self.expr()
            self.expect(")")
            return self._typed(Unary(op, x, x.dtype))
        if self.next.kind == "number":
            return self._literal("")
        if self.next.text == "@":
            return self._special()
        if self.next.kind == "string":
            name = str(json.loads(self.take("string", "a string")))
            return self._typed(self._call(name))
        name = self.take("name", "an expression")
        return self._named(name)

    def _named(self, name: str) -> Expr:
        """Read what follows a name in an expression. Raises: ParseError for an unknown name."""
        if name in ("true", "false"):
            return const(name == "true", bool_)
        token = self.tokens[self.at - 1]
        if self.next.text == "(":
            read = self._words().get(name)
            return self._typed(self._call(name)) if read is None else self._typed(read())
        if self.accept("["):
            index = self.expr()
            self.expect("]")
            dtype = self.dtype() if self.accept(":") else self.buffers.get(name)
            what, defined = "buffer", self.buffers
        else:
            dtype = self.dtype() if self.accept(":") else self.scope.get(name)
            what, defined = "variable", self.scope
        if dtype is None:
            raise self.error(f"{what} {name!r} is not defined; {_known(defined)}", token)
        return Var(name, dtype) if what == "variable" else Load(name, index, dtype)

    def _words(self) -> Mapping[str, Callable[[], Expr]]:
        """Return the readers of expressions that are written like calls, by name."""
        return {
            "cast": self._cast,
            "select": self._select,
            "size": self._size,
            "aligned": self._aligned,
            "bits": self._bits,
        }

    def _call(self, name: str) -> Expr:
        """Read the arguments of a call. Raises: ParseError where something else comes next."""
        self.expect("(")
        args: list[Expr] = []
        while self.next.text != ")":
            args.append(self.expr())
            if not self.accept(","):
                break
        self.expect(")")
        return Call(name, tuple(args), args[0].dtype if args else bool_)

    def _cast(self) -> Expr:
        """Read a cast. Raises: ParseError where something else comes next."""
        self.expect("(")
        x = self.expr()
        self.expect(",")
        dtype = self.dtype()
        self.expect(")")
        return Cast(x, dtype)

    def _select(self) -> Expr:
        """Read a selection. Raises: ParseError where something else comes next."""
        self.expect("(")
        condition = self.expr()
        self.expect(",")
        a = self.expr()
        self.expect(",")
        b = self.expr()
        self.expect(")")
        return Select(condition, a, b, a.dtype)

    def _size(self) -> Expr:
        """Read a size. Raises: ParseError where something else comes next."""
        self.expect("(")
        extent = self.extent()
        fixed = self.choice(Fixed) if self.accept(",") else Fixed.AUTO
        self.expect(")")
        return SizeOf(extent, fixed)

    def _aligned(self) -> Expr:
        """Read a test of addresses. Raises: ParseError where something else comes next."""
        self.expect("(")
        nbytes = self.integer()
        names = self.names() if self.accept(",") else ()
        self.expect(")")
        return IsAligned(names, nbytes)

    def _bits(self) -> Expr:
        """Read a literal by its bytes. Raises: ParseError where something else comes next."""
        self.expect("(")
        token = self.next
        digits = self.take("string", "a string of hexadecimal digits")[1:-1]
        self.expect(")")
        self.expect(":")
        dtype = self.dtype()
        try:
            bits = bytes.fromhex(digits)
        except ValueError:
            bits = b""
        if len(bits) != dtype.nbytes:
            raise self.error(f"{shown(digits)} is not the value of a {dtype.short}", token)
        return Const(bits, dtype)

    def _special(self) -> Expr:
        """Read an expression that begins with ``@``. Raises: ParseError if there is no such."""
        if self.tokens[self.at + 1].text in ("inf", "nan"):
            return self._literal("")
        self.expect("@")
        return self._typed(ThreadIndex(self.choice(Bind)))

    def _literal(self, sign: str) -> Expr:
        """Read a number with a sign. Raises: ParseError if it is no value of its dtype."""
        token = self.next
        if self.accept("@"):
            text = sign + self.expect("inf", "nan")
        else:
            text = sign + self.take("number", "a number")
        dtype = self.dtype() if self.accept(":") else int64
        if dtype.is_float:
            return const(float(text), dtype)
        try:
            x = const(int(text), dtype)
        except (ValueError, TypeError):
            x = None
        if x is None or dtype.kind not in "iu" or int(x.value) != int(text):
            raise self.error(f"{text} is not a value of {dtype.short}", token)
        return x


def _known(names: Mapping[str, DType]) -> str:
    """Return which names there are."""
    return "known: " + (", ".join(sorted(names)) or "none")
