"""A run of a model that is trained: what nodes read of variables, and what they leave in them.

TensorFlow leaves open whether a node reads a variable before or after another node of the same run
writes it, unless edges say so. Here a node reads what the variable held when the run began, or
what it holds after those writes that the node comes after. So a step computes all gradients from
the old values. Writes happen in the order in which what is asked for comes to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field

from passkit.frontends.tf_graphdef.opaque import Anything, Handle, Variable
from passkit.frontends.tf_graphdef.scope import Scope, read, restore_values, variable_values
from passkit.frontends.tf_graphdef.value import Value
from passkit.frontends.writes import newest

Written = Mapping[Variable, tuple[int, Value | None]]
"""For a variable, the number of the last write that came before, and the value."""
_NOTHING: Written = {}


@define(eq=False)
class Run(Scope):
    """One run of a model's own graph."""

    _after: dict[int, Written] = field(factory=dict)
    """The writes that a node comes after, its own included."""
    _count: int = 0
    _writes: bool = field(init=False)
    """Whether any node writes a variable."""

    @_writes.default
    def _any_writes(self) -> bool:
        return any(map(self.program.library.changes, self.body.nodes))

    def node(self, number: int) -> Sequence[Anything]:
        """The results of one node, which reads variables as they are for it."""
        if not self._writes:
            return super().node(number)
        came = self._merged(number)
        if self.program.library.changes(self.body.nodes[number]):
            return self._writing(number, came)
        given = [self.result(ref) for ref in self.body.inputs[number] if ref[0] in self.values]
        handles = {x.variable: x.variable.value for x in given if isinstance(x, Handle)}
        for variable in handles:
            variable.value = came[variable][1] if variable in came else None
        results = super().node(number)
        restore_values(handles)
        self._after[number] = came
        return results

    def _writing(self, number: int, came: Written) -> Sequence[Anything]:
        """A node that writes: onto what variables hold by now."""
        before = variable_values(self.program)
        results = super().node(number)
        made = dict(came)
        for variable, value in variable_values(self.program).items():
            if value is not before.get(variable):
                self._count += 1
                made[variable] = (self._count, value)
        self._after[number] = made
        return results

    def _merged(self, number: int) -> Written:
        """The writes that come before a node; those in front of it have run by now."""
        pending = [number]
        while pending:
            at = pending[-1]
            if at in self._after or at in self.values:
                pending.pop()
                continue
            waits = [
                k for k in self.body.before(at) if k not in self._after and k not in self.values
            ]
            if waits:
                pending += waits
                continue
            pending.pop()
            if at != number:
                self._after[at] = self._joined(at)
        return self._joined(number)

    def _joined(self, number: int) -> Written:
        return newest(self._after.get(k, _NOTHING) for k in self.body.before(number))

    def fetched(self, number: int, given: Anything) -> Anything:
        """What a result is to whoever fetches it: a reference to a variable is read.

        A variable itself is what it holds when the run ends, an assignment what it left there.
        """
        if not isinstance(given, Handle) or not given.by_reference:
            return given
        variable, came = given.variable, self._after.get(number, _NOTHING)
        last = variable.value
        if variable in came:
            variable.value = came[variable][1]
        found = read(self.program, variable)
        variable.value = last
        return found
