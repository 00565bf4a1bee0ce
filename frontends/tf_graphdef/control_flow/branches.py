"""Branches: the taken one if the condition is known, else all, with a selection of each result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.evaluation import NodeContext, UniformResults
from passkit.frontends.tf_graphdef.import_state import (
    assigned_values,
    context_importer,
    initial_value,
    reset_variables,
)
from passkit.frontends.tf_graphdef.imported_value import ImportedValue, value_of
from passkit.frontends.tf_graphdef.non_arrays import (
    AnyValue,
    DeadValue,
    ModelVariable,
    NonArray,
    TensorList,
    UnsupportedResult,
    VariableHandle,
)
from passkit.frontends.tf_graphdef.proto import short
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.ops.helpers import make


@context_importer("If", "StatelessIf")
def _if(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import If: the taken branch if the condition is known, else both and a selection.

    Args:
        ctx: The node.
        inputs: The condition, then the arguments of both branches.

    Returns:
        The results of the branch. They are unsupported or dead if the condition is.

    Raises:
        ModelError: If an attribute is missing, the condition is an array of bools or no array, a
            branch takes another number of arguments, or, for an unknown condition, the branches'
            results differ in number, dtype or shape.
        ShapeError: If shapes in a branch do not fit an operator; likewise DTypeError for dtypes.
    """
    ctx.check_count(inputs, 1, None)
    branches = [ctx.call.attr(f"{which}_branch", "func") for which in ("then", "else")]
    condition = inputs[0]
    if isinstance(condition, NonArray):
        return _unavailable_condition(ctx, condition, branches, inputs[1:])
    truth = known_condition(ctx, condition)
    if truth is not None:
        return _run_branch(ctx, branches[0 if truth else 1], inputs[1:])
    condition_entry = as_condition(condition)
    return _select_branches(ctx, branches, [condition_entry], inputs[1:])


@context_importer("Case", "StatelessCase")
def _case(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import a branch by index; an index out of range takes the last branch.

    Args:
        ctx: The node; its attribute ``branches`` lists functions.
        inputs: The index, an integer, then the arguments of all branches.

    Returns:
        The results of the branch. They are unsupported or dead if the index is.

    Raises:
        ModelError: If there are no branches, a known index is not one integer or the index is no
            array, a branch takes another number of arguments, or, for an unknown index, the
            branches' results differ in number, dtype or shape, or the memory budget of the import
            is exceeded.
        ShapeError: If shapes in a branch do not fit an operator; likewise DTypeError for dtypes.
    """
    ctx.check_count(inputs, 1, None)
    branches = list(ctx.call.attr("branches", "list").func)
    if not branches:
        raise ModelError(f"{ctx.where} needs at least one branch, and has none")
    index = inputs[0]
    if isinstance(index, NonArray):
        return _unavailable_condition(ctx, index, branches, inputs[1:])
    if index.array is not None and index.array.dtype != object:
        position = ctx.call.integer(index, "branch index")
        return _run_branch(
            ctx, branches[position if 0 <= position < len(branches) else -1], inputs[1:]
        )
    ctx.shared.budget.take(1000 * len(branches), ctx.where)
    conditions = [
        make("equal", index.entry, _number_like(index.entry, k)) for k in range(len(branches) - 1)
    ]
    return _select_branches(ctx, branches, conditions, inputs[1:])


def _number_like(entry: Entry, number: int) -> Any:
    """Return ``number`` as a NumPy scalar in the dtype of an entry."""
    assert entry.dtype is not None
    return entry.dtype.numpy.type(number)


def known_condition(ctx: NodeContext, condition: ImportedValue) -> bool | None:
    """Return the truth of a condition, or None if it is known only at run time.

    A known number is true unless zero, a known array of numbers is true unless empty. ``ctx`` names
    the node in errors.

    Raises:
        ModelError: If it is an array of bools, with at least one axis.
    """
    shape = condition.shape
    if shape is not None and shape != () and condition.dtype.kind == "b":
        raise ModelError(
            f"{ctx.where} needs one value as its condition, got {condition.dtype}"
            f"{show_shape(shape)} from {short(condition.name)}"
        )
    if condition.array is None or condition.array.dtype == object:
        return None
    array = condition.array
    return bool(array.size) if array.ndim else bool(array)


def as_condition(condition: ImportedValue) -> Entry:
    """Return a condition as a boolean entry; bools stay, numbers are true unless zero, elementwise.

    Raises:
        ModelError: If the condition has too many symbolic sizes to be computed at run time.
    """
    entry = condition.entry
    if condition.dtype.kind == "b":
        return entry
    result: Entry = make("not_equal", entry, _number_like(entry, 0))
    return result


def _run_branch(ctx: NodeContext, branch: Any, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Evaluate one branch, a NameAttrList of function and attributes, and return its results.

    ``inputs`` are the arguments of the function; its nodes get the name of the node ``ctx`` as
    prefix.

    Raises:
        ModelError: If the function does not exist, takes another number of arguments, is recursive,
            or contains a malformed node.
        ShapeError: If shapes in a branch do not fit an operator; likewise DTypeError for dtypes.
    """
    return ctx.call_function(branch.name, branch.attr, inputs, ctx.call.name)


def _unavailable_condition(
    ctx: NodeContext, condition: NonArray, branches: Sequence[Any], inputs: Sequence[AnyValue]
) -> Sequence[AnyValue]:
    """Return the results of a node whose condition is not an array: unsupported or dead like it.

    If the condition is unsupported, all branches are evaluated with ``inputs`` to find further
    unsupported operators.

    Args:
        ctx: The node.
        condition: Its condition or index.
        branches: Its functions, each a NameAttrList.
        inputs: Their arguments.

    Raises:
        ModelError: If the condition is neither unsupported nor dead, such as a variable, or a
            branch does not exist, takes another number of arguments, is recursive, or contains a
            malformed node.
        ShapeError: If shapes in a branch do not fit an operator; likewise DTypeError for dtypes.
    """
    if isinstance(condition, UnsupportedResult):
        for branch in branches:
            _run_branch(ctx, branch, inputs)
        return UniformResults(UnsupportedResult(ctx.call.name))
    if isinstance(condition, DeadValue):
        return UniformResults(DeadValue(ctx.call.name))
    raise ModelError(
        f"{ctx.where} needs an array as its condition, got "
        f"{short(condition.name)}, {condition.description}"
    )


def _select_branches(
    ctx: NodeContext,
    branches: Sequence[Any],
    conditions: Sequence[Entry],
    inputs: Sequence[AnyValue],
) -> Sequence[AnyValue]:
    """Evaluate all branches and select each result at run time; the last branch is the default.

    The values that branches assign to variables are selected likewise, and assigned in the import
    state.

    Args:
        ctx: The node.
        branches: Functions with their attributes.
        conditions: Bool scalar of each branch but the last; the first that is true decides.
        inputs: Arguments of the branches.

    Returns:
        The selected results.

    Raises:
        ModelError: If the branches have different numbers, dtypes or shapes of results, or assign
            values of different dtypes or shapes to a variable.
        ShapeError: If shapes in a branch do not fit an operator; likewise DTypeError for dtypes.
    """
    assigned_before = assigned_values(ctx.shared)
    results_of_branches, assigned_after = [], []
    for k, branch in enumerate(branches):
        reset_variables(assigned_before)
        prefix = f"{ctx.call.name}/{k}"
        results_of_branches.append(
            ctx.call_function(branch.name, branch.attr, inputs, prefix, keep_names=False)
        )
        assigned_after.append(assigned_values(ctx.shared))
    results, values = results_of_branches[-1], assigned_after[-1]
    for condition, branch_results, branch_values in zip(
        reversed(conditions),
        reversed(results_of_branches[:-1]),
        reversed(assigned_after[:-1]),
        strict=True,
    ):
        if len(branch_results) != len(results):
            raise ModelError(
                f"{ctx.where} needs branches with the same number of results, got "
                f"{len(branch_results)} and {len(results)}"
            )
        results = [
            select(ctx, condition, a, b) for a, b in zip(branch_results, results, strict=True)
        ]
        values = _join_variables(ctx, condition, branch_values, values)
    reset_variables(values)
    return results


def _join_variables(
    ctx: NodeContext,
    condition: Entry,
    a: Mapping[ModelVariable, ImportedValue | None],
    b: Mapping[ModelVariable, ImportedValue | None],
) -> dict[ModelVariable, ImportedValue | None]:
    """Return the values of variables after two branches, selected where they differ.

    Args:
        ctx: The node.
        condition: Bool scalar, true for the first branch.
        a: Values after the first branch; None for a variable that was not assigned.
        b: Values after the second branch.

    Returns:
        The value of each variable; None if no branch assigned it, or its selection is unsupported.

    Raises:
        ModelError: If the values of a variable differ in dtype or shape, or one that was not
            assigned has no initial value.
    """
    joined: dict[ModelVariable, ImportedValue | None] = {}
    for variable in {**a, **b}:
        first, second = a.get(variable), b.get(variable)
        if first is second:
            joined[variable] = first
        else:
            first_value, second_value = (
                x or initial_value(ctx.shared, variable) for x in (first, second)
            )
            chosen = select(ctx, condition, first_value, second_value)
            joined[variable] = chosen if isinstance(chosen, ImportedValue) else None
    return joined


def select(ctx: NodeContext, condition: Entry, a: AnyValue, b: AnyValue) -> AnyValue:
    """Return ``a`` where the condition is true at run time, else ``b``.

    Tensor lists of equal length whose same items are set are selected item by item; two handles of
    one variable are that handle. The result is unsupported if ``a`` or ``b`` is. Shapes are
    compared only where both ranks are known. ``ctx`` is the node, for names and errors.

    Raises:
        ModelError: If they are of different kinds, other non-arrays, or arrays of different dtypes
            or shapes.
    """
    if isinstance(a, UnsupportedResult) or isinstance(b, UnsupportedResult):
        return UnsupportedResult(ctx.call.name)
    if isinstance(a, TensorList) and isinstance(b, TensorList) and len(a.items) == len(b.items):
        pairs = zip(a.items, b.items, strict=True)
        if all((x is None) == (y is None) for x, y in pairs):
            items = [
                None if x is None or y is None else select(ctx, condition, x, y)
                for x, y in zip(a.items, b.items, strict=True)
            ]
            return TensorList(
                a.name, tuple(i for i in items if not isinstance(i, NonArray)), a.dtype, a.shape
            )
    if isinstance(a, VariableHandle) and isinstance(b, VariableHandle) and a.variable is b.variable:
        return a
    if isinstance(a, NonArray) or isinstance(b, NonArray):
        kinds = " and ".join(
            x.description if isinstance(x, NonArray) else "an array" for x in (a, b)
        )
        raise ModelError(
            f"{ctx.where} selects a branch at run time and needs arrays from both, got {kinds}; "
            f"make its condition a constant of the model"
        )
    if a is b:
        return a
    x, y = a.entry, b.entry
    if x.dtype != y.dtype or (x.shape is not None and y.shape is not None and x.shape != y.shape):
        raise ModelError(
            f"{ctx.where} selects a branch at run time and needs results of one dtype and shape, "
            f"got {x.dtype}{show_shape(x.shape)} and {y.dtype}{show_shape(y.shape)}; make its "
            f"condition a constant of the model"
        )
    selected: Entry = make("where", condition, x, y)
    return value_of(selected)
