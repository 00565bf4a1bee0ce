"""Models given as objects of an imported TensorFlow: graphs, functions and Keras models.

The objects are recognized by their attributes; TensorFlow is not imported here.
"""

from __future__ import annotations

import sys
from typing import Any

from numpy.typing import NDArray

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.model import Model, uniquify_names
from passkit.frontends.tf_graphdef.non_arrays import ModelVariable
from passkit.frontends.tf_graphdef.proto import budget_for, parse, short
from passkit.values.dtype import dtype_of


def from_object(source: Any, max_nbytes: int | None) -> Model | None:
    """Return the model of a TensorFlow object; None for an unknown kind of object.

    Args:
        source: A Keras model, a concrete function, a tf.function, or a tf.Graph.
        max_nbytes: Bound of the memory that reading takes, in bytes; None for the default.

    Raises:
        ModelError: If a Keras model or tf.function cannot be traced without further arguments, or
            the graph exceeds ``max_nbytes`` or 2 GiB.
        DTypeError: If a captured value has a dtype that passkit does not have.
    """
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
    """Read the tf.Graph ``graph``.

    ``max_nbytes`` limits the memory that reading may take, in bytes; None for the default of
    `budget_for`, which grows with the graph.

    Raises:
        ModelError: If reading exceeds the limit, or the graph has 2 GiB or more.
    """
    data = graph.as_graph_def().SerializeToString()
    budget = budget_for(len(data), max_nbytes)
    return Model(parse(data, "the graph", budget), "the graph", budget)


def _is_keras(source: Any) -> bool:
    """Return whether ``source`` is a Keras model of any Keras version, by its classes' names."""
    return any(
        c.__name__ == "Model" and c.__module__.startswith(("keras.", "tf_keras.", "tensorflow."))
        for c in type(source).__mro__
    )


def _keras_function(model: Any) -> Any:
    """Return the concrete function of a Keras model's call in inference mode.

    Raises:
        ModelError: If the model has no declared inputs, or TensorFlow is not imported.
    """
    tf = sys.modules.get("tensorflow")
    inputs = getattr(model, "inputs", None)
    if tf is None or not inputs:
        raise ModelError(
            f"the Keras model {short(str(getattr(model, 'name', '?')))} needs "
            f"{'declared inputs' if tf is not None else 'the TensorFlow backend'}, and has none; "
            f"give load tf.function(model).get_concrete_function(tf.TensorSpec(...))"
        )
    tensor_specs = [
        tf.TensorSpec(x.shape, x.dtype, name=_identifier(x.name, k)) for k, x in enumerate(inputs)
    ]

    def call(*arrays: Any) -> Any:
        model_inputs = arrays[0] if len(arrays) == 1 else list(arrays)
        return model(model_inputs, training=False)

    return tf.function(call).get_concrete_function(*tensor_specs)


def _identifier(name: str, k: int) -> str:
    """Return ``name`` up to its colon if that is an identifier, else "input_" and ``k``."""
    base_name = name.split(":")[0]
    return base_name if base_name.isidentifier() else f"input_{k}"


def _concrete(function: Any) -> Any:
    """Return the concrete function of a tf.function that is traced without argument types.

    Tracing may call the user's Python function, whose errors other than TypeError and ValueError
    are passed on.

    Raises:
        ModelError: If it needs argument types to be traced.
    """
    try:
        return function.get_concrete_function()
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"the tf.function {short(str(getattr(function, '__name__', function)))} needs argument "
            f"types to be traced: {str(error).splitlines()[0][:200]}; give load "
            f"function.get_concrete_function(tf.TensorSpec(...))"
        ) from None


class _LiveVariables:
    """A `Checkpoint` that reads variables of the running TensorFlow process."""

    def __init__(self) -> None:
        """Start without variables; `tensors` maps keys to TensorFlow's variables and tensors."""
        self.tensors: dict[str, Any] = {}

    def find(self, variable: ModelVariable) -> str | None:
        """Return None for any ``variable``: every one already has its key."""
        return None

    def array(self, key: str) -> NDArray[Any]:
        """Return the current value of the captured variable or constant with this key.

        Raises:
            KeyError: If no variable or constant has the key.
        """
        value: NDArray[Any] = self.tensors[key].numpy()
        return value


def _from_concrete(function: Any, max_nbytes: int | None) -> Model:
    """Return the model of a concrete function, with placeholders bound to its captures.

    Captured variables and constants become variables whose values are read from TensorFlow.
    ``max_nbytes`` limits the memory that reading takes; None for the default.

    Raises:
        ModelError: If the graph exceeds the memory limit, or 2 GiB.
        DTypeError: If a captured value has a dtype that passkit does not have.
    """
    data = function.graph.as_graph_def().SerializeToString()
    live_variables, bound = _LiveVariables(), {}
    variables_by_handle = {id(v.handle): v for v in function.graph.variables}
    nbytes = len(data)
    for outer, inner in zip(
        function.captured_inputs,
        function.inputs[-len(function.captured_inputs) :] if function.captured_inputs else (),
        strict=True,
    ):
        name = inner.op.name
        captured = variables_by_handle.get(id(outer), outer)
        live_variables.tensors[name] = captured
        if captured is outer:
            array = outer.numpy()
            variable = ModelVariable(name, dtype_of(array.dtype), array.shape, name)
        else:
            shape = tuple(captured.shape)
            variable = ModelVariable(
                captured.name.split(":")[0], dtype_of(captured.dtype.as_numpy_dtype), shape, name
            )
        nbytes += 8 * int(captured.shape.num_elements() or 0)
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
        checkpoint=live_variables,
        bound=uniquify_names(bound),
    )


def _output_names(function: Any) -> dict[str, str]:
    """Map names of a concrete function's outputs to names of its tensors.

    The names are the sorted keys of its result, if that is a dict of all outputs; else ``output``
    for one or ``output_k`` for several.
    """
    structure = function.structured_outputs
    if isinstance(structure, dict) and len(structure) == len(function.outputs):
        names = sorted(structure)
    elif len(function.outputs) == 1:
        names = ["output"]
    else:
        names = [f"output_{k}" for k in range(len(function.outputs))]
    return {n: x.name for n, x in zip(names, function.outputs, strict=True)}
