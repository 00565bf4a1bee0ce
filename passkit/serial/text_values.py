"""Parser of values in the text form of graphs: types, numbers, arrays, tuples, dicts, sizes.

All methods raise a ParseError with line and column where the text is malformed.
"""

from __future__ import annotations

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.errors import DTypeError, PasskitError
from passkit.graph.graph import Graph
from passkit.graph.nested import DEEPEST, NESTED
from passkit.serial.text import (
    KEYWORDS,
    PYTHON_WORDS,
    WORDS,
    elements,
    python_number,
    size_text,
    type_text,
)
from passkit.serial.tokens import Cursor, Token
from passkit.values.arguments import shown
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Shape, Size, has_size


class ValueParser(Cursor, ABC):
    """A parser of values; subclasses parse the graphs inside them."""

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self.depth = 0

    @abstractmethod
    def graph(self) -> Graph:
        """Parse statements up to and including ``return``; return their graph.

        Raises: ParseError; errors of an operator that refuses its inputs or parameters.
        """

    def type(self, name: str) -> tuple[DType | None, Shape | None]:
        """Parse a dtype and a shape; ``?`` is a size of its own of the variable called ``name``.

        Returns: The dtype, and the shape, which is () without brackets; None for one that the text
        leaves open.

        Raises: ParseError, also for an unknown dtype or a negative extent.
        """
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
                    raise self.fail(
                        f"an extent is an int >= 0, a size or '?', got {shown(n)}", token
                    )
                shape.append(n)
            if self.next.text != "]":
                self.expect(",")
        return dtype, tuple(shape)

    def array(self, dtype: DType | None, shape: Shape | None, token: Token) -> Any:
        """Parse the elements of an array: a number, a list, or base64; return it read-only.

        Args:
            dtype: its dtype, parsed before.
            shape: its shape, parsed before.
            token: the token at which errors without a better position are.

        Raises: ParseError, also where dtype or shape is unknown.
        """
        if self.next.text == "elided":
            raise self.fail(
                "the elements of this constant were left out; write the text with "
                "pk.to_text(graph) or `passkit show --constants`",
                token,
            )
        if dtype is None or shape is None or has_size(shape):
            raise self.fail("an array needs a dtype and a known shape", token)
        extents = tuple(n for n in shape if isinstance(n, int))
        count = int(np.prod(extents, dtype=object)) if extents else 1
        if self.accept("base64"):
            self.expect("(")
            array = self.from_base64(dtype, extents, count)
            self.expect(")")
        else:
            values = self.numbers()
            if len(values) != count:
                raise self.fail(
                    f"{type_text(dtype, extents)} has {count} elements, got {len(values)}", token
                )
            array = elements(values, dtype.numpy, extents)
            if array is None:
                raise self.fail(f"not all of these numbers are {dtype}", token)
        array.flags.writeable = False
        return array

    def from_base64(self, dtype: DType, shape: tuple[int, ...], count: int) -> Any:
        """Parse a string of base64; return the read-only array of its bytes.

        Raises: ParseError where it is none, or has not the ``count`` elements of ``dtype`` that
        ``shape`` has.
        """
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
        """Parse a number, or several in brackets, and return a list, also of one or none.

        Raises: ParseError.
        """
        if not self.accept("["):
            return [self.number()]
        values: list[Any] = []
        while not self.accept("]"):
            values.append(self.number())
            if self.next.text != "]":
                self.expect(",")
        return values

    def number(self) -> Any:
        """Parse a number, inf or nan, with or without a minus, or true or false.

        Raises: ParseError, also for a number of more than 400 characters.
        """
        sign = "-" if self.accept("-") else ""
        token = self.next
        word = token.kind == "name" and token.text in (
            ("inf", "nan") if sign else ("inf", "nan", "true", "false")
        )
        if not word and token.kind != "number":
            raise self.fail(f"expected a number, got {self.shown()}")
        self.at += 1
        if len(token.text) > 400:
            raise self.fail(f"a number has {len(token.text)} digits; the most is 400", token)
        return python_number(sign + token.text)

    def value(self) -> Any:
        """Parse a parameter: a literal, tuple, dict, array, graph, or arithmetic on sizes.

        Raises: ParseError, also for values that are nested too deeply; where a value contains a
        graph, errors of an operator in it, or of the value's class.
        """
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
        """Parse values that are multiplied or divided by ``*`` and ``//``, or one value.

        Raises: ParseError for a division by zero, and for other values than sizes; errors of a
        graph in a value, as `value` raises them.
        """
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
        """Return ``value`` if it is an int or a size; else raise a ParseError at ``token``."""
        if not isinstance(value, (int, Size)) or isinstance(value, bool):
            raise self.fail(f"only sizes are added and multiplied, got {shown(value)}", token)
        return value

    def primary(self) -> Any:
        """Parse a value without arithmetic.

        Raises: ParseError; errors of a graph in it, as `value` raises them.
        """
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
            hint = f"; write {token.text.lower()}" if token.text in PYTHON_WORDS else ""
            raise self.fail(f"{shown(token.text)} is no value{hint}", token)
        return Size.symbol(token.text)

    def tuple(self) -> Any:
        """Parse ``(a, b)``, ``(a,)`` or ``()``, after its parenthesis; ``(a)`` is ``a``.

        Raises: ParseError; errors of a graph in a part, as `value` raises them.
        """
        elements: list[Any] = []
        comma = False
        while not self.accept(")"):
            elements.append(self.value())
            comma = self.accept(",")
            if not comma and self.next.text != ")":
                raise self.fail(f"expected ',' or ')' in a tuple, got {self.shown()}")
        return elements[0] if len(elements) == 1 and not comma else tuple(elements)

    def dict(self) -> Any:
        """Parse the rest of a dict, whose brace is read; of a repeated key the last value counts.

        Raises: ParseError, also for bad keys; errors of a graph in it, as `value` raises them.
        """
        items: dict[Any, Any] = {}
        while not self.accept("}"):
            key = self.next
            name = self.value()
            self.expect(":")
            try:
                items[name] = self.value()
            except TypeError:
                raise self.fail(f"{shown(name)} cannot be the key of a dict", key) from None
            if self.next.text != "}":
                self.expect(",")
        return items

    def typed_array(self) -> Any:
        """Parse the rest of an array, after ``array(``, and return it. Raises: ParseError."""
        token = self.next
        dtype, shape = self.type("")
        self.expect(",")
        array = self.array(dtype, shape, token)
        self.expect(")")
        return array

    def dtype(self) -> Any:
        """Parse the rest of a dtype, of which ``dtype(`` is read, and return the DType.

        Raises: ParseError.
        """
        token = self.next
        try:
            dtype = dtype_of(self.name())
        except DTypeError as error:
            raise self.fail(str(error), token) from None
        self.expect(")")
        return dtype

    def nested(self, tag: str) -> Any:
        """Parse ``(key=value, …) { statements }``; return the value of this graph and fields.

        ``tag`` stands in front of it; `passkit.graph.nested` registers what creates the value.

        Raises: ParseError; errors of an operator in the graph, or of the value's class, with a note
        of line and column.
        """
        token = self.next
        self.expect("(")
        fields: dict[str, Any] = {}
        while not self.accept(")"):
            key = self.name()
            self.expect("=")
            fields[key] = self.value()
            if self.next.text != ")":
                self.expect(",")
        self.expect("{")
        inner = self.graph()
        self.expect("}")
        try:
            return NESTED[tag].make(inner, fields)
        except PasskitError as error:
            error.add_note(f"at line {token.line}, column {token.column} of the text")
            raise
