"""The inputs of a model: variables of the graph, or what is bound to them.

Inputs are placeholders. A signature may have the results of other nodes as its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import TypeAlias

import numpy as np
from attrs import frozen

from passkit.errors import ModelError, nearest
from passkit.frontends.tf_graphdef.body import Body, Ref, reference
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.opaque import (
    Anything,
    Handle,
    Missing,
    Opaque,
    Texts,
    Unfed,
    Variable,
)
from passkit.frontends.tf_graphdef.proto import called, short
from passkit.frontends.tf_graphdef.tensor import NUMBERS, dtype_from, shape_from
from passkit.frontends.tf_graphdef.value import Call, value_of
from passkit.graph.node import var
from passkit.values import arguments

Dims: TypeAlias = Sequence[int | str | None]
Maker: TypeAlias = Callable[[Call, Sequence[Anything]], Anything]

_STRING = 7  # DT_STRING
_RESOURCE = 20  # DT_RESOURCE
_MOST_RESULTS = 10_000
_PLACEHOLDERS = ("Placeholder", "PlaceholderWithDefault")
_SCALARS_ARE_UNKNOWN_BEFORE = 24
"""Older producers wrote a scalar shape into placeholders of unknown shape."""


@frozen
class Inputs:
    """The inputs of a model.

    ``makers`` make the results of placeholders when these are first needed. ``fed`` holds the
    results of other nodes that are fed: the graph is cut there, and nothing in front of them is
    computed.
    """

    makers: Mapping[int, Maker]
    fed: Mapping[int, Sequence[Anything]]
    names: Sequence[str]
    """Return the entries that callers may feed, each result of a node under one name."""


def find_inputs(model: Model, body: Body, shapes: Mapping[str, Dims]) -> Inputs:
    """The inputs that a signature names, and the placeholders that it does not name.

    Raises: ModelError for a shape of what is no input, or an input that the graph does not have.
    """
    named: dict[int, str] = {}
    cut: dict[str, Ref] = {}
    for name, text in model.inputs.items():
        node_name, index = reference(text)
        number = body.numbers.get(node_name)
        if number is None:
            raise ModelError(
                f"{model.where} has no node {short(text)}, which is its input {short(name)}"
            )
        if body.nodes[number].op in _PLACEHOLDERS or name not in model.infos:
            named[number] = name
        else:
            cut[name] = (number, index)
    given = _given(model, body, {**named, **{ref[0]: name for name, ref in cut.items()}}, shapes)
    makers: dict[int, Maker] = {}
    for number, node in enumerate(body.nodes):
        if node.name in model.bound:
            makers[number] = _bound(model.bound[node.name])
        elif node.op == "Placeholder" or number in given or number in named:
            makers[number] = _maker(body.producer, named.get(number), given.get(number))
    fed: dict[int, list[Anything]] = {}
    by_ref = {ref: name for name, ref in cut.items()}
    for name, (number, index) in cut.items():
        node, info = body.nodes[number], model.infos[name]
        results = fed.setdefault(number, [])
        if index >= _MOST_RESULTS:
            raise ModelError(
                f"{model.where} has the result {index} of {called(node)} as its input "
                f"{short(name)}, and a node has fewer than {_MOST_RESULTS:,}"
            )
        results += [Unfed(node.name)] * (index + 1 - len(results))
        told = info.HasField("tensor_shape")
        shape = shape_from(info.tensor_shape, called(node)) if told else None
        results[index] = _variable(called(node), name, info.dtype, shape, given.get(number))
    names = [name for name, ref in cut.items() if by_ref[ref] == name]
    names += [
        named.get(number, node.name)
        for number, node in enumerate(body.nodes)
        if node.op in _PLACEHOLDERS and node.name not in model.bound
    ]
    return Inputs(makers, fed, names)


def _bound(variable: Variable) -> Maker:
    """A placeholder that stands for a variable: its handle, or what it holds."""

    def make(call: Call, inputs: Sequence[Anything]) -> Anything:
        is_handle = call.node.attr["dtype"].type == _RESOURCE
        return Handle(call.name, variable=variable, by_reference=not is_handle)

    return make


def _given(
    model: Model, body: Body, names: Mapping[int, str], shapes: Mapping[str, Dims]
) -> dict[int, Dims]:
    """The shapes that the caller gave, by node. Raises: ModelError for what is no input."""
    by_name = {name: number for number, name in names.items()}
    found: dict[int, Dims] = {}
    for text, shape in shapes.items():
        name, _ = reference(arguments.text("a name in shapes", text))
        number = by_name.get(name, body.numbers.get(name))
        if number is None or (body.nodes[number].op not in _PLACEHOLDERS and number not in names):
            known = [n.name for n in body.nodes if n.op in _PLACEHOLDERS]
            raise ModelError(
                f"{model.where} has no input {short(text)} to give the shape {shape}; "
                f"{nearest(name[:200], [*names.values(), *known])}"
            )
        where = f"the shape of {short(text)} in shapes"
        kinds = (int, np.integer, str, NoneType)
        found[number] = arguments.sequence(where, shape, kinds, "numbers, names or None")
    return found


def _maker(producer: int, name: str | None, given: Dims | None) -> Maker:
    def make(call: Call, inputs: Sequence[Anything]) -> Anything:
        return _input(call, producer, name or call.name, given, inputs)

    return make


def _input(
    call: Call, producer: int, name: str, given: Dims | None, inputs: Sequence[Anything]
) -> Anything:
    """A variable of the model's shape, made more precise by the caller's.

    Raises: ModelError when the two contradict each other.
    """
    where = call.where
    default = inputs[0] if inputs else None
    if isinstance(default, Opaque):
        return Missing(name)
    number = call.attr("dtype", "type") if default is None else NUMBERS[default.dtype.name]
    shape: Dims | None = None
    if "shape" in call.node.attr:
        shape = shape_from(call.attr("shape", "shape"), where)
    if shape == () and producer < _SCALARS_ARE_UNKNOWN_BEFORE:
        shape = None
    return _variable(where, name, number, shape, given)


def _variable(
    where: str, name: str, number: int, shape: Dims | None, given: Dims | None
) -> Anything:
    """An input of TensorFlow's element type ``number``, of ``shape`` and the caller's ``given``.

    Raises: ModelError when the two shapes contradict each other.
    """
    if number == _STRING:
        return Texts(name)
    dtype = dtype_from(number, where)
    if given is not None and shape is not None:
        fits = len(given) == len(shape) and all(
            declared is None or got == declared or not isinstance(got, int)
            for got, declared in zip(given, shape, strict=True)
        )
        if not fits:
            raise ModelError(f"{where} has the shape {_dims(shape)}, got {_dims(given)} in shapes=")
        given = [
            declared if declared is not None else got
            for got, declared in zip(given, shape, strict=True)
        ]
    return value_of(var(name, shape if given is None else given, dtype))


def _dims(shape: Dims) -> str:
    return "(" + ", ".join("?" if d is None else str(d) for d in shape) + ")"
