"""A model as it was read: its graph, the names of what goes in and comes out, and its variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from attrs import define, evolve, field

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.opaque import Variable
from passkit.frontends.tf_graphdef.proto import Budget, short
from passkit.frontends.tf_graphdef.value import Array


class Checkpoint(Protocol):
    """Where the values of variables are."""

    def find(self, variable: Variable) -> str | None:
        """What the checkpoint calls a variable, by its own name; None where it has none."""

    def array(self, key: str) -> Array:
        """A tensor of the checkpoint."""


@define(eq=False)
class Model:
    """A GraphDef and what is said about it.

    ``inputs`` and ``outputs`` map names that callers use to results of nodes, as a signature does.
    """

    graph: Any
    where: str
    budget: Budget
    inputs: Mapping[str, str] = field(factory=dict)
    outputs: Mapping[str, str] = field(factory=dict)
    infos: Mapping[str, Any] = field(factory=dict)
    """The TensorInfo of each input, from a signature: element type and shape."""
    checkpoint: Checkpoint | None = None
    restore: str = ""
    """The node that restores the variables from a checkpoint."""
    bound: Mapping[str, Variable] = field(factory=dict)
    """The placeholders that stand for a variable, or for what a function has captured."""

    def called(self, signature: str | None) -> Model:
        """The model of one of its functions.

        Raises: ModelError when it has no function of that name.
        """
        if signature is None:
            return self
        functions = {f.signature.name: f for f in self.graph.library.function}
        if signature not in functions:
            raise ModelError(
                f"{self.where} is a GraphDef with {len(functions)} functions, and none is called "
                f"{short(signature)}; signature= names one of a SavedModel, or such a function"
            )
        return calling(self, functions[signature], {})


def calling(model: Model, function: Any, bound: Mapping[int, Variable]) -> Model:
    """A model whose graph is one call of a function; ``bound`` gives some of its arguments."""
    graph = type(model.graph)()
    graph.library.CopyFrom(model.graph.library)
    graph.versions.CopyFrom(model.graph.versions)
    arguments = function.signature.input_arg
    names = _argument_names(function)
    for k, argument in enumerate(arguments):
        node = graph.node.add(name=names[k], op="Placeholder")
        node.attr["dtype"].type = argument.type
        said = function.arg_attr[k].attr if k in function.arg_attr else {}
        if "_output_shapes" in said and len(said["_output_shapes"].list.shape) == 1:
            node.attr["shape"].shape.CopyFrom(said["_output_shapes"].list.shape[0])
    call = graph.node.add(name=_free("call", names), op="PartitionedCall", input=names)
    call.attr["f"].func.name = function.signature.name
    outputs = {a.name: f"{call.name}:{k}" for k, a in enumerate(function.signature.output_arg)}
    return evolve(
        model,
        graph=graph,
        inputs={n: f"{n}:0" for k, n in enumerate(names) if k not in bound},
        outputs=outputs,
        bound=distinct({names[k]: variable for k, variable in bound.items()}),
    )


def distinct(bound: Mapping[str, Variable]) -> dict[str, Variable]:
    """Variables of one name are numbered: state is known by its name."""
    taken: set[str] = set()
    for variable in bound.values():
        name, count = variable.name, 0
        while variable.name in taken:
            count += 1
            variable.name = f"{name}_{count}"
        taken.add(variable.name)
    return dict(bound)


def _argument_names(function: Any) -> list[str]:
    """What the user called the arguments, where that says which is which; else the function."""
    names = [a.name for a in function.signature.input_arg]
    told = [
        function.arg_attr[k].attr["_user_specified_name"].s.decode("utf-8", "replace")
        if k in function.arg_attr and "_user_specified_name" in function.arg_attr[k].attr
        else name
        for k, name in enumerate(names)
    ]
    good = all(n.isidentifier() and n.isascii() for n in told)
    return told if good and len(set(told)) == len(told) else names


def _free(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name
