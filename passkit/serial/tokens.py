"""The pieces of the text form of graphs, and a cursor that goes through them."""

from __future__ import annotations

import json
import re

from attrs import frozen

from passkit.errors import ParseError
from passkit.serial.text import KEYWORDS
from passkit.values.arguments import shortened, shown


@frozen
class Token:
    """A piece of text: its kind, what it says, and where it stands."""

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
    """The pieces of a text; a line break inside of ( ) or [ ] does not end a statement.

    Raises: ParseError at a character that belongs nowhere.
    """
    found: list[Token] = []
    open_marks: list[str] = []
    line, start, at = 1, 0, 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ParseError(f"line {line}, column {at - start + 1}: unexpected {text[at]!r}")
        kind, piece = str(match.lastgroup), match.group()
        if kind == "mark" and piece in "([{":
            open_marks.append(piece)
        elif kind == "mark" and piece in ")]}" and open_marks:
            open_marks.pop()
        inside = bool(open_marks) and open_marks[-1] != "{"
        if kind != "skip" and not (kind == "end" and piece == "\n" and inside):
            found.append(Token(kind, piece, line, at - start + 1))
        at = match.end()
        if piece == "\n":
            line, start = line + 1, at
    found.append(Token("stop", "", line, at - start + 1))
    return found


class Cursor:
    """Goes through the pieces of a text from left to right."""

    def __init__(self, found: list[Token]) -> None:
        self.tokens, self.at = found, 0

    @property
    def next(self) -> Token:
        """The piece that comes next."""
        return self.tokens[self.at]

    @property
    def following(self) -> Token:
        """The piece behind the next one; the end is followed by itself."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def fail(self, message: str, token: Token | None = None) -> ParseError:
        """An error at ``token``, else at the next piece."""
        where = token or self.next
        return ParseError(f"line {where.line}, column {where.column}: {message}")

    def shown(self) -> str:
        """The next piece as messages show it."""
        return shown(self.next.text) if self.next.text else "the end"

    def accept(self, text: str) -> bool:
        """Go past a mark or word if it comes next."""
        if self.next.text != text or self.next.kind in ("string", "stop"):
            return False
        self.at += 1
        return True

    def expect(self, text: str, what: str = "") -> None:
        """Go past a mark or word that must come next; without one, be at the end."""
        if text and self.accept(text):
            return
        if text or self.next.kind != "stop":
            raise self.fail(f"expected {what or repr(text)}, got {self.shown()}")

    def skip_ends(self) -> None:
        """Go past line breaks and semicolons."""
        while self.next.kind == "end":
            self.at += 1

    def end(self) -> None:
        """Go past the end of a statement."""
        if self.next.kind not in ("end", "stop") and self.next.text != "}":
            raise self.fail(f"expected the end of the statement, got {self.shown()}")
        self.skip_ends()

    def name(self) -> str:
        """A name, as it is or quoted."""
        token = self.next
        if token.kind == "name" and token.text not in KEYWORDS:
            self.at += 1
            return token.text
        if token.kind == "string":
            return self.string()
        raise self.fail(f"expected a name, got {self.shown()}")

    def string(self) -> str:
        """What a quoted string says."""
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
        """A number of digits only."""
        token = self.next
        if token.kind != "number" or not token.text.isdigit() or len(token.text) > 18:
            raise self.fail(f"expected a whole number, got {self.shown()}")
        self.at += 1
        return int(token.text)
