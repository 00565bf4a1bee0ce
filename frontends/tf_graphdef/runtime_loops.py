"""Loops that iterate at run time: their condition and body become graphs of their own.

The loop's functions are evaluated once more, on variables that stand for its values. Values that
the body returns unchanged are loop invariants and no state: known arrays stay known inside the
loop, others are inputs of the graphs. A tensor list becomes an array once an item written to it has
revealed the item shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import define, frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.evaluation import NodeContext, UniformResults
from passkit.frontends.tf_graphdef.import_state import assigned_values
from passkit.frontends.tf_graphdef.imported_value import ImportedValue, value_of
from passkit.frontends.tf_graphdef.non_arrays import (
    AnyValue,
    ModelVariable,
    NonArray,
    StackedList,
    TensorList,
    UnsupportedResult,
)
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.stacked_lists import as_stacked_list, unfilled_stack
from passkit.graph.graph import Graph
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node
from passkit.values.lazy import Lazy

if TYPE_CHECKING:
    from passkit.runtime import loop as runtime
else:
    runtime = Lazy("passkit.runtime.loop")


@frozen(eq=False)
class LoopFunctions:
    """A loop as functions of its values and the number of an iteration.

    ``condition`` says whether another iteration runs, ``body`` returns the next values, and
    ``invariants`` are the positions of values that the body returns unchanged.
    """

    condition: Callable[[Sequence[AnyValue], int], AnyValue]
    body: Callable[[Sequence[AnyValue], int], Sequence[AnyValue]]
    invariants: frozenset[int] = frozenset()


@define(eq=False)
class _LoopValue:
    """One value of a loop, with its counterpart in the graphs of the condition and the body."""

    outside: AnyValue
    """The initial value."""
    is_invariant: bool
    inner: AnyValue
    """The value that the graphs read: a variable, a list in one, or the value itself."""
    entry: Entry | None = None
    """Initial value, if it is an array or a list stored as an array."""


def build_runtime_loop(
    ctx: NodeContext, loop: LoopFunctions, inputs: Sequence[AnyValue]
) -> Sequence[AnyValue]:
    """Build a `while_loop` node and return the values after the loop, in the order of ``inputs``.

    Without a value that changes, no node is built and the inputs are returned.

    If an operator inside is unsupported, so are the results, for every index.

    Args:
        ctx: The node of the loop.
        loop: Its condition and body.
        inputs: Initial values.

    Raises:
        ModelError: If the condition or a value is no array, the body returns another number of
            values, a value changes its dtype or shape, the loop assigns to a variable, or the
            graphs read values from outside the loop.
        ShapeError: If shapes in the loop do not fit an operator; likewise DTypeError for dtypes.
    """
    assigned_before = assigned_values(ctx.shared)
    loop_values = [
        _make_loop_value(ctx, x, k in loop.invariants, None) for k, x in enumerate(inputs)
    ]
    unsupported = _run_trial_iteration(ctx, loop, loop_values)
    if unsupported is not None:
        return unsupported
    item_shapes = [
        p.inner.item_shapes
        for p in loop_values
        if isinstance(p.inner, StackedList) and not p.is_invariant
    ]
    shapes = iter([t[-1] if t else None for t in item_shapes])
    loop_values = [
        _make_loop_value(
            ctx,
            x,
            k in loop.invariants,
            next(shapes) if isinstance(p.inner, StackedList) and not p.is_invariant else None,
        )
        for k, (x, p) in enumerate(zip(inputs, loop_values, strict=True))
    ]
    state_order = [
        k for k, p in enumerate(loop_values) if p.entry is not None and not p.is_invariant
    ]
    state_order += [k for k, p in enumerate(loop_values) if p.entry is not None and p.is_invariant]
    for position, k in enumerate(state_order):
        _bind_state(loop_values[k], position)
    num_state = sum(not loop_values[k].is_invariant for k in state_order)
    body_inputs = [p.inner for p in loop_values]
    condition_entry = _array_entry(ctx, loop.condition(body_inputs, 0), "its condition")
    next_values = loop.body(body_inputs, 0)
    _check_count(ctx, inputs, next_values)
    if not num_state:
        return list(inputs)  # without state, a loop that ends runs no iteration
    next_entries = [
        _next_entry(ctx, k, loop_values[k], next_values[k]) for k in state_order[:num_state]
    ]
    entries = [entry for k in state_order if (entry := loop_values[k].entry) is not None]
    graphs = Graph([condition_entry]), Graph(next_entries)
    _check_closed(ctx, graphs)
    _check_unchanged(ctx, assigned_before)
    final_entries = runtime.while_loop(
        *graphs, entries[:num_state], entries[num_state:], ctx.call.name
    )
    results = list(inputs)
    for k, entry in zip(state_order[:num_state], final_entries, strict=True):
        results[k] = _wrap_result(loop_values[k], entry)
    return results


def _make_loop_value(
    ctx: NodeContext, value: AnyValue, is_invariant: bool, item_shape: object
) -> _LoopValue:
    """Return a value of the loop with its counterpart for the trial iteration.

    A tensor list becomes the rows of an array.

    Args:
        ctx: The node of the loop.
        value: The initial value.
        is_invariant: Whether the body returns it unchanged.
        item_shape: Shape of the items of a list that declares none, a tuple; None if not known.

    Raises:
        ModelError: If the items of a list have different shapes, or the memory budget is exceeded.
    """
    if isinstance(value, TensorList) and value.dtype is not None:
        value = as_stacked_list(ctx, value)
    if isinstance(value, StackedList):
        if value.value is None and isinstance(item_shape, tuple) and value.dtype is not None:
            value = unfilled_stack(ctx, value.length, value.dtype, item_shape)
        entry = None if value.value is None else value.value.entry
        inside = StackedList(value.name, value.value, value.length, value.dtype, value.shape)
        return _LoopValue(value, is_invariant, inside, entry)
    if isinstance(value, NonArray) or (is_invariant and _is_known(value)):
        return _LoopValue(value, is_invariant, value)
    return _LoopValue(value, is_invariant, _variable(value.entry, "trial"), value.entry)


def _is_known(value: ImportedValue) -> bool:
    """Return whether a value is a known array without symbolic sizes."""
    return value.array is not None and value.array.dtype != object


def _variable(entry: Entry, name: str) -> ImportedValue:
    """Return a new graph variable ``name`` of the shape and dtype of an entry, as a value."""
    params = {"shape": entry.shape, "dtype": entry.dtype}
    return value_of(Node(None, (), params, name).entries[0])


def _bind_state(loop_value: _LoopValue, position: int) -> None:
    """Replace the inner value of ``loop_value``, in place, by an input of the loop's graphs.

    ``position`` is the number of that input, which its name has. A list keeps its kind and gets the
    variable as its array.
    """
    assert loop_value.entry is not None
    variable = _variable(loop_value.entry, f"{runtime.INPUT_PREFIX}{position}")
    if isinstance(loop_value.inner, StackedList):
        loop_value.inner.value = variable
    else:
        loop_value.inner = variable


def _run_trial_iteration(
    ctx: NodeContext, loop: LoopFunctions, loop_values: Sequence[_LoopValue]
) -> Sequence[AnyValue] | None:
    """Evaluate one trial iteration, in which lists record the shapes of their items.

    Args:
        ctx: The node of the loop.
        loop: Its condition and body.
        loop_values: Its values; their lists get item shapes in place.

    Returns:
        Unsupported results if an operator in the loop is unsupported, else None.

    Raises:
        ModelError: If the body returns another number of values than it takes, or a node of the
            loop is malformed.
        ShapeError: If shapes in the loop do not fit an operator; likewise DTypeError for dtypes.
    """
    body_inputs = [p.inner for p in loop_values]
    condition = loop.condition(body_inputs, 0)
    next_values = loop.body(body_inputs, 0)
    if any(isinstance(x, UnsupportedResult) for x in (condition, *next_values)):
        return UniformResults(UnsupportedResult(ctx.call.name))
    _check_count(ctx, loop_values, next_values)
    return None


def _check_count(ctx: NodeContext, values: Sequence[object], results: Sequence[AnyValue]) -> None:
    """Raise ModelError unless the body's ``results`` are as many as its ``values``.

    ``ctx`` is the node of the loop, which the error names.
    """
    if len(results) != len(values):
        raise ModelError(
            f"{ctx.where} needs {len(values)} results from its body, one for each loop variable, "
            f"got {len(results)}"
        )


def _array_entry(ctx: NodeContext, value: AnyValue, role: str) -> Entry:
    """Return the entry of a value that must be an array; ``role`` names it in errors.

    ``ctx`` is the node of the loop.

    Raises:
        ModelError: If it is not an array.
    """
    if isinstance(value, NonArray):
        raise ModelError(f"{ctx.where} needs an array as {role}, got {value.description}")
    return value.entry


def _next_entry(ctx: NodeContext, k: int, loop_value: _LoopValue, value: AnyValue) -> Entry:
    """Return the entry of a loop variable's next value.

    Args:
        ctx: The node of the loop.
        k: Position of the variable, for errors.
        loop_value: The variable.
        value: Its next value, as the body returned it.

    Raises:
        ModelError: If it is no array, or its dtype or shape differs from the initial value's.
    """
    if isinstance(value, TensorList) and isinstance(loop_value.inner, StackedList):
        value = as_stacked_list(ctx, value)
    if isinstance(value, StackedList) and value.value is not None:
        value = value.value
    entry, initial = _array_entry(ctx, value, f"its value {k}"), loop_value.entry
    assert initial is not None
    if (entry.shape, entry.dtype) != (initial.shape, initial.dtype):
        raise ModelError(
            f"{ctx.where} has a number of iterations known only at run time and needs loop "
            f"variables of constant dtype and shape, and variable {k} changes from "
            f"{initial.dtype}{show_shape(initial.shape)} to "
            f"{entry.dtype}{show_shape(entry.shape)}"
        )
    return entry


def _wrap_result(loop_value: _LoopValue, entry: Entry) -> AnyValue:
    """Return the final ``entry`` of a loop variable as a value: a list if it began so, or an array.

    ``loop_value`` has the initial value.
    """
    value, outside = value_of(entry), loop_value.outside
    if isinstance(outside, StackedList):
        return StackedList(outside.name, value, outside.length, outside.dtype, outside.shape)
    if isinstance(outside, TensorList):
        return StackedList(outside.name, value, len(outside.items), outside.dtype, outside.shape)
    return value


def _check_unchanged(
    ctx: NodeContext, assigned_before: Mapping[ModelVariable, ImportedValue | None]
) -> None:
    """Raise ModelError if the loop assigned to a variable of the model.

    Args:
        ctx: The node of the loop.
        assigned_before: Values of assigned variables before the loop.

    Raises:
        ModelError: If a variable has another value now.
    """
    for variable, value in assigned_values(ctx.shared).items():
        if value is not assigned_before.get(variable):
            raise ModelError(
                f"{ctx.where} has a number of iterations known only at run time and assigns to the "
                f"variable {short(variable.name)}, which is not supported; make the value a loop "
                f"variable and assign it after the loop"
            )


def _check_closed(ctx: NodeContext, graphs: Sequence[Graph]) -> None:
    """Raise ModelError if the graph of the condition or the body reads a value from outside.

    ``graphs`` are both; their own inputs have names that begin with the runtime's prefix. ``ctx``
    is the node of the loop, which the error names.
    """
    for graph in graphs:
        for node in graph.inputs:
            if not node.name.startswith(runtime.INPUT_PREFIX):
                raise ModelError(
                    f"{ctx.where} has a number of iterations known only at run time and reads "
                    f"{short(node.name)} from outside of the loop, which is not supported; pass it "
                    f"as a loop variable"
                )
