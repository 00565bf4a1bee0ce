"""Inputs of a model: graph variables for placeholders, or for nodes that a signature feeds.

Signatures may use results of other nodes than placeholders as inputs; the graph is cut there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import TypeAlias

import numpy as np
from attrs import frozen

from passkit.errors import ModelError, nearest
from passkit.frontends.tf_graphdef.graph_body import GraphBody, ResultRef, reference
from passkit.frontends.tf_graphdef.imported_value import ImportCall, value_of
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.non_arrays import (
    AnyValue,
    ModelVariable,
    NonArray,
    StringInput,
    UnfedResult,
    UnsupportedResult,
    VariableHandle,
)
from passkit.frontends.tf_graphdef.proto import node_label, short
from passkit.frontends.tf_graphdef.tensor import NUMBERS, parse_dtype, parse_shape
from passkit.graph.node import var
from passkit.values import arguments

InputDims: TypeAlias = Sequence[int | str | None]
"""Shape of an input: numbers, names of symbolic sizes, and None for unknown dimensions."""
InputFactory: TypeAlias = Callable[[ImportCall, Sequence[AnyValue]], AnyValue]

_STRING = 7  # DT_STRING
_RESOURCE = 20  # DT_RESOURCE
_MOST_RESULTS = 10_000
_PLACEHOLDERS = ("Placeholder", "PlaceholderWithDefault")
_SCALARS_ARE_UNKNOWN_BEFORE = 24
"""Producers before this version wrote a scalar shape into placeholders of unknown shape."""


@frozen
class ModelInputs:
    """Inputs of a model."""

    factories: Mapping[int, InputFactory]
    """For each input node, by number, a function that builds its value when it is first needed."""
    fed: Mapping[int, Sequence[AnyValue]]
    """Results of other nodes that are fed, by number; nodes in front of them are not computed."""
    names: Sequence[str]
    """Names that callers may feed, one for each result of a node."""


def find_inputs(model: Model, body: GraphBody, shapes: Mapping[str, InputDims]) -> ModelInputs:
    """Find the inputs that the signature names, and all other placeholders.

    Placeholders get factories, which build the input, and compare its shapes, when it is first
    needed. Results of other nodes that the signature names are built here.

    Args:
        model: The model, whose signature may name inputs.
        body: Its nodes.
        shapes: The caller's shapes of inputs by name of an input or placeholder.

    Raises:
        ModelError: If ``shapes`` names something else than an input, if a shape contradicts the
            model's, if the signature names a missing node or a result with an index of 10,000 or
            more, or has a dtype that passkit does not have.
        ArgumentError: If a shape is not a sequence of numbers, names or None, or a name no text.
        ShapeError: If a shape of a fed result has a negative number or an invalid name, or too many
            elements or axes.
    """
    placeholder_names: dict[int, str] = {}
    fed_refs: dict[str, ResultRef] = {}
    for name, text in model.inputs.items():
        node_name, index = reference(text)
        number = body.node_numbers.get(node_name)
        if number is None:
            raise ModelError(
                f"{model.where} needs the node {short(text)} for its input {short(name)}, and has "
                f"no node of that name"
            )
        if body.nodes[number].op in _PLACEHOLDERS or name not in model.infos:
            placeholder_names[number] = name
        else:
            fed_refs[name] = (number, index)
    caller_shapes = _caller_shapes(
        model,
        body,
        {**placeholder_names, **{ref[0]: name for name, ref in fed_refs.items()}},
        shapes,
    )
    factories: dict[int, InputFactory] = {}
    for number, node in enumerate(body.nodes):
        if node.name in model.bound:
            factories[number] = _bound_factory(model.bound[node.name])
        elif node.op == "Placeholder" or number in caller_shapes or number in placeholder_names:
            factories[number] = _placeholder_factory(
                body.producer, placeholder_names.get(number), caller_shapes.get(number)
            )
    fed: dict[int, list[AnyValue]] = {}
    name_by_ref = {ref: name for name, ref in fed_refs.items()}
    for name, (number, index) in fed_refs.items():
        node, info = body.nodes[number], model.infos[name]
        results = fed.setdefault(number, [])
        if index >= _MOST_RESULTS:
            raise ModelError(
                f"{model.where} has result {index} of {node_label(node)} as its input "
                f"{short(name)}, and the index needs to be less than {_MOST_RESULTS:,}"
            )
        results += [UnfedResult(node.name)] * (index + 1 - len(results))
        has_shape = info.HasField("tensor_shape")
        shape = parse_shape(info.tensor_shape, node_label(node)) if has_shape else None
        results[index] = _make_input(
            node_label(node), name, info.dtype, shape, caller_shapes.get(number)
        )
    names = [name for name, ref in fed_refs.items() if name_by_ref[ref] == name]
    names += [
        placeholder_names.get(number, node.name)
        for number, node in enumerate(body.nodes)
        if node.op in _PLACEHOLDERS and node.name not in model.bound
    ]
    return ModelInputs(factories, fed, names)


def _bound_factory(variable: ModelVariable) -> InputFactory:
    """Return the factory of a placeholder bound to a variable: its handle, or a reference to it.

    It is a handle if the placeholder's dtype is a resource, else a handle that is read on use.
    """

    def make(call: ImportCall, inputs: Sequence[AnyValue]) -> AnyValue:
        is_handle = call.node.attr["dtype"].type == _RESOURCE
        return VariableHandle(call.name, variable=variable, by_reference=not is_handle)

    return make


def _caller_shapes(
    model: Model, body: GraphBody, names: Mapping[int, str], shapes: Mapping[str, InputDims]
) -> dict[int, InputDims]:
    """Return the caller's shapes by node number.

    A result index in a name, as in "x:0", is ignored.

    Args:
        model: The model, for errors.
        body: Its nodes.
        names: Names of inputs by node number.
        shapes: The caller's shapes by name of an input or placeholder.

    Raises:
        ModelError: If a name is no input or placeholder.
        ArgumentError: If a shape is not a sequence of numbers, names or None, or a name no text.
    """
    by_name = {name: number for number, name in names.items()}
    caller_shapes: dict[int, InputDims] = {}
    for text, shape in shapes.items():
        name, _ = reference(arguments.text("a name in shapes", text))
        number = by_name.get(name, body.node_numbers.get(name))
        if number is None or (body.nodes[number].op not in _PLACEHOLDERS and number not in names):
            placeholders = [n.name for n in body.nodes if n.op in _PLACEHOLDERS]
            raise ModelError(
                f"{model.where} has no input {short(text)}, for which shapes= has {shape}; "
                f"{nearest(name[:200], [*names.values(), *placeholders])}"
            )
        where = f"the shape of {short(text)} in shapes"
        dimension_types = (int, np.integer, str, NoneType)
        caller_shapes[number] = arguments.sequence(
            where, shape, dimension_types, "numbers, names or None"
        )
    return caller_shapes


def _placeholder_factory(
    producer: int, name: str | None, caller_shape: InputDims | None
) -> InputFactory:
    """Return the factory of an ordinary placeholder.

    The factory raises ModelError and ShapeError as `_make_placeholder` does.

    Args:
        producer: GraphDef version of the model.
        name: Name of the input; None for the node's.
        caller_shape: The caller's shape; None if the caller has none.
    """

    def make(call: ImportCall, inputs: Sequence[AnyValue]) -> AnyValue:
        return _make_placeholder(call, producer, name or call.name, caller_shape, inputs)

    return make


def _make_placeholder(
    call: ImportCall,
    producer: int,
    name: str,
    caller_shape: InputDims | None,
    inputs: Sequence[AnyValue],
) -> AnyValue:
    """Return a graph variable of the placeholder's shape, refined by the caller's shape.

    Args:
        call: The placeholder.
        producer: GraphDef version of the model; old ones declare unknown shapes as scalars.
        name: Name of the variable.
        caller_shape: The caller's shape, or None.
        inputs: The default value of a PlaceholderWithDefault, which gives the dtype; else empty.

    Returns:
        The variable. A `StringInput` for strings; an `UnsupportedResult` if the default is no
        array.

    Raises:
        ModelError: If the two shapes contradict each other and the dtype is not that of strings,
            the dtype is missing without a default or not supported, or the attribute ``shape`` is
            invalid; without it, the rank is unknown.
        ShapeError: If the shape has too many elements or axes; or if the caller's has a negative
            number or an invalid name where the model has no number.
    """
    where = call.where
    default = inputs[0] if inputs else None
    if isinstance(default, NonArray):
        return UnsupportedResult(name)
    type_number = call.attr("dtype", "type") if default is None else NUMBERS[default.dtype.name]
    shape: InputDims | None = None
    if "shape" in call.node.attr:
        shape = parse_shape(call.attr("shape", "shape"), where)
    if shape == () and producer < _SCALARS_ARE_UNKNOWN_BEFORE:
        shape = None
    return _make_input(where, name, type_number, shape, caller_shape)


def _make_input(
    where: str, name: str, type_number: int, shape: InputDims | None, caller_shape: InputDims | None
) -> AnyValue:
    """Return a graph variable for an input; strings become a `StringInput`, whatever their shape.

    Dimensions that are None become symbolic sizes named after the input; names are sizes of that
    name. Where the model's dimension is a number, a name or None of the caller gives way to it.
    Without any shape the rank is unknown.

    Args:
        where: The node, for errors.
        name: Name of the variable.
        type_number: TensorFlow's DataType number.
        shape: The model's shape; None if unknown.
        caller_shape: The caller's shape, which refines it; None if the caller has none.

    Raises:
        ModelError: If the dtype is not supported, or ``shape`` and ``caller_shape`` contradict each
            other and the dtype is not that of strings.
        ShapeError: If the shape has too many elements or axes; or if the caller's has a negative
            number or an invalid name where the model has no number.
    """
    if type_number == _STRING:
        return StringInput(name)
    dtype = parse_dtype(type_number, where)
    if caller_shape is not None and shape is not None:
        is_compatible = len(caller_shape) == len(shape) and all(
            declared is None
            or requested == declared
            or requested is None
            or isinstance(requested, str)
            for requested, declared in zip(caller_shape, shape, strict=True)
        )
        if not is_compatible:
            raise ModelError(
                f"{where} needs the shape {_format_shape(shape)}, got "
                f"{_format_shape(caller_shape)} in shapes="
            )
        caller_shape = [
            declared if declared is not None else requested
            for requested, declared in zip(caller_shape, shape, strict=True)
        ]
    return value_of(var(name, shape if caller_shape is None else caller_shape, dtype))


def _format_shape(shape: InputDims) -> str:
    """Format a shape for a message, with ``?`` for unknown dimensions."""
    return "(" + ", ".join("?" if d is None else str(d) for d in shape) + ")"
