"""Tokens of the text form of graphs, and a cursor over them."""

from __future__ import annotations

import json
import re

from attrs import frozen

from passkit.errors import ParseError
from passkit.serial.text import KEYWORDS
from passkit.values.arguments import shortened, shown


@frozen
class Token:
    """A token: its kind, its text, and its position.

    ``kind`` is a group of `TOKEN`, or "stop" for the end of the text.
    """

    kind: str
    text: str
    line: int
    column: int


TOKEN = re.compile(
    r"""(?P<skip>[ \t\r]+|\#[^\n]*)
    |(?P<end>\n|;)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<mark>\.\.\.|//|[()\[\]{},=:?$*+-])""",
    re.VERBOSE,
)


def tokens(text: str) -> list[Token]:
    """Split a text into tokens; a line break inside ( ) or [ ] does not end a statement.

    Raises: ParseError at an unexpected character.
    """
    result: list[Token] = []
    open_marks: list[str] = []
    line, start, at = 1, 0, 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ParseError(
                f"line {line}, column {at - start + 1}: unexpected character {text[at]!r}"
            )
        kind, piece = str(match.lastgroup), match.group()
        if kind == "mark" and piece in "([{":
            open_marks.append(piece)
        elif kind == "mark" and piece in ")]}" and open_marks:
            open_marks.pop()
        inside = bool(open_marks) and open_marks[-1] != "{"
        if kind != "skip" and not (kind == "end" and piece == "\n" and inside):
            result.append(Token(kind, piece, line, at - start + 1))
        at = match.end()
        if piece == "\n":
            line, start = line + 1, at
    result.append(Token("stop", "", line, at - start + 1))
    return result


class Cursor:
    """A position in a list of tokens, with methods that read the token there and move on."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at = tokens, 0

    @property
    def next(self) -> Token:
        """Return the next token, and stay there."""
        return self.tokens[self.at]

    @property
    def following(self) -> Token:
        """Return the token after the next one; the end is followed by itself."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def fail(self, message: str, token: Token | None = None) -> ParseError:
        """Return a ParseError with ``message``, for the caller to raise.

        Its position is that of ``token``, by default of the next one.
        """
        where = token or self.next
        return ParseError(f"line {where.line}, column {where.column}: {message}")

    def shown(self) -> str:
        """Return the next token as messages show it."""
        return shown(self.next.text) if self.next.text else "the end"

    def accept(self, text: str) -> bool:
        """Read ``text``, a mark or word, if it is next and no string; return whether it is."""
        if self.next.text != text or self.next.kind in ("string", "stop"):
            return False
        self.at += 1
        return True

    def expect(self, text: str, need: str = "") -> None:
        """Read a mark or word that must come next; "" is the end of the text.

        Raises: ParseError otherwise, with ``need`` as what was expected.
        """
        if text and self.accept(text):
            return
        if text or self.next.kind != "stop":
            raise self.fail(f"expected {need or repr(text)}, got {self.shown()}")

    def skip_ends(self) -> None:
        """Skip line breaks and semicolons."""
        while self.next.kind == "end":
            self.at += 1

    def end(self) -> None:
        """Read the end of a statement, and further ones; a closing brace ends it, but is not read.

        Raises: ParseError where something else follows.
        """
        if self.next.kind not in ("end", "stop") and self.next.text != "}":
            raise self.fail(f"expected the end of the statement, got {self.shown()}")
        self.skip_ends()

    def name(self) -> str:
        """Read a name, plain or quoted, and return it without quotes.

        Raises: ParseError where none, a keyword without quotes, or a string that is no JSON string
        comes next.
        """
        token = self.next
        if token.kind == "name" and token.text not in KEYWORDS:
            self.at += 1
            return token.text
        if token.kind == "string":
            return self.string()
        raise self.fail(f"expected a name, got {self.shown()}")

    def string(self) -> str:
        """Read a quoted string; return its content.

        Raises: ParseError where none comes next, or it is no JSON string.
        """
        token = self.next
        if token.kind != "string":
            raise self.fail(f"expected a string, got {self.shown()}")
        try:
            value = json.loads(token.text)
        except ValueError:
            raise self.fail(f"{shortened(token.text)} is no JSON string") from None
        self.at += 1
        return str(value)

    def integer(self) -> int:
        """Read a non-negative integer of at most 18 digits.

        Raises: ParseError where none comes next.
        """
        token = self.next
        if token.kind != "number" or not token.text.isdigit() or len(token.text) > 18:
            raise self.fail(f"expected a whole number, got {self.shown()}")
        self.at += 1
        return int(token.text)
