"""Checkpoint keys of variables, found by evaluating the model's restore function."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from passkit.errors import ModelError, nearest
from passkit.frontends.tf_graphdef.evaluation import BodyEvaluation
from passkit.frontends.tf_graphdef.function_library import FunctionLibrary
from passkit.frontends.tf_graphdef.graph_body import (
    GraphBody,
    reachable_nodes,
    topological_order,
)
from passkit.frontends.tf_graphdef.import_state import MAX_BUILT_NODES, ImportState, NodeBudget
from passkit.frontends.tf_graphdef.imported_value import ImportedValue
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.non_arrays import ModelVariable, UnsupportedResult
from passkit.frontends.tf_graphdef.proto import short
from passkit.graph.infer import show_shape


class VariableRestorer:
    """Finds the checkpoint values of variables.

    A model's graph holds nodes that read tensors of a checkpoint by name and assign them to
    variables. These are evaluated symbolically when a variable is first read. Where they do not
    mention a variable, its name is looked up in the checkpoint.
    """

    def __init__(self, model: Model, body: GraphBody, library: FunctionLibrary) -> None:
        """Prepare to restore a model's variables; nothing is evaluated or read yet.

        Args:
            model: The model.
            body: The nodes of its graph.
            library: Its functions.
        """
        self.model, self.body, self.library = model, body, library
        self._keys: dict[str, str] | None = None
        self._arrays: dict[str, NDArray[Any]] = {}

    def key(self, variable: ModelVariable) -> str | None:
        """Return the checkpoint's key of a variable.

        None if the model has no checkpoint, or the checkpoint has no value for the variable.

        The key stored in the variable precedes that of the restore node, and that its name has in
        the checkpoint.

        Raises:
            ModelError: If the nodes that restore variables are malformed, or the checkpoint is
                missing or damaged.
            ShapeError: If shapes in these nodes do not fit an operator; likewise DTypeError for
                dtypes.
        """
        if self.model.checkpoint is None:
            return None
        return (
            variable.key
            or self._restored().get(variable.name)
            or self.model.checkpoint.find(variable)
        )

    def value(self, variable: ModelVariable) -> ImportedValue:
        """Return the checkpoint's value of a variable as a known array, read once.

        Raises:
            ModelError: If there is no checkpoint or no value in it, the value has another shape or
                dtype or is damaged, or the nodes that restore variables are malformed.
            ShapeError: If shapes in these nodes do not fit an operator; likewise DTypeError for
                dtypes.
        """
        model = self.model
        if model.checkpoint is None:
            raise ModelError(
                f"{model.where} reads the variable {short(variable.name)}, and contains no values "
                f"of variables; load the SavedModel folder that it comes from, or freeze it by "
                f"convert_variables_to_constants_v2(function).graph.as_graph_def(); to train it, "
                f"use tf_graphdef.ModelSession or targets="
            )
        key = self.key(variable)
        if key is None:
            candidates = [k[:200] for k in list(self._restored())[:1000]]
            raise ModelError(
                f"{model.where} has no value for its variable {short(variable.name)}: neither its "
                f"restore nodes nor its checkpoint mention that name; "
                f"{nearest(variable.name[:200], candidates)}"
            )
        if key not in self._arrays:
            self._arrays[key] = model.checkpoint.array(key)
        array = self._arrays[key]
        shape = variable.shape
        if array.dtype != variable.dtype.numpy or (shape is not None and array.shape != shape):
            raise ModelError(
                f"{model.where}: the variable {short(variable.name)} needs "
                f"{variable.dtype}{show_shape(shape)}, and the checkpoint has "
                f"{array.dtype}{show_shape(array.shape)} as {short(key)}; restore a checkpoint of "
                f"this model"
            )
        return ImportedValue(variable.name, variable.dtype, array=array)

    def _restored(self) -> dict[str, str]:
        """Return the checkpoint's keys by variable name, as the restore node assigns them.

        The node is evaluated once. Empty if the model has no such node.

        The map is stored.

        Raises:
            ModelError: If the nodes that restore variables are malformed.
            ShapeError: If shapes in these nodes do not fit an operator; likewise DTypeError for
                dtypes.
        """
        if self._keys is None:
            name = self.model.restore.rpartition(":")[0] or self.model.restore
            self._keys = {}
            if name in self.body.node_numbers:
                self._keys = self._run(self.body.node_numbers[name])
        return self._keys

    def _run(self, number: int) -> dict[str, str]:
        """Evaluate node ``number``, which restores, and map variable names to checkpoint keys.

        Raises:
            ModelError: If a node that restores is malformed, or a limit is exceeded.
            ShapeError: If shapes in such a node do not fit its operator; likewise DTypeError for
                dtypes.
        """
        limit = MAX_BUILT_NODES + len(self.body.nodes)
        shared = ImportState(
            self.model.where,
            self.model.budget,
            self.library,
            NodeBudget(limit, limit, 0),
            self.value,
            inputs={
                k: lambda call, inputs: UnsupportedResult(call.name)
                for k, node in enumerate(self.body.nodes)
                if node.op == "Placeholder"
            },
        )
        evaluation = BodyEvaluation(shared, self.body)
        nodes = reachable_nodes(self.body, [number], {}, control=True)
        evaluation.compute(topological_order(self.body, [number], nodes, {}))
        return {v.name: v.key for v in shared.variables.values() if v.key is not None}
