"""Reads the text form of graphs, which `passkit.text` describes; it builds nodes as it goes."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from passkit.dtype import DType, dtype_of
from passkit.errors import DTypeError, ParseError, PasskitError, nearest
from passkit.graph import Graph
from passkit.json import DEEPEST, NESTED
from passkit.node import CONSTANT, Entry, Node, apply
from passkit.op import get_op
from passkit.size import Extent, Shape, Size
from passkit.text import KEYWORDS, WORDS, elements, python_number, size_text, type_text


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


def parse(text: str) -> Graph:
    """The graph that a text describes; see the head of this file.

    Raises: ParseError with line and column. Errors of operators carry the line as a note.
    """
    parser = _Parser(tokens(text))
    graph = parser.graph()
    parser.expect("", "the end of the text")
    return graph


class _Scope:
    """The names that one graph has given so far."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.updates: list[tuple[Node, Entry]] = []


class _Parser:
    """Reads tokens from left to right; `scope` is the innermost graph."""

    def __init__(self, found: list[Token]) -> None:
        self.tokens, self.at, self.depth = found, 0, 0
        self.scope = _Scope()

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def fail(self, message: str, token: Token | None = None) -> ParseError:
        where = token or self.next
        return ParseError(f"line {where.line}, column {where.column}: {message}")

    def shown(self) -> str:
        return repr(self.next.text) if self.next.text else "the end"

    def accept(self, text: str) -> bool:
        """Go past a mark or word if it comes next."""
        if self.next.text != text or self.next.kind in ("string", "stop"):
            return False
        self.at += 1
        return True

    def expect(self, text: str, what: str = "") -> None:
        if text and self.accept(text):
            return
        if text or self.next.kind != "stop":
            raise self.fail(f"expected {what or repr(text)}, got {self.shown()}")

    def skip_ends(self) -> None:
        while self.next.kind == "end":
            self.at += 1

    def graph(self) -> Graph:
        """Statements up to and with ``return``."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fail(f"graphs are nested more than {DEEPEST} deep")
        outer, self.scope = self.scope, _Scope()
        self.skip_ends()
        while not self.accept("return"):
            if self.next.kind == "stop" or self.next.text == "}":
                raise self.fail(f"expected a statement or 'return', got {self.shown()}")
            self.statement()
            self.end()
        outputs: list[Entry] = []
        if self.next.kind in ("name", "string"):
            outputs.append(self.operand())
            while self.accept(","):
                outputs.append(self.operand())
        self.end()
        made = Graph(outputs, self.scope.updates)
        self.scope = outer
        self.depth -= 1
        return made

    def end(self) -> None:
        if self.next.kind not in ("end", "stop") and self.next.text != "}":
            raise self.fail(f"expected the end of the statement, got {self.shown()}")
        self.skip_ends()

    def statement(self) -> None:
        first = self.next
        if first.kind == "name" and first.text == "update":
            self.at += 1
            self.update()
            return
        is_state = first.kind == "name" and self.accept("state")
        token = self.next
        name = self.name()
        if name in self.scope.nodes:
            raise self.fail(f"the name {name!r} is given twice", token)
        if is_state or self.next.text == ":":
            self.expect(":")
            node = self.declaration(name, is_state)
        else:
            self.expect("=", "':' and a type, or '=' and an operator")
            node = self.call(name)
        self.scope.nodes[name] = node

    def name(self) -> str:
        token = self.next
        if token.kind == "name" and token.text not in KEYWORDS:
            self.at += 1
            return token.text
        if token.kind == "string":
            return self.string()
        raise self.fail(f"expected a name, got {self.shown()}")

    def string(self) -> str:
        token = self.next
        if token.kind != "string":
            raise self.fail(f"expected a string, got {self.shown()}")
        try:
            value = json.loads(token.text)
        except ValueError:
            raise self.fail(f"{token.text} is no JSON string") from None
        self.at += 1
        return str(value)

    def update(self) -> None:
        token = self.next
        target = self.ref().node
        if not (target.is_variable and target.params.get("state")):
            raise self.fail(f"'{token.text}' is no state variable, so it has no update", token)
        self.expect("=")
        self.scope.updates.append((target, self.ref()))

    def known(self, token: Token, name: str) -> Node:
        if name not in self.scope.nodes:
            hint = nearest(name, self.scope.nodes) if self.scope.nodes else "nothing is named yet"
            raise self.fail(f"there is no {name!r} above; {hint}", token)
        return self.scope.nodes[name]

    def ref(self) -> Entry:
        token = self.next
        node = self.known(token, self.name())
        if self.accept(":"):
            index = self.integer()
            if index >= len(node.entries):
                raise self.fail(
                    f"{token.text} has {len(node.entries)} result(s), so no number {index}", token
                )
            return node.entries[index]
        if len(node.entries) > 1:
            raise self.fail(
                f"{token.text} has {len(node.entries)} results; write {token.text}:0", token
            )
        return node.entries[0]

    def operand(self) -> Entry:
        """A reference, or an operator without a name of its own: ``add(exp(x), 1)``."""
        token, following = self.next, self.tokens[self.at + 1]
        if token.kind != "name" or following.kind != "mark" or following.text != "(":
            return self.ref()
        self.depth += 1
        if self.depth > 4 * DEEPEST:
            raise self.fail(f"operators are nested more than {4 * DEEPEST} deep")
        node = self.call("")
        self.depth -= 1
        if len(node.entries) > 1:
            raise self.fail(f"{token.text} has {len(node.entries)} results; give it a name", token)
        return node.entries[0]

    def integer(self) -> int:
        token = self.next
        if token.kind != "number" or not token.text.isdigit() or len(token.text) > 18:
            raise self.fail(f"expected a whole number, got {self.shown()}")
        self.at += 1
        return int(token.text)

    def after(self) -> list[Node]:
        """The nodes in ``after(…)``."""
        found: list[Node] = []
        if self.accept("after"):
            self.expect("(")
            while not self.accept(")"):
                token = self.next
                found.append(self.known(token, self.name()))
                if self.next.text != ")":
                    self.expect(",")
        return found

    def declaration(self, name: str, is_state: bool) -> Node:
        token = self.next
        dtype, shape = self.type(name)
        value: Any = None
        if self.accept("="):
            value = self.array(dtype, shape, token)
        params: dict[str, Any] = {"shape": shape, "dtype": dtype}
        if is_state:
            if dtype is None or shape is None or any(isinstance(n, Size) for n in shape):
                raise self.fail(f"state variable {name!r} needs a dtype and a known shape", token)
            return Node(None, (), {**params, "state": True, "initial": value}, name, self.after())
        if value is not None:
            return Node(CONSTANT, (), {"value": value}, name, self.after())
        return Node(None, (), params, name, self.after())

    def type(self, name: str) -> tuple[DType | None, Shape | None]:
        dtype: DType | None = None
        token = self.next
        if not self.accept("?"):
            try:
                dtype = dtype_of(self.name())
            except DTypeError as error:
                raise self.fail(str(error), token) from None
        if not self.accept("["):
            return dtype, ()
        if self.accept("..."):
            self.expect("]")
            return dtype, None
        shape: list[Extent] = []
        while not self.accept("]"):
            token = self.next
            if self.accept("?"):
                shape.append(Size.symbol(f"{name}.{len(shape)}"))
            else:
                n = self.value()
                if not isinstance(n, Size) and (type(n) is not int or n < 0):
                    raise self.fail(f"an extent is an int >= 0, a size or '?', got {n!r}", token)
                shape.append(n)
            if self.next.text != "]":
                self.expect(",")
        return dtype, tuple(shape)

    def array(self, dtype: DType | None, shape: Shape | None, token: Token) -> Any:
        """The elements of an array: a number, a list, or base64; frozen."""
        if dtype is None or shape is None or any(isinstance(n, Size) for n in shape):
            raise self.fail("an array needs a dtype and a known shape", token)
        known = tuple(n for n in shape if isinstance(n, int))
        count = int(np.prod(known, dtype=object)) if known else 1
        if self.accept("base64"):
            self.expect("(")
            array = self.from_base64(dtype, known, count)
            self.expect(")")
        else:
            values = self.numbers()
            if len(values) != count:
                raise self.fail(
                    f"{type_text(dtype, known)} has {count} elements, got {len(values)}", token
                )
            array = elements(values, dtype.numpy, known)
            if array is None:
                raise self.fail(f"not all of these numbers are {dtype}", token)
        array.flags.writeable = False
        return array

    def from_base64(self, dtype: DType, shape: tuple[int, ...], count: int) -> Any:
        token = self.next
        text = self.string()
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise self.fail(f"this is not base64: {error}", token) from None
        if len(raw) != count * dtype.nbytes:
            raise self.fail(
                f"{type_text(dtype, shape)} has {count * dtype.nbytes} bytes, got {len(raw)}", token
            )
        return np.frombuffer(raw, dtype.numpy).reshape(shape)

    def numbers(self) -> list[Any]:
        if not self.accept("["):
            return [self.number()]
        found: list[Any] = []
        while not self.accept("]"):
            found.append(self.number())
            if self.next.text != "]":
                self.expect(",")
        return found

    def number(self) -> Any:
        """A number or a word such as inf, with its sign."""
        sign = "-" if self.accept("-") else ""
        token = self.next
        word = token.kind == "name" and token.text in (
            ("inf", "nan") if sign else ("inf", "nan", "true", "false")
        )
        if not word and token.kind != "number":
            raise self.fail(f"expected a number, got {self.shown()}")
        self.at += 1
        if len(token.text) > 400:
            raise self.fail(f"a number has {len(token.text)} digits", token)
        return python_number(sign + token.text)

    def call(self, name: str) -> Node:
        token = self.next
        try:
            op = get_op(self.name())
        except PasskitError as error:
            if isinstance(error, ParseError):
                raise
            raise self.fail(str(error), token) from None
        self.expect("(")
        inputs: list[Any] = []
        params: dict[str, Any] = {}
        while not self.accept(")"):
            following = self.tokens[self.at + 1]
            if self.next.kind == "name" and following.text == "=" and following.kind == "mark":
                key = self.next
                self.at += 2
                if key.text in params:
                    raise self.fail(f"parameter {key.text!r} is given twice", key)
                params[key.text] = self.value()
            elif params:
                raise self.fail(f"expected a parameter, got {self.shown()}; inputs come first")
            else:
                inputs.append(self.argument())
            if self.next.text != ")":
                self.expect(",")
        try:
            return apply(op, inputs, params, name, self.after())
        except PasskitError as error:
            error.add_note(f"at line {token.line}, column {token.column} of the text")
            raise

    def argument(self) -> Any:
        """A reference, an operator, or a literal."""
        token = self.next
        is_name = token.kind == "name" and token.text not in WORDS
        if is_name or token.kind == "string":
            return self.operand()
        return self.value() if token.text in ("(", "none") else self.number()

    def value(self) -> Any:
        """A parameter: literals, tuples, dicts, arrays, graphs, and arithmetic on sizes."""
        self.depth += 1
        if self.depth > 4 * DEEPEST:
            raise self.fail(f"values are nested more than {4 * DEEPEST} deep")
        token = self.next
        total = self.product()
        while self.next.kind == "mark" and self.next.text in "+-":
            minus = self.next.text == "-"
            self.at += 1
            right = self.size(self.product(), token)
            total = self.size(total, token) + (right * -1 if minus else right)
        self.depth -= 1
        return total

    def product(self) -> Any:
        token = self.next
        if self.accept("-"):
            right = self.product()
            return -right if isinstance(right, float) else self.size(right, token) * -1
        left = self.primary()
        while self.next.text in ("*", "//") and self.next.kind == "mark":
            times = self.next.text == "*"
            self.at += 1
            right = self.size(self.primary(), token)
            left = self.size(left, token)
            if not times and right == 0:
                raise self.fail(f"{size_text(left)} is divided by zero", token)
            left = left * right if times else left // right
        return left

    def size(self, value: Any, token: Token) -> Any:
        if not isinstance(value, (int, Size)) or isinstance(value, bool):
            raise self.fail(f"only sizes are added and multiplied, got {value!r}", token)
        return value

    def primary(self) -> Any:
        token = self.next
        if token.kind == "string":
            return self.string()
        if token.kind == "number":
            return self.number()
        if self.accept("("):
            return self.tuple()
        if self.accept("{"):
            return self.dict()
        if self.accept("$"):
            return Size.symbol(self.string())
        if token.kind != "name":
            raise self.fail(f"expected a value, got {self.shown()}")
        self.at += 1
        if token.text in WORDS:
            return WORDS[token.text]
        called = self.next.text == "(" and self.next.kind == "mark"
        special: dict[str, Callable[[], Any]] = {"array": self.typed_array, "dtype": self.dtype}
        if called and token.text in special:
            self.at += 1
            return special[token.text]()
        if called and token.text in NESTED:
            return self.nested(token.text)
        if called or token.text in KEYWORDS:
            raise self.fail(f"{token.text!r} is no value", token)
        return Size.symbol(token.text)

    def tuple(self) -> Any:
        """``(a, b)``, ``(a,)``, ``()``; without a comma, just the value."""
        found: list[Any] = []
        comma = False
        while not self.accept(")"):
            found.append(self.value())
            comma = self.accept(",")
            if not comma and self.next.text != ")":
                raise self.fail(f"expected ',' or ')', got {self.shown()}")
        return found[0] if len(found) == 1 and not comma else tuple(found)

    def dict(self) -> Any:
        found: dict[Any, Any] = {}
        while not self.accept("}"):
            key = self.next
            name = self.value()
            self.expect(":")
            try:
                found[name] = self.value()
            except TypeError:
                raise self.fail(f"{name!r} cannot be the key of a dict", key) from None
            if self.next.text != "}":
                self.expect(",")
        return found

    def typed_array(self) -> Any:
        token = self.next
        dtype, shape = self.type("")
        self.expect(",")
        found = self.array(dtype, shape, token)
        self.expect(")")
        return found

    def dtype(self) -> Any:
        token = self.next
        try:
            found = dtype_of(self.name())
        except DTypeError as error:
            raise self.fail(str(error), token) from None
        self.expect(")")
        return found

    def nested(self, tag: str) -> Any:
        """``tag(key=value, …) { statements }``."""
        token = self.next
        self.expect("(")
        given: dict[str, Any] = {}
        while not self.accept(")"):
            key = self.name()
            self.expect("=")
            given[key] = self.value()
            if self.next.text != ")":
                self.expect(",")
        self.expect("{")
        inner = self.graph()
        self.expect("}")
        try:
            return NESTED[tag].make(inner, given)
        except PasskitError as error:
            error.add_note(f"at line {token.line}, column {token.column} of the text")
            raise
