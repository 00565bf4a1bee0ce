"""Serialization of graphs as JSON in NNVM's layout, for storage and exchange.

Nodes are listed in post-order; an entry is ``[node, index, version]``, where the version counts the
writes to its state variable before it is read. Parameters keep their types, which NNVM wrote as
strings. Variants that NNVM accepts are read, too: ``attr`` or ``param`` for ``attrs``, entries of
two numbers, parameters as strings.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from passkit.errors import ParseError, PasskitError, nearest
from passkit.graph.call import check_param, plain
from passkit.graph.graph import Graph
from passkit.graph.nested import DEEPEST
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.op import REQUIRED, TStateful, get_op, list_ops
from passkit.serial.json_values import ValueReader, encode, get, path
from passkit.values import arguments
from passkit.values.arguments import shorten_message, shortened, shown
from passkit.values.dtype import DType
from passkit.values.size import Size

VERSION = "1.0"
FORMER_NAMES = {
    "partial": "partial_reduce",
    "join": "combine_partials",
    "small_fold": "unrolled_reduce",
}
"""Operators that were stored under another name, where no operator has that name now."""


def _present_name(op_name: str) -> str:
    """Return the name of an operator that may have been stored under a former one."""
    former = FORMER_NAMES.get(op_name)
    return op_name if former is None or op_name in list_ops(aliases=True) else former


def to_json(graph: Graph) -> str:
    """Return a graph as JSON text, which `from_json` reads; equal graphs give equal texts.

    Annotations are included if they are finite numbers, bools, strings, or lists of ints or of
    strings; others, and those that passes compute again, are left out.

    Raises:
        GraphError: A parameter cannot be represented in JSON; the message names it.
        DTypeError: A parameter is an array of a dtype that passkit does not have.
        ArgumentError: ``graph`` is no Graph.
    """
    arguments.instance("to_json: graph", graph, Graph, "a Graph; pk.Graph([y]) makes one")
    return json.dumps(graph_data(graph), separators=(",", ":"), allow_nan=False)


def graph_data(graph: Graph) -> dict[str, Any]:
    """Return a graph as lists, dicts, strings and numbers.

    Raises: GraphError for a parameter that cannot be represented in JSON, DTypeError for an array
        of a dtype that passkit does not have.
    """
    ids = {node: k for k, node in enumerate(graph.nodes)}
    writes: dict[Node, int] = {}

    def entry(e: Entry) -> list[int]:
        """Return an entry as [position of its node, index, writes of the node so far]."""
        return [ids[e.node], e.index, writes.get(e.node, 0)]

    nodes: list[dict[str, Any]] = []
    pointers = [0]
    for node in graph.nodes:
        data: dict[str, Any] = {"op": node.op.name if node.op else "null", "name": node.name}
        params = {k: v for k, v in node.params.items() if node.op is not None or v is not None}
        if params:
            data["attrs"] = {
                k: encode(v, f"{node.where}: {k}", graph_data) for k, v in params.items()
            }
        data["inputs"] = [entry(e) for e in node.inputs]
        if node.control:
            data["control_deps"] = [ids[c] for c in node.control]
        if node.op is not None and TStateful.get(node.op.name) and node.inputs:
            target = node.inputs[0].node
            writes[target] = writes.get(target, 0) + 1
        nodes.append(data)
        pointers.append(pointers[-1] + len(node.entries))
    fed = iter(graph.inputs)
    variables = [n for n in graph.nodes if n.is_variable]
    out: dict[str, Any] = {
        "nodes": nodes,
        "arg_nodes": [ids[n if n.params.get("state") else next(fed)] for n in variables],
        "node_row_ptr": pointers,
        "heads": [entry(e) for e in graph.outputs],
    }
    if graph.updates:
        out["updates"] = [[ids[v], entry(e)] for v, e in graph.updates]
    attrs: dict[str, list[Any]] = {"passkit": ["str", VERSION]}
    for key, value in sorted(graph.attrs.items()):
        kind = kind_of_attr(value)
        if kind is not None and key not in LEFT_OUT:
            attrs[key] = [kind, list(value) if kind.startswith("list_") else value]
    out["attrs"] = attrs
    return out


LEFT_OUT = frozenset(
    (
        "passkit",
        "complete",
        "dtype",
        "dtype_num_unknown",
        "expanded",
        "functional",
        "fusion_log",
        "hinted",
        "kernel",
        "options",
        "rtc",
        "schedule",
        "selection",
        "shape",
        "shape_guards",
        "shape_num_unknown",
        "shared",
        "storage",
        "subgraph",
        "timing",
    )
)
"""Annotations that are neither written nor read: passes compute them again, so that a file cannot
contradict them."""
ATTR_KINDS: dict[str, type] = {"str": str, "bool": bool, "int": int, "float": float}


def kind_of_attr(value: Any) -> str | None:
    """Return NNVM's name for the type of a graph annotation; None for one that is not written.

    Written are Python's bools, ints, finite floats and strings, and lists or tuples, not empty, of
    ints or of strings, which are called ``list_int`` and ``list_str``.
    """
    if isinstance(value, (tuple, list)):
        kinds = {kind_of_attr(v) for v in value}
        return f"list_{kinds.pop()}" if kinds in ({"int"}, {"str"}) else None
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return next((name for name, t in ATTR_KINDS.items() if type(value) is t), None)


def from_json(text: str) -> Graph:
    """Return the graph that JSON text describes; nothing in it is executed.

    Raises:
        ParseError: The text is malformed; the message has the path of the key that is missing,
            wrong or out of range.
        PasskitError: An operator refuses its inputs or parameters; a note has the path.
        ArgumentError: ``text`` is neither text nor bytes.
    """
    arguments.instance("from_json: text", text, (str, bytes), "JSON text")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"this is not JSON: {error}") from None
    return _GraphReader().graph(data, "", 0)


class _GraphReader(ValueReader):
    """A reader of one JSON document; every number is checked before it is used."""

    def graph(self, data: Any, where: str, depth: int) -> Graph:
        """Return the graph that ``data`` describes.

        Args:
            data: the JSON.
            where: its path in the document, "" for the outermost.
            depth: the number of graphs around it, at most `DEEPEST`.

        Raises: ParseError where the JSON is malformed; DTypeError for an unknown dtype, and errors
        of an operator that refuses its inputs or parameters, with the path as a note.
        """
        if depth > DEEPEST:
            raise ParseError(f"{where} is nested more than {DEEPEST} graphs deep")
        nodes: list[Node] = []
        for k, item in enumerate(get(data, "nodes", list, where)):
            at = path(where, f"nodes[{k}]")
            try:
                nodes.append(self.node(item, nodes, at, depth))
            except ParseError:
                raise
            except PasskitError as error:
                shorten_message(error)
                error.add_note(f"in {at}")
                raise
            except Exception as error:  # rules of operators, given parameters of any kind
                op_name = shortened(item["op"])
                raise ParseError(
                    f"{at}: operator {op_name} fails for these inputs and parameters with "
                    f"{shown(error)}; help(pk.ops.{op_name}) says what it takes"
                ) from error
        heads = get(data, "heads", list, where)
        outputs = [self.entry(h, nodes, path(where, f"heads[{k}]")) for k, h in enumerate(heads)]
        updates = []
        for k, item in enumerate(get(data, "updates", list, where, [])):
            at = path(where, f"updates[{k}]")
            if not isinstance(item, list) or len(item) != 2:
                raise ParseError(
                    f"{at} must be [number of a state variable's node, entry of its new value], "
                    f"got {shown(item)}"
                )
            variable = nodes[self.index(item[0], len(nodes), at)]
            if not (variable.is_variable and variable.params.get("state")):
                raise ParseError(f"{at} must write a state variable, got {variable.where}")
            updates.append((variable, self.entry(item[1], nodes, at)))
        attrs = self.attrs(get(data, "attrs", dict, where, {}), path(where, "attrs"))
        return self.in_order(Graph(outputs, updates, attrs), nodes, data, where)

    def in_order(self, graph: Graph, nodes: list[Node], data: Any, where: str) -> Graph:
        """Return the graph with its inputs in the order of "arg_nodes".

        The graph is unchanged if "arg_nodes" does not name all its inputs.

        Args:
            graph: the graph.
            nodes: all nodes of the document, in its order.
            data: the JSON of the graph; without "arg_nodes" the order stays.
            where: its path in the document.

        Raises: ParseError if "arg_nodes" is no list of numbers of nodes.
        """
        given = get(data, "arg_nodes", list, where, [])
        at = path(where, "arg_nodes")
        named = dict.fromkeys(nodes[self.index(k, len(nodes), at)] for k in given)
        inputs = set(graph.inputs)
        order = [n for n in named if n in inputs]
        return graph.with_inputs(order) if len(order) == len(inputs) else graph

    def attrs(self, data: dict[str, Any], where: str) -> dict[str, Any]:
        """Return the graph annotations in ``data``, each ``[type, value]``.

        Those of unknown or other types, and those that passes compute again (`LEFT_OUT`), are left
        out. Raises: ParseError, naming ``where``, the path in the document, for other forms.
        """
        annotations: dict[str, Any] = {}
        for key, item in data.items():
            if not (isinstance(item, list) and len(item) == 2 and isinstance(item[0], str)):
                raise ParseError(f"{path(where, key)} must be [type, value], got {shown(item)}")
            kind, value = item
            value = tuple(value) if isinstance(value, list) else value
            if key not in LEFT_OUT and kind_of_attr(value) == kind:
                annotations[key] = value
        return annotations

    def index(self, value: Any, limit: int, where: str) -> int:
        """Return ``value``, the JSON of an index, if it is an int from 0 to ``limit - 1``.

        Raises: ParseError, naming ``where``, its path in the document.
        """
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
            text = shown(value)
            if limit == 0:
                raise ParseError(f"{where} refers to {text}, but no node or result precedes it")
            raise ParseError(f"{where} must be an int from 0 to {limit - 1}, got {text}")
        return value

    def entry(self, value: Any, nodes: list[Node], where: str) -> Entry:
        """Return the entry that ``value``, JSON ``[node, index, version]``, refers to.

        The version may be missing and is only checked to be an int. ``nodes`` are the nodes read so
        far, ``where`` is the path in the document.

        Raises: ParseError for another form, or numbers out of range.
        """
        if not isinstance(value, list) or len(value) not in (2, 3):
            raise ParseError(f"{where} must be [node, index, version], got {shown(value)}")
        node = nodes[self.index(value[0], len(nodes), where)]
        if len(value) == 3:
            self.index(value[2], 1 << 32, f"the version in {where}")
        return node.entries[self.index(value[1], len(node.entries), f"the index in {where}")]

    def node(self, data: Any, nodes: list[Node], where: str, depth: int) -> Node:
        """Create the node that ``data`` describes.

        Args:
            data: the JSON.
            nodes: the nodes before it, which may be its inputs.
            where: its path in the document.
            depth: the number of graphs around it.

        Raises: ParseError where the JSON is malformed or names an unknown operator; DTypeError for
        an unknown dtype; errors of the operator, or of one in a nested graph, that refuses its
        inputs or parameters.
        """
        op_name, name = get(data, "op", str, where), get(data, "name", str, where, "")
        called = f"{where} '{shortened(name)}'"
        key = next((k for k in ("attrs", "attr", "param") if k in data), "attrs")
        given = get(data, key, dict, where, {})
        params = {k: self.value(v, path(path(where, key), k), depth) for k, v in given.items()}
        inputs = [
            self.entry(e, nodes, path(where, f"inputs[{k}]"))
            for k, e in enumerate(get(data, "inputs", list, where, []))
        ]
        control = [
            nodes[self.index(c, len(nodes), path(where, f"control_deps[{k}]"))]
            for k, c in enumerate(get(data, "control_deps", list, where, []))
        ]
        if op_name == "null":
            return Node(None, (), _variable_params(params, path(where, key)), name, control)
        try:
            op = get_op(_present_name(op_name))
        except PasskitError as error:
            raise ParseError(
                f"{called}: {error}; import what registers it before the graph is read"
            ) from None
        if op.num_inputs not in (-1, len(inputs)):
            raise ParseError(f"{called} has {len(inputs)} inputs; {op.name} takes {op.num_inputs}")
        full = dict(op.params)
        for k, v in params.items():
            if k not in full:
                raise ParseError(
                    f"{path(path(where, key), k)} is no parameter of {op.name}; "
                    f"{nearest(k, full) if full else 'it takes none'}"
                )
            full[k] = _from_string(v, full[k])
            check_param(called, k, full[k], op.params[k])
        for k, v in full.items():
            if v is REQUIRED:
                raise ParseError(f"{path(where, key)} lacks the parameter '{k}' of {op.name}")
        if op is CONSTANT and not isinstance(full["value"], np.ndarray):
            text = shown(full["value"])
            raise ParseError(f"{path(where, key)}.value must be an array, got {text}")
        return Node(op, inputs, full, name, control)


def _variable_params(params: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the parameters of a variable: shape and dtype, and of a state variable two more.

    These are state, which must be True, and initial. Parameters that are missing are None.

    Raises: ParseError, naming the path ``where``, for an unknown parameter or a wrong value.
    """
    defaults = {"shape": None, "dtype": None}
    if "state" in params:
        if params["state"] is not True:
            raise ParseError(
                f"{path(where, 'state')} must be true, or left out for an input, got "
                f"{shown(params['state'])}"
            )
        defaults |= {"state": None, "initial": None}
    for k in params:
        if k not in defaults:
            hint = nearest(k, defaults)
            raise ParseError(f"{path(where, k)} is no attribute of a variable; {hint}")
    full: dict[str, Any] = {**defaults, **params}
    shape, dtype, initial = full["shape"], full["dtype"], full.get("initial")
    if shape is not None and not (
        isinstance(shape, tuple)
        and all(isinstance(n, Size) or (type(n) is int and n >= 0) for n in shape)
    ):
        raise ParseError(f"{path(where, 'shape')} must be extents >= 0, got {shown(shape)}")
    if dtype is not None and not isinstance(dtype, DType):
        raise ParseError(f"{path(where, 'dtype')} must be a dtype, got {shown(dtype)}")
    if initial is not None and not (
        isinstance(initial, np.ndarray)
        and dtype is not None
        and initial.dtype == dtype.numpy
        and initial.shape == shape
    ):
        raise ParseError(
            f"{path(where, 'initial')} must be an array of the variable's shape and dtype, got "
            f"{shown(initial)}"
        )
    return full


def _from_string(value: Any, default: Any) -> Any:
    """Return ``value``, a parameter that NNVM may have written as a string, in its own type.

    A text is converted where ``default``, the parameter's, is neither a text nor REQUIRED: None,
    True and False, JSON literals, and tuples in parentheses. Other values stay, and so does a text
    that is none of these.
    """
    if not isinstance(value, str) or isinstance(default, str) or default is REQUIRED:
        return value
    if value in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[value]
    text = value.strip().replace("(", "[").replace(")", "]").replace(",]", "]")
    try:
        return plain(json.loads(text))
    except (ValueError, RecursionError):
        return value
