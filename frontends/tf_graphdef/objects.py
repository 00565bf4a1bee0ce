"""Models as objects of a TensorFlow that the caller has imported: functions, and Keras models.

They are known by what they offer; TensorFlow is not imported here.
"""

from __future__ import annotations

import sys
from typing import Any

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.model import Model, distinct
from passkit.frontends.tf_graphdef.opaque import Variable
from passkit.frontends.tf_graphdef.proto import budget_for, parse, short
from passkit.frontends.tf_graphdef.value import Array
from passkit.values.dtype import dtype_of


def from_object(source: Any, max_nbytes: int | None) -> Model | None:
    """The model that an object stands for; None where it is none that is known here."""
    if _is_keras(source):
        return _from_concrete(_keras_function(source), max_nbytes)
    if hasattr(source, "captured_inputs") and hasattr(source, "graph"):
        return _from_concrete(source, max_nbytes)
    if hasattr(source, "get_concrete_function"):
        return _from_concrete(_concrete(source), max_nbytes)
    if hasattr(source, "as_graph_def") and hasattr(source, "get_operations"):
        return _from_graph(source, max_nbytes)
    return None


def _from_graph(graph: Any, max_nbytes: int | None) -> Model:
    data = graph.as_graph_def().SerializeToString()
    budget = budget_for(len(data), max_nbytes)
    return Model(parse(data, "the graph", budget), "the graph", budget)


def _is_keras(source: Any) -> bool:
    return any(
        c.__name__ == "Model" and c.__module__.startswith(("keras.", "tf_keras.", "tensorflow."))
        for c in type(source).__mro__
    )


def _keras_function(model: Any) -> Any:
    """The concrete function of a Keras model's call, in inference."""
    tf = sys.modules.get("tensorflow")
    inputs = getattr(model, "inputs", None)
    if tf is None or not inputs:
        raise ModelError(
            f"the Keras model {short(str(getattr(model, 'name', '?')))} has "
            f"{'no inputs of its own' if tf is not None else 'no TensorFlow behind it'}; give load "
            f"tf.function(model).get_concrete_function(tf.TensorSpec(...))"
        )
    specs = [
        tf.TensorSpec(x.shape, x.dtype, name=_identifier(x.name, k)) for k, x in enumerate(inputs)
    ]

    def call(*arrays: Any) -> Any:
        given = arrays[0] if len(arrays) == 1 else list(arrays)
        return model(given, training=False)

    return tf.function(call).get_concrete_function(*specs)


def _identifier(name: str, k: int) -> str:
    plain = name.split(":")[0]
    return plain if plain.isidentifier() else f"input_{k}"


def _concrete(function: Any) -> Any:
    """The one concrete function that a tf.function has, or can be traced to."""
    try:
        return function.get_concrete_function()
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"the tf.function {short(str(getattr(function, '__name__', function)))} needs to know "
            f"its arguments: {str(error).splitlines()[0][:200]}; give load "
            f"function.get_concrete_function(tf.TensorSpec(...))"
        ) from None


class _Live:
    """Variables as the process has them."""

    def __init__(self) -> None:
        self.tensors: dict[str, Any] = {}

    def find(self, variable: Variable) -> str | None:
        """None: every variable comes with its key."""
        return None

    def array(self, key: str) -> Array:
        """The value that a variable has now."""
        found: Array = self.tensors[key].numpy()
        return found


def _from_concrete(function: Any, max_nbytes: int | None) -> Model:
    data = function.graph.as_graph_def().SerializeToString()
    live, bound = _Live(), {}
    handles = {id(v.handle): v for v in function.graph.variables}
    nbytes = len(data)
    for outer, inner in zip(
        function.captured_inputs,
        function.inputs[-len(function.captured_inputs) :] if function.captured_inputs else (),
        strict=True,
    ):
        name = inner.op.name
        held = handles.get(id(outer), outer)
        live.tensors[name] = held
        if held is outer:
            array = outer.numpy()
            variable = Variable(name, dtype_of(array.dtype), array.shape, name)
        else:
            shape = tuple(held.shape)
            variable = Variable(
                held.name.split(":")[0], dtype_of(held.dtype.as_numpy_dtype), shape, name
            )
        nbytes += 8 * int(held.shape.num_elements() or 0)
        bound[name] = variable
    budget = budget_for(nbytes, max_nbytes)
    where = f"the function {short(str(function.name))}"
    names = {x.op.name: x.name for x in function.inputs if x.op.name not in bound}
    return Model(
        parse(data, where, budget),
        where,
        budget,
        inputs=names,
        outputs=_output_names(function),
        checkpoint=live,
        bound=distinct(bound),
    )


def _output_names(function: Any) -> dict[str, str]:
    """Names for a function's results: those of a dictionary, else the nodes'."""
    told = function.structured_outputs
    if isinstance(told, dict) and len(told) == len(function.outputs):
        names = sorted(told)
    elif len(function.outputs) == 1:
        names = ["output"]
    else:
        names = [f"output_{k}" for k in range(len(function.outputs))]
    return {n: x.name for n, x in zip(names, function.outputs, strict=True)}
