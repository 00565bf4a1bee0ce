"""Tokens of the text form of loop IR, and a cursor over them."""

from __future__ import annotations

import re
from enum import Enum
from typing import TypeVar

from attrs import frozen

from passkit.errors import DTypeError, ParseError
from passkit.values.arguments import shown
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Size

TOKEN = re.compile(
    r"""(?P<skip>[ \t\r]+|\#[^\n]*)
    |(?P<end>\n)
    |(?P<shape>\d+x\d+)
    |(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<mark>//|==|!=|<=|>=|[()\[\]{},:=*/%&|^~<>+@-])""",
    re.VERBOSE,
)
Choice = TypeVar("Choice", bound=Enum)


@frozen
class IRToken:
    """A token: its kind, a group of `TOKEN` or "stop", its text and its position."""

    kind: str
    text: str
    line: int
    column: int


def ir_tokens(text: str) -> list[IRToken]:
    """Split a text into tokens. Raises: ParseError at a character that begins none."""
    result: list[IRToken] = []
    line, start, at = 1, 0, 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            column = at - start + 1
            raise ParseError(f"line {line}, column {column}: unexpected character {text[at]!r}")
        kind, piece = str(match.lastgroup), match.group()
        if kind != "skip":
            result.append(IRToken(kind, piece, line, at - start + 1))
        at = match.end()
        if kind == "end":
            line, start = line + 1, at
    result.append(IRToken("stop", "", line, at - start + 1))
    return result


class IRCursor:
    """A position in a list of tokens."""

    def __init__(self, tokens: list[IRToken]) -> None:
        self.tokens, self.at = tokens, 0

    @property
    def next(self) -> IRToken:
        """Return the next token, and stay there."""
        return self.tokens[self.at]

    def error(self, message: str, token: IRToken | None = None) -> ParseError:
        """Return an error with the position of ``token``, by default of the next one."""
        where = token or self.next
        return ParseError(f"line {where.line}, column {where.column}: {message}")

    def unexpected(self, need: str) -> ParseError:
        """Return an error: ``need`` was expected in place of the next token."""
        text = {"end": "the end of the line", "stop": "the end of the text"}.get(self.next.kind)
        return self.error(f"expected {need}, got {text or shown(self.next.text)}")

    def accept(self, *texts: str) -> str:
        """Read a mark or word of ``texts`` if one comes next; return it, else an empty string."""
        if self.next.kind in ("string", "stop", "end") or self.next.text not in texts:
            return ""
        self.at += 1
        return self.tokens[self.at - 1].text

    def expect(self, *texts: str) -> str:
        """Read a mark or word of ``texts``. Raises: ParseError if none comes next."""
        accepted = self.accept(*texts)
        if not accepted:
            raise self.unexpected(" or ".join(map(repr, texts)))
        return accepted

    def take(self, kind: str, need: str) -> str:
        """Read a token of a kind; return its text. Raises: ParseError if none comes next."""
        if self.next.kind != kind:
            raise self.unexpected(need)
        self.at += 1
        return self.tokens[self.at - 1].text

    def name(self) -> str:
        """Read a name. Raises: ParseError if none comes next."""
        return self.take("name", "a name")

    def integer(self) -> int:
        """Read a whole number. Raises: ParseError if none comes next."""
        if not self.next.text.isdigit():
            raise self.unexpected("a whole number")
        return int(self.take("number", "a whole number"))

    def choice(self, enum: type[Choice]) -> Choice:
        """Read a word that is the value of a member of ``enum``. Raises: ParseError otherwise."""
        return enum(self.expect(*(m.value for m in enum)))

    def names(self) -> tuple[str, ...]:
        """Read names that commas separate. Raises: ParseError otherwise."""
        names = [self.name()]
        while self.accept(","):
            names.append(self.name())
        return tuple(names)

    def ends(self) -> None:
        """Read line breaks, of which there may be none."""
        while self.next.kind == "end":
            self.at += 1

    def end(self) -> None:
        """Read the end of a line and the empty lines that follow; at the end of the text, nothing.

        Raises: ParseError where something else comes next.
        """
        if self.next.kind != "stop":
            self.take("end", "the end of the line")
        self.ends()

    def dtype(self) -> DType:
        """Read a dtype. Raises: ParseError if there is none of that name."""
        token = self.next
        try:
            return dtype_of(self.name())
        except DTypeError as error:
            raise self.error(str(error), token) from None

    def extent(self) -> Extent:
        """Read an extent. Raises: ParseError if none comes next."""
        total = self._product()
        while self.accept("+"):
            total = total + self._product()
        return total

    def _product(self) -> Extent:
        """Read a product of an extent. Raises: ParseError if none comes next."""
        sign = -1 if self.accept("-") else 1
        total = self._operand() * sign
        while op := self.accept("*", "//"):
            total = total * self._operand() if op == "*" else total // self._operand()
        return total

    def _operand(self) -> Extent:
        """Read an operand of an extent. Raises: ParseError if none comes next."""
        if self.accept("("):
            inner = self.extent()
            self.expect(")")
            return inner
        if self.next.kind == "name":
            return Size.symbol(self.name())
        return self.integer()
