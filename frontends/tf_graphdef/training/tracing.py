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
    library: Library = field(init=False)

    @library.default
    def _changing(self) -> Library:
        functions = self.model.graph.library.function
        changing = ASSIGNS | APPLIES | SPARSE_APPLIES | SCATTERS
        return Library(functions, self.model.where, self.model.budget, changing)

    def trace(
        self,
        wanted: Sequence[tuple[str, Ref]],
        targets: Sequence[int],
        fed: Mapping[int, Value] | None = None,
    ) -> Traced:
        """The run that gives ``wanted`` results and runs ``targets`` for what they do.

        ``fed`` nodes have values and are not computed. Raises: ModelError as `load`.
        """
        model, body = self.model, self.body
        most = MOST_CALLED + len(body.nodes)
        plain = Library(model.graph.library.function, model.where, model.budget)
        states = States(model, Restorer(model, body, plain))
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
        scope = Run(program, body, names=names_behind(body, wanted))
        scope.values.update((k, (value,)) for k, value in (fed or {}).items())
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
            if variable.value is not None:
                if variable.saved is None:
                    variable.saved = states.value(variable)
                updates.append((variable.saved.entry.node, variable.value.entry))
        return Traced(results, [(v, e) for v, e in updates if e is not v.entries[0]])
