"""Graphs as text that people read and write; JSON is the form for storage.

>>> from passkit.serial.parser import parse
>>> from passkit.serial.text import to_text
>>> graph = parse("x: f32[?, 4]; c: f32[2] = [1, 2]; return x")
>>> print(to_text(graph))
x: f32[?, 4]
return x

A statement ends at the end of a line or at ``;``::

    a: f32[n, 4]                        an input; ? is a size of its own, [...] any rank;
                                        positional arguments of a call follow this order
    state w: f32[2] = [0, 0]            a state variable, with or without an initial value
    c: f32[2] = [1.5, nan]              a constant
    e = softmax(a, axis=-1)             an operator; e:1 is its second result
    f = add(exp(a), 1)                  a nested call, whose result has no name
    s = assign(w, c) after(e)           a control dependence: s runs after e
    update w = c                        the new value of a state variable, from Functionalize
    return e, s                         the outputs

Names that are no identifiers are written as JSON strings, symbols of sizes as ``$"…"``.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from passkit.errors import DTypeError
from passkit.graph.graph import Graph
from passkit.graph.nested import nested_of
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.values import arguments
from passkit.values.dtype import DType, dtype_of, promote, weak_scalar
from passkit.values.size import Extent, Quotient, Shape, Size
from passkit.values.units import bytes_text

INLINE = 64
"""Constants of at most this many elements are written as numbers, larger ones in base64."""

BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")
WORDS = {"none": None, "true": True, "false": False, "inf": float("inf"), "nan": float("nan")}
PYTHON_WORDS = frozenset({"True", "False", "None"})
"""Words of Python that a text spells in lowercase; as names they are quoted."""
KEYWORDS = frozenset(
    {
        *WORDS,
        *PYTHON_WORDS,
        "return",
        "state",
        "update",
        "after",
        "array",
        "base64",
        "dtype",
    }
)


def to_text(graph: Graph, *, elide: bool = False) -> str:
    """Return a graph as text that `parse` reads back.

    Args:
        graph: The graph.
        elide: Whether constants and initial values of more than 64 elements are written as their
            size only, such as ``elided("196 KiB")``. `parse` refuses such a text.

    A parameter that has no text form is written as ``opaque("…")``, which `parse` refuses too.

    Raises: ArgumentError where ``graph`` is no Graph, DTypeError for an array among the parameters
        whose dtype passkit does not have.
    """
    arguments.instance("to_text: graph", graph, Graph, "a Graph; pk.Graph([y]) makes one")
    return "\n".join(_Writer(graph, elide).lines())


def name_text(name: str) -> str:
    """Return a name, quoted as in JSON unless it is an ASCII identifier and no keyword.

    Dots between letters, digits and underscores are allowed, too, as in ``x.0``.
    """
    return name if BARE.fullmatch(name) and name not in KEYWORDS else json.dumps(name)


def size_text(size: Extent) -> str:
    """Return an extent as text: a number, or a polynomial such as ``4*n + 1``."""
    if isinstance(size, int):
        return str(size)
    out = ""
    for monomial, c in size.terms:
        factors = [_atom_text(a) for a in monomial]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        sign = (" - " if c < 0 else " + ") if out else "-" if c < 0 else ""
        out += sign + "*".join(factors)
    return out


def _atom_text(atom: str | Quotient) -> str:
    """Return a factor of a size as text: a symbol or a quotient."""
    if isinstance(atom, Quotient):
        return f"(({size_text(atom.numerator)})//({size_text(atom.denominator)}))"
    return atom if BARE.fullmatch(atom) and atom not in KEYWORDS else "$" + json.dumps(atom)


def type_text(dtype: DType | None, shape: Shape | None, name: str = "") -> str:
    """Return dtype and shape as text, such as ``f32[?, 4]``.

    A size of its own of the variable called ``name`` is a question mark; None as ``dtype``, an
    unknown one, is, too, and None as ``shape``, an unknown rank, is three dots.
    """
    if shape is None:
        inside = "..."
    else:
        own = [Size.symbol(f"{name}.{k}") for k in range(len(shape))]
        inside = ", ".join("?" if n == o else size_text(n) for n, o in zip(shape, own, strict=True))
    return f"{dtype.short if dtype else '?'}[{inside}]"


def number_text(value: Any) -> str:
    """Return a NumPy scalar, no complex one, as the shortest text that is read back exactly."""
    kind = "f" if value.dtype.name == "bfloat16" else value.dtype.kind
    if kind == "b":
        return "true" if value else "false"
    text = str(value)
    return f"{text}.0" if kind == "f" and text.lstrip("-").isdigit() else text


def array_text(array: Any) -> str:
    """Return the elements of an array as text: numbers in brackets, or one without axes as such.

    More than `INLINE` elements, complex ones, and those that numbers would not give back exactly,
    such as NaN with other bits, are written as ``base64("…")``.
    """
    if array.size <= INLINE and array.dtype.kind != "c":
        numbers = [number_text(v) for v in array.reshape(-1)]
        reread = elements([python_number(t) for t in numbers], array.dtype, array.shape)
        if reread is not None and reread.tobytes() == np.ascontiguousarray(array).tobytes():
            return f"[{', '.join(numbers)}]" if array.ndim else numbers[0]
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return f'base64("{data}")'


def python_number(text: str) -> Any:
    """Return the Python number in a text; inf, nan, true, false and none are read as such, too.

    Raises: ValueError for a text that is no number.
    """
    sign = -1 if text.startswith("-") else 1
    bare = text.lstrip("-")
    if bare in WORDS:
        return WORDS[bare] if sign > 0 else -float(bare)
    return float(text) if re.search(r"[.eE]", bare) else int(text)


def elements(values: Sequence[Any], dtype: Any, shape: tuple[int, ...]) -> Any:
    """Return ``values``, Python numbers, as a new array of ``dtype`` and ``shape``.

    Returns: None if their number is not that of the shape, or one does not fit: bools fit bool
        only, floats no integers, ints no bool and only integers that hold them. Floats are rounded,
        also to infinity.
    """
    kinds: dict[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,)}
    fits = kinds.get(dtype.kind, (int, float))
    if any(not isinstance(v, fits) or (isinstance(v, bool) and dtype.kind != "b") for v in values):
        return None
    try:
        with np.errstate(all="ignore"):
            array = np.array(list(values), np.float64 if dtype.kind in "fV" else dtype)
            return array.astype(dtype).reshape(shape)
    except (OverflowError, ValueError):
        return None


class _Writer:
    """Writer of one graph; nested graphs are indented below the statement that contains them."""

    def __init__(self, graph: Graph, elide: bool) -> None:
        self.graph, self.names, self.elide = graph, graph.names, elide
        uses: dict[Entry, int] = {e: len(n) for e, n in graph.users.items()}
        named = {e.node for e in graph.heads} | {c for n in graph.nodes for c in n.control}
        self.used_once = {e for e, count in uses.items() if count == 1 and e.node not in named}

    def lines(self) -> list[str]:
        """Return the lines of the text: a statement for each node, then updates and outputs.

        Raises: DTypeError for an array among parameters of a dtype that passkit does not have.
        """
        out: list[str] = []
        inlined: set[Node] = set()
        for node in self.graph.nodes:
            if node.op is not None:
                inlined.update(
                    e.node for k, e in enumerate(node.inputs) if self.literal(node, k) is not None
                )
        for node in self.in_order():
            if node not in inlined:
                out.extend(self.statement(node).split("\n"))
        out += [f"update {self.ref(v.entries[0])} = {self.ref(e)}" for v, e in self.graph.updates]
        out.append(" ".join(["return", ", ".join(map(self.ref, self.graph.outputs))]).rstrip())
        return out

    def in_order(self) -> Iterable[Node]:
        """Return the nodes in post-order, but inputs first where their order differs from that."""
        inputs = self.graph.inputs
        ordered = dict.fromkeys(inputs)
        in_post_order = inputs == tuple(n for n in self.graph.nodes if n in ordered)
        # An input with control dependences must follow the nodes that it depends on.
        if in_post_order or any(n.control for n in inputs):
            return self.graph.nodes
        return (*inputs, *(n for n in self.graph.nodes if n not in ordered))

    def ref(self, entry: Entry) -> str:
        """Return a reference to an entry: ``name``, or ``name:index`` if its node has several."""
        name = name_text(self.names[entry.node])
        return f"{name}:{entry.index}" if len(entry.node.entries) > 1 else name

    def literal(self, node: Node, k: int) -> str | None:
        """Return input ``k`` of ``node`` as a number if `parse` reads that constant, else None.

        It must be an unnamed scalar constant, not complex, without control dependencies, which only
        this node reads, and of the dtype that the number takes beside the node's other inputs.
        """
        entry = node.inputs[k]
        is_literal = entry.node.op is CONSTANT and not entry.node.name and entry in self.used_once
        if not is_literal or entry.node.params["value"].ndim or entry.node.control:
            return None
        others = [e.dtype for e in node.inputs if e.dtype is not None and e.node.op is not CONSTANT]
        value = entry.node.params["value"]
        text = number_text(value[()])
        if not others or value.dtype.kind == "c":
            return None
        try:
            dtype = weak_scalar(python_number(text), reduce(promote, others))
        except DTypeError:
            return None
        reread = elements([python_number(text)], dtype.numpy, ())
        same = dtype.numpy == value.dtype and reread is not None
        return text if same and reread.tobytes() == value.tobytes() else None

    def statement(self, node: Node) -> str:
        """Return the statement that declares or computes a node.

        Raises: DTypeError for an array among its parameters of a dtype that passkit does not have.
        """
        name = name_text(self.names[node])
        after = ", ".join(name_text(self.names[c]) for c in node.control)
        tail = f" after({after})" if after else ""
        if node.op is None:
            shape, dtype = node.params.get("shape"), node.params.get("dtype")
            head = f"{name}: {type_text(dtype, shape, self.names[node])}"
            if not node.params.get("state"):
                return head + tail
            initial = node.params["initial"]
            return f"state {head}{'' if initial is None else f' = {self.array(initial)}'}{tail}"
        if node.op is CONSTANT:
            value = node.params["value"]
            return f"{name}: {_array_type(value)} = {self.array(value)}{tail}"
        inputs = [self.literal(node, k) or self.ref(e) for k, e in enumerate(node.inputs)]
        params = [
            f"{k}={self.value(v)}"
            for k, v in node.params.items()
            if k not in node.op.params or not _same(v, node.op.params[k])
        ]
        return f"{name} = {name_text(node.op.name)}({', '.join(inputs + params)}){tail}"

    def array(self, array: Any) -> str:
        """Return the elements of an array, or the size of a large one that is elided."""
        if self.elide and array.size > INLINE:
            return f"elided({json.dumps(bytes_text(array.nbytes))})"
        return array_text(array)

    def value(self, value: Any) -> str:
        """Return a parameter as text that `parse` reads as an equal value; a list as a tuple.

        A value without text form becomes ``opaque("…")``, which `parse` refuses, as it does an
        array that is elided.

        Raises: DTypeError for an array of a dtype that passkit does not have.
        """
        for word, meaning in WORDS.items():
            if value is meaning:
                return word
        if isinstance(value, float):
            return repr(float(value))  # the repr of float64 names its class
        if isinstance(value, (int, Size)):
            return size_text(value)
        if isinstance(value, str):
            return json.dumps(value)
        if isinstance(value, DType):
            return f"dtype({value.name})"
        if isinstance(value, (tuple, list)):
            inside = ", ".join(map(self.value, value))
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        if isinstance(value, Mapping):
            pairs = (f"{self.value(k)}: {self.value(v)}" for k, v in value.items())
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, np.ndarray):
            return f"array({_array_type(value)}, {self.array(value)})"
        kind = nested_of(value)
        if kind is None:
            return f"opaque({json.dumps(getattr(value, '__qualname__', type(value).__name__))})"
        graph, rest = kind.take(value)
        inside = "\n".join("    " + line for line in _Writer(graph, self.elide).lines())
        fields = ", ".join(f"{k}={self.value(v)}" for k, v in rest.items())
        return f"{kind.tag}({fields}) {{\n{inside}\n}}"


def _array_type(array: Any) -> str:
    """Return the dtype and shape of an array as text, such as ``f32[2, 3]``.

    Raises: DTypeError for a dtype that passkit does not have.
    """
    return type_text(dtype_of(array.dtype), array.shape)


def _same(a: Any, b: Any) -> bool:
    """Return whether parameter ``a`` equals its default ``b``, in type, too: 1 and True differ."""
    return type(a) is type(b) and not isinstance(a, np.ndarray) and bool(a == b)
