"""Where the value of a variable is in the checkpoint: what the model's own restoring says."""

from __future__ import annotations

from passkit.errors import ModelError, nearest
from passkit.frontends.tf_graphdef.body import Body, order, reached
from passkit.frontends.tf_graphdef.library import Library
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.opaque import Missing, Variable
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.scope import MOST_CALLED, Program, Scope, Work
from passkit.frontends.tf_graphdef.value import Array, Value
from passkit.graph.infer import show_shape


class Restorer:
    """Values of variables.

    A model's graph holds what restores it: tensors of a checkpoint, by their names, assigned to
    variables. That is run, without a checkpoint, when a variable is first read; names of variables
    are believed only where it says nothing.
    """

    def __init__(self, model: Model, body: Body, library: Library) -> None:
        self.model, self.body, self.library = model, body, library
        self._keys: dict[str, str] | None = None
        self._arrays: dict[str, Array] = {}

    def key(self, variable: Variable) -> str | None:
        """The name of a variable's value in the checkpoint; None where there is no value."""
        if self.model.checkpoint is None:
            return None
        return (
            variable.key
            or self._restored().get(variable.name)
            or self.model.checkpoint.find(variable)
        )

    def value(self, variable: Variable) -> Value:
        """What the checkpoint has for a variable.

        Raises: ModelError when it has nothing, or something of another shape or type.
        """
        model = self.model
        if model.checkpoint is None:
            raise ModelError(
                f"{model.where} reads the variable {short(variable.name)}, and has no values of "
                f"variables; load the SavedModel folder it comes from, or freeze it: "
                f"convert_variables_to_constants_v2(function).graph.as_graph_def(); "
                f"tf_graphdef.Session or targets= train it"
            )
        key = self.key(variable)
        if key is None:
            known = [k[:200] for k in list(self._restored())[:1000]]
            raise ModelError(
                f"{model.where} has no value for its variable {short(variable.name)}, neither by "
                f"what restores it nor by its name; {nearest(variable.name[:200], known)}"
            )
        if key not in self._arrays:
            self._arrays[key] = model.checkpoint.array(key)
        array = self._arrays[key]
        wanted = variable.shape
        if array.dtype != variable.dtype.numpy or (wanted is not None and array.shape != wanted):
            raise ModelError(
                f"{model.where}: the checkpoint has {array.dtype}{show_shape(array.shape)} as "
                f"{short(key)}, and the variable {short(variable.name)} is "
                f"{variable.dtype}{show_shape(wanted)}"
            )
        return Value(variable.name, variable.dtype, known=array)

    def _restored(self) -> dict[str, str]:
        """What the checkpoint calls each variable, by the variable's name."""
        if self._keys is None:
            name = self.model.restore.rpartition(":")[0] or self.model.restore
            self._keys = {}
            if name in self.body.numbers:
                self._keys = self._run(self.body.numbers[name])
        return self._keys

    def _run(self, number: int) -> dict[str, str]:
        most = MOST_CALLED + len(self.body.nodes)
        program = Program(
            self.model.where,
            self.model.budget,
            self.library,
            Work(most, most, 0),
            self.value,
            inputs={
                k: lambda call, inputs: Missing(call.name)
                for k, node in enumerate(self.body.nodes)
                if node.op == "Placeholder"
            },
        )
        scope = Scope(program, self.body)
        nodes = reached(self.body, [number], {}, control=True)
        scope.compute(order(self.body, [number], nodes, {}))
        return {v.name: v.key for v in program.variables.values() if v.key is not None}
