"""A model as read from its source: graph, names of inputs and outputs, checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from attrs import define, evolve, field
from numpy.typing import NDArray

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.non_arrays import ModelVariable
from passkit.frontends.tf_graphdef.proto import Budget, short


class Checkpoint(Protocol):
    """Access to the values of variables."""

    def find(self, variable: ModelVariable) -> str | None:
        """Return the checkpoint's key for a variable, looked up by its name; None if absent."""

    def array(self, key: str) -> NDArray[Any]:
        """Return the tensor with this key.

        Raises:
            ModelError: If it is missing or damaged.
        """


@define(eq=False)
class Model:
    """A GraphDef with the names of its inputs and outputs.

    ``inputs`` and ``outputs`` map names for callers to results of nodes, as a signature does.
    """

    graph: Any
    where: str
    budget: Budget
    inputs: Mapping[str, str] = field(factory=dict)
    outputs: Mapping[str, str] = field(factory=dict)
    infos: Mapping[str, Any] = field(factory=dict)
    """TensorInfo (dtype and shape) of each input of a signature."""
    checkpoint: Checkpoint | None = None
    restore: str = ""
    """The node that restores the variables from a checkpoint."""
    bound: Mapping[str, ModelVariable] = field(factory=dict)
    """Placeholders that stand for a variable or another captured value of a function."""

    def select_function(self, signature: str | None) -> Model:
        """Return a model that calls the function named ``signature``; for None, the model itself.

        Raises:
            ModelError: If there is no function of that name.
        """
        if signature is None:
            return self
        functions = {f.signature.name: f for f in self.graph.library.function}
        if signature not in functions:
            raise ModelError(
                f"{self.where} is a GraphDef with {len(functions)} functions, and none is called "
                f"{short(signature)}; signature= takes the name of one of them, or of a signature "
                f"of a SavedModel"
            )
        return model_calling(self, functions[signature], {})


def model_calling(
    model: Model, function: Any, bound_variables: Mapping[int, ModelVariable]
) -> Model:
    """Return a model whose graph is a single call of a function.

    Inputs get dtype and shape that the function declares for its arguments.

    Args:
        model: The model that has the function.
        function: FunctionDef to call.
        bound_variables: Variables to pass for arguments, by position; the other arguments become
            inputs. Those that share a name are renamed in place.

    Returns:
        A copy of ``model`` whose inputs are named as the function's arguments and whose outputs are
        named as its results.
    """
    graph = type(model.graph)()
    graph.library.CopyFrom(model.graph.library)
    graph.versions.CopyFrom(model.graph.versions)
    arguments = function.signature.input_arg
    names = _argument_names(function)
    for k, argument in enumerate(arguments):
        node = graph.node.add(name=names[k], op="Placeholder")
        node.attr["dtype"].type = argument.type
        attributes = function.arg_attr[k].attr if k in function.arg_attr else {}
        if "_output_shapes" in attributes and len(attributes["_output_shapes"].list.shape) == 1:
            node.attr["shape"].shape.CopyFrom(attributes["_output_shapes"].list.shape[0])
    call_node = graph.node.add(name=_free("call", names), op="PartitionedCall", input=names)
    call_node.attr["f"].func.name = function.signature.name
    outputs = {a.name: f"{call_node.name}:{k}" for k, a in enumerate(function.signature.output_arg)}
    return evolve(
        model,
        graph=graph,
        inputs={n: f"{n}:0" for k, n in enumerate(names) if k not in bound_variables},
        outputs=outputs,
        bound=uniquify_names({names[k]: variable for k, variable in bound_variables.items()}),
    )


def uniquify_names(bound_variables: Mapping[str, ModelVariable]) -> dict[str, ModelVariable]:
    """Rename ``bound_variables`` that share a name, in place, by appending ``_1``, ``_2``, ….

    State is identified by its variable's name. Return the variables under the same keys.
    """
    used_names: set[str] = set()
    for variable in bound_variables.values():
        name, count = variable.name, 0
        while variable.name in used_names:
            count += 1
            variable.name = f"{name}_{count}"
        used_names.add(variable.name)
    return dict(bound_variables)


def _argument_names(function: Any) -> list[str]:
    """Return a name for each argument of the FunctionDef ``function``.

    These are the names in the user's program if all are distinct ASCII identifiers, else those of
    the FunctionDef.
    """
    names = [a.name for a in function.signature.input_arg]
    user_names = [
        function.arg_attr[k].attr["_user_specified_name"].s.decode("utf-8", "replace")
        if k in function.arg_attr and "_user_specified_name" in function.arg_attr[k].attr
        else name
        for k, name in enumerate(names)
    ]
    are_identifiers = all(n.isidentifier() and n.isascii() for n in user_names)
    return user_names if are_identifiers and len(set(user_names)) == len(user_names) else names


def _free(name: str, used_names: list[str]) -> str:
    """Return ``name``, with underscores appended until it is none of ``used_names``."""
    while name in used_names:
        name += "_"
    return name
