"""Variables of a model that is trained: state of the graph, set by what the model runs."""

from __future__ import annotations

from attrs import define

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.body import is_name
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.opaque import Variable
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.restoring import Restorer
from passkit.frontends.tf_graphdef.value import Value, value_of
from passkit.graph.node import state
from passkit.values.size import numel


@define(eq=False)
class States:
    """What each variable is in the graph that is built."""

    model: Model
    restorer: Restorer

    def value(self, variable: Variable) -> Value:
        """A variable as state: of its checkpoint's value where there is one, else unset.

        Raises: ModelError for a variable whose shape or name says nothing, or that is too large.
        """
        where = f"{self.model.where}: the variable {short(variable.name)}"
        if not is_name(variable.name):
            raise ModelError(f"{where} needs a name of letters, digits and _ . / > - only")
        if self.model.checkpoint is not None:
            array = self.restorer.value(variable).known
            return value_of(state(variable.name, array))
        if variable.shape is None:
            raise ModelError(
                f"{where} needs a known shape to be trained, and its node gives none; build it "
                f"with a shape of numbers"
            )
        count = numel(variable.shape)
        assert isinstance(count, int)
        self.model.budget.take(count * variable.dtype.nbytes, where)
        return value_of(state(variable.name, (variable.shape, variable.dtype)))
