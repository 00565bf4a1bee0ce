"""JSON form of parameter values: numbers, arrays, sizes, dtypes and nested graphs."""

from __future__ import annotations

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from passkit.errors import GraphError, ParseError
from passkit.graph.graph import Graph
from passkit.graph.nested import DEEPEST, NESTED, nested_of
from passkit.graph.op import REQUIRED
from passkit.values.arguments import shortened, shown
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Quotient, Size

MOST_AXES = 64
"""The most axes of a NumPy array."""


def encode(value: Any, where: str, graph_data: Callable[[Graph], Any]) -> Any:
    """Return a parameter as lists, dicts, strings and numbers.

    It may consist of None, bools, ints, floats and strings of Python, float64, tuples, lists,
    mappings, arrays, sizes, DTypes, and values with graphs (`passkit.graph.nested`).

    Args:
        value: the parameter.
        where: node and parameter, for messages.
        graph_data: encodes graphs inside the parameter.

    Raises:
        GraphError: The value is something else, such as a complex number or a float32 scalar.
        DTypeError: It is an array of a dtype that passkit does not have.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(float(value))}

    def inside(v: Any) -> Any:
        """Return a part of the parameter, encoded as `encode` does it.

        Raises: GraphError for a value that has no form in JSON; DTypeError for an array of a dtype
        that passkit does not have.
        """
        return encode(v, where, graph_data)

    if isinstance(value, (tuple, list)):
        return [inside(v) for v in value]
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, Size):
        return {"size": _encode_size(value)}
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
        dtype = dtype_of(value.dtype).name
        return {"array": data, "dtype": dtype, "shape": list(value.shape)}
    if isinstance(value, Mapping):
        return {"dict": [[inside(k), inside(v)] for k, v in value.items()]}
    kind = nested_of(value)
    if kind is None:
        raise GraphError(
            f"{where} is a {type(value).__name__}, which has no form in JSON; use numbers, "
            f"strings, tuples or arrays as parameters"
        )
    graph, rest = kind.take(value)
    return {kind.tag: graph_data(graph), "with": inside(rest)}


def _encode_size(size: Extent) -> Any:
    """Return an extent as JSON: an int, or ``[[coefficient, [symbol or quotient, …]], …]``."""
    if isinstance(size, int):
        return size
    return [
        [
            c,
            [
                a if isinstance(a, str) else [*map(_encode_size, (a.numerator, a.denominator))]
                for a in monomial
            ],
        ]
        for monomial, c in size.terms
    ]


def get(data: Any, key: str, kind: type, where: str, default: Any = REQUIRED) -> Any:
    """Return the value of a key of an object.

    Args:
        data: the object.
        key: the key.
        kind: the type that the value must have; a bool counts as an int.
        where: the object's path in the document, for messages.
        default: the value if there is no such key.

    Raises: ParseError where ``data`` is no object, lacks a required key, or has another type.
    """
    if not isinstance(data, dict):
        raise ParseError(f"{where or 'the document'} must be an object, got {shown(data)}")
    if key not in data:
        if default is REQUIRED:
            raise ParseError(
                f"{where or 'the document'} lacks the key '{key}'; it has {sorted(data)}"
            )
        return default
    value = data[key]
    if not isinstance(value, kind):
        raise ParseError(f"{path(where, key)} must be a {kind.__name__}, got {shown(value)}")
    return value


def path(where: str, key: object) -> str:
    """Return the path, for messages, of a key of the object whose path is ``where``.

    ``where`` is "" for the document itself. Long keys are shortened.
    """
    text = shortened(str(key), 40)
    return f"{where}.{text}" if where else text


class ValueReader(ABC):
    """A reader of parameter values; subclasses read the graphs inside them."""

    @abstractmethod
    def graph(self, data: Any, where: str, depth: int) -> Graph:
        """Return the graph that ``data`` describes.

        Args:
            data: the JSON.
            where: its path in the document, for messages.
            depth: the number of graphs and values around it.

        Raises: ParseError where the JSON is malformed; DTypeError for an unknown dtype; errors of
        an operator that refuses its inputs or parameters.
        """

    def value(self, data: Any, where: str, depth: int) -> Any:
        """Return the parameter that ``data`` describes.

        Args:
            data: the JSON.
            where: its path in the document, for messages.
            depth: the number of values around it, at most `DEEPEST`.

        Raises: ParseError where the JSON is malformed, DTypeError for an unknown dtype; errors of
            an operator, or of the class of a nested value, that refuses what it is given.
        """
        if depth > DEEPEST:
            raise ParseError(f"{where} is nested more than {DEEPEST} values deep")
        if isinstance(data, list):
            return tuple(self.value(v, f"{where}[{k}]", depth + 1) for k, v in enumerate(data))
        if not isinstance(data, dict):
            return data
        if "float" in data:
            word = data["float"]
            if word not in ("inf", "-inf", "nan"):
                raise ParseError(f"{where}.float must be inf, -inf or nan, got {shown(word)}")
            return float(word)
        if "array" in data:
            return _array(data, where)
        if "dtype" in data:
            return dtype_of(get(data, "dtype", str, where))
        if "size" in data:
            return self.size(data["size"], path(where, "size"), depth)
        if "dict" in data:
            pairs = get(data, "dict", list, where)
            if any(not isinstance(p, list) or len(p) != 2 for p in pairs):
                raise ParseError(f"{where}.dict must be pairs, got {shown(pairs)}")
            return dict(self.pair(k, v, where, depth + 1) for k, v in pairs)
        for tag, kind in NESTED.items():
            if tag in data:
                graph = self.graph(data[tag], path(where, tag), depth + 1)
                rest = self.value(data.get("with", {}), path(where, "with"), depth + 1)
                if not isinstance(rest, dict):
                    raise ParseError(f"{where}.with must be a dict, got {shown(rest)}")
                return kind.make(graph, rest)
        tags = ", ".join(["float", "array", "dtype", "size", "dict", *NESTED])
        raise ParseError(
            f"{where} must be an object with one of the keys {tags}, got {shown(data)}"
        )

    def pair(self, key: Any, data: Any, where: str, depth: int) -> tuple[Any, Any]:
        """Return a key of a dict, which must be hashable, and its value, both decoded.

        Args:
            key: the JSON of the key.
            data: the JSON of the value.
            where: the dict's path in the document, for messages.
            depth: the number of values around it.

        Raises: ParseError where one is malformed or the key is not hashable, DTypeError for an
        unknown dtype; errors of an operator in a nested graph, or of the class of a nested value,
        that refuses what it is given.
        """
        decoded = self.value(key, where, depth)
        try:
            hash(decoded)
        except TypeError:
            raise ParseError(
                f"{where}.dict must have numbers, strings or tuples as keys, got {shown(key)}"
            ) from None
        return decoded, self.value(data, where, depth)

    def size(self, data: Any, where: str, depth: int) -> Extent:
        """Return the size ``[[coefficient, [symbol or [numerator, denominator], …]], …]``.

        Args:
            data: the JSON, which may be an int, too.
            where: its path in the document, for messages.
            depth: the number of values around it, at most `DEEPEST`.

        Raises: ParseError for another form, or a quotient by zero.
        """
        if depth > DEEPEST:
            raise ParseError(f"{where} is nested more than {DEEPEST} sizes deep")
        if isinstance(data, int) and not isinstance(data, bool):
            return data
        total: Extent = 0
        for term in data if isinstance(data, list) else [data]:
            is_term = isinstance(term, list) and len(term) == 2 and isinstance(term[1], list)
            if not is_term or not isinstance(term[0], int) or len(term[1]) > DEEPEST:
                raise ParseError(f"{where} must be [[int, [symbol, …]], …], got {shown(data)}")
            product: Extent = term[0]
            for atom in term[1]:
                if isinstance(atom, str):
                    product = product * Size.symbol(atom)
                elif isinstance(atom, list) and len(atom) == 2:
                    over, under = (self.size(a, where, depth + 1) for a in atom)
                    if under == 0:
                        raise ParseError(f"{where} divides {over} by zero")
                    product = product * Size({(Quotient(over, under),): 1})
                else:
                    raise ParseError(f"{where} has {shown(atom)}, which is no symbol or quotient")
            total = total + product
        return total


def _array(data: dict[str, Any], where: str) -> Any:
    """Return the read-only array that the keys "array" (base64), "dtype" and "shape" describe.

    ``data`` is the JSON object, ``where`` its path in the document.

    Raises: ParseError where a key is missing or the bytes do not fit shape and dtype; DTypeError
    for an unknown dtype.
    """
    dtype = dtype_of(get(data, "dtype", str, where)).numpy
    shape = tuple(get(data, "shape", list, where))
    count = 1
    for n in shape:
        if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n < 1 << 59:
            raise ParseError(f"{where}.shape must be ints >= 0 and < 2**59, got {shown(shape)}")
        count *= n
    if len(shape) > MOST_AXES:
        raise ParseError(f"{where}.shape must have at most {MOST_AXES} axes, got {len(shape)}")
    text = get(data, "array", str, where)
    if len(text) != -(-count * dtype.itemsize // 3) * 4:
        raise ParseError(
            f"{where}.array must have {count * dtype.itemsize} bytes for {dtype}{list(shape)}, got "
            f"base64 text of {len(text)} characters"
        )
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ParseError(f"{where}.array is not base64: {error}") from None
    if len(raw) != count * dtype.itemsize:
        raise ParseError(f"{where}.array must have {count * dtype.itemsize} bytes, got {len(raw)}")
    array = np.frombuffer(raw, dtype).reshape(shape)
    array.flags.writeable = False
    return array
