"""A pure graph of one run: results, and updates of the variables that it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from passkit.errors import PasskitError
from passkit.frontends.tf_graphdef.body import Body, Ref
from passkit.frontends.tf_graphdef.inputs import Maker
from passkit.frontends.tf_graphdef.library import (
    APPLIES,
    ASSIGNS,
    SCATTERS,
    SPARSE_APPLIES,
    Library,
)
from passkit.frontends.tf_graphdef.missing import refuse_missing
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.opaque import Anything, Variable
from passkit.frontends.tf_graphdef.restoring import Restorer
from passkit.frontends.tf_graphdef.scope import (
    MOST_CALLED,
    STRUCTURE,
    TRAINING,
    Program,
    Work,
    names_behind,
    original,
)
from passkit.frontends.tf_graphdef.training.running import Run
from passkit.frontends.tf_graphdef.training.variables import States
from passkit.frontends.tf_graphdef.value import Value
from passkit.graph.node import Entry, Node


@frozen
class Traced:
    """What a run computes: its results, and what it leaves in variables."""

    results: Sequence[Anything]
    updates: Sequence[tuple[Node, Entry]]


@frozen(eq=False)
class Trainer:
    """A model that is trained, and how its runs are traced."""

    model: Model
    body: Body
    run_number: Entry
    """An input that counts runs, which draws are made from."""
    inputs: Mapping[int, Maker]
    """The nodes that are inputs, and what makes them."""
    max_rounds: int = 1000
    hosts: Mapping[str, Any] = field(factory=dict)
    is_set: Callable[[Variable], Value] | None = None
    all_state: bool = True
    """Whether every variable is state; else those that a run writes, and the others constants."""
    library: Library = field(init=False)
    restorer: Restorer = field(init=False)

    @library.default
    def _changing(self) -> Library:
        functions = self.model.graph.library.function
        changing = ASSIGNS | APPLIES | SPARSE_APPLIES | SCATTERS
        return Library(functions, self.model.where, self.model.budget, changing)

    @restorer.default
    def _reading_the_checkpoint(self) -> Restorer:
        model = self.model
        plain = Library(model.graph.library.function, model.where, model.budget)
        return Restorer(model, self.body, plain)

    def trace(
        self,
        wanted: Sequence[tuple[str, Ref]],
        targets: Sequence[int],
        fed: Mapping[int, Sequence[Anything]] | None = None,
    ) -> Traced:
        """The run that gives ``wanted`` results and runs ``targets`` for what they do.

        ``fed`` nodes have values and are not computed. Which variables a run writes is known once
        it is traced: it is traced again while one that was taken for a constant is written.

        Raises: ModelError as `load`.
        """
        written: set[str] | None = None if self.all_state else set()
        while True:
            states = States(self.model, self.restorer, written)
            traced = self._traced(states, wanted, targets, fed or {})
            names = {v.name for v, _ in traced.updates}
            if written is None or names <= written:
                return traced
            written |= names

    def _traced(
        self,
        states: States,
        wanted: Sequence[tuple[str, Ref]],
        targets: Sequence[int],
        fed: Mapping[int, Sequence[Anything]],
    ) -> Traced:
        model, body = self.model, self.body
        most = MOST_CALLED + len(body.nodes)
        program = Program(
            model.where,
            model.budget,
            self.library,
            Work(most, most, self.max_rounds),
            states.value,
            self.hosts,
            self.inputs,
            structures={**STRUCTURE, **TRAINING},
            run_number=self.run_number,
            is_set=self.is_set,
        )
        for name, variable in model.bound.items():
            program.variables[f"{name}:bound"] = variable  # no variable's name has a colon
            variable.value = variable.saved = None
        scope = Run(program, body, names=names_behind(body, wanted))
        scope.values.update(fed)
        refs = [ref for _, ref in wanted]
        try:
            found = scope.run([*refs, *((k, 0) for k in targets)], targets=len(targets))
        except PasskitError:
            refuse_missing(program)
            raise
        refuse_missing(program)
        results = [scope.fetched(k, x) for (k, _), x in zip(refs, found, strict=False)]
        updates = []
        for variable in program.variables.values():
            if variable.value is not None and states.has(variable):
                before = original(program, variable).entry
                if variable.value.entry is not before:
                    updates.append((before.node, variable.value.entry))
        return Traced(results, updates)
