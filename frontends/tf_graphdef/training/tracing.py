"""Tracing of one run of a model to a pure graph: results and variable updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from passkit.errors import PasskitError
from passkit.frontends.tf_graphdef.evaluation import output_names
from passkit.frontends.tf_graphdef.function_library import (
    APPLIES,
    ASSIGNS,
    SCATTERS,
    SPARSE_APPLIES,
    FunctionLibrary,
)
from passkit.frontends.tf_graphdef.graph_body import GraphBody, ResultRef
from passkit.frontends.tf_graphdef.import_state import (
    CONTEXT_IMPORTERS,
    MAX_BUILT_NODES,
    TRAINING_IMPORTERS,
    ImportState,
    NodeBudget,
    initial_value,
)
from passkit.frontends.tf_graphdef.imported_value import ImportedValue
from passkit.frontends.tf_graphdef.inputs import InputFactory
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.non_arrays import AnyValue, ModelVariable
from passkit.frontends.tf_graphdef.training.variable_order import OrderedEvaluation
from passkit.frontends.tf_graphdef.training.variable_states import VariableStates
from passkit.frontends.tf_graphdef.variable_restorer import VariableRestorer
from passkit.graph.node import Entry, Node


@frozen
class TrainingTrace:
    """Results of a run, and its updates of variables."""

    results: Sequence[AnyValue]
    """Values of the requested outputs, in their order."""
    updates: Sequence[tuple[Node, Entry]]
    """State nodes of the variables that change, each with its value after the run."""


@frozen(eq=False)
class Trainer:
    """Traces runs of a model that is trained."""

    model: Model
    body: GraphBody
    run_number: Entry
    """Input or state that counts runs, from which random draws are derived."""
    inputs: Mapping[int, InputFactory]
    """Factories of the input nodes."""
    max_rounds: int = 1000
    host_ops: Mapping[str, Any] = field(factory=dict)
    is_set: Callable[[ModelVariable], ImportedValue] | None = None
    all_state: bool = True
    """Whether every variable is state.

    Otherwise those that a run writes are, others are constants.
    """
    library: FunctionLibrary = field(init=False)
    restorer: VariableRestorer = field(init=False)

    @library.default
    def _changing(self) -> FunctionLibrary:
        """Return the model's functions, with the operators that change variables marked as such.

        Raises:
            ModelError: If two functions have one name, or the memory budget is exceeded.
        """
        functions = self.model.graph.library.function
        changing = ASSIGNS | APPLIES | SPARSE_APPLIES | SCATTERS
        return FunctionLibrary(functions, self.model.where, self.model.budget, changing)

    @restorer.default
    def _reading_the_checkpoint(self) -> VariableRestorer:
        """Return the reader of the checkpoint, for which only assignments change variables.

        Raises:
            ModelError: If two functions have one name, or the memory budget is exceeded.
        """
        model = self.model
        plain = FunctionLibrary(model.graph.library.function, model.where, model.budget)
        return VariableRestorer(model, self.body, plain)

    def trace(
        self,
        outputs: Sequence[tuple[str, ResultRef]],
        targets: Sequence[int],
        fed: Mapping[int, Sequence[AnyValue]] | None = None,
    ) -> TrainingTrace:
        """Trace the run that computes ``outputs`` and runs ``targets`` for their side effects.

        Which variables a run writes is known only after tracing. So a run is traced again while a
        variable that was taken as constant is written.

        Args:
            outputs: Name and node result of each output.
            targets: Numbers of the nodes to run.
            fed: Results of nodes that are fed instead of computed, by node number; None for none.

        Raises:
            ModelError: If nodes are malformed or not supported, or a limit is exceeded.
            ShapeError: If shapes do not fit an operator; likewise DTypeError for dtypes.
            FeedError: If a placeholder that the run needs is not fed, for a session's factories.
        """
        written: set[str] | None = None if self.all_state else set()
        while True:
            states = VariableStates(self.model, self.restorer, written)
            traced = self._traced(states, outputs, targets, fed or {})
            names = {v.name for v, _ in traced.updates}
            if written is None or names <= written:
                return traced
            written |= names

    def _traced(
        self,
        states: VariableStates,
        outputs: Sequence[tuple[str, ResultRef]],
        targets: Sequence[int],
        fed: Mapping[int, Sequence[AnyValue]],
    ) -> TrainingTrace:
        """Trace a run once, with the variables represented as ``states`` decides; see `trace`.

        The values assigned to and saved in the model's bound variables are reset, in place.

        Args:
            states: Decides which variables are state, and gives their values.
            outputs: Name and node result of each output.
            targets: Numbers of the nodes to run.
            fed: Results of nodes that are fed instead of computed, by node number.

        Raises:
            ModelError: If operators are unsupported, which precedes other errors, nodes are
                malformed, or a limit is exceeded.
            ShapeError: If shapes do not fit an operator; likewise DTypeError for dtypes.
            FeedError: If a placeholder that the run needs is not fed, for a session's factories.
        """
        model, body = self.model, self.body
        limit = MAX_BUILT_NODES + len(body.nodes)
        shared = ImportState(
            model.where,
            model.budget,
            self.library,
            NodeBudget(limit, limit, self.max_rounds),
            states.value,
            self.host_ops,
            self.inputs,
            context_importers={**CONTEXT_IMPORTERS, **TRAINING_IMPORTERS},
            run_number=self.run_number,
            is_set=self.is_set,
        )
        for name, variable in model.bound.items():
            shared.variables[f"{name}:bound"] = variable  # no variable's name has a colon
            variable.value = variable.saved = None
        evaluation = OrderedEvaluation(shared, body, names=output_names(body, outputs))
        evaluation.values.update(fed)
        refs = [ref for _, ref in outputs]
        try:
            values = evaluation.run([*refs, *((k, 0) for k in targets)], targets=len(targets))
        except PasskitError:
            shared.refuse_unsupported()
            raise
        shared.refuse_unsupported()
        results = [evaluation.fetched(k, x) for (k, _), x in zip(refs, values, strict=False)]
        updates = []
        for variable in shared.variables.values():
            if variable.value is not None and states.has(variable):
                state_entry = initial_value(shared, variable).entry
                if variable.value.entry is not state_entry:
                    updates.append((state_entry.node, variable.value.entry))
        return TrainingTrace(results, updates)
