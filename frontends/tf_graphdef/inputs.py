"""The inputs of a model: placeholders become variables of the graph, or what is bound to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from passkit.errors import ModelError, nearest
from passkit.frontends.tf_graphdef.body import Body, reference
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.opaque import Anything, Handle, Missing, Opaque, Variable
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.tensor import shape_from
from passkit.frontends.tf_graphdef.value import Call, value_of
from passkit.graph.node import var

Dims: TypeAlias = Sequence[int | str | None]
Maker: TypeAlias = Callable[[Call, Sequence[Anything]], Anything]

_RESOURCE = 20  # DT_RESOURCE
_PLACEHOLDERS = ("Placeholder", "PlaceholderWithDefault")
_SCALARS_ARE_UNKNOWN_BEFORE = 24
"""Older producers wrote a scalar shape into placeholders of unknown shape."""


def input_makers(model: Model, body: Body, shapes: Mapping[str, Dims]) -> dict[int, Maker]:
    """For each input of the model what makes it.

    Raises: ModelError for a shape of what is no input, or an input that the graph does not have.
    """
    names: dict[int, str] = {}
    for name, text in model.inputs.items():
        number = body.numbers.get(reference(text)[0])
        if number is None:
            raise ModelError(
                f"{model.where} has no node {short(text)}, which is its input {short(name)}"
            )
        names[number] = name
    given = _given(model, body, names, shapes)
    makers: dict[int, Maker] = {}
    for number, node in enumerate(body.nodes):
        if node.name in model.bound:
            makers[number] = _bound(model.bound[node.name])
        elif node.op == "Placeholder" or number in given or number in names:
            makers[number] = _maker(body.producer, names.get(number), given.get(number))
    return makers


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
        name, _ = reference(text)
        number = by_name.get(name, body.numbers.get(name))
        if number is None or (body.nodes[number].op not in _PLACEHOLDERS and number not in names):
            known = [n.name for n in body.nodes if n.op in _PLACEHOLDERS]
            raise ModelError(
                f"{model.where} has no input {short(text)} to give the shape {shape}; "
                f"{nearest(name[:200], [*names.values(), *known])}"
            )
        found[number] = tuple(shape)
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
    dtype = call.dtype("dtype") if default is None else default.dtype
    shape: Dims | None = None
    if "shape" in call.node.attr:
        shape = shape_from(call.attr("shape", "shape"), where)
    if shape == () and producer < _SCALARS_ARE_UNKNOWN_BEFORE:
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
    return value_of(var(name, shape if given is None else given, dtype))


def _dims(shape: Dims) -> str:
    return "(" + ", ".join("?" if d is None else str(d) for d in shape) + ")"
