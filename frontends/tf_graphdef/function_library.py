"""Functions of a model by name; each is indexed when it is first called."""

from __future__ import annotations

from typing import Any

from passkit.errors import ModelError, nearest
from passkit.frontends.tf_graphdef.graph_body import GraphBody, read_function_body
from passkit.frontends.tf_graphdef.proto import Budget, short

ASSIGNS = frozenset(
    {
        "Assign",
        "AssignAdd",
        "AssignAddVariableOp",
        "AssignSub",
        "AssignSubVariableOp",
        "AssignVariableOp",
    }
)
"""Operators that assign to a variable.

They run even where only control dependencies lead to them.
"""

APPLIES = frozenset(
    f"{kind}Apply{rule}"
    for kind in ("", "Resource")
    for rule in (
        "GradientDescent",
        "Momentum",
        "Adagrad",
        "AdagradV2",
        "RMSProp",
        "CenteredRMSProp",
        "Adam",
        "AdaMax",
        "Adadelta",
        "Ftrl",
        "FtrlV2",
    )
) | {"ResourceApplyKerasMomentum"}
"""Optimizer operators, which update a variable by its gradient."""

SPARSE_APPLIES = frozenset(
    f"{kind}SparseApply{rule}"
    for kind in ("", "Resource")
    for rule in (
        "Momentum",
        "Adagrad",
        "AdagradV2",
        "RMSProp",
        "CenteredRMSProp",
        "Adadelta",
        "Ftrl",
        "FtrlV2",
    )
) | {"ResourceSparseApplyKerasMomentum"}
"""Optimizer operators that update only the rows of a variable that indices select."""

SCATTERS = frozenset(
    f"{kind}Scatter{how}" for kind in ("", "Resource") for how in ("Add", "Sub", "Update")
)
"""Operators that write to or add to rows of a variable."""

_ENTRY_NBYTES = 300


class FunctionLibrary:
    """The functions of a model.

    Args:
        functions: FunctionDefs.
        where: Name of the model in errors.
        budget: Memory that indexing may take.
        changing: Operators that change variables.

    Raises:
        ModelError: If two functions have one name.
    """

    def __init__(
        self,
        functions: Any,
        where: str,
        budget: Budget,
        changing: frozenset[str] = ASSIGNS,
    ) -> None:
        """Index the functions by name, and find those that change variables.

        Args:
            functions: FunctionDefs.
            where: Name of the model in errors.
            budget: Memory that indexing may take.
            changing: Operators that change variables.

        Raises:
            ModelError: If two functions have one name, or the budget is exceeded.
        """
        self.where, self.budget, self.changing = where, budget, changing
        budget.take(_ENTRY_NBYTES * len(functions), f"the {len(functions):,} functions of {where}")
        self.functions: dict[str, Any] = {}
        for function in functions:
            name = function.signature.name
            if name in self.functions:
                raise ModelError(
                    f"{where} has two functions called {short(name)}, and names of functions must "
                    f"be unique; export the model again"
                )
            self.functions[name] = function
        self._bodies: dict[str, GraphBody] = {}
        self._effects = self._with_effects()

    def __contains__(self, name: str) -> bool:
        """Return whether the model has a function of this name."""
        return name in self.functions

    def body(self, name: str) -> GraphBody:
        """Return the indexed nodes of a function, which is indexed on first use.

        Raises:
            ModelError: If the model has no function of this name, or the function is malformed or
                exceeds the memory budget.
        """
        if name not in self._bodies:
            if name not in self.functions:
                raise ModelError(
                    f"{self.where} has no function {short(name)}; "
                    f"{nearest(name[:200], [n[:200] for n in list(self.functions)[:1000]])}"
                )
            self._bodies[name] = read_function_body(self.functions[name], self.budget)
        return self._bodies[name]

    def changes(self, node: Any) -> bool:
        """Return whether a node changes a variable, itself or in a function that it calls.

        Its operator is one of the library's ``changing``, or it names a function that has such a
        node, also through calls.
        """
        if node.op in self.changing:
            return True
        return bool(self._effects) and self._calls(node, self._effects)

    def _calls(self, node: Any, names: set[str]) -> bool:
        """Return whether ``node`` calls a function of ``names``, as operator or in an attribute."""
        if node.op in names:
            return True
        for value in node.attr.values():
            if value.WhichOneof("value") == "func" and value.func.name in names:
                return True
            if value.WhichOneof("value") == "list" and any(
                f.name in names for f in value.list.func
            ):
                return True
        return False

    def _with_effects(self) -> set[str]:
        """Return the names of the functions that change variables, directly or through calls."""
        changing_functions = {
            name
            for name, function in self.functions.items()
            if any(node.op in self.changing for node in function.node_def)
        }
        users: dict[str, set[str]] = {}
        if changing_functions:
            for name, function in self.functions.items():
                for node in function.node_def:
                    for callee in _called(node):
                        users.setdefault(callee, set()).add(name)
        pending = list(changing_functions)
        while pending:
            new_callers = users.get(pending.pop(), set()) - changing_functions
            changing_functions |= new_callers
            pending += new_callers
        return changing_functions


def _called(node: Any) -> list[str]:
    """Return the names of the functions that a node may call: its operator and those in attributes.

    The operator is included whether or not it names a function.
    """
    names = [node.op]
    for value in node.attr.values():
        kind = value.WhichOneof("value")
        if kind == "func":
            names.append(value.func.name)
        elif kind == "list":
            names += [f.name for f in value.list.func]
    return names
