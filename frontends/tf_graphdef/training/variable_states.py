"""Representation of variables in the graph that is built: as state or as constants."""

from __future__ import annotations

from attrs import define

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.graph_body import is_name
from passkit.frontends.tf_graphdef.imported_value import ImportedValue, value_of
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.non_arrays import ModelVariable
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.variable_restorer import VariableRestorer
from passkit.graph.node import state
from passkit.values.size import numel


@define(eq=False)
class VariableStates:
    """Decides for each variable whether it is state or a constant."""

    model: Model
    restorer: VariableRestorer
    written: set[str] | None = None
    """Names of the variables that are state; the others are constants. None makes all state."""

    def has(self, variable: ModelVariable) -> bool:
        """Return whether a variable has a value between runs.

        If only written variables are state, one that the checkpoint lacks has none: a run writes it
        before it is read.

        Raises:
            ModelError: If the checkpoint is missing or damaged, or the nodes that restore it are
                malformed.
            ShapeError: If shapes in the nodes that restore variables do not fit an operator;
                likewise DTypeError for dtypes.
        """
        return self.written is None or self.restorer.key(variable) is not None

    def value(self, variable: ModelVariable) -> ImportedValue:
        """Return the value of a variable at the start of a run.

        State starts with the checkpoint's value if there is one, else it is unset.

        Raises:
            ModelError: If there is a checkpoint that lacks it or has it in another shape or dtype,
                or is damaged; if it is a constant without a checkpoint; if it is state and its name
                is no name of a node, or, without a checkpoint, its shape is unknown or exceeds the
                memory budget.
            ShapeError: If shapes in the nodes that restore variables do not fit an operator;
                likewise DTypeError for dtypes.
        """
        if self.written is not None and variable.name not in self.written:
            return self.restorer.value(variable)
        where = f"{self.model.where}: the variable {short(variable.name)}"
        if not is_name(variable.name):
            raise ModelError(
                f"{where} needs a name that consists of letters, digits and _ . / > - to be "
                f"trained; rename it in the program that wrote the model"
            )
        if self.model.checkpoint is not None:
            array = self.restorer.value(variable).array
            return value_of(state(variable.name, array))
        if variable.shape is None:
            raise ModelError(
                f"{where} needs a known shape to be trained, and its node has none; build the "
                f"variable with a shape of numbers"
            )
        count = numel(variable.shape)
        assert isinstance(count, int)
        self.model.budget.take(count * variable.dtype.nbytes, where)
        return value_of(state(variable.name, (variable.shape, variable.dtype)))
