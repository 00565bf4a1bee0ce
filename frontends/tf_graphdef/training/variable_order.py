"""Evaluation of a training step with a defined order of variable reads and writes.

TensorFlow leaves open whether a node reads a variable before or after another node of the same run
writes it, unless edges order them. Here a node reads the value from the start of the run, or the
value after the writes that precede it by edges. So a training step computes all gradients from the
old values. Writes happen in the order in which evaluation reaches them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field

from passkit.frontends.tf_graphdef.evaluation import BodyEvaluation
from passkit.frontends.tf_graphdef.import_state import (
    assigned_values,
    current_value,
    reset_variables,
)
from passkit.frontends.tf_graphdef.imported_value import ImportedValue
from passkit.frontends.tf_graphdef.non_arrays import AnyValue, ModelVariable, VariableHandle
from passkit.frontends.variable_writes import latest_writes

PriorWrites = Mapping[ModelVariable, tuple[int, ImportedValue | None]]
"""For each variable, the number of the last preceding write, and the value written."""
_NOTHING: PriorWrites = {}


@define(eq=False)
class OrderedEvaluation(BodyEvaluation):
    """Evaluation of a model's own graph that tracks which writes precede each node."""

    _after: dict[int, PriorWrites] = field(factory=dict)
    """For each evaluated node, the writes that precede it, and its own."""
    _count: int = 0
    _writes: bool = field(init=False)
    """Whether any node writes a variable."""

    @_writes.default
    def _any_writes(self) -> bool:
        """Return whether any node of the body writes a variable."""
        return any(map(self.shared.library.changes, self.body.nodes))

    def node(self, number: int) -> Sequence[AnyValue]:
        """Return the results of node ``number``, which reads variables after preceding writes.

        The variables' values at the end of the evaluation so far are unchanged unless the node
        writes.

        Raises:
            ModelError: If the node is malformed, or refused, or a limit is exceeded.
            ShapeError: If shapes do not fit the operator; likewise DTypeError for dtypes.
        """
        if not self._writes:
            return super().node(number)
        prior_writes = self._merged(number)
        if self.shared.library.changes(self.body.nodes[number]):
            return self._writing(number, prior_writes)
        inputs = [self.result(ref) for ref in self.body.inputs[number] if ref[0] in self.values]
        handles = {x.variable: x.variable.value for x in inputs if isinstance(x, VariableHandle)}
        for variable in handles:
            variable.value = prior_writes[variable][1] if variable in prior_writes else None
        results = super().node(number)
        reset_variables(handles)
        self._after[number] = prior_writes
        return results

    def _writing(self, number: int, prior_writes: PriorWrites) -> Sequence[AnyValue]:
        """Return the results of node ``number``, which writes, from the variables' current values.

        Its writes are recorded after ``prior_writes``, in ``_after``.

        Raises:
            ModelError: If the node is malformed, or refused, or a limit is exceeded.
            ShapeError: If shapes do not fit the operator; likewise DTypeError for dtypes.
        """
        assigned_before = assigned_values(self.shared)
        results = super().node(number)
        writes = dict(prior_writes)
        for variable, value in assigned_values(self.shared).items():
            if value is not assigned_before.get(variable):
                self._count += 1
                writes[variable] = (self._count, value)
        self._after[number] = writes
        return results

    def _merged(self, number: int) -> PriorWrites:
        """Return the writes that precede node ``number``, those of all its predecessors.

        Predecessors that were not evaluated get an entry in `_after`: the writes before them.
        """
        pending = [number]
        while pending:
            current = pending[-1]
            if current in self._after or current in self.values:
                pending.pop()
                continue
            unvisited = [
                k
                for k in self.body.predecessors(current)
                if k not in self._after and k not in self.values
            ]
            if unvisited:
                pending += unvisited
                continue
            pending.pop()
            if current != number:
                self._after[current] = self._joined(current)
        return self._joined(number)

    def _joined(self, number: int) -> PriorWrites:
        """Return the last write of each variable that precedes node ``number`` directly.

        These are the writes that `_after` has for its predecessors.
        """
        return latest_writes(self._after.get(k, _NOTHING) for k in self.body.predecessors(number))

    def fetched(self, number: int, value: AnyValue) -> AnyValue:
        """Return the value of a fetched result of node ``number``; a ref variable is read.

        Fetching a variable gives its value at the end of the run, fetching an assignment the value
        assigned. Another ``value`` is returned unchanged.

        Raises:
            ModelError: If a variable that was not assigned has no initial value.
        """
        if not isinstance(value, VariableHandle) or not value.by_reference:
            return value
        variable, prior_writes = value.variable, self._after.get(number, _NOTHING)
        final_value = variable.value
        if variable in prior_writes:
            variable.value = prior_writes[variable][1]
        value_read = current_value(self.shared, variable)
        variable.value = final_value
        return value_read
