"""Variables of a model: state of the graph, set by what the model runs, or constants."""

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
    written: set[str] | None = None
    """The names of the variables that are state; the others are constants. None: all are state."""

    def has(self, variable: Variable) -> bool:
        """Whether a variable has a value between runs.

        One that the checkpoint lacks has none, where only what runs write is state: a run writes
        it before it is read.
        """
        return self.written is None or self.restorer.key(variable) is not None

    def value(self, variable: Variable) -> Value:
        """The value of a variable when a run begins.

        State begins with the checkpoint's value where there is one, else unset.

        Raises: ModelError for a variable whose shape or name says nothing, that is too large, or
        that is a constant and has no value.
        """
        if self.written is not None and variable.name not in self.written:
            return self.restorer.value(variable)
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
