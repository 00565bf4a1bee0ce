"""From a GraphDef to a passkit Graph: checks first, then nodes in an order that respects edges.

The model is untrusted: names, edges and sizes are checked before anything is built from them, all
walks are iterative, and what is kept is accounted for in a budget of memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from attrs import frozen

from passkit import ops
from passkit.errors import ModelError, PasskitError, nearest
from passkit.frontends.tf_graphdef.proto import (
    Budget,
    GraphDef,
    NodeDef,
    budget_for,
    called,
    parse,
    parse_text,
    short,
)
from passkit.frontends.tf_graphdef.table import TABLE, build
from passkit.frontends.tf_graphdef.tensor import shape_from
from passkit.frontends.tf_graphdef.value import Call, Value, value_of
from passkit.graph import Graph
from passkit.node import var

Ref: TypeAlias = tuple[int, int]
"""A result of a node: the node's number, and which of its outputs."""

Dims: TypeAlias = Sequence[int | str | None]
Source: TypeAlias = str | PathLike[str] | bytes | Any

_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9_.\\/>-]*\Z")  # TensorFlow's, and its own names
_INDEX_NBYTES = 280
_EDGE_NBYTES = 100
_NODE_NBYTES = 600
"""About what a node takes to find it, to find one of its inputs, and once it is built."""

_SCALARS_ARE_UNKNOWN_BEFORE = 24
"""Older producers wrote a scalar shape into placeholders of unknown shape."""


def load(
    source: Source,
    outputs: Iterable[str] | str | None = None,
    shapes: Mapping[str, Dims] | None = None,
    max_nbytes: int | None = None,
) -> Graph:
    """The graph of a frozen TensorFlow model.

    ``source`` is a ``.pb`` or ``.pbtxt`` file, the bytes of a GraphDef, or a GraphDef object.
    ``outputs`` are names such as ``"Identity:0"``; by default the nodes that nobody reads.
    ``shapes`` make inputs' shapes more precise; a dimension of None or a name stays unknown.
    ``max_nbytes`` bounds the memory taken: by default 4 times the file and 64 MiB.

    Raises: ModelError on anything that is damaged, hostile or not supported.
    """
    graph, where, budget = _read(source, max_nbytes)
    model = _index(graph, where, budget)
    wanted = _outputs(model, outputs)
    order = _order(model, wanted)
    return _build(model, wanted, order, dict(shapes or {}))


def _read(source: Source, max_nbytes: int | None) -> tuple[Any, str, Budget]:
    """The GraphDef, how messages call it, and what of the budget is left."""
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        budget = budget_for(len(data), max_nbytes)
        return parse(data, "the GraphDef", budget), "the GraphDef", budget
    if isinstance(source, str | PathLike):
        return _read_file(Path(fspath(source)), max_nbytes)
    if isinstance(source, GraphDef):
        budget = budget_for(source.ByteSize(), max_nbytes)
        return source, "the GraphDef", budget
    kind = getattr(getattr(source, "DESCRIPTOR", None), "full_name", type(source).__name__)
    if kind.split(".")[-1] != "GraphDef" or not hasattr(source, "SerializeToString"):
        raise ModelError(
            f"tf_graphdef.load needs a file name, bytes or a GraphDef, got {kind}; "
            f"as_graph_def() of a tf.Graph gives one"
        )
    return _read(source.SerializeToString(), max_nbytes)


def _read_file(path: Path, max_nbytes: int | None) -> tuple[Any, str, Budget]:
    where = short(str(path))
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
        data = path.read_bytes() if is_file else b""
    except OSError as error:
        raise ModelError(f"{where} cannot be read: {error.strerror}") from None
    if is_folder or path.name == "saved_model.pb":
        raise ModelError(
            f"{where} is {'a folder' if is_folder else 'part of a SavedModel'}, and a frozen "
            f"GraphDef is needed; in TensorFlow, convert_variables_to_constants_v2(function)"
            f".graph.as_graph_def() makes one of a function of a SavedModel"
        )
    if not is_file:
        raise ModelError(f"{where} is not a file; a .pb or .pbtxt file is needed")
    budget = budget_for(len(data), max_nbytes)
    read = parse_text if path.suffix in (".pbtxt", ".txt") else parse
    return read(data, where, budget), where, budget


@frozen(eq=False)
class Model:
    """A GraphDef whose names and edges have been checked."""

    graph: Any
    where: str
    budget: Budget
    numbers: Mapping[str, int]
    inputs: Sequence[tuple[Ref, ...]]
    control: Sequence[tuple[int, ...]]
    is_read: bytearray
    """For each node whether another one names it."""

    def node(self, number: int) -> NodeDef:
        """The message of a node."""
        return self.graph.node[number]


def _index(graph: Any, where: str, budget: Budget) -> Model:
    """Number the nodes and resolve their edges.

    Raises: ModelError on a name that TensorFlow does not allow, a name used twice, or an edge
    from nowhere.
    """
    count = len(graph.node)
    if not count:
        raise ModelError(f"{where} holds no nodes, so it is no model; it may be another message")
    budget.take(_INDEX_NBYTES * count, f"an index of the {count:,} nodes of {where}")
    numbers: dict[str, int] = {}
    for number, node in enumerate(graph.node):
        if not _NAME.match(node.name):
            raise ModelError(
                f"node {number} of {where} is called {short(node.name)}; a name needs letters, "
                f"digits and _ . / > - only"
            )
        if node.name in numbers:
            raise ModelError(
                f"{where} has two nodes called {short(node.name)}, number "
                f"{numbers[node.name]} and {number}"
            )
        numbers[node.name] = number
    model = Model(graph, where, budget, numbers, [], [], bytearray(count))
    for node in graph.node:
        _connect(model, node)
    return model


def _connect(model: Model, node: Any) -> None:
    model.budget.take(_EDGE_NBYTES * len(node.input), f"the inputs of {called(node)}")
    inputs: list[Ref] = []
    control: list[int] = []
    for text in node.input:
        name, index = _reference(text.removeprefix("^"))
        number = model.numbers.get(name)
        if number is None:
            raise ModelError(
                f"{called(node)} of {model.where} reads {short(text)}, "
                f"and there is no node of that name"
            )
        model.is_read[number] = 1
        if text.startswith("^"):
            control.append(number)
        else:
            inputs.append((number, index))
    model.inputs.append(tuple(inputs))  # type: ignore[attr-defined]
    model.control.append(tuple(control))  # type: ignore[attr-defined]


def _reference(text: str) -> tuple[str, int]:
    """``name:index`` in parts; the index is 0 where none is given."""
    name, colon, index = text.rpartition(":")
    if colon and index.isascii() and index.isdigit() and len(index) < 10:
        return name, int(index)
    return text, 0


def _outputs(model: Model, outputs: Iterable[str] | str | None) -> list[tuple[str, Ref]]:
    """Name and reference of each result to return.

    Raises: ModelError for an unknown name, or when there is nothing to return.
    """
    if outputs is None:
        hidden = ("NoOp", "Const", "Placeholder", "PlaceholderWithDefault", "Assert")
        found = [
            (node.name, (number, 0))
            for number, node in enumerate(model.graph.node)
            if not model.is_read[number] and node.op not in hidden
        ]
        if not found:
            raise ModelError(
                f"{model.where} has {len(model.inputs)} nodes and no operator that nobody reads; "
                f"say what to return: outputs=['name:0']"
            )
        return found
    found = []
    for text in [outputs] if isinstance(outputs, str) else outputs:
        name, index = _reference(str(text))
        if name not in model.numbers:
            raise ModelError(
                f"{model.where} has no node {short(str(text))} to return; "
                f"{nearest(name[:200], model.numbers)}"
            )
        found.append((name, (model.numbers[name], index)))
    if not found:
        raise ModelError(f"{model.where}: outputs={outputs!r} names nothing to return")
    return found


def _order(model: Model, wanted: Iterable[tuple[str, Ref]]) -> list[int]:
    """The nodes that the outputs need, each after those it reads.

    Control edges order effects, and what is read here has none; they only must not be circular.

    Raises: ModelError naming all operators that are not supported, or a cycle.
    """
    heads = [number for _, (number, _) in wanted]
    needed = bytearray(len(model.inputs))
    pending = list(heads)
    while pending:
        number = pending.pop()
        if not needed[number]:
            needed[number] = 1
            pending += [k for k, _ in model.inputs[number]]
    _check_supported(model, needed)
    order = []
    state = bytearray(len(model.inputs))  # 1: begun, 2: done
    for head in heads:
        stack = [(head, 0)]
        while stack:
            number, step = stack.pop()
            if step == 0 and state[number]:
                continue
            state[number] = 1
            before = [k for k, _ in model.inputs[number]] + list(model.control[number])
            while step < len(before) and state[before[step]] == 2:
                step += 1
            if step == len(before):
                state[number] = 2
                if needed[number]:
                    order.append(number)
                continue
            if state[before[step]] == 1:
                raise ModelError(
                    f"{model.where}: node {short(model.node(number).name)} reads "
                    f"{short(model.node(before[step]).name)}, which depends on it: a cycle"
                )
            stack += [(number, step + 1), (before[step], 0)]
    return order


def _check_supported(model: Model, needed: bytearray) -> None:
    found: dict[str, list[str]] = {}
    total = 0
    for number, node in enumerate(model.graph.node):
        if needed[number] and node.op not in TABLE and node.op != "Placeholder":
            found.setdefault(node.op, []).append(node.name)
            total += 1
    if not found:
        return
    rows = []
    for op, names in sorted(found.items())[:50]:
        shown = ", ".join(short(n) for n in names[:3]) + (", …" if len(names) > 3 else "")
        rows.append(f"{short(op)[1:-1]} × {len(names)} ({shown})")
    more = f"; and {len(found) - 50} more operators" if len(found) > 50 else ""
    raise ModelError(
        f"{model.where} has {total} node(s) of {len(found)} operator(s) that are not supported: "
        f"{'; '.join(rows)}{more}. Operators that are: {', '.join(sorted(TABLE))}. "
        f"outputs= can ask for results before them"
    )


def _build(
    model: Model, wanted: Sequence[tuple[str, Ref]], order: Sequence[int], shapes: dict[str, Dims]
) -> Graph:
    names = _names(model, wanted)
    given = _given(model, shapes)
    values: dict[int, tuple[Value, ...]] = {}
    model.budget.take(_NODE_NBYTES * len(order), f"{len(order):,} nodes of {model.where}")
    for number in order:
        node = model.node(number)
        call = Call(node, names.get(number, node.name), model.budget)
        inputs = [_result(model, values, ref) for ref in model.inputs[number]]
        try:
            if node.op == "Placeholder" or number in given:
                values[number] = (_input(model, call, given.get(number), inputs),)
            else:
                values[number] = build(call, inputs)
        except PasskitError as error:
            error.add_note(f"in {called(node)} of {model.where}")
            raise
    found = []
    for name, ref in wanted:
        entry = _result(model, values, ref).entry
        found.append(entry if entry.node.name == name else ops.identity(entry, name=name))
    return Graph(found)


def _result(model: Model, values: Mapping[int, tuple[Value, ...]], ref: Ref) -> Value:
    number, index = ref
    if index >= len(values[number]):
        raise ModelError(
            f"{called(model.node(number))} of {model.where} has {len(values[number])} output(s), "
            f"and output {index} is asked for; they are counted from 0"
        )
    return values[number][index]


def _names(model: Model, wanted: Iterable[tuple[str, Ref]]) -> dict[int, str]:
    """Other names for the nodes behind an output that only passes on: the output's."""
    names: dict[int, str] = {}
    taken = {number for _, (number, _) in wanted}
    for name, (number, _) in wanted:
        seen = {number}
        while model.node(number).op == "Identity" and model.inputs[number]:
            number = model.inputs[number][0][0]
            if number in seen:
                break
            seen.add(number)
        if number not in taken and model.node(number).op != "Placeholder":
            names[number] = name
            taken.add(number)
    return names


def _given(model: Model, shapes: Mapping[str, Dims]) -> dict[int, Dims]:
    """The shapes that the caller gave, by node. Raises: ModelError for what is no input."""
    kinds = ("Placeholder", "PlaceholderWithDefault")
    found: dict[int, Dims] = {}
    for text, shape in shapes.items():
        name, _ = _reference(text)
        number = model.numbers.get(name)
        if number is None or model.node(number).op not in kinds:
            inputs = [node.name for node in model.graph.node if node.op in kinds]
            raise ModelError(
                f"{model.where} has no input {short(text)} to give the shape {shape}; "
                f"{nearest(name[:200], inputs)}"
            )
        found[number] = tuple(shape)
    return found


def _input(model: Model, call: Call, given: Dims | None, inputs: Sequence[Value]) -> Value:
    """A variable of the model's shape, made more precise by the caller's.

    Raises: ModelError when the two contradict each other.
    """
    where = call.where
    dtype = inputs[0].dtype if inputs else call.dtype("dtype")
    shape: Dims | None = None
    if "shape" in call.node.attr:
        shape = shape_from(call.attr("shape", "shape"), where)
    if shape == () and model.graph.versions.producer < _SCALARS_ARE_UNKNOWN_BEFORE:
        shape = None
    if given is not None and shape is not None:
        fits = len(given) == len(shape) and all(
            wanted is None or got == wanted or not isinstance(got, int)
            for got, wanted in zip(given, shape, strict=True)
        )
        if not fits:
            raise ModelError(f"{where} has the shape {_dims(shape)}, got {_dims(given)} in shapes=")
        given = [
            wanted if wanted is not None else got for got, wanted in zip(given, shape, strict=True)
        ]
    return value_of(var(call.name, shape if given is None else given, dtype))


def _dims(shape: Dims) -> str:
    return "(" + ", ".join("?" if d is None else str(d) for d in shape) + ")"
