"""State of importing one model: limits, variables, unsupported operators, context importers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from attrs import define, field

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.function_library import FunctionLibrary
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.non_arrays import AnyValue, ModelVariable
from passkit.frontends.tf_graphdef.proto import Budget, short
from passkit.frontends.tf_graphdef.registry import OP_IMPORTERS
from passkit.graph.node import Entry

if TYPE_CHECKING:
    from passkit.frontends.tf_graphdef.evaluation import NodeContext
    from passkit.frontends.tf_graphdef.host_ops import HostOp

ContextImporter: TypeAlias = "Callable[[NodeContext, Sequence[AnyValue]], Sequence[AnyValue]]"

CONTEXT_IMPORTERS: dict[str, ContextImporter] = {}
"""Importers of operators that work on more than arrays: control flow, variables, tensor lists."""

TRAINING_IMPORTERS: dict[str, ContextImporter] = {}
"""Further importers for models that are trained: random draws and updates of variables."""

UNIQUE_IMPORTERS: dict[str, ContextImporter] = {}
"""Importers of operators that read results of `Unique`, which has a run-time number of rows."""


def context_importer(
    *names: str, training: bool = False
) -> Callable[[ContextImporter], ContextImporter]:
    """Return a decorator that registers an importer of TensorFlow operators.

    The importer takes a `NodeContext` and the node's inputs of any kind, and returns its results.

    The function is returned unchanged; one registered before under a name is replaced.

    Args:
        names: TensorFlow operators.
        training: Whether the importer belongs to `TRAINING_IMPORTERS` instead of
            `CONTEXT_IMPORTERS`.
    """

    def register(function: ContextImporter) -> ContextImporter:
        (TRAINING_IMPORTERS if training else CONTEXT_IMPORTERS).update(
            dict.fromkeys(names, function)
        )
        return function

    return register


def unique_importer(*names: str) -> Callable[[ContextImporter], ContextImporter]:
    """Return a decorator that registers an importer in `UNIQUE_IMPORTERS`.

    ``names`` are TensorFlow operators. The importer is returned unchanged; one registered before
    under a name is replaced.
    """

    def register(function: ContextImporter) -> ContextImporter:
        UNIQUE_IMPORTERS.update(dict.fromkeys(names, function))
        return function

    return register


MAX_CALL_DEPTH = 64
"""Maximal nesting of function calls."""

MAX_BUILT_NODES = 30_000
"""Maximal number of nodes that calls and unrolled loops of a model add to those in the file."""

MAX_UNROLLED_NODES = 15_000
"""Maximal number of nodes of an unrolled loop; a longer one iterates at run time."""


@define(eq=False)
class NodeBudget:
    """Remaining number of nodes to build, and the maximal number of unrolled iterations."""

    left: int
    limit: int
    max_iterations: int

    def take(self, where: str) -> None:
        """Subtract one node from the budget; ``where`` names the node in the error.

        ``left`` decreases in place, also below 0.

        Raises:
            ModelError: If no node is left.
        """
        self.left -= 1
        if self.left < 0:
            raise ModelError(
                f"{where} exceeds the limit of {self.limit:,} nodes, to which functions and loops "
                f"of this model were expanded; max_rounds= limits unrolling, or load fewer outputs"
            )


@define(eq=False)
class ImportState:
    """State of importing one model, shared by the evaluations of all its bodies."""

    where: str
    budget: Budget
    library: FunctionLibrary
    node_budget: NodeBudget
    variable_value: Callable[[ModelVariable], ImportedValue]
    """Returns the initial value of a variable."""
    host_ops: Mapping[str, HostOp] = field(factory=dict)
    inputs: Mapping[int, Callable[[ImportCall, Sequence[AnyValue]], AnyValue]] = field(factory=dict)
    """Factories of the input nodes of the model's own graph, by node number."""
    variables: dict[str, ModelVariable] = field(factory=dict)
    unsupported: dict[str, dict[tuple[str, str], str]] = field(factory=dict)
    """Unsupported operators, each with the nodes that have it."""
    context_importers: Mapping[str, ContextImporter] = field(factory=lambda: CONTEXT_IMPORTERS)
    """Importers of operators that work on more than arrays."""
    run_number: Entry | None = None
    """In a model that is trained, the entry that makes random draws differ between runs."""
    is_set: Callable[[ModelVariable], ImportedValue] | None = None
    """In a session, returns whether a variable had a value when the run began."""

    def refuse_unsupported(self) -> None:
        """Raise ModelError if the import has met an operator without an importer.

        Raises:
            ModelError: The message lists at most 50 operators, each with at most three nodes.
        """
        if not self.unsupported:
            return
        shown = []
        for op, nodes in sorted(self.unsupported.items())[:50]:
            names = list(nodes.values())
            shown_names = ", ".join(short(n) for n in names[:3]) + (", …" if len(names) > 3 else "")
            shown.append(f"{short(op)[1:-1]} × {len(names)} ({shown_names})")
        count = len(self.unsupported)
        more = f"; and {count - 50} more operators" if count > 50 else ""
        total = sum(map(len, self.unsupported.values()))
        raise ModelError(
            f"{self.where} has {total} node(s) of {count} operator(s) that are not supported: "
            f"{'; '.join(shown)}{more}. "
            f"Give NumPy functions for them by allow_host_ops=, or request results before them by "
            f"outputs=; docs/tf_ops.md lists the {len(OP_IMPORTERS)} supported operators"
        ) from None


def current_value(shared: ImportState, variable: ModelVariable) -> ImportedValue:
    """Return the value last assigned to a variable during the evaluation, else its initial one.

    ``shared`` is the import state, which reads initial values.

    Raises:
        ModelError: If it was not assigned, and has no initial value, or one of another shape or
            dtype, or that cannot be read.
    """
    return initial_value(shared, variable) if variable.value is None else variable.value


def initial_value(shared: ImportState, variable: ModelVariable) -> ImportedValue:
    """Return the value of a variable before any assignment.

    It is computed once, by the import state ``shared``, and stored in the variable as ``saved``.

    Raises:
        ModelError: If the variable has no value, one of another shape or dtype, or one that cannot
            be read.
    """
    if variable.saved is None:
        variable.saved = shared.variable_value(variable)
    return variable.saved


def assigned_values(shared: ImportState) -> dict[ModelVariable, ImportedValue | None]:
    """Map each variable of the import state ``shared`` to the value assigned to it so far.

    None stands for a variable to which nothing was assigned.
    """
    return {v: v.value for v in shared.variables.values()}


def reset_variables(values: Mapping[ModelVariable, ImportedValue | None]) -> None:
    """Set the assigned value of each variable, in place, to that of ``values``.

    None makes it unassigned.
    """
    for variable, value in values.items():
        variable.value = value
