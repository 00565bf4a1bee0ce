"""Graphs as JSON, in NNVM's layout: the form to store and exchange.

Nodes stand in post-order; an entry is ``[node, index, version]``. NNVM's parameters were strings;
here they keep their types. What NNVM accepts is read: ``attr`` and ``param`` for ``attrs``,
entries of two numbers, parameters as strings. The version of an entry counts the writes to its
state variable before it is read.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import frozen

from passkit.dtype import DType, dtype_of
from passkit.errors import GraphError, ParseError, PasskitError, nearest
from passkit.graph import Graph
from passkit.node import CONSTANT, Entry, Node, check_param, plain
from passkit.op import REQUIRED, TStateful, get_op
from passkit.size import Extent, Quotient, Size

VERSION = "1.0"
DEEPEST = 32
"""Values and graphs may be nested so deep."""


@frozen
class Nested:
    """A kind of parameter that holds a graph: how to take it apart and how to make it again."""

    tag: str
    kind: type
    take: Callable[[Any], tuple[Graph, dict[str, Any]]]
    make: Callable[[Graph, dict[str, Any]], Any]


NESTED: dict[str, Nested] = {}


def register_nested(
    tag: str,
    kind: type,
    take: Callable[[Any], tuple[Graph, dict[str, Any]]],
    make: Callable[[Graph, dict[str, Any]], Any],
) -> None:
    """Let JSON and text write values of ``kind``, which hold a graph and some plain values."""
    NESTED[tag] = Nested(tag, kind, take, make)


def nested_of(value: Any) -> Nested | None:
    """The registered kind that ``value`` is of."""
    return next((n for n in NESTED.values() if isinstance(value, n.kind)), None)


def to_json(graph: Graph) -> str:
    """``graph`` as JSON text; equal graphs give equal bytes.

    Annotations of numbers, strings and lists of them are kept, others are left out.

    Raises: GraphError naming a parameter that has no form in JSON.
    """
    return json.dumps(graph_data(graph), separators=(",", ":"), allow_nan=False)


def graph_data(graph: Graph) -> dict[str, Any]:
    """``graph`` as lists, dicts, strings and numbers."""
    ids = {node: k for k, node in enumerate(graph.nodes)}
    writes: dict[Node, int] = {}

    def entry(e: Entry) -> list[int]:
        return [ids[e.node], e.index, writes.get(e.node, 0)]

    nodes: list[dict[str, Any]] = []
    pointers = [0]
    for node in graph.nodes:
        data: dict[str, Any] = {"op": node.op.name if node.op else "null", "name": node.name}
        params = {k: v for k, v in node.params.items() if node.op is not None or v is not None}
        if params:
            data["attrs"] = {k: _encode(v, f"{node.where}: {k}") for k, v in params.items()}
        data["inputs"] = [entry(e) for e in node.inputs]
        if node.control:
            data["control_deps"] = [ids[c] for c in node.control]
        if node.op is not None and TStateful.get(node.op.name) and node.inputs:
            target = node.inputs[0].node
            writes[target] = writes.get(target, 0) + 1
        nodes.append(data)
        pointers.append(pointers[-1] + len(node.entries))
    out: dict[str, Any] = {
        "nodes": nodes,
        "arg_nodes": [ids[n] for n in graph.nodes if n.is_variable],
        "node_row_ptr": pointers,
        "heads": [entry(e) for e in graph.outputs],
    }
    if graph.updates:
        out["updates"] = [[ids[v], entry(e)] for v, e in graph.updates]
    attrs: dict[str, list[Any]] = {"passkit": ["str", VERSION]}
    for key, value in sorted(graph.attrs.items()):
        kind = _kind_of_attr(value)
        if kind is not None and key != "passkit":
            attrs[key] = [kind, list(value) if kind.startswith("list_") else value]
    out["attrs"] = attrs
    return out


ATTR_KINDS: dict[str, type] = {"str": str, "bool": bool, "int": int, "float": float}


def _kind_of_attr(value: Any) -> str | None:
    """NNVM's name for the type of a graph attribute; None for one that is not written."""
    if isinstance(value, (tuple, list)):
        kinds = {_kind_of_attr(v) for v in value}
        return f"list_{kinds.pop()}" if kinds in ({"int"}, {"str"}) else None
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return next((name for name, t in ATTR_KINDS.items() if type(value) is t), None)


def _encode(value: Any, where: str) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, (tuple, list)):
        return [_encode(v, where) for v in value]
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, Size):
        return {"size": _encode_size(value)}
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
        dtype = dtype_of(value.dtype).name
        return {"array": data, "dtype": dtype, "shape": list(value.shape)}
    if isinstance(value, Mapping):
        return {"dict": [[_encode(k, where), _encode(v, where)] for k, v in value.items()]}
    kind = nested_of(value)
    if kind is None:
        raise GraphError(
            f"{where} is a {type(value).__name__}, which has no form in JSON; use numbers, "
            f"strings, tuples or arrays as parameters"
        )
    graph, rest = kind.take(value)
    return {kind.tag: graph_data(graph), "with": _encode(rest, where)}


def _encode_size(size: Extent) -> Any:
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


def from_json(text: str) -> Graph:
    """The graph that JSON text describes; nothing in it is executed.

    Raises: ParseError naming the key that is missing, malformed or out of range.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"this is not JSON: {error}") from None
    return _Reader().graph(data, "", 0)


def _get(data: Any, key: str, kind: type, where: str, default: Any = REQUIRED) -> Any:
    if not isinstance(data, dict):
        raise ParseError(f"{where or 'the top'} must be an object, got {_shown(data)}")
    if key not in data:
        if default is REQUIRED:
            raise ParseError(f"{where or 'the top'} lacks the key '{key}'; it has {sorted(data)}")
        return default
    value = data[key]
    if not isinstance(value, kind):
        raise ParseError(f"{_at(where, key)} must be a {kind.__name__}, got {_shown(value)}")
    return value


def _at(where: str, key: object) -> str:
    return f"{where}.{key}" if where else str(key)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


class _Reader:
    """Reads one JSON document; every number is checked before it is used."""

    def graph(self, data: Any, where: str, depth: int) -> Graph:
        if depth > DEEPEST:
            raise ParseError(f"{where} is nested more than {DEEPEST} graphs deep")
        nodes: list[Node] = []
        for k, item in enumerate(_get(data, "nodes", list, where)):
            at = _at(where, f"nodes[{k}]")
            try:
                nodes.append(self.node(item, nodes, at, depth))
            except ParseError:
                raise
            except PasskitError as error:
                error.add_note(f"in {at}")
                raise
        heads = _get(data, "heads", list, where)
        outputs = [self.entry(h, nodes, _at(where, f"heads[{k}]")) for k, h in enumerate(heads)]
        updates = []
        for k, item in enumerate(_get(data, "updates", list, where, [])):
            at = _at(where, f"updates[{k}]")
            if not isinstance(item, list) or len(item) != 2:
                raise ParseError(f"{at} must be [node, entry], got {_shown(item)}")
            variable = nodes[self.index(item[0], len(nodes), at)]
            if not (variable.is_variable and variable.params.get("state")):
                raise ParseError(f"{at} must write a state variable, got {variable.where}")
            updates.append((variable, self.entry(item[1], nodes, at)))
        attrs = self.attrs(_get(data, "attrs", dict, where, {}), _at(where, "attrs"))
        return Graph(outputs, updates, attrs)

    def attrs(self, data: dict[str, Any], where: str) -> dict[str, Any]:
        """Graph attributes: ``[type, value]`` each; types that are not known are left out."""
        found: dict[str, Any] = {}
        for key, item in data.items():
            if not (isinstance(item, list) and len(item) == 2 and isinstance(item[0], str)):
                raise ParseError(f"{_at(where, key)} must be [type, value], got {_shown(item)}")
            kind, value = item
            value = tuple(value) if isinstance(value, list) else value
            if key != "passkit" and _kind_of_attr(value) == kind:
                found[key] = value
        return found

    def index(self, value: Any, limit: int, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
            raise ParseError(f"{where} must be an int from 0 to {limit - 1}, got {_shown(value)}")
        return value

    def entry(self, value: Any, nodes: list[Node], where: str) -> Entry:
        if not isinstance(value, list) or len(value) not in (2, 3):
            raise ParseError(f"{where} must be [node, index, version], got {_shown(value)}")
        node = nodes[self.index(value[0], len(nodes), where)]
        if len(value) == 3:
            self.index(value[2], 1 << 32, f"the version in {where}")
        return node.entries[self.index(value[1], len(node.entries), f"the index in {where}")]

    def node(self, data: Any, nodes: list[Node], where: str, depth: int) -> Node:
        op_name, name = _get(data, "op", str, where), _get(data, "name", str, where, "")
        key = next((k for k in ("attrs", "attr", "param") if k in data), "attrs")
        given = _get(data, key, dict, where, {})
        params = {k: self.value(v, _at(_at(where, key), k), depth) for k, v in given.items()}
        inputs = [
            self.entry(e, nodes, _at(where, f"inputs[{k}]"))
            for k, e in enumerate(_get(data, "inputs", list, where, []))
        ]
        control = [
            nodes[self.index(c, len(nodes), _at(where, f"control_deps[{k}]"))]
            for k, c in enumerate(_get(data, "control_deps", list, where, []))
        ]
        if op_name == "null":
            return Node(None, (), _variable_params(params, _at(where, key)), name, control)
        try:
            op = get_op(op_name)
        except PasskitError as error:
            raise ParseError(f"{where} '{name}': {error}") from None
        if op.num_inputs not in (-1, len(inputs)):
            raise ParseError(
                f"{where} '{name}' has {len(inputs)} inputs; {op.name} takes {op.num_inputs}"
            )
        full = dict(op.params)
        for k, v in params.items():
            if k not in full:
                raise ParseError(
                    f"{_at(_at(where, key), k)} is no parameter of {op.name}; "
                    f"{nearest(k, full) if full else 'it takes none'}"
                )
            full[k] = _from_string(v, full[k])
            check_param(f"{where} '{name}'", k, full[k], op.params[k])
        for k, v in full.items():
            if v is REQUIRED:
                raise ParseError(f"{_at(where, key)} lacks the parameter '{k}' of {op.name}")
        if op is CONSTANT and not isinstance(full["value"], np.ndarray):
            raise ParseError(f"{_at(where, key)}.value must be an array, got {full['value']!r}")
        return Node(op, inputs, full, name, control)

    def value(self, data: Any, where: str, depth: int) -> Any:
        if depth > DEEPEST:
            raise ParseError(f"{where} is nested more than {DEEPEST} values deep")
        if isinstance(data, list):
            return tuple(self.value(v, f"{where}[{k}]", depth + 1) for k, v in enumerate(data))
        if not isinstance(data, dict):
            return data
        if "float" in data:
            word = data["float"]
            if word not in ("inf", "-inf", "nan"):
                raise ParseError(f"{where}.float must be inf, -inf or nan, got {_shown(word)}")
            return float(word)
        if "array" in data:
            return _array(data, where)
        if "dtype" in data:
            return dtype_of(_get(data, "dtype", str, where))
        if "size" in data:
            return self.size(data["size"], _at(where, "size"), depth)
        if "dict" in data:
            pairs = _get(data, "dict", list, where)
            if any(not isinstance(p, list) or len(p) != 2 for p in pairs):
                raise ParseError(f"{where}.dict must be pairs, got {_shown(pairs)}")
            return {
                self.value(k, where, depth + 1): self.value(v, where, depth + 1) for k, v in pairs
            }
        for tag, kind in NESTED.items():
            if tag in data:
                graph = self.graph(data[tag], _at(where, tag), depth + 1)
                rest = self.value(data.get("with", {}), _at(where, "with"), depth + 1)
                if not isinstance(rest, dict):
                    raise ParseError(f"{where}.with must be a dict, got {_shown(rest)}")
                return kind.make(graph, rest)
        raise ParseError(f"{where} is of no known kind, got {_shown(data)}")

    def size(self, data: Any, where: str, depth: int) -> Extent:
        """A polynomial: ``[[coefficient, [symbol or [numerator, denominator], …]], …]``."""
        if depth > DEEPEST:
            raise ParseError(f"{where} is nested more than {DEEPEST} sizes deep")
        if isinstance(data, int) and not isinstance(data, bool):
            return data
        total: Extent = 0
        for term in data if isinstance(data, list) else [data]:
            well = isinstance(term, list) and len(term) == 2 and isinstance(term[1], list)
            if not well or not isinstance(term[0], int) or len(term[1]) > DEEPEST:
                raise ParseError(f"{where} must be [[int, [symbol, …]], …], got {_shown(data)}")
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
                    raise ParseError(f"{where} has {_shown(atom)}, which is no symbol or quotient")
            total = total + product
        return total


def _array(data: dict[str, Any], where: str) -> Any:
    """A frozen array; its bytes must be exactly what shape and dtype say."""
    dtype = dtype_of(_get(data, "dtype", str, where)).numpy
    shape = tuple(_get(data, "shape", list, where))
    count = 1
    for n in shape:
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise ParseError(f"{where}.shape must be ints >= 0, got {_shown(shape)}")
        count *= n
    text = _get(data, "array", str, where)
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


def _variable_params(params: dict[str, Any], where: str) -> dict[str, Any]:
    """Shape, dtype and state of a variable; what is not said is unknown."""
    known = {"shape": None, "dtype": None}
    if params.get("state"):
        known |= {"state": None, "initial": None}
    for k in params:
        if k not in known:
            raise ParseError(f"{_at(where, k)} is no attribute of a variable; {nearest(k, known)}")
    found: dict[str, Any] = {**known, **params}
    shape, dtype, initial = found["shape"], found["dtype"], found.get("initial")
    if shape is not None and not (
        isinstance(shape, tuple)
        and all(isinstance(n, Size) or (type(n) is int and n >= 0) for n in shape)
    ):
        raise ParseError(f"{_at(where, 'shape')} must be extents >= 0, got {_shown(shape)}")
    if dtype is not None and not isinstance(dtype, DType):
        raise ParseError(f"{_at(where, 'dtype')} must be a dtype, got {_shown(dtype)}")
    if initial is not None and not (
        isinstance(initial, np.ndarray)
        and dtype is not None
        and initial.dtype == dtype.numpy
        and initial.shape == shape
    ):
        raise ParseError(
            f"{_at(where, 'initial')} must be an array of the variable's shape and dtype, got "
            f"{_shown(initial)}"
        )
    return found


def _from_string(value: Any, default: Any) -> Any:
    """A parameter that NNVM wrote as a string, by the type of the default."""
    if not isinstance(value, str) or isinstance(default, str) or default is REQUIRED:
        return value
    if value in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[value]
    text = value.strip().replace("(", "[").replace(")", "]").replace(",]", "]")
    try:
        return plain(json.loads(text))
    except (ValueError, RecursionError):
        return value
